"""What the tests themselves stand on: a start that is the same whoever starts it, things that are really absent, sums that add up."""
import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from harness import needs
from harness.containers import REPO
from harness.machine import HANG

REPORT = """
import json, os, resource, subprocess, sys
sys.path.insert(0, sys.argv[1])
from harness import inherited
inherited.reset()
state = "import json, os; print(json.dumps([open('/proc/self/status').read(), os.umask(0), dict(os.environ)]))"
status, umask, environment = json.loads(subprocess.run([sys.executable, "-c", state], capture_output=True).stdout)
signals = {line.split(":")[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigIgn", "SigBlk"))}
print(json.dumps([signals, umask, environment, resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""

SENT = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGCHLD, signal.SIGTERM)
PYTHONS_OWN = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1  # it ignores them itself


def badly_started():
    """As nohup, cron and worse leave it to what they start."""
    for number in SENT:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_a_bad_start_is_made_good():
    env = {**os.environ, "TOOLBOX_DIR": "/etc", "LC_ALL": "POSIX", "MAKEFLAGS": "-k", "http_proxy": "http://127.0.0.1:1/", "TOOLBOX_TEST_X": "x"}
    done = subprocess.run([sys.executable, "-c", REPORT, REPO / "test/integration"], env=env, preexec_fn=badly_started,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    signals, umask, environment, (soft, hard) = json.loads(done.stdout)
    assert (signals["SigIgn"] & ~PYTHONS_OWN, signals["SigBlk"], umask) == (0, 0, 0o022)
    assert soft == min(20000, hard)
    assert environment["TOOLBOX_TEST_X"] == "x" and "127.0.0.1" in environment["no_proxy"]
    assert not environment.keys() & {"TOOLBOX_DIR", "LC_ALL", "MAKEFLAGS"}


def test_so_it_is_for_unit_tests(workdir):
    program = workdir / "program"
    program.write_text("#!/bin/sh\ngrep SigIgn /proc/self/status; umask\n")
    program.chmod(0o755)
    done = subprocess.run([REPO / "scripts/run-units", program], preexec_fn=badly_started, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[2:] == ["SigIgn:", "0" * 16, "0022"], done


@pytest.mark.parametrize("text, status, counts", [
    ("ok 1 - a\nok 2 - b\n# ok - tests\n", 0, "2 0 0"),
    ("ok 1 - a\nnot ok 2 - b\n", 1, "1 1 0"),
    ("ok 1 - a\nnot ok 2 # SKIP b\nok 3 # SKIP c\n", 0, "1 0 2"),
    ("ok 1 - a\nnot ok 2 # SKIP b\n", 1, "1 1 1"),  # it crashed behind that
    ("", 127, "0 1 0"),
])
def test_tap_is_added_up(workdir, text, status, counts):
    (workdir / "log").write_text(text)
    done = subprocess.run(["bash", "-c", '. "$1"/scripts/lib/tally.sh; count_tap "$2" "$3"; echo $passed $failed $skipped', "bash", REPO,
                           workdir / "log", str(status)], capture_output=True, text=True)
    assert done.stdout.strip() == counts, done


def test_without_proc_all_is_skipped(apart):
    argv = ["/usr/bin/python3", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", REPO / "test/integration/test_leaks.py"]
    done = subprocess.run([*apart, "sh", "-c", 'umount -R /proc && exec "$@"', "sh", *argv], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0 and "/proc is not mounted here" in done.stdout and " passed" not in done.stdout, done


HANGING = """
import os
def test_hangs():
    os.read(os.pipe()[0], 1)
def test_next():
    pass
"""
WITH_A_LIMIT = "import sys, pytest, conftest; conftest.HANGS = 1; pytest.main(['--noconftest', *sys.argv[1:]], plugins=[conftest])"


def test_a_test_that_hangs_fails(workdir):
    (workdir / "test_hanging.py").write_text(HANGING)
    argv = ["/usr/bin/python3", "-c", WITH_A_LIMIT, "-p", "no:cacheprovider", workdir / "test_hanging.py"]
    done = subprocess.run(argv, cwd=REPO / "test/integration", capture_output=True, text=True, timeout=HANG)
    assert "the test hangs" in done.stdout and "1 failed, 1 passed" in done.stdout, done


ABSENT = {
    "git": "! command -v git",
    "tools": "! command -v docker && ! command -v ssh && command -v sh",
    "cgroups": "[ ! -e /sys/fs/cgroup/cgroup.procs ]",
    "inherited": "! grep 'SigIgn:.0000000000000000' /proc/self/status && [ $(umask) = 0077 ]",
    "mount-point": "! grep -q '^[0-9]* [0-9]* [0-9:]* [^ ]* / ' /proc/self/mountinfo",
    "namespaces": "! unshare --mount true",
    "proc": "[ ! -e /proc/self ]",
    "shm": "[ ! -e /dev/shm ] && echo >/dev/null",
    "network": "! grep -v -e lo: -e '|' /proc/net/dev",
    "ipv6": "! grep . /proc/net/if_inet6",
}


@pytest.mark.parametrize("thing", ABSENT)
def test_what_is_taken_away_is_away(apart, thing):
    net = ["--net"] if thing in ("network", "ipv6") else []
    if net:
        needs.program("busybox")
    argv = [*apart, *net, REPO / "scripts/test-absent", "--without", thing, "sh", "-c", ABSENT[thing]]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done
