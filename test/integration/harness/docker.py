"""Containers of a Docker engine: the one that answers, otherwise a private one that ends with the suite."""
import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness import roots
from harness.containers import BUSYBOX, Container, Options, root_is_mount_point
from harness.machine import HANG
from harness.needs import Unavailable, program
from harness.processes import Watch

def _answers(env):
    try:
        done = subprocess.run(["docker", "version"], env={**os.environ, **env}, capture_output=True, timeout=10)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Docker:
    """The runtime on an engine. `env` is what leads a client there."""

    def __init__(self, env):
        self.env = {**os.environ, **env}
        self.images = {}

    def call(self, *argv, **kwargs):
        done = subprocess.run(["docker", *argv], env=self.env, capture_output=True, timeout=HANG, **kwargs)
        if done.returncode != 0:
            raise Unavailable(f"docker {argv[0]}: {done.stderr.decode(errors='replace').strip()[-500:]}")
        return done.stdout.decode()

    def _image(self, root):
        """No registry is asked: an image is the tar of a root."""
        if root.name not in self.images:
            name = f"toolbox-test:{root.name}-{secrets.token_hex(4)}"
            with subprocess.Popen(["tar", "-C", root.folder, "-c", "."], stdout=subprocess.PIPE) as tar:
                self.call("import", "-", name, stdin=tar.stdout)
            self.images[root.name] = name
        return self.images[root.name]

    def start(self, root, options):
        return DockerContainer(self, self._image(root), options)

    def close(self):
        for image in self.images.values():
            self.call("rmi", "--force", image)


class DockerContainer(Container):
    def __init__(self, engine, image, options):
        assert options.pts and options.proc, "Docker has no option for that"
        self.engine, self.user = engine, options.user
        self.name = f"toolbox-test-{secrets.token_hex(6)}"
        flags = ["--read-only"] * options.read_only
        for entry in options.tmpfs:
            flags += ["--tmpfs", entry]
        for target, source in {BUSYBOX: program("busybox"), **options.files}.items():
            flags += ["--volume", f"{source}:{target}:ro"]
        # process 1 is cat, and ends with our pipe
        argv = ["run", "--interactive", "--rm", "--pull=never", "--network=none", "--name", self.name, *flags, image]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.life = subprocess.Popen(["docker", *argv, BUSYBOX, "cat"], env=engine.env, **pipes)
        self.life.stdin.write(b"ready\n")
        self.life.stdin.flush()
        if self.life.stdout.readline() != b"ready\n":
            raise Unavailable(self.life.communicate()[1].decode(errors="replace").strip()[-500:])

    def command(self, argv, env, user, cwd):
        user = self.user if user is None else user
        flags = ["--user", f"{user}:{user}"] if user else []
        for name, value in env.items():
            flags += ["--env", f"{name}={value}"]
        if cwd:
            flags += ["--workdir", str(cwd)]
        return ["docker", "exec", "--interactive", *flags, self.name, *argv], {"env": self.engine.env}

    def copy(self, source, target):
        with tempfile.TemporaryDirectory() as folder:
            staged = Path(folder, *target.split("/"))
            staged.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, staged)
            staged.chmod(0o755)
            with subprocess.Popen(["tar", "-C", folder, "-c", target.lstrip("/")], stdout=subprocess.PIPE) as tar:
                self.engine.call("cp", "-", f"{self.name}:/", stdin=tar.stdout)

    def processes(self):
        lines = self.engine.call("top", self.name, "-eo", "pid,stat,args").splitlines()[1:]
        return [line.split(maxsplit=1)[1] for line in lines if not line.endswith(f"{BUSYBOX} cat")]

    def destroy(self):
        try:
            self.life.communicate(timeout=HANG)
        except subprocess.TimeoutExpired:
            self.engine.call("rm", "--force", self.name)
            raise


# What an engine writes outside of the folders that it is told (keys, plugins, namespaces) is written to the engine's own.
_APART = """
    for dir in /etc /opt /run; do
        mkdir -p "$1/upper$dir" "$1/work$dir"
        mount -t overlay -o "lowerdir=$dir,upperdir=$1/upper$dir,workdir=$1/work$dir" overlay $dir || :
    done
    shift
    exec "$@"
"""


@contextlib.contextmanager
def private_engine(folder, *flags):
    """A dockerd with everything it has in one folder, without a network, as process of ours. Gives what leads a client there."""
    missing = [name for name in ("docker", "dockerd") if not shutil.which(name)]
    if missing:
        raise Unavailable(f"no Docker engine answers, and none can be started: no {' and no '.join(missing)} here")
    if os.geteuid() != 0:
        raise Unavailable("no Docker engine answers, and only root could start one")
    if not root_is_mount_point():
        raise Unavailable("no Docker engine answers, and in a plain chroot none can change its containers' root")
    env, group = {"DOCKER_HOST": f"unix://{folder}/d.sock"}, f"toolbox-test-{os.getpid()}"
    argv = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--host", env["DOCKER_HOST"],
            "--pidfile", f"{folder}/pid", "--cgroup-parent", f"/{group}", "--iptables=false", "--ip6tables=false",
            "--bridge=none", "--ip-forward=false", *flags]
    argv = ["setpriv", "--pdeathsig", "TERM", "unshare", "--mount", "--propagation", "private",
            "sh", "-euc", _APART, "engine", folder, *argv]
    with open(f"{folder}/log", "wb") as log:
        engine = subprocess.Popen(argv, env={**os.environ, "TMPDIR": folder}, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log, start_new_session=True)
    Watch.keep(engine.pid)
    try:
        deadline = time.monotonic() + 30
        while not _answers(env):
            if engine.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"a private Docker engine did not start: {_fault(folder)}")
            time.sleep(0.1)
        yield env
    finally:
        engine.send_signal(signal.SIGTERM)
        engine.wait(HANG)
        for left in [*Path("/sys/fs/cgroup").glob(group), *Path("/sys/fs/cgroup").glob(f"*/{group}")]:
            left.rmdir()


def _fault(folder):
    """The line of its log that says why it ended."""
    lines = Path(folder, "log").read_text(errors="replace").splitlines() or ["it said nothing"]
    return next((line for line in lines if re.search("fatal|panic|failed to start", line)), lines[-1])[:500]


def _try(engine):
    """An engine that answers may yet not do: it can be that of another machine, or enter the wrong root (from a chroot)."""
    container = engine.start(roots.get("scratch"), Options())
    try:
        done = container.run([BUSYBOX, "true"])
    finally:
        container.destroy()
    if done.returncode != 0:
        raise Unavailable(f"docker exec does not work here: {(done.stderr or done.stdout).decode(errors='replace').strip()}")


@contextlib.contextmanager
def runtime(folder):
    """A Docker runtime for as long as the context lasts; a private engine keeps its things in the folder."""
    with contextlib.ExitStack() as stack:
        env = {}
        if not (shutil.which("docker") and _answers(env)):
            env = stack.enter_context(private_engine(folder))
        engine = Docker(env)
        stack.callback(engine.close)
        _try(engine)
        yield engine
