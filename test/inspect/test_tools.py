"""bash_session() and text_editor() as a model uses them, in each kind of sandbox."""
import re

import pytest
from inspect_ai.tool import ToolError, bash_session, text_editor
from inspect_ai.util import sandbox as current

PROMPT = r"[#$] $"


@pytest.mark.fast
def test_a_model_uses_both_tools(sandbox):
    """The whole way: the mock model calls, the answers come back as its messages."""
    shell, editor = "bash_session", "text_editor"
    path = "/tmp/toolbox-inspect"
    said, created, again, edited, seen, removed = sandbox.calls(
        [bash_session(), text_editor()],
        [
            (shell, {"action": "type_submit", "input": "echo $((6*7))"}),
            (editor, {"command": "create", "path": path, "file_text": "one\ntwo\n"}),
            (editor, {"command": "create", "path": path, "file_text": "one\ntwo\n"}),
            (editor, {"command": "str_replace", "path": path, "old_str": "two", "new_str": "2"}),
            (shell, {"action": "type_submit", "input": f"cat {path}"}),
            (shell, {"action": "type_submit", "input": f"rm {path}"}),
        ],
    )
    assert re.search(r"42\n.*" + PROMPT, said)
    assert path in created and path in again.message and "exist" in again.message
    assert "     2\t2" in edited
    assert re.match(r"one\n2\n.*" + PROMPT, seen) and re.match(PROMPT, removed[-2:])


def test_every_action_of_bash_session(sandbox):
    async def body(n):
        shell = bash_session(wait_for_output=2)
        assert re.search(PROMPT, await shell(action="type_submit", input="cd /tmp; PS1='at $ '"))
        assert await shell(action="type", input="echo a ") == ""
        assert await shell(action="type", input="b") == ""
        assert await shell(action="type_submit") == "a b\nat $ "
        assert await shell(action="read") == ""
        assert await shell(action="type_submit", input="for i in 1 2; do sleep 1; echo $i; done; sleep 60") == "1\n"
        assert await shell(action="read") == "2\n"
        assert (await shell(action="interrupt")).endswith("at $ ")
        assert await shell(action="type_submit", input="echo 'open") == "> "
        assert (await shell(action="interrupt")).endswith("at $ ")
        assert "restart" in await shell(action="restart")
        assert "hi\n" in await shell(action="type_submit", input="echo hi")
        return True

    assert sandbox.run(body) == [True]


def test_instances_are_shells_of_their_own(sandbox):
    async def body(n):
        one, other = bash_session(instance="one"), bash_session(instance="other")
        await one(action="type_submit", input="x=1")
        await other(action="type_submit", input="x=2")
        return [re.search(r"x is (\d)\n", await shell(action="type_submit", input="echo x is $x"))[1] for shell in (one, other)]

    assert sandbox.run(body) == [["1", "2"]]


def test_every_command_of_text_editor(sandbox):
    async def body(n):
        editor, path = text_editor(), "/tmp/toolbox-inspect/file"
        await current().exec(["mkdir", "-p", "/tmp/toolbox-inspect"])
        await editor(command="create", path=path, file_text="a\nb\nc\n")
        assert "     2\tb\n" in await editor(command="view", path=path)
        assert "     1\t" not in await editor(command="view", path=path, view_range=[2, -1])
        assert "/file" in await editor(command="view", path="/tmp/toolbox-inspect")
        await editor(command="insert", path=path, insert_line=1, new_str="new")
        await editor(command="insert", path=path, insert_line=0, insert_text="first")
        await editor(command="str_replace", path=path, old_str="c")
        assert await current().read_file(path) == "first\na\nnew\nb\n\n"
        for _ in range(3):
            await editor(command="undo_edit", path=path)
        assert await current().read_file(path) == "a\nb\nc\n"
        for refused in (
            {"command": "str_replace", "old_str": "nowhere", "new_str": ""},
            {"command": "view", "view_range": [5, 99]},
            {"command": "insert", "insert_line": 77, "new_str": "x"},
            {"command": "create", "file_text": "x"},
        ):
            try:
                raise AssertionError(await editor(path=path, **refused))
            except ToolError as told:
                assert told.message
        await current().exec(["rm", "-r", "/tmp/toolbox-inspect"])
        return True

    assert sandbox.run(body) == [True]


def test_answers_of_ten_megabytes(sandbox):
    """More than an answer may have: it comes in pieces."""

    async def body(n):
        shell = bash_session(wait_for_output=20)
        await shell(action="type_submit", input="PS1=; stty -echo")
        text = await shell(action="type_submit", input="yes '\"' | head -c 9000000; echo; echo END")
        while not text.endswith("END\n"):
            text += await shell(action="read")
        return text.count('"'), len(text)

    [(quotes, length)] = sandbox.run(body)
    assert (quotes, length) == (4500000, 9000005)


def test_text_that_is_not_plain(sandbox):
    async def body(n):
        editor, path = text_editor(), "/tmp/toolbox-inspect-text"
        text = "tab\there\r\n\u00fc\u6f22\U0001f600 'quotes\" \\ back\u2028\n"
        await editor(command="create", path=path, file_text=text)
        assert await current().read_file(path, text=False) == text.encode()
        shell = bash_session()
        await shell(action="type_submit", input="PS1='$ '")
        seen = await shell(action="type_submit", input=f"cat {path}; rm {path}")
        return seen.replace("\r", "") == text.replace("\r", "") + "$ "

    assert sandbox.run(body) == [True]
