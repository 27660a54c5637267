#!/usr/bin/python3
"""Many starters at the same moment, again and again, while the server is killed at random.

usage: starters.py [--rounds N] [--starters N] TOOLBOX

In each round all starters ask at once; half of them for a session, in which they then run a command. Every one has to get its
answer, sessions must survive, and in the end there is one server, and nothing once it has been stopped.
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
from harness.server import SERVER, kill_servers, titled  # noqa: E402


def ask(toolbox, env, method, **params):
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    done = subprocess.run([toolbox, "exec"], input=request, env=env, capture_output=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{method}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise RuntimeError(f"{method}: {answer['error']['message']}")
    return answer["result"]


def starter(toolbox, env, number, wrong, told):
    try:
        if number % 2:
            ask(toolbox, env, "remote_version")
            return
        name = ask(toolbox, env, "bash_session_new_session")["session_name"]
        answer = ask(toolbox, env, "bash_session_run", session_name=name, command=f"echo {number}")
        if answer["output"] != f"{number}\n":
            raise RuntimeError(f"{name}: {answer}")
        ask(toolbox, env, "bash_session_close", session_name=name)
    except Exception as error:
        text = str(error)
        # a server that dies while it starts a session can't say whether it has: that is told, and is an answer
        (told if "was closed without an answer" in text else wrong).append(text)


def killer(dice, over):
    while not over.wait(dice.random() / 5):
        kill_servers()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--starters", type=int, default=16)
    parser.add_argument("toolbox")
    options = parser.parse_args()
    processes.become_init()
    wrong, told, over, began = [], [], threading.Event(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="toolbox-starters-") as folder:
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TOOLBOX_DIR": f"{folder}/server"}
        killing = threading.Thread(target=killer, args=(random.Random(1), over))
        killing.start()
        for _ in range(options.rounds):
            threads = [threading.Thread(target=starter, args=(options.toolbox, env, i, wrong, told)) for i in range(options.starters)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        over.set()
        killing.join()
        ask(options.toolbox, env, "remote_version")
        time.sleep(0.5)
        servers = len(titled(SERVER))
        subprocess.run([options.toolbox, "stop-server"], env=env, check=True)
        time.sleep(0.5)
        left = processes.descendants()
    print(f"{options.rounds} rounds of {options.starters} starters in {time.monotonic() - began:.0f} s: {len(wrong)} wrong, "
          f"{len(told)} told that their server was killed while it started a session, "
          f"{servers} server, {len(left)} processes left")
    for fault in wrong[:10]:
        print(f"  {fault}")
    for process in left:
        print(f"  left: {process}")
        os.kill(process.pid, signal.SIGKILL)
    return bool(wrong or left or servers != 1)


if __name__ == "__main__":
    sys.exit(main())
