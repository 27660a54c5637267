"""What happens to jobs and MCP servers, as it happens, over one connection (docs/connection.md, "Subscriptions")."""
import os
import select

import pytest

from harness import stream
from harness.machine import HANG
from harness.mcp import Server


@pytest.fixture
def connect(client):
    """Opens connections; they are killed at the end."""
    made = []

    def connect():
        process = client.popen("exec", "--stream", bufsize=0)
        made.append(process)
        return Follower(process)

    yield connect
    for process in made:
        process.kill()
        process.communicate(timeout=HANG)


class Follower(stream.Stream):
    """One connection with one subscription."""

    def __init__(self, process):
        super().__init__(process.stdout, process.stdin, process)
        self.seq = 0

    def follow(self, method, params):
        self.request(method, params, id="it")

    def event(self, ack=True):
        """The next one, or the last, which is the answer."""
        message = self.receive()
        if message.get("id") == "it":
            self.ack("it")
            return message.get("result") or message["error"]["message"]
        params = message["params"]
        self.seq += 1
        assert message["method"] == "rpc.event" and params["subscription"] == "it" and params["seq"] == self.seq, message
        if ack:
            self.acknowledge()
        return params["event"]

    def acknowledge(self):
        self.notify("rpc.ack", {"subscription": "it", "seq": self.seq})

    def end(self):
        self.process.kill()
        self.process.wait(HANG)


@pytest.fixture
def job(client, workdir):
    """One that says what is written to a pipe: its pid, and that."""
    os.mkfifo(workdir / "pipe")
    pid = client.rpc("exec_remote_start", {"command": f'exec <{workdir}/pipe; while read -r line; do echo "$line"; echo "e$line" >&2; done; exit 3'})["pid"]
    with open(workdir / "pipe", "w", buffering=1) as pipe:
        yield pid, pipe


def said_in(events, stream="stdout"):
    return "".join(event[stream] for event in events)


def until(connection, text, stream="stdout"):
    events = []
    while text not in said_in(events, stream):
        events.append(connection.event())
    return events


def test_a_jobs_output_comes_as_it_is_printed_and_once(connect, job):
    pid, pipe = job
    connection, events = connect(), []
    connection.follow("exec_remote_follow", {"pid": pid})
    for i in range(30):
        pipe.write(f"<{i}>\n")
        events += until(connection, f"<{i}>")  # before anything else is written
    pipe.close()
    while not events[-1]["ended"]:
        events.append(connection.event())
    assert said_in(events) == "".join(f"<{i}>\n" for i in range(30))
    assert said_in(events, "stderr") == "".join(f"e<{i}>\n" for i in range(30))
    assert events[-1]["state"] == "completed" and events[-1]["exit_code"] == 3
    assert all(event["state"] == "running" and event["exit_code"] is None for event in events[:-1])
    assert [event["cursor"] for event in events] == sorted({event["cursor"] for event in events})


def test_a_slow_reader_gets_all_of_it_and_holds_up_nothing(connect, job):
    pid, pipe = job
    connection = connect()
    connection.follow("exec_remote_follow", {"pid": pid})
    pipe.write("first\n")
    events = [connection.event(ack=False)]
    for i in range(1000):
        pipe.write(f"{i}\n")
    pipe.close()
    assert connection.call("version")  # and meanwhile other calls go on
    connection.acknowledge()
    while not events[-1]["ended"]:
        events.append(connection.event())
    assert said_in(events) == "first\n" + "".join(f"{i}\n" for i in range(1000))


def test_what_was_not_acknowledged_is_there_for_the_next_connection(connect, job):
    pid, pipe = job
    first = connect()
    first.follow("exec_remote_follow", {"pid": pid})
    pipe.write("one\n")
    one = until(first, "one")[-1]
    pipe.write("two\n")
    while "two" not in first.event(ack=False)["stdout"]:
        first.acknowledge()
    first.end()
    second = connect()
    second.follow("exec_remote_follow", {"pid": pid, "cursor": one["cursor"]})
    pipe.write("three\n")
    assert said_in(until(second, "three")) == "two\nthree\n"
    second.notify("rpc.cancel", {"id": "it"})
    while not isinstance(second.event(), str):
        pass
    assert second.call("exec_remote_kill", {"pid": pid, "ack_seq": 0}) is not None


def test_a_job_that_has_ended_and_one_that_there_never_was(connect, client):
    pid = client.rpc("exec_remote_start", {"command": "echo x"})["pid"]
    assert client.rpc("exec_remote_wait", {"pid": pid, "ack_seq": 0})
    connection, events = connect(), []
    connection.follow("exec_remote_follow", {"pid": pid})
    while not events or not events[-1]["ended"]:
        events.append(connection.event())
    assert said_in(events) == "x\n" and events[-1]["exit_code"] == 0
    other = connect()
    other.follow("exec_remote_follow", {"pid": 999999999})
    assert "there is no job" in other.event()


def test_by_a_single_call_it_is_a_poll(client, job):
    pid, pipe = job
    pipe.write("one\n")
    first = client.rpc("exec_remote_follow", {"pid": pid})
    pipe.write("two\n")
    said = first["stdout"]
    while "two" not in said:
        first = client.rpc("exec_remote_follow", {"pid": pid, "cursor": first["cursor"]})
        said += first["stdout"]
    assert said == "one\ntwo\n" and not first["ended"]


ASKS = """
while message := take():
    if message["method"] == "end":
        break
    say({"jsonrpc": "2.0", "method": "said", "params": {"of": message["method"]}})
    if message["method"] == "ask":
        say({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
        say({"jsonrpc": "2.0", "method": "answered", "params": take()})
"""


def test_what_an_mcp_server_says_and_asks_for(connect, client):
    server, connection = Server(client, fake=ASKS), connect()
    connection.follow("mcp_follow", {"session_id": server.session})
    for i in range(10):
        server.notify(f"m{i}")
        event = connection.event()
        assert [note["params"]["of"] for note in event["notifications"]] == [f"m{i}"] and not event["ended"]
    server.notify("ask")
    notes = []
    while not notes or notes[-1]["method"] != "answered":
        notes += connection.event()["notifications"]
    assert [note["method"] for note in notes] == ["said", "roots/list", "answered"]
    assert notes[-1]["params"]["error"]["code"] == -32601
    assert server.notes()["notifications"] == []  # what was acknowledged has gone
    server.notify("end")
    event = connection.event()
    assert event["ended"] and event["notifications"] == []
    server.kill()


def test_another_follower_takes_over(connect, client):
    server, first, second = Server(client, fake=ASKS), connect(), connect()
    first.follow("mcp_follow", {"session_id": server.session})
    server.notify("one")
    assert first.event(ack=False)["notifications"][0]["params"]["of"] == "one"
    server.notify("two")
    second.follow("mcp_follow", {"session_id": server.session})
    notes = []
    while len(notes) < 2:
        notes += second.event()["notifications"]
    assert [note["params"]["of"] for note in notes] == ["one", "two"]
    first.acknowledge()  # both wait: whoever comes second is the one
    said = {}
    while "another client follows" not in said:  # until the second's acknowledgement is there, "two" is the first's as well
        assert [note["params"]["of"] for note in said.get("notifications", [])] in ([], ["two"])
        ready, _, _ = select.select([first.source, second.source], [], [], HANG)
        loser, winner = (first, second) if first.source in ready else (second, first)
        said = loser.event()
    server.notify("three")
    assert winner.event()["notifications"][0]["params"]["of"] == "three"
    server.kill()


def _watched(connection, n):
    events = []
    while len(events) < n:
        events += connection.event()["events"]
    return events


def test_what_begins_and_ends(connect, client):
    client.rpc("remote_version")
    connection = connect()
    connection.follow("server_watch", {})
    assert connection.event()["events"] == []
    session = client.rpc("bash_session_new_session")["session_name"]
    begun = _watched(connection, 1)[0]
    assert {"event": "begun", "kind": "BashSession", "session_name": session}.items() <= begun.items()
    pid = client.rpc("exec_remote_start", {"command": "read x", "stdin_open": True})["pid"]
    assert _watched(connection, 1) == [{"event": "begun", "kind": "Job", "pid": pid}]
    client.rpc("exec_remote_close_stdin", {"pid": pid, "ack_seq": 0})
    assert _watched(connection, 1) == [{"event": "ended", "kind": "Job", "pid": pid}]
    client.rpc("bash_session_close", {"session_name": session})
    assert _watched(connection, 1) == [{**begun, "event": "ended"}]
    server = Server(client, fake=ASKS)
    assert _watched(connection, 1) == [{"event": "begun", "kind": "Mcp", "session_id": server.session}]
    client.stop()
    while not connection.event()["ended"]:
        pass


def test_a_slow_watcher_is_told_what_it_has_missed(connect, client):
    client.rpc("remote_version")
    connection = connect()
    connection.follow("server_watch", {})
    first = connection.event(ack=False)
    pids = [client.rpc("exec_remote_start", {"command": "true"})["pid"] for _ in range(5)]
    for pid in pids:
        while client.rpc("exec_remote_wait", {"pid": pid, "ack_seq": 0})["state"] == "running":
            pass
    connection.acknowledge()
    events = _watched(connection, 10)
    assert [event["pid"] for event in events if event["event"] == "begun"] == pids
    assert sorted(event["pid"] for event in events if event["event"] == "ended") == sorted(pids)
    poll = client.rpc("server_watch", {"cursor": first["cursor"]})
    assert poll["events"] == events and poll["dropped"] == 0 and not poll["ended"]
    assert client.rpc("server_watch", {"cursor": 10**9})["events"] == []
