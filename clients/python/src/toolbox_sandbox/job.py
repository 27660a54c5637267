"""A program in the background: it outlives calls and connections, and its output waits for whoever asks."""
from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from .connection import Connection


@dataclass(frozen=True)
class JobOutput:
    """What a job has said since the last one, and how it stands."""

    stdout: str
    stderr: str
    state: str
    exit_code: int | None


class AsyncJob:
    """A job. Iterating over it gives its output as it comes, each byte once; afterwards `exit_code` is there."""

    def __init__(self, connection: Connection, pid: int) -> None:
        self._connection = connection
        self.pid = pid
        self.exit_code: int | None = None
        self._seq = 0

    async def _call(self, method: str, **params: Any) -> Any:
        return await self._connection.call(f"exec_remote_{method}", {"pid": self.pid, **params})

    def _take(self, got: dict[str, Any]) -> JobOutput:
        self._seq = got.get("seq", self._seq)
        self.exit_code = got.get("exit_code")
        return JobOutput(got.get("stdout", ""), got.get("stderr", ""), got.get("state", "running"), self.exit_code)

    async def __aiter__(self) -> AsyncIterator[JobOutput]:
        async with aclosing(self._connection.subscribe("exec_remote_follow", {"pid": self.pid})) as events:
            async for event in events:
                yield self._take(event)

    async def wait(self, timeout: float | None = None) -> JobOutput:
        """All that nobody has had yet, at its end or when the time is over."""
        stdout, stderr = "", ""
        while True:
            params = {"ack_seq": self._seq, **({} if timeout is None else {"timeout": timeout})}
            got = self._take(await self._call("wait", **params))
            stdout, stderr = stdout + got.stdout, stderr + got.stderr
            if got.state != "running" or timeout is not None:
                return JobOutput(stdout, stderr, got.state, got.exit_code)

    async def write(self, text: str) -> JobOutput:
        """Text for its stdin (`stdin=True`), and what it has said."""
        return self._take(await self._call("write_stdin", ack_seq=self._seq, data=text))

    async def close_stdin(self) -> JobOutput:
        return self._take(await self._call("close_stdin", ack_seq=self._seq))

    async def signal(self, name: str) -> None:
        await self._call("signal", signal=name)

    async def kill(self) -> JobOutput:
        """Ends it with all that it has started, and gives what it had said."""
        return self._take(await self._call("kill", ack_seq=self._seq))
