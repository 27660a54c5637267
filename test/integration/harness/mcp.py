"""MCP servers of a client, and fake ones to launch."""
import json
import subprocess
import sys

from harness.machine import HANG
from harness.server import request

KEEPER = "toolbox Mcp"

# What a fake server begins with. take() is the next message (None at the end of input), say() writes a line at once, a
# message or any text or bytes; answer() answers a request.
PRELUDE = """
import json, os, signal, sys, time
def take():
    global line
    line = sys.stdin.buffer.readline()
    return json.loads(line) if line else None
def say(*lines):
    for one in lines:
        if not isinstance(one, (str, bytes)):
            one = json.dumps(one)
        if isinstance(one, str):
            one = one.encode()
        sys.stdout.buffer.write(one + b"\\n")
    sys.stdout.buffer.flush()
def answer(message, result):
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})
"""

# Answers each request with the line that it came in.
ECHO = """
while message := take():
    if "id" in message:
        answer(message, line.decode())
"""


class Server:
    """One MCP server, launched through a client. Words of a command line, or the text of a fake server."""

    def __init__(self, client, *words, fake=None, **params):
        if fake is not None:
            words = (sys.executable, "-c", PRELUDE + fake)
        self.client = client
        self.session = client.rpc("mcp_launch_server", {"server_params": server_params(words, params)}, timeout=HANG)

    def params(self, message, key="request"):
        return {"session_id": self.session, key: {"jsonrpc": "2.0", **message}}

    def ask(self, method="m", id=1, **more):
        """mcp_send_request: the whole response."""
        return self.client.rpc("mcp_send_request", self.params({"id": id, "method": method, **more}), timeout=HANG)

    def begin(self, method="m", id=1, **more):
        """The same in the background: a Popen, whose output end() reads."""
        process = self.client.popen("exec", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(request("mcp_send_request", self.params({"id": id, "method": method, **more})))
        process.stdin.close()
        return process

    def notify(self, method="n", **more):
        return self.client.rpc("mcp_send_notification", self.params({"method": method, **more}, "notification"))

    def notes(self, **params):
        return self.client.rpc("mcp_read_notifications", {"session_id": self.session, **params})

    def kill(self):
        return self.client.rpc("mcp_kill_server", {"session_id": self.session}, timeout=HANG)

    def status(self):
        found = [one for one in self.client.rpc("mcp_list_servers") if one["session_id"] == self.session]
        return found[0] if found else None


def server_params(words, params):
    command, *args = words
    return {"command": str(command), "args": [str(arg) for arg in args], **params}


def end(process):
    """The answer object of a call that was begun."""
    with process:
        return json.loads(process.stdout.read())
