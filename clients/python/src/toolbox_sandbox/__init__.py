"""Hands in any Linux container, over one connection that is kept.

    with Sandbox.connect("docker:web") as sandbox:
        print(sandbox.run(["uname", "-r"]).text)

`AsyncSandbox` is the same for asyncio.
"""
from .errors import CallError, CannotConnect, CannotRun, ConnectionLost, CopyFailed, FileError, InvalidParams, OutputLimit, RunFailed, RunTimeout, ToolboxError, ToolError, UnknownMethod
from .job import AsyncJob, JobOutput
from .program import AsyncProcess, Completed
from .sandbox import AsyncSandbox
from .shell import AsyncShell, ShellResult
from .sync import Job, Process, Sandbox, Shell

__all__ = [
    "AsyncJob", "AsyncProcess", "AsyncSandbox", "AsyncShell", "CallError", "CannotConnect", "CannotRun", "Completed", "ConnectionLost", "CopyFailed", "FileError", "InvalidParams", "Job",
    "JobOutput", "OutputLimit", "Process", "RunFailed", "RunTimeout", "Sandbox", "Shell", "ShellResult", "ToolboxError", "ToolError", "UnknownMethod",
]
