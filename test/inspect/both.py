"""The package's own tools and toolbox, side by side: each with a server and a folder of its own."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
from http.client import HTTPConnection
from pathlib import Path

PRIVATE = ("TOOLBOX_DIR", "INSPECT_SANDBOX_TOOLS_DIR", "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES")


class Side:
    """One of the two. Requests go through `exec`, as a host's do, but those that are answered by the server anyway go to
    its socket: the package's `exec` takes half a second of processor time for each."""

    def __init__(self, program, folder):
        self.program, self.folder = str(program), Path(folder)
        self.work = self.folder / "work"
        self.work.mkdir()
        kept = {name: value for name, value in os.environ.items() if name not in PRIVATE}
        self.env = {**kept, "INSPECT_SANDBOX_TOOLS_DIR": str(self.folder / "server"), "HOME": str(self.work),
                    "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": str(10 << 20)}  # as the host sets it
        self.known = {"T": str(self.work)}

    def cli(self, *argv, **kwargs):
        return subprocess.run([self.program, *argv], env=self.env, cwd=self.work, capture_output=True, timeout=120, **kwargs)

    def exec(self, text):
        """The answer, None where there is none, and the exit status."""
        done = self.cli("exec", input=text if isinstance(text, bytes) else text.encode())
        return (json.loads(done.stdout) if done.stdout.strip() else None), done.returncode

    def post(self, text):
        connection = HTTPConnection("localhost", timeout=120)
        connection.sock = socket.socket(socket.AF_UNIX)
        [path] = [path for path in (self.folder / "server").iterdir() if path.is_socket() and path.name.startswith(("server", "sandbox-tools"))]
        connection.sock.connect(str(path))
        with contextlib.closing(connection):
            connection.request("POST", "/", text.encode(), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read() or "null")

    def call(self, method, params):
        """One request; what it opens is known to the next ones: $S a session, $P a job, $M an MCP server."""
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": self.filled(params)})
        answer = self.exec(text)[0] if method in ("version", "text_editor") else self.post(text)
        result = (answer or {}).get("result")
        if method == "mcp_launch_server" and isinstance(result, int):
            self.known["M"] = result
        elif method == "exec_remote_start":
            self.known["P"] = result["pid"] if isinstance(result, dict) else 0
        elif isinstance(result, dict):
            self.known["S"] = result.get("session_name", self.known.get("S"))
        return answer

    def filled(self, value):
        if isinstance(value, dict):
            return {name: self.filled(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.filled(member) for member in value]
        if isinstance(value, str) and re.fullmatch(r"\$[SPM]", value):
            return self.known.get(value[1:], value)
        return value.replace("$T", str(self.work)) if isinstance(value, str) else value

    def files(self):
        found = {}
        for path in sorted(self.work.rglob("*")):
            if path.is_file():
                found[str(path.relative_to(self.work))] = path.read_bytes()
        return found


def unpack_reference(artefact, folder):
    """The program of the package's own tools, from the artefact that it injects."""
    with tarfile.open(artefact) as tar:
        tar.extractall(folder)
    return Path(folder, "inspect-sandbox-tools")


@contextlib.contextmanager
def sides(artefact, toolbox):
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(toolbox, f"{folder}/copy")  # a rebuilt one would not know the server
        pair = []
        for name, program in (("reference", unpack_reference(artefact, f"{folder}/unpacked")), ("toolbox", copy)):
            os.mkdir(f"{folder}/{name}")
            pair.append(Side(program, f"{folder}/{name}"))
        try:
            for side in pair:
                side.cli("start-server", check=True)
            yield pair
        finally:
            for side in pair:
                side.cli("stop-server")
