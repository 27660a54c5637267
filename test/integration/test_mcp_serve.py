"""`toolbox mcp serve`: the protocol, message by message."""
import base64
import contextlib
import json
import os
import re
import resource
import signal
import threading
import time

import pytest

from harness.client import INVALID_REQUEST, NO_METHOD, PARAMERR, PARSE
from harness.mcp_client import LEGACY, META, STATELESS, McpError, ToolError
from harness.processes import descendants, wait_until

UNSUPPORTED = -32022
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
ALL = LEGACY + [STATELESS]


# No other test sleeps as long.
SLEEP = str(100000 + os.getpid())


def sleeps():
    """Whether a program runs that this suite has put to sleep."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read() == b"sleep\0" + SLEEP.encode() + b"\0":
                return True
    return False


# ---- who we are ----


@pytest.mark.parametrize("revision", LEGACY)
def test_handshake_settles_the_revision(serve, revision):
    info = serve(revision).info
    assert info["protocolVersion"] == revision
    assert info["capabilities"] == {"tools": {}, "logging": {}}
    assert info["serverInfo"]["name"] == "toolbox" and info["instructions"]
    assert ("title" in info["serverInfo"]) == (revision >= "2025-06-18")


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", "", "2099-01-01"])
def test_unknown_revision_is_answered_with_the_newest_of_the_handshake(serve, asked):
    assert serve(None).initialize(asked)["protocolVersion"] == LEGACY[-1]


def test_each_revision_gets_what_it_knows(serve):
    members = {revision: set() for revision in ALL}
    for revision in ALL:
        for tool in serve(revision).request("tools/list")["tools"]:
            members[revision] |= set(tool)
    base = {"name", "description", "inputSchema"}
    assert members["2024-11-05"] == base
    assert members["2025-03-26"] == base | {"annotations"}
    for revision in ALL[2:]:
        assert members[revision] == base | {"annotations", "title"}


def test_schemas_of_results_are_listed_where_they_are_asked_for(serve):
    tools = {tool["name"]: tool for tool in serve(LEGACY[-1], "--structured").request("tools/list")["tools"]}
    plain = {name for name in tools if "outputSchema" not in tools[name]}
    pages = {"web_go", "web_screenshot"} & set(tools)  # listed where there is a browser
    assert {"text_editor", "read_file"} | pages <= plain and not plain & {"shell_run", "job_wait", "find_files"}
    assert '"type": [' not in json.dumps(tools) and "{}" not in json.dumps([tool.get("outputSchema") for tool in tools.values()])


def members_of(schema):
    for name, of in schema.get("properties", {}).items():
        yield name
        yield from members_of(of)
    yield from members_of(schema["items"]) if "items" in schema else ()


def test_schemas_name_members(serve):
    """As they stand in the tables of tools: a shape that is not understood there makes odd names."""
    for tool in serve(LEGACY[-1], "--structured").request("tools/list")["tools"]:
        names = [*members_of(tool["inputSchema"]), *members_of(tool.get("outputSchema", {}))]
        assert all(re.fullmatch("[a-z_]+", name) for name in names), (tool["name"], names)


def test_discover(serve):
    found = serve(STATELESS).request("server/discover")
    assert found["supportedVersions"] == ALL[::-1]
    assert found["capabilities"] == {"tools": {}, "logging": {}} and found["instructions"]
    assert found["resultType"] == "complete" and found["ttlMs"] > 0 and found["cacheScope"] == "public"
    assert found["_meta"][META + "serverInfo"]["name"] == "toolbox"


def test_both_kinds_of_client_on_one_pipe(serve):
    mcp = serve(STATELESS)
    assert mcp.request("tools/list")["resultType"] == "complete"
    mcp.initialize("2025-03-26")
    assert mcp.request("tools/list")["resultType"] == "complete"
    mcp.revision = "2025-03-26"
    assert "resultType" not in mcp.request("tools/list")


def test_nothing_is_served_without_a_revision(serve):
    mcp = serve(None)
    assert mcp.request("ping") == {}
    for method in "tools/list", "tools/call", "logging/setLevel", "server/discover", "subscriptions/listen":
        with pytest.raises(McpError) as error:
            mcp.request(method)
        assert error.value.code == PARAMERR and "initialize" in error.value.message, method


FIELDS = [
    ({"protocolVersion": "2027-01-01"}, UNSUPPORTED),
    ({"protocolVersion": "2025-11-25"}, UNSUPPORTED),
    ({"protocolVersion": 3}, PARAMERR),
    ({"protocolVersion": None}, PARAMERR),
    ({"clientCapabilities": None}, PARAMERR),
    ({"clientCapabilities": []}, PARAMERR),
    ({"clientInfo": "me"}, PARAMERR),
    ({"logLevel": "loud"}, PARAMERR),
]


def test_fields_of_each_request(serve):
    mcp = serve(STATELESS)
    for meta, code in FIELDS:
        with pytest.raises(McpError) as error:
            mcp.request("tools/list", **meta)
        assert error.value.code == code, meta
        if code == UNSUPPORTED:
            assert error.value.data == {"supported": ALL[::-1], "requested": meta["protocolVersion"]}


def test_methods_that_a_client_of_either_kind_lacks(serve):
    lacking = {STATELESS: ["ping", "logging/setLevel", "resources/list", "nope"],
               LEGACY[-1]: ["server/discover", "subscriptions/listen", "resources/list", "prompts/get", "", "x" * 200]}
    for revision, methods in lacking.items():
        mcp = serve(revision)
        for method in methods:
            with pytest.raises(McpError) as error:
                mcp.request(method, {"level": "info"})
            assert error.value.code == NO_METHOD, method


# ---- messages ----


NO_MESSAGES = [
    (b"{\n", PARSE), (b"nonsense\n", PARSE), (b"{}{}\n", PARSE), (b'{"a":"\xff"}\n', PARSE), (b"\x00\n", PARSE),
    (b"[" * 600 + b"]" * 600 + b"\n", PARSE),
    (b"1\n", INVALID_REQUEST), (b'"x"\n', INVALID_REQUEST), (b"null\n", INVALID_REQUEST), (b"{}\n", INVALID_REQUEST),
    (b'{"jsonrpc":"2.0"}\n', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n', INVALID_REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}\n', INVALID_REQUEST),
]


@pytest.mark.parametrize("revision, id_there", [(None, True), ("2024-11-05", True), ("2025-06-18", True), ("2025-11-25", False)])
def test_what_is_no_message(serve, revision, id_there):
    mcp = serve(revision)
    for line, code in NO_MESSAGES:
        mcp.send(line)
        answer = mcp.receive()
        assert answer["error"]["code"] == code, line
        assert answer.get("id") is None and ("id" in answer) == id_there, line
        assert mcp.request("ping") == {}


def test_ids_come_back_as_they_were(mcp):
    for id in 0, -1, 7, 9007199254740993, 1.5, "", "a", "7", "ä\u0000\u2028\"\\", "x" * 100000:
        mcp.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
        answer = mcp.receive()
        assert answer["id"] == id and type(answer["id"]) is type(id)


def test_an_invalid_request_gets_its_id_back(mcp):
    for message, code in (({"id": 1, "method": "ping"}, INVALID_REQUEST), ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, INVALID_REQUEST),
                          ({"jsonrpc": "2.0", "id": 1, "method": 5}, INVALID_REQUEST), ({"jsonrpc": "2.0", "id": 1}, INVALID_REQUEST),
                          ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, PARAMERR),
                          ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 3}, INVALID_REQUEST)):
        mcp.send(message)
        answer = mcp.receive()
        assert (answer["id"], answer["error"]["code"]) == (1, code), message


def test_what_gets_no_answer(mcp):
    for message in (b"\n", b"  \t\r\n", {"jsonrpc": "2.0", "id": 9, "result": {}}, {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": ""}},
                    {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "method": "nope"},
                    {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "shell_run", "arguments": {"command": "touch x"}}},
                    {"jsonrpc": "2.0", "method": "nope", "params": []}, {"jsonrpc": "2.0", "method": "notifications/cancelled"},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}}):
        mcp.send(message)
    assert mcp.start("ping") == mcp.receive()["id"]


def test_lines_in_pieces_with_crlf_and_no_end(serve):
    mcp = serve(None)
    for byte in b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n':
        mcp.send(bytes([byte]))
    assert mcp.receive()["id"] == 1
    mcp.send(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n{"jsonrpc":"2.0","id":3,"method":"ping"}\n{"jsonrpc":"2.0","id":4,"method":"ping"}')
    assert [message["id"] for message in mcp.close()] == [2, 3, 4]


def test_a_line_that_is_too_long(mcp):
    piece, start = b"x" * (1 << 20), time.monotonic()
    mcp.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"')
    for _ in range(80):
        mcp.send(piece)
    mcp.send(b'"}}\n')
    assert mcp.receive()["error"]["code"] == INVALID_REQUEST
    assert mcp.request("ping") == {}
    mcp.send(b'{"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":"' + piece * 50 + b'"}}\n')
    assert mcp.answer("long")["result"] == {}
    assert time.monotonic() - start < 50, "the time grows with the length alone"


def test_batches_belong_to_one_revision(serve):
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_files"}}, 5,
             {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}]
    for revision in [None] + LEGACY:
        mcp = serve(revision)
        mcp.send(batch)
        answer = mcp.receive()
        if revision != "2025-03-26":
            assert answer["error"]["code"] == INVALID_REQUEST
            continue
        by_id = {one["id"]: one for one in answer}
        assert len(answer) == 4 and by_id[1]["result"] == {} and "content" in by_id[2]["result"]
        assert by_id[None]["error"]["code"] == INVALID_REQUEST and by_id[3]["error"]["code"] == INVALID_REQUEST
        for nothing in [], [batch[0]] * 1001:
            mcp.send(nothing)
            assert mcp.receive()["error"]["code"] == INVALID_REQUEST
        mcp.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
        assert mcp.request("ping") == {}


def test_batch_with_a_cancelled_call(serve):
    mcp = serve("2025-03-26")
    mcp.send([{"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "shell_run", "arguments": {"command": f"sleep {SLEEP}"}}},
              {"jsonrpc": "2.0", "id": "quick", "method": "ping"}])
    wait_until(sleeps, "the command runs")
    mcp.notify("notifications/cancelled", {"requestId": "slow"})
    assert [one["id"] for one in mcp.receive()] == ["quick"]


# ---- tools/list and tools/call ----


def test_cursors(mcp):
    listed = mcp.request("tools/list")
    assert "nextCursor" not in listed and mcp.request("tools/list", {"cursor": None}) == listed
    for cursor in "", "x", 5, {}:
        with pytest.raises(McpError) as error:
            mcp.request("tools/list", {"cursor": cursor})
        assert error.value.code == PARAMERR


@pytest.mark.parametrize("revision", ALL)
def test_calls_that_are_none_are_protocol_errors(serve, revision):
    mcp = serve(revision)
    for params in ({}, {"name": 5}, {"name": None}, {"name": "nope"}, {"name": ""}, {"name": "probe", "arguments": []},
                   {"name": "probe", "arguments": "x"}):
        with pytest.raises(McpError) as error:
            mcp.request("tools/call", params)
        assert error.value.code == PARAMERR, params


@pytest.mark.parametrize("revision", ALL)
def test_wrong_arguments_as_each_revision_wants_them(serve, revision):
    mcp = serve(revision)
    for arguments in {}, {"command": 5}, {"command": "x", "timeout": -1}, {"command": "x", "timeout": "soon"}:
        with pytest.raises(McpError if revision < "2025-11-25" else ToolError) as error:
            mcp.call_result(mcp.start_call("shell_run", arguments))
        assert "Invalid parameters: " in str(error.value)


@pytest.mark.parametrize("revision", ALL)
def test_results_as_each_revision_wants_them(serve, revision):
    mcp = serve(revision)
    result = mcp.request("tools/call", {"name": "shell_run", "arguments": {"command": "echo ä; exit_code() { return 3; }; exit_code"}})
    told = json.loads(result["content"][0]["text"])
    assert told["output"] == "ä\n" and told["exit_code"] == 3 and result["isError"] is False
    assert ("structuredContent" in result) == (revision >= "2025-06-18") and result.get("structuredContent", told) == told
    assert ("resultType" in result) == (revision == STATELESS)


def test_errors_of_tools_are_for_the_model(mcp):
    with pytest.raises(ToolError, match="no such file|No such file"):
        mcp.call("read_file", path="/no/such")
    with pytest.raises(ToolError, match="shell_run starts one"):
        mcp.call("shell_read")


def test_absent_and_null_arguments(mcp):
    assert mcp.request("tools/call", {"name": "shell_list"})["structuredContent"] == {"default_session": None, "sessions": []}
    mcp.request("tools/call", {"name": "probe", "arguments": None})
    assert mcp.call("list_files", path=None, depth=None, exclude=None)["entries"] is not None


# ---- many at once ----


def test_a_slow_call_holds_up_nobody(mcp):
    slow = mcp.start_call("shell_run", {"command": f"sleep {SLEEP}"})
    assert mcp.request("ping") == {}
    assert mcp.call("list_files", path="/")["entries"]
    job = mcp.call("job_start", argv=["echo", "hi"])["job"]
    assert mcp.call("job_wait", job=job)["stdout"] == "hi\n"
    other = mcp.call("shell_new")["session"]
    assert mcp.call("shell_run", command="echo other", session=other)["output"] == "other\n"
    mcp.notify("notifications/cancelled", {"requestId": slow})


def test_the_terminal_of_a_shell(mcp):
    session = mcp.call("shell_new", rows=30, cols=90, term="vt100")["session"]
    assert mcp.call("shell_run", command="echo $TERM $(stty size)", session=session)["output"] == "vt100 30 90\n"


def test_runs_in_one_shell_are_done_in_their_order(mcp):
    ids = [mcp.start_call("shell_run", {"command": f"echo {i}; n=$((n*10+{i})); echo $n"}) for i in range(1, 6)]
    assert [mcp.call_result(id)["output"].split()[1] for id in ids] == ["1", "12", "123", "1234", "12345"]


def test_an_id_that_is_in_use(mcp):
    slow = mcp.start_call("shell_run", {"command": "sleep 0.5; echo first"}, id="same")
    mcp.start("ping", id="same")
    refusal = mcp.receive()
    assert refusal["id"] == "same" and refusal["error"]["code"] == INVALID_REQUEST
    assert mcp.call_result(slow)["output"] == "first\n"
    assert mcp.request("ping", id="same") == {}


# ---- cancellation, progress, log ----


@pytest.mark.parametrize("revision", ALL)
def test_a_cancelled_run_is_interrupted(serve, revision):
    mcp = serve(revision)
    id = mcp.start_call("shell_run", {"command": f"echo started; sleep {SLEEP}; echo not this"})
    wait_until(sleeps, "the command runs")
    mcp.notify("notifications/cancelled", {"requestId": id, "reason": "test"})
    wait_until(lambda: not sleeps(), "the command has been interrupted")
    if revision >= LEGACY[2]:
        assert mcp.call("shell_run", command="echo here")["output"] == "here\n"
    assert id not in mcp.answers


def test_a_call_that_waits_its_turn_can_be_cancelled(mcp):
    first = mcp.start_call("shell_run", {"command": "sleep 0.5"})
    second = mcp.start_call("shell_run", {"command": "touch harm"})
    third = mcp.start_call("shell_run", {"command": "ls"})
    mcp.notify("notifications/cancelled", {"requestId": second})
    assert mcp.call_result(first)["state"] == "completed"
    assert "harm" not in mcp.call_result(third)["output"]


def test_a_cancelled_wait_loses_no_output(mcp):
    job = mcp.call("job_start", command=f"echo one; sleep 0.3; echo two; sleep {SLEEP}")["job"]
    id = mcp.start_call("job_wait", {"job": job}, token="t")
    wait_until(lambda: "8 bytes" in mcp.receive()["params"]["message"], "both lines have come")
    mcp.notify("notifications/cancelled", {"requestId": id})
    assert mcp.call("job_wait", job=job, timeout=0)["stdout"] == "one\ntwo\n"
    assert mcp.call("job_wait", job=job, timeout=0)["stdout"] == ""
    assert mcp.call("job_kill", job=job)["state"] == "killed"


@pytest.mark.parametrize("revision", ALL)
def test_progress(serve, revision):
    mcp = serve(revision)
    ids = {token: mcp.start_call("job_wait", {"job": mcp.call_job("sleep 2.3"), "timeout": 20}, token=token) for token in ("t", 5, "")}
    for token, id in ids.items():
        mcp.call_result(id)
        told = [n["params"] for n in mcp.notifications if n["params"]["progressToken"] == token]
        assert len(told) >= 2 and all(p["total"] == 20 for p in told)
        assert all(a["progress"] < b["progress"] for a, b in zip(told, told[1:]))
        assert all(("message" in p) == (revision > "2024-11-05") for p in told)


def test_progress_ends_with_the_call(mcp):
    mcp.call_result(mcp.start_call("list_files", token="short"))
    for token in "wrong", 1.5, {}, [], None, True:
        mcp.call_result(mcp.start_call("list_files", token=token))
    job = mcp.call("job_start", command="sleep 1.5")["job"]
    mcp.call("job_wait", job=job)
    assert not mcp.notifications


def test_log_messages_by_level(serve):
    mcp = serve()
    mcp.call("shell_new")
    assert not mcp.notifications
    assert mcp.request("logging/setLevel", {"level": "debug"}) == {}
    session = mcp.call("shell_new")["session"]
    message, = mcp.notifications
    assert message["method"] == "notifications/message" and message["params"]["level"] == "info"
    assert message["params"]["logger"] == "toolbox" and session in message["params"]["data"]
    for level in "loud", 3, None:
        with pytest.raises(McpError) as error:
            mcp.request("logging/setLevel", {"level": level})
        assert error.value.code == PARAMERR


def test_log_messages_by_request(serve):
    mcp = serve(STATELESS)
    mcp.call("shell_new")
    mcp.call_result(mcp.start_call("shell_new", logLevel="error"))
    assert not mcp.notifications
    mcp.call_result(mcp.start_call("shell_new", logLevel="info"))
    assert [n["params"]["level"] for n in mcp.notifications] == ["info"]


def test_subscriptions(serve):
    mcp = serve(STATELESS)
    id = mcp.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="sub")
    assert mcp.receive() == {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                             "params": {"_meta": {META + "subscriptionId": "sub"}, "notifications": {}}}
    other = mcp.start("subscriptions/listen", {"notifications": {}})
    assert mcp.receive()["params"]["_meta"][META + "subscriptionId"] == other
    mcp.notify("notifications/cancelled", {"requestId": id})
    with pytest.raises(McpError):
        mcp.request("subscriptions/listen", {})
    ended, = mcp.close()
    assert ended["id"] == other and ended["result"]["_meta"][META + "subscriptionId"] == other


# ---- the end ----


def sessions(client):
    return [one["session_name"] for one in client.rpc("bash_session_list")]


def test_the_end_of_input_ends_what_was_made(serve, client):
    mcp = serve()
    theirs = client.new()
    mcp.call("shell_run", command=f"sleep {SLEEP} &")
    mcp.call("shell_new")
    mcp.call("job_start", argv=["sleep", SLEEP])
    assert len(sessions(client)) == 3
    mcp.close()
    assert sessions(client) == [theirs] and not sleeps()


def test_sessions_can_be_kept(serve, client):
    mcp = serve(LEGACY[-1], "--keep-sessions")
    session = mcp.call("shell_run", command="x=5")["session"]
    mcp.start_call("shell_run", {"command": "sleep 1.5; x=6"})
    job = mcp.call("job_start", argv=["sleep", SLEEP])["job"]
    mcp.close()
    later = serve()
    assert session in [one["session_name"] for one in later.call("shell_list")["sessions"]]
    assert later.call("shell_run", command="echo $x", session=session)["output"] == "6\n"
    assert later.call("job_kill", job=job)["state"] == "killed"
    later.call("shell_close", session=session)


def test_calls_that_are_open_at_the_end_are_finished(serve):
    mcp = serve()
    ids = [mcp.start_call("shell_run", {"command": "sleep 0.3; echo done"}), mcp.start_call("shell_run", {"command": "echo second"})]
    rest = {message["id"]: message for message in mcp.close()}
    assert [rest[id]["result"]["structuredContent"]["output"] for id in ids] == ["done\n", "second\n"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_the_end(serve, client, number):
    mcp = serve()
    mcp.call("shell_new")
    mcp.start_call("shell_run", {"command": f"sleep {SLEEP}"})
    wait_until(sleeps, "the command runs")
    mcp.process.send_signal(number)
    assert mcp.process.wait(20) == 0
    assert sessions(client) == []
    mcp.close()


def test_a_client_that_has_gone(serve, client):
    """Its pipes close: nothing of ours is left, and nothing that ran for it."""
    mcp = serve()
    mcp.start_call("shell_run", {"command": f"sleep {SLEEP}"})
    wait_until(sleeps, "the command runs")
    mcp.process.stdin.close()
    os.close(os.dup(mcp.process.stdout.fileno()))
    assert mcp.process.wait(30) == 0
    assert sessions(client) == []
    mcp.close()


def test_usage(client):
    assert b"--keep-sessions" in client.cli("mcp", "serve", "--help").stdout
    for words in (["--keep"], ["x"], ["--tools", "shell_run,nosuch"], ["--tools", "shell_run nosuch"], ["--tools", ","], ["--tools", ""],
                  ["--read-only", "--tools", "shell_run"], ["--tools", "shell_run", "--read-only"]):
        done = client.cli("mcp", "serve", *words)
        assert done.returncode == 2 and b"toolbox mcp serve: " in done.stderr
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    names = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    for words in "shell_run, read_file", "shell_run read_file", "{shell_run,read_file}", "shell_run,read_file,":
        done = client.cli("mcp", "serve", "--tools", words, stdin="".join(json.dumps(m) + "\n" for m in (hello, names)).encode())
        tools = json.loads(done.stdout.splitlines()[-1])["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["shell_run", "read_file"], words


# ---- hostile clients ----


def test_a_flood_from_a_client_that_reads_late(serve):
    """More answers than are kept wait in the requests, and none is lost."""
    mcp = serve(None)
    mcp.lines.maxsize = 10
    mcp.initialize(LEGACY[-1])
    sender = threading.Thread(target=lambda: [mcp.send({"jsonrpc": "2.0", "id": i, "method": "tools/list"}) for i in range(3000)])
    sender.start()
    sender.join(1)
    assert sender.is_alive() and is_small(mcp.process.pid)
    assert [mcp.receive()["id"] for _ in range(3000)] == list(range(3000))
    sender.join()


def is_small(pid):
    """Whether a process holds no more than a few megabytes (which the address sanitizer does anyway)."""
    with open(f"/proc/{pid}/status") as file:
        return "ASAN_OPTIONS" in os.environ or next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) < 12_000


def ask_and_not_read(process, *messages):
    """Talks to a server whose answers nobody looks at."""
    for message in [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}, *messages]:
        os.write(process.stdin.fileno(), json.dumps(message).encode() + b"\n")


def test_a_client_that_never_reads(client):
    process = client.popen("mcp", "serve")
    ask_and_not_read(process)
    os.set_blocking(process.stdin.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(400_000):
            os.write(process.stdin.fileno(), b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n')
    assert is_small(process.pid)
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()
    process.stderr.close()


def test_a_reader_that_has_gone(client):
    process = client.popen("mcp", "serve")
    ask_and_not_read(process, {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                               "params": {"name": "shell_run", "arguments": {"command": f"sleep {SLEEP}"}}})
    wait_until(sleeps, "the command runs")
    process.stdout.close()
    assert process.wait(30) == 0 and sessions(client) == [] and not sleeps()
    process.stdin.close()
    process.stderr.close()


def test_a_killed_server_leaves_no_worker(serve, client):
    mcp = serve()
    mcp.start_call("job_wait", {"job": mcp.call("job_start", argv=["sleep", SLEEP])["job"], "timeout": 600})
    mcp.start_call("shell_run", {"command": f"sleep {SLEEP}", "timeout": 600})

    def at_work():
        """Its own children: the tools' server, which one of them started, is below that for a moment."""
        return [process.pid for process in descendants(mcp.process.pid) if _state(process.pid)[1] == mcp.process.pid]

    workers = wait_until(lambda: len(at_work()) >= 2 and at_work(), "both are at work")
    mcp.process.kill()
    mcp.process.wait()
    wait_until(lambda: all(_state(pid)[0] in ("gone", "Z") for pid in workers), "they have ended with it")


def _state(pid):
    """The letter of a process, and its parent."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        letter, parent = file.read().rsplit(")", 1)[1].split()[:2]
        return letter, int(parent)
    return "gone", 0


def test_a_thousand_calls_at_once(mcp):
    ids = [mcp.start_call("job_start", {"argv": ["true"]}) for _ in range(500)] + [mcp.start_call("list_files") for _ in range(500)]
    assert mcp.request("ping") == {}
    assert all(mcp.call_result(id, timeout=120) for id in ids)


def test_few_descriptors_make_calls_wait(serve):
    mcp = serve(LEGACY[-1], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
    ids = [mcp.start_call("list_files") for _ in range(100)]
    assert all(mcp.call_result(id) for id in ids)


def test_many_cancelled_at_once(serve):
    """None is left to its timeout, which is 45 seconds: also where its process has only just been forked."""
    for _ in range(6):
        mcp = serve()
        for _ in range(50):
            mcp.notify("notifications/cancelled", {"requestId": mcp.start_call("shell_run", {"command": f"sleep {SLEEP}"})})
        result = mcp.call_result(mcp.start_call("shell_run", {"command": "echo alive"}), timeout=20)
        assert result["state"] == "completed" and result["output"] == "alive\n"
        assert not sleeps() and len(mcp.call("shell_list")["sessions"]) == 1
        mcp.close()


def test_cancelled_at_each_moment_of_a_start_of_a_program(mcp):
    """Also where the shell has forked and the program has not begun, which is when an interrupt would be lost."""
    assert mcp.call("shell_run", command="echo ready")["output"] == "ready\n"
    for i in range(60):
        for j in range(8):
            id = mcp.start_call("shell_run", {"command": f"sleep {SLEEP}"})
            time.sleep((i * 7 + j * 3) % 80 / 4000 / (1 if j == 0 else 5))
            mcp.notify("notifications/cancelled", {"requestId": id})
        assert mcp.call("shell_run", command="echo alive")["output"] == "alive\n"


def test_a_cancelled_subshell_is_interrupted(mcp):
    id = mcp.start_call("shell_run", {"command": f"(sleep {SLEEP}; echo no)"})
    wait_until(sleeps, "it runs")
    mcp.notify("notifications/cancelled", {"requestId": id})
    assert mcp.call("shell_run", command="echo alive")["output"] == "alive\n"
    assert not sleeps()


def test_a_cancelled_start_leaves_no_shell(serve, client):
    mcp = serve()
    for i in range(20):
        id = mcp.start_call("shell_new")
        time.sleep(i / 300)  # at each moment of a start
        mcp.notify("notifications/cancelled", {"requestId": id})
    mcp.close()
    assert sessions(client) == []


@pytest.mark.parametrize("how", ["</dev/null", "<&-", "</", ">&-", ">/dev/full"])
def test_odd_ends(client, workdir, how):
    (workdir / "in").write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
    redirect = how if how.startswith("<") else f"<in {how}"
    done = client.machine.run(["sh", "-c", f"{client.binary} mcp serve {redirect}"], env=client.env, cwd=workdir)
    assert done.returncode == 0 and done.stderr == b""


def test_files_instead_of_pipes(client, workdir):
    (workdir / "in").write_text("".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "ping"}) + "\n" for i in range(50000)))
    done = client.machine.run(["sh", "-c", f"{client.binary} mcp serve <in >out"], env=client.env, cwd=workdir)
    assert done.returncode == 0 and [json.loads(line)["id"] for line in open(workdir / "out")] == list(range(50000))
