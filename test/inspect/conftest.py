"""The real inspect_ai in front of toolbox: its evaluations with its mock model, in its local sandbox and in containers.

Run by the Python that has inspect_ai, in a mount namespace of its own: the local sandbox puts its tools into /var/tmp.
"""
import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "integration"), str(Path(__file__).resolve().parents[2] / "clients/python/src")]

from harness import docker as docker_engine  # noqa: E402
from harness.containers import REPO, Unavailable  # noqa: E402

import engine  # noqa: E402
from samples import Sandbox  # noqa: E402

DROPIN = [str(REPO / "scripts/inspect-dropin"), "--release", str(REPO / "build"), "--venv", sys.prefix]


def pytest_addoption(parser):
    parser.addoption("--tools", choices=["toolbox", "reference"], default="toolbox",
                     help="whose tools the sandboxes get: ours, or the package's own")


def pytest_configure(config):
    config.addinivalue_line("markers", "fast: in the short suite, and for older versions of the package")


def pytest_collection_modifyitems(config, items):
    """The short suite makes no image of a whole distribution."""
    if config.getoption("markexpr") == "fast":
        items[:] = [item for item in items if "[debian]" not in item.name]


@pytest.fixture(scope="session", autouse=True)
def tools(request):
    """The name of the tools; those of the package are there again at the end."""
    assert not os.listdir("/var/tmp"), "not in a mount namespace of its own: use make inspect"
    fcntl.flock(os.open(sys.prefix, os.O_RDONLY), fcntl.LOCK_EX)  # one run at a time for an environment
    name = request.config.getoption("--tools")
    subprocess.run([*DROPIN, "install" if name == "toolbox" else "uninstall"], check=True, stdout=subprocess.PIPE)
    # Older versions have one server for all samples on this machine, and don't end it.
    os.environ["INSPECT_SANDBOX_TOOLS_DIR"] = "/var/tmp/server"
    yield name
    if os.path.exists("/var/tmp/server"):
        subprocess.run(["/var/tmp/.da7be258e003d428/inspect-sandbox-tools", "stop-server"], check=True)
    subprocess.run([*DROPIN, "uninstall"], check=True, stdout=subprocess.PIPE)


@pytest.fixture
def ours(tools):
    """For what the package's own tools do otherwise, or not at all: docs/compatibility.md says why."""
    if tools != "toolbox":
        pytest.skip("differs by decision")


@pytest.fixture(scope="session")
def docker():
    with tempfile.TemporaryDirectory() as folder:
        try:
            with docker_engine.runtime(folder) as runtime:
                engine.EngineSandbox.runtime = runtime
                yield runtime
        except Unavailable as reason:
            pytest.skip(str(reason))


def name_distribution(container):
    """inspect_ai refuses what it can't name."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("ID=alpine\nVERSION=0\n")
        file.flush()
        container.copy(file.name, "/etc/os-release")


@pytest.fixture
def containers(docker):
    """A sandbox of containers: containers(root, user=…): see engine.Plan."""

    def make(root="debian", **plan):
        if root == "busybox":
            plan = {"prepare": name_distribution, **plan}
        engine.EngineSandbox.plan = engine.Plan(root=root, **plan)
        return Sandbox("engine")

    return make


@pytest.fixture
def held(containers, docker, monkeypatch, tmp_path):
    """As containers, with everything over one connection to each."""
    monkeypatch.setenv("TOOLBOX_BINARY", str(REPO / "toolbox"))
    monkeypatch.setenv("TOOLBOX_DIR", str(tmp_path / "toolbox"))
    if "DOCKER_HOST" in docker.env:
        monkeypatch.setenv("DOCKER_HOST", docker.env["DOCKER_HOST"])

    def make(root="debian", **plan):
        containers(root, **plan)
        return Sandbox("held_engine")

    yield make
    subprocess.run([REPO / "toolbox", "connect", "--stop"], check=True)


@pytest.fixture(params=["local", "debian", "busybox"])
def sandbox(request):
    """Each kind of sandbox: this machine, and containers with and without bash."""
    if request.param == "local":
        return Sandbox("local")
    return request.getfixturevalue("containers")(request.param)


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    """The package polls no more often than every five seconds."""
    with contextlib.suppress(ImportError):  # older than exec_remote()
        from inspect_ai.util._sandbox import exec_remote

        monkeypatch.setattr(exec_remote, "MIN_POLL_INTERVAL", 0.1, raising=False)
