"""What the shell tells its keeper is the shell's: programs of its session that open the channel, which is a terminal that
they may open, can neither forge it nor keep it from coming."""
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from harness.sessions import Shell, exists

FOE = r'''
import fcntl, os, select, signal, sys, termios, time
what, channel, shell, ready = sys.argv[1:5]
fd = os.open(channel, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
fields = b"%s\0" b"0\0/forged\0> \0" % shell.encode()

def write(data):
    try:
        os.write(fd, data)
    except OSError:
        select.select([], [], [], 0.001)

def say():
    open(ready, "w").close()

def forge():
    for secret in (b"", b"0" * 32, b"f" * 32, os.urandom(16).hex().encode(), b"$__word", b"\1" * 40):
        for kind in (b"P", b"Q", b"T"):
            write(b"\1" + secret + kind + fields)
            write(b"\1" + kind + secret + fields)

def again(step):
    say()
    while True:
        step()

def unfinished():
    write(b"\1" + os.urandom(16).hex().encode() + b"P" + shell.encode())
    time.sleep(0.0003)

def steal():
    select.select([fd], [], [], 1)
    try:
        os.read(fd, 65536)
    except OSError:
        pass

def modes():
    t = termios.tcgetattr(fd)
    t[0], t[1], t[3] = termios.ICRNL | termios.IXON, termios.OPOST | termios.ONLCR, termios.ECHO | termios.ISIG
    termios.tcsetattr(fd, termios.TCSANOW, t)

def hang_up():
    pid = os.fork()
    if pid == 0:
        os.setsid()
        own = os.open(channel, os.O_RDWR)
        fcntl.ioctl(own, termios.TIOCSCTTY, 0)
        os._exit(0)
    os.waitpid(pid, 0)

def hold():
    global fd
    kept = [os.open(channel, os.O_RDWR | os.O_NOCTTY) for _ in range(50)]
    termios.tcflow(fd, termios.TCOOFF)
    fcntl.ioctl(fd, termios.TIOCEXCL)
    os.fchmod(fd, 0)
    say()
    signal.pause()

def once(step):
    step()
    say()

if what == "forge once":
    once(forge)
elif what == "leak":
    once(lambda: write(b"\1" + sys.argv[5].encode() + b"P" + fields))
elif what == "flood":
    again(lambda: write(b"x" * 4000))
elif what in ("modes", "hang_up"):
    once(globals()[what])
elif what == "hold":
    hold()
else:
    again(globals()[what])
'''


@pytest.fixture(params=["bash", "/bin/sh"])
def shell(server, request):
    with Shell(server, **({} if request.param == "bash" else {"shell": request.param})) as shell:
        yield shell


def channel_of(shell):
    """The terminal that its keeper holds and its shell isn't on."""
    own = os.readlink(f"/proc/{shell.pid()}/fd/0")
    held = {os.readlink(entry) for entry in Path(f"/proc/{shell.keeper()}/fd").iterdir()}
    return next(path for path in held if path.startswith("/dev/pts/") and path not in (own, "/dev/pts/ptmx"))


class Foe:
    def __init__(self, shell, workdir):
        self.shell, self.program, self.workdir = shell, workdir / "foe.py", workdir
        self.program.write_text(FOE)
        self.channel, self.pid, self.n = channel_of(shell), shell.pid(), 0

    def command(self, what, *more):
        self.n += 1
        self.ready = self.workdir / f"ready{self.n}"
        return shlex.join([sys.executable, str(self.program), what, self.channel, str(self.pid), str(self.ready), *more])

    def begin(self, what):
        """In the background, until the session ends."""
        self.shell.run(f"({self.command(what)} >/dev/null 2>{self.workdir}/said &)")
        exists(self.ready)


@pytest.fixture
def foe(shell, workdir):
    return Foe(shell, workdir)


def tells_the_truth(shell, n=8):
    for i in range(n):
        assert shell.out(f"cd /tmp; echo own{i}; (exit {i + 1})", i + 1) == f"own{i}\n"
    assert shell.run("pwd")["cwd"] == "/tmp"


# ---- forging ----


def test_a_program_that_writes_the_message(shell, foe):
    """Before the shell does, and after its own end."""
    for i in range(6):
        assert shell.out(f"{foe.command('forge once')}; (exit 7)", 7) == ""
        assert shell.out(f"({foe.command('forge once')} &) ; (exit 7)", 7) == ""
    assert shell.run("true")["cwd"] != "/forged"


@pytest.mark.parametrize("what", ["forge", "unfinished", "flood"])
def test_a_program_that_goes_on_writing(shell, foe, what):
    foe.begin(what)
    tells_the_truth(shell)


def test_a_secret_that_got_out_is_worth_nothing_while_the_shell_is_elsewhere(server, workdir):
    """bash's own process waits for the answer to what it tells, and the kernel says whether it does."""
    with Shell(server) as shell:
        foe = Foe(shell, workdir)
        for i in range(6):
            command = f'{foe.command("leak")} "$__word"; sleep 0.05; echo own; (exit 7)'
            assert shell.out(command, 7) == "own\n"
        shell.works()


# ---- keeping it from coming ----


@pytest.mark.parametrize("what", ["steal", "modes", "hang_up", "hold"])
def test_a_program_that_spoils_the_channel(shell, foe, what):
    """Slowly at most: nothing is wrong, and the session goes on."""
    foe.begin(what)
    for i in range(4):
        result = shell.run(f"echo own{i}; (exit {i + 1})", timeout=60)
        assert result["output"] == f"own{i}\n" and result["state"] == "completed", result
        assert result["exit_code"] == i + 1, result
    assert "typed\n" in shell.bs("echo typed\n", wait=25, idle=25)


# ---- what is seen of it ----


def secret_of(shell):
    return shell.out('echo "$__word"').strip()


def test_no_list_of_arguments_nor_environment_names_it(shell):
    channel, secret = channel_of(shell), secret_of(shell)
    assert re.fullmatch("[0-9a-f]{32}", secret)
    for name in ("cmdline", "environ"):
        text = Path(f"/proc/{shell.pid()}/{name}").read_text()
        assert channel not in text and secret not in text
    assert channel not in [os.readlink(entry) for entry in Path(f"/proc/{shell.pid()}/fd").iterdir()]
    shell.run("set -a; export PS1 PROMPT_COMMAND 2>/dev/null; set +a")
    for command in ("env", "export -p", "ps axeww", "cat /proc/self/environ /proc/$$/environ", "alias; trap; jobs"):
        assert secret not in shell.out(command + "; true"), command
    shell.works()


def test_no_trace_shows_it(shell):
    secret = secret_of(shell)
    shell.run("set -x")
    seen = "".join(shell.run(f"echo {i}")["output"] for i in range(3)) + shell.bs("echo typed\n")
    assert "+ echo 1" in seen and secret not in seen and "printf" not in seen


def test_a_shell_that_shows_what_it_reads(shell):
    shell.run("set -v")
    assert [shell.run(f"echo {i}")["output"] for i in range(2)] == ["echo 0\n0\n", "echo 1\n1\n"]
    shell.run("set +v")


def test_functions_do_not_hold_it(server):
    with Shell(server) as shell:
        secret = secret_of(shell)
        assert secret not in shell.out("declare -f; declare -p PROMPT_COMMAND; bind -X; history; hash; true")


def test_a_shell_that_inherits_the_prompt_tells_nothing(server):
    """And isn't held up by it."""
    with Shell(server) as shell:
        shell.run('PROMPT="${PROMPT_COMMAND[0]}"; export PROMPT')
        shell.bs("PROMPT_COMMAND=$PROMPT bash --norc\n", wait=2)
        for i in range(3):
            assert f"in{i}\n" in shell.at_once(f"echo in{i}\n")
        shell.bs("exit 3\n")
        shell.works()


@pytest.mark.parametrize("command", ["unset __word", "__word=x", "readonly __word", "export __word", "unset __word PROMPT_COMMAND"])
def test_a_shell_that_lost_it_is_given_another(server, command):
    with Shell(server) as shell:
        assert shell.run(command)["state"] == "completed"
        tells_the_truth(shell, 2)
