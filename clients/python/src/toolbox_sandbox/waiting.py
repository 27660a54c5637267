"""Waiting for coroutines from ordinary code: they run in a loop of their own, in one thread of the process."""
from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from .errors import ConnectionLost

T = TypeVar("T")
LEAVES_AFTER_S = 2  # at the end of the process: what is open then is let go of
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_over = False  # the process is ending


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _over:
            raise ConnectionLost("the process is ending")
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="toolbox_sandbox", daemon=True)
            _thread.start()
        return _loop


def _begin_anew() -> None:
    """A fork has no thread but its own."""
    global _lock, _loop, _thread
    _lock, _loop, _thread = threading.Lock(), None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


async def _leave() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@atexit.register
def _end() -> None:
    """The end of the process: nothing is said of what was still open."""
    global _over
    _over = True
    if _loop and _thread:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_leave(), _loop).result(LEAVES_AFTER_S)
        _loop.call_soon_threadsafe(_loop.stop)
        _thread.join(LEAVES_AFTER_S)


def wait(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its result. Whatever interrupts the waiting (KeyboardInterrupt) cancels it."""
    try:
        loop = _running_loop()
    except ConnectionLost:
        coroutine.close()
        raise
    if threading.current_thread() is _thread:
        coroutine.close()
        raise RuntimeError("here nothing can be waited for: this runs where the waiting is done (AsyncSandbox is for coroutines)")
    future = asyncio.run_coroutine_threadsafe(_settled(coroutine), loop)
    try:
        result, error = future.result()
    except BaseException:
        future.cancel()
        if _over and threading.current_thread().daemon:
            threading.Event().wait()  # nobody looks at what becomes of it
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
