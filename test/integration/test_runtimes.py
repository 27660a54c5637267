"""What runtimes and restrictions leave out: scripts/validate-sandboxes on the rows that take nothing but this machine, and what
is said where something can't be had."""
import json
import subprocess
import sys

import pytest

from harness import needs
from harness.containers import REPO
from harness.users import NOBODY_KNOWS


def validate(toolbox, *words):
    """Rows and columns of the table."""
    needs.root("make sandboxes")
    done = subprocess.run([sys.executable, REPO / "scripts/validate-sandboxes", "--docs", "-", "--binary", toolbox, *words],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=550)
    reason = [line for line in done.stdout.splitlines() if "/ inject: not tried: " in line]
    if reason:
        pytest.skip(reason[0])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("row, columns", [
    ("is denied (EPERM)", ["run", "jobs"]),
    ("no `/proc`, as a user", ["run", "kill"]),
    ("RLIMIT_NPROC 16", ["run", "jobs"]),
    ("no `/dev/null`", ["run", "editor"]),
], ids=lambda value: value if isinstance(value, str) else "")
def test_tools_work(toolbox, row, columns):
    said = validate(toolbox, "--only", row, *(word for column in columns for word in ("--column", column)))
    assert said.count(": works") == len(columns) + 2, said


def test_a_run_without_a_second_terminal_is_refused_with_the_reason(toolbox):
    assert "for want of a second terminal" in validate(toolbox, "--only", "room for one terminal", "--column", "run")


def test_a_loopback_that_is_down(toolbox, workdir):
    """A port is had there, and nobody could get to it."""
    needs.root("make a network namespace")
    done = subprocess.run([needs.program("unshare"), "--net", toolbox, "model_proxy", "--port", "0", "--directory", workdir],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "") and "the loopback interface is down" in done.stderr, done


def inside(applet, toolbox, *limit):
    """inject or eject, as a user whom nobody knows: (exit status, report)."""
    needs.root("become another user")
    user = ["setpriv", f"--reuid={NOBODY_KNOWS}", f"--regid={NOBODY_KNOWS}", "--clear-groups", *limit]
    done = subprocess.run([toolbox, applet, "--json", "--user", "default", "exec:" + " ".join(user)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout)


def processes(count):
    return needs.program("prlimit"), f"--nproc={count}"


def test_a_limit_on_processes_is_named(toolbox):
    """By the shell's own words: it can't fork."""
    status, report = inside("inject", toolbox, *processes(1))
    assert status != 0 and "a limit on processes is reached there" in report["advice"], report


def test_a_look_that_breaks_off_has_not_found_nothing(toolbox):
    """The shell gets through all directories, and can't start what looks into ours."""
    assert inside("inject", toolbox)[0] == 0
    status, report = inside("eject", toolbox, *processes(4))
    left = inside("eject", toolbox)
    assert (status, left[0]) == (6, 0) and "is still there" in report["message"], (report, left)
    assert left[1]["state"] == "removed", left


@pytest.mark.parametrize("prepare, status, mode", [
    ("mount -t tmpfs -o mode=777 none $1/opt", 0, "755"),  # an emptyDir, as a kubelet makes it
    ("mount -t tmpfs -o mode=777 none $1/opt; mkdir $1/opt/of-somebody", 6, "777"),
    ("mount -t tmpfs -o mode=777,uid=12345 none $1/opt", 6, "777"),
    ("mount -t tmpfs -o mode=1777 none $1/opt", 6, "1777"),
    ("chmod 777 $1/opt", 6, "777"),  # no volume
], ids=["fresh", "used", "of-another", "sticky", "no-volume"])
def test_an_init_container_places_itself_into_a_volume(toolbox, apart, workdir, prepare, status, mode):
    """It is open to everybody at first."""
    root = workdir / "target"
    (root / "opt").mkdir(parents=True)
    workdir.chmod(0o755)
    script = prepare + '; "$2" inject "dir:$1" --dir /opt >&2; echo $? $(stat -c %a "$1/opt")'
    done = subprocess.run([*apart, "sh", "-c", script, "init", root, toolbox], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    assert done.stdout.split() == [str(status), mode], done
