"""The official Python SDK 2.x as a client of a server on stdio, or at a URL.

usage: client_v2.py MODE STEPS COMMAND...|URL

Lists the tools, does the STEPS (JSON: a list of {tool, arguments, keep}), one call with progress and one that is cancelled,
and prints a report as JSON. MODE is the SDK's: legacy, auto or a revision. Results are checked by the SDK.
"""
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from steps import Report, environment


async def cancelled(client, report):
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "shell_run", {"command": report.slow})
        await report.until_slow(anyio.sleep)
        group.cancel_scope.cancel()
    await report.until_not_slow(anyio.sleep)


async def main(mode, steps, command):
    report = Report(steps)
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment())
    where = command[0] if command[0].startswith("http") else stdio_client(server)
    async with Client(where, mode=mode, logging_callback=report.log) as client:
        # of a pinned revision nothing has been asked yet
        report.told(client.server_info.name if client.server_info else "toolbox", client.protocol_version)
        if mode == "legacy":
            await client.set_logging_level("info")
        await report.run((await client.list_tools()).tools, client.call_tool)
        if report.slow:
            await cancelled(client, report)
    report.print()


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
