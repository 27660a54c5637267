"""Who runs.

The suite is the init of all that it starts: a daemon that leaves its parent becomes our child, so every process that a test
has started, however it has detached itself, is found by walking down from us. No process has to be readable or to
cooperate for that; /proc/PID/stat is open for all.
"""
import ctypes
import os
import signal
import subprocess
import threading
import time
import weakref
from pathlib import Path
from typing import NamedTuple

PR_SET_CHILD_SUBREAPER = 36


class Process(NamedTuple):
    pid: int
    start: int  # in clock ticks since boot: tells a process from a later one with the same id

    def __str__(self):
        stat = _stat(self.pid)
        if stat is None:
            return f"{self.pid} (gone)"
        return f"{self.pid} {stat.state} child of {stat.parent}: {_command_line(self.pid) or stat.name}"


class _Stat(NamedTuple):
    name: str
    state: str
    parent: int
    start: int


def _stat(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return _Stat(name, rest[0], int(rest[1]), int(rest[19]))


def _command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


_spawned = {}  # by pid, those that somebody here waits for himself; a pid that is used again is an orphan's
_spawning = threading.Lock()
_reaping_wanted = False  # no Event: its lock would be asked for again by the signal that comes while it is held


def become_init():
    """From now on orphans become our children, and are waited for when they end, as init does it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    start = subprocess.Popen.__init__

    def remembered(self, *args, **kwargs):
        with _spawning:
            start(self, *args, **kwargs)
            _spawned[self.pid] = weakref.ref(self)
        _reap_orphans()

    subprocess.Popen.__init__ = remembered
    signal.signal(signal.SIGCHLD, lambda *_: _reap_orphans())


def _is_waited_for(pid):
    process = _spawned.get(pid, lambda: None)()
    return process is not None and process.returncode is None


def _reap_orphans():
    """Waits for every orphan that has ended. Asked while somebody is at it, in a signal or in a thread, he looks again."""
    global _reaping_wanted
    _reaping_wanted = True
    while _reaping_wanted and _spawning.acquire(blocking=False):
        # one of ours may have ended before we know its number: so never while one is made
        try:
            _reaping_wanted = False
            for child in _children():
                if not _is_waited_for(child):
                    _wait_for(child)
        finally:
            _spawning.release()


def _children():
    children = []
    for task in os.listdir("/proc/self/task"):
        try:
            children += map(int, Path(f"/proc/self/task/{task}/children").read_text().split())
        except FileNotFoundError:
            pass  # a thread that is gone by now
    return children


def _wait_for(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass  # it is gone by now


def descendants(pid=None, but=()):
    """All processes below pid (us), except for the trees that begin with a pid in `but`."""
    children = {}
    for entry in os.listdir("/proc"):
        stat = _stat(int(entry)) if entry.isdigit() else None
        if stat:
            children.setdefault(stat.parent, []).append(Process(int(entry), stat.start))
    found, todo = set(), [pid or os.getpid()]
    while todo:
        new = [child for child in children.get(todo.pop(), []) if child.pid not in but]
        found.update(new)
        todo.extend(child.pid for child in new)
    return found


def is_asleep(pid):
    """It has done all that it has been told, and waits."""
    stat = _stat(pid)
    return stat is not None and stat.state == "S"


def is_stopped(pid):
    stat = _stat(pid)
    return stat is not None and stat.state == "T"


def is_zombie(process):
    stat = _stat(process.pid)
    return stat is not None and stat.start == process.start and stat.state == "Z"


def neighbours(pid):
    """Who else is in that process's pid namespace: what was started from outside is no child of its first process."""
    inside, found = os.stat(f"/proc/{pid}/ns/pid").st_ino, []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == pid:
            continue
        try:
            # of one that has ended nobody can tell, but who its parent was
            same = os.stat(entry / "ns/pid").st_ino == inside
        except OSError:
            same = False
        stat = _stat(int(entry.name))
        if stat and (same or stat.parent == pid):
            found.append(Process(int(entry.name), stat.start))
    return found


def count_zombies(pid):
    """Ended children that pid has not waited for."""
    return sum(1 for child in descendants(pid) if is_zombie(child))


def descriptors(pid):
    """What a process has open: {number: target}. For a process that is not dumpable only root may look."""
    folder = Path(f"/proc/{pid}/fd")
    found = {}
    for entry in folder.iterdir():
        try:
            found[int(entry.name)] = os.readlink(entry)
        except FileNotFoundError:
            continue
    return found


def is_server(pid):
    """By the title that a server of the tool gives itself."""
    return _command_line(pid).rstrip() == "toolbox server"


def servers():
    """The pids of all servers of the tool among our descendants."""
    return [process.pid for process in descendants() if is_server(process.pid)]


class Watch:
    """Notices what is left of the processes started after it was made. Long-lived ones (an engine) are told by keep()."""

    kept = set()

    def __init__(self):
        self.before = descendants()

    @classmethod
    def keep(cls, pid):
        cls.kept.add(pid)

    def _now(self):
        return descendants(but=self.kept) - self.before

    def left(self, seconds=0.0):
        """What has not ended within so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            # a process whose parent ends while we look is on neither branch: it takes two looks to be sure
            left = self._now() or self._now()
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.01)

    def check(self, seconds=10.0):
        """Fails when a process is left, and ends it, so that no other test suffers from it."""
        left = self.left(seconds)
        if not left:
            return
        names = "\n  ".join(sorted(map(str, left)))
        for process in left:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.left(seconds)
        raise AssertionError(f"processes left behind:\n  {names}")


def wait_until(condition, what, seconds=60.0):
    """Polls until condition() is true, and returns what it returned. The bound only tells a hang."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)
