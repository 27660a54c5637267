"""toolbox mcp: the command line of MCP servers."""
import json
import re
import sys

import pytest

from harness.mcp import ECHO, PRELUDE, Server
from harness.processes import wait_until

# Tools as a server has them: two pages, odd names, a tool that fails, one that answers with everything there is.
TOOLS = r"""
pages = [[{"name": "add", "description": "\n Adds.\nMore.", "inputSchema": {"type": "object", "required": ["a"],
          "properties": {"a": {"type": "number", "description": "first"}, "b": {}}}}],
         [{"name": "fail", "description": "\x1b[31mred\x07"}, {"name": "all", "description": "x" * 1000, "inputSchema": {}}]]
everything = [{"type": "text", "text": "text\n"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"},
              {"type": "resource_link", "uri": "file:///x"}, {"type": "resource", "resource": {"uri": "u:1", "text": "inside"}},
              {"type": "resource", "resource": {"uri": "u:2", "blob": "AAAA"}}, {"type": "new"}]
shaken = 0
while message := take():
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        answer(message, {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {}})
    elif method == "notifications/initialized":
        shaken += 1
    elif method == "tools/list":
        page = int(params.get("cursor", "0"))
        answer(message, {"tools": pages[page], **({"nextCursor": "1"} if page == 0 else {})})
    elif params["name"] == "add":
        answer(message, {"content": [], "structuredContent": {"sum": params["arguments"]["a"] + 1, "shaken": shaken}})
    elif params["name"] == "fail":
        answer(message, {"content": [{"type": "text", "text": "it failed"}], "isError": True})
    else:
        answer(message, {"content": everything})
"""

# One of the revision without a handshake.
STATELESS = r"""
while message := take():
    meta = message["params"].get("_meta", {})
    if meta.get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    elif message["method"] == "tools/list":
        answer(message, {"resultType": "complete", "tools": [{"name": "one", "inputSchema": {"type": "object"}}]})
    else:
        answer(message, {"resultType": "complete", "content": [{"type": "text", "text": json.dumps(message["params"]["arguments"])}]})
"""


def mcp(client, *words, status=0, **how):
    """What it printed, on stdout, or on stderr where it failed."""
    done = client.cli("mcp", *words, **how)
    assert done.returncode == status, done
    return (done.stdout or done.stderr).decode()


def launch(client, fake, *options):
    return mcp(client, "launch", *options, "--", sys.executable, "-c", PRELUDE + fake).strip()


def test_by_hand(client):
    session = launch(client, TOOLS)
    assert session == "0"
    text = mcp(client, "tools", session)
    assert text == ('add  Adds.\n    "a": "number" (required)  first\n    "b"\nfail  red\nall  ' + "x" * 400 + "…\n")
    assert mcp(client, "call", session, "add", '{"a":\n1}') == '{"sum": 2, "shaken": 1}\n'
    assert mcp(client, "call", session, "add", "-", stdin=b'{"a": 2}') == '{"sum": 3, "shaken": 1}\n'
    assert mcp(client, "call", session, "fail", status=1) == "it failed\n"
    assert mcp(client, "call", session, "all") == (
        "text\n[image image/png, 4 characters of base64]\n[resource_link file:///x]\ninside\n[resource u:2]\n[new ]\n")
    assert json.loads(mcp(client, "call", session, "fail", "--json", status=1))["isError"] is True
    assert [tool["name"] for tool in json.loads(mcp(client, "tools", session, "--json"))] == ["add", "fail", "all"]
    assert mcp(client, "kill", session) == ""
    assert "was killed" in mcp(client, "call", session, "add", status=1)
    assert mcp(client, "list").splitlines()[1:] == []


def test_without_a_handshake(client):
    session = launch(client, STATELESS)
    assert mcp(client, "tools", session) == "one\n"
    assert mcp(client, "call", session, "one", '{"x":1}') == '{"x": 1}\n'


def test_list(client):
    launch(client, ECHO)
    dead = Server(client, "sh", "-c", "exit 3")
    wait_until(lambda: dead.status()["state"] == "ended", "its end")
    table = mcp(client, "list").splitlines()
    assert table[0].split()[:4] == ["session_id", "pid", "state", "exit_code"] and len(table) == 3
    states = [(one["session_id"], one["state"], one["exit_code"]) for one in json.loads(mcp(client, "list", "--json"))]
    assert states == [(0, "running", None), (1, "ended", 3)]


def test_launch_is_as_if_started_here(client, workdir):
    fake = "while message := take():\n    answer(message, [os.getcwd(), dict(os.environ)])\n"
    here = mcp(client, "launch", "--env", "ADDED=é=1", "--", sys.executable, "-c", PRELUDE + fake,
               env={"MINE": "x"}, cwd=workdir).strip()
    request = {"jsonrpc": "2.0", "id": 1, "method": "m"}
    where, env = client.rpc("mcp_send_request", {"session_id": int(here), "request": request})["result"]
    assert (where, env["MINE"], env["ADDED"]) == (str(workdir), "x", "é=1")
    assert not [name for name in env if name.startswith(("TOOLBOX_", "INSPECT_"))]
    there = launch(client, fake, "--cwd", "/usr")
    assert client.rpc("mcp_send_request", {"session_id": int(there), "request": request})["result"][0] == "/usr"


@pytest.mark.parametrize("words, message", [
    ([], "a command is missing"),
    (["lst"], "did you mean 'list'"),
    (["launch"], "lacks an argument; it takes [--] PROGRAM"),
    (["launch", "--env", "x", "true"], "NAME=VALUE"),
    (["launch", "--cwd"], "takes a value"),
    (["tools"], "lacks an argument; it takes SESSION"),
    (["tools", "x"], "no number of a session"),
    (["tools", "01"], "no number of a session"),
    (["call", "0"], "lacks an argument; it takes SESSION TOOL"),
    (["call", "0", "t", "{"], "Not valid JSON"),
    (["call", "0", "t", "[]"], "no JSON object"),
    (["list", "x"], "takes no arguments"),
    (["kill", "0", "--frob"], "unknown option"),
])
def test_usage(client, words, message):
    assert message in mcp(client, *words, status=2)


@pytest.mark.parametrize("words, message", [
    (["kill", "7"], "there is no MCP server 7"),
    (["launch", "no-such"], "no-such: not found"),
    (["launch", "--cwd", "/no/such", "true"], "/no/such"),
    (["launch", "--user", "no-such", "true"], "no-such"),
])
def test_failures(client, words, message):
    assert message in mcp(client, *words, status=1)


def test_help(client):
    text = mcp(client, "--help")
    assert all(re.search(rf"^  {word} ", text, re.M) for word in ("launch", "list", "tools", "call", "kill", "serve"))

# One that always knows more.
ENDLESS = r"""
while message := take():
    if message["method"] == "initialize":
        answer(message, {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}})
    elif message["method"] == "tools/list":
        answer(message, {"tools": [{"name": "x", "description": "y" * BYTES}], "nextCursor": "more"})
"""


def test_a_list_of_tools_without_end(client):
    """Slow: 64 MiB of it are read, or a thousand pages."""
    for size, message in ("4 << 20", "is longer than 64 MiB"), ("1", "has more than 1000 pages"):
        server = launch(client, ENDLESS.replace("BYTES", f"({size})"))
        assert f"the server's list of tools {message}" in mcp(client, "tools", server, status=1)
