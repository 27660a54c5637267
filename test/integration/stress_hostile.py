"""A thousand ejections and injections as root beside each attack of harness/hostile.py. Not collected by itself: name the
file to run it (`make stress` does).

    /usr/bin/python3 -m pytest -p no:cacheprovider -v test/integration/stress_hostile.py
"""
import os

import pytest

from harness import hostile, roots
from harness.containers import Options
from harness.injection import Injector, prefix
from harness.users import needs_root

ROUNDS = int(os.environ.get("TOOLBOX_STRESS_ROUNDS", 1000))


@needs_root
@pytest.mark.parametrize("how", hostile.RACES)
def test_no_attack_succeeds_once(toolbox, namespaces, how):
    container = namespaces.start(roots.get("debian"), Options())
    try:
        hostile.race(Injector(toolbox), container, f"exec:{prefix(container)}", how, ROUNDS)
    finally:
        container.destroy()
