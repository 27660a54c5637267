"""What people install: the packages of $TOOLBOX_DIST (`make test-packages`), else quickly made of the program under test."""
import os
import subprocess
import sys
from pathlib import Path

from harness.containers import REPO
from harness.machine import HANG
from harness.releases import ARCH, Release

MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}[ARCH]
CPU = {"amd64": "x64", "arm64": "arm64"}[ARCH]
EPOCH = "1700000000"


def make(toolbox, folder, **env):
    """A release of one program for this machine, with its packages, in a folder."""
    release = Release(toolbox, others=())
    release.write(folder, packed=True)
    for name in ("SHA256SUMS", "LICENSE"):
        (folder / name).unlink()
    (folder / "LICENSE").write_bytes((REPO / "LICENSE").read_bytes())
    (folder / "LICENSE.musl").write_text("MIT\n")
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONDONTWRITEBYTECODE": "1", **env}
    subprocess.run([sys.executable, REPO / "scripts/packages", release.version, toolbox, folder], env=env, check=True, timeout=HANG)
    for one in (folder, folder / "wheels"):
        names = sorted(path.name for path in one.iterdir() if path.is_file())
        sums = subprocess.run(["sha256sum", "--", *names], cwd=one, check=True, capture_output=True, timeout=HANG).stdout
        (one / "SHA256SUMS").write_bytes(sums)
    return folder


def of(toolbox, folder):
    """The folder with the packages."""
    made = os.environ.get("TOOLBOX_DIST")
    return Path(made).resolve() if made else make(toolbox, folder)


def one(dist, pattern):
    (found,) = dist.glob(pattern)
    return found


def say(*argv, **how):
    """What a command prints; it has to succeed."""
    done = subprocess.run([*map(str, argv)], **{"capture_output": True, "text": True, "timeout": HANG, "stdin": subprocess.DEVNULL, **how})
    assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
