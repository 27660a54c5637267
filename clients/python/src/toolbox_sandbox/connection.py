"""One connection, any number of calls, subscriptions and byte streams at once (docs/connection.md)."""
from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from .calling import end_process
from .errors import CannotConnect, ConnectionLost, InvalidParams, of_answer
from .wire import FRAME_DATA_MAX, FRAME_OPEN_MAX, STREAMS_MAX, WINDOW_FIRST, WINDOW_MAX, Frame, Message, Wire, frame, line

READ_AT_ONCE = 1 << 18
SOCKET_PATH_MAX = 107  # bytes that the kernel takes
LEAVES_AFTER_S = 5  # the command of a stream that has ended: then it is told to end, and after as long again it is killed
ACK_AFTER_S = 0.05  # how long an answer may wait for a request that takes its acknowledgement along


@contextlib.contextmanager
def _reached(path: str) -> Generator[str, None, None]:
    """What leads to a socket whatever the length of its path."""
    if len(os.fsencode(path)) <= SOCKET_PATH_MAX:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


class Connection:
    """A client of a kept connection's socket, or of any `toolbox exec --stream`. Made by `open` or `over`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: asyncio.subprocess.Process | None) -> None:
        self._reader, self._writer, self._process = reader, writer, process
        self._loop = asyncio.get_running_loop()
        self._draining = asyncio.Lock()  # Python 3.10 lets one wait at a time
        self._may_call = asyncio.Semaphore(1)
        self._may_stream = asyncio.Semaphore(STREAMS_MAX)
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._sizes: dict[int, int] = {}  # bytes of the requests that are open
        self._subscriptions: dict[int, asyncio.Queue[Message | None]] = {}
        self._streams: dict[int, ByteStream] = {}
        self._arrived: list[int] = []  # ids of answers that are to be acknowledged
        self._ack: asyncio.TimerHandle | None = None
        self._hello: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._why = "the connection was closed"
        self._read_task = asyncio.create_task(self._read())
        self.hello: Message = {}
        _open.add(self)

    @classmethod
    async def open(cls, socket: str) -> Connection:
        """A connection to a socket that `toolbox connect` keeps."""
        try:
            with _reached(socket) as path:
                reader, writer = await asyncio.open_unix_connection(path)
        except OSError as error:
            raise CannotConnect(f"the connection has ended while it was being used for the first time ({error}): try again") from error
        return await cls(reader, writer, None)._greeted()

    @classmethod
    async def over(cls, command: list[str]) -> Connection:
        """A connection over a command that ends in `toolbox exec --stream`, wherever that runs."""
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
        except OSError as error:
            raise CannotConnect(f"{command[0]}: {error.strerror}") from error
        assert process.stdin and process.stdout
        return await cls(process.stdout, process.stdin, process)._greeted()

    async def _greeted(self) -> Connection:
        try:
            self.hello = await self._hello
            self._may_call = asyncio.Semaphore(self.hello["limits"]["open"])
        except BaseException:
            if self._process:
                end_process(self._process, signal.SIGTERM)
            await self.close()
            raise
        return self

    @property
    def closed(self) -> bool:
        return self._read_task.done()

    # ---- calls ----

    async def call(self, method: str, params: Message | None = None) -> Any:
        """The result of a call. One that is cancelled is cancelled there too: what it waited for goes on, and its answer can be had again."""
        self._check()
        async with self._may_call:
            id, answered = next(self._ids), self._loop.create_future()
            self._waiting[id] = answered
            try:
                self._request(id, method, params)
                await self._drain()
                return await answered
            except asyncio.CancelledError:
                self._notify("rpc.cancel", {"id": id})
                raise
            finally:
                self._forget_call(id)

    async def subscribe(self, method: str, params: Message) -> AsyncGenerator[Message, None]:
        """What a `_follow` or `_watch` method tells. An event is acknowledged when the next one is asked for."""
        self._check()
        id, answered = next(self._ids), self._loop.create_future()
        events: asyncio.Queue[Message | None] = asyncio.Queue()
        self._waiting[id], self._subscriptions[id] = answered, events
        answered.add_done_callback(lambda _: events.put_nowait(None))
        try:
            self._request(id, method, params)
            while (event := await events.get()) is not None:
                yield event["event"]
                self._notify("rpc.ack", {"subscription": id, "seq": event["seq"]})
            yield answered.result()
        finally:
            if not answered.done():
                self._notify("rpc.cancel", {"id": id})
                answered.cancel()
            self._forget_call(id)
            self._subscriptions.pop(id, None)

    def _check(self) -> None:
        """Who may use it: a fork would speak between what this process says, and another loop is never woken."""
        if self._loop is not asyncio.get_running_loop():
            raise ConnectionLost("the connection is another process's or event loop's: connect here, too")
        if self.closed:
            raise ConnectionLost(self._why)

    def _request(self, id: int, method: str, params: Message | None) -> None:
        self._check()
        message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        data = line(message)
        most = self.hello["limits"]["line"]
        if len(data) > most:
            raise InvalidParams(-32602, f"the params are too long: {len(data)} bytes with the rest of the call, of at most {most}")
        self._sizes[id] = len(data)
        self._writer.write(self._acks() + data)

    def _forget_call(self, id: int) -> None:
        self._waiting.pop(id, None)
        self._sizes.pop(id, None)

    async def _drain(self) -> None:
        """Waits while too much is on its way."""
        try:
            async with self._draining:
                await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(self._why if self.closed else f"the connection has ended: {error.strerror or error}") from error

    def _notify(self, method: str, params: Message) -> None:
        if not self.closed and not self._writer.is_closing():
            self._writer.write(line({"jsonrpc": "2.0", "method": method, "params": params}))

    def _acks(self) -> bytes:
        """The acknowledgement of what has arrived, as a line in front of another one."""
        if self._ack:
            self._ack.cancel()
            self._ack = None
        ids, self._arrived = self._arrived, []
        return line({"jsonrpc": "2.0", "method": "rpc.ack", "params": {"ids": ids}}) if ids else b""

    def _flush_acks(self) -> None:
        if not self.closed and not self._writer.is_closing():
            self._writer.write(self._acks())

    # ---- byte streams ----

    async def stream(self, leads_to: Message) -> ByteStream:
        """A byte stream to a program, a port or a listener there."""
        self._check()
        where = line(leads_to)[:-1]
        if len(where) > FRAME_OPEN_MAX:
            raise ValueError(f"argv and env are too long: {len(where)} bytes, of at most {FRAME_OPEN_MAX}")
        await self._may_stream.acquire()
        try:
            self._check()
        except BaseException:
            self._may_stream.release()
            raise
        number = next(self._ids)
        opened = self._streams[number] = ByteStream(self, number)
        self._writer.write(frame(b"o", number, where))
        opened.grant(WINDOW_MAX - WINDOW_FIRST)
        try:
            await self._drain()
        except BaseException:
            opened.reset()
            raise
        return opened

    async def send_frame(self, kind: bytes, number: int, data: bytes = b"") -> None:
        """For ByteStream: a frame of an open stream."""
        self.put_frame(kind, number, data)
        if not self.closed:
            await self._drain()

    def put_frame(self, kind: bytes, number: int, data: bytes = b"") -> None:
        """The same without waiting for who reads it."""
        if not self.closed and not self._writer.is_closing():
            self._writer.write(frame(kind, number, data))

    def forget(self, number: int) -> None:
        """For ByteStream: it is over."""
        if self._streams.pop(number, None):
            self._may_stream.release()

    # ---- what comes ----

    async def _read(self) -> None:
        wire = Wire()
        try:
            while data := await self._reader.read(READ_AT_ONCE):
                for arrived in wire.feed(data):
                    if isinstance(arrived, Frame):
                        self._take_frame(arrived)
                    else:
                        self._take_message(arrived)
            self._end("the connection has ended")
        except (OSError, ValueError) as error:
            self._end(f"the connection has ended: {error}")
        finally:
            self._writer.close()

    def _take_frame(self, arrived: Frame) -> None:
        stream = self._streams.get(arrived.number)
        if stream:
            stream.take(arrived.kind, arrived.data)

    def _take_message(self, message: Message) -> None:
        method, id = message.get("method"), message.get("id")
        if method == "rpc.hello":
            self._hello.set_result(message["params"])
        elif method == "rpc.event":
            events = self._subscriptions.get(message["params"]["subscription"])
            if events:
                events.put_nowait(message["params"])
        elif method == "rpc.ended":
            self._why = f"the connection has ended: {message['params'].get('reason', '')}"
        elif method is None and isinstance(id, int):
            self._take_answer(id, message)
        elif method is None and self._sizes:  # a line that could not be read, so nobody knows whose: too long, as the longest would be
            self._take_answer(max(self._sizes, key=lambda one: self._sizes[one]), message)

    def _take_answer(self, id: int, message: Message) -> None:
        answered = self._waiting.get(id)
        if answered is None or answered.done():
            return  # it was cancelled, and crossed that on its way: it has not arrived
        self._arrived.append(id)
        if self._ack is None:
            self._ack = asyncio.get_running_loop().call_later(ACK_AFTER_S, self._flush_acks)
        if "error" in message:
            answered.set_exception(of_answer(message["error"]))
        else:
            answered.set_result(message.get("result"))

    def _end(self, why: str) -> None:
        if self._why == "the connection was closed":
            self._why = why
        lost = ConnectionLost(self._why)
        for future in [self._hello, *self._waiting.values()]:
            if not future.done():
                future.set_exception(lost)
                future.exception()  # nobody need have waited for it
        for stream in list(self._streams.values()):
            stream.take(b"r", self._why.encode())

    def lead_to(self, descriptor: int) -> None:
        """What is written from now on goes there."""
        for name in ("socket", "pipe"):
            end: Any = self._writer.get_extra_info(name)
            if end is not None and end.fileno() >= 0:
                os.dup2(descriptor, end.fileno(), inheritable=False)

    async def close(self) -> None:
        """Ends it. What runs there goes on; what wasn't acknowledged is there for the next one."""
        if self._loop is not asyncio.get_running_loop():
            return  # it is not ours to end
        if not self.closed:
            with contextlib.suppress(OSError):
                self._writer.write(self._acks())
                self._writer.write_eof()
                await self._writer.drain()
        _open.discard(self)
        self._writer.close()
        self._read_task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._read_task
        self._end("the connection was closed")
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        if self._process:
            await _dismissed(self._process)


async def _dismissed(process: asyncio.subprocess.Process) -> None:
    """Ends a command that has nothing to do any more, where it doesn't end by itself."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            await asyncio.wait_for(process.communicate(), LEAVES_AFTER_S)  # its pipe is read to the end, else it stays open
            return
        except asyncio.TimeoutError:
            end_process(process, number)
    await process.wait()


_open: weakref.WeakSet[Connection] = weakref.WeakSet()


def _let_go_in_fork() -> None:
    """A fork lets go of the connections, so that they end with the process that has made them; their numbers are kept for who closes them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for connection in list(_open):
        connection.lead_to(nowhere)
    os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_fork)


class ByteStream:
    """Bytes both ways with an end each, and a window so that who doesn't read holds up no other."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection, self._number = connection, number
        self._room = WINDOW_FIRST  # bytes that may be sent
        self._came: deque[bytes] = deque()
        self._read = 0  # bytes that were read since the last grant
        self._stirred = asyncio.Event()
        self._ended = self._sent_end = False
        self.reset_because: str | None = None
        self.when_reset: Callable[[], None] | None = None

    @property
    def connection_lost(self) -> bool:
        return self._connection.closed

    def grant(self, n: int) -> None:
        self._connection.put_frame(b"w", self._number, n.to_bytes(4, "big"))

    def take(self, kind: bytes, data: bytes) -> None:
        """For Connection: a frame that has come."""
        if kind == b"d":
            self._came.append(data)
        elif kind == b"w":
            self._room += int.from_bytes(data, "big")
        elif kind == b"e":
            self._ended = True
        elif kind == b"r":
            self._ended, self.reset_because = True, data.decode(errors="replace")
            if self.when_reset:
                self.when_reset()
        if self.reset_because is not None or (self._ended and self._sent_end):
            self._connection.forget(self._number)
        self._stirred.set()

    async def _stir(self) -> None:
        self._stirred.clear()
        await self._stirred.wait()

    async def read(self) -> bytes:
        """Some bytes; b"" at the end. Raises ConnectionLost where the other side has reset it."""
        while not self._came:
            if self.reset_because is not None:
                raise ConnectionLost(self.reset_because)
            if self._ended:
                return b""
            await self._stir()
        data = self._came.popleft()
        self._read += len(data)
        if self._read >= WINDOW_MAX // 4 and not self._ended:
            self.grant(self._read)
            self._read = 0
        return data

    async def write(self, data: bytes) -> None:
        """Returns when all of it is on its way."""
        rest = memoryview(data)
        while rest:
            if self.reset_because is not None:
                raise ConnectionLost(self.reset_because)
            n = min(len(rest), self._room, FRAME_DATA_MAX)
            if n == 0:
                await self._stir()
                continue
            self._room -= n
            await self._connection.send_frame(b"d", self._number, bytes(rest[:n]))
            rest = rest[n:]

    async def end(self) -> None:
        """No more will be written."""
        if not self._sent_end and self.reset_because is None:
            self._sent_end = True
            await self._connection.send_frame(b"e", self._number)
            if self._ended:
                self._connection.forget(self._number)

    def reset(self) -> None:
        """Ends it in both directions, at once."""
        if self.reset_because is None and not (self._ended and self._sent_end):
            self._connection.put_frame(b"r", self._number, b"the client has gone")
            self.take(b"r", b"it was reset here")
