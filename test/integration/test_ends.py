"""The end of things against programs that don't want to end: nothing survives, and no answer claims what isn't so."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import victims
from harness.client import TOOLERR, RpcError
from harness.jobs import Job
from harness.mcp_client import LEGACY
from harness.processes import count_zombies, descendants, wait_until
from harness.server import titled
from harness.users import NOBODY_KNOWS, needs_root


@pytest.fixture(scope="module")
def victim():
    with tempfile.TemporaryDirectory(prefix="victim-") as folder:
        os.chmod(folder, 0o755)
        yield victims.build(folder)


@pytest.fixture(autouse=True)
def _no_victim_is_left():
    yield
    left = victims.living()
    for _ in range(100):
        for pid in victims.living():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert not left


SIZES = {"leaderless": 1, "chain": 300}


def command(victim, workdir, kind, size=None):
    """Starts the victim in a session of its own, and goes on."""
    return f"setsid {victim} {kind} {workdir}/told {size or SIZES[kind]} </dev/null >/dev/null 2>&1 &"


def started(workdir, n):
    wait_until((workdir / "told").exists, "the victim to be there")
    wait_until(lambda: len(victims.living()) >= n, f"{n} victims")


def end_by_close(client, session, job):
    client.rpc("bash_session_close", {"session_name": session})


def end_by_restart(client, session, job):
    assert client.rpc("bash_session", {"session_name": session, "restart": True}) == "shell restarted successfully"


def end_by_kill(client, session, job):
    assert job.kill()


def end_by_stop_server(client, session, job):
    client.stop()


def end_by_killed_keeper(client, session, job):
    """The server ends what a killed keeper leaves."""
    keeper, = titled("toolbox BashSession")
    os.kill(keeper.pid, signal.SIGKILL)
    wait_until(lambda: not victims.living(), "what the keeper has left to end")


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("end", [end_by_close, end_by_restart, end_by_kill, end_by_stop_server, end_by_killed_keeper])
def test_nothing_survives(client, workdir, victim, kind, end):
    session, job = client.new(), None
    if end is end_by_kill:
        job = Job(client, command(victim, workdir, kind) + " wait")
    else:
        client.run(command(victim, workdir, kind), session=session)
    started(workdir, SIZES[kind])
    end(client, session, job)
    assert victims.living() == []


def test_mcp_kill_server_ends_a_process_without_its_first_thread(client, workdir, victim):
    script = command(victim, workdir, "leaderless") + " cat >/dev/null"
    number = client.rpc("mcp_launch_server", {"server_params": {"command": "sh", "args": ["-c", script]}})
    started(workdir, 1)
    client.rpc("mcp_kill_server", {"session_id": number})
    assert victims.living() == []


def test_a_killed_run_ends_a_process_without_its_first_thread(client, workdir, victim):
    run = client.popen("exec_remote", "run", "sh", "-c", command(victim, workdir, "leaderless") + " wait")
    started(workdir, 1)
    run.kill()
    run.communicate()
    wait_until(lambda: not victims.living(), "the job to end")


def test_a_long_chain(client, workdir, victim):
    """Slow: a thousand processes, and none of them ends when it is asked to."""
    job = Job(client, command(victim, workdir, "chain", 1000) + " wait")
    started(workdir, 1000)
    for _ in range(5):  # on a busy machine a kill may come to the end of its time before they do: it says so, and the next goes on
        try:
            assert job.kill()
            break
        except RpcError as error:
            assert "could not be ended" in error.message
    assert victims.living() == []


@needs_root
@pytest.mark.parametrize("end", ["kill", "stop-server"])
def test_a_fork_bomb_with_a_limit(client, workdir, victim, end):
    """Each in a session of its own, which may have as much of the processor as who ends them. Slow: so they do."""
    job = Job(client, command(victim, workdir, "bomb", 200) + " wait", user=str(NOBODY_KNOWS))
    started(workdir, 150)
    if end == "kill":
        assert job.kill()
    else:
        client.stop()
    assert victims.living() == []


@needs_root
def test_what_survives_is_told(new_client, workdir, victim):
    """A program with a set-user-id bit is not its user's to kill: no answer says that it has ended. Slow: each call tries for
    as long as is promised."""
    client = new_client(user=NOBODY_KNOWS)
    program = workdir / victims.NAME
    shutil.copy(victim, program)
    program.chmod(0o4755)
    session, closed = client.new(), client.new()
    start = f"setsid {program} root {workdir}/told <&- >/dev/null 2>&1 &"
    client.run(start, session=session)
    wait_until((workdir / "told").exists, "the victim to be there")
    client.run(start, session=closed)
    job = Job(client, f"{start} wait")
    wait_until(lambda: len(victims.living()) == 3, "three victims")
    calls = [lambda: client.rpc("bash_session", {"session_name": session, "restart": True}), job.kill,
             lambda: client.rpc("bash_session_close", {"session_name": closed})]
    with ThreadPoolExecutor() as pool:
        for call in [pool.submit(call) for call in calls]:
            with pytest.raises(RpcError) as error:
                call.result()
            assert error.value.code == TOOLERR and "1 process" in error.value.message
            assert re.search(rf"\({victims.NAME[:15]} \d+\)", error.value.message), error.value
    assert client.run("echo new", session=session)["output"] == "new\n"
    done = client.cli("stop-server")
    assert done.returncode == 1 and f"could not be ended ({victims.NAME[:15]} " in done.stderr.decode(), done
    assert len(victims.living()) == 3
    for pid in victims.living():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not victims.living(), "them to end")


@needs_root
def test_a_user_who_stops_what_is_started_as_him(client, workdir, victim):
    """Between becoming the user and running the program a child can be stopped: no call waits for it for ever. Slow: twenty do,
    for as long as is promised."""
    user = str(NOBODY_KNOWS)
    client.rpc("remote_version")
    stopper = client.machine.popen([victim, "stopper", workdir / "told", "1"], user=NOBODY_KNOWS)
    answers = []

    def start(method, params):
        try:
            answers.append(client.rpc(method, params))
        except RpcError as error:
            assert error.code == TOOLERR, error
            answers.append(error.message)

    long = {"PATH": "/no/such/folder:" * 2000 + os.environ["PATH"]}  # so that it takes the child a while
    calls = [("exec_remote_start", {"argv": ["true"], "user": user, "env": long})] * 12 + [("bash_session_new_session", {"user": user})] * 4 + [
        ("mcp_launch_server", {"server_params": {"command": "cat"}, "user": user})] * 4


    def all_at_once():
        threads = [threading.Thread(target=start, args=call) for call in calls]
        for thread in threads:
            thread.start()
        assert client.cli("status").returncode == 0
        for thread in threads:
            thread.join()
        return any("was it stopped?" in answer for answer in answers if isinstance(answer, str))

    try:
        wait_until((workdir / "told").exists, "the stopper")
        assert any(all_at_once() for _ in range(8)), answers  # beside a load the stopper may come too late for all twenty
    finally:
        stopper.kill()
        stopper.communicate()
    assert len(answers) % len(calls) == 0
    assert client.cli("status").returncode == 0


def test_a_killed_mcp_serve_leaves_nothing(client, serve, workdir, victim):
    """What it has started for its client ends with it, whatever its end; but for what is to be kept."""
    mcp = serve()
    mcp.call("shell_run", command=command(victim, workdir, "leaderless"))
    mcp.call("job_start", argv=[str(victim), "chain", f"{workdir}/told", "3"])
    started(workdir, 4)
    kept = serve(LEGACY[-1], "--keep-sessions")
    kept.call("shell_run", command="x=kept")
    sessions = [entry["session_name"] for entry in client.rpc("bash_session_list")]
    mcp.process.kill()
    mcp.process.communicate()
    wait_until(lambda: not victims.living(), "what was started to end")
    wait_until(lambda: len(client.rpc("bash_session_list")) == 1, "its shell to end")
    kept.process.kill()
    kept.process.communicate()
    assert client.run("echo $x", session=sessions[1])["output"] == "kept\n"


def test_what_ends_with_a_process_that_has_ended(client):
    """Whoever asked has gone by the time that it is started."""
    gone = client.machine.popen(["true"])
    gone.communicate()
    for method, params in (("bash_session_new_session", {}), ("exec_remote_start", {"argv": ["sleep", "1001"]}),
                           ("mcp_launch_server", {"server_params": {"command": "cat"}})):
        client.rpc(method, {**params, "ends_with": gone.pid})
    for method in ("bash_session_list", "mcp_list_servers"):
        wait_until(lambda method=method: not client.rpc(method), "it to end")
    wait_until(lambda: [job["state"] for job in client.rpc("exec_remote_list")] == ["killed"], "the job to end")


needs_mark = pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_RTTIME)[0] != resource.RLIM_INFINITY,
                                reason="there is a limit on real-time processes already, so that what is started can't be marked")


def kill_all(*titles):
    for title in titles:
        for process in titled(title):
            os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not any(titled(title) for title in titles), "them to end")


def kill_server_first():
    kill_all("toolbox server")
    kill_all("toolbox BashSession", "toolbox Job_", "toolbox Mcp")


def kill_keepers_first():
    kill_all("toolbox BashSession", "toolbox Job_", "toolbox Mcp", "toolbox server")


def start_strays(client, workdir, victim, user):
    """One below a session, a job and an MCP server, each far away from what has started it."""
    stray = f"env -i setsid sh -c '{victim} chain {workdir}/told 2 <&- >/dev/null 2>&1 & exit' <&- >/dev/null 2>&1 &"
    who = {"user": str(NOBODY_KNOWS)} if user else {}
    client.run(stray, session=client.new(**who))
    Job(client, stray + " sleep 1001", **who)
    client.rpc("mcp_launch_server", {"server_params": {"command": "sh", "args": ["-c", stray + " cat"]}, **who})
    started(workdir, 6)


@needs_mark
@needs_root
@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("kill", [kill_server_first, kill_keepers_first])
def test_a_server_and_its_keepers_are_killed(client, workdir, victim, kill, user):
    start_strays(client, workdir, victim, user)
    kill()
    client.stop()
    assert victims.living() == []


@needs_mark
@needs_root
def test_the_next_server_ends_what_dead_keepers_have_left(client, workdir, victim):
    """Also those of keepers that outlive the first server, and die while it is there."""
    start_strays(client, workdir, victim, False)
    kept = client.new()
    kill_all("toolbox server")
    kill_all("toolbox Job_")
    client.rpc("remote_version")
    wait_until(lambda: len(victims.living()) == 4, "what the job has left to end")
    kill_all("toolbox Mcp")
    wait_until(lambda: len(victims.living()) == 2, "what the MCP server has left to end")
    assert client.run("echo kept", session=kept)["output"] == "kept\n"
    client.stop()
    assert victims.living() == []


@needs_mark
@needs_root
def test_another_places_processes_are_not_orphans(new_client, workdir, victim):
    """Nor are those of living keepers, whose server has died."""
    one, other = new_client(), new_client()
    session, foreign = one.new(), other.new()
    other.run(command(victim, workdir, "leaderless"), session=foreign)
    one.run(command(victim, workdir, "leaderless"), session=session)
    started(workdir, 2)
    kill_all("toolbox server")
    assert one.run("echo kept", session=session)["output"] == "kept\n"
    one.rpc("remote_version")
    one.rpc("bash_session_list")
    assert len(victims.living()) == 2
    one.stop()
    assert len(victims.living()) == 1
    other.stop()
    assert victims.living() == []


@needs_mark
def test_the_mark_is_not_in_the_environment(client):
    """And a program can take it off: what then becomes an orphan is nobody's."""
    session = client.new()
    both = "ulimit -S -R; ulimit -S -m"  # the one that the kernel lets us set
    assert client.run(both, session=session)["output"].count("unlimited") == 1
    assert "TOOLBOX" not in client.run("env", session=session)["output"]
    assert client.run(f"ulimit -S -R unlimited 2>/dev/null; ulimit -S -m unlimited; {both}", session=session)["output"] == 2 * "unlimited\n"


@needs_root
def test_no_zombies_where_process_1_does_not_reap(client, apart):
    """As in a container whose process 1 is `sleep`: neither five connections of an MCP client nor the end of the server leave one."""
    init = client.machine.popen([*apart, "unshare", "--pid", "--fork", "sh", "-c", "mount -t proc proc /proc && exec sleep 1001"])
    try:
        first, = wait_until(lambda: [child.pid for child in descendants(init.pid) if str(child).endswith(": sleep 1001")], "process 1")
        inside = ["nsenter", "-t", str(first), "-p", "-m", "-r", client.binary]
        calls = [{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
                 for i, (name, arguments) in enumerate([("shell_run", {"command": "true"}), ("job_start", {"argv": ["sleep", "9"]})], 1)]
        start = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
                 "params": {"protocolVersion": LEGACY[-1], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
        lines = [start, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *calls]
        for _ in range(5):
            done = client.machine.run([*inside, "mcp", "serve"], stdin="".join(json.dumps(line) + "\n" for line in lines).encode(),
                                      env=client.env)
            assert done.returncode == 0 and done.stdout.count(b'"isError":true') == 0, done
        assert count_zombies(first) == 0
        assert client.machine.run([*inside, "stop-server"], env=client.env).returncode == 0
        assert count_zombies(first) == 0
    finally:
        for process in descendants(init.pid):
            with contextlib.suppress(ProcessLookupError):  # with process 1 all of them end
                os.kill(process.pid, signal.SIGKILL)
        init.communicate()
