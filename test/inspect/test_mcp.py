"""MCP servers in the sandbox, through the package's own client."""
import pytest
from harness import peers
from inspect_ai.tool import ToolError, mcp_connection, mcp_server_sandbox, mcp_tools
from inspect_ai.util import sandbox as current

# An MCP server for where there is a shell and no more. `echo` gives its text back, `who` the environment, `die` ends it.
SERVER = r"""
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { say "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
tool() { printf '{"name":"%s","description":"%s","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"text"}}}}' "$1" "$1"; }
echo "a server that is starting" >&2
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
    case $line in
    *'"initialize"'*) say '{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say "{\"tools\":[$(tool echo),$(tool who),$(tool die),$(tool much)]}" ;;
    *'"tools/call"'*'"echo"'*) text "$(printf '%s' "$line" | sed 's/.*"text": *"\([^"]*\)".*/\1/')" ;;
    *'"tools/call"'*'"who"'*) text "$(id -u) $PWD $A" ;;
    *'"tools/call"'*'"much"'*) text "$(yes much | head -c 3000000 | tr '\n' ' ')" ;;
    *'"tools/call"'*'"die"'*) echo "I was told to" >&2; exit 3 ;;
    esac
done
"""


def shell_server(**given):
    return mcp_server_sandbox(name="sh", command="sh", args=["-c", SERVER], **given)


async def tools_of(server):
    from inspect_ai.tool import ToolDef

    return {ToolDef(tool).name: tool for tool in await mcp_tools(server).tools()}


def texts(result):
    return result if isinstance(result, str) else "".join(part.text for part in result)


def test_a_server_in_the_sandbox(sandbox):
    async def body(n):
        server = shell_server(env={"A": "b", "PATH": "/usr/bin:/bin"}, cwd="/tmp")
        async with mcp_connection([server]):
            tools = await tools_of(server)
            assert sorted(tools) == ["die", "echo", "much", "who"]
            assert texts(await tools["echo"](text="h\u00fc \u6f22")) == "h\u00fc \u6f22"
            who = texts(await tools["who"]())
            assert len(texts(await tools["much"]())) == 3000000
        left = (await current().exec(["sh", "-c", "ps -ef 2>/dev/null || ps"])).stdout
        return who.split(), "that is starting" in left

    [((uid, folder, variable), left)] = sandbox.run(body)
    assert (folder, variable, left) == ("/tmp", "b", False)


def test_a_server_that_ends(sandbox, ours):
    """The model is told, and the next connection works."""

    async def body(n):
        server = shell_server()
        async with mcp_connection([server]):
            with pytest.raises(ToolError) as told:
                await (await tools_of(server))["die"]()
        server = shell_server()
        async with mcp_connection([server]):
            return str(told.value), texts(await (await tools_of(server))["echo"](text="again"))

    [(told, again)] = sandbox.run(body)
    assert told and again == "again"


@pytest.mark.fast
def test_whose_server_it_is(containers):
    async def body(n):
        server = shell_server(env={"PATH": "/bin"})
        async with mcp_connection([server]):
            return texts(await (await tools_of(server))["who"]()).split()[0]

    assert containers("busybox", user="4321:1234").run(body) == ["4321"]


def test_a_real_server():
    from samples import Sandbox

    program = str(peers.folder("python-servers") / "bin/mcp-server-time")

    async def body(n):
        server = mcp_server_sandbox(name="time", command=program, args=["--local-timezone=UTC"])
        async with mcp_connection([server]):
            tools = await tools_of(server)
            return sorted(tools), texts(await tools["get_current_time"](timezone="Europe/London"))

    [(names, now)] = Sandbox("local").run(body)
    assert names == ["convert_time", "get_current_time"] and "Europe/London" in now
