"""A target, and what can be done in it."""
from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from . import host, placing, program
from .calling import Place, said_by
from .connection import Connection
from .files import AsyncFiles
from .job import AsyncJob
from .methods import AsyncMethods
from .program import AsyncProcess, Completed, Limits, Program, words_of
from .results import Doctor, Hello
from .shell import AsyncShell
from .tools import AsyncBrowser, AsyncEditor, AsyncForward, AsyncMcp
from .wire import StrPath


async def eject(target: str, options: Sequence[str] = ()) -> None:
    """Stops everything that was started there, and removes the program (`toolbox eject --help`)."""
    if host.is_placing():
        await placing.eject(target, options)
        return
    await said_by(["eject", "-q", *options, "--", target])


class AsyncSandbox:
    """A container, a host or whatever else a target names. `connect` makes it, `async with` lets go of it: what runs there goes on."""

    def __init__(self, connection: Connection, target: str, place: Place | None = None) -> None:
        self._connection = connection
        self.target = target
        self.methods = AsyncMethods(connection)
        self.files = AsyncFiles(connection, place)
        self.edit = AsyncEditor(connection)
        self.mcp = AsyncMcp(connection)
        self.browser = AsyncBrowser(connection)

    @classmethod
    async def connect(cls, target: str, *, user: str | None = None, options: Sequence[str] = (), persist: str = "60s") -> AsyncSandbox:
        """Over the connection that is kept to `docker:NAME`, `k8s:POD`, `ssh:HOST`, `local:` (`toolbox connect --help`); places the
        program there where it isn't. `persist`: how long it is kept when nobody uses it; `options`: more of `toolbox connect`."""
        if host.is_placing():
            return cls(await placing.connect(target, user, options), target)
        given = [*(["--user", user] if user else []), *options]
        made = json.loads(await said_by(["connect", "--json", f"--persist={persist}", *given, "--", target]))
        return cls(await Connection.open(made[0]["socket"]), target, Place(target, given))

    @classmethod
    async def over(cls, command: Sequence[str]) -> AsyncSandbox:
        """Over a command of one's own that ends in `toolbox exec --stream`."""
        return cls(await Connection.over(list(command)), command[0])

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._connection.close()

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, from whichever side."""
        return self._connection.closed

    @property
    def hello(self) -> Hello:
        """What the program there said of itself: `version`, `build`, `instance`, `pid`, `features`, `limits`."""
        hello: Any = self._connection.hello
        return cast("Hello", hello)

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any method of docs/protocol.md."""
        return await self._connection.call(method, None if params is None else dict(params))

    async def run(
        self,
        argv: Sequence[StrPath],
        *,
        input: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: StrPath | None = None,
        user: str | None = None,
        timeout: float | None = None,
        check: bool = False,
        output_limit: int | None = None,
        keep_last: int | None = None,
    ) -> Completed:
        """Runs a program to its end, stdout and stderr apart and to the byte.

        Cancelling and `timeout` (RunTimeout) end it with all that it has started; `check` raises RunFailed for a status that isn't 0,
        `output_limit` (bytes of each stream) OutputLimit; with `keep_last` the last bytes of each stream are kept instead. A program that
        can't be started is CannotRun.
        """
        data = input.encode() if isinstance(input, str) else input
        what = Program(argv, env, cwd, user, timeout, stdin=data is not None)
        return await program.run(self._connection, what, data, check, Limits(output_limit, keep_last))

    async def process(
        self,
        argv: Sequence[StrPath],
        *,
        env: Mapping[str, str] | None = None,
        cwd: StrPath | None = None,
        user: str | None = None,
        timeout: float | None = None,
        stdin: bool = True,
    ) -> AsyncProcess:
        """A program whose output is read, and whose stdin is written, while it runs. For `async with`."""
        return await program.begin(self._connection, Program(argv, env, cwd, user, timeout, stdin))

    async def start(
        self,
        argv: Sequence[StrPath] | str,
        *,
        input: str | None = None,
        stdin: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: StrPath | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> AsyncJob:
        """A job: it goes on when this client goes. A string is a command for /bin/sh."""
        what = {"command": argv} if isinstance(argv, str) else {"argv": words_of(argv)}
        more = {"input": input, "env": env and dict(env), "cwd": cwd, "user": user, "timeout": timeout, "stdin_open": stdin or None}
        params = {**what, **{name: value for name, value in more.items() if value is not None}}
        return AsyncJob(self._connection, (await self._connection.call("exec_remote_start", params))["pid"])

    async def job(self, pid: int) -> AsyncJob:
        """One that was started before."""
        return AsyncJob(self._connection, pid)

    async def shell(
        self,
        name: str | None = None,
        *,
        program: Sequence[StrPath] | None = None,
        shell: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: StrPath | None = None,
        user: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> AsyncShell:
        """A new session, of bash or what there is of its kind, of another `shell`, or of any interpreter (`program`); or the one that has that name."""
        if name is None:
            given = {"program": program and words_of(program), "shell": shell, "env": env and dict(env), "cwd": cwd, "user": user, "rows": rows, "cols": cols}
            params = {key: value for key, value in given.items() if value is not None}
            name = str((await self._connection.call("bash_session_new_session", params))["session_name"])
        return AsyncShell(self._connection, name)

    async def patch(self, patch: str, path: StrPath | None = None) -> str:
        """`edit.patch`: a diff, or a text from `*** Begin Patch` on, applied whole or not at all."""
        return await self.edit.patch(patch, path)

    @asynccontextmanager
    async def forward(self, leads_to: int | str, *, host: str = "127.0.0.1", port: int = 0) -> AsyncGenerator[AsyncForward, None]:
        """A port of this machine (the system chooses where it is 0) that leads to a port, `HOST:PORT` or Unix socket there."""
        forwarded = AsyncForward(self._connection, str(leads_to))
        await forwarded.listen(host, port)
        async with forwarded:
            yield forwarded

    async def doctor(self) -> Doctor:
        """What the tools rest on there, tried: `{ok, checks}`."""
        got: Doctor = await self._connection.call("doctor")
        return got
