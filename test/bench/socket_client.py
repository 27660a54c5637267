"""JSON-RPC over HTTP to the server's socket, as any client speaks it."""
import http.client
import json
import socket


class Connection(http.client.HTTPConnection):
    """HTTP to a Unix socket, kept open between calls."""

    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def rpc(self, method, **params):
        self.request("POST", "/", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        answer = json.loads(self.getresponse().read())
        if "result" not in answer:
            raise RuntimeError(f"{method} {params}: {answer}")
        return answer["result"]
