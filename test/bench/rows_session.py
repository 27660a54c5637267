"""Sessions: latency, throughput, memory, many of them, and whether every byte arrives."""
import os
import random
import re
import select
import signal
import time

from figure import EXIT0, compare, count_wrong, figures, limit
from lab import Broken, Times, children, memory_kb
from traffic import Lines, Runs

FIGURES, figure = figures("session")
CAP = 1 << 20
OMITTED = re.compile(r"\n?\[(\d+) bytes omitted\]\n")


@figure("echo hi by bash_session, idle_timeout 0.5: median", "echo hi by bash_session: 99th percentile",
        "echo hi by bash_session_run: median", "echo hi by bash_session_run: 99th percentile")
def latency(lab, typed_median, typed_p99, run_median, run_p99):
    place = lab.place()
    typed = lab.request("bash_session", session_name=place.session(), wait_for_output=5, idle_timeout=0.5, input="echo hi\n")
    run = lab.request("bash_session_run", session_name=place.session(), command="echo hi")
    nothing, t, r = place.rounds(1000, place.nothing(), place.exec(typed, expect='"result":"hi\\n'),
                                 place.exec(run, expect='"output":"hi\\n"'))
    for median, p99, times in ((typed_median, typed_p99, t), (run_median, run_p99, r)):
        limit(median, times.median, "s", 0.010, nothing.median, EXIT0)
        limit(p99, times.percentile(99), "s", 0.050, nothing.percentile(99), f"{EXIT0}, the same percentile")
        median.least = times.least / nothing.least


@figure("2,000 runs of echo $i in a row: wrong answers")
def own_answers(lab, row):
    place = lab.place()
    session, wrong = place.session(), 0
    for i in range(2000):
        answer = place.run(session, f"i={i}; echo $i")
        wrong += [answer[key] for key in ("state", "exit_code", "output", "omitted_bytes")] != ["completed", 0, f"{i}\n", 0]
    count_wrong(row, wrong)


# ---- 100 MB ----

def account(text):
    """Bytes delivered and bytes said to be omitted, of an answer in ASCII."""
    notice = OMITTED.search(text)
    return len(text) - len(notice[0]) + int(notice[1]) if notice else len(text)


def read_by_run(place, session, path):
    answer = place.run(session, f"cat {path}", max_output_bytes=CAP)
    if answer["state"] != "completed" or (OMITTED.search(answer["output"]) or "x0")[1] != str(answer["omitted_bytes"]):
        raise Broken(f"cat of 100 MB: {answer['state']}, {answer['omitted_bytes']} bytes omitted")
    return account(answer["output"])


def read_by_reads(place, session, path):
    params = {"session_name": session, "wait_for_output": 5, "idle_timeout": 0.5, "max_output_bytes": CAP}
    size, text = path.stat().st_size, place.call("bash_session", **params, input=f"cat {path}\n")
    total = account(text)
    while text and total < size:
        text = place.call("bash_session", **params)
        total += account(text)
    return total


def timed(function, *args):
    start = time.monotonic()
    result = function(*args)
    return result, time.monotonic() - start


@figure("100 MB through bash_session_run, at most 1 MiB back", "100 MB through bash_session, read 1 MiB at a time",
        "100 MB ten times: bytes not accounted for", "keeper that has passed 1 GB, resident memory")
def flood(lab, run_row, reads_row, bytes_row, memory_row):
    place, path, astray = lab.place(), lab.big_file(), 0
    session, size = place.session(), path.stat().st_size
    seconds = {read_by_run: [], read_by_reads: [], lab.read_bare: []}
    for _ in range(5):
        for read, list_ in seconds.items():
            total, time_ = timed(read, place, session, path)
            astray += abs(size - total)
            list_.append(time_)
    by_run, by_reads, bare = [Times(list_) for list_ in seconds.values()]
    against = "a program that reads the same from a terminal of its own"
    compare(run_row, by_run, bare, against, 3.0)
    compare(reads_row, by_reads, bare, against, 3.0)
    count_wrong(bytes_row, astray)
    keeper, = children(place.server())
    try:
        limit(memory_row, memory_kb(keeper)[0], "KiB", 2048)
    except PermissionError as error:
        memory_row.note = f"not measured: {error}"


@figure("100 MB through bash_session_run, recorded")
def recorded(lab, row):
    place, path = lab.place(), lab.big_file()
    plain, tape = place.session(), place.session()
    times = {plain: [], tape: []}
    for _ in range(5):
        file = place.call("bash_session_record", session_name=tape)["path"]
        for session, list_ in times.items():
            list_.append(timed(read_by_run, place, session, path)[1])
        place.call("bash_session_record", session_name=tape, stop=True)
        for name in (file, f"{file}.1"):
            if os.path.exists(name):
                os.unlink(name)
    compare(row, Times(times[tape]), Times(times[plain]), "the same without, by turns", 1.2)


# ---- many sessions ----

@figure("run of echo hi while 200 sessions run sleep")
def many(lab, row):
    alone = crowded = None
    place = lab.place()
    for _ in range(3):
        request = lab.request("bash_session_run", session_name=place.session(), command="echo hi")
        command = place.exec(request, expect='"output":"hi\\n"')
        times, = place.rounds(150, command)
        alone = times + alone if alone else times
        for _ in range(200):
            place.call("bash_session", session_name=place.session(), wait_for_output=0, idle_timeout=0, input="sleep 1000\n")
        times, = place.rounds(150, command)
        crowded = times + crowded if crowded else times
        place.stop()
    compare(row, crowded, alone, "the same with that session alone, by turns", 1.5)


# ---- a server that is killed ----

def kill_and_wait(pid):
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    select.select([handle], [], [])
    os.close(handle)


def kill_servers(place, names):
    """Kills the server a hundred times, starting it anew each time; how often a session was missing afterwards."""
    missing = 0
    for _ in range(100):
        time.sleep(random.uniform(0, 0.03))
        kill_and_wait(place.server())
        missing += len(names - {session["session_name"] for session in place.call("bash_session_list")})
    return missing


@figure("kill -9 of the server 100 times in traffic: faults")
def kills(lab, row):
    place = lab.place()
    traffic = [Runs(place), Runs(place), Lines(place), Lines(place)]
    for t in traffic:
        t.start()
    try:
        wrong = kill_servers(place, {t.session for t in traffic})
    finally:
        faults = [t.end() for t in traffic]
    count_wrong(row, wrong + sum(faults), f"meanwhile {'; '.join(t.note() for t in traffic)}")
