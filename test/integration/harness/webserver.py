"""An https server on the loopback that can be told to misbehave, and the certificates for it."""
import contextlib
import http.server
import socket
import ssl
import threading
import time

from harness.releases import openssl


class Authority:
    """A certificate authority of our own, and what it signs."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "ca.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 30, "-subj",
                "/CN=Test", "-keyout", folder / "ca.key", "-out", self.file, "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign")

    def certificate(self, name, names="DNS:localhost,IP:127.0.0.1,IP:::1", dates=("-days", 30), key="ec", usage="serverAuth"):
        """A file with certificate and key."""
        kind = ["ec", "-pkeyopt", f"ec_paramgen_curve:{key[3:] or 'prime256v1'}"] if key.startswith("ec") else [key]
        path = self.folder / name
        request, extra = path.with_suffix(".req"), path.with_suffix(".ext")
        extra.write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n")
        openssl("req", "-newkey", *kind, "-nodes", "-subj", "/CN=server", "-keyout", path.with_suffix(".key"), "-out", request)
        self._sign(request, path.with_suffix(".crt"), extra, dates)
        path.write_bytes(path.with_suffix(".crt").read_bytes() + path.with_suffix(".key").read_bytes())
        return path

    def _sign(self, request, out, extra, dates):
        if dates[0] == "-days":
            openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.folder / "ca.key", "-set_serial", "7",
                    "-out", out, "-extfile", extra, *dates)
            return
        # dates in the past or to come: that only `openssl ca` can do
        (self.folder / "index").write_text("")
        (self.folder / "ca.conf").write_text(
            "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\nrand_serial=yes\n[p]\n"
            "commonName=supplied\n")
        openssl("ca", "-batch", "-config", "ca.conf", "-in", request, "-out", out, "-cert", self.file, "-keyfile", "ca.key",
                "-extfile", extra, "-notext", *dates, cwd=self.folder)


class Server:
    """Serves files by `answers`: {path: bytes, or a function of the handler}. `asked`: (path, Range) of every request. setup: what
    else the context of its TLS is told."""

    def __init__(self, certificate, host="127.0.0.1", tls=None, setup=lambda context: None):
        self.answers, self.asked = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def do_GET(self):
                outer.asked.append((self.path, self.headers.get("Range")))
                answer = outer.answers.get(self.path)
                try:
                    if callable(answer):
                        answer(self)
                    else:
                        self.give(answer)
                except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                    pass
                self.close_connection = True

            def give(self, data, ranges=True):
                """The usual answer, with ranges."""
                if data is None:
                    self.send_error(404)
                    return
                wanted = self.headers.get("Range") if ranges else None
                first = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
                if wanted and first >= len(data):
                    self.send_error(416)
                    return
                self.send_response(206 if wanted else 200)
                if wanted:
                    self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
                self.send_header("Content-Length", str(len(data) - first))
                self.end_headers()
                self.wfile.write(data[first:])

            def cut(self):
                """Ends the connection at once, without a word."""
                self.wfile.flush()
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if tls:
            context.minimum_version = context.maximum_version = tls
        setup(context)

        class Quiet(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            daemon_threads = False

            def get_request(self):
                connection, address = super().get_request()
                connection.settimeout(20)
                return connection, address

            def finish_request(self, request, address):
                with contextlib.suppress(OSError, ssl.SSLError), context.wrap_socket(request, server_side=True) as secure:
                    super().finish_request(secure, address)
                    with contextlib.suppress(OSError, ssl.SSLError):
                        secure.unwrap()

            def handle_error(self, *_):
                pass

        self.server = Quiet((host, 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def url(self, path="/", host="localhost"):
        return f"https://{host}:{self.port}{path}"

    def serve(self, folder, base="/r/"):
        """Every file of a folder."""
        for path in folder.iterdir():
            self.answers[base + path.name] = path.read_bytes()
        return self.url(base)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def drip(data, pause, step):
    """An answer that comes slowly."""

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        for at in range(0, len(data), step):
            handler.wfile.write(data[at:at + step])
            time.sleep(pause)

    return answer


def cut_after(data, n):
    """An answer that ends in the middle, each time n bytes further."""

    def answer(handler):
        wanted = handler.headers.get("Range")
        first = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        handler.send_response(206 if wanted else 200)
        if wanted:
            handler.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(data) - first))
        handler.end_headers()
        handler.wfile.write(data[first:first + n])
        if first + n < len(data):
            handler.cut()

    return answer


def raw(text):
    """An answer written as it is."""

    def answer(handler):
        handler.wfile.write(text)

    return answer


def redirect(to, status=302):
    def answer(handler):
        handler.send_response(status)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer
