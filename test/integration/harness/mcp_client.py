"""A client of `toolbox mcp serve` that knows no SDK: lines in, lines out, and nothing is hidden."""
import json
import queue
import threading

from harness.machine import HANG

LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"


class McpError(Exception):
    """The answer was a JSON-RPC error."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class ToolError(Exception):
    """The tool says no (isError)."""


class McpClient:
    """Talks to one server process. `revision`: one of the above, or None: nothing is said of it."""

    def __init__(self, process, revision=LEGACY[-1]):
        self.process, self.revision, self.last_id = process, revision, 0
        self.lines, self.answers, self.notifications = queue.Queue(), {}, []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.info = self.initialize(revision) if revision in LEGACY else None

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    # ---- lines ----

    def send(self, message):
        """bytes go out as they are, everything else as a line of JSON."""
        if not isinstance(message, bytes):
            message = json.dumps(message).encode() + b"\n"
        self.process.stdin.write(message)
        self.process.stdin.flush()

    def receive(self, timeout=HANG):
        """The next message, whatever it is; None at the end."""
        line = self.lines.get(timeout=timeout)
        if line is None:
            return None
        assert line.endswith(b"\n"), line
        message = json.loads(line)
        assert isinstance(message, list) or message["jsonrpc"] == "2.0", message
        return message

    # ---- requests ----

    def params(self, params=None, token=None, **meta):
        params, meta = dict(params or {}), {META + key: value for key, value in meta.items()}
        if self.revision == STATELESS:
            meta = {META + "protocolVersion": STATELESS, META + "clientCapabilities": {},
                    META + "clientInfo": {"name": "test", "version": "1"}, **meta}
        if token is not None:
            meta["progressToken"] = token
        return {**params, "_meta": meta} if meta else params

    def start(self, method, params=None, id=None, **meta):
        """Sends a request and returns its id."""
        self.last_id += 1
        id = self.last_id if id is None else id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": self.params(params, **meta)})
        return id

    def answer(self, id, timeout=HANG):
        """The whole response to a request; what comes before it is kept."""
        while id not in self.answers:
            message = self.receive(timeout)
            assert message is not None, "the server has ended"
            if "method" in message:
                self.notifications.append(message)
            else:
                self.answers[message.get("id")] = message
        return self.answers.pop(id)

    def result(self, id, **how):
        answer = self.answer(id, **how)
        if "error" in answer:
            raise McpError(answer["error"])
        return answer["result"]

    def request(self, method, params=None, **meta):
        return self.result(self.start(method, params, **meta))

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def initialize(self, revision):
        info = self.request("initialize", {"protocolVersion": revision, "capabilities": {},
                                           "clientInfo": {"name": "test", "version": "1"}})
        self.notify("notifications/initialized")
        return info

    # ---- tools ----

    def start_call(self, tool, arguments=None, **meta):
        return self.start("tools/call", {"name": tool, "arguments": arguments or {}}, **meta)

    def call_result(self, id, **how):
        """What a tool gave: its structured result. ToolError where it says no."""
        result = self.result(id, **how)
        text = "".join(block["text"] for block in result["content"] if block["type"] == "text")
        if result.get("isError"):
            raise ToolError(text)
        self.content = result["content"]
        return result.get("structuredContent", text)

    def call(self, tool, **arguments):
        return self.call_result(self.start_call(tool, {key.rstrip("_"): value for key, value in arguments.items()}))

    def call_job(self, command):
        """Starts a job and returns its number, whatever the revision."""
        result = self.call("job_start", command=command)
        return (json.loads(result) if isinstance(result, str) else result)["job"]

    # ---- the end ----

    def close(self, timeout=HANG):
        """Ends the input; the server has to end of itself, with status 0. What it said until then."""
        self.process.stdin.close()
        assert self.process.wait(timeout) == 0
        self.reader.join(timeout)
        rest = []
        while (message := self.receive()) is not None:
            rest.append(message)
        self.process.stdout.close()
        complaints = self.process.stderr.read()
        self.process.stderr.close()
        assert complaints == b"", complaints
        return rest
