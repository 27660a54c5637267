"""docs/getting-started.md, step by step as its three readers do it: in a real container, with the real package, with the real inspect_ai.

Also the blocks run that say "not run … test_getting_started.py runs it"; those without that are somebody else's.
"""
import os
import re
import shutil
import subprocess

import pytest

from harness import containers, packages, peers, roots
from harness.containers import REPO
from harness.machine import HANG
from test_docs import BLOCK, NEXT

PAGE = REPO / "docs/getting-started.md"


def steps(section):
    """(command or script, what it has to print or None) of a section."""
    text = PAGE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    for found in BLOCK.finditer(text):
        if found["why"] and "test_getting_started.py" not in found["why"]:
            continue
        if found["kind"] == "sh":
            yield found["fenced"], None
        elif found["kind"] == "console":
            for part in re.split(r"^\$ ", found["fenced"], flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                yield command, output.strip("\n")


def check(section, folder, env, name="web"):
    wanted = [(command.replace("docker:web", f"docker:{name}"), output and output.replace("docker:web", f"docker:{name}")) for command, output in steps(section)]
    assert wanted, f"{PAGE.name} has no section {section!r} with steps"
    script = "\n".join(["set -e", *(f"{command}\necho '{NEXT}'" for command, _ in wanted)])
    # the import of inspect_ai alone takes a minute beside a load
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=4 * HANG, stdin=subprocess.DEVNULL)
    outputs = done.stdout.split(NEXT + "\n")
    for (command, output), came in zip(wanted, outputs):
        if output is not None:
            pattern = ".*".join(map(re.escape, output.split("…")))
            assert re.fullmatch(pattern, came.strip("\n"), re.S), f"{command!r} printed {came!r} and {done.stderr[-2000:]!r}"
    assert (done.returncode, len(outputs)) == (0, len(wanted) + 1), done


@pytest.fixture
def env(client, workdir):
    """The program on the PATH, and the package where Python finds it."""
    (workdir / "bin").mkdir()
    (workdir / "bin/toolbox").symlink_to(client.binary)
    yield {**os.environ, **client.env, "PATH": f"{workdir}/bin:{os.environ['PATH']}", "PYTHONPATH": str(REPO / "clients/python/src"), "PYTHONDONTWRITEBYTECODE": "1",
           "HOME": str(workdir)}
    client.cli("connect", "--stop")


@pytest.fixture
def web(docker, env):
    """The name of a running container, and what leads there."""
    container = docker.start(roots.get("busybox"), containers.Options())
    yield container.name, {**docker.env, **env}
    subprocess.run([env["PATH"].split(":")[0] + "/toolbox", "connect", "--stop"], env={**docker.env, **env}, capture_output=True, timeout=HANG)
    container.destroy()


@pytest.mark.parametrize("section", ["An agent in Python", "Containers in operation"])
def test_in_a_container(workdir, web, section):
    name, env = web
    check(section, workdir, env, name)


def test_an_evaluation(workdir, env):
    inspect = peers.folder("venv-inspect") / "bin"
    assert (inspect / "inspect").exists()
    # as pip would leave it: the package with its entry points among those of the environment
    installed = workdir / "installed"
    shutil.copytree(REPO / "clients/python/src", installed)
    info = installed / "toolbox_sandbox-0.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toolbox-sandbox\nVersion: 0.0.0\n")
    (info / "entry_points.txt").write_text("[inspect_ai]\ntoolbox_sandbox = toolbox_sandbox.inspect_provider\n")
    env = {**env, "PATH": f"{inspect}:{env['PATH']}", "PYTHONPATH": str(installed), "INSPECT_LOG_DIR": str(workdir / "logs"), "NO_COLOR": "1", "COLUMNS": "100"}
    check("An evaluation", workdir, env)


def test_the_installation_is_what_is_made(toolbox, tmp_path_factory):
    """The commands of README.md and the page name files that there are."""
    dist = packages.of(toolbox, tmp_path_factory.mktemp("dist"))
    text = (REPO / "README.md").read_text() + PAGE.read_text()
    names = re.findall(r"dist/([\w.-]+\.(?:tgz|deb|tar|sh|whl))", text)
    assert len(names) >= 4
    for name in names:
        assert packages.one(dist, name.replace("amd64", packages.ARCH).replace("x64", packages.CPU)), name
