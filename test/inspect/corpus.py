"""Requests that go to both: groups of (method, params), each group in a fresh folder $T. $S, $P, $M: the session, job and
MCP server that were opened last."""


def ed(**params):
    return ("text_editor", params)


def new(path, text):
    return ed(command="create", path=f"$T/{path}", file_text=text)


def view(path="f", **more):
    return ed(command="view", path=f"$T/{path}", **more)


def replace(old, new=None, path="f"):
    more = {} if new is None else {"new_str": new}
    return ed(command="str_replace", path=f"$T/{path}", old_str=old, **more)


def insert(line, text, path="f"):
    return ed(command="insert", path=f"$T/{path}", insert_line=line, new_str=text)


def undo(path="f"):
    return ed(command="undo_edit", path=f"$T/{path}")


LINES = "".join(f"line {n}\n" for n in range(1, 31))

EDITOR = {
    "create": [new("f", "a\n"), view(), new("f", "b\n"), new("no/such/folder/f", "x"), new("empty", ""), view("empty"),
               new("no newline", "x"), view("no newline"), ed(command="create", path="$T/f2"), ed(command="create", file_text="x")],
    "relative": [ed(command="create", path="r", file_text="x\n"), ed(command="view", path="r"), ed(command="view", path="./r"),
                 ed(command="view", path="../work/r"), ed(command="undo_edit", path="r")],
    "view": [new("f", LINES), view(), view(view_range=[1, 1]), view(view_range=[5, 8]), view(view_range=[28, -1]),
             view(view_range=[30, 30]), view(view_range=[0, 3]), view(view_range=[31, 31]), view(view_range=[32, 33]), view(view_range=[3, 2]), view(view_range=[1, 99]),
             view(view_range=[-1, -1]), view(view_range=[1]), view(view_range=[1, 2, 3]), view(view_range=[]), view(view_range="1"),
             view(view_range=["1", "2"]), view(view_range=[1.0, 2.0]), view(view_range=[1.5, 2]), view(view_range=None)],
    "view of nothing": [view("none"), view(""), ed(command="view"), ed(command="view", path=5), ed(command="view", path=None),
                        ed(command="view", path=""), ed(command="look", path="$T"), ed(path="$T"), ed(command=5, path="$T")],
    "directory": [new("a", "x"), new("b", "x"), view("."), view(".", view_range=[1, 2]), replace("x", "y", "."), insert(0, "x", "."), undo(".")],
    "str_replace": [new("f", "one\ntwo\nthree\n"), replace("two", "2"), view(), replace("none", "x"), replace("e", "E"), replace("three\n", ""),
                    view(), replace("one\n2\n", "x\ny\nz"), view(), replace("", "x"), replace("x", "x"), replace("y"), view(), undo(), undo(), undo(), view()],
    "str_replace twice": [new("f", "aaa"), replace("aa", "b"), replace("a", "b"), view()],
    "str_replace of more lines": [new("f", LINES), replace("line 10\nline 11\n", "ten\neleven\nmore\n"), view(view_range=[8, 14]), replace("line 30\n", "last"), view(view_range=[28, -1])],
    "special characters": [new("f", "a.b*c[d]\\e$1\n"), replace("a.b*c[d]", r"\1 \g<0> & $&"), view(), replace("\\e", "\n"), view()],
    "tabs": [new("f", "\ta\tb\n\t\tc\n"), view(), replace("\ta", "    a"), view(), replace("a\tb", "a b"), insert(1, "\tx"), view()],
    "crlf": [new("f", "a\r\nb\r\nc\r\n"), replace("b", "B"), view(), insert(1, "x"), view(), undo(), undo(), view()],
    "unicode": [new("f", "\u00fc \u6f22 \U0001f600\n\u2028x\n"), view(), replace("\u6f22", "\u5b57"), insert(1, "\u00e9"), view(), undo()],
    "insert": [new("f", "a\nb\nc\n"), insert(0, "top"), insert(2, "mid"), insert(5, "end"), view(), insert(99, "x"), insert(-1, "x"), insert("1", "x"),
               insert(1.0, "x"), ed(command="insert", path="$T/f", insert_line=1), ed(command="insert", path="$T/f", new_str="x"), insert(1, "two\nlines"), insert(1, "ends\n"), view(), insert(1, ""), view()],
    "insert into nothing": [new("f", ""), insert(0, "x"), view(), insert(0, "x", "none"), undo(), view()],
    "undo": [new("f", "0\n"), *[replace(f"{n}\n", f"{n + 1}\n") for n in range(11)], *[undo() for _ in range(10)], view()],
    "undo of a creation": [new("f", "x"), undo(), view(), undo(), new("f", "again"), view()],
    "undo of nothing": [undo("none"), new("a", "x"), undo("b")],
    "long": [new("f", "x" * 100 + "\n" + "y" * 20000 + "\n"), view(view_range=[1, 1])],
    "ignored": [ed(command="create", path="$T/f", file_text="a", old_str=None, view_range=None, insert_line=None), ed(command="view", path="$T/f", nonsense=1, file_text="x")],
    "wrong types": [ed(command="create", path="$T/f", file_text=5), ed(command="create", path=["$T/f"], file_text="x"), ed(command="str_replace", path="$T/f", old_str=5),
                    ed(command="str_replace", path="$T/f"), ed(command="undo_edit"), ("text_editor", {}), ("text_editor", [])],
    "users": [ed(command="create", path="$T/f", file_text="x", _run_as={"uid": 0, "gid": 0, "groups": [0], "home": "/root"}), view()],
}

READ = {"session_name": "$S", "wait_for_output": 1, "idle_timeout": 0.5}


def new_shell(**params):
    return [("bash_session_new_session", params), ("bash_session", {**READ, "wait_for_output": 5, "input": "PS1='> '; PS2='... '; cd $T\n"})]


def typed(text, wait=5, idle=0.5, **more):
    return ("bash_session", {"session_name": "$S", "wait_for_output": wait, "idle_timeout": idle, "input": text, **more})


SESSION = {
    "commands": [*new_shell(), typed("echo hi\n"), typed("pwd\n"), typed("x=5\n"), typed("echo $x\n"), typed("false; echo $?\n"), typed("echo err >&2\n"),
                 typed("ls /nonexistent-dir 2>&1 | wc -l\n"), typed("printf 'no newline'\n"), typed("\n"), typed("# comment\n"), typed("echo a; echo b; echo c\n")],
    "input in pieces": [*new_shell(), typed("echo o", wait=1), typed("ne\n"), typed("echo 'open\n"), typed("closed'\n"), typed("if true; then\n"), typed("echo yes; fi\n"),
                        typed("cat <<E\n"), typed("here\nE\n")],
    "keys": [*new_shell(), typed("sleep 60\n", wait=1), typed("\x03"), typed("cat\n", wait=1), typed("line\n"), typed("\x04"), typed("echo kill\x15echo line\n")],
    "interrupts": [*new_shell(), typed("\x03"), typed("sleep 60\n", wait=1), typed("\x03"), typed("cat\n", wait=1), typed("\x03"), typed("read x\n", wait=1), typed("\x03"), typed("abc\x03"),
                   typed("echo 'open\n"), typed("\x03"), typed("while :; do sleep 0.1; done\n", wait=1), typed("\x03"), typed("echo $?\n")],
    "editor": [*new_shell(), typed("touch aaa-file\n"), typed("ls aaa\t\n"), typed("echo one two\x17three\n"), typed("echo ab\x1b[D\x1b[DX\n"), typed("\x1b[A\n"), typed("echo a\x01\x05b\n"), typed("sleep 60\n", wait=1), typed("\x1a"),
               typed("kill -9 %1; wait 2>/dev/null; clear\n")],
    "size": [*new_shell(), typed("stty size\n")],
    "echo": [*new_shell(), typed("stty echo\n"), typed("echo b\n")],
    "programs that ask": [*new_shell(), typed("read -p 'name? ' x\n"), typed("me\n"), typed("echo $x\n"), typed("bash --norc -c 'echo in'\n")],
    "a read of nothing": [*new_shell(), ("bash_session", READ), ("bash_session", {**READ, "wait_for_output": 0})],
    "escapes": [*new_shell(), typed(r"printf '\033[31mred\033[0m\n'" + "\n"), typed(r"printf 'a\rb\n'" + "\n"), typed(r"printf 'a\tb\n'" + "\n"), typed(r"printf 'bell\a\n'" + "\n"),
                typed(r"printf '\xff\n'" + "\n"), typed("echo \u00fc\u6f22\U0001f600\n"), typed(r"printf 'a\bb\n'" + "\n"), typed(r"printf '\033]0;title\007x\n'" + "\n"),
                typed(r"printf '\033[?25lx\033[?25h\n'" + "\n"), typed(r"printf '\0337x\0338\n'" + "\n"), typed(r"printf '\033P1$rq\033\\x\n'" + "\n")],
    "much": [*new_shell(), typed("seq 1 300\n"), typed("seq 1 2000 | tail -n 5\n"), typed("head -c 3000 /dev/zero | tr '\\0' x; echo\n"), typed("head -c 3000 /dev/zero | tr '\\0' x; echo\n", max_output_bytes=100)],
    "restart": [*new_shell(), typed("x=1\n"), ("bash_session", {"session_name": "$S", "restart": True}), typed("PS1='> '\n"), typed("echo [$x]\n")],
    "exit": [*new_shell(), typed("exit 3\n"), typed("echo after\n")],
    "environment": [*new_shell(), typed("echo $TERM; tty -s && echo tty; stty -a | grep -o '.\\?echo '; echo $-\n"), typed("echo $INSPECT_SANDBOX_TOOLS_DIR\n")],
    "params": [("bash_session_new_session", {"user": "no-such-user"}), ("bash_session_new_session", {"user": 5}), ("bash_session_new_session", {"x": 1}), ("bash_session_new_session", {"user": {"uid": 1}}),
               ("bash_session_new_session", []), *new_shell(), ("bash_session", {}), ("bash_session", {"session_name": "none", **{k: READ[k] for k in ("wait_for_output", "idle_timeout")}}), ("bash_session", {"session_name": "$S"}),
               ("bash_session", {**READ, "input": 5}), ("bash_session", {**READ, "wait_for_output": "1"}), ("bash_session", {**READ, "wait_for_output": 1.5}), ("bash_session", {**READ, "idle_timeout": "x"}),
               ("bash_session", {**READ, "wait_for_output": -1}), ("bash_session", {**READ, "unknown": 1}), ("bash_session", {"session_name": "$S", "restart": False}), ("bash_session", {**READ, "restart": True}), ("bash_session", {"session_name": 5})],
}


def start(command, **more):
    return ("exec_remote_start", {"command": command, **more})


POLL = ("exec_remote_poll", {"pid": "$P", "ack_seq": 0})
KILL = ("exec_remote_kill", {"pid": "$P", "ack_seq": 0})
CLOSE = ("exec_remote_close_stdin", {"pid": "$P", "ack_seq": 0})


def write(data):
    return ("exec_remote_write_stdin", {"pid": "$P", "ack_seq": 0, "data": data})


WAIT = ("wait", {})  # until a poll says that it has ended

JOBS = {
    "output": [start("echo out; echo err >&2"), WAIT, start("printf x"), WAIT, start("true"), WAIT, start("exit 7"), WAIT, start("seq 1 1000"), WAIT],
    "signals": [start("kill -9 $$"), WAIT, start("kill -15 $$"), WAIT, start("sh -c 'kill -9 $$'"), WAIT],
    "no program": [start("no-such-program"), WAIT, start("/"), WAIT, start(""), WAIT, start("syntax ("), WAIT],
    "input": [start("cat", input="in put\n\u00fc"), WAIT, start("cat", input=""), WAIT, start("cat"), WAIT, start("wc -c", input="x" * 200000), WAIT, start("true", input="x" * 200000), WAIT],
    "open stdin": [start("cat", stdin_open=True), write("a\n"), write("b\n"), CLOSE, CLOSE, WAIT, start("cat", stdin_open=True, input="first\n"), write("second\n"), CLOSE, WAIT,
                   start("sleep 60"), write("x"), CLOSE, KILL],
    "environment": [start("echo $A $B", env={"A": "1", "B": "2 3"}), WAIT, start("pwd", cwd="$T"), WAIT, start("pwd", cwd="/no/such/folder"), WAIT, start("echo $PATH | grep -c /bin", env={}), WAIT,
                    start("echo ${INSPECT_SANDBOX_TOOLS_DIR-none}"), WAIT],
    "killed": [start("sleep 60"), KILL, start("trap '' TERM; echo up; sleep 60"), KILL, POLL, start("echo before; sleep 60"), ("pause", {}), KILL],
    "bytes": [start(r"printf '\377\000x'"), WAIT, start(r"printf '\303'; sleep 0.2; printf '\274'"), WAIT, start("printf 'a\\r\\nb'"), WAIT],
    "background": [start("sleep 2 & echo done"), WAIT],
    "params": [("exec_remote_start", {}), start(5), start("true", user=5), start("true", env={"A": 1}), start("true", env=[]), start("true", cwd=5), start("true", input=5), start("true", x=1), start("true", stdin_open="yes"),
               ("exec_remote_poll", {}), ("exec_remote_poll", {"pid": 1}), ("exec_remote_poll", {"pid": 999999, "ack_seq": 0}), ("exec_remote_poll", {"pid": "x", "ack_seq": 0}), ("exec_remote_kill", {"pid": 999999, "ack_seq": 0}),
               ("exec_remote_write_stdin", {"pid": 999999, "ack_seq": 0, "data": "x"}), ("exec_remote_close_stdin", {"pid": 999999, "ack_seq": 0}), ("exec_remote_write_stdin", {"pid": 1, "ack_seq": 0})],
    "users": [start("id -u", user="nobody"), WAIT, start("id -u", user={"uid": 65534, "gid": 65534, "groups": [], "home": "/tmp"}), WAIT, start("id -u; echo $HOME", user={"uid": 4321, "gid": 1, "groups": [2], "home": None}), WAIT,
              start("id -u", user="no-such-user"), WAIT, start("id -u", user={"uid": 1}), start("id -u", user={"uid": 1, "gid": 1, "groups": [], "x": 1})],
}

ECHO = r"""
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id": *\("[^"]*"\|[0-9]*\).*/\1/p')
    case $line in
    *'"echo"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"line":1,"pi":3.14159,"n":9007199254740993,"t":[true,null]}}\n' "$id" ;;
    *'"fail"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no","data":{"x":1}}}\n' "$id" ;;
    *'"noise"'*) printf 'noise\n{"jsonrpc":"2.0","method":"note"}\n{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
    *'"cwd"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"cwd":"%s","a":"%s"}}\n' "$id" "$PWD" "$A" ;;
    esac
done
"""


def launch(**more):
    return ("mcp_launch_server", {"server_params": {"command": "sh", "args": ["-c", ECHO], **more}})


def ask(method, id=1, **more):
    return ("mcp_send_request", {"session_id": "$M", "request": {"jsonrpc": "2.0", "id": id, "method": method, **more}})


MCP = {
    "requests": [launch(), ask("echo"), ask("echo", 2), ask("echo", "s"), ask("echo", 3, params={"a": [1, {"b": None}]}), ask("fail"), ask("noise"),
                 ("mcp_send_notification", {"session_id": "$M", "notification": {"jsonrpc": "2.0", "method": "note"}}), ("mcp_kill_server", {"session_id": "$M"}),
                 ask("echo"), ("mcp_kill_server", {"session_id": "$M"})],
    "environment": [launch(env={"A": "b", "PATH": "/usr/bin:/bin"}, cwd="$T"), ask("cwd"), ("mcp_kill_server", {"session_id": "$M"})],
    "params": [("mcp_launch_server", {}), ("mcp_launch_server", {"server_params": {}}), ("mcp_launch_server", {"server_params": {"command": 5}}), ("mcp_launch_server", {"server_params": {"command": "x", "args": "y"}}),
               ("mcp_send_request", {}), ("mcp_send_request", {"session_id": 99, "request": {"jsonrpc": "2.0", "id": 1, "method": "x"}}), ("mcp_send_request", {"session_id": "x", "request": {}}),
               ("mcp_send_notification", {"session_id": 99, "notification": {"jsonrpc": "2.0", "method": "x"}}), ("mcp_kill_server", {"session_id": 99}), ("mcp_kill_server", {})],
}

SERVER = {
    "methods": [("version", {}), ("version", {"x": 1}), ("remote_version", {}), ("remote_version", {"x": 1}), ("no_such_method", {}), ("bash_session_new_session", None), ("", {}), ("rpc.discover", {})],
}

GROUPS = {f"{area}: {name}": steps for area, groups in (("editor", EDITOR), ("session", SESSION), ("job", JOBS), ("mcp", MCP), ("server", SERVER))
          for name, steps in groups.items()}

# What exec is given as it stands.
RAW = ["", " ", "{", "[]", "5", "null", "\"x\"", "{}", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"1.0","id":1,"method":"version"}',
       '{"jsonrpc":"2.0","id":1,"method":5}', '{"id":1,"method":"version"}', '{"jsonrpc":"2.0","id":1,"method":"version"}\n', '{"jsonrpc":"2.0","id":"a","method":"version"}',
       '{"jsonrpc":"2.0","id":1.5,"method":"version"}', '{"jsonrpc":"2.0","id":null,"method":"version"}', '{"jsonrpc":"2.0","method":"version"}', '{"jsonrpc":"2.0","id":[],"method":"version"}',
       '{"jsonrpc":"2.0","id":true,"method":"version"}', '{"jsonrpc":"2.0","id":1,"method":"version","params":[]}', '{"jsonrpc":"2.0","id":1,"method":"version","params":5}', '{"jsonrpc":"2.0","id":1,"method":"version","params":null}',
       '{"jsonrpc":"2.0","id":1,"method":"version"} x', '[{"jsonrpc":"2.0","id":1,"method":"version"}]', '[{"jsonrpc":"2.0","id":1,"method":"version"},{"jsonrpc":"2.0","id":2,"method":"nope"}]',
       '{"jsonrpc":"2.0","id":1,"method":"version","extra":1}', '{"jsonrpc":"2.0","id":9007199254740993,"method":"version"}', '{"jsonrpc":"2.0","id":1,"id":2,"method":"version"}', '{"jsonrpc":"2.0","id":1,"method":"nope"}']
