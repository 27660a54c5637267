"""Programs that pass a terminal on: what they wait for is what the program behind them waits for."""
import shlex

import pytest

from harness import needs
from harness.sessions import LONG

RELAYS = {
    "script": "script -qec {} /dev/null",
    "script in script": "script -qec {} /dev/null",
    "expect": "expect -c 'set timeout -1; spawn -noecho sh {}; interact'",
    "python3": "python3 -c 'import pty, sys; pty.spawn([\"sh\", \"-c\", sys.argv[1]])' {}",
    "su": "su --pty -c {} root",
}


def command(relay, inner, folder):
    needs.program(relay.split()[0])
    if relay == "su":
        needs.root("su without a password")
    if " in " in relay:
        inner = RELAYS["script"].format(shlex.quote(inner))
    script = folder / "inner"
    script.write_text(inner)
    return RELAYS[relay].format(script if relay == "expect" else shlex.quote(inner))


ALL = pytest.mark.parametrize("relay", RELAYS)


@ALL
def test_the_end_is_waited_for(shell, relay, workdir):
    for inner in ("sleep 1; echo done", "echo some; sleep 1; echo done"):
        result = shell.run(command(relay, inner, workdir), timeout=60)
        assert (result["state"], result["exit_code"]) == ("completed", 0) and "done" in result["output"], result


@ALL
def test_a_question_behind_it_is_one(shell, relay, workdir):
    result = shell.run(command(relay, "sleep 0.3; printf 'name? '; read x; sleep 0.3; echo got", workdir), timeout=60)
    assert result["state"] == "awaiting_input" and result["output"].endswith("name? "), result
    assert "got" in shell.bs("me\n", wait=LONG, idle=LONG)


def test_typing_into_a_shell_behind_it(shell):
    needs.program("script")
    shell.at_once("script -q /dev/null\n")
    assert "slow" in shell.bs("sleep 1; echo slow\n", wait=5, idle=LONG)
    shell.at_once("exit\n")
    shell.works()


def test_who_has_no_terminal_behind_it_waits(shell):
    """Beside its own it listens to something else, as those of interpreters and editors do."""
    text = "import select, socket, sys; a, b = socket.socketpair(); print(1, flush=True); select.select([0, a], [], []); print(input())"
    result = shell.run(f"{needs.program('python3')} -c {shlex.quote(text)}", timeout=60)
    assert (result["state"], result["output"]) == ("awaiting_input", "1\n")
