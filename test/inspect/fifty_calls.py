"""A sample of 50 tool calls, timed; for test/bench/peers.py, which names the file that the times go to."""
import json
import os
import time
from pathlib import Path

from inspect_ai.tool import bash_session, text_editor


def test_fifty_calls(containers):
    async def body(n):
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

    sandbox = containers("debian")
    [times] = sandbox.run(body)
    Path(os.environ["BENCH_REPORT"]).write_text(json.dumps(times))
