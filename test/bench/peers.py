#!/usr/bin/python3
"""Prints what toolbox and its peers cost, side by side in one run: the tools that inspect_ai injects, `docker exec`, and a
process that does nothing.

usage: peers.py [--quick] [--write FILE] TOOLBOX PROGRAMS

TOOLBOX: the binary. PROGRAMS: the folder of exit0 and rounds. scripts/setup peers installs what it is measured against.

What is short is timed by turns (rounds.c); medians of the quieter half of the rounds. It ends with a table in Markdown,
which --write puts into a file, between its marks.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration"), str(HERE.parent / "inspect")]

from both import Side, unpack_reference  # noqa: E402
from harness import docker, peers, roots  # noqa: E402
from harness.containers import REPO, Options  # noqa: E402
from lab import Broken, Command, Lab, Place  # noqa: E402
from peers_proxy import family, rows as proxies  # noqa: E402

TOOLS = "/var/tmp/.da7be258e003d428"
DROPIN = str(REPO / "scripts/inspect-dropin")
HOST = {"wait_for_output": 30, "idle_timeout": 0.5, "max_output_bytes": 10 << 20}  # as bash_session() asks


def tree_size(folder):
    return sum(path.lstat().st_size for path in Path(folder).rglob("*") if not path.is_dir())


def memory_kb(side):
    """Memory of the server and all below it, shared pages split among those who share them."""
    answer = side.exec(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "remote_version"}))[0]
    total = 0
    for pid in family(int(re.findall(r"\d+", answer["result"])[-1])):
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


class Pair:
    """Both, each with a server of its own, and the place where rounds are run."""

    def __init__(self, lab, reference, rounds):
        self.lab, self.rounds_wanted = lab, rounds
        self.place = Place(lab, lab.folder / "rounds")
        self.sides = []
        for name, program in (("toolbox", lab.toolbox), ("reference", reference)):
            (lab.folder / name).mkdir()
            self.sides.append(Side(program, lab.folder / name))
        # Each finds its own server in one environment: TOOLBOX_DIR goes first, and the other doesn't know it.
        ours, theirs = [side.env["INSPECT_SANDBOX_TOOLS_DIR"] for side in self.sides]
        self.place.env |= {"TOOLBOX_DIR": ours, "INSPECT_SANDBOX_TOOLS_DIR": theirs}

    def command(self, side, *words, request=None, expect=None, after=None):
        return Command(side.program, *words, requests=[request] if request else (), expect=expect, after=after)

    def by_turns(self, n, make):
        """Medians of make(side) for both, and of a process that does nothing, in seconds."""
        commands = [*map(make, self.sides), self.place.nothing()]
        return [times.median for times in self.place.rounds(max(2, int(n * self.rounds_wanted)), *commands)]


# ---- the rows: (what, unit, toolbox, reference, nothing or docker exec) ----


def calls(pair):
    lab = pair.lab
    version, remote = lab.request("version"), lab.request("remote_version")
    yield "`exec` of `version`", "s", *pair.by_turns(16, lambda s: pair.command(s, "exec", request=version, expect="result"))
    for side in pair.sides:
        side.cli("start-server", check=True)
    yield "`exec` of a call to the running server", "s", *pair.by_turns(
        16, lambda s: pair.command(s, "exec", request=remote, expect="result"))
    for side in pair.sides:
        side.cli("stop-server", check=True)
    stop = [f"{side.program} stop-server >/dev/null 2>&1" for side in pair.sides]
    after = dict(zip(map(id, pair.sides), stop))
    yield "`start-server`", "s", *pair.by_turns(6, lambda s: pair.command(s, "start-server", after=after[id(s)]))
    yield "first call, which starts the server", "s", *pair.by_turns(
        4, lambda s: pair.command(s, "exec", request=remote, expect="result", after=after[id(s)]))


def at_rest(pair):
    for side in pair.sides:
        side.cli("start-server", check=True)
    time.sleep(1)
    yield "idle server, memory", "KiB", *map(memory_kb, pair.sides), None


def sessions(pair):
    asked = pair.lab.request("bash_session", session_name="BashSession", input="echo hi\n", **HOST)
    for side in pair.sides:
        side.call("bash_session_new_session", {})
        side.call("bash_session", {"session_name": "BashSession", "input": "PS1='$ '\n", **HOST})
    yield "`bash_session`: `echo hi` as the host asks for it", "s", *pair.by_turns(
        8, lambda s: pair.command(s, "exec", request=asked, expect="hi"))
    took = []
    for side in pair.sides:
        begin = time.monotonic()
        for _ in range(100):
            side.post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "bash_session_new_session", "params": {}}))
        took.append(time.monotonic() - begin)
    yield "100 sessions more, over the socket", "s", *took, None
    time.sleep(2)
    yield "server with 101 sessions, shells included: memory", "KiB", *map(memory_kb, pair.sides), None


def jobs(pair):
    size, took = 20_000_000, []
    for side in pair.sides:
        begin, got, ack = time.monotonic(), 0, 0
        side.call("exec_remote_start", {"command": f"yes 123456789 | head -c {size}"})
        while True:
            answer = side.exec(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "exec_remote_poll",
                                           "params": {"pid": side.known["P"], "ack_seq": ack}}))[0]["result"]
            got, ack = got + len(answer["stdout"]), answer["seq"]
            if answer["state"] != "running":
                break
        if got != size:
            raise Broken(f"{side.program}: {got} bytes of {size}")
        took.append(time.monotonic() - begin)
    yield "20 MB of a job's output, polled by `exec`", "s", *took, None


def injections(artefacts):
    """Into running containers, as the host does: the artefact to tar, then start-server."""
    with tempfile.TemporaryDirectory() as folder, docker.runtime(folder) as runtime:
        script = f"mkdir -p -m 700 {TOOLS} && cd {TOOLS} && tar xzf -"
        took, bare = [], []
        for artefact in artefacts:
            container = runtime.start(roots.get("debian"), Options())
            try:
                run = ["docker", "exec", "--interactive", container.name]
                begin = time.monotonic()
                subprocess.run([*run, "true"], env=runtime.env, check=True, stdin=subprocess.DEVNULL)
                bare.append(time.monotonic() - begin)
                begin = time.monotonic()
                subprocess.run([*run, "sh", "-c", script], env=runtime.env, input=artefact.read_bytes(), check=True)
                subprocess.run([*run, f"{TOOLS}/inspect-sandbox-tools", "start-server"], env=runtime.env, check=True,
                               stdin=subprocess.DEVNULL, capture_output=True)
                took.append(time.monotonic() - begin)
            finally:
                container.destroy()
        yield "injection into a running Docker container, server started", "s", *took, min(bare)


def samples():
    """A sample of 50 tool calls in a Docker sandbox, by the real inspect_ai with its mock model."""
    took = {}
    for tools, more in (("toolbox", []), ("reference", ["-k", "test_fifty_calls"])):
        with tempfile.NamedTemporaryFile() as report:
            env = {**os.environ, "BENCH_REPORT": report.name}
            done = subprocess.run([REPO / "test/inspect/run", "--tools", tools, str(REPO / "test/inspect/fifty_calls.py"), *more],
                                  env=env, capture_output=True, text=True)
            if done.returncode != 0:
                raise Broken(done.stdout[-2000:] + done.stderr[-500:])
            took[tools] = json.loads(Path(report.name).read_text())
    ours = took["toolbox"]
    for what, name in (("50 tool calls in a Docker sandbox, end to end", "sample"), ("of that, the first call: injection", "first")):
        yield what, "s", ours[name], took["reference"][name], None
    yield "the 50 calls with `--sandbox toolbox`, injection and all", "s", ours["held_sample"], took["reference"]["sample"], None
    for what, name in (("500 × `sandbox().exec([\"true\"])`, with it and with `docker exec` for each", "row"), ("50 of them at once", "at_once")):
        yield what, "s", ours[f"held_{name}"], ours[name], None


def shown(number, unit):
    if number is None:
        return ""
    if unit == "s":
        return f"{number * 1e3:,.2f} ms" if number < 1 else f"{number:,.2f} s"
    return f"{number:,.0f} {unit}"


BEGIN, END = "<!-- written by make bench-peers -->\n", "<!-- end -->\n"


def this_machine(peer):
    """What the figures are of."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    [package] = peer.glob("lib/python3*/site-packages/inspect_ai-*.dist-info")
    engine = subprocess.run(["docker", "--version"], capture_output=True, text=True).stdout if shutil.which("docker") else "none"
    return (f"{os.cpu_count()} processors ({model[1] if model else os.uname().machine}), Linux {os.uname().release.split('-')[0]}, load "
            f"{os.getloadavg()[0]:.1f} at the start; inspect_ai {package.name.split('-')[1].removesuffix('.dist')}; "
            f"{engine.split(',')[0] or 'no engine'}.")


def table(rows, machine):
    lines = [machine, "", "| what | toolbox | the reference | ratio | nothing |", "| --- | ---: | ---: | ---: | ---: |"]
    for what, unit, one, other, bare in rows:
        lines.append(f"| {what} | {shown(one, unit)} | {shown(other, unit)} | **{other / one:,.1f}** | {shown(bare, unit)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no evaluation")
    parser.add_argument("--write", type=Path, help="put the table into this file")
    for name in ("toolbox", "programs"):
        parser.add_argument(name)
    options = parser.parse_args()
    peer = peers.folder("venv-inspect")
    subprocess.run([DROPIN, "--venv", peer, "uninstall"], check=True, stdout=subprocess.DEVNULL)
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    [theirs] = peer.glob(f"lib/python3*/site-packages/inspect_ai/binaries/inspect-sandbox-tools-{arch}-v*")
    rows, machine = [], this_machine(peer)

    def add(found):
        for row in found:
            rows.append(row)
            print(f"{row[0]:60} {' '.join(f'{shown(number, row[1]):>14}' for number in row[2:])}", flush=True)

    with Lab(options.toolbox, options.programs) as lab:
        subprocess.run([DROPIN, "make", lab.folder / "dropin"], check=True, stdout=subprocess.DEVNULL)
        ours = lab.folder / "dropin" / theirs.name
        program = unpack_reference(theirs, lab.folder / "unpacked")
        add([("on disk", "bytes", os.path.getsize(lab.toolbox), tree_size(program.parent), None),
             ("bytes to inject", "bytes", ours.stat().st_size, theirs.stat().st_size, None)])
        pair = Pair(lab, str(program), 0.25 if options.quick else 1)
        try:
            for group in (calls, at_rest, sessions, jobs):
                add(group(pair))
        finally:
            for side in pair.sides:
                side.cli("stop-server")
        add(proxies([lab.toolbox, str(program)]))
        if shutil.which("docker"):
            add(injections([ours, theirs]))
            if not options.quick:
                add(samples())
    text = table(rows, machine)
    print(f"\n{text}")
    if options.write:
        head, rest = options.write.read_text().split(BEGIN, 1)
        options.write.write_text(f"{head}{BEGIN}{text}{END}{rest.split(END, 1)[1]}")


main()
