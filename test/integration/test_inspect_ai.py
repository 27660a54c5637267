"""A fast part of the tests with the real inspect_ai (test/inspect; all of them: make inspect)."""
import os
import subprocess

from harness import peers
from harness.containers import REPO

SECONDS = 400


def test_the_real_client(toolbox):
    peers.folder("venv-inspect")
    command = [REPO / "test/inspect/run", "-m", "fast", "--show-capture=no"]
    done = subprocess.run(command, env={**os.environ, "TOOLBOX_BIN": str(toolbox)}, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
