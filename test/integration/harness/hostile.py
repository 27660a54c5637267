"""People who share a target with us and would like to have their program run, or our files removed, as somebody else.

What they do is here, for tests of some rounds and for those of a thousand (test/stress/hostile.py)."""
import contextlib
import shutil
import subprocess

from harness.containers import BUSYBOX

AGENT, OTHER = 1000, 1001

# Says all that it is asked for, and who has run it.
FORGER = """#!/bin/sh
echo "$(id -u)" >>/tmp/ran
while [ $# -gt 0 ]; do [ "$1" != --sums ] || sum=${2%%,*}; shift; done
echo "{\\"ok\\":true,\\"sha256\\":\\"$sum\\",\\"state\\":\\"identical\\",\\"server\\":\\"x\\",\\"uid\\":0}"
"""

# Works in the container's file system without being shut into it: python3 is this machine's.
_LOOP = """
import ctypes, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
libc = ctypes.CDLL(None, use_errno=True)
at, how = sys.argv[1] + "/tmp/.toolbox-bin", sys.argv[2]
os.umask(0o022)
def exchange(a, b):
    libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
def script(path):
    with open(path, "w") as f:
        f.write(sys.argv[3])
    os.chmod(path, 0o777)
if how == "swaps the file for a link":
    os.mkdir(at)
    script(at + "/toolbox")
    os.symlink("/usr/bin/env", at + "/other")
    step = lambda: exchange(at + "/toolbox", at + "/other")
elif how == "moves a file of root's in":
    os.mkdir(at)
    script(at + "/other")
    os.rename(sys.argv[1] + "/srv/open/roots", at + "/toolbox")
    step = lambda: exchange(at + "/toolbox", at + "/other")
elif how == "swaps the directory for a link":
    os.mkdir(at)
    script(at + "/toolbox")
    os.symlink("/srv/.toolbox-bin", at + "-other")
    step = lambda: exchange(at, at + "-other")
elif how == "swaps the directory for one of root's":
    os.rename(sys.argv[1] + "/srv/open/.toolbox-bin", at + "-other")
    os.mkdir(at)
    script(at + "/toolbox")
    step = lambda: exchange(at, at + "-other")
print("ready", flush=True)
while True:
    step()
"""

RACES = ("swaps the file for a link", "moves a file of root's in", "swaps the directory for a link",
         "swaps the directory for one of root's")


def prepare(container):
    """What is root's, and of which the agent can move some."""
    container.check([BUSYBOX, "sh", "-c", f"""
        {BUSYBOX} mkdir -p /srv/.toolbox-bin /srv/open/.toolbox-bin /usr/bin && {BUSYBOX} chmod 777 /srv/open /srv/open/.toolbox-bin
        [ -e /usr/bin/env ] || {BUSYBOX} cp {BUSYBOX} /usr/bin/env
        for f in /srv/open/roots /srv/.toolbox-bin/toolbox /srv/open/.toolbox-bin/toolbox /srv/.toolbox-bin/.toolbox.inject; do
            echo "$1" >$f && {BUSYBOX} chmod 755 $f; done""", "sh", FORGER])


@contextlib.contextmanager
def loop(container, how):
    """The agent at work, for as long as the context lasts."""
    become = [shutil.which("setpriv"), f"--reuid={AGENT}", f"--regid={AGENT}", "--clear-groups"]
    argv = [*container.enter, *become, "/usr/bin/python3", "-c", _LOOP, container.dir, how, FORGER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield
        assert process.poll() is None, "he was at work all the time"
        process.communicate(b"")


def ran(container):
    """Whose uid the forger has seen."""
    return container.run([BUSYBOX, "cat", "/tmp/ran"]).stdout.decode().split()


def roots_files(container):
    """What of root's own may not be touched."""
    return container.check([BUSYBOX, "sh", "-c", f"{BUSYBOX} ls -l /srv/.toolbox-bin/toolbox /srv/.toolbox-bin/.toolbox.inject"])


def race(injector, container, at, how, rounds):
    """Ejects and injections as root while the agent is at work."""
    prepare(container)
    before = roots_files(container)
    with loop(container, how):
        for _ in range(rounds):
            assert injector.run("eject", at).returncode in (0, 6)
            done = injector.run("inject", at)
            assert done.returncode == 0, done
            assert ran(container) == []
    assert injector.run("eject", at).returncode in (0, 6)
    assert ran(container) == [] and roots_files(container) == before
