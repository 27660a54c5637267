"""Sandboxes that are made here: what all rows of the table share.

A Place is where the tools are tried: a target of `toolbox` that stands as long as its row's context lasts.
"""
import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from harness.users import NOBODY_KNOWS as USER  # everything is run as this number where a row is about others than root

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[2]
DOOR = HERE / "door.py"


class Unavailable(Exception):
    """That sandbox can't be had here; the text says why."""


@dataclass
class Place:
    target: str
    options: tuple = ()  # of `toolbox inject`, `call`, …
    enter: tuple = ()  # the words in front of a command that is to run there
    env: dict = field(default_factory=lambda: dict(os.environ))
    scratch: str = "/tmp"  # where files can be written to
    before: str = ""
    stream: object = None  # stream(method, params): the answer, where there is no other way in
    path: str = "/toolbox"  # and where the program is then

    def look(self, script):
        """What a shell there says, or None where there is none. Twice: the first look makes what a runtime makes at a first look."""
        if not self.enter:
            return None
        for _ in range(2):
            done = subprocess.run([*self.enter, "sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  env=self.env, timeout=120, errors="replace")
        return done.stdout if done.returncode in (0, 1) else None


def program(name):
    found = shutil.which(name)
    if not found:
        raise Unavailable(f"{name} is not installed (scripts/setup sandboxes)")
    return found


def output(*argv, **kwargs):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, errors="replace", **{"timeout": 300, **kwargs})
    if done.returncode != 0:
        raise Unavailable(f"{Path(argv[0]).name}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def wait_for(what, true, process=None):
    deadline = time.monotonic() + 60
    while not true():
        if time.monotonic() > deadline or process and process.poll() is not None:
            said = process.communicate(timeout=60)[1] if process and process.poll() is not None else ""
            raise Unavailable(f"{what} does not come: {(said or 'nothing was said').strip()[-500:]}")
        time.sleep(0.1)


@contextlib.contextmanager
def background(argv, end=signal.SIGTERM, **kwargs):
    """A program that runs as long as the context, and is ended by a signal; what it says on stderr is kept for wait_for()."""
    with subprocess.Popen([str(word) for word in argv], text=True, start_new_session=True,
                          **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **kwargs}) as process:
        try:
            yield process
        finally:
            process.send_signal(end)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):  # process 1 of a namespace doesn't end when it is asked to
                os.killpg(process.pid, signal.SIGKILL)


class Lab:
    """A folder, and a root file system in it whose programs are this machine's, for as long as the script runs."""

    def __init__(self, folder, stack, binary):
        self.folder, self.stack, self.binary, self.made, self.lock = Path(folder), stack, binary, {}, threading.RLock()

    def once(self, make):
        """What make(self) gives as a context, the same each time: an engine."""
        with self.lock:
            if make not in self.made:
                try:
                    self.made[make] = self.stack.enter_context(make(self))
                except Unavailable as reason:
                    self.made[make] = reason
        if isinstance(self.made[make], Unavailable):
            raise self.made[make]
        return self.made[make]

    def root(self, name, programs=True):
        """A new root: empty folders, and what has to be mounted on them as (host's path, path there)."""
        root = self.folder / f"root-{name}"
        for part in ("dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var/tmp"):
            (root / part).mkdir(parents=True)
        for part in ("tmp", "var/tmp"):
            (root / part).chmod(0o1777)
        root.chmod(0o755)
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if Path("/", name).is_symlink():
                (root / name).symlink_to(os.readlink(f"/{name}"))
        for name in ("alternatives", "chromium", "chromium.d", "fonts", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
                     "nsswitch.conf", "os-release", "passwd", "ssl/openssl.cnf"):
            source, target = Path("/etc", name), root / "etc" / name
            target.parent.mkdir(exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
            elif source.exists():
                shutil.copy(source, target)
        return root, [("/usr", "/usr")]

    def script(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path


@contextlib.contextmanager
def door(lab, name, words, scratch="/tmp", end=signal.SIGTERM, **options):
    """Starts a door (door.py) by the words in front of it, and gives the Place behind it; `end` is the signal that they heed."""
    path = lab.folder / f"{name}.door"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(64)
        path.chmod(0o777)
        # some allow no argument longer than 4 KB
        packed = base64.b64encode(zlib.compress(DOOR.read_bytes(), 9)).decode()
        source = f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{packed}')))"
        argv = [*words, "/usr/bin/python3", "-c", source, json.dumps(options)]
        with background(argv, end, stdin=listening) as process:
            enter = (sys.executable, str(DOOR), "enter", str(path))
            place = Place("exec:" + " ".join(enter), ("--user", "default"), enter, scratch=scratch)
            wait_for("its first answer", lambda: answers(place), process)
            yield place


def answers(place):
    """Whether something can be run there: by a program that is there, or else by the words of one that can't be found."""
    try:
        done = subprocess.run([*place.enter, "true"], stdin=subprocess.DEVNULL, capture_output=True, env=place.env, timeout=10)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def as_user(uid=USER):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
