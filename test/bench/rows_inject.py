"""Injection into containers of a Docker engine, against the engine's own `docker exec C true`."""
import concurrent.futures
import contextlib
import json
import os
import secrets
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from figure import compare, figures, limit
from lab import HANG, Broken, Times

FIGURES, figure = figures("inject")
EXEC = "`docker exec C true`"
ROUNDS, MANY, JOBS = 30, 200, 8


def docker(*words, **how):
    done = subprocess.run(["docker", *words], capture_output=True, timeout=HANG, **how)
    if done.returncode != 0:
        raise Broken(f"docker {words[0]}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return done.stdout.decode()


@contextlib.contextmanager
def containers(count):
    """Names of so many containers of BusyBox, which sleep."""
    image, tag = f"toolbox-bench:{secrets.token_hex(4)}", secrets.token_hex(4)
    names = [f"toolbox-bench-{tag}-{i}" for i in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("bin", "tmp", "run", "opt"):
            Path(folder, name).mkdir()
        busybox = shutil.copy(shutil.which("busybox"), f"{folder}/bin/busybox")
        for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            if name != "busybox":
                Path(folder, "bin", name).symlink_to("busybox")
        with subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE) as tar:
            docker("import", "-", image, stdin=tar.stdout)

    def run(name):
        docker("run", "-d", "--pull=never", "--network=none", "--name", name, image, "/bin/sleep", "3600")

    try:
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(run, names))
        yield names
    finally:
        for first in range(0, count, 50):
            docker("rm", "-f", *names[first : first + 50])
        docker("rmi", "-f", image)


def timed(*words):
    """Seconds, and what it printed."""
    began = time.monotonic()
    done = subprocess.run(words, capture_output=True, timeout=HANG)
    if done.returncode != 0:
        raise Broken(f"{' '.join(words[:3])}: exit {done.returncode}: {(done.stderr or done.stdout).decode(errors='replace')[-300:]}")
    return time.monotonic() - began, done.stdout


def has_engine(*rows):
    """Whether there is one; says in the rows where there is none."""
    there = shutil.which("docker") and shutil.which("busybox") and subprocess.run(["docker", "version"], capture_output=True).returncode == 0
    for row in rows:
        row.note = "" if there else "not measured: no Docker engine answers, or there is no busybox"
    return there


@figure("injection, all steps", "the same, the second time", "bytes sent beyond the binary's own", "calls of the runtime")
def one(lab, first_row, second_row, bytes_row, calls_row):
    if not has_engine(first_row, second_row, bytes_row, calls_row):
        return
    base, first, second, found = [], [], [], {}
    with containers(1) as (name,):
        for _ in range(ROUNDS):
            base.append(timed("docker", "exec", name, "true")[0])
            seconds, text = timed(lab.toolbox, "inject", "--json", f"docker:{name}")
            first.append(seconds)
            found = json.loads(text)
            second.append(timed(lab.toolbox, "inject", f"docker:{name}")[0])
            timed(lab.toolbox, "eject", f"docker:{name}")
    base = Times(base)
    compare(first_row, Times(first), base, EXEC, 6)
    compare(second_row, Times(second), base, EXEC, 2)
    limit(bytes_row, found["sent"] - os.path.getsize(lab.toolbox), "bytes", 4096)
    limit(calls_row, found["calls"], "", 4)


@figure(f"injection into {MANY} containers, {JOBS} at a time")
def many(lab, row):
    if not has_engine(row):
        return
    with containers(MANY) as names:
        targets = [f"docker:{name}" for name in names]
        alone = [timed(lab.toolbox, "inject", target)[0] for target in targets[:20]]
        timed(lab.toolbox, "eject", *targets[:20])
        seconds, text = timed(lab.toolbox, "inject", "-j", str(JOBS), "--json", *targets)
        if sum(json.loads(line)["state"] == "placed" for line in text.splitlines()) != MANY:
            raise Broken("not all were made ready")
        timed(lab.toolbox, "eject", "-j", str(JOBS), *targets[:20])
        alone += [timed(lab.toolbox, "inject", target)[0] for target in targets[:20]]  # the machine's load may have changed
    row.unit, row.value, row.baseline, row.against, row.bound = "s", seconds, statistics.median(alone), "one container alone", 60
