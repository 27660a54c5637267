"""A shell session, or one of any interpreter: it keeps its directory, its variables and its jobs."""
from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from .connection import Connection


@dataclass(frozen=True)
class ShellResult:
    """What became of a command: `completed`, `timeout` (it runs on, and `run()` without a command waits for it), `awaiting_input`
    (it waits for something to be sent), or that the session has ended."""

    state: str
    exit_code: int | None
    output: str
    cwd: str | None
    duration_ms: int | None
    omitted_bytes: int
    error: Any
    notice: str | None


class AsyncShell:
    """A session. It lives on in the target until it is closed; `async with` closes it."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    async def __aenter__(self) -> AsyncShell:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._connection.closed:
            await self.close()

    async def _call(self, method: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return await self._connection.call(method, {"session_name": self.name, **given})

    async def run(
        self, command: str | None = None, *, timeout: float | None = None, max_output_bytes: int | None = None, leave_running: bool = False
    ) -> ShellResult:
        """Runs a command and waits for its end; without one it waits on for what runs. Cancelling interrupts it, unless it is to be left running."""
        got = await self._call("bash_session_run", command=command, timeout=timeout, max_output_bytes=max_output_bytes, interrupt_abandoned=not leave_running)
        return ShellResult(
            got["state"], got.get("exit_code"), got["output"], got.get("cwd"), got.get("duration_ms"), got.get("omitted_bytes", 0), got.get("error"), got.get("notice")
        )

    async def send(self, text: str, *, wait_for_output: int = 5, idle_timeout: float = 0.5) -> str:
        """Types text as a person would, and gives what came of it: waits so many seconds for the first of it, and then until nothing more comes for so long."""
        return str(await self._call("bash_session", input=text, wait_for_output=wait_for_output, idle_timeout=idle_timeout))

    async def interrupt(self) -> None:
        """As Ctrl-C does, for what runs in the foreground."""
        await self.signal("INT")

    async def signal(self, name: str) -> None:
        await self._call("bash_session_signal", signal=name)

    async def resize(self, rows: int, cols: int) -> None:
        await self._call("bash_session_resize", rows=rows, cols=cols)

    async def restart(self) -> str:
        """A new shell in the place of this one, under the same name."""
        return str(await self._call("bash_session", restart=True))

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """What is shown and typed there from now on, without taking output from anybody."""
        async with aclosing(self._connection.subscribe("bash_session_watch", {"session_name": self.name})) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._call("bash_session_close")
