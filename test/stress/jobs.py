#!/usr/bin/python3
"""Starts many jobs through the server's socket and reads each to its end, some at a time.

usage: jobs.py [--jobs N] [--side-by-side N] TOOLBOX

Fails when a byte or an exit code is lost, or when a process is left afterwards.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
from socket_client import Connection  # noqa: E402


def one_job(server, number):
    """Nothing when all is right, otherwise what is wrong."""
    pid = server.rpc("exec_remote_start", command=f"echo hi {number}; exit {number % 200}")["pid"]
    out, seq = "", 0
    while True:
        answer = server.rpc("exec_remote_wait", pid=pid, ack_seq=seq, timeout=60)
        out, seq = out + answer["stdout"], answer["seq"]
        if answer["state"] != "running":
            break
    right = (out, answer["state"], answer["exit_code"], answer["stderr"]) == (f"hi {number}\n", "completed", number % 200, "")
    return None if right else f"job {number} (pid {pid}): {answer}, {out!r}"


def work(path, numbers, wrong):
    server = Connection(path)
    for number in numbers:
        try:
            fault = one_job(server, number)
        except Exception as error:
            fault = f"job {number}: {error!r}"
            server = Connection(path)
        if fault:
            wrong.append(fault)
    server.close()


def keepers(place):
    """Keepers of jobs in that directory, in which they stand (root may look)."""
    found = 0
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if entry.read_bytes().startswith((b"toolbox Job_", b"toolbox keeper")):
                found += os.readlink(entry.parent / "cwd") == place
        except OSError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--side-by-side", type=int, default=8)
    parser.add_argument("toolbox")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolbox-stress-") as folder:
        env = {"PATH": os.environ["PATH"], "TOOLBOX_DIR": f"{folder}/server"}
        subprocess.run([options.toolbox, "start-server"], env=env, check=True)
        try:
            path, = map(str, Path(folder, "server").glob("server.*"))
            wrong, began = [], time.monotonic()
            threads = [threading.Thread(target=work, args=(path, range(i, options.jobs, options.side_by_side), wrong))
                       for i in range(options.side_by_side)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - began
            deadline = time.monotonic() + 10
            while keepers(f"{folder}/server") > 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            left = keepers(f"{folder}/server")
        finally:
            subprocess.run([options.toolbox, "stop-server"], env=env, check=True)
        files = [path.name for path in Path(folder, "server").iterdir() if path.name not in (".lock", "log")]
    print(f"{options.jobs} jobs in {seconds:.1f} s, {len(wrong)} wrong, {left} keepers and {len(files)} files left")
    for fault in wrong[:10]:
        print(f"  {fault}")
    return bool(wrong or left > 0 or files)


if __name__ == "__main__":
    sys.exit(main())
