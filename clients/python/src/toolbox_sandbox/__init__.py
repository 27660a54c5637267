"""Hands in any Linux container, over one connection that is kept.

    with Sandbox.connect("docker:web") as sandbox:
        print(sandbox.run(["uname", "-r"]).text)

`AsyncSandbox` is the same for asyncio.
"""
from .errors import CallError, CannotConnect, CannotRun, ConnectionLost, CopyFailed, FileError, InvalidParams, OutputLimit, RunFailed, RunTimeout, ToolboxError, ToolError, UnknownMethod
from .job import AsyncJob, JobOutput
from .program import AsyncProcess, Completed
from .results import Change, Copied, Doctor, Entry, Found, Hello, Match, Page, SearchResult, Stat
from .sandbox import AsyncSandbox
from .shell import AsyncShell, ShellResult
from .sync import Job, Process, Sandbox, Shell

__all__ = [
    "AsyncJob", "AsyncProcess", "AsyncSandbox", "AsyncShell", "CallError", "CannotConnect", "CannotRun", "Change", "Completed", "ConnectionLost", "Copied", "CopyFailed", "Doctor",
    "Entry", "FileError", "Found", "Hello", "InvalidParams", "Job", "JobOutput", "Match", "OutputLimit", "Page", "Process", "RunFailed", "RunTimeout", "Sandbox",
    "SearchResult", "Shell", "ShellResult", "Stat", "ToolError", "ToolboxError", "UnknownMethod",
]
