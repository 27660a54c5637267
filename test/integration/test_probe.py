"""`toolbox probe`: what is reported is true, it needs nothing, and it leaves nothing behind."""
import ctypes
import hashlib
import json
import os
import platform
import pty
import re
import resource
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from harness import roots
from harness.client import Client, one_object
from harness.containers import Options
from harness.machine import HANG
from harness.users import NOBODY_KNOWS, needs_root

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
MEMBERS = {
    "version", "build", "sha256", "path", "size", "os", "arch", "machine", "kernel", "distribution", "libc", "container", "uid",
    "gid", "groups", "user", "home", "capabilities", "seccomp", "no_new_privs", "shells", "places", "places_refused", "limits",
    "pty", "pty_error", "server",
}
# With sanitizers it is linked dynamically, and its loader needs what is taken away.
needs_static = pytest.mark.skipif("TOOLBOX_SANITIZED" in os.environ, reason="needs the static binary")
PLACES = ["/var/tmp", "/opt", "/usr/local/bin", "/run", "/tmp", "/dev/shm"]


def refused(found):
    return {place["path"]: place["reason"] for place in found["places_refused"]}


# ---- on this machine ----


def test_itself(client, toolbox):
    found = client.probe()
    assert set(found) == MEMBERS
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["version"]) and re.fullmatch(r"[0-9a-f]{16}", found["build"])
    data = toolbox.read_bytes()
    assert (found["path"], found["size"]) == (str(toolbox), len(data))
    assert found["sha256"] == hashlib.sha256(data).hexdigest()
    assert (found["os"], found["arch"]) == ("linux", ARCH)
    assert (found["machine"], found["kernel"]) == (os.uname().machine, os.uname().release)


def test_who_we_are(client):
    found = client.probe()
    assert (found["uid"], found["gid"]) == (os.geteuid(), os.getegid())
    assert set(found["groups"]) == {os.getegid(), *os.getgroups()}
    effective = int(re.search(r"CapEff:\s*(\w+)", open("/proc/self/status").read())[1], 16)
    assert len(found["capabilities"]) == bin(effective).count("1")
    assert found["seccomp"] in ("disabled", "filter")


@needs_root
def test_groups_are_reported_once(client):
    found = client.probe(preexec_fn=lambda: os.setgroups([7, os.getegid(), 3]))
    assert found["groups"] == [os.getegid(), 3, 7]


@needs_root
def test_a_user_with_an_entry(client, user):
    found = client.probe(user=user.uid)
    assert (found["uid"], found["user"], found["home"]) == (user.uid, user.name, user.home)
    assert found["capabilities"] == [] and found["places"].index("/tmp") < found["places"].index(user.home)
    assert refused(found)["/usr/local/bin"] == "Permission denied"


@needs_root
def test_a_user_without_an_entry(client):
    found = client.probe(user=NOBODY_KNOWS)
    assert (found["uid"], found["gid"], found["user"], found["home"]) == (NOBODY_KNOWS, NOBODY_KNOWS, None, "/")
    assert found["groups"] == [NOBODY_KNOWS]


def test_limits(client):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    limits = client.probe(preexec_fn=lower)["limits"]
    assert (limits["nofile"], limits["nofile_max"]) == (100, 200)
    assert 0 < limits["cpus"] <= 1


def test_no_file_may_be_written(client):
    found = client.probe(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert found["places"] == [] and refused(found)["/tmp"] == "File too large"


@needs_static
@pytest.mark.parametrize("descriptors", [3, 4, 5, 6])
def test_few_descriptors(client, descriptors):
    found = client.probe(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
    assert set(found) == MEMBERS and found["limits"]["nofile"] == descriptors
    assert (found["libc"]["kind"], "/tmp" in refused(found)) == ("unknown", True) or descriptors > 3


def control_group(controller):
    """The root of a hierarchy that has this controller, ready for groups of ours."""
    first, unified = Path("/sys/fs/cgroup", controller), Path("/sys/fs/cgroup")
    if (first / "cgroup.procs").exists():
        return first
    if controller not in _words(unified / "cgroup.controllers"):
        pytest.skip(f"no control groups for {controller} here")
    (unified / "cgroup.subtree_control").write_text(f"+{controller}")
    return unified


def _words(path):
    return path.read_text().split() if path.exists() else []


@needs_root
@pytest.mark.parametrize("controller, files, key, limit", [
    ("memory", {"memory.max": "104857600", "memory.limit_in_bytes": "104857600"}, "memory", 104857600),
    ("pids", {"pids.max": "123"}, "pids", 123),
    ("cpu", {"cpu.max": "25000 100000", "cpu.cfs_quota_us": "25000"}, "cpus", 0.25),
])
def test_limits_of_the_group_above_count(client, controller, files, key, limit):
    outer = inner = None
    try:
        outer = control_group(controller) / f"toolbox-test-{os.getpid()}"
        inner = outer / "inner"
        inner.mkdir(parents=True)
        for name, text in files.items():
            if (outer / name).exists():
                (outer / name).write_text(text)
        join = inner / "cgroup.procs"
        assert client.probe(preexec_fn=lambda: join.write_text(str(os.getpid())))["limits"][key] == limit
    except (OSError, subprocess.SubprocessError) as reason:
        pytest.skip(f"control groups can't be changed here: {reason}")
    finally:
        for group in filter(None, (inner, outer)):
            if group.exists():
                group.rmdir()


def test_the_working_directory_is_a_place_and_stays_empty(client, workdir):
    odd = os.fsencode(workdir) + b"/a \"\\\n\xff"
    os.mkdir(odd)
    found = client.probe(cwd=odd)
    assert found["places"][-1] == odd.decode(errors="replace")
    assert os.listdir(odd) == []


def test_a_working_directory_that_is_gone(client, workdir):
    gone = workdir / "gone"
    gone.mkdir()
    script = 'rmdir "$0" && exec "$1" probe'
    done = client.machine.run(["sh", "-c", script, gone, client.binary], cwd=gone)
    assert set(one_object(done)["places"]) <= {*PLACES, "/", "/root"}


def test_it_never_starts_a_server_and_sees_one_that_runs(client, server_dir):
    nobody = {"running": False, "pid": None, "directory": None}
    assert client.probe()["server"] == nobody
    assert not server_dir.exists()
    assert client.cli("start-server").returncode == 0
    server = client.probe()["server"]
    assert server["running"] and server["directory"] == str(server_dir)
    assert os.path.exists(f"/proc/{server['pid']}")
    client.stop()
    assert client.probe()["server"] == nobody


def test_a_server_directory_that_is_none(client, server_dir):
    server_dir.write_text("a file")
    assert client.probe()["server"]["running"] is False
    server_dir.unlink()


# ---- the command ----


def on_terminal(argv):
    """Exit status and output of a command that has a terminal as standard output."""
    master, slave = pty.openpty()
    try:
        with subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=slave) as process:
            os.close(slave)
            text = b""
            while not text.endswith(b"\0end"):
                try:
                    text += os.read(master, 65536)
                except OSError:  # EIO: the other side is closed
                    break
            return process.wait(timeout=HANG), text.decode()
    finally:
        os.close(master)


def test_a_terminal_gets_a_table(toolbox):
    status, text = on_terminal([toolbox, "probe"])
    assert status == 0
    rows = dict(line.split(None, 1) for line in text.splitlines())
    assert rows["sha256"].strip() == hashlib.sha256(toolbox.read_bytes()).hexdigest()
    assert rows["toolbox"].startswith("0.") and "server" in rows and "places" in rows
    columns = {len(line) - len(line.split(None, 1)[1]) for line in text.splitlines()}
    assert len(columns) == 1, f"not aligned: {text}"


def test_a_terminal_gets_json_where_it_is_wanted(toolbox):
    status, text = on_terminal([toolbox, "probe", "--json"])
    assert status == 0 and set(json.loads(text)) == MEMBERS


@pytest.mark.parametrize("argument", ["--jsom", "-x", "json", "", "--json=1"])
def test_unknown_words(client, argument):
    done = client.cli("probe", argument)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"toolbox" in done.stderr and argument.encode() in done.stderr


def test_help(client):
    done = client.cli("probe", "--help")
    assert done.returncode == 0 and done.stdout.startswith(b"Usage: toolbox probe") and done.stderr == b""


def test_standard_descriptors_may_be_closed(client):
    done = client.machine.run(["sh", "-c", 'exec "$0" probe <&- 2>&-', client.binary])
    assert set(one_object(done)) == MEMBERS
    done = client.machine.run(["sh", "-c", 'exec "$0" probe <&- >&- 2>&-', client.binary])
    assert done.returncode in (0, 1)


def test_output_that_cant_be_written(client):
    with open("/dev/full", "wb") as full:
        done = client.cli("probe", stdout=full)
    assert done.returncode == 1 and b"No space left on device" in done.stderr


# ---- filters of system calls ----

# What containers' filters refuse, or old kernels don't know, of what probe uses.
CALLS = {
    "x86_64": {"execveat": 322, "faccessat2": 439, "statx": 332, "capget": 125, "sched_getaffinity": 204, "close_range": 436,
               "prlimit64": 302, "openat2": 437},
    "aarch64": {"execveat": 281, "faccessat2": 439, "statx": 291, "capget": 90, "sched_getaffinity": 123, "close_range": 436,
                "prlimit64": 261, "openat2": 437},
}[platform.machine()]


def refuse_calls(numbers, error):
    """For preexec_fn: these calls fail with `error`, all others work."""
    LOAD, EQUAL, RETURN, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
    code = struct.pack("HBBI", LOAD, 0, 0, 0)
    for i, number in enumerate(numbers):
        code += struct.pack("HBBI", EQUAL, len(numbers) - i, 0, number)
    code += struct.pack("HBBI", RETURN, 0, 0, ALLOW) + struct.pack("HBBI", RETURN, 0, 0, ERRNO | error)
    libc = ctypes.CDLL(None)
    instructions = ctypes.create_string_buffer(code)

    def install():
        program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
        if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
            raise OSError("no filter can be set")

    return install


@needs_static
@pytest.mark.parametrize("error", [38, 1], ids=["ENOSYS", "EPERM"])
def test_calls_may_be_refused(client, error):
    plain = client.probe()
    found = client.probe(preexec_fn=refuse_calls(CALLS.values(), error))
    assert found["seccomp"] == "filter" and found["no_new_privs"] is True
    assert found["capabilities"] is None
    for same in ("sha256", "path", "distribution", "libc", "shells", "places", "pty", "user"):
        assert found[same] == plain[same]


# ---- in containers ----

SYSTEMS = {  # root: (kind of C library, its shells begin with)
    "scratch": ("none", []),
    "libc": ("glibc", []),
    "busybox": ("none", ["/bin/sh"]),
    "debian": ("glibc", ["/bin/bash", "/bin/sh"]),
}


@needs_static
@pytest.mark.parametrize("root", roots.NAMES)
def test_every_kind_of_root(start, toolbox, root):
    container = start(root, files={"/toolbox": toolbox})
    found = Client(container, "/toolbox").probe()
    libc, shells = SYSTEMS[root]
    assert found["libc"]["kind"] == libc
    assert (found["libc"]["version"] is not None) == (libc == "glibc")
    assert found["shells"][:len(shells)] == shells and bool(found["shells"]) == bool(shells)
    assert (found["distribution"]["id"] is not None) == (root == "debian")
    assert (found["path"], found["uid"]) == ("/toolbox", 0)
    assert found["sha256"] == hashlib.sha256(toolbox.read_bytes()).hexdigest()
    assert found["pty"] is True and "/" in found["places"] + list(refused(found)) + [found["home"]]


def start_bare(namespaces, request, toolbox, root, **options):
    """A container without an engine: Docker has no option for half of what is taken away here."""
    container = namespaces.start(roots.get(root), Options(files={"/toolbox": toolbox}, **options))
    request.addfinalizer(container.destroy)
    return Client(container, "/toolbox")


@needs_root
@needs_static
@pytest.mark.parametrize("root", ["scratch", "busybox"])
@pytest.mark.parametrize("user", [None, NOBODY_KNOWS], ids=["root", "user"])
def test_without_proc(namespaces, request, toolbox, root, user):
    client = start_bare(namespaces, request, toolbox, root, proc=False, user=user)
    found = client.probe()
    assert (found["path"], found["sha256"]) == ("/toolbox", hashlib.sha256(toolbox.read_bytes()).hexdigest())
    assert found["uid"] == (user or 0) and found["capabilities"] is not None
    assert found["pty"] is True and found["libc"]["kind"] == "none"


@needs_root
@needs_static
def test_without_terminals(namespaces, request, toolbox):
    found = start_bare(namespaces, request, toolbox, "scratch", pts=False).probe()
    assert found["pty"] is False and "/dev/pts" in found["pty_error"]


@needs_root
@needs_static
def test_nowhere_to_write(namespaces, request, toolbox):
    found = start_bare(namespaces, request, toolbox, "busybox", read_only=True, proc=False, pts=False, user=NOBODY_KNOWS).probe()
    assert found["places"] == []
    reasons = refused(found)
    assert reasons["/tmp"] == "Read-only file system" and reasons["/opt"] == "No such file or directory"
    assert reasons["/dev/shm"] == "mounted noexec"


@needs_root
@needs_static
@pytest.mark.parametrize("user", [None, NOBODY_KNOWS], ids=["root", "user"])
def test_places_are_told_apart(namespaces, request, toolbox, user):
    tmpfs = ("/tmp:noexec", "/var/tmp", "/opt:ro", "/run:size=4k")
    client = start_bare(namespaces, request, toolbox, "busybox", read_only=True, tmpfs=tmpfs, user=user)
    found = client.probe()
    assert found["places"][:2] == ["/var/tmp", "/run"]
    reasons = refused(found)
    assert reasons["/tmp"] == "mounted noexec" and reasons["/opt"] == "Read-only file system"
    listing = client.machine.check(["/bin/ls", "-A", "/tmp", "/var/tmp", "/run", "/dev/shm"])
    assert "toolbox" not in listing, listing
    client.machine.check(["/bin/dd", "if=/dev/zero", "of=/run/full", "bs=4k", "count=1"])
    assert refused(client.probe())["/run"] == "No space left on device"


@needs_root
def test_a_file_that_may_be_run_but_not_read(client, workdir, toolbox):
    secret = workdir / "unreadable"
    secret.write_bytes(toolbox.read_bytes())
    secret.chmod(0o711)
    found = one_object(client.machine.run([secret, "probe"], user=NOBODY_KNOWS))
    assert (found["path"], found["size"], found["sha256"]) == (str(secret), secret.stat().st_size, None)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o711
