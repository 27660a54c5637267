"""The browser tool of inspect-tool-support, as it is, with the browser that is installed here."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from http.client import HTTPConnection

from harness import peers

# It knows no other browser than its driver's own. And its server clears every execute bit of what it starts makes, which
# a current Chromium doesn't survive: that is put right for the browser alone.
PATCH = """
import os
from playwright.async_api import BrowserType
launch = BrowserType.launch
BrowserType.launch = lambda self, **given: launch(self, **{"executable_path": os.environ["PEER_BROWSER"], **given})
"""
BROWSER = '#!/bin/sh\numask 022\nexec {0} "$@"\n'


def family(pid):
    """All descendants: {pid: name of the program}."""
    parents = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            name, rest = open(f"/proc/{each}/stat").read().split("(", 1)[1].rsplit(")", 1)
            parents[int(each)] = (int(rest.split()[1]), name)
    found, added = {}, {pid}
    while added:
        found.update({each: parents[each][1] for each in added if each in parents})
        added = {each for each, (parent, _) in parents.items() if parent in added}
    return found


class Original:
    """A server of its own in `folder`, whose path has to be a short one; call() is one request to it."""

    def __init__(self, folder, browser):
        self.folder = folder
        python = peers.folder("venv-tool-support") / "bin"
        (folder / "usercustomize").mkdir()
        (folder / "usercustomize/sitecustomize.py").write_text(PATCH)
        (folder / "browser").write_text(BROWSER.format(browser))
        (folder / "browser").chmod(0o755)
        self.env = {**os.environ, "PYTHONPATH": str(folder / "usercustomize"), "PEER_BROWSER": str(folder / "browser"),
               "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder), "TMPDIR": str(folder), "PATH": f"{python}:{os.environ['PATH']}"}
        self.env.pop("TOOLBOX_DIR", None)
        self.program = python / "inspect-tool-support"
        self.server = subprocess.Popen([self.program, "server"], env=self.env, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 60
        while not (folder / "inspect-tool-support.sock").exists():
            assert self.server.poll() is None and time.monotonic() < deadline, "its server doesn't start"
            time.sleep(0.05)

    def call(self, method, **params):
        connection = HTTPConnection("localhost", timeout=120)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(120)
        connection.sock.connect(str(self.folder / "inspect-tool-support.sock"))
        with contextlib.closing(connection):
            text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            connection.request("POST", "/", text.encode(), {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
        assert "result" in answer, answer["error"]["message"][:500]
        return answer["result"]

    def exec(self, method, **params):
        """The same as a host asks for it."""
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        done = subprocess.run([self.program, "exec"], input=text.encode(), stdout=subprocess.PIPE, env=self.env, check=True)
        return json.loads(done.stdout)["result"]

    def close(self):
        started = family(self.server.pid)
        self.server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.server.wait(10)
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.server.wait()
