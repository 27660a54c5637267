"""SWE-ReX: a deployment and a runtime for SWE-agent and others, in any container, without a server of theirs in it.

    deployment = ToolboxDeployment("docker:web")
    await deployment.start()
    await deployment.runtime.create_session(CreateBashSessionRequest())
    print((await deployment.runtime.run_in_session(BashAction(command="uname -r"))).output)
    await deployment.stop()

Needs `swe-rex` and `toolbox-sandbox`.
"""
import asyncio
import logging
import shlex
from pathlib import Path
from typing import Any

from swerex import exceptions
from swerex.deployment.abstract import AbstractDeployment
from swerex.deployment.hooks.abstract import CombinedDeploymentHook, DeploymentHook
from swerex.runtime import abstract as rex
from swerex.utils.log import get_logger
from toolbox_sandbox import AsyncSandbox, AsyncShell, CannotRun, RunTimeout, ToolError


class ToolboxRuntime(rex.AbstractRuntime):
    def __init__(self, sandbox: AsyncSandbox, logger: logging.Logger | None = None) -> None:
        self._sandbox, self._shells = sandbox, dict[str, AsyncShell]()
        self.logger = logger or get_logger("rex-runtime")

    async def is_alive(self, *, timeout: float | None = None) -> rex.IsAliveResponse:
        try:
            await asyncio.wait_for(self._sandbox.call("version"), timeout)
            return rex.IsAliveResponse(is_alive=True)
        except Exception as error:
            return rex.IsAliveResponse(is_alive=False, message=repr(error))

    def _shell(self, name: str) -> AsyncShell:
        if name not in self._shells:
            raise exceptions.SessionDoesNotExistError(f"session {name!r} does not exist")
        return self._shells[name]

    async def create_session(self, request: rex.CreateSessionRequest) -> rex.CreateSessionResponse:
        if request.session in self._shells:
            raise exceptions.SessionExistsError(f"session {request.session!r} already exists")
        shell = self._shells[request.session] = await self._sandbox.shell()
        sourced = [await shell.run(f"source {shlex.quote(path)}", timeout=request.startup_timeout) for path in request.startup_source]
        return rex.CreateBashSessionResponse(output="".join(done.output for done in sourced))

    async def run_in_session(self, action: rex.Action) -> rex.Observation:
        shell = self._shell(action.session)
        if isinstance(action, rex.BashInterruptAction):
            return await self._interrupted(shell, action)
        if action.is_interactive_command or action.is_interactive_quit:
            return rex.BashObservation(output=await shell.send(action.command + "\n"), exit_code=0)
        try:
            done = await shell.run(action.command, timeout=action.timeout)
        except ToolError as error:
            raise exceptions.BashIncorrectSyntaxError(error.message) if "syntax" in error.message else exceptions.SwerexException(error.message) from error
        if done.state == "timeout":
            raise exceptions.CommandTimeoutError(f"timeout after {action.timeout} seconds while running command {action.command!r}")
        code = done.exit_code if action.check != "ignore" else None
        if action.check == "raise" and done.exit_code is None:
            raise exceptions.NoExitCodeError(f"command {action.command!r} has no exit code: {done.state}")
        if action.check == "raise" and code:
            raise exceptions.NonZeroExitCodeError(f"Command {action.command!r} failed with exit code {code}. Here is the output:\n{done.output}\n{action.error_msg}")
        return rex.BashObservation(output=done.output, exit_code=code, failure_reason="" if done.state == "completed" else done.state)

    async def _interrupted(self, shell: AsyncShell, action: rex.BashInterruptAction) -> rex.Observation:
        await shell.interrupt()
        try:
            done = await shell.run(timeout=max(action.timeout, 10))
            return rex.BashObservation(output=done.output, exit_code=done.exit_code)
        except ToolError:  # no command of `run` is waited for: an interactive one was typed
            return rex.BashObservation(output=await shell.send("", wait_for_output=1), exit_code=130)

    async def close_session(self, request: rex.CloseSessionRequest) -> rex.CloseSessionResponse:
        await self._shell(request.session).close()
        del self._shells[request.session]
        return rex.CloseBashSessionResponse()

    async def execute(self, command: rex.Command) -> rex.CommandResponse:
        words = ["sh", "-c", command.command] if command.shell and isinstance(command.command, str) else [command.command] if isinstance(command.command, str) else command.command
        argv = ["sh", "-c", 'exec "$@" 2>&1', "sh", *words] if command.merge_output_streams else words
        try:
            done = await self._sandbox.run(argv, timeout=command.timeout, env=command.env, cwd=command.cwd)
        except RunTimeout as error:
            raise exceptions.CommandTimeoutError(f"timeout ({command.timeout} s) while running command") from error
        except CannotRun as error:
            raise FileNotFoundError(str(error)) from error
        said = rex.CommandResponse(stdout=done.stdout.decode(errors="backslashreplace"), stderr=done.stderr.decode(errors="backslashreplace"), exit_code=done.status)
        if command.check and done.status:
            raise exceptions.NonZeroExitCodeError(f"Command failed with exit code {done.status}: {said.stderr}\n{command.error_msg}")
        return said

    async def read_file(self, request: rex.ReadFileRequest) -> rex.ReadFileResponse:
        return rex.ReadFileResponse(content=(await self._sandbox.files.read(request.path)).decode(request.encoding or "utf-8", request.errors or "strict"))

    async def write_file(self, request: rex.WriteFileRequest) -> rex.WriteFileResponse:
        await self._sandbox.files.write(request.path, request.content, parents=True)
        return rex.WriteFileResponse()

    async def upload(self, request: rex.UploadRequest) -> rex.UploadResponse:
        source = Path(request.source_path)
        for path in [source] if source.is_file() else (path for path in sorted(source.rglob("*")) if path.is_file()):
            target = str(Path(request.target_path, path.relative_to(source)))
            await self._sandbox.files.write(target, path.read_bytes(), mode=path.stat().st_mode & 0o777, parents=True)
        return rex.UploadResponse()

    async def close(self) -> rex.CloseResponse:
        for name in list(self._shells):
            await self.close_session(rex.CloseBashSessionRequest(session=name))
        return rex.CloseResponse()


class ToolboxDeployment(AbstractDeployment):
    """To a target that is there. Stopping it ends its sessions and lets go of it."""

    def __init__(self, target: str, *, logger: logging.Logger | None = None, **connect: Any) -> None:
        self._target, self._connect, self._hooks = target, connect, CombinedDeploymentHook()
        self._sandbox: AsyncSandbox | None = None
        self._runtime: ToolboxRuntime | None = None
        self.logger = logger or get_logger("rex-deploy")

    def add_hook(self, hook: DeploymentHook) -> None:
        self._hooks.add_hook(hook)

    async def is_alive(self, *, timeout: float | None = None) -> rex.IsAliveResponse:
        return await self.runtime.is_alive(timeout=timeout)

    async def start(self) -> None:
        self._hooks.on_custom_step("Connecting")
        self._sandbox = await AsyncSandbox.connect(self._target, **self._connect)
        self._runtime = ToolboxRuntime(self._sandbox, self.logger)

    async def stop(self) -> None:
        if self._sandbox and self._runtime:
            await self._runtime.close()
            await self._sandbox.close()
        self._sandbox = self._runtime = None

    @property
    def runtime(self) -> ToolboxRuntime:
        if self._runtime is None:
            raise exceptions.DeploymentNotStartedError
        return self._runtime
