"""What can be seen of the server from outside: `toolbox status`, its log, and other builds beside it."""

import json
import os
import pwd
import re
import signal
import stat
import unicodedata

import pytest

from harness.client import PARAMERR, RpcError, one_object
from harness.processes import wait_until
from harness.server import SERVER, SESSION, kill_servers, only_server, request, status, titled


def status_of(client):
    return one_object(client.cli("status", "--json"))


def log_of(client):
    return (client.dir / "log").read_text()


# ---- status ----


def test_status_where_nothing_runs(client, server_dir):
    done = client.cli("status")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"no server runs\n", b"")
    assert status_of(client)["server"] is None and status_of(client)["sessions"] == status_of(client)["jobs"] == status_of(client)["mcp_servers"] == status_of(client)["browser_sessions"] == []
    assert not server_dir.exists()


def test_status_shows_what_runs(client, server_dir):
    client.new()
    client.run("sleep 5071 & sleep 5072 &")
    client.bs("printf 12345; read x\n")
    pid = client.rpc("exec_remote_start", {"command": "echo some output; sleep 5073"})["pid"]
    shown = status_of(client)
    server, (session,), (job,) = shown["server"], shown["sessions"], shown["jobs"]
    assert (server["pid"], server["directory"], server["log_level"]) == (only_server(), str(server_dir), "info")
    assert stat.S_ISSOCK(os.stat(server["socket"]).st_mode)
    assert 0 < server["memory_kb"] < 100_000 and 0 <= server["age_s"] < 60 and server["uid"] == os.geteuid()
    assert session["session_name"] == client.session and session["foreground"] is None
    assert session["processes"] == 3 and session["memory_kb"] > 1000 and session["age_s"] > 0
    assert session["bytes_in"] > 50 and session["bytes_out"] > 50
    assert job["pid"] == pid and job["command"].startswith("echo some") and 0 < job["processes"] <= 2
    wait_until(lambda: status_of(client)["jobs"][0]["unread_stdout"] == 12, "the job's output")
    table = client.cli("status").stdout.decode()
    assert [block.splitlines()[0] for block in table.split("\n\n")][:4] == ["server", "counters", "sessions", "jobs"]
    assert client.session in table and f"\n{pid} " in table and str(server_dir) in table


def test_status_counts(client):
    before = status_of(client)["counters"] or status_of(client)["counters"]
    client.rpc("remote_version")
    before = status_of(client)["counters"]
    for _ in range(5):
        client.rpc("remote_version")
    after = status_of(client)["counters"]
    # each status asks six times itself
    assert after["requests"] - before["requests"] == 5 + 6 and after["connections"] - before["connections"] == 5 + 6 + 1
    assert after["strangers"] == after["refused"] == 0 and after["bytes_out"] > before["bytes_out"]


def test_status_finds_sessions_whose_server_died(client):
    client.new()
    kill_servers()
    assert [session["session_name"] for session in status_of(client)["sessions"]] == [client.session]


def test_status_shows_what_is_stuck(client):
    """Slow: what is stuck is waited for twice, 5 s each."""
    client.new()
    client.new()
    pid = client.rpc("exec_remote_start", {"command": "sleep 5074"})["pid"]
    keepers = [process.pid for process in titled(f"{SESSION}_1") + titled("toolbox Job_")]
    for keeper in keepers:
        os.kill(keeper, signal.SIGSTOP)
    try:
        shown = status_of(client)
    finally:
        for keeper in keepers:
            os.kill(keeper, signal.SIGCONT)
    assert [session["state"] for session in shown["sessions"]] == ["prompt", "stuck"]
    assert shown["jobs"] == [{"pid": pid, "state": "stuck"}]


@pytest.mark.parametrize("args", [["x"], ["--jsn"], ["--json", "x"]], ids=str)
def test_status_usage(client, args):
    done = client.cli("status", *args)
    assert done.returncode == 2 and done.stdout == b"" and b"--help" in done.stderr


def test_server_status_takes_no_params(client):
    with pytest.raises(RpcError) as error:
        client.rpc("server_status", {"x": 1})
    assert error.value.code == PARAMERR and "x" in error.value.message


@pytest.mark.parametrize("command", ["status", "stop-server"])
@pytest.mark.parametrize("kind", ["of all", "file", "symlink"])
def test_a_directory_that_cannot_be_used(client, workdir, command, kind):
    """It is no place where nothing runs: nobody knows."""
    path = workdir / "odd"
    {"of all": path.mkdir, "file": path.touch, "symlink": lambda: path.symlink_to("/tmp")}[kind]()
    for words in ([command], [command, "--json"], [command, "-q"])[: 3 if command == "status" else 1]:
        done = client.cli(*words, env={"TOOLBOX_DIR": str(path)})
        assert done.returncode == 1 and done.stdout == b"" and str(path) in done.stderr.decode(), words
    done = client.cli("status", env={"TOOLBOX_DIR": str(workdir / "none")})
    assert (done.returncode, done.stdout) == (0, b"no server runs\n") and not (workdir / "none").exists()


def test_status_by_its_exit_status_alone(client):
    assert client.cli("status", "-q").returncode == client.cli("status", "--quiet").returncode == 3
    client.new()
    done = client.cli("status", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_status_in_human_units(client):
    client.new()
    (server,) = [line for line in client.cli("status").stdout.decode().split("\n\n") if line.startswith("server\n")]
    heading, row = server.splitlines()[1:]
    assert re.findall(r"\b(age|memory)\b", heading) == ["age", "memory"] and re.search(r" \d[\d.]* (ms|s|min) +\d[\d.]* (KiB|MiB) ", row), row
    assert isinstance(status_of(client)["server"]["age_s"], float)


def columns_of(text):
    """Display columns, as a terminal has them."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def test_tables_align_with_wide_characters(client):
    for command in ("sleep 5111 # 日本語", "sleep 5112 # e\u0301tat", "sleep 5113 # 한국어 test", "sleep 5114"):
        client.rpc("exec_remote_start", {"command": command})
    lines = client.cli("exec_remote", "list", "--format", "command,state").stdout.decode().splitlines()
    assert len(lines) == 5 and len({columns_of(re.split(r"(?= state$| running$)", line)[0]) for line in lines}) == 1, lines


def test_ended_jobs_say_what_they_were(client):
    pid = client.rpc("exec_remote_start", {"command": "true # " + "é" * 200})["pid"]
    wait_until(lambda: client.rpc("exec_remote_poll", {"pid": pid, "ack_seq": 0})["state"] == "completed", "the job's end")
    wait_until(lambda: not titled(f"toolbox Job_{pid}"), "the keeper's end")
    (job,) = client.rpc("exec_remote_list")
    assert job["command"] == "true # " + "é" * 30 and job["user"] == pwd.getpwuid(os.geteuid()).pw_name
    assert 0 <= job["duration_s"] <= job["age_s"] < 300 and job["exit_code"] == 0
    table = client.cli("exec_remote", "list").stdout.decode().splitlines()
    assert "duration" in table[0] and table[1].endswith("true # " + "é" * 30)


# ---- log ----


def test_log_tells_what_happened_and_nothing_of_requests(client):
    secret = "hush-5081"
    client.cli("start-server", "--log-level", "debug")
    client.new(env={"SECRET": secret})
    client.run(f"echo {secret}")
    client.rpc("exec_remote_start", {"argv": ["echo", secret]})
    client.line({"jsonrpc": "2.0", "id": secret, "method": secret})
    client.stop()
    log = log_of(client)
    assert "has started" in log and "started BashSession" in log and "bash_session_run: 0 after" in log and "ended; 0" in log
    assert secret not in log
    assert stat.S_IMODE((client.dir / "log").stat().st_mode) == 0o600


@pytest.mark.parametrize("level, lines", [("error", 0), ("info", 5), ("debug", 7)])
def test_log_levels(client, level, lines):
    client.cli("start-server", f"--log-level={level}")
    client.new()
    client.stop()
    assert len(log_of(client).splitlines() if lines else []) >= lines
    assert lines or not (client.dir / "log").exists()
    assert ("debug" in log_of(client)) == (level == "debug") if lines else True


def test_log_tells_of_killed_keepers(client):
    client.new()
    (keeper,) = titled(SESSION)
    os.kill(keeper.pid, signal.SIGKILL)
    wait_until(lambda: "BashSession" in log_of(client) and "killed by signal 9" in log_of(client), "the log")


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory"])
def test_log_passes_over_what_has_its_name(client, server_dir, workdir, kind):
    server_dir.mkdir(mode=0o700)
    victim = workdir / "victim"
    victim.write_text("whole")
    path = server_dir / "log"
    {"symlink": lambda: path.symlink_to(victim), "fifo": lambda: os.mkfifo(path), "directory": path.mkdir}[kind]()
    client.new()
    assert client.run("echo hi")["output"] == "hi\n"
    assert victim.read_text() == "whole" and stat.S_IMODE(victim.stat().st_mode) != 0o600


def test_log_is_bounded(client):
    client.cli("start-server", "--log-level", "debug")
    batch = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "remote_version"}] * 1000)
    for _ in range(10):
        client.line(batch, env={"INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": "10000000"})
    sizes = {path.name: path.stat().st_size for path in client.dir.glob("log*")}
    assert set(sizes) == {"log", "log.old"} and max(sizes.values()) <= 256 << 10


def test_log_of_the_foreground(client):
    server = client.popen("server", "--log-level", "debug")
    wait_until(lambda: titled(SERVER) and list(client.dir.glob("server.*")), "the server")
    client.line(request("remote_version"))
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=30)
    assert out == b"" and b"has started" in err and b"remote_version: 0 after" in err and err.decode() == log_of(client)


@pytest.mark.parametrize("args", [["--log-level"], ["--log-level", "loud"], ["--log-levle=info"], ["x"]], ids=str)
@pytest.mark.parametrize("command", ["server", "start-server"])
def test_log_level_usage(client, command, args):
    done = client.cli(command, *args)
    assert done.returncode == 2 and done.stdout == b"" and b"--help" in done.stderr and not titled(SERVER)


# ---- start-server --replace ----


@pytest.fixture
def old(client, new_client, other_build):
    """A client of another build in the same directory, with a session whose program ignores TERM, and a job."""
    old = new_client(dir=client.dir, binary=other_build)
    old.new()
    old.bs("(trap '' TERM HUP; setsid sleep 5061) &\n")
    old.rpc("exec_remote_start", {"command": "sleep 5062"})
    return old


def left_of(build, directory):
    return [path.name for path in directory.iterdir() if build in path.name]


def running(seconds):
    return titled(f"sleep\0{seconds}\0")


@pytest.mark.parametrize("server", ["alive", "killed", "stopped"])
def test_replace_ends_the_other_build(client, old, server):
    build = old.probe()["build"]
    if server == "killed":
        kill_servers()
    if server == "stopped":
        os.kill(only_server(), signal.SIGSTOP)
    client.new()
    client.bs("x=kept\n")
    done = client.cli("start-server", "--replace")
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"ended ")
    assert "BashSession" in done.stdout.decode()
    assert left_of(build, client.dir) == [] and not running(5061) and not running(5062)
    assert status(only_server()) and "=kept" in client.bs("echo =$x\n")


def test_replace_leaves_this_build_and_other_containers_alone(client, server_dir):
    client.new()
    client.bs("x=kept\n")
    foreign = server_dir / "server.0123456789abcdef.12-34"  # of another root
    strange = [server_dir / name for name in ("server", "x.y", "server.nobuild.1-2")]
    for path in [foreign, *strange]:
        path.touch()
    assert client.cli("start-server", "--replace").returncode == 0
    assert "=kept" in client.bs("echo =$x\n") and all(path.exists() for path in [foreign, *strange])


def test_start_without_replace_leaves_the_other_build(client, old):
    assert client.cli("start-server").returncode == 0
    assert len(titled(SERVER)) == 2 and running(5061) and running(5062)
    assert old.run("echo hi")["output"] == "hi\n"
    old.stop()


def test_what_runs_with_chosen_columns(client):
    """Of all kinds in one list, each figure exact; where nothing runs the headings alone."""
    assert client.cli("status", "--format", "kind,pid").stdout == b"kind  pid\n" and not client.dir.exists()
    client.new()
    pid = client.rpc("exec_remote_start", {"command": "sleep 1000"})["pid"]
    lines = [line.split() for line in client.cli("status", "--format", "kind,session_name,pid").stdout.decode().splitlines()]
    assert lines[0] == ["kind", "session_name", "pid"] and ["jobs", "-", str(pid)] in lines
    assert [line[:2] for line in lines if line[0] == "sessions"] == [["sessions", client.session]] and len(lines) == 3
    for words in (["--format", "kind,,pid"], ["--format"], ["--format", "kind", "--json"], ["-q", "--json"], ["--json", "x"]):
        assert client.cli("status", *words).returncode == 2, words
