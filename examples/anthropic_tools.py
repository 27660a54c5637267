"""Anthropic's bash and text editor tools, carried out in any container.

    async with await AsyncSandbox.connect("docker:web") as sandbox, BashTool(sandbox) as bash:
        runner = AsyncAnthropic().beta.messages.tool_runner(
            model="…", max_tokens=4096, tools=[bash, TextEditorTool(sandbox)], messages=[{"role": "user", "content": "Make the tests pass."}])
        print((await runner.until_done()).content)

Needs `anthropic` and `toolbox-sandbox`.
"""
from typing import Any

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, ToolError
from toolbox_sandbox import AsyncSandbox, AsyncShell, CallError, ShellResult

OUTPUT_MAX = 100_000  # bytes of which head and tail are kept


class BashTool(BetaAsyncBuiltinFunctionTool):
    """One session for the whole conversation, of bash or what there is of its kind. `async with` closes it."""

    def __init__(self, sandbox: AsyncSandbox, timeout: float = 120, **session: Any) -> None:
        self._sandbox, self._timeout, self._session = sandbox, timeout, session
        self._shell: AsyncShell | None = None

    async def __aenter__(self) -> "BashTool":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._shell and not self._sandbox.closed:
            await self._shell.close()
        self._shell = None

    def to_dict(self) -> Any:
        return {"type": "bash_20250124", "name": "bash"}

    async def call(self, input: object) -> str:
        wanted = dict(input)  # type: ignore[call-overload]
        try:
            if wanted.get("restart"):
                await self.close()
                return "the shell was restarted"
            self._shell = self._shell or await self._sandbox.shell(**self._session)
            return self._told(await self._shell.run(wanted["command"], timeout=self._timeout, max_output_bytes=OUTPUT_MAX))
        except CallError as error:
            raise ToolError(error.message) from error

    def _told(self, done: ShellResult) -> str:
        notes = {
            "timeout": f"it still runs after {self._timeout:g} s; restart the tool to end it",
            "awaiting_input": "it waits for input, which this tool can't give; restart the tool to end it",
            "exited": "the shell has ended; restart the tool",
            "completed": f"exit code {done.exit_code}" if done.exit_code else "",
        }
        return "\n".join(part for part in (done.notice, done.output.rstrip("\n"), f"[{notes[done.state]}]" if notes[done.state] else "") if part)


class TextEditorTool(BetaAsyncBuiltinFunctionTool):
    """view, create, str_replace and insert: their params are those of toolbox's own editor."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    def to_dict(self) -> Any:
        return {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}

    async def call(self, input: object) -> str:
        given = dict(input)  # type: ignore[call-overload]
        if given["command"] == "create":  # here a file that is there is written anew
            given |= {"overwrite": True, "parents": True}
        try:
            return str(await self._sandbox.call("text_editor", {key: value for key, value in given.items() if value is not None}))
        except CallError as error:
            raise ToolError(error.message) from error
