"""bash_session_new_session: whose session it is, and what else can be asked for."""
import contextlib
import os
import re
import shutil
import stat

import pytest

from harness import needs
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.jobs import Job
from harness.processes import wait_until
from harness.sessions import Shell, exists
from harness.users import NOBODY_KNOWS, needs_root


def sessions(client):
    return [(entry["session_name"], entry["pid"]) for entry in client.rpc("bash_session_list")]


def refused(client, code, match, **params):
    """The call is refused, and no half-made session is left."""
    before = sessions(client)
    with pytest.raises(RpcError, match=match) as caught:
        client.new(**params)
    assert caught.value.code == code, caught.value
    assert sessions(client) == before


@pytest.fixture
def open_shell(server):
    """Opens sessions: open_shell(params of a new session…). They are closed with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **params: stack.enter_context(Shell(server, **params))


# ---- users ----


@needs_root
def test_another_user(open_shell, user, workdir):
    shell = open_shell(user=user.name)
    assert shell.out("id -u; id -g; id -un") == f"{user.uid}\n{user.gid}\n{user.name}\n"
    assert set(map(int, shell.out("id -G").split())) == {user.gid, *user.groups}
    assert shell.out("echo $HOME; cd; pwd") == f"{user.home}\n{user.home}\n"
    assert shell.listed()["user"] == user.name
    shell.out(f"touch {workdir}/mine")
    assert (workdir / "mine").stat().st_uid == user.uid
    assert shell.out("cat /etc/shadow", 1).strip().endswith("Permission denied")


@needs_root
def test_another_users_terminal(open_shell, user):
    """The terminal is the user's own, with job control and signal keys; programs can open it again."""
    shell = open_shell(user=user.name)
    assert "job control" not in shell.first
    tty = shell.out("tty").strip()
    assert os.stat(tty).st_uid == user.uid and not stat.S_IMODE(os.stat(tty).st_mode) & 0o007
    assert shell.out("echo again > $(tty); echo tty > /dev/tty") == "again\ntty\n"
    assert shell.bs("sleep 60\n", wait=1) == ""
    assert shell.at_once("\x03").endswith(shell.prompt)
    shell.busy("echo begin; sleep 60", "begin")
    assert "Stopped" in shell.at_once("\x1a")
    assert shell.out("kill %1; wait %1 2>/dev/null; true") is not None
    assert "cat" in (shell.run("cat"), shell.listed()["foreground"])
    shell.at_once("\x04")


@needs_root
@pytest.mark.parametrize("program", ["dash", "busybox"])
def test_a_shell_whose_user_may_start_no_process(open_shell, workdir, program):
    """These tell from a process that their prompt starts; what they show in its place is nobody's output."""
    path = workdir / ("ash" if program == "busybox" else program)
    path.symlink_to(needs.program(program))
    shell = open_shell(user=str(NOBODY_KNOWS), shell=str(path))
    option = "u" if program == "busybox" else "p"
    limit = shell.out(f"ulimit -S -{option}").strip()
    assert "__word" not in shell.out(f"ulimit -S -{option} 1")
    refused = shell.run("sleep 0; echo reached")
    assert (refused["state"], refused["exit_code"]) == ("completed", 2), refused
    assert "reached" not in refused["output"] and "__word" not in refused["output"]
    for command, status in (("echo hi; false", 1), ("echo hi; cd /", 0), ("echo hi", 0)):
        done = shell.run(command)
        assert (done["state"], done["exit_code"], done["output"].splitlines()[0]) == ("completed", status, "hi"), done
    assert done["cwd"] == "/" and shell.listed()["state"] == "prompt"
    typed = shell.at_once("echo typed\n")
    assert "typed\n" in typed and typed.endswith(shell.prompt[-2:]) and "__word" not in typed
    assert shell.run("read x")["state"] == "awaiting_input"
    shell.at_once("line\n")
    shell.run(f"ulimit -S -{option} {limit}")
    assert shell.out("echo $x; (exit 4)", 4) == "line\n"
    shell.works()


@needs_root
def test_another_users_session_answers_at_once(open_shell, user):
    """The kernel's view of it has to be asked as that user, where root may not trace others."""
    shell = open_shell(user=user.name)
    assert shell.at_once("echo hi\n") == "hi\n" + shell.prompt
    assert shell.at_once("cat\n") == ""
    assert shell.at_once("line\n") == "line\n"
    assert shell.at_once("\x04") == shell.prompt
    assert "END" in shell.at_once("sleep 0.4; echo END\n")
    assert shell.run("read x")["state"] == "awaiting_input"
    assert shell.at_once("y\n") == shell.prompt
    shell.works()


@needs_root
def test_another_users_session_is_restarted_and_ended(client, user, workdir):
    """Also what it can't kill itself: a setuid program is root's."""
    program = workdir / "sleeper"
    shutil.copy(shutil.which("sleep"), program)
    program.chmod(0o4755)
    shell = Shell(client, user=user.name)
    shell.bs(f"cd {workdir}; setsid {program} 1000 & echo $! > pid; {program} 1001 & wait\n", wait=0, idle=0)
    exists(workdir / "pid")
    wait_until(lambda: _alive(program) == 2, "both programs")
    shell.restart()
    assert _alive(program) == 0
    assert shell.out("id -un; pwd") == f"{user.name}\n/\n"
    shell.bs(f"setsid {program} 1000 &\n")
    wait_until(lambda: _alive(program) == 1, "the program")
    shell.close()
    assert _alive(program) == 0


def _alive(program):
    found = 0
    for entry in os.listdir("/proc"):
        try:
            found += entry.isdigit() and os.readlink(f"/proc/{entry}/exe") == str(program)
        except OSError:
            continue
    return found


@needs_root
def test_a_user_by_number(open_shell, user):
    shell = open_shell(user=str(user.uid))
    assert shell.out("id -un; echo $HOME") == f"{user.name}\n{user.home}\n"


@needs_root
def test_a_number_without_an_entry(open_shell):
    shell = open_shell(user=str(NOBODY_KNOWS))
    assert shell.out("id -u; id -G; echo ${HOME:-none}").split()[:1] == [str(NOBODY_KNOWS)]
    assert "0" not in shell.out("id -G").split()
    assert "hi\n" in shell.at_once("echo hi\n")
    assert shell.listed()["user"] == str(NOBODY_KNOWS)


@needs_root
def test_a_user_by_numbers(open_shell, user, workdir):
    """As hosts say it that have asked the container who its default user is."""
    numbers = {"uid": user.uid, "gid": user.gid, "groups": [user.gid, 4321]}
    shell = open_shell(user=numbers)
    assert shell.out("id -un; echo $HOME") == f"{user.name}\n{user.home}\n"
    assert set(shell.out("id -G").split()) == {str(user.gid), "4321"}
    assert open_shell(user={**numbers, "home": str(workdir)}).out("echo $HOME; cd; pwd") == f"{workdir}\n" * 2
    unknown = open_shell(user={"uid": NOBODY_KNOWS, "gid": 777, "groups": [], "home": None})
    assert unknown.out("id -u; id -G; echo $HOME") == f"{NOBODY_KNOWS}\n777\n/\n"
    assert unknown.at_once("echo hi\n") == "hi\n" + unknown.prompt
    own = open_shell(user={"uid": os.geteuid(), "gid": os.getegid(), "groups": os.getgroups(), "home": "/elsewhere"})
    assert own.out("id -u") == f"{os.geteuid()}\n" and own.out("echo $HOME") != "/elsewhere\n"


@needs_root
def test_the_servers_own_uid_with_other_numbers(server, open_shell, workdir):
    """A uid that is the server's own says nothing of gid and groups: each kind of call takes them as they are."""
    numbers = {"uid": os.geteuid(), "gid": 1000, "groups": [1, 2]}
    assert open_shell(user=numbers).out("id -u; id -g; id -G") == f"{os.geteuid()}\n1000\n1000 1 2\n"
    job = Job(server, "id -g; id -G", user=numbers)
    assert job.finish() == (0, "1000\n1000 1 2\n", "")
    server.rpc("text_editor", {"command": "create", "path": str(workdir / "made"), "file_text": "x", "_run_as": numbers})
    assert (workdir / "made").stat().st_gid == 1000
    assert open_shell(user={"uid": os.geteuid(), "gid": os.getegid(), "groups": [4321]}).out("id -G") == f"{os.getegid()} 4321\n"


@needs_root
def test_numbers_that_only_root_could_have_are_refused(new_client):
    """A server that isn't root has the groups that it has."""
    client = new_client(user=NOBODY_KNOWS)
    for numbers in ({"uid": NOBODY_KNOWS, "gid": 1, "groups": []}, {"uid": NOBODY_KNOWS, "gid": NOBODY_KNOWS, "groups": [1]}):
        refused(client, TOOLERR, "other groups", user=numbers)
    assert client.new(user={"uid": NOBODY_KNOWS, "gid": NOBODY_KNOWS, "groups": []})


@pytest.mark.parametrize(
    "wrong, match",
    [
        (5, "user: must be a string or an object"),
        ({"uid": 1}, "user.gid: is missing"),
        ({"uid": 1, "gid": 1}, "user.groups: is missing"),
        ({"uid": "1", "gid": 1}, "user.uid: must be an integer"),
        ({"uid": 1, "gid": -1}, "user.gid: must be between"),
        ({"uid": 1, "gid": 4294967295}, "user.gid: must be between"),
        ({"uid": 1, "gid": 1, "groups": [None]}, r"user.groups\[0\]: must be an integer"),
        ({"uid": 1, "gid": 1, "groups": list(range(1024))}, "groups: has more than"),
        ({"uid": 1, "gid": 1, "shell": "/bin/sh"}, "user.shell: is no parameter"),
    ],
)
def test_numbers_that_are_no_user(server, wrong, match):
    refused(server, PARAMERR, match, user=wrong)


@needs_root
def test_two_users_at_once(client, user):
    root, other = Shell(client), Shell(client, user=user.name)
    assert (root.out("id -u"), other.out("id -u")) == ("0\n", f"{user.uid}\n")
    other.out(f"kill -9 {root.pid()} {root.keeper()} {other.keeper()}", 1)
    root.works()
    other.works()


@pytest.mark.parametrize("name", ["no-such-user", "root:", "99999999999", "-1", "1.5", "../x", "0x0"])
def test_an_unknown_user(server, name):
    refused(server, TOOLERR, re.escape(name), user=name)


@needs_root
def test_a_server_that_is_not_root(new_client):
    client = new_client(user=NOBODY_KNOWS)
    shell = Shell(client)
    assert shell.out("id -u") == f"{NOBODY_KNOWS}\n"
    assert shell.at_once("cat\n") == "" and shell.at_once("\x04") == shell.prompt
    assert Shell(client, user=str(NOBODY_KNOWS)).out("id -u") == f"{NOBODY_KNOWS}\n"
    refused(client, TOOLERR, "root", user="root")
    refused(client, TOOLERR, "root", user="0")
    shell.bs("setsid sleep 1000 & sleep 1000\n", wait=0, idle=0)
    shell.restart()
    shell.works()


@needs_root
def test_a_user_with_an_entry_and_a_server_of_their_own(new_client, user):
    client = new_client(user=user.uid)
    assert Shell(client, user=user.name).out("id -un") == f"{user.name}\n"
    assert Shell(client, user=str(user.uid)).out("id -u") == f"{user.uid}\n"


def test_the_own_user_is_always_fine(open_shell):
    assert open_shell(user=str(os.geteuid())).out("id -u") == f"{os.geteuid()}\n"


# ---- the rest of the params ----


def test_cwd(open_shell, workdir):
    (workdir / "with blank").mkdir()
    shell = open_shell(cwd=f"{workdir}/with blank")
    assert shell.out("pwd; echo $PWD") == f"{workdir}/with blank\n" * 2
    assert shell.listed()["cwd"] == f"{workdir}/with blank"
    shell.out("cd /")
    shell.restart()
    assert shell.out("pwd") == f"{workdir}/with blank\n"


def test_without_cwd_it_is_the_servers(new_client, workdir):
    client = new_client()
    client.cli("start-server", cwd=str(workdir))
    assert Shell(client).out("pwd") == f"{workdir}\n"


@pytest.mark.parametrize("cwd", ["/no/such/dir", "/etc/passwd", "relative/nowhere", "/" + "x" * 300])
def test_a_bad_cwd(server, cwd):
    refused(server, TOOLERR, re.escape(cwd[:100]), cwd=cwd)


@needs_root
def test_a_cwd_that_the_user_may_not_enter(server, user, workdir):
    (workdir / "closed").mkdir(mode=0o700)
    refused(server, TOOLERR, "Permission denied", cwd=f"{workdir}/closed", user=user.name)


def test_env(open_shell):
    shell = open_shell(env={"A": "1", "EMPTY": "", "TEXT": "a b'\"$x\n\tü", "PATH": "/usr/bin:/bin:/extra"})
    assert shell.out("echo $A [$EMPTY]; echo \"$TEXT\"; echo $PATH") == "1 []\na b'\"$x\n\tü\n/usr/bin:/bin:/extra\n"
    shell.restart()
    assert shell.out("echo $A; sh -c 'echo $EMPTY.$A'") == "1\n.1\n"


def test_the_servers_env_is_there_and_ours_is_not(new_client):
    client = new_client(env={"FROM_THE_STARTER": "yes", "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": "100000"})
    text = Shell(client).out("env")
    assert "FROM_THE_STARTER=yes\n" in text and "TERM=dumb\n" in text
    assert not re.search(r"^(TOOLBOX|INSPECT)", text, re.M), text


@pytest.mark.parametrize("env",
                         [{"A=B": "1"}, {"": "1"}, {"A": 1}, {"A": None}, ["A=1"], "A=1", {"A\0": "1"}, {"A": "1\0"}])
def test_a_bad_env(server, env):
    refused(server, PARAMERR, "env", env=env)


def test_rows_and_cols(open_shell):
    shell = open_shell(rows=50, cols=132)
    assert shell.out("stty size; echo $COLUMNS $LINES") == "50 132\n132 50\n"
    shell.restart()
    assert shell.out("stty size") == "50 132\n"


@pytest.mark.parametrize("params",
                         [{"rows": 0}, {"rows": -1}, {"cols": 40000}, {"rows": 24.5}, {"cols": "80"}, {"rows": True},
                          {"cols": 10 ** 30}])
def test_a_bad_size(server, params):
    refused(server, PARAMERR, next(iter(params)), **params)


@pytest.mark.parametrize("shell", ["/bin/sh", "sh", "/bin/bash"])
def test_a_shell(client, shell):
    answer = client.rpc("bash_session_new_session", {"shell": shell})
    assert answer["shell"].endswith(shell)
    client.session = answer["session_name"]
    client.bs()
    assert "hi\n" in client.bs("echo hi\n")


@pytest.mark.parametrize("name, match",
                         [("/no/such/shell", "not found"), ("no-such-shell", "not found"),
                          ("/etc/passwd", "permission denied"),
                                         ("/etc", "permission denied|directory")])
def test_a_bad_shell(server, name, match):
    refused(server, TOOLERR, match, shell=name)


def test_a_shell_that_ends_at_once(client):
    client.session = client.rpc("bash_session_new_session", {"shell": "/bin/false"})["session_name"]
    assert "exit status 1" in client.bs()


def test_a_shell_that_is_no_shell(client):
    """Any program that lives on a terminal will do, and those that are known take runs (test_bash_session_programs.py)."""
    client.session = client.rpc("bash_session_new_session", {"shell": shutil.which("python3")})["session_name"]
    assert ">>> " in client.bs(wait=30, idle=30)
    assert client.bs("6 * 7\n", wait=30, idle=30).endswith("42\n>>> ")
    assert client.run("1")["output"] == "1\n"


@pytest.mark.parametrize("params", [{"sheel": "/bin/sh"}, {"user": 0}, {"cwd": 1}, []], ids=str)
def test_bad_params(client, params):
    with pytest.raises(RpcError) as caught:
        client.rpc("bash_session_new_session", params)
    assert caught.value.code == PARAMERR
    assert client.rpc("bash_session_list") == []


@pytest.mark.parametrize("params",
                         [None, {},
                          {"user": None, "cwd": None, "env": None, "rows": None, "cols": None, "shell": None}])
def test_null_is_absence(client, params):
    assert set(client.rpc("bash_session_new_session", params)) == {"session_name", "shell"}


def test_names_are_never_used_twice(client):
    names = [client.new() for _ in range(3)]
    assert names == ["BashSession", "BashSession_1", "BashSession_2"]
    client.rpc("bash_session_close", {"session_name": "BashSession_2"})
    assert client.new() == "BashSession_3"
    client.rpc("bash_session_close", {"session_name": "BashSession"})
    assert client.new() == "BashSession_4"


def test_the_users_own_start_up_file(new_client, workdir):
    (workdir / ".bashrc").write_text("alias hello='echo from-bashrc'\nPS1='mine> '\nexport RC=1\necho loud\n")
    (workdir / ".inputrc").write_text("set editing-mode vi\nset bell-style audible\n")
    shell = Shell(new_client(env={"HOME": str(workdir)}))
    assert shell.first == "loud\nmine> "
    assert shell.out("hello; echo $RC") == "from-bashrc\n1\n"
    assert shell.at_once("echo hi\n") == "hi\nmine> "
    assert (workdir / ".bash_history").exists() is False


def test_a_start_up_file_that_takes_its_time(new_client, workdir):
    """Slow: longer than a shell is given that shows no sign of life, as long as a run may."""
    (workdir / ".bashrc").write_text("sleep 12\n")
    client = new_client(env={"HOME": str(workdir)})
    client.new()
    with pytest.raises(RpcError, match="the shell is still starting: .*still running"):
        client.run("echo hi", timeout=0.1)
    assert client.run("echo hi", timeout=60)["output"] == "hi\n"


@pytest.mark.parametrize("text",
                         ["exec fish-that-is-not-there\n", "exit 3\n", "read x\necho got $x\n",
                          "sleep 0.5; PS1='late> '\n", "set -e\nfalse\n", "return 0\n",
                                  "PROMPT_COMMAND='echo pc'\nHISTSIZE=0\n", "trap 'echo D' DEBUG\n", "if\n"])
def test_a_strange_start_up_file(new_client, workdir, text):
    """It is the user's matter, and the tool says what is: a prompt, a question, or the end."""
    (workdir / ".bashrc").write_text(text)
    client = new_client(env={"HOME": str(workdir)})
    client.new()
    first = client.bs(wait=1, idle=25)
    if "ended" in first:
        assert "exit status" in first
    elif "read x" in text:
        assert client.bs("y\n", wait=25, idle=25).startswith("got y\n")
        assert client.run("echo hi")["output"] == "hi\n"
    else:
        assert client.run("(exit 3)", timeout=20)["exit_code"] == 3
        assert client.run("echo hi", timeout=20)["output"].endswith("hi\n")
