"""Users. Most tests need only a number: a uid without an entry in /etc/passwd is normal in containers."""
import contextlib
import grp
import os
import pwd
import re
import subprocess
import time
from typing import NamedTuple

import pytest


def _numbers_in_use():
    return {entry.pw_uid for entry in pwd.getpwall()} | {entry.gr_gid for entry in grp.getgrall()}


# A uid, and gid, that no file mentions, as the next one. This suite's alone: what is done to all processes or in the places of
# such a user would be done to those of another suite. (Not above 65535: there may be no more in a container.)
NOBODY_KNOWS = 20000 + os.getpid() * 2 % 40000
while {NOBODY_KNOWS, NOBODY_KNOWS + 1} & _numbers_in_use():
    NOBODY_KNOWS += 2

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


class User(NamedTuple):
    name: str
    uid: int
    gid: int
    home: str
    groups: list  # supplementary gids


def _retried(*argv):
    """The tools of the passwd package give up when another process holds the lock of /etc/passwd."""
    for _ in range(50):
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode == 0 or "cannot lock" not in done.stderr:
            break
        time.sleep(0.1)
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]}: {done.stderr.strip()}")


def _remove_stale():
    """A suite that was killed had no chance to."""
    for entry in pwd.getpwall():
        owner = re.fullmatch(r"tbx(\d+)", entry.pw_name)
        if owner and not os.path.exists(f"/proc/{owner[1]}"):
            _retried("userdel", entry.pw_name)
            _retried("groupdel", f"{entry.pw_name}x")


@contextlib.contextmanager
def temporary_user(home):
    """A user with an entry, a home and one supplementary group, for as long as the context lasts."""
    name = f"tbx{os.getpid()}"
    group = f"{name}x"
    _remove_stale()
    with contextlib.ExitStack() as undo:
        _retried("groupadd", group)
        undo.callback(_retried, "groupdel", group)
        _retried("useradd", "--no-log-init", "--user-group", "--groups", group, "--home-dir", str(home),
                 "--no-create-home", "--shell", "/bin/bash", name)
        undo.callback(_retried, "userdel", name)
        entry = pwd.getpwnam(name)
        os.mkdir(home, 0o755)
        os.chown(home, entry.pw_uid, entry.pw_gid)
        groups = [gid for gid in os.getgrouplist(name, entry.pw_gid) if gid != entry.pw_gid]
        yield User(name, entry.pw_uid, entry.pw_gid, str(home), groups)
