"""Calls and bytes over a connection that is kept to a container of a Docker engine, against the engine's own `docker exec`."""
import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from figure import compare, figures, limit
from lab import HANG, Broken, Times
from rows_inject import EXEC, containers, docker, has_engine, timed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from harness import stream  # noqa: E402

FIGURES, figure = figures("connection")
ROUNDS, CALLS, BYTES, TURNS = 30, 50, 1_000_000_000, 3
IN_A_ROW = 10
FORWARDED = 200_000_000


class Connected:
    """A container, and a connection to it in a directory of its own."""

    def __init__(self, lab, name):
        self.toolbox, self.target, self.name = lab.toolbox, f"docker:{name}", name
        os.environ["TOOLBOX_DIR"] = str(lab.folder / "connected")
        (self.about,) = json.loads(timed(self.toolbox, "connect", "--json", self.target)[1])

    def client(self):
        with socket.socket(socket.AF_UNIX) as where:
            where.connect(self.about["socket"])
            file = where.makefile("rwb", buffering=0)
        return stream.Stream(file, file)


@contextlib.contextmanager
def connected(lab):
    with containers(1) as (name,):
        before = os.environ.get("TOOLBOX_DIR")
        try:
            yield Connected(lab, name)
        finally:
            subprocess.run([lab.toolbox, "connect", "--stop"], capture_output=True, timeout=HANG)
            os.environ.pop("TOOLBOX_DIR")
            os.environ.update({"TOOLBOX_DIR": before} if before else {})


@figure("`remote_version` over a kept connection, by `toolbox call`", "the same by a program that holds its socket")
def calls(lab, process_row, program_row):
    if not has_engine(process_row, program_row):
        return
    base, process, program, first, floor = [], [], [], [], []
    with connected(lab) as c, _echo(c.name) as echo:
        client = c.client()
        for _ in range(ROUNDS):
            base.append(timed("docker", "exec", c.name, "true")[0])
            process.append(timed(c.toolbox, "call", c.target, "remote_version")[0])
            took = [_took(client.call, "remote_version") for _ in range(IN_A_ROW)]
            program.append(statistics.mean(took))
            first.append(took[0])
            timed("docker", "exec", c.name, "true")
            floor.append(_took(echo))
    compare(process_row, Times(process), Times(base), EXEC, 1 / 25)
    compare(program_row, Times(program), Times(base), EXEC, 1 / 200)
    program_row.note = (f"{IN_A_ROW} in a row in each turn; the first of them, right behind other processes, {1e3 * statistics.median(first):.3f} ms, "
                        f"where a line through `docker exec -i C cat` takes {1e3 * statistics.median(floor):.3f} ms")


def _took(work, *words):
    began = time.monotonic()
    work(*words)
    return time.monotonic() - began


@contextlib.contextmanager
def _echo(name):
    """Sends a line through a `cat` that runs there, and waits for it."""
    with subprocess.Popen(["docker", "exec", "-i", name, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as cat:
        def echo():
            cat.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"remote_version"}\n')
            while not cat.stdout.read(1 << 16).endswith(b"\n"):
                pass
        echo()
        yield echo
        cat.stdin.close()


@figure(f"{CALLS} tool calls, a process each: 26 runs, 24 of the editor")
def fifty(lab, row):
    if not has_engine(row):
        return
    with connected(lab) as c:
        def all_of_them(*way):
            docker("exec", c.name, "sh", "-c", "rm -rf /tmp/calls; mkdir /tmp/calls")
            session = json.loads(timed(c.toolbox, "call", *way, c.target, "bash_session_new_session")[1])["session_name"]
            began = time.monotonic()
            for i in range(CALLS):
                if i % 2 == 0 or i > 2 * 24:
                    timed(c.toolbox, "call", *way, c.target, "bash_session_run", f"session_name={session}", f"command=echo {i}")
                else:
                    timed(c.toolbox, "call", *way, c.target, "text_editor", "command=create", f"path=/tmp/calls/{i}", f"file_text={i}")
            return time.monotonic() - began
        kept, alone = zip(*[(all_of_them(), all_of_them("--no-share")) for _ in range(TURNS)])
    compare(row, Times(list(kept)), Times(list(alone)), "the same with a call of the runtime for each (`--no-share`)", 1 / 8)


@figure(f"{BYTES // 10**9} GB out of a container, through `run`", f"{BYTES // 10**9} GB into it, through `run -i`")
def bytes_through(lab, out_row, in_row):
    if not has_engine(out_row, in_row):
        return
    ours, theirs = ([], []), ([], [])
    with connected(lab) as c:
        big = lab.folder / "gigabyte"
        with open(big, "wb") as file:
            file.truncate(BYTES)
        docker("exec", c.name, "truncate", "-s", str(BYTES), "/tmp/big")

        def moved(*words, into=subprocess.DEVNULL, out=subprocess.PIPE):
            began = time.monotonic()
            with subprocess.Popen(words, stdin=into, stdout=out) as one:
                n = 0
                while data := one.stdout.read1(1 << 20):
                    n += len(data)
            if one.returncode != 0 or n not in (BYTES, len(str(BYTES)) + 1):
                raise Broken(f"{words[0]}: exit {one.returncode}, {n} bytes")
            return time.monotonic() - began

        for _ in range(TURNS):
            theirs[0].append(moved("docker", "exec", c.name, "cat", "/tmp/big"))
            ours[0].append(moved(c.toolbox, "run", c.target, "--", "cat", "/tmp/big"))
            with open(big, "rb") as file:
                theirs[1].append(moved("docker", "exec", "-i", c.name, "wc", "-c", into=file))
            with open(big, "rb") as file:
                ours[1].append(moved(c.toolbox, "run", "-i", c.target, "--", "wc", "-c", into=file))
    compare(out_row, Times(ours[0]), Times(theirs[0]), "`docker exec C cat`", 1.5)
    compare(in_row, Times(ours[1]), Times(theirs[1]), "`docker exec -i C wc -c`", 1.5)


def _copy(source, sink):
    while data := source.recv(1 << 18):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def _serve(listening, work):
    """Whoever comes gets a thread that does that with him."""
    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=work, args=(listening.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


@figure(f"{FORWARDED // 10**6} MB through `forward` on this machine")
def forwarded(lab, row):
    """On both sides of it sockets of this machine, as of the relay that it is measured against."""
    source, relay = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    port, block = source.getsockname()[1], bytes(1 << 18)

    def give(conn):
        with contextlib.suppress(OSError), conn:
            for _ in range(FORWARDED // len(block)):
                conn.sendall(block)

    def pass_on(conn):
        with conn, socket.create_connection(("127.0.0.1", port)) as up:
            _copy(up, conn)

    def taken(at):
        began, n = time.monotonic(), 0
        with socket.create_connection(("127.0.0.1", at)) as conn:
            while data := conn.recv(1 << 20):
                n += len(data)
        if n != FORWARDED // len(block) * len(block):
            raise Broken(f"{n} bytes")
        return time.monotonic() - began

    _serve(source, give)
    _serve(relay, pass_on)
    with socket.create_server(("127.0.0.1", 0)) as free:
        here = free.getsockname()[1]
    words = [lab.toolbox, "forward", "--no-share", "--dir", str(lab.folder / "there"), "local:", f"{here}:{port}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TOOLBOX_DIR": str(lab.folder / "forwarding")}) as forward:
        try:
            for _ in range(500):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", here)):
                    break
                time.sleep(0.02)
            ours, theirs = zip(*[(taken(here), taken(relay.getsockname()[1])) for _ in range(2 * TURNS)])
        finally:
            forward.terminate()
    source.close(), relay.close()
    subprocess.run([lab.toolbox, "eject", "--dir", str(lab.folder / "there"), "local:"], capture_output=True, env={**os.environ, "TOOLBOX_DIR": str(lab.folder / "forwarding")})
    compare(row, Times(list(ours)), Times(list(theirs)), "a relay between two loopback connections", 1.5)


@figure("a job's output followed: from its write to the host, median")
def followed(lab, row):
    """The job writes down when it writes; a clock for both is what this machine has, so the target is this machine."""
    env = {**os.environ, "TOOLBOX_DIR": str(lab.folder / "following")}
    there, words = str(lab.folder / "there-too"), "import time\nfor i in range(200):\n time.sleep(0.01); print(time.monotonic_ns(), flush=True)"
    connect = subprocess.run([lab.toolbox, "connect", "--json", "--dir", there, "exec:env"], env=env, capture_output=True, timeout=HANG)
    delays = []
    try:
        with socket.socket(socket.AF_UNIX) as where:
            where.connect(json.loads(connect.stdout)[0]["socket"])
            file = where.makefile("rwb", buffering=0)
        s = stream.Stream(file, file)
        (lab.folder / "clock.py").write_text(words)
        job = s.call("exec_remote_start", {"command": f"exec {sys.executable} {lab.folder}/clock.py"})["pid"]
        id = s.request("exec_remote_follow", {"pid": job})
        while (message := s.receive()) is not None and message.get("method") == "rpc.event":
            now, event = time.monotonic_ns(), message["params"]
            s.notify("rpc.ack", {"subscription": event["subscription"], "seq": event["seq"]})
            said = (event["event"].get("stdout") or "").split()
            delays += [(now - int(said[-1])) / 1e9] if said else []
            if event["event"].get("state") not in (None, "running"):
                break
        s.notify("rpc.cancel", {"id": id})
        s.sink.close()
    finally:
        subprocess.run([lab.toolbox, "connect", "--stop"], env=env, capture_output=True, timeout=HANG)
        subprocess.run([lab.toolbox, "eject", "--dir", there, "exec:env"], env=env, capture_output=True, timeout=HANG)
    if message and message.get("error", {}).get("code") == -32601:
        row.note = "not measured: this build has no such method"
        return
    if len(delays) < 50:
        raise Broken(f"{len(delays)} events; {message}")
    limit(row, statistics.median(delays), "s", 0.001)
    row.note = f"{len(delays)} events; the longest {1e3 * max(delays):.1f} ms"


@figure("a kept connection at rest, memory on the host", "the same in the container")
def memory(lab, host_row, container_row):
    if not has_engine(host_row, container_row):
        return
    with connected(lab) as c:
        timed(c.toolbox, "call", c.target, "remote_version")
        time.sleep(18)  # two signs of life: what a start has mapped goes a second behind one
        processes = [line.split(None, 1) for line in docker("top", c.name, "-eo", "pid,args").splitlines()[1:]]
        there = [pid for pid, words in processes if " exec" in words and "toolbox" in words]
        for row, pid in ((host_row, c.about["pid"]), (container_row, there[0])):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            limit(row, int(re.search(r"^Rss:\s+(\d+)", rollup, re.M).group(1)), "KiB", 400)
