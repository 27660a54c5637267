"""`toolbox mcp serve --in TARGET --http`: other places behind one server, each session in a process of its own there."""
import json
import os
import signal

import pytest

from harness.mcp_http import HttpClient, serve_http
from harness.processes import wait_until

META = "io.modelcontextprotocol/"


@pytest.fixture
def places(workdir):
    """What enters as many places as there are names, each with a server of its own: the options, and where it is logged who came."""
    runtime, log = workdir / "podman", workdir / "log"
    runtime.write_text(f"""#!/bin/sh
[ "$1" = exec ] || exit 125
shift
while case $1 in -u) shift; true;; -*) true;; *) false;; esac; do shift; done
case $1 in gone) echo "no container 'gone'" >&2; exit 1;; esac
echo $$ $1 >>{log}
mkdir -pm 700 {workdir}/$1
export TOOLBOX_DIR={workdir}/$1 PLACE=$1
shift
exec "$@"
""")
    runtime.chmod(0o755)
    return ("--runtime", str(runtime), "--dir", str(workdir / "bin")), log


class In(HttpClient):
    def __init__(self, server, target, revision="2025-11-25", **fields):
        self.path = f"/mcp/{target}" if target else "/mcp"
        super().__init__(server, revision, **fields)

    def send(self, method, path="/mcp", body=None, **fields):
        super().send(method, self.path, body, **fields)


def here(mcp):
    return mcp.call("shell_run", command="echo $PLACE")["output"].strip()


def stateless(**more):
    return {"_meta": {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": {}, **more}}


def test_one_target(client):
    with serve_http(client, "--in", "local:", "--tools", "coding") as server:
        mcp, other = In(server, None, "2025-03-26"), In(server, "local:")
        assert mcp.ask("ping")["result"] == {}
        assert "probe" not in [tool["name"] for tool in mcp.ask("tools/list")["result"]["tools"]]
        mcp.ask("tools/call", {"name": "shell_run", "arguments": {"command": "cd /usr; x=1"}})
        assert other.call("shell_run", command="echo x=$x")["output"] == "x=\n"
        mcp.last_id = "a text"
        status, body = mcp.post({"jsonrpc": "2.0", "id": "a text", "method": "tools/call", "params": {
            "name": "shell_run", "arguments": {"command": "sleep 1.2; pwd"}, "_meta": {"progressToken": "t"}}})
        assert status == 200 and "/usr" in json.dumps(mcp.answer(body)["result"])
        told = [message["params"]["progressToken"] for _, message in mcp.events if message and message["jsonrpc"] and message.get("method", "").endswith("progress")]
        assert told and set(told) == {"t"}
        mcp.last_id = 100
        status, body = mcp.post([mcp.message("ping"), {"jsonrpc": "2.0", "method": "notifications/x"}, mcp.message("tools/list")])
        assert status == 200 and b'"id":101' in body and b'"id":102' in body
        assert mcp.post([{"jsonrpc": "2.0", "method": "notifications/x"}]) == (202, b"")
        assert mcp.post("{")[0] == 400 and mcp.post({"jsonrpc": "2.0", "id": None, "method": "ping"})[0] == 400
        assert mcp.request("DELETE")[0] == 204 and mcp.post(mcp.message("ping"))[0] == 404
        wait_until(lambda: len(client.rpc("bash_session_list")) == 1, "its shell has ended")
        assert other.call("shell_run", command="echo on")["output"] == "on\n"
        mcp.close(), other.close()
    wait_until(lambda: not client.rpc("bash_session_list"), "with the server all have ended")


def test_a_cancelled_call_frees_its_shell(client):
    with serve_http(client, "--in", "local:", "--idle", "1") as server:
        mcp = In(server, None)
        mcp.send("POST", body=json.dumps({"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": {"name": "shell_run", "arguments": {"command": "sleep 1000"}}}))
        second = In(server, None, None)
        second.session = mcp.session
        wait_until(lambda: client.rpc("bash_session_list"), "its shell is there")
        assert second.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 50}})[0] == 202
        assert mcp.receive()[0] == 200, "its stream ends"
        wait_until(lambda: not second.ask("tools/call", {"name": "shell_run", "arguments": {"command": "echo free"}})["result"]["isError"], "it is free")
        mcp.close(), second.close()
        wait_until(lambda: not client.rpc("bash_session_list"), "and its session ends when nobody asks: nothing is under way")


def test_many_targets(client, places):
    options, _ = places
    with serve_http(client, "--in", "podman:web*", "--in", "podman:db", *options) as server:
        one, two, db = In(server, "podman:web1"), In(server, "web2"), In(server, "podman:db")
        assert [here(each) for each in (one, two, db)] == ["web1", "web2", "db"]
        stray = In(server, "web2", None)
        stray.session = one.session
        assert stray.post(stray.message("ping"))[0] == 404, "a session is of its target alone"
        for path in ("", "/", "other", "podman:other", "web*", "local:", "docker:web1", "../mcp"):
            nobody = In(server, path, None)
            assert nobody.post(nobody.message("ping"))[0] == 404, path
            assert nobody.head.get("mcp-session-id") is None
            nobody.close()
        for each in (one, two, db, stray):
            each.close()


def test_requests_without_a_session_share_one(client, places):
    options, log = places
    with serve_http(client, "--in", "podman:*", *options) as server:
        fields = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "shell_run"}
        ask = [In(server, "a", None, **fields), In(server, "a", None, **fields)]
        for i, each in enumerate(ask): # both with the id 1
            each.send("POST", body=json.dumps(each.message("tools/call", {
                "name": "shell_run", "arguments": {"command": f"echo mine-{i}"}, **stateless()})))
        for i, each in enumerate(ask):
            status, body = each.receive()
            assert status == 200 and f"mine-{i}" in json.dumps(each.answer(body)), body
            each.close()
        who = {line.split()[1] for line in log.read_text().splitlines()}
        assert who == {"a"}


def test_a_target_that_is_not_there(client, places):
    options, _ = places
    with serve_http(client, "--in", "podman:*", *options, stderr=-3) as server:
        mcp = In(server, "gone", None)
        status, body = mcp.post(mcp.message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}))
        assert status == 200 and "no container 'gone'" in json.loads(body)["error"]["message"], body
        mcp.session = mcp.head["mcp-session-id"]
        wait_until(lambda: mcp.post(mcp.message("ping"))[0] == 404, "that session is over")
        mcp.close()


def test_whose_process_is_killed(client, places):
    options, log = places
    with serve_http(client, "--in", "podman:a", *options, stderr=-3) as server:
        mcp = In(server, None)
        mcp.send("POST", body=json.dumps(mcp.message("tools/call", {"name": "shell_run", "arguments": {"command": "sleep 1000"}})))
        os.kill(int(log.read_text().splitlines()[-1].split()[0]), signal.SIGKILL)
        status, body = mcp.receive()
        assert status == 200 and "has ended" in mcp.answer(body)["error"]["message"]
        mcp.close()


def test_what_does_not_fit(client):
    for bad in (["--in", "dir:/", "--http", "0"], ["--http", "0", "--in"], ["--in", "local:", "--http", "0", "--share"], ["--in", "local:", "--http", "0", "x"],
                ["--in", "local:", "--http", "0", "--nope"], ["--in", "nope:x*", "--http", "0"]):
        done = client.cli("mcp", "serve", *bad)
        assert done.returncode == 2 and done.stderr.startswith(b"toolbox mcp serve: "), (bad, done)
