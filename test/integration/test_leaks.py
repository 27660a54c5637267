"""Nothing is left behind: no process, descriptor or file, by any kind of call, however it ends.

That holds for the whole suite (conftest.py looks after every test); here are the calls that are most likely to leave
something, many times over, and the proof that a leak would be noticed."""
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness import leftovers, processes
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.users import needs_root

ROUNDS = 15

# What a connection may have sent when it ends.
BROKEN_OFF = (b"", b"POST / HTTP/1.1\r\nContent-Le", b"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\n{", b"nonsense\r\n\r\n")


def server_pid(client):
    client.rpc("remote_version")
    return next(pid for pid in processes.servers() if str(client.dir) in processes.descriptors(pid).values())


def listening(client, name):
    """The socket of a server or session, by the beginning of its name."""
    return next(path for path in client.dir.iterdir() if path.name.startswith(f"{name}."))


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    return connection


def refused(client, code, method, params):
    with pytest.raises(RpcError) as error:
        client.rpc(method, params)
    assert error.value.code == code


def cut_off(client, method, params):
    """A client that is killed while it waits for an answer."""
    with client.popen("exec") as call:
        request = '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' % (method, params)
        call.stdin.write(request.encode())
        call.stdin.close()
        children = lambda: processes.descriptors(call.pid).values()  # noqa: E731
        processes.wait_until(lambda: any(target.startswith("socket:") for target in children()), "the call to connect")
        call.kill()


def one_of_everything(client, workdir):
    name = client.new()
    assert "hi\n" in client.bs("echo hi\n")
    assert client.run("(exit 3)")["exit_code"] == 3
    client.run("sleep 1000 & setsid sleep 1000 & true")
    client.restart()
    client.run(f"seq 30000 >{workdir}/numbers")
    assert "29999" in client.ed("view", workdir / "numbers", view_range=[29000, -1])
    assert client.run(f"cat {workdir}/numbers")["output"].endswith("30000\n")  # in pieces
    refused(client, PARAMERR, "bash_session", {"session_name": name, "wait_for_output": "5"})
    refused(client, TOOLERR, "bash_session", {"session_name": "no-such", "wait_for_output": 1, "idle_timeout": 1})
    refused(client, TOOLERR, "bash_session_new_session", {"shell": "/no/such"})
    waiting = '{"session_name":"%s","wait_for_output":1000,"idle_timeout":1000}' % name
    cut_off(client, "bash_session", waiting)
    cut_off(client, "bash_session_run", '{"session_name":"%s","command":"sleep 1000"}' % name)
    for path in (listening(client, "server"), listening(client, name)):
        for start in BROKEN_OFF:
            with connect(path) as connection:
                connection.sendall(start)
    client.rpc("bash_session_close", {"session_name": name})


@pytest.fixture
def count(client):
    """Counts all that a server may hold: descriptors, children (sessions, and what has ended but is not waited for), files
    in its directory."""
    pid = server_pid(client)

    def counted():
        return {
            "descriptors": len(processes.descriptors(pid)),
            "children": len(processes.descendants(pid)),
            "files": len(list(client.dir.iterdir())),
        }

    return counted


@needs_root
def test_server_keeps_nothing_of_calls(client, count, workdir):
    one_of_everything(client, workdir)
    before = count()
    for _ in range(ROUNDS):
        one_of_everything(client, workdir)
    # names of ended sessions stay, so that none is used twice
    before["files"] += ROUNDS
    settled = lambda: all(now <= before[what] for what, now in count().items())  # noqa: E731
    try:
        processes.wait_until(settled, "what calls have used to be given back")
    except AssertionError:
        assert count() == before


@needs_root
def test_session_keeps_nothing_of_restarts(client):
    """C-026: terminals, descriptors and zombies of the shells before.

    Slow: each restart gives what ignores its end the time that it is promised. What one leaves would be seen after the first.
    """
    client.new()
    keeper = next(p.pid for p in processes.descendants(server_pid(client)) if str(p).endswith("toolbox BashSession"))

    def counted():
        return len(processes.descriptors(keeper)), len(processes.descendants(keeper))

    client.restart()
    before = counted()
    for _ in range(3):
        client.bs("trap '' TERM HUP; sleep 1000 & cat\n", wait=0)
        assert client.restart() == "shell restarted successfully"
    processes.wait_until(lambda: counted() <= before, f"{counted()} to become {before}")
    processes.wait_until(lambda: processes.count_zombies(keeper) == 0, "ended children to be waited for")


# ---- the watch itself ----

DAEMON = "import os, time\nif not os.fork():\n    os.setsid()\n    os.fork() or time.sleep(1000)"


def test_a_left_process_is_noticed():
    watch = processes.Watch()
    subprocess.run([sys.executable, "-c", DAEMON], check=True)
    with pytest.raises(AssertionError, match="(?s)processes left behind:.*python"):
        watch.check(0.2)
    watch.check()  # it has been ended


def test_what_packages_make_is_passed_over(monkeypatch, workdir):
    monkeypatch.setattr(leftovers, "_ELSEWHERE", (f"{workdir}/*",))
    monkeypatch.setattr(leftovers, "PLACES", ())
    before = leftovers.snapshot()
    (workdir / "lib32").symlink_to("usr/lib32")
    leftovers.check(before, 0.2)
    (workdir / "core").touch()
    with pytest.raises(AssertionError, match="core"):
        leftovers.check(before, 0.2)


def test_a_left_file_is_noticed(monkeypatch):
    left = Path(f"/tmp/.toolbox-harness-{os.getpid()}")
    monkeypatch.setattr(leftovers, "PLACES", (str(left),))  # others' come and go
    monkeypatch.setattr(leftovers, "_ELSEWHERE", ())
    before = leftovers.snapshot()
    left.touch()
    try:
        with pytest.raises(AssertionError, match=str(left)):
            leftovers.check(before, 0.2)
    finally:
        left.unlink()


@needs_root
@pytest.mark.parametrize("ours", [True, False])
def test_files_of_a_server_are_noticed_if_it_is_ours(client, monkeypatch, workdir, ours):
    monkeypatch.setattr(leftovers, "PLACES", (str(client.dir),))
    monkeypatch.setattr(leftovers, "_ELSEWHERE", ())
    before = leftovers.snapshot()
    client.rpc("remote_version")
    if not ours:  # as if it were somebody else's
        monkeypatch.setattr(processes, "descendants", lambda: set())
        return leftovers.check(before, 0.2)
    with pytest.raises(AssertionError, match="server"):
        leftovers.check(before, 0.2)


@needs_root
def test_a_left_descriptor_is_noticed(client, idle_descriptors):
    server, idle = server_pid(client), idle_descriptors
    leftovers.check_descriptors(idle)  # the connection that told the pid is closed a moment after its answer
    with connect(listening(client, "server")):
        processes.wait_until(lambda: len(processes.descriptors(server)) > idle, "the connection to be taken")
        with pytest.raises(AssertionError, match="descriptors open"):
            leftovers.check_descriptors(idle, 1)
    leftovers.check_descriptors(idle)
