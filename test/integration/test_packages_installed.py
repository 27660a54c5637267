"""What people install, installed as they do it, without a network: a fresh venv, a fresh node project, a bare Debian, engines.

Each first command works. The packages are those of $TOOLBOX_DIST (`make test-packages`), else quickly made of the program under test.
"""
import os
import subprocess
import zipfile

import pytest

from harness import containers, needs, packages, roots
from harness.machine import HANG, PATH
from harness.needs import Unavailable
from harness.packages import one, say

FIRST = """
import sys
from toolbox_sandbox import Sandbox
with Sandbox.connect(sys.argv[1], options=sys.argv[2:]) as sandbox:
    with sandbox.shell() as shell:
        print(sandbox.run(["echo", "out"]).text + shell.run("echo shell").output, end="")
"""
# What a host of another system is: no program for it, and so none on the PATH.
ELSEWHERE = """
import platform
platform.system = lambda: "Darwin"
from toolbox_sandbox import CannotConnect
"""
EJECT = """
import asyncio, sys
from toolbox_sandbox.sandbox import eject
asyncio.run(eject(sys.argv[1], sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def dist(toolbox, tmp_path_factory):
    return packages.of(toolbox, tmp_path_factory.mktemp("dist"))


@pytest.fixture
def env(client, workdir):
    """Nothing of this machine's is found: neither another toolbox nor an index of packages."""
    env = {**{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}, **client.env, "PATH": PATH, "HOME": str(workdir), "LANG": "C.UTF-8",
           "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1"}
    yield env
    client.cli("connect", "--stop")


@pytest.fixture
def venv(workdir, env):
    """Makes fresh ones: venv(*what pip is to install)."""
    def make(*what):
        folder = workdir / "venv"
        done = subprocess.run(["/usr/bin/python3", "-m", "venv", folder], capture_output=True, text=True, env=env)
        if done.returncode:
            raise Unavailable(f"python3 -m venv: {done.stdout}{done.stderr}"[:300])
        say(folder / "bin/pip", "install", "--quiet", *what, env=env)
        return folder / "bin"

    return make


@pytest.fixture
def there(workdir):
    """Options that keep what is injected into this machine in the test's own folder."""
    return ["--dir", str(workdir / "there")]


@pytest.fixture
def web(docker):
    """The name of a running container."""
    container = docker.start(roots.get("busybox"), containers.Options())
    yield container.name
    container.destroy()


# ---- Python ----


def test_a_fresh_venv(dist, venv, env, there):
    """pip chooses the wheel of this machine among all; its command and the library are there, without anything else on the PATH."""
    bin = venv("--find-links", dist / "wheels", "toolbox-sandbox")
    assert say(bin / "toolbox", "--version", env=env) == say(one(dist, f"toolbox-*-linux-{packages.ARCH}"), "--version")
    assert "local: is ready" in say(bin / "toolbox", "inject", *there, "local:", env=env)
    assert say(bin / "python", "-c", FIRST, "local:", *there, env=env) == "out\nshell\n"
    say(bin / "toolbox", "connect", "--stop", env=env)
    assert "local: is clean" in say(bin / "toolbox", "eject", *there, "local:", env=env)
    assert (bin.parent / "share/man/man1/toolbox.1").exists()


def test_all_wheels_that_lie_there(dist, venv, env, there):
    """`pip install dist/*.whl`."""
    bin = venv(*dist.glob("*.whl"))
    assert "local: is ready" in say(bin / "toolbox", "inject", *there, "local:", env=env)
    assert say(bin / "python", "-c", FIRST, "local:", *there, env=env) == "out\nshell\n"
    say(bin / "toolbox", "connect", "--stop", env=env)
    say(bin / "toolbox", "eject", *there, "local:", env=env)


def test_a_venv_and_a_container(dist, venv, env, docker, web):
    bin = venv(one(dist, f"wheels/*_{packages.MACHINE}.whl"))
    env = {**docker.env, **env}
    assert f"docker:{web} is ready" in say(bin / "toolbox", "inject", f"docker:{web}", env=env)
    assert say(bin / "python", "-c", FIRST, f"docker:{web}", env=env) == "out\nshell\n"
    say(bin / "toolbox", "connect", "--stop", env=env)
    say(bin / "toolbox", "eject", f"docker:{web}", env=env)


def test_pip_into_a_folder(dist, venv, env, there, workdir):
    bin = venv("--target", workdir / "into", one(dist, f"wheels/*_{packages.MACHINE}.whl"))
    assert say(bin / "python", "-c", FIRST, "local:", *there, env={**env, "PYTHONPATH": f"{workdir}/into"}) == "out\nshell\n"
    say(workdir / "into/bin/toolbox", "connect", "--stop", env=env)
    say(workdir / "into/bin/toolbox", "eject", *there, "local:", env=env)


def test_the_wheel_without_a_platform_on_linux(dist, venv, env, there):
    """As for a processor that has no wheel of its own."""
    bin = venv(one(dist, "*-py3-none-any.whl"))
    assert say(bin / "toolbox", "--version", env=env) == say(one(dist, f"toolbox-*-linux-{packages.ARCH}"), "--version")
    assert say(bin / "python", "-c", FIRST, "local:", *there, env=env) == "out\nshell\n"
    say(bin / "toolbox", "connect", "--stop", env=env)
    say(bin / "toolbox", "eject", *there, "local:", env=env)


def test_the_wheel_without_a_platform_elsewhere(dist, venv, env, there, workdir):
    """The library puts the program there itself, once; it proves itself there, and can be removed."""
    bin = venv(one(dist, "*-py3-none-any.whl"))
    env = {**env, "PATH": f"{bin}:{PATH}"}
    for _ in range(2):
        assert say(bin / "python", "-c", ELSEWHERE + FIRST, "exec:env", *there, env=env) == "out\nshell\n"
    (placed,) = (workdir / "there").iterdir()
    assert placed.read_bytes() == one(dist, f"toolbox-*-linux-{packages.ARCH}").read_bytes()
    say(bin / "python", "-c", ELSEWHERE + EJECT, "exec:env", *there, env=env)
    assert not placed.exists()
    for target, options, said in [("local:", [], "targets are docker:"), ("exec:false", [], "a shell is needed"), ("exec:/nowhere/ssh", [], "can't be run"),
                                  ("exec:env", ["--name", "x"], "one option, --dir"), ("k8s:a/b/c/d/e", [], "there is no pod")]:
        done = subprocess.run([bin / "python", "-c", ELSEWHERE + FIRST, target, *options], env=env, capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 1 and "CannotConnect" in done.stderr and said in done.stderr, done.stderr
    done = subprocess.run([bin / "python", "-c", ELSEWHERE + "from toolbox_sandbox import placing; placing.main()"], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "programs for Linux alone" in done.stderr


def test_the_wheel_without_a_platform_and_a_container(dist, venv, env, docker, web):
    bin = venv(one(dist, "*-py3-none-any.whl"))
    env = {**docker.env, **env}
    assert say(bin / "python", "-c", ELSEWHERE + FIRST, f"docker:{web}", env=env) == "out\nshell\n"
    (placed,) = docker.call("exec", web, containers.BUSYBOX, "find", "/", "-xdev", "-name", ".toolbox-bin").split()
    assert "toolbox\n" in docker.call("exec", web, containers.BUSYBOX, "ls", "-A", placed)
    say(bin / "python", "-c", ELSEWHERE + EJECT, f"docker:{web}", env=env)
    assert docker.call("exec", web, containers.BUSYBOX, "find", "/", "-xdev", "-name", ".toolbox-bin") == ""


def test_pods_and_hosts_elsewhere(monkeypatch):
    """How the runtimes' clients are called: as `toolbox` itself calls them."""
    monkeypatch.syspath_prepend(str(containers.REPO / "clients/python/src"))
    from toolbox_sandbox.placing import Way

    calls = {("docker:web", None): "docker exec -i -u 0 web sh", ("docker:web", "app"): "docker exec -i -u app web sh", ("podman:web", "default"): "podman exec -i web sh",
             ("k8s:api-0", None): "kubectl exec -i api-0 -- sh", ("k8s:prod/api-0", None): "kubectl exec -i --namespace prod api-0 -- sh",
             ("k8s:east/prod/api-0/app", None): "kubectl exec -i --context east --namespace prod -c app api-0 -- sh",
             ("k8s://api-0/app", None): "kubectl exec -i -c app api-0 -- sh", ("ssh:me@host", None): "ssh -T -o BatchMode=yes -- me@host sh",
             ("exec:sudo 'a b'", None): "sudo a b sh"}
    for (target, user), words in calls.items():
        assert " ".join(Way(target, user).command("sh")) == words
    assert Way("ssh:host", None).command("sh", "-c", "echo $1")[-1] == "sh -c 'echo $1'"


def test_the_program_in_every_wheel_runs(dist, workdir):
    """Those of other processors under an emulator."""
    for wheel in dist.glob("wheels/*-manylinux*.whl"):
        with zipfile.ZipFile(wheel) as file:
            (name,) = [name for name in file.namelist() if name.endswith(".data/scripts/toolbox")]
            (workdir / "toolbox").write_bytes(file.read(name))
        (workdir / "toolbox").chmod(0o755)
        machine = wheel.stem.rsplit("musllinux_1_1_", 1)[1]
        emulator = [] if machine == packages.MACHINE else [needs.program(f"qemu-{machine}-static")]
        assert say(*emulator, workdir / "toolbox", "--version").startswith("toolbox ")


# ---- npm ----


@pytest.fixture
def project(dist, workdir, env):
    """A fresh node project with the package, which was installed without a registry."""
    needs.program("npm")
    folder = workdir / "project"
    folder.mkdir()
    env = {**env, "PATH": os.environ["PATH"], "npm_config_registry": "http://127.0.0.1:9", "npm_config_update_notifier": "false"}
    say("npm", "init", "-y", cwd=folder, env=env)
    say("npm", "install", "--no-audit", "--no-fund", one(dist, "toolbox-sandbox-[0-9]*.tgz"), cwd=folder, env=env)
    return folder, env


def test_a_fresh_node_project(dist, project, there):
    folder, env = project

    def npx(*words):
        return say("npx", "--offline", "toolbox", *words, cwd=folder, env=env)

    assert npx("--version") == say(one(dist, f"toolbox-*-linux-{packages.ARCH}"), "--version")
    assert "local: is ready" in npx("inject", *there, "local:")
    assert "local: is clean" in npx("eject", *there, "local:")


JS = """
import { Sandbox } from "toolbox-sandbox";
const sandbox = await Sandbox.connect(process.argv[2], { options: process.argv.slice(3) });
process.stdout.write((await sandbox.run(["echo", "out"])).text);
await sandbox.close();
"""


def test_its_library(dist, project, there):
    folder, env = project
    if not (folder / "node_modules/toolbox-sandbox/dist/index.js").exists():
        raise Unavailable("the package was made without its library: no tsc (scripts/setup peers)")
    (folder / "first.mjs").write_text(JS)
    assert say("node", "first.mjs", "local:", *there, cwd=folder, env=env) == "out\n"
    say("npx", "--offline", "toolbox", "connect", "--stop", cwd=folder, env=env)
    say("npx", "--offline", "toolbox", "eject", *there, "local:", cwd=folder, env=env)


@needs.programs("npm", "node")
def test_its_command_is_the_program(project):
    """Arguments, stdin, the exit status and signals are the program's own."""
    folder, env = project
    command = [folder / "node_modules/.bin/toolbox"]
    done = subprocess.run([*command, "exec"], input='{"jsonrpc":"2.0","id":1,"method":"version"}', env=env, capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, '"result"' in done.stdout) == (0, True)
    assert subprocess.run([*command, "no such applet"], env=env, capture_output=True, timeout=HANG).returncode == 2
    proxy = subprocess.Popen([*command, "model_proxy", "--port", "0", "--directory", folder], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert "localhost" in proxy.stdout.readline() or proxy.poll() is None
    proxy.terminate()
    assert proxy.wait(HANG) in (0, 143)
    proxy.stdout.close()


def test_a_platform_that_has_no_package(project):
    folder, env = project
    fake = 'Object.defineProperty(process, "platform", { value: "plan9" })'
    (folder / "fake.cjs").write_text(fake)
    done = subprocess.run(["node", "--require", "./fake.cjs", "node_modules/toolbox-sandbox/bin/toolbox.cjs"], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "toolbox-sandbox-plan9-" in done.stderr


def test_npm_with_the_platforms_own_package(dist, project):
    """As from a registry, where nothing is bundled: the one whose os and cpu fit."""
    folder, env = project
    say("npm", "install", "--no-audit", "--no-fund", one(dist, f"toolbox-sandbox-linux-{packages.CPU}-*.tgz"), cwd=folder, env=env)
    assert say("npx", "--offline", "toolbox", "--list", cwd=folder, env=env)
    for path in dist.glob("toolbox-sandbox-linux-*.tgz"):
        if f"-{packages.CPU}-" not in path.name:
            done = subprocess.run(["npm", "install", "--no-audit", path], cwd=folder, env=env, capture_output=True, text=True, timeout=HANG)
            assert done.returncode != 0 and "EBADPLATFORM" in done.stderr


# ---- Debian ----


def test_a_bare_debian(dist, namespaces):
    """dpkg -i, and nothing that it depends on; the first command works, and dpkg takes all away again."""
    container = namespaces.start(roots.get("debian"), containers.Options())
    try:
        container.copy(one(dist, f"*_{packages.ARCH}.deb"), "/tmp/toolbox.deb")
        container.check(["dpkg", "-i", "/tmp/toolbox.deb"])
        assert "Status: install ok installed" in container.check(["dpkg", "-s", "toolbox-sandbox"])
        assert container.check(["dpkg", "-V", "toolbox-sandbox"]) == ""
        assert "local: is ready" in container.check(["toolbox", "inject", "--dir", "/srv/there", "local:"])
        assert container.check(["toolbox", "call", "--dir", "/srv/there", "--no-share", "local:", "version"]).startswith('"')
        container.check(["toolbox", "eject", "--dir", "/srv/there", "local:"])
        container.check(["dpkg", "-r", "toolbox-sandbox"])
        assert container.run(["ls", "/usr/bin/toolbox"]).returncode != 0
    finally:
        container.destroy()


# ---- images ----


@pytest.fixture
def image(dist):
    """(archive, name with the version)"""
    path = one(dist, "toolbox-*-oci.tar")
    return path, f"toolbox:{path.name.split('-')[1]}"


def test_docker_load_and_run(dist, image, docker, workdir):
    path, name = image
    docker.call("load", "--input", str(path))
    try:
        assert docker.call("run", "--rm", "--network=none", name, "--version") == say(one(dist, f"toolbox-*-linux-{packages.ARCH}"), "--version")
        busybox = docker.start(roots.get("busybox"), containers.Options())
        busybox.destroy()
        (workdir / "Dockerfile").write_text(f"FROM {docker.images['busybox']}\nCOPY --from={name} /toolbox /usr/local/bin/toolbox\n")
        built = subprocess.run(["docker", "build", "-q", "--network=none", "-t", "toolbox-test:copied", workdir], env={**docker.env, "DOCKER_BUILDKIT": "0"}, capture_output=True,
                               text=True, timeout=HANG)
        assert built.returncode == 0, built.stderr
        assert docker.call("run", "--rm", "--network=none", "toolbox-test:copied", "/usr/local/bin/toolbox", "--list").startswith("exec\n")
    finally:
        tags = [line for line in docker.call("images", "--format", "{{.Repository}}:{{.Tag}}").split() if line.startswith(("toolbox:", "toolbox-test:copied"))]
        docker.call("rmi", "--force", *tags)


def podman(folder, *words):
    done = subprocess.run(["podman", "--root", folder / "root", "--runroot", folder / "run", "--storage-driver", "vfs", *words], capture_output=True, text=True, timeout=HANG)
    if done.returncode:
        raise Unavailable(f"podman {words[0]}: {done.stderr[-300:]}")
    return done.stdout


@needs.programs("podman")
def test_podman_load(image, workdir):
    needs.root("mount what podman keeps")
    path, name = image
    podman(workdir, "info")
    said = subprocess.run(["podman", "--root", workdir / "root", "--runroot", workdir / "run", "--storage-driver", "vfs", "load", "--input", path], capture_output=True, text=True)
    assert said.returncode == 0 and name in said.stdout, said
    assert packages.ARCH in podman(workdir, "inspect", "--format", "{{.Architecture}}", f"localhost/{name}" if "localhost/" in said.stdout else name)


@needs.programs("skopeo")
def test_skopeo_copies_it(image, workdir):
    path, name = image
    said = say("skopeo", "inspect", f"oci-archive:{path}", "--raw")
    assert "image.index" in said or "manifests" in said
    say("skopeo", "copy", "--insecure-policy", f"oci-archive:{path}", f"dir:{workdir}/copied")
    assert (workdir / "copied/manifest.json").exists()


