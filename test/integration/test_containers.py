"""The main job in real containers: from an empty root to a whole distribution, and with what containers lack."""
import hashlib
import os
import platform
import re
import subprocess
from fnmatch import fnmatch

import pytest

from harness import needs, roots
from harness.client import TOOLERR, Client, RpcError
from harness.containers import BUSYBOX, Options
from harness.leftovers import PLACES
from harness.machine import Emulated
from harness.processes import neighbours, wait_until
from harness.users import NOBODY_KNOWS

BINARY = "/opt/toolbox"

MODES = {
    "root": {},
    "unknown-uid": {"user": NOBODY_KNOWS},
    "read-only": {"read_only": True},
    "noexec-tmp": {"tmpfs": ("/tmp:noexec",)},
    "no-pts": {"pts": False},
    "no-proc": {"proc": False},
}

# Docker gives every container /dev/pts and /proc; and as a call takes it a hundred times as long, it doesn't repeat all.
IN_DOCKER = {
    "debian": ("root", "unknown-uid", "read-only", "noexec-tmp"),
    "busybox": ("root", "unknown-uid"),
    "libc": ("root",),
    "scratch": ("root", "unknown-uid", "read-only"),
}
CELLS = [("namespaces", root, mode) for root in roots.NAMES for mode in MODES]
CELLS += [("docker", root, mode) for root, modes in IN_DOCKER.items() for mode in modes]

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
FOREIGN, EMULATOR = {"amd64": ("arm64", "qemu-aarch64-static"), "arm64": ("amd64", "qemu-x86_64-static")}[ARCH]


def start_with_binary(start, root, mode, binary):
    """A container with the binary in it: copied into the running one, or into what its read-only root is made of."""
    options = MODES[mode]
    if options.get("read_only"):
        return start(root.name, files={BINARY: binary}, **options)
    container = start(root.name, **options)
    container.copy(binary, BINARY)
    return container


def check_probe(client, root, options, binary, arch=ARCH):
    found = client.probe()
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["version"])
    assert found["sha256"] == hashlib.sha256(binary.read_bytes()).hexdigest()
    assert (found["path"], found["arch"]) == (BINARY, arch)
    if arch == ARCH:  # an emulator lets stat(2) see its own file
        assert found["size"] == binary.stat().st_size
    assert found["kernel"] == os.uname().release
    assert found["uid"] == found["gid"] == options.get("user", 0)
    assert found["libc"]["kind"] == ("glibc" if root.name in ("debian", "libc") else "none")
    assert (found["distribution"]["id"] is not None) == (root.name == "debian")
    assert (root.shell in found["shells"]) if root.shell else found["shells"] == []
    assert found["pty"] == options.get("pts", True)
    if "tmpfs" in options:
        assert "/tmp" not in found["places"] and "noexec" in str(found["places_refused"])
    assert client.rpc("version") == found["version"]
    assert not found["server"]["running"], "neither probe nor version needs a server"


def check_editor(client, container, folder):
    path = f"{folder}/edited"
    client.ed("create", path, file_text="one\n\ttwo\n")
    before = client.ed("view", path)
    assert "     1\tone\n" in before
    client.ed("str_replace", path, old_str="two", new_str="zwei")
    assert container.check([BUSYBOX, "cat", path]) == "one\n\tzwei\n"
    client.ed("undo_edit", path)
    assert client.ed("view", path) == before
    client.ed("undo_edit", path)
    with pytest.raises(RpcError, match=path) as error:
        client.ed("view", path)
    assert error.value.code == TOOLERR


def check_session(client, shell):
    answer = client.rpc("bash_session_new_session")
    assert answer["shell"] == shell
    client.session = answer["session_name"]
    client.bs("cd /dev && kept=yes\n")
    assert "/dev yes\n" in client.bs('echo "$PWD $kept"\n')


def check_run(client):
    done = client.run("cd / && echo out && (exit 7)")
    assert (done["state"], done["exit_code"], done["output"], done["cwd"]) == ("completed", 7, "out\n", "/")


def check_no_session(client, *reasons):
    """A session can't be had: it is said why, and nothing of it is left."""
    with pytest.raises(RpcError) as error:
        client.new()
    assert error.value.code == TOOLERR
    for reason in reasons:
        assert reason in error.value.message
    assert client.rpc("bash_session_list") == []


def files(container, kind):
    """The files of a kind, as find(1) has it, in the places where a toolbox may leave some."""
    tops = ("/tmp", "/var/tmp", "/run", "/dev/shm", "/root", "/home")
    return set(container.run([BUSYBOX, "find", *tops, "-type", kind]).stdout.decode().split())


def check_end(client, container, before):
    """Nothing runs any more, but for the ended server of an emulated processor, which is an orphan. Of files there is
    the editor's history and the starters' lock in the user's own place, and what bash has written itself."""
    client.stop()
    wait_until(lambda: all(line.startswith("Z") for line in container.processes()), "everything to end")
    assert len(container.processes()) <= 1
    assert files(container, "s") == set()
    own = [place.replace("*", "[0-9]*") + file for place in PLACES for file in ("/undo/*", "/.lock", "/log")]
    own.append("/root/.bash_history")
    left = files(container, "f") - before
    assert [path for path in left if not any(fnmatch(path, pattern) for pattern in own)] == []


@pytest.mark.parametrize("runtime, name, mode", CELLS, indirect=["runtime"])
def test_container(start, toolbox, name, mode):
    """Slow: the first of each root makes it, with debootstrap or docker import."""
    root, options = roots.get(name), MODES[mode]
    container = start_with_binary(start, root, mode, toolbox)
    client = Client(container, BINARY)
    tmp_is_writable = (root.tmp or "tmpfs" in options) and mode != "read-only"
    folder = "/tmp" if tmp_is_writable else "/dev/shm"
    before = files(container, "f")

    check_probe(client, root, options, toolbox)
    check_editor(client, container, folder)
    if mode == "no-pts":
        check_no_session(client, "/dev/ptmx")
    elif root.shell is None:
        check_no_session(client, "/bin/bash", "/bin/sh")
    else:
        check_session(client, root.shell)
        check_run(client)
        if options.get("proc", True):
            client.bs("sleep 1000 &\n")
    check_end(client, container, before)


@pytest.mark.parametrize("name", ["scratch", "busybox"])
def test_foreign_processor(namespaces, foreign_toolbox, name):
    """The other processor's binary, whose system calls the emulator translates. The shell is this processor's own, so its
    state (docs/architecture.md) can't be read by numbers of the other one's system calls."""
    emulator = needs.program(EMULATOR)
    root = roots.get(name)
    container = namespaces.start(root, Options(files={"/opt/emulator": emulator, BINARY: foreign_toolbox}))
    client = Client(Emulated(container, "/opt/emulator"), BINARY)
    try:
        check_probe(client, root, {}, foreign_toolbox, FOREIGN)
        check_editor(client, container, "/dev/shm")
        if root.shell:
            check_session(client, root.shell)
        else:
            check_no_session(client, "/bin/bash", "/bin/sh")
        check_end(client, container, set())
    finally:
        container.destroy()


def test_stop_ends_background_jobs_without_proc(namespaces, toolbox):
    container = namespaces.start(roots.get("busybox"), Options(proc=False, files={BINARY: toolbox}))
    try:
        client = Client(container, BINARY)
        client.new()
        client.bs("sleep 1000 &\n")
        client.stop()
        assert not any("sleep" in line for line in container.processes())
    finally:
        container.destroy()


@pytest.mark.skipif(os.geteuid() != 0, reason="strace of a process of one's own may be forbidden")
@needs.programs("strace")
def test_a_stop_without_proc_asks_few_numbers(namespaces, toolbox, workdir):
    """Who is a child is asked for number by number there: those between the server's own and the newest, which are few."""
    container = namespaces.start(roots.get("busybox"), Options(proc=False, files={BINARY: toolbox}))
    try:
        client, trace = Client(container, BINARY), workdir / "trace"
        client.rpc("exec_remote_start", {"command": "sleep 1000"})
        server = next(str(process).split()[0] for process in neighbours(container.init) if "toolbox server" in str(process))
        words = ["strace", "-e", "trace=waitid", "-o", trace, "-p", server]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as tracer:
            assert b"attached" in tracer.stderr.readline()
            client.stop()
            tracer.wait(60)
        assert not any("sleep" in line for line in container.processes())
        assert 0 < len(trace.read_text().splitlines()) < 20000
    finally:
        container.destroy()
