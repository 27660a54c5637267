"""`toolbox mcp serve` with the official clients, and the official conformance suite, none of them written here."""
import importlib.util
import json
import os
import subprocess

import pytest

from harness import needs, peers, roots
from harness.containers import REPO, Options
from harness.machine import HANG, PATH
from harness.mcp_http import serve_http
from harness.processes import wait_until

HERE = REPO / "test/peers"
SLEEP = f"sleep {200000 + os.getpid()}"

STEPS = [
    {"tool": "shell_run", "arguments": {"command": "cd /tmp; echo out; echo err >&2; exit_with() { return $1; }; exit_with 7"}},
    {"tool": "shell_run", "arguments": {"command": "sleep 1.2; pwd"}, "progress": True},
    {"tool": "shell_run", "arguments": {"command": "read -r x; echo got $x", "timeout": 5}},
    {"tool": "shell_input", "arguments": {"text": "this"}},
    {"tool": "shell_run", "arguments": {"command": "sleep 0.6; echo late", "timeout": 0.1}},
    {"tool": "shell_wait"},
    {"tool": "shell_new", "arguments": {"cwd": "/", "env": {"A": "b"}}, "keep": {"S": "session"}},
    {"tool": "shell_run", "arguments": {"command": "echo $A; pwd", "session": "$S"}},
    {"tool": "shell_read", "arguments": {"session": "$S", "timeout": 0}},
    {"tool": "shell_interrupt", "arguments": {"session": "$S", "timeout": 1}},
    {"tool": "shell_restart", "arguments": {"session": "$S"}},
    {"tool": "shell_list"},
    {"tool": "shell_close", "arguments": {"session": "$S"}},
    {"tool": "job_start", "arguments": {"command": "cat; echo done >&2; exit 3", "stdin_open": True}, "keep": {"J": "job"}},
    {"tool": "job_write", "arguments": {"job": "$J", "text": "line\n", "close": True}},
    {"tool": "job_wait", "arguments": {"job": "$J"}},
    {"tool": "job_start", "arguments": {"argv": ["sleep", "1000"]}, "keep": {"J": "job"}},
    {"tool": "job_list"},
    {"tool": "job_kill", "arguments": {"job": "$J"}},
    {"tool": "write_file", "arguments": {"path": "made/file.txt", "content": "one\ntwo\n", "parents": True}},
    {"tool": "text_editor", "arguments": {"command": "str_replace", "path": "made/file.txt", "old_str": "two", "new_str": "2"}},
    {"tool": "read_file", "arguments": {"path": "made/file.txt"}},
    {"tool": "read_file", "arguments": {"path": "image.png"}},
    {"tool": "list_files", "arguments": {"depth": 2}},
    {"tool": "find_files", "arguments": {"pattern": "*.txt"}},
    {"tool": "search_files", "arguments": {"pattern": "^o.e$", "context": 1}},
    {"tool": "probe"},
    {"tool": "read_file", "arguments": {"path": "/no/such/file"}},
    {"tool": "shell_run", "arguments": {"command": "true", "timeout": -1}},
]
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082")


@pytest.fixture
def place(workdir):
    folder = workdir / "place"
    folder.mkdir()
    (folder / "image.png").write_bytes(PNG)
    return folder


def drive(command, client, place, server):
    """Runs a client of an SDK, which runs the server, and returns its report."""
    env = {"PATH": PATH, "HOME": str(place), "TOOLBOX_DIR": str(client.dir), "SLOW": SLEEP}
    done = subprocess.run([*command, json.dumps(STEPS), *map(str, server)], env=env, cwd=place, capture_output=True, timeout=3 * HANG)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")[-3000:]
    return json.loads(done.stdout)


def check(report, revision):
    """All that the steps have to give, whoever asked."""
    assert report["name"] == "toolbox" and report["revision"] in (revision, "")
    local = {tool for tool in report["tools"] if not tool.startswith("web_")}  # those: test_web_browser_mcp.py
    assert {step["tool"] for step in STEPS} == local, "every tool is called"
    results = [(step["tool"], result) for step, result in zip(STEPS, report["results"])]
    assert len(results) == len(STEPS)
    got = {}
    for tool, result in results:
        got.setdefault(tool, []).append(result.get("structuredContent"))
        assert not (result.get("isError") and result.get("structuredContent")), result
    runs = got["shell_run"]
    assert (runs[0]["output"], runs[0]["exit_code"], runs[0]["cwd"]) == ("out\nerr\n", 7, "/tmp")
    assert runs[1]["output"] == "/tmp\n" and runs[2]["state"] == "awaiting_input" and runs[3]["state"] == "timeout"
    assert "got this" in got["shell_input"][0]["output"]
    assert got["shell_wait"][0]["output"] == "late\n" and got["shell_wait"][0]["exit_code"] == 0
    assert runs[4]["output"] == "b\n/\n" and len(got["shell_list"][0]["sessions"]) == 2
    wait, kill = got["job_wait"][0], got["job_kill"][0]
    assert (wait["state"], wait["exit_code"], wait["stdout"], wait["stderr"]) == ("completed", 3, "line\n", "done\n")
    assert kill["state"] == "killed" and kill["exit_code"] == -15
    text, image, nothing = [result for tool, result in results if tool == "read_file"]
    assert text["content"][0]["text"] == "one\n2\n" and nothing["isError"]
    [block] = image["content"]
    assert block["type"] == "image" and block["mimeType"] == "image/png" and len(block["data"]) == (len(PNG) + 2) // 3 * 4
    assert got["find_files"][0]["paths"] == ["made/file.txt"]
    assert got["search_files"][0]["matches"] == [{"path": "made/file.txt", "line": 1, "text": "one", "after": "2\n"}]
    assert got["probe"][0]["arch"] and runs[5] is None
    assert report["progress"] and report["progress"][0][0] >= 1 and "shell_run" in report["progress"][0][2]
    assert report["cancelled"]


@pytest.mark.parametrize("package, program, mode, revision", [
    ("python-mcp1", "client_v1.py", "legacy", "2025-11-25"),
    ("python-mcp2", "client_v2.py", "legacy", "2025-11-25"),
    ("python-mcp2", "client_v2.py", "auto", "2026-07-28"),
    ("python-mcp2", "client_v2.py", "2026-07-28", "2026-07-28"),
])
def test_python_sdk(client, place, package, program, mode, revision):
    """Slow: the libraries of others take seconds to start, and the story waits for jobs."""
    python = peers.folder(package) / "bin/python"
    report = drive([python, HERE / program, mode], client, place, [client.binary, "mcp", "serve"])
    check(report, revision)
    if revision == "2025-11-25":
        assert any("started" in text for text in report["log"])


@pytest.mark.parametrize("version, revision", [("1", "2025-11-25"), ("2", "2026-07-28")])
def test_typescript_sdk(client, place, version, revision):
    packages = peers.folder("node-mcp")
    check(drive([needs.program("node"), HERE / "client.mjs", packages, version], client, place, [client.binary, "mcp", "serve"]), revision)


@pytest.mark.parametrize("name", ["debian", "busybox", "scratch"])
def test_inside_a_container(docker, toolbox, workdir, name):
    """`docker exec -i` and the command is all that a client is told, also for an image with nothing in it."""
    python = peers.folder("python-mcp2") / "bin/python"
    container = docker.start(roots.get(name), Options(files={"/toolbox": toolbox}))
    try:
        command, how = container.command(["/toolbox", "mcp", "serve"], {}, None, None)
        steps = [{"tool": "write_file", "arguments": {"path": "/new/file", "content": "text", "parents": True}},
                 {"tool": "search_files", "arguments": {"pattern": "text", "path": "/new"}},
                 {"tool": "job_start", "arguments": {"argv": ["/toolbox", "--version"]}, "keep": {"J": "job"}},
                 {"tool": "job_wait", "arguments": {"job": "$J"}},
                 {"tool": "shell_run", "arguments": {"command": "echo $((6*7))"}}]
        done = subprocess.run([python, HERE / "client_v2.py", "auto", json.dumps(steps), *command], cwd=workdir,
                              env={**how["env"], "SLOW": ""}, capture_output=True, timeout=2 * HANG)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
        report = json.loads(done.stdout)
        _, search, _, wait, shell = [result.get("structuredContent") or result["content"][0]["text"] for result in report["results"]]
        assert report["revision"] == "2026-07-28" and search["matches"][0]["path"] == "/new/file"
        assert wait["exit_code"] == 0 and wait["stdout"].startswith("toolbox ")
        assert "no shell could be started" in shell if name == "scratch" else shell["output"] == "42\n", shell
        wait_until(lambda: all("toolbox" not in line or "toolbox server" in line for line in container.processes()), "it has ended")
    finally:
        container.destroy()


# What of the conformance suite is about a server that offers tools. Its other scenarios want tools, prompts and resources that
# only a server made for the suite has.
SCENARIOS = {
    "server-initialize": [],
    "ping": [],
    "logging-set-level": [],
    "tools-list": [],
    "server-session-lifecycle": [],
    "server-sse-multiple-streams": [],
    "dns-rebinding-protection": [],
    "http-header-validation": [],
    "input-required-result-unsupported-methods": [],
    "server-stateless": [
        # These want tools of the suite's own.
        "sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-server-no-log-without-loglevel",
    ],
    # There are no prompts and resources to list.
    "caching": ["sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints",
                "sep-2549-resources-templates-list-caching-hints"],
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance(client, workdir, scenario):
    folder = peers.folder("node-suite") / "node_modules/.bin"
    env = {"PATH": PATH, "HOME": str(workdir), "TOOLBOX_DIR": str(client.dir)}
    with serve_http(client) as server:
        done = subprocess.run([folder / "node", folder / "conformance", "server", "--url", server.url, "--scenario", scenario, "-o", "out"],
                              env=env, cwd=workdir, capture_output=True, timeout=2 * HANG)
    found = [json.loads(path.read_text()) for path in (workdir / "out").rglob("checks.json")]
    assert found, done.stdout.decode() + done.stderr.decode()
    checks = {}
    for check in sum(found, []):  # several of a name
        good = check["status"] in ("SUCCESS", "INFO", "SKIPPED")
        checks[check["id"]] = checks.get(check["id"], True) and good
    assert any(checks.values()) and sorted(id for id, good in checks.items() if not good) == sorted(SCENARIOS[scenario])


@pytest.mark.parametrize("package, program, mode, revision", [
    ("python-mcp1", "client_v1.py", "legacy", "2025-11-25"),
    ("python-mcp2", "client_v2.py", "legacy", "2025-11-25"),
    ("python-mcp2", "client_v2.py", "auto", "2026-07-28"),
])
def test_python_sdk_over_http(client, place, package, program, mode, revision):
    """Slow: as test_python_sdk."""
    python = peers.folder(package) / "bin/python"
    with serve_http(client, cwd=place) as server:
        check(drive([python, HERE / program, mode], client, place, [server.url]), revision)


@pytest.mark.parametrize("version, revision", [("1", "2025-11-25"), ("2", "2026-07-28")])
def test_typescript_sdk_over_http(client, place, version, revision):
    packages = peers.folder("node-mcp")
    with serve_http(client, cwd=place) as server:
        check(drive([needs.program("node"), HERE / "client.mjs", packages, version], client, place, [server.url]), revision)


# ---- schemas, as the libraries that pass them on to models make them ----


def listed(serve, **how):
    return serve("2025-11-25", "--tools", "all,computer", **how).request("tools/list")["tools"]


@pytest.mark.parametrize("package, converters", [
    ("python-adapters", {"openai_strict", "openai_agents", "anthropic", "anthropic_strict", "google_genai", "langchain_openai_strict", "langchain_google",
                         "pydantic_ai_openai", "pydantic_ai_google"}),
    ("venv-converters", {"adk", "google_genai", "langchain_mcp_adapters", "langchain_openai_strict", "llama_index"}),
    ("venv-converters-autogen", {"autogen"}),
    ("venv-converters-crewai", {"crewai"}),
])
def test_converters_lose_nothing(serve, package, converters):
    """Types, texts, words and what is required of every argument of every tool come through, and none is refused."""
    python = peers.folder(package) / "bin/python"
    tools = listed(serve)
    done = subprocess.run([python, HERE / "converters.py"], input=json.dumps(tools).encode(), capture_output=True, timeout=3 * HANG)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    report = json.loads(done.stdout)
    assert len(tools) > 30 and converters <= set(report)
    assert {name: found for name, found in report.items() if found} == {}


def test_vercel_loses_nothing(serve):
    tools = listed(serve)
    done = subprocess.run([needs.program("node"), HERE / "converters.mjs", peers.folder("node-sdks")], input=json.dumps(tools).encode(), capture_output=True,
                          timeout=3 * HANG)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    spec = importlib.util.spec_from_file_location("converters", HERE / "converters.py")
    converters = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(converters)
    report = converters.compare(tools, json.loads(done.stdout))
    assert len(report) == 4 and {name: found for name, found in report.items() if found} == {}
