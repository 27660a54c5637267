"""`toolbox confine`: what the policy forbids isn't done, what it allows is, and what can't be had is told.

The attempts themselves are harness/attacker.py's; here is the world that they are made against, and a second look at whether it
has changed."""
import functools
import json
import os
import platform
import pty
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness import attacker, hardening, needs
from harness.client import RpcError
from harness.confinement import told
from harness.jobs import Job
from harness.processes import wait_until
from harness.users import NOBODY_KNOWS, needs_root

ATTACKER = attacker.__file__
BOUND = 120  # only tells a hang
VICTIM = """
import ctypes, os, signal, sys
held = open(sys.argv[1], "r+b")
memory = ctypes.create_string_buffer(b"untaken")
print(held.fileno(), ctypes.addressof(memory), flush=True)
signal.pause()
"""


def run(toolbox, *words, **how):
    return subprocess.run([str(toolbox), "confine", *map(str, words)], capture_output=True, text=True, timeout=BOUND, **how)


def enforced(toolbox, *words, **how):
    done = run(toolbox, *words, "--explain", "--json", **how)
    if done.returncode == 125:
        raise needs.Unavailable(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["enforced"]


class World:
    """A workspace, and what is outside: files, a process of the same user, sockets."""

    def __init__(self, toolbox, base):
        self.toolbox, self.base = toolbox, base
        self.path, self.private = base / "outside", base / "private"
        for made in (base, self.path, self.private, self.path / "empty"):
            made.mkdir()
        (self.path / "file").write_text("kept")
        (self.private / "secret").write_text("secret")
        self.victim = subprocess.Popen([sys.executable, "-c", VICTIM, self.path / "file"], stdout=subprocess.PIPE, text=True,
                                       cwd=self.path, start_new_session=True)
        fd, address = map(int, self.victim.stdout.readline().split())
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagrams.bind(str(base / "datagrams"))
        self.unix, self.abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.unix.bind(str(base / "socket"))
        self.abstract.bind(f"\0toolbox-{os.getpid()}-{id(self)}")
        self.unix.listen()
        self.abstract.listen()
        self.out = {"path": str(self.path), "file": str(self.path / "file"), "empty": str(self.path / "empty"), "fd": fd,
                    "secret": str(self.private / "secret"), "pid": self.victim.pid, "address": address, "port": self.port,
                    "socket": str(base / "socket"), "datagrams": str(base / "datagrams"), "abstract": self.abstract.getsockname()[1:].decode(), "toolbox": str(toolbox),
                    "program": shutil.which("true")}

    def end(self):
        self.victim.kill()
        self.victim.wait()
        self.victim.stdout.close()
        for s in (self.tcp, self.unix, self.abstract, self.datagrams):
            s.close()

    def workspace(self):
        self.n = getattr(self, "n", 0) + 1
        made = self.base / f"ws{self.n}"
        made.mkdir()
        return made

    def state(self):
        """All that an attempt may have changed."""
        found = {}
        for at in sorted(self.path.rglob("*")) + [self.path]:
            st = at.lstat()
            found[str(at)] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink, st.st_ino,
                              at.read_bytes() if at.is_file() else None)
        return found, self.victim.poll(), (self.private / "secret").read_text()

    def attempt(self, group, name, *policy, **how):
        ws = self.workspace()
        before = self.state()
        done = run(self.toolbox, *policy, "--", sys.executable, ATTACKER, group, name, json.dumps(self.out), cwd=ws, **how)
        assert self.state() == before, done.stdout
        assert "ESCAPED" not in done.stdout, done.stdout
        # refused, or ended by the filter
        assert done.returncode in (0, 128 + signal.SIGSYS, -signal.SIGSYS), (done.returncode, done.stderr)
        return done.stdout

    def free(self, group, name):
        """The same without walls."""
        return subprocess.run([sys.executable, ATTACKER, group, name, json.dumps(self.out)], capture_output=True, text=True,
                              cwd=self.workspace(), timeout=BOUND).stdout


@pytest.fixture(scope="module")
def world(toolbox, tmp_path_factory):
    made = World(toolbox, tmp_path_factory.mktemp("confine") / "world")
    yield made
    made.end()


WRITE = ["--write", ".", "--network", "none"]


@pytest.fixture(scope="module")
def walls(world):
    """What holds the policy of most attempts here."""
    return enforced(world.toolbox, *WRITE, cwd=world.workspace())


# ---- attempts ----

def test_the_attempts_are_real(world):
    """Without walls they go through: the ones of which that can be seen without harm."""
    assert all("ESCAPED" in world.free("read", name) for name in ("open", "symlink", "proc_self_root", "dots", "by_program"))
    assert all("ESCAPED" in world.free("network", name) for name in ("tcp", "udp", "unix", "unix_abstract", "pair_of_datagrams"))
    assert all("ESCAPED" in world.free("execute", name) for name in ("there", "copy", "from_memory", "from_memory_by_descriptor", "unnamed"))
    assert all("ESCAPED" in world.free("kernel", name) for name in ("proc_environ", "proc_maps", "prlimit_of_another"))


@pytest.mark.parametrize("name", attacker.WRITES)
def test_nothing_is_written_outside(world, walls, name):
    world.attempt("write", name, *WRITE)


@pytest.mark.parametrize("name", attacker.METADATA)
def test_nothing_is_changed_outside(world, walls, name):
    if walls["metadata"] == "none":
        raise needs.Unavailable("no mounts can be made here, and Landlock doesn't know of modes and times")
    world.attempt("metadata", name, *WRITE)


@pytest.mark.parametrize("name", attacker.KERNEL)
def test_no_way_around_the_kernel(world, walls, name):
    world.attempt("kernel", name, *WRITE)


@pytest.mark.parametrize("name", attacker.REFUSED_BY_ERRNO)
def test_the_filter_is_in_front_of_the_kernel(world, walls, name):
    assert world.attempt("errno", name, *WRITE).startswith("1:"), "EPERM"


@pytest.mark.parametrize("name", attacker.SIGNALS)
def test_no_signal_reaches_others(world, walls, name):
    if walls["signals"] == "none":
        raise needs.Unavailable("this kernel's Landlock has no scope for signals (Linux 6.12)")
    world.attempt("signal", name, *WRITE)


@pytest.mark.parametrize("name", attacker.NETWORK)
def test_no_network(world, walls, name):
    world.attempt("network", name, "--network", "none")


@pytest.mark.parametrize("name", [n for n in attacker.NETWORK if n not in ("pair_of_datagrams", "pair_of_datagrams_connected", "pair_of_raw", "unix", "unix_by_link", "descriptor_passed", "high_bits_of_the_family_unix")])
def test_nothing_but_sockets_with_a_path(world, name):
    enforced(world.toolbox, "--network", "unix")
    world.attempt("network", name, "--network", "unix")


@pytest.mark.parametrize("name", [n for n in attacker.NETWORK if n not in ("high_bits_of_the_family",)])
def test_nothing_but_one_port(world, name):
    rule = f"connect:{1 if world.port != 1 else 2}"
    enforced(world.toolbox, "--network", rule)
    world.attempt("network", name, "--network", rule)


@pytest.mark.parametrize("name", ["tcp", "tcp6", "tcp_mapped", "mptcp", "udp", "udp6", "fast_open_sendto", "unix", "unix_abstract", "raw"])
def test_a_loopback_of_its_own(world, name):
    enforced(world.toolbox, "--network", "loopback")
    said = world.attempt("network", name, "--network", "loopback") if not name.startswith("udp") else ""
    assert "ESCAPED" not in said


@pytest.mark.parametrize("name", attacker.READS)
def test_nothing_else_is_read(world, name):
    policy = ["--read", "/usr", "--read", "/lib", "--read", "/etc", "--read", "/proc", "--read", Path(ATTACKER).parent, "--read", ".", "--network", "none"]
    policy += [word for there in ("/lib64", "/bin") if os.path.exists(there) for word in ("--read", there)]
    policy += ["--read", world.toolbox, "--write", "."]
    enforced(world.toolbox, *policy, cwd=world.workspace())
    world.attempt("read", name, *policy)


@pytest.mark.parametrize("name", [n for n in attacker.READS if n not in ("moved",)])
@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_is_hidden_is_not_read(world, what, name):
    hidden = world.private / "secret" if what == "file" else world.private
    policy = ["--hide", hidden, "--network", "none"]
    enforced(world.toolbox, *policy)
    world.attempt("read", name, *policy)


@pytest.mark.parametrize("name", attacker.EXECUTES)
def test_nothing_else_is_run(world, name):
    enforced(world.toolbox, "--execute", "/usr")
    libraries = [there for there in ("/lib", "/lib64") if os.path.exists(there)]
    interpreter = os.path.realpath(sys.executable)
    policy = [w for there in (interpreter, *libraries) for w in ("--execute", there)]
    assert not any(world.out["program"].startswith(there + "/") for there in libraries)
    world.attempt("execute", name, *policy)


@pytest.mark.parametrize("name", attacker.LIMITS)
def test_limits_stay(world, name):
    limits = ["--file-size", "1M", "--open-files", 64, "--cpu-seconds", 50]
    if name == "leave_the_group":
        if enforced(world.toolbox, "--memory", "300M").get("memory") != "cgroup":
            raise needs.Unavailable("no control group can be made here")
        limits = ["--memory", "300M", "--preset", "workspace"]
    world.attempt("limit", name, *limits)


@pytest.mark.parametrize("name", attacker.TERMINAL)
def test_nothing_is_typed_into_the_terminal(world, walls, name):
    """Slow kernels have TIOCSTI; newer ones only with a setting: in both it is the filter that says no."""
    ws = world.workspace()
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(ws)
        words = [str(world.toolbox), "confine", *WRITE, "--", sys.executable, ATTACKER, "terminal", name, json.dumps(world.out)]
        os.execv(words[0], words)
    said = b""
    try:
        while more := os.read(fd, 65536):
            said += more
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(fd)
    assert b"ESCAPED" not in said and said.strip().startswith(b"1:"), said


# ---- what is allowed ----

def test_what_is_allowed_works(world, walls):
    ws = world.workspace()
    done = run(world.toolbox, *WRITE, "--", "sh", "-c",
               "mkdir a b && echo x >a/f && mv a/f b/f && ln b/f b/g && ln -s g b/h && cat b/h && rm -r a b && echo y >/dev/null && "
               "cat /etc/passwd >/dev/null && echo done; exit 7", cwd=ws)
    assert (done.returncode, done.stdout, done.stderr) == (7, "x\ndone\n", "")


@pytest.mark.parametrize("preset, fails", [("readonly", "echo x >f"), ("workspace", f"echo x >{Path.home()}/.toolbox-confine"),
                                           ("offline", "exec 3<>/dev/tcp/127.0.0.1/$PORT")])
def test_presets(world, walls, preset, fails):
    bash = needs.program("bash")
    done = run(world.toolbox, "--preset", preset, "--", bash, "-c", f"({fails}) && echo ESCAPED; echo on", cwd=world.workspace(),
               env={**os.environ, "PORT": str(world.port)})
    assert (done.returncode, done.stdout) == (0, "on\n"), done.stderr


def test_a_port_that_is_named(world):
    rule = f"connect:{world.port}"
    enforced(world.toolbox, "--network", rule)
    done = run(world.toolbox, "--network", rule, "--", sys.executable, ATTACKER, "network", "tcp", json.dumps(world.out), cwd=world.workspace())
    assert "ESCAPED" in done.stdout, "what is allowed"


def test_its_own_loopback_is_up(toolbox):
    enforced(toolbox, "--network", "loopback")
    script = "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print('met')"
    assert run(toolbox, "--network", "loopback", "--", sys.executable, "-c", script).stdout == "met\n"


def test_a_private_tmp(toolbox, tmp_path):
    enforced(toolbox, "--private-tmp")
    name = f"/tmp/toolbox-{os.getpid()}-private"
    done = run(toolbox, "--private-tmp", "--", "sh", "-c", f"ls -A /tmp; echo x >{name} && cat {name}", cwd="/")
    assert (done.stdout, os.path.exists(name)) == ("x\n", False)


# ---- limits ----

def test_memory(toolbox):
    done = run(toolbox, "--memory", "60M", "--", sys.executable, "-c", "x = bytearray(400 << 20)")
    assert done.returncode in (137, 1), done
    if done.returncode == 137:
        assert "ended by its limit: memory" in done.stderr
    else:
        assert "MemoryError" in done.stderr


def test_processes(toolbox):
    if enforced(toolbox, "--processes", "5").get("processes") != "cgroup":
        raise needs.Unavailable("no control group can be made here")
    done = run(toolbox, "--processes", "5", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait")
    assert done.returncode != 0 and "fork" in done.stderr


def test_wall_seconds(toolbox):
    done = run(toolbox, "--wall-seconds", "1", "--", "sh", "-c", "setsid sleep 600 & sleep 600")
    assert (done.returncode, done.stderr) == (124, "toolbox confine: ended by its limit: wall_seconds\n")


def test_what_is_left_ends_with_the_command(toolbox):
    done = run(toolbox, "--wall-seconds", "600", "--", "sh", "-c", "(setsid sleep 600 >/dev/null 2>&1 &) ; exit 3")
    assert done.returncode == 3  # and the suite finds no process


def test_cpu_seconds(toolbox):
    done = run(toolbox, "--cpu-seconds", "1", "--", sys.executable, "-c", "while True: pass")
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


def test_file_size_and_open_files(toolbox, tmp_path):
    done = run(toolbox, "--file-size", "1K", "--open-files", "60", "--", "sh", "-c", "ulimit -n; head -c 5000 /dev/zero >f; stat -c %s f", cwd=tmp_path)
    assert done.stdout.split() == ["60", "1024"]


def test_signals_reach_the_command(toolbox, tmp_path):
    with subprocess.Popen([toolbox, "confine", "--wall-seconds", "600", "--", "sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"],
                          stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "up\n"
        p.terminate()
        assert p.wait(BOUND) == 9


# ---- what can't be had ----

def without_landlock():
    hardening.without(444)()


def test_without_landlock_it_is_right_or_refused(world):
    run_there = functools.partial(run, world.toolbox, preexec_fn=without_landlock)
    done = run_there("--read", "/usr", "--", "true")
    assert done.returncode == 125 and "cannot confine read here" in done.stderr and "Landlock" in done.stderr
    ws = world.workspace()
    done = run_there("--write", ".", "--explain", "--json", cwd=ws)
    assert done.returncode in (0, 125)
    if done.returncode == 0:
        assert json.loads(done.stdout)["enforced"]["write"] == "mounts"


@pytest.mark.parametrize("name", [*attacker.WRITES])
def test_without_landlock_nothing_is_written_outside(world, name):
    done = run(world.toolbox, *WRITE, "--explain", cwd=world.workspace(), preexec_fn=without_landlock)
    if done.returncode == 125:
        raise needs.Unavailable(done.stderr.strip())
    world.attempt("write", name, *WRITE, preexec_fn=without_landlock)


def test_best_effort_goes_on_and_says_so(toolbox):
    done = run(toolbox, "--read", "/usr", "--best-effort", "--", "echo", "on", preexec_fn=without_landlock)
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert done.stderr == "toolbox confine: goes on without what confines read: it can't be had here\n"
    told = json.loads(run(toolbox, "--read", "/usr", "--best-effort", "--explain", "--json", preexec_fn=without_landlock).stdout)
    assert told["enforced"]["read"] == "none" and told["landlock_abi"] == 0


UNSHARE = {"x86_64": 272, "aarch64": 97}


def without_namespaces():
    hardening.without(UNSHARE[platform.machine()])()


@pytest.fixture(scope="module")
def landlock_alone(world):
    told = enforced(world.toolbox, *WRITE, cwd=world.workspace(), preexec_fn=without_namespaces)
    assert (told["write"], told["metadata"]) == ("landlock", "none")


@pytest.mark.parametrize("name", attacker.WRITES)
def test_without_namespaces_nothing_is_written_outside(world, landlock_alone, name):
    world.attempt("write", name, *WRITE, preexec_fn=without_namespaces)


@pytest.mark.parametrize("name", ["open", "proc_self_root", "symlink", "hard_link", "dots", "path_descriptor", "by_program", "by_a_wider_policy"])
@pytest.mark.parametrize("what", ["file", "directory"])
def test_without_namespaces_what_is_hidden_is_not_read(world, landlock_alone, what, name):
    hidden = world.private / "secret" if what == "file" else world.private
    assert enforced(world.toolbox, "--hide", hidden, preexec_fn=without_namespaces)["hide"] == "landlock"
    world.attempt("read", name, "--hide", hidden, preexec_fn=without_namespaces)


def confine_with_abi(toolbox, abi, *words, **how):
    """As if the kernel were older: the first question is answered with that number."""
    strace = needs.program("strace")
    return subprocess.run([strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset", "-e",
                           f"inject=landlock_create_ruleset:retval={abi}:when=1", str(toolbox), "confine", *map(str, words)],
                          capture_output=True, text=True, timeout=BOUND, preexec_fn=without_namespaces, **how)


@pytest.mark.parametrize("name", ["open", "truncate_while_reading", "truncate_by_name", "openat2_truncate", "truncate_when_opened", "move_here",
                                  "hard_link_here", "move_there", "make_fifo", "descriptor_opened_again"])
@pytest.mark.parametrize("abi", [1, 2, 3, 4, 6])
def test_older_landlock(world, landlock_alone, abi, name):
    before, ws = world.state(), world.workspace()
    done = confine_with_abi(world.toolbox, abi, *WRITE, "--", sys.executable, ATTACKER, "write", name, json.dumps(world.out), cwd=ws)
    assert world.state() == before and done.returncode == 0 and done.stdout and "ESCAPED" not in done.stdout, done


@pytest.mark.parametrize("abi, words, code", [(1, ["--network", "connect:1"], 125), (3, ["--network", "bind:1"], 125), (4, ["--network", "connect:1"], 0),
                                              (3, ["--network", "unix"], 125), (6, ["--network", "unix"], 0), (1, ["--network", "none"], 0),
                                              (1, ["--write", "."], 0), (1, ["--execute", "/usr"], 0)])
def test_older_landlock_is_right_or_refused(world, landlock_alone, abi, words, code):
    if code == 0 and run(world.toolbox, *words, "--explain").returncode:
        raise needs.Unavailable("this kernel is older itself")
    done = confine_with_abi(world.toolbox, abi, *words, "--", "true", cwd=world.workspace())
    assert done.returncode == code, done


# ---- as somebody else ----

@needs_root
def test_as_a_user_without_rights(world):
    ws = world.workspace()
    os.chown(ws, NOBODY_KNOWS, NOBODY_KNOWS)
    (world.path / "file").chmod(0o666)
    world.path.chmod(0o777)
    for at in [world.base, *world.base.parents]:
        if at.stat().st_uid == 0 and not at.stat().st_mode & 1:
            at.chmod(at.stat().st_mode | 0o011)
    how = dict(cwd=ws, user=NOBODY_KNOWS, group=NOBODY_KNOWS, extra_groups=[])
    if run(world.toolbox, *WRITE, "--explain", **how).returncode == 125:
        raise needs.Unavailable("a user can't confine anything here")
    before = world.state()
    words = f"echo own >f && cat f; echo taken >>{world.out['file']}; echo made >{world.path}/made; echo x >/proc/self/root{world.out['file']}"
    done = run(world.toolbox, *WRITE, "--", "sh", "-c", words, **how)
    assert done.stdout == "own\n" and world.state() == before, done.stderr


# ---- the command line ----

def test_exit_status(toolbox, tmp_path):
    assert run(toolbox, "--network", "none", "--", "sh", "-c", "exit 5").returncode == 5
    assert run(toolbox, "--network", "none", "--", tmp_path / "none").returncode == 127
    assert run(toolbox, "--network", "none", "--", "/etc/passwd").returncode == 126
    assert run(toolbox, "--wall-seconds", "60", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert run(toolbox, "--read", tmp_path / "none", "--", "true").returncode == 125
    for words in (["--preset", "none", "--", "true"], ["--network", "example.com:80", "--", "true"], ["--memory", "much", "--", "true"],
                  ["--cpus", "0", "--", "true"], ["--presett", "x"], [], ["--json", "--", "true"], ["--memory", "0", "--", "true"]):
        done = run(toolbox, *words)
        assert done.returncode == 2 and done.stderr.startswith("toolbox confine: "), words
        assert "Invalid parameters" not in done.stderr and "toolbox confine --help" in done.stderr, (words, done.stderr)


def test_explain(toolbox, tmp_path):
    done = run(toolbox, "--explain")
    assert (done.returncode, done.stdout) == (0, "nothing is confined\n")
    told = run(toolbox, "--write", ".", "--best-effort", "--explain", cwd=tmp_path).stdout
    assert told.startswith("write ") and f"\n              {tmp_path}\n" in told


def test_a_workspace_is_no_root(toolbox):
    done = run(toolbox, "--preset", "workspace", "--", "true", cwd="/")
    assert done.returncode == 125 and "'/' is none" in done.stderr


# ---- real programs ----

TOOLS = {
    "git": ("git", "git init -q r && cd r && echo x >f && git add f && git -c user.name=a -c user.email=a@b commit -qm x && git clone -q . ../c && "
            "git gc -q && git checkout -q -b y && git log --oneline | wc -l"),
    "gcc": ("gcc", "echo 'int main(void){return 0;}' >a.c && gcc -O1 a.c -o a && ./a && echo 1"),
    "make": ("make", "printf 'all: a b c\\na b c:\\n\\t@sleep 0.01; touch $@\\n' >Makefile && make -s -j3 && ls -d a b c | grep -c a"),
    "pytest": ("python3", "printf 'def test(tmp_path):\\n    (tmp_path / \"x\").write_text(\"y\")\\n' >test_x.py && "
               "python3 -m pytest -q test_x.py | grep -c '1 passed'"),
    "pip": ("python3", "mkdir p && cd p && printf '[build-system]\\nrequires = []\\nbuild-backend = \"b\"\\nbackend-path = [\".\"]\\n' >pyproject.toml && "
            "cat >b.py && cd .. && HOME=$PWD python3 -m pip install -q --disable-pip-version-check --no-index --root-user-action ignore --target t ./p >log 2>&1 "
            "|| cat log; python3 -c 'import sys; sys.path.insert(0, \"t\"); import p; print(p.x)'"),
    "multiprocessing": ("python3", "python3 -c 'import multiprocessing as m; p = m.Pool(2); print(sum(p.map(abs, [1, -1])) - 1)'"),
    "node": ("node", "echo 'require(\"fs\").writeFileSync(\"x\", \"1\"); console.log(require(\"fs\").readFileSync(\"x\", \"utf8\"))' >a.js && node a.js"),
    "npm": ("npm", "mkdir d && echo '{\"name\":\"d\",\"version\":\"1.0.0\"}' >d/package.json && echo '{\"name\":\"e\",\"version\":\"1.0.0\"}' >package.json && "
            "HOME=$PWD npm install --offline --no-audit --no-fund ./d >log 2>&1 || cat log; ls node_modules | grep -c d"),
    "cargo": ("cargo", "cargo init -q --vcs none --name x . && CARGO_HOME=$PWD/.c cargo run -q --offline | wc -l"),
    "go": ("go", "printf 'package main\\nfunc main(){println(1)}\\n' >a.go && GOCACHE=$PWD/.g HOME=$PWD GO111MODULE=off go build -o a a.go && ./a 2>&1"),
    "perl": ("perl", "perl -e 'open F, \">x\"; print F 1; close F; print -s \"x\"'"),
    "tar": ("tar", "mkdir a && touch a/b && tar cf a.tar a && tar xf a.tar -C /tmp --one-top-level=$PWD/o && ls o | wc -l"),
    "sqlite": ("python3", "python3 -c 'import sqlite3; c = sqlite3.connect(\"x\"); c.execute(\"create table t(a)\"); c.commit(); print(1)'"),
}


# What builds the package that pip installs: nothing but Python.
BACKEND = """
import os, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "p-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
        z.writestr("p.py", "x = 1")
        z.writestr("p-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: p\\nVersion: 1\\n")
        z.writestr("p-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: b\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr("p-1.dist-info/RECORD", "")
    return name
"""


@pytest.mark.parametrize("tool", TOOLS)
def test_real_tools_in_a_workspace(world, walls, tool):
    program, script = TOOLS[tool]
    needs.program(program)
    ws = world.workspace()
    free = subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=world.workspace(), timeout=BOUND * 4,
                          input=BACKEND)
    if free.stdout.strip() != "1":
        raise needs.Unavailable(f"{tool} doesn't do it without walls either: {(free.stdout + free.stderr)[-300:]}")
    done = subprocess.run([world.toolbox, "confine", "--preset", "workspace", "--", "sh", "-c", script], capture_output=True, text=True, cwd=ws,
                          timeout=BOUND * 4, input=BACKEND)
    assert done.stdout.split()[-1:] == ["1"], done.stdout + done.stderr  # pyenv has a word to say before


# ---- jobs and sessions ----

def test_a_job_behind_walls(client, workdir):
    params = {"command": "echo x >f && cat f; echo y >/etc/toolbox-confine; echo on", "cwd": str(workdir), "confine": {"preset": "workspace"}}
    answer = told(client, "exec_remote_start", params)
    assert answer["enforced"]["network"] == "seccomp" and answer["enforced"]["write"] != "none"
    job = Job(client, **params)
    code, out, err = job.finish()
    assert (code, out) == (0, "x\non\n") and "/etc/toolbox-confine" in err and not os.path.exists("/etc/toolbox-confine")


def test_limits_of_jobs(client):
    started = told(client, "exec_remote_start", {"argv": ["true"], "limits": {"memory": 1 << 26}})
    job = Job(client, argv=[sys.executable, "-c", "x = bytearray(400 << 20)"], limits={"memory": 1 << 26})
    job.finish()
    assert started["enforced"] == {"memory": "cgroup" if job.end.get("limit") else "rlimit"}
    assert job.end.get("limit") == "memory" or "MemoryError" in job.err
    slow = Job(client, argv=["sleep", "600"], limits={"wall_seconds": 1})
    slow.finish()
    assert (slow.end["limit"], slow.end["timed_out"], slow.end["state"]) == ("wall_seconds", True, "killed")
    busy = Job(client, argv=[sys.executable, "-c", "while True: pass"], limits={"cpu_seconds": 1})
    busy.finish()
    assert busy.end["limit"] == "cpu_seconds"
    big = Job(client, command="head -c 5000 /dev/zero >f", limits={"file_size": 1000}, cwd=str(client.dir.parent))
    big.finish()
    assert big.end["limit"] == "file_size"
    ended = {j["pid"]: j.get("limit") for j in client.rpc("exec_remote_list")}
    assert (ended[slow.pid], ended[busy.pid], ended[big.pid]) == ("wall_seconds", "cpu_seconds", "file_size")


def test_control_groups_go_with_the_job(client):
    if told(client, "exec_remote_start", {"argv": ["true"], "limits": {"processes": 40}})["enforced"]["processes"] != "cgroup":
        raise needs.Unavailable("no control group can be made here")
    job = Job(client, argv=["cat", "/proc/self/cgroup"], limits={"processes": 40})
    names = [line.split(":", 2) for line in job.finish()[1].splitlines() if "/toolbox-" in line]
    session = client.rpc("bash_session_new_session", {"limits": {"processes": 40}})["session_name"]
    said = client.rpc("bash_session_run", {"session_name": session, "command": "cat /proc/self/cgroup"})["output"]
    names += [line.split(":", 2) for line in said.splitlines() if "/toolbox-" in line]
    client.stop()
    left = [Path(f"/sys/fs/cgroup/{controllers}{path}") for _, controllers, path in names]
    assert len(left) >= 2
    wait_until(lambda: not any(there.exists() for there in left), "the groups are removed")


def test_a_session_behind_walls(client, workdir):
    new = told(client, "bash_session_new_session", {"cwd": str(workdir), "confine": {"preset": "workspace"}})
    assert new["enforced"]["write"] != "none" and new["shell"].startswith("/")

    def run_there(command):
        return client.rpc("bash_session_run", {"session_name": new["session_name"], "command": command})

    assert run_there("echo x >f && cat f")["output"] == "x\n"
    refused = run_there("echo y >/etc/toolbox-confine")
    assert refused["exit_code"] != 0 and not os.path.exists("/etc/toolbox-confine")
    client.rpc("bash_session", {"session_name": new["session_name"], "restart": True})
    assert run_there("echo y >/etc/toolbox-confine")["exit_code"] != 0, "also behind a restart"
    assert run_there("cat f; (exit 3)")["exit_code"] == 3


@pytest.mark.parametrize("params, said", [
    ({"confine": {"preset": "none"}}, "confine.preset: must be readonly"),
    ({"confine": {"network": ["example.com:443"]}}, "confine.network: must be none"),
    ({"confine": {"network": ["loopback", "connect:1"]}}, "confine.network: loopback"),
    ({"confine": {"reed": []}}, "confine.reed"),
    ({"confine": {"read": ["/nowhere/at/all"]}}, "read '/nowhere/at/all'"),
    ({"limits": {"memory": 0}}, "limits.memory"),
    ({"limits": {"memory": "1G"}}, "limits.memory: must be an integer"),
])
def test_what_is_wrong_is_said(client, params, said):
    for method, more in (("exec_remote_start", {"argv": ["true"]}), ("bash_session_new_session", {})):
        with pytest.raises(RpcError) as e:
            client.rpc(method, {**params, **more})
        assert said in e.value.message
