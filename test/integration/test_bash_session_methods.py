"""bash_session_list, _resize, _signal, and what all methods of sessions check."""
import time

import pytest

from harness.client import PARAMERR, TOOLERR, RpcError
from harness.processes import wait_until
from harness.sessions import AT_ONCE, Shell, exists, read_until

MEMBERS = {"session_name", "pid", "user", "shell", "cwd", "state", "foreground", "idle_s", "unread_bytes", "age_s",
           "processes", "memory_kb", "bytes_in", "bytes_out"}


def code_of(client, method, params):
    with pytest.raises(RpcError) as caught:
        client.rpc(method, params)
    return caught.value.code


# ---- list ----


def test_an_empty_list(client):
    assert client.rpc("bash_session_list") == []
    assert code_of(client, "bash_session_list", {"x": 1}) == PARAMERR


def test_list_at_the_prompt(shell):
    entry = shell.listed()
    assert MEMBERS <= set(entry)
    assert shell.out("echo $$") == f"{entry['pid']}\n"
    assert (entry["shell"], entry["cwd"], entry["state"], entry["foreground"], entry["unread_bytes"]) == ("/bin/bash",
                                                                                                          "/",
                                                                                                          "prompt",
                                                                                                          None, 0)
    assert 0 <= entry["idle_s"] < AT_ONCE


def test_list_sees_every_state(shell, workdir):
    shell.bs(f"cd {workdir}\n")
    assert shell.listed()["cwd"] == str(workdir)
    shell.bs("sleep 60\n", wait=0, idle=0)
    wait_until(lambda: (shell.listed()["state"], shell.listed()["foreground"]) == ("running", "sleep"), "sleep to run")
    shell.bs("\x03")
    shell.at_once("cat\n")
    assert (shell.listed()["state"], shell.listed()["foreground"]) == ("awaiting_input", "cat")
    shell.bs("\x04")
    shell.at_once("read x\n")
    assert (shell.listed()["state"], shell.listed()["foreground"]) == ("awaiting_input", None)
    shell.bs("\n")
    shell.at_once("echo 'open\n")
    assert shell.listed()["state"] == "awaiting_input"
    shell.bs("\x03")
    wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
    shell.bs("exit\n")
    assert shell.listed()["state"] == "ended" and shell.listed()["foreground"] is None


def test_list_counts_what_is_unread_and_how_long_it_is_quiet(shell, workdir):
    shell.at_once(f"(sleep 0.2; printf %s 0123456789; touch {workdir}/on) &\n")
    exists(workdir / "on")
    wait_until(lambda: shell.listed()["unread_bytes"] == 10, "the output to be taken")
    assert shell.listed()["unread_bytes"] == 10, "to list is not to read"
    time.sleep(0.5)
    assert shell.listed()["idle_s"] > 0.4
    assert shell.bs() == "0123456789" and shell.listed()["unread_bytes"] == 0


def test_list_answers_while_sessions_are_busy(client):
    shells = [Shell(client) for _ in range(3)]
    shells[0].bs("yes\n", wait=0, idle=0, max_output_bytes=100)
    shells[1].bs("while :; do :; done\n", wait=0, idle=0)
    began = time.monotonic()
    for _ in range(5):
        assert [entry["session_name"] for entry in client.rpc("bash_session_list")] == [shell.name for shell in shells]
    assert time.monotonic() - began < AT_ONCE


# ---- resize ----


def test_resize(shell):
    assert shell.resize(40, 120) is None
    assert shell.out("stty size") == "40 120\n"
    assert shell.at_once("echo $COLUMNS $LINES\n").startswith("120 40\n")
    shell.restart()
    assert shell.out("stty size") == "40 120\n"


def test_resize_tells_the_program(shell):
    shell.busy("python3 -c 'import os, signal\nsignal.signal(signal.SIGWINCH, lambda *a: print(*os.get_terminal_size(0), flush=True))\n"
               "print(\"begin\", flush=True)\nwhile True: signal.pause()'", "begin")
    shell.resize(33, 99)
    wait_until(lambda: "99 33" in shell.bs(wait=1), "the program to hear of it")
    shell.bs("\x03")


def test_resize_while_a_call_waits(shell):
    with shell.client.popen("bash_session", "send", shell.name, "sleep 1; stty size", "--wait", "60", "--idle",
                            "60") as call:
        wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
        shell.resize(30, 70)
        assert call.communicate()[0].startswith(b"30 70\n")


@pytest.mark.parametrize("rows, cols", [(0, 80), (24, 0), (-1, 80), (24, 100_000), ("24", 80), (24.5, 80), (None, 80)])
def test_a_bad_size(shell, rows, cols):
    with pytest.raises(RpcError) as caught:
        shell.resize(rows, cols)
    assert caught.value.code == PARAMERR
    assert shell.out("stty size") == "24 200\n"


# ---- signal ----


@pytest.mark.parametrize("name, status",
                         [("INT", 130), ("SIGINT", 130), ("TERM", 143), ("KILL", 137), ("9", 137), ("HUP", 129),
                          ("SIGUSR1", 138), ("QUIT", 131)])
def test_signal_the_foreground(shell, name, status):
    shell.busy("echo begin; sleep 60", "begin")
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
    assert shell.signal(name) is None
    read_until(shell, shell.prompt)
    assert shell.out("echo $?") == f"{status}\n"


def test_signal_the_whole_pipeline(shell):
    shell.busy("echo begin; sleep 60 | sleep 61 | sleep 62", "begin")
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
    shell.signal("TERM")
    read_until(shell, shell.prompt)
    shell.works()


def test_stop_and_go_on(shell):
    shell.busy("echo begin; sleep 60", "begin")
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
    shell.signal("TSTP")
    assert "Stopped" in read_until(shell, shell.prompt)
    shell.bs("fg\n", wait=1)
    shell.signal("INT")
    read_until(shell, shell.prompt)
    shell.works()


def test_signal_the_shell_itself(shell):
    """At the prompt the shell is what is in the foreground."""
    shell.signal("INT")
    shell.works()
    shell.signal("KILL")
    wait_until(lambda: shell.listed()["state"] == "ended", "the shell's end")
    assert "signal 9" in shell.bs()


@pytest.mark.parametrize("name", ["NONSENSE", "SIG", "0", "-9", "99", "9.5", " INT", "INT;", "", "int\0"])
def test_no_signal(shell, name):
    with pytest.raises(RpcError) as caught:
        shell.signal(name)
    assert caught.value.code in (TOOLERR, PARAMERR)
    shell.works()


def test_a_name_in_lower_case_is_one(shell):
    shell.busy("echo begin; sleep 60", "begin")
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "sleep to run")
    shell.signal("sigterm")
    read_until(shell, shell.prompt)


def test_a_signal_for_a_shell_that_has_ended(shell):
    shell.bs("exit\n")
    with pytest.raises(RpcError, match="ended") as caught:
        shell.signal("INT")
    assert caught.value.code == TOOLERR


# ---- params ----

INTERACT = {"wait_for_output": 1, "idle_timeout": 0.1}


@pytest.mark.parametrize("method, params", [
    ("bash_session", INTERACT), ("bash_session_run", {"command": "x"}), ("bash_session_close", {}),
    ("bash_session_resize", {"rows": 1, "cols": 1}),
    ("bash_session_signal", {"signal": "INT"}), ("bash_session", {"restart": True}),
])
def test_the_session_has_to_be_there(client, method, params):
    assert code_of(client, method, params) == PARAMERR
    assert code_of(client, method, {**params, "session_name": None}) == PARAMERR
    assert code_of(client, method, {**params, "session_name": 1}) == PARAMERR
    for name in ("BashSession", "BashSession_7", "nonsense", "../server", "BashSession/../x", "server",
                 "BashSession" * 60, "ü", "BashSession.x"):
        with pytest.raises(RpcError) as caught:
            client.rpc(method, {**params, "session_name": name})
        assert caught.value.code == TOOLERR and "session" in caught.value.message.lower()
    assert client.rpc("bash_session_list") == []


@pytest.mark.parametrize("method, params", [
    ("bash_session", {}),
    ("bash_session", {"wait_for_output": 1}),
    ("bash_session", {"idle_timeout": 1}),
    ("bash_session", {**INTERACT, "wait_for_output": 1.5}),
    ("bash_session", {**INTERACT, "wait_for_output": "1"}),
    ("bash_session", {**INTERACT, "wait_for_output": True}),
    ("bash_session", {**INTERACT, "wait_for_output": -1}),
    ("bash_session", {**INTERACT, "idle_timeout": "1"}),
    ("bash_session", {**INTERACT, "idle_timeout": -0.5}),
    ("bash_session", {**INTERACT, "input": 1}),
    ("bash_session", {**INTERACT, "input": ["x"]}),
    ("bash_session", {**INTERACT, "max_output_bytes": 1.5}),
    ("bash_session", {**INTERACT, "max_output_bytes": "1"}),
    ("bash_session", {**INTERACT, "restart": "yes"}),
    ("bash_session", {**INTERACT, "restart": 1}),
    ("bash_session", {"restart": True, "input": "x"}),
    ("bash_session", {**INTERACT, "inptu": "x"}),
    ("bash_session_run", {"command": 1}),
    ("bash_session_run", {"command": "x", "timeout": "1"}),
    ("bash_session_run", {"command": "x", "timeout": -1}),
    ("bash_session_run", {"command": "x", "max_output_bytes": 0.5}),
    ("bash_session_run", {"command": "x", "input": "x"}),
    ("bash_session_close", {"force": True}),
    ("bash_session_signal", {"signal": 9}),
    ("bash_session_signal", {}),
    ("bash_session_resize", {"rows": 1}),
], ids=str)
def test_bad_params(shell, method, params):
    """Refused by name, and nothing of it is done."""
    with pytest.raises(RpcError) as caught:
        shell.client.rpc(method, {"session_name": shell.name, **params})
    assert caught.value.code == PARAMERR and caught.value.message.startswith("Invalid parameters")
    shell.works()


def test_numbers_and_nulls(shell):
    """An int where a number is wanted; null for what is absent; times beyond all measure."""
    call = {"session_name": shell.name, "wait_for_output": 25, "idle_timeout": 1}
    assert shell.client.rpc("bash_session",
                            {**call, "input": "echo a\n", "restart": None,
                             "max_output_bytes": None}) == "a\n" + shell.prompt
    assert shell.client.rpc("bash_session", {**call, "input": "echo b\n", "restart": False}) == "b\n" + shell.prompt
    assert shell.client.rpc("bash_session",
                            {**call, "input": "echo c\n", "wait_for_output": 10 ** 8,
                             "idle_timeout": 1e8}) == "c\n" + shell.prompt
    assert shell.client.rpc("bash_session", {**call, "input": "", "wait_for_output": 0}) == ""
    run = {"session_name": shell.name, "command": "echo d", "timeout": 1e8, "max_output_bytes": -5}
    assert shell.client.rpc("bash_session_run", run)["output"] == "d\n"


def test_a_request_that_wants_no_answer(shell):
    """A notification types as well."""
    params = f'{{"session_name":"{shell.name}","input":"echo told > /dev/null; x=told\\n","wait_for_output":0,"idle_timeout":0}}'
    done = shell.client.cli("exec", stdin=f'{{"jsonrpc":"2.0","method":"bash_session","params":{params}}}'.encode())
    assert (done.returncode, done.stdout) == (0, b"")
    wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
    assert shell.out("echo $x") == "told\n"


def test_the_kind_and_size_of_the_terminal(server):
    for params, wanted in (({}, "dumb 24 200"), ({"term": "vt100", "rows": 30, "cols": 90}, "vt100 30 90"),
                           ({"env": {"TERM": "xterm-256color"}}, "xterm-256color 24 200"),
                           ({"env": {"TERM": "xterm"}, "term": "linux"}, "linux 24 200")):
        with Shell(server, **params) as shell:
            assert shell.out("echo $TERM $(stty size)") == wanted + "\n"
            shell.restart()
            assert shell.out("echo $TERM $(stty size)") == wanted + "\n"
