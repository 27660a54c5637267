"""pydantic-ai: a toolset of a container's shell, files and editor.

    async with await AsyncSandbox.connect("docker:web") as sandbox:
        agent = Agent("…", toolsets=[SandboxToolset(sandbox)])
        print((await agent.run("Make the tests pass.")).output)

Needs `pydantic-ai-slim` and `toolbox-sandbox`.
"""
from typing import Any

from pydantic_ai import FunctionToolset, ModelRetry
from toolbox_sandbox import AsyncSandbox, AsyncShell, CallError

OUTPUT_MAX = 100_000  # bytes of which head and tail are kept


class SandboxToolset(FunctionToolset[Any]):
    """What it says no to, the model hears as a reason to try again. The session of `run_command` ends with the agent's run."""

    def __init__(self, sandbox: AsyncSandbox, timeout: float = 120) -> None:
        self._sandbox, self._timeout = sandbox, timeout
        self._shell: AsyncShell | None = None
        self._entered = 0
        super().__init__([self.run_command, self.read_file, self.write_file, self.replace_in_file, self.apply_patch, self.list_files])

    async def __aenter__(self) -> "SandboxToolset":
        self._entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self._entered -= 1
        if not self._entered and self._shell:
            shell, self._shell = self._shell, None
            await shell.close()

    async def run_command(self, command: str) -> dict[str, Any]:
        """Runs a command in a shell that keeps its directory and variables. A state other than "completed" says why there is no exit code."""
        try:
            self._shell = self._shell or await self._sandbox.shell()
            done = await self._shell.run(command, timeout=self._timeout, max_output_bytes=OUTPUT_MAX)
            if done.state in ("timeout", "awaiting_input"):
                await self._shell.restart()
        except CallError as error:
            raise ModelRetry(error.message) from error
        return {"output": done.output, "exit_code": done.exit_code, "state": done.state, "cwd": done.cwd}

    async def _edited(self, command: str, **params: Any) -> str:
        try:
            return str(await self._sandbox.call("text_editor", {"command": command, **{key: value for key, value in params.items() if value is not None}}))
        except CallError as error:
            raise ModelRetry(error.message) from error

    async def read_file(self, path: str, first_line: int = 1, last_line: int = -1) -> str:
        """A file with line numbers, or what is in a directory; of a file, some of its lines (from 1; -1: to the end)."""
        whole = (first_line, last_line) == (1, -1)
        return await self._edited("view", path=path, view_range=None if whole else [first_line, last_line])

    async def write_file(self, path: str, content: str) -> str:
        """Writes a file, also in the place of one that is there."""
        return await self._edited("create", path=path, file_text=content, overwrite=True, parents=True)

    async def replace_in_file(self, path: str, old: str, new: str) -> str:
        """Replaces a text that is in the file exactly once."""
        return await self._edited("str_replace", path=path, old_str=old, new_str=new)

    async def apply_patch(self, patch: str, directory: str) -> str:
        """Applies a unified diff, whole or not at all. Its paths are below the directory."""
        return await self._edited("apply_patch", patch=patch, path=directory)

    async def list_files(self, directory: str, glob: str = "**") -> list[str]:
        """Paths below a directory, from there on, that match: *, ?, **, [a-z], {a,b}."""
        try:
            return [entry["path"] async for entry in self._sandbox.files.list(directory, depth=100, glob=glob)]
        except CallError as error:
            raise ModelRetry(error.message) from error
