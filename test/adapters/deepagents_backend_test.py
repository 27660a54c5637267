"""usage: deepagents_backend_test.py FOLDER: a deep agent whose model has its lines written for it."""
import asyncio
import sys

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from toolbox_sandbox import Sandbox

from deepagents_backend import ToolboxBackend

folder = sys.argv[1]
PATH = f"{folder}/a/b.txt"
CALLS = [
    ("write_file", {"file_path": PATH, "content": "one\none\n"}),
    ("edit_file", {"file_path": PATH, "old_string": "one", "new_string": "two", "replace_all": True}),
    ("edit_file", {"file_path": PATH, "old_string": "nowhere", "new_string": "x"}),
    ("read_file", {"file_path": PATH}),
    ("ls", {"path": f"{folder}/a"}),
    ("glob", {"pattern": "*.txt", "path": f"{folder}/a"}),
    ("grep", {"pattern": "two", "path": f"{folder}/a"}),
    ("execute", {"command": f"cat {PATH}; echo no >&2; exit 3"}),
]


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def scripted():
    turns = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(i), "type": "tool_call"}]) for i, (name, args) in enumerate(CALLS)]
    return Scripted(messages=iter([*turns, AIMessage("done")]))


def check(messages):
    assert messages[-1].content == "done"
    said = [message.content for message in messages if isinstance(message, ToolMessage)]
    assert len(said) == len(CALLS), said
    assert "2" in said[1] and "does not occur" in said[2], said[1:3]
    assert said[3].count("two") == 2, said[3]
    assert PATH in said[4] and PATH in said[5] and PATH in said[6], said[4:7]
    assert "two\ntwo\nno" in said[7] and "3" in said[7], said[7]


def main():
    asked = {"messages": [{"role": "user", "content": "Do it."}]}
    with Sandbox.connect("local:", options=["--dir", f"{folder}/there"]) as sandbox:
        backend = ToolboxBackend(sandbox)
        check(create_deep_agent(model=scripted(), backend=backend).invoke(asked)["messages"])
        check(asyncio.run(create_deep_agent(model=scripted(), backend=backend).ainvoke(asked))["messages"])
        late = backend.execute("echo part; sleep 1000", timeout=1)
        assert late.exit_code == 124 and late.output.startswith("part\n"), late
        (up,), (down, gone) = backend.upload_files([(PATH, b"\xff")]), backend.download_files([PATH, f"{folder}/nowhere"])
        assert (up.error, down.content, gone.error) == (None, b"\xff", "file_not_found")
        assert backend.upload_files([(folder, b"")])[0].error == "is_directory"
        assert backend.delete(f"{folder}/a").path and backend.delete(f"{folder}/a").error
        assert backend.ls(f"{folder}/nowhere").error


main()
