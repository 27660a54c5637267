"""`toolbox mcp serve --http`, and clients of it that know no SDK."""
import contextlib
import http.client
import json
import socket
import subprocess

from harness.machine import HANG

BOTH = "application/json, text/event-stream"


class Server:
    def __init__(self, process, line):
        self.process, self.where = process, line.split()[-1]
        self.url = self.where if self.where.startswith("http") else None

    def connect(self):
        if self.url:
            return http.client.HTTPConnection(self.url.split("/")[2], timeout=HANG)
        connection = http.client.HTTPConnection("localhost", timeout=HANG)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(HANG)
        connection.sock.connect(self.where.removeprefix("unix:"))
        return connection

    def address(self):
        host, port = self.url.split("/")[2].rsplit(":", 1)
        return host, int(port)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait(HANG)
        for pipe in self.process.stdin, self.process.stdout, self.process.stderr:
            if pipe:
                pipe.close()
        return status


@contextlib.contextmanager
def serve_http(client, *options, where="0", status=0, **how):
    """Serves at a port that is free, until the end of the block."""
    process = client.popen("mcp", "serve", "--http", where, *options, stdout=subprocess.PIPE, **how)
    server = Server(process, process.stdout.readline().decode())
    try:
        yield server
    finally:
        assert server.end() == status


def events_in(body):
    """Of an event stream: (id, message or None)."""
    events = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if "id" in fields:
            events.append((fields["id"], json.loads(fields["data"]) if fields.get("data", "").strip() else None))
    return events


class HttpClient:
    """A client with a connection of its own; with a revision it begins a session."""

    def __init__(self, server, revision="2025-11-25", **fields):
        self.server, self.connection, self.fields, self.session, self.last_id = server, server.connect(), fields, None, 0
        if revision:
            answer = self.ask("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
            assert answer["result"]["protocolVersion"] == revision, answer
            self.session = self.head["mcp-session-id"]
            assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202

    def send(self, method, path="/mcp", body=None, **fields):
        head = {"Accept": BOTH, "Content_Type": "application/json", "Mcp_Session_Id": self.session, **self.fields, **fields}
        self.connection.request(method, path, body, {key.replace("_", "-"): value for key, value in head.items() if value is not None})

    def receive(self):
        response = self.connection.getresponse()
        self.head = {key.lower(): value for key, value in response.getheaders()}
        return response.status, response.read()

    def request(self, method, path="/mcp", body=None, **fields):
        self.send(method, path, body, **fields)
        return self.receive()

    def post(self, message, **fields):
        return self.request("POST", body=message if isinstance(message, (bytes, str)) else json.dumps(message), **fields)

    def message(self, method, params=None):
        self.last_id += 1
        return {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params or {}}

    def answer(self, body):
        if self.head["content-type"] == "application/json":
            return json.loads(body)
        self.events = events_in(body)
        [answer] = [message for _, message in self.events if message and message.get("id") == self.last_id]
        return answer

    def ask(self, method, params=None, **fields):
        status, body = self.post(self.message(method, params), **fields)
        assert status == 200, (status, body)
        return self.answer(body)

    def call(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result["isError"], result
        return result["structuredContent"]

    def close(self):
        self.connection.close()
