#!/usr/bin/python3
"""Interrupts at random moments: every form of a command, in every shell that there is.

usage: interrupts.py [--count N] [--seed N] [--shell NAME]… TOOLBOX

N interrupts for each pair of a form and a shell: nothing behind what was interrupted runs, and what is told of it is so.
"""
import argparse
import collections
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from harness.client import RpcError  # noqa: E402
from harness.interrupted import SHELLS, Interrupted, forms, path_of  # noqa: E402
from harness.sessions import Shell, shared_server  # noqa: E402


def one(client, folder, name, form, dice, count, wrong):
    with Shell(client, shell=path_of(name, folder)) as shell:
        tried = Interrupted(shell, folder, name)
        for _ in range(count):
            how, after = dice.choice((Interrupted.by_signal, Interrupted.by_key)), dice.random() ** 3 / 5
            try:
                fault = tried.check(form, after, how)
            except (RpcError, subprocess.TimeoutExpired) as why:
                fault = f"answers {why} then"
            if fault:
                wrong[name, form].append((how.__name__, after, fault))
                print(f"{name}, {form}: {how.__name__} after {after:.4f} s: {fault}", flush=True)
                if "answers" in fault:
                    shell.restart()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--shell", action="append")
    parser.add_argument("toolbox")
    args = parser.parse_args()
    dice, wrong, tries = random.Random(args.seed), collections.defaultdict(list), 0
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory(prefix="interrupts-") as folder, shared_server(args.toolbox) as client:
        for name in args.shell or SHELLS:
            if not path_of(name, Path(folder)):
                print(f"no {name} here")
                continue
            for form in forms(name):
                one(client, Path(folder), name, form, dice, args.count, wrong)
                tries += args.count
    faults = sum(map(len, wrong.values()))
    print(f"{tries} interrupts, {faults} of them wrong")
    sys.exit(faults > 0)


main()
