"""Waiting for coroutines from ordinary code: they run in a loop of their own, in one thread of the process."""
from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_pid = 0


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _pid
    with _lock:
        if _loop is None or _pid != os.getpid():  # a fork has no thread but its own
            _loop, _pid = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="toolbox_sandbox", daemon=True).start()
        return _loop


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its result. Whatever interrupts the waiting (KeyboardInterrupt) cancels it."""
    future = asyncio.run_coroutine_threadsafe(_settled(coroutine), _running_loop())
    try:
        result, error = future.result()
    except BaseException:
        future.cancel()
        raise
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


async def _settled(coroutine: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """Result or exception as values: StopAsyncIteration can't be one of a future."""
    try:
        return await coroutine, None
    except Exception as error:
        return None, error


def each(items: AsyncIterator[T]) -> Iterator[T]:
    """An iteration over what comes; leaving it early ends it."""
    iterator = items.__aiter__()

    async def following() -> T:
        return await iterator.__anext__()

    try:
        while True:
            try:
                item = wait(following())
            except StopAsyncIteration:
                return
            yield item
    finally:
        close = getattr(iterator, "aclose", None)
        if close:
            wait(close())


@contextmanager
def entered(manager: AbstractAsyncContextManager[T]) -> Generator[T, None, None]:
    async def enter() -> T:
        return await manager.__aenter__()

    async def leave() -> None:
        await manager.__aexit__(None, None, None)

    it = wait(enter())
    try:
        yield it
    finally:
        wait(leave())
