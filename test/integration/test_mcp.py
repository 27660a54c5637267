"""The listed cases of MCP servers (docs/protocol.md), with fake servers that do what real ones have been seen to do."""
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import processes
from harness.client import LIMIT, PARAMERR, TOOLERR, RpcError
from harness.jobs import alive
from harness.mcp import ECHO, KEEPER, Server, end
from harness.server import gone, titled
from harness.sessions import SANITIZED


def error(call, *args, **more):
    with pytest.raises(RpcError) as raised:
        call(*args, **more)
    return raised.value


def refused(call, *words, **more):
    """The message of a tool error, which has to hold the words."""
    found = error(call, **more)
    assert found.code == TOOLERR, found
    assert all(word in found.message for word in words), found
    return found.message


# ---- C-056: log lines on stdout ----

NOISE = r"""
junk = ["starting…", "", "[debug] {not json", "123", '"str"', "[]", '{"a":1}', b"\xff\xfe", '{"jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","id":1}', '{"id":1,"result":"no"}', '{"jsonrpc":"1.0","id":1,"result":"no"}', "\r", " ", "null",
        '{"jsonrpc":"2.0","id":1,"result":"cut', '[{"jsonrpc":"2.0","id":1,"result":"no"}]', "\x00", "{", "}", b"{\x80}"]
say(*junk)
while message := take():
    say(*junk)
    answer(message, "right")
    say(*junk)
"""


def test_c056_noise_on_stdout(client):
    server = Server(client, fake=NOISE)
    for id in (1, "1", 1):
        assert server.ask(id=id) == {"jsonrpc": "2.0", "id": id, "result": "right"}


BROKEN = r"""
while message := take():
    for line in message["params"]:
        say(line.replace("ID", json.dumps(message["id"])))
"""


NO_JSON = ['{"jsonrpc":"2.0","id":ID,"result":{"x":"cut', '{"jsonrpc":"2.0","id":ID,"result":NaN}',
           '{"jsonrpc":"2.0","result":{},,"id":ID}', '{"jsonrpc":"2.0","resu']


def an_answer_that_is_no_json(client, line):
    server = Server(client, fake=BROKEN)
    right = '{"jsonrpc":"2.0","id":ID,"result":1}'
    assert server.ask(params=["noise", line, "[debug] {", line, right])["result"] == 1
    if "ID" in line:
        other = server.begin(id="other", params=[])
    refused(server.ask, "JSON", params=[line, "noise"])
    assert server.ask(id=2, params=[right])["result"] == 1
    if "ID" in line:
        assert server.status()["open_requests"] == 1
        server.kill()
        end(other)


def test_answers_that_are_no_json(client):
    """Their caller is told, and nobody else; where a right one follows, that is the answer.

    Slow: a caller waits 5 s for a right answer behind the wrong one.
    """
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(an_answer_that_is_no_json, client, line) for line in NO_JSON]:
            done.result()


# ---- C-057: long lines ----

LONG = """
sizes = {1: 1 << 20, 2: 40 << 20}
while message := take():
    n = sizes.get(message["id"])
    answer(message, "x" * n if n else "ok")
"""


def assert_small(pid):
    """That process has given its memory back. Only root may look, and sanitizers keep what was freed."""
    if os.geteuid() != 0 or SANITIZED:
        return
    with open(f"/proc/{pid}/smaps_rollup") as file:
        assert next(int(line.split()[1]) for line in file if line.startswith("Rss:")) < 2048


def test_c057_long_lines(client):
    """Slow: 40 MB through four processes."""
    server = Server(client, fake=LONG)
    keeper, = titled(KEEPER)
    limit = {LIMIT: str(10 << 20)}
    for id, n in ((1, 1 << 20), (2, 40 << 20)):
        result = client.rpc("mcp_send_request", server.params({"id": id, "method": "m"}), env=limit)["result"]
        assert result == "x" * n
    assert server.ask(id=3)["result"] == "ok"
    assert_small(keeper.pid)


def test_c057_time_is_linear(client):
    """Eight times the length in far less than 64 times the time."""
    server = Server(client, fake="""
while message := take():
    answer(message, "x" * message["params"]["n"])
""")

    def seconds(n):
        best = 1e9
        for id in range(3):
            began = time.monotonic()
            process = server.begin(id=id, params={"n": n})
            end(process)
            best = min(best, time.monotonic() - began)
        return best

    assert seconds(8 << 20) < 32 * seconds(1 << 20)


# ---- C-059: notifications ----

NOTES = """
while message := take():
    say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    for i in range(1000):
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": i}})
    say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": message["id"], "progress": 1}})
    answer(message, "done")
"""


def test_c059_notifications(client):
    server = Server(client, fake=NOTES)
    assert server.ask(id=1)["result"] == "done"
    assert server.ask(id=2)["result"] == "done"
    found = server.notes()
    assert (len(found["notifications"]), found["dropped"], found["remaining"]) == (2004, 0, 0)
    assert [note["params"]["data"] for note in found["notifications"][1:1001]] == list(range(1000))
    assert found["notifications"][2003]["params"] == {"progressToken": 2, "progress": 1}


# ---- C-060: requests from the server ----

ASKING = """
while message := take():
    for i, method in enumerate(["roots/list", "sampling/createMessage", "ping"]):
        id = message["id"] if i == 1 else f"s{i}"
        say({"jsonrpc": "2.0", "id": id, "method": method, "params": {}})
        reply = take()
        assert reply["id"] == id, reply
        assert reply["result"] == {} if method == "ping" else reply["error"]["code"] == -32601, reply
    answer(message, "answered")
"""


def test_c060_requests_from_the_server(client):
    server = Server(client, fake=ASKING)
    for id in (1, "s1", "one"):
        assert server.ask("tools/call", id=id) == {"jsonrpc": "2.0", "id": id, "result": "answered"}


# ---- C-061: a server that dies ----


@pytest.mark.parametrize("fake, words", [
    ("take(); print('its last words', file=sys.stderr); sys.exit(3)", ["exit status 3", "its last words"]),
    ("take(); os.kill(os.getpid(), 9)", ["signal 9"]),
    ("take(); os.close(1); time.sleep(1000)", ["closed its output", "still runs"]),
    ("sys.exit(4)", ["exit status 4"]),
])
def test_c061_server_that_dies(client, fake, words):
    server = Server(client, fake=fake)
    began = time.monotonic()
    refused(server.ask, *words)
    for _ in range(2):
        refused(server.ask, *words)
        refused(server.notify, *words)
    assert time.monotonic() - began < 60
    assert server.status()["state"] == "ended"
    assert server.kill() is None
    refused(server.ask, "was killed")
    assert Server(client, fake=ECHO).ask()["id"] == 1


def test_c061_kill_minus_nine_with_a_helper_that_holds_the_pipes(client):
    server = Server(client, "sh", "-c", "sleep 4801 & exec sleep 4802")
    waiting = server.begin()
    processes.wait_until(lambda: alive("sleep", "4802") and server.status()["open_requests"] == 1, "the request to be open")
    os.kill(alive("sleep", "4802")[0], signal.SIGKILL)
    assert "signal 9" in end(waiting)["error"]["message"]
    assert server.kill() is None
    assert not alive("sleep", "4801")
    processes.wait_until(lambda: processes.count_zombies(titled("toolbox server")[0].pid) == 0, "ended keepers to be waited for")


# ---- C-062: a server that will not stop ----


STUBBORN = [
    ["python3", "-c", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nwhile 1: time.sleep(4810)"],
    ["sh", "-c", "sleep 4811 & exec sleep 4812"],
    ["setsid", "sh", "-c", "sleep 4811 & sleep 4812; :"],
    ["sh", "-c", "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 4811; sleep 4811\" & sleep 4812; sleep 4812"],
]


def stubborn(client):
    servers = [Server(client, *words) for words in STUBBORN]
    processes.wait_until(lambda: len(alive("sleep", "4811")) == 3 and alive(*STUBBORN[0]), "them to run")
    return servers


def none_left():
    return not alive("sleep", "4811") and not alive("sleep", "4812") and not alive(*STUBBORN[0])


def test_c062_servers_that_will_not_stop(client):
    servers, other = stubborn(client), Server(client, fake=ECHO)
    began = time.monotonic()
    with ThreadPoolExecutor(len(servers)) as pool:
        ends = [pool.submit(server.kill) for server in servers]
        assert other.ask()["id"] == 1 and not all(end.done() for end in ends)  # meanwhile
        assert [end.result() for end in ends] == [None] * len(servers)
    assert time.monotonic() - began < 60
    assert none_left()
    refused(servers[0].ask, "was killed")


def test_c062_stop_server(client):
    stubborn(client)
    client.stop()
    assert none_left()


# ---- C-065: what can't be used ----


def test_c065_what_cannot_be_used(client, workdir):
    script = workdir / "script"
    script.write_text("echo hello\n")
    foreign = workdir / "foreign"
    foreign.write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\0\xf3\xee" + b"\0" * 100)
    dangling = workdir / "dangling"
    dangling.symlink_to("/no/such")
    for path in (script, foreign):
        path.chmod(0o755)

    def launch(words, **params):
        began = time.monotonic()
        found = error(Server, client, *words, **params)
        assert time.monotonic() - began < 20
        return found

    for command in ("no-such", "/etc/passwd", workdir, script, foreign, dangling, f"{dangling}/x", "./no-such"):
        found = launch([command])
        assert found.code == TOOLERR and f"{command}: " in found.message, found
    for cwd in ("/no/such", "/etc/passwd", dangling):
        found = launch(["true"], cwd=str(cwd))
        assert found.code == TOOLERR and f"directory '{cwd}': " in found.message, found
    assert launch(["true", "a\0b"]).code == PARAMERR
    assert launch([""]).code == PARAMERR
    gone(KEEPER)
    assert client.rpc("mcp_list_servers") == []
    assert Server(client, fake=ECHO).ask()["id"] == 1
    processes.wait_until(lambda: processes.count_zombies(titled("toolbox server")[0].pid) == 0, "ended keepers to be waited for")


# ---- C-068: a server that stops reading ----


def test_c068_server_that_does_not_read(client):
    stuck, healthy = Server(client, "sleep", "4820"), Server(client, fake=ECHO)
    waiting = stuck.begin(params={"x": "y" * (2 << 20)})
    processes.wait_until(lambda: stuck.status()["open_requests"] == 1, "the request to be open")
    assert healthy.ask()["id"] == 1
    assert client.rpc("remote_version")
    stuck.notify()
    assert stuck.kill() is None
    assert end(waiting)["error"]["code"] == TOOLERR
    assert healthy.ask(id=2)["id"] == 2


def test_c068_server_that_reads_slowly(client):
    server = Server(client, fake="""
total = b""
while not total.endswith(b"\\n"):
    total += os.read(0, 100 if len(total) < 20000 else 65536)
    time.sleep(0.01 if len(total) < 20000 else 0.001)
answer(json.loads(total), len(total))
""")
    text = "y" * (1 << 20)
    overhead = len('{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":""}}\n')
    assert server.ask(params={"x": text})["result"] == len(text) + overhead


def test_c068_server_that_writes_before_it_reads_on(client):
    server = Server(client, fake="""
begin = os.read(0, 10)
for i in range(16):
    say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "z" * 65536}})
message = json.loads(begin + sys.stdin.buffer.readline())
answer(message, len(message["params"]["x"]))
""")
    assert server.ask(params={"x": "y" * (2 << 20)})["result"] == 2 << 20


# ---- C-069: many at once ----

REVERSE = """
waiting = []
while message := take():
    waiting.append(message)
    if len(waiting) == message["params"]["n"]:
        for one in reversed(waiting):
            answer(one, one["params"]["text"])
        waiting = []
"""


def test_c069_answers_in_reverse(client):
    server = Server(client, fake=REVERSE)

    def call(i):
        id = [i, f"{i}", i + 0.5][i % 3]
        return server.ask(id=id, params={"n": 50, "text": f"text {i}"}) == {"jsonrpc": "2.0", "id": id, "result": f"text {i}"}

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(call, range(50)))


@pytest.mark.parametrize("first, second", [(1, 1), ("a", "a"), (10, 1e1)])
def test_c069_duplicate_id(client, first, second):
    server = Server(client, fake=REVERSE)
    waiting = server.begin(id=first, params={"n": 2, "text": "first"})
    processes.wait_until(lambda: server.status()["open_requests"] == 1, "the request to be open")
    refused(server.ask, "is open", id=second, params={"n": 2, "text": "second"})
    assert server.ask(id="other", params={"n": 2, "text": "other"})["result"] == "other"
    assert end(waiting)["result"]["result"] == "first"
    assert server.ask(id=second, params={"n": 1, "text": "again"})["result"] == "again"
