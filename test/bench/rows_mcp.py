"""MCP servers: what the bridge adds to the way of a request, long answers, many requests at once."""
import json
import os
import socket
import subprocess
import threading
import time

from figure import compare, count_wrong, figures, limit
from lab import HANG, Broken, Times, children, memory_kb
from socket_client import Connection

FIGURES, figure = figures("mcp")
LENGTH = 100_000_000


def program(lab, name):
    return os.path.join(os.path.dirname(lab.exit0), name)


class Server:
    """An MCP server in a place of its own; `path` is the socket of its keeper."""

    def __init__(self, lab, *args):
        self.place = lab.place()
        command = {"command": program(lab, "mcpecho"), "args": list(args)}
        self.session = self.place.call("mcp_launch_server", server_params=command)
        self.path, = map(str, self.place.dir.glob("Mcp.*"))

    def params(self, id, **params):
        return {"session_id": self.session, "request": {"jsonrpc": "2.0", "id": id, "method": "m", "params": params}}


def converse(sock, messages, ends, times):
    """Sends one message after the other, each when the answer to the one before has come; adds what each takes."""
    for message, end in zip(messages, ends):
        start = time.perf_counter()
        sock.sendall(message)
        answer = sock.recv(65536)
        while not answer.endswith(end):
            more = sock.recv(65536)
            if not more:
                raise Broken(f"{answer} instead of {end}")
            answer += more
        times.append(1000 * (time.perf_counter() - start))


def connected(path):
    deadline = time.monotonic() + HANG
    while True:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(HANG)
        try:
            sock.connect(path)
            return sock
        except OSError:
            sock.close()
            if time.monotonic() > deadline:
                raise


def timed(function, *args):
    start = time.monotonic()
    function(*args)
    return time.monotonic() - start


@figure("1,000 MCP requests in a row on one connection (1,000 times the median)")
def in_a_row(lab, row):
    server, path = Server(lab), str(lab.folder / "relay")
    # a session of its own, as the keeper has: the kernel shares out time by session
    relay = subprocess.Popen([program(lab, "relay"), path, program(lab, "mcpecho")], start_new_session=True)
    bridged, bare = connected(server.path), connected(path)
    plain = [json.dumps({"jsonrpc": "2.0", "id": i, "method": "m"}, separators=(",", ":")).encode() for i in range(1000)]
    calls = [b'{"jsonrpc":"2.0","id":1,"method":"mcp_send_request","params":{"session_id":0,"request":%b}}' % m for m in plain]
    posts = [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(call), call) for call in calls]
    lines = [m + b"\n" for m in plain]
    ours, theirs = [], []
    for _ in range(15):
        converse(bridged, posts, [b'"result":%d}}' % i for i in range(1000)], ours)
        converse(bare, lines, [b'"result":%d}\n' % i for i in range(1000)], theirs)
    bridged.close()
    bare.close()
    relay.wait()
    compare(row, Times(ours), Times(theirs), "a relay that only copies", 2.0)


# ---- a long answer ----

def count_bytes(command, want, env=None, stdin=None):
    done = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, env=env)
    total = 0
    while data := os.read(done.stdout.fileno(), 1 << 20):
        total += len(data)
    done.stdout.close()
    if done.wait() != 0 or not want <= total <= want + 200:
        raise Broken(f"{command[0]}: {total} bytes")


def by_connection(path, body, want):
    sock = connected(path)
    sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    total = 0
    while data := sock.recv(1 << 20):
        total += len(data)
    sock.close()
    if not want <= total <= want + 400:
        raise Broken(f"{total} bytes")


@figure("one answer of 100 MB from an MCP server, over a connection", "the same through exec",
        "its keeper afterwards, resident")
def long_answer(lab, row, by_exec, memory):
    server = Server(lab)
    params = server.params(1, n=LENGTH)
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "mcp_send_request", "params": params}, separators=(",", ":"))
    path, line = lab.folder / "long", lab.folder / "long-request"
    line.write_text(request)
    with open(path, "wb") as file:
        file.write(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * LENGTH + b'"}\n')
    env = {**server.place.env, "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": str(1 << 30)}
    direct, called, bare = [], [], []
    for _ in range(5):
        bare.append(timed(count_bytes, ["cat", str(path)], LENGTH))
        direct.append(timed(by_connection, server.path, request.encode(), LENGTH))
        with open(line) as file:
            called.append(timed(count_bytes, [lab.toolbox, "exec"], LENGTH, env, file))
    compare(row, Times(direct), Times(bare), "cat of the same through a pipe", 3.0)
    compare(by_exec, Times(called), Times(bare), "cat of the same through a pipe", 5.0)
    keeper, = children(server.place.server())
    limit(memory, memory_kb(keeper)[0], "KiB", 2048)


# ---- many at once ----

@figure("50 MCP requests open at once, answered in reverse: wrong answers")
def reverse(lab, row):
    server, wrong = Server(lab, "50"), []

    def call(i):
        connection = Connection(server.path)
        response = connection.rpc("mcp_send_request", **server.params(i))
        connection.close()
        if response != {"jsonrpc": "2.0", "id": i, "result": i}:
            wrong.append(response)

    for _ in range(20):
        threads = [threading.Thread(target=call, args=(i,)) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    count_wrong(row, len(wrong), str(wrong[:1] or ""))
