"""A sample of 50 tool calls, and programs that are run without tools, timed; for test/bench/peers.py, which names the file that the times
go to."""
import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from inspect_ai.tool import bash_session, text_editor
from inspect_ai.util import sandbox

IN_A_ROW, AT_ONCE = 500, 50


def report(**times):
    path = Path(os.environ["BENCH_REPORT"])
    path.write_text(json.dumps({**json.loads(path.read_text() or "{}"), **times}))


async def calls(n):
    shell, editor, begin = bash_session(), text_editor(), time.monotonic()
    await shell(action="type_submit", input="cd /tmp")
    first = time.monotonic() - begin
    for number in range(12):
        await editor(command="create", path=f"/tmp/f{number}", file_text=f"{number}\nx\n")
        assert f"{number}\n" in await shell(action="type_submit", input=f"cat f{number}")
        await editor(command="str_replace", path=f"/tmp/f{number}", old_str="x", new_str="y")
        assert "y\n" in await shell(action="type_submit", input=f"cat f{number}")
    assert "12\n" in await shell(action="type_submit", input="ls f* | wc -l")
    return {"first": first, "sample": time.monotonic() - begin}


async def programs(n):
    assert (await sandbox().exec(["true"])).success  # what a sample does once
    begin = time.monotonic()
    for _ in range(IN_A_ROW):
        assert (await sandbox().exec(["true"])).success
    row = time.monotonic() - begin
    assert all(done.success for done in await asyncio.gather(*(sandbox().exec(["true"]) for _ in range(AT_ONCE))))
    return {"row": row, "at_once": time.monotonic() - begin - row}


def test_fifty_calls(containers):
    [times] = containers("debian").run(calls)
    report(**times)


@pytest.mark.parametrize("body", [calls, programs])
def test_over_a_connection(held, body):
    [times] = held("debian").run(body)
    report(**{f"held_{name}": seconds for name, seconds in times.items()})


def test_programs(containers):
    [times] = containers("debian").run(programs)
    report(**times)
