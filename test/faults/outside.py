"""Stories of what works for others: MCP clients, model providers' clients, targets of an injection, releases."""
import base64
import json
import os
import socket
import stat
import threading
import time
from pathlib import Path

from harness import stream
from harness.machine import HANG, PATH
from harness.engine import Engine
from harness.bridge import Bridge
from harness.client import RpcError

HELLO = {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                     "clientInfo": {"name": "x", "version": "1"}}}


def serve(s, *calls, right=lambda results: True):
    """Tools by `mcp serve`: each call is (name, arguments)."""
    lines = [HELLO, {"method": "notifications/initialized"}]
    lines += [{"id": i + 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
              for i, (name, arguments) in enumerate(calls)]
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines).encode()

    def do():
        found = {}
        for line in s.run(["mcp", "serve"], text).splitlines():
            answer = json.loads(line)
            result = answer.get("result") or {"isError": True, "content": answer.get("error")}
            if result.get("isError"):
                raise s.refused(str(result["content"]))
            found[answer["id"]] = result
        if len(found) != len(calls) + 1:
            raise s.refused(f"{len(found)} answers")
        return [found[i + 1] for i in range(len(calls))]
    return s.call(do, right)


def tree(s):
    top = s.folder / "tree"
    (top / "sub" / "deep").mkdir(parents=True)
    (top / "one.txt").write_text("first\nneedle here\n")
    (top / "sub" / "two.py").write_text("needle = 2\n" * 20)
    (top / "sub" / "deep" / "three").write_bytes(b"\0binary needle")
    (top / "link").symlink_to("one.txt")
    (top / "large").write_text("x" * 300_000)
    os.mkfifo(top / "fifo")
    return top


def unread(results):
    """The answer says that there is more than could be read."""
    return any(result["structuredContent"].get("unreadable_directories") for result in results)


def mcp_files(s):
    top = tree(s)
    names = ("one.txt", "two.py", "link")
    serve(s, ("list_files", {"path": str(top), "depth": 5, "hidden": True}), right=lambda r: all(n in str(r) for n in names) or unread(r))
    serve(s, ("find_files", {"pattern": "*", "path": str(top)}), right=lambda r: all(n in str(r) for n in names) or unread(r))
    serve(s, ("search_files", {"pattern": "need.e", "path": str(top), "context": 1}), right=lambda r: "two.py" in str(r))
    serve(s, ("search_files", {"pattern": "needle", "literal": True, "path": str(top / "one.txt")}),
          right=lambda r: "here" in str(r))
    serve(s, ("read_file", {"path": str(top / "one.txt")}), right=lambda r: "needle here" in str(r))
    serve(s, ("read_file", {"path": str(top / "large"), "offset": 299_990, "max_bytes": 100}), right=lambda r: "xxxxxxxxxx" in str(r))
    serve(s, ("read_file", {"path": str(top / "sub" / "deep" / "three"), "encoding": "base64"}),
          right=lambda r: base64.b64encode(b"\0binary needle").decode() in str(r))


def mcp_writes(s):
    path = s.folder / "new" / "dir" / "file"
    text = {"path": str(path), "content": "one\n", "parents": True}
    serve(s, ("write_file", text))
    s.one_of(path, "one\n")
    serve(s, ("write_file", {"path": str(path), "content": "two\n", "mode": "replace"}))
    s.one_of(path, "two\n")
    serve(s, ("text_editor", {"command": "view", "path": str(path)}), right=lambda r: "two" in str(r))


def mcp_works(s):
    serve(s, ("shell_run", {"command": "echo hi"}), ("shell_list", {}), right=lambda r: "hi" in str(r[0]))
    serve(s, ("job_start", {"command": "echo out"}), ("job_list", {}))
    serve(s, ("probe", {}))


def mcp_cancelled(s):
    """A run that is cancelled in the middle; the next one finds the shell at its prompt."""
    mark = s.folder / "on"

    def do():
        with s.popen("mcp", "serve") as process:
            def tell(**message):
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
                process.stdin.flush()
            try:
                tell(**HELLO)
                tell(id=1, method="tools/call", params={"name": "shell_run", "arguments": {"command": f"touch {mark}; sleep 60"}})
                until = time.monotonic() + 5
                while not mark.exists() and time.monotonic() < until and process.poll() is None:
                    time.sleep(0.01)
                tell(method="notifications/cancelled", params={"requestId": 1})
                tell(id=2, method="tools/call", params={"name": "shell_run", "arguments": {"command": "echo here"}})
            except BrokenPipeError:
                pass  # it has ended
            return s.output(process)
    s.call(do, right=lambda out: b'"id":2' in out, again="")


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello " * 50}}]}


def proxy(s):
    """Completions whole and as a stream, for clients that stay and that go."""
    directory = s.folder / "service"

    def do():
        try:
            bridge = Bridge(s.binaries["this"], directory, env=s.env(), make_dirs=not directory.exists())
        except (ValueError, IndexError):
            raise s.refused("the proxy has not begun") from None
        bridge.answers["generate_completions"] = lambda params: ANSWER
        bridge.answers["list_tools"] = lambda params: [{"name": "t", "description": "d", "inputSchema": {"type": "object"}}]
        try:
            whole = json.loads(bridge.ask("POST", "/v1/chat/completions", CHAT)[2])
            s.check(whole["choices"] == ANSWER["choices"], f"wrong answer: {whole}")
            events = bridge.stream("/v1/chat/completions", {**CHAT, "stream": True})
            text = "".join(data["choices"][0]["delta"].get("content") or "" for _, data in events[:-1] if data["choices"])
            s.check(text == "hello " * 50, f"wrong stream: {text}")
            bridge.ask("POST", "/mcp/x", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            bridge.ask("GET", "/v1/models")
            body = json.dumps(CHAT).encode()
            with bridge.connect() as sock:
                sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
                s.check(sock.recv(100), "no answer to Expect")
                sock.sendall(body)
                s.check(sock.recv(100), "no answer")
            bridge.paused.set()
            with bridge.connect() as sock:
                sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                time.sleep(0.1)
            time.sleep(0.1)
        except (OSError, ValueError, KeyError, AssertionError) as error:
            raise s.refused(f"the proxy: {error!r}") from None
        finally:
            status, said = bridge.end()
            s.check(status in (0, 1) and "Sanitizer" not in said and (status == 0 or said), f"the proxy: {status}: {said}")
        files = bridge.files()
        s.check(not files or s.call_failed == "unlinkat", f"files are left: {files}")
    s.call(do)


def port_taken(s):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        try:
            s.run(["model_proxy", "--port", str(sock.getsockname()[1]), "--directory", str(s.folder)])
        except s.refused as error:
            s.check("port" in str(error) or "listen" in str(error) or "cannot" in str(error) or "can't" in str(error), str(error))


def made_ready(s, target, place):
    s.command("inject", "--dir", place, target)
    s.command("inject", "--dir", place, target)
    s.command("eject", "--dir", place, target)


def injected(s):
    """Through the commands of a target, with all that is done there."""
    place = s.folder / "in" / "it"
    made_ready(s, "exec:env", str(place))
    s.check(not (place / "toolbox").exists() or s.call_failed == "unlinkat", "the binary is left")


def injected_here(s):
    made_ready(s, "local:", str(s.folder / "in"))


def injected_root(s):
    root = s.folder / "root"
    root.mkdir()
    made_ready(s, f"dir:{root}", "/opt/x")
    s.check(not (root / "opt/x/toolbox").exists() or s.call_failed == "unlinkat", "the binary is left")


def injected_many(s):
    roots = [s.folder / f"root{i}" for i in range(3)]
    for root in roots:
        root.mkdir()
    s.command("inject", "-j", "2", "--dir", "/opt/x", *(f"dir:{root}" for root in roots))
    for root in roots:
        path = root / "opt/x/toolbox"
        s.check(path.stat().st_size == Path(s.binaries["this"]).stat().st_size and stat.S_IMODE(path.stat().st_mode) & 0o500,
                "the binary is not whole")


def called(s):
    place = str(s.folder / "in")
    s.command("inject", "--dir", place, "exec:env")
    s.command("call", "--dir", place, "exec:env", "version", right=lambda out: b"." in out)
    s.command("eject", "--dir", place, "exec:env")


def streamed(s):
    """Many calls over one connection: side by side, in a batch, given up and not acknowledged; then its end."""
    def do():
        with s.popen("exec", "--stream", bufsize=0) as process:
            try:
                many = stream.of(process)
                name = many.call("bash_session_new_session")["session_name"]
                asked = {many.request("bash_session_run", {"session_name": name, "command": "echo one"}), many.request("version")}
                answers = [many.receive(), many.receive()]
                s.check({answer["id"] for answer in answers} == asked, f"other answers: {answers}")
                many.ack(*asked)
                many.send([{"jsonrpc": "2.0", "id": text, "method": "version"} for text in "ab"])
                s.check(len(many.receive()) == 2, "a batch is not whole")
                long = many.call("bash_session_run", {"session_name": name, "command": "head -c 300000 /dev/zero | tr '\\0' x"})
                s.check(len(long["output"]) == 300000, "a long answer is not whole")
                given_up = many.request("bash_session_run", {"session_name": name, "command": "sleep 0.1; echo late"})
                many.notify("rpc.cancel", {"id": given_up})
                many.receive()
                many.request("bash_session_run", {"session_name": name})
                many.close()
            except (OSError, AssertionError, TypeError, RpcError) as error:  # TypeError: of an end where an answer was to be
                raise s.refused(f"the stream: {error!r}") from None
            finally:
                s.finish(process)
    s.call(do)


def connected(s):
    """Calls over a connection that is kept; where it was lost they find another way."""
    place, target = str(s.folder / "in"), "exec:env"
    s.command("connect", "--dir", place, target)
    for _ in range(3):
        s.command("call", "--dir", place, target, "remote_version", right=lambda out: b"pid" in out)
    s.command("connect", "--list", "--json", right=lambda out: out.startswith(b"["))
    s.command("connect", "--stop")
    s.command("eject", "--dir", place, target)


def watched(s):
    """A tree whose changes are fetched, and what has been fetched forgotten."""
    top = s.folder / "watched"
    (top / "sub").mkdir(parents=True)
    cursor = s.rpc("file_watch", path=str(top))["cursor"]
    (top / "sub" / "new").write_text("x")
    until, seen = time.monotonic() + 20, []

    def is_told(answer):
        return any(change["path"] == "sub/new" or change["change"] == "overflow" for change in answer["changes"]) or answer["incomplete"]

    while not (seen and is_told(seen[-1])) and time.monotonic() < until:
        seen.append(s.rpc("file_watch", cursor=cursor, timeout=2))
        cursor = seen[-1]["cursor"]
    s.check(is_told(seen[-1]), f"the change is not told: {seen}")
    s.rpc("file_watch", cursor=cursor, stop=True, again="no watch", right=lambda answer: answer["ended"])


def recorded(s):
    """A session whose terminal is written down."""
    name, path = s.rpc("bash_session_new_session")["session_name"], s.folder / "cast"
    s.command("bash_session", "record", name, str(path))
    s.rpc("bash_session_run", session_name=name, command="echo writ''ten")
    s.rpc("bash_session_record", session_name=name, stop=True, again="")
    text = path.read_text() if path.exists() else ""
    s.check("written" in text and text.startswith("{") or s.call_failed in ("write", "writev", "fallocate", "openat"), f"not recorded: {text[:300]!r}")
    s.command("bash_session", "replay", "--text", str(path))


class Origin(threading.Thread):
    """A server of the host that answers one request of each connection."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                one = self.listening.accept()[0]
            except OSError:
                return
            with one:
                one.settimeout(5)
                try:
                    while b"\r\n\r\n" not in one.recv(65536):
                        pass
                    one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
                except OSError:
                    pass


def _through(path, text):
    """What is answered to that by who listens there."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(str(path))
        sock.sendall(text.encode())
        said = b""
        while more := sock.recv(65536):
            said += more
    return said.decode()


def let_out(s):
    """A way out through the host, for what is named and for what isn't."""
    origin, path = Origin(), s.folder / "out"
    where = f"127.0.0.1:{origin.port}"
    request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    asked = [(f"GET http://{where}/ HTTP/1.1\r\nHost: {where}\r\n\r\n", "hello"),
             (f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n{request}", "hello"),
             ("GET http://other.invalid/ HTTP/1.1\r\nHost: other.invalid\r\n\r\n", " 403 "), ("\1\r\n\r\n", " 400 ")]

    def do():
        with s.popen("forward", "-D", str(path), "--allow", f"{where},localhost:*", "--dir", str(s.folder / "there"), "local:", bufsize=0) as process:
            try:
                if not process.stdout.readline():
                    raise s.refused(f"it does not listen: {process.stderr.read()!r}")
                answers = [(_through(path, text), want) for text, want in asked]
                s.failed += [f"no answer to one: {answer!r}" for answer, want in answers if want not in answer]
            except OSError as error:
                raise s.refused(f"forward: {error!r}") from None
            finally:
                process.terminate()
                s.check(process.wait(HANG) in (1, 143), f"forward: {process.returncode}")
                path.unlink(missing_ok=True)
    s.call(do)
    s.command("eject", "--dir", str(s.folder / "there"), "local:")
    origin.listening.close()


def by_engine(s):
    """Over the socket of an engine, which a server of ours is: a program, calls, and a connection that is kept."""
    bin_, place = s.folder / "bin", str(s.folder / "in")
    bin_.mkdir()
    (bin_ / "docker").write_text('#!/bin/sh\nshift 2; [ "$1" != -u ] || shift 2; shift; exec "$@"\n')
    (bin_ / "docker").chmod(0o755)
    s.more = {"DOCKER_HOST": f"unix://{s.folder}/engine", "PATH": f"{bin_}:{PATH}", "DOCKER_CONFIG": str(s.folder)}
    engine = Engine(s.folder / "engine", s.env(), events=True)
    try:
        s.command("run", "--no-share", "-i", "--dir", place, "docker:web", "--", "cat", stdin=b"through", right=lambda out: out == b"through")
        s.command("run", "--no-share", "-j", "2", "--dir", place, "docker:web", "docker:other", "--", "echo", "here",
                  right=lambda out: sorted(out.split(b"\n")) == [b"", b"docker:other: here", b"docker:web: here"])
        s.command("connect", "--dir", place, "docker:web")
        for _ in range(2):
            s.command("call", "--dir", place, "docker:web", "remote_version", right=lambda out: b"pid" in out)
        s.command("connect", "--stop")
        s.command("eject", "--dir", place, "docker:web")
    finally:
        engine.close()


def released(s):
    s.command("release", "list", "--json")
    out = s.folder / "out"
    out.mkdir()
    s.command("release", "path", "--to", str(out))
    path, = [path for path in out.iterdir() if not path.name.startswith(".")]
    s.check(path.stat().st_size == Path(s.binaries["this"]).stat().st_size, "the binary is not whole")


ALL = [mcp_files, mcp_writes, mcp_works, mcp_cancelled, proxy, port_taken, injected, injected_here, injected_root, injected_many,
       called, streamed, connected, watched, recorded, let_out, by_engine, released]
