"""A sandbox provider for the Docker engine at hand. inspect_ai's own wants a newer engine and Compose; like it, this one
runs everything by `docker exec`, under timeout(1) where a call has a time limit."""
import dataclasses
import math
import os
import subprocess
import tempfile
from pathlib import Path

from harness import roots
from harness.containers import Options
from inspect_ai.util import ExecResult, SandboxEnvironment, sandboxenv
from inspect_ai.util import subprocess as run
from inspect_ai.util._sandbox.limits import SandboxEnvironmentLimits
from toolbox_sandbox.inspect_provider import HeldSandboxEnvironment

try:
    from inspect_ai.util import SandboxUserUnsupportedError
except ImportError:  # older versions fall back on any failure
    SandboxUserUnsupportedError = RuntimeError

TIMEOUT = "/usr/bin/timeout"


@dataclasses.dataclass
class Plan:
    """What containers the samples get."""

    root: str = "debian"
    user: str = ""  # who everything runs as that asks for nobody, as UID:GID
    root_allowed: bool = True  # whether one may ask for root
    prepare: object = None  # called with each new container
    started: list = dataclasses.field(default_factory=list)


@sandboxenv(name="engine")
class EngineSandbox(SandboxEnvironment):
    runtime = None  # of harness.docker
    plan = Plan()

    def __init__(self, container, plan):
        super().__init__()
        self.container, self.plan = container, plan
        self.has_timeout = self._docker("exec", container.name, TIMEOUT, "--version").returncode == 0

    @classmethod
    async def sample_init(cls, task_name, config, metadata):
        plan = cls.plan
        container = cls.runtime.start(roots.get(plan.root), Options())
        if plan.prepare:
            plan.prepare(container)
        plan.started.append(container.name)
        return {"default": cls(container, plan)}

    @classmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted):
        for environment in environments.values():
            environment.as_type(EngineSandbox).container.destroy()

    def _docker(self, *argv, **kwargs):
        return subprocess.run(["docker", *argv], env=self.container.engine.env, capture_output=True, **kwargs)

    def _flags(self, cwd, env, user):
        if user == "root" and not self.plan.root_allowed:
            raise SandboxUserUnsupportedError("no root in this sandbox")
        flags = ["--workdir", os.path.join("/tmp", cwd or "")]
        if user or self.plan.user:
            flags += ["--user", user or self.plan.user]
        for name, value in (env or {}).items():
            flags += ["--env", f"{name}={value}"]
        return flags

    async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None, timeout_retry=True,
                   concurrency=True) -> ExecResult[str]:
        wrapped = [TIMEOUT, "-k", "5s", f"{math.ceil(timeout)}s"] if timeout and self.has_timeout else []
        return await run(
            ["docker", "exec", "--interactive", *self._flags(cwd, env, user), self.container.name, *wrapped, *cmd],
            input=input,
            timeout=timeout and timeout + 10,
            output_limit=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
            env=self.container.engine.env,
        )

    async def write_file(self, file, contents):
        data = contents.encode() if isinstance(contents, str) else contents
        done = self._docker("exec", "--interactive", *self._flags(None, None, None), self.container.name, "sh", "-c",
                            'mkdir -p "$(dirname "$1")" && cat > "$1"', "write", file, input=data)
        if done.returncode != 0:
            raise PermissionError(done.stderr.decode())

    async def read_file(self, file, text=True):
        with tempfile.TemporaryDirectory() as folder:
            done = self._docker("cp", "-L", f"{self.container.name}:{os.path.join('/tmp', file)}", f"{folder}/file")
            if done.returncode != 0:
                raise FileNotFoundError(done.stderr.decode())
            data = Path(folder, "file").read_bytes()
        return data.decode() if text else data


@sandboxenv(name="held_engine")
class HeldEngineSandbox(HeldSandboxEnvironment):
    """The same containers with all that `--sandbox toolbox` puts around those of the package's own provider."""

    inner_name = "engine"
    directory = "/tmp"

    async def target(self):
        return f"docker:{self.inner.container.name}"
