"""`toolbox run`: a program in a target as if it ran here, over a connection that is kept and without one."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from harness import processes
from harness.injection import script
from harness.machine import HANG

BYTES = bytes(range(256)) * 4096  # a megabyte, in which each byte is


class Runs:
    """run() in one target, by a runtime that is told apart by its log."""

    def __init__(self, client, workdir, kept):
        self.client, self.there, self.kept, self.log = client, workdir / "there", kept, workdir / "log"
        self.target = f"exec:{script(workdir / 'runtime', f'echo $$ >>{self.log}; exec ' + chr(34) + '$@' + chr(34))}"
        if kept:
            done = client.cli("connect", "--dir", str(self.there), self.target)
            assert done.returncode == 0, done

    def words(self, *words, options=()):
        return ("run", "--dir", str(self.there), *options, self.target, "--", *words)

    def run(self, *words, options=(), **how):
        return self.client.cli(*self.words(*words, options=options), **how)

    def popen(self, *words, options=(), **how):
        return self.client.popen(*self.words(*words, options=options), **how)


@pytest.fixture(params=["kept", "alone"])
def runs(request, client, workdir):
    yield Runs(client, workdir, request.param == "kept")
    client.cli("connect", "--stop")


def _lives(pid):
    return os.path.exists(f"/proc/{pid}")


def _gone(path, n):
    """Waits until that many pids stand in the file, and then until none of them lives."""
    processes.wait_until(lambda: path.exists() and len(path.read_text().split()) == n, "the program to say who it is")
    pids = [int(word) for word in path.read_text().split()]
    return lambda: processes.wait_until(lambda: not any(map(_lives, pids)), f"{pids} to end")


def test_output_status_and_words(runs):
    done = runs.run("sh", "-c", 'printf "%s|" "$@"; echo err >&2; exit 7', "x", "a b", "", "ü$'\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b||ü$'\n|".encode(), b"err\n")


def test_bytes_are_what_they_are(runs):
    done = runs.run("sh", "-c", "tee /dev/stderr", options=["-i"], stdin=BYTES)
    assert done.returncode == 0 and done.stdout == BYTES and done.stderr == BYTES


def test_stdin_is_empty_without_i(runs):
    assert runs.run("cat", stdin=b"not for it").stdout == b""


def test_from_a_file_and_to_a_file(runs, workdir):
    (workdir / "from").write_bytes(BYTES)
    with open(workdir / "from", "rb") as source, open(workdir / "to", "wb") as sink:
        process = subprocess.Popen([runs.client.binary, *runs.words("cat", options=["-i"])], stdin=source, stdout=sink,
                                   env={**os.environ, **runs.client.env})
        assert process.wait(HANG) == 0
    assert (workdir / "to").read_bytes() == BYTES


def test_who_reads_nothing_is_told_nothing_of_a_full_pipe(runs):
    """More stdin than anybody takes ends with the program."""
    done = runs.run("sh", "-c", "exec <&-; echo done", options=["-i"], stdin=BYTES)
    assert (done.returncode, done.stdout) == (0, b"done\n")


@pytest.mark.parametrize("words, status, said", [(["no-such-program"], 127, b"no-such-program: not found"), (["/"], 126, b"/: "),
                                                 (["sh", "-c", "kill -9 $$"], 137, b""), (["sh", "-c", "kill $$"], 143, b"")])
def test_status(runs, words, status, said):
    done = runs.run(*words)
    assert done.returncode == status and said in done.stderr, done


def test_where_who_and_with_what(runs, workdir):
    (workdir / "in here").mkdir()
    done = runs.run("sh", "-c", 'pwd; echo "$A$B"', options=["--cwd", str(workdir / "in here"), "-e", "A=1", "--env", "B"], env={"B": "2"})
    assert done.stdout.decode().splitlines() == [str(workdir / "in here"), "12"]
    done = runs.run("true", options=["--cwd", "/no/such"])
    assert done.returncode == 126 and b"/no/such" in done.stderr, done
    done = runs.run("true", options=["--user", "no-such-user"])
    assert done.returncode == 125 and b"no-such-user" in done.stderr, done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_user(runs):
    done = runs.run("sh", "-c", "id -u; id -g; id -G; echo $HOME", options=["-u", "nobody", "-w", "/"])
    uid, gid, groups, home = done.stdout.decode().splitlines()
    assert uid != "0" and gid != "0" and "0" not in groups.split() and home, done


def test_time_is_over(runs, workdir):
    done = runs.run("sh", "-c", f"sleep 1000 & echo $! $$ >{workdir}/pids; wait", options=["--timeout", "300ms"])
    assert done.returncode == 124, done
    _gone(workdir / "pids", 2)()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on(runs, workdir, number):
    text = f"trap 'echo got {number}; exit 5' {number}; echo $$ >{workdir}/pid; while :; do sleep 0.05; done"
    process = runs.popen("sh", "-c", text)
    processes.wait_until(lambda: (workdir / "pid").exists(), "it to begin")
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out) == (5, f"got {number}\n".encode()), err


@pytest.mark.parametrize("end", ["caller", "runtime"])
def test_nothing_is_left_when_this_side_dies(runs, workdir, end):
    """Whatever has set itself apart there."""
    text = f"(setsid sh -c 'echo $$ >>{workdir}/pids; exec sleep 1000' &) ; trap '' TERM HUP; echo $$ >>{workdir}/pids; sleep 1000 & wait"
    process = runs.popen("sh", "-c", text)
    gone = _gone(workdir / "pids", 2)
    if end == "caller":
        process.kill()
    elif runs.kept:
        assert runs.client.cli("connect", "--stop").returncode == 0
    else:
        os.kill(int(runs.log.read_text().split()[-1]), signal.SIGKILL)
    gone()
    process.communicate(timeout=HANG)
    assert process.returncode in (-9, 125)


def test_what_goes_on_in_the_background_stays(runs, workdir):
    """As with any runtime: the program has ended, and nobody waits for those who hold its output."""
    done = runs.run("sh", "-c", f"sleep 1000 & echo $! >{workdir}/pid; echo there")
    assert (done.returncode, done.stdout) == (0, b"there\n")
    pid = int((workdir / "pid").read_text())
    assert _lives(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_reader_that_goes_ends_it(runs, workdir):
    process = runs.popen("sh", "-c", f"echo $$ >{workdir}/pids; exec yes")
    assert process.stdout.read(4) == b"y\ny\n"
    process.stdout.close()
    assert process.wait(HANG) == 128 + signal.SIGPIPE
    _gone(workdir / "pids", 1)()


def test_a_slow_reader_holds_up_nobody_else(runs, workdir):
    slow = runs.popen("sh", "-c", f"echo $$ >{workdir}/pids; exec yes")
    gone = _gone(workdir / "pids", 1)
    for _ in range(3):
        assert runs.run("echo", "hi").stdout == b"hi\n"
    slow.kill()
    slow.communicate()
    gone()


class Screen:
    """A terminal of so many rows and columns, and what is shown on it."""

    def __init__(self, rows, cols):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.text = b""

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def shows(self, what):
        until = time.monotonic() + HANG
        while what not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
            assert ready, f"{what} is not in {self.text}"
            self.text += os.read(self.master, 65536)

    def type(self, keys):
        os.write(self.master, keys)

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def test_a_terminal_with_its_size_and_keys(runs):
    screen = Screen(33, 77)
    before = termios.tcgetattr(screen.slave)
    process = subprocess.Popen([runs.client.binary, *runs.words("sh", "-c", "stty size; trap 'stty size' WINCH; trap 'echo cut' INT; "
                                                                "echo ready; while :; do read x && echo \"<$x>\"; [ \"$x\" = end ] && exit 4; done",
                                                                options=["-it"])],
                               stdin=screen.slave, stdout=screen.slave, stderr=screen.slave, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, **runs.client.env})
    screen.shows(b"33 77\r\nready\r\n")
    screen.type(b"words\r")
    screen.shows(b"<words>\r\n")
    screen.type(b"\x03")
    screen.shows(b"cut\r\n")
    screen.resize(20, 40)
    screen.type(b"\r")
    screen.shows(b"20 40\r\n")
    screen.type(b"end\r")
    assert process.wait(HANG) == 4
    assert termios.tcgetattr(screen.slave) == before, "the terminal is not as it was"
    screen.close()


@pytest.mark.parametrize("options, typed, words, status, said", [
    (["-t"], b"", ["cat"], 0, b""),
    (["-it"], b"", ["cat"], 0, b""),
    (["-it"], b"half a line", ["cat"], 0, b"half a line"),
    (["-it"], b"echo $((40+2)); exit 6\n", ["sh"], 6, b"42"),
    (["-it"], b"echo $((40+2))\n", ["sh"], 0, b"42"),
    # One that makes the terminal its own takes away what was typed before.
    (["-t"], b"", ["sh", "-c", "stty raw; stty sane; cat >/dev/null; exit 5"], 5, b""),
])
def test_the_end_of_stdin_ends_that_of_a_terminal(runs, options, typed, words, status, said):
    """Its key is typed: without that a program that reads would wait for ever, and we for it."""
    done = runs.run(*words, options=options, stdin=typed)
    assert done.returncode == status and said in done.stdout, done


def test_a_program_that_closes_its_terminal_is_not_hung_up_on(runs):
    done = runs.run("sh", "-c", "exec <&- >&- 2>&-; sleep 0.3; echo late >/dev/tty; exit 3", options=["-t"])
    assert (done.returncode, done.stdout) == (3, b"late\r\n"), done


def test_without_i_the_keys_of_our_terminal_are_our_own(runs):
    screen = Screen(24, 80)
    process = subprocess.Popen([runs.client.binary, *runs.words("sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.1; done",
                                                                options=["-t"])],
                               stdin=screen.slave, stdout=screen.slave, stderr=screen.slave, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, **runs.client.env})
    screen.shows(b"ready")
    screen.type(b"\x03")
    assert process.wait(HANG) == 9
    screen.close()


def test_a_kept_target_that_does_not_answer_any_more_is_given_up(client, workdir):
    runs = Runs(client, workdir, True)
    there = int(runs.log.read_text().split()[-1])
    os.kill(there, signal.SIGSTOP)
    try:
        done = runs.run("true", options=["--timeout", "0.1"])
    finally:
        os.kill(there, signal.SIGCONT)
    assert done.returncode == 125 and b"the target doesn't answer" in done.stderr, done
    client.cli("connect", "--stop")


def test_a_full_disk_is_not_the_programs_status(runs):
    with open("/dev/full", "wb") as full:
        done = runs.popen("echo", "x", stdout=full, stderr=subprocess.PIPE)
        assert done.communicate(timeout=HANG)[1].startswith(b"toolbox run: cannot write") and done.returncode == 125


def test_many_at_once_over_one_connection(client, workdir):
    runs = Runs(client, workdir, True)
    many = [runs.popen("sh", "-c", f"head -c 300000 /dev/zero; echo {i} >&2; exit {i}") for i in range(20)]
    for i, process in enumerate(many):
        out, err = process.communicate(timeout=HANG)
        assert (process.returncode, len(out), err) == (i, 300000, f"{i}\n".encode())
    client.cli("connect", "--stop")


def test_a_target_that_does_not_answer_is_given_up(client, workdir):
    """As long as the program may take, it may take to get there; without a word about it that is a minute or two."""
    hangs = script(workdir / "hangs", "exec sleep 1000")
    for words in (("--", "true"), ("exec:env", "--", "true")):
        done = client.cli("run", "--timeout", "1", "--dir", str(workdir / "there"), f"exec:{hangs}", *words)
        assert done.returncode not in (0, 124, 125) and b"did not end within 5 s" in done.stderr, done


@pytest.mark.parametrize("words", [[], ["local:"], ["--nothing", "local:", "true"], ["--timeout", "x", "local:", "true"],
                                   ["--env", "=x", "local:", "true"], ["-i", "local:", "exec:x", "--", "true"]])
def test_usage(client, words):
    assert client.cli("run", *words).returncode == 2


def test_several_targets_without_a_mark_are_told_of_it(client):
    done = client.cli("run", "local:", "docker:web", "true")
    assert done.returncode == 2 and b"'--' stands in front of the command" in done.stderr, done


def test_a_connection_that_is_not_to_be_had_is_not_the_programs_status(client, workdir):
    runtime = script(workdir / "runtime", 'case "$*" in *--stream*) echo nonsense;; *) exec "$@";; esac')
    done = client.cli("run", "--persist", "--dir", str(workdir / "there"), f"exec:{runtime}", "--", "true")
    assert done.returncode == 125 and done.stderr, done


@pytest.mark.parametrize("words, said, hint", [
    (["timeout=5"], "must be a number", "NAME:=VALUE"), (["timeot:=5"], "is no parameter", "'toolbox methods exec_remote_start' lists"),
    (["timeout:=-1"], "must be ", None), (["cwd:=5"], "must be a string", None)])
def test_a_parameter_is_put_right_in_the_words_of_a_command_line(client, workdir, words, said, hint):
    done = client.cli("call", "--dir", str(workdir / "there"), "local:", "exec_remote_start", "command=true", *words)
    text = done.stderr.decode()
    assert done.returncode == 1 and said in text and (hint in text if hint else ";" not in text), done


def test_long_command_lines(runs):
    assert runs.run("sh", "-c", "echo ${#1}", "x", "y" * 100000).stdout == b"100000\n"
    done = runs.run("true", *["\x01" * 100000] * 4)
    assert done.returncode == 125 and b"too long" in done.stderr


# ---- several targets ----


def _targets(workdir, names, text='exec "$@"'):
    return [f"exec:{script(workdir / name, text)}" for name in names]


def test_several_targets_each_line_with_its_own_in_front(client, workdir):
    words = _targets(workdir, ["a", "b"])
    done = client.cli("run", "--dir", str(workdir / "there"), *words, "--", "sh", "-c", "echo one; printf two; echo err >&2")
    assert done.returncode == 0, done
    assert sorted(done.stdout.decode().splitlines()) == sorted(f"{t}: {line}" for t in words for line in ("one", "two"))
    assert sorted(done.stderr.decode().splitlines()) == sorted(f"{t}: err" for t in words)


def test_the_worst_status_counts_and_each_failure_is_told(client, workdir):
    good, bad = _targets(workdir, ["good"]) + _targets(workdir, ["bad"], "exit 9")
    done = client.cli("run", "-j", "2", "--dir", str(workdir / "there"), good, bad, "--", "sh", "-c", "exit 2")
    told = done.stderr.decode()
    assert done.returncode == 3 and f"2       {good}\n" in told and f"3       {bad}\n" in told and told.endswith("2 of 2 failed\n"), told


def test_several_as_json(client, workdir):
    words = _targets(workdir, ["a", "b", "c"])
    done = client.cli("run", "--json", "--dir", str(workdir / "there"), *words, "--", "sh", "-c", "echo hi; exit 4")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 4 and {o["target"] for o in objects} == set(words)
    assert all((o["status"], o["stdout"], o["stderr"], o["omitted_bytes"]) == (4, "hi\n", "", 0) for o in objects)


def test_a_pattern(client, workdir):
    runtime = script(workdir / "engine", 'case $1 in ps) printf "agent-1\\nagent-2\\nother\\n";; exec) shift; while [ "$1" != agent-1 ] '
                     '&& [ "$1" != agent-2 ]; do shift; done; name=$1; shift; export name; exec "$@";; esac')
    words = ("run", "--runtime", str(runtime), "--dir", str(workdir / "there"), "docker:agent-*")
    done = client.cli(*words, "--", "sh", "-c", "echo $name")
    assert sorted(done.stdout.splitlines()) == [b"docker:agent-1: agent-1", b"docker:agent-2: agent-2"], done
    done = client.cli(*words[:-1], "docker:none-*", "--", "true")
    assert done.returncode == 3 and b"nothing that runs fits it" in done.stderr, done


def test_several_end_with_the_one_that_runs_them(client, workdir):
    words = _targets(workdir, ["a", "b"])
    text = f"echo $$ >>{workdir}/pids; exec sleep 1000"
    process = client.popen("run", "--dir", str(workdir / "there"), *words, "--", "sh", "-c", text)
    gone = _gone(workdir / "pids", 2)
    process.kill()
    process.communicate(timeout=HANG)
    gone()


def test_a_fleet_with_those_that_fail(client, workdir):
    """A small one of test/stress/fleet.py: each failure stands in the table, and all others have answered."""
    stand_in = script(workdir / "stand-in", 'n=$1; shift; [ $((n % 20)) != 7 ] || { echo "$n is away" >&2; exit 1; }; exec "$@"')
    names = [f"exec:{stand_in} {i}" for i in range(60)]
    done = client.cli("run", "-j", "16", "--dir", str(workdir / "there"), *names, "--", "echo", "here", timeout=10 * HANG)
    bad = [name for i, name in enumerate(names) if i % 20 == 7]
    assert sorted(done.stdout.decode().splitlines()) == sorted(f"{name}: here" for name in names if name not in bad)
    table = done.stderr.decode()[done.stderr.decode().index("status  target\n") :].splitlines()
    assert sorted(line.split("  ", 1)[1].strip() for line in table[1:-1]) == sorted(bad), done.stderr
    assert done.returncode != 0 and table[-1] == f"{len(bad)} of 60 failed"


def test_status_of_targets(client, workdir):
    one, other = _targets(workdir, ["a", "b"])
    there = ("--dir", str(workdir / "there"))
    assert client.cli("call", *there, one, "bash_session_new_session").returncode == 0
    done = client.cli("status", *there, "--json", one)
    assert done.returncode == 0 and len(json.loads(done.stdout)["sessions"]) == 1, done
    done = client.cli("status", *there, one, other)
    assert done.returncode == 0 and f"{one}: " in done.stdout.decode() and f"{other}: " in done.stdout.decode(), done
    assert client.cli("status", "--json", "--quiet", "local:").returncode == 2


def test_mcp_serve_goes_over_the_connection_that_is_kept(client, workdir):
    runs = Runs(client, workdir, True)
    calls = len(runs.log.read_text().split())
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    done = client.cli("mcp", "serve", "--in", runs.target, "--dir", str(runs.there), stdin=json.dumps(hello).encode() + b"\n")
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"], done
    assert len(runs.log.read_text().split()) == calls, "the runtime was called"
    words = ("mcp", "serve", "--in", runs.target, "--dir", str(runs.there))
    done = client.cli(*words, "--no-share", stdin=json.dumps(hello).encode() + b"\n")
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"] and len(runs.log.read_text().split()) > calls
    client.cli("connect", "--stop")
    done = client.cli(*words, "--persist=100", stdin=json.dumps(hello).encode() + b"\n")
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"], done
    kept = json.loads(client.cli("connect", "--list", "--json").stdout)
    assert [(entry["target"], entry["persist_s"]) for entry in kept] == [(runs.target, 100)]
    client.cli("connect", "--stop")


# ---- a shell ----


def _shell(client, screen, *words):
    return subprocess.Popen([client.binary, "shell", *words], stdin=screen.slave, stdout=screen.slave, stderr=screen.slave, start_new_session=True,
                            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, **client.env, "TERM": "dumb"})


def test_a_shell_is_left_and_come_back_to(runs):
    there = ("--dir", str(runs.there), runs.target)
    screen = Screen(24, 80)
    process = _shell(runs.client, screen, *there)
    screen.shows(b"[BashSession; Ctrl-] detaches]")
    screen.type(b"left=behind; echo $((6 * 7))\r")
    screen.shows(b"42\r\n")
    screen.type(b"\x1d")
    assert process.wait(HANG) == 0
    screen.shows(b"[detached]")
    process = _shell(runs.client, screen, *there, "BashSession")
    screen.type(b"echo was $left\r")
    screen.shows(b"was behind\r\n")
    screen.type(b"\x1d")
    assert process.wait(HANG) == 0
    screen.close()


def test_a_shell_wants_a_terminal(client):
    done = client.cli("shell", "local:")
    assert done.returncode == 1 and b"a terminal is wanted" in done.stderr
