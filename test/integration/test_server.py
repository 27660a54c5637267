"""The life of the server and its keepers: one at any moment, whoever starts, kills, stops or blocks it."""

import contextlib
import fcntl
import json
import os
import pty
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness import needs, processes
from harness.client import Client, RpcError
from harness.machine import HANG, Host
from harness.processes import wait_until
from harness.server import (
    SERVER,
    SESSION,
    Door,
    curl,
    dial,
    http_request,
    kill_servers,
    only_server,
    pid_in,
    request,
    socket_of,
    status,
    titled,
)
from harness.users import NOBODY_KNOWS, needs_root

REMOTE = request("remote_version")
# stop-server takes 4 s at most; above that only as far as a busy machine may be late.
STOPPED = 10.0

needs_strace = needs.programs("strace")


def finish(started, stdin=b""):
    """Waits for a command that was started with popen, which has to succeed, and returns its output."""
    out, err = started.communicate(stdin, timeout=HANG)
    assert (
        started.returncode == 0
    ), f"{started.args}: exit {started.returncode}: {err.decode(errors='replace')}"
    return out


def ask_at_once(client, n, body=REMOTE):
    """n `toolbox exec` side by side: what each answered."""
    started = [client.popen("exec") for _ in range(n)]
    for one in started:
        one.stdin.write(body)
        one.stdin.flush()
    return [json.loads(finish(one)) for one in started]


def stop_timed(client, **how):
    began = time.monotonic()
    client.stop(**how)
    spent = time.monotonic() - began
    assert spent < STOPPED, f"stop-server took {spent:.1f} s"


def remote_pid(client, **how):
    return pid_in(client.rpc("remote_version", **how))


@contextlib.contextmanager
def stopped(*pids):
    """SIGSTOPped for as long as the context lasts."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        wait_until(lambda: status(pid)["State"].startswith("T"), f"{pid} to stop")
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


# ---- many starters ----


def test_c090_clients_right_after_a_stop(client):
    for _ in range(15):
        client.stop()
        pids = {pid_in(answer["result"]) for answer in ask_at_once(client, 4)}
        assert len(pids) == 1, pids
    assert {only_server()} == pids


def slow_starter(client):
    """A start whose server has bound its socket, and is about to listen."""
    slow = client.machine.popen(client.tampered("listen:delay_enter=700000", "start-server"), env=client.env)
    wait_until(lambda: list(client.dir.glob(".server.*")), "the socket to be bound")
    return slow


@needs_strace
def test_c090_slow_between_bind_and_listen(client, server_dir):
    slow = slow_starter(client)
    assert not list(server_dir.glob("server.*")), "it has its name before it listens"
    answers = ask_at_once(client, 4)
    assert {pid_in(answer["result"]) for answer in answers} == {only_server()}
    client.stop()
    finish(slow)


@needs_strace
def test_c090_starter_killed_while_its_server_is_slow(client):
    """The lock has to hold until the server listens, also when its starter has gone."""
    slow = slow_starter(client)
    starter = next(
        process for process in processes.descendants(slow.pid) if b"start-server" in _cmdline(process.pid)
    )
    os.kill(starter.pid, signal.SIGKILL)
    pids = {pid_in(answer["result"]) for answer in ask_at_once(client, 4)}
    time.sleep(1)  # the slow one has come to its end by now, whatever that is
    assert pids == {only_server()} == {remote_pid(client)}
    client.stop()
    slow.communicate(timeout=HANG)


def _cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_c090_starter_killed_at_any_instant(client):
    for i in range(20):
        starter = client.popen("start-server")
        time.sleep(i % 10 / 2000)
        starter.kill()
        starter.communicate()
        pids = {pid_in(answer["result"]) for answer in ask_at_once(client, 3)}
        assert pids == {only_server()}
        if i % 2:
            kill_servers()
        else:
            client.stop()


def test_c091_many_starters_side_by_side(client):
    new = request("bash_session_new_session", {})
    foreground = [client.popen("server") for _ in range(4)]
    starts = [client.popen("start-server") for _ in range(12)]
    sessions = [
        json.loads(finish(one, new))["result"]["session_name"]
        for one in [client.popen("exec") for _ in range(16)]
    ]
    for start in starts:
        assert finish(start) == b""
    assert len(set(sessions)) == 16
    only_server()
    for name in sessions:
        assert name in client.bs(f"echo {name} $((6*7))\n", session=name)
    assert {entry["session_name"] for entry in client.rpc("bash_session_list")} == set(sessions)
    client.stop()
    for one in foreground:
        one.communicate(timeout=HANG)  # won, or told that another one had


def test_c091_server_killed_at_any_instant(client):
    for _ in range(8):
        over = threading.Event()

        def killer():
            while not over.wait(random.uniform(0.0, 0.03)):
                kill_servers()

        thread = threading.Thread(target=killer)
        thread.start()
        try:
            answers = ask_at_once(client, 16)
        finally:
            over.set()
            thread.join()
        assert all("result" in answer for answer in answers)
        assert remote_pid(client) == only_server()


def test_sessions_outlive_a_killed_server(client):
    client.new()
    client.bs("cd /usr; x=kept\n")
    before = remote_pid(client)
    waiting = client.popen("exec")
    waiting.stdin.write(
        request(
            "bash_session",
            {
                "session_name": client.session,
                "wait_for_output": 30,
                "idle_timeout": 1,
                "input": "sleep 1; echo across\n",
            },
        )
    )
    waiting.stdin.close()
    waiting.stdin = None
    kill_servers()
    assert b"across" in finish(waiting)
    assert "kept /usr" in client.bs("echo $x $PWD\n")
    assert remote_pid(client) != before
    assert [entry["session_name"] for entry in client.rpc("bash_session_list")] == [client.session]
    first, second = client.session, client.new()
    assert first != second
    with Door(socket_of(client.dir)) as door:  # the new server is a door to the old session as well
        params = {"session_name": first, "wait_for_output": 5, "idle_timeout": 0.5, "input": "echo $x\n"}
        assert "kept" in door.rpc("bash_session", params)


# ---- what lies in the way ----


def _plant_socket(path, listening=False):
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    if listening:
        sock.listen()
    return sock


@pytest.fixture
def socket_path(client, server_dir):
    """The path of the server's socket, where none runs."""
    client.rpc("remote_version")
    path = socket_of(server_dir)
    client.stop()
    assert not path.exists()
    return path


def test_c092_killed_server(client):
    for _ in range(3):
        before = remote_pid(client)
        os.kill(before, signal.SIGKILL)
        assert remote_pid(client) != before


@pytest.mark.parametrize(
    "what", ["dead", "bound", "file", "fifo", "dangling link", "link to a file", "link to a directory"]
)
def test_c092_thing_at_the_socket(client, workdir, socket_path, what):
    victim = workdir / "victim"
    held = None
    if what in ("dead", "bound"):
        held = _plant_socket(socket_path)
    elif what == "file":
        socket_path.write_text("x")
    elif what == "fifo":
        os.mkfifo(socket_path)
    elif what == "dangling link":
        socket_path.symlink_to(victim)
    elif what == "link to a file":
        victim.write_text("mine")
        socket_path.symlink_to(victim)
    else:
        victim.mkdir()
        socket_path.symlink_to(victim)
    if what == "dead":
        held.close()
    assert remote_pid(client) == only_server()
    assert stat.S_ISSOCK(socket_path.lstat().st_mode)
    assert what != "link to a file" or victim.read_text() == "mine"
    assert what != "link to a directory" or os.listdir(victim) == []
    assert what != "dangling link" or not victim.exists()
    if held:
        held.close()


def test_c092_directory_at_the_socket(client, socket_path):
    socket_path.mkdir()
    (socket_path / "file").write_text("mine")
    done = client.cli("exec", stdin=REMOTE)
    assert done.returncode == 1 and not done.stdout
    assert all(
        part.encode() in done.stderr for part in (str(socket_path.parent), socket_path.name, "directory")
    ), done.stderr
    assert (socket_path / "file").read_text() == "mine"
    assert not titled(SERVER)
    shutil.rmtree(socket_path)
    client.rpc("remote_version")


FAKE = """import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("up", flush=True)
while True:
    c, _ = s.accept()
    print(len(c.recv(65536)), flush=True)
"""


@contextlib.contextmanager
def fake_server(client, path, **how):
    """Something that listens, takes what it is sent and never answers; prints how much that was."""
    fake = client.machine.popen(["/usr/bin/python3", "-c", FAKE, path], **how)
    assert fake.stdout.readline() == b"up\n"
    try:
        yield fake
    finally:
        fake.kill()
        fake.communicate()


def test_c092_program_that_is_no_server(client, socket_path):
    """What has our socket's name but is no server of ours is not killed, whatever it does not answer. Slow: it is asked for as long
    as is promised."""
    with fake_server(client, socket_path) as fake:
        done = client.cli("stop-server", timeout=30)
        assert done.returncode == 1 and done.stderr
        assert fake.poll() is None
    socket_path.unlink()


@pytest.mark.parametrize(
    "what", ["garbage", "not writable", "fifo", "dangling link", "link to a file", "directory", "socket"]
)
def test_c092_thing_at_the_lock(client, workdir, server_dir, what):
    client.stop()
    server_dir.mkdir(mode=0o700, exist_ok=True)
    lock, victim = server_dir / ".lock", workdir / "victim"
    if what == "garbage":
        lock.write_bytes(b'{"pid":"x"}\n-1\n\0')
    elif what == "not writable":
        lock.touch(mode=0o400)
    elif what == "fifo":
        os.mkfifo(lock)
    elif what == "directory":
        lock.mkdir()
    elif what == "socket":
        _plant_socket(lock).close()
    else:
        if what == "link to a file":
            victim.write_text("mine")
        lock.symlink_to(victim)
    done = client.cli("exec", stdin=REMOTE)
    if done.returncode == 0:
        assert pid_in(json.loads(done.stdout)["result"]) == only_server()
    else:
        assert done.returncode == 1 and str(lock).encode() in done.stderr and not done.stdout
        assert not titled(SERVER)
    refusable = {"dangling link", "link to a file", "directory", "socket"} | ({"not writable"} if os.geteuid() != 0 else set())
    assert what in refusable or done.returncode == 0
    assert what != "link to a file" or victim.read_text() == "mine"
    assert what != "dangling link" or not victim.exists()
    lock.rmdir() if lock.is_dir() else lock.unlink()


def test_c092_lock_that_somebody_holds(client, server_dir):
    server_dir.mkdir(mode=0o700)
    with open(server_dir / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = client.popen("start-server")
        time.sleep(0.3)
        assert waiting.poll() is None and not titled(SERVER)
    finish(waiting)
    only_server()


def test_c092_lock_that_was_removed(client, server_dir):
    """A lock on a removed file locks nobody out."""
    server_dir.mkdir(mode=0o700)
    with open(server_dir / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = client.popen("start-server")
        time.sleep(0.1)
        os.unlink(server_dir / ".lock")
        finish(waiting)
        only_server()


@needs_root
def test_c092_read_only_and_full_directories(client, apart, workdir):
    """A disk on which nothing can be made is refused by name."""
    script = """
        mount -t tmpfs -o mode=1777,nr_inodes=2 tmpfs "$1" && mkdir -m 700 "$1/full"
        TOOLBOX_DIR="$1/full" "$2" start-server
        echo "exit $?"
        umount "$1" && mount -t tmpfs tmpfs "$1" && mkdir -m 700 "$1/ro" && mount -o remount,ro "$1"
        TOOLBOX_DIR="$1/ro" "$2" start-server
        echo "exit $?"
    """
    (workdir / "mount").mkdir()
    done = client.machine.run(
        [
            *apart,
            "sh",
            "-c",
            script,
            "sh",
            workdir / "mount",
            client.binary,
        ]
    )
    assert done.stdout == b"exit 1\nexit 1\n", done
    assert b"mount/full: No space left" in done.stderr and b"mount/ro: Read-only" in done.stderr


# ---- the directory's path ----


def _path_of_length(base, n, last="d"):
    path = str(base)
    while len(path) + 200 < n:
        path += "/" + "x" * 150
    path += "/" + "y" * (n - len(path) - 1 - len(last)) + last
    assert len(path) == n
    return path


@pytest.mark.parametrize("length", [90, 107, 108, 150, 900])
def test_c094_long_paths(new_client, workdir, length):
    """Two directories that differ in their last character are two servers, with their own sessions."""
    paths = [_path_of_length(workdir, length, last) for last in "ab"]
    clients = [new_client(env={"TOOLBOX_DIR": "", "INSPECT_SANDBOX_TOOLS_DIR": path}) for path in paths]
    for client in clients:
        client.dir = None
    pids = [remote_pid(client) for client in clients]
    assert len(set(pids)) == 2
    clients[0].new()
    assert clients[1].rpc("bash_session_list") == []
    assert "42" in clients[0].bs("echo $((6*7))\n")
    for path in paths:
        assert any(stat.S_ISSOCK(entry.stat().st_mode) for entry in os.scandir(path)), os.listdir(path)
    everything = [os.path.join(base, name) for base, _, names in os.walk(workdir) for name in names]
    assert all(path.startswith(tuple(path + "/" for path in paths)) for path in everything), everything
    for client in clients:
        client.stop()


def test_c094_names_of_any_bytes(new_client, workdir):
    for name in ("é日本語", "with space", "new\nline", "-rf", "a'b\"c\\d", "%s%n"):
        client = new_client(dir=workdir / name)
        assert remote_pid(client) in {process.pid for process in titled(SERVER)}
        assert socket_of(workdir / name)
    assert len(titled(SERVER)) == 6


@pytest.mark.parametrize("path", ["rel", "./rel//", "../rel"])
def test_c094_relative_directory_is_refused(new_client, workdir, path):
    """It would be another one for each caller."""
    client = new_client(dir=workdir / "rel", env={"TOOLBOX_DIR": path})
    for command in ("exec", "start-server", "status", "stop-server", "healthcheck", "upgrade", "bash_session list", "connect --list",
                    "connect --stop", "connect local:"):
        done = client.cli(*command.split(), stdin=REMOTE, cwd=workdir)
        assert done.returncode == 1 and f"{path.rstrip('/')}: a path that begins with / is wanted".encode() in done.stderr, (command, done)
    client.env["TOOLBOX_DIR"] = str(workdir / "rel")
    assert list(workdir.iterdir()) == []


# ---- the server leaves its starter alone ----


@pytest.mark.parametrize(
    "command", ["start-server | cat", "exec 2>&1 | cat", "healthcheck | cat", "start-server 2>&1 3>&1 | cat"]
)
def test_c096_pipe_is_not_kept_open(client, command):
    done = client.machine.run(
        ["sh", "-c", f'"$0" {command}', client.binary], stdin=REMOTE, env=client.env, timeout=20
    )
    assert done.returncode == 0 and done.stderr == b"", done
    only_server()


def test_c096_own_session_without_terminal(client):
    master, slave = pty.openpty()
    try:
        started = client.popen(
            "start-server",
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, 0x540E, 0),
        )  # TIOCSCTTY
        assert started.wait(timeout=20) == 0
    finally:
        os.close(slave)
        os.close(master)
    pid = only_server()
    _, _, after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    group, session, terminal = map(int, after.split()[2:5])
    assert (group, session, terminal) == (pid, pid, 0)
    os.kill(pid, signal.SIGHUP)
    assert remote_pid(client) == pid


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
@needs_root
def test_c096_closed_standard_descriptors(client, closed):
    def close():
        for fd in closed:
            os.close(fd)

    done = client.cli("start-server", preexec_fn=close)
    assert done.returncode == 0, done
    pid = only_server()
    found = processes.descriptors(pid)
    assert [found[fd] for fd in range(3)] == ["/dev/null"] * 3, found
    client.new()
    assert "42" in client.bs("echo $((6*7))\n")
    keeper = titled(SESSION)[0].pid
    found = processes.descriptors(keeper)
    assert [found[fd] for fd in range(3)] == ["/dev/null"] * 3, found


def test_c096_blocked_and_ignored_signals(client):
    """What its starter blocks or ignores is not the server's, nor a session's, a job's, or that of a runtime's command."""

    def block():
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
        for number in (
            signal.SIGTERM,
            signal.SIGINT,
            signal.SIGCHLD,
            signal.SIGUSR1,
            signal.SIGQUIT,
            signal.SIGPIPE,
        ):
            signal.signal(number, signal.SIG_IGN)

    assert client.cli("start-server", preexec_fn=block).returncode == 0
    pid = only_server()
    assert int(status(pid)["SigBlk"], 16) == 0
    client.new()
    mask = (
        1 << signal.SIGTERM - 1 | 1 << signal.SIGUSR1 - 1 | 1 << signal.SIGPIPE - 1 | 1 << signal.SIGCHLD - 1
    )
    look = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    answers = [client.bs(f"sh -c \"{look}\"\n"), client.cli("exec_remote", "run", "-c", look, preexec_fn=block).stdout.decode()]
    answers.append(client.cli("inject", f"exec:sh -c '{look.replace(chr(39), chr(34))} >&2; exit 9'", preexec_fn=block).stderr.decode())
    for answer in answers:
        for name in ("SigBlk", "SigIgn"):
            assert int(re.search(rf"{name}:\s*(\w+)", answer)[1], 16) & mask == 0, answer
    client.bs("exit\n")
    wait_until(lambda: processes.count_zombies(pid) == 0, "ended children to be waited for")
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not titled(SERVER) and not titled(SESSION), "the server to end on TERM", STOPPED)


@needs_root
def test_server_holds_no_descriptor_but_its_own(client, workdir):
    extra = [os.open(workdir / f"file{i}", os.O_RDWR | os.O_CREAT) for i in range(40)]
    try:
        client.cli("start-server", pass_fds=extra)
        client.new()
        server, keeper = only_server(), titled(SESSION)[0].pid
        for pid in (server, keeper):
            for fd, target in processes.descriptors(pid).items():
                assert not target.startswith(f"{workdir}/file"), (fd, target)
                assert not target.endswith(".lock"), (fd, target)
        keeper_sockets = [
            target for target in processes.descriptors(keeper).values() if target.startswith("socket:")
        ]
        assert len(keeper_sockets) == 1, "its own listening socket, and not the server's"
        assert "42" in client.bs("echo $((6*7)); ls -l /proc/self/fd/\n")
        listing = client.bs("ls -l /proc/self/fd/ | wc -l\n")
        assert int(re.search(r"\d+", listing)[0]) <= 6, listing
    finally:
        for fd in extra:
            os.close(fd)


def test_caller_gone_before_its_server_is_up(client):
    starter = client.popen("exec")
    starter.stdin.write(REMOTE)
    starter.stdin.close()
    starter.stdin = None
    starter.stdout.close()
    starter.wait(timeout=HANG)
    starter.stderr.close()
    assert remote_pid(client) == only_server()


# ---- stop-server ----

# Answers once all that it has started has ended, one a second.
SLOW_SERVER = """
import ctypes, socket, subprocess, sys
ctypes.CDLL(None).prctl(15, b"server", 0, 0, 0)
started = [subprocess.Popen(["sleep", str(n)]) for n in range(1, 10)]
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
print("ready", flush=True)
client, _ = listening.accept()
client.recv(65536)
for process in started:
    process.wait()
body = b'{"jsonrpc":"2.0","id":1,"result":null}'
client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
"""


def test_a_server_that_ends_slowly_is_waited_for(client):
    """As long as there is less and less below it. Slow: nine seconds of that."""
    path = client.rpc("server_status")["server"]["socket"]
    client.stop()
    with client.machine.popen(["/usr/bin/python3", "-c", SLOW_SERVER, path]) as server:
        assert server.stdout.readline() == b"ready\n"
        done = client.cli("stop-server", timeout=60)
        server.communicate()
    assert (done.returncode, done.stderr, server.returncode) == (0, b"", 0)


def _running(word):
    """How many `sleep WORD` there are."""
    return sum(_cmdline(process.pid) == b"sleep\0" + word + b"\0" for process in processes.descendants())


HARD_TO_END = """
trap '' TERM HUP INT
sleep 5011 & disown
setsid sh -c 'trap "" TERM HUP; sleep 5012; sleep 5012' &
(setsid sh -c 'trap "" TERM; (sleep 5013 & sleep 5013) & exec sleep 5013' &) &
sh -c 'kill -STOP $$' &
(exec -a stopped sleep 5014 & kill -STOP $!)
python3 -c 'import os,signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for i in range(3):
    if os.fork() == 0: os.setsid()
signal.pause()' &
echo ready
"""


POLITE = """
import pathlib, signal, sys
def end(*_):
    pathlib.Path(sys.argv[1]).touch()
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("re" + "ady", flush=True)
signal.pause()
"""


def polite(client):
    """A new session with a program that does something when TERM comes: the file that it makes then."""
    client.new()
    (client.dir.parent / "polite.py").write_text(POLITE)
    mark = client.dir.parent / f"{client.session}.ended"
    said = client.bs(
        f"setsid /usr/bin/python3 {client.dir.parent}/polite.py {mark} & read -t 20 x\n", wait=20, idle=20
    )
    assert "ready" in said or "ready" in client.bs(wait=20), said
    return mark


def hard_to_end(client):
    """A session full of what does not want to end. Returns its processes."""
    client.new()
    for line in HARD_TO_END.strip().split("\n", 5)[:5]:
        client.bs(line + "\n")
    client.bs(HARD_TO_END.strip().split("\n", 5)[5] + "\n")
    wait_until(lambda: len(processes.descendants(titled(SESSION)[-1].pid)) >= 14, "the programs to run")
    return processes.descendants(titled(SESSION)[-1].pid)


def test_c098_ends_everything(client):
    alive = hard_to_end(client)
    client.rpc("exec_remote_start", {"command": "trap '' TERM HUP; setsid sleep 5015 & sleep 5015; sleep 5015"})
    client.rpc("exec_remote_start", {"command": f"trap 'touch {client.dir}.job; exit' TERM; sleep 5016 & wait"})
    wait_until(lambda: _running(b"5015") == 2 and _running(b"5016") == 1, "the jobs to run")
    alive |= {process for job in titled("toolbox Job") for process in processes.descendants(job.pid)}
    mark = polite(client)
    client.new()
    waiting = client.popen("exec")
    waiting.stdin.write(
        request(
            "bash_session",
            {"session_name": client.session, "wait_for_output": 300, "idle_timeout": 300, "input": "cat\n"},
        )
    )
    waiting.stdin.close()
    waiting.stdin = None
    wait_until(lambda: any(_cmdline(p.pid) == b"cat\0" for p in processes.descendants()), "cat to run")
    server = only_server()
    stop_timed(client)
    waiting.communicate(timeout=HANG)
    left = {process for process in alive if process in processes.descendants()}
    assert not left, sorted(map(str, left))
    assert mark.exists() and os.path.exists(f"{client.dir}.job"), "TERM comes first, and is let work"
    wait_until(lambda: not os.path.exists(f"/proc/{server}"), "the server to end")
    assert set(os.listdir(client.dir)) <= {".lock", "log"}
    for _ in range(2):
        done = client.cli("stop-server")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_c098_where_nothing_runs(new_client, workdir):
    client = new_client(dir=workdir / "never")
    done = client.cli("stop-server")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (workdir / "never").exists()


def test_c098_several_at_once(client):
    client.new()
    client.bs("trap '' TERM; sleep 5021 & disown\n")
    for one in [client.popen("stop-server") for _ in range(6)]:
        assert finish(one) == b""
    assert not titled(SERVER) and not titled(SESSION)


def test_c098_during_a_start(client):
    for i in range(12):
        start = client.popen("start-server")
        time.sleep(i % 12 / 2000)
        stop_timed(client)
        start.communicate(timeout=HANG)
        stop_timed(client)
        assert not titled(SERVER)


@pytest.mark.parametrize("who", ["server", "keeper", "both"])
def test_c098_stopped_processes(client, who):
    mark = polite(client)
    server, keeper = only_server(), titled(SESSION)[0].pid
    with stopped(*{"server": [server], "keeper": [keeper], "both": [server, keeper]}[who]):
        stop_timed(client)
        assert not titled(SERVER) and not titled(SESSION)
    assert mark.exists()


def test_c098_keepers_that_outlived_their_server(client):
    hard_to_end(client)
    kill_servers()
    stop_timed(client)
    assert not titled(SERVER) and not titled(SESSION)


def test_a_killed_keeper_takes_no_edit_along(client, workdir):
    """What it leaves is ended by the server, which does the edits of others meanwhile."""
    over, failed = threading.Event(), []

    def edit(path):
        path.write_text("x\n")
        with Door(socket_of(client.dir)) as door:
            while not over.is_set():
                answer = door.ask("text_editor", {"command": "insert", "path": str(path), "insert_line": 0, "new_str": "y"})
                failed.extend([answer] if "error" in answer else [])

    client.rpc("remote_version")
    editors = [threading.Thread(target=edit, args=(workdir / f"file{i}",)) for i in range(3)]
    for editor in editors:
        editor.start()
    try:
        for _ in range(8):
            client.new()
            client.bs("sleep 5098 & disown\n")
            (keeper,) = [process.pid for process in titled(SESSION) if _cmdline(process.pid).split(b"\0")[0] == f"toolbox {client.session}".encode()]
            os.kill(keeper, signal.SIGKILL)
            wait_until(lambda: not [p for p in processes.descendants() if b"5098" in _cmdline(p.pid)], "its rest to end")
    finally:
        over.set()
        for editor in editors:
            editor.join()
    assert not failed, failed[:3]


def test_c098_killed_keeper(client):
    """What hangs below a keeper that is killed is ended by the server."""
    for wait in (False, True):
        client.new()
        client.bs("trap '' TERM HUP; setsid sleep 5041 & sleep 5042 & disown\n")
        keeper = titled(SESSION)[0].pid
        below = wait_until(
            lambda: len(found := {p for p in processes.descendants(keeper) if "terminal" not in str(p)}) == 3 and found, "both sleeps to run"
        )
        os.kill(keeper, signal.SIGKILL)
        with pytest.raises(RpcError, match="has ended; start a new one"):
            client.bs("echo\n")
        if wait:
            wait_until(lambda: not below & processes.descendants(), "the orphans to be ended")
            continue
        stop_timed(client)
        assert not below & processes.descendants()


def test_c098_server_killed_while_it_is_stopped(client):
    client.new()
    client.bs("trap '' TERM HUP; sleep 5051 & disown\n")
    stop = client.popen("stop-server")
    time.sleep(0.3)
    kill_servers()
    assert stop.wait(timeout=30) == 0, stop.stderr.read()
    stop.communicate()
    assert not titled(SERVER) and not titled(SESSION)


SURVIVOR = """
#include <unistd.h>
#include <signal.h>
int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    return setgid(0) || setuid(0) || write(1, "root\\n", 5) != 5 || pause();
}
"""


@needs_root
def test_c098_failure_is_told(new_client, workdir):
    """What a server may not kill survives: that has to be said, not passed over. Slow: it is tried for as long as is promised."""
    program = workdir / "survivor"
    subprocess.run(["gcc", "-x", "c", "-o", program, "-"], input=SURVIVOR.encode(), check=True)
    program.chmod(0o4755)
    client = new_client(user=NOBODY_KNOWS)
    client.new()
    client.bs(f"{program} || echo refused\n", wait=0, idle=0)
    said = wait_until(lambda: re.search("root|refused", client.bs(wait=1)), "it to say what it is")
    if said[0] == "refused":
        pytest.skip("set-user-id programs don't work here")
    survivor = next(p.pid for p in processes.descendants() if _cmdline(p.pid).startswith(bytes(program)))
    try:
        done = client.cli("stop-server")
        assert done.returncode == 1 and b"could not be ended" in done.stderr, done
    finally:
        os.kill(survivor, signal.SIGKILL)


def test_shutdown_by_method(client):
    client.new()
    assert client.rpc("sandbox_tools_shutdown") is None
    wait_until(lambda: not titled(SERVER) and not titled(SESSION), "all to end")
    client.new()
    with Door(socket_of(client.dir)) as door:
        assert door.rpc("sandbox_tools_shutdown", {}) is None
    wait_until(lambda: not titled(SERVER) and not titled(SESSION), "all to end")


def test_client_of_a_shutdown_goes_away(client):
    """The shutdown runs on."""
    client.new()
    client.bs("setsid sleep 5061 & disown\n")
    with dial(socket_of(client.dir)) as sock:
        sock.sendall(http_request(request("sandbox_tools_shutdown")))
    wait_until(lambda: not titled(SERVER) and not titled(SESSION), "all to end", STOPPED)


# ---- zombies ----


def test_c099_ended_sessions_leave_no_zombie(client):
    pid = remote_pid(client)
    for _ in range(20):
        client.new()
        client.bs("(sleep 0.01 &) ; (setsid sh -c 'sleep 0.02 & exit' &); exit\n")
    for process in titled(SESSION):
        wait_until(lambda: processes.count_zombies(process.pid) == 0, "a keeper's zombies to go")
    for entry in client.rpc("bash_session_list"):
        client.rpc("bash_session_close", {"session_name": entry["session_name"]})
    wait_until(lambda: processes.count_zombies(pid) == 0, "the server's zombies to go")
    wait_until(lambda: not processes.descendants(pid), "the keepers to end")


def test_c099_ended_jobs_leave_no_zombie(client):
    pid = remote_pid(client)

    def poll(door, job):
        return door.rpc("exec_remote_poll", {"pid": job, "ack_seq": 0})["state"] == "completed"

    with Door(socket_of(client.dir)) as door:
        for i in range(60):
            command = "exit 3" if i % 3 else "(sleep 0.05 &) ; (setsid sh -c 'sleep 0.02 & exit' &)"
            job = door.rpc("exec_remote_start", {"command": command})["pid"]
            wait_until(lambda: poll(door, job), "the job to be over")
        for _ in range(20):  # nobody ever asks
            door.rpc("exec_remote_start", {"command": "(setsid sleep 0.02 &); true"})
        wait_until(lambda: processes.count_zombies(pid) == 0, "the server's zombies to go")
    for process in titled("toolbox Job"):
        wait_until(lambda: processes.count_zombies(process.pid) == 0, "a keeper's zombies to go")
    wait_until(lambda: len(titled("toolbox Job")) <= 20, "the keepers of jobs that were polled to their end to go")


@needs_root
def test_c099_process_1_of_a_container(client, apart, workdir):
    """It reaps what others leave, and ends its children on TERM."""
    unshare = client.machine.popen(
        [*apart, "--pid", "--fork", "--kill-child", "--mount-proc", client.binary, "server"],
        env=client.env,
    )
    pid = wait_until(lambda: titled(SERVER), "the server")[0].pid
    enter = ["nsenter", "-t", str(pid), "-p", "-m", "-r"]
    wait_until(lambda: list(Path(client.dir).glob("server.*")), "the socket")
    script = """
        i=0
        while [ $i -lt 100 ]; do
            (sh -c 'exit 3' & (setsid sleep 0.0$((i % 7)) &) &) >/dev/null 2>&1
            i=$((i + 1))
        done
        (setsid sh -c 'trap "" TERM HUP; sleep 5071; sleep 5071' >/dev/null 2>&1 &)
        echo done
    """
    assert client.machine.check([*enter, "sh", "-c", script]) == "done\n"
    wait_until(
        lambda: processes.count_zombies(pid) == 0 and len(processes.descendants(pid)) <= 2,
        "orphans to be reaped",
    )
    answer = client.machine.run([*enter, client.binary, "exec"], stdin=REMOTE, env=client.env)
    assert json.loads(answer.stdout)["result"].endswith("pid 1")
    new = client.machine.run(
        [*enter, client.binary, "exec"], stdin=request("bash_session_new_session"), env=client.env
    )
    assert "session_name" in json.loads(new.stdout)["result"]
    began = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    out, err = unshare.communicate(timeout=HANG)
    assert time.monotonic() - began < 8 + STOPPED
    assert unshare.returncode == 0, (out, err)


# ---- prepared by somebody else ----


@needs_root
@pytest.mark.parametrize(
    "what", ["directory", "open directory", "link", "file", "own link", "link to a private directory"]
)
def test_c101_directory_named_by_the_variable(client, server_dir, workdir, what):
    victim = workdir / "victim"
    victim.mkdir()
    if what in ("directory", "open directory"):
        server_dir.mkdir(mode=0o700)
        if what == "directory":
            os.chown(server_dir, NOBODY_KNOWS, NOBODY_KNOWS)
        else:
            server_dir.chmod(0o777)
    elif what == "file":
        server_dir.touch(mode=0o700)
    else:
        server_dir.symlink_to(victim)
        if what == "link":
            os.lchown(server_dir, NOBODY_KNOWS, NOBODY_KNOWS)
    mode = 0o700 if what == "link to a private directory" else 0o755
    victim.chmod(mode)
    before = server_dir.lstat()
    done = client.cli("exec", stdin=REMOTE)
    assert done.returncode == 1 and str(server_dir).encode() in done.stderr and not done.stdout, done
    after = server_dir.lstat()
    assert (before.st_mode, before.st_uid, before.st_ino) == (after.st_mode, after.st_uid, after.st_ino)
    assert stat.S_IMODE(victim.stat().st_mode) == mode and os.listdir(victim) == []
    server_dir.unlink() if not server_dir.is_dir() or server_dir.is_symlink() else server_dir.rmdir()


@needs_root
def test_c101_fake_socket(client, server_dir):
    """Nothing is ever sent to a socket of somebody else's in a directory of somebody else's."""
    client.rpc("remote_version")
    name = socket_of(server_dir).name
    client.stop()
    shutil.rmtree(server_dir)
    server_dir.mkdir(mode=0o700)
    fake = _plant_socket(server_dir / name, listening=True)
    fake.settimeout(0.2)
    os.chown(server_dir / name, NOBODY_KNOWS, NOBODY_KNOWS)
    os.chown(server_dir, NOBODY_KNOWS, NOBODY_KNOWS)
    for command in ("start-server", "exec", "healthcheck"):
        assert client.cli(command, stdin=REMOTE).returncode == 1
    with pytest.raises(TimeoutError):
        fake.accept()
    fake.close()
    shutil.rmtree(server_dir)


@needs_root
def test_c101_peer_of_another_user(client, server_dir, toolbox):
    """A socket in our own directory whose owner is somebody else is not talked to."""
    client.rpc("remote_version")
    path = socket_of(server_dir)
    client.stop()
    server_dir.chmod(0o777)
    with fake_server(client, path, user=NOBODY_KNOWS) as fake:
        server_dir.chmod(0o700)
        pid = remote_pid(client)
        assert pid == only_server() and pid != fake.pid
        fake.kill()
        assert set(fake.stdout.read().split()) <= {b"0"}, "a request went to the fake"


@needs_root
def test_c101_fixed_places(client, apart, toolbox):
    """Without a variable what others have prepared is passed over, and their targets stay as they are."""
    script = """
        set -e
        mount -t tmpfs tmpfs /run
        for place in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs $place; done
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm; mount -t tmpfs tmpfs /root
        cp "$BINARY" /root/toolbox
        mkdir /root/x; chmod 755 /root/x
        ln -s /root/x /run/toolbox; chown -h 12345:12345 /run/toolbox
        mkdir -m 700 /tmp/.toolbox-0; chown 12345:12345 /tmp/.toolbox-0
        touch /var/tmp/.toolbox-0
        mkdir -m 777 /dev/shm/.toolbox-0; chmod 777 /dev/shm/.toolbox-0
        /root/toolbox start-server
        stat -c '%a %n' /root/x /tmp/.toolbox-0 /dev/shm/.toolbox-0 /root/.cache/toolbox
        ls /root/x /tmp/.toolbox-0 /dev/shm/.toolbox-0 | grep -c server || :
        ls /root/.cache/toolbox | grep -c '^server'
        # what becomes usable later changes nothing for a server that runs
        rm /run/toolbox
        echo '{"jsonrpc":"2.0","id":1,"method":"bash_session_list"}' | /root/toolbox exec
        ls -d /run/toolbox 2>&1 | grep -c 'No such'
        /root/toolbox stop-server
    """
    # The binary is found under its descriptor: what is mounted may hide it.
    with open(toolbox, "rb") as binary:
        done = client.machine.run(
            [
                *apart,
                "sh",
                "-c",
                script,
            ],
            env={"BINARY": f"/proc/self/fd/{binary.fileno()}"},
            pass_fds=[binary.fileno()],
        )
    assert done.returncode == 0, done
    assert done.stdout.decode().split("\n")[:7] == [
        "755 /root/x",
        "700 /tmp/.toolbox-0",
        "777 /dev/shm/.toolbox-0",
        "700 /root/.cache/toolbox",
        "0",
        "1",
        '{"jsonrpc":"2.0","id":1,"result":[]}',
    ], done.stdout.decode()


@needs_root
def test_keepers_in_another_place_are_found(client, apart, toolbox):
    """Their server dead, and a better place usable meanwhile: the next server belongs where they are."""
    script = """
        set -e
        mount -t tmpfs tmpfs /run; mount -t tmpfs -o mode=1777 tmpfs /tmp
        cp "$BINARY" /run/binary
        ln -s / /run/toolbox
        new='{"jsonrpc":"2.0","id":1,"method":"bash_session_new_session"}'
        echo "$new" | /run/binary exec
        remote='{"jsonrpc":"2.0","id":1,"method":"remote_version"}'
        kill -9 $(/run/binary exec "$remote" | sed 's/.*pid \\([0-9]*\\)".*/\\1/')
        rm /run/toolbox
        echo "$new" | /run/binary exec
        /run/binary stop-server
        ls /tmp/.toolbox-0
        ls -d /run/toolbox 2>&1 | grep -c 'No such'
    """
    with open(toolbox, "rb") as binary:
        done = client.machine.run(
            [
                *apart,
                "sh",
                "-c",
                script,
            ],
            env={"BINARY": f"/proc/self/fd/{binary.fileno()}"},
            pass_fds=[binary.fileno()],
        )
    assert done.returncode == 0, done
    assert [json.loads(line)["result"]["session_name"] for line in done.stdout.splitlines()[:2]] == [
        "BashSession",
        "BashSession_1",
    ]
    assert not titled(SESSION)


# ---- the directory goes away ----


@pytest.mark.parametrize("how", ["removed", "renamed", "parent removed"])
def test_directory_vanishes(new_client, workdir, how):
    """All ends, as it ends when told to."""
    client = new_client(dir=workdir / ("parent/server" if how == "parent removed" else "server"))
    (workdir / "parent").mkdir()
    client.new()
    client.bs("setsid sleep 5081 & disown\n")
    mark = workdir / "none" if how == "parent removed" else polite(client)
    if how == "removed":
        shutil.rmtree(client.dir)
    elif how == "renamed":
        client.dir.rename(workdir / "elsewhere")
    else:
        shutil.rmtree(workdir / "parent")
    wait_until(lambda: not titled(SERVER) and not titled(SESSION), "all to end", STOPPED)
    assert not [p for p in processes.descendants() if b"5081" in _cmdline(p.pid)]
    assert mark.exists() or how == "parent removed"


def test_directory_vanishes_and_comes_back(client, server_dir):
    before = remote_pid(client)

    def removed():  # while the server may be writing down there what it runs
        shutil.rmtree(server_dir, ignore_errors=True)
        return not os.path.exists(server_dir)

    wait_until(removed, "the directory to be removed")
    assert remote_pid(client) != before
    wait_until(lambda: len(titled(SERVER)) == 1, "the old server to end", STOPPED)


def test_socket_vanishes(client, server_dir):
    """A server that nobody can reach any more ends; the sessions live on under the next one."""
    client.new()
    client.bs("x=kept\n")
    before = remote_pid(client)
    socket_of(server_dir).unlink()
    wait_until(lambda: not titled(SERVER), "the server to end", STOPPED)
    assert "kept" in client.bs("echo $x\n")
    assert remote_pid(client) != before
    assert [entry["session_name"] for entry in client.rpc("bash_session_list")] == [client.session]


def test_socket_replaced(client, server_dir, workdir):
    before = remote_pid(client)
    path = socket_of(server_dir)
    with _plant_socket(workdir / "s") as planted:
        planted.listen()
        os.rename(workdir / "s", path)
        wait_until(lambda: not titled(SERVER), "the server to end", STOPPED)
    assert remote_pid(client) != before


# ---- at rest ----


def _wakeups(pids):
    return [
        (status(pid)["voluntary_ctxt_switches"], status(pid)["nonvoluntary_ctxt_switches"]) for pid in pids
    ]


def test_idle_processes_are_not_woken(client):
    client.new()
    client.bs("echo\n")
    client.new()
    pids = [only_server()] + [process.pid for process in titled(SESSION)]
    with dial(socket_of(client.dir)):  # a silent client costs nothing either
        wait_until(lambda: all(status(pid)["State"].startswith("S") for pid in pids), "all to sleep")
        time.sleep(0.5)
        before = _wakeups(pids)
        time.sleep(2.5)
        assert _wakeups(pids) == before


@pytest.mark.skipif("TOOLBOX_SANITIZED" in os.environ, reason="with sanitizers memory says nothing")
def test_memory_does_not_grow(client):
    def resident(pid):
        return int(status(pid)["RssAnon"].split()[0])

    big = request("bash_session_new_session", {"cwd": "/" * 20_000_000})
    assert b"error" in client.cli("exec", stdin=big).stdout
    pid = only_server()
    wait_until(lambda: resident(pid) < 4096, "the first call's request to be let go of, behind its answer")
    with Door(socket_of(client.dir)) as door:
        for _ in range(3):
            assert "error" in door.ask("bash_session_new_session", {"cwd": "/" * 8_000_000})
        for _ in range(200):
            door.rpc("remote_version")
        before = resident(pid)
        for _ in range(800):
            door.rpc("remote_version")
        for _ in range(3):
            assert "error" in door.ask("bash_session_new_session", {"cwd": "/" * 8_000_000})
    for _ in range(200):
        with dial(socket_of(client.dir)) as sock:
            sock.sendall(http_request(REMOTE)[: random.randrange(100)])
    remote_pid(client)
    assert resident(pid) < before + 512
    if os.geteuid() == 0:  # who else may look
        wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < 20, "the descriptors to be closed")


def test_command_lines_tell_nothing(client):
    secret = "s3cr3t-in-the-request"
    text = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "bash_session_new_session", "params": {"env": {"X": secret}}}
    )
    client.cli("exec", text)
    names = {
        _cmdline(pid).split(b"\0")[0]
        for pid in [only_server()] + [process.pid for process in titled(SESSION)]
    }
    assert names == {b"toolbox server", b"toolbox BashSession"}
    for process in titled("toolbox"):
        for file in ("cmdline", "comm", "stat"):
            assert secret.encode() not in Path(f"/proc/{process.pid}/{file}").read_bytes()


@needs_root
def test_server_and_keepers_cannot_be_looked_into(new_client):
    """Not by others of the same user either: what a session's program may see is itself."""
    client = new_client(user=NOBODY_KNOWS)
    client.new()
    server, keeper = only_server(), titled(SESSION)[0].pid
    for pid in (server, keeper):
        assert client.machine.run(["cat", f"/proc/{pid}/environ"], user=NOBODY_KNOWS).returncode != 0
        assert client.machine.run(["ls", f"/proc/{pid}/fd"], user=NOBODY_KNOWS).returncode != 0
    assert "PATH=" in client.bs("tr '\\0' '\\n' </proc/$$/environ\n")


# ---- who may ask ----


@needs_root
def test_c115_permissions(new_client, workdir):
    for user in (0, NOBODY_KNOWS):
        client = new_client(dir=workdir / f"of-{user}", user=user)
        client.new()
        info = client.dir.stat()
        assert (stat.S_IMODE(info.st_mode), info.st_uid) == (0o700, user)
        for path in (socket_of(client.dir), socket_of(client.dir, "BashSession")):
            assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_uid) == (0o600, user)


@needs_root
@pytest.mark.parametrize("umask", [0, 0o777])
def test_c115_permissions_under_any_umask(new_client, server_dir, umask):
    client = new_client(dir=server_dir, user=NOBODY_KNOWS)
    assert client.cli("start-server", preexec_fn=lambda: os.umask(umask)).returncode == 0
    assert stat.S_IMODE(server_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket_of(server_dir).stat().st_mode) == 0o600


@needs_root
def test_directory_below_one_that_passes_its_group_on(client, workdir, server_dir):
    workdir.chmod(0o2755)
    client.rpc("remote_version")
    assert stat.S_IMODE(server_dir.stat().st_mode) == 0o700


@needs_root
def test_other_users_are_refused(new_client, workdir):
    """Even where the modes of directory and socket let them in; root gets in to everybody's."""
    client = new_client(user=NOBODY_KNOWS)
    client.new()
    for path in (socket_of(client.dir), socket_of(client.dir, "BashSession")):
        client.dir.chmod(0o755)
        path.chmod(0o666)
        body = request(
            "bash_session",
            {"session_name": client.session, "wait_for_output": 1, "idle_timeout": 0, "input": "id\n"},
        )
        for user, welcome in ((NOBODY_KNOWS, True), (0, True), (NOBODY_KNOWS + 1, False), (65534, False)):
            done = curl(client, path, body, user=user)
            assert (done.returncode == 0 and b"result" in done.stdout) == welcome, (user, done)
        client.dir.chmod(0o700)
    other = Client(Host(), client.binary, client.dir, NOBODY_KNOWS + 1)
    assert other.cli("exec", stdin=REMOTE).returncode == 1


@needs_root
def test_user_without_an_entry(new_client, workdir):
    client = new_client(user=NOBODY_KNOWS)
    assert client.cli("start-server").returncode == 0
    client.new()
    assert str(NOBODY_KNOWS) in client.bs("id -u; id -g\n")
    done = client.cli("healthcheck")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2


# ---- what is passed on ----


def test_private_variables_are_kept_from_programs(client):
    private = {
        "INSPECT_SANDBOX_TOOLS_DIR": "/a",
        "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": "70000",
        "TOOLBOX_X": "1",
        "INSPECT_MCP_READLINE_LIMIT_BYTES": "5",
    }
    client.rpc("remote_version", env={**private, "PUBLIC": "1"})
    client.new()
    found = client.bs("env | sort\n")
    assert "PUBLIC=1" in found and not re.search("TOOLBOX|INSPECT", found), found
    assert "PUBLIC=1" not in client.bs("env -i env\n")


def test_environment_and_directory_are_the_starters(client, workdir):
    (workdir / "first").mkdir()
    client.rpc("remote_version", env={"MARK": "first", "EMPTY": "", "ODD": "a=b\nc"}, cwd=workdir / "first")
    client.rpc("bash_session_new_session", env={"MARK": "second"}, cwd="/usr")
    client.session = "BashSession"
    answer = client.bs('echo "$MARK|$EMPTY|$ODD|$PWD"\n')
    assert f"first||a=b\nc|{workdir}/first" in answer, answer


def test_start_directory_that_was_deleted(client, workdir):
    gone = workdir / "gone"
    gone.mkdir()

    def leave():
        os.chdir(gone)
        os.rmdir(gone)

    client.rpc("remote_version", preexec_fn=leave)
    client.new()
    assert "at / in" in client.bs("echo at $(/bin/pwd) in\n")
    gone.mkdir()
    client.stop()
    client.rpc("remote_version", cwd=gone)
    gone.rmdir()
    client.new()
    assert "at / in" in client.bs("echo at $(/bin/pwd) in\n")


@needs_root
def test_start_directory_that_may_not_be_entered(new_client, workdir):
    """As where a container's is root's own: sessions then start in /, and never in the server's directory."""
    locked = workdir / "locked"
    locked.mkdir(mode=0o700)

    def enter():
        os.chdir(locked)
        os.setgroups([])
        os.setresgid(NOBODY_KNOWS, NOBODY_KNOWS, NOBODY_KNOWS)
        os.setresuid(NOBODY_KNOWS, NOBODY_KNOWS, NOBODY_KNOWS)

    client = new_client(user=0)
    assert client.cli("start-server", preexec_fn=enter).returncode == 0
    client.user = NOBODY_KNOWS
    client.new()
    assert "at / in" in client.bs("echo at $(/bin/pwd) in\n")


# ---- commands ----


def test_c115_healthcheck(client):
    """Slow: two callers give up on a server that is stopped."""
    done = client.cli("healthcheck")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and done.stderr == b""
    assert (
        re.fullmatch(r"\d+\.\d+\.\d+", answers[0]["result"]) and pid_in(answers[1]["result"]) == only_server()
    )
    with stopped(only_server()):  # bounded, and no success
        for one in [client.popen("healthcheck"), client.popen("start-server")]:
            out, err = one.communicate(timeout=30)
            assert one.returncode == 1 and b"no answer within" in err and not out
    assert client.cli("healthcheck").returncode == 0
    kill_servers()
    assert client.cli("healthcheck").returncode == 0


def test_server_whose_queue_is_full(client):
    """Nobody waits for ever for a server that takes no connection. Slow: two callers give up, after the time that each has."""
    client.rpc("remote_version")
    path = socket_of(client.dir)
    with contextlib.ExitStack() as stack, stopped(only_server()):
        with pytest.raises(OSError):
            while True:
                sock = stack.enter_context(socket.socket(socket.AF_UNIX))
                sock.setblocking(False)
                sock.connect(str(path))
        for one in [client.popen(command) for command in ("healthcheck", "exec")]:
            out, err = one.communicate(REMOTE, timeout=HANG)
            assert one.returncode == 1 and err and not out
        assert len(titled(SERVER)) == 1
    assert remote_pid(client) == only_server()


def test_start_server_twice(client):
    for _ in range(3):
        done = client.cli("start-server")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    pid = only_server()
    assert remote_pid(client) == pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_server_in_the_foreground(client, server_dir, number):
    server = client.popen("server")
    pid = wait_until(lambda: list(server_dir.glob("server.*")) and titled(SERVER), "the server")[0].pid
    assert pid == server.pid == remote_pid(client)
    second = client.cli("server")
    assert (
        second.returncode == 1 and b"running" in second.stderr and str(server_dir).encode() in second.stderr
    )
    client.new()
    client.bs("setsid sleep 5091 & disown\n")
    server.send_signal(number)
    assert finish(server) == b""
    assert not titled(SESSION)


# ---- builds ----


def test_two_builds_side_by_side(client, new_client, other_build):
    other = new_client(dir=client.dir, binary=other_build)
    pids = [remote_pid(one) for one in (client, other)]
    assert len(set(pids)) == 2 and {process.pid for process in titled(SERVER)} == set(pids)
    assert (client.new(), other.new()) == ("BashSession", "BashSession_1")  # no name is that of two
    client.bs("x=one\n")
    other.bs("x=other\n")
    assert "=one" in client.bs("echo =$x\n") and "=other" in other.bs("echo =$x\n")
    client.stop()
    assert [process.pid for process in titled(SERVER)] == [pids[1]]
    assert "=other" in other.bs("echo =$x\n") and remote_pid(other) == pids[1]
    client.ed("create", client.dir.parent / "file", file_text="x")  # the history is of both
    other.ed("undo_edit", client.dir.parent / "file")
    assert not (client.dir.parent / "file").exists()
    other.stop()
