"""Sites on the loopback with what real pages have, and browser sessions that look at them."""
import http.server
import re
import threading
import time
import urllib.parse

from harness import needs

def browser():
    """Its path; raises Unavailable."""
    return needs.program("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")


class Site:
    """Serves `pages`: {path: html, or a function of the request handler}. As 127.0.0.1 and as localhost, which a browser
    takes for two sites. ?wait=SECONDS delays any answer."""

    def __init__(self, pages):
        self.pages, self.asked, site = pages, [], self
        self.ended = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self.do_GET()

            def do_GET(self):
                url = urllib.parse.urlparse(self.path)
                self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
                site.asked.append(self.path)
                self.pause(float(self.query.get("wait", 0)))
                page = site.pages.get(url.path)
                try:
                    page(self) if callable(page) else self.give(page or "<title>none</title>", 200 if page else 404)
                except OSError:
                    self.close_connection = True

            def pause(self, seconds):
                site.ended.wait(seconds)

            def give(self, text, status=200, kind="text/html; charset=utf-8", **headers):
                data = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def url(self, path="/", host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Web:
    """One browser session of a client. Every call returns the page, as an object with the members of the answer."""

    def __init__(self, client, **params):
        browser()
        self.client = client
        self.name = client.rpc("web_new_session", params)["session_name"]
        self.page = self.at = None

    def call(self, method, /, **params):
        return self.client.rpc("web_" + method, {"session_name": self.name, **params}, timeout=90)

    def act(self, method, error=None, **params):
        """An action, which succeeds, or fails with words that match `error`."""
        began = time.monotonic()
        self.page = self.call(method, **params)
        self.took = time.monotonic() - began
        self.at = self.page["web_at"]
        if error is None:
            assert self.page["error"] is None, self.page
        else:
            assert self.page["error"] and re.search(error, self.page["error"]), self.page
        return self.at

    def go(self, url, error=None):
        return self.act("go", error, url=url)

    def id(self, name, role=r"\S+"):
        """The id of the element in whose line that name stands."""
        found = re.search(rf'^ *\[(\d+)\] {role} "{re.escape(name)}', self.at, re.M) or \
            re.search(rf"^ *\[(\d+)\] {role}.*{re.escape(name)}", self.at, re.M)
        assert found, f"no {name!r} in:\n{self.at}"
        return int(found[1])

    def click(self, name, error=None, **more):
        return self.act("click", error, element_id=self.id(name), **more)

    def type(self, name, text, error=None, submit=False):
        return self.act("type_submit" if submit else "type", error, element_id=self.id(name), text=text)

    def value(self, expression):
        return self.call("evaluate", expression=expression)["value"]

    def line(self, name):
        return next(line for line in self.at.splitlines() if name in line)

    def close(self):
        self.call("close_session")
