"""Which files and descriptors are left. Tests work in the suite's own folder; the places that the tool falls back to, and
those where a program without a home writes, are watched."""
import glob
import os
import time
from pathlib import Path

from harness import processes

# Where the tool keeps things when it is told no directory (docs/protocol.md).
PLACES = (
    "/run/toolbox",
    "/run/user/*/toolbox",
    "/tmp/.toolbox-*",
    "/var/tmp/.toolbox-*",
    "/dev/shm/.toolbox-*",
    "~/.cache/toolbox",
)

# Where probe tries whether a file can be written and run, and where a program writes that takes "/" for its home.
_ELSEWHERE = ("/opt/.*", "/usr/local/bin/.*", "/run/.*", "~/.toolbox-*", "/*", "/.*", "/etc/docker/*", "/opt/*", "/run/docker")


def _matching(patterns):
    return {Path(path) for pattern in patterns for path in glob.glob(os.path.expanduser(pattern))}


def snapshot():
    """Every file in any of the places, with what tells it from a later one of the same name. Links elsewhere are those that
    packages make, which somebody may install meanwhile (/lib32)."""
    found = {path for path in _matching(_ELSEWHERE) if not path.is_symlink()}
    for top in _matching(PLACES):
        found.add(top)
        for folder, folders, files in os.walk(top):  # what goes away meanwhile is passed over
            found.update(Path(folder, name) for name in folders + files)
    return {(str(path), info.st_dev, info.st_ino) for path in found if (info := _lstat(path))}


def _lstat(path):
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _of_others():
    """What other suites on this machine, and the lanes beside this one, are using: where a server lives that is none of ours
    (each holds its directory open), and what a process that is none of ours has open, as a browser its profile."""
    ours, found = {process.pid for process in processes.descendants()}, set()
    tops = [str(top) for top in _matching(PLACES)]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) in ours:
                continue
            held = processes.descriptors(pid).values()
            found.update(top for top in tops if any(path == top or path.startswith(f"{top}/") for path in held))
            if processes.is_server(pid):
                found.update(place for place in held if glob.glob(f"{place}/server.*"))
        except OSError:
            continue  # it has ended, or is another user's
    return found


def check(before, seconds=20.0):
    """Fails when a place holds what it did not hold before, and keeps it: tests may run beside these."""
    deadline = time.monotonic() + seconds
    while True:
        others = _of_others()
        new = {path for path, *_ in snapshot() - before if not {path, *map(str, Path(path).parents)} & others}
        if not new or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert not new, f"files left behind: {sorted(new)}"


def _doors(pid, descriptors):
    """At most how many sockets a server keeps for jobs, those that run and those to come: their files stand in its directory,
    the descriptor of which it has."""
    return sum(len(glob.glob(f"{place}/{name}")) for place in descriptors.values() if place.startswith("/")
               for name in (f".Pool-{pid}-*", "Job_*"))


def _extra(pid):
    descriptors = processes.descriptors(pid)
    watched = list(descriptors.values()).count("anon_inode:[pidfd]")  # keepers that it has found, which live
    return len(descriptors) - watched - _doors(pid, descriptors)


def check_descriptors(idle, seconds=30.0):
    """Fails when a server has more descriptors than an idle one, soon after its last client has gone."""
    for pid in processes.servers():
        try:
            processes.wait_until(lambda: _extra(pid) <= idle, "a server to close its descriptors", seconds)
        except FileNotFoundError:
            continue  # it has ended
        except AssertionError:
            raise AssertionError(f"the server left descriptors open: {processes.descriptors(pid)}") from None
