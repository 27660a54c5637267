"""Sandboxes of every make: users, what images lack, many at once, and what is left afterwards."""
import asyncio
import importlib.util
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from harness.containers import REPO
from inspect_ai.tool import bash_session, text_editor
from inspect_ai.util import sandbox as current
from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

from samples import Sandbox
from test_exec_remote import ExecRemoteAwaitableOptions, options

TOOLS = "/var/tmp/.da7be258e003d428"
PASSWD = "root:x:0:0:root:/root:/bin/sh\nother:x:1001:1002::/home/other:/bin/sh\n"


def within(text):
    return re.search(r"<(.*)>", text)[1]


async def identities(user=None):
    """(uid, gid) of each tool's work, and the homes of a session and of a job."""
    path = f"/tmp/toolbox-inspect-{user}"
    shell = await bash_session(user=user)(action="type_submit", input='echo "<$(id -u) $(id -g) $HOME>"')
    await text_editor(user=user)(command="create", path=path, file_text="x")
    owner = (await current().exec(["stat", "-c", "%u %g", path])).stdout.strip()
    given = options(ExecRemoteAwaitableOptions, user=user)
    job = (await current().exec_remote(["sh", "-c", "echo $(id -u) $(id -g) $HOME"], given, stream=False)).stdout.strip()
    return within(shell), owner, job


def with_users(container):
    put(container, "/etc/passwd", PASSWD)
    put(container, "/etc/os-release", "ID=alpine\nVERSION=0\n")


def put(container, path, content):
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content if isinstance(content, bytes) else content.encode())
        container.copy(file.name, path)


@pytest.mark.parametrize(
    "plan, user, expected",
    [
        ({}, None, ("0 0 /root", "0 0", "0 0 /root")),
        ({}, "other", ("1001 1002 /home/other", "1001 1002", "1001 1002 /home/other")),
        # the container's default user is another one: its numbers are sent with every call
        ({"user": "1001:1002"}, None, ("1001 1002 /home/other", "1001 1002", "1001 1002 /home/other")),
        ({"user": "4321:1234"}, None, ("4321 1234 /", "4321 1234", "4321 1234 /")),
        ({"user": "1001:1002"}, "root", ("0 0 /root", "0 0", "0 0 /root")),
        # no root at all: tools and work are the default user's
        ({"user": "1001:1002", "root_allowed": False}, None, ("1001 1002 /home/other", "1001 1002", "1001 1002 /home/other")),
    ],
)
def test_whose_work_it_is(containers, plan, user, expected):
    async def body(n):
        return await identities(user)

    assert containers("busybox", prepare=with_users, **plan).run(body) == [expected]


def test_the_agent_reaches_neither_tools_nor_server(containers):
    """Where the tools are root's and the agent is somebody else."""

    async def body(n):
        shell = bash_session()
        await shell(action="type_submit", input="PS1=")
        return await shell(action="type_submit", input=f"ls {TOOLS}; ls /run/toolbox; id -u")

    [said] = containers("busybox", prepare=with_users, user="1001:1002").run(body)
    assert said.count("ermission denied") == 2 and said.endswith("1001\n")


def prepared(*missing):
    """A container that toolbox has been put into, without programs that an injection takes."""

    def prepare(container):
        assert container.run(["/.harness/busybox", "mkdir", "-p", "/tmp"]).returncode == 0  # where calls are made
        if missing:
            assert container.run(["/.harness/busybox", "rm", "-f", *missing]).returncode == 0
        inject = [REPO / "toolbox", "inject", f"docker:{container.name}", "--dir", TOOLS, "--name", "inspect-sandbox-tools"]
        subprocess.run(inject, env=container.engine.env, check=True, capture_output=True)

    return prepare


def test_without_tar_and_gzip(containers, ours):
    """Put there before: nothing is injected."""
    missing = [f"/bin/{name}" for name in ("tar", "gzip", "gunzip", "zcat", "base64")]

    async def body(n):
        return await bash_session()(action="type_submit", input="tar --version; echo here")

    [said] = containers("debian", prepare=prepared(*missing)).run(body)
    assert "tar: command not found" in said and "here\n" in said


def has_framework_directories():
    return importlib.util.find_spec("inspect_ai.util._sandbox._framework_directory") is not None


@pytest.mark.fast
@pytest.mark.skipif(has_framework_directories(), reason="this version looks at a sandbox by a script for /bin/sh")
def test_without_a_shell(containers, ours):
    async def body(n):
        await text_editor()(command="create", path="/f", file_text="one\n")
        return await text_editor()(command="view", path="/f")

    [seen] = containers("scratch", prepare=prepared()).run(body)
    assert "     1\tone\n" in seen


def test_tar_that_knows_no_gzip(containers):
    """The package unpacks the artefact itself then, and keeps what it has unpacked beside it."""

    def prepare(container):
        with_users(container)
        assert container.run(["/.harness/busybox", "rm", "/bin/tar"]).returncode == 0
        put(container, "/bin/tar", '#!/bin/sh\ncase $1 in *z*) exit 1;; esac\nexec /bin/busybox tar "$@"\n')

    async def body(n):
        return await bash_session()(action="type_submit", input="echo here")

    [said] = containers("busybox", prepare=prepare).run(body)
    assert "here\n" in said


def test_many_samples_at_once(containers):
    async def body(n):
        shell = bash_session()
        await shell(action="type_submit", input=f"x={n}")
        await text_editor()(command="create", path=f"/tmp/f{n}", file_text=f"{n}")
        return await shell(action="type_submit", input=f'echo "<$x $(cat /tmp/f{n})>"')

    said = containers("busybox").run(body, samples=12)
    assert [within(text) for text in said] == [f"{n} {n}" for n in range(12)]


def test_many_samples_at_once_on_this_machine():
    async def body(n):
        shell = bash_session()
        await shell(action="type_submit", input=f"x={n}")
        await text_editor()(command="create", path=f"f{n}", file_text=f"{n}")
        return await shell(action="type_submit", input='echo "<$x $(cat f*)>"')

    said = Sandbox("local").run(body, samples=12)
    assert [within(text) for text in said] == [f"{n} {n}" for n in range(12)]


def processes():
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            found[entry.name] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return {pid: line for pid, line in found.items() if pid.isdigit()}


@pytest.mark.fast
@pytest.mark.skipif(not hasattr(LocalSandboxEnvironment, "_stop_sandbox_tools"), reason="this version stops no server")
def test_nothing_is_left_of_a_sample_on_this_machine(ours):
    """Of none of the tools, whatever the sample's programs did to stay."""

    mark = f"sleep 8765.{os.getpid()}"  # these tests may run twice on a machine

    def running():
        return [line for line in processes().values() if mark in line]

    async def body(n):
        shell = bash_session()
        await shell(action="type_submit", input=f"setsid {mark} & nohup {mark} & ({mark} & disown)")
        await current().exec_remote(["sh", "-c", f"setsid {mark} & exec {mark}"], options())
        await text_editor()(command="create", path="f", file_text="x")
        deadline = time.monotonic() + 30
        while len(running()) < 5 and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        return len(running()), (await current().exec(["pwd"])).stdout.strip()

    [(started, folder)] = Sandbox("local").run(body)
    assert started >= 5
    deadline = time.monotonic() + 10
    while (left := running() + [line for line in processes().values() if folder in line]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == [] and not os.path.exists(folder)
