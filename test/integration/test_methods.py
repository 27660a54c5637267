"""`toolbox methods` says what is so: of every method its parameters, as they are checked, and who answers it."""
import json
import re
import subprocess
from pathlib import Path

import pytest

from harness.client import PARAMERR, RpcError
from harness.containers import REPO

METHODS_OF_A_KIND = {"in-process", "server", "keeper"}
# values that a type doesn't take
WRONG = {"string": 5, "integer": "x", "number": "x", "boolean": 1, "array of integers": ["x"], "array of strings": [1],
         "object of strings": {"A": 1}, "object": [], "array of objects": {}, "string or object": 5, "boolean or object": 1, "boolean, string or object": 1}
RIGHT = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array of integers": [1], "array of strings": ["x"],
         "object of strings": {}, "object": {}, "array of objects": [{}], "string or object": "x", "boolean or object": True, "boolean, string or object": True}


@pytest.fixture
def methods(client):
    done = client.cli("methods", "--json")
    assert done.returncode == 0 and not client.dir.exists()
    return {method["name"]: method for method in json.loads(done.stdout)}


def test_all_of_them_are_told_of(client, methods):
    listed = client.cli("methods").stdout.decode().splitlines()
    assert [line.split()[0] for line in listed] == ["METHOD", *methods] and len(methods) >= 46
    for name, method in methods.items():
        assert method["about"] and method["result"] and method["answered_by"] in METHODS_OF_A_KIND, name
        tables = [method["params"], *method.get("variants", {}).values()]
        assert all(param["about"] and param["type"] in WRONG for table in tables for param in table), name
        text = client.cli("methods", name).stdout.decode()
        assert text.startswith(f"{name}: {method['about']}\n") and f"\nUser: {method['user']}\n" in text
        assert re.search(rf"^{name} +{re.escape(method['user'])}  +{re.escape(method['about'])}$", "\n".join(listed), re.M)
        assert all(f"  {param['name']}: {param['type']}" in text for table in tables for param in table)
    assert "did you mean 'bash_session_run'" in client.cli("methods", "bash_session_runn").stderr.decode()
    assert client.cli("methods", "nonsense").returncode == client.cli("methods", "a", "b").returncode == 2
    assert not client.dir.exists()


def test_every_tool_of_the_mcp_server_that_is_named_is_there(client, methods):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}) + "\n"
    done = client.cli("mcp", "serve", "--computer", stdin=asked.encode())
    tools = {tool["name"] for tool in json.loads(done.stdout.splitlines()[0])["result"]["tools"]}
    named = {name.strip() for method in methods.values() for name in (method["mcp_tool"] or "").split(",") if name}
    own = {"read_file", "write_file", "list_files", "find_files", "search_files", "probe"}  # which need no method
    assert {name for name in named if not name.startswith("web_")} == {name for name in tools if not name.startswith("web_")} - own
    assert {name for name in tools if name.startswith("web_")} <= named


def refused(client, method, params):
    """The message with which the params are refused; None where they aren't."""
    try:
        client.rpc(method, params)
    except RpcError as error:
        return error.message if error.code == PARAMERR else None
    return None


def check_params(client, method, table, fixed):
    """Each parameter is checked as the table says. `fixed`: values that are right where others wouldn't be."""
    def right(param):
        return fixed.get(param["name"], RIGHT[param["type"]] if param.get("min", 0) <= 1 else param["min"])

    needed = {param["name"]: right(param) for param in table if param["required"]}
    for param in table:
        name, keeper = param["name"], {key: value for key, value in needed.items() if key != param["name"]}
        if name in fixed and name != "server_params":
            continue  # by it the one is found that checks the others
        where = f"Invalid parameters: {name}"
        message = refused(client, method, {**keeper, name: WRONG[param["type"]]}) or ""
        assert message.startswith(where) and "is no parameter" not in message, (method, name, message)
        if param["required"]:
            assert refused(client, method, keeper) == f"{where}: is missing", (method, name)
        for bound, step in (("min", -1), ("max", 1)):
            if bound in param and param["type"] in ("integer", "number"):
                assert (refused(client, method, {**keeper, name: param[bound] + step}) or "").startswith(where), (method, name, bound)
    if not method.startswith(("mcp_", "text_editor")):
        assert refused(client, method, {**needed, "frobnicate": 1}) == "Invalid parameters: frobnicate: is no parameter of this method", method


def test_params_are_checked_as_they_are_told(client, methods):
    client.new()
    pid = client.rpc("exec_remote_start", {"command": "sleep 5201"})["pid"]
    server = client.rpc("mcp_launch_server", {"server_params": {"command": "cat"}})
    fixed = {"session_name": client.session, "pid": pid, "session_id": server, "server_params": {"command": "cat"}}
    checked = 0
    for name, method in methods.items():
        if name.startswith(("web_", "computer_")) and not name.endswith(("_new_session", "_list_sessions")):
            continue  # what checks them is the keeper of a browser or of a desktop
        if name == "text_editor":
            for command, table in method["variants"].items():
                check_params(client, name, [*method["params"], *table], {"command": command})
            continue
        if name != "sandbox_tools_shutdown":
            check_params(client, name, method["params"], fixed)
        checked += 1
    assert checked > 25


def test_members_of_objects(client, methods):
    (params,) = [param for param in methods["mcp_launch_server"]["params"] if param["name"] == "server_params"]
    assert [member["name"] for member in params["members"]][:3] == ["command", "args", "env"]
    for member in params["members"]:
        message = refused(client, "mcp_launch_server", {"server_params": {"command": "cat", member["name"]: WRONG[member["type"]]}})
        assert message.startswith(f"Invalid parameters: server_params.{member['name']}"), message
    (user,) = [param for param in methods["exec_remote_start"]["params"] if param["name"] == "user"]
    numbers = {"uid": 1, "gid": 1, "groups": []}
    assert {member["name"] for member in user["members"] if member["required"]} == set(numbers)
    for member in user["members"]:
        wrong = {**numbers, member["name"]: WRONG[member["type"]]}
        assert f"user.{member['name']}" in refused(client, "exec_remote_start", {"command": "true", "user": wrong})


def test_who_answers(client, methods):
    """What is in-process starts no server. (doctor makes the directory, to try it.)"""
    for name, method in methods.items():
        if method["answered_by"] == "in-process":
            client.line(json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": {"command": "view", "path": "/"} if method["params"][1:] else {}}))
    assert not list(client.dir.glob("server.*"))
    client.rpc("remote_version")
    assert list(client.dir.glob("server.*"))


def test_whose_rights_a_method_has(client, methods, user):
    """A parameter that names a user is the rule's first word; without it the work is done as the caller, the server or who it was begun as."""
    for name, method in methods.items():
        named = [param["name"] for param in method["params"] if param["name"] in ("user", "_run_as_user")]
        assert method["user"].startswith(named[0] + ", or " if named else ("the caller", "the server's", "whom it was started as")), name
        assert bool(named) == (", or " in method["user"]), name
    client.new(user=user.name)
    assert client.rpc("bash_session_run", {"session_name": client.session, "command": "id -un"})["output"] == f"{user.name}\n"
    path = Path(user.home) / "of-the-caller"
    path.write_text("text")
    path.chmod(0o600)
    assert "text" in client.rpc("text_editor", {"command": "view", "path": str(path)})
    with pytest.raises(RpcError, match="ermission denied"):
        client.rpc("text_editor", {"command": "view", "path": str(path), "_run_as_user": user.name})


def test_the_page_says_the_same(toolbox):
    done = subprocess.run([REPO / "scripts/methods-doc", "--check"], env={"TOOLBOX_BIN": str(toolbox), "PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_tables_by_hand_name_no_other_parameter(methods):
    """Those of the page's chapters, which sum up: each method is one, each parameter is one of its own, and none that it needs is left out."""
    page = (REPO / "docs/protocol.md").read_text()
    rows = [row for table in re.findall(r"^\| method \| params .*\n\|[ -|]*\n((?:\|.*\n)+)", page, re.M) for row in table.splitlines()]
    assert len(rows) > 25
    for row in rows:
        names, params, *_ = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:]]
        # what its values and members are stands in brackets behind a parameter
        said = {word for text in re.findall(r"`([^`]*)`", re.sub(r"\([^()]*\)|\{[^{}]*\}", "", params)) for word in re.findall(r"[a-z_]+", text.split(":")[0])}
        for name in re.findall(r"`(\w+)`", names):
            method = methods[name]
            tables = [method["params"], *method.get("variants", {}).values()]
            assert said <= {param["name"] for table in tables for param in table}, row
            needed = {param["name"] for param in method["params"] if param["required"]}
            assert needed <= said or "see below" in params or "," not in params, row
