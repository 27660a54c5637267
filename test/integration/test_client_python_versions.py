"""clients/python with other interpreters than the one that runs this."""
import glob
import os
import shutil
import subprocess

import pytest

from harness.containers import REPO
from harness.machine import HANG

PACKAGE = REPO / "clients/python"


@pytest.mark.parametrize("minor", range(10, 15))
def test_other_interpreters(client, workdir, minor):
    name = f"python3.{minor}"
    found = [*glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/{name}")), shutil.which(name)]
    python = next((path for path in found if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0), None)
    if not python:
        pytest.skip(f"there is no {name}")
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": str(client.binary), "PYTHONPATH": str(PACKAGE / "src")}
    argv = [python, "-W", "error", PACKAGE / "test/surface.py", "local:", "--dir", workdir / "there"]
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=2 * HANG)
    finally:
        client.cli("connect", "--stop")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
