"""The browser tool against the pages that people complain about: test/pages, each made by hand from what was reported."""
import contextlib
import re
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from harness import needs, web
from harness.containers import REPO
from harness.web import Site, Web

PAGES = Path(REPO) / "test/pages"


@pytest.fixture
def pages():
    """A site with all of them at its root, and whatever is asked for besides."""
    web.browser()
    with contextlib.closing(Site({f"/{path.name}": path.read_text() for path in PAGES.iterdir()})) as site:
        yield site


# ---- what is drawn in place of a control ----

DRAWN = ("Remember me", "Send news", "I am of age", "With gifts", "By night", "By letter", "By phone", "Dark colours", "Wireless",
         "Red", "Small", "Large", "Real", "I agree to the terms of this shop ok", "No more questions of this kind ok")


def state(w, name):
    """Whether it is checked, by its line."""
    return re.search(rf'\[\d+\] (?:checkbox|radio|switch) "{name}" \[.*checked: (true|false)\]', w.at)[1]


def test_a_control_that_nobody_sees_is_where_its_label_is(client, pages):
    w = Web(client)
    w.go(pages.url("/labels.html"))
    for name in DRAWN:
        before = state(w, name)
        w.click(name)
        assert state(w, name) != before, w.at
        assert "notes" not in w.page and w.page["web_url"] == pages.url("/labels.html")
    w.click("Remember me")
    assert state(w, "Remember me") == "true" and state(w, "Red") == "true"
    w.click("Blue")
    assert state(w, "Red") == "false" and state(w, "Blue") == "true"
    w.act("click", element_id=int(re.search(r"\[(\d+)\] checkbox \[checked: false\]", w.at)[1]))
    assert re.search(r"\[\d+\] checkbox \[(?:focused: True, )?checked: true\]", w.at), w.at
    w.click("Sold out", "disabled")
    for name in ("Real", "By letter", "Dark colours"):
        before = state(w, name)
        w.type(name, "x", "takes no text")
        assert state(w, name) == before


# ---- text is text ----

CODE = "def f():\n\treturn 1\n"
FIELD = "(e=>e.value??e.innerText)(document.activeElement)"


@pytest.mark.parametrize("times", [1, 200])
def test_tabs_and_line_feeds_are_typed_as_text(client, pages, times):
    w = Web(client)
    for name in ("code", "chat", "rich", "pre", "plain"):
        w.go(pages.url("/fields.html"))
        w.type(name, CODE * times)
        assert w.page["web_url"] == pages.url("/fields.html")
        assert w.value(FIELD).replace("\xa0", " ").rstrip("\n") == (CODE * times).rstrip("\n"), name
        assert w.value("events.some(e=>e.startsWith('input:'))") and not w.value("events.some(e=>/^keydown:(Tab|Enter)/.test(e))")
        assert w.value("sent") == 0
    w.go(pages.url("/fields.html"))
    w.type("word", "one\r\ntwo\tthree\n" * times)
    assert w.page["web_url"] == pages.url("/fields.html")
    assert w.value(FIELD).startswith("one") and w.value(FIELD).endswith("two\tthree") and "\n" not in w.value(FIELD)
    assert len(re.findall("two\tthree", w.value(FIELD))) == times
    w.type("word", "a\tb\n", submit=True)
    assert pages.asked[-1] == "/got?t=&q=a%09b"


# ---- addresses without a scheme ----

def test_what_is_near_is_asked_by_http(client, pages):
    w = Web(client)
    for host in ("localhost", "127.0.0.1", "LOCALHOST", "www.localhost", "user:word@localhost"):
        assert 'RootWebArea "Fields"' in w.go(f" {host}:{pages.port}/fields.html\n"), host
        assert "notes" not in w.page, w.page
    w.go("127.0.0.1:9999999/", "cannot open")


NEAR = ("10.255.255.1", "172.31.0.1", "192.168.0.1", "169.254.1.1", "[fd00::1]", "[::1]", "service", "host.docker.internal", "printer.local")
FAR = ("172.32.0.1", "192.169.0.1", "11.0.0.1", "a.example", "10.example.org", "localhost.example.org", "[2001:db8::1]")


def test_private_addresses_are_near_and_others_are_not(client, pages):
    """Nothing has to answer there: the address of what the browser shows in its place says what was asked for."""
    w = Web(client)
    for scheme, hosts in ("http", NEAR), ("https", FAR):
        for host in hosts:
            page = w.call("go", url=f"{host}:1/")  # a port that no browser asks
            assert page["error"] and "ERR_UNSAFE_PORT" in page["error"] and page["web_url"].startswith(f"{scheme}://{host}:1"), page


def test_the_other_scheme_is_tried_once_and_told(client, pages):
    w = Web(client)
    assert 'RootWebArea "Fields"' in w.go(f"0x7f.1:{pages.port}/fields.html")
    assert w.page["notes"] == [f"https://0x7f.1:{pages.port}/fields.html could not be had (net::ERR_SSL_PROTOCOL_ERROR), so "
                               f"http://0x7f.1:{pages.port}/fields.html was opened"]
    w.go(f"https://127.0.0.1:{pages.port}/fields.html", "does not speak TLS")
    assert "notes" not in w.page
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    w.go(f"localhost:{port}", "nothing listens there")
    assert len(w.page["notes"]) == 1 and f"http://localhost:{port} could not" in w.page["notes"][0]


def test_a_certificate_is_not_done_without(client, pages, workdir):
    openssl = needs.program("openssl")
    subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-keyout", workdir / "key", "-out",
                    workdir / "cert"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(workdir / "cert", workdir / "key")
    with contextlib.closing(Site({"/": "<title>Secret</title>"})) as site:
        site.server.socket = context.wrap_socket(site.server.socket, server_side=True)
        w = Web(client)
        w.go(f"0x7f.1:{site.port}/", "certificate is not trusted")
        assert "notes" not in w.page and site.asked == []
        w.go(f"127.0.0.1:{site.port}/", "certificate is not trusted")
        assert f"so https://127.0.0.1:{site.port}/ was opened" in w.page["notes"][0]


# ---- scrolling ----

def scrolls(w, what, direction="down", **params):
    """What was moved, by how much, and how much is left: as the note says."""
    w.act("scroll", direction=direction, **params)
    [note] = w.page["notes"]
    found = re.fullmatch(r'scrolled "?(.*?)"? (up|down) by (\d+) px; (\d+) px are left', note)
    assert found and found[1] == what and found[2] == direction, note
    return int(found[3]), int(found[4])


def test_any_part_of_a_page_is_scrolled(client, pages):
    w = Web(client)
    w.go(pages.url("/scroll.html"))
    for name, what, top in (("row 0", "div#list the list", "document.querySelector('#list').scrollTop"),
                            ("the list", "div#list the list", "document.querySelector('#list').scrollTop"),
                            ("deep 0", "div", None), ("framed 0", "frame", "frames[0].scrollY"), ("framed ?far 0", "frame", None),
                            ("near", "frame", "frames[0].scrollY"), ("notes", "textarea notes", "document.querySelector('textarea').scrollTop")):
        w.go(pages.url("/scroll.html"))
        before = w.value(top) if top else 0
        moved, left = scrolls(w, what, element_id=w.id(name))
        assert moved > 40 and left > 400 and (not top or w.value(top) == before + moved)
        assert w.value("scrollY") == 0
    w.go(pages.url("/scroll.html"))
    scrolls(w, "div#chat the chat", "up", element_id=w.id("said 0"))
    assert scrolls(w, "div#chat the chat", element_id=w.id("the chat"))[1] == 0
    w.act("scroll", direction="down", element_id=w.id("far", "Iframe"))
    assert "wheel was turned over a frame of another site" in w.page["notes"][0]
    w.act("scroll", "no element", direction="down", element_id=999999)


def test_without_an_element_it_is_what_is_in_front(client, pages):
    w = Web(client)
    w.go(pages.url("/scroll.html"))
    assert scrolls(w, "page") == (1080, w.value("document.documentElement.scrollHeight") - 2160)
    for name in ("framed 0", "framed ?far 0"):  # what was clicked
        w.go(pages.url("/scroll.html"))
        w.click(name)
        scrolls(w, "frame")
        scrolls(w, "frame")
    w.go(pages.url("/scroll.html"))
    scrolls(w, "page")  # which is another one than the one with the click
    w.go(pages.url("/scroll.html"))
    w.type("notes", "x")  # what has the focus
    scrolls(w, "textarea notes", "up")
    w.go(pages.url("/scroll.html"))
    w.click("terms")  # a dialog, with its button at the end of it
    scrolls(w, "dialog#terms", "up")
    while scrolls(w, "dialog#terms")[1]:
        pass
    w.act("scroll", direction="down")
    assert w.page["notes"] == ["nothing was scrolled: there is no more to the bottom"] and w.value("scrollY") == 0
    w.click("close")
    scrolls(w, "page")
    w.go(pages.url("/scroll.html"))
    w.click("offer")  # what lies over the page
    scrolls(w, "div#sheet")
    assert w.value("scrollY") == 0


def test_a_page_of_frames_scrolls_them(client, pages):
    pages.pages["/set"] = "<!doctype html><title>Set</title><frameset cols='200,*'><frame src=/fields.html><frame src=/scroll-inner.html></frameset>"
    w = Web(client)
    w.go(pages.url("/set"))
    assert scrolls(w, "frame")[0] == 1080
    assert scrolls(w, "frame", "up") == (1080, 0)


def test_what_a_page_calls_its_parts_forges_no_note(client, pages):
    pages.pages["/named"] = """<div id='x" down by 1 px; 2 px are left' tabindex=0 style="height:99px;overflow:auto">
<p style="height:999px">words</div>"""
    w = Web(client)
    w.go(pages.url("/named"))
    w.act("scroll", direction="down", element_id=w.id("words"))
    assert w.page["notes"][0].startswith('scrolled "div#x\\" down by 1 px; 2 px are left" down by 99 px; ')
