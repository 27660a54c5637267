"""Real agents in front of a model that takes its time: none asks again. `make agents` runs it."""
import concurrent.futures
import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness.bridge import Bridge
from test_model_proxy_peers import AGENTS, AGENTS_PATH, answer, turn

TURN = threading.Lock()  # they start one after the other, and wait at the same time
START_S = 900


def late(make, seconds, held):
    """The first call is answered so late, the others at once."""
    def answered(params):
        if held:
            held.pop().release()
            time.sleep(seconds)
        return make(params)
    return answered


def end_below(folder):
    """What an agent leaves behind itself for the next time, such as Cline's hub."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder in Path(os.readlink(process / "cwd")).parents:
                os.kill(int(process.name), signal.SIGKILL)


def waits(toolbox, folder, name, seconds):
    """What went wrong, or None."""
    folder.mkdir()
    bridge = Bridge(toolbox, folder / "service")
    TURN.acquire()
    held = [TURN]
    try:
        answer(bridge)
        bridge.answers = {method: late(make, seconds, held) for method, make in bridge.answers.items()}
        turn(bridge, f"http://127.0.0.1:{bridge.port}", folder, name, seconds + START_S)
    except (AssertionError, subprocess.SubprocessError) as fault:
        return f"{name}, {seconds} s, asked {len(bridge.seen)} times: {str(fault)[-2000:]}"
    finally:
        if held:
            held.pop().release()
        bridge.end()
        end_below(folder)


@pytest.mark.parametrize("seconds", [30, 75, 130, 320], ids="{}s".format)
def test_agents_wait_for_a_late_answer(toolbox, workdir, seconds):
    present = [name for name in AGENTS if shutil.which(name.split()[0], path=AGENTS_PATH)]
    if not os.environ.get("TOOLBOX_TEST_AGENTS") or not present:
        pytest.skip("no agents: make agents installs them")
    with concurrent.futures.ThreadPoolExecutor(len(present)) as pool:
        told = list(pool.map(lambda number: waits(toolbox, workdir / str(number), present[number], seconds), range(len(present))))
    assert not any(told), "\n".join(filter(None, told))
