#!/usr/bin/python3
"""kill -9 of random processes of the tool under load: server, keepers, clients, MCP servers' front ends (mcp serve).

usage: killed.py [--kills N] [--seed N] TOOLBOX

Clients edit files, use sessions, read jobs and speak MCP; all that they start leaves strays behind (a session of their own, no
environment, no parent). Whatever was answered has to be so: an edit is in its file, a session whose keeper was not killed remembers what
it was told, a job whose keeper was not killed gives all of its output, once, and its exit status. After stop-server nothing is left.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from harness import processes  # noqa: E402

STRAY = "env -i setsid sh -c 'sleep 3003 <&- >/dev/null 2>&1 & exit' <&- >/dev/null 2>&1 &"
TITLES = {"server": ("toolbox server",), "keeper": ("toolbox BashSession", "toolbox Job_", "toolbox keeper")}
KINDS = (*TITLES, "client", "serve")


class Told(Exception):
    """An error that the tool answered."""


class Unanswered(Exception):
    """The client or who would have answered was killed."""


class Run:
    def __init__(self, toolbox, folder, seed, kills):
        self.toolbox, self.folder, self.kills = toolbox, Path(folder), kills
        self.env = {"PATH": os.environ["PATH"], "HOME": folder, "TOOLBOX_DIR": f"{folder}/server"}
        self.over, self.lock = threading.Event(), threading.Lock()
        self.killed = {}  # owner's name: how many of that name
        self.counts = dict.fromkeys([*KINDS, "edits", "runs", "jobs", "mcp"], 0)
        self.ours = {"client": set(), "serve": set()}  # pids that are not waited for yet
        self.wrong, self.dice = [], random.Random(seed)

    def call(self, kind, words, text):
        """(exit status, output) of a process that may be killed meanwhile."""
        with subprocess.Popen([self.toolbox, *words], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            self.ours[kind].add(process.pid)
            try:
                out, _ = process.communicate(text, timeout=120)
            finally:
                self.ours[kind].discard(process.pid)
        return process.returncode, out

    def ask(self, method, **params):
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        status, out = self.call("client", ["exec"], request)
        if status != 0:
            raise Unanswered(f"exit status {status}")
        answer = json.loads(out)
        if "error" not in answer:
            return answer["result"]
        text = answer["error"]["message"]
        # whoever had taken the call died with it: that is told
        raise (Unanswered if "closed without an answer" in text or "ended before it was ready" in text else Told)(text)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def complain(self, text):
        with self.lock:
            self.wrong.append(text)

    # ---- killing ----

    def targets(self, kind):
        if kind not in TITLES:
            return [(pid, kind) for pid in list(self.ours[kind])]
        found = []
        for process in processes.descendants():
            try:
                line = Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if line.startswith(TITLES[kind]):
                found.append((process.pid, line))
        return found

    def kill_some(self):
        while sum(self.counts[kind] for kind in KINDS) < self.kills:
            time.sleep(self.dice.random() / 10)
            kind = self.dice.choice(list(KINDS))
            found = self.targets(kind)
            if not found:
                continue
            pid, line = self.dice.choice(found)
            name = line.removeprefix("toolbox ")
            with self.lock:  # before: whoever asks it meanwhile has to know
                self.killed[name] = self.killed.get(name, 0) + 1
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.count(kind)
        self.over.set()

    def was_killed(self, name):
        with self.lock:
            return name in self.killed

    # ---- using ----

    def edit(self, number):
        path, text = self.folder / f"file-{number}", f"text {number}\n" * 200
        try:
            self.ask("text_editor", command="create", path=str(path), file_text=text)
        except (Unanswered, Told):
            if path.exists() and path.read_text() != text:
                self.complain(f"{path}: half of an edit")
            return
        self.count("edits")
        if not path.exists() or path.read_text() != text:
            self.complain(f"{path}: an edit that was answered is not there")

    def session(self):
        try:
            name = self.ask("bash_session_new_session")["session_name"]
        except (Unanswered, Told):
            return
        last, tries = 0, 0
        while not self.over.is_set() and tries < 40:
            tries += 1
            try:
                answer = self.ask("bash_session_run", session_name=name, command=f"{STRAY if tries == 1 else ''} n=$((n + 1)); echo $n")
            except Unanswered:
                continue
            except Told as error:
                if not self.was_killed(name):
                    self.complain(f"{name} was not killed, and says: {error}")
                return
            self.count("runs")
            if answer["state"] != "completed":
                self.complain(f"{name}: {answer}")
            elif not last < int(answer["output"].split()[-1]) <= tries:
                self.complain(f"{name}: {answer['output']!r} after {last}, in {tries} calls")
            else:
                last = int(answer["output"].split()[-1])

    def job(self, number):
        code = number % 100
        try:
            pid = self.ask("exec_remote_start", command=f"{STRAY} for i in 1 2 3; do echo {number}.$i; sleep 0.1; done; exit {code}")["pid"]
        except (Unanswered, Told):
            return
        out, seq, deadline = "", 0, time.monotonic() + 100
        while True:
            try:
                answer = self.ask("exec_remote_wait", pid=pid, ack_seq=seq, timeout=20)
            except Unanswered:
                if time.monotonic() > deadline:
                    return self.complain(f"job {pid} can't be read any more")
                continue
            except Told as error:
                if not self.was_killed(f"Job_{pid}"):
                    self.complain(f"job {pid} was not killed, and is lost: {error}")
                return
            out, seq = out + answer["stdout"], answer["seq"]
            if answer["state"] != "running":
                break
        self.count("jobs")
        right = "".join(f"{number}.{i}\n" for i in (1, 2, 3))
        if (out, answer["exit_code"]) != (right, code) and not self.was_killed(f"Job_{pid}"):
            self.complain(f"job {pid}: {out!r}, {answer}")

    def mcp(self):
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        calls = [("shell_run", {"command": f"{STRAY} sleep 0.5"}), ("job_start", {"argv": ["sh", "-c", f"{STRAY} sleep 3003"]}),
                 ("shell_run", {"command": "sleep 0.5"})]
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 *({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
                   for i, (name, arguments) in enumerate(calls, 1))]
        self.call("serve", ["mcp", "serve"], "".join(json.dumps(line) + "\n" for line in lines).encode())
        self.count("mcp")

    def use(self, work, numbered):
        number = 0
        while not self.over.is_set():
            number += 1
            try:
                work(number) if numbered else work()
            except Exception as error:
                self.complain(f"{work.__name__}: {error!r}")

    # ---- the whole ----

    def run(self):
        works = [(self.edit, True), (self.session, False), (self.session, False), (self.job, True), (self.mcp, False)]
        threads = [threading.Thread(target=self.use, args=work) for work in works]
        for thread in threads:
            thread.start()
        self.kill_some()
        for thread in threads:
            thread.join()
        for command in ("status", "stop-server"):
            done = subprocess.run([self.toolbox, command], env=self.env, capture_output=True, timeout=120)
            if done.returncode != 0:
                self.complain(f"{command}: {done.stderr.decode(errors='replace')}")
        time.sleep(0.2)  # killed clients' last children are reaped
        left = [process for process in processes.descendants() if not processes.is_zombie(process)]
        print(f"{self.counts}: {len(self.wrong)} wrong, {len(left)} processes left")
        for fault in self.wrong[:20]:
            print(f"  {fault}")
        for process in left:
            print(f"  left: {process}")
            os.kill(process.pid, signal.SIGKILL)
        return bool(self.wrong or left)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("toolbox")
    options = parser.parse_args()
    processes.become_init()
    with tempfile.TemporaryDirectory(prefix="toolbox-killed-") as folder:
        return Run(os.path.abspath(options.toolbox), folder, options.seed, options.kills).run()


if __name__ == "__main__":
    sys.exit(main())
