"""Sessions of other shells than bash, and of interpreters: what is run in them ends where it ends, and says how."""
import os
import re
import shutil
import socket
import threading
import time

import pytest

from harness import needs
from harness.client import RpcError
from harness.processes import wait_until
from harness.sessions import Shell, exists, read_until

SHELLS = ["fish", "zsh", "ksh93", "mksh", "dash", "busybox", "tcsh"]


class Quiet(Shell):
    """One that has no prompt."""

    def at_once(self, text=None, **more):
        return self.bs(text, wait=0, idle=0, **more)


@pytest.fixture
def home(workdir):
    """Start-up files of others have no part in these tests."""
    (workdir / "home").mkdir()
    return str(workdir / "home")


@pytest.fixture
def begin(server, home):
    """Starts a session of a program, at its first prompt."""
    begun = []

    def make(*program, env={}, quiet=False, **params):
        needs.program(program[0])
        kind = Quiet if quiet else Shell
        session = kind(server, program=list(program), env={"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, **env}, **params)
        begun.append(session)
        return session

    yield make
    for session in begun:
        session.__exit__()


@pytest.fixture(params=SHELLS)
def other(request, begin):
    return begin(request.param, *(["ash"] if request.param == "busybox" else []))


# ---- shells ----


def test_a_shell_of_another_kind_tells_status_and_directory(other):
    assert other.out("echo hi") == "hi\n"
    assert other.out("false", 1) == ""
    assert other.out("sh -c 'exit 7'", 7) == ""
    assert other.out("cd /tmp") == ""
    result = other.run("pwd")
    assert (result["output"], result["cwd"], result["exit_code"]) == ("/tmp\n", "/tmp", 0)
    assert other.out("printf unfinished") == "unfinished"
    assert other.out("/bin/echo one\n/bin/echo two\n") == "one\ntwo\n"
    assert other.out("echo 'it is'  \"quoted;  twice\"") == "it is quoted;  twice\n"


def test_its_state_stays_between_runs(other, request):
    kind = request.node.callspec.params["other"]
    other.out({"fish": "set -g kept here", "tcsh": "set kept=here"}.get(kind, "kept=here"))
    assert other.out("echo $kept") == "here\n"
    other.run("false")
    assert other.out("echo $status" if kind in ("fish", "tcsh") else "echo $?") == "1\n"
    for number in range(3):
        other.bs(f"echo typed {number}\n", wait=5)
        assert other.out(f"echo {number}") == f"{number}\n"


def test_aliases_of_its_user_are_in_nobodys_way(other, request):
    """As of `cat` and `rm`, which many have."""
    kind = request.node.callspec.params["other"]
    names = {"fish": "printf cat source eval", "tcsh": "echo sh rm cat mktemp"}.get(kind, "printf read unset return cat eval [ . command")
    for name in names.split():
        line = f"alias {name} 'echo mine'" if kind in ("fish", "tcsh") else f"alias {name}='echo mine'"
        if (name, kind) not in (("eval", "fish"), ("[", "zsh"), ("[", "dash"), (".", "zsh")):
            assert other.run(line)["state"] == "completed", name
        assert other.out("/bin/echo a; /bin/sh -c 'exit 3'", 3) == "a\n", name
        assert other.out("/bin/echo a\n/bin/echo b") == "a\nb\n", name


def test_functions_of_its_user_are_in_nobodys_way(other, request):
    """(A line that is a function's alone leaves ksh93 waiting for another one, where it is typed.)"""
    kind = request.node.callspec.params["other"]
    if kind == "tcsh":
        pytest.skip("it has none")
    names = {"fish": "printf cat source", "zsh": "printf read cat builtin"}.get(kind, "printf read cat test builtin")
    for name in names.split():
        line = f"function {name}; echo mine; end" if kind == "fish" else f"{name}() {{ echo mine; }}"
        assert other.out(line) == "", name
        assert other.out("/bin/echo a; /bin/sh -c 'exit 3'", 3) == "a\n", name
        assert other.out("/bin/echo a\n/bin/echo b") == "a\nb\n", name
        assert other.out(name) == "mine\n", name


@pytest.mark.parametrize("name", ["dash", "busybox"])
def test_an_interrupt_behind_a_prompt_of_the_users_own(begin, name):
    """The hook is given back with the next run, not with what is typed: its prompt would stand in front of that's answer."""
    session = begin(name, *(["ash"] if name == "busybox" else []))
    assert session.bs("PS1='at $ '\n", wait=5).endswith("at $ ")
    session.bs("sleep 60\n", wait=0, idle=0)
    wait_until(lambda: session.listed()["foreground"] == "sleep", "sleep to run")
    assert read_until(session, "at $ ", session.bs("\x03", wait=5)).count("at $ ") == 1
    assert session.bs(wait=1) == ""
    assert session.bs("echo 'open\n", wait=5) == "> "
    assert read_until(session, "at $ ", session.bs("\x03", wait=5)).count("at $ ") == 1
    assert session.out("/bin/echo a; sh -c 'exit 3'", 3) == "a\n"


@pytest.mark.parametrize("name", ["dash", "busybox", "mksh", "ksh93"])
def test_a_prompt_that_its_user_sets(begin, name, workdir):
    """The hook stands in the prompt: `PS1=…` and `. /etc/profile` take it away, and it is put back, but in the middle of a command. (Of ksh
    the kernel doesn't tell whether it reads one, so that a run that sets the prompt is answered as one that waits.)"""
    session = begin(name, *(["ash"] if name == "busybox" else []))
    told = name in ("dash", "busybox")
    (workdir / "profile").write_text("PS1='mine> '\nfalse\n")
    for line, status in (("PS1='$ '", 0), ("PS1='my # '; sh -c 'exit 4'", 4), (f". {workdir}/profile", 1)):
        result = session.run(line)
        assert (result["state"], result["exit_code"], result["output"]) == ("completed", status, "") or not told, result
        assert session.out("/bin/echo a; sh -c 'exit 3'", 3) == "a\n"
        if not told:
            break
        session.bs(f"{line}\n", wait=5)
        assert session.out("echo $?") == f"{status}\n"
    session.bs("if true\n", wait=5)
    with pytest.raises(RpcError, match="not finished"):
        session.run("echo no")
    assert session.bs("then echo yes; fi\n", wait=5).startswith("yes\n")
    assert session.out("cd /tmp; echo on") == "on\n"
    if told:
        result = session.run("printf 'which> '; read x; PS1='% '; echo $x")
        assert (result["state"], result["output"]) == ("awaiting_input", "which> "), result
        assert session.bs("me\n", wait=5).startswith("me\n")
        assert session.out("echo $x") == "me\n"


def test_zsh_that_ends_at_an_error_has_none_of_ours(begin):
    session = begin("zsh")
    assert session.out("set -e; builtin() { echo mine; }; unfunction builtin") == ""
    assert session.out("true") == ""
    assert session.run("false")["state"] == "exited"


def test_a_block_of_many_lines(other, request):
    kind = request.node.callspec.params["other"]
    text = {"fish": "for i in 1 2\n\n  echo $i\nend", "tcsh": "foreach i ( 1 2 )\n  echo $i\nend"}.get(kind, "for i in 1 2\ndo\n\n  echo $i\ndone")
    assert other.out(text) == "1\n2\n"
    long = "echo " + "x" * 20000
    if kind != "tcsh":  # whose lines are no longer than a terminal's
        assert other.out(long) == "x" * 20000 + "\n"


def test_a_program_that_waits_is_given_input(other):
    assert other.run("cat")["state"] == "awaiting_input"
    assert "hello" in other.bs("hello\n", wait=10)
    other.bs("\x04", wait=10)
    result = other.run(None)
    assert (result["state"], result["exit_code"]) == ("completed", 0)
    assert other.out("echo after") == "after\n"


def test_it_is_interrupted(other):
    assert other.run("sleep 60", timeout=0.3)["state"] == "timeout"
    other.signal("INT")
    result = other.run(None, timeout=30)
    assert (result["state"], result["exit_code"]) in (("completed", 130), ("completed", 1)), result
    assert other.out("echo after") == "after\n"
    assert other.run("sleep 60", timeout=0.3)["state"] == "timeout"
    other.bs("\x03", wait=5)
    assert other.out("echo again") == "again\n"


def test_an_interrupt_at_its_prompt_is_in_nobodys_way(other, workdir, request):
    """zsh without its editor reads on until a line ends, and drops that; fish shows no other prompt. (tcsh may drop what is typed behind it.)"""
    for keys in ("\x03", "half a line\x03", "\x03\x03"):
        other.bs(keys, wait=0, idle=0)
        assert other.out("echo a") == "a\n", keys
    other.signal("INT")
    assert other.out("echo b") == "b\n"
    other.bs("half a line", wait=0, idle=0)
    other.bs("\x03", wait=0, idle=0)
    assert other.out("echo c") == "c\n"
    if request.node.callspec.params["other"] != "tcsh":
        other.bs(f"\x03touch {workdir}/typed\n", wait=0, idle=0)
        exists(workdir / "typed")
    assert other.out("echo d") == "d\n"


def test_it_ends_and_is_started_anew(other):
    result = other.run("echo last; exit 3")
    assert (result["state"], result["exit_code"]) == ("exited", 3) and result["output"].startswith("last\n"), result
    other.restart()
    assert other.out("echo anew") == "anew\n"
    other.restart()
    assert other.out("cd /tmp; false", 1) == ""


@pytest.mark.parametrize("name", ["mksh", "ksh93", "zsh", "dash", "busybox"])
def test_its_time_limit_does_not_end_it(begin, name):
    """Slow: it waits for longer than the limit."""
    session = begin(name, *(["ash"] if name == "busybox" else []))
    assert session.out("TMOUT=1") == ""
    time.sleep(2.5)
    assert session.out("set -u; sh -c 'exit 3'", 3) == ""
    assert session.out("echo $?") == "3\n"
    if name == "ksh93":  # it warns a minute before
        assert session.out("echo $TMOUT") == "0\n"
    if name != "mksh":  # a limit that can't be changed stays there
        assert session.out("readonly TMOUT") == ""
        assert session.out("echo on") == "on\n"
    assert "typed" in session.bs("echo typed\n", wait=10)


def test_busybox_waits_without_its_read(begin):
    """That of 1.38 never ends once its shell has handled a signal, as this one."""
    session = begin("busybox", "ash")
    assert session.out("read() { while :; do sleep 9; done; }") == ""
    assert session.out("echo hi") == "hi\n"
    assert session.out("(exit 3)", 3) == ""


def test_its_own_startup_file_is_read(server, home, begin):
    for name, file, text in [("zsh", ".zshrc", "mine=yes; PROMPT='mine> '"), ("mksh", ".mkshrc", "mine=yes"), ("ksh93", ".kshrc", "mine=yes"),
                             ("tcsh", ".tcshrc", "set mine=yes"), ("fish", "fish/config.fish", "set -g mine yes")]:
        if not shutil.which(name):
            continue
        os.makedirs(os.path.dirname(f"{home}/{file}"), exist_ok=True)
        with open(f"{home}/{file}", "w") as out:
            out.write(text + "\n")
        assert begin(name).out("echo $mine") == "yes\n", name


def test_what_it_starts_has_nothing_of_ours(other):
    assert sorted(other.out("/bin/sh -c 'ls /proc/self/fd'").split()) == ["0", "1", "2", "3"]
    assert "/dev/pts" not in other.out("env")


# ---- interpreters that tell ----


def python(begin, **params):
    return begin("python3", "-q", **params)


def error_of(result):
    return (result["error"]["type"], result["error"]["message"]) if "error" in result else None


def test_python(begin):
    session = python(begin)
    assert session.out("1 + 1") == "2\n"
    assert session.out("x = 'kept'") == ""
    assert session.out("def f():\n    y = 1\n\n    return x\n\nfor i in range(2):\n\n    print(i, f())\n") == "0 kept\n1 kept\n"
    assert session.out("print('no end', end='')") == "no end"
    assert session.out("import os; os.chdir('/tmp')") == ""
    result = session.run("1 / 0")
    assert (result["state"], result["exit_code"], error_of(result), result["cwd"]) == (
        "completed", 1, ("ZeroDivisionError", "division by zero"), "/tmp")
    assert result["output"] == 'Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>\nZeroDivisionError: division by zero\n'
    assert error_of(session.run("raise KeyError('a\\nb')")) == ("KeyError", "'a\\nb'")
    assert error_of(session.run("print('never'\nx x"))[0] == "SyntaxError"
    assert "error" not in session.run("2 + 2")
    assert session.out("e = ValueError('again')") == ""
    for _ in range(2):
        assert error_of(session.run("raise e")) == ("ValueError", "again")
    assert session.out("'x' * 20000") == "'" + "x" * 20000 + "'\n"
    assert session.out("len('''" + "é\t\\\n" * 5000 + "''')") == "10000\n"


def test_python_is_typed_into_as_well(begin):
    session = python(begin)
    assert session.first == ">>> "
    assert session.at_once("x = 5\n") == ">>> "
    assert session.out("x") == "5\n"
    assert session.at_once("1/0\n").endswith("ZeroDivisionError: division by zero\n>>> ")
    result = session.run("print(input('name? '))", timeout=30)
    assert (result["state"], result["output"]) == ("awaiting_input", "name? ")
    session.bs("me\n", wait=10)
    assert session.run(None)["exit_code"] == 0
    session.out("import sys; sys.ps1 = 'mine> '")
    assert session.out("6") == "6\n"
    assert session.at_once("7\n").endswith("mine> ")


@pytest.mark.parametrize("how", ["signal", "key"])
def test_python_is_interrupted(begin, how):
    session = python(begin)
    for command in ("import time\ntime.sleep(100)\nprint('never')", "while True: pass"):
        assert session.run(command, timeout=0.5)["state"] == "timeout"
        if how == "signal":
            session.signal("INT")
        else:
            session.bs("\x03", wait=1)
        result = session.run(None, timeout=30)
        assert (result["state"], result["exit_code"], result["error"]["type"]) == ("completed", 130, "KeyboardInterrupt"), result
        assert "never" not in result["output"]
    assert session.out("1") == "1\n"


def test_python_ends_and_is_started_anew(begin):
    session = python(begin)
    assert session.out("x = 1") == ""
    result = session.run("print('bye'); raise SystemExit(3)")
    assert (result["state"], result["exit_code"], result["output"]) == ("exited", 3, "bye\n")
    session.restart()
    assert error_of(session.run("x")) == ("NameError", "name 'x' is not defined")


def test_python_has_its_users_startup_file_and_nothing_of_ours(begin, home):
    with open(f"{home}/mine.py", "w") as out:
        out.write("mine = 'read'\n")
    session = python(begin, env={"PYTHONSTARTUP": f"{home}/mine.py"})
    assert session.out("mine") == "'read'\n"
    assert session.out("import os; os.environ['PYTHONSTARTUP']") == f"'{home}/mine.py'\n"
    assert session.out("sorted(n for n in globals() if n not in ('mine', 'os') and not n.startswith('__'))") == "[]\n"
    assert session.out("sorted(os.listdir('/proc/self/fd'))") == "['0', '1', '2', '3']\n"
    assert session.run("raise SystemExit")["state"] == "exited"
    assert sorted(os.listdir(home)) == ["mine.py"]  # no history


def test_what_is_printed_tells_nothing(begin):
    session = python(begin)
    forged = "".join(f"\\x01{'0' * 32}X{{p}}\\0{status}\\0/\\0\\0\\0" for status in (0, 7))
    result = session.run(f"import os; print('{forged}'.format(p=os.getpid())); print('>>> ', end=''); 1/0")
    assert (result["exit_code"], error_of(result)[0]) == (1, "ZeroDivisionError")
    assert result["output"].startswith("0" * 32) or ">>> Traceback" in result["output"]


def test_a_python_that_reads_no_startup_file(begin):
    session = begin("python3", "-q", "-I")
    result = session.run("1 + 1")
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", None, "2\n")


def test_ipython(begin):
    session = begin(needs.program("ipython", "ipython3"))
    assert session.out("1 + 1") == "Out[1]: 2\n"
    assert session.out("for i in range(2):\n    x = i\n\n    print(x)\n") == "0\n1\n"
    assert error_of(session.run("1 / 0")) == ("ZeroDivisionError", "division by zero")
    assert session.out("print('no end', end='')") == "no end"


def test_node(begin):
    session = begin("node")
    assert session.out("1 + 1") == "2\n"
    assert session.out("let kept = 'here'") == "undefined\n"
    assert session.out("function f() {\n\n  return kept\n}\nf()") == "'here'\n"
    assert error_of(session.run("throw new TypeError('bad')")) == ("TypeError", "bad")
    assert error_of(session.run("null.x"))[0] == "TypeError"
    assert error_of(session.run("function (")) is not None
    assert error_of(session.run("throw 'text'")) == ("string", "text")
    result = session.run("await new Promise(done => setTimeout(done, 300)); 'later'")
    assert (result["exit_code"], result["output"]) == (0, "'later'\n")
    assert error_of(session.run("await Promise.reject(new RangeError('r'))")) == ("RangeError", "r")
    assert session.run("while (true);", timeout=0.5)["state"] == "timeout"
    session.signal("INT")
    assert session.run(None, timeout=30)["exit_code"] == 1
    session.bs("\x03", wait=2)
    assert session.out("kept") == "'here'\n"
    result = session.run("process.exit(4)")
    assert (result["state"], result["exit_code"]) == ("exited", 4)


# ---- programs that tell nothing ----

MUTE = {
    "sqlite3": (["sqlite3", "-list"], [("select 1;", "1\n"), ("select\n2,\n3;", "2|3\n"), ("create table t(a);\ninsert into t values (1), (2);\nselect * from t;", "1\n2\n"),
                              ("select 'a\tb';", "a\tb\n")]),
    "gdb": (["gdb", "-q", "-nx"], [("print 1 + 1", "$1 = 2\n"), ("echo one\\n\necho two\\n", "one\ntwo\n"), ("set $x = 3", ""), ("shell sleep 0.3; echo slow", "slow\n"),
                                   ("define three\necho 3\\n\nend", 'Type commands for definition of "three".\nEnd with a line saying just "end".\n'), ("three", "3\n")]),
    "bc": (["bc", "-q"], [("1 + 1", "2\n"), ("x = 5\nx * x", "25\n"), ("for (i = 0; i < 2; i++) {\n i\n}", "0\n1\n")]),
    "lua": (["lua5.4"], [("=1 + 1", "2\n"), ("for i = 1, 2 do\nprint(i)\nend", "1\n2\n")]),
    "irb": (["irb"], [("1 + 1", "=> 2\n"), ("def f\n\n 3\nend\nf", "=> :f\n=> 3\n"), ("puts 'x'", "x\n=> nil\n")]),
}


@pytest.mark.parametrize("name", MUTE)
def test_a_program_that_tells_nothing(begin, name):
    program, cases = MUTE[name]
    counted = 0
    session = begin(*program, quiet=name == "bc")
    for command, output in cases + cases[:1] * 3:
        result = session.run(command, timeout=30)
        if name == "gdb" and output.startswith("$"):
            output = "$" + str(1 + counted) + " = 2\n"
            counted += 1
        if name == "irb":  # that of Ruby 4 leaves a line free
            result["output"] = re.sub("^\n+|\n(?=\n)", "", result["output"])
        assert (result["state"], result["exit_code"], result["output"]) == ("completed", None, output), command


def test_a_program_that_asks(begin, workdir):
    """A program of nobody's: what it asks is shown, and its prompt isn't."""
    script = workdir / "asks.py"
    script.write_text("while True:\n    n = input('number? ')\n    if n == 'q': break\n    print('half of it is', int(n) / 2)\n    if n == '4': print('thanks', input('really? '))\n")
    session = begin("python3", str(script))
    assert session.first == "number? "
    assert session.run("2")["output"] == "half of it is 1.0\n"
    assert session.run("4")["output"] == "half of it is 2.0\nreally? "
    assert session.run("yes\n8")["output"] == "thanks yes\nhalf of it is 4.0\n"
    result = session.run("q")
    assert (result["state"], result["exit_code"]) == ("exited", 0)


def test_lines_behind_an_interrupted_one_are_not_given(begin):
    session = begin("gdb", "-q", "-nx")
    assert session.run("shell sleep 60\necho never\\n", timeout=0.5)["state"] == "timeout"
    session.signal("INT")
    result = session.run(None, timeout=30)
    assert result["state"] == "completed" and "never" not in result["output"]
    assert session.run("echo after\\n")["output"] == "after\n"


def test_lines_go_on_when_the_time_is_up(begin):
    session = begin("gdb", "-q", "-nx")
    assert session.run("shell sleep 1\necho then\\n", timeout=0.2)["state"] == "timeout"
    assert session.run(None, timeout=30)["output"] == "then\n"
    assert session.run("shell sleep 1\necho then\\n", timeout=0.2)["state"] == "timeout"
    assert "then\n" in session.bs(wait=20, idle=2)


# ---- how they are started ----


@pytest.mark.parametrize("params, message", [({"program": []}, "names no program"), ({"program": ["x"], "shell": "/bin/sh"}, "cannot be combined"),
                                             ({"program": ["no-such-program"]}, "no-such-program: not found"), ({"program": "bash"}, "program")])
def test_programs_that_are_refused(server, params, message):
    with pytest.raises(RpcError, match=message):
        server.rpc("bash_session_new_session", params)


def test_the_words_of_a_program_are_its_own(begin):
    assert begin("bash", "-c", "echo @ $0 $1; read x", "a", "b c").first == "@ a b c\n"
    assert begin("bash", "-l").out("shopt -q login_shell") == ""


def test_the_command_line_takes_a_program(client):
    needs.program("python3")
    name = client.cli("bash_session", "new", "--cwd", "/tmp", "--program", "python3", "-q").stdout.decode().strip()
    done = client.cli("bash_session", "run", name, "import os; print(os.getcwd())")
    assert (done.returncode, done.stdout) == (0, b"/tmp\n")
    assert client.cli("bash_session", "run", name, "1/0").returncode == 1
    assert client.cli("bash_session", "new", "python3").returncode == 2
    assert client.cli("bash_session", "new", "--program").returncode == 2


def test_a_program_that_passes_the_terminal_on(begin):
    """Slow: that an answer has come to its end is known by a silence. The far end takes its time, and the program waits for the
    terminal as well meanwhile."""
    needs.program("nc")

    def answer(peer):
        text = peer.recv(100)
        time.sleep(0.5)
        peer.sendall(b"answer to " + text)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        session = begin("nc", "127.0.0.1", str(listening.getsockname()[1]), quiet=True)
        peer, _ = listening.accept()
        with peer:
            answers = threading.Thread(target=answer, args=[peer])
            answers.start()
            result = session.run("hello", timeout=30)
            answers.join()
    assert (result["state"], result["exit_code"], result["output"]) == ("completed", None, "answer to hello\n")


# As readline does with a hook (octave): it looks for input again and again, and counts its prompts.
POLLS = """
import itertools, select, sys, time
for n in itertools.count(1):
    print(f"polls:{n}> ", end="", flush=True)
    while not select.select([0], [], [], 0.05)[0]:
        pass
    text = sys.stdin.readline().strip()
    time.sleep(0.5)
    print("42" if text == "number" else f"{n}: {text}\\n", end="", flush=True)
"""


def test_a_program_that_looks_for_input_again_and_again(begin):
    session = begin("python3", "-c", POLLS)
    for n in range(1, 4):
        result = session.run(f"line {n}", timeout=30)
        assert (result["state"], result["exit_code"], result["output"]) == ("completed", None, f"{n}: line {n}\n")
    assert session.listed()["state"] == "prompt"
    assert session.out("one\ntwo", status=None) == "4: one\n5: two\n"
    assert session.out("number", status=None) == "42"  # and no part of the prompt behind it, nor is that one of it


# Never seen to wait for its terminal: it looks without a time limit, and sleeps in between.
NAPS = """
import select, sys, time
print("naps> ", end="", flush=True)
while True:
    while not select.select([0], [], [], 0)[0]:
        time.sleep(0.02)
    text = sys.stdin.readline().strip()
    time.sleep(0.01)
    print(f"got {text}", flush=True)
    time.sleep(0.3)
    print("and more\\nnaps> ", end="", flush=True)
"""


def test_a_program_that_sleeps_between_its_looks_for_input(begin):
    session = begin("python3", "-c", NAPS)
    for n in range(3):
        result = session.run(f"line {n}", timeout=30)
        assert (result["state"], result["exit_code"], result["output"]) == ("completed", None, f"got line {n}\nand more\n")
    assert session.listed()["state"] == "prompt"


def test_what_looks_like_a_prompt_is_no_output_at_a_timeout(begin):
    """Its prompt is there before it is known to be one, and the run is left then."""
    session = begin("python3", "-c", NAPS)
    session.run("first", timeout=30)
    command, text = "second", ""
    while True:
        result = session.run(command, timeout=0.05)
        command, text = None, text + result["output"]
        if result["state"] != "timeout":
            break
    assert (result["state"], text) == ("completed", "got second\nand more\n")


def test_a_program_that_never_asks_is_waited_for_as_long_as_is_said(begin):
    session = begin("python3", "-c", "import time\nwhile True: time.sleep(0.01)", quiet=True)
    with pytest.raises(RpcError, match="the program is still starting"):
        session.run("hello", ready_timeout=0.5)
