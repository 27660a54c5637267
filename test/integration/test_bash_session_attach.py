"""`toolbox bash_session attach`: a person at a terminal looks over an agent's shoulder."""
import os
import re
import select
import signal
import socket
import struct
import termios
import time

import pytest

from harness import needs
from harness.machine import HANG
from harness.people import Person as at_terminal
from harness.processes import wait_until
from harness.server import titled
from harness.sessions import Shell, read_until

DETACH = "\x1d"


def Person(shell, rows=24, cols=80):
    return at_terminal(shell.client, "bash_session", "attach", shell.name, rows=rows, cols=cols)


@pytest.fixture
def shell(client):
    return Shell(client)


def test_look_and_type(shell):
    with Person(shell) as person:
        person.sees("etach")
        person.type("echo $((6 * 7))\r")
        person.sees("42")
        person.type("cat\r")
        wait_until(lambda: shell.listed()["foreground"] == "cat", "cat to run")
        person.type("back\r")
        person.sees("back")
        person.type("\x04")
        wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
        person.type("sleep 60\r")
        wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
        person.type("\x03")
        wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
        person.type("echo rc=$?\r")
        person.sees("rc=130")
        person.type(DETACH)
        person.sees("detached")
        assert person.has_left() == 0
    shell.bs(wait=1)
    shell.works()


def test_the_agent_works_on_meanwhile(shell):
    """What the person sees is what the agent does, and the agent's answers lack nothing."""
    with Person(shell) as person:
        person.sees("etach")
        assert shell.at_once("echo from-the-agent\n").endswith("from-the-agent\n" + shell.prompt)
        person.sees("from-the-agent")
        assert shell.out("echo from-a-run") == "from-a-run\n"
        person.sees("from-a-run")
        person.type("echo from-the-$((1))-person\r")
        person.sees("from-the-1-person")
        assert "from-the-1-person\n" in shell.bs(wait=5)
        shell.works()
        person.type(DETACH)
        assert person.has_left() == 0


def test_what_was_there_before_is_shown(shell):
    shell.bs("echo already-there\n")
    with Person(shell) as person:
        person.sees("already-there")


def test_several_at_once(shell):
    with Person(shell) as one, Person(shell) as two, Person(shell) as three:
        for person in (one, two, three):
            person.sees("etach")
        one.type("echo a-$((1 + 1))-b\r")
        for person in (one, two, three):
            person.sees("a-2-b")
        two.type(DETACH)
        assert two.has_left() == 0
        three.type("echo c-$((1 + 2))-d\r")
        for person in (one, three):
            person.sees("c-3-d")
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait()
        shell.works()
        three.sees("second")


def test_raw_bytes(shell):
    """Escape sequences, which agents don't get, are what a person's terminal needs."""
    with Person(shell) as person:
        person.sees("etach")
        assert shell.at_once("printf '\\033[1mbold\\033[0m\\n'\n").startswith("bold\n")
        person.sees("\x1b[1mbold\x1b[0m")


def test_the_size_follows(shell):
    with Person(shell, rows=33, cols=101) as person:
        person.sees("etach")
        person.type("stty size\r")
        person.sees("33 101")
        person.size(44, 111)
        os.kill(person.process.pid, signal.SIGWINCH)
        wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
        wait_until(lambda: shell.out("stty size") == "44 111\n", "the size to follow")


@pytest.mark.parametrize("end", [DETACH, "TERM", "close", "restart"])
def test_the_terminal_is_given_back_as_it_was(shell, end):
    with Person(shell) as person:
        person.sees("etach")
        person.type("echo o''n\r")
        person.sees("on")
        assert termios.tcgetattr(person.slave) != person.before
        if end == "close":
            shell.close()
        elif end == "restart":
            shell.restart()
            shell.works()
            person.sees("second")
            person.type(DETACH)
        elif end == "TERM":
            os.kill(person.process.pid, signal.SIGTERM)
        else:
            person.type(end)
        person.has_left()
        assert termios.tcgetattr(person.slave) == person.before


def test_a_person_who_does_not_look_holds_nobody_up(shell):
    with Person(shell) as person:
        person.sees("etach")
        os.kill(person.process.pid, signal.SIGSTOP)
        assert shell.out("seq 100000 | tail -n 1") == "100000\n"
        read_until(shell, shell.prompt, shell.bs("seq 300000\n", max_output_bytes=1000, wait=25))
        shell.works()
        os.kill(person.process.pid, signal.SIGCONT)


def test_a_flood_can_be_left(shell):
    shell.bs("yes\n", wait=0, idle=0, max_output_bytes=100)
    with Person(shell) as person:
        person.sees("y\r\ny")
        person.type(DETACH)
        drained = time.monotonic() + HANG
        while person.process.poll() is None and time.monotonic() < drained:
            if select.select([person.master], [], [], 0.1)[0]:
                os.read(person.master, 65536)
        assert person.has_left() == 0
    shell.bs("\x03", max_output_bytes=100)


def test_a_killed_server_does_not_detach(shell):
    with Person(shell) as person:
        person.sees("etach")
        pid = int(re.search(r"pid (\d+)", shell.client.rpc("remote_version"))[1])
        os.kill(pid, signal.SIGKILL)
        person.type("echo still-$((1))\r")
        person.sees("still-1")


def test_a_shell_that_ends(shell):
    with Person(shell) as person:
        person.sees("etach")
        person.type("echo la''st; exit 3\r")
        person.sees("last")
        person.sees("has ended")
        assert person.has_left() == 0
        assert shell.listed()["state"] == "ended"
    shell.restart()
    shell.works()


def test_a_session_that_is_not_there(shell):
    name, shell.name = shell.name, "BashSession_9"
    with Person(shell) as person:
        person.sees("BashSession_9")
        assert person.has_left() not in (0, 2)
        assert termios.tcgetattr(person.slave) == person.before
    shell.name = name


def test_without_a_terminal(shell):
    done = shell.client.cli("bash_session", "attach", shell.name)
    assert done.returncode != 0 and b"terminal" in done.stderr
    shell.works()


def test_viewer_that_types_and_is_gone(shell):
    """What it has typed is shown to it while it has left already. (The sanitizers see whether it is still used.)"""
    shell.client.bs("echo something\n", session=shell.name)
    name = shell.client.rpc("bash_session_attach", {"session_name": shell.name})["socket"]
    path, = shell.client.dir.glob(f"{name}*")
    (keeper,) = titled(f"toolbox {shell.name}")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        assert sock.recv(1000)
        os.kill(keeper.pid, signal.SIGSTOP)
        sock.sendall((b"i" + struct.pack(">H", 2) + b": ") * 20)
    os.kill(keeper.pid, signal.SIGCONT)
    shell.client.rpc("bash_session", {"session_name": shell.name, "input": "\u0003", "wait_for_output": 2, "idle_timeout": 0.2})
    assert shell.client.rpc("bash_session_run", {"session_name": shell.name, "command": "echo hi"})["output"] == "hi\n"


def test_an_interpreter(client):
    needs.program("python3")
    with Shell(client, program=["python3", "-q"]) as session, Person(session) as person:
        person.sees(">>> ")
        person.type("x = 6 * 7\r")
        person.sees(">>> ")
        assert session.out("x") == "42\n"
        person.sees("42")
