"""What is interrupted is over: nothing that stands behind it runs, whatever the form of the command and whatever the shell."""
import itertools
import random

import pytest

from harness import needs
from harness.interrupted import SHELLS, Interrupted, forms, path_of
from harness.processes import descendants, wait_until
from harness.sessions import Shell, shared_server


@pytest.fixture(scope="module")
def server(toolbox):
    with shared_server(toolbox) as client:
        yield client


# Of these there are several, in turns: ksh93 1.0.4 (Debian 12) bears no number of interrupts. At a bare terminal too, one in some hundred
# leaves it with SIGCHLD blocked, and a later program is waited for for ever.
SEVERAL = {"ksh93": 24}


def begun(server, folder, name):
    path = path_of(name, folder)
    return [Interrupted(Shell(server, shell=path), folder, name) for _ in range(SEVERAL.get(name, 1)) if path]


@pytest.fixture(scope="module")
def sessions(server, tmp_path_factory):
    """What interrupts in a session of that shell."""
    folder = tmp_path_factory.mktemp("run-on")
    folder.chmod(0o755)
    found = {name: begun(server, folder, name) for name in SHELLS}

    turns = {name: itertools.cycle(sessions) for name, sessions in found.items()}
    yield lambda name: next(turns[name], None) or needs.program(name)
    for tried in itertools.chain(*found.values()):
        tried.shell.close()


ALL = pytest.mark.parametrize("shell,form", [(shell, form) for shell in SHELLS for form in forms(shell)])


@pytest.mark.parametrize("how", [Interrupted.by_signal, Interrupted.by_key])
@ALL
def test_nothing_behind_it_runs(sessions, shell, form, how):
    assert sessions(shell).check(form, 0.2, how) is None


def test_nor_at_any_other_moment(sessions):
    """But for the one in which a script's shell starts a program: neither takes the signal then. Other shells than bash are tried in
    test/stress/interrupts.py: some moments are left in which they prompt before it is known."""
    shell, dice = "bash", random.Random(19)
    for form in forms(shell):
        how = dice.choice((Interrupted.by_signal, Interrupted.by_key))
        if form != "a script":
            assert sessions(shell).check(form, dice.random() ** 3 / 10, how) is None, form


@ALL
def test_nor_where_nobody_waits_any_more(sessions, shell, form):
    assert sessions(shell).check_abandoned(form, 0.1) is None


def test_nor_where_the_shell_is_about_to_read_it(sessions):
    """What was typed for it and not read yet goes with the signal, as it does with the key."""
    for i in range(30):
        assert sessions("bash").check("a subshell", i % 10 / 1000, Interrupted.by_signal) is None, i


def test_nor_where_the_shell_is_about_to_take_the_rest_for_an_error(sessions):
    """Interrupted in the middle of a line of what it reads, it goes on with the next one, which means nothing by itself."""
    for _ in range(5):
        assert sessions("bash").check("(" + "true;" * 50000 + "NOW\nfalse)\nLATER", 0, Interrupted.by_signal) is None


@pytest.mark.parametrize("shell", ["bash", "dash", "busybox", "zsh"])
def test_behind_a_subshell_with_a_trap_of_its_own(sessions, shell):
    """As behind any program that handles it, also where that has only just begun."""
    shell = sessions(shell).shell
    assert shell.run("(trap 'echo caught' INT; sleep 60; echo in)\necho behind", timeout=0)["state"] == "timeout"
    wait_until(lambda: any(" sleep 60" in str(process) for process in descendants(shell.pid())), "the program")
    shell.signal("INT")
    result = shell.client.rpc("bash_session_run", {"session_name": shell.name, "timeout": 20})
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", 0, "caught\nin\nbehind\n")


def test_a_program_that_handles_it(sessions):
    """It dies of the signal in its own time, as interpreters do."""
    text = "import signal,time\\ntry: time.sleep(60)\\nexcept KeyboardInterrupt: time.sleep(.2); signal.signal(2, signal.SIG_DFL); signal.raise_signal(2)"
    now = f"{needs.program('python3')} -c \"$(printf '{text}')\""
    assert sessions("bash").check("lines", 0.5, Interrupted.by_key, now) is None


def test_lines_that_fail_are_no_interrupt(sessions):
    result = sessions("bash").shell.run("false\nsh -c 'exit 130'\necho $?\nsh -c 'kill -INT $$'\necho $?\nfalse")
    assert (result["state"], result["exit_code"]) == ("completed", 1)
    assert [line for line in result["output"].split("\n") if line] == ["130", "130"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_status_before_several_lines(sessions, shell):
    run = sessions(shell).shell.run
    assert run("sh -c 'exit 7'")["exit_code"] == 7
    status = "$status" if shell in ("fish", "tcsh") else "$?"
    assert run(f"echo {status}\necho {status}")["output"] == "7\n0\n"
