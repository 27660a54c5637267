"""What the program of this host is called for."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Sequence

from . import host
from .errors import CannotConnect, CopyFailed
from .results import Copied

COPY_FAILED = 1  # its exit status where something was not copied


def end_process(process: asyncio.subprocess.Process, number: int) -> None:
    """`send_signal` of asyncio's looks for the end itself, and then asyncio doesn't find it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


async def said_by(arguments: Sequence[str]) -> bytes:
    """What it prints; CannotConnect with its words where it fails."""
    status, out, said = await _run(arguments)
    if status:
        raise CannotConnect(said or f"toolbox {arguments[0]} ended with status {status}", status)
    return out


async def _run(arguments: Sequence[str]) -> tuple[int, bytes, str]:
    """Its exit status, and what it said on stdout and stderr. Cancelling ends it."""
    program = host.find_toolbox()
    try:
        process = await asyncio.create_subprocess_exec(
            program, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except OSError as error:
        raise CannotConnect(f"{program}: {error.strerror}") from error
    try:
        out, said = await process.communicate()
    except asyncio.CancelledError:
        end_process(process, signal.SIGTERM)
        await process.wait()
        raise
    return process.returncode or 0, out, said.decode(errors="replace").strip()


class Place:
    """A target, as this host's program is told of it."""

    def __init__(self, target: str, options: Sequence[str]) -> None:
        self._target, self._options = target, options

    async def copy(self, source: str, to: str, inwards: bool, more: Sequence[str]) -> Copied:
        """`toolbox cp`, in one of its directions: the sum of what was copied."""
        there = self._target if self._target.endswith(":") else f"{self._target}:"  # as `local:` does
        source, to = (source, there + to) if inwards else (there + source, to)
        status, out, said = await _run(["cp", "--json", *self._options, *more, "--", source, to])
        if status not in (0, COPY_FAILED):
            raise CannotConnect(said, status)
        copied: Copied = json.loads(out or "{}")
        if status:
            raise CopyFailed(said, copied)
        return copied
