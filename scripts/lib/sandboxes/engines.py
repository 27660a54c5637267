"""The rows of the table that take an engine: Docker, containerd, Podman. Each engine is our own, with all it has in the script's folder."""
import contextlib
import os
import shlex
import signal
import subprocess
from pathlib import Path

from sandboxes.checks import CHECKS
from sandboxes.door import PATH
from sandboxes.places import USER, Place, Unavailable, as_user, background, output, program, wait_for
from sandboxes.rows import WORDS, row

GVISOR = 'exec runsc --platform={} --network=none --ignore-cgroups "$@"'


# crun refuses a machine that has both kinds of control groups: it is shown the first alone.
ALONE = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"', "alone"]


@contextlib.contextmanager
def docker(lab):
    """A client's environment. An engine that answers would do too, but knows none of the other runtimes."""
    from harness import docker as engine, needs  # its own engine, as the tests start it

    folder = lab.folder / "docker"
    folder.mkdir()
    flags = []
    runtimes = {platform: lab.script(f"runsc-{platform}", GVISOR.format(platform)) for platform in ("systrap", "ptrace")}
    runtimes["crun"] = lab.script("crun-alone", f'exec {shlex.join(ALONE)} crun "$@"')
    for name, path in runtimes.items():
        flags += ["--add-runtime", f"{name}={path}"]
    try:
        with engine.private_engine(str(folder), *flags) as env:
            root, _ = lab.root("docker")
            with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
                output("docker", "import", "-", "sandbox:bound", env={**os.environ, **env}, stdin=tar.stdout)
            yield {**os.environ, **env}
    except needs.Unavailable as reason:
        raise Unavailable(str(reason)) from None


@contextlib.contextmanager
def container(lab, name, *flags, options=()):
    env = lab.once(docker)
    output("docker", "run", "--detach", "--pull=never", "--network=none", "--volume", "/usr:/usr:ro", "--name", name, *flags, "sandbox:bound",
           "sleep", "infinity", env=env)
    try:
        yield Place(f"docker:{name}", options, ("docker", "exec", *(["-u", "0"] if not options else []), name), env)
    finally:
        output("docker", "rm", "--force", name, env=env)


def docker_row(title, name, *flags, options=(), needs=(), **refuses):
    @row(title, **refuses)
    def make(lab):
        for other in needs:
            program(other)
        with container(lab, name, *flags, options=options) as place:
            yield place


DEFAULT = ("--user", "default")
docker_row("Docker, runc", "runc")
docker_row("Docker, runc, all that can be taken away", "bare", "--user", f"{USER}:{USER}", "--read-only", "--tmpfs", "/tmp:exec,mode=1777",
           "--cap-drop=ALL", "--security-opt=no-new-privileges", options=DEFAULT)
docker_row("Docker, crun", "crun", "--runtime=crun", needs=["crun"])
docker_row("Docker, gVisor (systrap)", "systrap", "--runtime=systrap", needs=["runsc"])
docker_row("Docker, gVisor (ptrace)", "ptrace", "--runtime=ptrace", needs=["runsc"])
docker_row("Docker, gVisor (systrap), all that can be taken away", "gvisorbare", "--runtime=systrap", "--user", f"{USER}:{USER}", "--read-only",
           "--tmpfs", "/tmp:exec,mode=1777", "--cap-drop=ALL", "--security-opt=no-new-privileges", options=DEFAULT, needs=["runsc"])
docker_row("Docker, 64 MiB of memory", "memory", "--memory=64m", "--memory-swap=64m", browser="")
for pids in (8, 12, 16, 64):  # `docker exec` itself has half a dozen for a moment
    lacking = dict.fromkeys(CHECKS, f"{WORDS}|OCI runtime exec failed") if pids < 16 else {"browser": ""}
    docker_row(f"Docker, a limit of {pids} processes", f"pids{pids}", f"--pids-limit={pids}", **lacking)


@contextlib.contextmanager
def containerd(lab):
    """The socket of one that has CRI, without a network of its own."""
    folder = lab.folder / "containerd"
    folder.mkdir()
    (folder / "config.toml").write_text(f"""
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "sandbox.local/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
""")
    with open(folder / "log", "w") as log:
        with background(["unshare", "--mount", "--propagation", "private", program("containerd"), "--config", folder / "config.toml"], stderr=log):
            wait_for("containerd", lambda: Path(folder, "sock").exists())
            output("ctr", "-a", folder / "sock", "version")
            yield folder / "sock"


@row("containerd's `ctr`")
def ctr(lab):
    sock = lab.once(containerd)
    root, binds = lab.root("ctr")
    words = [program("ctr"), "-a", sock]
    mounts = [f"--mount=type=bind,src={source},dst={target},options=rbind:ro" for source, target in binds]
    output(*words, "run", "--detach", *mounts, f"--env=PATH={PATH}", "--rootfs", root, "sandbox", "/bin/sleep", "infinity")
    try:
        # the name of an exec can't be that of another one at the same time
        enter = (str(lab.script("ctr-exec", f'exec ctr -a {sock} task exec --exec-id e$$ sandbox "$@"')),)
        yield Place(f"exec:{enter[0]}", enter=enter)
    finally:
        output(*words, "task", "kill", "--signal", "KILL", "sandbox")
        wait_for("its end", lambda: "STOPPED" in output(*words, "task", "ls"))
        output(*words, "task", "rm", "sandbox")
        output(*words, "container", "rm", "sandbox")


@contextlib.contextmanager
def podman(lab, name, runtime, before=ALONE, uid=0):
    root, binds = lab.root(f"podman-{name}")
    folder = lab.folder / name[:2]  # short: a path in it has no more than 50 characters
    folder.mkdir()
    for path in (folder, root):
        output("chown", "-R", f"{uid}:{uid}", path)
    env = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    words = [program("podman"), "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp",
             "--cgroup-manager=cgroupfs", "--events-backend=file", "--runtime", program(runtime)]
    script = lab.script(f"podman-{name}.sh", f'exec {shlex.join([*before, *words])} "$@"')
    volumes = [f"--volume={source}:{target}:ro" for source, target in binds]
    flags = ["--cgroups=disabled"] if runtime == "crun" else []
    try:
        output(script, "run", "--detach", "--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096", *flags, *volumes, "--name", name, "--rootfs", root, "sleep", "infinity", env=env)
        yield Place(f"podman:{name}", ("--runtime", str(script)), (str(script), "exec", "-u", "0", name), env)
    finally:
        subprocess.run([script, "rm", "--force", "--time=0", name], capture_output=True, timeout=120, env=env)
        for pause in folder.glob("**/pause.pid"):  # of an engine without root
            os.kill(int(pause.read_text()), signal.SIGKILL)


@row("Podman, runc, as root")
def podman_runc(lab):
    with podman(lab, "runc", "runc") as place:
        yield place


@row("Podman, crun, as root")
def podman_crun(lab):
    with podman(lab, "crun", "crun") as place:
        yield place


@row("Podman without root, crun", browser="belongs to another user")
def podman_rootless(lab):
    with podman(lab, "rootless", "crun", [*ALONE, *as_user(USER + 1)], USER + 1) as place:
        yield place
