"""`doctor`: whatever is taken away from the tools is named, with what to do about it."""
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import time

import pytest

from harness import hardening, needs

NAMES = {"processes", "programs", "sockets", "terminal", "/proc", "private directory", "/dev/null", "a shell"}


def doctor(binary, before=(), json_too=True, **how):
    env = {**os.environ, **how.pop("env", {})}
    done = subprocess.run([*before, binary, "doctor", *["--json"] * json_too], capture_output=True, text=True, timeout=120, env=env, **how)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout) if json_too else done.stdout


def found(report, state):
    return {check["name"] for check in report["checks"] if check["state"] == state}


def test_all_works_and_nothing_is_left(toolbox, workdir):
    code, report = doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")})
    assert (code, report["ok"]) == (0, True), found(report, "fails")
    assert list((workdir / "place").iterdir()) == []
    assert not [name for name in os.listdir("/tmp") if name.startswith(".toolbox-doctor")]


def test_what_the_starter_ignores_is_no_defect(toolbox, workdir):
    """Servers and keepers don't ignore it either."""
    code, report = doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")}, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert (code, found(report, "fails"), found(report, "falls_back") & {"/bin/sh"}) == (0, set(), set())


def test_is_a_method_too(client):
    report = client.rpc("doctor")
    assert report["ok"] is True and NAMES - {"a shell"} <= {check["name"] for check in report["checks"]}


def test_the_table_says_what_to_do(toolbox, workdir):
    code, text = doctor(toolbox, json_too=False, env={"TOOLBOX_DIR": "/proc/self/nowhere"})
    assert code == 1
    assert "FAILS       private directory\n" in text and "TOOLBOX_DIR" in text and "what to do: " in text


def limit(name, value):
    return lambda: resource.setrlimit(getattr(resource, name), (value, value))


@pytest.mark.parametrize("name, value, expected", [
    ("RLIMIT_NOFILE", 24, "descriptors"),
    ("RLIMIT_FSIZE", 1024, "disk space"),
    ("RLIMIT_AS", 12 << 20, "memory"),
])
def test_limits(toolbox, workdir, name, value, expected):
    _, report = doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")}, preexec_fn=limit(name, value))
    assert expected in found(report, "fails") | found(report, "falls_back")


def test_a_limit_on_processes(toolbox, workdir, user):
    """Root isn't held to it."""
    words = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "prlimit", "--nproc=4"]
    code, report = doctor(needs.program("setpriv") and toolbox, words, env={"TOOLBOX_DIR": str(workdir / "place")})
    assert code == 1 and "processes" in found(report, "fails")


# What is done in a mount namespace of its own, and what is then named. "$D" is the private directory.
PLANTED = {
    "no devpts": ("mount -t tmpfs none /dev/pts; [ -L /dev/ptmx ] || mount --bind /dev/null /dev/ptmx", "terminal"),
    "an empty /dev": ("mount -t tmpfs none /dev", "/dev/null"),
    "no /dev/null": ("mount -t tmpfs none /dev", "terminal"),
    "another /dev/null": ("touch $D.null; mount --bind $D.null /dev/null", "/dev/null"),
    "no /dev/tty": ("mount --bind $D.empty /dev/tty", "/dev/tty"),
    "no /proc": ("mount -t tmpfs none /proc", "/proc"),
    "no /proc: no view of waits": ("mount -t tmpfs none /proc", "what a program waits for"),
    "a full disk": ("mount -t tmpfs -o size=16k,mode=700 none $D; head -c 16384 /dev/zero >$D/full || :", "disk space"),
    "no inode left": ("mount -t tmpfs -o nr_inodes=1 none $D", "private directory"),
    "read-only": ("mount -t tmpfs -o ro none $D", "private directory"),
    "a directory for all": ("chmod 777 $D", "private directory"),
    "a full /tmp": ("mount -t tmpfs -o size=4k none $T; head -c 8192 /dev/zero >$T/full || :", "temporary files"),
    "no /tmp": ("mount -t tmpfs -o ro none $T", "temporary files"),
    "no shell": ("mount -t tmpfs none /usr/local/bin; for f in $(cat /etc/shells) /bin/sh /bin/bash /bin/dash; do [ ! -f $f ] || mount --bind $D.empty $f; done", "a shell"),
    "a shell that is broken": ("mount --bind $D.empty /bin/dash", "/bin/dash"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_mounted(toolbox, workdir, apart, planted):
    script, name = PLANTED[planted]
    place, tmp = workdir / "place", workdir / "tmp"
    place.mkdir(mode=0o700)
    tmp.mkdir()
    (workdir / "place.empty").touch()
    (workdir / "place.empty").chmod(0o755)
    if planted == "a shell that is broken":
        needs.program("dash")
    env = {"TOOLBOX_DIR": str(place), "TMPDIR": str(tmp)}
    words = [*apart, "sh", "-euc", f'D={place} T={tmp}; {script}; exec "$@"', "planted"]
    code, report = doctor(toolbox, words, env=env)
    seen = {check["name"]: check for check in report["checks"]}
    assert seen[name]["state"] != "works" and seen[name]["seen"], seen.get(name)
    assert code == (0 if report["ok"] else 1) and report["ok"] == (not found(report, "fails"))


def test_loopback_that_is_down(toolbox, workdir):
    needs.root("make a network namespace")
    code, report = doctor(toolbox, ["unshare", "--net"], env={"TOOLBOX_DIR": str(workdir / "place")})
    assert code == 1 and found(report, "fails") == {"loopback"}


def test_no_way_to_other_users(toolbox, workdir):
    needs.root("drop a capability")
    words = ["setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid"]
    code, report = doctor(needs.program("setpriv") and toolbox, words, env={"TOOLBOX_DIR": str(workdir / "place")})
    assert code == 0 and "other users" in found(report, "falls_back")


def test_what_rests_on_it_is_not_told_again(toolbox, workdir):
    code, text = doctor(toolbox, json_too=False, env={"TOOLBOX_DIR": "/proc/self/nowhere"})
    assert code == 1 and text.splitlines()[-1].startswith("1 of ") and "sockets" not in text


def test_processes_of_others_that_are_hidden(toolbox, workdir, apart, user):
    words = [*apart, "sh", "-euc", 'mount -t proc -o hidepid=2 proc /proc; exec "$@"', "planted", needs.program("setpriv"),
             f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups"]
    _, report = doctor(toolbox, words, env={"TOOLBOX_DIR": str(workdir / "place")})
    assert "processes of others" in found(report, "falls_back")


def test_nothing_but_the_program(toolbox, workdir):
    needs.root("change the root directory")
    (workdir / "root").mkdir()
    shutil.copy(toolbox, workdir / "root/toolbox")
    code, report = doctor("/toolbox", preexec_fn=lambda: (os.chroot(workdir / "root"), os.chdir("/")))
    assert code == 1
    assert {"a shell", "terminal"} <= found(report, "fails") and {"/proc", "/dev/null"} <= found(report, "falls_back")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls here are those of x86-64")
@pytest.mark.parametrize("call, number, name, state", [
    ("pidfd_open", 434, "pidfd", "falls_back"), ("renameat2", 316, "rename exchange", "falls_back"),
    ("inotify_init1", 294, "inotify", "falls_back"), ("linkat", 265, "hard links", "falls_back"),
    ("prctl", 157, "subreaper", "falls_back"), ("epoll_create1", 291, "event loop", "fails"),
    ("flock", 73, "locks", "fails"), ("socket", 41, "sockets", "fails"), ("setsid", 112, "job control", "fails"),
    ("kill", 62, "end of processes", "fails"), ("sendmsg", 46, "sockets", "fails"), ("lseek", 8, "editing", "fails"),
    ("getdents64", 217, "editing", "fails"), ("fchmod", 91, "editing", "fails"),
])
def test_system_calls_that_are_not_there(toolbox, workdir, call, number, name, state):
    _, report = doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")}, preexec_fn=hardening.without(number))
    check = next(check for check in report["checks"] if check["name"] == name)
    assert check["state"] == state and check["seen"] and check["change"], check


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls here are those of x86-64")
@pytest.mark.parametrize("number, name, state", [(437, "editing", "fails"), (439, "editing", "fails"), (434, "pidfd", "falls_back")])
def test_system_calls_that_are_deadly(toolbox, workdir, number, name, state):
    """As services have it whose list of allowed ones is older than the kernel: openat2, faccessat2, pidfd_open."""
    _, report = doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")}, preexec_fn=hardening.without(number, hardening.KILL))
    check = next(check for check in report["checks"] if check["name"] == name)
    assert check["state"] == state and "signal 31" in check["seen"], check


@pytest.mark.skipif(platform.machine() != "x86_64" or not hardening.is_here(), reason="needs x86-64's packed code, and PR_SET_MDWE (Linux 6.3)")
@pytest.mark.parametrize("how, state", [(hardening.no_code_from_memory, "works"), (hardening.no_code_at_all, "fails")])
def test_memory_that_never_becomes_code(toolbox, workdir, how, state):
    _, report = doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")}, preexec_fn=how)
    assert next(check for check in report["checks"] if check["name"] == "code in memory")["state"] == state


def test_takes_less_than_a_few_seconds(toolbox, workdir):
    began = time.monotonic()
    doctor(toolbox, env={"TOOLBOX_DIR": str(workdir / "place")})
    assert time.monotonic() - began < 60  # a fifth of a second; only a hang counts
