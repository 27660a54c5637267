"""Another build in the place of one that has sessions and jobs: nothing ends, and nothing is lost."""
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from harness import needs
from harness.client import TOOLERR, Client, RpcError
from harness.injection import Injector
from harness.jobs import Job
from harness.machine import Host
from harness.processes import wait_until
from harness.server import SERVER, Door, kill_servers, only_server, titled

MANY = 20
# an MCP server that answers each request with its id
ECHO = r"""while read -r line; do id=${line##*\"id\":}; id=${id%%[,\}]*}; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"ok\":$id}}"; done"""


@pytest.fixture
def at(workdir):
    folder = workdir / "at"
    folder.mkdir(mode=0o700)
    return folder / "toolbox"


@pytest.fixture
def inject(at, server_dir):
    """inject(binary, options): makes it the program at `at`, in one place for all."""

    def run(binary, *options):
        injector = Injector(binary, "--dir", str(at.parent), "--user", "default", env={"TOOLBOX_DIR": str(server_dir)})
        return injector.inject("local:", *options)

    return run


@pytest.fixture
def eject(at, server_dir, toolbox):
    return lambda: Injector(toolbox, "--dir", str(at.parent), "--user", "default",
                            env={"TOOLBOX_DIR": str(server_dir)}).eject("local:")


@pytest.fixture
def here(server_dir, at, inject, toolbox, eject):
    """A client of whatever program is there; the first build is."""
    inject(toolbox)
    yield Client(Host(), at, server_dir)
    eject()


class Counting:
    """Sessions and jobs that count until they are told to stop: every number has to come once, in its order."""

    def __init__(self, client, stop, sessions=MANY, jobs=MANY):
        self.client, self.stop = client, stop
        count = f"i=0; until [ -e {stop} ]; do i=$((i+1)); echo line $i end; sleep 0.05; done; echo last $i end"
        names = [client.rpc("bash_session_new_session")["session_name"] for _ in range(sessions)]
        self.seen = {name: client.bs(f"stty -echo; PS1=; {count}\n", wait=0, idle=0.01, session=name) for name in names}
        self.jobs = [Job(client, count) for _ in range(jobs)]

    def read(self):
        for name in self.seen:
            self.seen[name] += self.client.bs(wait=0, idle=0.01, session=name)
        for job in self.jobs:
            job.poll()

    def finish(self):
        self.stop.touch()
        for name, text in self.seen.items():
            while not re.search(r"last \d+ end", text):
                more = self.client.bs(wait=20, session=name)
                assert more, (name, text[-200:])
                text += more
            assert re.findall(r"\w+ \d+ end", text) == self.wanted(text), name
        for job in self.jobs:
            status, out, err = job.finish(120)
            assert (status, out.split("\n")[:-1], err) == (0, self.wanted(out), "")

    @staticmethod
    def wanted(text):
        last = int(re.search(r"last (\d+) end", text)[1])
        return [*(f"line {i} end" for i in range(1, last + 1)), f"last {last} end"]


def build_of(client):
    return client.cli("--version").stdout.decode().split("build ")[1].strip(")\n")


def aside(at):
    return sorted(path.name for path in at.parent.iterdir() if path != at)


def names(client):
    return {entry["session_name"]: entry.get("build") for entry in client.rpc("bash_session_list")}


def test_what_runs_goes_on_and_is_answered_by_its_own_build(here, inject, other_build, at):
    old = build_of(here)
    here.new()
    here.run("x=kept")
    job = Job(here, "read a; echo =$a; read b; echo =$b", stdin_open=True)
    ended = Job(here, "echo unread")
    wait_until(lambda: not titled(f"toolbox Job_{ended.pid}\0"), "the end of the job")
    found = inject(other_build)
    assert found["state"] == "replaced" and build_of(here) != old and aside(at) == [f".toolbox.{old}"]
    assert here.run("echo $x")["output"] == "kept\n"
    job.write("one\n")
    assert job.wait()["stdout"] == "=one\n"
    assert ended.finish() == (0, "unread\n", "")
    second = here.rpc("bash_session_new_session")["session_name"]
    assert names(here) == {"BashSession": old, "BashSession_1": None} and second == "BashSession_1"
    assert {entry["pid"]: entry.get("build") for entry in here.rpc("exec_remote_list")} == {job.pid: old, ended.pid: old}
    told = here.cli("status").stdout.decode()
    assert old in told and "BashSession_1" in told
    assert json.loads(here.cli("status", "--json").stdout)["sessions"][0]["build"] == old
    assert here.cli("bash_session", "run", "BashSession", "echo cli $x").stdout == b"cli kept\n"
    job.write("two\n")
    assert job.finish() == (0, "=one\n=two\n", "")
    here.rpc("bash_session_close", {"session_name": "BashSession"})
    wait_until(lambda: len(titled(SERVER)) == 1 and not aside(at), "the end of the older build")
    assert names(here) == {"BashSession_1": None}


def test_both_ways_and_three_builds(here, inject, other_build, toolbox, at, workdir):
    """A session in each of two builds; the first one is placed again, and goes on with what it has."""
    here.new()
    here.run("x=first")
    inject(other_build)
    here.rpc("bash_session_new_session")
    here.run("x=second", session="BashSession_1")
    first, second = names(here)["BashSession"], build_of(here)
    inject(toolbox)
    assert build_of(here) == first and aside(at) == [f".toolbox.{second}"]
    assert here.run("echo $x", session="BashSession")["output"] == "first\n"
    assert here.run("echo $x", session="BashSession_1")["output"] == "second\n"
    assert here.rpc("bash_session_new_session")["session_name"] == "BashSession_2"
    third = workdir / "third"
    data = other_build.read_bytes()
    third.write_bytes(data.replace(second.encode(), b"0123456789abcdef"))
    third.chmod(0o755)
    inject(third)
    assert names(here) == {"BashSession": first, "BashSession_1": second, "BashSession_2": first}
    assert here.run("echo $x", session="BashSession_1")["output"] == "second\n"
    assert aside(at) == sorted([f".toolbox.{first}", f".toolbox.{second}"])


def test_a_program_that_was_changed_is_not_run(here, inject, other_build, at):
    here.new()
    inject(other_build)
    older = at.parent / aside(at)[0]
    data = older.read_bytes()
    older.unlink()
    older.write_bytes(data + b"x")
    older.chmod(0o700)
    with pytest.raises(RpcError, match="is another program by now") as failure:
        here.run("true")
    assert failure.value.code == TOOLERR
    older.write_bytes(data)
    assert here.run("true")["exit_code"] == 0


def test_through_the_server_and_in_batches(here, inject, other_build, server_dir):
    here.new()
    here.run("x=kept")
    inject(other_build)
    here.cli("start-server")
    path = next(path for path in server_dir.iterdir() if path.name.startswith(f"server.{build_of(here)}."))
    with Door(path) as connection:
        assert connection.rpc("bash_session_run", {"session_name": "BashSession", "command": "echo $x"})["output"] == "kept\n"
    call = {"jsonrpc": "2.0", "method": "bash_session_run", "params": {"session_name": "BashSession", "command": "echo $x"}}
    answers = json.loads(here.line([{**call, "id": 1}, {"jsonrpc": "2.0", "id": 2, "method": "bash_session_list"}]))
    assert answers[0]["result"]["output"] == "kept\n" and answers[1]["result"][0]["session_name"] == "BashSession"


def test_a_client_that_dies_leaves_the_answer_to_the_next(here, inject, other_build, workdir):
    """The older build's own program is the client, so what it had not printed is there for the next call."""
    here.new()
    inject(other_build)
    request = {"jsonrpc": "2.0", "id": 1, "method": "bash_session",
               "params": {"session_name": "BashSession", "input": f"touch {workdir}/begun; until [ -e {workdir}/go ]; do sleep 0.02; done; echo la''te\n",
                          "wait_for_output": 20, "idle_timeout": 5}}
    running = here.popen("exec", json.dumps(request))
    wait_until((workdir / "begun").exists, "the command")
    running.kill()
    running.wait()
    for pipe in (running.stdin, running.stdout, running.stderr):
        pipe and pipe.close()
    (workdir / "go").touch()
    assert "late" in here.bs(wait=20)


def test_when_the_older_server_was_killed(here, inject, other_build, at):
    here.new()
    here.run("x=kept")
    inject(other_build)
    kill_servers()
    assert here.run("echo $x")["output"] == "kept\n"
    assert list(names(here)) == ["BashSession"]
    assert here.run("echo $x")["output"] == "kept\n"


@pytest.mark.parametrize("killed", ["before", "afterwards"])
def test_ended_jobs_of_a_build_that_was_killed(here, inject, other_build, at, killed):
    """Nothing of it lives, and what it has left is fetched by its own program, which is kept for that."""
    old = build_of(here)
    short, long = Job(here, "echo short; exit 3"), Job(here, "seq 100000")
    wait_until(lambda: not titled("toolbox Job_"), "the end of the jobs")
    for step in (kill_servers, lambda: inject(other_build)) if killed == "before" else (lambda: inject(other_build), kill_servers):
        step()
    assert aside(at) == [f".toolbox.{old}"]
    assert {entry["pid"]: entry["build"] for entry in here.rpc("exec_remote_list")} == {short.pid: old, long.pid: old}
    if killed == "afterwards":
        kill_servers()  # once more: no list was asked for before
    assert short.finish() == (3, "short\n", "")
    assert long.finish() == (0, "".join(f"{i}\n" for i in range(1, 100001)), "")
    wait_until(lambda: len(titled(SERVER)) == 1 and not aside(at), "the end of the older build")
    assert here.rpc("exec_remote_list") == []


@pytest.mark.parametrize("server", ["alive", "killed"])
def test_replace_ends_what_there_is_and_says_so(here, inject, other_build, at, server):
    here.new()
    job = Job(here, "sleep 5093")
    if server == "killed":
        kill_servers()
    found = inject(other_build, "--replace")
    assert sorted(found["ended"].split(", ")) == ["BashSession", f"Job_{job.pid}"]
    assert not titled("sleep\0" + "5093\0") and not aside(at) and names(here) == {}


def test_nothing_is_kept_of_a_build_that_runs_nothing(here, inject, other_build, at):
    inject(other_build)
    assert not aside(at) and len(titled(SERVER)) == 1


def test_eject_ends_all_builds(here, inject, other_build, at, eject):
    here.new()
    inject(other_build)
    here.rpc("bash_session_new_session")
    eject()
    assert not titled("toolbox ") and not list(at.parent.iterdir())


def test_the_same_build_with_something_behind_it(here, inject, toolbox, at, workdir):
    """As a released file has its release's sums: the build is the same, and so is what runs."""
    here.new()
    here.run("x=kept")
    server = only_server()
    released = workdir / "released"
    released.write_bytes(toolbox.read_bytes() + b"something behind it\n")
    released.chmod(0o755)
    os.rename(released, at)
    assert inject(toolbox)["state"] == "replaced"
    assert only_server() == server and not aside(at) and here.run("echo $x")["output"] == "kept\n"
    assert names(here) == {"BashSession": None}


def test_many_in_the_middle_of_output(here, inject, other_build, toolbox, workdir):
    """While one build takes another's place and back. Slow: forty shells that each start a program every 50 ms."""
    counting = Counting(here, workdir / "stop")
    counting.read()
    for build in (other_build, toolbox, other_build):
        inject(build)
        counting.read()
    counting.finish()


# ---- moving while it runs ----


def upgrade(client):
    """{name: why it stays, or None}"""
    done = client.cli("upgrade", "--json", timeout=300)
    report = {entry["name"]: entry["reason"] for entry in json.loads(done.stdout)}
    assert done.returncode == (1 if any(report.values()) else 0), (done, report)
    return report


def builds(client):
    return {entry["pid"]: entry.get("build") for entry in client.rpc("exec_remote_list")}


def test_a_job_moves_with_all_that_it_has(here, inject, other_build, toolbox, at):
    """Output in every stage (unread, given, acknowledged), stdin, time limit and exit status; there and back."""
    job = Job(here, 'while read line; do echo "=$line"; echo "!$line" >&2; done; exit 7', stdin_open=True)
    ends = Job(here, "sleep 0.5; exit 3")
    late = Job(here, "sleep 5094", timeout=3)
    job.write("one\n")
    job.wait()
    for round in range(1, 5):
        inject(other_build if round % 2 else toolbox)
        job.write(f"{round}\n")
        told = upgrade(here)
        assert told.get(f"Job_{job.pid}", "gone") is None, told
        assert builds(here)[job.pid] is None
    job.close()
    assert job.finish() == (7, "=one\n" + "".join(f"={n}\n" for n in range(1, 5)), "!one\n" + "".join(f"!{n}\n" for n in range(1, 5)))
    assert ends.finish()[0] == 3
    assert late.finish()[0] < 0
    wait_until(lambda: not titled("sleep\0" + "5094\0"), "the end of all that it ran")
    wait_until(lambda: len(titled(SERVER)) == 1 and not aside(at), "the end of the older builds")


def test_bytes_that_are_no_whole_character_and_much_output(here, inject, other_build):
    job = Job(here, "printf '\\303'; head -c 3000000 /dev/zero | tr '\\0' x; read a; printf '\\251\\n'", stdin_open=True)
    split = Job(here, "printf '\\303'; read a; printf '\\251\\n'", stdin_open=True)
    job.wait()
    inject(other_build)
    assert upgrade(here) == {f"Job_{job.pid}": None, f"Job_{split.pid}": None}
    for one in (job, split):
        one.write("go\n")
    assert split.finish() == (0, "\u00e9\n", "")
    code, out, _ = job.finish()
    assert code == 0 and out == "\ufffd" + "x" * 3000000 + "\ufffd\n"


def test_a_client_that_waits_meanwhile(here, inject, other_build):
    job = Job(here, "read a; echo =$a", stdin_open=True)
    waits = here.popen("exec", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "exec_remote_wait",
                                           "params": {"pid": job.pid, "ack_seq": 0}}))
    wait_until(lambda: here.rpc("exec_remote_list")[0]["bytes_in"] > 0, "the call")
    inject(other_build)
    assert upgrade(here) == {f"Job_{job.pid}": None}
    out, _ = waits.communicate(timeout=60)
    answer = json.loads(out)["result"]
    assert answer["state"] == "running" and answer["stdout"] == ""
    job.seq = answer["seq"]
    job.write("x\n")
    assert job.finish() == (0, "=x\n", "")


def test_what_can_not_be_moved_stays_and_says_why(here, inject, other_build, at):
    held = here.popen("exec_remote", "run", "--", "sleep", "5095")
    wait_until(lambda: titled("sleep\0" + "5095\0"), "the program")
    pid = here.rpc("exec_remote_list")[0]["pid"]
    old = build_of(here)
    on_terminal = Job(here, "read x; echo $x", pty=True)
    inject(other_build)
    why = upgrade(here)
    assert "a client holds it" in why[f"Job_{pid}"] and builds(here)[pid] == old
    assert "it has a terminal" in why[f"Job_{on_terminal.pid}"]
    on_terminal.write("x\n")
    assert on_terminal.finish()[:2] == (0, "x\r\nx\r\n")
    held.terminate()
    held.communicate(timeout=60)
    wait_until(lambda: not titled("sleep\0" + "5095\0"), "the end of the program")


def test_a_record_that_is_not_known_is_refused(here, toolbox, workdir):
    """What a program says that is to go on from a record of another form, or from none at all."""
    for text, said in ((b"toolbox job 2\n", "record 2 of job is not known"), (b"toolbox web 1\n", "nothing that this build takes"),
                       (b"toolbox job 1\n", "has no keeper.name"), (b"x", "no record"), (b"toolbox job 1\na 99\nb\n", "damaged")):
        path = workdir / "record"
        path.write_bytes(text)
        with path.open("rb") as file:
            os.set_inheritable(file.fileno(), True)
            done = subprocess.run([toolbox, "adopt", "--check", str(file.fileno()), str(file.fileno())], capture_output=True, close_fds=False)
        assert done.returncode == 1 and said in done.stdout.decode(), done


def test_an_mcp_server_stays_and_that_is_said(here, inject, other_build):
    """Beside a session that moves; it goes on answering through its own build."""
    session = here.new()
    number = here.rpc("mcp_launch_server", {"server_params": {"command": "sh", "args": ["-c", ECHO]}})
    inject(other_build)
    told = upgrade(here)
    assert told[session] is None and "one of the mcp_servers, which can't be moved" in told[next(name for name in told if name.startswith("Mcp"))], told
    asked = {"session_id": number, "request": {"jsonrpc": "2.0", "id": 1, "method": "x"}}
    assert here.rpc("mcp_send_request", asked)["result"] == {"ok": 1}
    table = here.cli("upgrade")
    assert table.returncode == 1 and "Mcp" in table.stdout.decode() and "can't be moved" in table.stdout.decode()
    here.rpc("mcp_kill_server", {"session_id": number})


def test_who_can_not_read_the_record_goes_back(toolbox, workdir):
    """Whatever is wrong with it or with reading it: what runs has a program again, with the same record."""
    older = workdir / "older"
    older.write_text('#!/bin/sh\necho "$@"\n')
    older.chmod(0o755)
    for text in ("", "toolbox job 2\n", "toolbox job 1\n"):
        (workdir / "record").write_text(text)
        with (workdir / "record").open("rb") as record, older.open("rb") as program:
            for file in (record, program):
                os.set_inheritable(file.fileno(), True)
            done = subprocess.run([toolbox, "adopt", str(record.fileno()), str(program.fileno())], capture_output=True, close_fds=False)
            assert done.stdout.decode() == f"adopt --last {record.fileno()}\n" and done.returncode == 0, done


def test_upgrade_from_outside(here, inject, other_build):
    job = Job(here, "read a; echo $a", stdin_open=True)
    found = inject(other_build, "--upgrade")
    assert found["moved"] == f"Job_{job.pid}" and not found["stayed"]
    job.write("on\n")
    assert job.finish() == (0, "on\n", "")


def test_an_upgrade_that_is_killed(here, inject, other_build, toolbox, workdir):
    """At any moment: each job is in one of the builds, and goes on."""
    counting = Counting(here, workdir / "stop", sessions=0, jobs=5)
    for round in range(12):
        inject(toolbox if round % 2 else other_build)
        running = here.popen("upgrade")
        time.sleep(round * 0.01)  # a moment like any other
        running.kill()
        running.communicate()
        counting.read()
    counting.finish()


def test_a_session_moves_with_all_that_it_has(here, inject, other_build, toolbox, at):
    """Variables, directory, what nobody has read, half a character, half an escape sequence, what it is restarted with."""
    name = here.new(env={"MINE": "from the start"}, cwd="/tmp")
    here.run("x=kept; cd /")
    for round in range(4):
        seen = here.bs(f"printf 'un''read {round}\\n\\303'; read a; printf '\\251\\033['; read a; printf '1mbold\\n'\n", wait=0, idle=0.01)
        wait_until(lambda: here.rpc("bash_session_list")[0]["state"] == "awaiting_input", "the read")
        inject(toolbox if round % 2 else other_build)
        assert upgrade(here) == {name: None}
        seen += here.bs("\n", wait=0, idle=0.01)
        while "bold" not in seen:
            seen += here.bs("\n", wait=5)
        assert f"unread {round}\n\u00e9bold" in seen, seen
        here.run("true")
        done = here.run("echo $x in $PWD; (exit 5)")
        assert (done["output"], done["exit_code"], done["cwd"]) == ("kept in /\n", 5, "/")
    assert "MINE" not in here.restart() and here.run("echo $MINE in $PWD")["output"] == "from the start in /tmp\n"
    wait_until(lambda: len(titled(SERVER)) == 1 and not aside(at), "the end of the older builds")


def test_a_command_that_runs_meanwhile_is_waited_for_in_the_other_build(here, inject, other_build):
    here.new()
    begun = here.run("echo begun; until [ -e go ]; do sleep 0.05; done; echo done; (exit 9)", timeout=0.5)
    assert begun["state"] == "timeout" and begun["output"] == "begun\n"
    inject(other_build)
    assert upgrade(here) == {"BashSession": None}
    path = here.rpc("bash_session_list")[0]["cwd"]
    (Path(path) / "go").touch()
    try:
        done = here.rpc("bash_session_run", {"session_name": "BashSession", "timeout": 20})
    finally:
        (Path(path) / "go").unlink()
    assert (done["state"], done["exit_code"], done["output"]) == ("completed", 9, "done\n")
    assert here.run("echo hi")["output"] == "hi\n"


def test_a_shell_that_ends_meanwhile(here, inject, other_build):
    here.new()
    here.bs("sleep 0.3; exit 4\n", wait=0, idle=0.01)
    inject(other_build)
    upgrade(here)
    wait_until(lambda: here.rpc("bash_session_list")[0]["state"] == "ended", "the end of the shell")
    assert "exit status 4" in here.bs(wait=5)


def test_sessions_and_jobs_move_in_the_middle_of_output(here, inject, other_build, toolbox, workdir):
    """Slow: forty shells that each start a program every 50 ms, moved four times."""
    counting = Counting(here, workdir / "stop")
    for round in range(4):
        inject(toolbox if round % 2 else other_build)
        told = upgrade(here)
        assert len(told) == 2 * MANY and not any(told.values()), told
        counting.read()
    counting.finish()


@pytest.mark.parametrize("words, before, after", [
    (["python3", "-q"], [("x = 'kept'", "")], [("x", "'kept'\n"), ("for i in range(2):\n\n    print(i)", "0\n1\n")]),
    (["zsh"], [("x=kept", "")], [("echo $x", "kept\n")]), (["fish"], [("set x kept", "")], [("echo $x", "kept\n")]),
    (["bc", "-q"], [("x = 5", "")], [("x\nx + 1", "5\n6\n")])])
def test_a_program_moves_with_its_session(here, inject, other_build, words, before, after):
    needs.program(words[0])
    here.new(program=words)
    for command, output in before:
        assert here.run(command)["output"] == output
    inject(other_build)
    assert upgrade(here)[here.session] is None
    for command, output in after:
        assert here.run(command)["output"] == output
    here.restart()
    assert here.run(before[0][0])["output"] == before[0][1]
