"""scripts/demo: right answers, and nothing left, however it ends."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness.containers import REPO
from harness.machine import HANG
from harness.processes import Watch


class Demo:
    """Runs the demo with a private folder for temporary files."""

    def __init__(self, toolbox, tmp, runtime, env=None):
        self.tmp, self.pids = tmp, []
        self.argv = [REPO / "scripts/demo", "--no-build", "--runtime", runtime]
        self.env = {**os.environ, "TOOLBOX_BIN": str(toolbox), "TMPDIR": str(tmp), **(env or {})}

    def start(self):
        # a session of its own, as at a terminal: a signal can be sent to all of it
        process = subprocess.Popen(self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True, text=True)
        self.pids.append(process.pid)
        return process

    def run(self):
        with self.start() as process:
            out, err = process.communicate(timeout=HANG)
        return process.returncode, out, err


def mounts(workdir):
    """Those of the demo: others may mount and unmount meanwhile, as an engine does."""
    found = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [path for path in found if path.startswith(f"{workdir}/") or "toolbox-demo" in path]


@pytest.fixture
def nothing_left(workdir):
    before = mounts(workdir)
    yield
    assert list(workdir.iterdir()) == []
    assert mounts(workdir) == before


@pytest.fixture
def demo(toolbox, workdir, namespaces, nothing_left):
    return Demo(toolbox, workdir, "namespaces")


def test_shows_everything(demo):
    status, out, err = demo.run()
    assert (status, err) == (0, "")
    for wanted in ("probe", "bash_session_new_session", "hello, toolbox", '"exit_code":7', "Hello, container!",
                   "undo_edit", " ms\n", "All answers were right"):
        assert wanted in out
    assert "\x1b" not in out, "colours are for terminals"


def left_in_docker(docker, demo):
    """Of this demo's runs: others may have theirs in the same engine."""
    return "".join(docker.call("ps", "--all", "--quiet", "--filter", f"name=toolbox-demo-{pid}-") +
                   docker.call("images", "--quiet", f"toolbox-demo-{pid}-*") for pid in demo.pids)


def test_shows_everything_in_docker(toolbox, workdir, docker, nothing_left):
    demo = Demo(toolbox, workdir, "docker", docker.env)
    status, out, err = demo.run()
    assert (status, err) == (0, "")
    assert "docker exec -i" in out and "All answers were right" in out
    assert left_in_docker(docker, demo) == ""


def test_takes_docker_where_an_engine_answers(toolbox, workdir, docker, nothing_left):
    demo = Demo(toolbox, workdir, "namespaces", docker.env)
    demo.argv = demo.argv[:2]
    assert "docker (an engine answers)" in demo.run()[1]


@pytest.mark.parametrize("change", [
    ("hello, toolbox", "hello, nobody"),
    ('"exit_code":7', '"exit_code":0'),
    ("Hello, container!", "Hello, world!"),
    ('"path":"/opt/toolbox"', '"path":"/somewhere"'),
], ids=lambda change: change[1])
def test_fails_when_an_answer_is_wrong(demo, toolbox, workdir, change):
    """A toolbox that lies once: a script in front of the real one, which it takes out of its own file."""
    script = f"""#!/bin/bash
        if [ ! -e /opt/real ]; then
            {{ while read -r line && [ "$line" != BINARY ]; do :; done; cat >/opt/real; }} <"$0"
            chmod 755 /opt/real
        fi
        answer=$(/opt/real "$@")
        answer=${{answer/'/opt/real'//opt/toolbox}}
        echo "${{answer/'{change[0]}'/'{change[1]}'}}"
        exit
    """
    (workdir / "lie").write_bytes(script.encode() + b"\nBINARY\n" + toolbox.read_bytes())
    (workdir / "lie").chmod(0o755)
    demo.env["TOOLBOX_BIN"] = str(workdir / "lie")
    status, out, err = demo.run()
    (workdir / "lie").unlink()
    assert status == 1
    assert err.startswith("demo: ")
    assert "All answers were right" not in out


def interrupt(demo, send, delay):
    """Starts the demo, waits, interrupts it; returns the exit status, and what it said on stderr."""
    with demo.start() as process:
        time.sleep(delay)
        send(process.pid)
        err = process.communicate(timeout=HANG)[1]
    return process.returncode, err


def whole_time(demo):
    start = time.monotonic()
    assert demo.run()[0] == 0
    return time.monotonic() - start


# As Ctrl-C at a terminal does it, and as a job that is cancelled.
SIGNALS = {
    "INT to all": (lambda pid: os.killpg(pid, signal.SIGINT), signal.SIGINT),
    "TERM": (lambda pid: os.kill(pid, signal.SIGTERM), signal.SIGTERM),
    "HUP to all": (lambda pid: os.killpg(pid, signal.SIGHUP), signal.SIGHUP),
}


@pytest.mark.parametrize("how", SIGNALS)
def test_leaves_nothing_when_interrupted(demo, how, workdir):
    """Slow: 13 demos."""
    send, number = SIGNALS[how]
    span, before, interrupted = whole_time(demo), mounts(workdir), 0
    for step in range(12):
        watch = Watch()
        status, err = interrupt(demo, send, span * step / 11)
        interrupted += status != 0
        # 128 + N from its own trap; killed by the signal before it has set one
        assert status in (0, 128 + number, -number), err
        # who is killed before its trap is set may have just begun a program, which ends by itself
        assert not watch.left(HANG if status == -number else 0.0), f"interrupted at {step}/11"
        assert list(workdir.iterdir()) == []
        assert mounts(workdir) == before
    assert interrupted > 3


def test_leaves_nothing_in_docker_when_interrupted(toolbox, workdir, docker, nothing_left):
    """Slow: seven demos with an engine."""
    demo = Demo(toolbox, workdir, "docker", docker.env)
    span = whole_time(demo)
    for step in range(6):
        interrupt(demo, SIGNALS["INT to all"][0], span * step / 6)
        assert left_in_docker(docker, demo) == "", f"interrupted at {step}/6"


def test_leaves_no_container_when_killed(demo, workdir):
    """KILL gives it no chance to clean up: its folder stays, but the container ends by itself."""
    span, before = whole_time(demo), mounts(workdir)
    for step in range(6):
        watch = Watch()
        interrupt(demo, lambda pid: os.kill(pid, signal.SIGKILL), span * step / 5)
        watch.check()
        assert mounts(workdir) == before
    for folder in workdir.iterdir():
        subprocess.run(["rm", "-r", folder], check=True)


@pytest.mark.parametrize("argv, message", [
    (["--what"], "unknown option '--what'"),
    (["--runtime"], "--runtime wants"),
    (["--runtime", "podman"], "not 'podman'"),
])
def test_wrong_usage(argv, message):
    done = subprocess.run([REPO / "scripts/demo", *argv], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr and "--help" in done.stderr


def test_help():
    done = subprocess.run([REPO / "scripts/demo", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("usage: scripts/demo")
