#!/usr/bin/env python3
"""Runs in sessions of interpreters and of other shells than bash: N each, one after the other. State, status or exception, and output of each are
its own.

usage: programs.py [--runs N] [--only NAME]... TOOLBOX"""
import argparse
import contextlib
import os
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from harness.client import Client, RpcError  # noqa: E402
from harness.machine import Host  # noqa: E402

# What a run is to give: (command, exit code, output, type of the exception). None as output: not looked at.


def shell(i, block="for i in 1 2\ndo\n\n  echo $i {0}\ndone"):
    return [(f"echo {i}", 0, f"{i}\n"), ("false", 1, ""), (f"printf é{i}", 0, f"é{i}"), (block.format(i), 0, f"1 {i}\n2 {i}\n"),
            (f"sh -c 'exit {i % 200}'", i % 200, "")]


def fish(i):
    return shell(i, "for i in 1 2\n\n  echo $i {0}\nend")


def tcsh(i):
    return shell(i, "foreach i ( 1 2 )\n  echo $i {0}\nend")


def python(i):
    return [(f"{i} + 1", 0, f"{i + 1}\n"), (f"x = {i}", 0, ""), ("for i in range(2):\n\n    print(i, x)\n\nprint('done')", 0, f"0 {i - 1}\n1 {i - 1}\ndone\n"),
            (f"raise ValueError('v{i}')", 1, None, "ValueError"), (f"print('é{i}', end='')", 0, f"é{i}")]


def node(i):
    return [(f"{i} + 1", 0, f"{i + 1}\n"), (f"var x = {i}", 0, "undefined\n"), ("for (const i of [0, 1]) {\n\n  console.log(i, x) }", 0, f"0 {i - 1}\n1 {i - 1}\nundefined\n"),
            (f"throw new RangeError('v{i}')", 1, None, "RangeError"), (f"await 1; 'é{i}'", 0, f"'é{i}'\n")]


def sqlite3(i):
    return [(f"select {i};", None, f"{i}\n"), ("drop table if exists t;\ncreate table t(a);", None, ""), (f"select\n{i},\n'é';", None, f"{i}|é\n"),
            (f"insert into t values ({i}), (2);\nselect * from t;", None, f"{i}\n2\n"), (f"select nope{i};", None, None)]


def gdb(i):
    return [(f"output {i} + 1", None, f"{i + 1}"), (f"echo {i}\\n", None, f"{i}\n"), (f"echo a\\n\necho {i}\\n", None, f"a\n{i}\n"), (f"set $x = {i}", None, ""),
            (f"shell echo {i}", None, f"{i}\n")]


def psql(i):
    return [(f"select {i};", None, f"{i}\n"), (f"\\echo {i}", None, f"{i}\n"), (f"select\n{i},\n2;", None, f"{i}|2\n"), ("begin;\nselect 1;\ncommit;", None, "1\n"),
            (f"select nope{i};", None, None)]


PROGRAMS = {"python3": (["python3", "-q"], python), "node": (["node"], node), "sqlite3": (["sqlite3"], sqlite3), "gdb": (["gdb", "-q", "-nx"], gdb),
            "psql": (["psql", "-X", "-q", "-A", "-t", "-h", "{postgres}", "postgres", "postgres"], psql), "zsh": (["zsh"], shell), "fish": (["fish"], fish),
            "ksh93": (["ksh93"], shell), "mksh": (["mksh"], shell), "dash": (["dash"], shell), "busybox": (["busybox", "ash"], shell), "tcsh": (["tcsh"], tcsh)}


@contextlib.contextmanager
def postgres(folder):
    """A server of its own, on a socket in the folder; yields nothing where it can't be had."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        user = None
    if not binaries or not user or os.geteuid() != 0:
        yield None
        return
    place = Path(folder) / "postgres"
    place.mkdir()
    os.chown(place, user.pw_uid, user.pw_gid)
    how = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([binaries[-1] / "initdb", "-D", place / "data", "-A", "trust", "-N"], check=True, **how)
    server = subprocess.Popen([binaries[-1] / "postgres", "-D", place / "data", "-k", place, "-c", "listen_addresses="], **how)
    try:
        while subprocess.run([binaries[-1] / "pg_isready", "-h", place], stdout=subprocess.DEVNULL).returncode != 0 and server.poll() is None:
            time.sleep(0.1)
        yield place
    finally:
        server.terminate()
        server.wait()


def run_one(client, case):
    """(what was wrong or None, milliseconds)"""
    command, status, output, error = (*case, None)[:4]
    try:
        result = client.run(command, timeout=60)
    except RpcError as refused:
        return f"{command!r}: {refused}", 0
    right = (result["state"], result["exit_code"], result.get("error", {}).get("type")) == ("completed", status, error)
    wrong = not right or (output is not None and result["output"] != output)
    return f"{command!r}: {result}" if wrong else None, result["duration_ms"]


def run_program(client, name, runs, place):
    words, cases = PROGRAMS[name]
    client.new(program=[word.format(postgres=place) for word in words])
    wrong, spent = [], []
    for i in range(runs):
        said, ms = run_one(client, cases(i)[i % 5])
        spent.append(ms)
        if said:
            wrong.append(said)
    client.rpc("bash_session_close", {"session_name": client.session})
    for one in wrong[:5]:
        print(f"WRONG in {name}: {one}")
    print(f"{name}: {runs} runs, {len(wrong)} wrong, {statistics.median(spent):.0f} ms each in the median", flush=True)
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--only", action="append", choices=PROGRAMS, help="this one (all)")
    parser.add_argument("toolbox")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="toolbox-programs-") as folder:
        os.chmod(folder, 0o755)
        client = Client(Host(), options.toolbox, Path(folder) / "server", env={"HOME": "/nonexistent"})
        try:
            with postgres(folder) as place:
                for name in options.only or PROGRAMS:
                    if not shutil.which(PROGRAMS[name][0][0]) or (name == "psql" and not place):
                        print(f"{name}: not here")
                        continue
                    wrong += run_program(client, name, options.runs, place)
        finally:
            client.close()
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
