"""Who watches a session, and recordings of it: bash_session_watch, bash_session_record, replay."""
import contextlib
import json
import os
import subprocess
import time

import pytest

from harness import needs, processes, stream
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.machine import HANG
from harness.people import Person
from harness.sessions import Shell


class Watch:
    """Somebody who polls. `shown` is all that was shown, `typed` all that was typed."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.shown = self.typed = ""
        self.sizes = []
        self.take(client.rpc("bash_session_watch", {"session_name": name}))

    def take(self, answer):
        self.answer, self.cursor = answer, answer["cursor"]
        for _, kind, data in answer["events"]:
            self.shown += data if kind == "o" else ""
            self.typed += data if kind == "i" else ""
            self.sizes += [data] if kind == "r" else []
        return answer

    def poll(self, timeout=HANG):
        return self.take(self.client.rpc("bash_session_watch", {"session_name": self.name, "cursor": self.cursor, "timeout": timeout},
                                         timeout=timeout + HANG))

    def sees(self, text):
        while text not in self.shown:
            assert self.poll()["events"], self.shown


def cast(path):
    """(head, events) of a recording, which has to be whole."""
    head, *events = [json.loads(line) for line in path.read_text().splitlines()]
    return head, events


def data(events, kind):
    return "".join(text for _, what, text in events if what == kind)


# ---- watching ----


def test_all_is_seen_and_nothing_taken(client):
    client.new()
    client.run("echo before")
    watch = Watch(client, client.session)
    assert "before\r\n" in watch.shown
    assert client.run("echo $((6 * 7))")["output"] == "42\n"
    watch.sees("\r\n42\r\n")
    assert "echo $((6 * 7))\n" in watch.typed and "echo $((6 * 7))\r\n42\r\n" in watch.shown
    assert "typed\n" in client.bs("echo typed\n")
    watch.sees("typed\r\ntyped\r\n")
    client.rpc("bash_session_resize", {"session_name": client.session, "rows": 33, "cols": 101})
    while not watch.sizes:
        watch.poll()
    assert watch.sizes == ["101x33"] and (watch.answer["rows"], watch.answer["cols"]) == (33, 101)
    assert watch.poll(timeout=0)["events"] == []


def test_two_who_watch_see_the_same(client):
    client.new()
    one, two = Watch(client, client.session), Watch(client, client.session)
    client.run("seq 3")
    one.sees("3\r\n")
    two.sees("3\r\n")
    again = Watch(client, client.session)
    again.cursor = 0
    again.shown = ""
    again.sees("seq 3\r\n1\r\n2\r\n3\r\n")  # an older cursor goes back


def test_characters_and_sequences_that_are_cut(client):
    client.new()
    watch = Watch(client, client.session)
    client.run("printf '\\303'; sleep 0.1; printf '\\251 \\033[31mred\\377\\n'")
    watch.sees("é \x1b[31mred\ufffd\r\n")


def test_more_than_is_kept(client):
    client.new()
    watch = Watch(client, client.session)
    client.run("seq 300000 >/dev/tty")
    while "300000\r\n" not in watch.shown:
        watch.poll()
    assert watch.answer["omitted_bytes"] > 100000 or "\n1\r\n2\r\n" in watch.shown
    assert "omitted_bytes" not in watch.poll(timeout=0)


def test_the_end_of_a_session(client):
    client.new()
    client.run("true")
    watch = Watch(client, client.session)
    waits = client.popen("exec", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_watch",
                                             "params": {"session_name": client.session, "cursor": watch.cursor}}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    processes.wait_until(lambda: client.rpc("bash_session_list")[0]["bytes_in"] > 150, "the watch")
    client.rpc("bash_session_close", {"session_name": client.session})
    answer = json.loads(waits.communicate(timeout=HANG)[0])["result"]
    assert answer["ended"] is True
    with pytest.raises(RpcError) as failed:
        watch.poll()
    assert failed.value.code == TOOLERR


def test_one_who_goes_leaves_nothing(client):
    client.new()
    cursor = Watch(client, client.session).cursor
    for _ in range(5):
        waits = client.popen("exec", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_watch",
                                                 "params": {"session_name": client.session, "cursor": cursor}}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        waits.kill()
        waits.communicate()
    assert client.run("echo on")["output"] == "on\n"


def test_by_command(client):
    shell = Shell(client)
    watch = client.popen("bash_session", "watch", shell.name, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert os.read(watch.stdout.fileno(), 100)  # the prompt
    client.cli("bash_session", "run", shell.name, "printf '\\033[1mbold\\n'")
    seen = b""
    while b"\x1b[1mbold\r\n" not in seen:
        seen += os.read(watch.stdout.fileno(), 65536)
    watch.terminate()
    watch.wait(HANG)
    watch.stdout.close()
    lines = client.popen("bash_session", "watch", shell.name, "--json", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert json.loads(lines.stdout.readline())[1] == "o"
    client.cli("bash_session", "run", shell.name, "echo x")
    assert json.loads(lines.stdout.readline())[1:] == ["i", "echo x\n"]
    client.cli("bash_session", "close", shell.name)
    lines.communicate(timeout=HANG)
    assert lines.returncode == 0
    done = client.cli("bash_session", "watch", "BashSession_7")
    assert done.returncode == 1 and b"there is no BashSession_7" in done.stderr


# ---- over a stream ----


@contextlib.contextmanager
def streamed(client):
    process = client.popen("exec", "--stream", bufsize=0)
    try:
        yield stream.of(process)
    finally:
        process.kill()
        process.wait()
        for file in (process.stdin, process.stdout, process.stderr):
            file.close()


def next_event(s):
    while (message := s.receive()).get("method") != "rpc.event":
        pass
    return message["params"]


def event(s, subscription):
    """The next one, of that subscription."""
    while (params := next_event(s))["subscription"] != subscription:
        pass
    return params


def heard(s, params):
    s.send({"jsonrpc": "2.0", "method": "rpc.ack", "params": {"subscription": params["subscription"], "seq": params["seq"]}})


def test_events_come_by_themselves(client):
    client.new()
    with streamed(client) as s:
        assert "events" in s.hello["params"]["features"]
        watch = s.request("bash_session_watch", {"session_name": client.session})
        first = event(s, watch)
        assert first["seq"] == 1 and first["event"]["cursor"] == 0
        heard(s, first)
        client.run("echo one")
        shown, seq = "", 1
        while "one\r\n" not in shown.replace("echo one\r\n", ""):
            got = event(s, watch)
            seq += 1
            assert got["seq"] == seq
            shown += data(got["event"]["events"], "o")
            heard(s, got)
        s.send({"jsonrpc": "2.0", "method": "rpc.cancel", "params": {"id": watch}})
        while (answer := s.receive()).get("id") != watch:
            pass
        assert answer["error"]["message"] == "cancelled"
        assert s.call("version")


def test_who_does_not_acknowledge_gets_one_event_and_stalls_no_other(client):
    client.new()
    with streamed(client) as s:
        slow = s.request("bash_session_watch", {"session_name": client.session})
        first = event(s, slow)
        quick = s.request("bash_session_watch", {"session_name": client.session})
        heard(s, event(s, quick))
        for i in range(5):
            client.run(f"echo {i}")
            got = next_event(s)
            assert got["subscription"] == quick  # nothing else of the slow one has come
            heard(s, got)
        version = s.request("version")
        while (answer := s.receive()).get("id") != version:  # one run may be told of in several events
            assert answer["params"]["subscription"] == quick
            heard(s, answer["params"])
        heard(s, first)
        assert data(event(s, slow)["event"]["events"], "o").count("\r\n") >= 8  # all of it, together


def test_the_end_is_the_answer(client):
    client.new()
    with streamed(client) as s:
        watch = s.request("bash_session_watch", {"session_name": client.session})
        heard(s, event(s, watch))
        client.rpc("bash_session_close", {"session_name": client.session})
        while (answer := s.receive()).get("id") != watch:
            heard(s, answer["params"])
        assert "error" in answer or answer["result"]["ended"]
        gone = s.request("bash_session_watch", {"session_name": client.session})
        while (answer := s.receive()).get("id") != gone:
            pass
        assert answer["error"]["code"] == TOOLERR


def test_a_cursor_goes_on_where_a_stream_has_broken(client):
    client.new()
    with streamed(client) as s:
        first = event(s, s.request("bash_session_watch", {"session_name": client.session}))
    client.run("echo meanwhile")
    with streamed(client) as s:
        watch = s.request("bash_session_watch", {"session_name": client.session, "cursor": first["event"]["cursor"]})
        assert "echo meanwhile" in data(event(s, watch)["event"]["events"], "o")


# ---- recordings ----


@pytest.mark.parametrize("version", [2, 3])
def test_a_recording(client, workdir, version):
    path = workdir / "a.cast"
    name = client.rpc("bash_session_new_session", {"record": {"path": str(path), "version": version}, "cols": 90, "term": "vt100"})
    assert name["recording"] == str(path) and path.stat().st_mode & 0o777 == 0o600
    client.session = name["session_name"]
    client.run("echo hé; sleep 0.3; printf 'a\\nb\\n'")
    client.bs("echo typed\n")
    client.rpc("bash_session_resize", {"session_name": client.session, "rows": 40, "cols": 100})
    assert client.rpc("bash_session_list")[0]["recording"] == str(path)
    assert client.rpc("bash_session_record", {"session_name": client.session, "stop": True}) == {"path": str(path)}
    assert "recording" not in client.rpc("bash_session_list")[0]
    client.run("echo later")
    head, events = cast(path)
    assert head["version"] == version and abs(head["timestamp"] - time.time()) < 3600 and head["title"] == client.session
    size = (head["width"], head["height"], head["env"]["TERM"]) if version == 2 else tuple(head["term"][k] for k in ("cols", "rows", "type"))
    assert size == (90, 24, "vt100")
    shown = data(events, "o")
    assert "echo hé; sleep 0.3; printf 'a\\nb\\n'\r\nhé\r\na\r\nb\r\n" in shown and "echo typed\r\ntyped\r\n" in shown and "later" not in shown
    assert data(events, "i") == "echo hé; sleep 0.3; printf 'a\\nb\\n'\necho typed\n" and data(events, "r") == "100x40"
    times = [event[0] for event in events]
    if version == 2:
        assert times == sorted(times)
        times = [b - a for a, b in zip([0, *times], times)]
    assert max(times) >= 0.25 and min(times) >= 0


def test_what_is_typed_where_it_may_be_a_secret_is_left_out(client, workdir):
    shell = Shell(client, record=str(workdir / "a.cast"))
    shell.bs("read -s secret\n")
    shell.bs("hunter2\n")
    shell.bs("echo ${#secret}; cat\nhunter3\n")  # the first line is the shell's
    shell.bs("hunter4\n\x04")
    with Person(client, "bash_session", "attach", shell.name) as person:
        person.sees("etach")
        person.type("read -s secret\r")
        processes.wait_until(lambda: client.rpc("bash_session_list")[0]["state"] != "prompt", "read")
        person.type("hunter5\r")
        processes.wait_until(lambda: client.rpc("bash_session_list")[0]["state"] == "prompt", "the prompt")
        person.type("echo attached\r")
        person.sees("echo attached")
        person.sees("attached\r\n")
    assert client.rpc("bash_session_record", {"session_name": shell.name, "stop": True})
    _, events = cast(workdir / "a.cast")
    assert "hunter2" not in data(events, "i") + data(events, "o") and "hunter5" not in data(events, "i") + data(events, "o")
    assert "hunter3" not in data(events, "i") and "hunter4" not in data(events, "i")  # cat has shown both
    assert "read -s secret\n" in data(events, "i") and "echo ${#secret}; cat\n" in data(events, "i") and "7\r\n" in data(events, "o")


def test_where_to(client, workdir):
    name = client.rpc("bash_session_new_session", {"record": True})
    assert os.path.dirname(name["recording"]) == str(client.dir)
    session = {"session_name": name["session_name"]}
    with pytest.raises(RpcError, match="recorded to .* already; stop that first"):
        client.rpc("bash_session_record", session)
    client.rpc("bash_session_record", {**session, "stop": True})
    with pytest.raises(RpcError, match="it is not recorded"):
        client.rpc("bash_session_record", {**session, "stop": True})
    (workdir / "there").write_text("mine")
    (workdir / "link").symlink_to(workdir / "other")
    for path, said in (("there", "File exists"), ("link", "File exists"), ("no/such", "No such file")):
        with pytest.raises(RpcError, match=said) as failed:
            client.rpc("bash_session_record", {**session, "path": str(workdir / path)})
        assert failed.value.code == TOOLERR
        with pytest.raises(RpcError, match=said):
            client.rpc("bash_session_new_session", {"record": str(workdir / path)})
    assert (workdir / "there").read_text() == "mine" and not (workdir / "other").exists()
    for params, said in (({"path": "a"}, "path: must be an absolute path"), ({"version": 1}, "version: must be between 2 and 3"),
                         ({"max_bytes": 1}, "max_bytes: must be at least 65536")):
        with pytest.raises(RpcError, match=said) as failed:
            client.rpc("bash_session_record", {**session, **params})
        assert failed.value.code == PARAMERR
    assert len(client.rpc("bash_session_list")) == 1
    client.rpc("bash_session_record", {**session, "path": str(workdir / "again")})  # as often as one likes
    os.unlink(name["recording"])


def test_it_is_bounded(client, workdir):
    path = workdir / "a.cast"
    client.new(record={"path": str(path), "max_bytes": 200000})
    client.run("seq 200000 >/dev/tty; echo the end")
    client.rpc("bash_session_close", {"session_name": client.session})
    files = sorted(workdir.glob("a.cast*"))
    assert [file.name for file in files] == ["a.cast", "a.cast.1"] and all(file.stat().st_size <= 280000 for file in files)
    (head, events), (before, older) = map(cast, files)
    assert head["version"] == before["version"] == 2
    assert (data(older, "o") + data(events, "o")).replace("\r\n", " ").endswith("the end " + data(events, "o").split("\r\n")[-1])




def test_a_restart_goes_on(client, workdir):
    client.new(record=str(workdir / "a.cast"))
    client.run("echo one")
    client.rpc("bash_session", {"session_name": client.session, "restart": True})
    client.run("echo two")
    client.rpc("bash_session_close", {"session_name": client.session})
    shown = data(cast(workdir / "a.cast")[1], "o")
    assert "one\r\n" in shown and "two\r\n" in shown


def test_a_program_in_the_place_of_a_shell(client, workdir):
    needs.program("python3")
    client.new(program=["python3", "-q"], record=str(workdir / "a.cast"))
    client.run("print(6 * 7)")
    client.rpc("bash_session_close", {"session_name": client.session})
    _, events = cast(workdir / "a.cast")
    assert "print(6 * 7)\n" in data(events, "i") and "42\r\n" in data(events, "o")


def test_replay(client, workdir):
    path = workdir / "a.cast"
    name = client.cli("bash_session", "new", "--record", "a.cast", cwd=workdir).stdout.decode().strip()
    client.cli("bash_session", "run", name, "printf '\\033[1mbold\\033[0m\\n'; sleep 0.4; echo plain")
    done = client.cli("bash_session", "record", name, "--stop")
    assert done.stdout.decode().strip() == str(path)
    assert client.cli("bash_session", "record", name, "b.cast", "--v3", cwd=workdir).stdout.decode().strip() == str(workdir / "b.cast")
    client.cli("bash_session", "run", name, "echo third")
    client.cli("bash_session", "close", name)
    text = client.cli("bash_session", "replay", str(path), "--text").stdout.decode()
    assert "bold\nplain\n" in text and "\x1b" not in text and "\r" not in text
    began = time.monotonic()
    raw = client.cli("bash_session", "replay", str(path)).stdout.decode()
    assert "\x1b[1mbold\x1b[0m\r\nplain\r\n" in raw and time.monotonic() - began > 0.4
    assert client.cli("bash_session", "replay", str(path), "--idle", "0", "--speed", "100").stdout.decode() == raw
    assert "echo third\r\nthird\r\n" in client.cli("bash_session", "replay", str(workdir / "b.cast"), "--idle", "0").stdout.decode()
    lines = client.cli("bash_session", "replay", str(path), "--json").stdout.decode().splitlines()
    assert [json.loads(line) for line in lines] == cast(path)[1]
    with path.open("a") as file:
        file.write("# a comment\n[99.0,\"o\",\"cut")  # as one whose writer was killed
    assert client.cli("bash_session", "replay", str(path), "--text").stdout.decode() == text
    for words, status, said in (((str(workdir / "none"),), 1, b"No such file"), ((__file__,), 1, b"no recording"),
                                ((str(path), "--speed", "0"), 2, b"--speed"), ((str(path), "--idle", "x"), 2, b"--idle")):
        done = client.cli("bash_session", "replay", *words)
        assert done.returncode == status and said in done.stderr


def test_asciinema_reads_it(client, workdir):
    needs.program("asciinema")
    client.new(record=str(workdir / "a.cast"))
    client.run("echo it is read")
    client.rpc("bash_session_close", {"session_name": client.session})
    done = subprocess.run(["asciinema", "cat", workdir / "a.cast"], capture_output=True, timeout=HANG, check=True)
    assert b"it is read\r\n" in done.stdout
