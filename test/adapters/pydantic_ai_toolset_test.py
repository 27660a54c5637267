"""usage: pydantic_ai_toolset_test.py FOLDER: an agent whose model is a function."""
import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from toolbox_sandbox import AsyncSandbox

from pydantic_ai_toolset import SandboxToolset

folder = sys.argv[1]
PATH = f"{folder}/a/b.txt"
CALLS = [
    ("write_file", {"path": PATH, "content": "one\n"}),
    ("replace_in_file", {"path": PATH, "old": "nowhere", "new": "x"}),
    ("replace_in_file", {"path": PATH, "old": "one", "new": "two"}),
    ("apply_patch", {"patch": "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1 +1,2 @@\n two\n+three\n", "directory": folder}),
    ("read_file", {"path": PATH, "first_line": 2, "last_line": 2}),
    ("list_files", {"directory": folder, "glob": "a/*.txt"}),
    ("run_command", {"command": f"cd {folder}/a; A=7"}),
    ("run_command", {"command": "cat b.txt; echo $A; false"}),
    ("run_command", {"command": "read x"}),
    ("run_command", {"command": "echo -$A"}),
]
answers = []


def model(messages, info):
    answers.extend(part for part in messages[-1].parts if isinstance(part, (ToolReturnPart, RetryPromptPart)))
    if len(answers) < len(CALLS):
        return ModelResponse(parts=[ToolCallPart(*CALLS[len(answers)])])
    return ModelResponse(parts=[TextPart("done")])


async def main():
    async with await AsyncSandbox.connect("local:", options=["--dir", f"{folder}/there"]) as sandbox:
        agent = Agent(FunctionModel(model), toolsets=[SandboxToolset(sandbox)])
        assert (await agent.run("Do it.")).output == "done"
        assert await sandbox.methods.bash_session_list() == []
    refused = [number for number, answer in enumerate(answers) if isinstance(answer, RetryPromptPart) or answer.outcome == "retried"]
    assert refused == [1] and "does not occur" in str(answers[1].content), answers
    assert "three" in answers[4].content and "two" not in answers[4].content, answers[4]
    assert [path for path in answers[5].content] == ["a/b.txt"], answers[5]
    ran = [answer.content for answer in answers[6:]]
    assert (ran[1]["output"], ran[1]["exit_code"], ran[1]["cwd"]) == ("two\nthree\n7\n", 1, f"{folder}/a"), ran[1]
    assert ran[2]["state"] == "awaiting_input" and ran[3]["output"] == "-\n", json.dumps(ran)


asyncio.run(main())
