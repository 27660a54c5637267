"""Jobs beyond the listed cases: many at once, races, the end of the server, limits, the command line."""
import base64
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import needs, processes
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.containers import REPO
from harness.jobs import Job, alive, keepers, no_keepers, run, runs
from harness.server import kill_servers, status, titled


def files(client):
    return [path.name for path in client.dir.iterdir() if path.name not in (".lock", "log")]


# ---- waiting ----


def test_wait_answers_when_there_is_something(client):
    job = Job(client, "read x; echo $x; read y; exit 5", stdin_open=True)
    began = time.monotonic()
    assert job.wait(timeout=0.3)["state"] == "running" and job.out == ""
    assert time.monotonic() - began >= 0.3
    typist = threading.Timer(0.5, lambda: client.rpc("exec_remote_write_stdin", {"pid": job.pid, "ack_seq": -1, "data": "hi\n"}))
    typist.start()
    assert job.wait(timeout=60)["stdout"] == "hi\n"
    typist.join()
    job.write("\n")
    assert job.finish() == (5, "hi\n", "")


def test_wait_of_a_client_that_goes(client):
    job = Job(client, "sleep 2; echo late")
    gone = [client.popen("exec", stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(5)]
    for process in gone:
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"exec_remote_wait","params":{"pid":%d,"ack_seq":0}}' % job.pid)
        process.stdin.close()
    time.sleep(0.3)
    for process in gone:
        process.kill()
        process.wait()
        process.stdout.close()
    assert job.finish() == (0, "late\n", "")


def test_many_wait_for_one(client):
    job = Job(client, "sleep 1; echo x")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: job.call("wait", ack=0, timeout=60), range(8)))
    assert all(answer["stdout"] == "x\n" for answer in answers)
    assert len({answer["seq"] for answer in answers}) == 8


# ---- time and memory ----


def test_timeout(client):
    job = Job(client, "echo begun; setsid sleep 81 & sleep 82", timeout=0.5)
    code, out, _ = job.finish()
    assert (code, out, job.end["state"], job.end["timed_out"]) == (-15, "begun\n", "killed", True)
    no_keepers()
    assert job.poll()["timed_out"] is True
    assert not alive("sleep", "81") and not alive("sleep", "82")


def test_timeout_of_one_that_ignores_it(client):
    """Slow: what ignores TERM has 5 s before it is killed."""
    job = Job(client, "trap '' TERM; sleep 83; sleep 84", timeout=0.2)
    code, _, _ = job.finish()
    assert (code, job.end["state"]) == (-9, "killed")


def test_timeout_that_does_not_come(client):
    job = Job(client, "exit 3", timeout=100)
    assert job.finish()[0] == 3 and "timed_out" not in job.end and job.end["state"] == "completed"


def cgroup(kind, tmp):
    """A memory control group to put a server into: (its directory, how to limit it)."""
    for root, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        group = root / f"toolbox-oom-{os.getpid()}"  # the private Docker engine's has the other name
        if not (root / "cgroup.procs").exists():
            continue  # no hierarchy of control groups, a plain folder
        try:
            group.mkdir()
            (group / limit).write_text(str(64 << 20))
            return group
        except OSError:
            if group.is_dir():
                group.rmdir()
    pytest.skip("no memory control group can be made here")


def test_out_of_memory_is_told(client):
    group = cgroup("memory", None)
    try:
        client.cli("start-server")
        server = client.rpc("remote_version").rsplit("pid ", 1)[1]  # others may run on this machine
        (group / "cgroup.procs").write_text(server)
        hog = "import sys; x = bytearray(200 << 20); print(len(x))"
        job = Job(client, argv=["/usr/bin/python3", "-c", hog])
        bystander = Job(client, "sleep 85")
        code, _, _ = job.finish()
        assert (code, job.end["oom_killed"], job.end["state"]) == (-9, True, "completed")
        assert titled("toolbox server") and keepers()
        killed = Job(client, "kill -9 $$")
        assert killed.finish()[0] == -9 and "oom_killed" not in killed.end
        bystander.kill()
    finally:
        client.stop()
        processes.wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
        group.rmdir()


def written(pid):
    """Bytes that a process has written, while it lives."""
    return int(re.search(r"wchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[1])


@pytest.mark.parametrize("jobs, size", [(1, 90 << 20), (8, 12 << 20)], ids=["one", "many"])
def test_unread_output_leaves_memory_to_the_command(client, jobs, size):
    """In a container of 64 MB: the writers wait instead, nobody is killed, and all of it is had."""
    group = cgroup("memory", None)
    write = f"import os, sys; n = {size}\nwhile n: n -= os.write(1, b'x' * min(n, 65536))"
    try:
        client.cli("start-server")
        server = client.rpc("remote_version").rsplit("pid ", 1)[1]
        (group / "cgroup.procs").write_text(server)
        started = [Job(client, argv=["/usr/bin/python3", "-c", write]) for _ in range(jobs)]

        def stuck():
            before = [written(job.pid) for job in started]
            time.sleep(0.3)
            return all(before) and before == [written(job.pid) for job in started]

        processes.wait_until(stuck, "the writers to wait for room")
        assert all(written(job.pid) < size for job in started)
        usage = next(path for path in (group / "memory.current", group / "memory.usage_in_bytes") if path.exists())
        assert int(usage.read_text()) < 60 << 20
        for job in started:
            code, out, _ = job.finish()
            assert (code, len(out), job.end.get("oom_killed")) == (0, size, None)
    finally:
        client.stop()
        processes.wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
        group.rmdir()


def test_a_run_and_a_place_in_memory_leave_memory_to_the_command(client, machine_memory):
    """A place on a tmpfs is charged to the container of 64 MB as well: no command is killed, what is left out is told,
    and answers that nobody fetches give way. Slow: 140 MB go through a terminal."""
    group = cgroup("memory", None)
    enter = f'echo $$ > {group}/cgroup.procs; exec "$0" "$@"'
    write = "import os; n = {} << 20\nwhile n: n -= os.write(1, b'x' * min(n, 65536))"

    def call(request):
        done = subprocess.run(["sh", "-c", enter, client.binary, "exec"], env=client.env, capture_output=True,
                              input=json.dumps({"jsonrpc": "2.0", "id": 1, **request}).encode(), timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    try:
        session = call({"method": "bash_session_new_session"})["result"]["session_name"]
        for size in (12, 12, 12, 12, 90):
            command = f'/usr/bin/python3 -c "{write.format(size)}"; echo rc $?'
            piece = call({"method": "bash_session_run", "params": {"session_name": session, "command": command}})
            piece = piece["__inspect_json_rpc_response_chunk__"]
            assert piece["total_size"] < 9 << 20
            assert sum(f.stat().st_size for f in (client.dir / "answers").iterdir()) < 20 << 20
        answer, params = b"", {"handle": piece["handle"], "offset": 0}
        while params["offset"] < piece["total_size"]:
            piece = call({"method": "__inspect_json_rpc_response_chunk__", "params": params})
            piece = piece["__inspect_json_rpc_response_chunk__"]
            answer += base64.b64decode(piece["chunk"])
            params["offset"] = piece["next_offset"]
        blanks = client.dir.parent / "blanks"
        blanks.write_bytes(b" " * (2 << 20))
        for words in ["exec"], ["exec", "--detect"], ["exec", "version", *(f"{n}=@{blanks}" for n in range(9))]:
            long = subprocess.run(["sh", "-c", enter, client.binary, *words], env=client.env, capture_output=True,
                                  input=b" " * (30 << 20), timeout=120)
            assert long.returncode == 1 and b"a tenth of the free memory" in long.stderr, (words, long)
        result = json.loads(answer)["result"]
        assert result["exit_code"] == 0 and result["output"].endswith("rc 0\n")
        kept = re.sub(r"\n\[\d+ bytes omitted\]\n", "", result["output"])
        assert len(kept) + result["omitted_bytes"] == (90 << 20) + len("rc 0\n")
    finally:
        client.stop()
        processes.wait_until(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty")
        group.rmdir()


@pytest.fixture
def machine_memory(client):
    """The client's place, on a tmpfs."""
    with tempfile.TemporaryDirectory(dir=needs.shared_memory()) as folder:
        client.dir = Path(folder) / "place"
        client.env["TOOLBOX_DIR"] = str(client.dir)
        yield client.dir


def test_a_limit_of_the_process_counts(client):
    """RLIMIT_AS of whoever starts the server is its keepers' as well."""
    size = 40 << 20
    subprocess.run(["sh", "-c", 'ulimit -v 60000; exec "$0" start-server', client.binary], env=client.env, check=True)
    job = Job(client, f"head -c {size} /dev/zero | tr '\\0' x")
    code, out, _ = job.finish()
    assert (code, len(out)) == (0, size)
    session = client.rpc("bash_session_new_session")["session_name"]
    done = client.rpc("bash_session_run", {"session_name": session, "command": "echo still here"})
    assert done["output"] == "still here\n"


# ---- the end ----


def test_ended_jobs_keep_no_process_and_stop_leaves_no_file(client):
    jobs = [Job(client, f"echo {i}; exit {i}") for i in range(20)]
    no_keepers()
    listed = {entry["pid"]: entry for entry in client.rpc("exec_remote_list")}
    for i, job in enumerate(jobs):
        assert (listed[job.pid]["state"], listed[job.pid]["exit_code"]) == ("completed", i)
        assert job.finish() == (i, f"{i}\n", "")
    client.stop()
    assert files(client) == []


@pytest.mark.parametrize("byte, encoding, text", [("x", "utf-8", "x"), ("\\377", "utf-8", "\ufffd"), ("\\001", "latin-1", "\1")])
def test_an_ended_job_with_much_to_tell_keeps_no_process(client, byte, encoding, text):
    """Slow: 5 MB for each kind of byte, fetched twice."""
    job = Job(client, f"head -c 5000000 /dev/zero | tr '\\0' '{byte}'; echo end >&2; exit 9", encoding=encoding)
    no_keepers()
    assert [(entry["state"], entry["exit_code"]) for entry in client.rpc("exec_remote_list")] == [("completed", 9)]
    assert kill_servers()
    while not job.end:
        lost = job.call("wait")
        answer = job.wait()
        assert answer["stdout"].startswith(lost["stdout"]) and len(answer["stdout"]) <= 5 << 20
    assert (job.out, job.err, job.end["exit_code"]) == (text * 5000000, "end\n", 9)
    assert job.call("poll")["stdout"] == ""


def test_output_that_no_file_can_hold_stays_in_the_keeper(client):
    """Something is in the way, as when the disk is full."""
    job = Job(client, "sleep 1; head -c 3000000 /dev/zero | tr '\\0' x; exit 9")
    (path,) = client.dir.glob("server.*")
    suffix = path.name.partition(".")[2]
    blocked = client.dir / f"..ended-{job.pid}.{suffix}"
    blocked.mkdir()
    try:
        assert job.finish()[:2] == (9, "x" * 3000000)
        assert keepers()
        again = job.call("poll")
        assert (again["state"], again["exit_code"]) == ("completed", 9)
    finally:
        blocked.rmdir()
    assert job.call("poll")["exit_code"] == 9
    no_keepers()


def test_stop_server_ends_jobs(client):
    Job(client, "setsid sleep 86 & sleep 87")
    Job(client, "trap '' TERM; sleep 88; sleep 89")
    client.stop()
    assert not [n for n in ("86", "87", "88", "89") if alive("sleep", n)]
    assert files(client) == []


def test_killed_server_loses_no_job(client):
    jobs = [Job(client, f"echo begin {i}; sleep 2; echo end {i}; exit {i}") for i in range(50)]
    assert kill_servers()
    assert [job.finish() for job in jobs] == [(i, f"begin {i}\nend {i}\n", "") for i in range(50)]
    client.stop()


def test_short_jobs_make_no_files(client):
    def names():
        # the server notes its program when it has a moment
        return {(path.name, path.lstat().st_ino) for path in client.dir.iterdir()
                if path.name != "log" and not path.name.startswith(".program.")}

    for _ in range(3):
        run(client, "echo hi")
        no_keepers()
    before = names()
    for _ in range(40):
        assert run(client, "echo hi; exit 3")[0] == 3
        no_keepers()
    assert names() == before


def test_jobs_of_a_killed_server_leave_the_next_one_alone(client):
    """Its sockets are those of another server, and go where they disturb nobody and are swept."""
    old = [Job(client, "read x; exit 7", stdin_open=True) for _ in range(3)]
    assert run(client, "exit 1")[0] == 1
    assert kill_servers()
    new = [Job(client, "read x; exit 8", stdin_open=True) for _ in range(3)]
    for job in old:
        job.write("\n")
        assert job.finish()[0] == 7
    for job in new:
        job.write("\n")
        assert job.finish()[0] == 8
    for i in range(20):
        assert run(client, f"exit {i}")[0] == i
    no_keepers()
    ((server, _),) = titled("toolbox server")
    assert {path.name.split("-")[1] for path in client.dir.glob(".Pool-*")} == {str(server)}


def test_sockets_that_somebody_has_removed(client):
    """As programs do that clean up in /tmp."""
    for i in range(5):
        assert run(client, f"exit {i}")[0] == i
        no_keepers()
        for path in client.dir.glob(".Pool-*"):
            path.unlink()
    assert run(client, "echo still")[1] == "still\n"


def test_killed_keeper_is_told(client):
    job = Job(client, "sleep 90")
    os.kill(keepers()[0].pid, signal.SIGKILL)
    with pytest.raises(RpcError) as gone:
        job.poll()
    assert gone.value.code == TOOLERR
    processes.wait_until(lambda: not alive("sleep", "90"), "its job to be ended")


def test_answer_is_had_however_the_end_falls(client):
    """Calls that meet a keeper in the moment of its end."""

    def one(i):
        job = Job(client, f"exit {i % 7}")
        calls = ["poll", "wait", "kill", "close_stdin"]
        job.call(calls[i % 4])
        return job.finish()[0]

    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(one, range(240)))
    assert [code for i, code in enumerate(codes) if i % 4 != 2] == [i % 7 for i in range(240) if i % 4 != 2]
    assert all(code in (i % 7, -15) for i, code in enumerate(codes))
    no_keepers()


def test_many_short_jobs_by_socket(toolbox):
    """As `make stress`, with fewer: calls through the server meet the end of keepers, and output comes with the end."""
    done = subprocess.run(["/usr/bin/python3", REPO / "test/stress/jobs.py", "--jobs", "400", toolbox],
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_kill_races(client):
    job = Job(client, "sleep 91 & sleep 92 & wait")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: job.call("kill", ack=0), range(6)))
    assert len({answer["seq"] for answer in answers}) == 6
    assert job.finish()[0] == -15


def test_many_jobs_at_once(client):
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda _: Job(client, argv=["sleep", "93"]), range(150)))
    assert len({job.pid for job in jobs}) == 150 and len(client.rpc("exec_remote_list")) == 150
    assert jobs[77].poll()["state"] == "running"
    client.stop()
    assert not alive("sleep", "93")


def test_signal_and_list(client):
    job = Job(client, "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done", env={"A": "b"})
    while "ready" not in job.out:
        job.wait()
    job.signal("USR1")
    while "usr1" not in job.out:
        job.wait()
    (listed,) = client.rpc("exec_remote_list")
    assert listed["pid"] == job.pid and listed["state"] == "running" and listed["command"].startswith("trap")
    for bad in ("NOSUCH", "0", "999"):
        with pytest.raises(RpcError) as refused:
            job.signal(bad)
        assert refused.value.code == TOOLERR
    job.signal("SIGKILL")
    job.finish()
    assert (job.end["exit_code"], job.end["state"]) == (-9, "completed")
    no_keepers()  # a sleep of its group may have outlived it
    with pytest.raises(RpcError) as refused:
        job.signal("TERM")
    assert refused.value.code == TOOLERR


def test_surroundings(client, workdir):
    code, out, _ = run(client, "pwd; echo \"$A\"; env | grep -c TOOLBOX; ls /proc/self/fd | wc -l; ps -o pid=,pgid=,sid= $$",
                       cwd=str(workdir), env={"A": "é\nb"})
    lines = out.splitlines()
    assert lines[:5] == [str(workdir), "é", "b", "0", "4"], lines
    pid, group, session = lines[5].split()
    assert pid == group == session


# ---- limits ----


def start_server(client, *limits):
    subprocess.run(["prlimit", *limits, client.binary, "start-server"], env={**os.environ, "TOOLBOX_DIR": str(client.dir)},
                   check=True, timeout=60)


def test_where_no_file_may_be_written_the_keeper_stays(client):
    start_server(client, "--fsize=0")
    for i, command in enumerate(("echo hi", "head -c 3000000 /dev/zero | tr '\\0' x")):
        job = Job(client, f"{command}; exit {i}")
        assert job.finish()[0] == i
        assert job.call("poll")["exit_code"] == i
    assert len(job.out) == 3000000
    client.stop()


def test_few_descriptors(client):
    """None of them is kept for jobs to come."""
    start_server(client, "--nofile=18")
    jobs = [Job(client, f"sleep 0.5; exit {i}") for i in range(12)]
    assert [job.finish()[0] for job in jobs] == list(range(12))


def test_a_disk_that_is_full(new_client, workdir):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    disk = workdir / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=True)
    try:
        client = new_client(dir=disk / "server", env={"INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES": str(10 << 20)})
        job = Job(client, "read x; head -c 400000 /dev/zero | tr '\\0' x; exit 7", stdin_open=True)
        with open(disk / "fill", "wb", buffering=0) as fill, pytest.raises(OSError):
            while True:
                fill.write(bytes(4096))
        job.write("\n")
        assert run(client, "echo hi; exit 8") == (8, "hi\n", "")
        assert job.finish()[:2] == (7, "x" * 400000)
        assert keepers()
        (disk / "fill").unlink()
        job.wait()
        for entry in client.rpc("exec_remote_list"):
            client.rpc("exec_remote_poll", {"pid": entry["pid"], "ack_seq": 0})
        no_keepers()
        assert job.poll()["exit_code"] == 7
        client.stop()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


# ---- programs that do odd things to themselves ----


def test_one_that_closes_all_it_has(client):
    job = Job(client, "exec >&- 2>&- <&-; sleep 0.5; exit 3", stdin_open=True)
    assert job.wait(timeout=0.1)["state"] == "running"
    assert job.finish() == (3, "", "")


@pytest.mark.parametrize("params", [{}, {"timeout": 0.3}])
def test_one_that_stops_itself(client, params):
    job = Job(client, "kill -STOP $$; exit 5", **params)
    processes.wait_until(lambda: status(job.pid)["State"].startswith("T"), "the job to stop")
    assert job.wait(timeout=0)["state"] == "running"
    if not params:
        job.kill()
    assert job.finish()[0] == -15 and job.end["state"] == "killed"


# ---- C-085: pids that repeat ----


def test_c085_pids_that_repeat(client, apart):
    """The kernel is told again and again which number comes next: that of a job which has more to tell."""
    script = """
        last=/proc/sys/kernel/ns_last_pid
        [ -w $last ] || exit 99
        for i in $(seq 20); do /bin/true; done
        keep=$($T exec_remote start -c 'sleep 100 & exit 42')
        unread=$($T exec_remote start -c 'echo first; exit 43')
        sleep 1
        for job in $keep $unread; do for back in 2 3 4 5 6 7 8; do
            echo $((job - back)) > $last
            pid=$($T exec_remote start -c 'exit 1') || exit 2
            [ $pid != $job ] || exit 3
        done; done
        $T exec_remote wait $keep; $T exec_remote wait $unread
        $T exec_remote kill $keep > /dev/null
        for back in 2 3 4 5 6; do
            echo $((keep - back)) > $last
            $T exec_remote start -c 'sleep 101' > /dev/null || exit 4
        done
        $T exec_remote kill $keep > /dev/null
        [ $($T exec_remote list | grep -c 'sleep 101') = 5 ] || exit 5
        $T stop-server
    """
    done = subprocess.run(
        [*apart, "--pid", "--fork", "--mount-proc", "sh", "-c", script],
        env={"PATH": os.environ["PATH"], "TOOLBOX_DIR": str(client.dir), "T": client.binary},
        capture_output=True, timeout=180,
    )
    if done.returncode == 99 or b"unshare" in done.stderr:
        pytest.skip(f"no pid namespace whose next number can be set: {done.stderr!r}")
    assert done.returncode == 0, (done.returncode, done.stderr)
    first, second = done.stdout.decode().splitlines()
    assert '"exit_code":42' in first
    assert '"exit_code":43' in second and "first" in second


# ---- the command line ----


def cli(client, *args, stdin=b""):
    done = client.cli("exec_remote", *args, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


def test_run_behaves_as_the_program(client):
    assert cli(client, "run", "sh", "-c", "echo out; echo err >&2; exit 7") == (7, b"out\n", b"err\n")
    assert cli(client, "run", "-c", "kill -9 $$")[0] == 137
    assert cli(client, "run", "--", "cat", "-", stdin=b"a\0b\xff\xfe\xc3")[:2] == (0, b"a\0b\xff\xfe\xc3")
    assert cli(client, "run", "--env", "A=b", "--cwd", "/", "sh", "-c", "echo $A; pwd")[:2] == (0, b"b\n/\n")
    for program, wanted in (("no-such-program", 127), ("./no/such", 127), ("/etc/passwd", 126), ("/", 126)):
        code, _, err = cli(client, "run", program)
        assert code == wanted and program.encode() in err
    code, _, err = cli(client, "run", "--cwd", "/no/such", "true")
    assert code == 125 and b"/no/such" in err
    assert cli(client, "run", "-c", "no-such-program")[0] == 127
    data = os.urandom(1 << 20)
    assert cli(client, "run", "cat", stdin=data)[:2] == (0, data)


def test_run_forwards_stdin_as_it_comes(client):
    process = client.popen("exec_remote", "run", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for word in (b"one\n", b"two\n"):
        process.stdin.write(word)
        process.stdin.flush()
        assert process.stdout.readline() == word
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_run_forwards_signals(client, number, status):
    process = client.popen("exec_remote", "run", "-c", "echo ready; exec sleep 94", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.wait(30) == status
    assert not alive("sleep", "94")
    process.stdin.close()
    process.stdout.close()


def test_run_has_the_umask_of_its_caller(client):
    client.cli("start-server")
    for mask in ("0027", "0000"):
        done = subprocess.run(["sh", "-c", f"umask {mask}; exec {client.binary} exec_remote run sh -c umask"], capture_output=True,
                              env={**os.environ, "TOOLBOX_DIR": str(client.dir)}, stdin=subprocess.DEVNULL, timeout=60)
        assert done.stdout.decode() == f"{mask}\n"


def test_run_has_no_variable_of_the_server_alone(client):
    client.cli("start-server", env={"THEIRS": "1"})
    assert client.cli("exec_remote", "run", "-c", "echo ${THEIRS-none} $OURS", env={"OURS": "2"}).stdout == b"none 2\n"


def test_the_job_ends_with_a_run_that_is_killed(client):
    process = client.popen("exec_remote", "run", "-c", "setsid sleep 97.5 & echo ready; sleep 97", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    processes.wait_until(lambda: alive("sleep", "97"), "the job to be at work")
    process.kill()
    process.wait()
    processes.wait_until(lambda: not alive("sleep", "97") and not alive("sleep", "97.5"), "the job to end")
    assert [entry["state"] for entry in client.rpc("exec_remote_list")] == ["killed"]
    process.stdin.close()
    process.stdout.close()


def test_run_leaves_alone_what_the_program_leaves(client):
    assert cli(client, "run", "-c", "sleep 98 & exit 3")[0] == 3
    runs("sleep", "98")
    client.stop()
    assert not alive("sleep", "98")


def test_hold(client):
    job = Job(client, "sleep 99")
    holders = [client.popen("exec", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)]
    for holder in holders:
        holder.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"exec_remote_hold","params":{"pid":%d}}' % job.pid)
        holder.stdin.close()
    processes.wait_until(lambda: any(holder.poll() is not None for holder in holders), "one of two to be refused")
    refused, holder = sorted(holders, key=lambda each: each.poll() is None)
    assert b"is held" in refused.stdout.read() and job.poll()["state"] == "running"
    job.kill()
    assert json.loads(holder.stdout.read())["result"] is None
    no_keepers()
    for params, code in (({"pid": job.pid}, TOOLERR), ({"pid": job.pid, "more": 1}, PARAMERR), ({"pid": 1}, TOOLERR)):
        with pytest.raises(RpcError) as refusal:
            client.rpc("exec_remote_hold", params)
        assert refusal.value.code == code
    for each in holders:
        each.wait()
        each.stdout.close()


def test_run_ends_when_its_reader_goes(client):
    process = client.popen("exec_remote", "run", "yes", "gone", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"gone\n"
    process.stdout.close()
    assert process.wait(30) == 141
    assert not alive("yes", "gone")
    process.stdin.close()


def test_commands(client):
    pid = cli(client, "start", "--stdin", "cat")[1].decode().strip()
    assert cli(client, "write", pid, "hello")[0] == 0
    assert b'"stdout":"hello"' in cli(client, "wait", pid, "--ack", "0")[1] + cli(client, "wait", pid, "--ack", "0")[1]
    assert pid.encode() in cli(client, "list")[1]
    assert cli(client, "close", pid)[0] == 0
    assert cli(client, "poll", "x")[0] == 2 and cli(client, "wait")[0] == 2 and cli(client, "strat")[0] == 2
    assert cli(client, "poll", "999999999")[0] == 1
    no_keepers()
    assert b'"exit_code":0' in cli(client, "poll", pid)[1]
    assert cli(client, "signal", pid, "TERM")[0] == 1
    other = cli(client, "start", "sleep", "95")[1].decode().strip()
    assert cli(client, "kill", other)[0] == 0
    assert b'"state":"killed"' in cli(client, "poll", other)[1]


def test_run_has_the_surroundings_of_its_caller(client, workdir):
    client.cli("start-server")
    surroundings = {"MINE": "é", "OTHER": "caller's"}
    client.env.update(surroundings)
    done = client.cli("exec_remote", "run", "--env", "OTHER=given", "sh", "-c", "pwd; echo $MINE $OTHER; env | grep -c TOOLBOX",
                      cwd=workdir)
    assert done.stdout.decode().splitlines() == [str(workdir), "é given", "0"]
    assert cli(client, "run", "--cwd", "/", "pwd")[1] == b"/\n"


def test_run_as_another_user_has_that_users_surroundings(client, user):
    client.env["HOME"] = "/of-the-caller"
    assert cli(client, "run", "--user", user.name, "sh", "-c", "id -u; echo $HOME")[1] == f"{user.uid}\n{user.home}\n".encode()


def test_run_tells_what_cannot_be_written(client):
    for target, why in (("/dev/full", b"No space"), ("/dev/null", b"Bad file descriptor")):
        with open(target, "r" if target == "/dev/null" else "w") as out:
            process = client.popen("exec_remote", "run", "echo", "hi", stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
            err = process.communicate(timeout=60)[1]
        assert process.returncode == 1 and why in err


def test_run_stops_and_goes_on_with_its_job(client):
    process = client.popen("exec_remote", "run", "-c", "echo x; exec sleep 100.5", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"x\n"
    process.send_signal(signal.SIGTSTP)
    processes.wait_until(lambda: status(process.pid)["State"].startswith("T"), "run to stop")
    (job,) = [entry["pid"] for entry in client.rpc("exec_remote_list")]
    processes.wait_until(lambda: status(job)["State"].startswith("T"), "the job to stop")
    process.send_signal(signal.SIGCONT)
    processes.wait_until(lambda: not status(job)["State"].startswith("T"), "the job to go on")
    process.send_signal(signal.SIGTERM)
    process.stdout.close()
    assert process.wait(30) == 143


def test_run_passes_many_bytes_of_stdin_on(client):
    data = bytes(range(256)) * 40000
    assert cli(client, "run", "cat", stdin=data)[:2] == (0, data)
    assert cli(client, "run", "true", stdin=data)[0] == 0
    assert cli(client, "run", "echo", "\udcff")[0] == 2


def test_list_as_json(client):
    pid = int(cli(client, "start", "sleep", "96")[1])
    assert [entry["pid"] for entry in json.loads(cli(client, "list", "--json")[1])] == [pid]
    assert cli(client, "list", "more")[0] == 2
    assert cli(client, "kill", str(pid))[0] == 0
