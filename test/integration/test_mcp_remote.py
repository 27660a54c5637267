"""`toolbox mcp remote URL`, and mcp_launch_server with a url: servers that are reached over HTTP, in all of its ways."""
import contextlib
import http.server
import json
import os
import queue
import subprocess
import threading

import pytest

from harness.client import PARAMERR, RpcError
from harness.machine import HANG
from harness.mcp_http import serve_http
from harness.processes import wait_until

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
              "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id, tool, **arguments):
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Pipe:
    """The program, line by line."""

    def __init__(self, client, *words, **how):
        self.process = client.popen("mcp", "remote", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how)

    def say(self, *messages):
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, id):
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == id and "method" not in message:
                return message

    def ask(self, message):
        self.say(message)
        return self.hear(message["id"])

    def end(self, status=0):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        self.process.stdout.close()
        assert self.process.wait(HANG) == status
        return rest


@contextlib.contextmanager
def serving(handle):
    """handle(handler, body or None): a server of HTTP/1.1, where it listens."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            handle(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def do_GET(self):
            handle(self, None)

        do_DELETE = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def give(handler, status, body=b"", **fields):
    handler.send_response(status)
    for name, value in {"Content_Length": str(len(body)), "Connection": "close", **fields}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def test_a_session_of_our_own_server(client, workdir):
    with serve_http(client, "--token-env", "T", env={"T": "secret"}, cwd=workdir) as server:
        pipe = Pipe(client, server.url, "Authorization: Bearer secret")
        assert pipe.ask(INITIALIZE)["result"]["protocolVersion"] == "2025-06-18"
        pipe.say(INITIALIZED)
        assert pipe.ask(call(1, "shell_run", command="x=1; pwd"))["result"]["structuredContent"]["output"] == f"{workdir}\n"
        pipe.say(call(2, "shell_run", session="BashSession", command="sleep 0.5; echo $x"), call(3, "probe"))
        assert {pipe.hear(3)["id"], pipe.hear(2)["result"]["structuredContent"]["output"]} == {3, "1\n"}, "side by side"
        assert pipe.end() == b""
        refused = Pipe(client, server.url, env={"TOOLBOX_MCP_HEADERS": "Authorization: Bearer wrong"})
        assert "status 401" in refused.ask(INITIALIZE)["error"]["message"]
        refused.end(1)


def test_the_bridge(client, workdir):
    with serve_http(client, "--token-env", "T", env={"T": "secret"}, cwd=workdir) as server:
        session = client.rpc("mcp_launch_server", {"server_params": {"url": server.url, "headers": {"Authorization": "Bearer secret"}}})
        ask = lambda message: client.rpc("mcp_send_request", {"session_id": session, "request": message}, timeout=HANG)
        assert ask(INITIALIZE)["result"]["serverInfo"]["name"] == "toolbox"
        client.rpc("mcp_send_notification", {"session_id": session, "notification": INITIALIZED})
        assert ask(call(1, "shell_run", command="pwd"))["result"]["structuredContent"]["output"] == f"{workdir}\n"
        listed = json.dumps(client.rpc("mcp_list_servers"))
        assert server.url in listed and "secret" not in listed
        client.rpc("mcp_kill_server", {"session_id": session})
    for bad in ({}, {"url": "http://x", "command": "y"}, {"command": "y", "headers": {"a": "b"}}):
        with pytest.raises(RpcError) as failed:
            client.rpc("mcp_launch_server", {"server_params": bad})
        assert failed.value.code == PARAMERR, bad
    done = client.cli("mcp", "remote", "ftp://x")
    assert done.returncode == 1 and b"http:// and https:// addresses can" in done.stderr, done


def test_a_server_of_2024(client):
    streams = []

    def handle(handler, body):
        if handler.command == "GET":
            lines = queue.Queue()
            streams.append(lines)
            handler.send_response(200)
            handler.send_header("Content-Type", "text/event-stream")
            handler.end_headers()
            handler.wfile.write(b"event: endpoint\r\ndata: /messages?session=1\r\n\r\n")
            while (line := lines.get()) is not None:
                handler.wfile.write(b"event: message\ndata: " + line + b"\n\n")
        elif handler.path != "/messages?session=1":
            give(handler, 405)
        else:
            give(handler, 202)
            if "id" in body:
                streams[-1].put(json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"echo": body["method"]}}).encode())

    with serving(handle) as url:
        pipe = Pipe(client, url)
        assert pipe.ask(INITIALIZE)["result"] == {"echo": "initialize"}
        pipe.say(INITIALIZED)
        assert pipe.ask({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})["result"] == {"echo": "tools/list"}
        pipe.end()
        for lines in streams:
            lines.put(None)


def test_what_a_server_says_by_itself(client):
    asked = []

    def handle(handler, body):
        if handler.command == "GET":
            if asked:
                give(handler, 405)
                return
            asked.append(handler.headers)
            message = json.dumps({"jsonrpc": "2.0", "method": "notifications/x"}).encode()
            give(handler, 200, b"id: 1\ndata: " + message + b"\n\n", Content_Type="text/event-stream")
        elif handler.command == "DELETE":
            give(handler, 204)
        elif "id" in body:
            text = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": {"protocolVersion": "2025-03-26"}}).encode()
            give(handler, 200, text, Content_Type="application/json", Mcp_Session_Id="s1")
        else:
            give(handler, 202)

    with serving(handle) as url:
        pipe = Pipe(client, url)
        pipe.say(INITIALIZE, INITIALIZED)
        heard = [json.loads(pipe.process.stdout.readline()) for _ in range(2)]
        assert heard[0]["id"] == 0 and heard[1]["method"] == "notifications/x"
        assert asked[0]["Mcp-Session-Id"] == "s1" and asked[0]["MCP-Protocol-Version"] == "2025-03-26"
        pipe.end()


PROGRESS = b'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n\n'


@contextlib.contextmanager
def breaking(first, rest):
    """A server with a session whose answers are streams that end too soon; and who comes for the rest, from what on."""
    came = []

    def handle(handler, body):
        if handler.command == "GET":
            came.append(handler.headers["Last-Event-ID"])
            if came[-1]:
                give(handler, 200, rest, Content_Type="text/event-stream")
            else:
                handler.send_response(200)
                handler.send_header("Content-Type", "text/event-stream")
                handler.end_headers()
                handler.rfile.read(1) # until it goes
        elif handler.command == "POST" and body.get("id") == 0:
            text = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25"}}).encode()
            give(handler, 200, text, Content_Type="application/json", Mcp_Session_Id="s1")
        elif handler.command == "POST" and "id" in body:
            give(handler, 200, first, Content_Type="text/event-stream")
        else:
            give(handler, 202)

    with serving(handle) as url:
        yield url, came


def test_a_stream_that_ends_too_soon(client):
    with breaking(b"id: 7\n" + PROGRESS, b'id: 8\ndata: {"jsonrpc":"2.0","id":1,"result":"rest"}\n\n') as (url, came):
        pipe = Pipe(client, url)
        pipe.ask(INITIALIZE)
        assert pipe.ask(call(1, "x"))["result"] == "rest" and came == ["7"]
        pipe.end()
    with breaking(PROGRESS, b"") as (url, came):
        pipe = Pipe(client, url)
        pipe.ask(INITIALIZE)
        assert "gave no answer" in pipe.ask(call(1, "x"))["error"]["message"] and not came, "progress is none"
        pipe.end()


def test_with_the_first_process_all_end(client):
    with breaking(PROGRESS, b"") as (url, came):
        pipe = Pipe(client, url)
        pipe.ask(INITIALIZE)
        pipe.say(INITIALIZED)
        wait_until(lambda: came == [None], "a process listens")
        os.set_blocking(pipe.process.stdout.fileno(), False)
        pipe.process.kill()
        pipe.process.wait(HANG)
        wait_until(lambda: pipe.process.stdout.read() == b"", "nobody holds its output any more")
        pipe.process.stdin.close(), pipe.process.stdout.close()


def test_what_goes_wrong(client):
    pipe = Pipe(client, "http://127.0.0.1:1/mcp")
    assert "127.0.0.1:1" in pipe.ask(INITIALIZE)["error"]["message"]
    pipe.end(1)
    with serving(lambda handler, body: give(handler, 500, b"broken")) as url:
        pipe = Pipe(client, url)
        assert "status 500: broken" in pipe.ask(INITIALIZE)["error"]["message"]
        assert "status 500" in pipe.ask(call(1, "x"))["error"]["message"]
        pipe.end(1)
    # its own status says so, when that was all
    with serving(lambda handler, body: give(handler, 401, b"no")) as url:
        done = client.cli("mcp", "remote", url, stdin=json.dumps(INITIALIZE).encode() + b"\n")
        assert done.returncode == 1 and b"has answered nothing" in done.stderr and b"status 401" in done.stdout
        assert client.cli("mcp", "remote", url, stdin=b"").returncode == 0
    for bad in (["ftp://x"], ["http://x/", "no header"], []):
        assert client.cli("mcp", "remote", *bad).returncode in (1, 2), bad
