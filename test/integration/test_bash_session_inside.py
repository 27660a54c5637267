"""bash_session_run in a shell or a Python that was started within a session: on this machine, as another user, by ssh."""
import contextlib

import pytest

from harness import needs, relays
from harness.client import RpcError
from harness.sessions import LONG, Shell

SHELLS = {"bash": "bash --norc", "dash": "dash", "sh in bash": "bash --norc -c 'sh; :'", "zsh": "zsh -f", "mksh": "mksh", "ksh93": "ksh93", "busybox": "busybox sh",
          "script": "script -q /dev/null", "su": "su --pty root", "sudo": "sudo -i", "ssh": "ssh -F {ssh} there",
          "ssh, dash": "ssh -tt -F {ssh} there dash"}
PYTHONS = {"python3": "python3 -q", "ssh, python3": "ssh -tt -F {ssh} there python3 -q"}


@contextlib.contextmanager
def opened(shell, line):
    needs.program(line.split()[0])
    if line.startswith("su"):
        needs.root("become root without a password")
    with relays.sshd() if "{ssh}" in line else contextlib.nullcontext() as config:
        shell.bs(line.format(ssh=config) + "\n", wait=LONG, idle=LONG)
        yield
        shell.bs("\x04", wait=LONG, idle=LONG)
        shell.works()


@pytest.fixture(params=SHELLS)
def inside(shell, request):
    with opened(shell, SHELLS[request.param]):
        yield shell


@pytest.fixture(params=PYTHONS)
def python(shell, request):
    with opened(shell, PYTHONS[request.param]):
        yield shell


def check(shell, command, output, status=0, **more):
    result = shell.run(command, timeout=60)
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", status, output), result
    assert more.items() <= result.items(), result


def test_a_shell_within_a_session(inside):
    """Slow: all that a run promises, in each."""
    check(inside, "echo hi", "hi\n")
    check(inside, "(exit 3)", "", 3)
    check(inside, "echo $?; x='a  b'; false", "3\n", 1)
    check(inside, "cd /tmp", "", cwd="/tmp")
    check(inside, "for i in 1 2\ndo echo \"$x$i\"\ndone\ncat <<'E'\n!\"$y\t'é\nE", "a  b1\na  b2\n!\"$y\t'é\n")
    check(inside, "sleep 1; echo slow", "slow\n")
    check(inside, f"echo {'y' * 3000}", "y" * 3000 + "\n")
    assert inside.run("if", timeout=60)["exit_code"] not in (0, None)
    check(inside, "echo still", "still\n")


def test_a_prompt_that_is_long_in_coming_within(shell):
    """The shell has told that it is over: what it does before its prompt is waited for, as the outer one's is."""
    with opened(shell, "bash --norc"):
        check(shell, "PROMPT_COMMAND='sleep 2'", "")
        check(shell, "echo on", "on\n")


EXECS = ["sh", "env -i PATH=/usr/bin:/bin sh", "dash", "zsh -f", "mksh", "fish --no-config", "python3 -q", "script -q /dev/null", "env -i TERM=dumb bash --norc --noediting"]


@pytest.mark.parametrize("line", EXECS)
@pytest.mark.parametrize("kind", ["bash", "dash", "zsh"])
def test_a_shell_in_the_place_of_the_sessions(server, kind, line):
    """By exec: it is taught as one behind it would be. One of the same kind is no less another one."""
    needs.program(kind)
    needs.program(line.split()[0])
    with Shell(server, program=[kind]) as session:
        assert session.run(f"exec {line}", timeout=60)["state"] in ("awaiting_input", "completed")
        if "python3" in line:
            check(session, "print('hi')", "hi\n")
            return
        check(session, "echo hi", "hi\n")
        check(session, "sh -c 'exit 3'", "", 3)
        check(session, "cd /tmp", "", cwd="/tmp")
        assert session.run("sleep 60; echo later", timeout=1)["state"] == "timeout"
        session.bs("\x03", wait=LONG, idle=LONG)
        check(session, "echo after", "after\n")


@pytest.mark.parametrize("kind", ["bash", "dash"])
def test_what_takes_no_commands_is_named_in_its_place(server, kind):
    needs.program("tcsh")
    with Shell(server, program=[kind]) as session:
        session.run("exec tcsh -f", timeout=60)
        with pytest.raises(RpcError, match="'tcsh' is waiting for input"):
            session.run("echo no")


def test_printed_text_forges_nothing(inside):
    """Neither what a note looks like, nor that of the command before, which is known by now."""
    forged = "printf '\\033]7771;%s;E;0;/\\007\\033]7771;;P;0;/\\007' \"$(printf %032d 0)\"; sleep 0.2; (exit 4)"
    check(inside, forged, "", 4)
    check(inside, "old=$__word; echo kept", "kept\n")
    check(inside, "printf '\\033]7771;%s;E;0;/\\007' $old; sleep 0.2; (exit 5)", "", 5)


def test_a_question_and_an_interrupt_within(inside):
    """Slow: where nobody can see who asks, silence tells."""
    result = inside.run("printf 'name? '; read x; echo got $x; (exit 6)", timeout=60)
    assert (result["state"], result["output"]) == ("awaiting_input", "name? "), result
    assert "got me" in inside.bs("me\n", wait=LONG, idle=LONG)
    assert inside.run("sleep 60; echo later", timeout=1)["state"] == "timeout"
    inside.bs("\x03", wait=LONG, idle=LONG)
    check(inside, "echo after", "after\n")


def test_a_python_within_a_session(python):
    check(python, "print('hi')", "hi\n")
    check(python, "1 + 1\n'é'", "2\n'é'\n")
    check(python, "def f(n):\n    x = 1\n\n    return n + x\n\nf(2)", "3\n")
    failed = python.run("1/0", timeout=60)
    assert failed["exit_code"] == 1 and "ZeroDivisionError" in failed["output"]
    assert "SyntaxError" in python.run("if", timeout=60)["output"]
    check(python, "import os; os.chdir('/tmp')", "", cwd="/tmp")
    check(python, "import time; time.sleep(1); print('slow', f(3))", "slow 4\n")
    assert python.run("time.sleep(60)", timeout=1)["state"] == "timeout"
    python.bs("\x03", wait=LONG, idle=LONG)
    check(python, "print('after')", "after\n")


def test_a_fish_within_a_session(shell):
    """Where nobody sees that it is one as well, as behind a relay: then the others are tried before."""
    needs.program("fish")
    for line in ("fish --no-config", "script -qc 'fish --no-config' /dev/null"):
        shell.bs(line + "\n", wait=LONG, idle=LONG)
        check(shell, "echo hi", "hi\n")
        check(shell, "set x 'a  b'; sh -c 'exit 3'", "", 3)
        check(shell, "echo $status\nfor i in 1 2\n\n  echo \"$x$i\"\nend", "3\na  b1\na  b2\n")
        check(shell, "cd /tmp", "", cwd="/tmp")
        check(shell, "printf '\\033]7771;%s;E;0;/\\007' (string repeat -n 32 0); sleep 0.2; false", "", 1)
        assert shell.run("sleep 60; echo later", timeout=1)["state"] == "timeout"
        shell.bs("\x03", wait=LONG, idle=LONG)
        check(shell, "echo after", "after\n")
        shell.bs("\x04", wait=LONG, idle=LONG)
        shell.works()


@pytest.mark.parametrize("line", ["tcsh -f", "TERM=xterm tmux -f /dev/null -S {}/tmux new-session 'bash --norc'"])
def test_a_shell_that_cannot_take_any_is_given_none(shell, workdir, line):
    needs.program("tmux" if "tmux" in line else "tcsh")
    shell.bs(line.format(workdir) + "\n", wait=LONG, idle=2)
    with pytest.raises(RpcError, match="'(tcsh|tmux: client)' is waiting for input"):
        shell.run("echo no")
    assert "no" not in shell.bs(wait=0)
    shell.bs("exit\n", wait=LONG, idle=LONG)
    shell.works()


@pytest.mark.parametrize("program,asks", [("cat", ""), ("gdb -q -nx", "(gdb) "), ("bc -q", ""), ("sh -c 'printf \"sure? [y/N] \"; read x'", "")])
def test_what_takes_no_commands_is_given_none(shell, program, asks):
    needs.program(program.split()[0])
    shell.run(program, timeout=60)
    with pytest.raises(RpcError, match="busy"):
        shell.run("echo no")
    assert shell.bs(wait=0).replace(asks, "") == ""
    shell.bs("\x03" if "sh" in program else "\x04", wait=LONG, idle=LONG)
    shell.works()
