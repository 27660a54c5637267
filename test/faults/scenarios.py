"""What is done while a call fails: short stories through every part of the tool.

A story takes a Story (run.py): `call` does one thing, once more where it failed, and takes the checks of what it
returned; nothing may fail twice, be wrong, or hang."""
import json
import os
import signal

STRANGER = "nobody"


def life(s):
    s.command("start-server")
    s.command("status", "--json", right=lambda out: json.loads(out)["server"]["pid"] > 0)
    s.command("status")
    s.command("healthcheck", right=lambda out: out.count(b"result") == 2)
    s.rpc("remote_version", right=lambda text: "pid" in text)
    s.command("stop-server")
    s.rpc("remote_version")


def places(s):
    """Without a variable that names the directory: the fixed places of a user of his own."""
    s.command("probe", "--json", right=lambda out: json.loads(out)["uid"] == os.geteuid())
    s.command("probe")
    s.command("--list")


def session(s):
    name = s.rpc("bash_session_new_session", rows=30, cols=100)["session_name"]
    s.rpc("bash_session_run", session_name=name, command="x=kept; echo one", right=lambda r: r["output"] == "one\n")
    read = s.rpc("bash_session", session_name=name, input="echo =$x\n", wait_for_output=5, idle_timeout=0.5)
    s.check("=kept" in read or "=kept" in s.rpc("bash_session", session_name=name, wait_for_output=2, idle_timeout=0.5),
            "the output is lost")
    s.rpc("bash_session_list", right=lambda r: len(r) == 1)
    s.rpc("bash_session_resize", session_name=name, rows=20, cols=60)
    s.rpc("bash_session_run", session_name=name, command="stty size", right=lambda r: r["output"] == "20 60\n")
    s.rpc("bash_session_run", session_name=name, command="sleep 60", timeout=0.1, right=lambda r: r["state"] == "timeout")
    s.rpc("bash_session_signal", session_name=name, signal="INT")
    s.rpc("bash_session", session_name=name, wait_for_output=2, idle_timeout=0.2)
    s.rpc("bash_session_run", session_name=name, command="head -c 300000 /dev/zero | tr '\\0' x",
          right=lambda r: len(r["output"]) == 300000)
    s.rpc("bash_session", session_name=name, restart=True)
    s.rpc("bash_session_run", session_name=name, command="echo =$x", right=lambda r: r["output"] == "=\n")
    s.rpc("bash_session_run", session_name=name, command="setsid sleep 61 & exit 3",
          right=lambda r: r["state"] == "exited" or "ended" in str(r))
    s.rpc("bash_session_close", session_name=name)


def other_users(s):
    if os.geteuid() != 0:
        return
    name = s.rpc("bash_session_new_session", user=STRANGER, cwd="/")["session_name"]
    s.rpc("bash_session_run", session_name=name, command="id -un", right=lambda r: r["output"] == STRANGER + "\n")
    s.job({"command": "id -un; id -G", "user": STRANGER}, right=lambda r: r["stdout"].startswith(STRANGER + "\n"))
    path = s.folder / "of-another"
    s.rpc("text_editor", command="create", path=str(path), file_text="x", _run_as_user=STRANGER, again="exists")
    s.check(path.stat().st_uid != 0, "written as root")
    s.undo(path, _run_as_user=STRANGER)
    s.one_of(path, None, "x")


def jobs(s):
    s.job({"command": "cat; echo err >&2; exit 7", "input": "typed " * 30000},
          right=lambda r: (r["stdout"], r["stderr"], r["exit_code"]) == ("typed " * 30000, "err\n", 7))
    s.job({"argv": ["echo", "a b"], "env": {"X": "1"}, "cwd": "/"}, right=lambda r: r["stdout"] == "a b\n")
    s.job({"command": "sleep 60", "timeout": 0.1}, right=lambda r: r["timed_out"] and r["state"] == "killed")
    pid = s.rpc("exec_remote_start", command="cat; sleep 0.1", stdin_open=True)["pid"]
    s.rpc("exec_remote_write_stdin", pid=pid, ack_seq=0, data="hello\n")
    s.rpc("exec_remote_close_stdin", pid=pid, ack_seq=0)
    out = s.ended(pid)
    s.check(out["stdout"].replace("hello\n", "", 1) in ("", "hello\n") and out["stdout"], f"lost what was typed: {out}")
    s.job({"command": "read x; stty size; echo $x; exit 3", "pty": {"cols": 99}, "input": "typed\n"},
          right=lambda r: r["stdout"].endswith("24 99\r\ntyped\r\n") and r["exit_code"] == 3)
    pid = s.rpc("exec_remote_start", command="setsid sleep 60 & trap '' TERM; echo up; sleep 60")["pid"]
    s.rpc("exec_remote_wait", pid=pid, ack_seq=0, timeout=5)
    s.rpc("exec_remote_list", right=lambda r: pid in [job["pid"] for job in r])
    s.rpc("exec_remote_signal", pid=pid, signal="CONT")
    s.rpc("exec_remote_kill", pid=pid, ack_seq=0)
    s.rpc("exec_remote_poll", pid=pid, ack_seq=0, right=lambda r: r["state"] == "killed")


def editor(s):
    path, big = s.folder / "file", s.folder / "big"
    old, new = "one\ntwo\nthree\n", "one\n2\nthree\n"
    big.write_text("a line\n" * 30000)
    s.rpc("text_editor", command="create", path=str(path), file_text=old, again="exists")
    s.one_of(path, old)
    s.rpc("text_editor", command="view", path=str(path), right=lambda text: "two" in text)
    s.rpc("text_editor", command="view", path=str(s.folder), right=lambda text: "file" in text)
    s.rpc("text_editor", command="str_replace", path=str(path), old_str="two", new_str="2", again="did not appear")
    s.one_of(path, new)
    s.undo(path)
    s.one_of(path, old, new)
    s.rpc("text_editor", command="insert", path=str(big), insert_line=3, new_str="new", again="")
    s.check(big.read_text().replace("new\n", "") == "a line\n" * 30000, "bytes outside the edit have changed")
    s.rpc("text_editor", command="view", path=str(big), view_range=[2, 6], right=lambda text: "new" in text)
    s.command("text_editor", "view", str(path))


def odd_files(s):
    """Files whose owner, links, attributes, holes and history take more care."""
    path, other = s.folder / "file", s.folder / "other"
    path.write_text("one\ntwo\n")
    os.setxattr(path, "user.note", b"kept")
    os.chown(path, 1, 1) if os.geteuid() == 0 else None
    (s.folder / "link").symlink_to("file")
    for n in range(12):
        s.rpc("text_editor", command="insert", path=str(s.folder / "link"), insert_line=0, new_str=f"line {n}", again="")
    s.check(os.getxattr(path, "user.note") == b"kept" and path.read_text().endswith("\none\ntwo\n"), "the file is not whole")
    s.check(path.stat().st_uid == (1 if os.geteuid() == 0 else os.geteuid()), "the owner has changed")
    other.write_text("one\ntwo\n")
    os.link(other, s.folder / "hard")
    s.rpc("text_editor", command="str_replace", path=str(other), old_str="two", new_str="2", again="did not appear")
    s.check(other.read_text() == (s.folder / "hard").read_text() == "one\n2\n", "the link is not the file any more")
    s.rpc("text_editor", command="str_replace", path=str(other), old_str="2", new_str="longer than before",
          again="did not appear")
    s.one_of(other, "one\nlonger than before\n")
    s.undo(other)
    with open(s.folder / "holes", "wb") as file:
        file.truncate(1 << 20)
        file.write(b"begin\n")
        file.seek(1 << 20)
        file.write(b"\nend\n")
    s.rpc("text_editor", command="view", path=str(s.folder / "holes"), view_range=[2, 3])


def foreground(s):
    server = s.start("server", "--log-level", "debug")
    s.rpc("bash_session_new_session")
    s.rpc("version")
    if server.poll() is None:
        server.send_signal(signal.SIGHUP)
    s.finish(server)


def full_log(s):
    s.dir.mkdir(mode=0o700)
    (s.dir / "log").write_text("x" * ((256 << 10) - 10))
    s.command("start-server")
    s.rpc("remote_version")
    s.check(sum(path.stat().st_size for path in s.dir.glob("log*")) <= 2 * (256 << 10), "the log is not bounded")


def links(s):
    (s.folder / "bin").mkdir()
    for _ in range(2):
        s.command("--install", "-s", str(s.folder / "bin"))
    s.check((s.folder / "bin" / "exec").is_symlink(), "no link")
    (s.folder / "hard").mkdir()
    s.command("--install", str(s.folder / "hard"))
    s.check((s.folder / "hard" / "exec").stat().st_size > 0, "no link")
    (s.folder / "root").mkdir()
    for _ in range(2):
        s.command("--install-legacy", str(s.folder / "root"))


def stuck(s):
    """A keeper that doesn't answer any more."""
    name = s.rpc("bash_session_new_session")["session_name"]
    s.rpc("bash_session_run", session_name=name, command="setsid sleep 64 & disown", again="busy")
    s.kill(f"toolbox {name}", signal.SIGSTOP)
    s.command("stop-server")


def attached(s):
    name = s.rpc("bash_session_new_session")["session_name"]
    s.attach(name, b"echo at$((1+1))tached\r", b"at2tached")
    s.rpc("bash_session_run", session_name=name, command="echo hi", right=lambda r: r["output"] == "hi\n")


def long_answers(s):
    text = "x" * 200_000
    (s.folder / "long").write_text(text)
    answer = s.whole("cat long")
    s.check(answer == text, "the long answer is not whole")


def by_socket(s):
    """What curl does: keep-alive, batches, in-process methods, calls for keepers, clients that go away."""
    s.command("start-server")
    s.http([{"method": "version"}, {"method": "remote_version"}], right=lambda answers: len(answers) == 2)
    name = s.http({"method": "bash_session_new_session"})["session_name"]
    s.http({"method": "bash_session_run", "params": {"session_name": name, "command": "echo hi"}},
           right=lambda r: r["output"] == "hi\n")
    s.http({"method": "text_editor", "params": {"command": "view", "path": str(s.folder)}})
    s.hang_up({"method": "bash_session", "params": {"session_name": name, "wait_for_output": 30, "idle_timeout": 30}})
    s.http({"method": "version"}, chunked=True)
    s.http({"method": "bash_session_close", "params": {"session_name": name}}, again="")
    s.http({"method": "sandbox_tools_shutdown"}, again="")


def killed(s):
    """A server that is killed, and a keeper."""
    name = s.rpc("bash_session_new_session")["session_name"]
    pid = s.rpc("exec_remote_start", command="echo here; sleep 0.3; echo done")["pid"]
    s.kill("toolbox server", signal.SIGKILL)
    s.rpc("bash_session_run", session_name=name, command="echo hi", right=lambda r: r["output"] == "hi\n")
    s.check(s.ended(pid)["stdout"] == "here\ndone\n", "output of the job is lost")
    other = s.rpc("bash_session_new_session")["session_name"]
    s.rpc("bash_session_run", session_name=other, command="sleep 62 & disown", again="busy")
    s.kill(f"toolbox {other}", signal.SIGKILL)
    s.rpc("bash_session_run", session_name=name, command="echo hi", right=lambda r: r["output"] == "hi\n")


def replaced(s):
    name = s.rpc("bash_session_new_session", build="other")["session_name"]
    s.rpc("bash_session_run", build="other", session_name=name, command="setsid sleep 63 & disown", again="busy")
    s.command("start-server", "--replace", "--log-level", "debug")
    s.rpc("bash_session_list", right=lambda r: r == [])


def moved(s):
    """What another build runs: called and listed through this one, and moved to it."""
    name = s.rpc("bash_session_new_session", build="other")["session_name"]
    s.rpc("bash_session_run", build="other", session_name=name, command="x=kept")
    pid = s.rpc("exec_remote_start", build="other", command="cat", stdin_open=True)["pid"]
    s.rpc("bash_session_list")
    s.rpc("bash_session_run", session_name=name, command="echo =$x", right=lambda r: r["output"] == "=kept\n")
    s.command("upgrade", "--json")
    s.rpc("bash_session_run", session_name=name, command="echo =$x", right=lambda r: r["output"] == "=kept\n")
    s.rpc("exec_remote_write_stdin", pid=pid, ack_seq=0, data="hello\n")
    s.rpc("exec_remote_close_stdin", pid=pid, ack_seq=0)
    s.check("hello\n" in s.ended(pid)["stdout"], "lost what was typed")


def for_people(s):
    s.command("bash_session", "new", right=lambda out: b"BashSession" in out)
    s.command("bash_session", "run", "BashSession", "echo hi", right=lambda out: out == b"hi\n")
    s.command("bash_session", "list")
    s.command("exec_remote", "run", "cat", stdin=b"through", right=lambda out: out == b"through")
    s.command("exec_remote", "list")


def mcp(s):
    """An MCP server that answers each request with its id, and tells something on stderr."""
    script = 'while read -r line; do id=${line##*\\"id\\":}; id=${id%%[,\\}]*}; echo note >&2; ' \
             'echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":$id,\\"result\\":{\\"ok\\":$id}}"; done'
    n = s.rpc("mcp_launch_server", server_params={"command": "sh", "args": ["-c", script], "env": {"A": "b"}, "cwd": "/"})
    for i in (1, 2):
        s.rpc("mcp_send_request", session_id=n, request={"jsonrpc": "2.0", "method": "x", "id": i},
              right=lambda r: r["result"] == {"ok": i})
    s.rpc("mcp_send_notification", session_id=n, notification={"jsonrpc": "2.0", "method": "notifications/x"})
    s.rpc("mcp_list_servers", right=lambda r: len(r) >= 1)
    s.command("mcp", "list")
    s.rpc("mcp_kill_server", session_id=n, again="")
    s.rpc("mcp_launch_server", server_params={"command": "sh", "args": ["-c", "echo gone >&2; exit 3"]}, again="")


def mcp_serve(s):
    """As an MCP server of its own, for a client that calls a tool and closes."""
    lines = [{"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                          "clientInfo": {"name": "x", "version": "1"}}},
             {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}]
    text = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines).encode()
    s.command("mcp", "serve", stdin=text, right=lambda out: out.count(b'"result"') == 2)


ALL = [life, places, session, other_users, jobs, editor, odd_files, long_answers, by_socket, killed, replaced, moved, for_people,
       foreground, full_log, links, stuck, attached, mcp, mcp_serve]
