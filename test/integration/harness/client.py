"""One client of the tool, as a host uses it: one request on the standard input of `toolbox exec`, one line of answer."""
import base64
import json
import os
import stat
from pathlib import Path

from harness.machine import HANG

CHUNK = "__inspect_json_rpc_response_chunk__"
LIMIT = "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES"
DEFAULT_LIMIT = 65536

# Error codes (docs/protocol.md).
PARSE, INVALID_REQUEST, NO_METHOD, PARAMERR = -32700, -32600, -32601, -32602
TOOLERR, INTERNAL, NO_CHUNK = -32099, -32098, -32000


class RpcError(Exception):
    """The answer was a JSON-RPC error."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]


class Client:
    """Talks to the server of one server directory.

    machine  where the binary runs
    binary   its path there
    dir      the server directory there (None: the one that the tool itself finds)
    user     uid that all calls are made as (None: the machine's default)
    env      more variables for all calls
    """

    def __init__(self, machine, binary, dir=None, user=None, env=None):
        self.machine, self.binary, self.user = machine, str(binary), user
        self.dir = Path(dir) if dir else None
        self.env = {**({"TOOLBOX_DIR": str(dir)} if dir else {}), **(env or {})}
        self.session = None

    # ---- the command line ----

    def _how(self, how):
        """Keyword arguments of Machine.popen, with this client's own where the caller gives none."""
        return {**how, "env": {**self.env, **how.get("env", {})}, "user": how.get("user", self.user)}

    def popen(self, *args, **how):
        """Starts `toolbox args...` and returns the Popen, for calls that are cut short or run side by side."""
        return self.machine.popen([self.binary, *args], **self._how(how))

    def cli(self, *args, **how):
        """Runs `toolbox args...` to its end: CompletedProcess, output as bytes. stdin=, timeout=, env=, user=, cwd=."""
        return self.machine.run([self.binary, *args], **self._how(how))

    def tampered(self, rule, *words, out="/dev/null"):
        """The words that run `toolbox words…` with a rule of strace's, which begins with the name of the call that is to fail, be
        late or kill it; `out` gets a line for each such call."""
        call = rule.split(":")[0]
        return ["strace", "-f", "-qq", "-o", out, "-e", f"trace={call}", "-e", f"inject={rule}", self.binary, *words]

    def probe(self, **how):
        return one_object(self.cli("probe", "--json", **how))

    def stop(self, **how):
        """stop-server has to succeed, whatever the state."""
        done = self.cli("stop-server", **how)
        assert done.returncode == 0, f"stop-server: exit {done.returncode}: {done.stderr.decode(errors='replace')}"

    # ---- JSON-RPC ----

    def line(self, request, **how):
        """Sends a request (bytes, text, or what becomes JSON) and returns the one line of answer, without its newline."""
        if not isinstance(request, (bytes, str)):
            request = json.dumps(request)
        done = self.cli("exec", stdin=request if isinstance(request, bytes) else request.encode(), **how)
        assert done.returncode == 0, f"exec: exit {done.returncode}: {done.stderr.decode(errors='replace')}"
        assert done.stdout.count(b"\n") == 1 and done.stdout.endswith(b"\n"), f"not one line: {done.stdout[:2000]!r}"
        return done.stdout[:-1]

    def answer(self, method, params=None, id=1, **how):
        """The whole answer object, as it came: a long one is the envelope of its first piece."""
        request = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            request["params"] = params
        answer = json.loads(self.line(request, **how))
        assert answer["jsonrpc"] == "2.0" and answer["id"] == id, answer
        return answer

    def rpc(self, method, params=None, **how):
        """The result. A long answer is put together; an error answer raises RpcError."""
        answer = self.answer(method, params, **how)
        if CHUNK in answer:
            answer = json.loads(self._whole(answer[CHUNK], how))
        return _result(answer)

    def _whole(self, piece, how):
        """Fetches all pieces of a long answer, checks that they fit together, and releases it."""
        handle, total, data = piece["handle"], piece["total_size"], b""
        while True:
            assert piece["version"] == 1 and piece["handle"] == handle and piece["total_size"] == total, piece
            assert piece["offset"] == len(data), piece
            data += base64.b64decode(piece["chunk"], validate=True)
            assert piece["next_offset"] == len(data) and piece["done"] == (len(data) == total), piece
            if piece["done"]:
                break
            answer = self.answer(CHUNK, {"handle": handle, "offset": len(data)}, **how)
            piece = answer[CHUNK] if CHUNK in answer else _result(answer)
        self.answer(CHUNK, {"handle": handle, "release": True}, **how)
        return data

    # ---- shorthand of the test cases ----

    def new(self, **params):
        """A new session, which bs() and run() use from now on. Returns its name."""
        self.session = self.rpc("bash_session_new_session", params)["session_name"]
        return self.session

    def bs(self, text=None, wait=5, idle=0.5, session=None, **more):
        """Types text (None: only reads) and returns the output."""
        params = {"session_name": session or self.session, "wait_for_output": wait, "idle_timeout": idle, **more}
        if text is not None:
            params["input"] = text
        return self.rpc("bash_session", params, timeout=HANG + wait)

    def run(self, command, session=None, **more):
        """bash_session_run: {state, exit_code, output, cwd, …}"""
        params = {"session_name": session or self.session, "command": command, **more}
        return self.rpc("bash_session_run", params, timeout=HANG + more.get("timeout", 0))

    def restart(self, session=None):
        return self.rpc("bash_session", {"session_name": session or self.session, "restart": True})

    def ed(self, command, path, **params):
        return self.rpc("text_editor", {"command": command, "path": str(path), **params})

    # ---- the end ----

    def close(self):
        """Stops the server; it must leave no socket behind. (What its directory keeps is the editor's history.)"""
        self.stop()
        sockets = [str(path) for path in _walk(self.dir) if stat.S_ISSOCK(path.lstat().st_mode)] if self.dir else []
        assert not sockets, f"stop-server left sockets: {sockets}"


def _result(answer):
    if "error" in answer:
        raise RpcError(answer["error"])
    return answer["result"]


def one_object(done):
    """Output that has to be exactly one JSON object on one line, and nothing on standard error."""
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode(errors='replace')}"
    assert done.stderr == b"", done.stderr
    assert done.stdout.count(b"\n") == 1 and done.stdout.endswith(b"\n"), done.stdout
    found = json.loads(done.stdout)
    assert isinstance(found, dict), found
    return found


def _walk(folder):
    for base, _, names in os.walk(folder):
        yield from (Path(base, name) for name in names)
