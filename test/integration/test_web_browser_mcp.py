"""The browser's tools of `toolbox mcp serve`, with a real browser."""
import base64
import contextlib
import json
import re

import pytest

from harness import web
from harness.mcp_client import ToolError
from harness.processes import wait_until
from harness.web import Site

FORM = """<!doctype html><title>Form</title><main><h1>Form</h1></main><form action="/done"><label>Name <input name="n"></label>
<select aria-label="Month"><option>January<option value="2">February</select><button>Send</button></form>
<p style="margin-top:2000px">far below</p>"""
DONE = "<!doctype html><title>Done</title><p>It is done</p>"


@pytest.fixture
def site():
    web.browser()
    with contextlib.closing(Site({"/": FORM, "/done": DONE})) as served:
        yield served


def number(page, name):
    return int(re.search(rf'\[(\d+)\] \w+ "{name}', page)[1])


def test_a_visit(mcp, site):
    page = mcp.call("web_go", url=site.url())
    assert page.startswith('[')
    page = mcp.call("web_type", element_id=number(page, "Name"), text="Ann")
    assert 'Current input: "Ann"' in page
    page = mcp.call("web_select", element_id=number(page, "Month"), value="2")
    assert 'Current input: "February"' in page
    assert "far below" not in page and "far below" in mcp.call("web_scroll", direction="down")
    assert "far below" in mcp.call("web_text")
    assert mcp.call("web_evaluate", expression="({a: [1, document.title]})")["value"] == {"a": [1, "Form"]}
    page = mcp.call("web_scroll", direction="up")
    page = mcp.call("web_type", element_id=number(page, "Name"), text="Bob", submit=True)
    assert "It is done" in page and "/done?n=Bob" in site.asked
    assert "It is done" not in mcp.call("web_history", direction="back")
    mcp.call("web_press", key="Tab")
    tabs = json.loads(mcp.call("web_tabs"))["tabs"]
    assert [tab["current"] for tab in tabs] == [True]
    assert mcp.call("web_click", element_id=number(mcp.call("web_history", direction="refresh"), "Send"))
    assert mcp.call("web_close") == {"closed": True}
    assert mcp.call("web_close") == {"closed": False}


def test_the_text_is_the_tree_and_a_picture_is_an_image(mcp, site):
    mcp.call("web_go", url=site.url())
    result = mcp.request("tools/call", {"name": "web_history", "arguments": {"direction": "refresh"}})
    assert result["content"][0]["text"].startswith("[") and "structuredContent" not in result
    picture = mcp.request("tools/call", {"name": "web_screenshot", "arguments": {}})
    [image] = [part for part in picture["content"] if part["type"] == "image"]
    assert image["mimeType"] == "image/png" and base64.b64decode(image["data"]).startswith(b"\x89PNG")
    result = mcp.request("tools/call", {"name": "web_click", "arguments": {"element_id": 123456}})
    assert result["content"][0]["text"].startswith("Error: ") and result["isError"]
    [text] = mcp.request("tools/call", {"name": "web_go", "arguments": {"url": "http://127.0.0.1:1/"}})["content"]
    assert text["text"].startswith("Error: ")


def test_without_a_page(mcp):
    for tool, arguments in (("web_click", {"element_id": 1}), ("web_text", {}), ("web_screenshot", {}), ("web_tabs", {})):
        with pytest.raises(ToolError, match="web_go"):
            mcp.call(tool, **arguments)


def test_without_a_browser(serve, workdir):
    (workdir / "bin").mkdir()
    mcp = serve(env={"PATH": str(workdir / "bin"), "HOME": str(workdir)})
    with pytest.raises(ToolError, match="no browser"):
        mcp.call("web_go", url="example.org")


def test_the_end_of_the_connection_is_that_of_the_browser(client, serve, site):
    mcp = serve()
    mcp.call("web_go", url=site.url())
    assert len(client.rpc("web_list_sessions", {})) == 1
    mcp.close()
    assert client.rpc("web_list_sessions", {}) == []


def test_a_killed_mcp_serve_leaves_no_browser(client, serve, site):
    mcp = serve()
    mcp.call("web_go", url=site.url())
    assert len(client.rpc("web_list_sessions")) == 1
    mcp.process.kill()
    mcp.process.communicate()
    wait_until(lambda: client.rpc("web_list_sessions") == [], "the browser to end")
    wait_until(lambda: not [path for path in client.dir.iterdir() if path.name.startswith(".Profile-")], "its folder to go")
