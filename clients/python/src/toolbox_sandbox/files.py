"""Files of a target as bytes and text, without a shell or a tool of its own (docs/files.md)."""
from __future__ import annotations

import asyncio
import base64
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from .calling import Place
from .connection import Connection
from .errors import ToolboxError
from .results import Change, Copied, Entry, Found, SearchResult, Stat
from .wire import StrPath

AT_ONCE = 1 << 20  # bytes that one call brings or takes
KEPT_MAX = 10_000  # changes that nobody has taken: then no more are asked for
KEPT_LOOK_S = 0.1


class AsyncWatch:
    """A watch. Iterating over it gives what has become of each path, as it differs when a burst of changes is over (30 ms), until the directory is gone."""

    def __init__(self, events: AsyncGenerator[dict[str, Any], None], first: dict[str, Any]) -> None:
        self._last = first
        self._changes: deque[Change] = deque()
        self._stirred = asyncio.Event()
        self._over = False
        self._failed: ToolboxError | None = None
        self._task = asyncio.create_task(self._take(events))

    @property
    def incomplete(self) -> bool:
        """Whether something below it can't be read or watched."""
        return bool(self._last["incomplete"])

    async def _take(self, events: AsyncGenerator[dict[str, Any], None]) -> None:
        """The watch goes on while nobody iterates."""
        try:
            async for event in events:
                self._last = event
                self._changes.extend(event["changes"])
                self._stirred.set()
                while len(self._changes) > KEPT_MAX:
                    await asyncio.sleep(KEPT_LOOK_S)
        except ToolboxError as error:
            self._failed = error
        finally:
            self._over = True
            self._stirred.set()

    async def __aiter__(self) -> AsyncIterator[Change]:
        while True:
            while self._changes:
                yield self._changes.popleft()
            if self._failed:
                raise self._failed
            if self._over:
                return
            self._stirred.clear()
            await self._stirred.wait()

    async def end(self) -> str:
        """For AsyncFiles: no more is taken. Gives what names it."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        return str(self._last["cursor"])


class AsyncFiles:
    """Each call takes `user`: as whom it is done, by name. What can't be done is a FileError, which has a kind."""

    def __init__(self, connection: Connection, place: Place | None) -> None:
        self._connection, self._place = connection, place

    async def _call(self, method: str, path: StrPath, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return await self._connection.call(f"file_{method}", {"path": path, **given})

    async def read(self, path: StrPath, *, limit: int | None = None, user: str | None = None) -> bytes:
        """All of it; at most `limit` bytes where that is given."""
        parts: list[bytes] = []
        n = 0
        while limit is None or n < limit:
            length = AT_ONCE if limit is None else min(AT_ONCE, limit - n)
            got = await self._call("read", path, offset=n, length=length, encoding="base64", user=user)
            parts.append(base64.b64decode(got["data"]))
            n += len(parts[-1])
            if len(parts[-1]) < length:
                break
        return b"".join(parts)

    async def read_text(self, path: StrPath, *, user: str | None = None) -> str:
        return (await self.read(path, user=user)).decode()

    async def write(self, path: StrPath, data: bytes | str, *, mode: int | None = None, parents: bool = False, user: str | None = None) -> None:
        """All of it. Up to a megabyte at once: others see the old file or the new one; what is larger is written in parts."""
        data = data.encode() if isinstance(data, str) else data
        for start in range(0, max(len(data), 1), AT_ONCE):
            part = base64.b64encode(data[start : start + AT_ONCE]).decode()
            more = {"append": True} if start else {"mode": mode, "parents": parents or None}
            await self._call("write", path, data=part, encoding="base64", user=user, **more)

    async def stat(self, path: StrPath, *, follow: bool = True, user: str | None = None) -> Stat:
        got: Stat = await self._call("stat", path, follow=follow, user=user)
        return got

    async def list(self, path: StrPath, *, depth: int | None = None, glob: str | None = None, user: str | None = None) -> AsyncIterator[Entry]:
        """What is below it, in the order of bytes."""
        after: Any = None
        while True:
            got = await self._call("list", path, depth=depth, glob=glob, after=after, user=user)
            for entry in got["entries"]:
                yield entry
            after = got.get("next")
            if after is None:
                return

    @asynccontextmanager
    async def watch(self, path: StrPath, *, exclude: Sequence[str] = (), recursive: bool = True, user: str | None = None) -> AsyncGenerator[AsyncWatch, None]:
        """What changes in a directory or a file, for `async for` in an `async with`, from whose begin on nothing is missed."""
        params: dict[str, Any] = {"path": path, "exclude": list(exclude) or None, "recursive": recursive, "user": user}
        given = {name: value for name, value in params.items() if value is not None}
        async with aclosing(self._connection.subscribe("file_watch", given)) as events:
            watch = AsyncWatch(events, await events.__anext__())
            try:
                yield watch
            finally:
                cursor = await watch.end()
                with suppress(ToolboxError):  # it has ended, with what was watched or the connection
                    await self._connection.call("file_watch", {"cursor": cursor, "stop": True})

    async def find(self, path: StrPath, pattern: str | None = None, *, type: str | None = None, hidden: bool = False, limit: int | None = None, user: str | None = None) -> Found:
        """Names below a directory that match a pattern (`*.py`, `src/**/*.c`), but for what `.gitignore` leaves out: `{paths, truncated, …}`."""
        got: Found = await self._call("find", path, pattern=pattern, type=type, hidden=hidden, limit=limit, user=user)
        return got

    async def search(
        self, path: StrPath, pattern: str, *, literal: bool = False, ignore_case: bool = False, glob: str | None = None, context: int | None = None, limit: int | None = None, user: str | None = None
    ) -> SearchResult:
        """Lines that match a regular expression, in the files that `find` finds: `{matches, truncated, …}`, a match has path, line and text."""
        params: dict[str, Any] = {"literal": literal, "ignore_case": ignore_case, "glob": glob, "context": context, "limit": limit, "user": user}
        got: SearchResult = await self._call("search", path, pattern=pattern, **params)
        return got

    async def make_dir(self, path: StrPath, *, parents: bool = False, user: str | None = None) -> None:
        await self._call("make_dir", path, parents=parents, user=user)

    async def remove(self, path: StrPath, *, recursive: bool = False, user: str | None = None) -> None:
        await self._call("remove", path, recursive=recursive, user=user)

    async def move(self, path: StrPath, to: StrPath, *, overwrite: bool = False, user: str | None = None) -> None:
        await self._call("move", path, to=to, overwrite=overwrite, user=user)

    async def copy(self, path: StrPath, to: StrPath, *, overwrite: bool = False, recursive: bool = False, user: str | None = None) -> None:
        await self._call("copy", path, to=to, overwrite=overwrite, recursive=recursive, user=user)

    async def copy_in(self, source: StrPath, to: StrPath, *, archive: bool = False, checksum: bool = False, exclude: Sequence[str] = ()) -> Copied:
        """A file or a tree of this machine into the target, as `toolbox cp -r`: into `to` where that is a directory; of `DIR/.` what is in it.

        `archive`: owners and all attributes, too; `checksum`: only what differs, and proven; `exclude`: patterns. CopyFailed where something is not there then.
        """
        return await self._copy(_here(source), os.fspath(to), True, archive, checksum, exclude)

    async def copy_out(self, source: StrPath, to: StrPath, *, archive: bool = False, checksum: bool = False, exclude: Sequence[str] = ()) -> Copied:
        """The same out of the target."""
        return await self._copy(os.fspath(source), _here(to), False, archive, checksum, exclude)

    async def _copy(self, source: str, to: str, inwards: bool, archive: bool, checksum: bool, exclude: Sequence[str]) -> Copied:
        if self._place is None:
            raise ToolboxError("trees are copied by the program `toolbox` of this host, to a target that it knows: here that is not so")
        more = ["--archive" if archive else "--recursive", *(["--checksum"] if checksum else []), *(f"--exclude={pattern}" for pattern in exclude)]
        return await self._place.copy(source, to, inwards, more)


def _here(path: StrPath) -> str:
    """A path that is taken for none of a target: absolute, and what its end says kept."""
    text = os.fspath(path)
    kept = next((end for end in ("/.", "/") if text.endswith(end)), "")
    found = os.path.abspath(text)
    return found if found == "/" else found + kept
