"""What can go wrong, in the words of who met it."""
from __future__ import annotations

from typing import Any

from .results import Copied


class ToolboxError(Exception):
    """All errors of this package."""


class CannotConnect(ToolboxError, ConnectionError):
    """There is no way to the target: what `toolbox connect` said, and its exit status where there is one."""

    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status = status


class ConnectionLost(ToolboxError, ConnectionError):
    """The connection ended while something was open over it. What became of that is not known here."""


class CallError(ToolboxError):
    """A call was answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolError(CallError):
    """The tool says no: a file isn't there, a session is busy (-32099)."""


class FileError(ToolError):
    """Something can't be done with a file. `kind` says why: not_found, is_directory, exists, permission, … (docs/files.md)."""

    @property
    def kind(self) -> str:
        return str(self.data["kind"])


class InvalidParams(CallError):
    """The call isn't one that the method takes (-32602)."""


class UnknownMethod(CallError):
    """The program there has no such method (-32601)."""


class CannotRun(ToolboxError):
    """A program was not started: 127 where it isn't there, 126 where it can't be run, 125 for all else."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class RunFailed(ToolboxError):
    """A program that was run with `check` ended with another status than 0."""

    def __init__(self, argv: list[str], status: int, stdout: bytes, stderr: bytes) -> None:
        last = stderr.decode(errors="replace").strip()[-500:]
        super().__init__(f"{argv[0]} ended with status {status}" + (f": {last}" if last else ""))
        self.argv, self.status, self.stdout, self.stderr = argv, status, stdout, stderr


class RunTimeout(ToolboxError, TimeoutError):
    """A program was ended, with all that it had started, when its time was over."""

    def __init__(self, argv: list[str], timeout: float, stdout: bytes, stderr: bytes) -> None:
        super().__init__(f"{argv[0]} was ended after {timeout:g} s")
        self.argv, self.timeout, self.stdout, self.stderr = argv, timeout, stdout, stderr


class OutputLimit(ToolboxError):
    """A program said more than was allowed, and was ended. What had come until then is here."""

    def __init__(self, argv: list[str], limit: int, stdout: bytes, stderr: bytes) -> None:
        super().__init__(f"{argv[0]} said more than {limit} bytes")
        self.argv, self.limit, self.stdout, self.stderr = argv, limit, stdout, stderr


class CopyFailed(ToolboxError):
    """Not all of it was copied: what `toolbox cp` said, and the sum of what was, with `failed` among it."""

    def __init__(self, said: str, copied: Copied) -> None:
        super().__init__(said)
        self.copied = copied


def of_answer(error: dict[str, Any]) -> CallError:
    """The exception for the error member of an answer."""
    kinds = {-32099: ToolError, -32602: InvalidParams, -32601: UnknownMethod}
    data: Any = error.get("data")
    kind = FileError if isinstance(data, dict) and "kind" in data else kinds.get(error["code"], CallError)
    return kind(error["code"], error["message"], data)
