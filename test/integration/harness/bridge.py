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


TEXT = "".join(chr(c) for c in range(1, 128)) + "é漢\U0001F600\u2028" * 60
CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
RESPONSES = {"model": "m", "input": "x"}
MESSAGES = {"model": "m", "max_tokens": 9, "messages": []}
GOOGLE = {"contents": []}
PATHS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES,
         "/v1beta/models/g:generateContent": GOOGLE}


# Items of a response whose calls somebody else carries out, as hosts give them: what may be left out is, or is null.
CALLED_ITEMS = [
    {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "q"}},
    {"type": "file_search_call", "id": "w", "queries": ["q"], "results": None},
    {"type": "computer_call", "id": "c", "call_id": "k", "action": {"type": "screenshot"}, "pending_safety_checks": []},
    {"type": "image_generation_call", "id": "g", "result": "AAAA"},
    {"type": "code_interpreter_call", "id": "n", "code": "1", "container_id": "c", "outputs": None},
    {"type": "local_shell_call", "id": "s", "call_id": "k", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    {"type": "mcp_call", "id": "m", "name": "n", "server_label": "l", "arguments": "{}", "output": "o", "error": None},
    {"type": "mcp_list_tools", "id": "l", "server_label": "l", "error": None,
     "tools": [{"name": "t", "input_schema": {"type": "object"}, "annotations": None, "description": None}]},
    {"type": "shell_call", "id": "h", "call_id": "k", "action": {"commands": ["ls"], "max_output_length": None, "timeout_ms": None}},
    {"type": "shell_call_output", "id": "h", "call_id": "k", "max_output_length": None,
     "output": [{"stdout": "o", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
    {"type": "apply_patch_call", "id": "p", "call_id": "k", "operation": {"type": "delete_file", "path": "f"}},
    {"type": "apply_patch_call_output", "id": "p", "call_id": "k", "status": "failed", "output": None},
    {"type": "tool_search_call", "id": "t", "call_id": None, "execution": "server", "arguments": {}},
    {"type": "compaction", "id": "x", "encrypted_content": "e"},
]


def completion(text=TEXT, **message):
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": {"total_tokens": 3}, "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}]}


def response(*output, **more):
    return {"id": "r", "object": "response", "status": "completed", "output": list(output), "usage": {"total_tokens": 3}, **more}


def message(*content):
    return {"id": "a", "type": "message", "role": "assistant", "model": "m", "content": list(content), "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 7, "service_tier": "standard"}}


def usual_answers():
    return {
        "generate_completions": lambda params: completion(),
        "generate_responses": lambda params: response(),
        "generate_anthropic": lambda params: message({"type": "text", "text": TEXT}),
        "generate_google": lambda params: {"candidates": []},
        "list_tools": lambda params: [{"name": "t", "inputSchema": {"type": "object"}}],
        "call_tool": lambda params: "done",
    }


class Proxy:
    """A running proxy."""

    def __init__(self, toolbox, *options, env=None):
        self.process = subprocess.Popen(
            [str(word) for word in (toolbox, "model_proxy", "--port", "0", *options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), HANG)
        connection.settimeout(HANG)
        return connection

    def ask(self, method, path, body=None, headers=()):
        """Status, head and body of the answer; a body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json", **dict(headers)})
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
        if self.process.poll() is None:
            self.process.terminate()
        _, said = self.process.communicate(timeout=HANG)
        return self.process.returncode, said

    def ended(self):
        wait_until(lambda: self.process.poll() is not None, "the proxy to end")
        return self.end()


class Bridge(Proxy):
    """One with its service directory. `answers` maps a method to what gives its result from the params."""

    def __init__(self, toolbox, directory, env=None, make_dirs=True):
        self.directory = Path(directory)
        self.requests, self.responses = self.directory / "requests", self.directory / "responses"
        self.answers, self.seen = usual_answers(), []
        self.paused = threading.Event()  # while it is set nothing is answered
        if make_dirs:
            self.make_dirs()
        super().__init__(toolbox, "--directory", directory, env=env)
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

    def end(self):
        self._stop.set()
        self._thread.join(HANG)
        return super().end()


def events(text):
    found = []
    for event in text.decode().split("\n\n")[:-1]:
        if event.startswith(":"):  # nothing but a sign of life, where an answer is slow
            continue
        lines = dict(line.split(": ", 1) for line in event.split("\n"))
        data = lines["data"]
        found.append((lines.get("event"), data if data == "[DONE]" else json.loads(data)))
    return found


def send_post(connection, path, body, head=b""):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), head, len(data)) + data)


def read_all(connection):
    text = b""
    while piece := connection.recv(1 << 20):
        text += piece
    return text
