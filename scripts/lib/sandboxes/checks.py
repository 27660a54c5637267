"""What is tried in each sandbox, from outside, by `toolbox call` and its like: the columns of the table.

A check returns nothing or a few words where it is all right, raises Refused where the tool says by itself that it can't be
had there, and anything else where it is wrong.
"""
import json
import re
import secrets
import subprocess
import threading
import time

HANG = 120  # seconds: nothing takes as long
PAGE = "data:text/html,<title>t</title><button onclick=\"document.title='pressed'\">Press</button>"
STEPS = range(3, 10)  # exit statuses: where the target could not be made ready, in words
LOST = 125  # a call that the runtime broke off


class Refused(Exception):
    """What can't be had there, as the tool itself says it."""


class Wrong(Exception):
    pass


class Toolbox:
    """The program, outside, and one target of its."""

    def __init__(self, binary, place):
        self.binary, self.place, self.path, self.sessions, self.shell = str(binary), place, None, [], None

    def __call__(self, applet, *words, input=None):
        argv = [self.binary, *applet.split(), *self.place.options, *words]
        try:
            done = subprocess.run(argv, input=input, capture_output=True, text=True, timeout=HANG, env=self.place.env)
        except subprocess.TimeoutExpired:
            raise Wrong(f"{applet}: no end after {HANG} s") from None
        if done.returncode in STEPS or done.returncode == LOST:
            raise Refused(done.stderr.strip() or reason(json.loads(done.stdout)))
        if done.returncode != 0:
            raise Wrong(f"{applet}: exit status {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def call(self, method, **params):
        if self.place.stream:
            answer = self.place.stream(method, params)
        else:
            answer = json.loads(self("call", "--json", "--timeout", str(HANG - 10), self.place.target, method, "-", input=json.dumps(params)))
        if "error" in answer:
            raise Refused(answer["error"]["message"])
        return answer["result"]

    def session(self):
        """It ends with the check."""
        self.sessions.append(self.call("bash_session_new_session")["session_name"])
        return self.sessions[-1]

    def done(self):
        while self.sessions:
            self.call("bash_session_close", session_name=self.sessions.pop())

    def run(self, session, command, timeout=60):
        return self.call("bash_session_run", session_name=session, command=command, timeout=timeout)

    def typed(self, session, text):
        return self.call("bash_session", session_name=session, input=text, wait_for_output=20, idle_timeout=0.5)

    def job(self, stdin=None, **params):
        """Runs one to its end: (exit status, stdout, stderr)."""
        pid = self.call("exec_remote_start", **params)["pid"]
        out, err, ack, deadline = "", "", 0, time.monotonic() + HANG
        while time.monotonic() < deadline:
            answer = self.call("exec_remote_wait", pid=pid, ack_seq=ack, timeout=20)
            out, err, ack = out + answer["stdout"], err + answer["stderr"], answer["seq"]
            if answer["state"] != "running":
                return answer["exit_code"], out, err
        raise Wrong("the job does not end")

    def has_shell(self):
        if self.shell is None:
            try:
                self.shell = self.job(command="exit 5")[0] == 5
            except Refused:
                self.shell = False
        return self.shell


def reason(report):
    return ": ".join(filter(None, [report["step"], report["message"], report["tried"]]))


def expect(what, found, wanted):
    if found != wanted:
        raise Wrong(f"{what}: {found!r}, not {wanted!r}")


def until(what, true, seconds=60):
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise Wrong(f"{what} does not come")
        time.sleep(0.2)


# ---- the columns ----


def version(box):
    return subprocess.run([box.binary, "--version"], capture_output=True, text=True).stdout.split()[1]


def inject(box):
    if box.place.stream:
        expect("its word", box.call("version"), version(box))
        box.path = box.place.path
        return "part of its image"
    report = json.loads(box("inject", "--json", box.place.target).splitlines()[-1])
    box.path = report["path"]
    expect("the build there", version(box) in report["server"], True)


def run(box):
    session = box.session()
    done = box.run(session, "cd /; x=7; echo $((6*x)); (exit 3)")
    expect("a run", (done["state"], done["exit_code"], done["output"], done["cwd"]), ("completed", 3, "42\n", "/"))
    for number in range(5):
        done = box.run(session, f"echo {number}$x; (exit {number})")
        expect("a run", (done["exit_code"], done["output"]), (number, f"{number}7\n"))


def keys(box):
    session = box.session()
    expect("a run that goes on", box.run(session, "echo begun; sleep 1000", timeout=2)["state"], "timeout")
    box.typed(session, "\x03")
    until("the end by the key", lambda: box.call("bash_session_list")[-1]["state"] == "prompt")
    expect("the status", box.run(session, "echo $?")["output"], "130\n")


def awaiting_input(box):
    session = box.session()
    state = box.run(session, "cat", timeout=20)["state"]
    if state == "timeout":
        [word] = [check for check in box.call("doctor")["checks"] if check["name"] == "what a program waits for"]
        if word["state"] != "works":  # it says so by itself
            raise Refused(f"the run ends with `timeout`: {word['instead'] or word['seen']}")
    expect("a program that reads", state, "awaiting_input")
    until("what it read", lambda: "word\n" in box.typed(session, "word\n"), 20)
    box.typed(session, "\x04")
    expect("the status", box.call("bash_session_run", session_name=session, timeout=60)["exit_code"], 0)


def jobs(box):
    if box.has_shell():
        found = box.job(command="read line; echo got $line; echo no >&2; exit 5", input="it\n")
        expect("a job", found, (5, "got it\n", "no\n"))
        return None
    status, out, _ = box.job(argv=[box.path, "--version"])
    expect("a job", (status, out.startswith("toolbox ")), (0, True))
    return "no shell: `argv`"


# Each says which process it is, and does not end when asked to; the last is an orphan. A pipe: dash starts nothing behind a "&" without /dev/null.
TREE = """
    leaf='trap "" TERM HUP; echo $$ >>'$F'; exec sleep 1000'
    sh -c "$leaf" | setsid sh -c "$leaf" | sh -c 'setsid sh -c "$0" | kill -9 $$' "$leaf"
"""


def kill(box):
    if not box.has_shell():
        pid = box.call("exec_remote_start", argv=[box.path, "model_proxy", "--port", "0", "--directory", "/"])["pid"]
        box.call("exec_remote_kill", pid=pid, ack_seq=0)
        expect("what runs", [job for job in box.call("exec_remote_list") if job["state"] == "running"], [])
        return "one process"
    folder = box.place.scratch
    name = f"{folder}/tree-{secrets.token_hex(4)}"
    pid = box.call("exec_remote_start", command=TREE, env={"F": name})["pid"]
    def stands():
        said = box.call("exec_remote_poll", pid=pid, ack_seq=0)["stderr"]
        if "fork" in said:
            raise Refused(said.strip())
        return _lines(box, name) == 3

    try:
        until("the tree", stands)
    except Refused:
        box.call("exec_remote_kill", pid=pid, ack_seq=0)
        box.job(command=f"rm -f {name}")
        raise
    finally:
        box.call("exec_remote_kill", pid=pid, ack_seq=0)
    script = f"for p in $(cat {name}); do if kill -0 $p 2>/dev/null; then echo $p lives; fi; done; rm {name}"
    expect("what is left", box.job(command=script)[1], "")


def _lines(box, path):
    try:
        return len(re.findall(r"^\s+\d+\t\d+$", box.call("text_editor", command="view", path=path), re.M))
    except Refused:  # it isn't there yet
        return 0


def editor(box):
    path = f"{box.place.scratch}/edited-{secrets.token_hex(4)}"
    box.call("text_editor", command="create", path=path, file_text="one\n\ttwo\r\nthree")
    box.call("text_editor", command="str_replace", path=path, old_str="two", new_str="zwei")
    box.call("text_editor", command="insert", path=path, insert_line=0, new_str="zero\n")
    expect("the edit", [word in box.call("text_editor", command="view", path=path) for word in ("zero", "zwei", "two")], [True, True, False])
    box.call("text_editor", command="undo_edit", path=path)
    box.call("text_editor", command="undo_edit", path=path)
    expect("the undo", [word in box.call("text_editor", command="view", path=path) for word in ("zero", "zwei", "two")], [False, False, True])
    if box.has_shell():
        expect("the bytes", box.job(command=f"cat {path}; rm {path}")[1], "one\n\ttwo\r\nthree")


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "validate", "version": "0"}}


def mcp_serve(box):
    """A client outside, a server in there."""
    if box.place.stream:
        return "not tried: the one way in is taken"
    number, path = 0, f"{box.place.scratch}/by-mcp"
    argv = [box.binary, "mcp", "serve", "--in", box.place.target, *box.place.options]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=box.place.env) as server:
        hangs = threading.Timer(HANG, server.kill)
        hangs.start()

        def ask(method, **params):
            nonlocal number
            number += 1
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                if not line.startswith("{"):  # a runtime's own words
                    raise Refused(line)
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer["result"]
            raise Refused(server.stderr.read().strip() or "the server ends")

        ask("initialize", **HELLO)
        expect("its tools", {"shell_run", "job_start", "text_editor"} <= {tool["name"] for tool in ask("tools/list")["tools"]}, True)
        ask("tools/call", name="write_file", arguments={"path": path, "content": "written\n"})
        read = ask("tools/call", name="read_file", arguments={"path": path})
        expect("a tool's answer", "written" in json.dumps(read), True)
        server.stdin.close()
        expect("its exit status", server.wait(), 0)
        hangs.cancel()
    if box.has_shell():
        box.job(command=f"rm {path}")


def mcp_bridge(box):
    """The server in there is the program itself: it is one as well."""
    number = box.call("mcp_launch_server", server_params={"command": box.path, "args": ["mcp", "serve"]})

    def ask(id, method, params):
        request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return box.call("mcp_send_request", session_id=number, request=request)["result"]

    expect("its name", ask(1, "initialize", HELLO)["serverInfo"]["name"], "toolbox")
    box.call("mcp_send_notification", session_id=number, notification={"jsonrpc": "2.0", "method": "notifications/initialized"})
    expect("its tools", len(ask(2, "tools/list", {})["tools"]) > 3, True)
    box.call("mcp_kill_server", session_id=number)


BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]})
ASK = """
    if command -v bash >/dev/null; then
        exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT; printf "POST /v1/chat/completions HTTP/1.1\\r\\nHost: localhost\\r\\n\
Content-Type: application/json\\r\\nConnection: close\\r\\nContent-Length: ${#BODY}\\r\\n\\r\\n%s" "$BODY" >&3; cat <&3'
    fi
    exec wget -q -O - --header 'Content-Type: application/json' --post-data "$BODY" http://127.0.0.1:$PORT/v1/chat/completions
"""


def model_proxy(box):
    """A program in there asks, and is answered by files."""
    if not box.has_shell():
        return "not tried: nothing in there could ask it"
    folder, port = f"{box.place.scratch}/proxy-{secrets.token_hex(4)}", str(20000 + secrets.randbelow(9000))
    box.job(command=f"mkdir -p {folder}/requests {folder}/responses")
    proxy = box.call("exec_remote_start", argv=[box.path, "model_proxy", "--port", port, "--directory", folder])["pid"]
    try:
        until("the port", lambda: _listens(box, proxy, port), 30)
        client = box.call("exec_remote_start", command=ASK, env={"PORT": port, "BODY": BODY})["pid"]
        _answer(box, folder, proxy, client)
        until("the completion", lambda: "the answer" in box.call("exec_remote_poll", pid=client, ack_seq=0)["stdout"])
    finally:
        box.call("exec_remote_kill", pid=proxy, ack_seq=0)
        box.job(command=f"rm -rf {folder}")


def _listens(box, proxy, port):
    state = box.call("exec_remote_poll", pid=proxy, ack_seq=0)
    if state["state"] != "running":
        raise Refused((state["stdout"] + state["stderr"]).strip())
    script = f"bash -c ': </dev/tcp/127.0.0.1/{port}' || wget -q -O - http://127.0.0.1:{port}/v1/models"
    status, _, said = box.job(command=script)
    if "fork" in said:
        raise Refused(said.strip())
    return status == 0


def _answer(box, folder, proxy, client):
    names = []

    def asked():
        if box.call("exec_remote_poll", pid=client, ack_seq=0)["state"] != "running":
            raise Refused(box.call("exec_remote_poll", pid=proxy, ack_seq=0)["stderr"].strip())
        names.extend(box.job(command=f"cd {folder}/requests && for f in *.json; do [ ! -e $f ] || echo $f; done")[1].split())
        return names

    until("the request", asked)
    completion = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "the answer"}}]}
    box.job(command=f"cd {folder} && rm requests/* && cat >responses/{names[0]}", input=json.dumps({"result": completion}))


def browser(box):
    session = box.call("web_new_session")["session_name"]
    page = box.call("web_go", session_name=session, url=PAGE)
    button = re.search(r"\[(\d+)\] button", json.dumps(page))
    if not button:
        raise Wrong(f"no button on the page: {page!r}")
    box.call("web_click", session_name=session, element_id=int(button[1]))
    expect("the title", box.call("web_evaluate", session_name=session, expression="document.title")["value"], "pressed")
    box.call("web_close_session", session_name=session)


# A file /dev/null is what scripts of root make where there was none: the browser's.
LEFT = """
    for d in / /opt /usr/local /var/tmp /run /tmp /dev/shm /dev "$HOME"; do
        for f in "$d"/* "$d"/.[!.]*; do case $f in *faketime_* | /dev/null) ;; *) [ -e "$f" ] && echo "$f";; esac; done
    done
    for p in /proc/[0-9]*; do [ -O "$p" ] && read -r a 2>/dev/null <"$p/comm" && case $a in toolbox) echo "$p";; esac; done
"""


def eject(box):
    if box.place.stream:
        return "not tried: it is part of the image"
    box("eject", box.place.target)
    left = box.place.look(LEFT)
    if left is None:
        return "it says so; not looked at from outside"
    new = sorted(set(left.split("\n")) - set(box.place.before.split("\n")))
    expect("what is left", new, [])


CHECKS = {"inject": inject, "run": run, "keys": keys, "awaiting input": awaiting_input, "jobs": jobs, "kill": kill, "editor": editor,
          "`mcp serve`": mcp_serve, "MCP bridge": mcp_bridge, "model_proxy": model_proxy, "browser": browser, "eject": eject}
