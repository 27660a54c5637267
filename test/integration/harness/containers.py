"""Containers. A runtime offers start(root, options), which gives a Container: a Machine that can be copied into and
destroyed. This one is made of bare namespaces and works wherever root may unshare, also in a chroot; docker.py has the
other."""
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from harness.machine import HANG, PATH, Machine
from harness.needs import Unavailable, program
from harness.processes import neighbours

REPO = Path(__file__).resolve().parents[3]

# In every container, to look around where nothing else is; the tool looks for no shell there.
BUSYBOX = "/.harness/busybox"


def root_is_mount_point():
    """Not so in a plain chroot: there the propagation of "/" can't be changed, and nobody can pivot away from it."""
    return any(line.split()[4] == "/" for line in Path("/proc/self/mountinfo").read_text().splitlines())


# Mounts are those of the tree above, which a plain chroot doesn't see: whether they show up outside is found by trying.
_MOUNT_AND_LOOK = """
    mount -t tmpfs none "$1"
    awk -v at="$1" '$5 == at && / shared:/ { exit 1 }' /proc/self/mountinfo || { umount "$1"; exit 1; }
"""


@functools.cache
def apart():
    """The words in front of a command that is to have a mount namespace of its own, whose mounts nobody else sees; raises
    Unavailable."""
    words = ["unshare", "--mount", "--propagation", "private" if root_is_mount_point() else "unchanged"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*words, "sh", "-euc", _MOUNT_AND_LOOK, "apart", folder], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"no mount namespace can be had here: {done.stderr.strip() or 'in this chroot mounts show up outside'}")
    return words


@dataclass(frozen=True)
class Options:
    user: Optional[int] = None  # the uid and gid of everything that is run in it (None: root)
    read_only: bool = False
    tmpfs: tuple = ()  # "DIR:OPTIONS" as mount(8) has them
    pts: bool = True  # /dev/pts and /dev/ptmx
    proc: bool = True
    files: dict = field(default_factory=dict)  # {path in the container: file}: there from the start, executable


class Container(Machine):
    def copy(self, source, target):
        """Puts a file into the running container, executable for all."""
        raise NotImplementedError

    def processes(self):
        """What there is beside its first process, as "STATE COMMAND" lines."""
        raise NotImplementedError

    def destroy(self):
        """Ends everything in it. Nothing of it is left."""
        raise NotImplementedError


class NamespaceContainer(Container):
    def __init__(self, root, options):
        flags = ["--read-only"] * options.read_only + ["--no-pts"] * (not options.pts) + ["--no-proc"] * (not options.proc)
        for entry in options.tmpfs:
            flags += ["--tmpfs", entry]
        for target, source in {BUSYBOX: program("busybox"), **options.files}.items():
            flags += ["--put", f"{source}:{target}"]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.user = options.user
        self.life = subprocess.Popen([REPO / "scripts/lib/ns-container", *flags, root], **pipes)
        ready = self.life.stdout.readline().decode().split()
        if len(ready) != 2:
            raise Unavailable(self.life.communicate()[1].decode().strip())
        self.init, self.dir = int(ready[0]), ready[1]
        self.enter = ["nsenter", "-t", ready[0], "-m", "-u", "-i", "-n", "-p", "-r"]

    def command(self, argv, env, user, cwd):
        assert cwd is None, "chroot(1) starts in /"
        user = self.user if user is None else user
        become = [f"--userspec=+{user}:+{user}", "--groups="] if user else []
        words = [f"{name}={value}" for name, value in {"PATH": PATH, "HOME": "/root", **env}.items()]
        return [*self.enter, "env", "-i", *words, shutil.which("chroot"), *become, self.dir, *argv], {}

    def copy(self, source, target):
        script = 'mkdir -p "${1%/*}" && cat >"$1" && chmod 755 "$1"'
        subprocess.run([*self.enter, "sh", "-c", script, "copy", self.dir + target], input=Path(source).read_bytes(),
                       check=True, timeout=HANG)

    def processes(self):
        return [str(process).split(" ", 1)[1] for process in neighbours(self.init)]

    def destroy(self):
        try:
            self.life.communicate(timeout=HANG)
        except subprocess.TimeoutExpired:
            os.kill(self.init, signal.SIGKILL)
            raise


class Namespaces:
    """The runtime without an engine."""

    def __init__(self, empty):
        """empty: an empty folder, to try it on once; raises Unavailable."""
        NamespaceContainer(empty, Options()).destroy()

    def start(self, root, options):
        return NamespaceContainer(root.folder, options)
