"""The front door: requests a second, many clients, large requests and answers."""
import contextlib
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

from figure import compare, figures
from lab import HANG, Broken
from socket_client import Connection

FIGURES, figure = figures("server")
NGINX = "nginx (one worker) that answers the same bytes"
CONFIG = """daemon off;
pid {folder}/nginx.pid;
worker_processes 1;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen unix:{folder}/nginx.sock;
        default_type application/json;
        location / {{ return 200 '{answer}'; }}
    }}
}}
"""


def socket_of(place):
    place.server()
    return str(next(place.dir.glob("server.*")))


@contextlib.contextmanager
def in_foreground(argv, env, sockets):
    """A server below us, until the end; the path of its socket. In the background it would be in a session, and so in
    a scheduling group, of its own, and be compared by the load of the others."""
    with subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 10
            while not (found := list(sockets())):
                if time.monotonic() > until or process.poll() is not None:
                    raise Broken(f"{argv[0]} does not start")
                time.sleep(0.01)
            yield str(found[0])
        finally:
            process.terminate()


def nginx(lab, answer):
    folder = lab.folder / "nginx"
    folder.mkdir()
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, answer=answer))
    argv = [shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-p", folder, "-c", folder / "nginx.conf"]
    return in_foreground(argv, None, lambda: folder.glob("*.sock"))


def load(lab, *args):
    """(seconds for all, median seconds of one, and of one beside idle connections)"""
    done = subprocess.run([lab.httpload, *map(str, args)], capture_output=True, text=True, timeout=HANG)
    if done.returncode != 0:
        raise Broken(f"httpload: {done.stderr.strip()}")
    return [int(word) / 1e9 for word in done.stdout.split()]


def by_turns(rounds, *measures):
    """Each a list of times; the first round warms up."""
    times = [[measure() for measure in measures] for _ in range(rounds + 1)][1:]
    return [SimpleNamespace(median=statistics.median(column), least=min(column)) for column in zip(*times)]


def rates(lab, path, other, *rows):
    for row, n in zip(rows, (1, 64)):
        ours, theirs = by_turns(9, lambda: load(lab, path, n, 20000, 0)[0], lambda: load(lab, other, n, 20000, 0)[0])
        compare(row, ours, theirs, NGINX, 2.0)
        row.note = f"{20000 / ours.median:,.0f} requests a second against {20000 / theirs.median:,.0f}"


@figure("20,000 times remote_version on one connection", "the same on 64 connections at once")
def rate(lab, one, many):
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin"):
        one.note = many.note = "not measured: nginx is not installed (scripts/setup bench)"
        return
    place = lab.place()
    with in_foreground([lab.toolbox, "server"], place.env, lambda: place.dir.glob("server.*")) as path:
        server = Connection(path)
        answer = server.post(b'{"jsonrpc":"2.0","id":1,"method":"remote_version"}').decode()
        server.close()
        with nginx(lab, answer) as other:
            rates(lab, path, other, one, many)


@figure("a request beside 1,000 idle connections")
def idle(lab, row):
    """By turns in one process (httpload.c): from one run to the next the scheduler alone makes a difference of several times."""
    path = socket_of(lab.place())
    times = [load(lab, path, 1, 300, 1000)[1:] for _ in range(5)]
    alone, beside = (SimpleNamespace(median=statistics.median(column), least=min(column)) for column in zip(*times))
    compare(row, beside, alone, "the same without them", 1.2)


def processor_seconds(pid):
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def exchange(path, pid, body, n):
    """Sends a request and reads an answer of n bytes or more; the time that the server's own work took. (What passes until
    then is mostly the other's reading and what else the machine does: a long exchange is interrupted, a short one isn't.)"""
    server = Connection(path)
    began = processor_seconds(pid)
    got = len(server.post(body))
    seconds = processor_seconds(pid) - began
    server.close()
    if got < n:
        raise Broken(f"an answer of {got} bytes")
    return seconds


@figure("a request of 60 MiB", "an answer of 60 MiB")
def large(lab, request_row, answer_row):
    """The answer repeats the request's id; a member that means nothing is only read."""
    place = lab.place()
    path, pid = socket_of(place), place.server()

    def request(mib, key):
        return b'{"jsonrpc":"2.0","method":"remote_version","id":1,"%s":"%s"}' % (key, b"x" * (mib << 20))
    for row, key in ((request_row, b"more"), (answer_row, b"id")):
        bodies = {mib: request(mib, key).replace(b'"id":1,"id"', b'"id"') for mib in (6, 60)}
        big, small = by_turns(5, *(lambda mib=mib: exchange(path, pid, bodies[mib], mib << 20 if key == b"id" else 1)
                                   for mib in (60, 6)))
        compare(row, big, small, "one of 6 MiB", 11.0)
