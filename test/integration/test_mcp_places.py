"""MCP servers where little is there: in roots without Python, without /proc, read-only."""
import pytest

from harness import roots
from harness.client import Client, RpcError
from harness.containers import Options
from harness.mcp import Server
from harness.sessions import SANITIZED

pytestmark = pytest.mark.skipif(SANITIZED, reason="needs the static binary")

BINARY = "/opt/toolbox"

# A server of a shell alone: a request's id is the first number in it.
SHELL = r"""
while read -r line; do
    case $line in
    *'"id":'*) id=${line#*'"id":'}; echo '{"jsonrpc":"2.0","id":'"${id%%[,\}]*}"',"result":"from a shell"}' ;;
    esac
done
"""


@pytest.fixture
def place(namespaces, toolbox):
    """A client in a container of its own."""
    made = []

    def make(root, **options):
        made.append(namespaces.start(roots.get(root), Options(files={BINARY: toolbox}, **options)))
        return Client(made[-1], BINARY)

    yield make
    for container in made:
        container.destroy()


@pytest.mark.parametrize("options", [{}, {"proc": False}, {"read_only": True}])
def test_a_server_of_a_shell(place, options):
    """Slow: what ignores TERM has 5 s before it is killed."""
    client = place("busybox", **options)
    server = Server(client, "sh", "-c", SHELL)
    assert server.ask(id=7) == {"jsonrpc": "2.0", "id": 7, "result": "from a shell"}
    server.notify()
    assert server.status()["state"] == "running"
    with pytest.raises(RpcError):
        Server(client, "python3")
    stubborn = Server(client, "sh", "-c", "trap '' TERM; sleep 1000; sleep 1000")
    assert stubborn.kill() is None and server.kill() is None
    dead = Server(client, "sh", "-c", "read x; exit 3")
    with pytest.raises(RpcError, match="exit status 3"):
        dead.ask()
    client.stop()
