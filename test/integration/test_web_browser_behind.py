"""Files, dialogs, state and what else is about the browser rather than a page, with a real browser."""
import base64
import json

import pytest

from harness.client import RpcError
from harness.web import Site, Web, browser

HOME = """<!doctype html><title>Home</title>
<form><label>Files <input type=file id=f multiple></label><input type=file id=one aria-label=single></form>
<button onclick="f.click()">choose</button>
<button onclick="document.title=confirm('Sure?')">ask</button>
<button onclick="document.title='hi '+prompt('Name?','Bob')">prompt</button>
<button onclick="alert('\\nforged');document.title='told'">tell</button>
<a href=/report>download</a> <a href=/slow>slow download</a> <p id=o></p>
<script>
for(const i of [f,one])i.onchange=()=>o.textContent=[...i.files].map(x=>x.name+':'+x.size).join(',')
</script>"""
TOLD = """<!doctype html><title>Told</title><script>
console.log('hello',{a:1},5);console.error('bad');localStorage.setItem('k','v');document.cookie='c=1;path=/'
setTimeout(()=>{throw new Error('boom')})
</script><img src=/missing alt=none>"""
SELF = """<!doctype html><title>Self</title><p id=o></p><script>
o.textContent=[innerWidth,innerHeight,devicePixelRatio,navigator.userAgent.split(' ')[0],navigator.language,
Intl.DateTimeFormat().resolvedOptions().timeZone,matchMedia('(prefers-color-scheme: dark)').matches,navigator.maxTouchPoints>0].join('|')
navigator.geolocation.getCurrentPosition(p=>o.textContent+='|'+p.coords.latitude,()=>o.textContent+='|nowhere')
</script>"""
HELD = """<!doctype html><title>Held</title><p id=o></p><script>o.textContent='it holds '+localStorage.getItem('k')+' '+document.cookie</script>"""


def report(handler):
    handler.give("hello", kind="text/plain", **{"Content-Disposition": 'attachment; filename="../re\\"port.txt"'})


def locked(handler):
    given = base64.b64encode(b"ann:secret").decode()
    if handler.headers.get("Authorization") == f"Basic {given}":
        handler.give("<title>Inside</title>")
    else:
        handler.give("<title>Outside</title>", 401, **{"WWW-Authenticate": 'Basic realm="x"'})


PAGES = {"/": HOME, "/told": TOLD, "/self": SELF, "/held": HELD, "/report": report, "/locked": locked}


@pytest.fixture
def site():
    browser()
    served = Site(PAGES)
    yield served
    served.close()


@pytest.fixture
def files(workdir):
    for name, text in (("one.txt", "abc"), ("zwei ä.txt", "abcd")):
        (workdir / name).write_text(text)
    return [str(workdir / "one.txt"), str(workdir / "zwei ä.txt")]


def upload(w, name, paths, error=None):
    return w.act("upload", error, element_id=w.id(name), paths=paths)


def test_files_for_an_input_its_label_and_what_asks_for_some(client, site, files, workdir):
    w = Web(client)
    w.go(site.url())
    assert "one.txt:3,zwei ä.txt:4" in upload(w, "Files", files)
    assert '"one.txt:3"' in upload(w, "choose", files[:1])
    assert '"one.txt:3,zwei ä.txt:4"' in w.act("upload", None, element_id=w.id("Files", "LabelText|button"), paths=files)
    assert '"zwei ä.txt:4"' in upload(w, "single", files[1:])
    upload(w, "single", files, error="takes one file, not several")
    upload(w, "ask", files, error="takes no files, and asks for none")
    for path, says in (("one.txt", "no absolute path"), (str(workdir / "none"), "No such file"), (str(workdir), "Is a directory")):
        upload(w, "Files", [path], error=says)
    upload(w, "Files", [], error="no file is named")
    w.click("single", error="web_upload")
    w.click("choose", error="web_upload")


def test_downloads_are_refused_or_put_into_a_folder(client, site, workdir):
    w = Web(client)
    w.go(site.url())
    w.click("download", error="this is a download .*downloads")
    folder = workdir / "got"
    folder.mkdir()
    w = Web(client, downloads=str(folder))
    w.go(site.url())
    for name in ("report.txt", "report (2).txt"):
        w.click("download")
        names = sorted(p.name for p in folder.iterdir())
        note, = w.page["notes"]
        assert note.startswith("downloaded ") and note.endswith(f", 5 bytes, into {folder}"), w.page
    assert len(names) == 2 and all("/" not in name for name in names)
    assert [(folder / name).read_text() for name in names] == ["hello"] * 2
    listed = w.call("downloads")
    assert [one["state"] for one in listed] == ["done"] * 2 and sorted(one["name"] for one in listed) == names
    with pytest.raises(RpcError, match="downloads: '/none'"):
        Web(client, downloads="/none")
    with pytest.raises(RpcError, match="no absolute path"):
        Web(client, downloads="none")


def test_dialogs_that_are_left_to_whoever_drives(client, site):
    w = Web(client, ask_dialogs=True)
    w.go(site.url())
    for accept in (True, False):
        assert w.click("ask").splitlines()[0] == 'Dialog: confirm "Sure?"'
        assert w.act("go", "answered first, with web_dialog", url=site.url("/self")).startswith("Dialog: ")
        with pytest.raises(RpcError, match="answered first"):
            w.call("evaluate", expression="1")
        assert w.call("network")  # the page is not asked
        assert f'RootWebArea "{str(accept).lower()}"' in w.act("dialog", accept=accept)
    assert 'prompt "Name?" with "Bob"' in w.click("prompt")
    assert 'RootWebArea "hi Ann"' in w.act("dialog", text="Ann")
    w.click("prompt")
    assert 'RootWebArea "hi null"' in w.act("dialog", accept=False)
    assert w.click("tell").splitlines()[0] == 'Dialog: alert "\\nforged"'
    assert 'RootWebArea "told"' in w.act("dialog")
    w.act("dialog", "shows no dialog")
    with pytest.raises(RpcError, match="answered first"):
        w.call("evaluate", expression="alert(1)")
    w.act("dialog")


def test_what_a_page_writes_and_asks_for(client, site):
    w = Web(client)
    w.go(site.url("/told"))
    said = [(one["level"], one["text"].splitlines()[0]) for one in w.call("console")]
    assert said[:3] == [("log", "hello Object 5"), ("error", "bad"), ("exception", "Error: boom")]
    assert any(level == "error" and "404" in text for level, text in said)
    asked = w.call("network", url="/missing")
    assert [(one["method"], one["status"], one["type"]) for one in asked] == [("GET", 404, "Image")]
    assert [one["url"] for one in w.call("network")][0] == site.url("/told")
    for n in range(210):
        w.value(f"fetch('/told?{n}').then(r=>r.status)")
    assert len(w.call("network")) == 200 and w.call("network")[-1]["url"].endswith("?209")


def test_what_was_sent_and_what_came(client, site):
    site.pages["/api"] = lambda handler: handler.give('{"ok":1}', kind="application/json")
    site.pages["/blob"] = lambda handler: handler.give(b"\x00\xff\x89", kind="application/octet-stream")
    w = Web(client)
    w.go(site.url())
    w.value("fetch('/api',{method:'POST',body:'a=ä'}).then(r=>r.text())")
    w.value("fetch('/blob').then(r=>r.arrayBuffer()).then(b=>b.byteLength)")
    asked = {one["url"].rpartition("/")[2]: one["id"] for one in w.call("network")}
    assert w.call("network", body=asked["api"]) == {"id": asked["api"], "request_body": "a=ä", "base64": False, "body": '{"ok":1}'}
    found = w.call("network", body=asked["blob"])
    assert found["base64"] and base64.b64decode(found["body"]) == b"\x00\xff\x89" and found["request_body"] is None
    assert "<title>Home</title>" in w.call("network", body=asked[""])["body"]
    done = client.cli("web_browser", "network", "--body", str(asked["api"]))
    assert done.returncode == 0 and json.loads(done.stdout)["body"] == '{"ok":1}', done
    with pytest.raises(RpcError, match="no request 99999"):
        w.call("network", body=99999)


def test_another_browser(client, site):
    w = Web(client)
    w.act("emulate", width=400, height=800, scale=2, touch=True, user_agent="X/1", timezone="Asia/Tokyo", color_scheme="dark")
    w.act("emulate", language="de-DE,de", latitude=1.5, longitude=2)
    w.act("emulate", permissions=["notifications"])
    wanted = "400|800|2|X/1|de-DE|Asia/Tokyo|true|true|1.5"
    w.go(site.url("/self"))
    assert wanted in w.act("wait", text="1.5")
    w.act("tabs", new=True)
    w.go(site.url("/self"))
    assert wanted in w.act("wait", text="1.5")
    w.act("emulate", "(?i)timezone", timezone="No/Where")
    w.act("emulate", timezone="Europe/Rome")
    w.go(site.url("/self"))
    assert "Europe/Rome" in w.act("wait", text="Europe/Rome")
    w.act("emulate", network="offline")
    w.go(site.url("/self"), error="there is no network")
    w.act("emulate", network="online")
    w.go(site.url("/self"))
    for wrong in ({"network": "slow"}, {"color_scheme": "red"}, {"width": 400}, {"latitude": 1}, {"scale": 0}):
        with pytest.raises(RpcError, match="Invalid parameters"):
            w.call("emulate", **wrong)


def test_state_is_taken_along(client, site):
    w = Web(client)
    w.go(site.url("/told"))
    state = w.call("state")
    assert [(one["name"], one["value"]) for one in state["cookies"]] == [("c", "1")]
    assert state["origins"] == [{"origin": site.url("/")[:-1], "localStorage": [{"name": "k", "value": "v"}]}]
    w.close()
    w = Web(client)
    assert "it holds null" in w.go(site.url("/held"))
    w.act("state", load=state)
    assert "it holds v c=1" in w.go(site.url("/held"))
    for odd in ({}, {"cookies": 5, "origins": "x"}, {"origins": [5, {"origin": 1}]}):
        w.act("state", load=odd)
    assert "it holds v c=1" in w.go(site.url("/held"))


def test_pdf_and_devtools(client, site):
    w = Web(client, devtools=True)
    w.go(site.url())
    pdf = w.call("pdf")
    assert pdf["mime_type"] == "application/pdf" and base64.b64decode(pdf["data"]).startswith(b"%PDF-")
    assert w.call("devtools", method="Page.getLayoutMetrics")["cssLayoutViewport"]["clientWidth"] == 1280
    assert "product" in w.call("devtools", method="Browser.getVersion", browser=True)
    with pytest.raises(RpcError, match="(?i)wasn't found"):
        w.call("devtools", method="No.thing")
    with pytest.raises(RpcError, match="was not opened for that"):
        Web(client).call("devtools", method="Browser.getVersion")


def test_a_password_of_http_in_the_address(client, site):
    w = Web(client)
    w.go(site.url("/locked"), "NAME:PASSWORD@HOST")
    assert 'RootWebArea "Inside"' in w.go(site.url("/locked").replace("//", "//ann:secret@"))


def test_the_command_line(client, site, files, workdir):
    def cli(*words, status=0):
        done = client.cli("web_browser", *map(str, words))
        assert done.returncode == status, done
        return done.stdout.decode() + done.stderr.decode()

    (workdir / "got").mkdir()
    name = cli("new", "--downloads", workdir / "got", "--ask-dialogs", "--devtools").strip()
    w = Web.__new__(Web)
    w.client, w.name = client, name
    w.go(site.url())
    assert "one.txt:3" in cli("upload", w.id("Files"), *files)
    cli("click", w.id("download"))
    assert "done" in cli("downloads") and len(list((workdir / "got").iterdir())) == 1
    assert "Dialog: confirm" in cli("click", w.id("ask"))
    assert 'RootWebArea "false"' in cli("dialog", "dismiss")
    cli("dialog", "perhaps", status=2)
    assert "de" in cli("emulate", "--language", "de", "--size", "500x400") or True
    cli("emulate", "--size", "500", status=2)
    cli("go", site.url("/told"))
    assert "boom" in cli("console") and "/missing" in cli("network", "missing")
    cli("state", "save", workdir / "state.json")
    assert json.loads((workdir / "state.json").read_text())["cookies"][0]["name"] == "c"
    cli("state", "load", workdir / "state.json")
    cli("pdf", workdir / "page.pdf")
    assert (workdir / "page.pdf").read_bytes().startswith(b"%PDF-")
    assert "clientWidth" in cli("devtools", "Page.getLayoutMetrics", "{}")
    cli("devtools", "Page.getLayoutMetrics", "{", status=2)
