"""The host's side of the model proxy: answers request files as inspect_ai does, from inside the test."""
import contextlib
import http.client
import json
import socket
import subprocess
import threading
from pathlib import Path

from harness.machine import HANG
from harness.processes import wait_until


class Bridge:
    """A running proxy with its service directory. `answers` maps a method to what gives its result from the params."""

    def __init__(self, toolbox, directory, env=None, make_dirs=True):
        self.directory = Path(directory)
        self.requests, self.responses = self.directory / "requests", self.directory / "responses"
        self.answers, self.seen = {}, []
        self.paused = threading.Event()  # while it is set nothing is answered
        if make_dirs:
            self.make_dirs()
        self.process = subprocess.Popen(
            [toolbox, "model_proxy", "--port", "0", "--directory", str(directory)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def make_dirs(self):
        self.requests.mkdir(parents=True)
        self.responses.mkdir()

    def _serve(self):
        while not self._stop.wait(0.005):
            if self.paused.is_set():
                continue
            for path in self.requests.glob("*.json"):
                with contextlib.suppress(FileNotFoundError):
                    self._answer(path, json.loads(path.read_text()))

    def _answer(self, path, request):
        assert request["id"] == path.stem
        self.seen.append(request)
        try:
            answer = {"id": request["id"], "result": self.answers[request["method"]](request["params"]), "error": None}
        except RuntimeError as error:
            answer = {"id": request["id"], "result": None, "error": str(error)}
        with contextlib.suppress(FileNotFoundError):  # the proxy is about to go, with its directory
            (self.responses / path.name).write_text(json.dumps(answer))
        path.unlink(missing_ok=True)

    def files(self):
        return sorted(path.name for folder in (self.requests, self.responses) for path in folder.glob("*"))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), HANG)
        connection.settimeout(HANG)
        return connection

    def ask(self, method, path, body=None, headers=()):
        """Status, head and body of the answer; a body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def post(self, path, body):
        status, _, text = self.ask("POST", path, body)
        return status, json.loads(text)

    def stream(self, path, body):
        """The events of a stream: (name, data); data is decoded JSON, or "[DONE]"."""
        status, headers, text = self.ask("POST", path, body)
        assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), (status, text)
        return events(text)

    def end(self):
        """Its exit status and what it said on standard error, however it ended."""
        self._stop.set()
        self._thread.join(HANG)
        if self.process.poll() is None:
            self.process.terminate()
        _, said = self.process.communicate(timeout=HANG)
        return self.process.returncode, said

    def ended(self):
        wait_until(lambda: self.process.poll() is not None, "the proxy to end")
        return self.end()


def events(text):
    found = []
    for event in text.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in event.split("\n"))
        data = lines["data"]
        found.append((lines.get("event"), data if data == "[DONE]" else json.loads(data)))
    return found
