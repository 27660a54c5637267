"""examples/: adapters to agent frameworks, each with the real package and a model whose lines are written."""
import json
import os
import shutil
import subprocess

import pytest

from harness import peers, typescript, web
from harness.containers import REPO
from harness.machine import HANG

ADAPTERS = sorted(path.stem for path in (REPO / "examples").glob("*.py"))


def run(argv, client, workdir, **env):
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": str(client.binary), "HOME": str(workdir), **env}
    try:
        done = subprocess.run(argv, env=env, cwd=workdir, capture_output=True, text=True, timeout=HANG * 2)
    finally:
        client.cli("connect", "--stop")
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_python_framework(adapter, client, workdir):
    python = peers.folder("python-adapters") / "bin/python"
    if adapter == "openai_computer":
        web.browser()
    path = os.pathsep.join(map(str, (REPO / "clients/python/src", REPO / "examples")))
    run([python, REPO / f"test/adapters/{adapter}_test.py", workdir], client, workdir, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")


def test_the_ai_sdk(client, workdir):
    node, packages = typescript.node(), peers.folder("node-adapters") / "node_modules"
    typescript.install_package(workdir)
    for package in packages.iterdir():
        if not package.name.startswith("."):
            (workdir / "node_modules" / package.name).symlink_to(package)
    for source in (REPO / "examples/ai_sdk.ts", REPO / "test/adapters/ai_sdk_test.ts"):
        shutil.copy(source, workdir)
    options = {**typescript.OPTIONS, "rewriteRelativeImportExtensions": True, "skipLibCheck": True}
    (workdir / "tsconfig.json").write_text(json.dumps({"compilerOptions": options}))
    typescript.tsc("-p", ".", cwd=workdir)
    run([node, workdir / "ai_sdk_test.js", workdir], client, workdir)


def test_each_is_tried_and_told():
    table = (REPO / "examples/README.md").read_text()
    for path in (REPO / "examples").glob("*_*.*"):
        assert path.name in table and (REPO / f"test/adapters/{path.stem}_test{path.suffix}").exists(), path
        assert len(path.read_text().splitlines()) < 150
