"""What becomes of a run when its call ends before it does, or its client before the call: it can be waited for, and has its
own output and its own status, whatever else the session has printed and whenever the call's time was up."""
import random
import time

import pytest

from harness.client import TOOLERR, RpcError
from harness.processes import wait_until
from harness.server import socket_of
from harness.sessions import Shell, exists, kill, read_until, started
from test_bash_session_loss import ask_and_leave

SLOW_PROMPT = "PS1='$(sleep 0.3)P> '"


def wait_on(shell, **more):
    return shell.client.rpc("bash_session_run", {"session_name": shell.name, **more})


def in_steps(shell, command, timeout):
    """Asked for again and again, as the command line does: all of its output, and how it ended."""
    result = shell.run(command, timeout=timeout)
    output = result["output"]
    while result["state"] == "timeout":
        result = wait_on(shell, timeout=timeout)
        output += result["output"]
    return output, result["state"], result["exit_code"]


def ended(shell):
    wait_until(lambda: shell.listed()["state"] == "prompt", "the command's end")


def nothing_waits(shell):
    with pytest.raises(RpcError, match="no command") as caught:
        wait_on(shell)
    assert caught.value.code == TOOLERR


# ---- a time that is up between the command's end and the prompt ----


@pytest.mark.parametrize("prompt", [SLOW_PROMPT, "PROMPT_COMMAND='sleep 0.3'", "PROMPT_COMMAND='sleep 0.1; echo slow; sleep 0.1'",
                                    "PS1=$'\\ntwo lines$(sleep 0.3)\\n> '"])
def test_a_prompt_is_no_output_at_any_time(shell, prompt):
    shell.run(prompt)
    for i in range(3):
        for timeout in (0.05, 0.15, 0.25):
            assert in_steps(shell, f"echo hi{i}; (exit {i})", timeout) == (f"hi{i}\n", "completed", i)
    nothing_waits(shell)


def test_a_slow_prompt_is_waited_for(shell):
    """Slow: such prompts are. The shell has told that it is done; nobody refuses the next command because its prompt isn't there yet."""
    shell.run("PS1='$(sleep 2)P> '")
    for i in range(2):
        shell.bs("true\n", wait=0, idle=0)
        assert shell.run(f"echo hi{i}")["output"] == f"hi{i}\n"
    shell.bs("sleep 6203\n", wait=0, idle=0)
    with pytest.raises(RpcError, match="busy: 'sleep' is still running"):
        shell.run("echo no")
    shell.signal("INT")


def test_runs_in_short_steps(shell):
    chance = random.Random(5)
    for i in range(150):
        assert in_steps(shell, f"echo hi{i}; (exit {i % 7})", chance.uniform(0, 0.01)) == (f"hi{i}\n", "completed", i % 7)


def test_a_shell_without_a_line_editor(shell):
    """It is known to be at its prompt by what it prints: also where a read has got that."""
    with Shell(shell.client, shell="/bin/sh") as other:
        for timeout in (0, 0.02, 0.1):
            assert in_steps(other, "sleep 0.05; echo hi; (exit 3)", timeout) == ("hi\n", "completed", 3)
        assert other.run("sleep 0.2; echo hi; (exit 4)", timeout=0)["state"] == "timeout"
        assert read_until(other, other.prompt) == "hi\n" + other.prompt
        result = wait_on(other, timeout=20)
        assert (result["state"], result["output"], result["exit_code"]) == ("completed", "", 4)


# ---- whose output it is ----


def test_what_was_unread_before_stays_for_who_reads(shell):
    shell.bs("echo old\n", wait=0, idle=0)
    ended(shell)
    assert in_steps(shell, "echo new; sleep 0.3; (exit 2)", 0.1) == ("new\n", "completed", 2)
    assert shell.bs(wait=1) == "old\n"


def test_a_run_that_ended_unasked_leaves_the_next_alone(shell):
    assert shell.run("sleep 0.2; echo late; (exit 5)", timeout=0)["state"] == "timeout"
    ended(shell)
    assert in_steps(shell, "echo own; sleep 0.2", 0.05) == ("own\n", "completed", 0)
    assert shell.bs(wait=1) == "late\n"
    nothing_waits(shell)


def test_a_read_gets_the_rest_and_the_status_stays(shell):
    assert shell.run("sleep 0.2; echo rest; (exit 5)", timeout=0)["state"] == "timeout"
    assert read_until(shell, shell.prompt) == "rest\n" + shell.prompt
    result = wait_on(shell)
    assert (result["state"], result["output"], result["exit_code"]) == ("completed", "", 5)
    nothing_waits(shell)


def test_what_is_typed_behind_it_is_none_of_it(shell):
    assert shell.run("sleep 0.2; echo rest; (exit 5)", timeout=0)["state"] == "timeout"
    ended(shell)
    assert shell.at_once("echo typed; (exit 6)\n").endswith("typed\n" + shell.prompt)
    result = wait_on(shell)
    assert (result["state"], result["output"], result["exit_code"]) == ("completed", "", 5)
    assert shell.out("echo $?") == "6\n"


def test_a_refused_run_changes_nothing(shell):
    assert shell.run("echo first; sleep 2; echo second; (exit 5)", timeout=0.5)["state"] == "timeout"
    with pytest.raises(RpcError, match="busy"):
        shell.run("echo never")
    result = wait_on(shell)
    assert (result["state"], result["output"], result["exit_code"]) == ("completed", "second\n", 5)


def test_a_cap_is_of_the_call_that_asks(shell):
    """What nobody has asked for yet is kept whole."""
    assert shell.run("sleep 0.2; seq 1000; (exit 5)", timeout=0, max_output_bytes=10)["state"] == "timeout"
    ended(shell)
    result = wait_on(shell)
    assert result["output"] == "".join(f"{i}\n" for i in range(1, 1001)) and result["omitted_bytes"] == 0
    assert shell.run("sleep 0.2; seq 1000", timeout=0)["state"] == "timeout"
    ended(shell)
    result = wait_on(shell, max_output_bytes=100)
    assert len(result["output"].encode()) <= 100 and result["omitted_bytes"] > 3700


def test_a_shell_that_ended_meanwhile(shell):
    assert shell.run("sleep 0.2; echo last; exit 5", timeout=0)["state"] == "timeout"
    wait_until(lambda: shell.listed()["state"] == "ended", "the shell's end")
    with pytest.raises(RpcError, match="ended"):
        shell.run("echo never")
    result = wait_on(shell)
    assert (result["state"], result["exit_code"]) == ("exited", 5) and result["output"].startswith("last\n")
    shell.restart()
    nothing_waits(shell)


# ---- clients that go ----


def test_an_abandoned_run_can_be_waited_for(shell, workdir):
    shell.bs("echo old\n", wait=0, idle=0)
    ended(shell)
    call = started(shell, "bash_session_run", command=f"echo before; touch {workdir}/on; sleep 0.5; echo after; (exit 4)")
    exists(workdir / "on")
    kill(call)
    with pytest.raises(RpcError, match="'sleep' is still running"):
        shell.run("echo never")
    result = wait_on(shell)
    assert (result["state"], result["output"], result["exit_code"]) == ("completed", "before\nafter\n", 4)
    assert shell.bs(wait=1) == "old\n"
    nothing_waits(shell)


def test_an_abandoned_run_that_has_ended(shell, workdir):
    call = started(shell, "bash_session_run", command=f"echo before; touch {workdir}/on; sleep 0.3; (exit 4)")
    exists(workdir / "on")
    kill(call)
    ended(shell)
    result = wait_on(shell)
    assert (result["state"], result["output"], result["exit_code"]) == ("completed", "before\n", 4)


def test_one_that_was_interrupted_for_it(shell, workdir):
    call = started(shell, "bash_session_run", command=f"echo before; touch {workdir}/on; sleep 60; echo after",
                   interrupt_abandoned=True)
    exists(workdir / "on")
    kill(call)
    result = wait_on(shell, timeout=30)
    assert (result["state"], result["output"].split("\n")[0], result["exit_code"]) == ("completed", "before", 130)
    assert "after" not in result["output"]


@pytest.mark.parametrize("read", [0, 50])
def test_an_answer_that_did_not_arrive(shell, read):
    params = {"session_name": shell.name, "command": "seq 1000; (exit 3)"}
    ask_and_leave(socket_of(shell.client.dir, shell.name), "bash_session_run", params, read)
    result = wait_on(shell)
    assert (result["state"], result["exit_code"]) == ("completed", 3)
    assert result["output"] == "".join(f"{i}\n" for i in range(1, 1001))
    nothing_waits(shell)


def test_an_answer_in_between_that_did_not_arrive(shell):
    params = {"session_name": shell.name, "command": "echo one; sleep 0.6; echo two; (exit 3)", "timeout": 0.2}
    ask_and_leave(socket_of(shell.client.dir, shell.name), "bash_session_run", params, 0)
    result = wait_on(shell)
    assert (result["state"], result["output"], result["exit_code"]) == ("completed", "one\ntwo\n", 3)


def test_clients_killed_at_any_moment(shell, workdir):
    """Begun once or not at all; what was begun is there to be had, whole, and no other's."""
    chance = random.Random(7)
    for i in range(40):
        call = started(shell, "bash_session_run", command=f"echo {i} >> {workdir}/begun; echo own{i}; (exit {i})")
        time.sleep(chance.uniform(0, 0.03))
        kill(call)
        try:
            result = wait_on(shell, timeout=20)
        except RpcError as nothing:  # it was answered, or has not begun
            assert "no command" in nothing.message
            continue
        assert (result["state"], result["output"], result["exit_code"]) == ("completed", f"own{i}\n", i)
    begun = (workdir / "begun").read_text().split()
    assert len(begun) == len(set(begun))
    shell.works()
