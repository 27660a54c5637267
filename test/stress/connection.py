#!/usr/bin/python3
"""A connection that is kept, under load: kill -9 of its keeper, of the runtime's command and of the server at random: no run is lost, none
is made twice, no answer is given again to one who knows that he was heard. Then 1,000 calls open at once and 100,000 in a row: each answered
right, and memory flat.

usage: connection.py TOOLBOX [--kills N] [--calls N] [--seed N]"""
import argparse
import collections
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from harness import stream  # noqa: E402
from harness.client import RpcError  # noqa: E402

CLIENTS, GROWTH_KB, OPEN, PATIENCE_S = 4, 128, 1000, 10


class Broken(Exception):
    """The stream has ended."""


class Host:
    """One target on this machine, by a runtime that writes down its pids."""

    def __init__(self, toolbox, folder):
        self.toolbox, self.folder, self.log = toolbox, Path(folder), Path(folder, "pids")
        runtime = self.folder / "runtime"
        runtime.write_text(f'#!/bin/sh\necho $$ >>{self.log}\nexec "$@"\n')
        runtime.chmod(0o755)
        self.words = ["--dir", f"{folder}/there", f"exec:{runtime}"]
        self.env = {**os.environ, "TOOLBOX_DIR": f"{folder}/server"}

    def run(self, *words):
        return subprocess.run([self.toolbox, *words], env=self.env, capture_output=True, timeout=300)

    def connect(self):
        """A client of the connection, which is made where there is none."""
        for _ in range(100):
            done = self.run("connect", "--json", *self.words)
            if done.returncode == 0:
                where = socket.socket(socket.AF_UNIX)
                try:
                    where.connect(json.loads(done.stdout)[0]["socket"])
                    file = where.makefile("rwb", buffering=0)
                    return stream.Stream(file, file)
                except (OSError, TypeError, AttributeError, IndexError):
                    pass  # it was killed between
                finally:
                    where.close()
            time.sleep(0.05)
        raise AssertionError(f"no connection can be had: {done}")

    def list(self):
        return json.loads(self.run("connect", "--list", "--json").stdout or "[]")


class Client(threading.Thread):
    """Runs numbered commands in a session of its own, each until it has the outcome."""

    def __init__(self, host, name, ended):
        super().__init__()
        self.host, self.name, self.ended = host, name, ended
        self.wrong, self.outcomes, self.breaks = [], 0, 0
        self.s, self.heard = None, True  # heard: the last acknowledgement was confirmed
        self.file = host.folder / f"ran-{name}"

    def ask(self, method, params):
        """The answer, acknowledged; sets `heard` once that is known to have arrived."""
        try:
            if not self.s:
                self.s = self.host.connect()
            id = self.s.request(method, params)
            answer = self.of(id)
            self.heard = False
            if "error" in answer:
                return RpcError(answer["error"])
            ack = self.s.request("rpc.ack", {"ids": [id]})
            self.answer = answer["result"]
            self.of(ack)
            self.heard = True
            return answer["result"]
        except (OSError, Broken, ValueError):
            self.breaks += 1
            self.s = None
            raise Broken from None

    def of(self, id):
        while True:
            message = self.s.receive()
            if message is None or message.get("method") == "rpc.ended":
                raise Broken
            if message.get("id") == id:
                return message

    def run(self):
        try:
            session = self.insist("bash_session_new_session", {})["session_name"]
            n = 0
            while not self.ended.is_set():
                n += 1
                self.one(session, n)
            self.n = n
            ran = collections.Counter(self.file.read_text().split())
            self.wrong += [f"{self.name}: run {i} was made {ran[str(i)]} times" for i in range(1, n + 1) if ran[str(i)] != 1]
        except Exception as problem:  # is reported, not lost with the thread
            self.wrong.append(f"{self.name}: {problem!r}")

    def insist(self, method, params):
        while True:
            try:
                answer = self.ask(method, params)
                if isinstance(answer, dict):
                    return answer
            except Broken:
                pass

    def one(self, session, n):
        """Its outcome is had by asking for it where the stream breaks; it is made again only where it never was."""
        params, self.answer = {"session_name": session, "command": f"echo {n} >>{self.file}; echo out {n}"}, None
        while True:
            try:
                answer = self.ask("bash_session_run", params)
            except Broken:
                if self.answer and self.answer.get("output") == f"out {n}\n":
                    return self.known(n)
                params = {"session_name": session}
                continue
            if isinstance(answer, dict) and answer["state"] == "completed" and answer["output"] == f"out {n}\n":
                return self.known(n)
            if isinstance(answer, dict) and answer["state"] != "completed":
                params = {"session_name": session}
                continue
            if isinstance(answer, RpcError) and "is being made again" in answer.message:
                self.s.sink.close()  # it was not taken: again, over the next one
                self.s = None
                continue
            made = self.file.exists() and str(n) in self.file.read_text().split()
            if made:
                self.wrong.append(f"{self.name}: the outcome of run {n} is lost: {answer}")
                return None
            params = {"session_name": session, "command": f"echo {n} >>{self.file}; echo out {n}"}

    def known(self, n):
        self.outcomes += 1


def victims(host):
    """By kind: the connection's keeper, the runtime's command with the stream, the server."""
    pids = {"keeper": [entry["pid"] for entry in host.list()]}
    pids["runtime"] = [int(pid) for pid in host.log.read_text().split()[-1:]]
    found = json.loads(host.run("status", "--json").stdout or "{}").get("server") or {}
    pids["server"] = [found["pid"]] if found.get("pid") else []
    return pids


def kills(host, options):
    rng, ended, done = random.Random(options.seed), threading.Event(), collections.Counter()
    clients = [Client(host, f"client{i}", ended) for i in range(CLIENTS)]
    for client in clients:
        client.start()
    while done.total() < options.kills and any(client.is_alive() for client in clients):
        before, until = sum(c.outcomes for c in clients), time.monotonic() + PATIENCE_S
        while sum(c.outcomes for c in clients) == before and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        kind = rng.choice(("keeper", "runtime", "runtime", "server"))
        for pid in victims(host)[kind][:1]:
            try:
                os.kill(pid, signal.SIGKILL)
                done[kind] += 1
            except ProcessLookupError:
                continue
    ended.set()
    for client in clients:
        client.join()
    print(f"{dict(done)} killed; {sum(c.outcomes for c in clients)} runs, {sum(c.breaks for c in clients)} times the stream broke")
    return [line for client in clients for line in client.wrong]


def rss(pid):
    return int(re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M).group(1))


def at_once(host):
    s = host.connect()
    job = s.call("exec_remote_start", {"command": "read x", "stdin_open": True})["pid"]
    waiting = {s.request("exec_remote_wait", {"pid": job, "ack_seq": 0}) for _ in range(OPEN - 1)}
    s.request("exec_remote_close_stdin", {"pid": job, "ack_seq": 0}, id="close")
    answers = [s.receive() for _ in range(OPEN)]
    s.ack(*[answer["id"] for answer in answers])
    wrong = waiting ^ {answer["id"] for answer in answers if "result" in answer and answer["id"] != "close"}
    s.sink.close()
    print(f"{OPEN} open at once: {len(wrong)} wrong")
    return [f"{len(wrong)} of {OPEN} open calls have no right answer"] if wrong else []


def in_a_row(host, calls):
    s = host.connect()
    pids = [host.list()[0]["pid"], int(host.log.read_text().split()[-1])]
    right, wrong, before = s.call("remote_version"), 0, None
    began = time.monotonic()
    for i in range(calls):
        wrong += s.call("remote_version") != right
        if i == calls // 10:
            before = [rss(pid) for pid in pids]
    took, after = time.monotonic() - began, [rss(pid) for pid in pids]
    s.sink.close()
    print(f"{calls} in a row: {wrong} wrong, {1e6 * took / calls:.0f} us each; memory of keeper and stream {before} KiB at a tenth of it, {after} at the end")
    return ([f"{wrong} wrong answers"] if wrong else []) + [f"memory grew from {b} to {a} KiB" for b, a in zip(before, after) if a > b + GROWTH_KB]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("toolbox")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--calls", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolbox-connection-") as folder:
        host = Host(options.toolbox, folder)
        try:
            wrong = kills(host, options) + at_once(host) + in_a_row(host, options.calls)
        finally:
            host.run("connect", "--stop")
            done = host.run("eject", *host.words)
            subprocess.run([options.toolbox, "stop-server"], env=host.env, capture_output=True)
    if done.returncode != 0:
        wrong.append(f"eject: {done.stderr.decode()}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
