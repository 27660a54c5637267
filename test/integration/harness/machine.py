"""Where a command runs. Host is this machine; a container is another one behind the same few calls."""
import os
import subprocess
import tempfile

# A hang is a failure, but slowness is none: far above what anything takes on a busy machine.
HANG = 120.0

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Where the sanitizers of a daemon write what they find (scripts/run-sanitized).
_SANITIZERS = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}


class Machine:
    """Runs commands with a clean environment (PATH, HOME and what is given), as a given uid or as its default user."""

    def command(self, argv, env, user, cwd):
        """How to start argv there: (argv, keyword arguments of Popen)."""
        raise NotImplementedError

    def popen(self, argv, env=None, user=None, cwd=None, **kwargs):
        argv, how = self.command([str(word) for word in argv], env or {}, user, cwd)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(argv, **{**pipes, **how, **kwargs})

    def run(self, argv, stdin=b"", timeout=HANG, **kwargs):
        """Runs argv to its end. Output is bytes; a status other than 0 is the caller's business."""
        with self.popen(argv, **kwargs) as process:
            try:
                out, err = process.communicate(stdin, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def check(self, argv, **kwargs):
        """Runs argv, which has to succeed, and returns its output as text."""
        done = self.run(argv, **kwargs)
        assert done.returncode == 0, f"{argv}: exit {done.returncode}: {done.stderr.decode(errors='replace')}"
        return done.stdout.decode()


class Host(Machine):
    """This machine. HOME is the suite's own folder: shells and what runs in them write their histories there."""

    def command(self, argv, env, user, cwd):
        how = {"env": {"PATH": PATH, "HOME": tempfile.gettempdir(), "LANG": "C.UTF-8", **_SANITIZERS, **env},
               "cwd": cwd or "/"}
        if user is not None and user != os.geteuid():
            how |= {"user": user, "group": user, "extra_groups": []}
        return argv, how


class Emulated(Machine):
    """Another machine, with a user-mode emulator in front of every command: for programs of another processor."""

    def __init__(self, machine, emulator):
        self.machine, self.emulator = machine, emulator

    def command(self, argv, env, user, cwd):
        return self.machine.command([self.emulator, *argv], env, user, cwd)
