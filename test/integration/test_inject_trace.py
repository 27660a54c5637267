"""What is left of an injection: nothing. The files and processes of a container are the same before it came and after it has gone,
whatever was done with every tool meanwhile."""
import json

import pytest

from harness.containers import BUSYBOX
from harness.injection import Injector, prefix
from harness.processes import wait_until
from harness.users import needs_root

pytestmark = needs_root

CALLS = 50  # of each tool
WORK = "/tmp/work"  # what the calls themselves are told to write, and to remove
# Elsewhere is no file of the container's: the kernel's, and the harness's own.
SKIPPED = "'(' -path /proc -o -path /sys -o -path /dev/pts -o -path /.harness ')' -prune"
FILES = f"""
    find / {SKIPPED} -o -type d -exec stat -c '%n %F %a %u:%g' '{{}}' +
    find / {SKIPPED} -o ! -type d -exec stat -c '%N %F %a %u:%g %h' '{{}}' +
    find / {SKIPPED} -o -type f -exec stat -c '%n %s %Y' '{{}}' +
    find / {SKIPPED} -o -type f -exec sha256sum '{{}}' +
"""
CALL_EACH = 'while read -r request; do echo "$request" | "$0" exec --whole; done'


def shell(container, text, *words, **how):
    """BusyBox alone: a root needn't have any program."""
    done = container.run([BUSYBOX, "sh", "-euc", f'for word in find stat sha256sum mkdir rm; do alias $word="{BUSYBOX} $word"; done\n{text}', *words],
                         **how)
    assert done.returncode == 0, done
    return done.stdout.decode()


def files(container):
    """Lines for each, with all that it is but the times of what is no plain file."""
    return set(shell(container, FILES).splitlines())

def processes(container):
    """As they are seen inside, those that have ended and that nobody waits for included."""
    lines = container.check([BUSYBOX, "ps", "-o", "args"]).splitlines()[1:]
    return sorted(line for line in lines if "busybox" not in line)


class Calls:
    """Each request by a process of its own in the container; the runtime carries them together, which is what takes long."""

    def __init__(self, container, path):
        self.container, self.path = container, path

    def __call__(self, *requests, failing=False):
        lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n" for method, params in requests]
        said = shell(self.container, CALL_EACH, self.path, stdin="".join(lines).encode())
        answers = [json.loads(line) for line in said.splitlines()]
        assert len(answers) == len(lines) and all(("error" in answer) == failing for answer in answers), answers
        return [answer.get("result") for answer in answers]


def use_sessions(ask):
    name = ask(("bash_session_new_session", {"cwd": "/"}))[0]["session_name"]
    typed = {"session_name": name, "wait_for_output": 5, "idle_timeout": 0.5}
    ask(*([("bash_session_run", {"session_name": name, "command": f"export SECRET={number}; cd /tmp; true"}) for number in range(CALLS)]))
    ask(*([("bash_session", {**typed, "input": "echo hi\n"})] * 5))
    ask(("bash_session_resize", {"session_name": name, "rows": 50, "cols": 132}), ("bash_session_list", {}),
        ("bash_session", {"session_name": name, "restart": True}),
        ("bash_session_run", {"session_name": name, "command": "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &)"}),
        ("bash_session_run", {"session_name": name, "command": "sleep 1000", "timeout": 0.1}))
    closed = ask(("bash_session_new_session", {}))[0]["session_name"]
    ask(("bash_session_close", {"session_name": closed}))


def use_jobs(ask):
    started = ask(*([("exec_remote_start", {"command": "seq 1000; exit 3"})] * (CALLS // 2)))
    ask(*([("exec_remote_wait", {"pid": job["pid"], "ack_seq": 0, "timeout": 10}) for job in started]))
    pid = ask(("exec_remote_start", {"command": "cat; sleep 1000", "stdin_open": True}))[0]["pid"]
    ask(("exec_remote_write_stdin", {"pid": pid, "ack_seq": 0, "data": "hi\n"}), ("exec_remote_close_stdin", {"pid": pid, "ack_seq": 0}),
        ("exec_remote_list", {}))
    ask(("exec_remote_start", {"command": "trap '' TERM HUP; setsid sleep 1000 & yes"}), ("exec_remote_poll", {"pid": pid, "ack_seq": 0}))


def use_editor(ask):
    path = f"{WORK}/edited"
    ask(("text_editor", {"command": "create", "path": path, "file_text": "line 0\n"}))
    ask(*([("text_editor", {"command": "str_replace", "path": path, "old_str": f"line {n}\n", "new_str": f"line {n + 1}\n"})
           for n in range(CALLS)]))
    ask(("text_editor", {"command": "insert", "path": path, "insert_line": 0, "new_str": "first"}),
        ("text_editor", {"command": "view", "path": path}), ("text_editor", {"command": "undo_edit", "path": path}))


def use_mcp(ask, program):
    session = ask(("mcp_launch_server", {"server_params": {"command": program, "args": ["mcp", "serve"]}}))[0]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    send = lambda number, **message: ("mcp_send_request", {"session_id": session, "request": {"jsonrpc": "2.0", "id": number, **message}})  # noqa: E731
    run = {"name": "shell_run", "arguments": {"command": "true"}}
    ask(send(0, method="initialize", params=hello),
        ("mcp_send_notification", {"session_id": session, "notification": {"jsonrpc": "2.0", "method": "notifications/initialized"}}),
        *(send(number, method="tools/call", params=run) for number in range(1, CALLS)))
    ask(("mcp_list_servers", {}), ("mcp_read_notifications", {"session_id": session}))


def use_others(ask, container, program):
    ask(*([("web_new_session", {})] * CALLS), failing=True)  # no browser is there
    ask(*([("version", {}), ("remote_version", {}), ("server_status", {})] * (CALLS // 3)))
    for words in (["status"], ["probe"], ["methods"], ["healthcheck"], ["upgrade"], ["exec_remote", "run", "true"], ["bash_session", "list"]):
        container.check([program, *words])
    # a service for agents, as it is run in the background
    ask(("exec_remote_start", {"argv": [program, "model_proxy", "--port", "0", "--directory", f"{WORK}/model"]}))


@pytest.fixture
def reach(request):
    """reach(container): (injector, target) for it."""

    def make(container):
        toolbox = request.getfixturevalue("toolbox")
        if hasattr(container, "engine"):
            env = {name: value for name, value in container.engine.env.items() if name.startswith("DOCKER_")}
            return Injector(toolbox, env=env), f"docker:{container.name}"
        return Injector(toolbox), f"exec:{prefix(container)}"

    return make


@pytest.mark.parametrize("root", ["debian", "busybox"])
def test_nothing_is_left_of_it(start, reach, root):
    """Slow: the root is made where there is none yet, and fifty commands of every tool are run in it."""
    container = start(root)
    injector, at = reach(container)
    history = "/root/.bash_history"
    shell(container, f"echo 'a command of a person' >{history}; mkdir {WORK}")
    before, running = files(container), processes(container)
    program = injector.inject(at)["path"]
    assert files(container) != before and processes(container) != running, "it would be seen"
    ask = Calls(container, program)
    use_sessions(ask)
    use_jobs(ask)
    use_editor(ask)
    use_mcp(ask, program)
    use_others(ask, container, program)
    injector.call(at, "exec_remote_start", {"command": "sleep 1000"})
    shell(container, f"rm -r {WORK}/*")
    assert injector.eject(at)["state"] == "removed"
    assert files(container) ^ before == set()
    # the first process here waits for nobody: what it got would stay in the table for ever
    wait_until(lambda: processes(container) == running, "all processes to be gone")
