"""`toolbox mcp serve --http`: sessions, streams, who may ask, many clients, and how it ends."""
import base64
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from harness.machine import HANG
from harness.mcp_http import BOTH, HttpClient, events_in, serve_http
from harness.processes import wait_until

META = "io.modelcontextprotocol/"


@pytest.fixture
def server(client, workdir):
    with serve_http(client, cwd=workdir) as one:
        yield one


def sessions(client):
    return [one["session_name"] for one in client.rpc("bash_session_list")]


# ---- sessions ----


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_session(client, server, workdir, revision):
    mcp = HttpClient(server, revision)
    assert len(mcp.session) == 32 and mcp.session.isalnum()
    assert "shell_run" in [tool["name"] for tool in mcp.ask("tools/list")["result"]["tools"]]
    assert mcp.head["content-type"] == "application/json"
    result = mcp.ask("tools/call", {"name": "shell_run", "arguments": {"command": "cd /; echo here"}, "_meta": {"progressToken": 7}})["result"]
    assert "here" in result["content"][0]["text"] and mcp.head["content-type"] == "text/event-stream"
    assert (mcp.events[0][1] is None) == (revision == "2025-11-25"), "an event to go on behind, where clients know of it"
    assert mcp.ask("tools/call", {"name": "shell_run", "arguments": {"command": "pwd"}}, Accept="application/json")["result"]["content"]
    assert mcp.head["content-type"] == "application/json"
    assert sessions(client) == ["BashSession"]
    assert mcp.request("DELETE")[0] == 204
    assert mcp.post(mcp.message("ping"))[0] == 404 and mcp.request("DELETE")[0] == 404 and mcp.request("GET")[0] == 404
    wait_until(lambda: not sessions(client), "its shell has ended")
    mcp.close()


def test_progress_comes_on_the_way(server):
    mcp = HttpClient(server)
    mcp.ask("tools/call", {"name": "shell_run", "arguments": {"command": "sleep 1.3"}, "_meta": {"progressToken": "t"}})
    told = [message["params"]["progressToken"] for _, message in mcp.events if message and message.get("method") == "notifications/progress"]
    assert told and set(told) == {"t"}
    assert [id.split("-")[1] for id, _ in mcp.events] == [str(n) for n in range(len(mcp.events))]
    mcp.close()


def test_a_batch(server):
    mcp = HttpClient(server, "2025-03-26")
    status, body = mcp.post([mcp.message("ping"), {"jsonrpc": "2.0", "method": "notifications/x"}, mcp.message("tools/list")], Accept="application/json")
    assert status == 200 and sorted(answer["id"] for answer in json.loads(body)) == [2, 3]
    assert mcp.post([{"jsonrpc": "2.0", "method": "notifications/x"}]) == (202, b"")
    mcp.close()


def test_clients_have_shells_of_their_own(client, server):
    one, other = HttpClient(server), HttpClient(server)
    one.call("shell_run", command="cd /; x=1")
    assert other.call("shell_run", command="echo x=$x")["output"] == "x=\n"
    assert one.call("shell_run", command="echo x=$x")["output"] == "x=1\n" and len(sessions(client)) == 2
    again = HttpClient(server, None)
    again.session = one.session
    assert again.call("shell_run", command="echo x=$x")["output"] == "x=1\n", "over any connection"
    assert other.request("DELETE")[0] == 204
    wait_until(lambda: len(sessions(client)) == 1, "its shell has ended")
    for each in one, other, again:
        each.close()


def test_shells_can_be_shared(client, workdir):
    with serve_http(client, "--share", cwd=workdir) as server:
        one, other = HttpClient(server), HttpClient(server)
        one.call("shell_run", command="x=1")
        assert other.call("shell_run", command="echo x=$x")["output"] == "x=1\n"
        assert one.request("DELETE")[0] == 204
        assert other.call("shell_run", command="echo x=$x")["output"] == "x=1\n", "it is that of all"
        one.close(), other.close()
    assert not sessions(client)


def test_a_client_that_is_gone_is_ended(client, workdir):
    with serve_http(client, "--idle", "1", cwd=workdir) as server:
        mcp = HttpClient(server)
        mcp.call("shell_run", command="true")
        assert len(sessions(client)) == 1
        mcp.close()
        wait_until(lambda: not sessions(client), "its shell has ended")
        late = HttpClient(server, None)
        late.session = mcp.session
        assert late.post(late.message("ping"))[0] == 404
        late.close()


def test_one_that_listens_is_there(client, workdir):
    with serve_http(client, "--idle", "1", cwd=workdir) as server:
        mcp, ear = HttpClient(server), HttpClient(server, None)
        mcp.call("shell_run", command="true")
        ear.session = mcp.session
        ear.send("GET")
        response = ear.connection.getresponse()
        assert response.status == 200 and response.getheader("content-type") == "text/event-stream"
        other = HttpClient(server)  # whose end tells that the time has passed
        other.close()
        gone = HttpClient(server, None)
        gone.session = other.session
        wait_until(lambda: gone.post(gone.message("ping"))[0] == 404 if time.sleep(6) is None else 0, "the other has ended")
        assert mcp.call("shell_run", command="echo still")["output"] == "still\n"
        for each in mcp, ear, gone:
            each.close()


# ---- streams that break ----


def test_what_came_meanwhile_is_there_for_one_that_comes_again(server, workdir):
    mcp = HttpClient(server)
    mcp.call("shell_run", command="true")
    mcp.send("POST", body=json.dumps(mcp.message("tools/call", {"name": "shell_run", "arguments": {
        "command": f"touch {workdir}/begun; until test -e {workdir}/go; do sleep 0.05; done; echo late"}})))
    response = mcp.connection.getresponse()
    first = response.fp.readline() + response.fp.readline()
    id = first.decode().split("id: ")[1].split()[0]
    wait_until(lambda: (workdir / "begun").exists(), "it runs")
    mcp.connection.sock.shutdown(socket.SHUT_RDWR)
    mcp.close()
    (workdir / "go").touch()
    again = HttpClient(server, None)
    again.session = mcp.session
    again.last_id = mcp.last_id
    for _ in range(2):  # as often as it wants
        status, body = again.request("GET", Last_Event_ID=id)
        assert status == 200 and again.answer(body)["result"]["structuredContent"]["output"] == "late\n"
    last = again.events[-1][0]
    assert events_in(again.request("GET", Last_Event_ID=last)[1]) == [], "nothing twice"
    again.close()


def test_no_other_session_gets_it(server):
    mcp, other = HttpClient(server), HttpClient(server)
    mcp.call("shell_run", command="echo secret")
    other.send("GET", Last_Event_ID=mcp.events[0][0])
    response = other.connection.getresponse()
    other.connection.sock.settimeout(1)
    try:
        got = response.fp.readline() + response.fp.readline()
    except TimeoutError:
        got = b""
    assert b"secret" not in got
    mcp.close(), other.close()


def test_a_cancelled_call_ends(server, workdir):
    mcp, canceller = HttpClient(server), HttpClient(server, None)
    canceller.session = mcp.session
    mcp.call("shell_run", command="true")
    mcp.send("POST", body=json.dumps(mcp.message("tools/call", {"name": "shell_run", "arguments": {"command": f"touch {workdir}/on; sleep 1000"}})))
    wait_until(lambda: (workdir / "on").exists(), "it runs")
    assert canceller.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": mcp.last_id}})[0] == 202
    status, body = mcp.receive()
    assert status == 200 and not [message for _, message in events_in(body) if message and "result" in message]
    assert mcp.call("shell_run", command="echo on")["output"].endswith("on\n")
    mcp.close(), canceller.close()


# ---- without sessions ----


def stateless(mcp, method, params=None, **fields):
    meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
    message = mcp.message(method, {**(params or {}), "_meta": meta})
    head = {"Mcp_Method": method, "MCP_Protocol_Version": "2026-07-28", **({"Mcp_Name": params["name"]} if params else {}), **fields}
    return mcp.post(message, **head)


def test_requests_without_a_session(server):
    mcp = HttpClient(server, None)
    status, body = stateless(mcp, "server/discover")
    assert status == 200 and "2026-07-28" in json.loads(body)["result"]["supportedVersions"] and "mcp-session-id" not in mcp.head
    status, body = stateless(mcp, "tools/call", {"name": "shell_run", "arguments": {"command": "echo hi"}})
    assert status == 200 and mcp.answer(body)["result"]["structuredContent"]["output"] == "hi\n"
    name = "=?base64?" + base64.b64encode(b"shell_run").decode() + "?="
    assert stateless(mcp, "tools/call", {"name": "shell_run", "arguments": {"command": "true"}}, Mcp_Name=name)[0] == 200
    for fields in ({"Mcp_Method": None}, {"Mcp_Method": "tools/list"}, {"Mcp_Name": "job_start"}, {"Mcp_Name": None},
                   {"MCP_Protocol_Version": "2025-11-25"}, {"MCP_Protocol_Version": None}):
        status, body = stateless(mcp, "tools/call", {"name": "shell_run", "arguments": {"command": "true"}}, **fields)
        assert status == 400 and json.loads(body)["error"]["code"] == -32020 and json.loads(body)["id"] == mcp.last_id, fields
    assert stateless(mcp, "nosuch/method")[0] == 404
    mcp.close()


def test_one_without_a_session_cancels_by_closing(server, workdir):
    mcp = HttpClient(server, None)
    meta = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}}
    mcp.send("POST", body=json.dumps(mcp.message("tools/call", {"name": "shell_run", "_meta": meta, "arguments": {
        "command": f"touch {workdir}/on; sleep 1000"}})), Mcp_Method="tools/call", Mcp_Name="shell_run", MCP_Protocol_Version="2026-07-28")
    wait_until(lambda: (workdir / "on").exists(), "it runs")
    mcp.connection.sock.shutdown(socket.SHUT_RDWR)
    mcp.close()
    again = HttpClient(server, None)
    status, body = stateless(again, "tools/call", {"name": "shell_run", "arguments": {"command": "echo on"}})
    assert status == 200 and again.answer(body)["result"]["structuredContent"]["output"].endswith("on\n")
    again.close()


# ---- who may ask, and how ----


def test_web_pages_are_not_answered(server):
    mcp = HttpClient(server)
    port = server.address()[1]
    for fields, status in (({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 403), ({"Host": f"evil.example:{port}"}, 403),
                           ({"Origin": "null"}, 403), ({"Origin": f"http://localhost:{port}"}, 200), ({"Host": "localhost"}, 200),
                           ({"Content_Type": "text/plain"}, 415)):
        assert mcp.post(mcp.message("ping"), **fields)[0] == status, fields
    mcp.close()


def test_what_is_no_request_of_the_protocol(server):
    mcp = HttpClient(server)
    session = mcp.session
    assert mcp.request("GET", Accept="application/json")[0] == 406
    assert mcp.request("PUT", body="{}")[0] == 405 and mcp.head["allow"] == "POST, GET, DELETE"
    assert mcp.request("GET", "/nothing")[0] == 404 and mcp.request("GET", "/healthz") == (200, b"ok\n")
    assert mcp.post(mcp.message("ping"), MCP_Protocol_Version="1999-01-01")[0] == 400
    assert mcp.post(mcp.message("ping"), MCP_Protocol_Version="2025-11-25")[0] == 200
    for body in b"{", b"[", b"", b"{}", b"7", b'"text"':
        assert mcp.post(body)[0] == 400, body
    for wrong in "0" * 32, session[:-1], session + "0", "":
        assert mcp.post(mcp.message("tools/list"), Mcp_Session_Id=wrong)[0] == (404 if wrong else 400)
    status, body = mcp.post(mcp.message("tools/list"), Mcp_Session_Id=None)
    assert status == 400 and "initialize" in json.loads(body)["error"]["message"] and json.loads(body)["id"] == mcp.last_id
    assert mcp.post({"jsonrpc": "2.0", "method": "notifications/x"}, Mcp_Session_Id=None)[0] == 400
    assert mcp.ask("ping")["result"] == {}
    mcp.close()


def test_requests_that_two_servers_would_read_differently(server):
    for head in ("Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 6", "Content-Length: +5",
                 "Transfer-Encoding: chunked, identity", "Host: a\r\nContent-Length : 5", "Host: localhost\r\n folded: x"):
        with socket.create_connection(server.address(), HANG) as one:
            one.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            got = b""
            while piece := one.recv(65536):
                got += piece
            assert got.startswith(b"HTTP/1.1 4") or got.startswith(b"HTTP/1.1 501"), (head, got)
            assert got.count(b"HTTP/1.1") == 1, (head, got)


# ---- who means no good ----


def test_nobody_reaches_the_session_of_another(server):
    one, other = HttpClient(server), HttpClient(server)
    for guess in "0" * 32, one.session[:-1], one.session + "0", one.session.upper() + "0", "%" + one.session, "":
        assert other.request("DELETE", Mcp_Session_Id=guess)[0] == 404, guess
    assert one.call("write_file", path="secret", content="x")["created"]
    for last in "999-1", "abc", "-1-5", "4294967297-0", "1-99999999999999999999", "1-", "":
        with socket.create_connection(server.address(), HANG) as line:
            line.sendall(f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {other.session}\r\nLast-Event-ID: {last}\r\n\r\n".encode())
            got = b""
            while b"\r\n\r\n" not in got or not got.split(b"\r\n\r\n", 1)[1]:
                got += line.recv(65536)
            assert got.startswith(b"HTTP/1.1 200") and b"secret" not in got and b"jsonrpc" not in got, last
    assert one.ask("ping")["result"] == {}
    one.close()
    other.close()


def test_names_that_only_look_like_this_machine(server):
    mcp = HttpClient(server)
    for host in "localhost.evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "localhost, evil.example", "127.1":
        assert mcp.post(mcp.message("ping"), Host=host)[0] == 403, host
    for origin in "http://localhost.evil.example", "http://localhost@evil.example", "file://", "chrome-extension://abc":
        assert mcp.post(mcp.message("ping"), Origin=origin)[0] == 403, origin
    assert mcp.ask("ping")["result"] == {}
    mcp.close()


@pytest.mark.parametrize("flood", [b"".join(b"X-%d: y\r\n" % i for i in range(20000)), b"X: " + b"y" * 2000000 + b"\r\n"], ids=["fields", "bytes"])
def test_a_flood_of_header_fields_is_refused(server, flood):
    mcp = HttpClient(server)
    with socket.create_connection(server.address(), HANG) as one:
        with contextlib.suppress(OSError):  # it needn't read all of it
            one.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + flood + b"\r\n")
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := one.recv(65536):
                got += piece
        assert got == b"" or got.startswith(b"HTTP/1.1 431"), got[:200]
    assert mcp.ask("ping")["result"] == {}
    mcp.close()


def test_ten_thousand_requests_in_one_go(server):
    """All answered, in their order; and while nobody reads, others are served."""
    mcp, other = HttpClient(server), HttpClient(server)
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\nMcp-Session-Id: {mcp.session}\r\n"
    bodies = [json.dumps({"jsonrpc": "2.0", "id": i, "method": "ping"}) for i in range(10000)]
    text = "".join(f"{head}Content-Length: {len(body)}\r\n\r\n{body}" for body in bodies).encode()
    with socket.create_connection(server.address(), HANG) as one:
        writer = threading.Thread(target=one.sendall, args=(text,), daemon=True)
        writer.start()
        assert other.ask("tools/list")["result"]["tools"]
        got = b""
        while got.count(b'"result":{}}') < len(bodies):
            piece = one.recv(1 << 20)
            assert piece, "the connection has ended"
            got += piece
        writer.join(HANG)
    assert [int(id) for id in re.findall(rb'"id":(\d+)', got)] == list(range(10000))
    mcp.close()
    other.close()


def test_tokens(client, workdir):
    (workdir / "token").write_text("s3cret\n")
    for options, env in (["--token-file", "token"], {}), (["--token-env", "TOKEN"], {"TOKEN": "s3cret"}):
        with serve_http(client, *options, where="0.0.0.0:0", cwd=workdir, env=env) as server:
            mcp = HttpClient(server, Authorization="Bearer s3cret")
            assert mcp.call("shell_run", command="echo in")["output"] == "in\n"
            assert mcp.post(mcp.message("ping"), Host="box.example")[0] == 200, "by a name of its own"
            assert mcp.post(mcp.message("ping"), Host="box.example", Origin="http://evil.example")[0] == 403
            for wrong in None, "", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Bearer S3cret", "Basic s3cret", "s3cret":
                status, body = mcp.post(mcp.message("ping"), Authorization=wrong)
                assert status == 401 and mcp.head["www-authenticate"] == "Bearer" and b"s3cret" not in body, wrong
            for method in "GET", "DELETE":
                assert mcp.request(method, Authorization=None)[0] == 401
            assert mcp.request("GET", "/healthz", Authorization=None)[0] == 200
            mcp.close()


def test_what_the_command_line_refuses(client, workdir):
    (workdir / "empty").write_text("\nx\n")
    for words, why in ((["--http", "0.0.0.0:0"], b"--token"), (["--http", "0", "--token-file", "nosuch"], b"nosuch"), (["--http", "0", "--token-file", "empty"], b"no token"),
                       (["--http", "0", "--token-env", "NOSUCH"], b"NOSUCH"), (["--share"], b"--http"), (["--http", "no:port:here"], b"port"), (["--http", "unix:here"], b"absolute"),
                       (["--http", "0", "--idle", "never"], b"--idle"), (["--http", "0", "--token-env", "PATH", "--token-file", "empty"], b"one token")):
        done = client.cli("mcp", "serve", *words, cwd=workdir)
        assert done.returncode in (1, 2) and why in done.stderr and not done.stdout, (words, done)


def test_a_socket_with_a_path(client, workdir):
    path = workdir / "socket"
    with serve_http(client, where=f"unix:{path}", cwd=workdir) as server:
        assert path.stat().st_mode & 0o077 == 0
        mcp = HttpClient(server)
        assert mcp.call("shell_run", command="pwd")["output"] == f"{workdir}\n"
        mcp.close()
    assert not path.exists()


# ---- many, and bad ones ----


def test_many_clients_at_once(client, server):
    """Each gets its own answers, over a connection of its own."""
    def work(n):
        mcp = HttpClient(server)
        results = [mcp.call("write_file", path=f"/tmp/toolbox-many-{os.getpid()}-{n}", content=str(n))["size"],
                   mcp.ask("tools/call", {"name": "read_file", "arguments": {"path": f"/tmp/toolbox-many-{os.getpid()}-{n}"}})["result"]["content"][0]["text"]]
        os.unlink(f"/tmp/toolbox-many-{os.getpid()}-{n}")
        assert mcp.request("DELETE")[0] == 204
        mcp.close()
        return results == [len(str(n)), str(n)]

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        assert all(pool.map(work, range(80)))


def test_clients_that_send_nothing_keep_nobody_out(client, workdir):
    """More connections than the server may have descriptors for."""
    with serve_http(client, cwd=workdir, preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NOFILE, (64, 64))) as server:
        idle = [socket.create_connection(server.address(), HANG) for _ in range(150)]
        idle[-1].sendall(b"POST /mcp HTTP/1.1\r\nHost: local")
        mcp = HttpClient(server)
        assert mcp.ask("tools/list")["result"]["tools"]
        mcp.close()
        for one in idle:
            one.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_what_clients_have_made_ends_with_the_server(client, workdir, how):
    with serve_http(client, cwd=workdir, status=0 if how != signal.SIGKILL else -9) as server:
        mcps = [HttpClient(server) for _ in range(3)]
        for mcp in mcps:
            mcp.call("shell_run", command="true")
            mcp.call("job_start", argv=["sleep", "1000"])
        assert len(sessions(client)) == 3
        mcps[0].send("POST", body=json.dumps(mcps[0].message("tools/call", {"name": "shell_run", "arguments": {"command": f"touch {workdir}/on; sleep 1000"}})), Accept=BOTH)
        wait_until(lambda: (workdir / "on").exists(), "it runs")
        server.process.send_signal(how)
        server.process.wait(HANG)
        for mcp in mcps:
            mcp.close()
    wait_until(lambda: not sessions(client) and not [job for job in client.rpc("exec_remote_list") if job["state"] == "running"], "all has ended")
