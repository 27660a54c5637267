"""usage: anthropic_tools_test.py FOLDER: the SDK's own tool runner, with a server in the place of the model."""
import asyncio
import sys

from anthropic import AsyncAnthropic
from scripted import served
from toolbox_sandbox import AsyncSandbox

from anthropic_tools import BashTool, TextEditorTool

folder = sys.argv[1]


def turn(*content, stop="tool_use"):
    return {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}


def use(id, name, **input):
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def bash(id, command=None, **more):
    return use(id, "bash", **({"command": command} if command else {}), **more)


def edit(id, command, **more):
    return use(id, "str_replace_based_edit_tool", command=command, path=f"{folder}/a/b.txt", **more)


TURNS = [
    turn(bash("b1", f"cd {folder}; A=7"), bash("b2", "echo $A; pwd; false")),
    turn(edit("e1", "create", file_text="one\n"), edit("e2", "str_replace", old_str="one", new_str="two"), edit("e3", "view"), edit("e4", "insert", insert_line=1, insert_text="three\n")),
    turn(edit("e5", "str_replace", old_str="nowhere", new_str="x"), edit("e6", "create", file_text="anew\n"), bash("b3", "cat a/b.txt")),
    turn(bash("b4", "read x"), bash("b5", restart=True), bash("b6", "echo -$A")),
    turn({"type": "text", "text": "done"}, stop="end_turn"),
]


async def main():
    options = ["--dir", f"{folder}/there"]
    with served(TURNS) as (url, asked):
        async with await AsyncSandbox.connect("local:", options=options) as sandbox, BashTool(sandbox) as bash_tool:
            client = AsyncAnthropic(api_key="none", base_url=url)
            runner = client.beta.messages.tool_runner(model="m", max_tokens=100, tools=[bash_tool, TextEditorTool(sandbox)], messages=[{"role": "user", "content": "Do it."}])
            assert (await runner.until_done()).content[0].text == "done"
        async with await AsyncSandbox.connect("local:", options=options) as sandbox:
            assert await sandbox.methods.bash_session_list() == []
    assert [tool["type"] for tool in asked[0]["tools"]] == ["bash_20250124", "text_editor_20250728"]
    results = {part["tool_use_id"]: part for body in asked for message in body["messages"] if isinstance(message["content"], list) for part in message["content"] if part.get("type") == "tool_result"}

    def said(id):
        content = results[id].get("content", "")
        return content if isinstance(content, str) else "".join(part["text"] for part in content)

    assert said("b2") == f"7\n{folder}\n[exit code 1]", said("b2")
    assert "two" in said("e3") and not results["e3"].get("is_error"), said("e3")
    assert results["e5"]["is_error"] and "does not occur" in said("e5"), results["e5"]
    assert said("b3") == "anew", said("b3")
    assert "input" in said("b4"), said("b4")
    assert said("b6") == "-", said("b6")


asyncio.run(main())
