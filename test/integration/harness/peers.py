"""Programs of others that the tests talk to: test/peers/pins, put in place by test/peers/install."""
import hashlib
import os
from pathlib import Path

import pytest

from harness.containers import REPO


def folder(name):
    """Where the packages of a folder of the pins are. Skips the test where they are not installed."""
    lines = [line for line in (REPO / "test/peers/pins").read_text().splitlines(True) if line.startswith(f"{name} ")]
    assert lines, f"no such folder among the pins: {name}"
    found = Path(os.environ.get("TOOLBOX_CACHE") or REPO / "build/cache").resolve() / "peers"
    found /= f"{name}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:12]}"
    if not (found / "complete").exists():
        pytest.skip(f"{name} of test/peers/pins is not installed: scripts/setup peers")
    return found
