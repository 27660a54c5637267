"""A model provider on the loopback: says what it is told to, and keeps what it was asked."""
import contextlib
import http.server
import json
import ssl
import threading

from harness.bridge import completion, message, response


def usual(body, path):
    if path.endswith("/messages"):
        return message({"type": "text", "text": "hello"})
    if path.endswith("/responses"):
        return response()
    return {"candidates": [], "usageMetadata": {"totalTokenCount": 9}} if ":" in path else completion("hello")


class Provider:
    """`answer(body, path)`: an object; a list of texts, which are the pieces of a stream; or (status, headers, object)."""

    def __init__(self, certificate=None):
        self.answer, self.asked = usual, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(data) if data else None
                outer.asked.append((self.command, self.path, dict((k.lower(), v) for k, v in self.headers.items()), body))
                with contextlib.suppress(OSError):
                    self.give(outer.answer(body, self.path.split("?")[0]))

            do_POST = do_GET

            def give(self, answer):
                status, headers, answer = answer if isinstance(answer, tuple) else (200, {}, answer)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if isinstance(answer, (dict, bytes)):
                    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                    return
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in answer:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece.encode()), piece.encode()))
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"{'https' if certificate else 'http'}://localhost:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
