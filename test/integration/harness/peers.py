"""Programs of others that the tests talk to: test/peers/pins, put in place by test/peers/install."""
import hashlib
import os
from pathlib import Path

from harness.needs import Unavailable

REPO = Path(__file__).resolve().parents[3]


def find(name):
    """Where the packages of a folder of the pins are; None where they are not installed."""
    lines = [line for line in (REPO / "test/peers/pins").read_text().splitlines(True) if line.startswith(f"{name} ")]
    assert lines, f"no such folder among the pins: {name}"
    found = Path(os.environ.get("TOOLBOX_CACHE") or REPO / "build/cache").resolve() / "peers"
    found /= f"{name}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:12]}"
    return found if (found / "complete").exists() else None


def folder(name):
    """The same; raises Unavailable where they are not installed."""
    found = find(name)
    if not found:
        raise Unavailable(f"{name} of test/peers/pins is not installed: scripts/setup peers")
    return found
