"""Root file systems for containers. Each is made once, under a name that is given to it when it is complete."""
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple, Optional

from harness.containers import REPO, apart
from harness.needs import Unavailable, program

CACHE = Path(os.environ.get("TOOLBOX_CACHE") or REPO / "build/cache") / "roots"


class Root(NamedTuple):
    name: str
    folder: Path
    shell: Optional[str]  # the shell that a session has to get there
    tmp: bool  # has a /tmp that all may write to


def _run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unavailable(f"{argv[0]}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _make_scratch(folder):
    """`FROM scratch`: nothing at all."""


def _make_libc(folder):
    """What a distroless image has: the C library of this machine, and no program that one could start."""
    for entry in map(Path, _run(program("dpkg-query"), "--listfiles", "libc6").split()):
        if entry.is_dir() or entry.parts[:3] == ("/", "usr", "share"):
            continue
        target = folder / entry.parent.resolve().relative_to("/") / entry.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(entry, target, follow_symlinks=False)
    for link in ("lib", "lib64"):
        if Path("/", link).is_symlink():
            (folder / link).symlink_to(os.readlink(f"/{link}"))


def _make_busybox(folder):
    """What Alpine's image has: BusyBox, its links and a few files."""
    for name in ("bin", "etc", "root", "tmp", "var/tmp", "run"):
        (folder / name).mkdir(parents=True)
    for name in ("tmp", "var/tmp"):
        (folder / name).chmod(0o1777)
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\n")
    busybox = shutil.copy2(program("busybox"), folder / "bin/busybox")
    for applet in _run(busybox, "--list").split():
        if applet != "busybox":
            (folder / "bin" / applet).symlink_to("busybox")


def _make_debian(folder):
    """A minimal system of the distribution that this machine runs, from the mirror that it uses.

    dpkg syncs every file, which takes longest on a disk: it works in memory, in a mount namespace of its own.
    """
    program("debootstrap")
    release = dict(line.rstrip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
    sources = [line.split() for line in _run(program("apt-get"), "indextargets", "--format", "$(CODENAME) $(REPO_URI)",
                                             "Created-By: Packages").splitlines()]
    # Debian's sid calls itself by the name of the next release, from which it has nothing.
    suite, mirror = next((one for one in sources if one[0] == release["VERSION_CODENAME"].strip('"')), sources[0])
    mirror = os.environ.get("DEB_MIRROR") or mirror
    script = """
        mount -t tmpfs -o mode=755 tmpfs /media && mount --make-private /media
        debootstrap --variant=minbase "$1" /media/root "$2" >/media/log 2>&1 || { tail -n 5 /media/log >&2; exit 1; }
        rm -rf /media/root/var/cache/apt/* /media/root/var/lib/apt/lists/*
        cp -a /media/root/. "$3"
        umount -l /media
    """
    _run(*apart(), "sh", "-euc", script, "make", suite, mirror, str(folder))


_MAKERS = {
    "scratch": (_make_scratch, None, False),
    "libc": (_make_libc, None, False),
    "busybox": (_make_busybox, "/bin/sh", True),
    "debian": (_make_debian, "/bin/bash", True),
}

NAMES = tuple(reversed(_MAKERS))


@contextlib.contextmanager
def _locked(path):
    """Several runs of the suite may share a cache."""
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def get(name):
    """The root of that name, made when it is not there yet; raises Unavailable."""
    make, shell, tmp = _MAKERS[name]
    folder = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / f"{name}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{name}.") as unfinished:
                os.chmod(unfinished, 0o755)
                make(Path(unfinished))
                os.rename(unfinished, folder)
                os.mkdir(unfinished)
    return Root(name, folder, shell, tmp)
