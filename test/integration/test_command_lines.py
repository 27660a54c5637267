"""What all command lines share: lists, words of their own; and the output of jobs as text."""
import json
import re

import pytest

from harness.machine import HANG
from harness.processes import wait_until


def out_of(client, *words, status=0):
    done = client.cli(*words)
    assert done.returncode == status, done
    return done.stdout.decode()


def start(client, command):
    return client.rpc("exec_remote_start", {"command": command})["pid"]


def wait_for_end(client, pid):
    wait_until(lambda: client.rpc("exec_remote_poll", {"pid": pid, "ack_seq": 0})["state"] != "running", "the job's end")


# ---- lists ----


@pytest.mark.parametrize("applet, first, listed", [("bash_session", "session_name", "BashSession"), ("exec_remote", "pid", None)])
def test_lists_as_they_are_wanted(client, applet, first, listed):
    client.new()
    client.new()
    pids = [start(client, "sleep 5101"), start(client, "sleep 5102")]
    names = [str(pid) for pid in sorted(pids)] if listed is None else [listed, listed + "_1"]
    assert sorted(out_of(client, applet, "list", "-q").split()) == names
    seen = lambda: json.loads(out_of(client, applet, "list", "--json"))
    wait_until(lambda: listed is None or all(entry["state"] == "prompt" for entry in seen()), "the shells to be ready")
    entries = seen()
    table = out_of(client, applet, "list", "--format", f"{first},state")
    assert table.splitlines()[0].split() == [first, "state"] and len(table.splitlines()) == 3
    assert [line.split() for line in table.splitlines()[1:]] == [[str(entry[first]), entry["state"]] for entry in entries]
    assert out_of(client, applet, "list", "-q", "--format", "state").split() == [entry["state"] for entry in entries]
    for wrong in (",", "", "a,,b", ",".join("abcdefghijklmnopq")):
        assert b"--format takes" in client.cli(applet, "list", "--format", wrong).stderr


# ---- jobs as text ----


def test_logs_of_what_runs_and_of_what_ended(client):
    pid = start(client, "echo out; echo err >&2; read x <&-; sleep 5103")
    wait_until(lambda: client.cli("exec_remote", "logs", pid).stderr == b"err\n", "its output")
    for _ in range(2):  # nothing is acknowledged by it
        done = client.cli("exec_remote", "logs", pid)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")
    client.rpc("exec_remote_kill", {"pid": pid, "ack_seq": 0})
    assert client.cli("exec_remote", "logs", pid).stdout == b"out\n"
    assert "there is no job 1;" in client.cli("exec_remote", "logs", "1").stderr.decode()
    assert client.cli("exec_remote", "logs", "x").returncode == 2


def test_logs_brings_more_than_one_answer_holds(client):
    pid = start(client, "head -c 3000000 /dev/zero | tr '\\0' x")
    wait_for_end(client, pid)
    assert out_of(client, "exec_remote", "logs", pid) == "x" * 3_000_000
    assert out_of(client, "exec_remote", "logs", "-f", pid) == "x" * 3_000_000
    assert out_of(client, "exec_remote", "logs", pid) == ""


def test_logs_says_that_there_is_more(client):
    pid = start(client, "head -c 6000000 /dev/zero | tr '\\0' x")
    wait_until(lambda: len(client.cli("exec_remote", "logs", pid).stdout) >= 4 << 20, "its output")
    done = client.cli("exec_remote", "logs", pid)
    assert b"logs --follow" in done.stderr and len(done.stdout) < 6_000_000
    assert len(out_of(client, "exec_remote", "logs", "--follow", pid)) == 6_000_000


@pytest.mark.parametrize("end, status", [("exit 3", 3), ("kill -9 $$", 137)])
def test_logs_follows_to_the_end(client, workdir, end, status):
    pid = start(client, f"echo first; while [ ! -e {workdir}/go ]; do sleep 0.05; done; echo second; echo err >&2; {end}")
    with client.popen("exec_remote", "logs", "-f", pid) as process:
        assert process.stdout.readline() == b"first\n"
        (workdir / "go").touch()
        assert process.communicate(timeout=HANG) == (b"second\n", b"err\n") and process.returncode == status


def test_poll_as_text(client):
    pid = start(client, "echo out; echo err >&2")
    wait_for_end(client, pid)
    done = client.cli("exec_remote", "poll", pid, "--text")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")
    assert json.loads(out_of(client, "exec_remote", "poll", pid))["stdout"] == "out\n"


# ---- words of their own ----

PROTOCOL = re.compile(r"Invalid parameters|\\u00|\b(exec_remote|bash_session|mcp|web)_(?!browser)[a-z]\w+|"
                      r"\b(session_name|wait_for_output|idle_timeout|max_output_bytes|ack_seq|stdin_open|server_params|session_id|"
                      r"element_id|undo_edit|str_replace|old_str|new_str|insert_line|view_range|file_text|insert_text)\b")


def complaints(client, workdir):
    """Command lines that fail, or that say more than was asked."""
    (workdir / "f").write_text("one\ntwo\ntwo\n" + "x" * 20_000 + "\nlast\n")
    client.new()
    client.bs("sleep 5105\n", wait=0, idle=0)
    session, pid = client.session, start(client, "sleep 5104")
    yield from (["bash_session", "run", session, "true"], ["bash_session", "read", "nobody"], ["bash_session", "read", ""],
                ["bash_session", "read", "BashSession_9"], ["bash_session", "resize", session, "0", "5"],
                ["bash_session", "resize", session, "1.5", "5"], ["bash_session", "signal", session, "NOSUCH"],
                ["bash_session", "read", session, "--idle", "-1"], ["bash_session", "read", session, "--wait", "99999999999"],
                ["bash_session", "new", "--rows", "0"], ["bash_session", "new", "--cwd", "/no/such"],
                ["bash_session", "new", "--user", "no-such"], ["bash_session", "new", "--shell", "/no/such"],
                ["bash_session", "read", session, "--max", "1.5"])
    yield from (["exec_remote", "poll", "1"], ["exec_remote", "poll", str(2**40)], ["exec_remote", "write", pid, "x"],
                ["exec_remote", "signal", pid, "NOSUCH"], ["exec_remote", "poll", pid, "--ack", "1.5"],
                ["exec_remote", "start", "--timeout", "-1", "true"], ["exec_remote", "start", "--cwd", "/no/such", "true"],
                ["exec_remote", "start", "no-such-program"], ["exec_remote", "run", "--timeout", "-5", "true"],
                ["exec_remote", "wait", pid, "--timeout", "-1"], ["exec_remote", "logs", "1"])
    yield from (["mcp", "tools", "7"], ["mcp", "launch", ""], ["mcp", "launch", "no-such"], ["mcp", "kill", "7"])
    yield from (["text_editor", *words] for words in (
        ["view", "nothing"], ["view", "f"], ["view", "f", "--range", "0,2"], ["view", "f", "--range", "9,9"], ["view", "f", "--range", "3,2"],
        ["view", ".", "--range", "1,2"], ["create", "f", "--text", "x"], ["replace", "f", "--old", "two"], ["replace", "f", "--old", "zwei"],
        ["replace", "f", "--old", ""], ["replace", "f", "--old", "\\x"], ["replace", "f", "--old", "one", "--new", "1"],
        ["insert", "f", "99", "--text", "x"], ["insert", "f", "1", "--text", "x"], ["undo", "nothing"], ["undo", "f"], ["replace", ".", "--old", "x"]))
    yield from (["web_browser", "text"], ["web_browser", "click", "1", "--session", "x"], ["web_browser", "tab", "1", "--session", "WebBrowser"])


def test_no_word_of_the_protocol_is_shown(client, workdir):
    seen = 0
    for words in complaints(client, workdir):
        done = client.cli(*words, cwd=workdir)
        text = (done.stdout + done.stderr).decode()
        found = PROTOCOL.search(text)
        assert not found, f"{words}: {found[0]!r} in {text[-400:]!r}"
        assert done.returncode in (0, 1, 2, 125), (words, done)
        seen += done.returncode != 0
    assert seen > 40


def test_a_program_of_such_a_name_keeps_it(client):
    """`timeout` is an option's name here, and a program's."""
    assert b" timeout: not found" in client.cli("exec_remote", "start", "--env", "PATH=/no/such", "timeout").stderr


def test_content_of_a_file_is_left_as_it_is(client, workdir):
    """The editor's own words are put right, not the same ones in a file."""
    (workdir / "f").write_text("use `undo_edit`\nold_str was\n")
    shown = client.cli("text_editor", "replace", "f", "--old", "use", "--new", "see", cwd=workdir).stdout.decode()
    assert "\tsee `undo_edit`\n" in shown and "\told_str was\n" in shown and "the old text was replaced at line 1" in shown
    assert "again or `undo` if not" in shown
