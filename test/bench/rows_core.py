"""Size, start-up, the server and its keepers at rest."""
import os
import subprocess
import time

from figure import EXIT0, compare, figures, limit
from lab import HANG, children, memory_kb, switches

FIGURES, figure = figures("core")
SLEEP = "sleep(1), an idle program"


@figure("size of the binary")
def size(lab, row):
    limit(row, os.path.getsize(lab.toolbox), "bytes", 1_048_576, os.path.getsize(lab.exit0), EXIT0)


@figure("exec version", "exec remote_version, server up")
def calls(lab, version, remote):
    place = lab.place()
    place.server()
    nothing, v, r = place.rounds(1500, place.nothing(),
                                 place.exec(lab.request("version"), expect='"result"'),
                                 place.exec(lab.request("remote_version"), expect='"result"'))
    compare(version, v, nothing, EXIT0, 1.35)
    compare(remote, r, nothing, EXIT0, 2.0)


@figure("exec remote_version that has to start the server")
def first_call(lab, row):
    place = lab.place()
    first, nothing = place.rounds(200, place.exec(lab.request("remote_version"), expect='"result"',
                                                  after=f"{lab.toolbox} stop-server >/dev/null"), place.nothing())
    compare(row, first, nothing, EXIT0, 6)


@figure("idle server, resident memory", "idle keeper, private memory (the largest of five)",
        "idle server and five keepers, wake-ups in 10 s")
def idle(lab, server_row, keeper_row, wakeups_row):
    place = lab.place()
    for _ in range(5):
        place.session()
    server = place.server()
    keepers = children(server)
    with subprocess.Popen(["sleep", str(HANG)]) as sleep:
        time.sleep(1)  # until the shells have come to rest
        resident, private = memory_kb(sleep.pid)
        sleep.kill()
    try:
        limit(server_row, memory_kb(server)[0], "KiB", 450, resident, SLEEP)
        limit(keeper_row, max(memory_kb(pid)[1] for pid in keepers), "KiB", 300, private, f"{SLEEP}, private as well")
    except PermissionError as error:
        server_row.note = keeper_row.note = f"not measured: {error}"
    before = sum(switches(pid) for pid in [server, *keepers])
    time.sleep(10)
    limit(wakeups_row, sum(switches(pid) for pid in [server, *keepers]) - before, "", 0)
