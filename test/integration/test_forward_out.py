"""`toolbox forward -D`: a proxy in a target that goes out through the host, to everything or to what is named."""
import contextlib
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import threading

import pytest

from harness import needs, processes
from harness.machine import HANG
from test_forward import BYTES, Echo, _dial, _free_port

WORLD = pathlib.Path(__file__).parent / "outlet_world.py"


class Proxy:
    """A client of one that listens at a path."""

    def __init__(self, process, path, seen):
        self.process, self.path, self.seen = process, path, seen
        self.lines = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def wrote(self, **want):
        """Waits for a decision that was written down with these members."""
        processes.wait_until(lambda: any(want.items() <= line.items() for line in list(self.lines)), f"a line with {want}")
        return True

    def end(self):
        self.process.terminate()
        self.process.wait(HANG)
        self.reader.join(HANG)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def say(self, *pieces):
        """What is answered to that, until the end or what marks it."""
        with _dial(str(self.path)) as s:
            for piece in pieces:
                s.sendall(piece)
            return _all(s)

    def tunnel(self, where, *pieces, end=b""):
        """What a tunnel to there gives back for these bytes; else what refuses it."""
        with _dial(str(self.path)) as s:
            s.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head and (more := s.recv(65536)):
                head += more
            if b" 200 " not in head:
                return head + _all(s)
            for piece in pieces:
                s.sendall(piece)
            return _all(s, head.split(b"\r\n\r\n", 1)[1], end)

    def got(self, port):
        path = self.seen / str(port)
        return path.read_bytes() if path.exists() else b""


def _all(s, said=b"", end=b""):
    try:
        while not (end and end in said) and (more := s.recv(65536)):
            said += more
    except ConnectionResetError:
        pass
    return said


def hello(name):
    """What TLS says first."""
    out = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name) if name else _nameless(out)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return out.read()


def _nameless(out):
    context = ssl.create_default_context()
    context.check_hostname = False
    return context.wrap_bio(ssl.MemoryBIO(), out)


ANSWERED = b"\x16\x03\x03\x00\x02xx"
ALERT = b"\x15\x03\x01\x00\x02\x02\x70"


@pytest.fixture
def proxy(apart, client, workdir):
    """Starts one with these options, in a network of its own."""
    needs.program("ip")
    started = []

    def start(*options):
        path, seen = workdir / "proxy", workdir / "seen"
        process = client.machine.popen([*apart, "unshare", "--net", sys.executable, WORLD, seen, client.binary, "forward", "-D", path, *options,
                                        "--dir", workdir / "there", "local:"], env={"TOOLBOX_DIR": str(workdir / "place")})
        assert process.stdout.readline(), process.communicate(timeout=HANG)
        started.append(Proxy(process, path, seen))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture
def anywhere(client, workdir):
    port, there = _free_port(), workdir / "there"
    process = client.popen("forward", "-D", port, "--dir", str(there), "local:")
    assert process.stdout.readline(), process.communicate(timeout=HANG)
    yield port
    process.terminate()
    process.communicate(timeout=HANG)


def _socks5(port, host=None):
    return b"\5\1\0" + b"\5\1\0" + (b"\3" + bytes([len(host)]) + host if host else b"\1\x7f\0\0\1") + int(port).to_bytes(2, "big")


def _socks4(port, host=None):
    return b"\4\1" + int(port).to_bytes(2, "big") + (b"\0\0\0\1me\0" + host + b"\0" if host else b"\x7f\0\0\1me\0")


@pytest.mark.parametrize("ask, answer", [
    (lambda port: f"CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), b"HTTP/1.1 200 Connection established\r\n\r\n"),
    (lambda port: _socks5(port), b"\5\0\5\0\0\1" + bytes(6)),
    (lambda port: _socks5(port, b"localhost"), b"\5\0\5\0\0\1" + bytes(6)),
    (lambda port: _socks4(port), b"\0\x5a" + bytes(6)),
    (lambda port: _socks4(port, b"localhost"), b"\0\x5a" + bytes(6)),
], ids=["connect", "socks5", "socks5-name", "socks4", "socks4a"])
@pytest.mark.parametrize("piece", [1, 1000])
def test_every_way_to_ask(anywhere, ask, answer, piece):
    echo = Echo()
    with _dial(anywhere) as s:
        words = ask(echo.where)
        for at in range(0, len(words), piece):
            s.sendall(words[at : at + piece])
        sender = threading.Thread(target=lambda: (s.sendall(BYTES), s.shutdown(socket.SHUT_WR)))
        sender.start()
        said = _all(s)
        sender.join(HANG)
    assert said[: len(answer)] == answer
    assert said[len(answer) :] == BYTES + f" {len(BYTES)}".encode()
    echo.close()


def test_a_request_of_http_goes_on_without_what_is_the_proxys(anywhere):
    echo = Echo()
    with _dial(anywhere) as s:
        s.sendall(f"POST http://localhost:{echo.where}/x HTTP/1.1\r\nHost: other\r\nProxy-Authorization: x\r\nContent-Length: 3\r\n\r\nab".encode())
        s.sendall(b"cGET / HTTP/1.1\r\n")
        s.shutdown(socket.SHUT_WR)
        said = _all(s)
    assert said.startswith(f"POST /x HTTP/1.1\r\nHost: localhost:{echo.where}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc ".encode())
    echo.close()


@pytest.mark.parametrize("ask, answer", [
    (f"CONNECT localhost:{_free_port()} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), b"HTTP/1.1 502 "),
    (_socks5(_free_port()), b"\5\0\5\4"),
    (_socks4(_free_port()), b"\0\x5b"),
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 400 "),
    (b"\5\1\2", b"\5\xff"),
    (b"\0\1\2\r\n\r\n", b"HTTP/1.1 400 "),
])
def test_what_cannot_be_had(anywhere, ask, answer):
    with _dial(anywhere) as s:
        s.sendall(ask)
        assert _all(s).startswith(answer)


def test_many_clients_and_slow_ones(anywhere):
    echo, said = Echo(), {}
    slow = [_dial(anywhere) for _ in range(100)]
    for s in slow:
        s.sendall(b"CONNECT")

    def one(i):
        with _dial(anywhere) as s:
            s.sendall(f"CONNECT localhost:{echo.where} HTTP/1.1\r\nHost: x\r\n\r\n{i}".encode())
            s.shutdown(socket.SHUT_WR)
            said[i] = _all(s).split(b"\r\n\r\n", 1)[1]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert said == {i: f"{i} {len(str(i))}".encode() for i in range(60)}
    for s in slow:
        s.close()
    echo.close()


def test_only_what_is_named_is_let_through(proxy):
    p = proxy("--allow", "good.example,*.good.example", "--allow", "inside.example")
    assert p.tunnel("GOOD.example.:443", hello("good.example"), end=b"xx") == ANSWERED
    assert p.wrote(target="local:", decision="allowed", how="connect", host="good.example", port=443, address="93.184.216.34", why=None)
    assert p.lines[-1]["time"] > 0
    assert p.tunnel("www.good.example:443", hello("www.good.example"), end=b"xx") == ANSWERED
    for where in ("other.example:443", "good.example:2222", "93.184.216.34:443", "good.example.evil.example:443"):
        answer = p.tunnel(where)
        assert answer.startswith(b"HTTP/1.1 403 ") and f"{where} is not among what --allow names".encode() in answer
        assert p.wrote(decision="refused", host=where.rsplit(":", 1)[0], port=int(where.rsplit(":", 1)[1]))
    for where in ("1572395042:443", "0x5db8d822:443", "good.example@other.example:443", "b\xfccher.example:443", "good.example:0", "good.example"):
        assert p.tunnel(where).startswith(b"HTTP/1.1 400 "), where
    answer = p.tunnel("inside.example:443")
    assert answer.startswith(b"HTTP/1.1 403 ") and b"no address of inside.example may be connected to" in answer
    assert p.say(_socks5(443, b"other.example")) == b"\5\0\5\2\0\1" + bytes(6)
    assert p.say(_socks4(443, b"other.example")) == b"\0\x5b" + bytes(6)
    assert b"other" not in p.got(443)


@pytest.mark.parametrize("name", ["rebound.example", "metadata.example", "inside.example", "localhost"])
def test_a_name_does_not_lead_to_what_is_private(proxy, name):
    p = proxy("--allow", "*:*")
    assert p.tunnel(f"{name}:2222").startswith(b"HTTP/1.1 403 ")
    assert p.wrote(decision="refused", host=name, address=None)
    for address in ("127.0.0.1", "10.0.0.5", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
        assert p.tunnel(f"{address}:2222").startswith(b"HTTP/1.1 403 "), address


def test_what_is_private_can_be_named(proxy):
    p = proxy("--allow", "inside.example:2222,10.0.0.0/8:2222")
    assert p.tunnel("inside.example:2222", b"SSH-2.0-x\r\nEND") == b"SSH-2.0-hello\r\n"
    assert p.tunnel("10.0.0.5:2222", b"END") == b"SSH-2.0-hello\r\n"
    assert p.tunnel("127.0.0.1:2222").startswith(b"HTTP/1.1 403 ")
    assert p.wrote(decision="refused", host="127.0.0.1")


def test_the_name_in_tls_is_the_one_that_was_asked_for(proxy):
    p = proxy("--allow", "good.example:*,93.184.216.34")
    good = hello("good.example")
    records = b"".join(b"\x16\x03\x01" + len(good[i : i + 100]).to_bytes(2, "big") + good[i : i + 100] for i in range(5, len(good), 100))
    for pieces in ([good], [bytes([b]) for b in good], [records]):
        assert p.tunnel("good.example:443", *pieces, end=b"xx") == ANSWERED
    assert p.tunnel("93.184.216.34:443", hello(None), end=b"xx") == ANSWERED
    before = p.got(443)
    for first in (hello("other.example"), hello(None), b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", b"\x80\x2e\x01\x03\x01", b"\x16\x03\x01\x00\x00"):
        assert p.tunnel("good.example:443", first) == ALERT, first
    assert p.wrote(decision="refused", why="TLS asks for other.example") and p.wrote(decision="refused", why="TLS asks for no name")
    assert p.tunnel("93.184.216.34:443", hello("other.example")) == ALERT
    assert p.tunnel("good.example:2222", hello("other.example")).endswith(ALERT)
    assert p.got(443) == before and not p.got(2222)


def test_http_is_for_the_host_that_was_asked_for(proxy):
    p = proxy("--allow", "good.example")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    assert p.say(b"GET http://good.example/x HTTP/1.1\r\nHost: other.example\r\nX: END\r\n\r\n") == answer
    assert p.got(80) == b"GET /x HTTP/1.1\r\nHost: good.example\r\nX: END\r\nConnection: close\r\n\r\n"
    assert p.tunnel("good.example:80", b"GET /y HTTP/1.1\r\nHost: good.example\r\nX: END\r\n\r\nGET /z HTTP/1.1\r\nHost: other.example\r\n\r\n") == answer
    assert b"other" not in p.got(80) and b"/z" not in p.got(80)
    for request in (b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", b"GET http://other.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n"):
        assert p.tunnel("good.example:80", request).startswith(b"HTTP/1.1 403 ")
    for request in (b"GET http://other.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", b"GET http://10.0.0.5/ HTTP/1.1\r\nHost: good.example\r\n\r\n"):
        assert p.say(request).startswith(b"HTTP/1.1 403 ")
    assert b"other" not in p.got(80)


def test_the_environment_for_a_shell(client):
    done = client.cli("forward", "--print-env", "-D", "3128")
    assert done.returncode == 0
    shell = subprocess.run(["env", "-i", "sh", "-c", done.stdout.decode() + "env"], capture_output=True, text=True, check=True)
    said = dict(line.split("=", 1) for line in shell.stdout.splitlines())
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert said[name] == said[name.lower()] == "http://127.0.0.1:3128"
    assert said["NO_PROXY"] == said["no_proxy"] == "localhost,127.0.0.1,::1"
    assert b"http://[::1]:3128\n" in client.cli("forward", "--print-env", "-D", "[::1]:3128", "docker:web").stdout
    assert b"http://127.0.0.1:3128\n" in client.cli("forward", "--print-env", "-R", "3128").stdout
    assert b"http://127.0.0.1:1\n" in client.cli("forward", "--print-env", "-D", "0.0.0.0:1").stdout


@pytest.mark.parametrize("words", [["--print-env"], ["--print-env", "-D", "/a/path"], ["--allow", "a.example", "local:"], ["-D", "1", "--allow", "a b", "local:"],
                                   ["--allow", "a.example", "-R", "1:2:3", "local:"]])
def test_usage(client, words):
    done = client.cli("forward", *words)
    assert done.returncode == 2 and b"Try 'toolbox forward --help'" in done.stderr


def test_more_at_once_than_are_made_at_a_time(anywhere):
    """They wait for their turn, and all are let through."""
    echo = Echo()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(_dial(anywhere)) for _ in range(300)]
        for one in clients:
            one.sendall(f"CONNECT localhost:{echo.where} HTTP/1.1\r\nHost: x\r\n\r\nhello".encode())
        clients.pop(200).close()  # one that waits, perhaps
        for one in clients:
            one.shutdown(socket.SHUT_WR)
        answers = {_all(one) for one in clients}
    echo.close()
    assert answers == {b"HTTP/1.1 200 Connection established\r\n\r\nhello 5"}
