"""What not every machine has. Whoever uses such a thing asks here for it: then a test that can't have it is skipped, and says why."""
import os
import shutil
import unittest


class Unavailable(unittest.SkipTest):
    """It can't be had here; the text says why. A test or a fixture that doesn't catch it is skipped."""


def program(*names):
    """The path of the first of the names that is installed."""
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        raise Unavailable(f"{' or '.join(names)} is not installed")
    return found


def programs(*names):
    """Marks a test that needs all of them."""
    import pytest  # the benchmarks do without

    missing = [name for name in names if not shutil.which(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def root(what):
    if os.geteuid() != 0:
        raise Unavailable(f"only root can {what}")


def shared_memory():
    """A second file system that everybody may write to."""
    if not os.access("/dev/shm", os.W_OK):
        raise Unavailable("there is no /dev/shm that can be written to")
    return "/dev/shm"
