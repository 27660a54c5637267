"""clients/typescript: the package `toolbox-sandbox`, compiled by TypeScript and run by Node, in this machine and in a container."""
import json
import os
import re
import subprocess

import pytest

from harness import roots, typescript, web
from harness.client import Client
from harness.containers import Options
from harness.machine import HANG, Host

@pytest.fixture(scope="module")
def node():
    return typescript.node()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The package and its tests."""
    folder = tmp_path_factory.mktemp("compiled")
    typescript.tsc("-p", typescript.PACKAGE / "tsconfig.test.json", "--outDir", folder, cwd=typescript.PACKAGE)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def lines_covered(lcov):
    """Of the library's lines, how many of how many were run."""
    of_library = [part for part in lcov.split("end_of_record") if re.search(r"^SF:.*\bsrc/", part, re.M)]
    counts = [int(n) for part in of_library for n in re.findall(r"^DA:\d+,(\d+)", part, re.M)]
    return sum(n > 0 for n in counts), len(counts)


def run_tests(node, compiled, client, workdir, **more):
    """Node's own runner: its report where something failed; and which of the lines were run."""
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": str(client.binary), "HOME": str(workdir), **more}
    argv = [node, "--test", "--experimental-test-coverage", "--test-reporter=spec", "--test-reporter-destination=stdout",
            "--test-reporter=lcov", f"--test-reporter-destination={workdir}/lcov", *sorted(compiled.glob("test/*.test.js"))]
    try:
        done = subprocess.run(argv, env=env, cwd=workdir, capture_output=True, text=True, timeout=2 * HANG)
    finally:
        client.cli("connect", "--stop")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    run, of = lines_covered((workdir / "lcov").read_text())
    assert of > 1000 and run >= 0.9 * of, f"{run} of {of} lines are run"


def test_all_of_it_here(node, compiled, new_client, workdir):
    """With sockets whose paths are longer than any."""
    client = new_client(dir=workdir / ("far" * 50))
    run_tests(node, compiled, client, workdir, TARGET="local:", CONNECT_OPTIONS=json.dumps(["--dir", str(workdir / "there")]))


def test_all_of_it_in_a_container(node, compiled, docker, toolbox, workdir):
    container = docker.start(roots.get("debian"), Options())
    client = Client(Host(), toolbox, workdir / "server", env=docker.env)
    try:
        run_tests(node, compiled, client, workdir, TARGET=f"docker:{container.name}")
    finally:
        container.destroy()
        client.close()


def test_a_browser(node, compiled, client, workdir):
    web.browser()
    run = [node, "--test", "--test-name-pattern", "a browser", compiled / "test/surface.test.js"]
    env = {**os.environ, **client.env, "TOOLBOX_BINARY": str(client.binary), "HOME": str(workdir), "WITH_BROWSER": "1"}
    try:
        done = subprocess.run(run, env={**env, "CONNECT_OPTIONS": json.dumps(["--dir", str(workdir / "there")])}, capture_output=True, text=True, timeout=HANG)
    finally:
        client.cli("connect", "--stop")
    assert done.returncode == 0 and "pass 0" not in done.stdout, done.stdout


def test_a_project_that_has_it_as_a_package(workdir):
    """What is published, and the README's examples, under options of whoever uses it."""
    typescript.install_package(workdir)
    examples = re.findall(r"^```ts\n(.*?)^```", (typescript.PACKAGE / "README.md").read_text(), re.M | re.S)
    for number, example in enumerate(examples):
        (workdir / f"example{number}.ts").write_text(example)
    (workdir / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**typescript.OPTIONS, "noEmit": True}}))
    typescript.tsc("-p", ".", cwd=workdir)
    assert len(examples) >= 2
