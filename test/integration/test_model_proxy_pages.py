"""Web pages and the model proxy: a browser of the machine asks for any page that it shows, and the proxy answers none of them."""
import contextlib
import json

import pytest

from harness.bridge import CHAT, PATHS, read_all, send_post
from harness.processes import wait_until
from harness.web import Site, Web

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}}
DOORS = {**PATHS, "/mcp/host": CALL}


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("kind", ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data",
                                  "text/plain; application/json", "application/jsonp", "", "json"])
def test_what_a_page_can_send_unasked_is_refused(bridge, path, kind):
    status, headers, text = bridge.ask("POST", path, DOORS[path], {"Content-Type": kind})
    assert status == 415 and "application/json" in json.loads(text)["error"]["message"]
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert bridge.seen == []


@pytest.mark.parametrize("kind", ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;x"])
def test_what_programs_send_is_taken(bridge, kind):
    assert bridge.ask("POST", "/v1/chat/completions", CHAT, {"Content-Type": kind})[0] == 200


@pytest.mark.parametrize("field", ["Origin: http://localhost\r\nOrigin: https://evil.example", "Content-Type: text/plain"])
def test_what_is_said_twice_says_nothing(bridge, field):
    with bridge.connect() as connection:
        send_post(connection, "/v1/chat/completions", CHAT, f"{field}\r\nConnection: close\r\n".encode())
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")
    assert not bridge.seen


@pytest.mark.parametrize("path", [*DOORS, "/", "/anything", "*"])
@pytest.mark.parametrize("asked", [{}, {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}])
def test_a_page_may_ask_for_nothing(bridge, path, asked):
    status, headers, text = bridge.ask("OPTIONS", path, headers=asked)
    assert (status, text) == (405, b"") and "POST" in headers["Allow"]
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("origin", ["https://evil.example", "http://evil.example:13131", "null", "http://127.0.0.1.evil.example", "file://",
                                    "http://localhost.evil.example", "http://evil.example/localhost", "http://10.0.0.1", "localhost"])
def test_a_page_of_another_origin(bridge, origin):
    for method, path, body in (("POST", "/v1/chat/completions", CHAT), ("POST", "/mcp/host", CALL), ("GET", "/v1/models", None)):
        status, _, text = bridge.ask(method, path, body, {"Origin": origin})
        assert status == 403 and "Origin" in json.loads(text)["error"]["message"]
    assert bridge.seen == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:13131", "127.0.0.1.evil.example", "localhost.evil.example", "evil.localhost.example",
                                  "127.1", "0x7f.0.0.1", "a" * 300, "/"])
def test_a_name_that_was_pointed_here(bridge, host):
    """A page of such a name is of the same origin as the proxy, for its browser."""
    for path, body in DOORS.items():
        status, _, text = bridge.ask("POST", path, body, {"Host": host})
        assert status == 403 and "Host" in json.loads(text)["error"]["message"]
    assert bridge.seen == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "proxy", "proxy:13131", "a.localhost:1", "127.0.0.1", "127.0.0.9:1", "10.1.2.3:1",
                                  "[::1]:13131", "[fd00::1]"])
@pytest.mark.parametrize("origin", [None, "http://localhost:3000", "http://127.0.0.1", "https://[::1]:1"])
def test_names_of_the_machine(bridge, host, origin):
    assert bridge.ask("POST", "/v1/chat/completions", CHAT, {"Host": host, **({"Origin": origin} if origin else {})})[0] == 200


# What a page tries: each way to send and to read; it says what it has come to in its title.
PAGE = """<!doctype html><title>at it</title><script>
const url = "http://%(host)s:%(port)d%(path)s", body = %(body)s;
const ways = {plain: {method: "POST", body}, blind: {method: "POST", body, mode: "no-cors"},
              json: {method: "POST", body, headers: {"Content-Type": "application/json"}},
              form: {method: "POST", body: new URLSearchParams(body)}, list: {}};
(async () => {
  const read = [];
  for (const [name, how] of Object.entries(ways))
    try {
      const answer = await fetch(url, how);
      if (answer.type != "opaque") read.push(name + " " + answer.status);
    } catch (error) {}
  navigator.sendBeacon(url, body);
  const socket = new WebSocket(url.replace("http", "ws"));
  await new Promise(done => socket.onclose = socket.onopen = done);
  if (socket.readyState == 1) read.push("socket");
  document.title = "has read:" + read.join();
})();
</script>"""


@pytest.mark.parametrize("path, body", [("/mcp/host", CALL), ("/v1/chat/completions", CHAT)])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_real_page(bridge, client, path, body, host):
    """In a real browser, from another port, which is another origin. Slow: a browser starts."""
    text = PAGE % {"host": host, "port": bridge.port, "path": path, "body": json.dumps(json.dumps(body))}
    with contextlib.closing(Site({"/": text})) as site, contextlib.closing(Web(client)) as shown:
        shown.go(site.url())
        wait_until(lambda: shown.value("document.title") != "at it", "the page to have tried")
        assert shown.value("document.title") == "has read:"
    assert bridge.seen == []
