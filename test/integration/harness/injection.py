"""`toolbox inject` and its kin, run on this machine against targets of every kind."""
import json
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

from harness.containers import BUSYBOX
from harness.machine import Host

# Exit statuses: a code for each step.
TARGET, RECON, CHOICE, PLACING, PROOF, SERVER, HEALTH = range(3, 10)
TEMPORARY = ".toolbox-tmp-"


class Injector:
    """One binary on this machine. Every call has the options that come first."""

    def __init__(self, toolbox, *options, env=None):
        self.toolbox, self.options, self.env, self.host = toolbox, options, env or {}, Host()

    def run(self, command, *args, **how):
        return self.host.run([self.toolbox, command, *self.options, *args], env=self.env, timeout=how.pop("timeout", 120), **how)

    def inject(self, target, *args, status=0):
        """Its one JSON object; the exit status has to be that, there and here."""
        done = self.run("inject", "--json", *args, target)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        found = json.loads(done.stdout)
        assert found["exit"] == status and found["ok"] == (status == 0), found
        if status:
            assert found["step"] == ["target", "recon", "choice", "placing", "proof", "server", "health"][status - 3], found
        return found

    def eject(self, target, *args, status=0):
        done = self.run("eject", "--json", *args, target)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def call(self, target, method, params=None, *args):
        words = [target, method] + (["-"] if params is not None else [])
        done = self.run("call", *args, *words, stdin=json.dumps(params).encode() if params is not None else b"")
        assert done.returncode == 0, (done.returncode, done.stderr)
        return json.loads(done.stdout)


def prefix(container, user=None):
    """The words that run a command in a container of namespaces."""
    argv, how = container.command([], {}, user, None)
    assert not how
    return shlex.join(argv)


def script(path, text):
    """An executable script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def traces(container):
    """Whatever there is of ours in a container."""
    done = container.run([BUSYBOX, "find", "/", "-xdev", "(", "-name", "*toolbox*", "-o", "-name", "inspect-sandbox-tools", ")",
                          "!", "-path", "/proc/*", "!", "-path", "/sys/*"])
    return sorted(line for line in done.stdout.decode().split("\n") if line)


def owner_and_mode(container, path):
    """(uid, permission bits) of a file in a container."""
    uid, mode = container.check([BUSYBOX, "stat", "-c", "%u %a", path]).split()
    return int(uid), int(mode, 8)


def make_root(folder, *applets):
    """A root with dash for a shell and so many programs of BusyBox, each a file of its own: nothing else can be had there.
    (BusyBox's own shell has all of its programs in it.)"""
    for name in ("bin", "tmp", "var/tmp", "opt", "etc", "root", "run", "usr/local"):
        (folder / name).mkdir(parents=True)
    for name in ("tmp", "var/tmp"):
        (folder / name).chmod(0o1777)
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    shutil.copy("/bin/dash", folder / "bin/sh")
    listing = subprocess.run(["ldd", "/bin/dash"], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"/\S+", listing):
        (folder / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, folder / library.lstrip("/"))
    for name in applets:
        shutil.copy(shutil.which("busybox"), folder / "bin" / name)
    return folder


def is_executable(path):
    return bool(Path(path).stat().st_mode & stat.S_IXUSR)
