#!/usr/bin/env python3
"""Clients that die: calls of which the client is killed at a random moment, on either side of the runtime. Each request begins once
at most, each outcome can be had afterwards, and the session serves the next client within two seconds.

usage: clients.py TOOLBOX [--kills N] [--target TARGET [--dir DIR] [--init PID]]"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FREE_S = 2  # after the command's own end
VICTIMS = ("call", "runtime", "inside")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("toolbox")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--target", default="local:")
    parser.add_argument("--dir", help="where the program is put there")
    parser.add_argument("--init", type=int, help="a process of the target's pid namespace, as seen from here")
    return parser.parse_args()


class Target:
    def __init__(self, options, folder):
        there = options.dir or f"{folder}/there"
        self.words = [options.toolbox, "call", "--dir", there, options.target]
        self.eject_words = [options.toolbox, "eject", "--dir", there, options.target]
        self.env = {**os.environ, "TOOLBOX_DIR": f"{folder}/server"}

    def start(self, method, params, out):
        one = subprocess.Popen([*self.words, method, "-"], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL, env=self.env)
        one.stdin.write(json.dumps(params).encode())
        one.stdin.close()
        return one

    def call(self, method, **params):
        done = subprocess.run([*self.words, method, "-"], input=json.dumps(params).encode(), capture_output=True, env=self.env, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode()

    def run(self, command, session):
        return self.call("bash_session_run", session_name=session, command=command)


def children(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def execs_in(init):
    """The processes that answer calls in that pid namespace."""
    wanted, found = os.readlink(f"/proc/{init}/ns/pid"), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") == wanted and Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2] == [b"exec"]:
                found.append(int(pid))
        except OSError:
            continue
    return found


def victim(one, which, init):
    """The client, the runtime's client that it has started, or what answers in the target."""
    if which == "inside" and init:
        return (execs_in(init) or [one.pid])[0]
    pids = [one.pid]
    while which != "call" and (below := children(pids[-1])):
        pids.append(below[0])
    return pids[min(len(pids) - 1, {"call": 0, "runtime": 1, "inside": 99}[which])]


def begun(target, session, n):
    """How often command n has begun, in the target's own words."""
    result = target.run(f"grep -cx {n} $HOME/begun-$$ || :", session)
    assert isinstance(result, dict), result
    return int(result["output"].strip().split("\n")[-1] or 0)


def outcome(target, session, n, until):
    """Output of a command that may still run: the rest of it, once it is over."""
    text = ""
    while True:
        result = target.call("bash_session_run", session_name=session, timeout=1)
        if not isinstance(result, dict):
            assert "no command" in result, result
            return text
        text += result["output"]
        if result["state"] == "completed":
            return text
        assert time.monotonic() < until, f"call {n}: the session isn't free: {result}"


def one_kill(target, session, n, folder, init):
    which, length = random.choice(VICTIMS), random.choice((0, 0, 0.05, 0.2))
    wait = random.uniform(0, 0.3 + length)
    with open(f"{folder}/out", "wb") as out:
        one = target.start("bash_session_run", {"session_name": session, "command": f"echo {n} >>$HOME/begun-$$; sleep {length}; echo out-{n}"}, out)
        time.sleep(wait)
        try:
            os.kill(victim(one, which, init), signal.SIGKILL)
        except ProcessLookupError:
            pass
        one.wait(60)
    said = Path(f"{folder}/out").read_text()
    rest = outcome(target, session, n, time.monotonic() + length + FREE_S)
    times = begun(target, session, n)
    assert times <= 1, f"call {n} ({which} killed after {wait:.3f} s): begun {times} times"
    had = f"out-{n}" in said or f"out-{n}" in rest
    assert had == (times == 1), f"call {n} ({which} killed after {wait:.3f} s): begun {times} times, said {said!r}, then {rest!r}"
    return which, times


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="toolbox-clients-") as folder:
        os.mkdir(f"{folder}/server", 0o700)
        target = Target(options, folder)
        session = target.call("bash_session_new_session", env={"HOME": "/tmp"} if options.target != "local:" else {"HOME": folder})["session_name"]
        target.run("true", session)
        counts = {which: [0, 0] for which in VICTIMS}
        began = time.monotonic()
        try:
            for n in range(options.kills):
                which, times = one_kill(target, session, n, folder, options.init)
                counts[which][times] += 1
        finally:
            subprocess.run(target.eject_words, env=target.env, capture_output=True)
        told = ", ".join(f"{which}: {none} before and {once} after the beginning" for which, (none, once) in counts.items())
        print(f"{options.kills} clients killed in {time.monotonic() - began:.0f} s ({told}): each request begun once at most, each outcome had")


if __name__ == "__main__":
    sys.exit(main())
