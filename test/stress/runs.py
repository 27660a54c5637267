#!/usr/bin/env python3
"""Runs from the command line: `bash_session run S 'echo N'` N times, in sessions with ordinary prompts and slow ones, beside busy loops.
Each prints its own number, and nothing else.

usage: runs.py [--runs N] [--load N] TOOLBOX"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

PROMPTS = ["", "PS1='$(sleep 0.02)P> '", "PROMPT_COMMAND='sleep 0.01'", "PS1='$(sleep 0.05)two\\nlines> '"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--load", type=int, default=20, help="busy loops beside it")
    parser.add_argument("toolbox")
    return parser.parse_args()


def make_session(call, prompt):
    name = call("bash_session", "new", "--env", "HOME=/nonexistent").stdout.decode().split()[0]
    if prompt:
        call("bash_session", "run", name, prompt)
    return name


def run_all(call, prompt, numbers):
    """Those that were wrong: [(number, status, output, message)]."""
    name, wrong = make_session(call, prompt), []
    for number in numbers:
        done = call("bash_session", "run", name, f"echo {number}")
        if (done.returncode, done.stdout) != (0, b"%d\n" % number):
            wrong.append((number, done.returncode, done.stdout[-200:], done.stderr[-200:]))
    return wrong


def main():
    options = arguments()
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.nice(5)) for _ in range(options.load)]
    with tempfile.TemporaryDirectory(prefix="toolbox-runs-") as place:
        def call(*words):
            return subprocess.run([options.toolbox, *words], env={**os.environ, "TOOLBOX_DIR": place}, stdin=subprocess.DEVNULL, capture_output=True)
        began = time.monotonic()
        try:
            with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
                parts = [pool.submit(run_all, call, prompt, range(i, options.runs, len(PROMPTS))) for i, prompt in enumerate(PROMPTS)]
                found = [(PROMPTS[i], part.result()) for i, part in enumerate(parts)]
        finally:
            call("stop-server")
            for loop in loops:
                loop.kill()
                loop.wait()
    for prompt, wrong in found:
        for one in wrong[:10]:
            print(f"WRONG with {prompt or 'an ordinary prompt'}: {one}")
    count = sum(len(wrong) for _, wrong in found)
    print(f"{options.runs} runs in {time.monotonic() - began:.0f} s, {count} wrong")
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
