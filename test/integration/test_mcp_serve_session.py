"""`toolbox mcp serve --session NAME`: shells and jobs that the next connection goes on with."""
import concurrent.futures
import os
import signal

import pytest

from harness.mcp_client import STATELESS, ToolError
from harness.processes import wait_until

NAMED = "--session", "agent"


def once(serve, tool, *options, revision="2025-11-25", **arguments):
    """One call by a connection of its own."""
    mcp = serve(revision, *NAMED, *options)
    try:
        return mcp.call(tool, **arguments)
    finally:
        mcp.close()


def holders(client):
    """The processes that serve sessions."""
    return [job["pid"] for job in client.rpc("exec_remote_list") if job["state"] == "running" and "mcp serve" in job["command"]]


def test_the_next_connection_goes_on(serve, workdir):
    assert once(serve, "shell_run", command="mkdir deep; cd deep; word=kept; echo $word")["output"] == "kept\n"
    got = once(serve, "shell_run", command="echo $word")
    assert got["output"] == "kept\n" and got["cwd"] == str(workdir / "deep")
    assert once(serve, "shell_run", command="echo $word", revision=STATELESS)["output"] == "kept\n"
    shells = once(serve, "shell_list")
    assert len(shells["sessions"]) == 1 and shells["default_session"] == got["session"]


def test_output_of_a_job_is_told_once(serve):
    job = once(serve, "job_start", command="echo one; read -r x; echo two; exit 3", stdin_open=True)["job"]
    wait = {"job": job, "for_": "output"}
    assert once(serve, "job_wait", **wait)["stdout"] == "one\n"
    once(serve, "job_write", job=job, text="go\n")
    got = once(serve, "job_wait", job=job)
    assert (got["stdout"], got["exit_code"]) == ("two\n", 3)
    assert [entry["job"] for entry in once(serve, "job_list")["jobs"]] == [job], "that which serves is none of the client's"


def test_instructions_say_how_long_shells_stay(serve):
    assert "Session agent" in serve("2025-11-25", *NAMED).info["instructions"]
    assert "end with this connection" in serve().info["instructions"]
    assert "stay when this connection ends" in serve("2025-11-25", "--keep-sessions").info["instructions"]


def test_clients_that_come_at_once_share_one(serve, client):
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: once(serve, "shell_run", command=f"echo {i}"), range(6)))
    assert [one["output"] for one in got] == [f"{i}\n" for i in range(6)] and len({one["session"] for one in got}) == 1
    assert len(holders(client)) == 1


def test_another_name_or_other_options_are_another_session(serve, client):
    once(serve, "shell_run", command="word=kept")
    other = serve("2025-11-25", "--session", "other")
    assert other.call("shell_run", command="echo ${word-none}")["output"] == "none\n"
    tools = {tool["name"] for tool in serve("2025-11-25", *NAMED, "--read-only").request("tools/list")["tools"]}
    assert "read_file" in tools and not tools & {"shell_run", "write_file"}
    assert len(holders(client)) == 3


def test_it_ends_when_nobody_comes(serve, client):
    once(serve, "shell_run", "--idle", "0.5s", command="cd /")
    once(serve, "job_start", "--idle", "0.5s", argv=["sleep", "1000"])
    wait_until(lambda: not client.rpc("bash_session_list") and all(job["state"] != "running" for job in client.rpc("exec_remote_list")),
               "shell, job and session to end")
    assert once(serve, "shell_run", "--idle", "0.5s", command="pwd")["output"] != "/\n"


def test_it_stays_while_somebody_is_there(serve):
    mcp = serve("2025-11-25", *NAMED, "--idle", "0.2s")
    mcp.call("shell_run", command="word=kept")
    mcp.call("shell_run", command="sleep 1")
    assert mcp.call("shell_run", command="echo $word")["output"] == "kept\n"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_that_is_ended_leaves_the_session(serve, how, workdir):
    mcp = serve("2025-11-25", *NAMED)
    mcp.call("shell_run", command="word=kept")
    mcp.start_call("shell_run", {"command": "touch begun; sleep 1000"})
    wait_until((workdir / "begun").exists, "the command to have begun")
    mcp.process.send_signal(how)
    mcp.process.wait()
    for pipe in mcp.process.stdin, mcp.process.stdout, mcp.process.stderr:
        pipe.close()
    # what it ran is interrupted, as by a cancelled call; until it is, the shell may be said to be busy

    def again():
        try:
            return once(serve, "shell_run", command="echo $word")["output"] == "kept\n"
        except ToolError:
            return False

    wait_until(again, "the shell to be free")


def test_open_calls_are_finished_at_the_end_of_the_input(serve):
    mcp = serve("2025-11-25", *NAMED)
    mcp.start_call("shell_run", {"command": "sleep 0.5; echo done"})
    [answer] = mcp.close()
    assert answer["result"]["structuredContent"]["output"] == "done\n"


def test_killed_all_of_it_ends_and_another_one_begins(serve, client):
    mcp = serve("2025-11-25", *NAMED)
    mcp.call("shell_run", command="word=kept")
    [pid] = holders(client)
    os.kill(pid, signal.SIGKILL)
    assert mcp.process.wait() == 1 and b"has ended" in mcp.process.stderr.read()
    for pipe in mcp.process.stdin, mcp.process.stdout, mcp.process.stderr:
        pipe.close()
    assert once(serve, "shell_run", command="echo ${word-none}")["output"] == "none\n"


def test_stop_server_ends_it(serve, client, server_dir):
    once(serve, "shell_run", command="cd /")
    client.cli("stop-server")
    assert not [path.name for path in server_dir.iterdir() if "mcp" in path.name]


@pytest.mark.parametrize("words, said", [
    (["--session", ""], b"takes a name"),
    (["--session", "a", "--http", "0"], b"--share"),
    (["--session", "a", "--keep-sessions"], b"--idle"),
])
def test_what_does_not_go_together(client, words, said):
    done = client.cli("mcp", "serve", *words)
    assert done.returncode == 2 and said in done.stderr
