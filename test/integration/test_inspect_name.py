"""What differs under the name by which inspect_ai places its tool server: errors in what the evaluation has set up end a sample."""
import sys

import pytest

from harness.client import TOOLERR, RpcError

INTERNAL = -32098
SLEEPER = {"command": sys.executable, "args": ["-c", "input()"]}


@pytest.fixture(params=["toolbox", "inspect-sandbox-tools", "inspect-tool-support"])
def named(request, new_client, toolbox, workdir):
    """A client of the program under a name, and what an error in a setting is there."""
    program = workdir / request.param
    program.symlink_to(toolbox)
    return new_client(binary=str(program)), TOOLERR if request.param == "toolbox" else INTERNAL


def code_of(client, method, params):
    with pytest.raises(RpcError) as refused:
        client.rpc(method, params)
    return refused.value.code


@pytest.mark.parametrize("method, params", [
    ("bash_session_new_session", {"user": "no-such-user"}), ("exec_remote_start", {"command": "true", "user": "no-such-user"}),
    ("mcp_launch_server", {"server_params": SLEEPER, "user": "no-such-user"}),
    ("mcp_launch_server", {"server_params": {**SLEEPER, "command": "/no/such/program"}}),
    ("mcp_launch_server", {"server_params": {**SLEEPER, "cwd": "/no/such/directory"}}),
    ("text_editor", {"command": "view", "path": "/", "_run_as_user": "no-such-user"})])
def test_what_the_evaluation_has_set_wrong(named, method, params):
    client, code = named
    assert code_of(client, method, params) == code


@pytest.mark.parametrize("method, params", [
    ("text_editor", {"command": "view", "path": "/no/such/file"}), ("exec_remote_poll", {"pid": 1, "ack_seq": 0}),
    ("exec_remote_start", {"command": "true", "cwd": "/no/such/directory"}), ("mcp_kill_server", {"session_id": 77}),
    ("bash_session", {"session_name": "none", "input": "x", "wait_for_output": 1, "idle_timeout": 0.1})])
def test_what_a_model_does_wrong(named, method, params):
    client, _ = named
    assert code_of(client, method, params) == TOOLERR


def test_a_job_that_is_gone(named):
    """Hosts look for these words."""
    client, _ = named
    for method in ("poll", "kill"):
        with pytest.raises(RpcError, match="No job found with pid 2147483646\\b"):
            client.rpc(f"exec_remote_{method}", {"pid": 2147483646, "ack_seq": 0})
