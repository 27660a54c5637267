"""Sessions where something is missing: bash, any shell, /proc, terminals, privileges."""
import shutil
import subprocess

import pytest

from harness import needs
from harness.client import TOOLERR, RpcError
from harness.containers import BUSYBOX
from harness.machine import HANG, Host
from harness.processes import wait_until
from harness.sessions import SANITIZED, Shell
from harness.users import NOBODY_KNOWS, needs_root

BINARY = "/opt/toolbox"
DEFAULT_CAPABILITIES = ("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
                        "net_bind_service", "net_raw",
                        "sys_chroot", "mknod", "audit_write", "setfcap")

pytestmark = pytest.mark.skipif(SANITIZED, reason="needs the static binary")


def do(client, script):
    """Prepares the container."""
    client.machine.check([BUSYBOX, "sh", "-c", script], user=0)


def shell_of(client, **params):
    """The shell that the answer of `new` names."""
    client.session = None
    answer = client.rpc("bash_session_new_session", params)
    client.session = answer["session_name"]
    return answer["shell"]


def test_a_shell_of_others_on_the_path_is_not_run(place):
    """A container's PATH may begin with a directory of its agent's, who knows that there is no bash."""
    client = place("busybox")
    client.env = {**(client.env or {}), "PATH": "/home/theirs:/home/mine:/bin"}
    fake = '#!/bin/sh\n: >/tmp/ran-$(id -u)\nexec /bin/sh "$@"\n'
    do(client, f"mkdir -p /home/theirs /home/mine && printf '{fake}' >/home/theirs/bash && chmod 755 /home/*/bash"
               f" && cp /home/theirs/bash /home/mine/ && chmod 777 /home/mine/bash && chown -R {NOBODY_KNOWS} /home/theirs")
    assert shell_of(client) == "/bin/sh" and client.run("echo $0")["exit_code"] == 0
    do(client, "! ls /tmp/ran-*")
    do(client, "chmod 755 /home/mine/bash")
    assert shell_of(client) == "/home/mine/bash"
    do(client, "for i in $(seq 600); do [ ! -e /tmp/ran-0 ] || exit 0; sleep 0.1; done; exit 1")  # the start is answered before


def check_sh(client):
    """All that a session of any shell has to do."""
    first = client.bs(wait=25, idle=25)
    assert "job control" not in first
    prompt = first[first.rfind("\n") + 1 :]
    assert client.bs("echo hi\n", wait=25, idle=25) == "hi\n" + prompt
    assert client.bs("cat\n", wait=25, idle=25) == ""
    assert client.bs("line\n", wait=25, idle=25) == "line\n"
    assert client.bs("\x04", wait=25, idle=25) == prompt
    assert client.bs("sleep 0.4; echo END\n", wait=25, idle=25) == "END\n" + prompt
    result = client.run("cd /tmp; echo out; (exit 3)")
    assert (result["state"], result["exit_code"], result["output"], result["cwd"]) == ("completed", 3, "out\n", "/tmp")
    assert client.run("for i in 1 2\ndo\n\techo $i\ndone")["output"] == "1\n2\n"
    assert client.run("cat <<E\ntext\nE")["output"] == "text\n"
    assert client.run("echo )")["exit_code"] not in (0, None)
    assert client.run("read x")["state"] == "awaiting_input"
    client.bs("x\n", wait=25, idle=25)
    assert client.run("exit 4")["state"] == "exited"
    assert client.restart() == "shell restarted successfully"
    assert client.run("echo back")["output"] == "back\n"


# ---- C-028: without bash ----


def test_c028_no_bash(place):
    client = place("busybox")
    assert shell_of(client) == "/bin/sh"
    check_sh(client)


@pytest.mark.parametrize("what",
                         ["echo x >/bin/bash; chmod 644 /bin/bash", "mkdir /bin/bash", "ln -s nowhere /bin/bash",
                          "ln -s bash /bin/bash",
                                  "printf '\\177ELFgarbage' >/bin/bash; chmod 755 /bin/bash",
                                  "printf '#!/no/interpreter\\n' >/bin/bash; chmod 755 /bin/bash"])
def test_c028_a_bash_that_does_not_start(place, what):
    client = place("busybox")
    do(client, what)
    assert shell_of(client) == "/bin/sh"
    assert client.run("echo hi")["output"] == "hi\n"


def test_c028_a_bash_without_its_loader(place):
    client = place("busybox")
    client.machine.copy(shutil.which("bash"), "/bin/bash")
    assert shell_of(client) == "/bin/sh"
    assert client.run("echo hi")["output"] == "hi\n"


def test_c028_a_bash_elsewhere(place):
    client = place("debian")
    do(client, "mkdir -p /opt/own/bin; cp /bin/bash /opt/own/bin/; rm /bin/bash")
    client.env["PATH"] = "/usr/bin:/bin:/opt/own/bin"
    assert shell_of(client).endswith("bash")
    assert client.run("echo ${BASH_VERSION:+is-bash}")["output"] == "is-bash\n"


@pytest.mark.parametrize("root", ["scratch", "libc"])
def test_c028_no_shell_at_all(place, root):
    client = place(root)
    client.cli("start-server")

    def there():
        return [line.partition(" ")[2] for line in client.machine.processes()]  # without the states, which change

    before = there()
    for _ in range(2):
        with pytest.raises(RpcError) as caught:
            client.new()
        assert caught.value.code == TOOLERR
        for shell in ("/bin/bash", "/bin/sh"):
            assert shell in caught.value.message
    assert client.rpc("bash_session_list") == []
    wait_until(lambda: there() == before, "what was tried to be gone")
    client.ed("create", "/file", file_text="text\n")
    assert "text" in client.ed("view", "/file")


def test_c028_shells_that_all_fail(place):
    client = place("busybox")
    do(client, "rm /bin/sh; echo x >/bin/sh; chmod 644 /bin/sh")
    with pytest.raises(RpcError, match="(?i)/bin/bash.*not found.*/bin/sh.*permission denied") as caught:
        client.new()
    assert caught.value.code == TOOLERR
    do(client, "rm /bin/sh; ln -s busybox /bin/sh")
    assert shell_of(client) == "/bin/sh"


def test_dash(place):
    client = place("debian")
    assert shell_of(client, shell="/bin/dash") == "/bin/dash"
    check_sh(client)


# ---- without /proc, or with less of it ----


@pytest.mark.parametrize("root", ["debian", "busybox"])
def test_without_proc(place, root):
    """The shell's own word is enough at a prompt; programs that wait for input are found by the idle time."""
    client = place(root, proc=False)
    shell = Shell(client)
    assert shell.at_once("echo hi\n") == "hi\n" + shell.prompt
    assert shell.at_once("sleep 0.4; echo END\n") == "END\n" + shell.prompt
    assert shell.out("cd /tmp; echo out; (exit 3)", 3) == "out\n"
    assert shell.run("pwd")["cwd"] == "/tmp"
    assert shell.bs("cat\n", wait=1) == ""
    assert shell.bs("line\n", wait=5, idle=0.2) == "line\n"
    assert shell.bs("\x04", wait=5).endswith("# ")
    assert shell.run("cat", timeout=0.5)["state"] in ("awaiting_input", "timeout")
    assert shell.bs("\x03", wait=5).endswith("# ")
    shell.works()
    long = "x" * 20_000
    assert shell.out(f"echo {long} | wc -c") == "20001\n"
    shell.bs("sleep 1000\n", wait=0, idle=0)
    shell.restart()
    shell.works()
    shell.close()


def test_without_proc_a_prompt_comes_late(place):
    """Nobody sees the shell wait for a command, so it says when it begins: the prompt before it is none of its output."""
    client = place("debian", proc=False)
    do(client, "echo 'PROMPT_COMMAND=\"sleep 0.3\"' >/root/.bashrc")
    client.env["HOME"] = "/root"
    shell_of(client)
    for command, status, output in (("echo hi; (exit 3)", 3, "hi\n"), ("echo $?\nfor i in 1 2; do\n\techo $i\ndone", 0, "3\n1\n2\n")):
        result = client.run(command)
        assert (result["state"], result["exit_code"], result["output"]) == ("completed", status, output)


@pytest.mark.parametrize("server", [None, NOBODY_KNOWS], ids=["root", "user"])
def test_hidepid(place, server):
    """Where the kernel shows nobody another user's processes."""
    client = place("debian", user=server)
    machine = client.machine
    subprocess.run([*machine.enter, "mount", "-o", "remount,hidepid=2", f"{machine.dir}/proc"], check=True,
                   timeout=HANG)
    shell = Shell(client, user=str(NOBODY_KNOWS))
    assert shell.out("ls -d /proc/1 2>/dev/null", 2) == ""
    assert shell.at_once("echo hi\n") == "hi\n" + shell.prompt
    assert shell.at_once("cat\n") == ""
    assert shell.at_once("\x04") == shell.prompt
    assert "END" in shell.at_once("sleep 0.4; echo END\n")
    shell.works()
    shell.bs("setsid sleep 1000 & sleep 1000\n", wait=0, idle=0)
    shell.restart()
    assert shell.out("id -u; ps -eo comm= 2>/dev/null | grep -c sleep; true") == f"{NOBODY_KNOWS}\n0\n"


@needs_root
@needs.programs("setpriv")
def test_with_a_containers_capabilities(client, user):
    """Root in a container may not trace, nor look into the files in /proc of, another user's programs."""
    bounding = "--bounding-set=-all," + ",".join(f"+{name}" for name in DEFAULT_CAPABILITIES)
    client.machine.check(["setpriv", bounding, "--inh-caps=-all", client.binary, "start-server"], env=client.env)
    shell = Shell(client, user=user.name)
    assert shell.at_once("echo hi\n") == "hi\n" + shell.prompt
    assert shell.at_once("cat\n") == "" and shell.listed()["state"] == "awaiting_input"
    assert shell.at_once("\x04") == shell.prompt
    assert shell.at_once("python3 -c 'import select; p = select.epoll(); p.register(0, 1); p.poll()'\n") == ""
    shell.at_once("\x03")
    assert "END" in shell.at_once("sleep 0.4; echo END\n")
    assert shell.listed()["cwd"] == "/"
    shell.bs("setsid sleep 1000 & sleep 1000\n", wait=0, idle=0)
    shell.restart()
    shell.works()


# ---- without terminals ----


def test_without_terminals(place):
    client = place("busybox", pts=False)
    for _ in range(2):
        with pytest.raises(RpcError, match="/dev/pts|/dev/ptmx|terminal") as caught:
            client.new()
        assert caught.value.code == TOOLERR
    assert client.rpc("bash_session_list") == []
    client.ed("create", "/tmp/file", file_text="text\n")


def test_a_terminal_that_programs_cannot_open(place):
    """/dev/tty and /dev/pts may be closed to programs: the session works all the same."""
    client = place("busybox")
    do(client, "rm /dev/tty")
    shell = Shell(client)
    assert shell.at_once("echo hi\n") == "hi\n" + shell.prompt
    shell.works()
    assert shell.bs("sleep 60\n", wait=1) == ""
    assert shell.at_once("\x03").endswith(shell.prompt)


class OneTerminal(Host):
    """This machine, with room for one terminal in /dev/pts: the session's own, and none for its private channel."""

    ROOM = 'mount -t devpts -o newinstance,ptmxmode=666,max=1 none /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx && exec "$@"'

    def __init__(self, apart):
        self.apart = apart

    def command(self, argv, env, user, cwd):
        return super().command([*self.apart, "sh", "-c", self.ROOM, "room", *argv], env, user, cwd)


@needs_root
@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "mksh", "fish"])
def test_room_for_one_terminal(new_client, workdir, shell, apart):
    """Nobody could tell a command's status there, so a run is refused. What is typed is done, and goes to no history file either."""
    (workdir / ".bash_history").write_text("echo mine\n")
    client = new_client(env={"HOME": str(workdir)})
    client.machine = OneTerminal(apart)
    name = client.rpc("bash_session_new_session", {"shell": needs.program(shell)})["session_name"]
    with pytest.raises(RpcError, match="for want of a second terminal") as caught:
        client.run("echo run", session=name)
    assert caught.value.code == TOOLERR
    client.bs(f"echo typed >{workdir}/typed; exit\n", wait=0, idle=0.01, session=name)
    wait_until(lambda: (workdir / "typed").exists(), "what was typed")
    client.rpc("bash_session_close", {"session_name": name})
    written = [path for path in workdir.rglob("*history*") if path.is_file()]
    assert [path.read_text() for path in written] == ["echo mine\n"], written


# ---- with little room ----


def test_a_read_only_root(place):
    client = place("debian", read_only=True)
    shell = Shell(client)
    shell.works()
    assert shell.at_once("echo hi\n") == "hi\n" + shell.prompt
    text = "".join(f"{i:079d}\n" for i in range(500))
    assert shell.run(f"wc -c <<'E'\n{text}E")["state"] == "completed"
    shell.works()
