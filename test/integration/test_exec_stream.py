"""`toolbox exec --stream`: any number of calls over one stdin and stdout."""
import contextlib
import json
import os
import random
import re
import time

import pytest

from harness import processes, server, stream
from harness.client import INVALID_REQUEST, NO_METHOD, PARAMERR, PARSE, TOOLERR, RpcError
from harness.containers import REPO
from harness.machine import HANG


needs_real_memory = pytest.mark.skipif("TOOLBOX_SANITIZED" in os.environ, reason="with sanitizers memory says nothing")


@pytest.fixture
def opened(client):
    """Opens streams; they are killed at the end where they haven't ended by then."""
    with contextlib.ExitStack() as stack:

        def make(**how):
            process = client.popen("exec", "--stream", bufsize=0, **how)
            stack.callback(_finish, process)
            return stream.of(process)

        yield make


def _finish(process):
    process.kill()
    process.wait()
    for file in (process.stdin, process.stdout, process.stderr):
        file.close()


@pytest.fixture
def s(opened):
    return opened()


def test_says_hello(s, client):
    params = s.hello["params"]
    assert params["build"] == client.probe()["build"] and params["limits"]["open"] >= 32
    assert {"ack", "alive", "batch", "cancel"} <= set(params["features"])


def test_calls_of_all_kinds(s, workdir):
    assert re.fullmatch(r"\d+\.\d+\.\d+", s.call("version"))
    assert "pid" in s.call("remote_version")
    s.call("text_editor", {"command": "create", "path": f"{workdir}/a", "file_text": "x\n"})
    session = s.call("bash_session_new_session")["session_name"]
    assert s.call("bash_session_run", {"session_name": session, "command": "echo $((6*7))"})["output"] == "42\n"
    with pytest.raises(RpcError, match="Method not found"):
        s.call("no_such_method")
    with pytest.raises(RpcError, match="session"):
        s.call("bash_session_run", {"session_name": "nobody", "command": "true"})


def test_answers_come_as_they_finish(s, workdir):
    os.mkfifo(workdir / "go")
    session = s.call("bash_session_new_session")["session_name"]
    slow = s.request("bash_session_run", {"session_name": session, "command": f"read x <{workdir}/go; echo got $x"})
    assert s.call("remote_version")  # while that waits
    (workdir / "go").write_text("it\n")
    answer = s.receive()
    assert answer["id"] == slow and answer["result"]["output"] == "got it\n"


def test_one_that_waits_stalls_no_other(s):
    """One call after the other is answered while a job's end is waited for."""
    pid = s.call("exec_remote_start", {"command": "read x", "stdin_open": True})["pid"]
    waits = s.request("exec_remote_wait", {"pid": pid, "ack_seq": 0})
    for _ in range(20):
        assert s.call("version") and s.call("exec_remote_list")
    s.request("exec_remote_close_stdin", {"pid": pid, "ack_seq": 0}, id="close")
    assert {s.receive()["id"], s.receive()["id"]} == {waits, "close"}


def test_a_thousand_open_at_once(s):
    pid = s.call("exec_remote_start", {"command": "read x", "stdin_open": True})["pid"]
    first = s.next_id + 1
    n = min(990, s.hello["params"]["limits"]["open"] - 10)  # fewer where so many descriptors can't be had
    for _ in range(n):
        s.request("exec_remote_wait", {"pid": pid, "ack_seq": 0})
    s.request("exec_remote_close_stdin", {"pid": pid, "ack_seq": 0}, id="close")
    answers = [s.receive() for _ in range(n + 1)]
    assert all("result" in answer for answer in answers), [a for a in answers if "error" in a][:3]
    ids = [answer["id"] for answer in answers]
    assert len(ids) == len(set(ids)) and set(ids) == {*range(first, first + n), "close"}
    s.ack(*ids)
    assert s.call("version")


def test_more_than_the_limit_is_an_error(s):
    limit = s.hello["params"]["limits"]["open"]
    for _ in range(limit):
        s.request("remote_version")
        assert "result" in s.receive()
    s.request("version")
    refused = s.receive()
    assert refused["error"]["code"] == TOOLERR and "rpc.ack" in refused["error"]["message"]
    s.ack(*range(1, limit + 1))
    assert s.call("version")


def test_batches(s):
    request = {"jsonrpc": "2.0", "method": "version"}
    s.send([{**request, "id": 1}, {**request, "id": 2, "method": "remote_version"}, request, {**request, "id": 3, "method": "no"}, 7])
    answer = s.receive()
    assert {one["id"] for one in answer} == {1, 2, 3, None} and len(answer) == 4
    s.send([])
    assert s.receive()["error"]["code"] == INVALID_REQUEST
    s.send([request])  # of notifications alone nothing is said
    assert s.call("version")


@pytest.mark.parametrize("line, code", [
    (b"{", PARSE), (b"\xff\xfe", PARSE), (b"7", INVALID_REQUEST), (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":"rpc.ack"}', PARAMERR), (b'{"jsonrpc":"2.0","id":1,"method":"rpc.no"}', NO_METHOD),
    (b'{"jsonrpc":"2.0","id":1,"method":"version","params":[]}', PARAMERR)])
def test_a_bad_line_is_an_error_answer(s, line, code):
    s.send_text(line + b"\n\n  \r\n")
    assert s.receive()["error"]["code"] == code
    assert s.call("version")


def test_only_an_acknowledged_answer_is_delivered(s, client):
    session = s.call("bash_session_new_session")["session_name"]
    s.call("bash_session", {"session_name": session, "wait_for_output": 5, "idle_timeout": 0.2})
    run = {"session_name": session, "command": "echo once"}
    lost = s.request("bash_session_run", run)
    assert s.receive()["result"]["output"] == "once\n"
    s.notify("rpc.cancel", {"id": lost})  # given back
    assert s.call("bash_session_run", {"session_name": session})["output"] == "once\n"
    with pytest.raises(RpcError):  # that was acknowledged: there is nothing more to wait for
        s.call("bash_session_run", {"session_name": session})


def test_what_was_not_acknowledged_is_there_for_the_next_stream(opened, client):
    first = opened()
    session = first.call("bash_session_new_session")["session_name"]
    first.request("bash_session_run", {"session_name": session, "command": "echo kept; exit_status() { return 3; }; exit_status"})
    assert first.receive()["result"]["exit_code"] == 3
    first.process.kill()
    first.process.wait()
    again = opened().call("bash_session_run", {"session_name": session})
    assert (again["output"], again["exit_code"]) == ("kept\n", 3)


def test_a_killed_stream_leaves_its_calls_to_the_next(opened, client, workdir):
    os.mkfifo(workdir / "go")
    first = opened()
    session = first.call("bash_session_new_session")["session_name"]
    first.request("bash_session_run", {"session_name": session, "command": f"read x <{workdir}/go; echo $x"})
    with open(workdir / "go", "w") as go:  # opens once the command reads
        first.process.kill()
        first.process.wait()
        go.write("late\n")
    assert client.rpc("bash_session_run", {"session_name": session})["output"] == "late\n"


def test_cancelled_calls_free_their_session(s):
    session = s.call("bash_session_new_session")["session_name"]
    s.request("bash_session_run", {"session_name": session, "command": "cat /dev/zero >/dev/null", "interrupt_abandoned": True}, id="x")
    processes.wait_until(lambda: s.call("bash_session_list")[0]["state"] == "running", "the command to run")
    assert s.request("rpc.cancel", {"id": "x"}) and s.receive()["error"]["message"] == "cancelled"
    assert s.receive()["result"] is True
    assert s.call("bash_session_run", {"session_name": session, "command": "echo free"})["output"] == "free\n"


def test_a_killed_server_is_started_again(s):
    session = s.call("bash_session_new_session")["session_name"]
    assert server.kill_servers()
    assert s.call("bash_session_run", {"session_name": session, "command": "echo on"})["output"] == "on\n"
    assert "pid" in s.call("remote_version")


def test_queries_go_over_one_connection_to_the_server(s):
    """And over a new one where that server has ended since."""
    def connections():
        return s.call("server_status")["counters"]["connections"]

    before = connections()
    for _ in range(20):
        s.call("remote_version")
    assert connections() <= before + 1
    pid = s.call("server_status")["server"]["pid"]
    assert s.call("sandbox_tools_shutdown") is None
    processes.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the server to end")
    assert s.call("server_status")["server"]["pid"] != pid


def test_a_file_and_its_end(client, workdir):
    """Requests in a file, and answers in one: what is open at the end has two seconds. The last line may lack its newline."""
    client.rpc("remote_version")  # a start of the server isn't to take them
    lines = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": m}) + "\n" for i, m in enumerate(["version", "remote_version"] * 50))
    (workdir / "in").write_text(lines)
    with open(workdir / "in", "rb") as source, open(workdir / "out", "wb") as sink:
        with client.popen("exec", "--stream", stdin=source, stdout=sink) as process:
            assert process.wait(HANG) == 0
    answers = [json.loads(line) for line in (workdir / "out").read_text().splitlines()][1:]
    assert sorted(answer["id"] for answer in answers) == list(range(100)) and all("result" in answer for answer in answers)
    done = client.cli("exec", "--stream", stdin=lines.strip().encode())
    assert done.returncode == 0 and done.stdout.count(b"\n") == 101
    half = client.cli("exec", "--stream", stdin=lines[:-6].encode())
    assert half.returncode == 0 and half.stdout.count(b"\n") == 101 and half.stdout.count(b'"id":null,"error":{"code":-32700') == 1, half


def test_the_end_of_input_abandons_what_waits(s, client):
    pid = s.call("exec_remote_start", {"command": "read x", "stdin_open": True})["pid"]
    s.request("exec_remote_wait", {"pid": pid, "ack_seq": 0})
    assert s.close() == [] and s.process.wait(HANG) == 0
    assert client.rpc("exec_remote_poll", {"pid": pid, "ack_seq": 0})["state"] == "running"


def test_ends_when_nobody_reads(s):
    s.source.close()
    assert s.process.wait(HANG) == 1


@needs_real_memory
def test_who_does_not_read_costs_bounded_memory(s):
    """Sixty answers of four megabytes each are asked for and not read: they wait where they are."""
    pid = s.call("exec_remote_start", {"command": "head -c 4000000 /dev/zero | tr '\\0' x; read x", "stdin_open": True})["pid"]
    processes.wait_until(lambda: len(s.call("exec_remote_poll", {"pid": pid, "ack_seq": 0})["stdout"]) == 4000000, "all output")
    first = s.next_id + 1
    for _ in range(60):
        s.request("exec_remote_poll", {"pid": pid, "ack_seq": 0})
    processes.wait_until(lambda: _unread(s.source.fileno()) >= 65536, "answers to come")
    time.sleep(0.3)  # for more to come, where that is wrong
    assert _resident_kb(s.process.pid) < 40 * 1024
    for id in range(first, first + 60):
        answer = s.receive()
        assert len(answer["result"]["stdout"]) == 4000000
    assert _resident_kb(s.process.pid) < 40 * 1024


def _unread(fd):
    import fcntl
    import struct
    import termios
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]


def _resident_kb(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])


@needs_real_memory
def test_memory_stays_flat(s):
    for _ in range(200):
        s.call("remote_version")
    before = _resident_kb(s.process.pid)
    for _ in range(3000):
        s.call("remote_version")
    assert _resident_kb(s.process.pid) <= before + 64


def test_nothing_is_lost_and_nothing_comes_twice_when_streams_are_killed(opened, client):
    """A session counts how often it is asked; streams that ask are killed at any moment. All that it has said is got, once."""
    dice = random.Random(20)
    session = client.new()
    client.run("PS1=")
    got, s = "", opened()
    read = {"session_name": session, "wait_for_output": 1, "idle_timeout": 1}
    for _ in range(30):
        asked = s.request("bash_session", {**read, "input": "echo $((++n))\n"})
        if dice.random() < 0.5:
            time.sleep(dice.random() / 100)
        else:
            got += s.receive()["result"]
            s.ack(asked)
            s.call("version")  # behind which the acknowledgement was taken
        s.process.kill()
        s.process.wait()
        s = opened()
    while more := s.call("bash_session", read):
        got += more
    numbers = re.findall(r"^\d+$", got, re.M)
    assert numbers == [str(i + 1) for i in range(len(numbers))] and len(numbers) >= 10


def test_stream_goes_alone(client):
    for more in (["--whole"], ["version"]):
        done = client.cli("exec", "--stream", *more)
        assert done.returncode == 2 and b"--stream" in done.stderr


def test_the_client_of_the_documentation(client, toolbox):
    """The one in docs/connection.md, as it stands there."""
    page = (REPO / "docs" / "connection.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.S)[1]
    assert code.count("\n") <= 60
    done = client.machine.run(["/usr/bin/python3", "-c", code, str(toolbox), "exec", "--stream"], env=client.env)
    assert done.returncode == 0, done.stderr.decode()
    assert b"hello from a session" in done.stdout
