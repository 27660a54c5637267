#!/usr/bin/python3
"""Uses everything at once for a long time, and looks whether memory, descriptors, processes and files come back to where
they began.

usage: soak.py [--seconds N] TOOLBOX

Clients of every kind work side by side: sessions that are opened, used, restarted, ended and killed; jobs; edits; long
answers; HTTP of good and bad manners; calls that are killed while they wait. Every answer is checked. One session and the
server stay from the beginning to the end: they are what is measured, first after a tenth of the time, and at the end when
all clients have gone. TOOLBOX_SANITIZED=1: memory is not compared (the sanitizers keep what was freed).
"""
import argparse
import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration"), str(HERE.parent / "bench")]
from harness import processes  # noqa: E402
from harness.client import Client, RpcError  # noqa: E402
from harness.machine import Host  # noqa: E402
from harness.server import titled  # noqa: E402
from lab import memory_kb  # noqa: E402
from socket_client import Connection  # noqa: E402

SANITIZED = bool(os.environ.get("TOOLBOX_SANITIZED"))
MEMORY_KB = 512  # what a process may have grown by in the end
POOL = 16  # sockets that the server keeps for jobs to come (core/socket_pool.h), one for each that ran at once
STAYS = {".lock", "log", "log.old", "undo", "answers"}


class Soak:
    def __init__(self, toolbox, folder, seconds):
        self.folder, self.until = Path(folder), time.monotonic() + seconds
        self.client = Client(Host(), toolbox, self.folder / "server")
        self.client.cli("start-server")
        self.path = str(next(self.client.dir.glob("server.*")))
        self.counts, self.wrong, self.lock = {}, [], threading.Lock()
        self.main = self.client.rpc("bash_session_new_session")["session_name"]

    def worker(self, name, work, pause):
        dice = random.Random(name)
        while time.monotonic() < self.until:
            try:
                work(self, dice)
            except Exception as error:
                with self.lock:
                    self.wrong.append(f"{name}: {error!r}")
                print(self.wrong[-1], flush=True)
            with self.lock:
                self.counts[name] = self.counts.get(name, 0) + 1
            time.sleep(pause)

    def measure(self):
        """{what: number} of the processes that stay, and of all of them."""
        found = {"processes": len(processes.descendants()) - 0}
        for title in ("toolbox server", f"toolbox {self.main}"):
            pid, = [process.pid for process in titled(title) if processes._command_line(process.pid) == title]
            found[f"descriptors of {title}"] = len(processes.descriptors(pid))
            found[f"memory of {title}, KiB"] = memory_kb(pid)[1]
            found[f"zombies of {title}"] = processes.count_zombies(pid)
        return found


def right(condition, what):
    if not condition:
        raise AssertionError(what)


# ---- what the clients do ----


def main_session(s, dice):
    n = dice.randrange(1_000_000)
    answer = s.client.rpc("bash_session_run", {"session_name": s.main, "command": f"echo {n}"})
    right((answer["output"], answer["exit_code"]) == (f"{n}\n", 0), answer)
    s.client.rpc("bash_session_run", {"session_name": s.main, "command": f"head -c {dice.randrange(300_000)} /dev/zero | tr '\\0' x"})
    s.client.rpc("bash_session_list")
    s.client.cli("status")


def short_session(s, dice):
    name = s.client.rpc("bash_session_new_session")["session_name"]
    answer = s.client.rpc("bash_session_run", {"session_name": name, "command": "x=1; (setsid sleep 300 &); echo $x"})
    right(answer["output"] == "1\n", answer)
    end = dice.randrange(4)
    if end == 0:
        s.client.rpc("bash_session", {"session_name": name, "restart": True})
    if end == 1:
        s.client.rpc("bash_session", {"session_name": name, "input": "exit 3\n", "wait_for_output": 9, "idle_timeout": 1})
    if end == 2:
        (keeper,) = [one for one in titled(f"toolbox {name}") if processes._command_line(one.pid) == f"toolbox {name}"]
        os.kill(keeper.pid, signal.SIGKILL)
    else:
        s.client.rpc("bash_session_close", {"session_name": name})


def job(s, dice):
    n = dice.randrange(200)
    server = Connection(s.path)
    pid = server.rpc("exec_remote_start", command=f"cat; echo {n}; exit {n}", stdin_open=True)["pid"]
    server.rpc("exec_remote_write_stdin", pid=pid, ack_seq=0, data="typed\n")
    if dice.randrange(4) == 0:
        server.rpc("exec_remote_kill", pid=pid, ack_seq=0)
        return server.close()
    out, seq = server.rpc("exec_remote_close_stdin", pid=pid, ack_seq=0)["stdout"], 1
    while True:
        answer = server.rpc("exec_remote_wait", pid=pid, ack_seq=0, timeout=30)
        if answer["state"] != "running":
            break
    right((answer["stdout"], answer["exit_code"]) == (f"typed\n{n}\n", n), (answer, out, seq))
    server.rpc("exec_remote_poll", pid=pid, ack_seq=answer["seq"])
    server.close()


def edit(s, dice):
    path = s.folder / f"file-{dice.randrange(10)}"
    path.write_text("one\ntwo\n")
    s.client.ed("str_replace", path, old_str="two", new_str="2" * dice.randrange(1, 5000))
    s.client.ed("undo_edit", path)
    right(path.read_text() == "one\ntwo\n", path.read_text())
    server = Connection(s.path)
    server.rpc("text_editor", command="insert", path=str(path), insert_line=1, new_str="between")
    server.close()
    right(path.read_text() == "one\nbetween\ntwo\n", path.read_text())


def long_answer(s, dice):
    path = s.folder / "long"
    path.write_text("line\n" * 1000)
    text = s.client.rpc("text_editor", {"command": "view", "path": str(path)},
                        env={"INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": "3000"})
    right(text.count("line\n") == 1000, text[:200])


def bad_manners(s, dice):
    rubbish = [b"", b"POST / HTTP/1.1\r\nHost", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 20000, b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{",
               b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session",
                       "params": {"session_name": s.main, "wait_for_output": 30, "idle_timeout": 30}}).encode()
    rubbish.append(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(s.path)
        sock.sendall(dice.choice(rubbish))
        if dice.randrange(2):
            sock.shutdown(socket.SHUT_WR)
        time.sleep(dice.random() / 10)


def killed_call(s, dice):
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session",
                          "params": {"session_name": s.main, "wait_for_output": 30, "idle_timeout": 30}})
    call = s.client.popen("exec")
    call.stdin.write(request.encode())
    call.stdin.close()
    time.sleep(dice.random() / 10)
    call.kill()
    call.stdout.close()
    call.stderr.close()
    call.wait()


def batches(s, dice):
    server = Connection(s.path)
    for _ in range(5):
        body = json.dumps([{"jsonrpc": "2.0", "id": i, "method": method} for i, method in
                           enumerate(["version", "remote_version", "no_such_method", "server_status"])])
        right([answer["id"] for answer in json.loads(server.post(body.encode()))] == [0, 1, 2, 3], "a batch's answers")
    server.close()


def mcp_server(s, dice):
    script = 'while read -r line; do echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":7,\\"result\\":{}}"; done'
    try:
        number = s.client.rpc("mcp_launch_server", {"server_params": {"command": "sh", "args": ["-c", script]}})
    except RpcError as error:
        right(error.code == -32601, error)  # a build without the tool
        return
    answer = s.client.rpc("mcp_send_request", {"session_id": number, "request": {"jsonrpc": "2.0", "id": 7, "method": "x"}})
    right(answer["result"] == {}, answer)
    s.client.rpc("mcp_kill_server", {"session_id": number})


WORKERS = [(main_session, 0.2), (main_session, 0.5), (short_session, 0.5), (job, 0.1), (job, 0.3), (edit, 0.2), (long_answer, 0.3),
           (bad_manners, 0.05), (killed_call, 0.2), (batches, 0.2), (mcp_server, 0.5)]


# ---- measuring ----


def settled(s):
    """What there is once all clients have gone: it takes a moment."""
    last = None
    for _ in range(60):
        found = s.measure()
        if found == last:
            return found
        last = found
        time.sleep(0.5)
    return last


def grown(first, last):
    found = []
    for what, before in first.items():
        slack = (MEMORY_KB if not SANITIZED else 10 ** 9) if "memory" in what else POOL if what == "descriptors of toolbox server" else 0
        if last[what] > before + slack:
            found.append(f"{what}: {before} at first, {last[what]} in the end")
    return found


def soak(toolbox, seconds, folder):
    s = Soak(toolbox, folder, seconds)
    first, gate = None, threading.Event()
    threads = []
    for part in (seconds / 10, seconds * 9 / 10):
        s.until = time.monotonic() + part
        threads = [threading.Thread(target=s.worker, args=(f"{work.__name__}", work, pause)) for work, pause in WORKERS]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            gate.wait(min(60, part))
            print(f"{time.strftime('%H:%M:%S')} {s.measure()} wrong: {len(s.wrong)}", flush=True)
        for thread in threads:
            thread.join()
        last = settled(s)
        first = first or last
    found = s.wrong[:20] + grown(first, last)
    began = time.monotonic()
    try:
        s.client.rpc("bash_session_close", {"session_name": s.main})
        s.client.stop()
    except Exception as error:
        found.append(f"the end, after {time.monotonic() - began:.1f} s: {error}; log: {(s.client.dir / 'log').read_text()[-2000:]}")
    # the files of tens of thousands of jobs take a moment
    while processes.descendants() and time.monotonic() - began < 120:
        time.sleep(0.2)
    print(f"the end took {time.monotonic() - began:.1f} s")
    found += [f"left: {process}" for process in processes.descendants()]
    found += [f"left: {path.name}" for path in s.client.dir.iterdir() if path.name not in STAYS]
    found += [f"left: {path}" for path in s.client.dir.glob("answers/*")]
    print(f"calls: {s.counts}\nat first: {first}\nin the end: {last}")
    print("\n".join(found) or "nothing was lost, wrong or left")
    return bool(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("toolbox")
    options = parser.parse_args()
    processes.become_init()
    with tempfile.TemporaryDirectory(prefix="toolbox-soak-") as folder:
        tempfile.tempdir = folder
        return soak(os.path.abspath(options.toolbox), options.seconds, folder)


if __name__ == "__main__":
    sys.exit(main())
