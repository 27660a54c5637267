"""The end of things against programs that don't want to end: nothing survives, and no answer claims what isn't so."""
import os
import shutil
import signal
import tempfile
import threading

import pytest

from harness import victims
from harness.client import TOOLERR, RpcError
from harness.jobs import Job
from harness.processes import wait_until
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


@pytest.mark.parametrize("length", [100, 1000])
def test_a_chain_of_any_length(client, workdir, victim, length):
    job = Job(client, command(victim, workdir, "chain", length) + " wait")
    started(workdir, length)
    assert job.kill()
    assert victims.living() == []


@needs_root
@pytest.mark.parametrize("end", ["kill", "stop-server"])
def test_a_fork_bomb_with_a_limit(client, workdir, victim, end):
    job = Job(client, command(victim, workdir, "bomb", 200) + " wait", user=str(NOBODY_KNOWS))
    started(workdir, 150)
    if end == "kill":
        assert job.kill()
    else:
        client.stop()
    assert victims.living() == []


@needs_root
def test_what_survives_is_told(new_client, workdir, victim):
    """A program with a set-user-id bit is not its user's to kill: no answer says that it has ended."""
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
    for call in (lambda: client.rpc("bash_session", {"session_name": session, "restart": True}), job.kill,
                 lambda: client.rpc("bash_session_close", {"session_name": closed})):
        with pytest.raises(RpcError) as error:
            call()
        assert error.value.code == TOOLERR and "1 process" in error.value.message
    assert client.run("echo new", session=session)["output"] == "new\n"
    done = client.cli("stop-server")
    assert done.returncode == 1 and b"could not be ended" in done.stderr, done
    assert len(victims.living()) == 3
    for pid in victims.living():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not victims.living(), "them to end")


@needs_root
def test_a_user_who_stops_what_is_started_as_him(client, workdir, victim):
    """Between becoming the user and running the program a child can be stopped: no call waits for it for ever."""
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
    threads = [threading.Thread(target=start, args=call) for call in calls]
    try:
        wait_until((workdir / "told").exists, "the stopper")
        for thread in threads:
            thread.start()
        assert client.cli("status").returncode == 0
        for thread in threads:
            thread.join()
    finally:
        stopper.kill()
        stopper.communicate()
    assert len(answers) == len(calls)
    assert any("was it stopped?" in answer for answer in answers if isinstance(answer, str)), answers
    assert client.cli("status").returncode == 0
