"""`toolbox inject` into containers of namespaces, through a prefix that runs things there: the listed cases, and what
hostile or poor targets do."""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import needs, releases, roots
from harness.containers import BUSYBOX, Options
from harness.injection import (CHOICE, PLACING, PROOF, RECON, SERVER, TARGET, TEMPORARY, Injector, make_root, owner_and_mode, prefix,
                               script, traces)
from harness.machine import HANG
from harness.processes import wait_until
from harness.server import pid_in
from harness.roots import Root
from harness.users import NOBODY_KNOWS, needs_root

pytestmark = needs_root

DIR = ".toolbox-bin"


@pytest.fixture
def injector(toolbox):
    return Injector(toolbox)


@pytest.fixture
def start(namespaces):
    """start(root or its name, options): a container of namespaces. Ends with the test."""
    made = []

    def make(root="busybox", **options):
        root = roots.get(root) if isinstance(root, str) else root
        made.append(namespaces.start(root, Options(**options)))
        return made[-1]

    yield make
    for container in made:
        container.destroy()


@pytest.fixture
def poor(workdir, start):
    """poor("cat", "chmod"): a container with a shell and these programs alone."""

    def make(*applets, **options):
        folder = make_root(workdir / f"root-{len(list(workdir.iterdir()))}", *applets)
        return start(Root("poor", folder, "/bin/sh", True), **options)

    return make


def target(container, user=None):
    return f"exec:{prefix(container, user)}"


def check_ready(injector, container, at, found, uid=0, user=None):
    """It is there, whole, its owner's alone, serves, and is left alone the next time; nothing else is there."""
    path = found["path"]
    assert owner_and_mode(container, path) == (uid, 0o700)
    assert hashlib.sha256(container.run([BUSYBOX, "cat", path]).stdout).hexdigest() == found["sha256"]
    assert not [trace for trace in traces(container) if TEMPORARY in trace]
    probe = json.loads(container.run([path, "probe", "--json"], user=user).stdout)
    assert probe["sha256"] == found["sha256"] and probe["server"]["running"]
    inode = container.check([BUSYBOX, "stat", "-c", "%i", path])
    again = injector.inject(at)
    assert (again["state"], again["path"], again["calls"]) == ("identical", path, 1)
    # the one that stays is a child of what carries the calls in, and not that of the first look (settle.h)
    assert probe["server"]["pid"] == pid_in(again["server"]), again
    assert container.check([BUSYBOX, "stat", "-c", "%i", path]) == inode


def check_gone(injector, container, at, *args):
    injector.eject(at, *args)
    assert traces(container) == []
    assert not [line for line in container.processes() if "toolbox" in line and not line.startswith("Z")]


# ---- the main thing ----


@pytest.mark.parametrize("root", ["debian", "busybox"])
def test_ready_and_gone(injector, start, root, toolbox):
    container = start(root)
    at = target(container)
    found = injector.inject(at)
    assert found["state"] == "placed" and found["calls"] == 2 and found["uid"] == "0"
    assert found["size"] == toolbox.stat().st_size <= found["sent"] <= found["size"] + 6144
    assert {step["step"] for step in found["steps"]} == {"recon", "choice", "placing", "proof", "server", "health"}
    check_ready(injector, container, at, found)
    check_gone(injector, container, at)
    assert injector.eject(at)["ok"], "where nothing is, nothing is done"


def test_call_makes_ready_and_answers(injector, start):
    at = target(start())
    assert re.fullmatch(r"\d+\.\d+\.\d+", injector.call(at, "version"))
    name = injector.call(at, "bash_session_new_session", {})["session_name"]
    done = injector.call(at, "bash_session_run", {"session_name": name, "command": "i=0; while [ $i -lt 30000 ]; do echo 123456789; i=$((i+1)); done"})
    assert done["exit_code"] == 0 and done["output"] == "123456789\n" * 30000, "a long answer comes whole"
    bad = injector.run("call", at, "no_such_method")
    assert bad.returncode == 1 and b"no_such_method" in bad.stderr and b"the methods are" in bad.stderr and b"exec_remote_start" in bad.stderr
    assert b"did you mean 'bash_session_run'?" in injector.run("call", at, "bash_sesion_run").stderr
    assert json.loads(injector.run("call", "--json", at, "no_such_method").stdout)["error"]["code"] == -32601
    assert injector.run("call", at, "version", "{bad").returncode == 2
    injector.eject(at)


def test_mcp_serve_in_a_target(injector, start):
    container = start()
    messages = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
                 "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "shell_run", "arguments": {"command": "echo $((6*7)) in $(pwd)"}}}]
    text = "".join(json.dumps(message) + "\n" for message in messages).encode()
    for _ in range(2):
        done = injector.run("mcp", "serve", "--in", target(container), stdin=text)
        answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines()) if "id" in answer}
        assert "42 in /" in json.dumps(answers[2]), done
    for bad in (("--in", "docker:*"), ("--in", "dir:/"), ("--in",), ("--in", "local:", "x"), ("--in", "local:", "--nope")):
        assert injector.run("mcp", "serve", *bad).returncode == 2, bad
    failed = injector.run("mcp", "serve", "--in", "exec:false")
    assert failed.returncode == TARGET and failed.stdout == b"" and b"target" in failed.stderr
    check_gone(injector, container, target(container))


def test_dir_and_name_make_ready_for_inspect(injector, start):
    container = start()
    at, place = target(container), ("--dir", "/var/tmp/.da7be258e003d428", "--name", "inspect-sandbox-tools")
    found = injector.inject(at, *place)
    assert found["path"] == "/var/tmp/.da7be258e003d428/inspect-sandbox-tools"
    answer = container.run([found["path"], "exec"], stdin=b'{"jsonrpc":"2.0","id":1,"method":"version"}')
    assert json.loads(answer.stdout)["result"]
    assert injector.inject(at, *place)["state"] == "identical"
    check_gone(injector, container, at, *place)


def test_links_lead_to_applets_and_go(injector, start):
    container = start()
    at = target(container)
    injector.inject(at, "--links", "/usr/local/toolbox-links")
    assert b"shells" in container.run(["/usr/local/toolbox-links/probe"]).stdout
    assert container.check(["/usr/local/toolbox-links/toolbox", "--version"]).startswith("toolbox ")
    check_gone(injector, container, at)


def test_made_directories_go_and_others_stay(injector, start):
    container = start()
    at = target(container)
    container.check([BUSYBOX, "mkdir", "-p", "/opt/there"])
    place = ("--dir", "/opt/there/a b/it's")
    injector.inject(at, *place)
    check_gone(injector, container, at, *place)
    assert container.check([BUSYBOX, "find", "/opt"]).split() == ["/opt", "/opt/there"]


def test_nothing_is_kept_of_an_environment(injector, start):
    """Sessions get what any program of the container has, and nothing of the shell that came first."""
    at = target(start())
    injector.inject(at)
    name = injector.call(at, "bash_session_new_session", {})["session_name"]
    env = injector.call(at, "bash_session_run", {"session_name": name, "command": "env"})["output"]
    assert "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n" in env
    umask = injector.call(at, "bash_session_run", {"session_name": name, "command": "umask"})["output"]
    assert umask.strip() == "0022"
    injector.eject(at)


# ---- listed cases ----

ROOT_ASKED = {
    "raises": "echo 'cannot run as root' >&2; kill -9 $$",
    "fails": "echo 'user root is not allowed' >&2; exit 1",
}


@pytest.mark.parametrize("how", ROOT_ASKED)
def test_c116_no_root_to_be_had(injector, start, workdir, how):
    container = start()
    as_root = script(workdir / "root", ROOT_ASKED[how])
    at = target(container, NOBODY_KNOWS)
    found = injector.inject(at, "--root-exec", as_root)
    assert found["uid"] == str(NOBODY_KNOWS)
    check_ready(injector, container, at, found, NOBODY_KNOWS, NOBODY_KNOWS)
    check_gone(injector, container, at)


def test_c116_root_times_out_once(injector, start, workdir):
    container = start()
    as_root = script(workdir / "root", f'[ -e {workdir}/once ] || {{ >{workdir}/once; sleep 600; }}; exec {prefix(container)} "$@"')
    found = injector.inject(target(container, NOBODY_KNOWS), "--root-exec", as_root, "--timeout", "3")
    assert found["uid"] == "0" and owner_and_mode(container, found["path"]) == (0, 0o700)
    check_gone(injector, container, target(container))


def test_c116_root_writes_as_another(injector, start, workdir):
    container = start()
    as_root = script(workdir / "root", f'exec {prefix(container, 4321)} "$@"')
    found = injector.inject(target(container, NOBODY_KNOWS), "--root-exec", as_root)
    assert found["uid"] == "4321" and owner_and_mode(container, found["path"]) == (4321, 0o700)


def test_c116_root_whose_files_are_anothers(injector, poor, workdir):
    """As on a file system that squashes root: what would run there as root could be changed by that other one."""
    container = poor("cat", "id", "uname", "mkdir", "rm", "rmdir", "wc")
    container.check([BUSYBOX, "sh", "-c", "cat >/bin/chmod; chmod 755 /bin/chmod"],
                    stdin=f'#!/bin/sh\n{BUSYBOX} chmod "$@"; {BUSYBOX} chown 4321 "$2"\n'.encode())
    failed = injector.inject(target(container), status=PLACING)
    assert "what is written there belongs to somebody else" in failed["tried"]
    assert traces(container) == []


def test_c116_an_id_that_lies(injector, start):
    """Who runs it is what the kernel says."""
    container = start("debian")
    container.check([BUSYBOX, "sh", "-c", "printf '#!/bin/sh\necho 0\n' >/usr/local/bin/id; chmod 755 /usr/local/bin/id"])
    found = injector.inject(target(container, 4321))
    assert found["uid"] == "4321" and owner_and_mode(container, found["path"]) == (4321, 0o700)


def test_c116_failures_name_the_step(injector, workdir):
    nothing = script(workdir / "nothing", "echo 'no such sandbox' >&2; exit 3")
    failed = injector.inject(f"exec:{nothing}", "--root-exec", nothing, status=TARGET)
    assert "no such sandbox" in failed["message"] and failed["advice"]
    slow = script(workdir / "slow", "sleep 600")
    assert "--timeout" in injector.inject(f"exec:{slow}", "--timeout", "1", status=RECON)["message"]


PLACES = {
    "user, /opt is root's": ({"user": NOBODY_KNOWS}, "/var/tmp"),
    "/var/tmp noexec": ({"user": NOBODY_KNOWS, "tmpfs": ("/var/tmp:noexec,mode=1777",)}, "/tmp"),
    "/tmp noexec": ({"user": NOBODY_KNOWS, "tmpfs": ("/tmp:noexec,mode=1777",)}, "/var/tmp"),
    "both noexec": ({"user": NOBODY_KNOWS, "tmpfs": ("/tmp:noexec,mode=1777", "/var/tmp:noexec,mode=1777", "/scratch:mode=1777")}, "/scratch"),
    "one exec tmpfs": ({"user": NOBODY_KNOWS, "read_only": True, "tmpfs": ("/scratch:mode=1777",)}, "/scratch"),
    "root, read-only": ({"read_only": True, "tmpfs": ("/scratch:mode=700",)}, "/scratch"),
}


@pytest.mark.parametrize("case", PLACES)
def test_c117_place(injector, start, case, workdir):
    options, place = PLACES[case]
    root = make_root(workdir / "root", "cat", "chmod", "id", "uname", "mkdir", "rm", "rmdir", "wc")
    (root / "scratch").mkdir()
    container = start(Root("place", root, "/bin/sh", True), **options)
    at, uid = target(container), options.get("user", 0)
    found = injector.inject(at)
    assert found["path"].startswith(f"{place}/{DIR}"), found
    check_ready(injector, container, at, found, uid, uid or None)
    check_gone(injector, container, at)


def test_c117_the_usual_places_are_noexec(injector, start, workdir):
    """What is mounted is only looked through when nothing else will do: then it is found, and found again."""
    root = make_root(workdir / "root", "cat", "chmod", "id", "uname", "mkdir", "rm", "rmdir", "wc")
    (root / "scratch").mkdir()
    usual = ("/opt", "/usr/local", "/var/tmp", "/run", "/tmp", "/dev/shm", "/root", "/dev")
    container = start(Root("noexec", root, "/bin/sh", True), read_only=True,
                      tmpfs=(*(f"{place}:noexec,mode=755" for place in usual), "/scratch:mode=755"))
    at = target(container)
    found = injector.inject(at)
    assert found["path"].startswith(f"/scratch/{DIR}/") and found["state"] == "placed", found
    again = injector.inject(at)
    assert (again["path"], again["state"]) == (found["path"], "identical")
    assert re.fullmatch(r"\d+\.\d+\.\d+", injector.call(at, "version"))
    check_gone(injector, container, at)


def test_c117_no_place(injector, start):
    tmpfs = tuple(f"{place}:noexec,mode=1777" for place in ("/tmp", "/var/tmp", "/run", "/dev"))
    container = start(user=NOBODY_KNOWS, read_only=True, tmpfs=tmpfs, pts=False)
    failed = injector.inject(target(container), status=PLACING)
    assert f"/tmp/.toolbox-bin-{NOBODY_KNOWS}: mounted noexec" in failed["tried"] and failed["advice"]
    assert traces(container) == []
    failed = injector.inject(target(container), "--dir", "/bin/x", status=PLACING)
    assert "/bin/x: Read-only file system" in failed["tried"]
    container = start(user=NOBODY_KNOWS)
    failed = injector.inject(target(container), "--dir", "/etc/x", status=PLACING)
    assert "/etc/x: Permission denied" in failed["tried"]


def test_c117_older_version_is_replaced(injector, start):
    container = start()
    at = target(container)
    container.check([BUSYBOX, "mkdir", "-p", "-m", "700", f"/usr/local/{DIR}", f"/opt/{DIR}"])
    for place in ("/opt", "/usr/local"):
        container.check([BUSYBOX, "sh", "-c", f"echo 'exit 2' >{place}/{DIR}/toolbox; chmod 700 {place}/{DIR}/toolbox"])
    found = injector.inject(at)
    assert (found["state"], found["path"]) == ("replaced", f"/opt/{DIR}/toolbox")
    assert injector.inject(at)["state"] == "identical"
    check_gone(injector, container, at)


def test_c117_another_users_directory_is_no_place(injector, start):
    """Neither run nor written to by root: whoever owns it could put something else in its place."""
    container = start(user=None)
    at = target(container)
    for place in ("opt", "usr/local", "var/tmp", "tmp"):
        container.run([BUSYBOX, "mkdir", "-p", f"/{place}/{DIR}"])
        container.check([BUSYBOX, "sh", "-c", f"echo '>/planted' >/{place}/{DIR}/toolbox; chmod 777 /{place}/{DIR}/toolbox;"
                                              f"chown -R 4321 /{place}/{DIR}"])
    found = injector.inject(at)
    assert found["path"].startswith("/run/")
    assert container.run([BUSYBOX, "test", "-e", "/planted"]).returncode == 1
    assert container.check([BUSYBOX, "cat", f"/opt/{DIR}/toolbox"]) == ">/planted\n"


def test_c117_root_trusts_no_others_directory(injector, start):
    """Not even one that was named: its owner could put something else into it afterwards."""
    container = start()
    container.check([BUSYBOX, "sh", "-c", "mkdir /tmp/planted; chown 4321 /tmp/planted; ln -s /etc /tmp/link"])
    for place in ("/tmp/planted", "/tmp/link"):
        failed = injector.inject(target(container), "--dir", place, status=PLACING)
        assert "somebody else" in failed["tried"]
    assert traces(container) == []


def test_c117_what_leads_to_it_is_roots_too(injector, start):
    """Who owns a directory above could put another one into its place: nothing is written there, and nothing run."""
    container = start()
    at = target(container)
    container.check([BUSYBOX, "sh", "-c", "mkdir -p /opt /usr/local; chown 4321 /opt"])
    for place in ("/opt/x", "/opt/deep/er"):
        failed = injector.inject(at, "--dir", place, status=PLACING)
        assert "somebody else" in failed["tried"]
    assert container.check([BUSYBOX, "find", "/opt"]).split() == ["/opt"], "what was made on the way is gone again"
    assert injector.inject(at)["path"].startswith("/usr/local/")
    injector.eject(at)
    container.check([BUSYBOX, "chown", "0", "/opt"])
    assert injector.inject(at)["path"].startswith("/opt/")
    container.check([BUSYBOX, "chown", "4321", "/opt"])
    assert injector.inject(at)["path"].startswith("/usr/local/")
    container.check([BUSYBOX, "chown", "0", "/opt"])
    check_gone(injector, container, at)


def test_c117_a_failed_injection_is_no_result(injector, workdir):
    """What a tool has printed is on stdout, as one line; what hindered it never is."""
    for more in ((), ("--json",)):
        done = injector.run("call", *more, "exec:false", "version")
        assert done.returncode == TARGET and done.stdout == b"" and b"target: nothing can be run in it" in done.stderr, done


POOR = {
    "what is usual": ("cat", "chmod", "id", "uname", "mkdir", "rm", "rmdir", "wc"),
    "no tar, id, uname, wc": ("cat", "chmod", "mkdir", "rm", "rmdir"),
    "dd for cat": ("dd", "chmod", "mkdir", "rm", "rmdir"),
    "tee for cat": ("tee", "chmod", "mkdir", "rm", "rmdir"),
    "no rm": ("cat", "chmod", "mkdir"),
    "cp for chmod": ("cat", "cp", "mkdir", "rm", "rmdir"),
    "busybox alone": ("busybox",),
}


@pytest.mark.parametrize("case", POOR)
def test_c118_what_is_missing(injector, poor, case):
    container = poor(*POOR[case])
    at = target(container)
    found = injector.inject(at)
    check_ready(injector, container, at, found)
    has_uname = "uname" in POOR[case]
    assert found["about"].startswith("Linux " if has_uname else "no uname, a shell for " + found["arch"])
    check_gone(injector, container, at)


def test_c118_path_empty(injector, poor, workdir):
    container = poor(*POOR["what is usual"])
    empty = script(workdir / "empty", f'exec {prefix(container).replace("PATH=", "PATH= OLD=")} "$@"')
    found = injector.inject(f"exec:{empty}")
    assert found["state"] == "placed"
    name = injector.call(f"exec:{empty}", "exec_remote_start", {"argv": ["/bin/cat", "/proc/self/environ"]})
    assert name["pid"] > 0
    check_gone(injector, container, f"exec:{empty}")


def test_c118_no_mode_to_be_set(injector, poor):
    container = poor("cat", "mkdir", "rm", "rmdir")
    failed = injector.inject(target(container), status=PLACING)
    assert "chmod" in failed["message"]
    assert traces(container) == []


MISSING = {"cat": ("chmod", "mkdir", "rm", "rmdir"), "mkdir": ("cat", "chmod", "rm", "rmdir")}


@pytest.mark.parametrize("name", MISSING)
def test_c118_what_is_missing_is_named(injector, poor, name):
    container = poor(*MISSING[name])
    failed = injector.inject(target(container), status=PLACING)
    assert f"there is no {name}" in failed["message"] and failed["calls"] < 6, failed
    assert traces(container) == []
    if name == "mkdir":
        assert injector.inject(target(container), "--dir", "/opt")["path"] == "/opt/toolbox"


def test_c118_mkdir_of_one_at_a_time(injector, poor):
    container = poor("cat", "chmod", "rm", "rmdir")
    container.check([BUSYBOX, "sh", "-c", "cat >/bin/mkdir; chmod 755 /bin/mkdir"],
                    stdin=f'#!/bin/sh\n[ "$1" != -p ] && exec {BUSYBOX} mkdir "$@"; echo "mkdir: bad option" >&2; exit 1\n'.encode())
    place = ("--dir", "/opt/a/b c/d")
    assert injector.inject(target(container), *place)["path"] == "/opt/a/b c/d/toolbox"
    check_gone(injector, container, target(container), *place)
    assert container.check([BUSYBOX, "find", "/opt"]).split() == ["/opt"]


def test_c118_quote_and_space(injector, start):
    container = start()
    at, place = target(container), ("--dir", "/opt/it's a \"place\"; $HOME", "--name", "the tool's")
    found = injector.inject(at, *place)
    assert found["path"] == f"{place[1]}/{place[3]}"
    assert injector.inject(at, *place)["state"] == "identical"
    check_gone(injector, container, at, *place)


def test_c120_no_library_is_needed(toolbox, foreign_toolbox):
    for binary in (toolbox, foreign_toolbox):
        listing = subprocess.run(["readelf", "-dlV", binary], capture_output=True, text=True, check=True).stdout
        assert "NEEDED" not in listing and "INTERP" not in listing and "No version information" in listing


@pytest.mark.parametrize("answer", ["ENOSYS", "EPERM"])
def test_c120_new_system_calls_refused(injector, start, workdir, answer):
    (workdir / "filter.c").write_text(FILTER)
    subprocess.run(["gcc", "-static", "-o", workdir / "filter", workdir / "filter.c", f"-DANSWER={answer}"], check=True)
    container = start()
    at = f"exec:{shlex.join([str(workdir / 'filter'), *shlex.split(prefix(container))])}"
    injector.inject(at)
    name = injector.call(at, "bash_session_new_session", {})["session_name"]
    assert injector.call(at, "bash_session_run", {"session_name": name, "command": "echo $((6*7))"})["output"] == "42\n"
    started = injector.call(at, "exec_remote_start", {"command": "exit 3"})
    wait_until(lambda: injector.call(at, "exec_remote_poll", {**started, "ack_seq": 0})["exit_code"] == 3, "the job to end")
    at_file = {"path": "/root/text"}
    injector.call(at, "text_editor", {"command": "create", **at_file, "file_text": "old\n"})
    injector.call(at, "text_editor", {"command": "str_replace", **at_file, "old_str": "old", "new_str": "new"})
    assert container.check([BUSYBOX, "cat", at_file["path"]]) == "new\n"
    container.check([BUSYBOX, "rm", at_file["path"]])
    check_gone(injector, container, at)


FILTER = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define REFUSE(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ANSWER)
int main(int argc, char **argv)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_clone3), REFUSE(SYS_close_range), REFUSE(SYS_pidfd_open), REFUSE(SYS_openat2), REFUSE(SYS_faccessat2),
        REFUSE(SYS_io_uring_setup), REFUSE(SYS_statx), REFUSE(SYS_renameat2), REFUSE(SYS_memfd_create),
        REFUSE(SYS_copy_file_range), REFUSE(SYS_pidfd_send_signal), REFUSE(452 /* fchmodat2 */), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 99;
    execvp(argv[1], argv + 1);
    return 98;
}
"""

MACHINES = {
    "x86_64": "amd64", "amd64": "amd64", "AARCH64": "arm64", "arm64": "arm64",
    "armv8l": None, "armv7l": None, "i686": None, "riscv64": None, "": None, "x86_64\\r": None, "mips": None,
}


@pytest.mark.parametrize("machine", MACHINES)
def test_c121_processor(injector, start, machine, toolbox):
    """What can't be run is refused before anything is written; what says that it is something else is found out."""
    container = start("debian")
    fake = f'#!/bin/sh\nif [ "$1" = -m ]; then printf "{machine}\\n"; else echo Linux; fi\n'
    container.check([BUSYBOX, "sh", "-c", "cat >/usr/bin/uname"], stdin=fake.encode())
    if MACHINES[machine] == "amd64":
        assert injector.inject(target(container))["arch"] == "amd64"
    elif MACHINES[machine]:
        # the right one for what it says; there is none beside the suite's copy of the binary
        failed = injector.inject(target(container), status=CHOICE)
        assert MACHINES[machine] in failed["message"]
    else:
        failed = injector.inject(target(container), status=CHOICE)
        assert "not supported" in failed["message"]
        assert traces(container) == []


def test_c121_other_system(injector, start):
    container = start("debian")
    container.check([BUSYBOX, "sh", "-c", "cat >/usr/bin/uname"], stdin=b"#!/bin/sh\necho Darwin\n")
    failed = injector.inject(target(container), status=CHOICE)
    assert "Darwin" in failed["message"] and "not supported" in failed["message"]


def test_c121_wrong_architecture_is_said(foreign_toolbox, start):
    """A target that says amd64 and is none: here the other architecture's binary is what an emulated host has."""
    emulator = needs.program("qemu-aarch64-static")
    container = start("debian")
    container.check([BUSYBOX, "sh", "-c", "cat >/usr/bin/uname"],
                    stdin=b'#!/bin/sh\n[ "$1" = -m ] && echo aarch64 || echo Linux\n')
    done = Injector(emulator).run(str(foreign_toolbox), "inject", "--json", target(container))
    failed = json.loads(done.stdout)
    assert done.returncode == PROOF and "wrong architecture" in failed["message"], failed
    assert traces(container) == []


EMULATED = r"""
mount --rbind /dev $1/dev; mount -t proc proc $1/proc
mount -t binfmt_misc binfmt_misc $1/proc/sys/fs/binfmt_misc
printf %s ':other:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff'":$2:F" \
    >$1/proc/sys/fs/binfmt_misc/register
echo ready
exec cat
"""


def test_c121_arm64_is_chosen_and_runs(foreign_toolbox, toolbox, workdir):
    """The release's own file for it: chosen, placed, proved by its own words, served; on a kernel that has an emulator run it,
    for the programs of this one container alone."""
    if releases.ARCH != "amd64":
        pytest.skip("needs amd64")
    emulator = needs.program("qemu-aarch64-static")
    release = releases.Release(toolbox, others={"arm64": foreign_toolbox.read_bytes()})
    program = release.write(workdir / "release")
    root = make_root(workdir / "root", *POOR["what is usual"])
    for name in ("dev", "proc"):
        (root / name).mkdir()
    script(root / "bin/uname", '[ "$1" = -m ] && echo aarch64 || echo Linux')
    outside = ["unshare", "-U", "-r", "-m", "-p", "-f", "--kill-child", "sh", "-euc", EMULATED, "emulated", root, emulator]
    with subprocess.Popen(outside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as container:
        if container.stdout.readline() != b"ready\n":
            pytest.skip(f"no emulator for a container alone here: {container.communicate()[1].decode().strip()}")
        inner = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()[0]
        at = f"exec:nsenter -t {inner} -U -m -p --preserve-credentials chroot {shlex.quote(str(root))}"
        injector = Injector(program)
        found = injector.inject(at)
        assert found["arch"] == "arm64" and found["size"] == len(release.files[release.name("arm64")])
        assert injector.call(at, "remote_version")
        started = injector.call(at, "exec_remote_start", {"argv": [found["path"], "probe", "--json"]})
        probe = json.loads(injector.call(at, "exec_remote_wait", {**started, "ack_seq": 0, "timeout": 30})["stdout"])
        assert (probe["arch"], probe["sha256"]) == ("arm64", found["sha256"])
        assert injector.inject(at)["state"] == "identical"
        injector.eject(at)
        assert not list(root.rglob("*toolbox*"))
        container.stdin.close()


def test_each_of_two_builds_goes_with_its_own_server(injector, start, other_build):
    """They share the directory of the servers, and no server: eject leaves the other build's alone, and none of its own."""
    container = start()
    at, other = target(container), Injector(other_build)
    here, there = ("--dir", "/opt/here"), ("--dir", "/opt/there")
    servers = lambda: sum("toolbox server" in line for line in container.processes())
    injector.inject(at, *here)
    other.inject(at, *there)
    started = other.call(at, "exec_remote_start", {"command": "echo kept"}, *there)
    assert servers() == 2
    injector.eject(at, *here)
    assert servers() == 1
    told = other.call(at, "exec_remote_wait", {**started, "ack_seq": 0, "timeout": 30}, *there)
    assert told["stdout"] == "kept\n"
    check_gone(other, container, at, *there)


def test_c123_many_first_calls(injector, start):
    container = start()
    at = target(container)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [("mcp_launch_server", {"server_params": {"command": "/bin/cat", "args": []}}),
                 ("text_editor", {"command": "view", "path": "/etc"}), ("bash_session_new_session", {}), ("remote_version", {})] * 2
        answers = list(pool.map(lambda one: injector.call(at, *one), asked))
    assert all(answer is not None for answer in answers)
    # one that nobody uses yet may have been asked who it is, and end with what started it: what is used is in one that stays
    sessions = {answer["session_name"] for answer in answers if isinstance(answer, dict) and "session_name" in answer}
    assert sessions == {session["session_name"] for session in injector.call(at, "bash_session_list")} and len(sessions) == 2
    servers = {answer for (method, _), answer in zip(asked, answers) if method == "mcp_launch_server"}
    assert len(servers) == 2, answers
    for server in servers:
        injector.call(at, "mcp_kill_server", {"session_id": server})
    assert len([line for line in container.processes() if "toolbox server" in line]) == 1
    assert len([trace for trace in traces(container) if trace.endswith(f"{DIR}/toolbox")]) == 1
    check_gone(injector, container, at)


def test_c125_hidden_from_others(injector, start, toolbox):
    container, user = start("debian"), 4321
    at = target(container)
    path = injector.inject(at)["path"]
    secret = "s3cret-of-a-request"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(injector.call, at, "exec_remote_start", {"command": "sleep 100", "input": secret})
        while not call.done():
            lines = subprocess.run(["sh", "-c", "cat /proc/[0-9]*/cmdline 2>&-"], capture_output=True).stdout  # of both sides
            assert secret.encode() not in lines
        call.result()
    refused = container.run([path, "version"], user=user)
    assert refused.returncode == 126, refused
    kept = container.check([BUSYBOX, "find", "/run/toolbox", "!", "-name", "."]).split()
    assert "/run/toolbox" in kept and len(kept) > 2, "socket, log, records of jobs"
    for name in kept:
        for command in (["cat", name], ["ls", "-l", name + "/"], ["sh", "-c", f"echo >>{name}"]):
            assert container.run(command, user=user).returncode != 0, command
    for command in (["cat", path], ["ls", os.path.dirname(path)], ["sh", "-c", "ls /run/toolbox"], ["sh", "-c", "cat /run/toolbox/*"]):
        assert container.run(command, user=user).returncode != 0, command
    lines = container.run([BUSYBOX, "sh", "-c", "cat /proc/[0-9]*/cmdline"], user=user).stdout
    assert secret.encode() not in lines and b"exec_remote_start" not in lines
    assert "toolbox" not in container.check(["sh", "-c", "command -v toolbox inspect-sandbox-tools || echo none"], user=user)
    container.copy(toolbox, "/tmp/other-toolbox")
    version = b'{"jsonrpc":"2.0","id":1,"method":"remote_version"}'
    theirs = container.run(["/tmp/other-toolbox", "exec"], env={"TOOLBOX_DIR": "/run/toolbox"}, user=user, stdin=version)
    assert theirs.returncode != 0 and b"result" not in theirs.stdout, "root's server is not to be had"
    ask = container.run(["/tmp/other-toolbox", "exec"], user=user, stdin=version)
    assert b"/tmp/other-toolbox" in ask.stdout, "it talks to a server of its own"
    container.run(["/tmp/other-toolbox", "stop-server"], user=user)
    injector.eject(at)


# ---- bad transports and hostile targets ----


def test_pieces_where_the_transport_cuts(injector, start, workdir):
    """Whatever is longer than 100 KB loses its end, and some of the rest gets lost at times."""
    container = start()
    cut = script(workdir / "cut", f"""n=$(cat {workdir}/n 2>/dev/null || echo 0); echo $((n+1)) >{workdir}/n
[ $((n % 4)) = 3 ] && head -c 5000 | {prefix(container)} "$@" && exit
head -c 100000 | {prefix(container)} "$@" """)
    found = injector.inject(f"exec:{cut}")
    assert found["calls"] > 5
    check_ready(injector, container, target(container), found)
    check_gone(injector, container, target(container))


def test_changed_bytes_are_found_out(injector, start, workdir):
    container = start()
    bend = script(workdir / "bend", f'sed "s/Usage: /USAGE: /g" | {prefix(container)} "$@"')
    failed = injector.inject(f"exec:{bend}", status=PROOF)
    assert failed["message"].count(next(iter(re.findall(r"[0-9a-f]{64}", failed["message"])))) == 1
    assert len(re.findall(r"[0-9a-f]{64}", failed["message"])) == 2, "both values are said"
    assert traces(container) == []


@pytest.mark.parametrize("when", ["at once", "in the middle"])
def test_target_dies(injector, start, workdir, when):
    container = start()
    begins = f'head -c 150000 | {prefix(container)} "$@" >{workdir}/lost;' if when == "in the middle" else ""
    dies = script(workdir / "dies", f'{begins} kill -9 $$')
    failed = injector.inject(f"exec:{dies}", status=TARGET)
    assert "137" in failed["message"]
    assert traces(container) == []


def test_hostile_output_is_no_terminal_control(injector, workdir):
    evil = script(workdir / "evil", r"printf '\033]0;owned\007\033[2J\n'; printf '\033[31mred\033[0m\nno sandbox\n' >&2; exit 1")
    for more in ((), ("--json",)):
        done = injector.run("inject", *more, f"exec:{evil}")
        assert done.returncode == TARGET and b"\x1b" not in done.stdout + done.stderr and b"no sandbox" in done.stdout + done.stderr


def test_names_are_no_terminal_control(injector, workdir):
    """Neither from whoever calls, who may have got them from others, nor from a runtime's listing."""
    listing = script(workdir / "listing", r"""[ "$1" = ps ] && exec printf 'x\033[2J\nx\302\2332J\nxy\n'; echo 'no such thing' >&2; exit 1""")
    runtime = ("--runtime", listing)
    for status, *args in ((2, "docker:a\033[2Jb"), (2, "nothing:\033[2J\nall is well"), (2, "--no\033[2Jpe", "local:"), (2, "--dir", "/\033[2J", "local:"),
                          (TARGET, "exec:false \033[2J\r\nall is well"), (TARGET, *runtime, "podman:x*"), (TARGET, *runtime, "podman:x*", "podman:y")):
        for more in ((), ("--json",), ("-v",)):
            done = injector.run("inject", *more, *args)
            assert done.returncode == status and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", done.stdout + done.stderr), done
            assert b"\nall is well" not in done.stdout + done.stderr


def test_pattern_of_nothing_spoils_nothing(injector, start, workdir):
    """It is a row like any other, also as JSON."""
    container = start()
    listing = script(workdir / "listing", f"""case $1 in
ps) [ -e {workdir}/broken ] && {{ echo 'no daemon' >&2; exit 1; }}; echo here ;;
exec) shift; [ "$1" = -i ] && shift; [ "$1" = -u ] && shift 2; shift; exec {prefix(container)} "$@" ;;
esac""")
    runtime = ("--json", "--runtime", listing)
    failed = injector.inject("podman:no*", "--runtime", listing, status=TARGET)
    assert "nothing that runs fits" in failed["message"] and failed["advice"] and failed["target"] == "podman:no*"
    done = injector.run("inject", *runtime, "podman:no*", "podman:he*")
    found = {one["target"]: one["ok"] for one in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == TARGET and found == {"podman:no*": False, "podman:here": True}, done
    (workdir / "broken").touch()
    assert "no daemon" in injector.inject("podman:*", "--runtime", listing, status=TARGET)["message"]
    (workdir / "broken").unlink()
    assert injector.run("eject", *runtime, "podman:*").returncode == 0


def test_what_hinders_the_server_is_said_and_nothing_left(injector, start):
    """A step of its own; and what was placed goes again."""
    container = start()
    at = f"exec:{prefix(container).replace('PATH=', 'TOOLBOX_DIR=/proc/nowhere PATH=')}"
    failed = injector.inject(at, status=SERVER)
    assert "/proc/nowhere" in failed["message"] and traces(container) == []
    done = injector.run("call", at, "version")
    assert done.returncode == SERVER and done.stdout == b""


def test_every_step_is_told_with_its_time(injector, start):
    at = target(start())
    lines = injector.run("inject", "-v", at).stdout.decode()
    for step in ("recon", "choice", "placing", "proof", "server", "health", "doctor"):
        assert re.search(rf"^  {step} +\d+\.\d ms  ", lines, re.M), lines
    assert re.search(r"Linux .*, uid 0$", lines, re.M) and "3 calls of the runtime" in lines
    assert re.search(r"ms  \d\d things work", lines), lines
    injector.eject(at)


def test_endless_complaints_are_capped(injector, workdir):
    """Gigabytes on stderr: neither kept nor waited for."""
    flood = script(workdir / "flood", "exec cat /dev/zero >&2")
    done = injector.host.run(["sh", "-c", 'ulimit -v 200000; exec "$@"', "sh", injector.toolbox, "inject", "--json", "--timeout", "1", f"exec:{flood}"])
    assert done.returncode == RECON and len(done.stdout) < 4000, done


LIES = {
    "escapes in a path": r"""while read -r l && [ "$l" != . ]; do case $l in H=*) h=${l#H=};; esac; done
        echo toolbox-recon; echo s Linux; echo m x86_64; printf 'b /x/\033[2J/toolbox\n'
        echo "{\"ok\":true,\"sha256\":\"$(echo "$h" | tr -d "'")\"}"; echo toolbox-end""",
    "endless": "yes",
    "endless line": "cat /dev/zero",
    "no end": "echo toolbox-recon; echo 's Linux'; exit 0",
    "escapes": r"printf 'toolbox-recon\ns \033[2JLinux\nm x86_64\ntoolbox-end\n'",
    "another sum": "echo toolbox-recon; echo s Linux; echo m x86_64; echo b /x/toolbox; echo '{\"ok\":true,\"sha256\":\"00\"}'; echo toolbox-end; cat >/dev/null",
    "no json": "echo toolbox-recon; echo s Linux; echo m x86_64; echo b /x; echo '{{{{'; echo toolbox-end; cat >/dev/null",
    "no place": "echo toolbox-recon; echo s Linux; echo m x86_64; echo toolbox-end; cat >/dev/null",
    "relative place": "echo toolbox-recon; echo s Linux; echo m x86_64; echo w ../../x; echo toolbox-end; cat >/dev/null",
}


def test_absurd_times_are_not_believed(injector, workdir):
    lie = r"""while read -r l && [ "$l" != . ]; do case $l in H=*) h=${l#H=};; esac; done
        echo toolbox-recon; echo s Linux; echo m x86_64; echo b /x/toolbox
        echo "{\"ok\":true,\"sha256\":\"$(echo "$h" | tr -d "'")\",\"server_us\":9223372036854775807,\"proof_us\":-1,\"uid\":\"\u001b[2J\"}"
        echo toolbox-end"""
    found = injector.inject(f"exec:{script(workdir / 'lie', lie)}")
    assert all(0 <= step["ms"] < 120e3 for step in found["steps"]) and found["uid"] is None


@pytest.mark.parametrize("lie", LIES)
def test_a_shell_that_lies(injector, workdir, lie):
    done = injector.run("inject", "--timeout", "5", f"exec:{script(workdir / 'lies', LIES[lie])}")
    assert done.returncode in (TARGET, RECON, CHOICE, PLACING, PROOF), done
    assert b"\x1b" not in done.stdout + done.stderr and len(done.stderr) < 4000


def test_a_full_disk_is_said_and_passed_over(injector, start, workdir):
    root = make_root(workdir / "root", *POOR["what is usual"])
    container = start(Root("full", root, "/bin/sh", True), tmpfs=("/opt:size=64k", "/usr/local:size=64k"))
    found = injector.inject(target(container))
    assert found["path"].startswith("/var/tmp/") and found["calls"] <= 4
    assert not [trace for trace in traces(container) if not trace.startswith("/var/tmp") and "/run" not in trace], traces(container)
    failed = injector.inject(target(container), "--dir", "/opt/x", "--name", "other", status=PLACING)
    assert "full" in failed["tried"]
    check_gone(injector, container, target(container))


def test_interrupt_leaves_nothing(injector, start, workdir):
    container = start()
    slow = script(workdir / "slow", f"""[ -e {workdir}/looked ] || {{ >{workdir}/looked; exec {prefix(container)} "$@"; }}
{{ head -c 60000; >{workdir}/begun; sleep 600; }} | {prefix(container)} "$@" """)
    process = injector.host.popen([injector.toolbox, "inject", f"exec:{slow}"])
    wait_until((workdir / "begun").exists, "the transfer to begin")
    wait_until(lambda: any(TEMPORARY in trace for trace in traces(container)), "a temporary file")
    assert not [trace for trace in traces(container) if trace.endswith("/toolbox")], "it has its name when it is whole"
    process.terminate()
    process.communicate(timeout=HANG)
    assert process.returncode == 128 + 15
    wait_until(lambda: traces(container) == [], "the temporary file to go")


def test_home_unset_and_odd_names(injector, start, workdir):
    container = start()
    bare = script(workdir / "bare", f'exec {prefix(container).replace(" HOME=/root", "")} "$@"')
    assert injector.inject(f"exec:{bare}")["ok"]
    injector.eject(f"exec:{bare}")
    for bad in ("docker:", "docker:-x", "nothing:x", "web", "", "k8s:", "k8s://", "compose:x", "local:x", "exec:", "exec:'x", "ssh:-oProxyCommand=x",
                "k8s:ns/-o", "dir:"):
        assert injector.run("inject", bad).returncode == 2, bad
    for bad in (("--dir", "/a\tb"), ("--dir", "/a\x1bb"), ("--dir", b"/a\xff"), ("--links", "/a\nb"), ("--name", "a\x1b"), ("--name", f"{TEMPORARY}x")):
        assert injector.run("inject", *bad, "local:").returncode == 2, bad
    for bad in (("--dir", "x"), ("--dir", "/x/"), ("--dir", "/"), ("--name", "a/b"), ("--name", ".."), ("--timeout", "0"), ("-j", "x"), ("--nope",)):
        assert injector.run("inject", *bad, "local:").returncode == 2, bad


# ---- directories ----


def test_dir_is_placed_proved_and_removed(injector, workdir):
    root = make_root(workdir / "root")
    found = injector.inject(f"dir:{root}", "--links", "/usr/bin")
    placed = root / found["path"].lstrip("/")
    assert hashlib.sha256(placed.read_bytes()).hexdigest() == found["sha256"] and placed.stat().st_mode & 0o777 == 0o700
    assert found["sent"] == found["size"]
    assert os.readlink(root / "usr/bin/probe") == found["path"]
    assert injector.inject(f"dir:{root}")["state"] == "identical"
    before = sorted(str(path) for path in make_root(workdir / "fresh").rglob("*"))
    injector.eject(f"dir:{root}")
    assert sorted(str(path).replace("/root/", "/fresh/", 1) for path in root.rglob("*")) == before


def test_dir_no_link_leads_out(injector, workdir):
    root, outside = make_root(workdir / "root"), workdir / "outside"
    outside.mkdir()
    shutil.rmtree(root / "opt")
    (root / "opt").symlink_to(f"../../../../../../..{outside}")
    (root / "var/tmp/inner").symlink_to("/tmp")
    injector.run("inject", f"dir:{root}")
    assert list(outside.iterdir()) == []
    assert injector.inject(f"dir:{root}", "--dir", "/var/tmp/inner/x")["ok"]
    assert (root / "tmp/x/toolbox").is_file()
    assert injector.inject(f"dir:{workdir}/none", status=TARGET)["advice"]


def test_dir_of_somebody_else_is_refused(injector, workdir):
    """He could put something else into its place, as which root would start it."""
    root = make_root(workdir / "root")
    (root / "var/tmp/his").mkdir()
    os.chown(root / "var/tmp/his", 4321, 4321)
    (root / "var/tmp/link").symlink_to("/etc")
    for place in ("/var/tmp/his", "/var/tmp/his/x/y", "/var/tmp/link"):
        failed = injector.inject(f"dir:{root}", "--dir", place, status=PLACING)
        assert "somebody else" in failed["message"]
    assert not list(root.rglob("*toolbox*")) and list((root / "var/tmp/his").iterdir()) == []


def test_dir_eject_tells_nothing_there_from_no_root(injector, workdir):
    root = make_root(workdir / "root")
    injector.inject(f"dir:{root}")
    states = [json.loads(injector.run("eject", "--json", f"dir:{root}").stdout)["state"] for _ in range(2)]
    assert states == ["removed", "nothing there"]
    done = injector.run("eject", f"dir:{workdir}/none")
    assert done.returncode == TARGET and b"what to do: name the directory" in done.stderr, done


def test_dir_planted_program_is_never_run(injector, workdir):
    root = make_root(workdir / "root")
    (root / f"opt/{DIR}").mkdir(parents=True)
    planted = 'int creat(const char *, int); int main(void) { return creat("/planted", 0600) < 0; }'
    subprocess.run(["gcc", "-static", "-x", "c", "-o", root / f"opt/{DIR}/toolbox", "-"], input=planted, text=True, check=True)
    injector.eject(f"dir:{root}")
    assert not (root / "planted").exists() and not (root / f"opt/{DIR}").exists()


# ---- a folder that comes along ----


def test_with_brings_a_folder_along(injector, poor, workdir):
    """Where there is neither tar nor anything else to unpack with."""
    folder = workdir / "browser"
    (folder / "locales/deep").mkdir(parents=True)
    (folder / "chrome").write_text("#!/bin/sh\necho it is one\n")
    (folder / "chrome").chmod(0o755)
    (folder / "locales/deep/data.pak").write_bytes(os.urandom(3_000_000))
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("locales/deep/data.pak")
    container = poor("cat", "chmod", "mkdir", "rm", "mv")
    at = target(container)
    found = injector.inject(at, "--with", str(folder))
    assert found["state"] == "placed" and found["sent"] > 3_000_000
    there = f"{os.path.dirname(found['path'])}/.{os.path.basename(found['path'])}.with"
    assert container.check([f"{there}/chrome"]).strip() == "it is one"
    data = container.run([BUSYBOX, "sha256sum", f"{there}/link"]).stdout.split()[0].decode()
    assert data == hashlib.sha256((folder / "link").read_bytes()).hexdigest()
    inode = container.check([BUSYBOX, "stat", "-c", "%i", f"{there}/chrome"])
    again = injector.inject(at, "--with", str(folder))
    assert again["state"] == "identical"
    assert container.check([BUSYBOX, "stat", "-c", "%i", f"{there}/chrome"]) == inode, "the same one is left alone"
    (folder / "chrome").write_text("#!/bin/sh\necho another\n")
    injector.inject(at, "--with", str(folder))
    assert container.check([f"{there}/chrome"]).strip() == "another"
    check_gone(injector, container, at)


def test_with_is_not_for_a_dir(injector, workdir):
    root = make_root(workdir / "root")
    (workdir / "brought").mkdir()
    done = injector.run("inject", "--with", str(workdir / "brought"), f"dir:{root}")
    assert done.returncode == 2 and b"as .toolbox.with" in done.stderr, done
    assert not (root / f"opt/{DIR}").exists()


def test_with_what_is_no_folder(injector, start, workdir):
    container = start()
    (workdir / "pipe").mkdir()
    os.mkfifo(workdir / "pipe/fifo")
    for folder, why in (("nowhere", b"No such file"), ("pipe", b"fifo is neither")):
        done = injector.run("inject", "--with", str(workdir / folder), target(container))
        assert done.returncode == 1 and why in done.stderr, done.stderr
    assert traces(container) == []


def test_what_goes_well_without_a_word(toolbox, workdir):
    """-q: of one and of several; what fails is told all the same, and of several what to do about it, once for each reason."""
    roots_ = [workdir / name for name in ("one", "two")]
    for root in roots_:
        root.mkdir()
    run = lambda *words: subprocess.run([toolbox, *words], capture_output=True, timeout=HANG)  # noqa: E731
    good, bad = [f"dir:{root}" for root in roots_], [f"dir:{workdir}/{name}" for name in ("none", "neither")]
    for words in (["-q", good[0]], ["-q", *good]):
        done = run("inject", "--dir", "/opt/x", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done
    done = run("inject", "--dir", "/opt/x", "-q", *good, *bad)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 3 and [line.split()[0] for line in lines[1:3]] == bad and lines[-1] == "2 of 4 done, 2 failed"
    advice, = [line for line in lines if line.startswith("what to do")]
    assert advice.startswith(f"what to do ({bad[0]}): name the directory")
    assert run("eject", "--dir", "/opt/x", "-q", *good).stdout == b""


def test_a_name_alone_is_told_what_it_may_be(toolbox):
    for applet, *more in (["inject"], ["eject"], ["call", "version"]):
        done = subprocess.run([toolbox, applet, "web", *more], capture_output=True, timeout=HANG)
        assert done.returncode == 2 and b"did you mean 'docker:web'?" in done.stderr, done
        done = subprocess.run([toolbox, applet, "docker", *more], capture_output=True, timeout=HANG)
        assert done.returncode == 2 and b"'docker': docker:NAME is wanted" in done.stderr, done
        for word in ("dokcer:a/b:c", "DOCKER:a/b:c"):
            done = subprocess.run([toolbox, applet, word, *more], capture_output=True, timeout=HANG)
            assert done.returncode == 2 and b"did you mean 'docker:a/b:c'?" in done.stderr, done
        for word in ("/", "/srv", ".", "we\u202eb"):
            done = subprocess.run([toolbox, applet, word, *more], capture_output=True, timeout=HANG)
            assert done.returncode == 2 and b"did you mean" not in done.stderr and "\u202e" not in done.stderr.decode(), done


@pytest.mark.parametrize("says, advice", [
    ("permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock", "--runtime 'sudo docker'"),
    ("unable to find user somebody: no matching entries in passwd file", "--user"), ("No such container: web", "check that it exists and runs")])
def test_what_to_do_fits_what_the_runtime_says(toolbox, workdir, says, advice):
    runtime = script(workdir / "docker", f'echo "{says}" >&2; exit 1')
    for applet, *more in (["inject"], ["eject"], ["call", "version"], ["run", "true"]):
        done = subprocess.run([toolbox, applet, "--runtime", runtime, "docker:web", *more], capture_output=True, timeout=HANG)
        assert done.returncode == 3 and advice in done.stderr.decode().partition("what to do: ")[2], done


def test_a_runtime_that_is_not_installed_is_to_be_installed(toolbox):
    done = subprocess.run([toolbox, "inject", "--runtime", "/nowhere/docker", "docker:web"], capture_output=True, timeout=HANG)
    assert done.returncode == 3 and b"what to do: install it, or say with --runtime" in done.stderr, done


@pytest.mark.parametrize("option", ["--user", "--runtime", "--root-exec", "--user="])
def test_a_word_that_is_empty_is_not_taken_for_the_default(toolbox, option):
    """A variable that isn't set would make somebody root."""
    words = [option] if "=" in option else [option, ""]
    for applet in "inject", "eject", "call", "connect":
        done = subprocess.run([toolbox, applet, *words, "local:", *(["version"] if applet == "call" else [])], capture_output=True, timeout=HANG)
        assert done.returncode == 2 and b"it is empty" in done.stderr, done
