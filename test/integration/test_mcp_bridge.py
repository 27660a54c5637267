"""MCP servers beyond the listed cases: what passes unchanged, ids, encodings, environments, clients that go, limits."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from harness import processes
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.jobs import alive
from harness.machine import HANG
from harness.mcp import ECHO, KEEPER, PRELUDE, Server, end, server_params
from harness.server import Door, curl, http_request, kill_servers, dial, request, socket_of, titled
from harness.users import needs_root
from test_mcp import assert_small, error, refused

RAW = """
while line := sys.stdin.buffer.readline():
    message = json.loads(line)
    with open(os.environ["SEEN"], "ab") as file:
        file.write(line)
    say(open(os.environ["ANSWER"], "rb").read())
"""


def raw_call(session, text):
    return b'{"jsonrpc":"2.0","id":1,"method":"mcp_send_request","params":{"session_id":%d,"request":%b}}' % (session, text)


# ---- what passes ----


def test_bytes_pass_unchanged(client, workdir):
    seen, answer = workdir / "seen", workdir / "answer"
    env = {"SEEN": str(seen), "ANSWER": str(answer), "PATH": os.environ["PATH"]}
    server = Server(client, fake=RAW, env=env)
    sent = ('{"method":"m\\u00e9","params":{"z":1.0,"a":9007199254740993,"b":1E400,"c":"\\ud83d\\ude00 \\/ é\\u0000","z":-0,'
            '"d":[[],{}," \\n "]},"jsonrpc":"2.0","id":"\\u0041"}').encode()
    back = '{"result":{"y":1e2,"x":"\\u00e9é\\ud800","n":123456789012345678901234567890},"id":"A","jsonrpc":"2.0","more":null}'.encode()
    answer.write_bytes(back)
    spread = sent.replace(b'":', b'" :\t').replace(b'{"method', b'\r\n {\n"method')
    got = client.line(raw_call(server.session, spread))
    assert seen.read_bytes() == sent + b"\n"
    assert got == b'{"jsonrpc":"2.0","id":1,"result":' + back + b"}"


def test_line_ends(client, workdir):
    """CRLF, a last line without an end, answers cut and joined."""
    server = Server(client, fake=r"""
first, second = take(), take()
data = b"".join(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": "r"}).encode() + b"\r\n" for m in (first, second))
for byte in data[:-2]:
    os.write(1, bytes([byte]))
    time.sleep(0.001)
""")
    waiting = server.begin(id=1)
    assert server.ask(id=2)["result"] == "r" and end(waiting)["result"]["result"] == "r"


def test_error_answers_pass(client):
    server = Server(client, fake="""
say({"jsonrpc": "2.0", "id": take()["id"], "error": {"code": -32602, "message": "no", "data": [1]}})
say({"jsonrpc": "2.0", "id": take()["id"], "error": None, "result": None})
""")
    assert server.ask(id=1) == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no", "data": [1]}}
    assert server.ask(id=2) == {"jsonrpc": "2.0", "id": 2, "error": None, "result": None}


@pytest.mark.parametrize("id, others", [
    ("1", ['"1"', '"1.0"', '"1e1"', "2", "-1", "null", '["1"]', "10", "0.1"]),
    ('"1"', ["1", '"01"', '" 1"', '"1\\u0000"']),
    ("9007199254740993", ["9007199254740992", "9007199254740994", '"9007199254740993"']),
    ('"\\u00e9"', ['"e"', '"\\u00c9"', '"\\u00e9 "']),
    ("0", ["0.0000001", '""', "false"]),
    ('""', ["0", "null", '" "']),
])
def test_ids_are_matched_by_type_and_value(client, id, others):
    """Answers to other ids before the right one."""
    server = Server(client, fake=f"""
others, id = {others!r}, {id!r}
take()
for other in others:
    say('{{"jsonrpc":"2.0","id":' + other + ',"result":"wrong"}}')
say('{{"jsonrpc":"2.0","id":' + id + ',"result":"right"}}')
say('{{"jsonrpc":"2.0","id":' + id + ',"result":"twice"}}')
answer(take(), "next")
""")
    got = json.loads(client.line(raw_call(server.session, b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % id.encode())))
    assert got["result"]["result"] == "right"
    assert server.ask(id="next")["result"] == "next"
    assert server.status()["dropped_lines"] == len(others) + 1


@pytest.mark.parametrize("id, same", [("1", "1.0"), ("100", "1e2"), ("-0", "0"), ('"A"', '"\\u0041"'), ("1.50", "15e-1")])
def test_ids_of_the_same_value(client, id, same):
    server = Server(client, fake=f"""
take()
say('{{"jsonrpc":"2.0","id":{same},"result":"right"}}'.encode())
""".replace("\\", "\\\\"))
    got = client.line(raw_call(server.session, b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % id.encode()))
    assert b'"right"' in got, got


# ---- encodings ----

BAD = r"""
message = take()
say(b'{"jsonrpc":"2.0","id":1,"result":"a\xffb\xc3"}')
answer(message, "good é")
answer(take(), "end")
"""


@pytest.mark.parametrize("handler, result", [(None, "good é"), ("strict", "good é"), ("replace", "a�b�"), ("ignore", "ab")])
def test_bad_bytes(client, handler, result):
    server = Server(client, fake=BAD, encoding="UTF-8", encoding_error_handler=handler)
    assert server.ask(id=1)["result"] == result
    assert server.ask(id=2)["result"] == "end"


@pytest.mark.parametrize("handler, result", [("strict", "plain"), ("replace", "a��b"), ("ignore", "ab")])
def test_ascii(client, handler, result):
    server = Server(client, fake=r"""
message = take()
assert line.isascii() and message["params"] == {"x": "é\U0001f600"}, line
say('{"jsonrpc":"2.0","id":1,"result":"aéb"}')
answer(message, "plain")
""", encoding="US-ASCII", encoding_error_handler=handler)
    assert server.ask(params={"x": "é\U0001f600"})["result"] == result


@pytest.mark.parametrize("params, field", [
    ({"encoding": "latin-1"}, "encoding"), ({"encoding": "utf-16"}, "encoding"), ({"encoding": ""}, "encoding"),
    ({"encoding": 7}, "encoding"), ({"encoding_error_handler": "backslashreplace"}, "encoding_error_handler"),
    ({"args": "x"}, "args"), ({"args": [1]}, "args[0]"), ({"env": {"A": 1}}, "env.A"), ({"env": {"A=B": "1"}}, "env"),
    ({"cwd": 1}, "cwd"), ({"command": None}, "command"), ({"command": ""}, "command"),
])
def test_launch_params(client, params, field):
    found = error(client.rpc, "mcp_launch_server", {"server_params": {"command": "true", **params}})
    assert found.code == PARAMERR and f"server_params.{field}" in found.message


@pytest.mark.parametrize("params, field", [
    ({}, "session_id"), ({"session_id": "0"}, "session_id"), ({"session_id": 0.0}, "session_id"),
    ({"session_id": 0}, "request"), ({"session_id": 0, "request": []}, "request"), ({"session_id": 0, "request": {}}, "request.jsonrpc"),
    ({"session_id": 0, "request": {"jsonrpc": "2.0", "id": 1}}, "request.method"),
    ({"session_id": 0, "request": {"jsonrpc": "2.0", "method": "m"}}, "request.id"),
    ({"session_id": 0, "request": {"jsonrpc": "2.0", "method": "m", "id": None}}, "request.id"),
    ({"session_id": 0, "request": {"jsonrpc": "2.0", "method": "m", "id": True}}, "request.id"),
])
def test_request_params(client, params, field):
    Server(client, fake=ECHO)
    found = error(client.rpc, "mcp_send_request", params)
    assert found.code == PARAMERR and field in found.message


def test_unknown_keys_are_ignored(client):
    session = client.rpc("mcp_launch_server", {"server_params": {**server_params(["cat"], {}), "x": 1}})
    found = error(client.rpc, "mcp_launch_server", {"server_params": server_params(["cat"], {}), "y": 2})
    assert found.code == PARAMERR and "y: " in found.message
    client.rpc("mcp_send_notification", {"session_id": session, "z": 3, "notification": {"jsonrpc": "2.0", "method": "n", "w": 4}})
    assert error(client.rpc, "mcp_send_notification",
                 {"session_id": session, "notification": {"jsonrpc": "2.0", "method": "n", "id": 1}}).code == PARAMERR
    for id in (-1, 1, 99999999999):
        refused(client.rpc, f"there is no MCP server {id}", method="mcp_kill_server", params={"session_id": id})


# ---- where it runs ----

WHERE = "while message := take():\n    answer(message, [os.getcwd(), dict(os.environ), os.getuid(), os.getgroups(), os.getsid(0) == os.getpid()])\n"


def test_environment_given_is_all(client):
    server = Server(client, fake=WHERE, env={"ONLY": "this é"}, cwd="/usr")
    where, env, *_ = server.ask()["result"]
    assert where == "/usr" and {name for name in env if name != "LC_CTYPE"} == {"ONLY"} and env["ONLY"] == "this é"
    assert Server(client, fake=WHERE, env={}).ask()["result"][1].get("PATH") is None


def test_environment_and_directory_of_the_server(new_client, workdir):
    client = new_client(env={"MINE": "x", "INSPECT_MCP_READLINE_LIMIT_BYTES": "1000000"})
    client.cli("start-server", cwd=workdir)
    where, env, *_ = Server(client, fake=WHERE).ask()["result"]
    assert where == str(workdir) and env["MINE"] == "x"
    assert not [name for name in env if name.startswith(("TOOLBOX_", "INSPECT_"))]
    (workdir / "below").mkdir()
    assert Server(client, fake=WHERE, cwd="below").ask()["result"][0] == str(workdir / "below")


def test_a_name_is_looked_up_also_without_a_path(new_client, workdir):
    """env has no PATH: the server's own leads to the program, which doesn't see it."""
    (workdir / "odd-name").symlink_to(sys.executable)
    client = new_client(env={"PATH": f"{workdir}:{os.environ['PATH']}"})
    server = Server(client, "odd-name", "-c", PRELUDE + WHERE, env={"A": "1"})
    assert "PATH" not in server.ask()["result"][1]


@needs_root
def test_another_user(client, user):
    def launch(who):
        params = {"server_params": server_params([sys.executable, "-c", PRELUDE + WHERE], {}), "user": who}
        server = Server.__new__(Server)
        server.client, server.session = client, client.rpc("mcp_launch_server", params)
        return server.ask()["result"]

    for who in (user.name, {"uid": user.uid, "gid": user.gid, "groups": [user.gid], "home": "/usr"}):
        _, env, uid, groups, leader = launch(who)
        assert uid == user.uid and 0 not in groups and leader
        assert env["HOME"] == ("/usr" if isinstance(who, dict) else user.home)
    assert error(launch, "no-such-user").code == TOOLERR


@needs_root
def test_another_user_is_at_home_whatever_its_variables(client, user):
    def env_of(who, env):
        params = {"server_params": {**server_params([sys.executable, "-c", PRELUDE + WHERE], {}), "env": env}, "user": who}
        server = Server.__new__(Server)
        server.client, server.session = client, client.rpc("mcp_launch_server", params)
        found = server.ask()["result"][1]
        found.pop("LC_CTYPE", None)
        return found

    numbers = {"uid": user.uid, "gid": user.gid, "groups": [user.gid], "home": "/usr"}
    assert env_of(user.name, {"A": "1"}) == {"A": "1", "HOME": str(user.home)}
    assert env_of(numbers, {"A": "1"}) == {"A": "1", "HOME": "/usr"}
    assert env_of(numbers, {}) == {"HOME": "/usr"}
    assert env_of(numbers, {"HOME": "/own"}) == {"HOME": "/own"}


# ---- clients that go ----

# One request after the other; a slow one is answered once there is a file.
SLOW = """
seen = 0
while message := take():
    seen += 1
    while message["method"] == "slow" and not os.path.exists(message["params"]["go"]):
        time.sleep(0.02)
    answer(message, f"{message['method']} {seen}")
"""

# The same, all at once.
SLOW_AND_QUICK = """
import threading
def work(message, seen):
    while message["method"] == "slow" and not os.path.exists(message["params"]["go"]):
        time.sleep(0.02)
    answer(message, f"{message['method']} {seen}")
seen = 0
while message := take():
    seen += 1
    threading.Thread(target=work, args=(message, seen)).start()
"""


def gone(server, n=0, **request):
    """A call whose client is killed while it waits. n: those that are open besides."""
    process = server.begin(**request)
    processes.wait_until(lambda: server.status()["open_requests"] == n + 1, "the request to be open")
    process.kill()
    process.wait()
    process.stdout.close()
    processes.wait_until(lambda: server.status()["open_requests"] == n, "its client to be missed")


def test_what_a_client_missed_is_there_for_the_next_call(client, workdir):
    server = Server(client, fake=SLOW)
    slow = {"method": "slow", "id": 1, "params": {"go": str(workdir / "go")}}
    gone(server, **slow)
    again = server.begin(**slow)  # while it is not answered: sent once
    processes.wait_until(lambda: server.status()["open_requests"] == 1, "the request to be open")
    gone(server, n=1, method="other", id=2)
    (workdir / "go").touch()
    assert end(again)["result"]["result"] == "slow 1"
    assert server.ask("third", id=3)["result"] == "third 3"
    assert server.ask("other", id=2)["result"] == "other 2"  # had been answered meanwhile
    assert server.ask("other", id=2)["result"] == "other 4"  # and is not answered so again


def test_another_request_with_the_id_of_one_that_was_given_up(client, workdir):
    """No answer is taken for the other's, whichever comes first."""
    server = Server(client, fake=SLOW_AND_QUICK)
    slow, third = ({"method": "slow", "id": 1, "params": {"go": str(workdir / name)}} for name in ("go", "third"))
    gone(server, **slow)
    assert server.ask("quick", id=1) == {"jsonrpc": "2.0", "id": 1, "result": "quick 2"}
    waiting = server.begin(**third)
    processes.wait_until(lambda: server.status()["open_requests"] == 1, "the request to be open")
    (workdir / "go").touch()
    assert server.ask("quick", id=2)["result"] == "quick 4"
    (workdir / "third").touch()
    assert end(waiting)["result"] == {"jsonrpc": "2.0", "id": 1, "result": "slow 3"}
    assert server.ask(**slow)["result"] == "slow 1"


def test_clients_that_go_leave_nothing_behind(client):
    server = Server(client, "sleep", "4830")
    keeper, = titled(KEEPER)
    path = socket_of(client.dir, "Mcp")
    for i in range(600):
        sock = dial(path)
        sock.sendall(http_request(raw_call(server.session, b'{"jsonrpc":"2.0","id":%d,"method":"m","params":{"x":"%b"}}' % (i, b"y" * 2000))))
        sock.close()
    processes.wait_until(lambda: server.status()["open_requests"] == 0, "them to be missed")
    if os.geteuid() == 0:
        assert len(processes.descriptors(keeper.pid)) < 20
    assert server.kill() is None


def test_an_answer_that_got_lost_comes_again(client):
    server = Server(client, fake=SLOW)
    call = raw_call(server.session, b'{"jsonrpc":"2.0","id":1,"method":"m"}')
    sock = dial(socket_of(client.dir, "Mcp"))
    sock.sendall(http_request(call))
    processes.wait_until(lambda: server.status()["bytes_out"] > 100, "the answer")
    sock.recv(20)
    sock.close()  # with bytes unread
    with Door(socket_of(client.dir, "Mcp")) as door:
        assert json.loads(door.post(call)[1])["result"]["result"] == "m 1"
        assert json.loads(door.post(call)[1])["result"]["result"] == "m 2"


def test_kill_minus_nine_of_the_server(client, workdir):
    server = Server(client, fake=SLOW)
    waiting = server.begin("slow", params={"go": str(workdir / "go")})
    processes.wait_until(lambda: server.status()["open_requests"] == 1, "the request to be open")
    kill_servers()
    (workdir / "go").touch()
    assert end(waiting)["result"]["result"] == "slow 1"
    assert server.ask("m", id=2)["result"] == "m 2"
    assert Server(client, fake=ECHO).session == server.session + 1


def test_through_the_front_door(client):
    """curl to the server, and batches."""
    server = Server(client, fake=ECHO)
    front = socket_of(client.dir)
    calls = [request("mcp_send_request", server.params({"id": i, "method": "m"}), id=i) for i in range(3)]
    calls.append(request("mcp_kill_server", {"session_id": server.session}, id=3))
    answers = json.loads(curl(client, front, b"[" + b",".join(calls) + b"]").stdout)
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3] and answers[3]["result"] is None
    assert [answer["result"]["id"] for answer in answers[:3]] == [0, 1, 2]


def test_a_batch_whose_requests_fail_with_the_server(client):
    server = Server(client, fake="take(); sys.exit(5)")
    calls = b",".join(request("mcp_send_request", server.params({"id": i, "method": "m"}), id=i) for i in range(5))
    with Door(socket_of(client.dir, "Mcp")) as door:
        answers = json.loads(door.post(b"[" + calls + b"]")[1])
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [(i, TOOLERR) for i in range(5)]


# ---- limits ----


def test_a_line_over_the_limit(new_client):
    client = new_client(env={"INSPECT_MCP_READLINE_LIMIT_BYTES": "100000"})
    server = Server(client, fake="""
while message := take():
    n, last = message["params"]["n"], message["params"]["last"]
    text = {"jsonrpc": "2.0", "id": message["id"], "result": {"id": 77, "x": "y" * n}}
    if last:
        text["id"] = text.pop("id")
    say(text)
""")
    other = server.begin(id="other", params={"n": 10, "last": False})
    assert end(other)["result"]["result"]["x"] == "y" * 10
    for last in (False, True):
        assert len(server.ask(id=1, params={"n": 99900, "last": last})["result"]["x"]) == 99900
        refused(server.ask, "more than 100000 bytes", id=1, params={"n": 100000, "last": last})
        refused(server.ask, "more than 100000 bytes", id="1", params={"n": 5000000, "last": last})
    assert server.status()["dropped_lines"] == 0


def test_notifications_are_bounded(client):
    server = Server(client, fake="""
for i in range(5000):
    say({"jsonrpc": "2.0", "method": "n", "params": {"i": i}})
say({"jsonrpc": "2.0", "method": "n", "params": {"x": "y" * 1000000}})
answer(take(), "done")
""")
    assert server.ask()["result"] == "done"
    first = server.notes(max=10)
    assert [note["params"]["i"] for note in first["notifications"]] == list(range(2952, 2962))
    assert (first["dropped"], first["remaining"]) == (2953, 2038)
    rest = server.notes()
    assert [note["params"]["i"] for note in rest["notifications"]] == list(range(2962, 5000))
    assert (rest["dropped"], rest["remaining"]) == (0, 0)
    assert server.notes(max=0) == {"notifications": [], "dropped": 0, "remaining": 0}
    assert error(server.notes, max=-1).code == PARAMERR


def test_notifications_that_got_lost_come_again(client):
    server = Server(client, fake="say({'jsonrpc': '2.0', 'method': 'n'})\nanswer(take(), 1)\ntake()")
    server.ask()
    sock = dial(socket_of(client.dir, "Mcp"))
    sock.sendall(http_request(request("mcp_read_notifications", {"session_id": server.session})))
    processes.wait_until(lambda: server.status()["bytes_out"] > 150, "the answer")
    sock.close()
    assert len(server.notes()["notifications"]) == 1 and server.notes()["notifications"] == []


def test_a_flood_on_stderr(client):
    server = Server(client, fake="""
for i in range(20):
    os.write(2, b"z" * 1000000 + b"\\n")
answer(take(), "done")
take()
os.write(2, b"\\x1b[31mred\\x1b[0m \\xff last\\n")
sys.exit(1)
""")
    keeper, = titled(KEEPER)
    assert server.ask()["result"] == "done"
    message = refused(server.ask, "exit status 1", id=2)
    assert message.endswith("red � last") and len(message) < 1000
    assert_small(keeper.pid)


def test_a_server_that_floods_requests_and_reads_nothing(client):
    server = Server(client, fake="""
first = take()
for i in range(100000):
    say({"jsonrpc": "2.0", "id": i, "method": "roots/list"})
answer(first, "done")
""")
    assert server.ask()["result"] == "done"


def test_too_much_for_a_server_that_does_not_read(client):
    """Slow: 60 MB, and the time after which the server counts as stuck."""
    server = Server(client, "sleep", "4840")
    big = {"x": "y" * (30 << 20)}
    first = [server.begin(id=i, params=big) for i in range(2)]
    processes.wait_until(lambda: server.status()["open_requests"] == 2, "the requests to be open")
    refused(server.ask, "doesn't read", id=3, params=big)
    server.kill()
    assert {end(process)["error"]["code"] for process in first} == {TOOLERR}


def test_a_server_that_closes_its_stdin(client, workdir):
    """What it has read it still answers."""
    server = Server(client, fake=f"""
message = take()
os.close(0)
open("{workdir}/closed", "w").close()
while not os.path.exists("{workdir}/go"):
    time.sleep(0.02)
answer(message, "late")
time.sleep(4850)
""")
    first = server.begin(id=1)
    processes.wait_until((workdir / "closed").exists, "the server to close its input")
    refused(server.ask, "closed its input", id=2)
    refused(server.notify, "closed its input")
    (workdir / "go").touch()
    assert end(first)["result"]["result"] == "late"
    assert server.kill() is None


def test_a_wrapper_that_ends(client):
    """setsid forks where it leads a group: the server lives on without its parent."""
    server = Server(client, "setsid", sys.executable, "-c", PRELUDE + ECHO + "\nsys.exit(9)")
    assert server.ask(id=1)["id"] == 1
    assert server.status()["state"] == "running"
    assert server.kill() is None
    assert not alive("setsid")


def test_kill_again(client):
    server = Server(client, fake=ECHO)
    assert server.kill() is None and server.kill() is None
    assert server.status() is None
    assert Server(client, fake=ECHO).session == server.session + 1


def test_kill_fails_what_is_open(client):
    server = Server(client, "sleep", "4860")
    waiting = [server.begin(id=i) for i in range(5)]
    processes.wait_until(lambda: server.status()["open_requests"] == 5, "the requests to be open")
    assert server.kill() is None
    assert all("was killed" in end(process)["error"]["message"] for process in waiting)


def test_a_stopped_server_is_killed(client):
    server = Server(client, "sleep", "4870")
    pid, = alive("sleep", "4870")
    os.kill(pid, signal.SIGSTOP)
    assert server.kill() is None and not alive("sleep", "4870")


def test_many_servers(client):
    servers = [Server(client, fake=ECHO) for _ in range(10)]
    assert [server.session for server in servers] == list(range(10))
    for i, server in enumerate(servers):
        assert server.ask(id=i)["id"] == i
    began = time.monotonic()
    client.stop()
    assert time.monotonic() - began < 20 and not titled(KEEPER)


def test_launch_by_a_client_that_goes(client):
    """The server runs, and is in the list."""
    params = {"server_params": server_params([sys.executable, "-c", PRELUDE + ECHO], {})}
    process = client.popen("exec", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(request("mcp_launch_server", params))
    process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()
    assert Server(client, fake=ECHO).ask()["id"] == 1


def test_rpc_error_is_no_exit(client):
    with pytest.raises(RpcError):
        client.rpc("mcp_send_request", {"session_id": 0, "request": {"jsonrpc": "2.0", "id": 1, "method": "m"}})


# ---- what real servers write ----


ODD = {
    "a byte order mark": "b'\\xef\\xbb\\xbf' + text + b'\\n'",
    "an array": "b'[' + text + b', {\"jsonrpc\": \"2.0\", \"method\": \"notifications/x\"}]\\n'",
    "several lines": "json.dumps(json.loads(text), indent=2).encode() + b'\\n'",
    "CR alone": "text + b'\\r'",
    "two with CR between": "b'{\"jsonrpc\": \"2.0\", \"method\": \"notifications/x\"}\\r' + text + b'\\n'",
    "no end of line": "text",
    "heads of LSP": "b'Content-Length: %d\\r\\n\\r\\n' % len(text) + text",
    "no jsonrpc": "json.dumps({k: v for k, v in json.loads(text).items() if k != 'jsonrpc'}).encode() + b'\\n'",
    "a log in front": "b'2026-01-01 INFO [main] ' + text + b'\\n'",
}


@pytest.mark.parametrize("form", ODD)
def test_what_real_servers_write(client, form):
    server = Server(client, fake=f"""
while message := take():
    text = json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": {{"of": message["id"]}}}}).encode()
    sys.stdout.buffer.write({ODD[form]})
    sys.stdout.buffer.flush()
""")
    for id in 1, "two", 3:
        assert server.ask(id=id) == {"jsonrpc": "2.0", "id": id, "result": {"of": id}}
    server.kill()


def test_an_answer_of_nothing_fails(client):
    server = Server(client, fake="""
while message := take():
    say({"jsonrpc": "2.0", "id": message["id"]})
""")
    with pytest.raises(RpcError, match="neither result nor error"):
        server.ask()
    server.kill()


def test_an_answer_that_can_not_be_understood_names_what_was_seen(client):
    server = Server(client, fake="""
take()
say('Content-Length: 1000')
take()
""")
    with pytest.raises(RpcError, match="Content-Length: 1000"):
        server.ask()
    server.kill()


# ---- what servers ask for, and answers that don't come ----


ASKS = """
while message := take():
    if message.get("method") == "ask":
        say({"jsonrpc": "2.0", "id": "q1", "method": "sampling/createMessage", "params": {"n": 1}})
        said = take()
        answer(message, said)
    elif "id" in message and "method" in message:
        answer(message, message["method"])
"""


def test_a_host_answers_what_a_server_asks_for(client):
    server = Server(client, fake=ASKS)
    assert server.ask("ask")["result"]["error"]["code"] == -32601, "while nobody does"
    read = lambda **more: client.rpc("mcp_read_requests", {"session_id": server.session, **more}, timeout=HANG)
    assert read() == {"requests": [], "dropped": 0, "remaining": 0}
    process = server.begin("ask", id=2)
    [asked] = read(timeout=HANG)["requests"]
    assert asked == {"jsonrpc": "2.0", "id": "q1", "method": "sampling/createMessage", "params": {"n": 1}}
    for bad in ({"result": {}}, {"id": "q1"}, {"id": "q1", "method": "m"}):
        wrong = {"jsonrpc": "2.0", **bad}
        with pytest.raises(RpcError) as failed:
            client.rpc("mcp_send_response", {"session_id": server.session, "response": wrong})
        assert failed.value.code == PARAMERR, bad
    answer = {"jsonrpc": "2.0", "id": "q1", "result": {"role": "assistant"}}
    assert client.rpc("mcp_send_response", {"session_id": server.session, "response": answer}) is None
    assert end(process)["result"]["result"] == answer
    assert read(timeout=0.01)["requests"] == []


def test_an_answer_that_takes_too_long(client):
    server = Server(client, fake="""
heard = []
while message := take():
    heard.append(message)
    if message.get("method") == "what":
        answer(message, heard)
""")
    asked = lambda id, method, timeout: {"session_id": server.session, "timeout": timeout, "request": {"jsonrpc": "2.0", "id": id, "method": method}}
    with pytest.raises(RpcError) as failed:
        client.rpc("mcp_send_request", asked(5, "slow", 0.05))
    assert failed.value.code == TOOLERR and "in time" in str(failed.value)
    heard = client.rpc("mcp_send_request", asked(6, "what", HANG))["result"]
    assert [one.get("method") for one in heard] == ["slow", "notifications/cancelled", "what"]
    assert heard[1]["params"]["requestId"] == 5
    assert client.rpc("mcp_send_request", asked(5, "what", HANG))["result"], "its id is free again"


def test_an_answer_that_comes_too_late(client):
    """It is not that of the next request with its id, nor of the same one asked again."""
    server = Server(client, fake="""
first, told = take(), take()
while message := take():
    if message["method"] == "notifications/cancelled":
        told = message
        continue
    if first:
        answer(first, "late")
        first = None
    if message["method"] != "slow" or told["params"]["requestId"] != 5:
        answer(message, [message["method"], told["params"]["requestId"]])
""")
    ask = lambda method, timeout: client.rpc("mcp_send_request", {
        "session_id": server.session, "timeout": timeout, "request": {"jsonrpc": "2.0", "id": 5, "method": method}})
    for _ in range(2):
        with pytest.raises(RpcError) as failed:
            ask("slow", 0.05)
        assert "in time" in str(failed.value)
    [method, told] = ask("next", HANG)["result"]
    assert method == "next" and told not in (5, None), "the server knows the second one by another id"
    assert ask("slow", HANG)["result"][0] == "slow" and server.status()["open_requests"] == 0
