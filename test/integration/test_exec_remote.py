"""The cases of exec_remote, each named after its number."""
import json
import time

import pytest

from harness import processes
from harness.client import PARAMERR, TOOLERR, RpcError
from harness.jobs import Job, alive, keepers, no_keepers, run, runs
from harness.server import status
from harness.sessions import SANITIZED

needs_real_memory = pytest.mark.skipif(SANITIZED, reason="the sanitizers keep what was freed, and more")
FAR = 60  # seconds that nothing here waits for: what doesn't hang is much faster, also on a busy machine


@pytest.fixture
def client(client):
    client.env["INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES"] = str(100 << 20)
    return client


# ---- C-071: a background child holds the pipe ----


def test_c071_a_background_child_does_not_hold_the_job(client):
    began = time.monotonic()
    job = Job(client, "sleep 61 & echo started; exit 4")
    assert job.finish() == (4, "started\n", "")
    assert time.monotonic() - began < 30
    runs("sleep", "61")  # the background child was not ended
    job.kill()
    assert not alive("sleep", "61")


def test_c071_late_output_blocks_nobody(client):
    job = Job(client, "(for i in 1 2 3; do sleep 0.3; echo late$i; done; sleep 62) & echo first")
    assert job.finish()[:2] == (0, "first\n")
    assert run(client, "echo next") == (0, "next\n", "")
    runs("sleep", "62")  # what the background child has written was thrown away, and has not ended it
    job.kill()


def test_c071_output_before_the_end_is_there_in_order(client):
    code, out, _ = run(client, "(sleep 0.2; echo one) & sleep 1; echo two; sleep 63 & exit 0")
    assert (code, out) == (0, "one\ntwo\n")
    client.stop()
    assert not alive("sleep", "63")


# ---- C-073: kill ----


@pytest.mark.parametrize(
    "command, sleeps, ends",
    [
        ("trap '' TERM; sleep 64 & wait; sleep 65", ("64", "65"), {("killed", -9)}),
        ("sleep 66 & exit 0", ("66",), {("completed", 0), ("killed", -15)}),
        ("setsid sleep 67 & sleep 68", ("67", "68"), {("killed", -15)}),
        ("sh -c 'sleep 69' | cat", ("69",), {("killed", -15)}),
        ("setsid sh -c 'trap \"\" TERM HUP; sleep 70; sleep 71' & sleep 72", ("70", "71", "72"), {("killed", -15)}),
    ],
)
def test_c073_kill_reaches_everything(client, command, sleeps, ends):
    """Slow: what ignores TERM has 5 s before it is killed."""
    job = Job(client, command)
    processes.wait_until(lambda: alive("sleep", sleeps[0]), "the job to be at work")
    began = time.monotonic()
    answer = job.kill()
    assert time.monotonic() - began < 15  # 7 s are promised
    assert set(answer) == {"seq", "stdout", "stderr"}
    assert not [sleep for sleep in sleeps if alive("sleep", sleep)]
    job.finish()
    assert (job.end["state"], job.end["exit_code"]) in ends
    no_keepers()
    assert set(job.kill()) == {"seq", "stdout", "stderr"}  # again, of one that is gone


def test_c073_kill_lets_the_job_clean_up(client):
    job = Job(client, "trap 'echo cleaned; exit 3' TERM; trap 'echo hup' HUP; echo ready; while :; do sleep 0.05; done")
    while "ready" not in job.out:
        job.wait()
    job.kill()
    code, out, _ = job.finish()
    assert (code, out, job.end["state"]) == (3, "ready\ncleaned\n", "killed")


# ---- C-074, C-075: answers that are lost ----


def test_c074_the_last_answer_can_be_had_again(client):
    job = Job(client, "echo out; exit 7")
    before = 0
    while not job.end:
        before = job.seq
        job.wait()
    last = {"state": "completed", "exit_code": 7, "stdout": job.end["stdout"], "stderr": ""}
    no_keepers()
    for _ in range(3):
        again = job.call("poll", ack=before)
        assert {key: again[key] for key in last} == last
    assert job.call("poll", ack=again["seq"])["stdout"] == ""
    for ack in (0, before, again["seq"] + 5):
        again = job.call("wait", ack=ack)
        assert (again["state"], again["exit_code"], again["stdout"]) == ("completed", 7, "")


def test_c074_also_after_the_server_was_replaced(client):
    job = Job(client, "echo out; exit 7")
    processes.wait_until(lambda: keepers() == [], "the job to end")
    from harness.server import kill_servers

    assert kill_servers()
    assert (job.poll()["stdout"], job.end["exit_code"]) == ("out\n", 7)


def test_c075_numbers_and_repeats(client):
    job = Job(client, "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.2; done", stdin_open=True)
    first = job.call("wait", ack=0, timeout=20)
    assert first["seq"] == 1
    again = processes.wait_until(lambda: (now := job.call("poll", ack=0))["stdout"] != first["stdout"] and now, "more output")
    assert again["seq"] >= 2 and again["stdout"].startswith(first["stdout"])
    assert job.call("poll", ack=-1)["stdout"].startswith(again["stdout"])
    rest = job.call("poll", ack=1)  # what the second brought beyond the first is not acknowledged
    assert (first["stdout"] + rest["stdout"]).startswith(again["stdout"])
    job.seq, job.out = rest["seq"], first["stdout"] + rest["stdout"]
    job.write("x")
    time.sleep(0.3)
    job.write("y")
    job.close()
    assert job.finish()[:2] == (0, "".join(f"{i}\n" for i in range(1, 10)))


def test_c075_a_too_large_number_clears_what_was_given(client):
    job = Job(client, "echo a; read x; echo b", stdin_open=True)
    assert job.call("wait", ack=0)["stdout"] == "a\n"
    assert job.call("poll", ack=10**9)["stdout"] == ""
    job.seq = 2
    job.write("\n")
    assert job.finish()[:2] == (0, "b\n")


def test_c075_every_other_answer_is_lost(client):
    job = Job(client, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")
    while not job.end:
        job.call("poll")  # lost
        job.poll()
    assert job.out == "".join(f"line {i}\n" for i in range(3000))


# ---- C-076, C-077: much output ----


def test_c076_megabytes(client):
    job = Job(client, "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' e >&2")
    while not job.end:
        answer = job.wait()
        assert len(answer["stdout"]) <= 1 << 20 and len(answer["stderr"]) <= 1 << 20
    assert (job.end["state"], job.end["exit_code"]) == ("completed", 0)
    assert (job.out, job.err) == ("x" * 3000000, "e" * 3000000)


def test_c076_nothing_new_over_four_unacknowledged_megabytes(client):
    job = Job(client, "head -c 9000000 /dev/zero | tr '\\0' x")
    processes.wait_until(lambda: len(job.call("poll", ack=0)["stdout"]) >= 4 << 20, "four megabytes")
    assert len(job.call("poll", ack=0)["stdout"]) < 6 << 20
    assert job.call("poll", ack=0)["state"] == "running"
    job.seq = 0
    code, out, _ = job.finish()
    assert (code, len(out)) == (0, 9000000)


def resident(pids):
    return max(int(status(pid)["VmHWM"].split()[0]) for pid in pids) / 1024


@needs_real_memory
def test_c077_a_flood_that_nobody_reads(client):
    """Slow: 100 MiB are printed."""
    job = Job(client, "exec yes flood")
    keeper = keepers()[0].pid
    processes.wait_until(lambda: int(status(keeper)["VmRSS"].split()[0]) > 100 << 10, "100 MiB to be held", 60)
    time.sleep(1)
    assert resident([keeper]) < 230 and resident(processes.servers()) < 16
    began = time.monotonic()
    job.kill()
    assert time.monotonic() - began < 20
    assert not alive("yes", "flood")
    job.finish()
    assert (job.end["state"], job.end["exit_code"]) == ("killed", -15)
    no_keepers()


@needs_real_memory
@pytest.mark.parametrize("byte", ["x", "\\001", "\\377"])
def test_c077_memory_at_the_worst(client, byte):
    """Both streams full, and as much unacknowledged as may be: 230 MB are promised, whatever the bytes."""
    flood = f"tr '\\0' '{byte}' </dev/zero"
    job = Job(client, f"{flood} & exec {flood} >&2")
    keeper = keepers()[0].pid
    processes.wait_until(lambda: int(status(keeper)["VmRSS"].split()[0]) > 200 << 10, "both streams to be full", 120)
    before = 0
    while (got := len(job.call("poll", ack=0)["stdout"])) > before:
        before = got
    assert before > 500000
    assert int(status(keeper)["VmHWM"].split()[0]) * 1024 < 230e6
    job.kill()


@needs_real_memory
def test_c077_memory_of_a_job_that_is_read_as_it_writes(client):
    job = Job(client, "i=0; while [ $i -lt 100 ]; do head -c 300000 /dev/zero | tr '\\0' x; sleep 0.02; i=$((i+1)); done; sleep 1")
    keeper = keepers()[0].pid
    total = 0
    while total < 30_000_000:
        answer = job.call("wait", timeout=20)
        job.seq, total = answer["seq"], total + len(answer["stdout"])
    assert resident([keeper]) < 12
    assert job.finish()[0] == 0


@needs_real_memory
def test_c077_more_than_is_held_comes_whole(client):
    job = Job(client, "head -c 120000000 /dev/zero | tr '\\0' x; echo; echo end >&2")
    keeper = keepers()[0].pid
    time.sleep(1)
    total, errors = 0, ""
    while not job.end:
        answer = job.call("wait", timeout=20)
        job.seq = answer["seq"]
        job.end = answer if answer["state"] != "running" else None
        assert answer["stdout"].strip("x") in ("", "\n")
        total += len(answer["stdout"])
        errors += answer["stderr"]
        try:
            peak = resident([keeper])
        except (FileNotFoundError, KeyError):
            pass  # it has gone: the rest stands in its file
    assert (total, errors, job.end["exit_code"]) == (120000001, "end\n", 0)
    assert peak < 230


# ---- C-078: characters ----


def test_c078_split_characters_and_nuls(client):
    job = Job(client, "printf 'a\\303'; sleep 1; printf '\\251b\\000c\\377\\342\\202'")
    while not job.end:
        job.wait(timeout=0.3)
    assert job.out == "aéb\0c\ufffd\ufffd"


def test_c078_half_a_character_is_no_news(client):
    job = Job(client, "printf '\\342\\202'; sleep 1; printf '\\254'; sleep 1")
    assert job.call("wait", timeout=20)["stdout"] == "€"
    assert job.finish()[0] == 0


def test_c078_half_a_character_at_the_end_of_a_stream(client):
    assert run(client, "printf '\\342\\202'; exec >&-; sleep 0.3") == (0, "\ufffd", "")


def test_c078_bytes_as_characters(client):
    job = Job(client, "printf '\\000\\177\\200\\377'; cat", encoding="latin-1", input="\0é\xff")
    assert job.finish()[:2] == (0, "\0\x7f\x80\xff\0é\xff")


# ---- C-079: input ----


@pytest.mark.parametrize(
    "command, n, out",
    [("sleep 1; echo done", 300000, "done\n"), ("head -c 1", 1000000, "z"), ("wc -c", 5000000, "5000000\n"), ("wc -c", 0, "0\n")],
)
def test_c079_input(client, command, n, out):
    began = time.monotonic()
    job = Job(client, command, input="z" * n)
    assert time.monotonic() - began < 30
    assert job.finish()[:2] == (0, out)


def test_c079_input_and_open(client):
    job = Job(client, "cat", input="abc", stdin_open=True)
    while job.out != "abc":
        job.wait()
    job.write("d" * 200000)
    job.write("\0é")
    job.close()
    job.close()
    assert job.finish()[:2] == (0, "abc" + "d" * 200000 + "\0é")


@pytest.mark.parametrize("latin1", [False, True])
def test_what_is_not_read_before_the_end_is_counted(client, latin1):
    """In the pipe or on the way to it; what was read is not."""
    job = Job(client, "head -c 10 >&2; exec <&-; sleep 0.2; exit 3", stdin_open=True, **({"encoding": "latin-1"} if latin1 else {}))
    job.write("0123456789" + "é" * 100000)
    assert job.finish()[::2] == (3, "0123456789")
    assert job.end["stdin_discarded"] == (100000 if latin1 else 200000)
    no_keepers()
    assert job.write("é")["stdin_discarded"] == (100001 if latin1 else 200002)
    whole = Job(client, "cat", input="all of it")
    assert whole.finish()[:2] == (0, "all of it") and "stdin_discarded" not in whole.end


def test_what_ended_takes_nothing_once_it_is_closed(client):
    job, never = Job(client, "true", stdin_open=True), Job(client, "true")
    job.finish(), never.finish()
    no_keepers()
    job.close()
    for one in (job, never):
        with pytest.raises(RpcError, match="has been closed"):
            one.write("lost")
        assert "stdin_discarded" not in one.poll()


def test_c079_no_stdin(client):
    assert run(client, "cat; readlink /proc/self/fd/0")[:2] == (0, "/dev/null\n")


def test_c079_what_nobody_reads_is_bounded(client):
    job = Job(client, "sleep 73", stdin_open=True)
    data = "y" * (30 << 20)
    job.write(data)
    job.write(data)
    with pytest.raises(RpcError) as refused:
        job.write(data)
    assert refused.value.code == TOOLERR and "stdin" in refused.value.message
    job.kill()


def test_c079_writes_that_cannot_be_read(client):
    job = Job(client, "exec <&-; echo closed; sleep 1", stdin_open=True)
    while not job.out:
        job.wait()
    for i in range(1, 4):
        assert job.write("nobody reads this" * 10000)["stdin_discarded"] == i * 170000
    assert job.finish()[0] == 0 and job.end["stdin_discarded"] == 510000
    no_keepers()
    assert job.write("nor this")["stdin_discarded"] == 510008 == job.poll()["stdin_discarded"]
    closed = Job(client, "sleep 74")
    with pytest.raises(RpcError) as refused:
        closed.write("x")
    assert refused.value.code == TOOLERR and "stdin_open" in refused.value.message
    closed.kill()


# ---- C-082: exit codes ----


@pytest.mark.parametrize(
    "command, code",
    [("no-such-cmd", 127), ("/etc/passwd", 126), ("exit 0", 0), ("exit 300", 44), ("kill -9 $$", -9), ("exec sleep 0", 0)],
)
def test_c082_exit_codes(client, command, code):
    job = Job(client, command)
    got, _, err = job.finish()
    assert (got, job.end["state"]) == (code, "completed")
    if code in (126, 127):
        assert command in err


def batch(client, method, list_of_params):
    """Many calls in one: the results."""
    requests = [{"jsonrpc": "2.0", "id": i, "method": f"exec_remote_{method}", "params": params}
                for i, params in enumerate(list_of_params)]
    done = client.cli("exec", stdin=json.dumps(requests).encode(), timeout=240)
    assert done.returncode == 0, done
    return [answer["result"] for answer in sorted(json.loads(done.stdout), key=lambda answer: answer["id"])]


def test_c082_failures_in_a_row(client):
    pids = [started["pid"] for started in batch(client, "start", [{"command": "false"}] * 500)]
    ends = batch(client, "wait", [{"pid": pid, "ack_seq": 0, "timeout": FAR} for pid in pids])
    assert [(end["state"], end["exit_code"]) for end in ends] == [("completed", 1)] * 500
    no_keepers()


def test_what_was_closed_takes_nothing(client):
    """Whether the job runs still, has ended, or is kept on file: data that is lost is no success."""
    def refuses(job):
        with pytest.raises(RpcError) as refused:
            job.write("lost")
        return refused.value.code == TOOLERR and "has been closed" in refused.value.message

    job, other = Job(client, "cat; exec sleep 60", stdin_open=True), Job(client, "true", stdin_open=True)
    job.close()
    assert refuses(job)
    job.kill()
    assert refuses(job)
    other.finish()
    other.close()
    no_keepers()
    assert refuses(job)
    job.close()
    assert refuses(job) and job.wait()["state"] == "killed"


# ---- start failures ----


@pytest.mark.parametrize(
    "params, named",
    [
        ({"argv": ["/no/such/program"]}, "/no/such/program"),
        ({"argv": ["no-such-program"]}, "no-such-program"),
        ({"argv": ["/etc/passwd"]}, "/etc/passwd"),
        ({"argv": ["/"]}, "/"),
        ({"argv": [""]}, "not found"),
        ({"command": "true", "cwd": "/no/such/directory"}, "/no/such/directory"),
        ({"command": "true", "cwd": ""}, "directory ''"),
        ({"command": "true", "user": "nobody-of-that-name"}, "nobody-of-that-name"),
    ],
)
def test_a_job_that_cannot_start_leaves_nothing(client, params, named):
    with pytest.raises(RpcError) as refused:
        client.rpc("exec_remote_start", params)
    assert refused.value.code == TOOLERR and named in refused.value.message
    no_keepers()
    assert client.rpc("exec_remote_list") == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"argv": []},
        {"argv": "true"},
        {"argv": ["true"], "command": "true"},
        {"command": ["true"]},
        {"command": "tr\0ue"},
        {"command": "true", "input": 1},
        {"command": "true", "stdin_open": 1},
        {"command": "true", "env": {"": "x"}},
        {"command": "true", "env": {"A=B": "x"}},
        {"command": "true", "env": {"A": 1}},
        {"command": "true", "timeout": "1"},
        {"command": "true", "timeout": -1},
        {"command": "true", "encoding": "utf-16"},
        {"command": "true", "more": 1},
    ],
)
def test_params_are_checked(client, params):
    with pytest.raises(RpcError) as refused:
        client.rpc("exec_remote_start", params)
    assert refused.value.code == PARAMERR


def test_params_of_a_job_are_checked(client):
    job = Job(client, "sleep 75", stdin_open=True)
    for ended in (False, True):
        for method, params in [
            ("poll", {"pid": job.pid}),
            ("poll", {"pid": str(job.pid), "ack_seq": 0}),
            ("poll", {"pid": job.pid, "ack_seq": 0.5}),
            ("poll", {"pid": job.pid, "ack_seq": 0, "timeout": 1}),
            ("wait", {"pid": job.pid, "ack_seq": 0, "timeout": True}),
            ("write_stdin", {"pid": job.pid, "ack_seq": 0}),
            ("signal", {"pid": job.pid, "ack_seq": 0}),
        ]:
            with pytest.raises(RpcError) as refused:
                client.rpc(f"exec_remote_{method}", params)
            assert refused.value.code == PARAMERR, (method, params)
        job.kill()
        no_keepers()
    for pid in (0, -1, 1, 2**31, 2**52):
        with pytest.raises(RpcError) as refused:
            client.rpc("exec_remote_poll", {"pid": pid, "ack_seq": 0})
        assert refused.value.code == TOOLERR


# ---- C-086: another user ----


def test_c086_another_user(client, user):
    code, out, err = run(client, "id -u; id -G; echo $HOME; cat /etc/shadow; cat /proc/self/oom_score_adj", user=user.name)
    lines = out.splitlines()
    assert lines[0] == str(user.uid) and "0" not in lines[1].split()
    assert str(user.home) == lines[2] and "ermission" in err
    assert lines[3] == "1000"
    assert run(client, "id -u", user=str(user.uid))[1] == f"{user.uid}\n"
    numbers = {"uid": user.uid, "gid": user.gid, "groups": [4321], "home": "/elsewhere"}
    assert run(client, "id -u; id -G; echo $HOME", user=numbers)[1] == f"{user.uid}\n{user.gid} 4321\n/elsewhere\n"


def test_c086_unknown_or_empty(client):
    for name in ("", "u:g2", "no-such-user", "-1", "4294967295"):
        with pytest.raises(RpcError) as refused:
            client.rpc("exec_remote_start", {"command": "true", "user": name})
        assert refused.value.code == TOOLERR


def test_c086_own_user_of_a_server_that_is_not_root(new_client, user):
    client = new_client(user=user.uid)
    assert run(client, "id -u", user=user.name) == (0, f"{user.uid}\n", "")
    with pytest.raises(RpcError) as refused:
        client.rpc("exec_remote_start", {"command": "true", "user": "root"})
    assert refused.value.code == TOOLERR and "root" in refused.value.message
    job = Job(client, "sleep 76", user=user.name)
    job.kill()
    assert not alive("sleep", "76")


def test_c086_a_job_of_another_user_is_killed(client, user):
    job = Job(client, "setsid sleep 77 & exec sleep 78", user=user.name)
    processes.wait_until(lambda: alive("sleep", "77"), "the job to be at work")
    job.kill()
    assert not alive("sleep", "77") and not alive("sleep", "78")
