"""Programs that pass a terminal on: what they wait for is what the program behind them waits for. (Engines and clusters:
test_bash_session_nested_peers.py.)"""
import contextlib
import shlex

import pytest

from harness import needs, relays

NAMES = [*relays.HERE, "ssh", "ssh -tt"]


@pytest.fixture(scope="module", params=NAMES)
def places(request):
    """What the relay of that name leads to, and the name."""
    needs.program(next(word for word in relays.RELAYS[request.param].split() if "=" not in word))
    if request.param.startswith("su"):
        needs.root("become root without a password")
    with contextlib.ExitStack() as stack:
        far = {"ssh": stack.enter_context(relays.sshd())} if request.param.startswith("ssh") else {}
        yield {"name": request.param, **far}


class TestRelays(relays.Behind):
    pass


def test_who_has_no_terminal_behind_it_waits(shell):
    """Beside its own it listens to something else, as those of interpreters and editors do."""
    text = "import select, socket, sys; a, b = socket.socketpair(); print(1, flush=True); select.select([0, a], [], []); print(input())"
    result = shell.run(f"{needs.program('python3')} -c {shlex.quote(text)}", timeout=60)
    assert (result["state"], result["output"]) == ("awaiting_input", "1\n")


def test_who_waits_for_others_to_come_waits_for_input(shell):
    text = "import select, socket; s = socket.create_server(('127.0.0.1', 0)); print(1, flush=True); select.select([0, s], [], []); input()"
    result = shell.run(f"{needs.program('python3')} -c {shlex.quote(text)}", timeout=60)
    assert (result["state"], result["output"]) == ("awaiting_input", "1\n")
