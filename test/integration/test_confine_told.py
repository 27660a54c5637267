"""What a confined program met is told: the wall that refused it, the limit that ended it, in jobs, sessions and MCP servers."""
import json
import os
import shlex
import subprocess
import sys
import tempfile

import pytest

from harness import needs
from harness.client import RpcError
from harness.confinement import told
from harness.jobs import Job
from harness.processes import wait_until

WORKSPACE = {"preset": "workspace"}


REFUSALS = {
    "a shell": ("echo x >/etc/toolbox-refused", "Read-only: /etc/toolbox-refused (policy workspace)"),
    "touch": ("touch /etc/toolbox-refused", "Read-only: /etc/toolbox-refused (policy workspace)"),
    "copying": ("cp /etc/passwd /etc/toolbox-refused", "Read-only: /etc/toolbox-refused (policy workspace)"),
    "tee": ("echo a | tee /etc/toolbox-refused", "Read-only: /etc/toolbox-refused (policy workspace)"),
    "python": ("python3 -c \"open('/etc/toolbox-refused', 'w')\"", "Read-only: /etc/toolbox-refused (policy workspace)"),
    "quotes of this century": ("printf 'mkdir: cannot create directory \\342\\200\\230/etc/toolbox-refused\\342\\200\\231: Read-only file system\\n'",
                               "Read-only: /etc/toolbox-refused (policy workspace)"),
    "node": ("printf \"Error: EROFS: read-only file system, open '/etc/toolbox-refused'\\n  code: 'EROFS',\\n\"",
             "Read-only: /etc/toolbox-refused (policy workspace)"),
    "a socket": ("python3 -c 'import socket; socket.socket()'", "No network (policy workspace)"),
    "a name": ("echo \"curl: (6) Could not resolve host: example.com\" >&2", "No network (policy workspace)"),
    "what isn't there": ("cat /nowhere/at/all", None),
    "what may be written": ("echo x >f && cat f", None),
    "its own mode": ("echo \"cat: $PWD/f: Permission denied\"", None),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_job_tells_what_refused_it(client, workdir, name):
    command, said = REFUSALS[name]
    if command.startswith("python3"):
        needs.program("python3")
    params = {"command": command, "cwd": str(workdir), "confine": WORKSPACE}
    told(client, "exec_remote_start", {**params, "command": "true"})
    job = Job(client, **params)
    job.finish()
    assert job.end.get("refused") == said, (job.out, job.err)


def test_what_is_not_to_be_read_or_run_is_told(client, workdir):
    hidden = workdir / "hidden"
    hidden.mkdir()
    (hidden / "f").write_text("x")
    words = [({"read": ["/usr", "/lib", "/lib64", "/bin"]}, f"cat {hidden}/f", "Not to be read: "),
             ({"hide": [str(hidden)]}, f"echo 'cat: {hidden}/f: Permission denied'", "Hidden: ")]
    for confine, command, begin in words:
        confine = {k: [p for p in v if os.path.exists(p)] for k, v in confine.items()}
        told(client, "exec_remote_start", {"argv": ["/bin/true"], "confine": confine})
        job = Job(client, command=command, confine=confine)
        job.finish()
        assert job.end.get("refused") == f"{begin}{hidden}/f (policy)", (job.out, job.err)


def test_a_session_tells_what_refused_it(client, workdir):
    new = told(client, "bash_session_new_session", {"cwd": str(workdir), "confine": WORKSPACE, "limits": {"file_size": 1000}})
    name = new["session_name"]

    def run(command):
        return client.rpc("bash_session_run", {"session_name": name, "command": command})

    assert run("cd /etc && touch ./toolbox-refused")["refused"] == "Read-only: /etc/toolbox-refused (policy workspace)"
    assert "refused" not in run("cd - >/dev/null; echo on")
    assert run("head -c 5000 /dev/zero >f")["limit"] == "file_size"
    listed = [s for s in client.rpc("bash_session_list") if s["session_name"] == name]
    assert listed[0]["enforced"] == new["enforced"]


def test_memory_in_a_session_is_told_once(client):
    new = told(client, "bash_session_new_session", {"limits": {"memory": 100 << 20}})
    if new["enforced"]["memory"] != "cgroup":
        raise needs.Unavailable("no control group can be made here")

    def run(command):
        return client.rpc("bash_session_run", {"session_name": new["session_name"], "command": command})

    assert run(f"{sys.executable} -c 'x = bytearray(400 << 20)'")["limit"] == "memory"
    assert "limit" not in run("echo on; (exit 137)")


def test_a_session_ends_in_time(client):
    new = told(client, "bash_session_new_session", {"limits": {"wall_seconds": 1}})
    assert new["enforced"]["wall_seconds"] == "timer"
    wait_until(lambda: not client.rpc("bash_session_list"), "the session is over")
    with pytest.raises(RpcError):
        client.rpc("bash_session_run", {"session_name": new["session_name"], "command": "echo on"})


SERVER = """
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    try:
        open(r["params"]["path"], "w").close()
        said = "written"
    except OSError as e:
        said = str(e)
        print(e, file=sys.stderr, flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": r["id"], "result": said}), flush=True)
"""


def ask(client, session, path):
    request = {"jsonrpc": "2.0", "id": 1, "method": "write", "params": {"path": str(path)}}
    return client.rpc("mcp_send_request", {"session_id": session, "request": request})["result"]


def test_an_mcp_server_behind_walls(client, workdir):
    params = {"server_params": {"command": sys.executable, "args": ["-c", SERVER], "cwd": str(workdir)}, "confine": WORKSPACE,
              "limits": {"open_files": 100}}
    session = told(client, "mcp_launch_server", params)
    assert ask(client, session, workdir / "f") == "written"
    assert ask(client, session, "/etc/toolbox-refused") != "written"

    def listed():
        return next(s for s in client.rpc("mcp_list_servers") if s["session_id"] == session)

    assert listed()["enforced"]["network"] == "seccomp" and listed()["enforced"]["open_files"] == "rlimit"
    wait_until(lambda: listed().get("refused") == "Read-only: /etc/toolbox-refused (policy workspace)", "it is told")


def test_limits_of_an_mcp_server(client):
    busy = told(client, "mcp_launch_server", {"server_params": {"command": sys.executable, "args": ["-c", "while True: pass"]},
                                              "limits": {"cpu_seconds": 1}})
    late = told(client, "mcp_launch_server", {"server_params": {"command": "sleep", "args": ["600"]}, "limits": {"wall_seconds": 1}})

    def listed():
        return {s["session_id"]: s for s in client.rpc("mcp_list_servers")}

    wait_until(lambda: listed()[busy].get("limit") == "cpu_seconds", "the busy one is ended, and it is told by what")
    wait_until(lambda: late not in listed(), "the other one's time is over")


@pytest.mark.parametrize("params, said", [
    ({"confine": {"preset": "none"}}, "confine.preset: must be readonly"),
    ({"limits": {"memory": 0}}, "limits.memory"),
])
def test_what_is_wrong_is_said(client, params, said):
    with pytest.raises(RpcError) as e:
        client.rpc("mcp_launch_server", {"server_params": {"command": "true"}, **params})
    assert said in e.value.message


# ---- learning ----

def learn(toolbox, *words, **how):
    done = subprocess.run([str(toolbox), "confine", "--learn", *map(str, words)], capture_output=True, text=True, timeout=120, **how)
    if done.returncode == 125 and "cannot confine" in done.stderr:
        raise needs.Unavailable(done.stderr.strip())
    return done


def test_what_a_command_needs_is_learnt(toolbox, tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "c/f").write_text("x")
    command = f"echo x >{tmp_path}/a/f; echo y >{tmp_path}/b/g; echo z >>{tmp_path}/c/f; echo said"
    done = learn(toolbox, "--", "sh", "-c", command, cwd=tmp_path)
    assert done.returncode == 0 and "said" in done.stderr, done.stderr
    words = done.stdout.split()
    assert words[:4] == ["toolbox", "confine", "--preset", "readonly"] and words[-2:] == ["--network", "none"], done.stdout
    assert sorted(words[5:-2:2]) == [f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/c/f"]
    again = subprocess.run([str(toolbox), *words[1:], "--", "sh", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "said\n", "")


def test_what_is_learnt_is_words_of_a_shell(toolbox):
    """A command that isn't trusted says what it likes."""
    with tempfile.TemporaryDirectory(prefix="it's $(date); ", dir="/tmp") as odd:
        done = learn(toolbox, "--", sys.executable, "-c", "import sys; open(sys.argv[1], 'w')", odd + "/f", cwd="/")
    assert shlex.split(done.stdout)[4:6] == ["--write", odd], done.stdout


def test_a_network_is_learnt_as_json(toolbox, tmp_path):
    done = learn(toolbox, "--json", "--network", "none", "--", sys.executable, "-c", "import socket; socket.socket()", cwd=tmp_path)
    assert json.loads(done.stdout) == {"network": ["none", "all"]}


def test_what_isnt_there_is_not_learnt(toolbox):
    assert learn(toolbox, "--", "/nowhere/at/all").returncode == 127
    assert learn(toolbox).returncode == 2
