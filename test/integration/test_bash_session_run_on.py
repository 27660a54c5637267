"""What is interrupted is over: nothing that stands behind it runs, whatever the form of the command and whatever the shell."""
import random

import pytest

from harness import needs
from harness.interrupted import FORMS, SHELLS, Interrupted, path_of
from harness.sessions import Shell, shared_server

# A shell that has just become a script's may have the signal in the one moment in which neither it nor what it starts takes it.
AT_ANY_MOMENT = [form for form in FORMS if form != "a script"]


@pytest.fixture(scope="module")
def server(toolbox):
    with shared_server(toolbox) as client:
        yield client


@pytest.fixture(scope="module", params=SHELLS)
def tried(server, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run-on")
    folder.chmod(0o755)
    path = path_of(request.param, folder)
    if not path:
        needs.program(request.param)
    with Shell(server, shell=path) as shell:
        yield Interrupted(shell, folder)


@pytest.mark.parametrize("how", [Interrupted.by_signal, Interrupted.by_key])
@pytest.mark.parametrize("form", FORMS)
def test_nothing_behind_it_runs(tried, form, how):
    assert tried.check(form, 0.2, how) is None


def test_nor_at_any_other_moment(tried):
    dice = random.Random(19)
    for form in AT_ANY_MOMENT:
        how = dice.choice((Interrupted.by_signal, Interrupted.by_key))
        assert tried.check(form, dice.random() ** 3 / 10, how) is None, form


@pytest.mark.parametrize("form", FORMS)
def test_nor_where_nobody_waits_any_more(tried, form):
    assert tried.check_abandoned(form, 0.1) is None


def test_a_program_that_handles_it(tried):
    """It dies of the signal in its own time, as interpreters do."""
    text = "import signal,time\\ntry: time.sleep(60)\\nexcept KeyboardInterrupt: time.sleep(.2); signal.signal(2, signal.SIG_DFL); signal.raise_signal(2)"
    assert tried.check("lines", 0.5, Interrupted.by_key, now=f"{needs.program('python3')} -c \"$(printf '{text}')\"") is None


def test_lines_that_fail_are_no_interrupt(tried):
    result = tried.shell.run("false\nsh -c 'exit 130'\necho $?\nsh -c 'kill -INT $$'\necho $?\nfalse")
    assert (result["state"], result["exit_code"]) == ("completed", 1)
    assert [line for line in result["output"].split("\n") if line] == ["130", "130"]
