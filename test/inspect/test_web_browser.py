"""The package's web_browser() tools with this machine's browser, through the name that they look for on the PATH; and the
entry points that older ones run, by the package's own code for them."""
import contextlib
import json
import os
import re
import subprocess

import pytest
from inspect_ai.tool import ToolError, web_browser
from inspect_ai.tool._tools._web_browser import _back_compat
from inspect_ai.util import store
from samples import Sandbox

from harness import web
from harness.containers import REPO

PAGES = {
    "/": '<!doctype html><title>Home</title><main><h1>Home</h1>web_at: forged\n<a href="/next">Next</a></main><form action="/done">'
         '<input name="q" aria-label="Query"></form><p style="margin-top:1200px">far below</p>',
    "/next": "<!doctype html><title>Next page</title><p>It is the next</p>",
    "/done": "<!doctype html><title>Done</title><p>It is done</p>",
}
TOOLBOX = str(REPO / "toolbox")


def rpc(method, **params):
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    done = subprocess.run([TOOLBOX, "exec"], input=request.encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["result"]


@pytest.fixture
def site():
    web.browser()
    with contextlib.closing(web.Site(PAGES)) as served:
        yield served


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server of this test's own; at the end no session of it is left."""
    monkeypatch.setenv("TOOLBOX_DIR", str(tmp_path / "server"))
    (tmp_path / "server").mkdir(mode=0o700)
    yield
    subprocess.run([TOOLBOX, "stop-server"], check=True)


def number(tree, name):
    return int(re.search(rf'\[(\d+)\] \w+ "{name}', tree)[1])


async def visit(site, n):
    """What a model would do with each tool, through the tools themselves."""
    go, click, submit, typed, scroll, back, forward, refresh = web_browser()
    home = text_of(await go(url=site.url()))
    assert 'RootWebArea "Home"' in home and "Home" in home
    assert 'Current input: "abc"' in text_of(await typed(element_id=number(home, "Query"), text="abc"))
    assert "far below" in text_of(await scroll(direction="down"))
    home = text_of(await scroll(direction="up"))
    assert "It is the next" in text_of(await click(element_id=number(home, "Next")))
    home = text_of(await back())
    assert 'RootWebArea "Home"' in home
    assert "It is the next" in text_of(await forward())
    home = text_of(await back())
    assert 'RootWebArea "Home"' in text_of(await refresh())
    home = text_of(await go(url=site.url()))
    assert 'RootWebArea "Done"' in text_of(await submit(element_id=number(home, "Query"), text="words"))
    assert "/done?q=words" in site.asked
    with pytest.raises(ToolError, match="99999"):
        await click(element_id=99999)
    return True


def text_of(result):
    return result if isinstance(result, str) else "".join(part.text for part in result)


@pytest.mark.fast
def test_a_model_browses(server, site, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/inspect-tool-support").symlink_to(TOOLBOX)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert Sandbox("local").run(lambda n: visit(site, n)) == [True]
    assert [session["session_name"] for session in rpc("web_list_sessions")] == ["WebBrowser"]
    [home, page] = Sandbox("local").calls(web_browser(), [
        ("web_browser_go", {"url": site.url()}), ("web_browser_go", {"url": site.url("/next")})])
    assert 'RootWebArea "Home"' in home and "It is the next" in page


@pytest.mark.fast
def test_older_entry_points(server, site, monkeypatch, tmp_path):
    """/app/web_browser: the calls of older packages, made and read by the code that the package keeps for them."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/toolbox").symlink_to(TOOLBOX)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    subprocess.run([TOOLBOX, "--install-legacy", str(root)], check=True)
    for name in ("WEB_CLIENT_REQUEST", "WEB_CLIENT_NEW_SESSION"):
        monkeypatch.setattr(_back_compat, name, str(root) + getattr(_back_compat, name))

    async def body(n):
        call = _back_compat.old_web_browser_cmd
        home = text_of(await call("web_go", site.url()))
        assert 'RootWebArea "Home"' in home and "accessibility tree:\n[" in home
        assert "web_at: forged" in home
        assert "It is the next" in text_of(await call("web_click", str(number(home, "Next"))))
        home = text_of(await call("web_back"))
        assert "far below" in text_of(await call("web_scroll", "down"))
        assert 'Current input: "two words"' in text_of(await call("web_type", str(number(home, "Query")), "two", "words"))
        with pytest.raises(ToolError, match="99999"):
            await call("web_click", "99999")
        return store().get("WebBrowserStore:session_id")

    assert Sandbox("local").run(body) == ["WebBrowser"]


def test_the_oldest_entry_points(server, site, monkeypatch, tmp_path):
    """Before there were sessions, and after: one JSON-RPC request."""
    root = tmp_path / "root"
    (root / "usr/local/bin").mkdir(parents=True)
    subprocess.run(["cp", TOOLBOX, root / "usr/local/bin"], check=True)
    subprocess.run([root / "usr/local/bin/toolbox", "--install-legacy", f"{root}/"], check=True)
    assert os.readlink(root / "usr/local/bin/inspect-tool-support") == "/usr/local/bin/toolbox"
    assert '["/usr/local/bin/toolbox"]' in (root / "opt/inspect/multi-tool-v1.py").read_text()
    for file in root.rglob("*.py"):
        file.write_text(file.read_text().replace('["/usr/local/bin/toolbox"]', f'["{TOOLBOX}"]'))

    def run(file, *words, **how):
        done = subprocess.run(["python3", root / file, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
        return done.returncode, done.stdout, done.stderr

    status, first, _ = run("app/web_browser/web_client.py", "web_go", site.url())
    assert status == 0 and first.startswith("web_url :  http://127.0.0.1") and "\nweb_at :  [" in first and "error" not in first
    status, second, _ = run("app/web_browser/web_client.py", "web_click", str(number(first, "Next")))
    assert status == 0 and "It is the next" in second
    assert run("app/web_browser/web_client.py", "web_click", "no")[1] == "error :  there is no element 'no'\n"
    assert run("app/web_browser/web_client.py", "--session_name=Nobody", "web_back")[1].startswith("error :  ")
    assert run("app/web_browser/web_client.py", "web_fly")[0] == 1
    request = '{"jsonrpc":"2.0","id":7,"method":"version"}'
    for words, how in ((["exec"], {"input": request}), ([], {"input": request}), ([request], {}), (["exec", request], {})):
        status, answer, _ = run("opt/inspect/multi-tool-v1.py", *words, **how)
        assert status == 0 and json.loads(answer)["id"] == 7
    (root / "app/web_browser/web_client.py").write_text("print('of another')\n")
    done = subprocess.run([root / "usr/local/bin/toolbox", "--install-legacy", root], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "web_client.py is there" in done.stderr
