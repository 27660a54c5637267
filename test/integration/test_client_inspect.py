"""The sandboxes that clients/python brings to inspect_ai: the checks that it has itself for such providers, with the real package."""
import json
import os
import subprocess

from harness import peers
from harness.containers import REPO
from harness.machine import HANG

CHECKS = """
import asyncio, inspect, json, sys
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from toolbox_sandbox import inspect_provider

provider = registry_find_sandboxenv("toolbox_local")


async def outcome(check):
    await provider.task_init("task", None)
    made = await provider.sample_init("task", None, {})
    try:
        await check(made["default"])
        return None
    except Exception as error:
        return repr(error)
    finally:
        await provider.sample_cleanup("task", None, made, False)
        await provider.task_cleanup("task", None, True)


checks = {name: check for name, check in vars(self_check).items() if name.startswith("test_") and inspect.iscoroutinefunction(check)}
json.dump({name: asyncio.run(outcome(check)) for name, check in checks.items()}, sys.stdout)
"""

# What root may write, it writes, as with the provider `local`; and a sample's directory is its own user's.
NOT_AS_ROOT = {"test_write_text_file_without_permissions", "test_write_binary_file_without_permissions"}
NOT_LOCALLY = {"test_exec_as_user"}

# Where inspect_ai looks for tools: kept between tasks, as with its own.
KEPT = ["--dir", "/var/tmp/.da7be258e003d428", "--name", "inspect-sandbox-tools"]


def test_its_own_checks(client, workdir):
    python = peers.folder("venv-inspect") / "bin/python"
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": client.binary, "PYTHONPATH": str(REPO / "clients/python/src"), "HOME": str(workdir)}
    kept = os.path.exists(KEPT[1])
    try:
        done = subprocess.run([python, "-c", CHECKS], env=env, capture_output=True, text=True, timeout=HANG * 5)
    finally:
        client.cli("connect", "--stop")
        if not kept:
            client.cli("eject", "-q", *KEPT, "local:")
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout)
    failed = {name: why for name, why in outcomes.items() if why and name not in NOT_LOCALLY | (NOT_AS_ROOT if os.getuid() == 0 else set())}
    assert len(outcomes) >= 40 and not failed, failed
