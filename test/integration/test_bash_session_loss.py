"""No output is lost, and none comes twice, whoever is killed; and a flood is bounded, and counted to the byte."""
import json
import os
import random
import re
import select
import signal
import threading
import time

import pytest

from harness.client import LIMIT
from harness.machine import HANG
from harness.processes import wait_until
from harness.server import Door, dial, http_request, kill_servers, only_server, request, socket_of
from harness.sessions import AT_ONCE, SANITIZED, Shell, exists, kill, memory, read_until, split_omitted, started


@pytest.fixture
def shell(client):
    return Shell(client)


@pytest.fixture
def wide(new_client):
    """A session of a client to which answers of any length come in one piece."""
    return Shell(new_client(env={LIMIT: str(64 << 20)}))


def typed(shell, text, wait=60, idle=60):
    return started(shell, "bash_session", input=text, wait_for_output=wait, idle_timeout=idle)


# ---- clients that are killed ----


def test_a_client_killed_while_it_waits(shell, workdir):
    call = typed(shell, f"echo before; touch {workdir}/on; sleep 0.6; echo after\n")
    exists(workdir / "on")
    kill(call)
    assert read_until(shell, shell.prompt) == "before\nafter\n" + shell.prompt


def test_a_client_killed_while_its_run_goes_on(shell, workdir):
    call = started(shell, "bash_session_run", command=f"echo before; touch {workdir}/on; sleep 0.6; echo after; (exit 4)")
    exists(workdir / "on")
    kill(call)
    assert read_until(shell, shell.prompt) == "before\nafter\n" + shell.prompt
    assert shell.out("echo $?") == "4\n"


def ask_and_leave(path, method, params, read):
    """A client that goes away when it has read so many bytes of the answer."""
    with dial(path) as sock:
        sock.sendall(http_request(request(method, params)))
        assert select.select([sock], [], [], HANG)[0]
        while read > 0:
            read -= len(sock.recv(read))


@pytest.mark.parametrize("owner", ["server", "keeper"])
@pytest.mark.parametrize("read", [0, 1, 50, 3000])
def test_a_client_that_closes_before_it_has_read_all(wide, owner, read):
    """The answer counts as delivered once the client has closed in good order. This one has not read it to its end."""
    params = {"session_name": wide.name, "input": "seq 1000\n", "wait_for_output": 25, "idle_timeout": 25}
    ask_and_leave(socket_of(wide.client.dir, "server" if owner == "server" else wide.name), "bash_session", params,
                  read)
    seen = wide.bs(wait=2)
    assert seen == "".join(f"{i}\n" for i in range(1, 1001)) + wide.prompt
    assert wide.bs(wait=0) == ""


@pytest.mark.parametrize("owner", ["server", "keeper"])
def test_a_client_that_has_read_all(wide, owner):
    params = {"session_name": wide.name, "input": "seq 1000\n", "wait_for_output": 25, "idle_timeout": 25}
    with Door(socket_of(wide.client.dir, "server" if owner == "server" else wide.name)) as door:
        assert door.rpc("bash_session", params).endswith("1000\n" + wide.prompt)
        assert door.rpc("bash_session", {**params, "input": "echo next\n"}) == "next\n" + wide.prompt
    assert wide.bs(wait=0) == ""


@pytest.mark.parametrize("read", [0, 50])
def test_a_run_whose_client_closes_before_it_has_read_all(wide, read):
    params = {"session_name": wide.name, "command": "seq 1000; (exit 3)"}
    ask_and_leave(socket_of(wide.client.dir, wide.name), "bash_session_run", params, read)
    assert "".join(f"{i}\n" for i in range(1, 1001)) in wide.bs(wait=2)
    assert wide.out("echo next") == "next\n"


def test_clients_killed_at_any_instant(shell, workdir):
    """Each token that the shell printed reaches somebody; those who live get it once."""
    chance, heard = random.Random(1), b""
    for i in range(40):
        call = typed(shell, f"echo token-{i} | tee -a {workdir}/log\n")
        time.sleep(chance.uniform(0, 0.03))
        call.kill()
        heard += call.communicate()[0]
    rest = shell.bs("echo the-end\n", wait=0, idle=0)
    while "the-end\n" not in rest:
        rest += shell.bs(wait=2)
    printed = (workdir / "log").read_text().split()
    tokens = re.findall(r"token-\d+", rest)
    assert len(tokens) == len(set(tokens)), "a token came twice"
    missing = set(printed) - set(tokens) - set(re.findall(r"token-\d+", heard.decode()))
    assert not missing and len(set(printed)) == len(printed)


# ---- servers that are killed ----


def test_a_killed_server_interrupts_no_call(shell, workdir):
    calls = [typed(shell, f"echo before; touch {workdir}/on; sleep 0.6; echo after\n")]
    other = Shell(shell.client)
    calls.append(started(other, "bash_session_run",
                         command=f"echo before; touch {workdir}/too; sleep 0.6; echo after; (exit 5)"))
    exists(workdir / "on")
    exists(workdir / "too")
    os.kill(only_server(), signal.SIGKILL)
    first, second = (json.loads(call.communicate(timeout=HANG)[0]) for call in calls)
    assert first["result"] == "before\nafter\n" + shell.prompt
    assert (second["result"]["output"], second["result"]["exit_code"]) == ("before\nafter\n", 5)
    assert {entry["session_name"] for entry in shell.client.rpc("bash_session_list")} == {shell.name, other.name}
    shell.works()
    assert Shell(shell.client).name == "BashSession_2"


def test_a_server_killed_under_a_call_that_passes_through_it(shell):
    """Such a client loses its connection, but the output is there for the next."""
    params = {"session_name": shell.name, "input": "echo before; sleep 0.6; echo after\n", "wait_for_output": 25,
              "idle_timeout": 25}
    with Door(socket_of(shell.client.dir)) as door:
        door.request("POST", "/", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session", "params": params}))
        wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
        os.kill(only_server(), signal.SIGKILL)
        with pytest.raises(OSError):
            door.getresponse()
    assert read_until(shell, shell.prompt) == "before\nafter\n" + shell.prompt


def test_servers_killed_during_traffic(client):
    """Three sessions count, and are read, while ten servers are killed: every number comes once, in its order."""
    shells, n, errors = [Shell(client) for _ in range(3)], 300, []

    def count(shell):
        try:
            text = shell.bs(f"for ((i = 0; i < {n}; i++)); do echo $i; sleep 0.005; done\n", wait=0, idle=0)
            while not text.endswith(shell.prompt):
                text += shell.bs(wait=2, idle=0.01)
            assert text == "".join(f"{i}\n" for i in range(n)) + shell.prompt, text
            for i in range(20):
                assert shell.out(f"echo {i}; (exit {i})", i) == f"{i}\n"
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=count, args=[shell]) for shell in shells]
    for thread in threads:
        thread.start()
    for _ in range(10):
        time.sleep(0.15)
        kill_servers()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert len(client.rpc("bash_session_list")) == 3


# ---- output without end ----

PERIOD = "0123456789abcdef\n"  # what `yes 0123456789abcdef` prints, again and again


def drain(shell, size, cap, first=None, **more):
    """Reads the `size` bytes that a command prints, and checks that each answer is the right piece: (delivered, omitted)."""
    at = omitted = delivered = 0
    text = first
    while at < size:
        kept, gone = split_omitted(text if text is not None else shell.bs(max_output_bytes=cap, wait=10, idle=0.05,
                                                                          **more))
        text = None
        assert len(kept) <= cap
        at += gone
        kept = kept[: size - at]
        phase = at % len(PERIOD)
        assert kept == (PERIOD * (len(kept) // len(PERIOD) + 2))[phase : phase + len(kept)], f"wrong bytes at {at}"
        at, omitted, delivered = at + len(kept), omitted + gone, delivered + len(kept)
    return delivered, omitted


def test_a_hundred_megabytes_to_the_byte(wide, workdir):
    size = 100_000_000
    first = wide.bs(f"yes 0123456789abcdef | head -c {size}; touch {workdir}/printed\n", max_output_bytes=1 << 20,
                    wait=10, idle=0.05)
    delivered, omitted = drain(wide, size, 1 << 20, first)
    assert delivered + omitted == size and delivered >= 1 << 20
    exists(workdir / "printed")
    wide.works()
    if not SANITIZED:
        wait_until(lambda: memory(wide.keeper()) < 4000, "the keeper to give its memory back")


def test_what_nobody_reads_is_bounded(shell, workdir):
    shell.bs(f"yes 0123456789abcdef | head -c 60000000; touch {workdir}/printed\n", max_output_bytes=1000, wait=0,
             idle=0)
    exists(workdir / "printed")
    assert memory(shell.keeper()) < 40_000 or SANITIZED
    assert shell.listed()["unread_bytes"] > 59_000_000
    kept, omitted = split_omitted(shell.bs(max_output_bytes=1000))
    assert kept.endswith(shell.prompt) and omitted > 59_000_000
    if not SANITIZED:
        wait_until(lambda: memory(shell.keeper()) < 4000, "the keeper to give its memory back")
    shell.works()


def test_a_flood_stays_interruptible(shell):
    shell.bs("yes\n", wait=0, idle=0, max_output_bytes=1000)
    time.sleep(0.5)
    began = time.monotonic()
    read_until(shell, shell.prompt, shell.bs("\x03", max_output_bytes=1000))
    shell.bs("while :; do echo loop; done\n", wait=0, idle=0, max_output_bytes=1000)
    time.sleep(0.5)
    shell.signal("INT")
    read_until(shell, shell.prompt)
    assert time.monotonic() - began < 2 * AT_ONCE
    shell.works()


def test_impatient_reads_lose_nothing(shell):
    n = 3000
    text = shell.bs(f"for ((i = 0; i < {n}; i++)); do echo line-$i; done\n", wait=0, idle=0)
    while f"line-{n - 1}\n" + shell.prompt not in text:
        text += shell.bs(wait=0, idle=0)
    assert text == "".join(f"line-{i}\n" for i in range(n)) + shell.prompt


def test_readers_side_by_side_share_without_loss(wide):
    """Several clients read one stream: each byte goes to one of them, or is said to be omitted."""
    size = 10_000_000
    got = [wide.bs(f"sleep 0.3; yes 0123456789abcdef | head -c {size}; echo; echo THE-END\n", wait=0, idle=0)]
    done = threading.Event()

    def read():
        while not done.is_set():
            text = wide.bs(max_output_bytes=100_000, wait=1, idle=0.02)
            got.append(text)
            if "THE-END" in text:
                done.set()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parts = [split_omitted(text) for text in got]
    total = sum(len(kept) + omitted for kept, omitted in parts)
    assert total == size + len("\nTHE-END\n") + len(wide.prompt)


def test_a_long_answer_in_pieces(shell, workdir):
    shell.at_once(f"(sleep 0.2; seq 100000; touch {workdir}/printed) &\n")
    exists(workdir / "printed")
    assert shell.bs() == "".join(f"{i}\n" for i in range(1, 100_001))
