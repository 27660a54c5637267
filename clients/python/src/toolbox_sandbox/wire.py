"""The bytes of a connection: lines of JSON, and between them frames of byte streams (docs/connection.md, "Streams").

Nothing here reads or writes, so that it can be tried byte by byte.
"""
from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, Union

FRAME = 2
FRAME_HEAD = struct.Struct(">BcII")
RUN_HEAD = 4
FRAME_DATA_MAX = 65_536
FRAME_OPEN_MAX = 1 << 21
STREAMS_MAX = 1024
RUN_DATA_MAX = 65_000
WINDOW_FIRST = 65_536
WINDOW_MAX = 1 << 20


class Frame(NamedTuple):
    """A part of a byte stream: kind `d` (bytes), `w` (a window), `e` (an end) or `r` (a reset)."""

    kind: bytes
    number: int
    data: bytes


Message = dict[str, Any]
Arrived = Union[Message, Frame]
StrPath = Union[str, "os.PathLike[str]"]


def line(*messages: Message) -> bytes:
    """The messages as they are sent, a line each."""
    return b"".join(json.dumps(message, separators=(",", ":"), allow_nan=False, default=_path).encode() + b"\n" for message in messages)


def _path(value: Any) -> str:
    """What JSON has no word for, but we have: paths."""
    path = value.__fspath__() if hasattr(value, "__fspath__") else None
    if isinstance(path, str):
        return path
    raise TypeError(f"{value!r} can't be sent: it is neither text, a number, a path, a list nor a dict")


def frame(kind: bytes, number: int, data: bytes = b"") -> bytes:
    return FRAME_HEAD.pack(FRAME, kind, number, len(data)) + data


def run_frame(kind: bytes, data: bytes = b"") -> bytes:
    """A frame within the stream of a program."""
    return kind + len(data).to_bytes(3, "big") + data


class Wire:
    """Cuts what comes into messages and frames. Signs of life, empty lines and batches' shells are left out."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._looked = 0  # bytes of a line that is not whole in which there is no end

    def feed(self, data: bytes) -> Iterator[Arrived]:
        self._rest += data
        while (arrived := self._next()) is not None:
            yield from arrived

    def _next(self) -> list[Arrived] | None:
        """What the bytes begin with, None where it isn't whole yet."""
        if not self._rest:
            return None
        return self._frame() if self._rest[0] == FRAME else self._line()

    def _frame(self) -> list[Arrived] | None:
        if len(self._rest) < FRAME_HEAD.size:
            return None
        _, kind, number, length = FRAME_HEAD.unpack_from(self._rest)
        end = FRAME_HEAD.size + length
        if len(self._rest) < end:
            return None
        data = bytes(self._rest[FRAME_HEAD.size : end])
        del self._rest[:end]
        return [Frame(kind, number, data)]

    def _line(self) -> list[Arrived] | None:
        end = self._rest.find(b"\n", self._looked)
        if end < 0:
            self._looked = len(self._rest)
            return None
        text = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._looked = 0
        if not text.strip():
            return []
        message = json.loads(text)
        return [message] if message.get("method") != "rpc.alive" else []


class RunWire:
    """Cuts the bytes of a program's stream into its frames."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._rest += data
        while len(self._rest) >= RUN_HEAD:
            end = RUN_HEAD + int.from_bytes(self._rest[1:RUN_HEAD], "big")
            if len(self._rest) < end:
                return
            kind, taken = bytes(self._rest[:1]), bytes(self._rest[RUN_HEAD:end])
            del self._rest[:end]
            yield kind, taken
