"""The server and its keepers from outside: their processes, their sockets, HTTP as any client speaks it."""

import http.client
import json
import os
import re
import signal
import socket
from pathlib import Path

from harness import processes
from harness.machine import HANG

SERVER, SESSION = "toolbox server", "toolbox BashSession"


def titled(title):
    """The processes below the suite whose command line begins with that title. A test has only its own."""
    found = []
    for process in processes.descendants():
        try:
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if line.startswith(title.encode()):
            found.append(process)
    return found


def gone(*titles):
    """Waits until none is left of what was told to end: who has told may have his answer a moment before."""
    processes.wait_until(lambda: not any(map(titled, titles)), f"{' and '.join(titles)} to end")


def only_server():
    """Pid of the one server that there has to be. (A second one may be on its way out.)"""
    found = []

    def one():
        found[:] = titled(SERVER)
        return len(found) == 1

    processes.wait_until(one, "there to be one server")
    return found[0].pid


def pid_in(answer):
    """The pid that `remote_version` names."""
    return int(re.search(r"pid (\d+)", answer)[1])


def kill_servers():
    """What an out-of-memory killer may do at any moment. Returns whether there was one."""
    found = titled(SERVER)
    for process in found:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return bool(found)


def status(pid):
    """/proc/PID/status as {name: text}."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def socket_of(folder, owner="server"):
    """Path of a socket file; there has to be one."""
    found = list(Path(folder).glob(f"{owner}.*"))
    assert len(found) == 1, f"sockets of {owner}: {found}"
    return found[0]


def dial(path, timeout=HANG):
    """A connected socket, whatever the length of the path."""
    path = Path(path)
    folder = os.open(path.parent, os.O_PATH)
    try:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        sock.close()
        raise
    finally:
        os.close(folder)
    return sock


def request(method, params=None, id=1):
    """The text of a request; id None: of a notification."""
    message = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        message["id"] = id
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def http_request(body, *headers):
    """The bytes of a POST."""
    lines = ["POST / HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Door(http.client.HTTPConnection):
    """A keep-alive connection to a socket of the tool, to be used with `with`."""

    def __init__(self, path, timeout=HANG):
        super().__init__("x", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = dial(self.path, self.timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def post(self, body):
        """(HTTP status, the body of the answer)"""
        self.request("POST", "/", body, {"Content-Type": "application/json"})
        answer = self.getresponse()
        return answer.status, answer.read()

    def ask(self, method, params=None, id=1):
        """The whole answer object."""
        code, body = self.post(request(method, params, id))
        assert code == 200, (code, body)
        return json.loads(body)

    def rpc(self, method, params=None):
        answer = self.ask(method, params)
        assert "error" not in answer, answer
        return answer["result"]


def curl(client, path, body, *options, **how):
    """What a user types: CompletedProcess."""
    argv = [
        "curl",
        "-sS",
        "--max-time",
        str(int(HANG)),
        "--unix-socket",
        path,
        "--data-binary",
        "@-",
        *options,
        "http://x/",
    ]
    return client.machine.run(argv, stdin=body, **how)


def unread(client, name, n):
    """Waits until a session has so many bytes of output that nobody has read."""

    def there():
        found = [entry for entry in client.rpc("bash_session_list") if entry["session_name"] == name]
        return found[0]["unread_bytes"] >= n

    processes.wait_until(there, f"{n} bytes of output")


def quiet(client, text):
    """A session that has printed exactly this text, which nobody has read yet, and prints no more."""
    base = client.dir.parent
    (base / "text").write_bytes(text if isinstance(text, bytes) else text.encode())
    (base / "go").unlink(missing_ok=True)
    name = client.new()
    client.bs("PS1= PROMPT_COMMAND=\n")
    client.bs(f"until [ -e {base}/go ]; do sleep 0.02; done; cat {base}/text; sleep 6000\n", wait=0, idle=0)
    (base / "go").touch()
    unread(client, name, (base / "text").stat().st_size)
    return name
