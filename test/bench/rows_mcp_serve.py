"""`toolbox mcp serve`: its start, its list of tools, a command; beside mcp-server-time, where that is installed."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from figure import figures, limit
from lab import Broken

sys.path.append(str(Path(__file__).resolve().parents[1] / "integration"))
from harness import peers  # noqa: E402

FIGURES, figure = figures("mcp serve")
FIRST = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}


def server_time():
    """The command of mcp-server-time among the peers of the tests; None: it is not there."""
    peer = peers.find("python-servers")
    return [str(peer / "bin/mcp-server-time"), "--local-timezone", "UTC"] if peer else None


class Served:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.id = 0
        self.ask(FIRST)

    def ask(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                raise Broken("the server has ended")
            line += piece
        answer = json.loads(line)
        if answer.get("id") != message["id"] or "error" in answer or answer["result"].get("isError"):
            raise Broken(f"no answer: {line[:300]}")
        return answer["result"]

    def timed(self, method, **params):
        self.id += 1
        start = time.perf_counter()
        self.ask({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        return time.perf_counter() - start

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def started(command, env):
    start = time.perf_counter()
    server = Served(command, env)
    took = time.perf_counter() - start
    server.close()
    return took


def beside(times, other):
    """A median in seconds, and the other server's."""
    return {"baseline": median(other) if other else None, "against": "mcp-server-time" if other else ""}


@figure("mcp serve, from its start to the first answer")
def start(lab, row):
    place, other = lab.place(), server_time()
    times = [started([lab.toolbox, "mcp", "serve"], place.env) for _ in range(50)]
    others = [started(other, place.env) for _ in range(3)] if other else []
    limit(row, median(times), "s", 0.005, **beside(times, others))


@figure("mcp serve, tools/list")
def listing(lab, row):
    place, other = lab.place(), server_time()
    server = Served([lab.toolbox, "mcp", "serve"], place.env)
    times = [server.timed("tools/list") for _ in range(300)]
    server.close()
    others = []
    if other:
        server = Served(other, place.env)
        others = [server.timed("tools/list") for _ in range(50)]
        server.close()
    limit(row, median(times), "s", 0.001, **beside(times, others))


@figure("mcp serve, shell_run of true", "mcp serve, read_file of a short file")
def calls(lab, run, read):
    place, other = lab.place(), server_time()
    server = Served([lab.toolbox, "mcp", "serve"], place.env)
    server.timed("tools/call", name="shell_run", arguments={"command": "true"})
    runs = [server.timed("tools/call", name="shell_run", arguments={"command": "true"}) for _ in range(200)]
    reads = [server.timed("tools/call", name="read_file", arguments={"path": "/etc/hostname"}) for _ in range(200)]
    server.close()
    others = []
    if other:
        server = Served(other, place.env)
        others = [server.timed("tools/call", name="get_current_time", arguments={"timezone": "UTC"}) for _ in range(50)]
        server.close()
    limit(run, median(runs), "s", 0.005, **beside(runs, others))
    limit(read, median(reads), "s", 0.002, **beside(reads, others))
