"""When an answer comes: at once where there is nothing to wait for, and never early."""
import concurrent.futures
import os
import subprocess
import tempfile
import time

import pytest

from harness import needs
from harness.machine import HANG
from harness.processes import wait_until
from harness.sessions import AT_ONCE, LONG, SANITIZED, Shell, exists, read_until


# ---- at once: at the prompt ----


@pytest.mark.parametrize("text, shown", [
    ("echo hi\n", "hi\n"), ("true\n", ""), ("\n", ""), ("# a comment\n", ""), ("false\n", ""), ("x=1\n", ""),
    ("sleep 0.3\n", ""),
    ("sleep 30 &\n", None), ("echo a; echo b >&2\n", "a\nb\n"), ("nothing-of-that-name\n", None), ("echo )\n", None),
    ("printf no-newline\n", "no-newline"), ("cd /\n", ""), ("echo 1\necho 2\necho 3\n", None),
], ids=repr)
def test_the_prompt_is_back(shell, text, shown):
    answer = shell.at_once(text)
    assert answer.endswith(shell.prompt)
    assert shown is None or answer == shown + shell.prompt


@pytest.mark.skipif(os.geteuid() != 0 or SANITIZED, reason="strace of a process of one's own may be forbidden")
@needs.programs("strace")
def test_a_run_looks_at_its_shell_three_times(shell, workdir):
    """Before, at its word and after, each time twice; where a look is dear (gVisor) that is what a run takes. A busy machine has
    it look more often, so one of many will do."""
    trace = workdir / "trace"
    words = ["strace", "-e", "trace=open,openat,recvfrom", "-o", trace, "-p", str(shell.keeper())]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as tracer:
        try:
            assert b"attached" in tracer.stderr.readline()
            for _ in range(100):
                shell.run("echo hi")
                looks = [part.count("/syscall") for part in trace.read_text().split("recvfrom(")[1:]]
                if any(0 < n <= 8 for n in looks[:-1]):  # the last one may go on
                    return
        finally:
            tracer.terminate()
    raise AssertionError(looks)


def test_a_prompt_without_text(shell):
    """An empty prompt is one as well."""
    shell.at_once("PS1=\n")
    assert shell.at_once("echo hi\n") == "hi\n"
    assert shell.at_once("true\n") == ""


def test_something_came_before(shell, workdir):
    """A read waits for nothing when output of a job is there and the shell is at its prompt."""
    shell.at_once(f"(sleep 0.2; echo from-the-job; touch {workdir}/done) &\n")
    exists(workdir / "done")
    assert shell.at_once() == "from-the-job\n"


def test_c019_a_quiet_read_waits(shell):
    began = time.monotonic()
    assert shell.bs(wait=1) == ""
    assert 0.9 < time.monotonic() - began < AT_ONCE


def test_a_quiet_read_gets_what_comes_meanwhile(shell):
    shell.at_once("(sleep 0.5; echo from-the-job) &\n")
    assert shell.at_once() == "from-the-job\n"


def test_typed_text_without_enter(shell):
    """The shell has read it and waits for the rest."""
    assert shell.at_once("echo par") == ""
    assert shell.at_once("tial\n") == "partial\n" + shell.prompt


# ---- at once: a program waits for input ----

PYTHON = "python3 -c '{}'"


@pytest.mark.parametrize("command, shown", [
    ("cat", ""),
    ("cat | cat", ""),
    ("cat - | wc -l", ""),
    ("(cat)", ""),
    ("sh -c cat", ""),
    ("sh -c 'sleep 0.3; cat; :'", ""),
    ("bash -c 'echo q; read x'", "q\n"),
    ("sh -c 'read x </dev/tty'", ""),
    ("read x", ""),
    ("read -p 'name? ' x", "name? "),
    ("read -s -p 'secret? ' x", "secret? "),
    ("read -n 1 -p 'y/n ' x", "y/n "),
    ("read -t 60 -p 'soon? ' x", "soon? "),
    ("read -e -p 'edit? ' x", "edit? "),
    ("select x in a b; do break; done", None),
    (PYTHON.format("input(\"name? \")"), "name? "),
    (PYTHON.format("import getpass; getpass.getpass()"), "Password: "),
    (PYTHON.format("import sys; sys.stdin.read()"), ""),
    (PYTHON.format("import select; select.select([0], [], [])"), ""),
    (PYTHON.format("import select; p = select.poll(); p.register(0, 1); p.poll()"), ""),
    (PYTHON.format("import select; p = select.epoll(); p.register(0, 1); p.poll()"), ""),
    (PYTHON.format("import os; os.readv(0, [bytearray(9)])"), ""),
    (PYTHON.format("import threading; t = threading.Thread(target=input); t.start(); t.join()"), ""),
    (PYTHON.format("import subprocess; subprocess.run([\"cat\"])"), ""),
    ("python3 -q", None),  # a newer one says what the terminal lacks
    ("less -d {}/long", None),
    ("sh", None),
    ("bash --norc", None),
    ("vi {}/long", None),
    ("gdb -q -nx", None),
    ("dd of=/dev/null status=none", ""),
    ("bc -q", ""),
    ("node", None),
], ids=lambda value: value.replace("/", "") if isinstance(value, str) else "")
def test_a_program_waits_for_input(shell, workdir, command, shown):
    program = command.split()[0].strip("()")
    if program not in ("read", "select"):
        needs.program(program)
    (workdir / "long").write_text("".join(f"line {i}\n" for i in range(200)))
    answer = shell.at_once(command.format(workdir) + "\n")
    assert shown is None or answer == shown
    assert shell.listed()["state"] == "awaiting_input"


# ---- never early ----


SLOW = [
    "sleep 0.3; echo END",
    "sleep 0.3 & wait; echo END",
    "sleep 0.3 & wait $!; echo END",
    "sleep 0.3 & fg; echo END",
    "x=$(sleep 0.3; echo END); echo $x",
    "echo `sleep 0.3`END",
    "read -t 0.3 x < <(sleep 1); echo END",
    "mkfifo {}/f; exec 9<>{}/f; read -t 0.3 -u 9 x; echo END",
    "exec 3< <(sleep 0.3; echo END); read -u 3 x; echo $x",
    "mapfile x < <(sleep 0.3; echo END); echo $x",
    "cat <(sleep 0.3; echo END)",
    "sleep 0.3 | cat; echo END",
    "sleep 0.3 | sleep 0.1; echo END",
    "(sleep 0.3; echo END)",
    "sh -c 'sleep 0.3; :'; echo END",
    "timeout 9 sleep 0.3; echo END",
    "setsid -w sleep 0.3; echo END",
    "time sleep 0.3; echo END",
    "flock {}/lock sleep 0.3; echo END",
    "for i in 1 2 3 4 5; do sleep 0.1; done; echo END",
    "while read l; do sleep 0.15; done <<< $'a\\nb\\nc\\nd'; echo END",
    "(sleep 0.3; touch {}/f) & while ! [ -e {}/f ]; do :; done; echo END",
    "coproc sleep 0.3; wait; echo END",
    "cat <<E\n$(sleep 0.3)END\nE",
    "python3 -c 'import time; time.sleep(0.3)'; echo END",
    "python3 -c 'import select, os; select.select([os.pipe()[0]], [], [], 0.3)'; echo END",
    "python3 -c 'import select, os; p = select.poll(); p.register(os.pipe()[0]); p.poll(300)'; echo END",
    "python3 -c 'import subprocess; subprocess.run([\"sleep\", \"0.3\"])'; echo END",
    "python3 -c 'import threading, time; t = threading.Thread(target=time.sleep, args=[0.3]); t.start(); t.join()'; echo END",
    "python3 -c 'import signal; signal.signal(14, lambda *a: None); signal.setitimer(0, 0.3); signal.pause()'; echo END",
    "stty -icanon; sleep 0.3; stty icanon; echo END",
    "trap 'echo; sleep 0.3; echo END' USR1; kill -USR1 $$",
    "sleep 0.3\necho END",
    "sleep 0.15\nsleep 0.15\nsleep 0.15\necho END",
    "echo $(sleep 0.2)a\necho $(sleep 0.2)END",
    "PROMPT_COMMAND='sleep 0.3; echo END'",
    "PROMPT_COMMAND+=('sleep 0.3; echo END')",
    "PS1='$(sleep 0.3)END> '",
]


@pytest.fixture(scope="module")
def slow_answers(server):
    """What the SLOW commands are answered, each typed into a session of its own, several at a time."""

    def answer(text):
        with tempfile.TemporaryDirectory() as folder, Shell(server) as shell:
            began = time.monotonic()
            answer = shell.at_once(text.replace("{}", folder) + "\n")
            return answer, time.monotonic() - began, shell.bs(wait=0), shell.prompt

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(zip(SLOW, [pool.submit(answer, text) for text in SLOW]))


@pytest.mark.parametrize("text", SLOW, ids=lambda text: text.replace("/", ""))
def test_never_early(slow_answers, text):
    """With times that are long: a pause of a command is not its end. Only a prompt, or END, is."""
    answer, spent, later, prompt = slow_answers[text].result()
    assert "END" in answer, answer
    assert spent > 0.25, f"nothing slow: {answer}"
    assert answer.endswith("END> " if "PS1" in text else prompt) and later == ""


def test_never_early_nor_mixed_up(shell):
    """Right after a write the shell still looks as if it waited at its prompt."""
    for i in range(200):
        assert shell.at_once(f"echo {i}\n") == f"{i}\n" + shell.prompt


def test_never_early_with_programs(shell):
    for i in range(60):
        assert shell.at_once(f"/bin/echo {i} | cat; (exit 3)\n") == f"{i}\n" + shell.prompt


# ---- the two times ----


def test_c019_slow_but_steady(shell):
    assert shell.bs("for i in 1 2 3 4 5 6; do echo $i; sleep 0.12; done\n",
                    idle=3) == "1\n2\n3\n4\n5\n6\n" + shell.prompt


def test_c019_a_pause_longer_than_the_idle_time(shell):
    assert shell.bs("echo a; sleep 1.2; echo b\n") == "a\n"
    assert read_until(shell, shell.prompt) == "b\n" + shell.prompt


def test_c019_nothing_for_as_long_as_one_waits(shell):
    began = time.monotonic()
    assert shell.bs("sleep 1.5; echo b\n", wait=1, idle=25) == ""
    assert 0.9 < time.monotonic() - began
    assert read_until(shell, shell.prompt) == "b\n" + shell.prompt


def test_c019_zeros_return_at_once(shell):
    began = time.monotonic()
    seen = shell.bs("sleep 0.5; echo text\n", wait=0, idle=0)
    assert shell.bs(wait=0, idle=0) == "" and time.monotonic() - began < AT_ONCE
    assert seen + read_until(shell, shell.prompt) == "text\n" + shell.prompt


def test_an_idle_time_in_fractions(shell):
    began = time.monotonic()
    assert shell.bs("echo a; sleep 60\n", wait=LONG, idle=0.05) == "a\n"
    assert time.monotonic() - began < AT_ONCE
    shell.bs("\x03")


def test_a_stream_that_pauses_after_much(shell):
    """4096 bytes and a pause are enough, whatever the idle time."""
    answer = shell.at_once("head -c 5000 /dev/zero | tr '\\0' x; sleep 12\n")
    assert answer == "x" * 5000
    shell.bs("\x03")


# ---- jobs in the background ----


def test_c018_background_jobs_do_not_hold_the_call(shell, workdir):
    answer = shell.at_once("sleep 30 & echo bg\n")
    assert "bg\n" in answer and answer.endswith(shell.prompt)
    assert shell.at_once("true\n") == shell.prompt
    shell.at_once(f"nohup sh -c 'sleep 0.5; echo late > {workdir}/late' >/dev/null 2>&1 &\n")
    exists(workdir / "late")
    assert "late\n" in shell.at_once(f"cat {workdir}/late\n")


def test_c018_a_job_that_prints_without_end_does_not_hold_the_call(shell):
    shell.bs("(while :; do echo tick; sleep 0.1; done) &\n")
    began = time.monotonic()
    assert "hi\n" in shell.bs("echo hi\n", wait=LONG, idle=LONG) and time.monotonic() - began < AT_ONCE
    shell.bs("kill %1\n")


def test_a_job_outlives_the_client_that_started_it(shell, workdir):
    with shell.client.popen("bash_session", "send", shell.name, f"(sleep 0.5; echo x > {workdir}/x) &") as sent:
        sent.communicate(timeout=HANG)
    wait_until(lambda: (workdir / "x").exists() and (workdir / "x").read_text() == "x\n", "the job's file")


def test_a_poll_that_was_stopped_and_goes_on(shell):
    """The kernel begins it anew by another call (restart_syscall)."""
    poll = "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll(); print('got', input())"
    assert shell.run(f"python3 -c \"{poll}\"")["state"] == "awaiting_input"
    assert "Stopped" in shell.at_once("\x1a")
    assert shell.run("fg", timeout=20)["state"] == "awaiting_input"
    assert "got line\n" in shell.at_once("line\n")
    shell.works()
