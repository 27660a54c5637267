"""`release fetch`: over https from a server that misbehaves in every way, and what may stay in the folder afterwards."""
import fcntl
import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from harness import hardening, releases, webserver
from harness.releases import ARCH, OTHER, Key, Release
from harness.webserver import Authority, Server, cut_after, drip, raw, redirect

TIMEOUT = 60


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.certificate("server.pem")


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return Key(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module")
def release(toolbox):
    return Release(toolbox)


@pytest.fixture(scope="module")
def published(release, key, tmp_path_factory):
    """The release's folder, signed."""
    folder = tmp_path_factory.mktemp("published") / "release"
    release.write(folder, key, packed=True)
    return folder


@pytest.fixture
def make_server(certificate):
    made = []

    def make(cert=certificate, **options):
        made.append(Server(cert, **options))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def server(make_server):
    return make_server()


class Fetcher:
    def __init__(self, program, authority, folder):
        self.program, self.authority, self.folder = program, authority, folder

    def argv(self, url, *options, ca=True):
        trust = ["--ca", self.authority.file] if ca else []
        return [str(word) for word in (self.program, "release", "fetch", "--dir", self.folder, *trust, *options, url)]

    def __call__(self, url, *options, ca=True, env=None):
        return subprocess.run(self.argv(url, *options, ca=ca), capture_output=True, text=True, timeout=TIMEOUT,
                              env={**os.environ, **(env or {})})

    def refused(self, url, *options, says, **kwargs):
        """It fails with that text, and nothing is left that could be taken for a file of a release."""
        done = self(url, *options, **kwargs)
        assert done.returncode == 1, done
        assert re.search(says, done.stderr), done.stderr
        assert set(self.names()) <= {"LICENSE"}  # which the signature vouches for
        return done

    def names(self):
        return sorted(p.name for p in self.folder.iterdir() if not p.name.startswith(".")) if self.folder.is_dir() else []

    def parts(self):
        return sorted(p.name for p in self.folder.iterdir() if p.name.startswith("."))


@pytest.fixture
def fetch(release, authority, workdir):
    """The fetch of a program that has its release's sums."""
    program = release.write(workdir / "own")
    for name in list((workdir / "own").iterdir()):
        if name != program:
            name.unlink()
    return Fetcher(program, authority, workdir / "got")


@pytest.fixture
def bare_fetch(toolbox, authority, workdir):
    """That of a program as it was built."""
    return Fetcher(toolbox, authority, workdir / "got")


# ---- what goes well ----------------------------------------------------------------------------------------


def test_a_signed_release(bare_fetch, server, published, key, release):
    done = bare_fetch(server.serve(published), "--key", key.public)
    assert done.returncode == 0, done.stderr
    assert bare_fetch.names() == sorted([*release.files, "LICENSE", "SHA256SUMS", "SHA256SUMS.sig"])
    for name in bare_fetch.names():
        path = bare_fetch.folder / name
        assert path.read_bytes() == (published / name).read_bytes()
        assert path.stat().st_mode & 0o777 == (0o755 if name in release.files else 0o644)
    assert bare_fetch.parts() == []
    checked = subprocess.run([bare_fetch.program, "release", "verify", "--key", key.public, bare_fetch.folder], text=True,
                             capture_output=True)
    assert checked.returncode == 0 and "signed by the key" in checked.stdout

    server.asked.clear()
    again = bare_fetch(server.url("/r/"), "--key", key.public)
    assert again.returncode == 0 and again.stdout.count("is there") == len(release.files) + 1
    assert [path for path, _ in server.asked] == ["/r/SHA256SUMS", "/r/SHA256SUMS.sig"]


def test_what_people_install_stays_where_it_is(bare_fetch, server, key, release, workdir):
    """Of a release with packages: a folder of programs for targets has no use for them."""
    published = workdir / "published"
    release.write(published, key, packed=True)
    packages = {"toolbox_sandbox-1-py3-none-any.whl": b"wheel", "toolbox-sandbox-linux-x64-1.tgz": b"npm", "toolbox-sandbox_1_amd64.deb": b"deb", "toolbox.rb": b"ruby"}
    along = {"LICENSE": b"do what you like\n", "toolbox-1.spdx.json": b"{}"}
    for name, data in {**packages, **along}.items():
        (published / name).write_bytes(data)
    (published / "SHA256SUMS").write_bytes(release.sums({**packages, **along}))
    key.sign(published)
    done = bare_fetch(server.serve(published), "--key", key.public)
    assert done.returncode == 0, done.stderr
    assert bare_fetch.names() == sorted([*release.files, *along, "SHA256SUMS", "SHA256SUMS.sig"])


@pytest.mark.skipif(ARCH != "amd64" or not hardening.is_here(), reason="needs amd64's packed code, and PR_SET_MDWE (Linux 6.3)")
@pytest.mark.parametrize("how, status, says", [(hardening.no_code_from_memory, 0, ""),
                                               (hardening.no_code_at_all, 1, "no program may add code to its memory here")])
def test_memory_that_never_becomes_code(fetch, server, published, how, status, says):
    """The code of TLS lies in the program packed."""
    done = subprocess.run(fetch.argv(server.serve(published)), capture_output=True, text=True, timeout=TIMEOUT, preexec_fn=how)
    assert done.returncode == status and says in done.stderr, done


def test_without_a_key_by_the_sums_behind_the_program(fetch, server, published, release):
    done = fetch(server.serve(published))
    assert done.returncode == 0, done.stderr
    # nothing vouches for the others
    assert fetch.names() == sorted(release.files)
    env = {**os.environ, "TOOLBOX_RELEASE_DIR": str(fetch.folder)}
    assert set(releases.listed(fetch.program, env)) == {ARCH, OTHER, "riscv64"}


def test_a_program_without_sums_takes_the_release_in_which_it_stands(bare_fetch, server, published, release):
    assert bare_fetch(server.serve(published)).returncode == 0
    assert bare_fetch.names() == sorted(release.files)


@pytest.mark.parametrize("end", ["", "/", "/SHA256SUMS", "/toolbox-0.0.0-linux-arm64", "/?token=1"])
def test_addresses_of_the_folder_or_a_file_in_it(fetch, server, published, release, end):
    server.serve(published)
    if "?" in end:
        server.answers = {path + "?token=1": data for path, data in server.answers.items()}
    done = fetch(server.url("/r" + end), "--arch", OTHER)
    assert done.returncode == 0, done.stderr
    assert fetch.names() == [release.name(OTHER)]


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["ec", "ec:secp384r1", "ec:secp521r1", "rsa:2048", "rsa:4096"])
def test_versions_of_tls_and_kinds_of_keys(fetch, authority, make_server, published, release, version, kind):
    server = make_server(authority.certificate("kind.pem", key=kind), tls=version)
    assert fetch(server.serve(published), "--arch", OTHER).returncode == 0
    assert fetch.names() == [release.name(OTHER)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("curve", ["prime256v1", "secp384r1", "secp521r1"])
def test_exchanges_of_keys(fetch, make_server, published, version, curve):
    server = make_server(tls=version, setup=lambda context: context.set_ecdh_curve(curve))
    assert fetch(server.serve(published), "--arch", OTHER).returncode == 0


@pytest.mark.parametrize("cipher", ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"])
def test_ciphers(fetch, make_server, published, cipher):
    server = make_server(tls=VERSIONS[0], setup=lambda context: context.set_ciphers(f"ECDHE-ECDSA-{cipher}"))
    assert fetch(server.serve(published), "--arch", OTHER).returncode == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("needed", [False, True])
def test_a_server_that_asks_who_is_there(fetch, make_server, published, authority, version, needed):
    """There is no certificate to show: the server takes that, or ends it."""

    def setup(context):
        context.verify_mode = ssl.CERT_REQUIRED if needed else ssl.CERT_OPTIONAL
        context.load_verify_locations(authority.file)

    server = make_server(tls=version, setup=setup)
    if needed:
        fetch.refused(server.serve(published), "--arch", OTHER, says="refused the connection|was cut|can't")
    else:
        assert fetch(server.serve(published), "--arch", OTHER).returncode == 0


def test_by_address(fetch, make_server, published, release):
    for host, address in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")):
        try:
            server = make_server(host=host)
        except OSError:
            continue
        server.serve(published)
        assert fetch(server.url("/r/", address), "--arch", OTHER).returncode == 0
        (fetch.folder / release.name(OTHER)).unlink()


def test_the_trust_store_of_the_environment(fetch, authority, server, published):
    done = fetch(server.serve(published), ca=False, env={"SSL_CERT_FILE": str(authority.file)})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(fetch, server, published, release, status):
    server.serve(published, "/far/away/")
    for name in ("SHA256SUMS", release.name(OTHER)):
        server.answers["/r/" + name] = redirect("../hop/" + name, status)
        server.answers["/r/../hop/" + name] = redirect(server.url("/far/away/" + name), status)
    assert fetch(server.url("/r/"), "--arch", OTHER).returncode == 0
    assert fetch.names() == [release.name(OTHER)]


def test_chunked_and_endless_bodies(fetch, server, published, release):
    server.serve(published)
    data = release.files[release.name(OTHER)]
    chunks = b"".join(b"%X;x=y\r\n%s\r\n" % (len(data[i:i + 7000]), data[i:i + 7000]) for i in range(0, len(data), 7000))
    server.answers["/r/" + release.name(OTHER)] = raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nX: y\r\n\r\n")
    server.answers["/r/" + release.name("riscv64")] = raw(
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\n\n" + release.files[release.name("riscv64")])
    done = fetch(server.url("/r/"), "--arch", OTHER, "--arch", "riscv64")
    assert done.returncode == 0, done.stderr


def test_a_slow_server_is_waited_for(fetch, server, published, release):
    server.serve(published)
    data = release.files[release.name(OTHER)]
    server.answers["/r/" + release.name(OTHER)] = drip(data, 0.15, len(data) // 20)
    assert fetch(server.url("/r/"), "--arch", OTHER, "--timeout", "1").returncode == 0


def test_the_progress_bar_is_for_terminals(fetch, server, published, release):
    server.serve(published)
    data = release.files[release.name(OTHER)]
    server.answers["/r/" + release.name(OTHER)] = drip(data, 0.1, len(data) // 8)
    master, slave = pty.openpty()
    done = subprocess.run(fetch.argv(server.url("/r/"), "--arch", OTHER), stdout=subprocess.PIPE, stderr=slave, timeout=TIMEOUT)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0
    assert re.search(r"\[#+ *\] 0\.\d of 0\.\d MB, \d", shown) and shown.endswith("\r\x1b[K")
    assert "\r" not in fetch(server.url("/r/"), "--arch", "riscv64").stderr


# ---- resuming ----------------------------------------------------------------------------------------------


def test_a_cut_connection_is_gone_on_with(fetch, server, published, release):
    server.serve(published)
    name, data = release.name(OTHER), release.files[release.name(OTHER)]
    server.answers["/r/" + name] = cut_after(data, len(data) // 3)
    assert fetch(server.url("/r/"), "--arch", OTHER).returncode == 0
    ranges = [wanted for path, wanted in server.asked if path == "/r/" + name]
    third = len(data) // 3
    assert ranges[:3] == [None, f"bytes={third}-", f"bytes={2 * third}-"]
    assert (fetch.folder / name).read_bytes() == data


@pytest.mark.parametrize("ranges", [True, False])
def test_the_next_command_goes_on(fetch, server, published, release, ranges):
    server.serve(published)
    name, data = release.name(OTHER), release.files[release.name(OTHER)]
    path = "/r/" + name

    def once(handler):
        cut_after(data, 1000)(handler) if not handler.headers.get("Range") else handler.cut()

    server.answers[path] = once
    done = fetch.refused(server.url("/r/"), "--arch", OTHER, says="cut off after 1000 bytes")
    assert "goes on from there" in done.stderr
    part, = fetch.parts()
    assert (fetch.folder / part).read_bytes() == data[:1000] and (fetch.folder / part).stat().st_mode & 0o777 == 0o600

    server.answers[path] = data if ranges else lambda handler: handler.give(data, ranges=False)
    server.asked.clear()
    assert fetch(server.url("/r/"), "--arch", OTHER).returncode == 0
    assert (path, "bytes=1000-") in server.asked and len([p for p, _ in server.asked if p == path]) == 1
    assert (fetch.folder / name).read_bytes() == data and fetch.parts() == []


@pytest.mark.parametrize("left", ["other", "longer", "whole"])
def test_a_part_that_is_no_start_of_it(fetch, server, published, release, left):
    """What is left of another fetch: of another release, or more than there is."""
    server.serve(published)
    name, data = release.name(OTHER), release.files[release.name(OTHER)]
    fetch.folder.mkdir()
    part = {"other": b"x" * 500, "longer": b"x" * (len(data) + 5), "whole": data}[left]
    (fetch.folder / f".{name}.part").write_bytes(part)
    done = fetch(server.url("/r/"), "--arch", OTHER)
    assert done.returncode == 0, done.stderr
    assert (fetch.folder / name).read_bytes() == data and fetch.parts() == []


@pytest.mark.parametrize("range_", ["bytes 0-9/10", "bytes 999-2000/2001", "rows 1000-2000/2001", "bytes */50000", ""])
def test_another_part_than_was_asked_for(fetch, server, published, release, range_):
    server.serve(published)
    name, data = release.name(OTHER), release.files[release.name(OTHER)]
    fetch.folder.mkdir()
    (fetch.folder / f".{name}.part").write_bytes(data[:1000])
    server.answers["/r/" + name] = raw(b"HTTP/1.1 206 Part\r\nContent-Range: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        range_.encode(), len(data) - 1000, data[1000:]))
    fetch.refused(server.url("/r/"), "--arch", OTHER, says="another part than it was asked for")


def test_a_killed_fetch(fetch, server, published, release):
    server.serve(published)
    name, data = release.name(OTHER), release.files[release.name(OTHER)]
    server.answers["/r/" + name] = drip(data, 0.2, len(data) // 50)
    running = subprocess.Popen(fetch.argv(server.url("/r/"), "--arch", OTHER))
    part = fetch.folder / f".{name}.part"
    deadline = time.monotonic() + TIMEOUT
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert fetch.names() == []
    server.answers["/r/" + name] = data
    assert fetch(server.url("/r/"), "--arch", OTHER).returncode == 0
    assert server.asked[-1][1] is not None and (fetch.folder / name).read_bytes() == data


def test_two_at_once(fetch, server, published, release):
    """One of two may say that the other is at it; whole files alone get the name."""
    server.serve(published)
    data = release.files[release.name(OTHER)]
    server.answers["/r/" + release.name(OTHER)] = drip(data, 0.01, len(data) // 20)
    results = []
    threads = [threading.Thread(target=lambda: results.append(fetch(server.url("/r/"), "--arch", OTHER))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(done.returncode == 0 for done in results)
    assert all(done.returncode == 0 or "by another process" in done.stderr for done in results), results
    assert (fetch.folder / release.name(OTHER)).read_bytes() == data


# ---- who is at the other end -------------------------------------------------------------------------------


@pytest.mark.parametrize("what, says", [
    ({"names": "DNS:elsewhere.test"}, "it is for another host"),
    ({"names": "DNS:*.test"}, "it is for another host"),
    ({"dates": ("-startdate", "20200101000000Z", "-enddate", "20210101000000Z")}, "it has expired"),
    ({"dates": ("-startdate", "20900101000000Z", "-enddate", "20910101000000Z")}, "isn't valid yet"),
    ({"key": "rsa:1024"}, "refused|failed"),
    ({"usage": "clientAuth"}, "is refused"),
])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bad_certificates(fetch, authority, make_server, published, what, says, version):
    try:
        server = make_server(authority.certificate("bad.pem", **what), tls=version)
    except ssl.SSLError:
        pytest.skip("this machine's own TLS refuses to serve with such a key")
    fetch.refused(server.serve(published), says=says)
    assert server.asked == []


def test_an_authority_nobody_trusts(fetch, tmp_path, make_server, published):
    server = make_server(Authority(tmp_path).certificate("theirs.pem"))
    url = server.serve(published)
    fetch.refused(url, says="nobody in the trust store vouches for it")
    fetch.refused(url, ca=False, says="nobody in the trust store vouches for it|no store of trusted certificates")
    assert server.asked == []


def test_a_trust_store_that_is_none(fetch, server, published, tmp_path):
    url = server.serve(published)
    (tmp_path / "empty").write_text("")
    (tmp_path / "garbage").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for name in ("empty", "garbage"):
        fetch.refused(url, "--ca", tmp_path / name, ca=False, says="there is no certificate in")
    fetch.refused(url, "--ca", tmp_path / "nowhere", ca=False, says="can't read the certificates")


def test_no_tls_at_all(fetch, certificate):
    with webserver.socket.create_server(("127.0.0.1", 0)) as listener:

        def talk():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        fetch.refused(f"https://localhost:{listener.getsockname()[1]}/", says="TLS failed")
        thread.join()


def test_a_server_that_says_nothing(fetch):
    with webserver.socket.create_server(("127.0.0.1", 0)) as listener:
        started = time.monotonic()
        fetch.refused(f"https://localhost:{listener.getsockname()[1]}/", "--timeout", "1", says="silent for too long")
        assert time.monotonic() - started < 20


def test_a_handshake_that_drips_is_bounded(fetch):
    with webserver.socket.create_server(("127.0.0.1", 0)) as listener:
        end = threading.Event()

        def talk():
            connection, _ = listener.accept()
            with connection:
                try:
                    for byte in b"\x16\x03\x03\x40\x00" + bytes(16384):
                        connection.sendall(bytes([byte]))
                        if end.wait(0.3):
                            return
                except OSError:
                    pass

        thread = threading.Thread(target=talk)
        thread.start()
        fetch.refused(f"https://localhost:{listener.getsockname()[1]}/", "--timeout", "1", says="silent for too long")
        end.set()
        thread.join()


def test_nobody_listens(fetch):
    with webserver.socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    fetch.refused(f"https://localhost:{port}/", says=f"can't connect to localhost port {port}: Connection refused")
    fetch.refused("https://no-such-host.invalid/", says="there is no host|no name server answers")


def test_a_name_server_that_says_nothing(fetch, apart, workdir):
    """However long the machine's own settings say that one is to be waited for."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.77", 53))
        (workdir / "resolv.conf").write_text("nameserver 127.0.0.77\noptions timeout:60 attempts:1\n")
        script = f'mount --bind {workdir}/resolv.conf /etc/resolv.conf && exec "$@"'
        done = subprocess.run([*apart, "sh", "-c", script, "sh", *fetch.argv("https://host.example/", "--timeout", "1s")],
                              capture_output=True, text=True, timeout=50)
        assert silent.recvfrom(512)
    assert done.returncode == 1 and "no name server has answered in time" in done.stderr, done


# ---- what it answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://localhost/", "ftp://localhost/", "file:///etc/passwd", "localhost/", "https://",
                                 "https://:443/", "https://a b/", "https://[::1/", "https://localhost:123456/",
                                 "https://localhost:x/", "https://user:secret@localhost/", "https://localhost/\nX: y"])
def test_addresses_that_are_not_fetched(fetch, url):
    done = fetch.refused(url, says="only https:// addresses are|is no address|with a password")
    assert "secret" not in done.stderr


def test_never_from_https_to_http(fetch, server, published, release):
    server.serve(published)
    for to in (f"http://localhost:{server.port}/r/SHA256SUMS", "HTTP://localhost/", "file:///etc/passwd", "javascript:x"):
        server.answers["/r/SHA256SUMS"] = redirect(to)
        fetch.refused(server.url("/r/"), says="leads to .*only https")


def test_a_loop_of_redirects(fetch, server):
    server.answers["/r/SHA256SUMS"] = redirect("/s")
    server.answers["/s"] = redirect("/r/SHA256SUMS")
    fetch.refused(server.url("/r/"), says="more than 10 times")
    assert len(server.asked) == 11


@pytest.mark.parametrize("answer", [
    b"", b"\r\n\r\n", b"SSH-2.0-x\r\n", b"HTTP/1.1 OK\r\n\r\n", b"HTTP/3.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40000 + b"\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx",
    b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 206 Part\r\nContent-Length: 1\r\n\r\nx", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
])
def test_answers_that_are_none(fetch, server, answer):
    server.answers["/r/SHA256SUMS"] = raw(answer)
    fetch.refused(server.url("/r/"), says=r"can't fetch|is damaged|no release|no program")


def without_end(head, more, pause=0.0):
    """A head, and then the same bytes until the client has gone."""

    def answer(handler):
        handler.close_connection = True
        try:
            handler.wfile.write(head)
            while True:
                handler.wfile.write(more)
                handler.wfile.flush()
                time.sleep(pause)
        except OSError:
            pass

    return answer


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "404 body": (b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 65536, 0),
    "302 body": (b"HTTP/1.1 302 Found\r\nLocation: /r/nowhere\r\n\r\n", b"x" * 65536, 0),
    "500 body": (b"HTTP/1.1 500 Oops\r\n\r\n", b"x" * 65536, 0),
    "chunked 404 body": (b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 9999, 0),
    "dripping 404 body": (b"HTTP/1.1 404 Not Found\r\n\r\n", b"x", 0.5),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0),
    "interim hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0.5),
    "head": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0),
    "one field": (b"HTTP/1.1 200 OK\r\nX: ", b"y", 0.1),
    "chunk extensions": (CHUNKED + b"1;x", b"y" * 100, 0),
    "many chunk extensions": (CHUNKED, b"1;" + b"y" * 900 + b"\r\nx\r\n", 0),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"X: y\r\n", 0),
    "dripping body": (b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.5),
    "dripping chunks": (CHUNKED, b"1\r\nx\r\n", 0.5),
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, 0),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_answers_without_end(fetch, server, what):
    """Only what was asked for may take long, and that only as long as more than a trickle of it comes."""
    server.answers["/r/SHA256SUMS"] = without_end(*ENDLESS[what])
    started = time.monotonic()
    fetch.refused(server.url("/r/"), "--timeout", "2", says="can't fetch|no SHA256SUMS|bytes a second|longer than")
    assert time.monotonic() - started < 25


def test_a_program_that_trickles_in_is_gone_on_with(fetch, server, published, release):
    """What has come of it stays, though nobody waits for the rest."""
    server.serve(published)
    name = f"/r/{release.name(OTHER)}"
    whole = server.answers[name]
    content = (published / release.name(OTHER)).read_bytes()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content)
    server.answers[name] = without_end(head + content[:100_000], content[100_000:100_001], 0.5)
    done = fetch(server.url("/r/"), "--arch", OTHER, "--timeout", "2")
    assert done.returncode == 1 and "the same command goes on from there" in done.stderr, done.stderr
    server.answers[name] = whole
    assert fetch(server.url("/r/"), "--arch", OTHER).returncode == 0


def test_no_release_there(fetch, server):
    fetch.refused(server.url("/r/"), says="it has no SHA256SUMS")


@pytest.mark.parametrize("lines", [b"rubbish\n", b"0" * 64 + b"  ../../evil\n", b"0" * 64 + b"  .hidden\n",
                                   b"0" * 64 + b"  a/b\n", b"0" * 64 + b"  x", b"\0" * 100])
def test_lists_that_are_none(fetch, server, release, lines):
    server.answers["/r/SHA256SUMS"] = lines
    fetch.refused(server.url("/r/"), says="is damaged|no program")


def test_more_than_there_can_be(fetch, server, published, release):
    server.serve(published)
    server.answers["/r/SHA256SUMS"] = b"x" * 100000
    fetch.refused(server.url("/r/"), says="longer than such a file can be")
    server.serve(published)
    server.answers["/r/" + release.name(OTHER)] = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
    fetch.refused(server.url("/r/"), "--arch", OTHER, says="larger than any file of a release")

    def endless(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(40):
            handler.wfile.write(bytes(1 << 20))

    server.answers["/r/" + release.name(OTHER)] = endless
    fetch.refused(server.url("/r/"), "--arch", OTHER, says="larger than any file of a release")
    assert fetch.parts() == []


# ---- what is not the release -------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["bit", "cut", "longer", "empty", "other"])
@pytest.mark.parametrize("by_key", [True, False])
def test_changed_files(fetch, server, published, release, key, change, by_key):
    server.serve(published)
    name, data = release.name(OTHER), release.files[release.name(OTHER)]
    changed = {"bit": bytes([data[0] ^ 1]) + data[1:], "cut": data[:-1], "longer": data + b"x", "empty": b"",
               "other": release.files[release.name("riscv64")]}[change]
    server.answers["/r/" + name] = changed
    done = fetch.refused(server.url("/r/"), "--arch", OTHER, *(["--key", key.public] if by_key else []), says="is refused: it has")
    assert releases.sha256(data) in done.stderr and releases.sha256(changed) in done.stderr
    assert fetch.parts() == []


def test_a_changed_release_with_sums_to_match(fetch, bare_fetch, toolbox, server, workdir, key):
    """All of it is consistent, but it isn't the program's own."""
    theirs = Release(toolbox)
    theirs.files[theirs.name(OTHER)] = b"evil" * 100
    theirs.write(workdir / "theirs")
    url = server.serve(workdir / "theirs")
    done = fetch.refused(url, "--arch", OTHER, says="isn't toolbox-.* of this release")
    assert fetch.parts() == []
    bare_fetch.refused(url, "--arch", OTHER, says="can't be verified|isn't toolbox-")
    # its own sums behind each file, consistent with SHA256SUMS
    other = workdir / "other"
    other.write_bytes(toolbox.read_bytes() + b"x")
    other.chmod(0o755)
    Release(other).write(workdir / "theirs2")
    url = server.serve(workdir / "theirs2", "/r2/")
    fetch.refused(url, "--arch", OTHER, says="sums behind it aren't this release's|isn't toolbox-")
    bare_fetch.refused(url, "--arch", OTHER, says="is of another build: its sums have")
    assert releases.sha256(toolbox.read_bytes()) in bare_fetch(url, "--arch", OTHER).stderr
    assert done


def test_signatures(fetch, server, published, key, tmp_path):
    url = server.serve(published)
    good = server.answers["/r/SHA256SUMS.sig"]
    sums = server.answers["/r/SHA256SUMS"]
    for bad in (good[:-1], good + b"\0", bytes([good[0] ^ 1]) + good[1:], good[:8] + bytes([good[8] ^ 1]) + good[9:], b"", b"0" * 64,
                b"\0" * 64, b"x" * 2000):
        server.answers["/r/SHA256SUMS.sig"] = bad
        fetch.refused(url, "--key", key.public, says="signature|longer than")
    server.answers["/r/SHA256SUMS.sig"] = None
    fetch.refused(url, "--key", key.public, says="isn't signed")
    server.answers["/r/SHA256SUMS.sig"] = good
    server.answers["/r/SHA256SUMS"] = sums.replace(b"0", b"1", 1)
    fetch.refused(url, "--key", key.public, says="isn't one by this key")
    server.answers["/r/SHA256SUMS"] = sums
    fetch.refused(url, "--key", Key(tmp_path, "other").public, says="isn't one by this key")
    fetch.refused(url, "--key", Key(tmp_path, "curve", "secp384r1").public, says="another kind than ECDSA P-256")
    fetch.refused(url, "--key", tmp_path / "nowhere", says="can't read the key")
    (tmp_path / "garbage").write_text("garbage")
    fetch.refused(url, "--key", tmp_path / "garbage", says="no public key")


def test_a_signed_list_that_leads_elsewhere(fetch, server, release, workdir, key):
    folder = workdir / "odd"
    release.write(folder)
    for name in ("../evil", "/tmp/evil", "a/b", ".bashrc", "x\x1b[2J"):
        (folder / "SHA256SUMS").write_bytes(releases.sha256(b"evil").encode() + b"  " + name.encode() + b"\n" + release.sums())
        key.sign(folder)
        url = server.serve(folder)
        server.answers["/r/" + name] = b"evil"
        fetch.refused(url, "--key", key.public, says="is damaged")
        assert not (workdir / "evil").exists()


def test_a_raw_signature(bare_fetch, server, published, key):
    """The two numbers alone, as some tools and hardware keys make it."""
    url, der = server.serve(published), server.answers["/r/SHA256SUMS.sig"]
    numbers, at = [], 2
    for _ in range(2):
        length = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2:at + 2 + length], "big").to_bytes(32, "big"))
        at += 2 + length
    server.answers["/r/SHA256SUMS.sig"] = b"".join(numbers)
    assert bare_fetch(url, "--key", key.public, "--arch", OTHER).returncode == 0


# ---- places ------------------------------------------------------------------------------------------------


def test_where_it_cannot_be_written(fetch, server, published, release, workdir):
    url = server.serve(published)
    fetch.folder.write_text("a file")
    done = fetch(url, "--arch", OTHER)
    assert done.returncode == 1 and "can't open" in done.stderr
    fetch.folder.unlink()
    # what lies in wait under the part's name
    fetch.folder.mkdir()
    victim = workdir / "victim"
    victim.write_text("precious")
    for make in (lambda part: part.symlink_to(victim), lambda part: os.link(victim, part), lambda part: os.mkfifo(part)):
        part = fetch.folder / f".{release.name(OTHER)}.part"
        make(part)
        done = fetch(url, "--arch", OTHER)
        assert done.returncode == 1 and re.search("can't write|in the way", done.stderr), done
        assert victim.read_text() == "precious"
        part.unlink()
    # a lock that somebody holds
    part.write_bytes(b"")
    with open(part, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "by another process" in fetch(url, "--arch", OTHER).stderr


def test_a_full_disk(fetch, server, published, release, apart):
    url = server.serve(published)
    fetch.folder.mkdir()
    script = f"mount -t tmpfs -o size=100k none {fetch.folder}; \"$@\" || ls -A {fetch.folder}"
    argv = [*apart, "sh", "-euc", script, "sh", *fetch.argv(url, "--arch", OTHER)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT)
    assert "No space left on device" in done.stderr and release.name(OTHER) not in done.stdout.replace(".toolbox", "")
