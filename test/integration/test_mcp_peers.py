"""Real MCP servers, written by others, through the bridge: the handshake, the lists, every tool that needs no network."""
import base64
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import needs, peers
from harness.mcp import KEEPER, Server
from harness.server import gone


class Peer(Server):
    """A server after the handshake."""

    def __init__(self, client, *words, **params):
        super().__init__(client, *words, **params)
        self.ids = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self.info = self.result("initialize", hello)
        self.notify("notifications/initialized")
        self.tools = {tool["name"]: tool for tool in self.result("tools/list")["tools"]}
        self.called = set()

    def result(self, method, params=None):
        self.ids += 1
        answer = self.ask(method, id=self.ids, **({"params": params} if params else {}))
        assert "error" not in answer, answer
        return answer["result"]

    def call(self, tool, **arguments):
        """The result of a tool; it must not have failed."""
        self.called.add(tool)
        result = self.result("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result

    def text(self, tool, **arguments):
        return "\n".join(part["text"] for part in self.call(tool, **arguments)["content"] if part["type"] == "text")

    def fails(self, tool, **arguments):
        """The text of its failure, as a result or as an error."""
        self.ids += 1
        answer = self.ask("tools/call", id=self.ids, params={"name": tool, "arguments": arguments})
        if "error" in answer:
            return answer["error"]["message"]
        assert answer["result"].get("isError"), answer
        return answer["result"]["content"][0]["text"]

    def finish(self, but=()):
        """Every tool was called; its end leaves no process."""
        assert self.called | set(but) >= set(self.tools), set(self.tools) - self.called
        assert self.kill() is None
        gone(KEEPER)


def python(name):
    return peers.folder("python-servers") / "bin" / name


def node(name):
    return needs.program("node"), peers.folder("node-servers") / "node_modules/@modelcontextprotocol" / name / "dist/index.js"


def test_time(client):
    peer = Peer(client, python("mcp-server-time"), "--local-timezone", "Europe/Paris")
    assert json.loads(peer.text("get_current_time", timezone="Asia/Tokyo"))["datetime"].endswith("+09:00")
    text = peer.text("convert_time", source_timezone="Asia/Tokyo", time="16:30", target_timezone="Asia/Kolkata")
    assert json.loads(text)["time_difference"] == "-3.5h"
    assert "Nowhere" in peer.fails("get_current_time", timezone="Nowhere/Land")
    peer.finish()


@needs.programs("git")
def test_git(client, workdir):
    repo = workdir / "repo"
    env = {"PATH": os.environ["PATH"], "HOME": str(workdir), "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", "-b", "trunk", repo], check=True, env=env)
    (repo / "file").write_text("one\n")
    peer = Peer(client, python("mcp-server-git"), env=env)
    at = {"repo_path": str(repo)}
    if "git_init" in peer.tools:
        peer.call("git_init", repo_path=str(workdir / "other"))
    peer.call("git_add", **at, files=["file"])
    assert "+one" in peer.text("git_diff_staged", **at)
    peer.call("git_commit", **at, message="first é")
    assert "first é" in peer.text("git_log", **at)
    assert "+one" in peer.text("git_show", **at, revision="HEAD")
    peer.call("git_create_branch", **at, branch_name="side")
    peer.call("git_checkout", **at, branch_name="side")
    assert "side" in peer.text("git_branch", **at, branch_type="local")
    (repo / "file").write_text("two\n")
    assert "+two" in peer.text("git_diff_unstaged", **at)
    assert "+two" in peer.text("git_diff", **at, target="trunk")
    assert "modified" in peer.text("git_status", **at)
    peer.call("git_add", **at, files=["file"])
    peer.call("git_reset", **at)
    assert "not staged" in peer.text("git_status", **at)
    peer.finish()


def test_fetch(client):
    """Its one tool needs a network; what it says without one."""
    peer = Peer(client, python("mcp-server-fetch"))
    assert set(peer.tools) == {"fetch"}
    assert peer.fails("fetch", url="http://127.0.0.1:1/")
    assert peer.fails("fetch", url=7)
    assert peer.result("prompts/list")["prompts"]
    peer.finish(but=["fetch"])


def test_everything(client):
    peer = Peer(client, *node("server-everything"))
    assert peer.text("echo", message="hé \u0000 \U0001f600") == "Echo: hé \u0000 \U0001f600"
    assert "42" in peer.text("get-sum", a=40, b=2)
    image = next(part for part in peer.call("get-tiny-image")["content"] if part["type"] == "image")
    assert base64.b64decode(image["data"])[:4] == b"\x89PNG"
    assert peer.call("get-structured-content", location="Chicago")["structuredContent"]
    assert "PATH" in peer.text("get-env")
    assert len(peer.call("get-resource-links", count=3)["content"]) == 4
    peer.call("get-annotated-message", messageType="error", includeImage=True)
    peer.call("get-resource-reference", resourceType="Text", resourceId=1)
    peer.call("gzip-file-as-resource", name="x.gz", data="data:text/plain;base64,aGVsbG8=", outputType="resource")
    peer.call("toggle-simulated-logging")
    peer.call("toggle-subscriber-updates")
    peer.notes()
    result = peer.result("tools/call", {"name": "trigger-long-running-operation", "arguments": {"duration": 1, "steps": 4},
                                        "_meta": {"progressToken": "é"}})
    assert "completed" in result["content"][0]["text"]
    peer.called.add("trigger-long-running-operation")
    progress = [note for note in peer.notes()["notifications"] if note["method"] == "notifications/progress"]
    assert [note["params"]["progress"] for note in progress] == [1, 2, 3, 4]
    assert {note["params"]["progressToken"] for note in progress} == {"é"}
    assert "not found" in peer.fails("no-such-tool")
    assert peer.fails("echo")
    assert peer.result("resources/list")["resources"] and peer.result("prompts/list")["prompts"]
    prompt = peer.result("prompts/list")["prompts"][0]["name"]
    assert peer.result("prompts/get", {"name": prompt})["messages"]
    tasks = {name for name, tool in peer.tools.items() if tool.get("execution", {}).get("taskSupport") == "required"}
    peer.finish(but=tasks)


def test_everything_in_parallel(client):
    peer = Peer(client, *node("server-everything"))

    def echo(i):
        return peer.ask("tools/call", id=f"p{i}", params={"name": "echo", "arguments": {"message": f"{i}" * 1000}})

    with ThreadPoolExecutor(20) as pool:
        for i, answer in enumerate(pool.map(echo, range(60))):
            assert answer["id"] == f"p{i}" and answer["result"]["content"][0]["text"] == "Echo: " + f"{i}" * 1000


def test_filesystem(client, workdir):
    root = workdir.resolve() / "root"
    root.mkdir()
    peer = Peer(client, *node("server-filesystem"), root)
    name = str(root / "é \\ '.txt")
    peer.call("write_file", path=name, content="line 1\r\nline 2\n\ttab")
    assert peer.text("read_text_file", path=name) == "line 1\r\nline 2\n\ttab"
    if "read_file" in peer.tools:
        assert peer.text("read_file", path=name, head=1).startswith("line 1")
    assert "+line two" in peer.text("edit_file", path=name, edits=[{"oldText": "line 2", "newText": "line two"}])
    (root / "image.png").write_bytes(b"\x89PNG\r\n" + bytes(range(256)))
    media = peer.call("read_media_file", path=str(root / "image.png"))["content"][0]
    assert base64.b64decode(media.get("data") or media["resource"]["blob"]) == (root / "image.png").read_bytes()
    peer.call("create_directory", path=str(root / "a/b"))
    peer.call("move_file", source=name, destination=str(root / "a/b/moved"))
    assert "moved" in peer.text("directory_tree", path=str(root))
    assert "[DIR] a" in peer.text("list_directory", path=str(root))
    assert "image.png" in peer.text("list_directory_with_sizes", path=str(root))
    assert "moved" in peer.text("search_files", path=str(root), pattern="**/mov*")
    assert "size" in peer.text("get_file_info", path=str(root / "image.png"))
    assert str(root) in peer.text("list_allowed_directories")
    assert "line" in peer.text("read_multiple_files", paths=[str(root / "a/b/moved")])
    assert "denied" in peer.fails("read_text_file", path="/etc/passwd").lower()
    big = "x" * (3 << 20)
    peer.call("write_file", path=str(root / "big"), content=big)
    assert peer.text("read_text_file", path=str(root / "big")) == big
    peer.finish()


def test_memory(client, workdir):
    peer = Peer(client, *node("server-memory"), env={"PATH": os.environ["PATH"], "MEMORY_FILE_PATH": str(workdir / "memory.json")})
    peer.call("create_entities", entities=[{"name": n, "entityType": "thing", "observations": []} for n in ("a", "b")])
    peer.call("create_relations", relations=[{"from": "a", "to": "b", "relationType": "knows"}])
    peer.call("add_observations", observations=[{"entityName": "a", "contents": ["is first"]}])
    graph = json.loads(peer.text("read_graph"))
    assert len(graph["entities"]) == 2 and len(graph["relations"]) == 1
    assert "is first" in peer.text("search_nodes", query="first")
    assert "thing" in peer.text("open_nodes", names=["b"])
    peer.call("delete_observations", deletions=[{"entityName": "a", "observations": ["is first"]}])
    peer.call("delete_relations", relations=[{"from": "a", "to": "b", "relationType": "knows"}])
    peer.call("delete_entities", entityNames=["a", "b"])
    assert json.loads(peer.text("read_graph"))["entities"] == []
    peer.finish()


@pytest.mark.parametrize("way", ["kill", "stop-server"])
def test_wrapped_in_a_shell_nothing_is_left(client, way):
    """As npx and uvx do: a wrapper waits for the real server."""
    program, script = node("server-everything")
    peer = Peer(client, "sh", "-c", '"$@"; exit $?', "sh", program, script)
    assert peer.text("echo", message="x") == "Echo: x"
    if way == "kill":
        peer.kill()
    else:
        client.stop()
    gone(f"{program}\0{script}")
