"""usage: openai_agents_test.py FOLDER: an agent whose model has its lines written for it."""
import asyncio
import sys

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseApplyPatchToolCall, ResponseFunctionShellToolCall, ResponseOutputMessage
from toolbox_sandbox import AsyncSandbox

from openai_agents import apply_patch_tool, shell_tool

folder = sys.argv[1]


def shell(id, *commands, **limits):
    return ResponseFunctionShellToolCall.model_validate({"id": id, "call_id": id, "type": "shell_call", "status": "completed", "action": {"commands": commands, "timeout_ms": None, "max_output_length": None, **limits}})


def patch(id, **operation):
    return ResponseApplyPatchToolCall.model_validate({"id": id, "call_id": id, "type": "apply_patch_call", "status": "completed", "operation": operation})


SAID = ResponseOutputMessage.model_validate({"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "done", "annotations": []}]})
TURNS = [
    [patch("p1", type="create_file", path="a/b.txt", diff="+one\n+two\n")],
    [patch("p2", type="update_file", path="a/b.txt", diff="@@\n one\n-two\n+three\n"), patch("p3", type="update_file", path="../out.txt", diff="@@\n-x\n+y\n")],
    [shell("s1", f"cat {folder}/a/b.txt; echo no >&2; exit 3", "pwd"), shell("s2", "echo begun; sleep 1000", timeout_ms=500)],
    [patch("p4", type="delete_file", path="a/b.txt")],
    [SAID],
]


class Scripted(Model):
    def __init__(self):
        self.heard = []

    async def get_response(self, *, input, **_):
        self.heard = input
        return ModelResponse(output=TURNS.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def main():
    set_tracing_disabled(True)
    model = Scripted()
    async with await AsyncSandbox.connect("local:", options=["--dir", f"{folder}/there"]) as sandbox:
        agent = Agent(name="coder", model=model, tools=[shell_tool(sandbox, cwd=folder), apply_patch_tool(sandbox, folder)])
        assert (await Runner.run(agent, "Do it.")).final_output == "done"
        assert (await sandbox.run(["ls", f"{folder}/a"])).text == ""
    outputs = {item["call_id"]: item for item in model.heard if str(item.get("type", "")).endswith("_output")}
    first, second = outputs["s1"]["output"]
    assert (first["stdout"], first["stderr"], first["outcome"]) == ("one\nthree\n", "no\n", {"type": "exit", "exit_code": 3}), first
    assert second["stdout"] == f"{folder}\n", second
    (late,) = outputs["s2"]["output"]
    assert (late["stdout"], late["outcome"]["type"]) == ("begun\n", "timeout"), late
    assert [outputs[id]["status"] for id in ("p1", "p2", "p3", "p4")] == ["completed", "completed", "failed", "completed"], outputs
    assert "out.txt" in outputs["p3"]["output"], outputs["p3"]


asyncio.run(main())
