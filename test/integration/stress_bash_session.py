"""Sessions under more load than a quick suite can bear. Not collected by itself: name the file to run it.

    /usr/bin/python3 -m pytest -p no:cacheprovider -v test/integration/stress_bash_session.py
"""
import contextlib
import hashlib
import os
import random
import re
import subprocess
import threading
import time

import pytest

from harness.client import RpcError
from harness.processes import count_zombies, descendants, descriptors, wait_until
from harness.server import kill_servers, only_server
from harness.sessions import SANITIZED, Shell, memory, split_omitted

RUNS = int(os.environ.get("TOOLBOX_STRESS_RUNS", 2000))
SESSIONS = int(os.environ.get("TOOLBOX_STRESS_SESSIONS", 200))
KILLS = int(os.environ.get("TOOLBOX_STRESS_KILLS", 100))


@pytest.fixture
def shell(client):
    return Shell(client)


@contextlib.contextmanager
def busy_machine():
    """As many loops as there are processors, twice."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def in_threads(calls):
    """Runs them side by side, and raises the first error."""
    errors = []

    def run(call):
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# ---- many in a row ----


@pytest.mark.parametrize("load", ["quiet", "busy"])
def test_runs_in_a_row(shell, load):
    """Each answer is complete and its own: none lost, early or doubled."""
    with busy_machine() if load == "busy" else contextlib.nullcontext():
        for i in range(RUNS if load == "quiet" else RUNS // 4):
            assert shell.out(f"echo {i}; (exit {i % 256})", i % 256) == f"{i}\n"
    assert shell.bs(wait=1) in ("", shell.prompt)


@pytest.mark.parametrize("load", ["quiet", "busy"])
def test_lines_typed_in_a_row(shell, load):
    with busy_machine() if load == "busy" else contextlib.nullcontext():
        for i in range(RUNS if load == "quiet" else RUNS // 4):
            assert shell.at_once(f"echo {i}\n") == f"{i}\n" + shell.prompt
            if i % 10 == 0:
                assert shell.at_once(f"/bin/echo {i} | cat\n") == f"{i}\n" + shell.prompt


def test_questions_in_a_row(shell):
    for i in range(RUNS // 4):
        assert shell.run(f"read -p 'q{i}? ' x; echo got $x")["output"] == f"q{i}? "
        assert shell.at_once(f"a{i}\n") == f"got a{i}\n" + shell.prompt


# ---- many at once ----


def test_many_sessions(client):
    shells = [Shell(client) for _ in range(SESSIONS)]
    for i, shell in enumerate(shells):
        shell.bs(f"X={i}\n")
        shell.bs("sleep 1000\n", wait=0, idle=0)
    last = Shell(client)
    for i in range(50):
        assert last.out(f"echo {i}") == f"{i}\n"
    assert len(client.rpc("bash_session_list")) == SESSIONS + 1
    for i, shell in enumerate(shells):
        assert shell.at_once("\x03").endswith(shell.prompt)
        assert shell.out("echo $X") == f"{i}\n"


def test_a_mixture(client):
    """Sixteen clients do all kinds of things to eight sessions; whatever else happens, a run has its own output."""
    shells = [Shell(client) for _ in range(8)]
    end, done = time.monotonic() + 60, [0]

    def live(seed):
        chance = random.Random(seed)
        while time.monotonic() < end:
            shell, token = chance.choice(shells), f"token-{seed}-{chance.random()}"
            try:
                what = chance.randrange(10)
                if what < 5:
                    result = shell.run(f"echo {token}; sleep {chance.choice([0, 0, 0.05])}", timeout=20)
                    assert set(re.findall(r"token\S+", result["output"])) <= {token}, (token, result)
                    assert result["exit_code"] != 0 or f"{token}\n" in result["output"], (token, result)
                    done[0] += result["exit_code"] == 0
                elif what < 7:
                    shell.bs(f"echo {token}\n", wait=1, idle=0.1)
                elif what == 7:
                    shell.bs("\x03", wait=0, idle=0)
                elif what == 8:
                    shell.signal(chance.choice(["INT", "TERM", "WINCH"]))
                elif chance.random() < 0.2:
                    shell.restart()
            except RpcError as error:
                assert "-32098" not in str(error), error

    in_threads([lambda i=i: live(i) for i in range(16)])
    assert done[0] > 50
    for shell in shells:
        shell.restart()
        shell.works()


# ---- what is killed ----


def test_servers_killed_during_traffic(client):
    """Sessions count and are read, and run, while a hundred servers are killed: all comes once, in its order."""
    shells, stop = [Shell(client) for _ in range(4)], threading.Event()

    def count(shell):
        rounds = 0
        while not stop.is_set():
            text = shell.bs("for ((i = 0; i < 300; i++)); do echo $i; sleep 0.002; done\n", wait=0, idle=0)
            while not text.endswith("299\n" + shell.prompt):
                text += shell.bs(wait=2, idle=0.01)
            assert text == "".join(f"{i}\n" for i in range(300)) + shell.prompt, text
            for i in range(20):
                assert shell.out(f"echo {rounds}.{i}; (exit {i})", i) == f"{rounds}.{i}\n"
            rounds += 1

    def kill():
        try:
            for _ in range(KILLS):
                time.sleep(0.15)
                kill_servers()
                client.rpc("remote_version")
        finally:
            stop.set()

    in_threads([lambda shell=shell: count(shell) for shell in shells] + [kill])
    assert len(client.rpc("bash_session_list")) == 4


def test_sessions_opened_and_closed_while_servers_are_killed(client):
    """A call that is cut off may fail, but a session that was answered for is there, and none is there twice."""
    stop, opened = threading.Event(), set()

    def open_and_close():
        while not stop.is_set():
            with contextlib.suppress(RpcError, AssertionError):
                name = client.rpc("bash_session_new_session", {})["session_name"]
                assert name not in opened or pytest.fail(f"{name} was given twice")
                opened.add(name)
                assert client.run("echo hi", session=name)["output"] == "hi\n" or pytest.fail("a wrong answer")
                client.rpc("bash_session_close", {"session_name": name})

    def kill():
        try:
            for _ in range(KILLS // 2):
                time.sleep(0.1)
                kill_servers()
        finally:
            stop.set()

    in_threads([open_and_close, open_and_close, kill])
    assert opened
    for entry in client.rpc("bash_session_list"):
        client.rpc("bash_session_close", {"session_name": entry["session_name"]})


# ---- much of it ----


def test_a_gigabyte_that_nobody_reads(shell):
    size = 1_000_000_000
    shell.bs(f"yes | head -c {size}; printf THE-END\n", wait=0, idle=0, max_output_bytes=1)
    held = 0
    while shell.listed()["state"] != "prompt":
        held = max(held, memory(shell.keeper()))
        time.sleep(0.2)
    assert held < 40_000 or SANITIZED, f"the keeper holds {held} kB"
    kept, omitted = split_omitted(shell.bs(max_output_bytes=1 << 20))
    assert kept.endswith("y\nTHE-END" + shell.prompt)
    assert size - 10 <= len(kept) + omitted - len("THE-END" + shell.prompt) <= size
    shell.works()


def test_megabytes_of_command(shell):
    text = "".join(f"{i:079d}\n" for i in range(50_000))
    assert shell.out(f"sha1sum <<'E'\n{text}E", timeout=300).split()[0] == hashlib.sha1(text.encode()).hexdigest()
    assert shell.out(f"echo {'x' * 4_000_000} | wc -c", timeout=300) == "4000001\n"


def test_restarts(client, shell):
    shell.restart()
    counts = [len(descriptors(only_server())), len(descriptors(shell.keeper())), len(os.listdir("/dev/pts")),
              count_zombies(only_server())]
    for i in range(300):
        shell.bs("sleep 1000 & yes\n", wait=0, idle=0, max_output_bytes=100)
        shell.restart()
    wait_until(lambda: len(descriptors(only_server())) <= counts[0] + 3, "the server's descriptors to be closed")
    assert len(descriptors(shell.keeper())) <= counts[1] + 3 and len(os.listdir("/dev/pts")) <= counts[2] + 3
    assert count_zombies(only_server()) <= counts[3] and len(descendants(shell.keeper())) == 1
