"""A program in the target, as if it ran here."""
from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal as signals
import struct
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .connection import ByteStream, Connection
from .errors import CannotRun, ConnectionLost, OutputLimit, RunFailed, RunTimeout
from .wire import RUN_DATA_MAX, Message, RunWire, StrPath, run_frame

STDIN_MAX = 1 << 19  # bytes of stdin that may be on their way
TIMED_OUT = 124
CANNOT = 125

Output = tuple[Literal["stdout", "stderr"], bytes]


@dataclass(frozen=True)
class Completed:
    """How a program ended: its status (128 + N: signal N) and what it said."""

    argv: list[str]
    status: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def text(self) -> str:
        """What it said on stdout, as text."""
        return self.stdout.decode()


@dataclass(frozen=True)
class Program:
    """What is to be run: as whom, where, with what, for how long."""

    argv: Sequence[StrPath]
    env: Mapping[str, str] | None = None
    cwd: StrPath | None = None
    user: str | None = None
    timeout: float | None = None
    stdin: bool = False

    def words(self) -> list[str]:
        return words_of(self.argv)

    def leads_to(self) -> Message:
        timeout = None if self.timeout == math.inf else self.timeout
        members = {"argv": self.words(), "env": self.env and dict(self.env), "cwd": self.cwd, "user": self.user, "timeout": timeout}
        return {"run": {"stdin_open": self.stdin, **{name: value for name, value in members.items() if value is not None}}}


def words_of(argv: Sequence[StrPath]) -> list[str]:
    """A command line as it is sent. A string is a sequence of strings as well, and never what was meant."""
    if isinstance(argv, (str, bytes)):
        raise TypeError(f'argv is a list of words, not {argv!r}; a line for a shell is ["sh", "-c", {argv!r}]')
    return [os.fspath(word) for word in argv]


class AsyncProcess:
    """A program that runs. Iterating over it gives what it says; afterwards `status` is there.

    It ends with the `async with` in which it was begun, with all that it has started.
    """

    def __init__(self, program: Program, stream: ByteStream, began: float) -> None:
        self.program = program
        self.status: int | None = None
        self._stream = stream
        self._began = began
        self._held = 0  # bytes of stdin that it hasn't taken, as far as was told
        self._taken = asyncio.Event()
        stream.when_reset = self._taken.set

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stream.reset()

    async def __aiter__(self) -> AsyncIterator[Output]:
        wire = RunWire()
        while self.status is None:
            data = await self._read()
            for kind, said in wire.feed(data):
                if kind == b"o":
                    yield "stdout", said
                elif kind == b"e":
                    yield "stderr", said
                else:
                    self._take(kind, said)
        self._stream.reset()

    async def _read(self) -> bytes:
        try:
            data = await self._stream.read()
        except ConnectionLost as error:
            if self._stream.connection_lost:
                raise
            raise CannotRun(CANNOT, str(error)) from error  # it was refused: there is no such user
        if not data:
            raise ConnectionLost("the program's end was not told")
        return data

    def _take(self, kind: bytes, said: bytes) -> None:
        if kind == b"t":
            self._held -= int.from_bytes(said, "big")
        elif kind == b"x":
            self.status = said[0]
        elif kind == b"f":
            raise CannotRun(said[0], said[1:].decode(errors="replace"))
        self._taken.set()

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because its time was over."""
        limit = self.program.timeout
        return self.status == TIMED_OUT and limit is not None and time.monotonic() - self._began >= limit

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    async def write(self, data: bytes) -> None:
        """Bytes for its stdin (`stdin=True`); waits while too many are on their way. Somebody has to iterate meanwhile."""
        for start in range(0, len(data), RUN_DATA_MAX):
            part = data[start : start + RUN_DATA_MAX]
            while self._held + len(part) > STDIN_MAX and self.status is None and self._stream.reset_because is None:
                self._taken.clear()
                await self._taken.wait()
            self._held += len(part)
            await self._send(b"i", part)

    async def close_stdin(self) -> None:
        await self._send(b"i")

    async def signal(self, number: int = signals.SIGTERM) -> None:
        """For its process group."""
        await self._send(b"s", bytes([number]))

    async def resize(self, rows: int, cols: int) -> None:
        await self._send(b"z", struct.pack(">HH", rows, cols))

    async def _send(self, kind: bytes, data: bytes = b"") -> None:
        if self.status is not None:
            raise ConnectionLost(f"{self.program.words()[0]} has ended")
        await self._stream.write(run_frame(kind, data))


async def begin(connection: Connection, program: Program) -> AsyncProcess:
    began = time.monotonic()  # not later than there, where its time is measured
    try:
        stream = await connection.stream(program.leads_to())
    except ValueError as error:
        raise CannotRun(CANNOT, str(error)) from error
    return AsyncProcess(program, stream, began)


async def _feed(process: AsyncProcess, data: bytes) -> None:
    with contextlib.suppress(ConnectionLost):  # it has closed its stdin, or ended
        await process.write(data)
        await process.close_stdin()


@dataclass(frozen=True)
class Limits:
    """Bytes of each stream: more than `most` are an error, of more than `last` the last ones are kept."""

    most: int | None = None
    last: int | None = None


class _Said:
    """What a program has said, within the limits."""

    def __init__(self, argv: list[str], limits: Limits) -> None:
        self._argv, self._limits = argv, limits
        self._streams = {"stdout": bytearray(), "stderr": bytearray()}

    def take(self, name: str, data: bytes) -> None:
        stream, most, last = self._streams[name], self._limits.most, self._limits.last
        stream += data
        if most is not None and len(stream) > most:
            stdout, stderr = self.both()
            raise OutputLimit(self._argv, most, stdout[:most], stderr[:most])
        if last is not None and len(stream) > 2 * last:
            del stream[:-last or len(stream)]

    def both(self) -> tuple[bytes, bytes]:
        last = self._limits.last
        stdout, stderr = (bytes(stream if last is None else stream[max(len(stream) - last, 0) :]) for stream in self._streams.values())
        return stdout, stderr


async def run(connection: Connection, program: Program, input: bytes | None, check: bool, limits: Limits) -> Completed:
    """Runs it to its end. Cancelling ends it, with all that it has started."""
    argv = program.words()
    said = _Said(argv, limits)
    async with await begin(connection, program) as process:
        feeding = asyncio.create_task(_feed(process, input)) if input is not None else None
        try:
            async for name, data in process:
                said.take(name, data)
        finally:
            if feeding:
                feeding.cancel()
    stdout, stderr = said.both()
    if process.timed_out:
        raise RunTimeout(argv, program.timeout or 0, stdout, stderr)
    status = process.status if process.status is not None else 0
    if check and status:
        raise RunFailed(argv, status, stdout, stderr)
    return Completed(argv, status, stdout, stderr, process.seconds)
