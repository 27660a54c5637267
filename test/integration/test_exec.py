"""JSON-RPC to the letter, by every door: `toolbox exec`, curl, and a socket of one's own."""

import base64
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from harness import needs, processes
from harness.containers import REPO
from harness.client import (
    CHUNK,
    DEFAULT_LIMIT,
    INVALID_REQUEST,
    LIMIT,
    NO_CHUNK,
    NO_METHOD,
    PARAMERR,
    PARSE,
    TOOLERR,
    Client,
    RpcError,
)
from harness.jobs import runs
from harness.machine import HANG, Machine
from harness.processes import wait_until
from harness.server import (
    SERVER,
    SESSION,
    Door,
    curl,
    dial,
    http_request,
    only_server,
    pid_in,
    quiet,
    request,
    socket_of,
    status,
    titled,
    unread,
)
from harness.users import NOBODY_KNOWS, needs_root

VERSION = request("version")
REMOTE = request("remote_version")


class ByExec:
    """One process a request."""

    def __init__(self, client):
        self.client = client

    def send(self, body, **how):
        """The text of the answer; b"" where there is none."""
        done = self.client.cli(
            "exec", stdin=body, **{**how, "env": {LIMIT: "1000000000", **how.get("env", {})}}
        )
        assert done.returncode == 0 and done.stderr == b"", done
        assert done.stdout == b"" or (done.stdout.count(b"\n") == 1 and done.stdout.endswith(b"\n"))
        return done.stdout[:-1]

    def close(self):
        pass


class ByCurl:
    def __init__(self, client):
        client.rpc("remote_version")
        self.client, self.path = client, socket_of(client.dir)

    def send(self, body, **how):
        done = curl(self.client, self.path, body, "-w", "%{stderr}%{http_code}", **how)
        assert done.returncode == 0, done
        assert done.stderr == (b"200" if done.stdout else b"204"), done
        return done.stdout

    def close(self):
        pass


class BySocket(ByCurl):
    """One keep-alive connection for all of a test's requests."""

    def __init__(self, client):
        super().__init__(client)
        self.door = Door(self.path)

    def send(self, body):
        code, answer = self.door.post(body)
        assert code == (200 if answer else 204), (code, answer)
        return answer

    def close(self):
        self.door.close()


def _ask(way, body, **how):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    text = way.send(body, **how)
    text.decode()  # whatever was asked, the answer is UTF-8
    return json.loads(text) if text else None


for _way in (ByExec, ByCurl):
    _way.ask = _ask
    _way.call = lambda self, method, params=None, **how: self.ask(request(method, params), **how)


@pytest.fixture(params=[ByExec, ByCurl, BySocket], ids=["exec", "curl", "socket"])
def way(request, client):
    door = request.param(client)
    yield door
    door.close()


def code_of(answer):
    assert set(answer) == {"jsonrpc", "id", "error"} and answer["jsonrpc"] == "2.0", answer
    assert set(answer["error"]) == {"code", "message"} and answer["error"]["message"], answer
    return answer["error"]["code"]


def no_server(client):
    assert not titled(SERVER) and not list(client.dir.glob("server.*")), "a server was started"


def read(name, wait=1, idle=0.1, **more):
    return request(
        "bash_session", {"session_name": name, "wait_for_output": wait, "idle_timeout": idle, **more}
    )


# ---- what a request is ----

NOT_JSON = {
    "empty": b"",
    "word": b"invalid json",
    "cut": VERSION[:-5],
    "cut in a string": VERSION[:-12],
    "two documents": VERSION + VERSION,
    "two lines": VERSION + b"\n" + VERSION,
    "trailing garbage": VERSION + b"x",
    "trailing comma": VERSION[:-1] + b",}",
    "trailing NUL": VERSION + b"\0",
    "leading NUL": b"\0" + VERSION,
    "UTF-16": VERSION.decode().encode("utf-16"),
    "UTF-16 without mark": VERSION.decode().encode("utf-16-le"),
    "BOM": b"\xef\xbb\xbf" + VERSION,
    "spaces": b" " * 10_000_000,
    "comment": b"// x\n" + VERSION,
    "single quotes": VERSION.replace(b'"', b"'"),
    "NaN": VERSION[:-1] + b',"params":{"a":NaN}}',
    "leading zero": VERSION[:-1] + b',"params":{"a":01}}',
    "raw control character": VERSION[:-1] + b',"params":{"a":"\n"}}',
    "bad UTF-8": VERSION[:-1] + b',"params":{"a":"\xff"}}',
    "CESU": VERSION[:-1] + b',"params":{"a":"\xed\xa0\x80"}}',
    "overlong": VERSION[:-1] + b',"params":{"a":"\xc0\x80"}}',
    "bad escape": VERSION[:-1] + b',"params":{"a":"\\x"}}',
    "short escape": VERSION[:-1] + b',"params":{"a":"\\u12"}}',
    "too deep": VERSION[:-1] + b',"params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "too deep and cut": b"[" * 1_000_000,
}
NO_REQUEST = {
    "object": b"{}",
    "number": b"5",
    "string": b'"version"',
    "null": b"null",
    "empty batch": b"[]",
    "no jsonrpc": b'{"id":1,"method":"version"}',
    "jsonrpc 1.0": b'{"jsonrpc":"1.0","id":1,"method":"version"}',
    "jsonrpc number": b'{"jsonrpc":2.0,"id":1,"method":"version"}',
    "no method": b'{"jsonrpc":"2.0","id":1}',
    "method number": b'{"jsonrpc":"2.0","id":1,"method":5}',
    "method null": b'{"jsonrpc":"2.0","id":1,"method":null}',
    "params string": b'{"jsonrpc":"2.0","id":1,"method":"version","params":"x"}',
    "params number": b'{"jsonrpc":"2.0","id":1,"method":"version","params":1}',
    "method twice": b'{"jsonrpc":"2.0","id":1,"method":"remote_version","method":"version"}',
    "id twice": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"version"}',
    "params twice": b'{"jsonrpc":"2.0","id":1,"method":"version","params":{},"params":{}}',
    "id escaped and twice": b'{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"version"}',
}


def test_c107_not_json(way):
    for what, body in NOT_JSON.items():
        answer = way.ask(body)
        assert code_of(answer) == PARSE and answer["id"] is None, (what, answer)
    if isinstance(way, ByExec):
        no_server(way.client)


def test_c107_no_request(way):
    for what, body in NO_REQUEST.items():
        answer = way.ask(body)
        usable = b'"id":1' in body and "id" not in what
        assert code_of(answer) == INVALID_REQUEST and answer["id"] == (1 if usable else None), (what, answer)
    if isinstance(way, ByExec):
        no_server(way.client)


def test_c107_unknown_methods(way):
    for name in (
        "",
        "Version",
        "version ",
        "versio",
        "exec_remote_frobnicate",
        "rpc.discover",
        "é",
        "x" * 100_000,
        "version\0",
        "toolbox_keeper_status",
        "toolbox_keeper_end",
    ):
        answer = way.call(name)
        assert code_of(answer) == NO_METHOD and answer["id"] == 1
        assert len(answer["error"]["message"]) < 1000
    if isinstance(way, ByExec):
        no_server(way.client)


def test_c107_params_as_array(way):
    for method in ("version", "remote_version", "bash_session", "text_editor"):
        assert code_of(way.call(method, [1])) == PARAMERR


def test_c107_space_around_a_request(way):
    spaced = b" \t\r\n" + b' {\n"jsonrpc" : "2.0" ,\t"id":\r1, "method":"version" , "params" : { } } \n\n'
    assert way.ask(spaced)["result"] and way.ask(VERSION + b" " * 1_000_000)["result"]
    answer = way.send(VERSION + b"\n")
    assert b"\n" not in answer


def test_c107_members_that_mean_nothing(way):
    assert way.ask(VERSION[:-1] + b',"extra":{"id":7},"ID":2,"Method":"x"}')["id"] == 1


def test_c107_argument_and_stdin(client):
    done = client.cli("exec", VERSION.decode(), stdin=b"garbage")
    assert json.loads(done.stdout)["id"] == 1
    done = client.cli("exec", "", stdin=VERSION)
    assert code_of(json.loads(done.stdout)) == PARSE
    done = client.cli("exec", VERSION.decode(), stdin=None)
    assert json.loads(done.stdout)["id"] == 1


def test_c107_input_that_cannot_be_read(client, workdir):
    folder = os.open(workdir, os.O_RDONLY)
    one = client.popen("exec", stdin=folder)
    os.close(folder)
    out, err = one.communicate(timeout=HANG)
    assert (one.returncode, out) == (1, b"") and b"directory" in err


def test_input_in_pieces(client):
    one = client.popen("exec")
    for byte in VERSION:
        one.stdin.write(bytes([byte]))
        one.stdin.flush()
    out, _ = one.communicate(timeout=HANG)
    assert json.loads(out)["id"] == 1


def test_input_that_does_not_block(client):
    """A caller may hand down a descriptor that is set to non-blocking."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    one = client.popen("exec", stdin=read_end)
    os.close(read_end)
    time.sleep(0.1)
    os.write(write_end, VERSION)
    os.close(write_end)
    out, _ = one.communicate(timeout=HANG)
    assert json.loads(out)["id"] == 1


def test_output_that_does_not_block(client):
    name = quiet(client, "x" * 500_000)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    one = client.popen("exec", stdout=write_end, env={LIMIT: "1000000"})
    os.close(write_end)
    one.stdin.write(read(name))
    one.stdin.close()
    one.stdin = None
    time.sleep(0.2)
    with open(read_end, "rb") as pipe:
        assert json.loads(pipe.read())["result"] == "x" * 500_000
    one.communicate(timeout=HANG)


# ---- ids ----

IDS = [
    "0",
    "-1",
    "-0",
    '""',
    '"1"',
    '"\\u00e9\\u0000\\""',
    '"é"',
    "2147483648",
    "9007199254740993",
    "18446744073709551615",
    "123456789012345678901234567890",
    "1e3",
    "1E+400",
    "1.5",
    "1.10",
    "-0.0",
    "null",
    '"' + "x" * 3000 + '"',
]


def _is_id(text, id):
    if id.startswith('"'):
        return json.loads(text)["id"] == json.loads(id)
    return re.search(r'"id":\s*([^,}]*)', text)[1] == id


def test_c108_ids_come_back_as_they_are(way):
    for id in IDS:
        answer = way.send(f'{{"jsonrpc":"2.0","id":{id},"method":"version"}}'.encode()).decode()
        assert _is_id(answer, id), answer


def test_c108_ids_of_every_kind_of_method(way):
    for method in ("version", "remote_version", "bash_session_list", "nonsense", "bash_session"):
        batch = ",".join(f'{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}' for id in IDS)
        answers = way.send(f"[{batch}]".encode()).decode()[1:-1].split(',{"jsonrpc"')
        for id, answer in zip(
            IDS, [answers[0], *('{"jsonrpc"' + answer for answer in answers[1:])], strict=True
        ):
            assert _is_id(answer, id), answer


def test_c108_ids_that_are_none(way):
    for id in ("true", "false", "{}", "[]", "[1]", '{"a":1}'):
        for method in ("version", "remote_version"):
            answer = way.ask(f'{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}'.encode())
            assert code_of(answer) == INVALID_REQUEST and answer["id"] is None


# ---- notifications and batches ----


def test_c108_notifications_are_carried_out_and_not_answered(way):
    client = way.client
    client.new()
    mark = client.dir.parent / "mark"
    for method, params in (
        ("version", {}),
        ("remote_version", {}),
        ("nonsense", {}),
        ("version", {"bad": 1}),
        ("version", [1]),
        ("bash_session", {"session_name": "none", "wait_for_output": 1, "idle_timeout": 0}),
        ("text_editor", {"command": "create", "path": str(mark), "file_text": "x"}),
    ):
        assert way.ask(request(method, params, id=None)) is None
    wait_until(mark.exists, "the file")
    typed = {
        "session_name": client.session,
        "wait_for_output": 1,
        "idle_timeout": 0.1,
        "input": f"rm {mark}\n",
    }
    assert way.ask(request("bash_session", typed, id=None)) is None
    wait_until(lambda: not mark.exists(), "the file to go")


def test_output_that_a_notification_read_is_not_lost(way):
    client = way.client
    client.new()
    client.bs("")
    params = {
        "session_name": client.session,
        "wait_for_output": 2,
        "idle_timeout": 0.5,
        "input": "echo mar''ked\n",
    }
    assert way.ask(request("bash_session", params, id=None)) is None
    assert way.call("version")[
        "result"
    ]  # whoever keeps his connection open has had the answer by his next request
    assert "marked" in client.bs()


def test_batches(way):
    client = way.client
    client.new()
    path = client.dir.parent / "file"
    bash = {"session_name": client.session, "wait_for_output": 5, "idle_timeout": 0.5}
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "version"},
        {"jsonrpc": "2.0", "method": "version"},
        {
            "jsonrpc": "2.0",
            "id": "b",
            "method": "text_editor",
            "params": {"command": "create", "path": str(path), "file_text": "hi"},
        },
        {
            "jsonrpc": "2.0",
            "id": "c",
            "method": "bash_session",
            "params": {**bash, "input": f"cat {path}; echo\n"},
        },
        5,
        {"jsonrpc": "2.0", "id": "d", "method": "remote_version"},
        {"jsonrpc": "2.0", "id": "e", "method": "nonsense"},
        {"jsonrpc": "2.0", "id": "f", "method": "version", "params": {"x": 1}},
        [],
        {"jsonrpc": "2.0", "id": None, "method": "bash_session_list"},
        {
            "jsonrpc": "2.0",
            "id": "g",
            "method": "text_editor",
            "params": {"command": "undo_edit", "path": str(path)},
        },
    ]
    answers = way.ask(batch)
    assert [answer["id"] for answer in answers] == ["a", "b", "c", None, "d", "e", "f", None, None, "g"]
    assert "hi" in answers[2]["result"] and not path.exists()
    assert [code_of(answers[i]) for i in (3, 5, 6, 7)] == [
        INVALID_REQUEST,
        NO_METHOD,
        PARAMERR,
        INVALID_REQUEST,
    ]
    assert pid_in(answers[4]["result"]) == only_server()
    assert [entry["session_name"] for entry in answers[8]["result"]] == [client.session]


def test_a_batch_with_calls_of_one_session(way):
    """Each begins when the one before it is answered, and gets its own output alone."""
    client = way.client
    client.new()

    def calls(n, **params):
        return [{"jsonrpc": "2.0", "id": i, "method": "bash_session_run",
                 "params": {"session_name": client.session, "command": f"echo {i}", **params}} for i in range(n)]

    began = time.monotonic()
    answers = way.ask(calls(20))
    assert [answer["result"]["output"] for answer in answers] == [f"{i}\n" for i in range(20)]
    # twenty times what a call waits for another's client: a bound that only tells that it did
    assert time.monotonic() - began < 60
    assert way.call("bash_session_run", {"session_name": client.session, "command": "echo next"})["result"]["output"] == "next\n"


def test_batches_without_a_server(client):
    way = ByExec(client)
    answers = way.ask([{"jsonrpc": "2.0", "id": i, "method": "version"} for i in range(1000)])
    assert [answer["id"] for answer in answers] == list(range(1000))
    assert way.ask([{"jsonrpc": "2.0", "method": "version"}] * 3) is None
    assert [code_of(answer) for answer in way.ask(b"[1,2]")] == [INVALID_REQUEST] * 2
    assert (
        code_of(way.ask([{"jsonrpc": "2.0", "id": i, "method": "version"} for i in range(1001)]))
        == INVALID_REQUEST
    )
    no_server(client)


# ---- text ----


ESCAPES = [
    (r"\ud83d\ude00", b"\xf0\x9f\x98\x80"),
    (r"\uD83D\uDE00X", b"\xf0\x9f\x98\x80X"),
    (r"a\u0000b", b"a\0b"),
    (r"\u2028\u2029\u0085", b"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85"),
    (r"\/\b\f\"", b'/\x08\x0c"'),
    ("é😀\x7f", "é😀\x7f".encode()),
]
HALVES = [
    r"\ud83d",
    r"\ude00",
    r"\ud83dX",
    r"\ud83d\ud83d\ude00",
    r"\ude00\ud83d",
    r"\uD83D\u0041",
    r"\ud83d\\",
]


def _creation(path, text):
    head = (
        b'{"jsonrpc":"2.0","id":1,"method":"text_editor",'
        b'"params":{"command":"create","path":"%s","file_text":"'
        % bytes(path)
    )
    return head + (text if isinstance(text, bytes) else text.encode()) + b'"}}'


def test_c111_escapes(way, workdir):
    for i, (text, stored) in enumerate(ESCAPES):
        assert "result" in way.ask(_creation(workdir / str(i), text))
        assert (workdir / str(i)).read_bytes() == stored


def test_c111_half_pairs(way, workdir):
    """What is stored, typed or run has to be what was sent, so they are refused; in an id they become U+FFFD."""
    for text in HALVES:
        answer = way.ask(_creation(workdir / "file", text))
        assert code_of(answer) == PARAMERR and "file_text: " in answer["error"]["message"]
        assert "surrogate" in answer["error"]["message"] and not (workdir / "file").exists()
        assert "result" in way.ask(b'{"jsonrpc":"2.0","id":"%s","method":"version"}' % text.encode())


def test_c111_escapes_into_a_session(way):
    client = way.client
    client.new()
    path = client.dir.parent / "typed"

    def type_in(text):
        body = read(client.session, wait=5, idle=0.3, input=f"printf %s 'MARK' >{path}\n")
        return way.ask(body.replace(b"MARK", text.encode()))

    for text in HALVES:
        answer = type_in(text)
        assert code_of(answer) == PARAMERR and "input: " in answer["error"]["message"]
    assert "result" in type_in(r"\ud83d\ude00")
    wait_until(lambda: path.exists() and path.read_bytes() == b"\xf0\x9f\x98\x80", "a pair to be typed")


@pytest.mark.parametrize("raw", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
def test_c111_raw_bytes(way, workdir, raw):
    for body in (
        _creation(workdir / "file", b"a" + raw),
        b'{"jsonrpc":"2.0","id":"' + raw + b'","method":"version"}',
        b'{"jsonrpc":"2.0","id":1,"method":"' + raw + b'"}',
    ):
        assert code_of(way.ask(body)) == PARSE
    assert not (workdir / "file").exists()


# ---- parameters ----

GOOD = {"session_name": "S", "wait_for_output": 0, "idle_timeout": 0}
WRONG = [
    ("wait_for_output", ["5", 1.5, True, None, -1, "1e309", [], {}]),
    ("idle_timeout", ["1", True, None, -1, -0.5, [], {}]),
    ("session_name", [None, 5, [], True]),
    ("input", [5, [], {}, False]),
    ("restart", ["true", 1, 0]),
    ("max_output_bytes", ["1", 1.5, True]),
    ("extra", [1]),
    ("Input", ["x"]),
]


def test_c112_wrong_types_are_named(way):
    way.client.new()
    for key, value in ((key, value) for key, values in WRONG for value in values):
        params = {**GOOD, "session_name": way.client.session, key: value}
        body = request("bash_session", params)
        if value == "1e309":
            body = body.replace(b'"1e309"', b"1e309")
        answer = way.ask(body)
        assert code_of(answer) == PARAMERR and key in answer["error"]["message"], (value, answer)


def test_c112_missing_and_combined(way):
    way.client.new()
    name = way.client.session
    for params, key in (
        ({}, "session_name"),
        ({"session_name": name}, "wait_for_output"),
        ({"session_name": name, "wait_for_output": 1}, "idle_timeout"),
        ({"session_name": name, "restart": False}, "wait_for_output"),
        ({"session_name": name, "restart": True, "input": "x"}, "restart"),
    ):
        answer = way.call("bash_session", params)
        assert code_of(answer) == PARAMERR and key in answer["error"]["message"], answer
    for params in (
        {},
        {"input": None},
        {"max_output_bytes": None},
        {"idle_timeout": 1},
        {"restart": False},
        {"restart": None},
    ):
        assert "result" in way.call("bash_session", {**GOOD, "session_name": name, **params}), params
    assert code_of(way.call("bash_session_new_session", {"extra": 1})) == PARAMERR
    for method in ("version", "remote_version", "bash_session_list", "sandbox_tools_shutdown"):
        assert code_of(way.call(method, {"extra": 1})) == PARAMERR
    for method in ("version", "remote_version", "bash_session_list"):
        for body in (request(method), request(method, {}), request(method)[:-1] + b',"params":null}'):
            assert "result" in way.ask(body)


def test_c112_text_editor(way, workdir):
    path = workdir / "file"
    path.write_text("one\n")
    for params, key in (
        ({"path": str(path)}, "command"),
        ({"command": "frobnicate", "path": str(path)}, "command"),
        ({"command": "view"}, "path"),
        ({"command": "insert", "path": str(path), "insert_line": 1.0, "new_str": "x"}, "insert_line"),
        ({"command": "create", "path": str(path) + "2", "file_text": None}, "file_text"),
        ({"command": "view", "path": str(path), "view_range": ["1", 2]}, "view_range"),
        ({"command": "view", "path": 5}, "path"),
        ({"command": None, "path": str(path)}, "command"),
    ):
        answer = way.call("text_editor", params)
        assert code_of(answer) == PARAMERR and key in answer["error"]["message"], answer
    other = {"insert_line": "x", "file_text": 5, "nonsense": [], "old_str": None}
    assert "one" in way.call("text_editor", {"command": "view", "path": str(path), **other})["result"]
    assert path.read_text() == "one\n" and not Path(f"{path}2").exists()


def test_names_that_are_no_session(way):
    way.client.new()
    for name in (
        "",
        "none",
        "server",
        "BashSession_7",
        "BashSession_01",
        "../server",
        "BashSession/../server",
        "BashSession\0",
        ".",
        "BashSession ",
        "bashsession",
        "BashSession_" + "9" * 5000,
        "once-0000000000000000",
    ):
        answer = way.ask(read(name))
        assert code_of(answer) in (TOOLERR, PARAMERR), answer
    assert "result" in way.ask(read("BashSession"))


# ---- large requests ----


def test_c113_large_requests(way, workdir):
    path, text = workdir / "file", "0123456789abcde\n" * (20 << 16)
    assert "result" in way.call("text_editor", {"command": "create", "path": str(path), "file_text": text})
    assert path.read_text() == text


def test_c113_large_input_of_a_session(client, workdir):
    client.new()
    client.bs(f"cat >{workdir}/typed; echo do''ne\n", wait=1, idle=0.1)
    typed = "x" * 99 + "\n"
    assert "done" in client.bs(typed * 20_000 + "\4", wait=60, idle=1)
    assert (workdir / "typed").read_text() == typed * 20_000


def test_c113_64_mib(way):
    size = 8 << 20 if isinstance(way, BySocket) else 64 << 20
    assert code_of(way.ask(request("version", {"x": "y" * size}))) == PARAMERR


def test_c113_beyond_the_limit(client):
    with open("/dev/zero", "rb") as endless:
        one = client.popen("exec", stdin=endless)
        out, err = one.communicate(timeout=HANG)
    assert (one.returncode, out) == (1, b"") and b"longer than 128 MiB" in err
    no_server(client)
    client.rpc("remote_version")
    with dial(socket_of(client.dir)) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 134217729\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert pid_in(client.rpc("remote_version")) == only_server()


# ---- long answers ----

TEXT = ('she said "hello\\" 😀 é\tx' * 7 + "\n") * 13_000  # 2.4 MB


def _fetch(client, piece, limit, interleave=lambda: None):
    """All the pieces of an answer, each checked; (the bytes, their sizes)."""
    data, sizes, handle = b"", [], piece["handle"]
    assert re.fullmatch("[0-9a-f]{32}", handle)
    while True:
        assert (piece["version"], piece["handle"], piece["offset"]) == (1, handle, len(data)), piece
        raw = base64.b64decode(piece["chunk"], validate=True)
        data += raw
        sizes.append(len(raw))
        assert piece["next_offset"] == len(data) and piece["done"] == (len(data) == piece["total_size"])
        if piece["done"]:
            return data, sizes
        interleave()
        line = client.line(
            {"jsonrpc": "2.0", "id": 7, "method": CHUNK, "params": {"handle": handle, "offset": len(data)}},
            env={LIMIT: str(limit)},
        )
        assert len(line) + 1 <= limit
        piece = json.loads(line)[CHUNK]


@pytest.mark.parametrize("limit", [131072, 1_000_000])
def test_c104_pieces(client, limit):
    name = quiet(client, TEXT)
    line = client.line(json.loads(read(name)), env={LIMIT: str(limit)})
    assert len(line) + 1 <= limit
    envelope = json.loads(line)
    assert set(envelope) == {"jsonrpc", "id", CHUNK}
    data, sizes = _fetch(client, envelope[CHUNK], limit)
    assert json.loads(data) == {"jsonrpc": "2.0", "id": 1, "result": TEXT}
    assert max(sizes) <= 512 << 10 and max(sizes[:-1]) - min(sizes[:-1]) < 24, "each is the largest that fits"
    assert limit < 1_000_000 or max(sizes) == 512 << 10
    handle = envelope[CHUNK]["handle"]
    for _ in range(2):
        assert client.rpc(CHUNK, {"handle": handle, "release": True}) is None
    with pytest.raises(RpcError) as caught:
        client.rpc(CHUNK, {"handle": handle, "offset": 0})
    assert caught.value.code == NO_CHUNK
    assert os.listdir(client.dir / "answers") == []


def test_c104_two_transfers_interleaved(client):
    names = [quiet(client, text) for text in ("a" * 300_000, "é😀" * 50_000)]
    pieces = [json.loads(client.line(json.loads(read(name))))[CHUNK] for name in names]
    other = []
    data, _ = _fetch(
        client,
        pieces[0],
        DEFAULT_LIMIT,
        lambda: other or other.append(_fetch(client, pieces[1], DEFAULT_LIMIT)[0]),
    )
    assert json.loads(data)["result"] == "a" * 300_000 and json.loads(other[0])["result"] == "é😀" * 50_000


def test_c104_limits(client):
    whole = len('{"jsonrpc":"2.0","id":1,"result":""}\n')
    for limit, most in (
        (None, DEFAULT_LIMIT),
        ("0", DEFAULT_LIMIT),
        ("-1", DEFAULT_LIMIT),
        ("x", DEFAULT_LIMIT),
        ("", DEFAULT_LIMIT),
        ("70000", 70000),
    ):
        env = {} if limit is None else {LIMIT: limit}
        for over in (0, 1):
            name = quiet(client, "x" * (most - whole + over))
            answer = client.answer("bash_session", json.loads(read(name))["params"], env=env)
            assert (CHUNK in answer) == bool(over), (limit, over)
    assert CHUNK not in client.answer("version", env={LIMIT: "100"})


def test_c104_answer_that_cannot_be_stored_is_not_lost(client):
    client.new()
    client.run("PS1=")
    client.bs("sleep 0.3; head -c 30000 /dev/zero | tr '\\0' x\n", wait=0)
    (client.dir / "answers").write_text("in the way")
    with pytest.raises(RpcError) as error:
        params = {"session_name": client.session, "wait_for_output": 5, "idle_timeout": 1}
        client.rpc("bash_session", params, env={LIMIT: "4096"})
    assert error.value.code == TOOLERR and "cannot be stored" in error.value.message
    assert client.bs().count("x") == 30000


def test_c104_through_the_socket(client):
    """An answer there is never in pieces; pieces stored by exec can be had there."""
    name = quiet(client, TEXT)
    with Door(socket_of(client.dir)) as door:
        assert door.ask("bash_session", json.loads(read(name))["params"])["result"] == TEXT
        name = quiet(client, "z" * 100_000)
        piece = json.loads(client.line(json.loads(read(name))))[CHUNK]
        data = b""
        while not piece["done"]:
            data += base64.b64decode(piece["chunk"])
            piece = door.ask(CHUNK, {"handle": piece["handle"], "offset": len(data)})[CHUNK]
        assert json.loads(data + base64.b64decode(piece["chunk"]))["result"] == "z" * 100_000
        assert door.rpc(CHUNK, {"handle": piece["handle"], "release": True}) is None
    assert os.listdir(client.dir / "answers") == []


class Places(Machine):
    """This machine with empty, own directories in place of all those that the tool would choose from."""

    SCRIPT = """
        for place in /run /tmp /var/tmp /dev/shm /root; do
            mount -t tmpfs -o mode=1777 tmpfs $place || exit 1
        done
        chmod 755 /run /root && cat "$1" >/run/binary && chmod 755 /run/binary && echo ready && cat
    """

    def __init__(self, apart, toolbox):
        with open(toolbox, "rb") as binary:
            self.holder = subprocess.Popen(
                [
                    *apart,
                    "sh",
                    "-c",
                    self.SCRIPT,
                    "sh",
                    f"/proc/self/fd/{binary.fileno()}",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[binary.fileno()],
            )
        assert self.holder.stdout.readline() == b"ready\n"

    def command(self, argv, env, user, cwd):
        become = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        return ["nsenter", "-t", str(self.holder.pid), "-m", "-r", *become, *argv], {
            "env": {"PATH": os.environ["PATH"], **env},
            "cwd": "/",
        }

    def close(self):
        self.holder.communicate()


@pytest.fixture
def places(apart, toolbox):
    machine = Places(apart, toolbox)
    made = []

    def client(user=None, **env):
        made.append(Client(machine, "/run/binary", None, user, env))
        return made[-1]

    client.sh = lambda script, **how: machine.check(["sh", "-euc", script], **how)
    yield client
    for one in made:
        one.stop()
    machine.close()


def _long(client, n=100_000):
    """The first piece of a long answer."""
    client.new()
    client.bs("PS1= PROMPT_COMMAND=\n")
    client.bs(f"sleep 0.2; head -c {n} /dev/zero | tr '\\0' x; sleep 6000\n", wait=0, idle=0)
    unread(client, client.session, n)
    return client.answer("bash_session", json.loads(read(client.session))["params"])


@needs_root
def test_c106_users_do_not_meet(places):
    u1, u2, root = places(NOBODY_KNOWS), places(NOBODY_KNOWS + 1), places()
    first, own = _long(u1)[CHUNK], _long(root)[CHUNK]
    for piece in (first, own):
        for other in ([u2] if piece is first else [u1, u2]):
            with pytest.raises(RpcError) as caught:
                other.rpc(CHUNK, {"handle": piece["handle"], "offset": piece["next_offset"]})
            assert caught.value.code == NO_CHUNK
            other.rpc(CHUNK, {"handle": piece["handle"], "release": True})
    assert (
        _fetch(root, first, DEFAULT_LIMIT)[0].count(b"x")
        == _fetch(u1, first, DEFAULT_LIMIT)[0].count(b"x")
        == 100_000
    )
    root.rpc(CHUNK, {"handle": first["handle"], "release": True})
    with pytest.raises(RpcError):
        u1.rpc(CHUNK, {"handle": first["handle"], "offset": 0})
    modes = places.sh(
        "stat -c '%a %u %n' /tmp/.toolbox-*/answers /run/toolbox/answers"
    )
    assert sorted(modes.split("\n")[:-1]) == [
        "700 0 /run/toolbox/answers",
        f"700 {NOBODY_KNOWS} /tmp/.toolbox-{NOBODY_KNOWS}/answers",
    ]


@needs_root
@pytest.mark.parametrize(
    "what", ["ln -s /root/x {}", "touch {}", "mkdir -m 777 {} && chown 12345 {}", "mkdir {} && chmod 755 {}"]
)
def test_c106_store_prepared_by_others(places, what):
    root = places()
    places.sh(
        "mkdir -m 755 /root/x && mkdir -m 700 /run/toolbox && " + what.format(*["/run/toolbox/answers"] * 4)
    )
    answer = _long(root)
    assert answer["error"]["code"] == TOOLERR and "/run/toolbox/answers" in answer["error"]["message"]
    assert "result" in root.answer("version")
    assert places.sh("stat -c %a /root/x; ls -A /root/x") == "755\n"


@needs_root
def test_c106_old_answers_go(places):
    root = places()
    handles = [_long(root)[CHUNK]["handle"] for _ in range(3)]
    places.sh(f"touch -d '61 minutes ago' /run/toolbox/answers/{handles[0]} /run/toolbox/answers/other")
    root.answer(CHUNK, {"handle": handles[1], "offset": 0})
    new = _long(root)[CHUNK]["handle"]
    assert set(places.sh("ls /run/toolbox/answers").split()) == {*handles[1:], new, "other"}


# ---- calls that nobody waits for any more ----


def _start(client, body, **how):
    one = client.popen("exec", **how)
    one.stdin.write(body)
    one.stdin.close()
    one.stdin = None
    return one


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_while_it_waits(client, number):
    client.new()
    one = _start(client, read(client.session, wait=60, idle=60, input="echo bef''ore; sleep 6000\n"))
    wait_until(lambda: client.rpc("bash_session_list")[0]["foreground"] == "sleep", "the command to be taken")
    one.send_signal(number)
    one.communicate(timeout=HANG)
    assert one.returncode == -number
    assert "before" in client.bs(idle=0.2)


def test_reader_of_the_answer_is_gone(client):
    """exec could not hand its answer on: it says so, and the next call has it."""
    name = quiet(client, "precious")
    read_end, write_end = os.pipe()
    os.close(read_end)
    one = _start(client, read(name), stdout=write_end)
    os.close(write_end)
    _, err = one.communicate(timeout=HANG)
    assert one.returncode == 1 and b"cannot write" in err
    assert client.bs(session=name, idle=0.1) == "precious"
    assert client.bs(session=name, wait=0) == ""


def test_killed_while_it_prints(client):
    name = quiet(client, "p" * 1_000_000)
    one = _start(client, read(name), env={LIMIT: "2000000"})
    wait_until(lambda: status(one.pid)["State"].startswith("S") and one.stdout.peek(), "it to print")
    one.kill()
    one.communicate(timeout=HANG)
    assert client.bs(session=name, idle=0.1) == "p" * 1_000_000


@pytest.mark.parametrize("owner", ["server", "BashSession"])
@pytest.mark.parametrize("taken", [0, 1, 100, -1])
def test_answer_that_was_not_read_to_its_end(client, owner, taken):
    """By the front door as by the session's own."""
    name = quiet(client, "precious" * 1000)
    with dial(socket_of(client.dir, owner)) as sock:
        sock.sendall(http_request(read(name)))
        wait_until(
            lambda: b"\r\n\r\n" in (seen := sock.recv(65536, socket.MSG_PEEK))
            and seen.endswith(b'"}')
            and seen,
            "the answer",
        )
        n = len(sock.recv(65536, socket.MSG_PEEK))
        left = n if taken == 0 else n - taken if taken > 0 else 1
        while n > left:
            n -= len(sock.recv(n - left))
    assert client.bs(session=name, idle=0.1) == "precious" * 1000
    assert client.bs(session=name, wait=0) == ""


@pytest.mark.parametrize("owner", ["server", "BashSession"])
def test_closed_before_the_answer(client, owner):
    name = client.new()
    client.bs("")
    with dial(socket_of(client.dir, owner)) as sock:
        sock.sendall(http_request(read(name, wait=60, idle=60, input="echo bef''ore; sleep 6000\n")))
        unread(client, name, 6)
    assert "before" in client.bs(idle=0.2)


@pytest.mark.parametrize("owner", ["server", "BashSession"])
def test_delivered_by_curl(client, owner):
    name = quiet(client, "once")
    done = curl(client, socket_of(client.dir, owner), read(name))
    assert json.loads(done.stdout)["result"] == "once"
    assert client.bs(session=name, wait=0) == ""


def test_delivered_when_the_next_request_comes(client):
    name = quiet(client, "once")
    with Door(socket_of(client.dir)) as door:
        assert door.ask("bash_session", json.loads(read(name))["params"])["result"] == "once"
        assert (
            door.ask("bash_session", {**json.loads(read(name))["params"], "wait_for_output": 0})["result"]
            == ""
        )


def test_delivered_when_it_was_read(client):
    """By a client that then keeps its connection and says nothing: the next one neither waits nor gets it again."""
    name = quiet(client, "once")
    with Door(socket_of(client.dir)) as door:
        assert door.ask("bash_session", json.loads(read(name))["params"])["result"] == "once"
        wait_until(lambda: client.rpc("bash_session_list")[0]["unread_bytes"] == 0, "the answer to count as read")
        assert client.bs(session=name, wait=0) == "", "of a client that had been waited for, and given up, it would come again"


def test_not_delivered_to_a_client_that_does_not_read(client):
    """Slow: a client that does not read is given up after some seconds."""
    name = quiet(client, "once")
    with dial(socket_of(client.dir)) as sock:
        sock.sendall(http_request(read(name)))
        time.sleep(0.5)
        assert "once" in client.bs(session=name)


def test_killed_curl(client):
    name = client.new()
    client.bs("")
    one = client.machine.popen(
        ["curl", "-s", "--unix-socket", socket_of(client.dir), "-d", "@-", "http://x/"]
    )
    one.stdin.write(read(name, wait=60, idle=60, input="echo bef''ore; sleep 6000\n"))
    one.stdin.close()
    one.stdin = None
    unread(client, name, 6)
    one.kill()
    one.communicate(timeout=HANG)
    assert "before" in client.bs(idle=0.2)


def test_keeper_killed_under_a_call(way):
    """Told by whoever waited for it; nothing is sent to another process, or started, on suspicion."""
    client = way.client
    client.new()
    client.bs("")
    ready = client.dir.parent / "ready"
    script = 'until [ -e "$1" ]; do sleep 0.01; done; kill -9 "$2"'
    with client.machine.popen(["sh", "-c", script, "sh", ready, str(titled(SESSION)[0].pid)]):
        answer = way.ask(read(client.session, wait=60, idle=60, input=f"touch {ready}; sleep 6000\n"))
    assert (
        code_of(answer) == TOOLERR
        and "ended while the call was open" in answer["error"]["message"]
        and answer["id"] == 1
    )
    answer = way.ask(read(client.session))
    assert code_of(answer) == TOOLERR and "start a new one" in answer["error"]["message"]
    client.new()
    assert "42" in client.bs("echo $((6*7))\n")


# ---- the socket as a user would use it ----


def test_curl_as_documented(client):
    """The lines of docs/protocol.md, as a user types them, in a directory of our own."""
    text = (REPO / "docs" / "protocol.md").read_text().partition("## Over the socket")[2]
    script = re.search(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1].replace("toolbox start", f"{client.binary} start")
    done = client.machine.run(["sh", "-euc", script], env=client.env)
    assert done.returncode == 0 and done.stderr == b"", done
    version, new, run = re.findall(r'"result":(.*?)}(?={"jsonrpc"|$)', done.stdout.decode())
    assert "pid" in version and "BashSession" in new and "Linux" in run
    done = client.machine.run(
        ["curl", "-si", "--unix-socket", socket_of(client.dir), "http://localhost/", "-d", VERSION.decode()]
    )
    head = done.stdout.decode().partition("\r\n\r\n")[0].lower()
    assert head.startswith("http/1.1 200 ok") and "content-type: application/json" in head


@pytest.mark.parametrize(
    "options",
    [
        ["-H", "Transfer-Encoding: chunked"],
        ["-H", "Expect: 100-continue"],
        ["-H", "Expect:"],
        ["--http1.0"],
        ["-H", "Connection: close"],
        ["-H", "Content-Type: text/plain"],
        ["--http2"],
    ],
)
def test_curl_in_many_manners(client, options):
    client.rpc("remote_version")
    for body in (VERSION, request("version", {"x": "y" * 3_000_000})):
        done = curl(client, socket_of(client.dir), body, *options)
        assert done.returncode == 0 and json.loads(done.stdout)["id"] == 1


def test_what_is_no_post_of_the_root(client):
    client.rpc("remote_version")
    path = socket_of(client.dir)
    for status_wanted, argv in (
        (405, ["http://x/"]),
        (405, ["-X", "PUT", "-d", "{}", "http://x/"]),
        (404, ["-d", "{}", "http://x/other"]),
    ):
        done = client.machine.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", path, *argv]
        )
        assert int(done.stdout) == status_wanted
    for text in (
        b"GARBAGE\r\n\r\n",
        b"\0\xff" * 100 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 10_000,
        b"POST / HTTP/9.9\r\nHost: x\r\n\r\n",
    ):
        with dial(path) as sock:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(text)
            assert re.match(rb"HTTP/1\.1 [45]\d\d ", sock.recv(4096))
    assert pid_in(client.rpc("remote_version")) == only_server()


def test_pipelined_requests(client):
    client.new()
    client.bs("")
    with dial(socket_of(client.dir)) as sock:
        sock.sendall(
            b"".join(
                http_request(body)
                for body in (
                    request("version", id=0),
                    read(client.session, input="sleep 0.3; echo\n"),
                    request("remote_version", id=2),
                    request("version", id=3),
                )
            )
            + http_request(request("version", id=4), "Connection: close")
        )
        text = b""
        while more := sock.recv(65536):
            text += more
    assert [int(id) for id in re.findall(rb'"id":(\d)', text)] == [0, 1, 2, 3, 4]


def test_many_clients_of_every_kind(client):
    """Silent, slow, half-closed and vanished ones cost nobody else anything."""
    client.new()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    path = socket_of(client.dir)
    with contextlib.ExitStack() as stack:
        for i in range(600):
            sock = stack.enter_context(dial(path))
            text = http_request(REMOTE)
            if i % 4 == 1:
                sock.sendall(text[: i % len(text)])
            elif i % 4 == 2:
                sock.sendall(text[:30])
                sock.shutdown(socket.SHUT_WR)
            elif i % 4 == 3:
                sock.sendall(text)
        began = time.monotonic()
        assert "42" in client.bs("echo $((6*7))\n") and pid_in(client.rpc("remote_version")) == only_server()
        with Door(path) as door:
            assert door.rpc("version") and pid_in(door.rpc("remote_version")) == only_server()
        assert time.monotonic() - began < 20
    wait_until(lambda: len(os.listdir(f"/proc/{only_server()}/fd")) < 30, "the descriptors to be closed")


def test_more_clients_than_descriptors(new_client, workdir):
    """Who comes when there are no descriptors left waits until some are closed."""
    client = new_client()

    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    assert client.cli("start-server", preexec_fn=lower).returncode == 0
    path = socket_of(client.dir)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(dial(path))
        one = _start(client, REMOTE)
        time.sleep(0.5)
        assert one.poll() is None
    out, _ = one.communicate(timeout=HANG)
    assert pid_in(json.loads(out)["result"]) == only_server()


def test_editor_through_the_socket(client, workdir):
    """Relative paths are those of where the server was started; each call is a process of its own."""
    (workdir / "start").mkdir()
    client.rpc("remote_version", cwd=workdir / "start")
    with Door(socket_of(client.dir)) as door:
        door.rpc("text_editor", {"command": "create", "path": "rel", "file_text": "x\n"})
        assert (workdir / "start/rel").read_text() == "x\n"
        door.rpc("text_editor", {"command": "str_replace", "path": "rel", "old_str": "x", "new_str": "y"})
        assert client.rpc("text_editor", {"command": "undo_edit", "path": "rel"}, cwd=workdir / "start")
        assert (workdir / "start/rel").read_text() == "x\n"
        assert not door.ask("text_editor", {"command": "view", "path": "rel"})["result"].startswith("Error")
    wait_until(lambda: processes.count_zombies(only_server()) == 0, "ended calls to be waited for")


@needs_root
def test_run_as_user(way, workdir):
    path = workdir / "file"
    params = {"command": "create", "path": str(path), "file_text": "x", "_run_as_user": str(NOBODY_KNOWS)}
    assert "result" in way.call("text_editor", params)
    assert path.stat().st_uid == NOBODY_KNOWS
    (workdir / "locked").mkdir(mode=0o700)
    assert code_of(way.call("text_editor", {**params, "path": str(workdir / "locked/file")})) == TOOLERR
    assert os.listdir(workdir / "locked") == []
    shutil.rmtree(f"/tmp/.toolbox-{NOBODY_KNOWS}")  # his history of edits
    assert "result" in way.call("version", {"_run_as_user": str(NOBODY_KNOWS)})
    for method, rest in (("version", {}), ("text_editor", params)):
        answer = way.call(method, {**rest, "_run_as_user": "no such user"})
        assert code_of(answer) == TOOLERR and "no such user" in answer["error"]["message"]


@needs_root
def test_run_as_another_without_being_root(new_client, workdir):
    client = new_client(user=NOBODY_KNOWS)
    for method, params in (
        ("version", {}),
        ("text_editor", {"command": "create", "path": str(workdir / "file"), "file_text": "x"}),
    ):
        for name in ("root", "0", str(NOBODY_KNOWS + 1)):
            with pytest.raises(RpcError) as caught:
                client.rpc(method, {**params, "_run_as_user": name})
            assert caught.value.code == TOOLERR and not (workdir / "file").exists()
        assert client.rpc(method, {**params, "_run_as_user": str(NOBODY_KNOWS)})


def test_calls_side_by_side(client):
    """Many at once, on one session and on many."""
    names = [client.new() for _ in range(4)]
    for name in names:
        client.bs("", session=name)
    calls = [
        _start(client, read(names[i % 4], wait=20, idle=1, input=f"echo =$(({i}*1000))=\n"))
        for i in range(24)
    ]
    calls += [_start(client, REMOTE) for _ in range(8)]
    answers = [json.loads(one.communicate(timeout=HANG)[0])["result"] for one in calls]
    rest = "".join(client.bs(session=name, wait=0) for name in names)
    for i in range(24):
        assert f"={i * 1000}=" in "".join(answers[:24]) + rest
    assert {pid_in(answer) for answer in answers[24:]} == {only_server()}


# ---- no more than is needed ----


def test_c115_nothing_is_started_for_in_process_methods(client, workdir):
    assert re.fullmatch(r"\d+\.\d+\.\d+", client.rpc("version"))
    client.ed("create", workdir / "file", file_text="x")
    assert "x" in client.ed("view", workdir / "file")
    with pytest.raises(RpcError):
        client.rpc(CHUNK, {"handle": "0" * 32, "offset": 0})
    no_server(client)
    assert pid_in(client.rpc("remote_version")) == only_server()


def test_request_is_in_no_command_line(client):
    """Not of exec itself: the request is on its standard input."""
    client.new()
    client.bs("")
    one = _start(client, read(client.session, wait=30, idle=30, input="sleep 6000 # secret\n"))
    runs("sleep", "6000")
    seen = b"".join(
        Path(f"/proc/{p.pid}/cmdline").read_bytes()
        for p in [*processes.descendants(only_server()), *titled(client.binary)]
    )
    assert b"secret" not in seen and b"exec" in seen and b"sleep" in seen
    one.kill()
    one.communicate(timeout=HANG)


@pytest.mark.skipif("TOOLBOX_SANITIZED" in os.environ, reason="needs the static binary")
@needs.programs("strace")
def test_in_process_call_touches_nothing(client):
    """No directory made, no socket looked for, no file read: limits of memory matter to long requests alone."""
    trace = client.dir.parent / "trace"
    done = client.machine.run(
        ["strace", "-f", "-o", trace, client.binary, "exec"], stdin=VERSION, env=client.env
    )
    assert json.loads(done.stdout)["id"] == 1
    calls = {match[1] for match in re.finditer(r"^\d+ +(\w+)\(", trace.read_text(), re.M)}
    assert not calls & {"socket", "connect", "mkdir", "mkdirat", "fork", "clone", "open", "openat"}, calls
