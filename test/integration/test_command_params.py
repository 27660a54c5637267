"""What all command lines have in common: how params, texts and times are given, and that nothing of them stays in view."""
import json
import os
from pathlib import Path

import pytest

from harness.jobs import runs
from harness.machine import HANG
from harness.processes import wait_until
from harness.sessions import shared_server

SECRET = "s3cr3t-0f-a-c0mmand-line"


@pytest.fixture(scope="module")
def shared(toolbox):
    """A client with a server, for what starts no session."""
    with shared_server(toolbox) as client:
        yield client


# ---- nothing stays in view ----


def _view(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


RUN = {"session_name": "BashSession", "command": f"sleep 6000 # {SECRET}"}
WAITING = {
    "exec": ["exec", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_run", "params": RUN})],
    "exec by words": ["exec", "bash_session_run", "session_name=BashSession", f"command={RUN['command']}"],
    "exec --whole": ["exec", "--whole", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_run", "params": RUN})],
    "run": ["bash_session", "run", "BashSession", RUN["command"], "--json"],
    "send": ["bash_session", "send", "BashSession", RUN["command"], "--wait", "1h"],
    "exec_remote run": ["exec_remote", "run", "--env", f"X={SECRET}", "--", "sleep", "6000"],
    "call": ["call", "local:", "--dir", "DIR", "bash_session_run", json.dumps(RUN)],
    "call by words": ["call", "local:", "--dir", "DIR", "bash_session_run", "session_name=BashSession", f"command={RUN['command']}"],
}


@pytest.mark.parametrize("way", WAITING)
def test_nothing_secret_stays_in_a_command_line(client, way, workdir):
    """Of no process, while a call waits: neither of the client itself nor of what it has started."""
    client.new()
    there = str(workdir / "there")
    words = [there if word == "DIR" else word for word in WAITING[way]]
    with client.popen(*words) as one:
        try:
            runs("sleep", "6000")
            seen = _view(one.pid)
            assert words[0].encode() in seen.split(b"\0"), "ps still says what it is"
            everything = b"".join(_views())
            assert SECRET.encode() not in everything, everything
        finally:
            one.kill()
            one.communicate(timeout=HANG)
    client.cli("eject", "local:", "--dir", there)


def _views():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) != os.getpid():
                yield _view(pid)
        except OSError:
            continue


# ---- params ----

def _params(client, *words, stdin=b"", status=0):
    """What a method is given: text_editor says which file isn't there."""
    done = client.cli("exec", "text_editor", *words, stdin=stdin)
    assert done.returncode == status, done
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def test_params_by_words(shared, workdir):
    file = workdir / "a file"
    assert "result" in _params(shared, "command=create", f"path={file}", "file_text=a=b := @c\n")
    assert file.read_text() == "a=b := @c\n", "only the first sign counts"
    (workdir / "text").write_text('say "hi"\n\tend')
    assert "result" in _params(shared, "command=create", f"path={file}2", f"file_text=@{workdir}/text")
    assert Path(f"{file}2").read_text() == 'say "hi"\n\tend', "to the byte"
    assert "result" in _params(shared, "command=create", f"path={file}3", "file_text=@-", stdin="ü\n".encode())
    assert Path(f"{file}3").read_text() == "ü\n"
    (workdir / "range").write_text("[1,\n 1]\n")
    assert "1\\ta=b" in _params(shared, "command=view", f"path={file}", "view_range:=[1,1]")
    assert "1\\ta=b" in _params(shared, "command=view", f"path={file}", f"view_range:=@{workdir}/range")
    assert "1\\ta=b" in _params(shared, "command=view", f"path={file}", "view_range:=@-", stdin=b"[1,1]")
    whole = json.dumps({"command": "view", "path": str(file)}, indent=1)
    (workdir / "whole").write_text(whole)
    assert "1\\ta=b" in _params(shared, whole)
    assert "1\\ta=b" in _params(shared, f"@{workdir}/whole")
    assert "1\\ta=b" in _params(shared, "@-", stdin=whole.encode())
    assert "1\\ta=b" in _params(shared, "-", stdin=whole.encode())


@pytest.mark.parametrize("words, says", [
    (["command"], "'command' is no key=value"),
    (["=x"], "'=x' is no key=value"),
    ([":=1"], "':=1' is no key=value"),
    (["a:=x"], "a: Not valid JSON"),
    (["a:="], "a: Not valid JSON"),
    (["{"], "the params: Not valid JSON"),
    (["a=1", "{}"], "all params by itself"),
    (["-", "a=1"], "all params by itself"),
    (["a=@-", "b:=@-"], "stdin can be read for one param only"),
    (["a=\udcff"], "a: not UTF-8"),
])
def test_params_that_are_none(shared, words, says):
    assert says in _params(shared, *words, status=2)


def test_params_that_cannot_be_read(shared, workdir):
    assert f"cannot read {workdir}/none: No such file" in _params(shared, f"a=@{workdir}/none", status=1)
    assert f"cannot read {workdir}: Is a directory" in _params(shared, f"@{workdir}", status=1)


def test_a_request_by_file_and_words(shared, workdir):
    request = b'{"jsonrpc":"2.0","id":7,"method":"version"}'
    (workdir / "request").write_bytes(request)
    wanted = shared.cli("exec", stdin=request).stdout
    assert b'"id":7' in wanted and b"result" in wanted
    assert shared.cli("exec", request.decode()).stdout == wanted
    assert shared.cli("exec", f"@{workdir}/request").stdout == wanted
    assert shared.cli("exec", "-", stdin=request).stdout == wanted
    assert shared.cli("exec", "version").stdout == wanted.replace(b"7", b"1", 1)
    assert b"-32601" in shared.cli("exec", "no_such_method").stdout
    assert b"-32600" in shared.cli("exec", "true").stdout, "JSON, and no request"


def test_a_call_by_words(client, workdir):
    there = ("local:", "--dir", str(workdir / "there"))
    done = client.cli("call", *there, "exec_remote_start", "command=cat", "input=@-", stdin=b"from stdin")
    assert done.returncode == 0, done
    pid = json.loads(done.stdout)["pid"]
    done = client.cli("call", *there, "exec_remote_wait", f"pid:={pid}", "ack_seq:=0", "timeout:=5")
    assert json.loads(done.stdout)["stdout"] == "from stdin"
    client.cli("eject", *there)


# ---- texts and environments ----


def test_texts_from_stdin(client):
    name = client.new()
    assert client.cli("bash_session", "run", name, "-", stdin=b"x=1\necho $((x+1))").stdout == b"2\n"
    assert client.cli("bash_session", "run", name, "-", "--json", stdin=b"(exit 3)").returncode == 3
    assert client.cli("bash_session", "send", name, "-", stdin=b"echo $((x+2))\n").stdout.startswith(b"3\n")
    pid = client.cli("exec_remote", "start", "--input", "-", "--", "cat", stdin=b"in\n").stdout.decode().strip()
    assert json.loads(client.cli("exec_remote", "wait", pid).stdout)["stdout"] == "in\n"
    pid = client.cli("exec_remote", "start", "--stdin", "--", "cat").stdout.decode().strip()
    client.cli("exec_remote", "write", pid, "-", stdin=b"written\n")
    wait_until(lambda: json.loads(client.cli("exec_remote", "poll", pid).stdout)["stdout"] == "written\n", "the job's word")
    client.cli("exec_remote", "kill", pid)


def test_environment_from_a_file(client, workdir):
    (workdir / "env").write_text(f"# what is secret\nA={SECRET}\r\n\nB=two words = more\n")
    name = client.cli("bash_session", "new", "--env", "A=other", "--env-file", str(workdir / "env"), "--env", "C=3").stdout.decode().strip()
    assert client.cli("bash_session", "run", name, "echo $A,$B,$C").stdout.decode() == f"{SECRET},two words = more,3\n"
    done = client.cli("exec_remote", "run", "--env-file", "-", "--", "sh", "-c", "echo $A", stdin=b"A=run")
    assert done.stdout == b"run\n"
    (workdir / "env").write_text("no assignment\n")
    done = client.cli("bash_session", "new", "--env-file", str(workdir / "env"))
    assert done.returncode == 2 and b"NAME=VALUE" in done.stderr


# ---- times ----


@pytest.mark.parametrize("time", ["0.2", "0.2s", "200ms", ".2"])
def test_times(client, time):
    name = client.new()
    assert client.cli("bash_session", "run", name, "read x", "--timeout", time, "--json").returncode in (124, 125)
    assert client.cli("bash_session", "read", name, "--wait", time, "--idle", time).returncode == 0
    assert client.cli("exec_remote", "run", "--timeout", time, "--", "sleep", "6000").returncode == 143


@pytest.mark.parametrize("words", [
    ["bash_session", "run", "S", "x", "--timeout"],
    ["bash_session", "read", "S", "--wait"],
    ["bash_session", "read", "S", "--idle"],
    ["exec_remote", "wait", "1", "--timeout"],
    ["exec_remote", "start", "true", "--timeout"],
    ["inject", "local:", "--timeout"],
    ["eject", "local:", "--timeout"],
    ["call", "local:", "version", "--timeout"],
    ["mcp", "serve", "--in", "local:", "--timeout"],
    ["release", "fetch", "https://localhost/", "--timeout"],
])
@pytest.mark.parametrize("time", ["5min", "-1", "", "x", "1e10"])
def test_what_is_no_time(shared, words, time):
    if words[1] == "start":
        words = [*words[:2], "--timeout", time, "true"]
    else:
        words = [*words, time]
    done = shared.cli(*words)
    assert done.returncode == 2, done
    assert b"takes a time" in done.stderr and time.encode() in done.stderr, done
