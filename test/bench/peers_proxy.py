"""Rows of the model proxies: both with one host at the other end of their files, which answers at once."""
import concurrent.futures
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from lab import children

SERVICES = Path("/var/tmp/sandbox-services/bridge_model_service")
ASKED = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


def family(pid):
    return [pid, *(below for child in children(pid) for below in family(child))]


def memory_kb(pid):
    """Of a process and all below it, shared pages split among those who share them."""
    total = 0
    for one in family(pid):
        rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
        total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Proxy:
    """A proxy and its host: `text` is what the model says."""

    def __init__(self, program):
        SERVICES.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(dir=SERVICES, prefix="bench"))
        for name in ("requests", "responses"):
            (self.folder / name).mkdir()
        self.text, self.stopped = "hello", threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()
        self.port = free_port()
        env = {**os.environ, "BRIDGE_MODEL_SERVICE_PORT": str(self.port), "BRIDGE_MODEL_SERVICE_INSTANCE": self.folder.name}
        self.process = subprocess.Popen([program, "model_proxy"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while socket.socket().connect_ex(("127.0.0.1", self.port)) != 0 and time.monotonic() < deadline:
            time.sleep(0.05)

    def _serve(self):
        while not self.stopped.wait(0.0005):
            for path in self.folder.glob("requests/*.json"):
                try:
                    request = json.loads(path.read_text())
                except (ValueError, FileNotFoundError):
                    continue  # not whole yet
                answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": self.text}}]}
                path.unlink()
                target = self.folder / "responses" / path.name
                target.with_suffix(".part").write_text(json.dumps({"id": request["id"], "result": answer, "error": None}))
                target.with_suffix(".part").rename(target)

    def ask(self, stream=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        begin = time.monotonic()
        connection.request("POST", "/v1/chat/completions", json.dumps(dict(ASKED, stream=stream)),
                           {"Content-Type": "application/json"})
        size = len(connection.getresponse().read())
        connection.close()
        if size < len(self.text):
            raise ValueError(f"{size} bytes of a text of {len(self.text)}")
        return time.monotonic() - begin

    def close(self):
        self.stopped.set()
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.folder)


def rows(programs):
    """For each of the two programs, by turns."""
    both = [Proxy(program) for program in programs]
    try:
        took = [[], []]
        for _ in range(20):
            for one, found in zip(both, took):
                found.append(one.ask())
        yield "`model_proxy`: a plain completion", "s", *map(statistics.median, took), None
        yield "`model_proxy`, memory", "KiB", *[memory_kb(one.process.pid) for one in both], None
        for one in both:
            one.text = "x" * 1_000_000
        yield "`model_proxy`: 1 MB streamed", "s", *[statistics.median(one.ask(True) for _ in range(3)) for one in both], None
        found = []
        for one in both:
            one.text = "x" * 100_000
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(100) as pool:
                list(pool.map(lambda _, one=one: one.ask(True), range(100)))
            found.append(time.monotonic() - begin)
        yield "`model_proxy`: 100 streams of 100 KB at once", "s", *found, None
        yield "`model_proxy`, memory afterwards", "KiB", *[memory_kb(one.process.pid) for one in both], None
    finally:
        for one in both:
            one.close()
