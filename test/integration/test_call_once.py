"""A call happens once, and nobody who dies takes its answer along."""
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import time

import pytest

from harness.containers import BUSYBOX
from harness.injection import prefix, script
from harness.machine import HANG
from harness.processes import wait_until

UNANSWERED, LOST = 124, 125


class Caller:
    """`toolbox call` of one target, each by itself (test_connect.py has those that go over a connection)."""

    def __init__(self, toolbox, target, container, env=None):
        self.toolbox, self.target, self.container = toolbox, target, container
        self.env = {**os.environ, **(env or {})}

    def words(self, method, *params, options=()):
        return [self.toolbox, "call", "--no-share", *options, self.target, method, *params]

    def run(self, method, *params, options=()):
        return subprocess.run(self.words(method, *params, options=options), env=self.env, capture_output=True, timeout=HANG)

    def result(self, method, *params):
        done = self.run(method, *params)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def counted(self):
        return self.container.check([BUSYBOX, "cat", "/tmp/count"]).split()


def _caller(toolbox, container):
    if hasattr(container, "engine"):
        return Caller(toolbox, f"docker:{container.name}", container, container.engine.env)
    return Caller(toolbox, f"exec:{prefix(container)}", container)


@pytest.fixture
def caller(toolbox, start):
    """With a session, in each of the runtimes."""
    caller = _caller(toolbox, start("busybox"))
    assert caller.result("bash_session_new_session")["session_name"] == "BashSession"
    assert caller.result("bash_session_run", "session_name=BashSession", "command=true")["exit_code"] == 0
    return caller


def run(command):
    return ["bash_session_run", "session_name=BashSession", f"command={command}"]


# ---- a request is sent once ----


def test_a_call_that_outlasts_its_limit(caller):
    done = caller.run(*run("echo x >>/tmp/count; echo begun; sleep 4; echo ended"), options=["--timeout", "1500ms"])
    assert (done.returncode, done.stdout) == (UNANSWERED, b""), done
    said = done.stderr.decode()
    assert "no answer within 1.5 s (--timeout)" in said and "recon" not in said
    words = shlex.split(said.split("what has become of it: ")[1])
    assert words[:2] == ["toolbox", "call"]
    then = subprocess.run([caller.toolbox, *words[1:]], env=caller.env, capture_output=True, timeout=HANG)
    result = json.loads(then.stdout)
    assert (result["state"], result["output"]) == ("completed", "begun\nended\n"), "its own output, whole"
    assert caller.counted() == ["x"]


@pytest.mark.parametrize("method, params, by", [
    ("exec_remote_wait", {"ack_seq": 0}, "exec_remote_poll"),
    ("bash_session", {"session_name": "BashSession", "input": "sleep 6000\n", "wait_for_output": 60, "idle_timeout": 60}, "bash_session"),
])
def test_the_message_says_how_the_outcome_is_had(caller, method, params, by):
    if method == "exec_remote_wait":
        params["pid"] = caller.result("exec_remote_start", "command=read x <&-; sleep 6000")["pid"]
    done = caller.run(method, json.dumps(params), options=["--timeout", "1"])
    assert done.returncode == UNANSWERED, done
    words = shlex.split(done.stderr.decode().split("what has become of it: ")[1])
    assert by in words
    then = subprocess.run([caller.toolbox, *words[1:]], env=caller.env, capture_output=True, timeout=HANG)
    assert then.returncode == 0, then
    if "pid" in params:
        caller.result("exec_remote_kill", f"pid:={params['pid']}", "ack_seq:=0")


class Stand:
    """A stand-in for a runtime on this machine, where the program is already."""

    def __init__(self, client, folder, text, scheme="docker:x"):
        self.client, self.there = client, str(folder / "there")
        program = script(folder / "runtime", text)
        self.words = ["--dir", self.there, *(["--runtime", program, "docker:x"] if scheme else [f"exec:{program}"])]

    def call(self, *words, options=()):
        return self.client.cli("call", *options, *self.words, *words)

    def __enter__(self):
        assert self.client.cli("inject", "--dir", self.there, "local:").returncode == 0
        return self

    def __exit__(self, *_):
        self.client.cli("eject", "--dir", self.there, "local:")


# What Docker is given: exec -i [-u 0] NAME WORDS…
PASS = 'shift 2; user=; [ "$1" != -u ] || { user=$2; shift 2; }; shift\n'


@pytest.mark.parametrize("scheme, enter", [("docker", PASS), (None, "")], ids=["docker", "exec"])
@pytest.mark.parametrize("fate", ["dies", "swallows"])
def test_a_connection_that_is_lost_after_the_request_went_out(client, workdir, scheme, enter, fate):
    """Whether it began isn't known, and so it isn't sent again."""
    count = workdir / "count"
    ends = {"dies": f"{{ while [ ! -e {count} ]; do sleep 0.1; done; kill -9 $$; }} &\nexec \"$@\"",
            "swallows": "\"$@\" | grep --line-buffered -v jsonrpc; exit 7"}[fate]
    with Stand(client, workdir, enter + ends, scheme) as stand:
        name = client.new()
        done = stand.call("bash_session_run", f"session_name={name}", f"command=echo x >>{count}; sleep 1; echo end", options=["--timeout", "5"])
        assert (done.returncode, done.stdout) == (LOST if fate == "dies" else UNANSWERED, b""), done
        assert (b"before the answer to a call that was sent" in done.stderr) == (fate == "dies")
        wait_until(count.exists, "the command to begin")
        result = client.run(None, session=name, timeout=20)
        assert (result["state"], result["output"]) == ("completed", "end\n")
        assert count.read_text() == "x\n"


def test_another_user_is_tried_only_with_what_was_not_sent(client, workdir):
    """As root everything runs, and nothing of what it says comes through."""
    count = workdir / "count"
    lost = PASS + 'if [ "$user" ]; then "$@" >/dev/null; exit 1; fi; exec "$@"'
    with Stand(client, workdir, lost) as stand:
        done = stand.call("exec_remote_start", f"command=echo x >>{count}")
        assert done.returncode == 0, done
        wait_until(count.exists, "the command to begin")
        time.sleep(0.5)
        assert count.read_text() == "x\n"


def test_a_reconnaissance_that_takes_too_long_is_made_again(client, workdir):
    """Nothing was sent by then. On a busy machine the second one may take too long as well: then it gets more time."""
    count, first = workdir / "count", workdir / "first"
    slow = PASS + f'[ -e {first} ] || {{ : >{first}; exec sleep 6000; }}; exec "$@"'
    with Stand(client, workdir, slow) as stand:
        for limit in ("2", "10", "60"):
            first.unlink(missing_ok=True)
            done = stand.call("exec_remote_start", f"command=echo x >>{count}", options=["--timeout", limit])
            if done.returncode == 0:
                break
            assert b"did not end within" in done.stderr and not count.exists(), done
        assert done.returncode == 0, done
        wait_until(count.exists, "the command to begin")
        assert count.read_text() == "x\n"


@pytest.mark.parametrize("scheme, enter", [("docker", PASS), (None, "")], ids=["docker", "exec"])
def test_a_runtime_that_hands_all_over_at_its_end(client, workdir, scheme, enter):
    """It takes all of stdin before, too."""
    count = workdir / "count"
    whole = enter + f'cat >{workdir}/in; "$@" <{workdir}/in >{workdir}/out; s=$?; cat {workdir}/out; exit $s'
    with Stand(client, workdir, whole, scheme) as stand:
        name = json.loads(stand.call("bash_session_new_session").stdout)["session_name"]
        done = stand.call("bash_session_run", f"session_name={name}", f"command=echo x >>{count}; sleep 1; echo end")
        assert done.returncode == 0 and json.loads(done.stdout)["output"] == "end\n", done
        assert count.read_text() == "x\n"


@pytest.mark.parametrize("scheme, enter", [("docker", PASS), (None, "")], ids=["docker", "exec"])
@pytest.mark.parametrize("noise", ["Last login: today", "0022", '{"level": "info", "msg": "attached"}'])
def test_what_others_print_is_no_answer(client, workdir, scheme, enter, noise):
    """A banner in front of all, where the program is new there; and a line in front of the answer, where it was found."""
    count = workdir / "count"
    shown = shlex.quote(noise)
    noisy = enter + f"echo {shown}\n" + f'"$@" | while IFS= read -r line; do printf "%s\\n" "$line"; [ "$line" != toolbox-call ] || echo {shown}; done'
    with Stand(client, workdir, noisy, scheme) as stand:
        assert client.cli("eject", "--dir", stand.there, "local:").returncode == 0
        for n in range(2):
            done = stand.call("exec_remote_start", f"command=echo x >>{count}", options=["--timeout", "20"])
            assert done.returncode == 0 and json.loads(done.stdout)["pid"], (n, done)
        wait_until(lambda: count.exists() and count.read_text() == "x\nx\n", "each to have begun once")


def test_nothing_but_noise_is_no_answer(client, workdir):
    ends = '"$@" 2>/dev/null | while IFS= read -r line; do printf "%s\\n" "$line"; [ "$line" != toolbox-call ] || { echo no such device; exit; }; done'
    with Stand(client, workdir, PASS + ends) as stand:
        done = stand.call("version", options=["--timeout", "20"])
        assert (done.returncode, done.stdout) == (LOST, b""), done
        assert b"(exit status 0: no such device) before the answer to a call that was sent" in done.stderr


def test_a_shell_that_can_start_nothing_runs_nothing(client, workdir):
    """What a subshell was to say is missing: it was killed, or could not be forked."""
    count, first = workdir / "count", workdir / "first"
    fails = f'umask() {{ [ -e {first} ] || {{ : >{first}; return 137; }}; command umask "$@"; }}'
    shell = f'[ "$1" != /bin/sh ] || exec /bin/sh -c {shlex.quote(fails + "; " + "eval ")}\'"$1"\' sh "$3"\nexec "$@"'
    with Stand(client, workdir, shell, None) as stand:
        done = stand.call("exec_remote_start", f"command=echo x >>{count}", options=["--timeout", "20"])
        assert done.returncode not in (0, LOST, UNANSWERED) and not count.exists(), done
        assert stand.call("exec_remote_start", f"command=echo y >>{count}").returncode == 0
        wait_until(lambda: count.exists() and "y" in count.read_text(), "the command to begin")
        assert count.read_text() == "y\n"


# ---- a caller that has gone ----


def _begin(caller, mark):
    """A call whose command has begun, and goes on until the file is there."""
    command = f"echo x >>/tmp/count; until [ -e /tmp/{mark} ]; do sleep 0.1; done; echo {mark}"
    one = subprocess.Popen(caller.words(*run(command)), env=caller.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: caller.container.run([BUSYBOX, "test", "-s", "/tmp/count"]).returncode == 0, "the command to begin")
    return one


def _free(caller, mark):
    """What waits for the command now is this client, at once; and it gets all of it."""
    busy = caller.result("bash_session_run", "session_name=BashSession", "timeout:=0")
    assert (busy["state"], busy["output"]) == ("timeout", "")
    caller.container.check([BUSYBOX, "touch", f"/tmp/{mark}"])
    result = caller.result("bash_session_run", "session_name=BashSession", "timeout:=20")
    assert (result["state"], result["output"]) == ("completed", f"{mark}\n")
    assert caller.counted() == ["x"]


def _execs(caller):
    return [line for line in caller.container.processes() if "toolbox exec" in line]


@pytest.mark.parametrize("victim", ["call", "its children", "all of them"])
def test_a_client_that_is_killed_leaves_the_answer(caller, victim):
    with _begin(caller, "told") as one:
        below = [int(pid) for pid in open(f"/proc/{one.pid}/task/{one.pid}/children").read().split()]
        for pid in {"call": [one.pid], "its children": below, "all of them": [one.pid, *below]}[victim]:
            with contextlib.suppress(ProcessLookupError):  # gone with the one before
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not _execs(caller), "the other side to see it", seconds=15)
        status = one.wait(HANG)
        assert status == (LOST if victim == "its children" else -signal.SIGKILL)
    _free(caller, "told")


def test_the_exec_inside_is_killed(caller):
    with _begin(caller, "told") as one:
        inside = [line for line in caller.container.run([BUSYBOX, "ps", "-o", "pid,args"]).stdout.decode().splitlines() if "toolbox exec" in line]
        assert len(inside) == 1, inside
        caller.container.check([BUSYBOX, "kill", "-9", inside[0].split()[0]])
        out, err = one.communicate(timeout=HANG)
        assert one.returncode == LOST and out == b"", (out, err)
    _free(caller, "told")


@pytest.fixture
def waiting(client):
    """A command that waits: waiting(words of exec, stdin and stdout) -> the process."""
    client.new()
    client.run("true")
    go = client.dir.parent / "go"
    with contextlib.ExitStack() as stack:

        def begin(*words, request_before=b"", **how):
            command = f"echo x >>{go}-count; until [ -e {go} ]; do sleep 0.1; done; echo told"
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_run", "params": {"session_name": client.session, "command": command}})
            one = client.popen("exec", *words, **how)
            stack.callback(one.kill)
            one.stdin.write(request_before + request.encode() + b"\n")
            one.stdin.flush()
            if "--detect" not in words:
                one.stdin.close()
                one.stdin = None
            wait_until(lambda: os.path.exists(f"{go}-count"), "the command to begin")
            return one

        begin.finish = go.touch
        yield begin


def _told(client, waiting):
    waiting.finish()
    result = client.run(None, timeout=20)
    assert (result["state"], result["output"]) == ("completed", "told\n")


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_nobody_reads_stdout_any_more(client, waiting, kind):
    if kind == "pipe":
        ours, theirs = os.pipe()
    else:
        ours, theirs = (end.detach() for end in socket.socketpair())
    one = waiting(stdout=theirs)
    os.close(theirs)
    assert one.poll() is None
    os.close(ours)
    assert one.wait(HANG) == 1, "while the command still runs"
    assert b"nobody reads it any more" in one.stderr.read()
    _told(client, waiting)


@pytest.mark.parametrize("words", [["bash_session", "run", "BashSession", "--json", "COMMAND"], ["exec_remote", "wait", "PID"]], ids=" ".join)
def test_nobody_reads_what_a_command_line_waits_for(client, words):
    client.new()
    count = client.dir.parent / "count"
    pid = client.rpc("exec_remote_start", {"command": "sleep 6000"})["pid"]
    words = [{"COMMAND": f"echo x >>{count}; sleep 6000", "PID": str(pid)}.get(word, word) for word in words]
    ours, theirs = os.pipe()
    one = client.popen(*words, stdout=theirs)
    os.close(theirs)
    if "run" in words:
        wait_until(count.exists, "the command to begin")
    os.close(ours)
    assert one.wait(HANG) in (1, 125)
    client.rpc("exec_remote_kill", {"pid": pid, "ack_seq": 0})


def test_the_end_of_stdin_alone_says_nothing(client, waiting):
    one = waiting()
    time.sleep(0.7)  # stdin has ended: what is to be seen is that nothing happens
    assert one.poll() is None
    waiting.finish()
    out, _ = one.communicate(timeout=HANG)
    assert json.loads(out)["result"]["output"] == "told\n" and out.startswith(b'{"jsonrpc"') and out.endswith(b"}\n")


@pytest.mark.parametrize("before", [b"\n", b""], ids=["says so", "holds on"])
def test_detect_by_the_end_of_stdin(client, waiting, before):
    one = waiting("--detect", request_before=before)
    assert one.stdout.read(2) == b"  ", "beats"
    one.stdin.close()
    one.stdin = None
    assert one.wait(HANG) == 1
    _told(client, waiting)


def test_detect_by_a_beat_that_nobody_takes(client, waiting):
    """As where what is between us only sees at a write that its reader has gone."""
    forward = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    one = waiting("--detect", stdout=forward.stdin)
    forward.stdin.close()
    forward.stdin = None
    forward.stdout.close()  # cat ends at its next write
    assert one.wait(HANG) == 1
    forward.wait(HANG)
    one.stdin.close()
    one.stdin = None
    _told(client, waiting)


@pytest.mark.parametrize("confirmed", [True, False])
def test_an_answer_counts_when_it_is_confirmed(client, waiting, confirmed):
    one = waiting("--detect", request_before=b"\n")
    waiting.finish()
    line = one.stdout.readline()
    assert json.loads(line)["result"]["output"] == "told\n" and line.lstrip().startswith(b'{"jsonrpc"')
    if confirmed:
        one.stdin.write(b"\n")
    one.stdin.close()
    one.stdin = None
    assert one.wait(HANG) == 0
    again = client.answer("bash_session_run", {"session_name": client.session, "timeout": 1})
    if confirmed:
        assert "no command" in again["error"]["message"]
    else:
        assert again["result"]["output"] == "told\n"


def test_detect_with_an_end_that_says_nothing(client):
    request = b'{"jsonrpc":"2.0","id":1,"method":"exec_remote_start","params":{"command":"true"}}'
    for stdin in (request, request + b"\n", request + b"\n-\n"):
        done = client.cli("exec", "--detect", stdin=stdin)
        assert done.returncode == 0 and "pid" in json.loads(done.stdout)["result"], stdin
    client.new()
    for stdin in (b"", b"\n"):
        run = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_run", "params": {"session_name": client.session, "command": "sleep 1.2; echo end"}})
        done = client.cli("exec", "--detect", stdin=run.encode() + stdin)
        assert json.loads(done.stdout)["result"]["output"] == "end\n"
