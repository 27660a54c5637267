"""The official Python SDK 1.x as a client of a server on stdio, or at a URL. usage: client_v1.py legacy STEPS COMMAND...|URL   (see client_v2.py)"""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from steps import Report, environment


async def cancelled(session, report):
    call = asyncio.ensure_future(session.call_tool("shell_run", {"command": report.slow}))
    await report.until_slow(asyncio.sleep)
    params = types.CancelledNotificationParams(requestId=session._request_id - 1, reason="test")
    await session.send_notification(types.ClientNotification(types.CancelledNotification(method="notifications/cancelled", params=params)))
    await report.until_not_slow(asyncio.sleep)
    call.cancel()


async def main(mode, steps, command):
    report = Report(steps)
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment())
    where = streamable_http_client(command[0]) if command[0].startswith("http") else stdio_client(server)
    async with where as pipes, ClientSession(*pipes[:2], logging_callback=report.log) as session:
        info = await session.initialize()
        report.told(info.serverInfo.name, info.protocolVersion)
        await session.set_logging_level("info")
        await report.run((await session.list_tools()).tools, session.call_tool)
        if report.slow:
            await cancelled(session, report)
    report.print()


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
