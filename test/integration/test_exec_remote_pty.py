"""Jobs on a terminal: `pty` of exec_remote_start, `exec_remote run --tty` and `start --tty`."""
import json
import signal
import sys
import termios

import pytest

from harness import needs, processes
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.jobs import Job, alive, no_keepers, run, runs
from harness.people import Person
from harness.server import kill_servers


def wait_for(job, text):
    """Until that has come."""
    while text not in job.out:
        assert not job.end, (job.out, job.end)
        job.wait()


def test_a_program_sees_a_terminal(client):
    look = "test -t 0 && test -t 1 && test -t 2 && echo all; stty size; echo $TERM; echo err >&2; exit 3"
    assert run(client, look, pty=True) == (3, "all\r\n24 80\r\nxterm\r\nerr\r\n", "")
    assert run(client, look, pty={"rows": 40, "cols": 132}, env={"TERM": "vt100"}) == (3, "all\r\n40 132\r\nvt100\r\nerr\r\n", "")
    assert run(client, look, pty={"cols": 100})[1].splitlines()[1] == "24 100"
    assert run(client, "test -t 1 || echo none", pty=False) == (0, "none\n", "")
    assert run(client, argv=["/bin/echo", "é\x1b[1m"], pty=True)[1] == "é\x1b[1m\r\n"
    assert run(client, "printf '\\377'", pty=True, encoding="latin-1")[1] == "\xff"


def test_output_comes_as_it_is_made(client):
    job = Job(client, argv=[sys.executable, "-c", "print('tick'); input(); print('tock'); input()"], pty=True)
    wait_for(job, "tick\r\n")
    job.write("x\n")
    wait_for(job, "tock\r\n")
    job.write("x\n")
    assert job.finish()[0] == 0


def test_keys_make_signals(client):
    job = Job(client, "trap 'echo INT; exit 5' INT; echo ready; while :; do sleep 0.1; done", pty=True)
    wait_for(job, "ready")
    job.write("\x03")
    code, out, _ = job.finish()
    assert code == 5 and "INT\r\n" in out


def test_the_end_of_input_is_typed(client):
    job = Job(client, "cat; echo end", pty=True)
    job.write("one\n")
    job.close()
    assert job.finish()[:2] == (0, "one\r\none\r\nend\r\n")
    job = Job(client, "cat; echo end", pty=True)
    job.write("half a line")
    job.close()
    code, out, _ = job.finish()
    assert code == 0 and out.endswith("half a lineend\r\n")
    with pytest.raises(RpcError, match="has been closed|no job|has ended") as failed:
        job = Job(client, "sleep 60", pty=True)
        job.close()
        job.write("more")
    assert failed.value.code == TOOLERR
    job.kill()
    assert run(client, "cat; echo end", pty=True, input="two\n")[:2] == (0, "two\r\ntwo\r\nend\r\n")
    assert run(client, "stty eof ^X; echo set; cat; echo end", pty=True, input="", stdin_open=False, timeout=2)[0] < 0  # nobody has typed an end


def test_stdin_is_open_without_being_asked_for(client):
    job = Job(client, "read x; echo got $x", pty=True)
    assert job.call("wait", timeout=0.3)["state"] == "running"
    job.write("it\n")
    assert job.finish()[:2] == (0, "it\r\ngot it\r\n")


def test_resize(client):
    job = Job(client, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done", pty=True)
    wait_for(job, "ready")
    client.rpc("exec_remote_resize", {"pid": job.pid, "rows": 50, "cols": 161})
    wait_for(job, "50 161")
    job.kill()
    for pid, said in ((job.pid, "has ended"), (Job(client, "sleep 60").pid, "has no terminal; start it with pty")):
        with pytest.raises(RpcError, match=said) as failed:
            client.rpc("exec_remote_resize", {"pid": pid, "rows": 1, "cols": 1})
        assert failed.value.code == TOOLERR


@pytest.mark.parametrize("value, said", [("yes", "must be true, false or an object"), (1, "must be true, false or an object"),
                                         ({"rows": 0}, "pty.rows: must be between 1 and 32767"),
                                         ({"height": 1}, "pty.height: is no parameter")])
def test_what_is_no_terminal(client, value, said):
    with pytest.raises(RpcError, match=said) as failed:
        client.rpc("exec_remote_start", {"command": "true", "pty": value})
    assert failed.value.code == PARAMERR


def test_the_last_output_of_a_program_that_ends_at_once(client):
    for _ in range(20):
        assert run(client, "seq 1500; printf end", pty=True)[1] == "".join(f"{n}\r\n" for n in range(1, 1501)) + "end"


def test_output_that_nobody_reads_for_a_while(client):
    job = Job(client, "seq 400000", pty=True)
    processes.wait_until(lambda: client.rpc("exec_remote_list")[0]["unread_stdout"] > 2 << 20, "it to print")
    code, out, _ = job.finish()
    assert code == 0 and out == "".join(f"{n}\r\n" for n in range(1, 400001))
    no_keepers()


def test_kill_ends_all_that_it_has_started(client):
    job = Job(client, "setsid sleep 4821 & sh -c 'trap \"\" HUP; sleep 4822' & sleep 4823", pty=True)
    for number in ("4821", "4822", "4823"):
        runs("sleep", number)
    job.kill()
    assert job.finish()[0] < 0
    assert not alive("sleep", "4821") + alive("sleep", "4822") + alive("sleep", "4823")


def test_who_is_left_in_the_background_holds_up_nothing(client):
    job = Job(client, "(trap '' HUP; exec sleep 4824) & sleep 0.1; echo main", pty=True)
    assert job.finish()[:2] == (0, "main\r\n")
    assert alive("sleep", "4824")
    job.call("kill")
    processes.wait_until(lambda: not alive("sleep", "4824"), "the end of the rest")


def test_it_is_listed_and_survives_the_server(client):
    job = Job(client, "read x; echo $x", pty=True)
    assert client.rpc("exec_remote_list")[0]["pty"] is True
    kill_servers()
    job.write("on\n")
    assert job.finish()[:2] == (0, "on\r\non\r\n")


def test_job_control_of_a_shell(client):
    needs.program("bash")
    job = Job(client, argv=["bash", "--norc", "-i"], pty=True, env={"PS1": "> "})
    wait_for(job, "> ")
    job.write("sleep 4825\n")
    runs("sleep", "4825")
    job.write("\x1a")
    wait_for(job, "Stopped")
    job.write("kill -9 %1; exit 9; exit 9\n")
    assert job.finish()[0] == 9


def test_another_users_terminal_is_his(client, user):
    code, out, _ = run(client, "id -u; test -O $(tty) && test -w $(tty) && echo mine", pty=True, user=user.name)
    assert (code, out) == (0, f"{user.uid}\r\nmine\r\n")


# ---- the command line ----


def test_a_person_runs_a_program(client):
    needs.program("bash")
    with Person(client, "exec_remote", "run", "-t", "--env", "PS1=> ", "--", "bash", "--norc", "-i", rows=31, cols=97) as person:
        person.sees("> ")
        person.type("stty size\r")
        person.sees("31 97")
        person.type("sleep 4826\r")
        runs("sleep", "4826")
        person.type("\x03")
        person.sees("> ")
        person.type("echo was $?\r")
        person.sees("was 130")
        person.size(12, 55)
        person.type("stty size\r")
        person.sees("12 55")
        person.type("exit 6\r")
        assert person.has_left() == 6
        assert termios.tcgetattr(person.slave) == person.before


def test_what_is_piped_in_is_typed(client):
    done = client.cli("exec_remote", "run", "-t", "--", "sh", "-c", "test -t 0 && cat", stdin=b"hi\n")
    assert (done.returncode, done.stdout) == (0, b"hi\r\nhi\r\n")


def test_signals_of_a_run_are_passed_on(client):
    with Person(client, "exec_remote", "run", "-t", "-c", "trap 'exit 4' TERM; echo ready; while :; do sleep 0.1; done") as person:
        person.sees("ready")
        person.process.send_signal(signal.SIGTERM)
        assert person.has_left() == 4
        assert termios.tcgetattr(person.slave) == person.before


def test_start_and_resize_by_command(client):
    pid = client.cli("exec_remote", "start", "--tty", "-c", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done").stdout.decode().strip()
    processes.wait_until(lambda: b"ready" in client.cli("exec_remote", "logs", pid).stdout, "it to begin")
    assert client.cli("exec_remote", "resize", pid, "20", "70").returncode == 0
    assert client.cli("exec_remote", "logs", "-f", pid).stdout == b"ready\r\n20 70\r\n"
    done = client.cli("exec_remote", "resize", pid, "20", "x")
    assert done.returncode == 2
    other = client.cli("exec_remote", "start", "sleep", "60").stdout.decode().strip()
    done = client.cli("exec_remote", "resize", other, "20", "70")
    assert done.returncode == 1 and b"start it with --tty" in done.stderr


def test_the_tool_of_mcp(client):
    """job_start with pty, as a model has it."""
    process = client.popen("mcp", "serve", stdin=-1, stdout=-1)
    def ask(number, method, params):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
        process.stdin.flush()
        while True:
            line = json.loads(process.stdout.readline())
            if line.get("id") == number:
                return line["result"]
    ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
    job = ask(2, "tools/call", {"name": "job_start", "arguments": {"command": "test -t 1 && stty size", "pty": True}})["structuredContent"]["job"]
    answer = ask(3, "tools/call", {"name": "job_wait", "arguments": {"job": job}})["structuredContent"]
    process.stdin.close()
    assert answer["stdout"] == "40 120\r\n" and answer["exit_code"] == 0
    process.wait(60)
    process.stdout.close()
