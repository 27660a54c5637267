"""`toolbox bash_session` as people and scripts call it."""
import json
import re
import signal
import time

import pytest

from harness.machine import HANG
from harness.processes import wait_until
from harness.sessions import AT_ONCE, Shell, exists, shared_server


def applet(client):
    """Runs the applet: applet(client)(words...) -> (exit status, stdout, stderr)."""

    def run(*words, **how):
        done = client.cli("bash_session", *words, **how)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.fixture
def cli(client):
    return applet(client)


@pytest.fixture(scope="module")
def shared(toolbox):
    """The applet, for what starts no session."""
    with shared_server(toolbox) as client:
        yield applet(client)


@pytest.fixture
def name(cli):
    return cli("new")[1].strip()


def test_a_whole_life(cli, workdir):
    assert cli("new", "--cwd", str(workdir), "--env", "A=1", "--env", "B=2 3", "--rows", "30", "--cols", "100") == (0,
                                                                                                                    "BashSession\n", "")
    assert cli("run", "BashSession", "echo $A $B; pwd; stty size; x=kept") == (0, f"1 2 3\n{workdir}\n30 100\n", "")
    status, out, err = cli("send", "BashSession", "echo $x")
    assert (status, err) == (0, "") and out.startswith("kept\n")
    assert cli("send", "BashSession", "echo par", "-n") == (0, "", "")
    assert cli("send", "BashSession", "tial")[1].startswith("partial\n")
    assert cli("send", "BashSession", "sleep 60", "--wait", "1", "--idle", "0.1") == (0, "", "")
    assert cli("interrupt", "BashSession")[0] == 0
    assert cli("run", "BashSession", "echo $?") == (0, "130\n", "")
    assert cli("restart", "BashSession") == (0, "shell restarted successfully\n", "")
    assert cli("run", "BashSession", "echo [$x]") == (0, "[]\n", "")
    assert cli("resize", "BashSession", "40", "90") == (0, "", "")
    assert cli("run", "BashSession", "stty size") == (0, "40 90\n", "")
    assert cli("close", "BashSession")[0] == 0
    assert len(cli("list")[1].splitlines()) == 1


@pytest.mark.parametrize("command, status",
                         [("true", 0), ("false", 1), ("(exit 42)", 42), ("no-such-program", 127),
                          ("sh -c 'kill -9 $$'", 137), ("exit 7", 7),
                                             ("kill -9 $$", 137), ("echo )", 2)])
def test_run_exits_with_the_commands_status(cli, name, command, status):
    assert cli("run", name, command)[0] == status


def test_run_prints_exactly_the_output(cli, name):
    assert cli("run", name, "printf 'a\\n\\tb'; echo é >&2; printf '\\303x'") == (0, "a\n\tbé\n�x", "")
    status, out, _ = cli("run", name, "seq 300000")
    assert status == 0 and out == "".join(f"{i}\n" for i in range(1, 300_001))


def test_run_that_does_not_end(cli, name):
    status, out, err = cli("run", name, "echo before; sleep 1; echo after", "--timeout", "0.3")
    assert (status, out) == (124, "before\n") and "still running" in err
    status, out, err = cli("run", name, "echo x")
    assert (status, out) == (125, "") and "busy" in err
    assert cli("read", name)[1].startswith("after\n")


def test_run_in_a_shell_that_is_slow_to_start(cli, workdir):
    """Longer than what a shell has for it where nobody says how long."""
    (workdir / ".bashrc").write_text("until [ -e ~/go ]; do sleep 0.1; done\nsleep 11\n")
    slow = cli("new", "--env", f"HOME={workdir}")[1].strip()
    began = time.monotonic()
    status, out, err = cli("run", slow, "echo hi", "--timeout", "0.5")
    assert status == 125 and out == "" and "still starting" in err and time.monotonic() - began < HANG
    (workdir / "go").touch()
    assert cli("run", slow, "echo hi") == (0, "hi\n", "")


def test_run_of_a_program_that_asks(cli, name):
    began = time.monotonic()
    status, out, err = cli("run", name, "read -p 'name? ' x; echo got $x")
    assert status == 125 and out == "name? " and "input" in err and time.monotonic() - began < AT_ONCE
    assert cli("send", name, "text")[1].startswith("got text\n")


@pytest.mark.parametrize("most", [60, 1000, 4097])
@pytest.mark.parametrize("command", ["seq 100000; (exit 3)", "seq 1 50000; sleep 0.3; seq 50001 100000; (exit 3)"], ids=["at once", "in steps"])
def test_run_shows_whole_lines_and_says_what_is_left_out(cli, name, most, command):
    whole = "".join(f"{i}\n" for i in range(1, 100_001))
    status, out, err = cli("run", name, command, "--max", most)
    head, left_out, tail = re.fullmatch(r"([\d\n]*\n)\[(\d+) bytes left out\]\n([\d\n]*)", out).groups()
    assert (status, err) == (3, "") and whole.startswith(head) and whole.endswith("\n" + tail)
    assert len(head) + len(tail) <= most and len(head) + int(left_out) + len(tail) == len(whole)
    assert cli("run", name, "echo all of it", "--max", most)[1] == "all of it\n"


def test_read_shows_whole_lines_and_says_what_is_left_out(cli, name):
    status, out, _ = cli("send", name, "seq 1000", "--max", "60")
    left_out, tail = re.match(r"\[(\d+) bytes left out\]\n([^$#]*\n)", out).groups()
    assert status == 0 and tail.endswith("\n999\n1000\n") and tail.splitlines()[0] == str(1001 - len(tail.splitlines())) and int(left_out) > 3000
    for wrong in ("1.5", "-1", "x", ""):
        assert cli("read", name, "--max", wrong)[0] == cli("run", name, "true", "--max", wrong)[0] == 2
    assert "--max: must be at least 65536" in cli("record", name, "--max", "1")[2]


def test_run_streams(client, name):
    """What is printed shows when it is printed."""
    with client.popen("bash_session", "run", name, "echo first; sleep 1; echo second; (exit 5)") as call:
        assert call.stdout.readline() == b"first\n"
        assert client.rpc("bash_session_list")[0]["state"] == "running"
        assert call.communicate(timeout=HANG) == (b"second\n", b"") and call.returncode == 5


def test_run_that_is_interrupted_goes_on(client, name, workdir):
    with client.popen("bash_session", "run", name, f"touch {workdir}/on; sleep 0.7; echo after") as call:
        exists(workdir / "on")
        call.send_signal(signal.SIGINT)
        assert call.wait(HANG) != 0
        call.stdout.read()
    client.session = name
    assert "after\n" in client.bs(wait=5)


def test_run_for_a_reader_that_goes_away(client, name):
    with client.popen("bash_session", "run", name, "seq 1000000") as call:
        assert call.stdout.readline() == b"1\n"
        call.stdout.close()
        call.stdout = None
        assert call.wait(HANG) != 0
    client.session = name
    wait_until(lambda: client.rpc("bash_session_list")[0]["state"] == "prompt", "the prompt")
    client.bs(wait=1, max_output_bytes=100)
    assert client.run("echo hi")["output"] == "hi\n"


def test_read_and_signal(cli, client, name):
    client.session = name
    client.bs("(sleep 0.2; echo from-the-job) &\n")
    assert cli("read", name, "--wait", "20") == (0, "from-the-job\n", "")
    client.bs("sleep 60\n", wait=0, idle=0)
    wait_until(lambda: client.rpc("bash_session_list")[0]["foreground"] == "sleep", "sleep to run")
    assert cli("signal", name, "TERM") == (0, "", "")
    assert cli("run", name, "echo $?")[1] == "143\n"


def test_list(cli, client, workdir):
    one, two = Shell(client, cwd=str(workdir)), Shell(client)
    one.busy("echo begin; sleep 60", "begin")
    wait_until(lambda: one.listed()["foreground"] == "sleep", "sleep to run")
    status, out, err = cli("list")
    lines = out.splitlines()
    assert (status, err) == (0, "") and len(lines) == 3
    assert re.search(rf"^{one.name} +{one.pid()} .*running +sleep .*{workdir}$", lines[1]), out
    assert re.search(rf"^{two.name} +{two.pid()} .*prompt .*/$", lines[2]), out
    entries = json.loads(cli("list", "--json")[1])
    assert [entry["session_name"] for entry in entries] == [one.name, two.name]


def test_json(cli, client):
    assert json.loads(cli("new", "--json")[1]) == {"session_name": "BashSession", "shell": "/bin/bash"}
    status, out, _ = cli("run", "BashSession", "echo hi; (exit 3)", "--json")
    assert status == 3 and json.loads(out)["output"] == "hi\n" and json.loads(out)["exit_code"] == 3
    assert json.loads(cli("send", "BashSession", "echo hi", "--json")[1]).startswith("hi\n")


@pytest.mark.parametrize("words",
                         [["read"], ["run"], ["close"], ["restart"], ["interrupt"], ["send"], ["signal"], ["resize"]])
def test_a_session_that_is_not_there(shared, words):
    more = {"run": ["x"], "send": ["x"], "signal": ["INT"], "resize": ["1", "1"]}.get(words[0], [])
    status, out, err = shared(*words, "BashSession_9", *more)
    assert status not in (0, 2) and out == "" and "BashSession_9" in err


@pytest.mark.parametrize("words",
                         [[], ["nonsense"], ["new", "extra"], ["run"], ["run", "S"], ["run", "S", "x", "y"],
                          ["send", "S"], ["read"], ["resize", "S", "1"],
                                   ["resize", "S", "a", "b"], ["run", "S", "x", "--timeout"],
                                   ["run", "S", "x", "--timeout", "soon"], ["new", "--env", "novalue"],
                                   ["new", "--nonsense"], ["list", "x"], ["read", "S", "--wait", "1x"]], ids=str)
def test_wrong_usage(shared, words):
    status, out, err = shared(*words)
    assert (status, out) == (2, "") and err.startswith(("toolbox", "bash_session")) and len(err.splitlines()) <= 3
    assert shared("list", "--json")[1] == "[]\n"


def test_help(shared):
    status, out, err = shared("--help")
    assert (status, err) == (0, "")
    for word in ("new", "send", "run", "read", "interrupt", "restart", "close", "list", "resize", "signal", "attach"):
        assert re.search(rf"\b{word}\b", out), word


def test_a_slip_of_the_finger(shared):
    assert "'list'" in shared("lits")[2]


def test_words_that_look_like_options(cli, name):
    assert cli("run", name, "--", "-x")[0] == 127
    assert cli("send", name, "--", "-n")[0] == 0


def test_the_link_of_that_name(client, workdir):
    """As an applet's own name, which may be called without `toolbox` in front."""
    (workdir / "bash_session").symlink_to(client.binary)
    done = client.machine.run([workdir / "bash_session", "new"], env=client.env)
    assert done.stdout == b"BashSession\n"
    done = client.machine.run([workdir / "bash_session", "run", "BashSession", "echo hi"], env=client.env)
    assert done.stdout == b"hi\n"
