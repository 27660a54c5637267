"""Programs that pass a terminal on to another one, or to another machine, and what there is to be run behind them."""
import contextlib
import os
import shlex
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import kube, needs
from harness.processes import Watch, wait_until
from harness.sessions import LONG

HERE = {  # the terminal behind it is that of a process below it
    "script": "script -qec {} /dev/null",
    "script in script": "script -qec {twice} /dev/null",
    "expect": "expect -c 'set timeout -1; spawn -noecho sh {file}; interact'",
    "python3": "python3 -c 'import pty, sys; pty.spawn([\"sh\", \"-c\", sys.argv[1]])' {}",
    "su": "su --pty -c {} root",
    "sudo": "sudo sh -c {}",
    "tmux": "TERM=xterm tmux -f /dev/null -S {folder}/tmux new-session {}",
    "screen": "TERM=xterm screen -c /dev/null sh -c {}",
    "gdb": "gdb -q -nx -batch -ex run --args sh -c {}",
}
ELSEWHERE = {  # or that of one that nobody here can see
    "ssh": "ssh -F {ssh} there {}",
    "ssh -tt": "ssh -tt -F {ssh} there {}",
    "docker exec -i": "{docker} exec -i {container} sh -c {}",
    "docker exec -it": "{docker} exec -it {container} sh -c {}",
    "kubectl exec -i": "kubectl --kubeconfig {kube} exec -i pod -- sh -c {}",
    "kubectl exec -it": "kubectl --kubeconfig {kube} exec -it pod -- sh -c {}",
}
RELAYS = {**HERE, **ELSEWHERE}

_SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""
_SSH = """
Host there
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


@contextlib.contextmanager
def sshd():
    """A server for this user on the loopback interface; gives the path of a client's configuration."""
    needs.root("start sshd")
    needs.program("ssh")
    program = needs.program("sshd", "/usr/sbin/sshd")
    made = not os.path.isdir("/run/sshd")
    os.makedirs("/run/sshd", exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for key in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        for text, to in ((_SSHD, "sshd_config"), (_SSH, "ssh_config")):
            (folder / to).write_text(text.format(port=port, folder=folder))
        with open(folder / "log", "wb") as log:
            server = subprocess.Popen([program, "-D", "-e", "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        Watch.keep(server.pid)
        try:
            wait_until(lambda: b"listening" in (folder / "log").read_bytes() or server.poll() is not None, "sshd to listen")
            if server.poll() is not None:
                raise needs.Unavailable(f"sshd does not start: {(folder / 'log').read_text()[-300:]}")
            yield folder / "ssh_config"
        finally:
            server.terminate()
            server.wait()
    if made:
        os.rmdir("/run/sshd")


# What an engine does for a container's process with a terminal.
_TERMINAL = ["python3", "-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"]


@contextlib.contextmanager
def cluster(terminal, folder):
    """One with one pod, which is this machine; gives the path of a kubeconfig."""
    if not kube.kubectl():
        raise needs.Unavailable("no kubectl of 1.31 or later is installed")
    with kube.cluster([kube.Pod("pod", {"it": _TERMINAL if terminal else ["env"]})], folder) as config:
        yield config


# What there is to be run behind a relay: nothing of it is answered before it has ended, or asks.
ENDS = {"silent": "sleep 1; echo done", "printing": "echo some; sleep 1; echo done",
        "half": "printf 'half '; sleep 1; echo done", "ending": "echo done; exit 7"}
ASKS = "sleep 0.3; printf 'name? '; read x; sleep 0.3; echo got $x"
DRAWS = ("tmux", "screen")  # what is shown is a screen
HIDES_STATUS = ("expect", "python3", "gdb", *DRAWS)


class Relay:
    """One of RELAYS, with what it leads to (the names in braces there)."""

    def __init__(self, name, folder, **places):
        self.name, self.folder, self.places = name, folder, places

    def line(self, inner):
        """What runs a shell's text behind it."""
        script = self.folder / "inner"
        script.write_text(inner)
        twice = shlex.quote(HERE["script"].format(shlex.quote(inner)))
        return RELAYS[self.name].format(shlex.quote(inner), twice=twice, file=script, folder=self.folder, **self.places)


class Behind:
    """What holds of every relay. A module takes it with `places` of its own: what the relay of a name leads to, and the name."""

    @pytest.fixture
    def relay(self, places, workdir):
        return Relay(folder=workdir, **places)

    @pytest.mark.parametrize("kind", ENDS)
    def test_the_end_is_waited_for(self, shell, relay, kind):
        """Slow: one second for each, and where an engine is started for it, that."""
        result = shell.run(relay.line(ENDS[kind]), timeout=60)
        assert result["state"] == "completed", result
        assert "done" in result["output"] or relay.name in DRAWS, result
        assert result["exit_code"] == (7 if kind == "ending" and relay.name not in HIDES_STATUS else 0), result
        shell.works()

    def test_a_question_behind_it_is_one(self, shell, relay):
        """Slow: where nobody can see who asks, silence tells."""
        result = shell.run(relay.line(ASKS), timeout=60)
        assert result["state"] == "awaiting_input" and result["output"].endswith("name? "), result
        assert "got me" in shell.bs("me\n", wait=LONG, idle=LONG)
        shell.works()

    def test_typing_into_a_shell_behind_it(self, shell, relay):
        """What is typed comes back from the terminal behind it, which is no answer yet. (A screen shows more than that.)

        Slow: it types what takes a second."""
        shell.bs(relay.line("PS1='in$ ' sh -i") + "\n", wait=LONG, idle=5)
        more = {"idle": LONG} if relay.name in DRAWS else {}
        assert "slow" in shell.bs("sleep 1; echo sl''ow\n", wait=LONG, **more)
        shell.bs("exit\n", wait=LONG, idle=LONG)
        shell.works()
