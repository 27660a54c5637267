"""JSON-RPC over HTTP to the server's socket, with as little of a client's own work as may be."""
import json
import socket


class Connection:
    """HTTP to a Unix socket, kept open between calls."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(path)

    def rpc(self, method, **params):
        answer = json.loads(self.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()))
        if "result" not in answer:
            raise RuntimeError(f"{method} {params}: {answer}")
        return answer["result"]

    def post(self, body):
        """The body of the answer to a request's."""
        self.sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        return self._body()

    def _body(self):
        data = self.sock.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        while data and not _:
            data = self.sock.recv(65536)
            head, _, body = (head + data).partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        parts, left = [body], length - len(body)
        while left > 0:
            parts.append(self.sock.recv(min(left, 1 << 20)))
            if not parts[-1]:
                raise EOFError("the server has closed the connection within an answer")
            left -= len(parts[-1])
        return b"".join(parts)

    def close(self):
        self.sock.close()
