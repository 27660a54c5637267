"""Interrupts: one is enough, wherever it meets the shell; and runs that end with their caller."""
import os
import time

import pytest

from harness.processes import wait_until
from harness.sessions import Shell, exists, kill, read_until, started


SHORT = "while :; do /bin/true; done"


def by_key(shell):
    return shell.bs("\x03", wait=5, idle=0.5)


def by_signal(shell):
    shell.signal("INT")
    return ""


BOTH = pytest.mark.parametrize("interrupt", [by_key, by_signal])


@BOTH
@pytest.mark.parametrize("command", [SHORT, f"({SHORT})", "for ((;;)) { true | /bin/true; }"])
def test_a_loop_of_short_programs(shell, interrupt, command):
    """The signal mostly meets a program that is about to begin or to end."""
    for i in range(5):
        assert shell.run(command, timeout=0.05 + i / 200)["state"] == "timeout"
        interrupt(shell)
        assert shell.out("echo alive") == "alive\n"


@BOTH
def test_a_program_that_handles_it_gets_one(shell, workdir, interrupt):
    text = f"trap 'echo got; touch {workdir}/got' INT; touch {workdir}/on; until [ -e {workdir}/got ]; do sleep 0.1; done; sleep 0.5; trap - INT"
    assert shell.run(f"sh -c \"{text}\"; sleep 0.2; echo next", timeout=0)["state"] == "timeout"
    exists(workdir / "on")
    time.sleep(0.2)
    assert read_until(shell, shell.prompt, interrupt(shell)).count("got") == 1


@BOTH
def test_what_follows_a_program_that_handles_it(shell, workdir, interrupt):
    shell.run(f"sh -c \"trap 'exit 0' INT; touch {workdir}/on; while :; do sleep 0.05; done\"; sleep 0.3; echo next", timeout=0)
    exists(workdir / "on")
    time.sleep(0.2)
    assert read_until(shell, shell.prompt, interrupt(shell)).endswith("next\n" + shell.prompt)


@pytest.mark.parametrize("program", ["sleep 60", "cat", "wc -c", "sleep 60 | cat"])
def test_its_answer_is_one_line_end_and_the_prompt(shell, program):
    """The shell is interrupted as well, and ends the line once more."""
    for _ in range(3):
        shell.bs(f"{program}\n", wait=0, idle=0)
        wait_until(lambda: shell.listed()["foreground"] == program.split()[0], "it to run")
        time.sleep(0.25)  # it is no longer about to begin
        assert shell.at_once("\x03") == "\n" + shell.prompt


def test_what_is_typed_behind_it_is_not_interrupted(shell):
    for _ in range(3):
        assert shell.run(SHORT, timeout=0.05)["state"] == "timeout"
        shell.bs("\x03", wait=5, idle=0.5)
        assert "slept" in shell.at_once("sleep 0.2 && echo slept\n")


def test_at_the_prompt(shell):
    by_signal(shell)
    by_key(shell)
    assert shell.out("sleep 0.3; echo hi") == "hi\n"


def test_the_start_of_a_shell(new_client, workdir):
    """It gets no hook at its prompt then, and is given one."""
    (workdir / ".bashrc").write_text(f"touch {workdir}/on\nsleep 60\n")
    shell = Shell.__new__(Shell)
    shell.client = new_client(env={"HOME": str(workdir)})
    shell.name = shell.client.new()
    exists(workdir / "on")
    shell.bs("\x03", wait=5, idle=1)
    assert shell.out("(exit 3)", status=3) == ""
    shell.works()


# ---- abandoned runs ----


def abandoned(shell, command, marker, **more):
    call = started(shell, "bash_session_run", command=command, **more)
    if marker:
        exists(marker)
    kill(call)


def test_an_abandoned_run_goes_on(shell, workdir):
    abandoned(shell, f"touch {workdir}/on; sleep 0.5; touch {workdir}/done", workdir / "on")
    exists(workdir / "done")
    shell.works()


@pytest.mark.parametrize("command", ["sleep 60", "(sleep 60; :)", SHORT, "while :; do :; done"])
def test_an_abandoned_run_is_interrupted(shell, workdir, command):
    for i in range(2):
        on = workdir / f"on{i}"
        abandoned(shell, f"touch {on}; {command}; touch {workdir}/not", on, interrupt_abandoned=True)
        assert shell.out("echo alive", timeout=20) == "alive\n"
    assert not (workdir / "not").exists()


def test_a_run_abandoned_at_any_moment(shell, workdir):
    """Interrupted, or not begun; the next one finds the shell at its prompt, and nothing in its line."""
    for i in range(20):
        call = started(shell, "bash_session_run", command="sleep 60", interrupt_abandoned=True)
        time.sleep(i % 20 / 1000)
        kill(call)
        if i % 3 == 0:
            assert shell.out("echo alive", timeout=20) == "alive\n"
        elif i % 3 == 1:
            wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
            assert "alive 42\n" in shell.at_once("echo alive $((6*7))\n")


def test_a_run_abandoned_before_it_began(new_client, workdir):
    """The start of the shell is nobody's to interrupt."""
    (workdir / ".bashrc").write_text(f"touch {workdir}/on\nsleep 1\ntouch {workdir}/whole\n")
    shell = Shell.__new__(Shell)
    shell.client = new_client(env={"HOME": str(workdir)})
    shell.name = shell.client.new()
    abandoned(shell, f"touch {workdir}/harm", workdir / "on", interrupt_abandoned=True)
    assert shell.out("echo hi") == "hi\n"
    assert (workdir / "whole").exists() and not (workdir / "harm").exists()


def test_a_restart_while_it_is_interrupted(shell):
    call = started(shell, "bash_session_run", command="trap '' INT; sleep 60", interrupt_abandoned=True)
    wait_until(lambda: shell.listed()["foreground"] == "sleep", "the program")
    kill(call)
    shell.restart()
    shell.works()
    assert os.path.exists(f"/proc/{shell.pid()}")
