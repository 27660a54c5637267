"""Shells in sessions: what the tests of bash_session have in common."""
import contextlib
import json
import os
import re
import tempfile
import time
from pathlib import Path

from harness import processes
from harness.client import LIMIT, Client, RpcError
from harness.machine import HANG, Host
from harness.server import status

# What answers because there is nothing to wait for is told from what has waited: the times given are long, the bound is
# far below them, and far above what anything takes on a busy machine.
LONG = 25
AT_ONCE = 10.0

# With sanitizers memory says nothing.
SANITIZED = "TOOLBOX_SANITIZED" in os.environ

OMITTED = re.compile(r"\n?\[(\d+) bytes omitted\]\n")


@contextlib.contextmanager
def shared_server(toolbox):
    """A client whose server many tests share, each with a session of its own: quicker than a server for each. Answers of
    any length come to it in one piece."""
    with tempfile.TemporaryDirectory(prefix="shared-") as folder:
        os.chmod(folder, 0o1777)
        client = Client(Host(), toolbox, Path(folder) / "server", env={LIMIT: str(64 << 20)})
        client.rpc("remote_version")  # a test that starts it would be blamed for leaving it behind
        try:
            yield client
        finally:
            client.close()


class Shell:
    """One session of a client, whose shell is at its first prompt.

    first   what the first read gave: the prompt, and what came before it
    prompt  its last line
    """

    def __init__(self, client, **params):
        self.client, self.name = client, client.new(**params)
        self.first = self.at_once()
        self.prompt = self.first[self.first.rfind("\n") + 1 :]

    def bs(self, text=None, **more):
        return self.client.bs(text, session=self.name, **more)

    def at_once(self, text=None, **more):
        """As bs(), and fails when the answer has waited for a time to pass."""
        began = time.monotonic()
        answer = self.bs(text, wait=LONG, idle=LONG, **more)
        spent = time.monotonic() - began
        assert spent < AT_ONCE, f"the answer to {text!r} took {spent:.1f} s: {answer[-2000:]!r}"
        return answer

    def run(self, command, **more):
        return self.client.run(command, session=self.name, **more)

    def out(self, command, status=0, **more):
        """What a command prints that runs to its end with that status."""
        result = self.run(command, **more)
        assert (result["state"], result["exit_code"]) == ("completed", status), result
        return result["output"]

    def works(self):
        """The shell does what it is told, and nothing is in the way of the next command."""
        for word in ("first", "second"):
            assert self.out(f"echo {word}") == f"{word}\n"

    def listed(self):
        """This session as bash_session_list has it."""
        return next(entry for entry in self.client.rpc("bash_session_list") if entry["session_name"] == self.name)

    def restart(self):
        return self.client.restart(self.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends the session, if it is there."""
        with contextlib.suppress(RpcError):
            self.close()

    def close(self):
        return self.client.rpc("bash_session_close", {"session_name": self.name})

    def signal(self, signal):
        return self.client.rpc("bash_session_signal", {"session_name": self.name, "signal": signal})

    def resize(self, rows, cols):
        return self.client.rpc("bash_session_resize", {"session_name": self.name, "rows": rows, "cols": cols})

    def pid(self):
        return self.listed()["pid"]

    def keeper(self):
        return int(status(self.pid())["PPid"])

    def busy(self, command, marker, **how):
        """Starts a command in the foreground, and returns once it has printed the marker and a program of its runs. (A key
        that comes before may find the shell itself there.)"""
        seen = self.bs(f"{command}\n", wait=0, idle=0, **how)

        def came():
            nonlocal seen
            seen += self.bs(wait=0, idle=0)
            return marker in seen

        processes.wait_until(came, f"{marker!r} of {command!r}")
        processes.wait_until(lambda: self.listed()["foreground"], f"a program of {command!r} in the foreground")


def started(shell, method, **params):
    """A call that is on its way, as a process that can be killed."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"session_name": shell.name, **params}}
    call = shell.client.popen("exec")
    call.stdin.write(json.dumps(request).encode())
    call.stdin.close()
    call.stdin = None
    return call


def kill(call):
    call.kill()
    call.wait()
    call.stdout.close()
    call.stderr.close()


def memory(pid):
    """What a process holds, in kB."""
    return int(status(pid)["VmRSS"].split()[0])


def read_until(shell, end, text=""):
    """Reads until all that came, behind the text that has come already, ends with `end`."""
    deadline = time.monotonic() + HANG
    while not text.endswith(end):
        assert time.monotonic() < deadline, f"{end!r} did not come within {HANG} s: {text[-2000:]!r}"
        text += shell.bs(wait=2, idle=0.1)
    return text


def split_omitted(text):
    """(what is there, how many bytes the answer says are not)"""
    return OMITTED.sub("", text), sum(int(n) for n in OMITTED.findall(text))


def exists(path, seconds=30.0):
    processes.wait_until(Path(path).exists, f"{path} to appear", seconds)
