"""All of the surface without asyncio, in a target that needs no more than a shell and sed. usage: surface.py TARGET [OPTION of connect]..."""
import contextlib
import functools
import inspect
import os
import secrets
import socket
import sys
import tempfile
import threading
from pathlib import Path

from toolbox_sandbox import (
    CallError, CannotConnect, CannotRun, ConnectionLost, CopyFailed, FileError, InvalidParams, OutputLimit, RunFailed, RunTimeout, Sandbox, ToolError, UnknownMethod)

SED = r's/.*"id":\([0-9]*\).*"method":"\([a-z]*\)".*/{"jsonrpc":"2.0","id":\1,"result":"\2"}/p'


@contextlib.contextmanager
def fails(kind, words=""):
    try:
        yield
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def programs(sandbox):
    data = os.urandom(3_000_000)
    done = sandbox.run(["sh", "-c", "cat; echo $A >&2; pwd >&2; exit 3"], input=data, env={"A": "é"}, cwd="/usr")
    assert (done.status, done.stdout, done.stderr.decode()) == (3, data, "é\n/usr\n") and done.seconds > 0
    assert sandbox.run(["cat"], input="text").text == "text"
    assert sandbox.run(["sh", "-c", "yes | head -n 100000; echo end"], keep_last=8).text == "y\ny\nend\n"
    assert sandbox.run(["true"], input=b"x" * 5_000_000).status == 0
    with fails(CannotRun, "not found"):
        sandbox.run([f"/tmp/{secrets.token_hex(6)}/program"])
    with fails(CannotRun):
        sandbox.run(["true"], user="nobody-of-that-name")
    with fails(RunFailed, "sh ended with status 4: why"):
        sandbox.run(["sh", "-c", "echo why >&2; exit 4"], check=True)
    with fails(TypeError, "list of words"):
        sandbox.run("echo hi")
    with fails(CannotRun, "too long"):
        sandbox.run(["echo", "x" * 3_000_000])
    with fails(CallError, "nested too deeply"):
        sandbox.call("version", functools.reduce(lambda inner, _: {"a": inner}, range(800), {}))
    with fails(TypeError, "can't be sent"):
        sandbox.call("version", {"a": b"bytes"})
    assert sandbox.run([Path("/bin/pwd")], cwd=Path("/usr")).text == "/usr\n"
    with fails(RunTimeout, "was ended after 0.2 s"):
        sandbox.run(["sleep", "1000"], timeout=0.2)
    with fails(OutputLimit, "1000 bytes"):
        sandbox.run(["yes"], output_limit=1000)
    with sandbox.process(["cat"]) as process:
        process.write(b"x")
        process.close_stdin()
        assert list(process) == [("stdout", b"x")] and process.status == 0 and not process.timed_out and process.seconds
    with sandbox.process(["sleep", "1000"]) as process:
        process.resize(30, 90)
        process.signal(9)
        assert list(process) == [] and process.status == 137
        with fails(ConnectionLost, "sleep has ended"):
            process.write(b"x")


def shells(sandbox):
    with sandbox.shell(cwd="/", env={"B": "8"}, rows=30, cols=90) as shell:
        assert shell.run("cd /usr; A=7; echo $B").output == "8\n"
        done = shell.run("echo $A; pwd; false")
        assert (done.output, done.exit_code, done.cwd, done.state) == ("7\n/usr\n", 1, "/usr", "completed")
        assert shell.run("sleep 1000", timeout=0.2).state == "timeout"
        shell.interrupt()
        assert shell.run().exit_code == 130
        assert "typed" in shell.send("echo typed\n")
        shell.resize(40, 100)
        assert shell.run("stty size").output == "40 100\n"
        for shown in shell.watch():
            assert "typed" in str(shown)
            break
        assert sandbox.shell(shell.name).run("echo $A").output == "7\n"
        shell.restart()
        assert shell.run("echo -$A").output == "-\n"
    with fails(ToolError):
        shell.run("true")


def jobs(sandbox):
    job = sandbox.start("for i in 1 2 3; do echo $i; done; echo no >&2; exit 3")
    said = list(job)
    assert ("".join(got.stdout for got in said), "".join(got.stderr for got in said), job.exit_code) == ("1\n2\n3\n", "no\n", 3)
    job = sandbox.start(["cat"], stdin=True)
    out = job.write("abc\n").stdout + job.close_stdin().stdout
    end = job.wait()
    assert (out + end.stdout, end.exit_code) == ("abc\n", 0)
    job = sandbox.start(["sleep", "1000"], cwd="/", timeout=600)
    assert job.wait(timeout=0).state == "running"
    job.signal("CONT")
    job.kill()
    assert sandbox.job(job.pid).wait().state != "running"


def files(sandbox, folder):
    path, data = f"{folder}/a/b", os.urandom(2_500_000)
    with fails(FileError):
        sandbox.files.write(path, data)
    try:
        sandbox.files.read(path)
    except FileError as error:
        assert error.kind == "not_found"
    sandbox.files.write(path, data, parents=True, mode=0o600)
    assert sandbox.files.read(path) == data and sandbox.files.read(path, limit=1_100_000) == data[:1_100_000]
    assert sandbox.files.stat(path)["size"] == len(data)
    sandbox.files.write(path, "é")
    assert sandbox.files.read_text(path) == "é"
    sandbox.files.write(path, "first\ntext é\n")
    found = sandbox.files.search(f"{folder}/a", "^TEXT é", ignore_case=True)["matches"]
    assert [(match["line"], match["text"]) for match in found] == [(2, "text é")], found
    assert len(sandbox.files.find(f"{folder}/a", "b*")["paths"]) == 1
    sandbox.files.make_dir(f"{folder}/w")
    with sandbox.files.watch(f"{folder}/w", exclude=["*.o"]) as watch:
        sandbox.files.write(f"{folder}/w/x.o", "")
        sandbox.files.write(f"{folder}/w/x", "")
        assert next(iter(watch)) == {"path": "x", "change": "created", "directory": False} and not watch.incomplete
        sandbox.files.remove(f"{folder}/w", recursive=True)
        assert ("x", "deleted") in [(change["path"], change["change"]) for change in watch]
    with fails(ToolError, "nowhere"), sandbox.files.watch(f"{folder}/nowhere"):
        pass
    sandbox.files.make_dir(f"{folder}/a/c")
    sandbox.files.copy(path, f"{folder}/a/c/d")
    sandbox.files.move(path, f"{folder}/a/e")
    assert [entry["path"] for entry in sandbox.files.list(f"{folder}/a", depth=2)] == ["c", "c/d", "e"]
    sandbox.files.remove(f"{folder}/a", recursive=True)


def copies(sandbox, folder):
    with tempfile.TemporaryDirectory() as here:
        tree = Path(here, "tree")
        (tree / "sub").mkdir(parents=True)
        (tree / "sub/a:b").write_bytes(b"x" * 100_000)
        (tree / "left.out").write_text("")
        copied = sandbox.files.copy_in(tree, f"{folder}/in", exclude=["*.out"], checksum=True)
        assert copied["ok"] and copied["files"] == 1
        assert [entry["path"] for entry in sandbox.files.list(f"{folder}/in", depth=9)] == ["sub", "sub/a:b"]
        sandbox.files.copy_in(f"{tree}/.", folder, archive=True)
        assert sandbox.files.read(f"{folder}/sub/a:b") == b"x" * 100_000
        sandbox.files.copy_out(f"{folder}/sub/a:b", Path(here, "c:d"))
        assert Path(here, "c:d").read_bytes() == b"x" * 100_000
        try:
            sandbox.files.copy_out(f"{folder}/nowhere", here)
        except CopyFailed as error:
            assert "nowhere" in str(error) and error.copied["failed"] == 1
        else:
            raise AssertionError


def edits(sandbox, folder):
    path = f"{folder}/a.txt"
    sandbox.edit.create(path, "one\none\n")
    sandbox.edit.replace(path, "one", "1", everywhere=True)
    sandbox.edit.insert(path, 0, "0")
    sandbox.edit.undo(path)
    sandbox.edit.many([{"path": path, "old_str": "1\n1", "new_str": "3"}])
    sandbox.patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-3\n+4\n*** End Patch\n", folder)
    assert sandbox.files.read_text(path) == "4\n" and "4" in sandbox.edit.view(path, (1, 1))


def tools(sandbox):
    with sandbox.mcp.launch("sed", ["-u", "-n", SED], env={"PATH": "/bin:/usr/bin"}, cwd="/") as server:
        server.notify("notifications/initialized")
        assert server.request("echo", {"a": 1})["result"] == "echo"
    assert sandbox.doctor()["checks"] and sandbox.hello["version"] == sandbox.call("version")
    with sandbox.forward(1) as forward, socket.create_connection(("127.0.0.1", forward.port)) as client, contextlib.suppress(ConnectionError):
        assert client.recv(1) == b""  # nobody listens there
    if sandbox.target == "local:":
        ports(sandbox)


def ports(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def serve():
            client = listening.accept()[0]
            with client:
                while data := client.recv(65536):
                    client.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with sandbox.forward(listening.getsockname()[1]) as forward, socket.create_connection(("127.0.0.1", forward.port)) as client:
            client.sendall(b"to and fro")
            client.shutdown(socket.SHUT_WR)
            assert client.makefile("rb").read() == b"to and fro"
        thread.join()


def every_method(sandbox):
    """Each says what it needs, or needs nothing."""
    others = ("sandbox_tools_shutdown", "web_new_session", "bash_session_new_session", "computer_new_session", "server_watch")
    names = [name for name in vars(type(sandbox.methods)) if not name.startswith("_") and name not in others]
    for name in names:
        method = getattr(sandbox.methods, name)
        needed = [param.name for param in inspect.signature(method).parameters.values() if param.default is param.empty]
        with contextlib.suppress(InvalidParams):
            method(**dict.fromkeys(needed))  # what is None is not sent
    assert len(names) > 60
    with fails(UnknownMethod):
        sandbox.call("no_such_method")


def main():
    target, options = sys.argv[1], sys.argv[2:]
    with fails(CannotConnect, "docker:"):
        Sandbox.connect("docker:")
    with Sandbox.connect(target, options=options) as sandbox:
        folder = f"/tmp/toolbox-sandbox-{secrets.token_hex(6)}"
        sandbox.files.make_dir(folder)
        try:
            for part in (programs, shells, jobs, tools, every_method):
                part(sandbox)
            files(sandbox, folder)
            edits(sandbox, folder)
            copies(sandbox, folder)
        finally:
            sandbox.files.remove(folder, recursive=True)
    assert sandbox.closed
    with fails(ConnectionLost):
        Sandbox.over(["echo", "no JSON"])
    for program in ("/dev/null/program", "/dev/null", f"/tmp/{secrets.token_hex(6)}"):
        with fails(CannotConnect, program):
            Sandbox.over([program])
        os.environ["TOOLBOX_BINARY"] = program
        with fails(CannotConnect, program):
            Sandbox.connect(target)
    with fails(ConnectionLost):
        sandbox.call("version")


if __name__ == "__main__":
    main()
