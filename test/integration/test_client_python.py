"""clients/python: the package `toolbox_sandbox`, over a stream of the program under test and over connections that are kept."""
import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from harness import peers, processes, roots
from harness.client import Client
from harness.containers import REPO, Options
from harness.machine import HANG, Host

PACKAGE = REPO / "clients/python"
sys.path.insert(0, str(PACKAGE / "src"))
toolbox_sandbox = pytest.importorskip("toolbox_sandbox")
from toolbox_sandbox import (  # noqa: E402
    AsyncSandbox, CannotConnect, CannotRun, ConnectionLost, InvalidParams, OutputLimit, RunFailed, RunTimeout, ToolError, UnknownMethod)
from toolbox_sandbox.wire import Frame, RunWire, Wire, frame, line, run_frame  # noqa: E402


# ---- bytes ----


def test_messages_and_frames_however_they_are_cut():
    one, other = {"jsonrpc": "2.0", "id": 1, "result": "é\n\x02"}, {"jsonrpc": "2.0", "id": 2, "result": None}
    alive = {"jsonrpc": "2.0", "method": "rpc.alive"}
    data = line(one) + frame(b"d", 7, b"\n\x02{}\n") + frame(b"e", 7) + b"\n" + line(alive, other) + frame(b"w", 4_000_000_000, b"\0\0\1\0")
    wanted = [one, Frame(b"d", 7, b"\n\x02{}\n"), Frame(b"e", 7, b""), other, Frame(b"w", 4_000_000_000, b"\0\0\1\0")]
    for size in (1, 2, 3, 7, 50, len(data)):
        wire = Wire()
        assert [arrived for start in range(0, len(data), size) for arrived in wire.feed(data[start : start + size])] == wanted


def test_a_programs_frames_however_they_are_cut():
    data = run_frame(b"o", b"x" * 300) + run_frame(b"e") + run_frame(b"x", b"\3")
    for size in (1, 3, 5, len(data)):
        wire = RunWire()
        cut = [got for start in range(0, len(data), size) for got in wire.feed(data[start : start + size])]
        assert cut == [(b"o", b"x" * 300), (b"e", b""), (b"x", b"\3")]


# ---- over a stream ----


@pytest.fixture
def held(client):
    """Runs a coroutine function with a sandbox: held(use)."""

    def run(use):
        async def with_sandbox():
            words = [f"{name}={value}" for name, value in client.env.items()]
            async with await AsyncSandbox.over(["env", *words, client.binary, "exec", "--stream"]) as sandbox:
                return await asyncio.wait_for(use(sandbox), HANG)

        return asyncio.run(with_sandbox())

    return run


def test_a_program(held):
    async def use(sandbox):
        data = os.urandom(3_000_000)
        done = await sandbox.run(["sh", "-c", "cat; echo $A >&2; pwd >&2; exit 3"], input=data, env={"A": "é"}, cwd="/usr")
        assert (done.status, done.stdout, done.stderr.decode()) == (3, data, "é\n/usr\n")
        assert (await sandbox.run(["echo", "hi"])).text == "hi\n"

    held(use)


def test_a_program_that_takes_no_input(held):
    async def use(sandbox):
        assert (await sandbox.run(["true"], input=b"x" * 5_000_000)).status == 0
        assert (await sandbox.run(["cat"])).stdout == b""  # without input there is none to wait for

    held(use)


def test_what_can_go_wrong_with_one(held, workdir):
    async def use(sandbox):
        with pytest.raises(CannotRun, match="not found") as missing:
            await sandbox.run([str(workdir / "nowhere/program")])
        assert missing.value.status == 127
        (workdir / "file").write_text("")
        with pytest.raises(CannotRun) as denied:
            await sandbox.run([str(workdir / "file")])
        assert denied.value.status == 126
        with pytest.raises(RunFailed, match="ended with status 4: why"):
            await sandbox.run(["sh", "-c", "echo why >&2; exit 4"], check=True)
        with pytest.raises(RunTimeout) as late:
            await sandbox.run(["sh", "-c", "echo part; sleep 100"], timeout=1)
        assert late.value.stdout == b"part\n" and isinstance(late.value, TimeoutError)
        assert (await sandbox.run(["sh", "-c", "exit 124"], timeout=HANG)).status == 124
        with pytest.raises(OutputLimit) as much:
            await sandbox.run(["yes"], output_limit=1000)
        assert much.value.stdout == b"y\n" * 500
        assert (await sandbox.run(["sh", "-c", "yes | head -n 100000; echo end"], keep_last=8)).stdout == b"y\ny\nend\n"

    held(use)


def test_who_gives_up_leaves_nothing_running(held, workdir):
    async def use(sandbox):
        async with await sandbox.process(["sh", "-c", "echo $$; sleep 1000 & wait"]) as process:
            async for _, said in process:
                pid = int(said)
                break
        mark = workdir / "begun"
        task = asyncio.create_task(sandbox.run(["sh", "-c", f"echo $$ >{mark}.new; mv {mark}.new {mark}; sleep 1000"]))
        while not mark.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        processes.wait_until(lambda: not any(os.path.exists(f"/proc/{p}") for p in [pid, int(mark.read_text())]), "the programs to end")

    held(use)


def test_many_at_once(held):
    async def use(sandbox):
        done = await asyncio.gather(*(sandbox.run(["sh", "-c", f"cat; exit {i % 50}"], input=b"%d" % i * 5000) for i in range(100)))
        assert [(d.status, d.stdout) for d in done] == [(i % 50, b"%d" % i * 5000) for i in range(100)]
        assert set(await asyncio.gather(*(sandbox.call("version") for _ in range(500)))) == {await sandbox.methods.version()}

    held(use)


def test_a_shell(held):
    async def use(sandbox):
        async with await sandbox.shell() as shell:
            assert (await shell.run("cd /usr; A=7; echo hi")).output == "hi\n"
            done = await shell.run("echo $A; pwd; false")
            assert (done.output, done.exit_code, done.cwd, done.state) == ("7\n/usr\n", 1, "/usr", "completed")
            assert (await shell.run("sleep 1000", timeout=0.2)).state == "timeout"
            await shell.interrupt()
            assert (await shell.run()).exit_code == 130
            assert "typed" in await shell.send("echo typed\n")
            await shell.resize(40, 100)
            assert (await shell.run("stty size")).output == "40 100\n"
            watched = shell.watch()
            assert "typed" in json.dumps(await watched.__anext__())
            await watched.aclose()
            again = await sandbox.shell(shell.name)
            assert (await again.run("echo $A")).output == "7\n"
        with pytest.raises(ToolError):
            await shell.run("true")

    held(use)


def test_a_shells_command_that_is_given_up_is_interrupted_unless_it_is_to_run_on(held, workdir):
    async def use(sandbox):
        async with await sandbox.shell() as shell:
            for leave in (False, True):
                mark = workdir / f"begun-{leave}"
                task = asyncio.create_task(shell.run(f"sh -c 'echo $$ >{mark}.new; mv {mark}.new {mark}; exec sleep 1000'", leave_running=leave))
                while not mark.exists():
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                if leave:
                    assert (await shell.run(timeout=0.1)).state == "timeout" and os.path.exists(f"/proc/{mark.read_text().strip()}")
                    await shell.signal("KILL")
                while os.path.exists(f"/proc/{mark.read_text().strip()}"):
                    await asyncio.sleep(0.01)

    held(use)


def test_a_stream_that_never_greets_is_ended():
    async def use():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(AsyncSandbox.over(["sleep", "1000"]), 0.1)

    asyncio.run(asyncio.wait_for(use(), HANG))


def test_jobs(held):
    async def use(sandbox):
        job = await sandbox.start("for i in 1 2 3; do echo $i; done; echo no >&2; exit 3")
        said = [got async for got in job]
        assert ("".join(got.stdout for got in said), "".join(got.stderr for got in said), job.exit_code) == ("1\n2\n3\n", "no\n", 3)
        job = await sandbox.start(["cat"], stdin=True)
        out = (await job.write("abc\n")).stdout + (await job.close_stdin()).stdout
        end = await job.wait()
        assert (out + end.stdout, end.exit_code) == ("abc\n", 0)
        job = await sandbox.start(["sleep", "1000"])
        assert (await job.wait(timeout=0)).state == "running"
        await job.kill()
        assert (await (await sandbox.job(job.pid)).wait()).state != "running"

    held(use)


def test_the_editor_and_errors(held, workdir):
    async def use(sandbox):
        path = str(workdir / "a.txt")
        await sandbox.edit.create(path, "one\n")
        await sandbox.edit.replace(path, "one", "two")
        assert "two" in await sandbox.edit.view(path, (1, 1))
        await sandbox.edit.undo(path)
        assert (workdir / "a.txt").read_text() == "one\n"
        await sandbox.edit.create(path, "one\none\n", overwrite=True)
        await sandbox.edit.replace(path, "one", "1", everywhere=True)
        await sandbox.edit.insert(path, 0, "0")
        await sandbox.edit.many([{"path": path, "old_str": "0\n1", "new_str": "3"}])
        await sandbox.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-3\n+4\n*** End Patch\n", str(workdir))
        assert (workdir / "a.txt").read_text().startswith("4\n1")
        with pytest.raises(ToolError, match="does not exist"):
            await sandbox.edit.view(str(workdir / "nowhere"))
        with pytest.raises(UnknownMethod):
            await sandbox.call("no_such_method")
        with pytest.raises(InvalidParams) as wrong:
            await sandbox.call("exec_remote_poll", {"pid": "x"})
        assert wrong.value.code == -32602

    held(use)


@contextlib.contextmanager
def echo_server():
    """A port where each client gets back what it sends, until its end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def serve():
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    while data := client.recv(65536):
                        client.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_port(held):
    async def use(sandbox):
        with echo_server() as there:
            async with sandbox.forward(there) as forward:
                reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
                data = os.urandom(1_000_000)
                writer.write(data)
                writer.write_eof()
                assert await reader.read(-1) == data
                writer.close()
        async with sandbox.forward(there) as forward:  # nobody listens there now
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            with contextlib.suppress(ConnectionError):
                assert await reader.read(-1) == b""
            writer.close()

    held(use)


def test_a_stream_that_ends_tells_everybody(held):
    async def use(sandbox):
        shell = await sandbox.shell()
        waiting = [asyncio.create_task(shell.run("sleep 1000")), asyncio.create_task(sandbox.run(["sleep", "1000"]))]
        await sandbox.call("version")
        sandbox._connection._process.kill()
        for task in waiting:
            with pytest.raises(ConnectionLost):
                await task
        with pytest.raises(ConnectionLost):
            await sandbox.call("version")
        assert sandbox.closed

    held(use)


# ---- over connections that are kept, without asyncio ----

# Runs a program, and tells which lines of the package were run, of those that can be.
TRACED = """
import json, runpy, sys, threading, trace
from pathlib import Path

package = Path(sys.argv[1])
apart = ("__init__.py", "inspect_provider.py", "placing.py")  # for inspect_ai, and for hosts that aren't Linux: tests of their own
files = [str(path) for path in package.glob("*.py") if path.name not in apart]
traced = trace.Trace(trace=0, ignoredirs=[sys.prefix, sys.exec_prefix])
del sys.argv[:2]
run = compile("runpy.run_path(sys.argv[0], run_name='__main__')", "<run>", "exec")
sys.argv.insert(0, sys.argv.pop(0))
traced.runctx(run, globals(), {})
ran = {(file, line) for file, line in traced.results().counts}
able = {(file, line) for file in files for line in trace._find_executable_linenos(file) if line}
json.dump({"ran": len(able & ran), "able": len(able), "missed": sorted(f"{Path(file).name}:{line}" for file, line in able - ran)}, sys.stdout)
"""


def run_surface(client, target, *options):
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": str(client.binary), "PYTHONPATH": str(PACKAGE / "src")}
    argv = [sys.executable, "-c", TRACED, PACKAGE / "src/toolbox_sandbox", PACKAGE / "test/surface.py", target, *options]
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=2 * HANG)
    finally:
        client.cli("connect", "--stop")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    lines = json.loads(done.stdout)
    assert lines["able"] > 1000 and lines["ran"] >= 0.9 * lines["able"], lines


def test_all_of_it_without_asyncio(client, workdir):
    run_surface(client, "local:", "--dir", str(workdir / "there"))


def test_all_of_it_in_a_container(docker, toolbox, workdir):
    container = docker.start(roots.get("debian"), Options())
    client = Client(Host(), toolbox, workdir / "server", env=docker.env)
    try:
        run_surface(client, f"docker:{container.name}")
    finally:
        container.destroy()
        client.close()


def test_no_program_is_told(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("TOOLBOX_BINARY", raising=False)
    with pytest.raises(CannotConnect, match="TOOLBOX_BINARY"):
        asyncio.run(AsyncSandbox.connect("local:"))


# ---- what is written by a script, types ----


def test_what_is_generated_is_current(toolbox):
    done = subprocess.run([REPO / "clients/generate", toolbox, "--check"], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder,checker", [("python-types", ["bin/mypy"]), ("node-types", ["node_modules/.bin/pyright", "--warnings"])])
def test_types_are_strict(folder, checker):
    path = peers.folder(folder)
    done = subprocess.run([path / checker[0], *checker[1:]], cwd=PACKAGE, capture_output=True, text=True, timeout=HANG * 3)
    assert done.returncode == 0, done.stdout + done.stderr
