"""Jobs: latency, throughput, memory, many of them, and the end of the server."""
import json
import os
import select
import signal
import subprocess
import threading
import time

from figure import compare, count_wrong, figures, limit
from lab import HANG, Broken, Times, children, status_field
from socket_client import Connection

FIGURES, figure = figures("job")
GIGABYTE = 1_000_000_000


def connect(place):
    place.server()
    path, = map(str, place.dir.glob("server.*"))
    return Connection(path)


def finish(server, pid):
    """Reads a job to its end: (exit code, stdout)."""
    out, seq = [], 0
    while True:
        answer = server.rpc("exec_remote_wait", pid=pid, ack_seq=seq, timeout=HANG)
        out.append(answer["stdout"])
        seq = answer["seq"]
        if answer["state"] != "running":
            return answer["exit_code"], "".join(out)


def timed(function, *args):
    start = time.monotonic()
    function(*args)
    return time.monotonic() - start


def true_by_job(server):
    if finish(server, server.rpc("exec_remote_start", argv=["/bin/true"])["pid"])[0] != 0:
        raise Broken("true did not end with 0")


def true_bare():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)


@figure("true as a job, from start to completed, through the socket")
def start_to_end(lab, row):
    server = connect(lab.place())
    jobs, bare = [], []
    for _ in range(300):
        jobs.append(timed(true_by_job, server))
        bare.append(timed(true_bare))
    compare(row, Times(jobs, 0), Times(bare, 0), "fork, exec and wait of the same", 2.5)


# ---- a gigabyte ----

def cat_bare(path):
    done = subprocess.Popen(["cat", path], stdout=subprocess.PIPE)
    total = 0
    while data := os.read(done.stdout.fileno(), 1 << 20):
        total += len(data)
    done.stdout.close()
    if done.wait() != 0 or total != GIGABYTE:
        raise Broken(f"cat: {total} bytes")


def exec_raw(place, method, **params):
    """One call through `toolbox exec`: the answer's bytes."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    env = {**place.env, "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": str(10 << 20)}
    done = subprocess.run([place.lab.toolbox, "exec"], input=request, env=env, capture_output=True, timeout=HANG)
    if done.returncode != 0:
        raise Broken(f"{method}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def poll_all(place, pid):
    """Seconds that the polls took, and bytes that came; the answers are read outside of the time."""
    spent, total, seq, state = 0.0, 0, 0, "running"
    while state == "running":
        start = time.monotonic()
        answer = exec_raw(place, "exec_remote_wait", pid=pid, ack_seq=seq)
        spent += time.monotonic() - start
        result = json.loads(answer)["result"]
        seq, state, total = result["seq"], result["state"], total + len(result["stdout"])
    if total != GIGABYTE:
        raise Broken(f"{total} bytes of a gigabyte")
    return spent


def peak_of(pid, stop, peak):
    while not stop.is_set():
        try:
            peak[0] = max(peak[0], status_field(pid, "VmHWM"))
        except (OSError, KeyError):
            return
        stop.wait(0.01)


@figure("1 GB of a job's output polled through exec", "keeper meanwhile, at the most: resident memory")
def gigabyte(lab, row, memory):
    place, path = lab.place(), lab.big_file(GIGABYTE)
    polls, bare, peak = [], [], [0]
    for _ in range(3):
        bare.append(timed(cat_bare, path))
        pid = place.call("exec_remote_start", argv=["cat", str(path)])["pid"]
        keeper, = children(place.server())
        stop = threading.Event()
        watch = threading.Thread(target=peak_of, args=(keeper, stop, peak))
        watch.start()
        polls.append(poll_all(place, pid))
        stop.set()
        watch.join()
    compare(row, Times(polls, 0), Times(bare, 0), "cat of the same through a pipe", 15)
    limit(memory, peak[0], "KiB", 230 * 1024)


@figure("keeper of a slow job that is read as it writes, resident memory")
def keeping_up(lab, row):
    place = lab.place()
    server = connect(place)
    command = f"i=0; while [ $i -lt 100 ]; do head -c 1000000 {lab.big_file()}; i=$((i+1)); sleep 0.05; done"
    pid = server.rpc("exec_remote_start", command=command)["pid"]
    keeper, = children(place.server())
    peak, stop = [0], threading.Event()
    watch = threading.Thread(target=peak_of, args=(keeper, stop, peak))
    watch.start()
    code, out = finish(server, pid)
    stop.set()
    watch.join()
    if (code, len(out)) != (0, 100_000_000):
        raise Broken(f"{len(out)} bytes")
    limit(row, peak[0], "KiB", 12 * 1024)


@figure("keeper with both streams full and all unacknowledged that may be, resident memory")
def full(lab, row):
    place = lab.place()
    server = connect(place)
    flood = "tr '\\0' '\\377' </dev/zero"  # three bytes each as text
    pid = server.rpc("exec_remote_start", command=f"{flood} & exec {flood} >&2")["pid"]
    keeper, = children(place.server())
    deadline = time.monotonic() + HANG
    while status_field(keeper, "VmRSS") < 200 << 10 and time.monotonic() < deadline:
        time.sleep(0.05)
    for _ in range(8):
        server.rpc("exec_remote_poll", pid=pid, ack_seq=0)
    limit(row, status_field(keeper, "VmHWM"), "KiB", 230_000_000 // 1024)
    server.rpc("exec_remote_kill", pid=pid, ack_seq=0)


@figure("one poll while 500 jobs run sleep")
def many(lab, row):
    place = lab.place()
    server = connect(place)
    pids = [server.rpc("exec_remote_start", argv=["sleep", "1000"])["pid"]]
    command = place.exec(lab.request("exec_remote_poll", pid=pids[0], ack_seq=0), expect='"state":"running"')
    alone, = place.rounds(300, command)
    pids += [server.rpc("exec_remote_start", argv=["sleep", "1000"])["pid"] for _ in range(499)]
    crowded, = place.rounds(300, command)
    compare(row, crowded, alone, "the same with that job alone", 1.5)
    place.stop()


@figure("kill -9 of the server with 50 jobs: jobs not whole")
def killed(lab, row):
    place, wrong = lab.place(), 0
    server = connect(place)
    command = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; sleep 1; exit {}"
    pids = [server.rpc("exec_remote_start", command=command.format(i))["pid"] for i in range(50)]
    handle = os.pidfd_open(place.server())
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    select.select([handle], [], [])
    os.close(handle)
    server = connect(place)
    want = "".join(f"line {i}\n" for i in range(2000))
    for i, pid in enumerate(pids):
        wrong += finish(server, pid) != (i, want)
    count_wrong(row, wrong)
