"""One MCP server on stdio behind HTTP, for the conformance suite, which speaks nothing else.

usage: http_bridge.py COMMAND...    prints the address and serves until its stdin ends

A POST is one message. What the server says until it has answered goes back as one response: JSON where that is the answer
alone, otherwise a stream of events. Only what stdio and HTTP have in common passes; of HTTP's own rules (sessions, headers)
there are none.
"""
import json
import queue
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """The process: its answers by id, and listeners for all else that it says."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock, self.open = threading.Lock(), {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.lock:
                if "method" not in message:
                    self.open.pop(json.dumps(message.get("id")), queue.Queue()).put(message)
                    continue
                for waiting in self.open.values():
                    waiting.put(message)

    def send(self, message):
        answers = queue.Queue()
        with self.lock:
            if "id" in message:
                self.open[json.dumps(message["id"])] = answers
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        return answers


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def _reply(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self._reply(405)

    do_DELETE = do_GET

    def do_POST(self):
        try:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        except ValueError:
            self._reply(400)
            return
        answers = self.server.mcp.send(message)
        if "id" not in message:
            self._reply(202)
            return
        said = [answers.get(timeout=60)]
        while "method" in said[-1] and message["method"] != "subscriptions/listen":
            said.append(answers.get(timeout=60))
        if len(said) == 1 and "method" not in said[0]:
            error = said[0].get("error", {}).get("code")
            self._reply(404 if error == -32601 else 400 if error in (-32602, -32022) else 200, json.dumps(said[0]).encode())
        else:
            events = "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in said)
            self._reply(200, events.encode(), "text/event-stream")


def main():
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.mcp = Server(sys.argv[1:])
    threading.Thread(target=http.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{http.server_port}/mcp", flush=True)
    sys.stdin.read()
    http.mcp.process.stdin.close()
    sys.exit(http.mcp.process.wait())


main()
