"""bash_session_run among all that a shell's user may do to it: options, traps, prompts, functions, jobs, history."""
import os
import re
import shlex
import shutil
import time

import pytest

from harness import needs
from harness.client import TOOLERR, RpcError
from harness.processes import wait_until
from harness.sessions import Shell


# ---- state ----


def test_variables_functions_aliases_and_directory_stay(shell, workdir):
    shell.out(f"cd {workdir}; x='a  b'; declare -A m=([k]=v); export E=env; f() {{ echo f:$1; return 5; }}; alias ll='echo aliased'; umask 027")
    assert shell.out('echo "$x" ${m[k]}; sh -c "echo \\$E"; pwd; umask') == f"a  b v\nenv\n{workdir}\n0027\n"
    assert shell.out("f z", 5) == "f:z\n"
    assert shell.out("ll x") == "aliased x\n"
    assert shell.out("unalias ll; unset -f f; unset x; echo \"[$x]\"") == "[]\n"
    shell.out("f", 127)


def test_an_alias_works_in_the_next_line(shell):
    assert shell.out("alias hello='echo aliased'\nhello x") == "aliased x\n"


def test_what_the_shell_knows_of_the_last_command(shell):
    shell.out("true | (exit 3) | true")
    assert shell.out("echo ${PIPESTATUS[@]}") == "0 3 0\n"
    shell.out("echo a b")
    assert shell.out("echo $_") == "b\n"
    shell.out("(exit 7)", 7)
    assert shell.out("echo $? $?") == "7 7\n"
    shell.out("no-such-program-at-all", 127)
    assert shell.out("echo $?") == "127\n"


def test_status_and_last_word_survive_interact_too(shell):
    shell.at_once("(exit 6)\n")
    assert shell.at_once("echo $?\n") == "6\n" + shell.prompt
    shell.at_once("echo a b\n")
    assert shell.at_once("echo $_\n") == "b\n" + shell.prompt


def test_it_is_an_interactive_shell(shell):
    flags = shell.out("echo $-").strip()
    assert "i" in flags and "m" in flags
    assert shell.out("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo terminal") == "terminal\n"
    assert shell.out("shopt -q login_shell || echo no-login") == "no-login\n"
    assert shell.out("echo $0 $SHLVL $#").split()[1:] == ["1", "0"]


def test_nothing_of_ours_is_seen(shell):
    """No descriptor, variable, function, alias, trap or job that the tool needs shows up where a command would meet it."""
    assert sorted(shell.out("sh -c 'ls /proc/self/fd'").split()) == ["0", "1", "2", "3"]
    assert "TOOLBOX" not in shell.out("env") and "/dev/pts" not in shell.out("env")
    assert shell.out("declare -F; alias | grep -iv -e ls= -e grep= -e ll= -e la= -e l=; trap -p; jobs") in ("",
                                                                                                            "trap -- '' SIGTSTP\n")
    assert shell.out("kill -0 $$; ps -o pid= --ppid $$ | wc -l") == "2\n"  # ps and wc


def test_jobs(shell):
    answer = shell.out("sleep 30 &")
    assert re.fullmatch(r"\[1\] \d+\n", answer)
    assert "Running" in shell.out("jobs")
    assert shell.out("kill %1; wait %1 2>/dev/null; echo rc=$?").endswith("rc=143\n")
    shell.out("(sleep 0.3; exit 4) &")
    assert shell.out("wait $!; echo rc=$?").endswith("rc=4\n")
    shell.out("sleep 0.5 &")
    result = shell.run("fg")
    assert result["state"] == "completed" and "sleep 0.5" in result["output"] and result["duration_ms"] < 20_000


@pytest.mark.parametrize("command,status", [("echo hi", 0), ("wait %1", 4)])
def test_a_job_that_ended_meanwhile(shell, workdir, command, status):
    """bash reports it once it is asked to do something; that is none of what the next command prints, and its status is still to be had.
    (5.3 reports before it tells.)"""
    shell.out(f"(until [ -e {workdir}/end ]; do sleep 0.02; done; exit 4) &")
    pid = shell.out("echo $!").strip()
    (workdir / "end").touch()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the shell to know that the job has ended")
    output = shell.out(command, status)
    assert status or output == "hi\n"
    assert shell.out("jobs") == ""


def test_a_job_that_prints_does_not_end_a_run(shell):
    """What a job prints while a command runs shows up as on a terminal; completion is not fooled by it."""
    shell.out("(while :; do echo tick; sleep 0.05; done) & sleep 0.2")
    for i in range(10):
        assert f"own-{i}\n" in shell.out(f"echo own-{i}; sleep 0.1; (exit {i})", i)
    shell.out("kill %1; wait 2>/dev/null; true")
    shell.bs(wait=0)
    shell.works()


def test_a_stopped_job(shell):
    result = shell.run("sh -c 'kill -STOP $$; exit 3'")
    assert result["state"] == "completed" and result["exit_code"] > 128 and "Stopped" in result["output"]
    assert shell.run("fg")["exit_code"] == 3
    shell.works()


def test_standard_streams_redirected_by_exec(shell, workdir):
    shell.run(f"exec 2>{workdir}/err")
    assert shell.out("echo out; echo err >&2") == "out\n"
    shell.out("exec 2>&1; exec 5<>/dev/null")
    shell.works()
    shell.run(f"exec >{workdir}/out")
    assert shell.run("echo hidden; (exit 3)")["exit_code"] == 3
    shell.run("exec >/dev/tty")
    shell.works()
    assert "hidden\n" in (workdir / "out").read_text()


# ---- history ----


def test_the_history_is_what_was_run(shell):
    shell.out("history -c")
    commands = ["echo one", "echo two; # remark", "for i in 1 2\ndo echo $i\ndone", "cat <<E\ntext\nE", "echo\ta",
                "echo ü"]
    for command in commands:
        shell.out(command)
    shell.bs("echo typed\n")
    history = shell.out("history")
    assert "pts" not in history and "PROMPT" not in history and "printf" not in history
    assert [re.sub(r"^ *\d+  ", "", line) for line in history.splitlines()][0] == "echo one"
    for command in commands + ["echo typed", "history"]:
        assert all(line in history for line in command.split("\n")), history
    assert history.count("echo one") == 1 and len(re.findall(r"^ *\d+  ", history, re.M)) == len(commands) + 2


def test_the_history_can_be_used(shell):
    shell.out("history -c; true")
    shell.out("echo remembered")
    assert shell.out("fc -s 'echo rem'").endswith("remembered\n")
    assert "echo remembered" in shell.out("fc -ln -5 -1")


@pytest.fixture
def at_home(new_client, workdir):
    """Starts sessions whose user has a history of his own."""
    for name in (".bash_history", ".ash_history", ".sh_history"):
        (workdir / name).write_text("echo mine\n")
    client = new_client(env={"HOME": str(workdir)})
    return lambda **params: Shell(client, **params)


def histories(workdir):
    return {path.name: path.read_text() for path in workdir.glob(".*history*")}


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/dash", "busybox"])
@pytest.mark.parametrize("end", ["exit", "close", "restart"])
def test_no_history_file_is_written(at_home, workdir, shell, end):
    """What an agent runs is not left in the history of whose home it is."""
    if shell == "busybox":
        if not shutil.which("busybox"):
            pytest.skip("no busybox here")
        shell = str(workdir / "ash")
        os.symlink(shutil.which("busybox"), shell)
    before = histories(workdir)
    session = at_home(shell=shell)
    session.out("export SECRET=hunter2")
    session.bs("echo typed\n")
    if end == "exit":
        session.run("exit")
    else:
        getattr(session, end)()
    assert histories(workdir) == before


def test_a_history_file_that_is_asked_for(at_home, workdir):
    with at_home(env={"HISTFILE": str(workdir / ".my_history")}) as session:
        session.run("echo one; history -a")
        assert "echo one" in (workdir / ".my_history").read_text()
    with at_home() as session:
        assert session.out("echo ${HISTFILE-unset}") == "unset\n"
        session.run("HISTFILE=~/.bash_history; echo two; exit")
    assert "echo two" in (workdir / ".bash_history").read_text()


# ---- options ----


def test_set_e(shell):
    shell.out("set -e")
    assert shell.out("echo still; false || true; if false; then :; fi") == "still\n"
    result = shell.run("echo last; false; echo never")
    assert (result["state"], result["exit_code"]) == ("exited",
                                                      1) and result["output"].startswith("last\n") and "never" not in result["output"]
    ended(shell)


def test_set_u(shell):
    shell.out("set -u")
    result = shell.run("echo $no_such_variable; echo never")
    assert result["state"] == "completed" and result["exit_code"] != 0 and "unbound" in result["output"] and "never" not in result["output"]
    shell.works()


def test_set_x(shell):
    assert "+ " not in shell.out("set -x")
    assert shell.out("echo hi") == "+ echo hi\nhi\n"
    assert shell.out("(exit 3)", 3) == "+ exit 3\n"
    assert shell.at_once("echo hi\n") == "+ echo hi\nhi\n" + shell.prompt
    shell.out("set +x")
    shell.works()


@pytest.mark.parametrize("option",
                         ["set -f", "set -k", "set -B", "set +m", "set -o posix", "set -C", "set -a", "set -b",
                          "set -T", "set -E", "set -h", "set -P",
                                    "set -o ignoreeof", "set -o vi", "set +o emacs +o vi", "set +o history",
                                    "shopt -s failglob nullglob",
                                    "shopt -s extglob", "shopt -u sourcepath cmdhist", "shopt -s lithist",
                                    "shopt -s lastpipe", "shopt -u interactive_comments",
                                    "shopt -s nocasematch", "shopt -u promptvars", "shopt -s extdebug", "set -H",
                                    "shopt -s xpg_echo", "shopt -u expand_aliases"])
def test_options(shell, option):
    shell.out(option)
    shell.works()
    assert shell.out("for i in 1 2\ndo\n\techo $i\ndone; (exit 3)", 3) == "1\n2\n"
    assert shell.at_once("echo typed\n") == "typed\n" + shell.prompt or "promptvars" in option


@pytest.mark.parametrize("command",
                         ["IFS=x", "IFS=", "PATH=/nowhere", "unset PATH", "POSIXLY_CORRECT=1", "TMOUT=60",
                          "LANG=C LC_ALL=C", "LC_ALL=de_DE.UTF-8",
                                     "BASH_ENV=/dev/null", "TERM=xterm", "export TERM=linux",
                                     "HISTCONTROL=ignoreboth HISTSIZE=0",
                                     "unset HISTFILE HOME PWD", "COLUMNS=5 LINES=2", "hash -r", "ulimit -n 20",
                                     "ulimit -f 0", "ulimit -u 400 2>/dev/null; true",
                                     "umask 777", "cd /; cd proc 2>/dev/null; true", "exec 0</dev/tty", "stty -echo",
                                     "stty raw",
                                     "stty -icanon min 0 time 0", "stty intr x", "stty eof z",
                                     "bind 'set editing-mode vi'",
                                     "bind 'set enable-bracketed-paste on'",
                                     "bind '\"a\": \"b\"' 2>/dev/null; bind '\"a\": self-insert'",
                                     "bind 'set convert-meta on'",
                                     "printf '\\033[?2004h\\033[?1049h\\033c'", "readonly PS1 PS2 PS4", "readonly IFS",
                                     "unset PS1 PS2"])
def test_whatever_is_set(shell, command):
    assert shell.run(command)["state"] == "completed"
    if "PATH" in command:
        shell.out("PATH=/usr/bin:/bin")
    shell.works()
    assert shell.out("echo a\necho b; (exit 3)", 3) == "a\nb\n"


@pytest.mark.parametrize("command", ["stty echo", "stty sane", "TERM=linux tput reset >/dev/null; stty sane echo"])
def test_a_terminal_that_echoes(shell, command):
    """What was typed is no output of the command, even where the terminal shows it. (Its newlines are the terminal's then.)"""
    shell.run(command)
    for word in ("one", "two"):
        assert shell.out(f"echo {word}").replace("\r", "") == f"{word}\n"
    assert shell.out("for i in 1 2\ndo\n\techo $i\ndone; (exit 3)", 3).replace("\r", "") == "1\n2\n"


def known(command, why):
    return pytest.param(command, marks=pytest.mark.xfail(reason=why, strict=True))


@pytest.mark.parametrize("command", [
    "printf() { echo mine; }", "read() { echo mine; }", "alias printf='echo mine'",
    "alias read='echo mine' eval='echo mine' builtin='echo mine' command='echo mine'",
    "eval() { echo mine; }",
    known("builtin() { echo mine; }", "the prompt hook goes through `builtin`: no status is told"),
    "command() { echo mine; }", "trap() { echo mine; }",
    "exec() { echo mine; }",
    known("enable -n printf read", "the prompt hook has nothing left to tell with"),
    "function :() { echo mine; }", "test() { echo mine; }", "[() { echo mine; }",
    "set() { echo mine; }",
    "history() { echo mine; }", "bind() { echo mine; }", "local() { echo mine; }", "export() { echo mine; }",
    "history -c", "unset -f _a",
    "_() { echo mine; }", "__toolbox() { echo mine; }",
])
def test_whatever_is_redefined(shell, command):
    """A function or alias of a builtin's name is the user's: it shows in nothing of ours."""
    shell.run(command)
    shell.works()
    assert shell.out("echo a\necho b; (exit 3)", 3) == "a\nb\n"
    assert shell.run("cd /tmp; /bin/true")["cwd"] == "/tmp"


# ---- prompts ----


@pytest.mark.parametrize("command", [
    "PS1=", "PS1='$ '", "unset PS1", "PS1='\\u@\\h \\w\\$ '", "PS1=$'two\\nlines> '", "PS1='$(echo computed)> '",
    "PS1='$(sleep 0.2)slow> '",
    "PS1='\\[\\e[1;32m\\]green\\[\\e[0m\\]> '", "PS1='$(false)$? > '", "PS1='ü😀> '", "PS1='%s\\n%d> '", "PS2=",
    "PS2='more> '", "PS4='trace '",
    "PROMPT_COMMAND=", "unset PROMPT_COMMAND", "PROMPT_COMMAND='echo from-the-prompt'", "PROMPT_COMMAND=false",
    "PROMPT_COMMAND='sleep 0.2'",
    "PROMPT_COMMAND=(true 'echo from-the-prompt')", "PROMPT_COMMAND+=('echo from-the-prompt')",
    "PROMPT_COMMAND='PS1=\"[$?] \"'",
    "PROMPT_COMMAND='nonsense )'", "PROMPT_COMMAND='history -a; history -n'", "PROMPT_COMMAND='cd /tmp'",
    "readonly PROMPT_COMMAND", "PROMPT_DIRTRIM=1",
    "PROMPT_COMMAND='read -t 0.1 x'", "PROMPT_COMMAND='(exit 9)'",
])
def test_a_changed_prompt(shell, command):
    assert shell.run(command)["state"] == "completed"
    for word in ("one", "two"):
        assert shell.out(f"echo {word}; (exit 3)", 3) == f"{word}\n"
        assert shell.out("for i in 1 2\ndo\n\techo $i\ndone") == "1\n2\n"
    assert shell.at_once("echo typed\n").startswith("typed\n")


def test_a_prompt_that_knows_the_status(shell):
    """The status that the user's own prompt command and prompt see is the command's."""
    shell.run("PROMPT_COMMAND='seen=$?'; PS1='[$?] '")
    shell.out("(exit 7)", 7)
    assert shell.out("echo $seen") == "7\n"
    assert shell.at_once("(exit 5)\n") == "[5] "


# ---- traps ----


@pytest.mark.xfail(reason="the key that gives a run to bash makes the trap print once more", strict=True)
def test_debug_trap(shell):
    shell.run("trap 'echo D' DEBUG")
    assert shell.out("echo hi") == "D\nhi\n"
    assert shell.out("echo a; echo b") == "D\na\nD\nb\n"
    assert shell.at_once("echo hi\n") == "D\nhi\n" + shell.prompt
    assert shell.out("(exit 3)", 3) in ("", "D\n")
    shell.run("trap - DEBUG")
    shell.works()


@pytest.mark.xfail(reason="the trap sees the two builtins of the prompt hook", strict=True)
def test_debug_trap_sees_the_users_commands_alone(shell, workdir):
    shell.run(f"trap 'echo \"$BASH_COMMAND\" >>{workdir}/log' DEBUG")
    shell.out("echo one")
    shell.bs("echo two\n")
    shell.run("trap - DEBUG")
    assert (workdir / "log").read_text().splitlines() == ["echo one", "echo two", "trap - DEBUG"]


def test_err_trap(shell):
    shell.run("trap 'echo E' ERR")
    assert shell.out("false", 1) == "E\n"
    assert shell.out("true") == ""
    assert shell.out("echo hi") == "hi\n"


def test_return_trap(shell):
    shell.run("set -T; trap 'echo R' RETURN; f() { :; }")
    assert shell.out("f") == "R\n"
    assert shell.out("echo hi") == "hi\n"


def test_exit_trap(shell):
    shell.run("trap 'echo bye' EXIT")
    result = shell.run("echo last; exit 4")
    assert (result["state"], result["exit_code"]) == ("exited", 4)
    assert "last\n" in result["output"] and "bye\n" in result["output"]
    ended(shell)


@pytest.mark.parametrize("trap",
                         ["trap '' INT", "trap 'echo I' INT", "trap 'echo C' CHLD", "trap '' TERM HUP",
                          "trap 'exit 9' USR1", "trap '' TSTP TTIN TTOU", "trap 'echo P' PIPE"])
def test_signal_traps(shell, trap):
    shell.run(trap)
    for i in range(3):
        result = shell.run(f"/bin/echo {i}; (exit 3)")
        assert (result["state"], result["exit_code"]) == ("completed", 3) and f"{i}\n" in result["output"]
    assert shell.at_once("echo typed\n").startswith("typed\n")


# ---- the shell ends or becomes another ----


def ended(shell):
    assert shell.listed()["state"] == "ended"
    for _ in range(2):
        with pytest.raises(RpcError, match="ended.*restart") as caught:
            shell.run("echo never")
        assert caught.value.code == TOOLERR
    shell.restart()
    shell.works()


@pytest.mark.parametrize("command, status",
                         [("exit", 0), ("exit 7", 7), ("false; exit", 1), ("exec true", 0),
                          ("exec sh -c 'sleep 0.3; exit 3'", 3),
                                             ("kill -9 $$", -9), ("logout 2>/dev/null; exit 5", 5),
                                             ("exec 2>/dev/null; exit 6", 6)])
def test_the_shell_ends(shell, command, status):
    result = shell.run(f"echo last words; {command}")
    assert (result["state"], result["exit_code"]) == ("exited", status)
    assert result["output"].startswith("last words\n")
    ended(shell)


def test_exit_in_another_shell_is_none(shell):
    assert shell.out("bash -c 'exit 3'", 3) == ""
    assert shell.out("(exit 4)", 4) == ""
    assert shell.out("f() { (exit 5); }; f", 5) == ""
    shell.works()


@pytest.mark.parametrize("command",
                         ["exec bash", "exec bash --norc", "exec env -i PATH=/usr/bin:/bin bash --norc --noprofile",
                          "exec bash -l", "exec bash --posix"])
def test_exec_of_a_shell(shell, command):
    """It is a shell all the same, with a prompt of its own."""
    pid = shell.pid()
    result = shell.run(command, timeout=30)
    assert result["state"] in ("completed", "awaiting_input")
    if result["state"] == "completed":
        assert result["exit_code"] in (0, None)
        assert shell.out("echo $$; (exit 3)", 3) == f"{pid}\n"
        shell.works()
    else:
        assert f"{pid}\n" in shell.at_once("echo $$\n")
    assert "typed\n" in shell.at_once("echo typed\n")
    shell.restart()
    shell.works()


def test_exec_of_another_shell(shell):
    """Where completion can't be learnt any more it says so, at once, and interact goes on."""
    result = shell.run("exec sh", timeout=30)
    assert result["state"] in ("completed", "awaiting_input")
    assert "typed\n" in shell.at_once("echo typed\n")
    shell.restart()
    shell.works()


def test_exec_of_a_program_that_goes_on(shell):
    assert shell.run("exec sleep 60", timeout=0.3)["state"] == "timeout"
    with pytest.raises(RpcError, match="busy"):
        shell.run("echo x")
    assert "signal 2" in shell.at_once("\x03")
    ended(shell)


def test_a_shell_that_dies_in_a_run(shell):
    result = shell.run("echo before; (sleep 0.3; kill -9 $$) & sleep 60", timeout=30)
    assert (result["state"], result["exit_code"]) == ("exited", -9) and "before\n" in result["output"]
    ended(shell)


def test_run_and_interact_share_the_shell(shell):
    shell.bs("x=typed\n")
    assert shell.out("echo $x; x=run") == "typed\n"
    assert shell.at_once("echo $x\n") == "run\n" + shell.prompt
    shell.bs("echo unread\n", wait=0, idle=0)
    wait_until(lambda: shell.listed()["state"] == "prompt", "the prompt")
    assert shell.out("echo own") == "own\n"
    seen = shell.bs(wait=1)
    assert seen == "" or seen.startswith("unread\n")
    assert "own" not in seen


@pytest.mark.parametrize("key", ["\x02", "\x1a", "\x00", "\x7f", "x\x7f"])
def test_a_key_that_leaves_the_line_empty_is_in_nobodys_way(shell, key):
    shell.out("sh -c 'exit 7'", 7)
    shell.bs(key, wait=0, idle=0)
    assert shell.out("echo $?") == "7\n"
    shell.works()


def test_a_half_typed_line_is_not_run(shell):
    """What was typed and not entered is refused, or left alone: never part of a command that is run."""
    shell.at_once("echo half-")
    try:
        assert shell.out("echo whole") == "whole\n"
    except RpcError as refused:
        assert refused.code == TOOLERR
        shell.at_once("\x03")
    shell.works()


@pytest.mark.parametrize("start", ["TMOUT=1", "export TMOUT=1", "readonly TMOUT=1", "declare -r TMOUT=1", "typeset -ixr TMOUT=1"])
@pytest.mark.parametrize("how", ["start-up file", "typed", "environment"])
def test_a_shell_stays_while_nobody_types(new_client, workdir, start, how):
    """Slow: bash would end it after a second."""
    (workdir / ".bashrc").write_text(start if how == "start-up file" else "")
    with Shell(new_client(env={"HOME": str(workdir)}), env={"TMOUT": "1"} if how == "environment" else {}) as shell:
        if how == "typed":
            shell.at_once(f"{start}\n")
        for _ in range(2):
            time.sleep(1.5)
            assert shell.out("echo alive") == "alive\n"
        assert shell.out("bash -c 'trap'; python3 -c 'import signal; print(signal.getsignal(signal.SIGALRM))' || :") in ("Handlers.SIG_DFL\n", "0\n", "")


# What a program can leave its terminal in, by Python.
LEFT = {
    "raw": "import tty; tty.setraw(0)",
    "cbreak": "import tty; tty.setcbreak(0)",
    "echo": "t = termios.tcgetattr(0); t[3] |= termios.ECHO; t[1] |= termios.ONLCR; termios.tcsetattr(0, 0, t)",
    "no output translation": "t = termios.tcgetattr(0); t[1] = 0; termios.tcsetattr(0, 0, t)",
    "no keys": "t = termios.tcgetattr(0); t[6][termios.VINTR] = t[6][termios.VEOF] = b'\\0'; termios.tcsetattr(0, 0, t)",
    "no newlines": "t = termios.tcgetattr(0); t[0] = termios.IGNCR | termios.ISTRIP; termios.tcsetattr(0, 0, t)",
    "never blocking": "os.set_blocking(0, False)",
    "stopped": "termios.tcflow(0, termios.TCOOFF)",
    "locked": "import fcntl; fcntl.ioctl(0, termios.TIOCEXCL)",
    "another screen": "print('\\033[?1049h\\033[?25l\\033[5;10r\\016\\033(0', end='', flush=True)",
    "half a sequence": "print('\\033]0;title', end='', flush=True)",
}


@pytest.mark.parametrize("how", ["ends", "is killed"])
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("program", ["bash", "dash"])
def test_the_next_prompt_finds_a_terminal_as_at_the_start(server, program, left, how):
    python = needs.program("python3")
    end = "os.kill(os.getpid(), 9)" if how == "is killed" else "0"
    with Shell(server, shell=needs.program(program)) as shell:
        modes = "stty -a | grep -v speed; stty -a | grep -c line"
        before = shell.out(modes)
        shell.run(f"{python} -c {shlex.quote(f'import os, termios; {LEFT[left]}; {end}')}", timeout=60)
        assert shell.out(modes) == before
        assert shell.run("cat", timeout=60)["state"] == "awaiting_input"
        assert shell.at_once("line\n").startswith("line\n")
        shell.at_once("\x04")
        assert shell.out("echo é; (exec 3</dev/tty) && echo open") == "é\nopen\n"


def test_what_was_chosen_of_a_terminal_stays(shell):
    shell.out("stty -ixon intr ^X tostop")
    assert re.findall("intr = (..)|([-]?ixon|[-]?tostop)", shell.out("stty -a")) == [("^X", ""), ("", "-ixon"), ("", "tostop")]
