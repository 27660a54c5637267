"""Sandboxes of inspect_ai over one held connection each: `--sandbox toolbox` (as `docker`), `toolbox_k8s` (as `k8s`), `toolbox_local` (as `local`).

Samples are made as the inner provider makes them; programs, files and tools then go over the connection, without a command of the
runtime for each.
"""
from __future__ import annotations

import asyncio
import errno
import json
import posixpath
import tempfile
from typing import Any, ClassVar, Union, overload

from inspect_ai.util import ExecResult, OutputLimitExceededError, SandboxConnection, SandboxEnvironment, SandboxEnvironmentLimits, sandboxenv
from inspect_ai.util._sandbox.environment import SandboxEnvironmentConfigType
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from typing_extensions import Literal, override

from . import errors
from .sandbox import AsyncSandbox, eject

NO_USER = ("no such user", "can't become user")  # how the program begins to say so

try:  # older versions know no difference
    from inspect_ai.util import SandboxUserUnsupportedError  # type: ignore[attr-defined,unused-ignore]
    from inspect_ai.util._sandbox.environment import SandboxUnavailableError  # type: ignore[attr-defined,unused-ignore]
except ImportError:
    SandboxUnavailableError = ConnectionError  # type: ignore[misc,assignment,unused-ignore]
    SandboxUserUnsupportedError = RuntimeError  # type: ignore[misc,assignment,unused-ignore]

# Where inspect_ai looks for its tools in a sandbox, and injects its own when they aren't there.
TOOLS_DIR, TOOLS_NAME = "/var/tmp/.da7be258e003d428", "inspect-sandbox-tools"
TOOLS = f"{TOOLS_DIR}/{TOOLS_NAME}"
ROOT = "root"


class HeldSandboxEnvironment(SandboxEnvironment):
    """One of them around one of the inner provider's."""

    inner_name: ClassVar[str]

    def __init__(self, inner: SandboxEnvironment) -> None:
        super().__init__()
        self.inner = inner
        self._boxes: dict[str | None, AsyncSandbox] = {}
        self._connecting = asyncio.Lock()

    @classmethod
    def inner_type(cls) -> type[SandboxEnvironment]:
        return registry_find_sandboxenv(cls.inner_name)

    # ---- what a kind of inner provider says ----

    async def target(self) -> str:
        """What leads to it, as `toolbox connect` takes it."""
        raise NotImplementedError

    @property
    def directory(self) -> str:
        """The per-sample directory."""
        raise NotImplementedError

    def placement(self) -> list[str]:
        """Where the tools go for it, as options of `toolbox connect`: by default what the target says."""
        return []

    # ---- the connection ----

    async def box(self, user: str | None) -> AsyncSandbox:
        """The connection for it: as whom the target runs things, or root's, from which there is a way to everybody."""
        kind = None if user is None else ROOT
        async with self._connecting:
            box = self._boxes.get(kind)
            if box is None or box.closed:
                try:
                    box = await self._connect(kind)
                except errors.CannotConnect as error:
                    raise SandboxUnavailableError(str(error)) from error
                self._boxes[kind] = box
        return box

    async def _connect(self, kind: str | None) -> AsyncSandbox:
        if kind:
            return await AsyncSandbox.connect(await self.target(), options=["--dir", TOOLS_DIR, "--name", TOOLS_NAME])
        return await AsyncSandbox.connect(await self.target(), user="default", options=self.placement())

    async def let_go(self) -> None:
        for box in self._boxes.values():
            await box.close()
        self._boxes = {}

    def user_of(self, user: str | None) -> str | None:
        """As whom something runs where nobody is named."""
        return user

    def path(self, file: str) -> str:
        return posixpath.join(self.directory, file)

    # ---- programs ----

    @override
    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        user = self.user_of(user)
        box = await self.box(user)
        if cmd == [TOOLS, "exec"] and user == ROOT and input is not None:
            return await self._call(box, input, timeout)
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            got = await box.run(
                cmd, input=input or b"", cwd=self.path(cwd or ""), env=env, user=None if user == ROOT else user, timeout=timeout, keep_last=limit
            )
        except errors.RunTimeout as error:
            late = TimeoutError(f"Command timed out after {timeout} seconds")
            setattr(late, "truncated_output", _text(error.stdout) + _text(error.stderr))
            raise late from error
        except errors.CannotRun as error:
            return self._not_run(error, user)
        except errors.ConnectionLost as error:
            raise SandboxUnavailableError(str(error)) from error
        return ExecResult(got.status == 0, got.status, _text(got.stdout), _text(got.stderr))

    @staticmethod
    def _not_run(error: errors.CannotRun, user: str | None) -> ExecResult[str]:
        """A program that isn't there is an outcome; one that may not be run, a missing user or directory is an error."""
        if error.status == 126 and "ermission denied" in str(error):
            raise PermissionError(f"Permission denied executing command: {error}")
        if error.status == 127:
            return ExecResult(False, 127, "", str(error))
        if user is not None and SandboxUserUnsupportedError is not RuntimeError and str(error).startswith(NO_USER):
            raise SandboxUserUnsupportedError(str(error))
        return ExecResult(False, error.status, "", str(error))

    @staticmethod
    async def _call(box: AsyncSandbox, text: str | bytes, timeout: int | None) -> ExecResult[str]:
        """A request to the tools: over the connection, instead of a program that takes it."""
        request = json.loads(text)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        try:
            answer["result"] = await asyncio.wait_for(box.call(request["method"], request.get("params")), timeout)
        except errors.CallError as error:
            answer["error"] = {"code": error.code, "message": error.message, **({} if error.data is None else {"data": error.data})}
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise TimeoutError(f"Command timed out after {timeout} seconds") from error
        except errors.ConnectionLost as error:
            raise SandboxUnavailableError(str(error)) from error
        return ExecResult(True, 0, json.dumps(answer), "")

    # ---- files ----

    @override
    async def write_file(self, file: str, contents: str | bytes) -> None:
        box = await self.box(None)
        try:
            await box.files.write(self.path(file), contents, parents=True)
        except errors.FileError as error:
            raise _os_error(error, file) from error

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    @override
    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        box = await self.box(None)
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            if not (await box.files.stat(self.path(file)))["mode"] & 0o400:  # nor may root, as with the inner provider
                raise PermissionError(errno.EACCES, "Permission denied", file)
            data = await box.files.read(self.path(file), limit=limit + 1)
        except errors.FileError as error:
            raise _os_error(error, file) from error
        if len(data) > limit:
            raise OutputLimitExceededError(limit_str=SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, truncated_output=None)
        return data.decode("utf-8") if text else data

    # ---- what the inner provider does ----

    @override
    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        return await self.inner.connection(user=user)

    @override
    def as_type(self, sandbox_cls: type[Any]) -> Any:
        return self.inner if isinstance(self.inner, sandbox_cls) else super().as_type(sandbox_cls)

    @override
    def default_polling_interval(self) -> float:
        return 0.05

    @override
    @classmethod
    def config_files(cls) -> list[str]:
        return cls.inner_type().config_files()

    @classmethod
    def is_docker_compatible(cls) -> bool:
        return cls.inner_type().is_docker_compatible()

    @override
    @classmethod
    def default_concurrency(cls) -> int | None:
        return cls.inner_type().default_concurrency()

    @override
    @classmethod
    async def task_init(cls, task_name: str, config: SandboxEnvironmentConfigType | None) -> None:
        await cls.inner_type().task_init(task_name, config)

    @override
    @classmethod
    async def task_init_environment(cls, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]) -> dict[str, str]:
        return await cls.inner_type().task_init_environment(config, metadata)

    @override
    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        made = await cls.inner_type().sample_init(task_name, config, metadata)
        return {name: cls(inner) for name, inner in made.items()}

    @override
    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        inner: dict[str, SandboxEnvironment] = {}
        for name, environment in environments.items():
            assert isinstance(environment, HeldSandboxEnvironment)
            await environment.let_go()
            inner[name] = environment.inner
        await cls.inner_type().sample_cleanup(task_name, config, inner, interrupted)

    @override
    @classmethod
    async def task_cleanup(cls, task_name: str, config: SandboxEnvironmentConfigType | None, cleanup: bool) -> None:
        await cls.inner_type().task_cleanup(task_name, config, cleanup)

    @override
    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        await cls.inner_type().cli_cleanup(id)


@sandboxenv(name="toolbox")
class ToolboxSandboxEnvironment(HeldSandboxEnvironment):
    """Containers as the provider `docker` makes them."""

    inner_name = "docker"

    @override
    async def target(self) -> str:
        return f"docker:{(await self.inner.connection()).container}"

    @property
    @override
    def directory(self) -> str:
        return str(getattr(self.inner, "_working_dir"))


@sandboxenv(name="toolbox_k8s")
class ToolboxK8sSandboxEnvironment(HeldSandboxEnvironment):
    """Pods as the provider `k8s` of inspect_k8s_sandbox makes them."""

    inner_name = "k8s"

    def __init__(self, inner: SandboxEnvironment) -> None:
        super().__init__(inner)
        self._directory = ""

    @override
    async def target(self) -> str:
        pod = getattr(self.inner, "_pod").info
        return f"k8s:{pod.context_name or ''}/{pod.namespace}/{pod.name}/{pod.default_container_name}"

    @override
    async def box(self, user: str | None) -> AsyncSandbox:
        """Files are named from where the container's commands begin."""
        box = await super().box(user)
        if not self._directory:
            here = await box.call("file_stat", {"path": "/proc/self/cwd", "follow": False})
            self._directory = str(here.get("target") or "/")
        return box

    @override
    def user_of(self, user: str | None) -> str | None:
        default = getattr(getattr(self.inner, "_config"), "default_user")
        return user or (None if default is None else str(default))

    @property
    @override
    def directory(self) -> str:
        return self._directory


@sandboxenv(name="toolbox_local")
class ToolboxLocalSandboxEnvironment(HeldSandboxEnvironment):
    """Directories of this machine as the provider `local` makes them."""

    inner_name = "local"
    _tools: ClassVar[tempfile.TemporaryDirectory[str] | None] = None

    @override
    async def target(self) -> str:
        return "local:"

    @override
    def placement(self) -> list[str]:
        """A directory of this process's, which goes with its tasks: samples are apart by their own directories alone."""
        kind = type(self)
        kind._tools = kind._tools or tempfile.TemporaryDirectory(prefix="toolbox-")
        return ["--dir", kind._tools.name]

    @override
    @classmethod
    async def task_cleanup(cls, task_name: str, config: SandboxEnvironmentConfigType | None, cleanup: bool) -> None:
        await super().task_cleanup(task_name, config, cleanup)
        tools, cls._tools = cls._tools, None
        if tools:
            await eject("local:", ["--dir", tools.name, "--user", "default"])
            tools.cleanup()

    @property
    @override
    def directory(self) -> str:
        return str(getattr(self.inner, "directory").name)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _os_error(error: errors.FileError, file: str) -> Exception:
    """The exception that inspect_ai's callers look for."""
    kinds: dict[str, type[OSError]] = {"not_found": FileNotFoundError, "is_directory": IsADirectoryError, "permission": PermissionError}
    return kinds.get(error.kind, OSError)(f"{file}: {error}")
