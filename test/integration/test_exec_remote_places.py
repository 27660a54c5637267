"""Jobs where something is missing, a shell or /proc, and as users with odd names."""
import pytest

from harness import roots
from harness.client import TOOLERR, Client, RpcError
from harness.containers import BUSYBOX
from harness.jobs import Job, run
from harness.sessions import SANITIZED
from harness.users import needs_root

pytestmark = pytest.mark.skipif(SANITIZED, reason="needs the static binary")

BINARY = "/opt/toolbox"


def check_empty(client):
    """All that needs nothing but the program itself."""
    code, out, _ = run(client, argv=[BINARY, "exec", '{"jsonrpc":"2.0","id":1,"method":"version"}'])
    assert code == 0 and '"result"' in out
    code, _, err = run(client, argv=[BINARY, "no-such-applet"])
    assert code != 0 and "no-such-applet" in err
    with pytest.raises(RpcError) as refused:
        Job(client, "echo hi")
    assert refused.value.code == TOOLERR and "/bin/sh" in refused.value.message
    done = client.cli("exec_remote", "run", "--", BINARY, "exec", stdin=b'{"jsonrpc":"2.0","id":1,"method":"version"}')
    assert done.returncode == 0 and b'"result"' in done.stdout
    server = Job(client, argv=[BINARY, "server"], env={"TOOLBOX_DIR": "/tmp/other"})
    assert server.poll()["state"] == "running"
    server.kill()
    assert server.finish()[0] in (0, -15)
    assert client.rpc("exec_remote_list")


@pytest.mark.parametrize("root", ["scratch"])
def test_argv_in_an_empty_root(start, toolbox, root):
    container = start(roots.get(root).name, files={BINARY: toolbox}, tmpfs=("/tmp", "/run"))
    client = Client(container, BINARY)
    check_empty(client)
    client.stop()


def test_without_proc(place):
    client = place("busybox", proc=False)
    assert run(client, "echo out; echo err >&2; cat; exit 3", input="in") == (3, "out\nin", "err\n")
    assert run(client, "kill -9 $$")[0] == -9
    with pytest.raises(RpcError) as refused:
        Job(client, argv=["/no/such"])
    assert refused.value.code == TOOLERR
    job = Job(client, "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done")
    while "ready" not in job.out:
        job.wait()
    job.kill()
    assert (job.finish()[0], job.end["state"]) == (4, "killed")
    job = Job(client, "sleep 100 & exec sleep 101", timeout=0.3)
    assert job.finish()[0] == -15 and job.end["timed_out"]
    job = Job(client, "read x; echo got $x", stdin_open=True)
    job.write("line\n")
    assert job.finish() == (0, "got line\n", "")


ODD = ["with.dot", "with-dash", "UPPER", "a" * 40, "1000", "trailing$", "_under", "ümlaut"]


@needs_root
def test_c086_odd_names(place):
    """Every name that stands in the file works; what stands nowhere is an error, and nothing runs."""
    client = place("busybox")
    lines = "".join(f"{name}:x:{3000 + i}:{4000 + i}::/home/{i}:/bin/sh\n" for i, name in enumerate(ODD))
    groups = "".join(f"{name}g:x:{4000 + i}:\n" for i, name in enumerate(ODD)) + f"more:x:5000:{','.join(ODD)}\n"
    client.machine.check([BUSYBOX, "sh", "-c", "cat > /etc/passwd"], user=0, stdin=lines.encode())
    client.machine.check([BUSYBOX, "sh", "-c", "cat > /etc/group"], user=0, stdin=groups.encode())
    client.machine.check([BUSYBOX, "sh", "-c", "echo secret > /root.secret; chmod 600 /root.secret"], user=0)
    for i, name in enumerate(ODD):
        code, out, err = run(client, "id -u; id -g; id -G; echo $HOME; cat /root.secret", user=name)
        assert (code, out) == (1, f"{3000 + i}\n{4000 + i}\n{4000 + i} 5000\n/home/{i}\n"), (name, out, err)
    for name in ("with.dot:more", "nobody-here", "", "trailing", "upper"):
        with pytest.raises(RpcError) as refused:
            Job(client, "echo ran > /ran", user=name)
        assert refused.value.code == TOOLERR
    assert run(client, "test -e /ran")[0] == 1
