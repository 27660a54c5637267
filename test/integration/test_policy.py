"""The policy of a whole server: what its owner says can't be widened by a caller, by whatever way he comes."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import needs
from harness.client import RpcError
from harness.jobs import Job
from harness.mcp_client import McpClient, McpError, ToolError
from harness.processes import wait_until
from harness.server import pid_in

REFUSED = "refused by the policy"


@pytest.fixture
def ground(tmp_path):
    """A directory that is open, and one beside it that isn't."""
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("kept\n")
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    return tmp_path


@pytest.fixture
def begin(client, ground):
    """Starts a server with that policy; skipped where the walls can't be had."""
    def start(**policy):
        file = ground / "policy.json"
        file.write_text(json.dumps(policy))
        done = client.cli("start-server", "--policy", file)
        assert done.returncode == 0, done.stderr
        return file

    try:
        client.rpc("exec_remote_start", {"argv": ["true"], "cwd": str(ground / "open"), "confine": {"write": ["."], "read": ["/"], "network": ["none"]}})
    except RpcError as e:
        raise needs.Unavailable(e.message) from None
    client.stop()
    return start


def refusal(client, method, params=None):
    with pytest.raises(RpcError) as e:
        client.rpc(method, params)
    return e.value.message


def walls(ground, **more):
    return {"directories": [str(ground / "open")], "confine": {"write": [str(ground / "open")], "network": ["none"]}, **more}


# ---- methods ----

def test_methods_that_it_names(client, begin):
    begin(methods=["exec_remote_*", "version"], refuse=["exec_remote_signal"])
    assert REFUSED in refusal(client, "bash_session_new_session")
    assert REFUSED in refusal(client, "text_editor", {"command": "view", "path": "/etc/passwd"})
    assert REFUSED in refusal(client, "file_read", {"path": "/etc/passwd"})
    job = Job(client, argv=["sleep", "600"])
    assert REFUSED in refusal(client, "exec_remote_signal", {"pid": job.pid, "signal": "TERM"})
    assert REFUSED in refusal(client, "sandbox_tools_shutdown")
    client.rpc("exec_remote_kill", {"pid": job.pid, "ack_seq": 0})
    assert client.rpc("version")


def test_batches_and_streams_go_the_same_way(client, begin):
    begin(methods=["version"])
    batch = [{"jsonrpc": "2.0", "id": n, "method": m, "params": {"path": "/etc/passwd"} if m == "file_read" else {}}
             for n, m in enumerate(["version", "file_read", "exec_remote_list"])]
    answers = json.loads(client.line(batch))
    assert ["error" in a for a in answers] == [False, True, True]
    lines = "".join(json.dumps(r) + "\n" for r in batch)
    done = client.cli("exec", "--stream", stdin=lines.encode())
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{") and b'"id"' in line]
    assert sum(REFUSED in json.dumps(a) for a in said) == 2, done.stdout


def test_nothing_is_run_over_a_stream(client, begin, ground):
    begin(methods=["exec_remote_*"])
    done = client.cli("run", "local:", "--", "touch", ground / "ran")
    assert done.returncode != 0 and not (ground / "ran").exists(), done.stdout


# ---- walls and limits ----

WIDER = [{}, {"write": ["/"]}, {"preset": "offline"}, {"network": ["all"]}, {"best_effort": True}, {"write": ["/"], "network": ["unix"], "read": ["/"]}]


@pytest.mark.parametrize("confine", WIDER)
def test_no_call_widens_the_walls(client, begin, ground, confine):
    begin(**walls(ground))
    command = f"echo x >{ground}/open/made; echo x >{ground}/closed/made; echo x >{ground}/open/link/made; echo x >{client.dir}/policy; exit 3"
    job = Job(client, command=command, cwd=str(ground), confine=confine)
    assert job.finish()[0] == 3
    assert (ground / "open/made").exists()
    assert not (ground / "closed/made").exists() and json.loads((client.dir / "policy").read_text())
    net = Job(client, argv=["python3", "-c", "import socket; socket.socket(socket.AF_UNIX)"], confine=confine)
    needs.program("python3")
    assert net.finish()[0] != 0


@pytest.mark.parametrize("method", ["web_new_session", "computer_new_session"])
def test_what_no_walls_can_hold_is_not_begun(client, begin, ground, method):
    """A desktop's window manager is any program, and a browser reads file:."""
    begin(**walls(ground))
    assert REFUSED in refusal(client, method)
    assert REFUSED in refusal(client, method, {"window_manager": "/usr/bin/xterm"} if method.startswith("c") else {})


@pytest.mark.parametrize("method", ["web_new_session", "computer_new_session"])
def test_unless_they_are_named_themselves(client, begin, ground, method):
    begin(methods=[method, "version"], **walls(ground))
    assert REFUSED not in refusal(client, method, {"user": "no-such-user"})


@pytest.mark.parametrize("more", ["write", "execute"])
def test_what_may_be_written_or_run_is_not_read_for_that(client, begin, ground, more):
    libraries = [p for p in ("/usr", "/bin", "/lib", "/lib64") if Path(p).exists()]
    begin(confine={"read": [*libraries, str(ground / "open")]})
    job = Job(client, command=f"cat {ground}/closed/file", cwd=str(ground / "open"),
              confine={more: [*libraries, str(ground)]})
    code, output = job.finish()[:2]
    assert code != 0 and "kept" not in output, output


def test_what_is_confined_does_not_reach_the_policy(client, begin, ground):
    begin(confine={"write": [str(client.dir), str(ground)], "network": ["none"]})
    if "mounts" not in client.rpc("exec_remote_start", {"argv": ["true"], "cwd": str(ground)})["enforced"]["write"]:
        raise needs.Unavailable("no mounts can be made here")
    before = (client.dir / "policy").read_text()
    job = Job(client, command=f"echo x >{client.dir}/policy; rm -f {client.dir}/policy; echo x >{ground}/made", cwd=str(ground))
    job.finish()
    assert (ground / "made").exists() and (client.dir / "policy").read_text() == before


def test_a_call_can_make_them_narrower(client, begin, ground):
    begin(**walls(ground))
    job = Job(client, command=f"echo x >{ground}/open/made; echo on", confine={"preset": "readonly"})
    assert job.finish()[1] == "on\n" and not (ground / "open/made").exists()


@pytest.mark.parametrize("method", ["bash_session_new_session", "mcp_launch_server"])
def test_sessions_and_mcp_servers_are_held_as_well(client, begin, ground, method):
    begin(**walls(ground))
    if method == "mcp_launch_server":
        command = f"echo x >{ground}/open/made; echo x >{ground}/closed/made; echo on >{ground}/open/done; sleep 600"
        client.rpc(method, {"server_params": {"command": "sh", "args": ["-c", command]}, "confine": {"write": ["/"]}})
        wait_until((ground / "open/done").exists, "it has tried")
    else:
        client.new(confine={"write": ["/"]})
        assert "refused" in client.run(f"echo x >{ground}/open/made; echo x >{ground}/closed/made")
    assert (ground / "open/made").exists() and not (ground / "closed/made").exists()


def test_limits_are_the_most(client, begin):
    begin(limits={"open_files": 50, "file_size": 1000}, defaults={"limits": {"open_files": 30}})

    def files(**limits):
        return Job(client, command="ulimit -n", limits=limits).finish()[1].strip()

    assert (files(), files(open_files=40), files(open_files=5000)) == ("30", "40", "50")
    assert Job(client, command="head -c 5000 /dev/zero >/tmp/toolbox-policy-$$; rm /tmp/toolbox-policy-$$; true").finish()[0] == 0
    late = Job(client, command="head -c 5000 /dev/zero >f", cwd=str(client.dir.parent))
    late.finish()
    assert late.end["limit"] == "file_size"


def test_a_most_of_time(client, begin):
    begin(limits={"wall_seconds": 1})
    job = Job(client, argv=["sleep", "600"], limits={"wall_seconds": 500})
    job.finish()
    assert job.end["limit"] == "wall_seconds"


# ---- files ----

def test_the_editor_and_the_file_methods_stay_in_their_directories(client, begin, ground):
    begin(**walls(ground))
    inside, outside = ground / "open/file", ground / "closed/file"
    client.ed("str_replace", inside, old_str="kept", new_str="edited")
    assert inside.read_text() == "edited\n"
    client.ed("undo_edit", inside)
    assert inside.read_text() == "kept\n"
    client.rpc("file_write", {"path": str(ground / "open/new"), "data": "x"})
    for path in (outside, ground / "open/link/file", Path("/proc/self/root") / str(outside)[1:]):
        refusal(client, "text_editor", {"command": "view", "path": str(path)})
        refusal(client, "text_editor", {"command": "str_replace", "path": str(path), "old_str": "kept", "new_str": "x"})
        refusal(client, "text_editor", {"command": "create", "path": str(path) + "2", "file_text": "x"})
        refusal(client, "file_read", {"path": str(path)})
        refusal(client, "file_write", {"path": str(path), "data": "x"})
        refusal(client, "file_remove", {"path": str(path)})
    refusal(client, "file_read", {"path": str(client.dir.parent / "nothing")})
    assert client.rpc("file_read", {"path": "/etc/passwd"})["data"]  # who is who stays to be read, and no more than that
    refusal(client, "file_write", {"path": "/etc/passwd", "data": "x", "append": True})
    assert outside.read_text() == "kept\n" and not (ground / "closed/file2").exists()


def test_the_file_methods_leave_the_server_s_directory_alone(client, begin, ground):
    begin(**walls(ground))
    before = (client.dir / "policy").read_text()
    for name in ("policy", ".program.0123456789abcdef.1-1"):
        refusal(client, "file_write", {"path": str(client.dir / name), "data": "{}"})
    refusal(client, "file_remove", {"path": str(client.dir / "policy")})
    refusal(client, "file_move", {"path": str(client.dir / "policy"), "to": str(ground / "open/policy")})
    refusal(client, "text_editor", {"command": "create", "path": str(client.dir / "made"), "file_text": "x"})
    assert (client.dir / "policy").read_text() == before and not (client.dir / ".program.0123456789abcdef.1-1").exists()
    one = ground / "open/file"
    os.link(one, ground / "open/other")  # so it is written in place
    client.ed("str_replace", one, old_str="kept", new_str="edited")
    client.ed("undo_edit", one)
    assert one.read_text() == (ground / "open/other").read_text() == "kept\n"


# ---- users ----

def test_users(client, begin):
    begin(users=[str(os.geteuid())])
    assert Job(client, command="id -u").finish()[1].strip() == str(os.geteuid())
    other = "65534" if os.geteuid() != 65534 else "65533"
    assert "policy" in refusal(client, "exec_remote_start", {"argv": ["id"], "user": other})
    assert "policy" in refusal(client, "file_read", {"path": "/etc/passwd", "user": other})
    client.stop()
    begin(users=[other])
    assert "policy" in refusal(client, "exec_remote_start", {"argv": ["id"]})
    assert "policy" in refusal(client, "text_editor", {"command": "view", "path": "/etc/passwd"})


# ---- its life ----

def test_it_holds_for_the_next_server_too(client, begin):
    begin(refuse=["exec_remote_start"])
    os.kill(pid_in(client.rpc("remote_version")), signal.SIGKILL)
    wait_until(lambda: REFUSED in refusal(client, "exec_remote_start", {"argv": ["true"]}), "the next one has it")
    client.rpc("sandbox_tools_shutdown")
    assert REFUSED in refusal(client, "exec_remote_start", {"argv": ["true"]}), "nor does a caller get rid of it"
    client.stop()
    assert Job(client, argv=["true"]).finish()[0] == 0, "but its owner does"


def test_a_server_that_runs_gets_none(client, begin, ground):
    client.rpc("remote_version")
    (ground / "p").write_text("{}")
    done = client.cli("start-server", "--policy", ground / "p")
    assert done.returncode == 1 and b"a server runs in" in done.stderr


def test_one_that_is_broken_starts_nothing(client, begin, ground):
    begin()
    client.rpc("sandbox_tools_shutdown")
    (client.dir / "policy").write_text("{")
    assert "policy" in refusal_or_failure(client)


def refusal_or_failure(client):
    done = client.cli("exec", stdin=b'{"jsonrpc":"2.0","id":1,"method":"exec_remote_start","params":{"argv":["true"]}}\n')
    return (done.stdout + done.stderr).decode()


# ---- the log ----

def test_calls_are_noted(client, begin, ground):
    log = ground / "log"
    begin(refuse=["bash_session_*"], audit={"file": str(log)})
    job = Job(client, command="echo secret")
    job.finish()
    refusal(client, "bash_session_list")
    refusal(client, "exec_remote_poll", {"pid": 1, "ack_seq": 0})
    client.rpc("file_read", {"path": "/etc/passwd"})
    wait_until(lambda: "file_read" in log.read_text(), "it is written")
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    outcomes = {line["method"]: line["outcome"] for line in lines}
    assert outcomes["exec_remote_start"] == "ok" and outcomes["bash_session_list"] == "refused" and outcomes["exec_remote_poll"] == "failed"
    read = next(line for line in lines if line["method"] == "file_read")
    assert read["target"] == "/etc/passwd" and read["bytes_out"] > 0 and read["ms"] >= 0 and read["pid"] > 0 and read["user"] and read["time"] > 1e9
    assert "secret" not in text and log.stat().st_mode & 0o777 == 0o600


def test_contents_and_rotation(client, begin, ground):
    log = ground / "log"
    begin(audit={"file": str(log), "contents": True, "max_bytes": 4096, "keep": 2})
    for n in range(40):
        Job(client, command=f"echo secret {n} {'x' * 200}").finish()
    assert "secret" in log.read_text() + (ground / "log.1").read_text()
    assert (ground / "log.2").exists() and not (ground / "log.3").exists()
    assert all(f.stat().st_size <= 4096 for f in ground.glob("log*"))


# ---- policy check ----

@pytest.mark.parametrize("text, said", [
    ("{", "JSON"), ("[]", "no object"), ('{"method": []}', "method: is no member of a policy"),
    ('{"confine": {"presett": "x"}}', "confine.presett: is no member of a policy"), ('{"methods": ["exec_remot_*"]}', "exec_remot_*"),
    ('{"users": ["nobody-of-that-name"]}', "users"), ('{"directories": ["here"]}', "no absolute path"),
    ('{"directories": ["/nowhere/at/all"]}', "/nowhere/at/all"), ('{"confine": {"write": ["x"]}}', "no absolute path"),
    ('{"confine": {"preset": "workspace"}}', "workspace"), ('{"confine": {"network": ["example.com"]}}', "confine.network"),
    ('{"limits": {"memory": 0}}', "limits.memory"), ('{"audit": {}}', "audit.file"), ('{"audit": {"file": "x"}}', "no absolute path"),
])
def test_check_says_what_is_wrong(toolbox, tmp_path, text, said):
    (tmp_path / "p").write_text(text)
    done = subprocess.run([toolbox, "policy", "check", tmp_path / "p"], capture_output=True, text=True)
    assert done.returncode == 1 and said in done.stderr and str(tmp_path / "p") in done.stderr, done.stderr
    answer = subprocess.run([toolbox, "policy", "check", "--json", tmp_path / "p"], capture_output=True, text=True)
    assert answer.returncode == 1 and json.loads(answer.stdout) == {"ok": False, "error": done.stderr.removeprefix("toolbox policy: ").rstrip("\n")}


def test_check(toolbox, tmp_path):
    (tmp_path / "p").write_text(json.dumps({"directories": [str(tmp_path)], "confine": {"preset": "workspace"}, "methods": ["file_*"]}))
    done = subprocess.run([toolbox, "policy", "check", tmp_path / "p"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/p is a policy\n", "")
    (tmp_path / "p").write_text("{}")
    done = subprocess.run([toolbox, "policy", "check", tmp_path / "p"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.count("warning: ") == 2
    for text, warnings in (("{}", 2), ('{"directories": ["/"]}', 1), ('{"directories": ["/"], "confine": {"preset": "readonly"}}', 0)):
        (tmp_path / "p").write_text(text)
        done = subprocess.run([toolbox, "policy", "check", tmp_path / "p", "--json"], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr and json.loads(done.stdout)["ok"], done
        assert len(json.loads(done.stdout)["warnings"]) == warnings, done.stdout
    for words in ([], ["chek", "x"], ["check"], ["check", "a", "b"], ["check", "--json"], ["check", "--jsno", "a"]):
        assert subprocess.run([toolbox, "policy", *words], capture_output=True).returncode == 2


# ---- mcp serve ----

@pytest.fixture
def serve(client, begin, ground):
    started = []

    def one(**policy):
        (ground / "policy.json").write_text(json.dumps(policy))
        process = client.popen("mcp", "serve", "--policy", ground / "policy.json", stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=str(ground))
        started.append(process)
        return McpClient(process), process

    yield one
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            pipe.close()


def places():
    return {str(p) for top in ("/run", "/tmp", "/var/tmp", "/dev/shm") for p in Path(top).glob(".toolbox-policy-*")}


def test_mcp_serve_is_held(serve, ground):
    before = places()
    mcp, process = serve(**walls(ground, refuse=["exec_remote_start", "file_find"]))
    names = {t["name"] for t in mcp.request("tools/list")["tools"]}
    assert "shell_run" in names and "read_file" in names and not names & {"job_start", "find_files"}
    with pytest.raises((McpError, ToolError)):
        mcp.call("job_start", command="true")
    mcp.call("shell_run", command=f"echo x >{ground}/open/made; echo x >{ground}/closed/made")
    mcp.call("write_file", path=f"{ground}/open/written", content="x")
    for tool, arguments in (("read_file", {"path": f"{ground}/closed/file"}), ("write_file", {"path": f"{ground}/open/link/x", "content": "x"}),
                            ("text_editor", {"command": "view", "path": f"{ground}/closed/file"}),
                            ("text_editor", {"command": "create", "path": f"{ground}/closed/new", "file_text": "x"})):
        with pytest.raises((McpError, ToolError)):
            mcp.call(tool, **arguments)
    assert (ground / "open/made").exists() and (ground / "open/written").exists() and len(places() - before) == 1
    assert sorted(p.name for p in (ground / "closed").iterdir()) == ["file"]
    process.kill()
    process.wait()
    wait_until(lambda: places() <= before, "nothing is left, though it was killed")


def test_mcp_serve_leaves_nothing_at_its_end(serve, ground):
    before = places()
    mcp, process = serve(**walls(ground))
    mcp.call("shell_run", command="echo on")
    process.stdin.close()
    assert process.wait(60) == 0 and places() <= before


def test_mcp_serve_says_what_is_wrong_with_it(client, ground):
    before = places()
    (ground / "p").write_text('{"methods": ["none_of_these"]}')
    done = client.cli("mcp", "serve", "--policy", ground / "p")
    assert done.returncode == 1 and b"none_of_these" in done.stderr and places() <= before


# ---- our own sockets ----

@pytest.mark.parametrize("confine", [{"write": ["."]}, {"network": ["unix"], "write": ["."]}, {"hide": ["/nowhere"], "write": ["."]}])
def test_what_is_confined_doesnt_have_the_server_do_it(client, toolbox, ground, confine):
    """Who reaches the server's socket could have it start what is not confined."""
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "exec_remote_start", "params": {"argv": ["touch", str(ground / "closed/made")]}})
    script = f"""
import glob, socket, sys
call = {call!r}.encode()
for path in glob.glob({str(client.dir)!r} + "/server.*"):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(b"POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(call), call))
    print("answered", s.recv(100))
"""
    try:
        held = client.rpc("exec_remote_start", {"argv": ["true"], "cwd": str(ground / "open"), "confine": confine})["enforced"]
    except RpcError as e:
        raise needs.Unavailable(e.message) from None
    if "mounts" not in held["write"]:
        raise needs.Unavailable("no mounts can be made here")
    program = needs.program("python3")
    free = Job(client, argv=[program, "-c", script.replace("closed/made", "open/made")], cwd=str(ground / "open"))
    assert "answered" in free.finish()[1], "without walls it does"
    job = Job(client, argv=[program, "-c", script], cwd=str(ground / "open"), confine=confine)
    assert job.finish()[1] == "" and not (ground / "closed/made").exists()
