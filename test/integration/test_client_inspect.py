"""The sandboxes that clients/python brings to inspect_ai: the checks that it has itself for such providers, with the real package."""
import json
import os
import subprocess

import pytest

from harness import kube, peers
from harness.containers import REPO
from harness.machine import HANG

CHECKS = """
import asyncio, inspect, json, sys, types
from inspect_ai.util import SandboxEnvironment, sandboxenv
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from toolbox_sandbox import inspect_provider


@sandboxenv(name="k8s")
class Pods(SandboxEnvironment):
    # what is used of inspect_k8s_sandbox's
    _config = types.SimpleNamespace(default_user=None)
    _pod = types.SimpleNamespace(info=types.SimpleNamespace(name="pod", namespace="ns", context_name=None, default_container_name="main"))

    @classmethod
    async def task_init(cls, *_): pass

    @classmethod
    async def task_cleanup(cls, *_): pass

    @classmethod
    async def sample_init(cls, *_): return {"default": cls()}

    @classmethod
    async def sample_cleanup(cls, *_): pass

    async def exec(self, *_, **__): raise NotImplementedError

    read_file = write_file = exec


provider = registry_find_sandboxenv(sys.argv[1])
inspect_provider.ToolboxK8sSandboxEnvironment.placement = lambda self: ["--dir", sys.argv[2]]


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


async def test_a_directory_that_is_missing_is_no_missing_user(sandbox):
    result = await sandbox.exec(["true"], cwd="/nowhere/of/user", user="root")
    assert not result.success and "/nowhere/of/user" in result.stderr, result


checks = {name: check for name, check in vars(self_check).items() if name.startswith("test_") and inspect.iscoroutinefunction(check)}
checks["test_a_directory"] = test_a_directory_that_is_missing_is_no_missing_user
json.dump({name: asyncio.run(outcome(check)) for name, check in checks.items()}, sys.stdout)
"""

# What root may write, it writes, as with the provider `local`; and a sample's directory is its own user's.
NOT_AS_ROOT = {"test_write_text_file_without_permissions", "test_write_binary_file_without_permissions"}
NOT_LOCALLY = {"test_exec_as_user"}

# Where inspect_ai looks for tools: kept between tasks, as with its own.
KEPT = ["--dir", "/var/tmp/.da7be258e003d428", "--name", "inspect-sandbox-tools"]


@pytest.mark.parametrize("provider", ["toolbox_local", "toolbox_k8s"])
def test_its_own_checks(client, workdir, provider):
    python = peers.folder("venv-inspect") / "bin/python"
    (workdir / "kubectl").write_text(kube.STAND_IN)
    (workdir / "kubectl").chmod(0o755)
    (workdir / "pods").write_text(f"ns/pod/main env --chdir={workdir}\n")
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": client.binary, "PYTHONPATH": str(REPO / "clients/python/src"), "HOME": str(workdir),
           "PODS": str(workdir / "pods"), "PATH": f"{workdir}:{os.environ['PATH']}"}
    kept = os.path.exists(KEPT[1])
    try:
        done = subprocess.run([python, "-c", CHECKS, provider, workdir / "there"], env=env, capture_output=True, text=True, timeout=HANG * 5)
    finally:
        client.cli("connect", "--stop")
        if not kept:
            client.cli("eject", "-q", *KEPT, "local:")
        if provider == "toolbox_k8s":
            client.cli("eject", "-q", "--dir", workdir / "there", "local:")
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout)
    failed = {name: why for name, why in outcomes.items() if why and name not in NOT_LOCALLY | (NOT_AS_ROOT if os.getuid() == 0 else set())}
    assert len(outcomes) >= 40 and not failed, failed
