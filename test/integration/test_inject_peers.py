"""`toolbox inject` and its kin against real runtimes: Docker, compose, Podman, sshd, kubectl."""
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import kube, needs, peers, roots
from harness.containers import BUSYBOX, Options
from harness.injection import PLACING, TARGET, Injector, prefix, script, traces
from harness.machine import HANG
from harness.processes import wait_until
from harness.users import NOBODY_KNOWS, needs_root

pytestmark = needs_root


def check_everything(injector, at, calls=(2, 1), **how):
    """Placed, used, left alone, removed."""
    found = injector.inject(at, *how.get("options", ()))
    assert (found["state"], found["calls"]) == ("placed", calls[0]), found
    assert found["size"] <= found["sent"] <= found["size"] + 8192  # once
    again = injector.inject(at, *how.get("options", ()))
    assert (again["state"], again["calls"], again["path"]) == ("identical", calls[1], found["path"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", injector.call(at, "version", None, *how.get("options", ())))
    started = injector.call(at, "exec_remote_start", {"argv": [found["path"], "--version"]}, *how.get("options", ()))
    assert started["pid"] > 0
    assert injector.eject(at, *how.get("options", ()))["ok"]
    return found


# ---- Docker ----


@pytest.fixture
def docker_start(docker):
    """Starts containers; gives (container, target)."""
    with contextlib.ExitStack() as stack:

        def make(root, **options):
            container = docker.start(roots.get(root), Options(**options))
            stack.callback(container.destroy)
            return container, f"docker:{container.name}"

        yield make


@pytest.fixture
def injector(toolbox):
    return Injector(toolbox)


@pytest.fixture
def docker_injector(toolbox, docker):
    return Injector(toolbox, env={name: value for name, value in docker.env.items() if name.startswith("DOCKER_")})


def changes(docker, container):
    """What differs from the image, but for what the engine and the harness have made themselves."""
    listed = docker.call("diff", container.name).splitlines()
    return [line for line in listed if not re.fullmatch(r". (/\.harness.*|/etc|/run|/var|/tmp|/var/tmp|/opt)", line) or line[0] == "A"
            and not line.startswith("A /.harness")]


@pytest.mark.parametrize("root", ["debian", "busybox"])
def test_docker(docker_injector, docker_start, docker, root):
    container, at = docker_start(root)
    before = changes(docker, container)
    check_everything(docker_injector, at)
    assert changes(docker, container) == before


@pytest.mark.parametrize("root", ["libc", "scratch"])
def test_docker_without_a_shell(docker_injector, docker_start, docker, root):
    container, at = docker_start(root)
    before = changes(docker, container)
    found = check_everything(docker_injector, at, calls=(4, 2))
    assert found["path"] == "/.toolbox-bin/toolbox"
    assert changes(docker, container) == before
    place = ("--dir", "/var/tmp/.da7be258e003d428", "--name", "inspect-sandbox-tools")
    assert docker_injector.inject(at, *place)["path"] == "/var/tmp/.da7be258e003d428/inspect-sandbox-tools"
    assert docker_injector.eject(at, *place)["state"] == "removed"


def test_docker_root_where_the_image_has_another_user(docker_injector, docker_start):
    container, at = docker_start("debian", user=NOBODY_KNOWS)
    found = docker_injector.inject(at)
    assert found["uid"] == "0"
    # from a process of his: `docker exec` itself still has the rights of the container's root when it looks for a program
    by_user = container.run([BUSYBOX, "sh", "-c", f"echo came here; exec {found['path']} version"])
    assert by_user.returncode != 0 and by_user.stdout == b"came here\n", "not for the user of the container"
    docker_injector.eject(at)
    found = docker_injector.inject(at, "--user", str(NOBODY_KNOWS))
    assert found["uid"] == str(NOBODY_KNOWS) and found["path"].startswith(f"/var/tmp/.toolbox-bin-{NOBODY_KNOWS}/")
    docker_injector.eject(at, "--user", str(NOBODY_KNOWS))


def test_docker_read_only(docker_injector, docker_start):
    container, at = docker_start("scratch", read_only=True)
    failed = docker_injector.inject(at, status=PLACING)
    assert "read-only" in failed["message"] and failed["advice"]
    container, at = docker_start("busybox", read_only=True, tmpfs=("/tmp:exec",))
    assert docker_injector.inject(at)["path"].startswith("/tmp/")


def test_docker_missing_and_unreachable(docker_injector, injector):
    failed = docker_injector.inject("docker:no-such-container", status=TARGET)
    assert "No such container" in failed["message"] and not failed["tried"], "once is enough"
    nobody = Injector(injector.toolbox, env={"DOCKER_HOST": "unix:///nowhere/d.sock"})
    assert "daemon" in nobody.inject("docker:x", status=TARGET)["message"]
    failed = injector.inject("docker:x", "--runtime", "no-such-program", status=TARGET)
    assert "no-such-program" in failed["message"] and "not found" in failed["message"]


def test_docker_paused_and_stopped(docker_injector, docker_start, docker):
    """The engine's own words, at once."""
    container, at = docker_start("busybox")
    docker.call("pause", container.name)
    try:
        assert "paused" in docker_injector.inject(at, status=TARGET)["message"]
    finally:
        docker.call("unpause", container.name)
    docker.call("stop", "-t", "0", container.name)
    failed = docker_injector.inject(at, status=TARGET)
    assert container.name in failed["message"] and failed["calls"] <= 2 and failed["advice"]


def test_docker_that_dies_midway(docker_injector, docker_start, workdir):
    """Said at its step, and not tried again for long."""
    container, at = docker_start("busybox")
    dies = script(workdir / "docker", f"""[ "$1" = exec ] && [ -e {workdir}/looked ] && {{ docker kill {container.name} >&2; }}
>{workdir}/looked; exec docker "$@" """)
    done = docker_injector.run("inject", "--json", "--runtime", dies, at)
    failed = json.loads(done.stdout)
    assert done.returncode == PLACING and container.name in failed["message"] and failed["advice"] and failed["calls"] <= 6, failed


def test_docker_patterns_and_many(docker_injector, docker_start):
    containers = [docker_start("busybox")[0] for _ in range(3)]
    pattern = os.path.commonprefix([container.name for container in containers])
    assert len(pattern) > 10
    done = docker_injector.run("inject", "-j", "2", "--json", *[f"docker:{container.name[:-1]}[0-9a-f]" for container in containers])
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and {one["target"] for one in found} == {f"docker:{container.name}" for container in containers}
    # one that isn't there spoils nothing for the others, and the worst counts
    done = docker_injector.run("inject", *[f"docker:{container.name}" for container in containers], "docker:no-such-container")
    assert done.returncode == TARGET, done
    table = done.stdout.decode().splitlines()
    assert table[0].split() == ["target", "result", "arch", "ms", "what"] and table[-1] == "3 of 4 done, 1 failed"
    assert len([line for line in table if "identical" in line]) == 3 and "No such container" in done.stdout.decode()
    nothing = docker_injector.run("inject", "docker:no-such-*")
    assert nothing.returncode == TARGET and b"nothing that runs fits" in nothing.stderr
    assert docker_injector.run("eject", "-j", "3", *[f"docker:{container.name}" for container in containers]).returncode == 0


def test_progress_on_a_terminal(docker_injector, docker_start):
    names = [f"docker:{docker_start('busybox')[0].name}" for _ in range(2)]
    words = shlex.join([str(docker_injector.toolbox), "inject", *names])
    env = " ".join(f"{name}={shlex.quote(value)}" for name, value in docker_injector.env.items())
    done = docker_injector.host.run(["script", "-qec", f"{env} {words}", "/dev/null"])
    assert b"2 of 2 done, 0 failed" in done.stdout and b"\r\x1b[K" in done.stdout, done


# ---- nerdctl ----

# What nerdctl has of its own, by its sources: `exec`, `ps` as Docker has them, a `cp` that takes no archive and copies by
# tar as root, from a directory with that directory's own mode.
NERDCTL = r"""#!/bin/sh
[ "$1" = cp ] || exec docker "$@"
[ "$2" != - ] || { echo 'level=fatal msg="support for reading a tar archive from stdin is not implemented yet"' >&2; exit 1; }
to=/proc/$(docker inspect -f '{{.State.Pid}}' "${3%%:*}")/root${3#*:} || exit
[ ! -w "/proc/$(docker inspect -f '{{.State.Pid}}' "${3%%:*}")/root" ] && { echo 'container rootfs is marked read-only' >&2; exit 1; }
case $2 in
*/.) mkdir -p "$to" && tar -C "$2" -cf - . | tar -C "$to" -xf - ;;
*) [ -d "${to%/*}" ] || { echo "level=fatal msg=\"chdir ${to%/*}: no such file or directory\"" >&2; exit 1; }
   tar -C "${2%/*}" -cf - "${2##*/}" | tar -C "${to%/*}" -xf - ;;
esac
"""


@pytest.mark.parametrize("root,calls", [("busybox", (2, 1)), ("scratch", (4, 2))])
def test_nerdctl_by_a_stand_in(docker_injector, docker_start, docker, workdir, root, calls):
    """There is none to be had here: Docker's engine stands in behind nerdctl's own command line and limits."""
    runtime = ("--runtime", script(workdir / "nerdctl", NERDCTL.split("\n", 1)[1]))
    (workdir / "tmp").mkdir()
    docker_injector.env["TMPDIR"] = f"{workdir}/tmp"
    container, at = docker_start(root)
    at = at.replace("docker:", "nerdctl:")
    before = changes(docker, container)
    found = check_everything(docker_injector, at, calls, options=runtime)
    assert changes(docker, container) == before
    if root == "scratch":
        assert found["path"] == "/.toolbox-bin/toolbox"
        container.check([BUSYBOX, "mkdir", "-p", "-m", "755", "/there"])
        for place in ("/there", "/made/deep"):
            assert docker_injector.inject(at, *runtime, "--dir", place)["state"] == "placed"
            assert docker_injector.inject(at, *runtime, "--dir", place)["state"] == "identical"
            assert container.check([BUSYBOX, "stat", "-c", "%a", "/there"]).strip() == "755", "a directory that was there is as it was"
            assert docker_injector.eject(at, *runtime, "--dir", place)["state"] == "removed"
    assert not list((workdir / "tmp").iterdir())


# ---- compose ----


def test_compose(docker_injector, docker, docker_start):
    """By the labels that both versions of compose set; the command itself where there is one."""
    compose = needs.program("docker-compose")
    image = docker._image(roots.get("busybox"))
    project = f"toolboxtest{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "docker-compose.yml").write_text(json.dumps({
            "version": "2.4", "services": {"web": {"image": image, "command": ["/bin/busybox", "sleep", "600"], "network_mode": "none", "init": True,
                                                   "scale": 2}, "db": {"image": image, "command": ["/bin/busybox", "sleep", "600"], "network_mode": "none"}}}))
        env = {**docker.env, "HOME": folder}
        argv = [compose, "-p", project, "-f", f"{folder}/docker-compose.yml"]
        try:
            subprocess.run([*argv, "up", "-d", "--no-build"], env=env, check=True, capture_output=True, timeout=HANG)
            done = docker_injector.run("inject", "--json", f"compose:{project}/web")
            found = [json.loads(line) for line in done.stdout.splitlines()]
            assert done.returncode == 0 and len(found) == 2 and all("web" in one["target"] and one["ok"] for one in found), done
            assert docker_injector.run("inject", f"compose:{project}/none").returncode == TARGET
        finally:
            subprocess.run([*argv, "down", "-t", "0"], env=env, check=True, capture_output=True, timeout=HANG)


# ---- Podman ----


@pytest.fixture(scope="session")
def podman():
    """The words that call one with a storage of its own."""
    needs.program("podman")
    with tempfile.TemporaryDirectory() as folder:
        words = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        if shutil.which("runc"):
            words += ["--runtime", "runc"]
        yield words
        subprocess.run([*words, "rm", "-af", "-t", "0"], capture_output=True)
        subprocess.run(["umount", f"{folder}/root/vfs"], capture_output=True)


@pytest.fixture
def podman_start(podman):
    started = []

    def make(root):
        name = f"toolbox-test-{secrets.token_hex(4)}"
        with subprocess.Popen(["tar", "-C", roots.get(root).folder, "-c", "."], stdout=subprocess.PIPE) as tar:
            image = subprocess.run([*podman, "import", "-q", "-", name], stdin=tar.stdout, capture_output=True, text=True)
        done = subprocess.run([*podman, "run", "-d", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
                               "--volume", f"{needs.program('busybox')}:{BUSYBOX}:ro", "--name", name, name, BUSYBOX, "sleep", "600"],
                              capture_output=True, text=True, timeout=HANG)
        if image.returncode or done.returncode:
            pytest.skip(f"podman runs nothing here: {(image.stderr or done.stderr).strip()[-300:]}")
        started.append(name)
        return f"podman:{name}"

    yield make
    for name in started:
        subprocess.run([*podman, "rm", "-f", "-t", "0", name], check=True, capture_output=True, timeout=HANG)


@pytest.mark.parametrize("root,calls", [("busybox", (2, 1)), ("scratch", (4, 2))])
def test_podman(injector, podman, podman_start, root, calls):
    at = podman_start(root)
    check_everything(injector, at, calls, options=("--runtime", shlex.join(podman)))


# ---- ssh ----


@pytest.fixture
def ssh(workdir):
    """An sshd of our own, and the words that call a client of it."""
    needs.root("let others in")
    sshd, client = needs.program("sshd"), needs.program("ssh")
    workdir.chmod(0o755)
    for name in ("host", "me"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", workdir / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Path("/run/sshd").mkdir(exist_ok=True)
    (workdir / "sshd_config").write_text(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {workdir}/host\nAuthorizedKeysFile {workdir}/me.pub\n"
                                         "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nUseDNS no\n"
                                         f"SetEnv TOOLBOX_DIR={workdir}/place\n")  # who logs in finds none of this machine's own servers
    (workdir / "ssh_config").write_text(f"Host *\nPort {port}\nIdentityFile {workdir}/me\nIdentitiesOnly yes\nUserKnownHostsFile {workdir}/known\n"
                                        "StrictHostKeyChecking no\nLogLevel ERROR\n")
    with open(workdir / "sshd.log", "wb") as log:
        server = subprocess.Popen([sshd, "-D", "-e", "-f", workdir / "sshd_config"], stderr=log)
    words = [client, "-F", str(workdir / "ssh_config")]
    try:
        wait_until(lambda: b"listening" in (workdir / "sshd.log").read_bytes(), "sshd to listen")
        yield words
    finally:
        server.terminate()
        server.wait(HANG)


def test_ssh(injector, ssh, workdir):
    options = ("--runtime", shlex.join(ssh), "--dir", f"{workdir}/it's here")
    check_everything(injector, "ssh:root@127.0.0.1", options=options)
    assert not (workdir / "it's here").exists() and not (workdir / "place").exists()


def test_ssh_nobody_there(injector, ssh):
    failed = injector.inject("ssh:127.0.0.1", "--runtime", shlex.join([*ssh, "-p", "1"]), status=TARGET)
    assert "refused" in failed["message"]


# ---- Kubernetes ----


@pytest.fixture
def pods(namespaces):
    """Two containers of one pod and another pod, as namespaces."""
    made = {name: namespaces.start(roots.get("busybox"), Options()) for name in ("app", "side", "other")}
    yield made
    for container in made.values():
        container.destroy()


def check_kubernetes(injector, made, *options):
    for at, container in (("k8s:web", "app"), ("k8s:default/web/side", "side"), ("k8s:here//web/app", "app")):
        check_everything(injector, at, options=options)
        assert traces(made[container]) == []
    failed = injector.inject("k8s:nope", *options, status=TARGET)
    assert "not found" in failed["message"]
    done = injector.run("inject", "--json", *options, "k8s:default/w*", "k8s:default/-l app=other")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(found) >= 2, done
    assert {"k8s:/default/web/", "k8s:/default/other/"} <= {one["target"] for one in found}


def test_kubernetes_by_kubectl(injector, pods, workdir):
    """The real client; of the cluster its API alone."""
    if not kube.kubectl():
        raise needs.Unavailable("kubectl 1.31 or later is not installed")
    words = {name: shlex.split(prefix(container)) for name, container in pods.items()}
    listed = [kube.Pod("web", {"app": words["app"], "side": words["side"]}, {"app": "web"}), kube.Pod("other", {"it": words["other"]}, {"app": "other"})]
    with kube.cluster(listed, workdir) as config:
        check_kubernetes(injector, pods, "--runtime", f"{kube.kubectl()} --kubeconfig {config} --cache-dir {workdir}/cache")


def test_kubernetes_by_a_stand_in(injector, pods, workdir):
    words = {name: prefix(container) for name, container in pods.items()}
    (workdir / "pods").write_text(f"default/web/app {words['app']}\ndefault/web/side {words['side']}\ndefault/other/it {words['other']}\n")
    (workdir / "kubectl").write_text(kube.STAND_IN)
    (workdir / "kubectl").chmod(0o755)
    check_kubernetes(Injector(injector.toolbox, env={"PODS": f"{workdir}/pods"}), pods, "--runtime", f"{workdir}/kubectl")


def test_kubernetes_manifests_are_valid():
    """Each manifest in the guide against Kubernetes' own schemas."""
    peer = peers.folder("python-kubernetes") / "bin/python"
    guide = Path(__file__).parents[2] / "docs/kubernetes.md"
    manifests = re.findall(r"```yaml\n(.*?)```", guide.read_text(), re.S)
    assert len(manifests) == 3
    check = "import sys, yaml, kubernetes_validate as k\nfor d in yaml.safe_load_all(sys.stdin): k.validate(d, '1.31', strict=True)"
    for manifest in manifests:
        done = subprocess.run([peer, "-c", check], input=manifest, capture_output=True, text=True, timeout=HANG)
        assert done.returncode == 0, done.stderr[-2000:]
    bad = manifests[0].replace("emptyDir", "emptyDirs")
    assert subprocess.run([peer, "-c", check], input=bad, capture_output=True, text=True, timeout=HANG).returncode != 0
