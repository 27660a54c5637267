"""The same without asyncio: each call is waited for. Written by `clients/generate` from the asynchronous classes."""
from __future__ import annotations

import signal as signals
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .files import AsyncFiles, AsyncWatch
from .job import AsyncJob, JobOutput
from .methods import AsyncMethods
from .program import AsyncProcess, Completed, Output, Program
from .results import Change, Copied, Doctor, Entry, Found, Hello, Page, SearchResult, Stat
from .sandbox import AsyncSandbox
from .shell import AsyncShell, ShellResult
from .tools import AsyncBrowser, AsyncEditor, AsyncForward, AsyncMcp, AsyncMcpServer
from .waiting import each, entered, wait
from .wire import StrPath


class Process:
    """A program that runs. Iterating over it gives what it says; afterwards `status` is there.

    It ends with the `async with` in which it was begun, with all that it has started.
    """

    def __init__(self, it: AsyncProcess) -> None:
        self._it = it

    @property
    def program(self) -> Program:
        return self._it.program

    @property
    def status(self) -> int | None:
        return self._it.status

    def __enter__(self) -> Process:
        wait(self._it.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._it.__aexit__(None, None, None))

    def __iter__(self) -> Iterator[Output]:
        return each(self._it.__aiter__())

    @property
    def timed_out(self) -> bool:
        """Whether it was ended because its time was over."""
        return self._it.timed_out

    @property
    def seconds(self) -> float:
        return self._it.seconds

    def write(self, data: bytes) -> None:
        """Bytes for its stdin (`stdin=True`); waits while too many are on their way. Somebody has to iterate meanwhile."""
        wait(self._it.write(data))

    def close_stdin(self) -> None:
        wait(self._it.close_stdin())

    def signal(self, number: int=signals.SIGTERM) -> None:
        """For its process group."""
        wait(self._it.signal(number))

    def resize(self, rows: int, cols: int) -> None:
        wait(self._it.resize(rows, cols))


class Shell:
    """A session. It lives on in the target until it is closed; `async with` closes it."""

    def __init__(self, it: AsyncShell) -> None:
        self._it = it

    @property
    def name(self) -> str:
        return self._it.name

    def __enter__(self) -> Shell:
        wait(self._it.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._it.__aexit__(None, None, None))

    def run(self, command: str | None=None, *, timeout: float | None=None, max_output_bytes: int | None=None, leave_running: bool=False) -> ShellResult:
        """Runs a command and waits for its end; without one it waits on for what runs. Cancelling interrupts it, unless it is to be left running."""
        return wait(self._it.run(command, timeout=timeout, max_output_bytes=max_output_bytes, leave_running=leave_running))

    def send(self, text: str, *, wait_for_output: int=5, idle_timeout: float=0.5) -> str:
        """Types text as a person would, and gives what came of it: waits so many seconds for the first of it, and then until nothing more comes for so long."""
        return wait(self._it.send(text, wait_for_output=wait_for_output, idle_timeout=idle_timeout))

    def interrupt(self) -> None:
        """As Ctrl-C does, for what runs in the foreground."""
        wait(self._it.interrupt())

    def signal(self, name: str) -> None:
        wait(self._it.signal(name))

    def resize(self, rows: int, cols: int) -> None:
        wait(self._it.resize(rows, cols))

    def restart(self) -> str:
        """A new shell in the place of this one, under the same name."""
        return wait(self._it.restart())

    def watch(self) -> Iterator[dict[str, Any]]:
        """What is shown and typed there from now on, without taking output from anybody."""
        return each(self._it.watch())

    def close(self) -> None:
        wait(self._it.close())


class Job:
    """A job. Iterating over it gives its output as it comes, each byte once; afterwards `exit_code` is there."""

    def __init__(self, it: AsyncJob) -> None:
        self._it = it

    @property
    def pid(self) -> int:
        return self._it.pid

    @property
    def exit_code(self) -> int | None:
        return self._it.exit_code

    def __iter__(self) -> Iterator[JobOutput]:
        return each(self._it.__aiter__())

    def wait(self, timeout: float | None=None) -> JobOutput:
        """All that nobody has had yet, at its end or when the time is over."""
        return wait(self._it.wait(timeout))

    def write(self, text: str) -> JobOutput:
        """Text for its stdin (`stdin=True`), and what it has said."""
        return wait(self._it.write(text))

    def close_stdin(self) -> JobOutput:
        return wait(self._it.close_stdin())

    def signal(self, name: str) -> None:
        wait(self._it.signal(name))

    def kill(self) -> JobOutput:
        """Ends it with all that it has started, and gives what it had said."""
        return wait(self._it.kill())


class Watch:
    """A watch. Iterating over it gives what has become of each path, as it differs when a burst of changes is over (30 ms), until the directory is gone."""

    def __init__(self, it: AsyncWatch) -> None:
        self._it = it

    @property
    def incomplete(self) -> bool:
        """Whether something below it can't be read or watched."""
        return self._it.incomplete

    def __iter__(self) -> Iterator[Change]:
        return each(self._it.__aiter__())


class Files:
    """Each call takes `user`: as whom it is done, by name. What can't be done is a FileError, which has a kind."""

    def __init__(self, it: AsyncFiles) -> None:
        self._it = it

    def read(self, path: StrPath, *, limit: int | None=None, user: str | None=None) -> bytes:
        """All of it; at most `limit` bytes where that is given."""
        return wait(self._it.read(path, limit=limit, user=user))

    def read_text(self, path: StrPath, *, user: str | None=None) -> str:
        return wait(self._it.read_text(path, user=user))

    def write(self, path: StrPath, data: bytes | str, *, mode: int | None=None, parents: bool=False, user: str | None=None) -> None:
        """All of it. Up to a megabyte at once: others see the old file or the new one; what is larger is written in parts."""
        wait(self._it.write(path, data, mode=mode, parents=parents, user=user))

    def stat(self, path: StrPath, *, follow: bool=True, user: str | None=None) -> Stat:
        return wait(self._it.stat(path, follow=follow, user=user))

    def list(self, path: StrPath, *, depth: int | None=None, glob: str | None=None, user: str | None=None) -> Iterator[Entry]:
        """What is below it, in the order of bytes."""
        return each(self._it.list(path, depth=depth, glob=glob, user=user))

    @contextmanager
    def watch(self, path: StrPath, *, exclude: Sequence[str]=(), recursive: bool=True, user: str | None=None) -> Generator[Watch, None, None]:
        """What changes in a directory or a file, for `async for` in an `async with`, from whose begin on nothing is missed."""
        with entered(self._it.watch(path, exclude=exclude, recursive=recursive, user=user)) as it:
            yield Watch(it)

    def find(self, path: StrPath, pattern: str | None=None, *, type: str | None=None, hidden: bool=False, limit: int | None=None, user: str | None=None) -> Found:
        """Names below a directory that match a pattern (`*.py`, `src/**/*.c`), but for what `.gitignore` leaves out: `{paths, truncated, …}`."""
        return wait(self._it.find(path, pattern, type=type, hidden=hidden, limit=limit, user=user))

    def search(self, path: StrPath, pattern: str, *, literal: bool=False, ignore_case: bool=False, glob: str | None=None, context: int | None=None, limit: int | None=None, user: str | None=None) -> SearchResult:
        """Lines that match a regular expression, in the files that `find` finds: `{matches, truncated, …}`, a match has path, line and text."""
        return wait(self._it.search(path, pattern, literal=literal, ignore_case=ignore_case, glob=glob, context=context, limit=limit, user=user))

    def make_dir(self, path: StrPath, *, parents: bool=False, user: str | None=None) -> None:
        wait(self._it.make_dir(path, parents=parents, user=user))

    def remove(self, path: StrPath, *, recursive: bool=False, user: str | None=None) -> None:
        wait(self._it.remove(path, recursive=recursive, user=user))

    def move(self, path: StrPath, to: StrPath, *, overwrite: bool=False, user: str | None=None) -> None:
        wait(self._it.move(path, to, overwrite=overwrite, user=user))

    def copy(self, path: StrPath, to: StrPath, *, overwrite: bool=False, recursive: bool=False, user: str | None=None) -> None:
        wait(self._it.copy(path, to, overwrite=overwrite, recursive=recursive, user=user))

    def copy_in(self, source: StrPath, to: StrPath, *, archive: bool=False, checksum: bool=False, exclude: Sequence[str]=()) -> Copied:
        """A file or a tree of this machine into the target, as `toolbox cp -r`: into `to` where that is a directory; of `DIR/.` what is in it.

        `archive`: owners and all attributes, too; `checksum`: only what differs, and proven; `exclude`: patterns. CopyFailed where something is not there then.
        """
        return wait(self._it.copy_in(source, to, archive=archive, checksum=checksum, exclude=exclude))

    def copy_out(self, source: StrPath, to: StrPath, *, archive: bool=False, checksum: bool=False, exclude: Sequence[str]=()) -> Copied:
        """The same out of the target."""
        return wait(self._it.copy_out(source, to, archive=archive, checksum=checksum, exclude=exclude))


class Editor:
    """Files viewed and edited exactly: bytes outside of an edit stay. The answers are text for a model."""

    def __init__(self, it: AsyncEditor) -> None:
        self._it = it

    def view(self, path: StrPath, lines: tuple[int, int] | None=None) -> str:
        """A file with numbers, or some of its lines (from 1; -1: the last); of a directory what is in it."""
        return wait(self._it.view(path, lines))

    def create(self, path: StrPath, text: str, *, overwrite: bool=False, parents: bool=False) -> str:
        return wait(self._it.create(path, text, overwrite=overwrite, parents=parents))

    def replace(self, path: StrPath, old: str, new: str, *, everywhere: bool=False) -> str:
        """Text that is there exactly once, or `everywhere`, by another one."""
        return wait(self._it.replace(path, old, new, everywhere=everywhere))

    def insert(self, path: StrPath, line: int, text: str) -> str:
        """Text behind a line; 0: in front of all."""
        return wait(self._it.insert(path, line, text))

    def many(self, edits: Sequence[Mapping[str, Any]]) -> str:
        """Several edits, all or none: objects with the params of `str_replace`, `insert` or `create` (docs/protocol.md)."""
        return wait(self._it.many(edits))

    def patch(self, patch: str, path: StrPath | None=None) -> str:
        """A unified diff, git's too, or a text from `*** Begin Patch` to `*** End Patch`: all of it or nothing. `path`: where its names begin."""
        return wait(self._it.patch(patch, path))

    def undo(self, path: StrPath) -> str:
        return wait(self._it.undo(path))


class McpServer:
    """An MCP server that runs in the target. `async with` ends it."""

    def __init__(self, it: AsyncMcpServer) -> None:
        self._it = it

    @property
    def session_id(self) -> int:
        return self._it.session_id

    def __enter__(self) -> McpServer:
        wait(self._it.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._it.__aexit__(None, None, None))

    def request(self, method: str, params: Mapping[str, Any] | None=None) -> dict[str, Any]:
        """The server's response, whole: with `result` or `error`."""
        return wait(self._it.request(method, params))

    def notify(self, method: str, params: Mapping[str, Any] | None=None) -> None:
        wait(self._it.notify(method, params))

    def kill(self) -> None:
        wait(self._it.kill())


class Mcp:
    """MCP servers in the target."""

    def __init__(self, it: AsyncMcp) -> None:
        self._it = it

    def launch(self, command: str, args: Sequence[str]=(), *, env: Mapping[str, str] | None=None, cwd: StrPath | None=None, user: str | None=None) -> McpServer:
        return McpServer(wait(self._it.launch(command, args, env=env, cwd=cwd, user=user)))


class Browser:
    """A browser session (Chromium, where the target has it). What it gives are pages as text."""

    def __init__(self, it: AsyncBrowser) -> None:
        self._it = it

    def call(self, method: str, **params: Any) -> Any:
        """Any of the web_ methods, by its name without that: `call("press", key="Enter")`. The first one begins the session."""
        return wait(self._it.call(method, **params))

    def go(self, url: str) -> Page:
        return wait(self._it.go(url))

    def click(self, element_id: int) -> Page:
        return wait(self._it.click(element_id))

    def type(self, element_id: int, text: str) -> Page:
        return wait(self._it.type(element_id, text))

    def screenshot(self, *, full_page: bool=False) -> bytes:
        """A PNG."""
        return wait(self._it.screenshot(full_page=full_page))

    def close(self) -> None:
        wait(self._it.close())


class Forward:
    """A port of this machine that leads to one of the target's, until it is closed (`async with`)."""

    def __init__(self, it: AsyncForward) -> None:
        self._it = it

    @property
    def port(self) -> int:
        """The port here, also where the system chose it."""
        return self._it.port

    def __enter__(self) -> Forward:
        wait(self._it.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._it.__aexit__(None, None, None))

    def close(self) -> None:
        wait(self._it.close())


class Methods:
    """The methods of docs/protocol.md. What isn't given isn't sent."""

    def __init__(self, it: AsyncMethods) -> None:
        self._it = it

    def version(self, *, _run_as_user: str | None=None) -> str:
        """The version of the program.

        _run_as_user: A user that has to be there (default: the caller)
        Result: a string: MAJOR.MINOR.PATCH
        """
        return wait(self._it.version(_run_as_user=_run_as_user))

    def remote_version(self) -> str:
        """The server's path, version, build and pid.

        Result: a string
        """
        return wait(self._it.remote_version())

    def server_status(self) -> dict[str, Any]:
        """What the server is, and what it has counted.

        Result: {server, counters}
        """
        return wait(self._it.server_status())

    def sandbox_tools_shutdown(self) -> None:
        """End everything, and the server.

        Result: null
        """
        wait(self._it.sandbox_tools_shutdown())

    def bash_session_new_session(self, *, record: bool | str | dict[str, Any] | None=None, user: str | dict[str, Any] | None=None, cwd: str | None=None, shell: str | None=None, program: list[str] | None=None, env: dict[str, str] | None=None, rows: int | None=None, cols: int | None=None, term: str | None=None, ends_with: int | None=None, confine: dict[str, Any] | None=None, limits: dict[str, Any] | None=None, surroundings: dict[str, Any] | None=None) -> dict[str, Any]:
        """Start a session: a shell on a terminal of its own.

        record: Record what is shown and typed, for asciinema and bash_session replay (default: false)
        user: Whom it runs as; another user than its own takes a server of root (default: the server's user)
        cwd: Directory to begin in (default: the server's)
        shell: Path of the shell (default: bash, else sh)
        program: In the place of a shell: a program, such as an interpreter, and its arguments (default: none)
        env: Variables to add to the server's
        rows: Height of the terminal (default: 24)
        cols: Width of the terminal (default: 200)
        term: Kind of the terminal: TERM of the shell (default: that of env, else dumb)
        ends_with: A process with whose end it ends, however that comes (default: none)
        confine: What it may do, as of 'toolbox confine' (default: all that its user may)
        limits: What it may use up (default: none)
        surroundings: What it begins with in the place of the server's own (default: the server's)
        Result: {session_name, shell, enforced?, recording?}
        """
        return wait(self._it.bash_session_new_session(record=record, user=user, cwd=cwd, shell=shell, program=program, env=env, rows=rows, cols=cols, term=term, ends_with=ends_with, confine=confine, limits=limits, surroundings=surroundings))

    def bash_session_list(self) -> list[dict[str, Any]]:
        """List the sessions.

        Result: an array of {session_name, pid, user, shell, cwd, state, foreground, idle_s, unread_bytes, age_s, processes, memory_kb, recording?, …}
        """
        return wait(self._it.bash_session_list())

    def bash_session(self, *, session_name: str, input: str | None=None, wait_for_output: int | None=None, idle_timeout: float | None=None, max_output_bytes: int | None=None, restart: bool | None=None) -> str:
        """Type into a session, and read what comes.

        session_name: The session, as it was named when it began
        input: What to type (default: nothing)
        wait_for_output: Seconds to wait for the first output; needed unless restart is true
        idle_timeout: Seconds that output has to pause to be taken for complete; needed unless restart is true
        max_output_bytes: Most bytes of output; 0 and less mean the default (default: 10485760)
        restart: End everything in the session and start its shell anew (default: false)
        Result: a string: the output
        """
        return wait(self._it.bash_session(session_name=session_name, input=input, wait_for_output=wait_for_output, idle_timeout=idle_timeout, max_output_bytes=max_output_bytes, restart=restart))

    def bash_session_run(self, *, session_name: str, command: str | None=None, timeout: float | None=None, ready_timeout: float | None=None, max_output_bytes: int | None=None, interrupt_abandoned: bool | None=None) -> dict[str, Any]:
        """Run a command in a session, and tell its exit status.

        session_name: The session, as it was named when it began
        command: A command line, or several lines (default: the one that runs is waited for)
        timeout: Seconds to wait for the end; the command runs on then (default: no limit)
        ready_timeout: Seconds to wait until the session takes a command, a program other than a shell a minute at most; it is not given then (default: `timeout`, 10 at least)
        max_output_bytes: Most bytes of output, of which head and tail are kept; 0 and less mean the default (default: 10485760)
        interrupt_abandoned: Interrupt the command where the client goes away (default: false)
        Result: {state, exit_code, error?, output, cwd, duration_ms, omitted_bytes, notice?}
        """
        return wait(self._it.bash_session_run(session_name=session_name, command=command, timeout=timeout, ready_timeout=ready_timeout, max_output_bytes=max_output_bytes, interrupt_abandoned=interrupt_abandoned))

    def bash_session_close(self, *, session_name: str) -> None:
        """End a session with all that runs in it.

        session_name: The session, as it was named when it began
        Result: null
        """
        wait(self._it.bash_session_close(session_name=session_name))

    def bash_session_resize(self, *, session_name: str, rows: int, cols: int) -> None:
        """Change the size of the terminal.

        session_name: The session, as it was named when it began
        rows: Height of the terminal
        cols: Width of the terminal
        Result: null
        """
        wait(self._it.bash_session_resize(session_name=session_name, rows=rows, cols=cols))

    def bash_session_signal(self, *, session_name: str, signal: str) -> None:
        """Signal the programs in the foreground.

        session_name: The session, as it was named when it began
        signal: Name or number of a signal: INT, SIGTERM, 9
        Result: null
        """
        wait(self._it.bash_session_signal(session_name=session_name, signal=signal))

    def bash_session_watch(self, *, session_name: str, cursor: int | None=None, timeout: float | None=None) -> dict[str, Any]:
        """Follow what a session shows and what is typed, and take nothing of it from anybody.

        session_name: The session, as it was named when it began
        cursor: What comes behind this, as an answer gave it (default: what was shown last, at once)
        timeout: Seconds to wait for something (default: no limit)
        Result: {cursor, rows, cols, events, omitted_bytes?, ended?}
        """
        return wait(self._it.bash_session_watch(session_name=session_name, cursor=cursor, timeout=timeout))

    def bash_session_record(self, *, session_name: str, path: str | None=None, version: int | None=None, max_bytes: int | None=None, stop: bool | None=None) -> dict[str, Any]:
        """Record what a session shows and what is typed.

        session_name: The session, as it was named when it began
        path: Where to, an absolute path at which nothing is (default: a file in the server's directory)
        version: Of asciicast: 2 or 3 (default: 2)
        max_bytes: Most bytes of a file; what is older is in another one, of the same size at most (default: 67108864)
        stop: End the recording that there is (default: false)
        Result: {path, failure?}
        """
        return wait(self._it.bash_session_record(session_name=session_name, path=path, version=version, max_bytes=max_bytes, stop=stop))

    def bash_session_attach(self, *, session_name: str) -> dict[str, Any]:
        """Let a terminal take part in a session.

        session_name: The session, as it was named when it began
        Result: {socket}: a name in the server's directory, there for one viewer for five seconds
        """
        return wait(self._it.bash_session_attach(session_name=session_name))

    def exec_remote_start(self, *, command: str | None=None, argv: list[str] | None=None, input: str | None=None, stdin_open: bool | None=None, env: dict[str, str] | None=None, cwd: str | None=None, user: str | dict[str, Any] | None=None, timeout: float | None=None, umask: int | None=None, encoding: str | None=None, pty: bool | dict[str, Any] | None=None, ends_with: int | None=None, confine: dict[str, Any] | None=None, limits: dict[str, Any] | None=None, surroundings: dict[str, Any] | None=None) -> dict[str, Any]:
        """Start a job: a program in the background.

        command: A command for /bin/sh -c; or argv
        argv: Program and arguments, run without a shell; or command
        input: Text for its stdin (default: none)
        stdin_open: Keep stdin open for exec_remote_write_stdin (default: false)
        env: Variables to add to the server's
        cwd: Directory to begin in (default: the server's)
        user: Whom it runs as; another user than its own takes a server of root (default: the server's user)
        timeout: Seconds after which it is killed (default: never)
        umask: Its umask, as a decimal number (default: the server's)
        encoding: utf-8, or latin-1: each byte is a character (default: utf-8)
        pty: Run it on a terminal, whose other end is stdin and stdout (default: false)
        ends_with: A process with whose end it ends, however that comes (default: none)
        confine: What it may do, as of 'toolbox confine' (default: all that its user may)
        limits: What it may use up (default: none)
        surroundings: What it begins with in the place of the server's own (default: the server's)
        Result: {pid, enforced?}
        """
        return wait(self._it.exec_remote_start(command=command, argv=argv, input=input, stdin_open=stdin_open, env=env, cwd=cwd, user=user, timeout=timeout, umask=umask, encoding=encoding, pty=pty, ends_with=ends_with, confine=confine, limits=limits, surroundings=surroundings))

    def exec_remote_list(self) -> list[dict[str, Any]]:
        """List the jobs that run, and those that ended less than an hour ago.

        Result: an array of {pid, state, exit_code, user, age_s, duration_s, command, …}
        """
        return wait(self._it.exec_remote_list())

    def exec_remote_poll(self, *, pid: int, ack_seq: int) -> dict[str, Any]:
        """Take what a job has printed, and its state.

        pid: The job, by the number that exec_remote_start gave
        ack_seq: The last seq that was received; 0: none
        Result: {state, exit_code, seq, stdout, stderr}
        """
        return wait(self._it.exec_remote_poll(pid=pid, ack_seq=ack_seq))

    def exec_remote_wait(self, *, pid: int, ack_seq: int, timeout: float | None=None) -> dict[str, Any]:
        """The same, once there is something to say.

        pid: The job, by the number that exec_remote_start gave
        ack_seq: The last seq that was received; 0: none
        timeout: Seconds to wait (default: no limit)
        Result: {state, exit_code, seq, stdout, stderr}
        """
        return wait(self._it.exec_remote_wait(pid=pid, ack_seq=ack_seq, timeout=timeout))

    def exec_remote_follow(self, *, pid: int, cursor: int | None=None) -> dict[str, Any]:
        """The same as it happens, over a stream each as an event.

        pid: The job, by the number that exec_remote_start gave
        cursor: That of the last event that was received (default: none was)
        Result: {cursor, ended, state, exit_code, seq, stdout, stderr}
        """
        return wait(self._it.exec_remote_follow(pid=pid, cursor=cursor))

    def exec_remote_kill(self, *, pid: int, ack_seq: int) -> dict[str, Any]:
        """End a job and all its descendants: TERM, after 5 seconds KILL.

        pid: The job, by the number that exec_remote_start gave
        ack_seq: The last seq that was received; 0: none
        Result: {seq, stdout, stderr}
        """
        return wait(self._it.exec_remote_kill(pid=pid, ack_seq=ack_seq))

    def exec_remote_write_stdin(self, *, pid: int, ack_seq: int, data: str) -> dict[str, Any]:
        """Write to its stdin.

        pid: The job, by the number that exec_remote_start gave
        ack_seq: The last seq that was received; 0: none
        data: What to write
        Result: {seq, stdout, stderr}, and stdin_discarded: bytes in all that nobody will read
        """
        return wait(self._it.exec_remote_write_stdin(pid=pid, ack_seq=ack_seq, data=data))

    def exec_remote_close_stdin(self, *, pid: int, ack_seq: int) -> dict[str, Any]:
        """Close its stdin.

        pid: The job, by the number that exec_remote_start gave
        ack_seq: The last seq that was received; 0: none
        Result: {seq, stdout, stderr}
        """
        return wait(self._it.exec_remote_close_stdin(pid=pid, ack_seq=ack_seq))

    def exec_remote_resize(self, *, pid: int, rows: int, cols: int) -> None:
        """Change the size of the terminal of a job that has one.

        pid: The job, by the number that exec_remote_start gave
        rows: Height of the terminal
        cols: Width of the terminal
        Result: null
        """
        wait(self._it.exec_remote_resize(pid=pid, rows=rows, cols=cols))

    def exec_remote_signal(self, *, pid: int, signal: str) -> None:
        """Signal its process group.

        pid: The job, by the number that exec_remote_start gave
        signal: Name or number of a signal: INT, SIGTERM, 15
        Result: null
        """
        wait(self._it.exec_remote_signal(pid=pid, signal=signal))

    def exec_remote_hold(self, *, pid: int) -> None:
        """Wait for the end of a job that ends with the caller.

        pid: The job, by the number that exec_remote_start gave
        Result: null
        """
        wait(self._it.exec_remote_hold(pid=pid))

    def mcp_launch_server(self, *, server_params: dict[str, Any], ends_with: int | None=None, user: str | dict[str, Any] | None=None, confine: dict[str, Any] | None=None, limits: dict[str, Any] | None=None) -> int:
        """Start an MCP server that speaks on stdin and stdout.

        server_params: What to start
        ends_with: A process with whose end it ends, however that comes (default: none)
        user: Whom it runs as; another user than its own takes a server of root (default: the server's user)
        confine: What it may do, as of 'toolbox confine' (default: all that its user may)
        limits: What it may use up (default: none)
        Result: the number of its session, from 0
        """
        return wait(self._it.mcp_launch_server(server_params=server_params, ends_with=ends_with, user=user, confine=confine, limits=limits))

    def mcp_list_servers(self) -> list[dict[str, Any]]:
        """List the MCP servers.

        Result: an array of {session_id, pid, command, user, state, exit_code, initialized, open_requests, unread_notifications, dropped_lines, stderr, …}
        """
        return wait(self._it.mcp_list_servers())

    def mcp_send_request(self, *, session_id: int, request: dict[str, Any], timeout: float | None=None) -> Any:
        """Pass a request on to an MCP server.

        session_id: The server, by the number that mcp_launch_server gave
        request: A JSON-RPC request
        timeout: Seconds to wait for the answer; then the server is told that it is cancelled (default: for ever)
        Result: the server's response, whole
        """
        return wait(self._it.mcp_send_request(session_id=session_id, request=request, timeout=timeout))

    def mcp_read_requests(self, *, session_id: int, max: int | None=None, timeout: float | None=None) -> dict[str, Any]:
        """Take what a server asks for (sampling, elicitation, roots); from the first call on that waits for mcp_send_response, before it is refused.

        session_id: The server, by the number that mcp_launch_server gave
        max: Most requests (default: all)
        timeout: Seconds to wait for one, where there is none (default: 0)
        Result: {requests, dropped, remaining}
        """
        return wait(self._it.mcp_read_requests(session_id=session_id, max=max, timeout=timeout))

    def mcp_send_response(self, *, session_id: int, response: dict[str, Any]) -> None:
        """Answer what a server has asked for.

        session_id: The server, by the number that mcp_launch_server gave
        response: A JSON-RPC response, with the id of the server's request
        Result: null
        """
        wait(self._it.mcp_send_response(session_id=session_id, response=response))

    def mcp_send_notification(self, *, session_id: int, notification: dict[str, Any]) -> None:
        """Pass a notification on.

        session_id: The server, by the number that mcp_launch_server gave
        notification: A JSON-RPC notification
        Result: null
        """
        wait(self._it.mcp_send_notification(session_id=session_id, notification=notification))

    def mcp_kill_server(self, *, session_id: int) -> None:
        """End an MCP server.

        session_id: The server, by the number that mcp_launch_server gave
        Result: null
        """
        wait(self._it.mcp_kill_server(session_id=session_id))

    def mcp_read_notifications(self, *, session_id: int, max: int | None=None) -> dict[str, Any]:
        """Take what a server has said without being asked.

        session_id: The server, by the number that mcp_launch_server gave
        max: Most notifications (default: all)
        Result: {notifications, dropped, remaining}
        """
        return wait(self._it.mcp_read_notifications(session_id=session_id, max=max))

    def mcp_follow(self, *, session_id: int, cursor: int | None=None) -> dict[str, Any]:
        """What a server says and asks for as it comes, over a stream each as an event; what it asks for was answered, with an error.

        session_id: The server, by the number that mcp_launch_server gave
        cursor: That of the last event that was received (default: none was)
        Result: {notifications, dropped, remaining, cursor, ended}
        """
        return wait(self._it.mcp_follow(session_id=session_id, cursor=cursor))

    def web_new_session(self, *, headful: bool | None=None, accept_dialogs: bool | None=None, ask_dialogs: bool | None=None, accept_certificates: bool | None=None, devtools: bool | None=None, downloads: str | None=None, ends_with: int | None=None, user: str | dict[str, Any] | None=None, surroundings: dict[str, Any] | None=None) -> dict[str, Any]:
        """Start a browser.

        headful: With a window (default: false)
        accept_dialogs: Answer yes to dialogs (default: false)
        ask_dialogs: Leave dialogs to web_dialog (default: false)
        accept_certificates: Show pages whose certificate is not trusted (default: false)
        devtools: Let web_devtools work (default: false)
        downloads: Absolute path of a folder for what is downloaded, that the browser's user can write to (default: downloads are refused)
        ends_with: A process with whose end it ends, however that comes (default: none)
        user: Whom it runs as; another user than its own takes a server of root (default: the server's user)
        surroundings: What it begins with in the place of the server's own (default: the server's)
        Result: {session_name}
        """
        return wait(self._it.web_new_session(headful=headful, accept_dialogs=accept_dialogs, ask_dialogs=ask_dialogs, accept_certificates=accept_certificates, devtools=devtools, downloads=downloads, ends_with=ends_with, user=user, surroundings=surroundings))

    def web_list_sessions(self) -> list[dict[str, Any]]:
        """List the browser sessions.

        Result: an array of {session_name, pid, state, user, tabs, url, browser, age_s, processes, memory_kb, …}
        """
        return wait(self._it.web_list_sessions())

    def web_go(self, *, session_name: str, url: str) -> dict[str, Any]:
        """Open a page.

        session_name: The session, as web_new_session named it
        url: Address; without a scheme it is http:// for localhost and its like, else https://
        Result: a page
        """
        return wait(self._it.web_go(session_name=session_name, url=url))

    def web_click(self, *, session_name: str, element_id: int, how: str | None=None, to: int | None=None, x: int | None=None, y: int | None=None) -> dict[str, Any]:
        """Click an element, hover over it or drag it.

        session_name: The session, as web_new_session named it
        element_id: The number at the front of the element's line
        how: left, right, middle, double, hover or drag (default: left)
        to: The element to drag it to (default: none)
        x: Where in the element, from its left; of a drag without to by how much to the right (default: its middle)
        y: The same from its top (default: its middle)
        Result: a page
        """
        return wait(self._it.web_click(session_name=session_name, element_id=element_id, how=how, to=to, x=x, y=y))

    def web_type(self, *, session_name: str, element_id: int, text: str) -> dict[str, Any]:
        """Type into an element, behind what is there.

        session_name: The session, as web_new_session named it
        element_id: The number at the front of the element's line
        text: What to type
        Result: a page
        """
        return wait(self._it.web_type(session_name=session_name, element_id=element_id, text=text))

    def web_type_submit(self, *, session_name: str, element_id: int, text: str) -> dict[str, Any]:
        """Type in place of what is there, and press Enter.

        session_name: The session, as web_new_session named it
        element_id: The number at the front of the element's line
        text: What to type
        Result: a page
        """
        return wait(self._it.web_type_submit(session_name=session_name, element_id=element_id, text=text))

    def web_scroll(self, *, session_name: str, direction: str, element_id: int | None=None) -> dict[str, Any]:
        """Scroll the page, or a part of it.

        session_name: The session, as web_new_session named it
        direction: up or down, by the height of what is scrolled
        element_id: What to scroll, or something in it (default: what has the focus, was clicked or lies on top, or else the page)
        Result: a page
        """
        return wait(self._it.web_scroll(session_name=session_name, direction=direction, element_id=element_id))

    def web_back(self, *, session_name: str) -> dict[str, Any]:
        """Go back in the history.

        session_name: The session, as web_new_session named it
        Result: a page
        """
        return wait(self._it.web_back(session_name=session_name))

    def web_forward(self, *, session_name: str) -> dict[str, Any]:
        """Go forward in the history.

        session_name: The session, as web_new_session named it
        Result: a page
        """
        return wait(self._it.web_forward(session_name=session_name))

    def web_refresh(self, *, session_name: str) -> dict[str, Any]:
        """Load the page again.

        session_name: The session, as web_new_session named it
        Result: a page
        """
        return wait(self._it.web_refresh(session_name=session_name))

    def web_select(self, *, session_name: str, element_id: int, value: str) -> dict[str, Any]:
        """Choose an option of a select.

        session_name: The session, as web_new_session named it
        element_id: The number at the front of the element's line
        value: An option's value, or what it shows
        Result: a page
        """
        return wait(self._it.web_select(session_name=session_name, element_id=element_id, value=value))

    def web_press(self, *, session_name: str, key: str) -> dict[str, Any]:
        """Press a key.

        session_name: The session, as web_new_session named it
        key: Enter, Control+A, é, …
        Result: a page
        """
        return wait(self._it.web_press(session_name=session_name, key=key))

    def web_screenshot(self, *, session_name: str, full_page: bool | None=None, element_id: int | None=None) -> dict[str, Any]:
        """Take a picture of the page.

        session_name: The session, as web_new_session named it
        full_page: All of the page rather than what is visible (default: false)
        element_id: An element alone, also where it is out of view (default: none)
        Result: {mime_type, data}: a PNG in base64
        """
        return wait(self._it.web_screenshot(session_name=session_name, full_page=full_page, element_id=element_id))

    def web_evaluate(self, *, session_name: str, expression: str) -> Any:
        """Evaluate a JavaScript expression.

        session_name: The session, as web_new_session named it
        expression: JavaScript; a promise is waited for
        Result: {type, value}, or {type, description} of what JSON can't say
        """
        return wait(self._it.web_evaluate(session_name=session_name, expression=expression))

    def web_wait(self, *, session_name: str, text: str | None=None, gone: str | None=None, url: str | None=None, element_id: int | None=None, network_idle: bool | None=None, timeout: int | None=None) -> dict[str, Any]:
        """Wait for something on the page.

        session_name: The session, as web_new_session named it
        text: A text that is to come into sight (default: none)
        gone: A text that is to go (default: none)
        url: A part of the address to come (default: none)
        element_id: An element that is to be seen and enabled (default: none)
        network_idle: Until nothing is loaded or asked for (default: false)
        timeout: Seconds (default: 30)
        Result: a page
        """
        return wait(self._it.web_wait(session_name=session_name, text=text, gone=gone, url=url, element_id=element_id, network_idle=network_idle, timeout=timeout))

    def web_find(self, *, session_name: str, text: str) -> dict[str, Any]:
        """Find a text on the page, and scroll to it.

        session_name: The session, as web_new_session named it
        text: What to look for; capitals don't matter
        Result: a page
        """
        return wait(self._it.web_find(session_name=session_name, text=text))

    def web_text(self, *, session_name: str, format: str | None=None, offset: int | None=None, max: int | None=None) -> Any:
        """Read the whole text of the page.

        session_name: The session, as web_new_session named it
        format: text, markdown (of the main region, where there is one) or html (default: text)
        offset: First character, to go on with (default: 0)
        max: Characters at most; 0: all (default: 0)
        Result: {web_url, title, text}; with max also {total, next_offset}
        """
        return wait(self._it.web_text(session_name=session_name, format=format, offset=offset, max=max))

    def web_tabs(self, *, session_name: str, tab: int | None=None, new: bool | None=None, close: bool | None=None) -> Any:
        """List the tabs; show, open or close one.

        session_name: The session, as web_new_session named it
        tab: Show this tab (default: list them)
        new: Open a tab (default: false)
        close: Close the tab instead (default: false)
        Result: an array of {tab, url, title, current}; with other params a page
        """
        return wait(self._it.web_tabs(session_name=session_name, tab=tab, new=new, close=close))

    def web_upload(self, *, session_name: str, element_id: int, paths: list[dict[str, Any]]) -> dict[str, Any]:
        """Choose files for an input.

        session_name: The session, as web_new_session named it
        element_id: An input for files, its label, or what asks for files when it is clicked
        paths: Absolute paths of files that the browser's user can read
        Result: a page
        """
        return wait(self._it.web_upload(session_name=session_name, element_id=element_id, paths=paths))

    def web_downloads(self, *, session_name: str) -> Any:
        """List what was downloaded.

        session_name: The session, as web_new_session named it
        Result: an array of {name, state, bytes, total, folder, url}; state is running, done, canceled, or what is wrong
        """
        return wait(self._it.web_downloads(session_name=session_name))

    def web_dialog(self, *, session_name: str, accept: bool | None=None, text: str | None=None) -> dict[str, Any]:
        """Answer the dialog that a page shows.

        session_name: The session, as web_new_session named it
        accept: Yes, or no (default: true)
        text: What to answer a prompt with (default: what stands there)
        Result: a page
        """
        return wait(self._it.web_dialog(session_name=session_name, accept=accept, text=text))

    def web_pdf(self, *, session_name: str) -> dict[str, Any]:
        """Print the page as PDF.

        session_name: The session, as web_new_session named it
        Result: {mime_type, data}: in base64
        """
        return wait(self._it.web_pdf(session_name=session_name))

    def web_console(self, *, session_name: str) -> list[dict[str, Any]]:
        """Tell what the page has written to its console.

        session_name: The session, as web_new_session named it
        Result: an array of {level, text, url, line}
        """
        return wait(self._it.web_console(session_name=session_name))

    def web_network(self, *, session_name: str, url: str | None=None, body: int | None=None) -> Any:
        """List the newest requests of pages.

        session_name: The session, as web_new_session named it
        url: A part of the address (default: all)
        body: Instead of the list, what was sent and what came of the request with this id (default: none)
        Result: an array of {id, method, url, type, status, mime_type, bytes, error}, 200 at most; with body {id, request_body, base64, body}
        """
        return wait(self._it.web_network(session_name=session_name, url=url, body=body))

    def web_emulate(self, *, session_name: str, width: int | None=None, height: int | None=None, scale: float | None=None, touch: bool | None=None, user_agent: str | None=None, language: str | None=None, timezone: str | None=None, latitude: float | None=None, longitude: float | None=None, color_scheme: str | None=None, network: str | None=None, permissions: list[str] | None=None) -> dict[str, Any]:
        """Be another browser: size, language, place, ….

        session_name: The session, as web_new_session named it
        width: Of the window, in CSS pixels; with height (default: 1280)
        height: Its height (default: 1080)
        scale: Pixels of the device for each of these (default: 1)
        touch: With the size: a touch screen (default: false)
        user_agent: What the browser calls itself (default: as it is)
        language: Languages that pages are asked for: de-DE,de (default: as they are)
        timezone: Europe/Berlin (default: as it is)
        latitude: Where the browser is, with longitude; pages may ask for it then (default: not told)
        longitude: Degrees to the east (default: not told)
        color_scheme: dark or light (default: as it is)
        network: offline, or online again (default: as it is)
        permissions: What pages may do without asking: clipboardReadWrite, notifications, … (default: as it is)
        Result: a page
        """
        return wait(self._it.web_emulate(session_name=session_name, width=width, height=height, scale=scale, touch=touch, user_agent=user_agent, language=language, timezone=timezone, latitude=latitude, longitude=longitude, color_scheme=color_scheme, network=network, permissions=permissions))

    def web_state(self, *, session_name: str, load: dict[str, Any] | None=None) -> Any:
        """Tell cookies and local storage, or take them over.

        session_name: The session, as web_new_session named it
        load: {cookies, origins}, as this method or Playwright has given it: to be had from now on (default: what there is is told)
        Result: {cookies, origins}; with load a page
        """
        return wait(self._it.web_state(session_name=session_name, load=load))

    def web_devtools(self, *, session_name: str, method: str, params: dict[str, Any] | None=None, browser: bool | None=None) -> Any:
        """Call a method of the DevTools protocol.

        session_name: The session, as web_new_session named it
        method: Of the DevTools protocol: Page.getLayoutMetrics
        params: Its params (default: none)
        browser: Ask the browser itself rather than the page (default: false)
        Result: its result
        """
        return wait(self._it.web_devtools(session_name=session_name, method=method, params=params, browser=browser))

    def web_close_session(self, *, session_name: str) -> None:
        """End a browser session.

        session_name: The session, as web_new_session named it
        Result: null
        """
        wait(self._it.web_close_session(session_name=session_name))

    def computer_new_session(self, *, display: str | None=None, width: int | None=None, height: int | None=None, depth: int | None=None, dpi: int | None=None, window_manager: str | None=None, unscaled: bool | None=None, ends_with: int | None=None, user: str | dict[str, Any] | None=None, surroundings: dict[str, Any] | None=None) -> dict[str, Any]:
        """Connect to a display, or start Xvfb with a window manager.

        display: A display that is there, as :0 or HOST:0 (default: $DISPLAY; or an Xvfb that is started)
        width: Of an Xvfb that is started, in pixels (default: 1366)
        height: Its height (default: 768)
        depth: Its bits for a pixel: 16, 24 or 30 (default: 24)
        dpi: Its pixels for an inch (default: 96)
        window_manager: The program of one that is started with it, or none (default: openbox, or another one that is known)
        unscaled: Pictures and coordinates are the screen's own also where it is larger than 1366x768, 1280x800 or 1024x768 (default: false)
        ends_with: A process with whose end it ends, however that comes (default: none)
        user: Whom it runs as; another user than its own takes a server of root (default: the server's user)
        surroundings: What it begins with in the place of the server's own (default: the server's)
        Result: {session_name, display, width, height}
        """
        return wait(self._it.computer_new_session(display=display, width=width, height=height, depth=depth, dpi=dpi, window_manager=window_manager, unscaled=unscaled, ends_with=ends_with, user=user, surroundings=surroundings))

    def computer_list_sessions(self) -> list[dict[str, Any]]:
        """List the desktops' sessions.

        Result: an array of {session_name, pid, state, user, display, width, height, depth, window_manager, age_s, processes, memory_kb, …}
        """
        return wait(self._it.computer_list_sessions())

    def computer_action(self, *, session_name: str, action: str | None=None, type: str | None=None, text: str | None=None, key: str | None=None, keys: list[str] | None=None, url: str | None=None, coordinate: list[int] | None=None, start_coordinate: list[int] | None=None, region: list[int] | None=None, x: int | None=None, y: int | None=None, button: str | None=None, path: list[dict[str, Any]] | None=None, scroll_x: int | None=None, scroll_y: int | None=None, scroll_amount: int | None=None, scroll_direction: str | None=None, duration: float | None=None, press_enter: bool | None=None, screenshot: bool | None=None, settle_ms: int | None=None) -> dict[str, Any]:
        """Do something on a desktop, as models ask for it: screenshot, zoom, cursor_position, mouse_move, left_click, right_click, middle_click, back_click, forward_click, double_click, triple_click, left_click_drag, left_mouse_down, left_mouse_up, scroll, key, hold_key, key_down, key_up, type, wait, open_web_browser, navigate; or OpenAI's click, double_click, drag, keypress, move, scroll, type, wait.

        session_name: The session, as computer_new_session named it
        action: As Anthropic's tools and inspect_ai's computer() name it: left_click, type, … (default: type)
        type: The same as OpenAI's tool names it: click, keypress, … (default: action)
        text: What to type; keys to press, or to hold during a click (default: none)
        key: Keys to hold during a click or scroll (default: none)
        keys: Keys that are pressed together (default: none)
        url: Of navigate, in the place of text (default: text)
        coordinate: [x, y] in the picture (default: where the pointer is)
        start_coordinate: Where a drag begins (default: where the pointer is)
        region: [x0, y0, x1, y1] of a zoom (default: none)
        x: The same as coordinate, in OpenAI's form (default: where the pointer is)
        y: With x (default: where the pointer is)
        button: Of click: left, right, wheel, back or forward (default: left)
        path: Of drag: points {x, y} (default: from start_coordinate to coordinate)
        scroll_x: Pixels to the right, 100 a click of the wheel (default: 0)
        scroll_y: Pixels down (default: 0)
        scroll_amount: Clicks of the wheel (default: none)
        scroll_direction: up, down, left or right (default: none)
        duration: Seconds to wait or to hold, 100 at most (default: 1 of wait)
        press_enter: Press Return when all is typed (default: false)
        screenshot: Answer with a picture, once the screen has come to rest (default: of screenshot and wait)
        settle_ms: Wait for that no longer than so many milliseconds (default: 2000)
        Result: {output?, x?, y?}, and where there is a picture {mime_type, width, height, data}: a PNG in base64
        """
        return wait(self._it.computer_action(session_name=session_name, action=action, type=type, text=text, key=key, keys=keys, url=url, coordinate=coordinate, start_coordinate=start_coordinate, region=region, x=x, y=y, button=button, path=path, scroll_x=scroll_x, scroll_y=scroll_y, scroll_amount=scroll_amount, scroll_direction=scroll_direction, duration=duration, press_enter=press_enter, screenshot=screenshot, settle_ms=settle_ms))

    def computer_screenshot(self, *, session_name: str, region: list[int] | None=None, changed: bool | None=None, full: bool | None=None, no_cursor: bool | None=None) -> Any:
        """Take a picture of a desktop.

        session_name: The session, as computer_new_session named it
        region: [x0, y0, x1, y1] (default: all of the screen)
        changed: Only the part that has changed since the last one (default: false)
        full: With every pixel of the screen; a region always has them (default: false)
        no_cursor: Without the pointer (default: false)
        Result: {mime_type, width, height, data}: a PNG in base64; with a region or changed {x, y}; with changed {changed}
        """
        return wait(self._it.computer_screenshot(session_name=session_name, region=region, changed=changed, full=full, no_cursor=no_cursor))

    def computer_wait(self, *, session_name: str, region: list[int] | None=None, quiet: float | None=None, timeout: float | None=None) -> dict[str, Any]:
        """Wait until nothing changes on a desktop's screen.

        session_name: The session, as computer_new_session named it
        region: [x0, y0, x1, y1] (default: all of the screen)
        quiet: Seconds for which nothing has changed; a caret may blink (default: 0.5)
        timeout: Seconds to wait for that at most (default: 30)
        Result: {stable, quiet_s}
        """
        return wait(self._it.computer_wait(session_name=session_name, region=region, quiet=quiet, timeout=timeout))

    def computer_close_session(self, *, session_name: str) -> None:
        """End a desktop's session, with what it has started.

        session_name: The session, as computer_new_session named it
        Result: null
        """
        wait(self._it.computer_close_session(session_name=session_name))

    def text_editor(self, *, command: str, _run_as_user: str | None=None, _run_as: str | dict[str, Any] | None=None, path: str | None=None, view_range: list[int] | None=None, encoding: str | None=None, file_text: str | None=None, overwrite: bool | None=None, parents: bool | None=None, old_str: str | None=None, new_str: str | None=None, replace_all: bool | None=None, expected_count: int | None=None, insert_line: int | None=None, insert_text: str | None=None, patch: str | None=None, edits: list[dict[str, Any]] | None=None) -> str:
        """View and edit files, exactly.

        command: view, create, str_replace, insert, undo_edit, apply_patch or edit_many, each with params of its own
        _run_as_user: As whom the work is done, by name; another user takes root (default: the caller)
        _run_as: The same, by name or by numbers (default: the caller)
        path: The file; a relative one is taken from the caller's directory
        view_range: First and last line, from 1; last -1: to the end (default: all)
        encoding: Of the file: utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1 (default: utf-8, or utf-16 where a byte order mark says so)
        file_text: Its content
        overwrite: Also in the place of a file that is there, which can be undone (default: false)
        parents: Make the directories that are missing on the way (default: false)
        old_str: What is replaced; it has to occur once, unless one of the next two says otherwise
        new_str: What stands there then (default: nothing)
        replace_all: Wherever it occurs (default: false)
        expected_count: Replace so many, and nothing where it occurs more or less often (default: any with replace_all, else 1)
        insert_line: The line behind which to insert; 0: in front of the first
        insert_text: Another name of new_str
        patch: A unified diff, git's too, or a text from *** Begin Patch to *** End Patch
        edits: The edits, in their order: objects with the params of str_replace, insert or create
        Result: a string: what was done or is there, in words
        """
        return wait(self._it.text_editor(command=command, _run_as_user=_run_as_user, _run_as=_run_as, path=path, view_range=view_range, encoding=encoding, file_text=file_text, overwrite=overwrite, parents=parents, old_str=old_str, new_str=new_str, replace_all=replace_all, expected_count=expected_count, insert_line=insert_line, insert_text=insert_text, patch=patch, edits=edits))

    def server_watch(self, *, cursor: int | None=None) -> dict[str, Any]:
        """Sessions, jobs, MCP servers and browsers as they begin and end, over a stream each as an event.

        cursor: That of the last event that was received (default: from now on, and the first answer comes at once)
        Result: {cursor, ended, dropped, events}
        """
        return wait(self._it.server_watch(cursor=cursor))

    def file_read(self, *, path: str, offset: int | None=None, length: int | None=None, encoding: str | None=None, sha256: bool | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """Read a file, or a part of it.

        path: The file
        offset: The first byte (default: 0)
        length: How many bytes at most (default: 1048576)
        encoding: Of data: base64, utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1 (default: utf-8)
        sha256: Also the sha256 of all of it (default: false)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {data, offset, length, end, sha256?, type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?}
        """
        return wait(self._it.file_read(path=path, offset=offset, length=length, encoding=encoding, sha256=sha256, user=user))

    def file_write(self, *, path: str, data: str, encoding: str | None=None, offset: int | None=None, append: bool | None=None, mode: int | None=None, owner: str | None=None, parents: bool | None=None, exclusive: bool | None=None, if_sha256: str | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """Write a file: whole and at once, or a part of it.

        path: The file
        data: Its content, or a part of it
        encoding: Of data: base64, utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1 (default: utf-8)
        offset: Write there, and leave the rest as it is (default: the whole content is replaced, at once)
        append: Write behind what is there (default: false)
        mode: Its permission bits, as a decimal number (0644 is 420) (default: as it was; of a new file by the umask)
        owner: Whose it is to be, as of file_chown (default: as it was; a new file is its writer's)
        parents: Make the directories that lead there (default: false)
        exclusive: Make it; one that is there is an error (default: false)
        if_sha256: Only where what is there has this sha256, in lower-case hexadecimal digits (default: in any case)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {written, created, atomic, type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?}
        """
        return wait(self._it.file_write(path=path, data=data, encoding=encoding, offset=offset, append=append, mode=mode, owner=owner, parents=parents, exclusive=exclusive, if_sha256=if_sha256, user=user))

    def file_stat(self, *, path: str, follow: bool | None=None, sha256: bool | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """What is known of a file, directory or link.

        path: What is asked about
        follow: Where it is a link: what it leads to (default: true)
        sha256: Also the sha256 of all of it (default: false)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?, sha256?}
        """
        return wait(self._it.file_stat(path=path, follow=follow, sha256=sha256, user=user))

    def file_list(self, *, path: str, depth: int | None=None, glob: str | None=None, hidden: bool | None=None, limit: int | None=None, sort: str | None=None, after: str | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """What is in a directory, in the order of bytes.

        path: The directory
        depth: How many levels (default: 1)
        glob: Only paths, from the directory on, that match: *, ?, **, [a-z], {a,b} (default: all)
        hidden: Also names that begin with a dot (default: true)
        limit: How many entries at most (default: 1000)
        sort: name (of bytes), size (the largest first) or mtime (the newest first) (default: name)
        after: Go on behind this path: `next` of the answer before (default: from the first one)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {entries, next?, incomplete}; an entry has path, type, size, mode, mtime, uid, gid, user, group, links, inode, disk_bytes, target?
        """
        return wait(self._it.file_list(path=path, depth=depth, glob=glob, hidden=hidden, limit=limit, sort=sort, after=after, user=user))

    def file_make_dir(self, *, path: str, parents: bool | None=None, mode: int | None=None, user: str | dict[str, Any] | None=None) -> None:
        """Make a directory.

        path: The directory
        parents: Make the directories that lead there (default: false)
        mode: Its permission bits, as a decimal number (0644 is 420) (default: 0777 as the umask allows)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_make_dir(path=path, parents=parents, mode=mode, user=user))

    def file_remove(self, *, path: str, recursive: bool | None=None, user: str | dict[str, Any] | None=None) -> None:
        """Remove a file, a link or a directory.

        path: What is removed; of a link the link itself
        recursive: A directory with all that is in it (default: false)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_remove(path=path, recursive=recursive, user=user))

    def file_move(self, *, path: str, to: str, overwrite: bool | None=None, user: str | dict[str, Any] | None=None) -> None:
        """Move or rename within a file system.

        path: What is moved
        to: Its new path
        overwrite: Replace a file that is there (default: false)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_move(path=path, to=to, overwrite=overwrite, user=user))

    def file_copy(self, *, path: str, to: str, overwrite: bool | None=None, recursive: bool | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """Copy a file, or a tree with its links, modes and times.

        path: What is copied
        to: The path of the copy
        overwrite: Replace a file that is there (default: false)
        recursive: A directory with all that is in it (default: false)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {files, bytes}
        """
        return wait(self._it.file_copy(path=path, to=to, overwrite=overwrite, recursive=recursive, user=user))

    def file_link(self, *, path: str, to: str, hard: bool | None=None, user: str | dict[str, Any] | None=None) -> None:
        """Make a link.

        path: The link to make
        to: What it leads to
        hard: Another name of the same file (default: false: a symbolic link)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_link(path=path, to=to, hard=hard, user=user))

    def file_chmod(self, *, path: str, mode: int, user: str | dict[str, Any] | None=None) -> None:
        """Set permission bits.

        path: The file
        mode: Its permission bits, as a decimal number (0644 is 420)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_chmod(path=path, mode=mode, user=user))

    def file_chown(self, *, path: str, owner: str | None=None, gid: int | None=None, follow: bool | None=None, user: str | dict[str, Any] | None=None) -> None:
        """Set owner and group.

        path: The file
        owner: Whose it is to be, by names or numbers: user, user:group or :group (default: as it is)
        gid: The number of its group (default: as it is)
        follow: Where it is a link: what it leads to (default: true)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_chown(path=path, owner=owner, gid=gid, follow=follow, user=user))

    def file_touch(self, *, path: str, mtime: float | None=None, user: str | dict[str, Any] | None=None) -> None:
        """Set the time of change.

        path: The file; made where it is missing
        mtime: When it was changed, seconds since 1970 (default: now)
        user: As whom it is done; another user takes root (default: the caller)
        Result: null
        """
        wait(self._it.file_touch(path=path, mtime=mtime, user=user))

    def file_disk_usage(self, *, path: str, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """How much lies there, with all that is below it.

        path: A path there
        user: As whom it is done; another user takes root (default: the caller)
        Result: {entries, bytes, disk_bytes, incomplete}
        """
        return wait(self._it.file_disk_usage(path=path, user=user))

    def file_space(self, *, path: str, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """What its file system has.

        path: A path there
        user: As whom it is done; another user takes root (default: the caller)
        Result: {total_bytes, free_bytes, available_bytes, total_inodes, free_inodes, read_only}
        """
        return wait(self._it.file_space(path=path, user=user))

    def file_find(self, *, path: str | None=None, pattern: str | None=None, type: str | None=None, min_size: int | None=None, max_size: int | None=None, newer: float | None=None, older: float | None=None, hidden: bool | None=None, ignore: bool | None=None, exclude: list[str] | None=None, limit: int | None=None, timeout: float | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """Find what has such a name, kind, size or time, sorted by path.

        path: Where to begin (default: where toolbox runs)
        pattern: A glob, for names anywhere below, or with a slash for paths from there on: src/**/*.c (default: *)
        type: Only what is a file, directory, symlink or other (default: all)
        min_size: Only files of so many bytes at least
        max_size: Only files of so many bytes at most
        newer: Only what was changed later, seconds since 1970
        older: Only what was changed before that
        hidden: Also names that begin with a dot (default: false)
        ignore: Leave out what .gitignore and .ignore there say, and .git (default: true)
        exclude: Patterns as of glob: of names, or with a slash of paths (default: none)
        limit: How many at most (default: 1000)
        timeout: How many seconds at most (default: 10)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {paths, truncated, timed_out, unreadable_directories}
        """
        return wait(self._it.file_find(path=path, pattern=pattern, type=type, min_size=min_size, max_size=max_size, newer=newer, older=older, hidden=hidden, ignore=ignore, exclude=exclude, limit=limit, timeout=timeout, user=user))

    def file_search(self, *, pattern: str, path: str | None=None, literal: bool | None=None, ignore_case: bool | None=None, multiline: bool | None=None, count: bool | None=None, glob: str | None=None, context: int | None=None, hidden: bool | None=None, ignore: bool | None=None, exclude: list[str] | None=None, limit: int | None=None, timeout: float | None=None, user: str | dict[str, Any] | None=None) -> Any:
        """Find lines in text files.

        pattern: A regular expression (POSIX extended, and \\w \\d \\s \\b) for single lines
        path: Where to begin (default: where toolbox runs)
        literal: The pattern is a text (default: false)
        ignore_case: Large and small letters are the same (default: false)
        multiline: A match may go over several lines; \\n is a line end, and . none (default: false)
        count: How many lines match in each file, rather than which (default: false)
        glob: Only files like that, as the pattern of file_find (default: all)
        context: Lines to give around each match (default: 0)
        hidden: Also names that begin with a dot (default: false)
        ignore: Leave out what .gitignore and .ignore there say, and .git (default: true)
        exclude: Patterns as of glob: of names, or with a slash of paths (default: none)
        limit: How many at most (default: 200)
        timeout: How many seconds at most (default: 10)
        user: As whom it is done; another user takes root (default: the caller)
        Result: {matches, files_searched, files_binary, files_too_large, unreadable, truncated, timed_out}; a match has path, line, text, line_cut?, before?, after?, or path, count
        """
        return wait(self._it.file_search(pattern=pattern, path=path, literal=literal, ignore_case=ignore_case, multiline=multiline, count=count, glob=glob, context=context, hidden=hidden, ignore=ignore, exclude=exclude, limit=limit, timeout=timeout, user=user))

    def file_watch(self, *, path: str | None=None, cursor: str | None=None, exclude: list[str] | None=None, recursive: bool | None=None, timeout: float | None=None, stop: bool | None=None, ends_with: int | None=None, user: str | dict[str, Any] | None=None) -> dict[str, Any]:
        """What changes in a tree, as it changes, over a stream each time as an event.

        path: A directory, or a file: a watch begins. One that is relative begins where the server was started (default: cursor says it)
        cursor: That of the answer before: what it told is not told again (default: none: the answer comes at once)
        exclude: Patterns as of file_find: of names, or with a slash of paths from there on (default: none)
        recursive: Also what is in the directories there (default: true)
        timeout: How many seconds to wait for a change; then changes is empty (default: until there is one)
        stop: End the watch (default: false)
        ends_with: A process with whose end it ends, however that comes (default: none)
        user: With whose rights; another user takes root (default: the server's own)
        Result: {cursor, changes, ended, incomplete}; a change has path, change (created, changed, deleted, overflow, dropped), directory
        """
        return wait(self._it.file_watch(path=path, cursor=cursor, exclude=exclude, recursive=recursive, timeout=timeout, stop=stop, ends_with=ends_with, user=user))

    def doctor(self) -> Any:
        """Try what the tools rest on, where they run.

        Result: {ok, checks}; a check is {name, state, tools, seen, instead, change}, its state works, falls_back or fails
        """
        return wait(self._it.doctor())


class Sandbox:
    """A container, a host or whatever else a target names. `connect` makes it, `async with` lets go of it: what runs there goes on."""

    def __init__(self, it: AsyncSandbox) -> None:
        self._it = it
        self.methods = Methods(it.methods)
        self.files = Files(it.files)
        self.edit = Editor(it.edit)
        self.mcp = Mcp(it.mcp)
        self.browser = Browser(it.browser)

    @property
    def target(self) -> str:
        return self._it.target

    @classmethod
    def connect(cls, target: str, *, user: str | None=None, options: Sequence[str]=(), persist: str='60s') -> Sandbox:
        """Over the connection that is kept to `docker:NAME`, `k8s:POD`, `ssh:HOST`, `local:` (`toolbox connect --help`); places the
        program there where it isn't. `persist`: how long it is kept when nobody uses it; `options`: more of `toolbox connect`."""
        return cls(wait(AsyncSandbox.connect(target, user=user, options=options, persist=persist)))

    @classmethod
    def over(cls, command: Sequence[str]) -> Sandbox:
        """Over a command of one's own that ends in `toolbox exec --stream`."""
        return cls(wait(AsyncSandbox.over(command)))

    def __enter__(self) -> Sandbox:
        wait(self._it.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._it.__aexit__(None, None, None))

    def close(self) -> None:
        wait(self._it.close())

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, from whichever side."""
        return self._it.closed

    @property
    def hello(self) -> Hello:
        """What the program there said of itself: `version`, `build`, `instance`, `pid`, `features`, `limits`."""
        return self._it.hello

    def call(self, method: str, params: Mapping[str, Any] | None=None) -> Any:
        """Any method of docs/protocol.md."""
        return wait(self._it.call(method, params))

    def run(self, argv: Sequence[StrPath], *, input: str | bytes | None=None, env: Mapping[str, str] | None=None, cwd: StrPath | None=None, user: str | None=None, timeout: float | None=None, check: bool=False, output_limit: int | None=None, keep_last: int | None=None) -> Completed:
        """Runs a program to its end, stdout and stderr apart and to the byte.

        Cancelling and `timeout` (RunTimeout) end it with all that it has started; `check` raises RunFailed for a status that isn't 0,
        `output_limit` (bytes of each stream) OutputLimit; with `keep_last` the last bytes of each stream are kept instead. A program that
        can't be started is CannotRun.
        """
        return wait(self._it.run(argv, input=input, env=env, cwd=cwd, user=user, timeout=timeout, check=check, output_limit=output_limit, keep_last=keep_last))

    def process(self, argv: Sequence[StrPath], *, env: Mapping[str, str] | None=None, cwd: StrPath | None=None, user: str | None=None, timeout: float | None=None, stdin: bool=True) -> Process:
        """A program whose output is read, and whose stdin is written, while it runs. For `async with`."""
        return Process(wait(self._it.process(argv, env=env, cwd=cwd, user=user, timeout=timeout, stdin=stdin)))

    def start(self, argv: Sequence[StrPath] | str, *, input: str | None=None, stdin: bool=False, env: Mapping[str, str] | None=None, cwd: StrPath | None=None, user: str | None=None, timeout: float | None=None) -> Job:
        """A job: it goes on when this client goes. A string is a command for /bin/sh."""
        return Job(wait(self._it.start(argv, input=input, stdin=stdin, env=env, cwd=cwd, user=user, timeout=timeout)))

    def job(self, pid: int) -> Job:
        """One that was started before."""
        return Job(wait(self._it.job(pid)))

    def shell(self, name: str | None=None, *, program: Sequence[StrPath] | None=None, shell: str | None=None, env: Mapping[str, str] | None=None, cwd: StrPath | None=None, user: str | None=None, rows: int | None=None, cols: int | None=None) -> Shell:
        """A new session, of bash or what there is of its kind, of another `shell`, or of any interpreter (`program`); or the one that has that name."""
        return Shell(wait(self._it.shell(name, program=program, shell=shell, env=env, cwd=cwd, user=user, rows=rows, cols=cols)))

    def patch(self, patch: str, path: StrPath | None=None) -> str:
        """`edit.patch`: a diff, or a text from `*** Begin Patch` on, applied whole or not at all."""
        return wait(self._it.patch(patch, path))

    @contextmanager
    def forward(self, leads_to: int | str, *, host: str='127.0.0.1', port: int=0) -> Generator[Forward, None, None]:
        """A port of this machine (the system chooses where it is 0) that leads to a port, `HOST:PORT` or Unix socket there."""
        with entered(self._it.forward(leads_to, host=host, port=port)) as it:
            yield Forward(it)

    def doctor(self) -> Doctor:
        """What the tools rest on there, tried: `{ok, checks}`."""
        return wait(self._it.doctor())
