"""Sessions of other shells than bash, and of interpreters: what is run in them ends where it ends, and says how."""
import json
import os
import shutil

import pytest

from harness import needs
from harness.client import RpcError
from harness.processes import wait_until
from harness.sessions import Shell

SHELLS = ["fish", "zsh", "ksh93", "mksh", "dash", "busybox", "tcsh"]


@pytest.fixture
def home(workdir):
    """Start-up files of others have no part in these tests."""
    (workdir / "home").mkdir()
    return str(workdir / "home")


@pytest.fixture
def begin(server, home):
    """Starts a session of a program, at its first prompt."""
    begun = []

    def make(*program, env={}, **params):
        needs.program(program[0])
        session = Shell(server, program=list(program), env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, **env}, **params)
        begun.append(session)
        return session

    yield make
    for session in begun:
        session.__exit__()


@pytest.fixture(params=SHELLS)
def other(request, begin):
    return begin(request.param, *(["ash"] if request.param == "busybox" else []))


# ---- shells ----


def test_a_shell_of_another_kind_tells_status_and_directory(other):
    assert other.out("echo hi") == "hi\n"
    assert other.out("false", 1) == ""
    assert other.out("sh -c 'exit 7'", 7) == ""
    assert other.out("cd /tmp") == ""
    result = other.run("pwd")
    assert (result["output"], result["cwd"], result["exit_code"]) == ("/tmp\n", "/tmp", 0)
    assert other.out("printf unfinished") == "unfinished"
    assert other.out("/bin/echo one\n/bin/echo two\n") == "one\ntwo\n"
    assert other.out("echo 'it is'  \"quoted;  twice\"") == "it is quoted;  twice\n"


def test_its_state_stays_between_runs(other, request):
    kind = request.node.callspec.params["other"]
    other.out({"fish": "set -g kept here", "tcsh": "set kept=here"}.get(kind, "kept=here"))
    assert other.out("echo $kept") == "here\n"
    other.run("false")
    assert other.out("echo $status" if kind in ("fish", "tcsh") else "echo $?") == "1\n"
    for number in range(3):
        other.bs(f"echo typed {number}\n", wait=5)
        assert other.out(f"echo {number}") == f"{number}\n"


def test_a_block_of_many_lines(other, request):
    kind = request.node.callspec.params["other"]
    text = {"fish": "for i in 1 2\n\n  echo $i\nend", "tcsh": "foreach i ( 1 2 )\n  echo $i\nend"}.get(kind, "for i in 1 2\ndo\n\n  echo $i\ndone")
    assert other.out(text) == "1\n2\n"
    long = "echo " + "x" * 20000
    if kind != "tcsh":  # whose lines are no longer than a terminal's
        assert other.out(long) == "x" * 20000 + "\n"


def test_a_program_that_waits_is_given_input(other):
    assert other.run("cat")["state"] == "awaiting_input"
    assert "hello" in other.bs("hello\n", wait=10)
    other.bs("\x04", wait=10)
    result = other.run(None)
    assert (result["state"], result["exit_code"]) == ("completed", 0)
    assert other.out("echo after") == "after\n"


def test_it_is_interrupted(other):
    assert other.run("sleep 60", timeout=0.3)["state"] == "timeout"
    other.signal("INT")
    result = other.run(None, timeout=30)
    assert (result["state"], result["exit_code"]) in (("completed", 130), ("completed", 1)), result
    assert other.out("echo after") == "after\n"
    assert other.run("sleep 60", timeout=0.3)["state"] == "timeout"
    other.bs("\x03", wait=5)
    assert other.out("echo again") == "again\n"


def test_it_ends_and_is_started_anew(other):
    result = other.run("echo last; exit 3")
    assert (result["state"], result["exit_code"]) == ("exited", 3) and result["output"].startswith("last\n"), result
    other.restart()
    assert other.out("echo anew") == "anew\n"
    other.restart()
    assert other.out("cd /tmp; false", 1) == ""


def test_its_own_startup_file_is_read(server, home, begin):
    for name, file, text in [("zsh", ".zshrc", "mine=yes; PROMPT='mine> '"), ("mksh", ".mkshrc", "mine=yes"), ("ksh93", ".kshrc", "mine=yes"),
                             ("tcsh", ".tcshrc", "set mine=yes"), ("fish", "fish/config.fish", "set -g mine yes")]:
        if not shutil.which(name):
            continue
        os.makedirs(os.path.dirname(f"{home}/{file}"), exist_ok=True)
        with open(f"{home}/{file}", "w") as out:
            out.write(text + "\n")
        assert begin(name).out("echo $mine") == "yes\n", name


def test_what_it_starts_has_nothing_of_ours(other):
    assert sorted(other.out("/bin/sh -c 'ls /proc/self/fd'").split()) == ["0", "1", "2", "3"]
    assert "/dev/pts" not in other.out("env")
