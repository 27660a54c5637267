"""`toolbox mcp serve --http --tls-cert`: clients by TLS 1.2 and 1.3, with certificates of their own, and what gets in the way."""
import contextlib
import http.client
import os
import shutil
import socket
import ssl
import warnings

import pytest

from harness import needs
from harness.machine import HANG
from harness.mcp_http import HttpClient, serve_http
from harness.processes import wait_until
from harness.webserver import Authority

pytestmark = needs.programs("openssl")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.certificate("server")


def context(authority, version=None, own=None):
    one = ssl.create_default_context(cafile=authority.file)
    if version:
        one.minimum_version = one.maximum_version = version
    if own:
        one.load_cert_chain(own, own.with_suffix(".key"))
    return one


class Tls:
    """A server's door, through which a client comes by TLS."""

    def __init__(self, server, how):
        self.server, self.how, self.url = server, how, server.url

    def connect(self):
        host, port = self.server.address()
        return http.client.HTTPSConnection("localhost" if host == "127.0.0.1" else host, int(port), context=self.how, timeout=HANG)


def options(path):
    return ("--tls-cert", str(path.with_suffix(".crt")), "--tls-key", str(path.with_suffix(".key")))


@pytest.mark.parametrize("key", ["ec", "rsa"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session(client, authority, workdir, key, version):
    with serve_http(client, *options(authority.certificate(f"server-{key}", key={"rsa": "rsa:2048"}.get(key, key))), cwd=workdir) as server:
        assert server.url.startswith("https://127.0.0.1:")
        mcp = HttpClient(Tls(server, context(authority, version)))
        assert mcp.connection.sock.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]
        long = "x" * 300000
        mcp.call("write_file", path="long", content=long)
        assert (workdir / "long").read_text() == long
        mcp.ask("tools/call", {"name": "read_file", "arguments": {"path": "long", "limit": 200000}})
        assert mcp.call("shell_run", command="echo $((6*7))")["output"] == "42\n"
        mcp.close()


def test_one_file_has_both(client, authority, certificate):
    with serve_http(client, "--tls-cert", str(certificate), "--token-env", "T", env={"T": "secret"}) as server:
        mcp = HttpClient(Tls(server, context(authority)), None)
        assert mcp.post(mcp.message("ping"))[0] == 401
        mcp.close()
        mcp = HttpClient(Tls(server, context(authority)), Authorization="Bearer secret")
        assert mcp.ask("ping")["result"] == {}
        mcp.close()


def test_clients_show_certificates(client, authority, certificate, tmp_path):
    mine, other = authority.certificate("mine", usage="clientAuth"), Authority(tmp_path)
    strange = other.certificate("strange", usage="clientAuth")
    late = authority.certificate("late", dates=("-startdate", "20200101000000Z", "-enddate", "20200201000000Z"), usage="clientAuth")
    with serve_http(client, *options(certificate), "--tls-client-ca", str(authority.file), where="0.0.0.0:0") as server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            mcp = HttpClient(Tls(server, context(authority, version, mine)), Host="any.name")
            assert mcp.ask("ping")["result"] == {}
            mcp.close()
            for own in (None, strange, late):
                with pytest.raises((ssl.SSLError, OSError)):
                    HttpClient(Tls(server, context(authority, version, own)))


def test_new_files_are_taken(client, authority, workdir):
    path = workdir / "cert.crt"

    def put(name):
        made = authority.certificate(name)
        for suffix in (".key", ".crt"):
            shutil.copy(made.with_suffix(suffix), workdir / "new")
            os.replace(workdir / "new", path.with_suffix(suffix))
        return ssl.PEM_cert_to_DER_cert(made.with_suffix(".crt").read_text())

    def shown(server):
        with socket.create_connection(server.address(), HANG) as plain, context(authority).wrap_socket(plain, server_hostname="localhost") as secure:
            return secure.getpeercert(True)

    first = put("first")
    with serve_http(client, *options(path), stderr=-3) as server:
        kept = HttpClient(Tls(server, context(authority)))
        assert shown(server) == first
        second = put("second")
        wait_until(lambda: shown(server) == second, "the new one is shown")
        path.write_text("no certificate")
        wait_until(lambda: shown(server) == second, "the last good one stays")
        assert kept.ask("ping")["result"] == {}, "whoever is there stays"
        kept.close()


def test_who_gets_in_the_way(client, authority, certificate):
    with serve_http(client, *options(certificate)) as server:
        silent = [socket.create_connection(server.address(), HANG) for _ in range(200)]
        half = [socket.create_connection(server.address(), HANG) for _ in range(50)]
        for one in half:
            one.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        plain = socket.create_connection(server.address(), HANG)
        plain.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP/1.1" not in plain.recv(100)
        cut = socket.create_connection(server.address(), HANG)
        secure = context(authority).wrap_socket(cut, server_hostname="localhost")
        secure.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        socket.socket(fileno=secure.detach()).close()
        mcp = HttpClient(Tls(server, context(authority)))
        assert mcp.ask("tools/list")["result"]["tools"]
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.raises((ssl.SSLError, OSError, ValueError)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore") # that it is old
                old.maximum_version = ssl.TLSVersion.TLSv1_1
            old.set_ciphers("ALL:@SECLEVEL=0")
            with socket.create_connection(server.address(), HANG) as sock:
                old.wrap_socket(sock)
        for one in (*silent, *half, plain):
            one.close()
        mcp.close()


def test_a_slow_reader_gets_all(client, authority, certificate, workdir):
    (workdir / "big").write_bytes(b"0123456789abcdef" * 500_000)
    with serve_http(client, *options(certificate), cwd=workdir) as server:
        mcp = HttpClient(Tls(server, context(authority)))
        mcp.connection.close()
        mcp.connection = Tls(server, context(authority)).connect()
        mcp.send("POST", body='{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"big","max_bytes":10000000,"encoding":"base64"}}}')
        other = HttpClient(Tls(server, context(authority)))
        assert other.ask("ping")["result"] == {}
        response = mcp.connection.getresponse()
        total = 0
        while piece := response.read(9999):
            total += len(piece)
        assert response.status == 200 and total > 8_000_000
        mcp.close(), other.close()


def test_what_does_not_fit(client, certificate, authority, workdir):
    other = authority.certificate("other")
    (workdir / "empty").write_text("")
    for status, words, says in ((1, ("--tls-cert", workdir / "nowhere"), b"nowhere"), (1, ("--tls-cert", workdir / "empty"), b"no certificate"),
                                (1, ("--tls-cert", certificate.with_suffix(".crt")), b"no key"), (1, ("--tls-cert", certificate.with_suffix(".crt"), "--tls-key", other.with_suffix(".key")), b"isn't that of"),
                                (2, ("--tls-key", certificate), b"take --tls-cert"), (1, (*options(certificate), "--tls-client-ca", workdir / "empty"), b"no certificate")):
        done = client.cli("mcp", "serve", "--http", "0", *map(str, words), timeout=20)
        assert done.returncode == status and says in done.stderr, (words, done)
    done = client.cli("mcp", "serve", "--tls-cert", str(certificate))
    assert done.returncode == 2 and b"are for --http" in done.stderr


def test_a_path_speaks_none(client, certificate, workdir):
    with serve_http(client, *options(certificate), where=f"unix:{workdir}/s") as server:
        mcp = HttpClient(server)
        assert mcp.ask("ping")["result"] == {}
        mcp.close()


def test_files_that_could_not_be_read_are_read_again(client, authority, workdir):
    path, first, second = workdir / "cert.crt", authority.certificate("third"), authority.certificate("fourth")
    key, good = path.with_suffix(".key"), second.with_suffix(".key").read_bytes()
    for suffix in (".key", ".crt"):
        shutil.copy(first.with_suffix(suffix), path.with_suffix(suffix))

    def shown(server):
        with socket.create_connection(server.address(), HANG) as plain, context(authority).wrap_socket(plain, server_hostname="localhost") as secure:
            return secure.getpeercert(True)

    with serve_http(client, *options(path), stderr=-1) as server:
        key.write_bytes(b"x" * len(good))
        shutil.copy(second.with_suffix(".crt"), path)
        os.set_blocking(server.process.stderr.fileno(), False)
        said = b""

        def is_told():
            nonlocal said
            shown(server)
            said += server.process.stderr.read() or b""
            return b"it goes on with" in said

        wait_until(is_told, "that the key is none")
        was = key.stat()
        with key.open("r+b") as file:
            file.write(good)
        os.utime(key, ns=(was.st_atime_ns, was.st_mtime_ns)) # nothing is seen of it from outside, as of rights that come back
        new = ssl.PEM_cert_to_DER_cert(second.with_suffix(".crt").read_text())
        wait_until(lambda: shown(server) == new, "the new one is shown")
