#!/usr/bin/env python3
"""A fleet: `run` and `inject` over many targets that are no containers, but a command that takes its time, and here and there fails or
hangs. Each failure is told with its target, the time is that of an ideal schedule, and memory stays small.

usage: fleet.py TOOLBOX [--targets N] [--jobs N] [--latency S] [--timeout S]"""
import argparse
import collections
import heapq
import json
import os
import random
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SLACK, MEMORY_KB = 1.2, 64 << 10
STAND_IN = """#!/bin/sh
# stand-in NUMBER LATENCY HOW COMMAND...
n=$1 latency=$2 how=$3; shift 3
echo $n >>"${0%/*}/calls"
case $how in
hangs) exec sleep 100000;;
fails) sleep $latency; echo "target $n can't be reached" >&2; exit 1;;
esac
sleep $latency
exec "$@"
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("toolbox")
    parser.add_argument("--targets", type=int, default=10000)
    parser.add_argument("--jobs", type=int, default=64)
    parser.add_argument("--latency", type=float, default=2.0, help="the longest; half of it on average")
    parser.add_argument("--timeout", type=float, default=10.0, help="more than the longest latency")
    return parser.parse_args()


class Fleet:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        program = self.folder / "stand-in"
        program.write_text(STAND_IN)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        rng, n = random.Random(20), options.targets
        bad = rng.sample(range(n), max(n // 100, 1) + max(n // 1000, 1))
        self.hangs, self.fails = set(bad[: max(n // 1000, 1)]), set(bad[max(n // 1000, 1) :])
        self.latencies = [round(rng.uniform(0, options.latency), 3) for _ in range(n)]
        self.names = [f"exec:{program} {i} {self.latencies[i]} {self._how(i)}" for i in range(n)]
        self.env = {**os.environ, "TOOLBOX_DIR": f"{folder}/server"}

    def _how(self, i):
        return "hangs" if i in self.hangs else "fails" if i in self.fails else "goes"

    def ideal(self):
        """Seconds that whoever takes them in this order, so many at a time, can't do with less of."""
        log = self.folder / "calls"
        calls = collections.Counter(map(int, log.read_text().split()))
        log.unlink()
        free = [0.0] * self.options.jobs
        for i, latency in enumerate(self.latencies):
            took = self.options.timeout if i in self.hangs else latency * calls[i]
            heapq.heappush(free, heapq.heappop(free) + took)
        return max(free)

    def go(self, *words):
        """The run, its seconds, and the most memory that it and its workers had."""
        out, err = (self.folder / name for name in ("out", "err"))
        with open(out, "wb") as o, open(err, "wb") as e:
            began = time.monotonic()
            one = subprocess.Popen([self.options.toolbox, *words], stdout=o, stderr=e, stdin=subprocess.DEVNULL, env=self.env)
            watch = Memory(one.pid)
            status = one.wait()
            seconds = time.monotonic() - began
        watch.stop()
        return status, out.read_text(), err.read_text(), seconds, watch.most


class Memory(threading.Thread):
    """Looks now and then."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.ended = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(1):
            self.most = max(self.most, sum(map(_kb, [self.pid, *_children(self.pid)])))

    def stop(self):
        self.ended.set()
        self.join()


def _children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def _kb(pid):
    try:
        return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M).group(1))
    except (OSError, AttributeError):
        return 0


def judge(fleet, what, said, seconds, kb):
    """Prints the figures. The sentences that say what is wrong."""
    ideal = fleet.ideal()
    print(f"{what}: {seconds:.1f} s, {seconds / ideal:.2f} of the ideal {ideal:.1f} s; {kb} KiB; {len(fleet.fails)} failed, {len(fleet.hangs)} hung")
    bad = {fleet.names[i] for i in fleet.fails | fleet.hangs}
    wrong = [f"{what}: {seconds / ideal:.2f} of the ideal time"] if seconds > SLACK * ideal else []
    wrong += [f"{what}: {kb} KiB of memory"] if kb > MEMORY_KB else []
    wrong += [f"{what}: {len(said ^ bad)} failures that are not told, or are none: {sorted(said ^ bad)[:3]}"] if said != bad else []
    return wrong


def run(fleet):
    o = fleet.options
    status, out, err, seconds, kb = fleet.go("run", "-j", str(o.jobs), "--timeout", str(o.timeout), "--dir", f"{fleet.folder}/there", *fleet.names,
                                             "--", "echo", "here")
    table = err[err.index("status  target\n") :].splitlines() if "status  target\n" in err else []
    said = {line.split("  ", 1)[1].strip() for line in table[1:-1]}
    wrong = judge(fleet, "run", said, seconds, kb)
    good = sum(line.endswith(": here") for line in out.splitlines())
    wrong += [] if good == o.targets - len(fleet.fails) - len(fleet.hangs) else [f"run: {good} have answered"]
    wrong += [] if status else ["run: exit 0"]
    wrong += [] if table and table[-1] == f"{len(said)} of {o.targets} failed" else [f"run: the table ends with {table[-1:]}"]
    return wrong


def inject(fleet):
    o = fleet.options
    status, out, err, seconds, kb = fleet.go("inject", "--json", "-j", str(o.jobs), "--timeout", str(o.timeout), "--dir", f"{fleet.folder}/there", *fleet.names)
    results = [json.loads(line) for line in out.splitlines()]
    wrong = judge(fleet, "inject", {r["target"] for r in results if not r["ok"]}, seconds, kb)
    wrong += [] if len(results) == o.targets else [f"inject: {len(results)} results; {err[-300:]}"]
    return wrong + ([] if status else ["inject: exit 0"])


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="toolbox-fleet-") as folder:
        fleet = Fleet(options, folder)
        subprocess.run([options.toolbox, "inject", "--dir", f"{folder}/there", "local:"], env=fleet.env, check=True, stdout=subprocess.DEVNULL)
        wrong = run(fleet) + inject(fleet)
        subprocess.run([options.toolbox, "eject", "--dir", f"{folder}/there", "local:"], env=fleet.env, check=True, stdout=subprocess.DEVNULL)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
