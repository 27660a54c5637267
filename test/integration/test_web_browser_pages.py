"""The browser tool against the pages that people complain about: test/pages, each made by hand from what was reported."""
import base64
import contextlib
import re
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from harness import needs, web
from harness.client import PARAMERR, RpcError
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


# ---- what is long ----

@pytest.mark.parametrize("tag, text", [("p", "word another "), ("pre", "a line of a log, and that is all\n")])
def test_a_long_text_is_shown_where_it_is_in_view(client, pages, tag, text):
    """Slow: the browser itself lays out megabytes."""
    count = 2_000_000 // len(text)
    pages.pages["/long"] = f"<title>Long</title><{tag}>" + text * (count // 2) + "needle 🙂 " + text * (count // 2)
    w = Web(client)
    w.go(pages.url("/long"))
    [line] = [line for line in w.at.splitlines() if "StaticText" in line]
    assert text.strip() in line and "web_find" in line and 2000 < len(line) < 70000 and "needle" not in line
    w.act("find", text="needle 🙂")
    assert "needle 🙂" in w.at.split("[part:")[0] and len(w.at) < 70000 and len(w.page["notes"]) == 1, w.page
    first = w.call("text", max=1000)
    assert first["next_offset"] == 1000 and first["total"] > 1_900_000 and len(first["text"]) == 1000
    last = w.call("text", offset=first["total"] - 10, max=1000)
    assert last["next_offset"] is None and last["total"] == first["total"]


@pytest.mark.parametrize("name", ["rows", "elements", "frames"])
def test_pages_of_very_many_elements(client, pages, name):
    """Slow: as above."""
    pages.pages.update({
        "/rows": "<title>Many</title><table>" + "".join(f"<tr><td>{i}<td>name {i}<td><a href=#{i}>see</a>" for i in range(10000)) + "</table>",
        "/elements": "<title>Many</title>" + "".join(f"<p>name <b>{i}</b></p>" for i in range(50000)),
        "/frames": "<title>Many</title>" + "".join(f"<iframe srcdoc='<p>name {i}' width=60 height=40></iframe>" for i in range(200))})
    w = Web(client)
    assert "name" in w.go(pages.url(f"/{name}")) and len(w.at) < 100_000
    if name != "frames":
        w.act("find", text="9999")
        assert "9999" in w.at and w.value("scrollY") > 10000


# ---- kinds of elements ----

def test_every_kind_of_element_is_there_and_can_be_clicked(client, pages):
    w = Web(client)
    w.go(pages.url("/kinds.html"))
    for name, says in (("West", "west"), ("East", "east"), ("Drawn link", "svg"), ("Open shadow", "open"), ("Closed shadow", "closed"),
                       ("Slotted button", "slotted"), ("Presented", "presented"), ("in a layout", "layout"), ("رابط", "rtl"), ("buy", "pear"),
                       ("Custom", "custom"), ("Picture button", "picture"), ("Clickable span", "span"), ("Framed", "framed")):
        w.click(name)
        assert w.value("log.textContent.trim()") == says, name
        w.value("log.textContent=''")
    assert "Hidden detail" in w.click("More of it") and "Shown detail" not in w.click("Less of it")
    w.click("Pop")
    w.click("in it")
    assert 'dialog [modal: True]' in w.click("Ask") and "Custom" not in w.at
    w.click("Answer")
    assert w.value("log.textContent.trim()") == "popped dialog" and "Inert button" not in w.at
    for name in ('image "the map"', 'image "A chart"', "Drawn words", 'heading "Slotted title"', 'columnheader "Price"', 'cell "Apple"', "MathMLFraction",
                 'button "Object"'):
        assert name in w.at, name


# ---- waiting, finding, reading, pictures ----

def test_waiting(client, pages):
    w = Web(client)
    w.go(pages.url("/waits.html"))
    for button, what in (("come", {"text": "result is there"}), ("go", {"gone": "Loading"}), ("move", {"url": "step=2"}),
                         ("shadow", {"text": "in the shadow"}), ("fetch", {"text": "All fetched"})):
        w.click(button)
        w.act("wait", timeout=60, **what)
    w.click("Late", "disabled")
    w.click("enable")
    w.act("wait", element_id=w.id("Late"), timeout=60)
    w.click("Late")
    w.act("wait", text="pressed")
    w.act("wait", network_idle=True)
    for words, what in (('"nothing" has not come within 1 s', {"text": "nothing"}), ('"Beside" has not gone', {"gone": "Beside"}),
                        ('"zz" is not in the address', {"url": "zz"})):
        w.act("wait", words, timeout=1, **what)
        assert "Waits" in w.at
    w.act("wait", "no element", element_id=10**7)
    for wrong in ({}, {"text": "a", "gone": "b"}, {"text": ""}, {"text": "a", "timeout": 0}):
        with pytest.raises(RpcError) as refused:
            w.call("wait", **wrong)
        assert refused.value.code == PARAMERR


def test_finding_a_text(client, pages):
    w = Web(client)
    w.go(pages.url("/waits.html"))
    assert "needle" not in w.at
    places = []
    for _ in range(3):
        assert "needle" in w.act("find", text="NEEDLE")
        places.append(w.value("scrollY"))
    assert places[0] == places[2] != places[1] and places[0] > 1000
    w.act("find", text="the haystack")
    assert w.page["notes"][0].endswith(': "needle in the haystack"')
    w.act("find", '"qq\\\\"" is not on this page', text='qq"')


MARKDOWN = """# Waits

Some **bold** words and [a link](ROOT/fields.html).

- one
- two
  1. deep

| A | B |
| --- | --- |
| 1 | 2\\|3 |

```
a
  b
```

![A picture](ROOT/x.png)"""


def test_a_page_as_markdown_and_in_parts(client, pages):
    w = Web(client)
    w.go(pages.url("/waits.html"))
    assert w.call("text", format="markdown")["text"] == MARKDOWN.replace("ROOT", pages.url("").rstrip("/"))
    whole = w.call("text")
    assert "Beside" in whole["text"] and set(whole) == {"web_url", "title", "text"}
    part = w.call("text", offset=3, max=5)
    assert (part["text"], part["total"], part["next_offset"]) == (whole["text"][3:8], len(whole["text"]), 8)
    assert w.call("text", format="html", max=15)["text"] == '<html lang="en"'
    with pytest.raises(RpcError, match="text, markdown and html"):
        w.call("text", format="pdf")


def test_a_picture_of_an_element(client, pages):
    w = Web(client)
    w.go(pages.url("/waits.html"))
    w.act("find", text="boxed")
    box = w.id("boxed")
    w.value("scrollTo(0,0)")
    data = base64.b64decode(w.call("screenshot", element_id=box)["data"])
    assert data[:4] == b"\x89PNG" and [int.from_bytes(data[at:at + 4], "big") for at in (16, 20)] == [120, 80]
    for wrong, words in ({"element_id": 10**7}, "no element"), ({"element_id": box, "full_page": True}, "either"):
        with pytest.raises(RpcError, match=words):
            w.call("screenshot", **wrong)
