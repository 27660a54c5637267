"""OpenAI Agents SDK: its shell and apply_patch tools, carried out in any container.

    async with await AsyncSandbox.connect("docker:web") as sandbox:
        agent = Agent(name="coder", model="…", tools=[shell_tool(sandbox), apply_patch_tool(sandbox, "/srv")])
        print((await Runner.run(agent, "Make the tests pass.")).final_output)

Needs `openai-agents` and `toolbox-sandbox`.
"""
import posixpath

from agents import ApplyPatchTool, ShellCallOutcome, ShellCommandOutput, ShellCommandRequest, ShellResult, ShellTool
from agents.editor import ApplyPatchOperation, ApplyPatchResult
from toolbox_sandbox import AsyncSandbox, RunTimeout, ToolError

OUTPUT_MAX = 100_000  # bytes of a stream that are kept, the last ones


def shell_tool(sandbox: AsyncSandbox, cwd: str | None = None, timeout: float = 120) -> ShellTool:
    """Each command has a shell of its own, as the model expects; what it has started ends with its time."""

    async def run(command: str, seconds: float) -> ShellCommandOutput:
        try:
            done = await sandbox.run(["sh", "-c", command], cwd=cwd, timeout=seconds, keep_last=OUTPUT_MAX)
            outcome = ShellCallOutcome(type="exit", exit_code=done.status)
        except RunTimeout as late:
            done, outcome = late, ShellCallOutcome(type="timeout")
        stdout, stderr = (said.decode(errors="replace") for said in (done.stdout, done.stderr))
        return ShellCommandOutput(stdout=stdout, stderr=stderr, outcome=outcome, command=command)

    async def execute(request: ShellCommandRequest) -> ShellResult:
        action = request.data.action
        seconds = action.timeout_ms / 1000 if action.timeout_ms else timeout
        return ShellResult(output=[await run(command, seconds) for command in action.commands], max_output_length=action.max_output_length)

    return ShellTool(executor=execute)


class SandboxEditor:
    """Applies what the model has made of files, whole or not at all. Paths are below `root`: none leads out of it."""

    def __init__(self, sandbox: AsyncSandbox, root: str) -> None:
        self._sandbox, self._root = sandbox, root

    async def _apply(self, kind: str, operation: ApplyPatchOperation) -> ApplyPatchResult:
        path = posixpath.relpath(posixpath.join(self._root, operation.path), self._root)
        move = [f"*** Move to: {posixpath.relpath(posixpath.join(self._root, operation.move_to), self._root)}"] if operation.move_to else []
        lines = ["*** Begin Patch", f"*** {kind} File: {path}", *move, *(operation.diff or "").splitlines(), "*** End Patch"]
        try:
            return ApplyPatchResult(status="completed", output=await self._sandbox.patch("\n".join(lines) + "\n", self._root))
        except ToolError as error:
            return ApplyPatchResult(status="failed", output=error.message)

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply("Add", operation)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply("Update", operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply("Delete", operation)


def apply_patch_tool(sandbox: AsyncSandbox, root: str) -> ApplyPatchTool:
    return ApplyPatchTool(editor=SandboxEditor(sandbox, root))
