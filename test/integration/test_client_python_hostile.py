"""clients/python where its users do what they shouldn't, or what nobody has foreseen: nothing hangs, nothing is left running, words say what is wrong."""
import asyncio
import collections
import functools
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.containers import REPO
from harness.machine import HANG

PACKAGE = REPO / "clients/python"
sys.path.insert(0, str(PACKAGE / "src"))
toolbox_sandbox = pytest.importorskip("toolbox_sandbox")
from toolbox_sandbox import AsyncSandbox, CallError, CannotRun, ConnectionLost, InvalidParams, program  # noqa: E402


@pytest.fixture
def opened(client):
    """Runs a coroutine function with a sandbox over a stream of its own, or with what makes one: opened(use)."""

    def run(use):
        async def with_sandbox():
            words = [f"{name}={value}" for name, value in client.env.items()]
            async with await AsyncSandbox.over(["env", *words, client.binary, "exec", "--stream"]) as sandbox:
                return await asyncio.wait_for(use(sandbox), HANG)

        return asyncio.run(with_sandbox())

    return run


@pytest.fixture
def script(client, workdir):
    """Runs a program that has a Sandbox: (its stdout, its stderr)."""
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": str(client.binary), "PYTHONPATH": str(PACKAGE / "src")}
    head = "import os, signal, sys, threading\nfrom toolbox_sandbox import *\nconnect = lambda: Sandbox.connect('local:', options=sys.argv[1:])\n"

    def start(text, warnings="error"):
        argv = [sys.executable, "-W", warnings, "-c", head + text, "--dir", str(workdir / "there")]
        return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    start.run = lambda text, **more: start(text, **more).communicate(timeout=HANG)
    yield start
    client.cli("connect", "--stop")


async def marked(path):
    """Waits for a program that tells its number in a file."""
    while not path.exists():
        await asyncio.sleep(0.01)
    return int(path.read_text())


def tells(mark):
    return ["sh", "-c", f"echo $$ >{mark}.new; mv {mark}.new {mark}; exec sleep 1000"]


async def gone(*pids):
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        await asyncio.sleep(0.01)


# ---- more than is taken at once ----


def test_more_programs_and_calls_than_are_taken_at_once(opened):
    async def use(sandbox):
        done = await asyncio.gather(*(sandbox.run(["true"]) for _ in range(1100)))
        assert {one.status for one in done} == {0}
        job = await sandbox.start(["sleep", "0.3"])
        ended = await asyncio.gather(*(sandbox.call("exec_remote_wait", {"pid": job.pid, "ack_seq": 0}) for _ in range(1100)))
        assert {one["exit_code"] for one in ended} == {0}

    opened(use)


# ---- what can't be sent ----


def test_what_is_no_command_line_is_told(opened):
    async def use(sandbox):
        for begin in (sandbox.run, sandbox.process):
            with pytest.raises(TypeError, match="list of words.*sh.*-c"):
                await begin("echo hi")
            with pytest.raises(TypeError):
                await begin(["echo", 1])
            with pytest.raises(CannotRun, match="too long: 3.* bytes") as long:
                await begin(["echo", "x" * 3_000_000])
            assert long.value.status == 125
        with pytest.raises(CannotRun, match="half of a surrogate"):
            await sandbox.run(["echo", "\udc80"])
        assert (await sandbox.run(["echo", "on"], timeout=math.inf)).text == "on\n"

    opened(use)


def test_params_that_are_no_message_fail_alone(opened, workdir):
    """Each would have had no answer that says whose it is."""
    async def use(sandbox):
        waiting = asyncio.create_task(sandbox.run(tells(workdir / "mark")))
        deep = functools.reduce(lambda inner, _: {"a": inner}, range(800), {})
        with pytest.raises(CallError, match="nested too deeply"):
            await sandbox.call("version", deep)
        with pytest.raises(ValueError, match="JSON"):
            await sandbox.call("version", {"a": math.nan})
        with pytest.raises(TypeError, match="can't be sent"):
            await sandbox.call("version", {"a": b"bytes"})
        most = sandbox.hello["limits"]["line"]
        sandbox.hello["limits"]["line"] = 1000
        with pytest.raises(InvalidParams, match="too long: 1[0-9]{3} bytes.*at most 1000"):
            await sandbox.call("file_read", {"path": "x" * 1000})
        sandbox.hello["limits"]["line"] = most
        assert await sandbox.call("version") and not waiting.done()
        pid = await marked(workdir / "mark")
        waiting.cancel()
        await gone(pid)

    opened(use)


def test_paths_are_taken_wherever_text_is(opened, workdir):
    async def use(sandbox):
        path = workdir / "a"
        await sandbox.files.write(path, "one\n")
        await sandbox.edit.replace(path, "one", "two")
        assert (await sandbox.run([Path("/bin/cat"), path], cwd=workdir)).text == await sandbox.files.read_text(path) == "two\n"
        await sandbox.files.move(path, workdir / "b")
        assert (await sandbox.files.stat(workdir / "b"))["size"] == 4
        job = await sandbox.start([Path("/bin/pwd")], cwd=workdir)
        assert (await job.wait()).stdout == f"{workdir}\n"

    opened(use)


# ---- the connection goes ----


async def _call(sandbox, _workdir):
    await (await sandbox.start("sleep 1000")).wait()


async def _write(sandbox, workdir):
    while True:
        await sandbox.files.write(workdir / "file", b"x" * 5_000_000)


async def _feed(sandbox, _workdir):
    async with await sandbox.process(["sleep", "1000"]) as process:
        await process.write(b"x" * 10_000_000)


async def _follow(sandbox, _workdir):
    async for _ in await sandbox.start("sleep 1000"):
        pass


async def _wait_for_a_turn(sandbox, _workdir):
    await asyncio.gather(*(sandbox.run(["sleep", "1000"]) for _ in range(1030)))


@pytest.mark.parametrize("use", [_call, _write, _feed, _follow, _wait_for_a_turn])
def test_everybody_is_told_that_it_was_lost(opened, workdir, use):
    async def lost(sandbox):
        task = asyncio.create_task(use(sandbox, workdir))
        await sandbox.call("version")
        await asyncio.sleep(0.05)  # somewhere in the middle, wherever that is
        sandbox._connection._process.kill()
        with pytest.raises(ConnectionLost):
            await task

    opened(lost)


def test_a_program_that_has_ended_takes_nothing_more(opened):
    async def use(sandbox):
        async with await sandbox.process(["true"]) as process:
            assert [said async for said in process] == []
            for send in (process.write(b"x"), process.close_stdin(), process.signal(), process.resize(1, 1)):
                with pytest.raises(ConnectionLost, match="true has ended"):
                    await send

    opened(use)


# ---- giving up ----


def test_many_that_are_given_up_leave_nothing(opened, workdir):
    async def use(sandbox):
        for wait_ms in (0, 5, 20):
            tasks = [asyncio.create_task(sandbox.run(["sh", "-c", f": >{workdir}/$$; exec sleep 1000"])) for _ in range(60)]
            await asyncio.sleep(wait_ms / 1000)
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert collections.Counter(map(type, outcomes)) == {asyncio.CancelledError: 60}
        last = workdir / "last"
        task = asyncio.create_task(sandbox.run(tells(last)))
        pid = await marked(last)
        task.cancel()  # all others were begun before this one
        await gone(pid, *(int(path.name) for path in workdir.iterdir() if path.name.isdigit()))
        assert (await sandbox.run(["echo", "on"])).text == "on\n"
        assert not sandbox._connection._streams and not sandbox._connection._waiting and not sandbox._connection._sizes

    opened(use)


def test_one_of_a_group_that_fails_ends_the_others(opened, workdir):
    if sys.version_info < (3, 11):
        pytest.skip("there is no TaskGroup in this Python")

    async def use(sandbox):
        marks = [workdir / str(n) for n in range(3)]

        async def fail():
            await asyncio.gather(*map(marked, marks))
            await sandbox.run(["false"], check=True)

        with pytest.raises(BaseExceptionGroup) as failed:
            async with asyncio.TaskGroup() as group:
                for mark in marks:
                    group.create_task(sandbox.run(tells(mark)))
                group.create_task(fail())
        assert "false ended with status 1" in str(failed.value.exceptions)
        await gone(*[await marked(mark) for mark in marks])

    opened(use)


def test_a_key_that_interrupts(script, workdir):
    mark = workdir / "mark"
    process = script(f"""
with connect() as sandbox:
    try:
        sandbox.run({tells(mark)!r})
    except KeyboardInterrupt:
        print(sandbox.run(["echo", "on"]).text)
""")
    pid = asyncio.run(asyncio.wait_for(marked(mark), HANG))
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANG) == ("on\n\n", "")
    asyncio.run(asyncio.wait_for(gone(pid), HANG))


def test_the_end_of_a_process_that_has_closed_nothing(script, workdir):
    mark = workdir / "mark"
    out, said = script.run(f"""
sandbox = connect()
process = sandbox.process({tells(mark)!r})
shell = sandbox.shell()
threading.Thread(target=sandbox.run, args=(["sleep", "1000"],), daemon=True).start()
while not os.path.exists({str(mark)!r}): pass
""", warnings="ignore")
    assert (out, said) == ("", "")
    asyncio.run(asyncio.wait_for(gone(int(mark.read_text())), HANG))


# ---- forks, loops, threads ----


def test_a_fork_neither_has_nor_breaks_the_connection(script):
    out, said = script.run("""
sandbox = connect()
shell = sandbox.shell()
pid = os.fork()
if pid == 0:
    for use in (lambda: sandbox.run(["true"]), lambda: sandbox.call("version"), lambda: shell.run("true")):
        try:
            use()
        except ConnectionLost as error:
            print("connect here, too" in str(error), flush=True)
    sandbox.close()
    with connect() as own:
        print(own.run(["echo", "own"]).text, end="", flush=True)
    sys.exit()
os.waitpid(pid, 0)
print(shell.run("echo parent").output, end="")
shell.close()
sandbox.close()
""")
    assert (out, said) == ("True\nTrue\nTrue\nown\nparent\n", "")


def test_a_fork_does_not_keep_a_connection_open(script, workdir):
    """The parent is killed: its programs end although a fork of it lives on."""
    mark = workdir / "mark"
    process = script(f"""
sandbox = connect()
process = sandbox.process({tells(mark)!r})
if os.fork() == 0:
    os.close(1)
    os.close(2)
    signal.alarm({HANG})
    signal.pause()
print("forked", flush=True)
signal.pause()
""")
    assert process.stdout.readline() == "forked\n"
    pid = asyncio.run(asyncio.wait_for(marked(mark), HANG))
    process.kill()
    process.communicate(timeout=HANG)
    asyncio.run(asyncio.wait_for(gone(pid), HANG))


def test_another_event_loop_is_told(client):
    words = [f"{name}={value}" for name, value in client.env.items()]
    loop = asyncio.new_event_loop()
    try:
        sandbox = loop.run_until_complete(AsyncSandbox.over(["env", *words, client.binary, "exec", "--stream"]))
        for use in (lambda: sandbox.run(["true"]), lambda: sandbox.call("version")):
            with pytest.raises(ConnectionLost, match="event loop"):
                asyncio.run(use())
        loop.run_until_complete(sandbox.close())
    finally:
        loop.close()


def test_waiting_where_the_waiting_is_done_is_told(script):
    out, said = script.run("""
import asyncio
from toolbox_sandbox.waiting import wait
async def inner():
    wait(asyncio.sleep(0))
try:
    wait(inner())
except RuntimeError as error:
    print(error)
""")
    assert "AsyncSandbox is for coroutines" in out and said == ""


def test_many_threads(script):
    out, said = script.run("""
wrong = []
with connect() as sandbox:
    def work(n):
        wrong.extend(k for k in range(10) if sandbox.run(["echo", f"{n} {k}"]).text != f"{n} {k}\\n")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(wrong)
""")
    assert (out, said) == ("[]\n", "")


def test_an_end_that_comes_after_ours(script):
    out, said = script.run("""
import atexit, subprocess
text = "import atexit\\natexit.register(lambda: close())\\nfrom toolbox_sandbox import *\\n"
text += "s = Sandbox.connect('local:', options=" + repr(sys.argv[1:]) + ")\\n"
text += "def close():\\n try: s.call('version')\\n except ConnectionLost as e: print(e)\\n"
print(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=20))
""")
    assert "the process is ending" in out and "stderr=''" in out, out + said


# ---- time ----


def test_a_time_is_measured_from_before_the_program_is_asked_for(monkeypatch):
    """Else one that took its whole time would not count as late."""
    class Slow:
        async def stream(self, leads_to):
            await asyncio.sleep(0.05)
            return type("Stream", (), {"reset_because": None})()

    async def use():
        return (await program.begin(Slow(), program.Program(["true"]))).seconds

    assert asyncio.run(use()) >= 0.05


def test_a_socket_whose_path_is_longer_than_any(client, workdir):
    """The program listens there all the same."""
    far = workdir / ("far" * 50)
    text = "import sys\nfrom toolbox_sandbox import Sandbox\nwith Sandbox.connect('local:', options=sys.argv[1:]) as s: print(s.run(['echo', 'here']).text)"
    env = {**os.environ, "TOOLBOX_DIR": str(far), "TOOLBOX_BINARY": str(client.binary), "PYTHONPATH": str(PACKAGE / "src")}
    try:
        done = subprocess.run([sys.executable, "-W", "error", "-c", text, "--dir", str(workdir / "there")], env=env, capture_output=True, text=True, timeout=HANG)
        assert (done.returncode, done.stdout, done.stderr) == (0, "here\n\n", "")
    finally:
        subprocess.run([client.binary, "connect", "--stop"], env=env, check=True, timeout=HANG)
        subprocess.run([client.binary, "eject", "-q", "--dir", str(workdir / "there"), "local:"], env=env, check=True, timeout=HANG)
