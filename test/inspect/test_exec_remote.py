"""sandbox().exec_remote(), streaming and awaited."""
import time

import anyio
import pytest
from inspect_ai.util import sandbox as current

pytest.importorskip("inspect_ai.util._sandbox.exec_remote", reason="older than exec_remote()")

from inspect_ai.util import (  # noqa: E402
    ExecCompleted,
    ExecRemoteAwaitableOptions,
    ExecRemoteStreamingOptions,
    ExecStderr,
    ExecStdout,
)


async def collect(process):
    out, err, code = "", "", None
    async for event in process:
        match event:
            case ExecStdout(data=data):
                out += data
            case ExecStderr(data=data):
                err += data
            case ExecCompleted(exit_code=status):
                code = status
    return out, err, code


def options(kind=ExecRemoteStreamingOptions, **given):
    return kind(poll_interval=0.1, **given)


@pytest.mark.fast
def test_awaited(sandbox):
    async def body(n):
        run = current().exec_remote
        done = await run(["sh", "-c", "echo out; echo err >&2; exit 3"], options(ExecRemoteAwaitableOptions), stream=False)
        assert (done.success, done.returncode, done.stdout, done.stderr) == (False, 3, "out\n", "err\n")
        given = options(ExecRemoteAwaitableOptions, cwd="/tmp", env={"A": "b c"}, input="in")
        done = await run(["sh", "-c", 'pwd; echo "$A"; cat'], given, stream=False)
        assert (done.success, done.stdout) == (True, "/tmp\nb c\nin")
        done = await run(["echo", "it's", "$HOME", "two  spaces"], options(ExecRemoteAwaitableOptions), stream=False)
        assert done.stdout == "it's $HOME two  spaces\n"
        done = await run(["no-such-program"], options(ExecRemoteAwaitableOptions), stream=False)
        assert (done.returncode, "not found" in done.stderr) == (127, True)
        return True

    assert sandbox.run(body) == [True]


def test_streamed(sandbox):
    async def body(n):
        process = await current().exec_remote(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done; exit 4"], options())
        assert process.pid > 0
        return await collect(process)

    assert sandbox.run(body) == [("1\n2\n3\n", "", 4)]


def test_stdin_stays_open(sandbox):
    async def body(n):
        process = await current().exec_remote(["cat"], options(stdin_open=True))
        await process.write_stdin("one\n")
        await process.write_stdin(b"two\n")
        await process.close_stdin()
        await process.close_stdin()
        return await collect(process)

    assert sandbox.run(body) == [("one\ntwo\n", "", 0)]


def test_much_output(sandbox):
    async def body(n):
        process = await current().exec_remote(["sh", "-c", "yes 12345678 | head -c 20000000; echo >&2 end"], options())
        out, err, code = await collect(process)
        return len(out), out == "12345678\n" * (20000000 // 9) + "12345678\n"[: 20000000 % 9], err, code

    assert sandbox.run(body) == [(20000000, True, "end\n", 0)]


def test_killed(sandbox):
    """By the host, by a time limit, by a task that is cancelled: nothing of it runs on."""

    async def body(n):
        alive = ["sh", "-c", "ps -ef 2>/dev/null || ps"]
        run = current().exec_remote
        process = await run(["sh", "-c", "sleep 7654 & sleep 7654"], options())
        await process.kill()
        await process.kill()
        with pytest.raises(TimeoutError):
            await run(["sleep", "7654"], options(ExecRemoteAwaitableOptions, timeout=1), stream=False)
        with anyio.move_on_after(1):
            await run(["sleep", "7654"], options(ExecRemoteAwaitableOptions), stream=False)
        deadline = time.monotonic() + 10
        while "sleep 7654" in (left := (await current().exec(alive)).stdout) and time.monotonic() < deadline:
            await anyio.sleep(0.1)
        return [line for line in left.splitlines() if "sleep 7654" in line]

    assert sandbox.run(body) == [[]]


def test_many_at_once(sandbox):
    async def body(n):
        results = {}

        async def one(number):
            command = ["sh", "-c", f"echo {number}; sleep 0.3; exit {number}"]
            results[number] = await current().exec_remote(command, options(ExecRemoteAwaitableOptions), stream=False)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
        return [(done.stdout, done.returncode) for _, done in sorted(results.items())]

    assert sandbox.run(body) == [[(f"{n}\n", n) for n in range(20)]]
