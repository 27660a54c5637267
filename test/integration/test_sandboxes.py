"""Kernels that aren't Linux: gVisor, with its own runsc where that is installed; and proot, which translates names."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness import containers, needs
from harness.users import NOBODY_KNOWS

# Runs inside, and prints what it got as JSON: each call with the answer's result.
DRIVER = """
import json, os, subprocess, sys
toolbox, os.environ["HOME"], os.environ["TOOLBOX_DIR"] = sys.argv[1], "/tmp", sys.argv[3]
answers = []
for method, params in json.loads(sys.argv[2]):
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    done = subprocess.run([toolbox, "exec"], input=request, capture_output=True, text=True)
    answers.append(json.loads(done.stdout or "null"))
subprocess.run([toolbox, "stop-server"])
print(json.dumps(answers))
"""


def run(command, timeout=60):
    return ["bash_session_run", {"session_name": "BashSession", "command": command, "timeout": timeout}]


def typed(text, idle=0.5, wait=30):
    return ["bash_session", {"session_name": "BashSession", "input": text, "wait_for_output": wait, "idle_timeout": idle}]


@pytest.fixture(params=["systrap", "ptrace"])
def gvisor(request, toolbox):
    needs.root("start gVisor")
    runsc = needs.program("runsc")

    def calls(*list):
        words = [runsc, "--network=none", "--ignore-cgroups", f"--platform={request.param}", "do"]
        if subprocess.run([*words, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=120).returncode != 0:
            pytest.skip(f"runsc does not run here with the platform {request.param}")
        words += [sys.executable, "-c", DRIVER, str(toolbox), json.dumps(list), "/tmp/toolbox-in-gvisor"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        return [answer.get("result", answer) for answer in json.loads(done.stdout.splitlines()[-1])]

    return calls


def test_jobs_and_keys_of_a_shell(gvisor):
    """The shell opens the private channel, and keeps its controlling terminal all the same."""
    answers = gvisor(
        ["bash_session_new_session", {}], run("echo hi; (exit 3)"), typed("echo begun; sleep 1000\n"), typed("\x03", 30), run("echo $?; echo on"),
        ["bash_session", {"session_name": "BashSession", "restart": True}], run("set -o | grep monitor"), run("sleep 0 & wait; echo waited"),
    )
    assert (answers[1]["state"], answers[1]["exit_code"]) == ("completed", 3) and answers[1]["output"].endswith("hi\n")
    assert "begun\n" in answers[2]
    assert answers[4].get("state") == "completed" and answers[4]["output"].endswith("130\non\n"), answers
    assert answers[6]["output"].split() == ["monitor", "on"]
    assert "waited\n" in answers[7]["output"]


def test_who_waits_for_input_there(gvisor):
    """There is no /proc/PID/syscall, and the terminal tells its foreground only within its own session."""
    answers = gvisor(
        ["bash_session_new_session", {}], run("read x; echo got $x"), typed("a line\n", 30), run("cat | cat"), typed("\x03", 30),
        run("python3 -c 'import select, sys; select.select([0], [], []); print(input())'"), typed("more\n", 30),
        run("sleep 0.5; echo slept"), run("sleep 1000", 1), ["bash_session_signal", {"session_name": "BashSession", "signal": "TERM"}], run("echo $?"),
        typed("sleep 1000\n", 0.5, 1), typed("never\n", 0.5, 1), typed("\x03", 30), typed("cat\nline\n\x04echo on\n", 30),
    )
    assert [answers[i]["state"] for i in (1, 3, 5)] == ["awaiting_input"] * 3, answers
    assert answers[2].startswith("got a line\n") and answers[6].startswith("more\n")
    assert (answers[7]["state"], answers[7]["output"], answers[8]["state"]) == ("completed", "slept\n", "timeout")
    assert answers[10]["output"].endswith("143\n")
    assert "never" not in answers[13] and "line\n" in answers[14] and "# on\n" in answers[14]


def in_proot(folder, *words):
    """Runs it there, as a user who has no right to look into others."""
    words = [needs.program("proot"), *map(str, words)]
    if os.geteuid() == 0:
        os.chown(folder, NOBODY_KNOWS, NOBODY_KNOWS)
        words = ["setpriv", f"--reuid={NOBODY_KNOWS}", f"--regid={NOBODY_KNOWS}", "--clear-groups", *words]
    env = {**os.environ, "PROOT_TMP_DIR": folder, "TOOLBOX_DIR": "/tmp/server"}

    def run(given=None):
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=300, env=env)
        if not done.stdout:
            pytest.skip(f"proot does not run here: {done.stderr[-300:]}")
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_proot_reads_the_names_that_server_and_keepers_use(toolbox):
    """It has no right to look into them, and is their tracer: then they let it."""
    calls = [["bash_session_new_session", {}], run("echo hi; (exit 3)"), *[["exec_remote_start", {"command": "echo job"}], ["exec_remote_list", {}]] * 20]
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        answers = in_proot(folder, "-r", "/", "-w", "/", sys.executable, "-c", DRIVER, toolbox, json.dumps(calls), f"{folder}/server")("")
    answers = [answer.get("result", answer) for answer in answers]
    assert (answers[1].get("state"), answers[1].get("exit_code"), answers[1].get("output")) == ("completed", 3, "hi\n"), answers
    started = sorted(answer["pid"] for answer in answers[2::2])
    assert sorted(job["pid"] for job in answers[-1]) == started, answers[-1]  # one that ends while it is asked is there once
    assert all(len({job["pid"] for job in list}) == len(list) == n + 1 for n, list in enumerate(answers[3::2])), answers


def test_what_proot_does_not_translate_is_not_used(toolbox):
    """It knows no openat2: with that what is opened is what has the name outside."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        root = Path(folder, "root")
        (root / "tmp/sub").mkdir(parents=True)
        for path in (Path(folder), root, root / "tmp", root / "tmp/sub"):
            path.chmod(0o777 if path.parent == root or path.name == "sub" else 0o755)
        shutil.copy(toolbox, root / "toolbox")
        edit = in_proot(folder, "-r", root, "-w", "/", "-b", "/dev", "-b", "/proc", "/toolbox", "exec")
        for path in ("/tmp/file", "/tmp/sub/file"):  # one directory is there outside as well, the other isn't
            params = {"command": "create", "path": path, "file_text": "inside\n"}
            answer = edit(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "text_editor", "params": params}))
            assert "error" not in answer, answer
            assert Path(f"{root}{path}").read_text() == "inside\n"


def test_this_suite_runs_there(toolbox):
    """By one command."""
    needs.root("start gVisor")
    needs.program("runsc")
    words = [containers.REPO / "scripts/test-sandboxes", "gvisor", "test/integration/test_bash_session_run.py", "-k", "true_status and 42"]
    env = {**os.environ, "TOOLBOX_BIN": str(toolbox)}
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500, env=env)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
