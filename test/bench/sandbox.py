"""Runs in a row where this program runs, against what starting a process costs there: scripts/test-sandboxes gvisor --measure.

usage: sandbox.py TOOLBOX FORKEXEC RUNS
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

from socket_client import Connection

BOUND = 5  # times as long as a fork and exec of true
TURNS = 10  # both take turns, so that what else runs on the machine hits both


def fork_and_exec(forkexec, n):
    done = subprocess.run([forkexec, str(n), "/bin/true"], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def main(toolbox, forkexec, runs):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TOOLBOX_DIR=f"{folder}/server", HOME=folder)  # nothing of this machine's start-up files
        subprocess.run([toolbox, "start-server"], check=True, stdout=subprocess.DEVNULL)
        try:
            return measure(f"{folder}/server", forkexec, int(runs))
        finally:
            subprocess.run([toolbox, "stop-server"], stdout=subprocess.DEVNULL)


def connect(folder, name):
    """To the server, or, as `toolbox exec` does, to the keeper of a session itself."""
    return Connection(next(entry.path for entry in os.scandir(folder) if entry.name.startswith(f"{name}.")))


def measure(folder, forkexec, runs):
    session = connect(folder, "server").rpc("bash_session_new_session")["session_name"]
    keeper = connect(folder, session)
    took, starts, wrong = [], [], 0
    for turn in range(TURNS):
        starts.append(fork_and_exec(forkexec, 100))
        for i in range(runs // TURNS):
            began = time.monotonic()
            answer = keeper.rpc("bash_session_run", session_name=session, command=f"echo hi {turn} {i}; (exit {i % 7})" if i % 2 else "echo hi")
            if i % 2 == 0:
                took.append(time.monotonic() - began)
            wanted = ("completed", i % 7, f"hi {turn} {i}\n") if i % 2 else ("completed", 0, "hi\n")
            wrong += (answer["state"], answer["exit_code"], answer["output"]) != wanted
    start, run = statistics.median(starts) / 1e6, statistics.median(took)
    print(f"{runs} runs: {wrong} wrong")
    print(f"echo hi by bash_session_run: median {run * 1e3:.2f} ms; fork and exec of true: {start * 1e3:.2f} ms; {run / start:.1f} times (bound {BOUND})")
    return 0 if wrong == 0 and run <= BOUND * start else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
