"""Files of a target as bytes and text, without a shell or a tool of its own (docs/files.md)."""
from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

from .connection import Connection

AT_ONCE = 1 << 20  # bytes that one call brings or takes


class AsyncFiles:
    """Each call takes `user`: as whom it is done, by name. What can't be done is a FileError, which has a kind."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _call(self, method: str, path: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return await self._connection.call(f"file_{method}", {"path": path, **given})

    async def read(self, path: str, *, limit: int | None = None, user: str | None = None) -> bytes:
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

    async def read_text(self, path: str, *, user: str | None = None) -> str:
        return (await self.read(path, user=user)).decode()

    async def write(self, path: str, data: bytes | str, *, mode: int | None = None, parents: bool = False, user: str | None = None) -> None:
        """All of it. Up to a megabyte at once: others see the old file or the new one; what is larger is written in parts."""
        data = data.encode() if isinstance(data, str) else data
        for start in range(0, max(len(data), 1), AT_ONCE):
            part = base64.b64encode(data[start : start + AT_ONCE]).decode()
            more = {"append": True} if start else {"mode": mode, "parents": parents or None}
            await self._call("write", path, data=part, encoding="base64", user=user, **more)

    async def stat(self, path: str, *, follow: bool = True, user: str | None = None) -> dict[str, Any]:
        got: dict[str, Any] = await self._call("stat", path, follow=follow, user=user)
        return got

    async def list(self, path: str, *, depth: int | None = None, glob: str | None = None, user: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """What is below it, in the order of bytes."""
        after: Any = None
        while True:
            got = await self._call("list", path, depth=depth, glob=glob, after=after, user=user)
            for entry in got["entries"]:
                yield entry
            after = got.get("next")
            if after is None:
                return

    async def make_dir(self, path: str, *, parents: bool = False, user: str | None = None) -> None:
        await self._call("make_dir", path, parents=parents, user=user)

    async def remove(self, path: str, *, recursive: bool = False, user: str | None = None) -> None:
        await self._call("remove", path, recursive=recursive, user=user)

    async def move(self, path: str, to: str, *, overwrite: bool = False, user: str | None = None) -> None:
        await self._call("move", path, to=to, overwrite=overwrite, user=user)

    async def copy(self, path: str, to: str, *, overwrite: bool = False, recursive: bool = False, user: str | None = None) -> None:
        await self._call("copy", path, to=to, overwrite=overwrite, recursive=recursive, user=user)
