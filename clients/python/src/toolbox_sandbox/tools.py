"""The other tools of a target: editor, MCP servers, browser, ports."""
from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from .connection import ByteStream, Connection
from .errors import ConnectionLost
from .results import Page
from .wire import StrPath

READ_AT_ONCE = 1 << 16


class AsyncEditor:
    """Files viewed and edited exactly: bytes outside of an edit stay. The answers are text for a model."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _edit(self, command: str, path: StrPath | None, **params: Any) -> str:
        given = {name: value for name, value in {"path": path, **params}.items() if value is not None}
        return str(await self._connection.call("text_editor", {"command": command, **given}))

    async def view(self, path: StrPath, lines: tuple[int, int] | None = None) -> str:
        """A file with numbers, or some of its lines (from 1; -1: the last); of a directory what is in it."""
        return await self._edit("view", path, view_range=list(lines) if lines else None)

    async def create(self, path: StrPath, text: str, *, overwrite: bool = False, parents: bool = False) -> str:
        return await self._edit("create", path, file_text=text, overwrite=overwrite, parents=parents)

    async def replace(self, path: StrPath, old: str, new: str, *, everywhere: bool = False) -> str:
        """Text that is there exactly once, or `everywhere`, by another one."""
        return await self._edit("str_replace", path, old_str=old, new_str=new, replace_all=everywhere)

    async def insert(self, path: StrPath, line: int, text: str) -> str:
        """Text behind a line; 0: in front of all."""
        return await self._edit("insert", path, insert_line=line, insert_text=text)

    async def many(self, edits: Sequence[Mapping[str, Any]]) -> str:
        """Several edits, all or none: objects with the params of `str_replace`, `insert` or `create` (docs/protocol.md)."""
        return await self._edit("edit_many", None, edits=[dict(edit) for edit in edits])

    async def patch(self, patch: str, path: StrPath | None = None) -> str:
        """A unified diff, git's too, or a text from `*** Begin Patch` to `*** End Patch`: all of it or nothing. `path`: where its names begin."""
        return await self._edit("apply_patch", path, patch=patch)

    async def undo(self, path: StrPath) -> str:
        return await self._edit("undo_edit", path)


class AsyncMcpServer:
    """An MCP server that runs in the target. `async with` ends it."""

    def __init__(self, connection: Connection, session_id: int) -> None:
        self._connection = connection
        self.session_id = session_id
        self._last = 0

    async def __aenter__(self) -> AsyncMcpServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._connection.closed:
            await self.kill()

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The server's response, whole: with `result` or `error`."""
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": dict(params or {})}
        got: dict[str, Any] = await self._connection.call("mcp_send_request", {"session_id": self.session_id, "request": message})
        return got

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        await self._connection.call("mcp_send_notification", {"session_id": self.session_id, "notification": message})

    async def kill(self) -> None:
        await self._connection.call("mcp_kill_server", {"session_id": self.session_id})


class AsyncMcp:
    """MCP servers in the target."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def launch(self, command: str, args: Sequence[str] = (), *, env: Mapping[str, str] | None = None, cwd: StrPath | None = None, user: str | None = None) -> AsyncMcpServer:
        server: dict[str, Any] = {"command": command, "args": list(args)}
        server.update({name: value for name, value in (("env", env and dict(env)), ("cwd", cwd)) if value is not None})
        params = {"server_params": server, **({} if user is None else {"user": user})}
        return AsyncMcpServer(self._connection, await self._connection.call("mcp_launch_server", params))


class AsyncBrowser:
    """A browser session (Chromium, where the target has it). What it gives are pages as text."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._name: str | None = None

    async def call(self, method: str, **params: Any) -> Any:
        """Any of the web_ methods, by its name without that: `call("press", key="Enter")`. The first one begins the session."""
        if self._name is None:
            self._name = (await self._connection.call("web_new_session", {}))["session_name"]
        return await self._connection.call(f"web_{method}", {"session_name": self._name, **params})

    async def go(self, url: str) -> Page:
        page: Page = await self.call("go", url=url)
        return page

    async def click(self, element_id: int) -> Page:
        page: Page = await self.call("click", element_id=element_id)
        return page

    async def type(self, element_id: int, text: str) -> Page:
        page: Page = await self.call("type", element_id=element_id, text=text)
        return page

    async def screenshot(self, *, full_page: bool = False) -> bytes:
        """A PNG."""
        return base64.b64decode((await self.call("screenshot", full_page=full_page))["data"])

    async def close(self) -> None:
        if self._name is not None:
            await self.call("close_session")
            self._name = None


class AsyncForward:
    """A port of this machine that leads to one of the target's, until it is closed (`async with`)."""

    def __init__(self, connection: Connection, leads_to: str) -> None:
        self._connection, self._leads_to = connection, leads_to
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, host, port)

    @property
    def port(self) -> int:
        """The port here, also where the system chose it."""
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> AsyncForward:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for client in list(self._clients):
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._clients.add(task)
        stream = await self._connection.stream({"connect": self._leads_to})
        out = asyncio.create_task(_send(reader, stream))
        try:
            while data := await stream.read():
                writer.write(data)
                await writer.drain()
            writer.write_eof()
            await out
        except (ConnectionLost, OSError):
            writer.transport.abort()
        finally:
            out.cancel()
            stream.reset()
            writer.close()
            self._clients.discard(task)


async def _send(reader: asyncio.StreamReader, stream: ByteStream) -> None:
    with contextlib.suppress(ConnectionLost, OSError):
        while data := await reader.read(READ_AT_ONCE):
            await stream.write(data)
        await stream.end()
