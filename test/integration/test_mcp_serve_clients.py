"""`toolbox mcp serve` as real clients and models use it."""
import json
import os
import resource
import time

import pytest

from harness.processes import wait_until
from harness.mcp_client import LEGACY, McpError, ToolError


# ---- what runs begins where its own connection stands ----


SHOW = "pwd; umask; ulimit -n; ulimit -f; echo MARK=$MARK ONLY=$ONLY"


def stand(folder, name, **env):
    """How a connection is started in a directory of its own, with variables, a umask and limits."""
    (folder / name / "sub").mkdir(parents=True)

    def limit():
        os.umask(0o27)
        resource.setrlimit(resource.RLIMIT_NOFILE, (333, 444))
        resource.setrlimit(resource.RLIMIT_FSIZE, (512000, 512000))

    return {"cwd": folder / name, "env": {"MARK": name, **env}, "preexec_fn": limit if name == "second" else None}


def test_what_is_started_has_the_surroundings_of_its_own_connection(serve, workdir):
    first = serve(LEGACY[-1], **stand(workdir, "first", ONLY="yes"))
    assert first.call("shell_run", command=SHOW)["output"].splitlines()[0] == f"{workdir}/first"
    second = serve(LEGACY[-1], **stand(workdir, "second"))
    folder = workdir / "second"
    expected = [str(folder), "0027", "333", "500", "MARK=second ONLY="]
    assert second.call("shell_run", command=SHOW)["output"].splitlines() == expected
    second.call("shell_restart")
    assert second.call("shell_run", command=SHOW)["output"].splitlines() == expected
    shell = second.call("shell_new", cwd="sub")["session"]
    assert second.call("shell_run", session=shell, command="pwd; umask")["output"] == f"{folder}/sub\n0027\n"
    job = second.call("job_start", command=SHOW.replace("; ulimit -f", ""))["job"]
    assert second.call("job_wait", job=job)["stdout"].splitlines() == [line for line in expected if line != "500"]
    job = second.call("job_start", argv=["pwd"], cwd="sub")["job"]
    assert second.call("job_wait", job=job)["stdout"] == f"{folder}/sub\n"
    assert first.call("shell_run", command=SHOW)["output"].splitlines()[-1] == "MARK=first ONLY=yes"


def test_a_directory_that_is_gone_is_said(serve, workdir):
    (workdir / "gone").mkdir()
    mcp = serve(LEGACY[-1], cwd=workdir / "gone")
    (workdir / "gone").rmdir()
    assert mcp.call("shell_run", command="echo here")["output"] == "here\n"


# ---- arguments as they really come ----


@pytest.mark.parametrize("arguments", [
    {"session": "", "timeout": 0.0}, {"timeout": "5", "max_output_bytes": 0}, {"max_output_bytes": 1e3, "session": None},
    {"description": "says hello", "timeout": 5}, {"maxOutputBytes": "1000"}, {"session_id": ""}, {"max_output_bytes": 500.0}])
def test_what_can_mean_one_thing_only_is_taken_for_it(mcp, arguments):
    run = mcp.call("shell_run", command="echo hello", **{"timeout": 30, **arguments} if arguments.get("timeout") != 0 else {**arguments, "timeout": 30.0})
    assert run["output"] == "hello\n"


@pytest.mark.parametrize("arguments, output", [
    ({"command": "echo $A", "argv": [], "cwd": "", "user": "", "input": "", "env": ["A=b=c"]}, "b=c\n"),
    ({"command": "", "argv": ["echo", "x"], "stdin_open": "false"}, "x\n"), ({"argv": '["echo", "x y"]'}, "x y\n"), ({"argv": "true"}, ""),
    ({"cmd": "echo $A", "env": {"A": 5}}, "5\n"), ({"command": "pwd", "workdir": "/"}, "/\n"), ({"command": "echo $A", "env": '{"A": "b"}'}, "b\n")])
def test_jobs_of_odd_arguments(mcp, arguments, output):
    end = mcp.call("job_wait", job=str(mcp.call("job_start", **arguments)["job"]), for_="end")
    assert (end["state"], end["stdout"]) == ("completed", output)


def test_names_that_other_editors_have(mcp, workdir):
    mcp.call("text_editor", command="create", file_path="f", content="a\nb\n")
    mcp.call("text_editor", command="str_replace", filePath="f", old_string="b", newString="c", insert_line=0, view_range=[])
    assert mcp.call("text_editor", command="view", path="f", view_range="[2, 2]", old_str="", file_text="").endswith("\n     2\tc\n")
    mcp.call("write_file", file_path="empty", content="", encoding="", mode="")
    assert (workdir / "empty").read_bytes() == b""
    found = mcp.call("search_files", pattern="c", glob="", path="", exclude="", limit=0)
    assert [match["path"] for match in found["matches"]] == ["f"]


FILLED = {"shell_run": {"command": "true"}, "shell_input": {"text": "x"}, "job_start": {"command": "true"}, "text_editor": {"command": "view", "path": "f"},
          "read_file": {"path": "f"}, "write_file": {"path": "g", "content": "x"}, "find_files": {"pattern": "*"}, "search_files": {"pattern": "x"},
          "shell_new": {}, "list_files": {}, "shell_read": {"timeout": 0}, "shell_wait": {}, "shell_interrupt": {"timeout": 0}, "shell_restart": {}}


@pytest.mark.parametrize("tool", FILLED)
def test_what_strict_schemas_fill_in_is_as_if_it_were_absent(mcp, workdir, tool):
    """Every text that can be left out empty, and every array."""
    (workdir / "f").write_text("x\n")
    mcp.call("shell_run", command="true")
    [schema] = [one["inputSchema"] for one in mcp.request("tools/list")["tools"] if one["name"] == tool]
    empty = {"string": "", "array": []}
    filled = {key: empty[of["type"]] for key, of in schema["properties"].items() if of["type"] in empty and key not in FILLED[tool]}
    assert filled or tool == "find_files"
    try:
        mcp.call_result(mcp.start_call(tool, {**filled, **FILLED[tool]}))
    except ToolError as error:
        assert tool == "shell_wait" and "Invalid" not in str(error)


def test_a_search_that_looks_at_nothing_says_so(mcp, workdir):
    (workdir / "f").write_text("x\n")
    assert "No file was looked at" in mcp.call("search_files", pattern="x", glob="*.none")["note"]
    assert "note" not in mcp.call("search_files", pattern="y") and mcp.call("search_files", pattern="x")["files_searched"] == 1


def test_errors_have_the_words_of_tools(mcp):
    with pytest.raises(ToolError, match="^No job has the number 99: there is no job 99; job_list tells which there are$"):
        mcp.call("job_wait", job=99)


def test_what_can_mean_more_is_refused(mcp):
    for arguments in {"command": "a", "cmd": "b"}, {"command": ["ls"]}, {"command": "x", "timeout": "soon"}, {"command": "x", "max_output_bytes": 1.5}:
        with pytest.raises(ToolError, match="Invalid parameters: "):
            mcp.call("shell_run", **arguments)
    with pytest.raises(ToolError, match="env"):
        mcp.call("job_start", command="true", env=["A"])


# ---- what clients make of schemas and results ----


def test_schemas_have_nothing_that_converters_refuse(mcp):
    tools = mcp.request("tools/list")["tools"]
    text = json.dumps(tools)
    for word in "additionalProperties", "minItems", "outputSchema", '"type": [', "$ref":
        assert word not in text, word
    env = next(tool for tool in tools if tool["name"] == "job_start")["inputSchema"]["properties"]["env"]
    assert env["type"] == "array" and env["items"] == {"type": "string"}


def test_text_and_pictures_come_as_such_alone(mcp, workdir):
    (workdir / "f").write_text("\tx\n")
    for name, arguments in ("read_file", {"path": "f"}), ("text_editor", {"command": "view", "path": "f"}):
        result = mcp.request("tools/call", {"name": name, "arguments": arguments})
        assert "structuredContent" not in result and "\tx\n" in result["content"][0]["text"]


def test_errors_speak_of_tools(mcp):
    for name, arguments in ("job_wait", {"job": 999999}), ("shell_run", {"command": "true", "session": "nope"}), ("shell_close", {"session": "nope"}):
        with pytest.raises(ToolError) as error:
            mcp.call(name, **arguments)
        assert "exec_remote" not in str(error.value) and "bash_session" not in str(error.value), error.value
    job = mcp.call("job_start", command="sleep 30")["job"]
    assert job in [one["job"] for one in mcp.call("job_list")["jobs"]]


def test_a_result_is_no_longer_than_clients_take(mcp):
    run = mcp.call("shell_run", command="seq 100000")
    assert len(run["output"]) <= 31_000 and run["omitted_bytes"] > 500_000


# ---- shells that are busy ----


def busy(mcp, workdir):
    """A command that its client has given up, without a word."""
    id = mcp.start_call("shell_run", {"command": f"cd /; touch {workdir}/on; sleep 1000", "timeout": 600})
    wait_until(lambda: (workdir / "on").exists(), "it runs")
    time.sleep(2.5)
    return id


def test_a_busy_shell_says_what_with(mcp, workdir):
    id = busy(mcp, workdir)
    with pytest.raises(ToolError, match=f"busy with 'cd /; touch {workdir}.*shell_interrupt.*shell_new"):
        mcp.call("shell_run", command="pwd")
    assert mcp.call("shell_run", command="pwd", session=mcp.call("shell_new")["session"])["output"] == f"{workdir}\n"
    mcp.call("shell_interrupt")
    assert mcp.call_result(id)["state"] == "completed"
    assert mcp.call("shell_run", command="pwd")["output"] == "/\n"


def test_a_busy_shell_can_be_interrupted_by_the_next_command(serve, workdir):
    mcp = serve(LEGACY[-1], "--interrupt-busy")
    busy(mcp, workdir)
    assert mcp.call("shell_run", command="pwd")["output"].endswith("/\n")


def test_commands_that_come_together_wait_their_turn(mcp):
    ids = [mcp.start_call("shell_run", {"command": f"sleep 1.5; echo {n}"}) for n in range(3)]
    assert [mcp.call_result(id)["output"] for id in ids] == ["0\n", "1\n", "2\n"]


# ---- which tools there are ----


def names_of(mcp):
    return {tool["name"] for tool in mcp.request("tools/list")["tools"]}


def test_tools_can_be_chosen(serve, client):
    assert names_of(serve(LEGACY[-1], "--profile", "minimal")) == {"shell_run", "text_editor"}
    assert names_of(serve(LEGACY[-1], "--tools=jobs,shell_r*,probe")) == {
        "job_start", "job_wait", "job_write", "job_kill", "job_list", "shell_run", "shell_read", "shell_restart", "probe"}
    assert {"web_go", "web_text"} <= names_of(serve(LEGACY[-1], "--tools", "browser"))
    reading = serve(LEGACY[-1], "--read-only")
    assert {"read_file", "find_files", "job_list"} <= names_of(reading) and not names_of(reading) & {"shell_run", "write_file", "text_editor", "job_kill"}
    with pytest.raises(McpError, match="Unknown tool: shell_run"):
        reading.call("shell_run", command="true")
    for words in ["--tools", "nope"], ["--tools", ""], ["--tools", "[a"], ["--tools"]:
        done = client.cli("mcp", "serve", *words)
        assert done.returncode == 2 and b"tool" in done.stderr, words


def test_a_list_is_small(serve):
    """A list stands in each context: what `coding` and `minimal` take, in bytes."""
    for most, words in (3_000, ["--profile", "minimal"]), (10_000, ["--profile", "coding"]), (19_000, ["--tools", "all"]):
        mcp = serve(LEGACY[-1], *words)
        listed = mcp.request("tools/list")["tools"]
        assert len(json.dumps(listed, separators=(",", ":"))) < most, words
        assert all(tool["title"] and tool["description"] for tool in listed)
    assert {"shell_run", "shell_wait", "job_start", "text_editor", "search_files"} <= names_of(serve(LEGACY[-1], "--profile", "coding"))


def test_hints_are_listed_where_they_are_not_what_clients_suppose(serve):
    for revision in LEGACY[1:]:
        hints = {tool["name"]: tool["annotations"] for tool in serve(revision).request("tools/list")["tools"]}
        assert all(("title" in hints[name]) == (revision == "2025-03-26") for name in hints)
        for name, reads, destroys, idempotent, open_world in (
                ("shell_run", False, True, False, True), ("read_file", True, False, False, False), ("job_kill", False, True, True, False),
                ("shell_new", False, False, False, True), ("job_wait", True, False, False, True)):
            told = hints[name]
            assert (told.get("readOnlyHint", False), told.get("idempotentHint", False), told.get("openWorldHint", True)) == (reads, idempotent, open_world)
            assert reads or told.get("destructiveHint", True) == destroys, name


def test_names_can_take_a_prefix(serve, client):
    mcp = serve(LEGACY[-1], "--prefix", "box_", "--tools", "minimal")
    assert names_of(mcp) == {"box_shell_run", "box_text_editor"}
    assert mcp.call("box_shell_run", command="echo hi")["output"] == "hi\n"
    for name in "shell_run", "box_", "box_job_start", "box_shell_run\0":
        with pytest.raises(McpError, match="Unknown tool"):
            mcp.call(name, command="true")
    for words in ["--prefix", "a b"], ["--prefix", "x" * 41]:
        done = client.cli("mcp", "serve", *words)
        assert done.returncode == 2 and b"--prefix" in done.stderr, words


def test_tools_of_the_browser_are_listed_where_there_is_one(serve, workdir):
    (workdir / "browser").write_text("#!/bin/sh\n")
    (workdir / "browser").chmod(0o755)
    assert not [name for name in names_of(serve(LEGACY[-1], env={"TOOLBOX_BROWSER": "/no/such", "PATH": "/no"})) if name.startswith("web_")]
    assert "web_go" in names_of(serve(LEGACY[-1], env={"TOOLBOX_BROWSER": str(workdir / "browser")}))
