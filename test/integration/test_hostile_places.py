"""A target that is shared with people who would like to have their program run, or our files removed, as somebody else:
docs/inject.md, "Among others"; and the server's own directory."""
import json
import os
import shlex
import shutil
import subprocess

import pytest

from harness import hostile, roots
from harness.containers import BUSYBOX, Options
from harness.hostile import AGENT, FORGER, OTHER
from harness.injection import PLACING, Injector, prefix
from harness.machine import HANG
from harness.server import request
from harness.users import needs_root

pytestmark = needs_root

ROUNDS = 15
DIR = ".toolbox-bin"


@pytest.fixture
def injector(toolbox):
    return Injector(toolbox)


@pytest.fixture
def start(namespaces, toolbox):
    """start(root, options): a container, which has the program at /opt/toolbox. Ends with the test."""
    made = []

    def make(root="busybox", **options):
        made.append(namespaces.start(roots.get(root), Options(files={"/opt/toolbox": toolbox}, **options)))
        made[-1].run([BUSYBOX, "mkdir", "-p", "/srv", "/usr/local/bin"])
        return made[-1]

    yield make
    for container in made:
        container.destroy()


def target(container, user=None):
    return f"exec:{prefix(container, user)}"


def shell(container, script, user=None):
    """With BusyBox's programs; $1 is the forger."""
    tools = "".join(f'{name}() {{ {BUSYBOX} {name} "$@"; }}; ' for name in ("mkdir", "chmod", "chown", "ln", "rmdir"))
    container.check([BUSYBOX, "sh", "-ec", tools + script, "sh", FORGER], user=user)


def ours(container):
    """Whatever there is of ours, on all its file systems."""
    found = container.run([BUSYBOX, "find", "/", "(", "-path", "/proc", "-o", "-path", "/sys", "-o", "-path", "/opt/toolbox", ")",
                           "-prune", "-o", "-name", "*toolbox*", "-print"]).stdout.decode().split("\n")
    return sorted(line for line in found if line)


# ---- programs ----


@pytest.mark.parametrize("root", ["busybox", "debian"])
@pytest.mark.parametrize("place", ["/tmp", "/var/tmp"])
def test_another_users_program_is_never_run(injector, start, root, place):
    container = start(root)
    planted = f"{place}/{DIR}-{AGENT}"
    shell(container, f'mkdir {planted}; echo "$1" >{planted}/toolbox; chmod 755 {planted} {planted}/toolbox', user=OTHER)
    at = target(container, AGENT)
    for _ in range(3):
        found = injector.inject(at)
        assert not found["path"].startswith(planted + "/"), found
        assert injector.call(at, "bash_session_list") == []
    injector.eject(at)
    assert hostile.ran(container) == []
    assert container.check([BUSYBOX, "cat", f"{planted}/toolbox"]).strip() == FORGER.strip()


@pytest.mark.parametrize("mode", ["root's, for all to write to", "root's in a group's directory", "a link of root's file"])
def test_what_others_can_write_to_is_never_run(injector, start, mode):
    container = start("debian")
    if mode == "root's, for all to write to":
        shell(container, f'mkdir -m 700 /tmp/{DIR}; echo "$1" >/tmp/{DIR}/toolbox; chmod 777 /tmp/{DIR}/toolbox')
    elif mode == "root's in a group's directory":
        shell(container, f'mkdir /tmp/{DIR}; chown 0:{AGENT} /tmp/{DIR}; chmod 775 /tmp/{DIR}; echo "$1" >/tmp/{DIR}/toolbox; chmod 700 /tmp/{DIR}/toolbox')
    else:
        shell(container, f'echo "$1" >/srv/roots; chmod 755 /srv/roots; mkdir -m 1777 /tmp/{DIR}; chmod 1777 /tmp/{DIR}; ln /srv/roots /tmp/{DIR}/toolbox')
    at = target(container)
    assert injector.inject(at)["ok"]
    injector.run("eject", at)
    assert hostile.ran(container) == []


# As a service with private users has it: root and its own user are themselves, all others nobody, and / is root's.
NAMESPACE = """
import ctypes, os, sys
(ready, go), (done, tell) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(tell)
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    os.write(go, b"x")
    os.read(done, 1) or sys.exit("no numbers")
    os.setgid(0), os.setuid(0)
    os.execvp(sys.argv[2], sys.argv[2:])
os.close(go)
os.read(ready, 1) or sys.exit("no user namespace")
for kind in "ug":
    with open(f"{sys.argv[1]}/proc/{child}/{kind}id_map", "w") as f:
        f.write("0 0 1\\n1000 1000 1\\n")
os.write(tell, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/uid_map"), reason="the kernel has no user namespaces")
def test_nobodys_program_is_not_roots_where_the_root_directory_is(injector, start):
    """Whoever is unknown to a user namespace shows as nobody: that counts as root only where / shows as that, too."""
    container = start("debian")
    planted = f"/tmp/{DIR}"
    shell(container, f'mkdir {planted}; echo "$1" >{planted}/toolbox; chmod 755 {planted} {planted}/toolbox', user=OTHER)
    argv, _ = container.command([], {}, None, None)
    chroot = next(i for i, word in enumerate(argv) if word.endswith("/chroot"))
    at = "exec:" + shlex.join([*argv[:chroot], "/usr/bin/python3", "-c", NAMESPACE, container.dir, *argv[chroot:]])
    probe = subprocess.run([*shlex.split(at.removeprefix("exec:")), BUSYBOX, "stat", "-c", "%u", planted, "/"],
                           capture_output=True, text=True, timeout=HANG)
    if probe.stdout.split() != ["65534", "0"]:
        pytest.skip(f"no such user namespace can be had: {probe.stdout} {probe.stderr}")
    assert injector.inject(at)["path"] == f"/opt/{DIR}/toolbox"
    injector.eject(at)
    assert hostile.ran(container) == []


def test_programs_of_the_path_are_not_the_agents(injector, start):
    """A container's PATH may begin with a directory of its agent's."""
    container = start("debian")
    shell(container, f'mkdir -p /home/agent/bin; chown {AGENT} /home/agent/bin /home/agent')
    shell(container, 'for f in id ls stat chmod cat uname mkdir rm wc; do echo "$1" >/home/agent/bin/$f; chmod 755 /home/agent/bin/$f; done', user=AGENT)
    at = target(container).replace("PATH=", "PATH=/home/agent/bin:")
    assert injector.inject(at)["state"] == "placed"
    assert injector.inject(at)["state"] == "identical"
    injector.eject(at)
    assert hostile.ran(container) == []


# ---- removal ----


@pytest.mark.parametrize("leads_to", ["/srv/data", "/usr/local/bin", f"/srv/{DIR}"])
def test_eject_removes_nothing_that_a_link_leads_to(injector, start, leads_to):
    container = start("debian")
    shell(container, f'mkdir -p -m 700 {leads_to}; for f in toolbox .toolbox.inject .toolbox-tmp-x; do echo "$1" >{leads_to}/$f; chmod 755 {leads_to}/$f; done')
    shell(container, f"ln -s {leads_to} /tmp/{DIR}; ln -s {leads_to} /var/tmp/{DIR}", user=AGENT)
    before = container.check([BUSYBOX, "ls", "-la", leads_to])
    at = target(container)
    assert injector.eject(at)["state"] == "nothing there"
    assert injector.inject(at)["path"] == f"/opt/{DIR}/toolbox"
    assert injector.inject(at, "--dir", f"/tmp/{DIR}", status=PLACING)["tried"]
    injector.eject(at)
    assert hostile.ran(container) == [] and container.check([BUSYBOX, "ls", "-la", leads_to]) == before


@pytest.mark.parametrize("how", hostile.RACES)
def test_nothing_is_run_or_removed_in_a_race(injector, start, how):
    container = start("debian")
    hostile.race(injector, container, target(container), how, ROUNDS)


NOT_RUN_FROM = ("/var/tmp:noexec,mode=1777", "/tmp:noexec,mode=1777", "/dev/shm:noexec,mode=1777")


@pytest.mark.parametrize("root", ["busybox", "debian"])
@pytest.mark.parametrize("fine", ["/media", "/root", "/dev/shm"])
def test_read_only_container_is_left_as_it_was(injector, start, root, fine):
    """Also where something was written and could not be run."""
    tmpfs = *(entry for entry in NOT_RUN_FROM if not entry.startswith(fine + ":")), f"{fine}:mode=755", "/run:mode=755,noexec"
    container = start(root, read_only=True, tmpfs=tmpfs)
    at = target(container)
    found = injector.inject(at)
    assert found["state"] == "placed", found
    assert [path for path in ours(container) if os.path.basename(path).startswith(DIR)] == [os.path.dirname(found["path"])]
    injector.eject(at)
    assert ours(container) == []


# ---- places ----


UNSAFE = {
    "all may write to it": "chmod 777 /srv/above",
    "its group may": f"chown 0:{AGENT} /srv/above; chmod 775 /srv/above",
    "it is another's": f"chown {AGENT} /srv/above",
    "a link of another's leads there": "mkdir /srv/real; rmdir /srv/above; ln -s /srv/real /srv/above; chown -h 1000 /srv/above",
}


@pytest.mark.parametrize("case", UNSAFE)
def test_unsafe_place_is_refused(injector, start, case):
    container = start("debian")
    shell(container, "mkdir /srv/above; " + UNSAFE[case])
    at = target(container)
    failed = injector.inject(at, "--dir", "/srv/above/x", status=PLACING)
    assert "/srv/above/x: " in failed["tried"] and "somebody else" in failed["tried"] and "--dir" in failed["advice"]
    env = {"TOOLBOX_DIR": "/srv/above/server"}
    for command in ("exec", "start-server"):
        done = container.run(["/opt/toolbox", command], env=env, stdin=request("remote_version"))
        assert done.returncode == 1 and b"/srv/above " in done.stderr and b"TOOLBOX_DIR" in done.stderr, done
    edit = {"command": "create", "path": "/srv/file", "file_text": "x"}
    done = container.run(["/opt/toolbox", "exec"], env=env, stdin=request("text_editor", edit))
    assert b"/srv/above" not in container.run([BUSYBOX, "find", "/srv/above/", "-mindepth", "1"]).stdout
    link = injector.run("inject", "--links", "/srv/above/links", at)
    assert link.returncode == PLACING and b"/srv/above" in link.stderr, link
    assert container.run([BUSYBOX, "test", "-e", "/srv/above/links"]).returncode == 1


def test_no_place_is_safe(injector, start):
    """Nothing is used, and it is said what is wrong and what to do."""
    container = start("busybox", read_only=True, tmpfs=("/tmp:mode=777",), pts=False)
    shell(container, "chmod 777 /dev")
    failed = injector.inject(target(container), status=PLACING)
    assert f"/tmp/{DIR}: somebody else could change what is there: /tmp can be written to by others (mode 0777)" in failed["tried"]
    assert "safe" in failed["message"] and "--dir" in failed["advice"]
    done = container.run(["/opt/toolbox", "start-server"])
    assert b"/tmp/.toolbox-0: /tmp can be written to by others (mode 0777)" in done.stderr and b"TOOLBOX_DIR" in done.stderr, done
    assert ours(container) == []


def test_server_of_an_unsafe_tmp_is_elsewhere(start):
    """Whoever may write to /tmp could move its directory away: the next place is taken."""
    container = start("debian", tmpfs=("/tmp:mode=777",))
    shell(container, "mkdir -m 755 /run/toolbox")
    done = container.run(["/opt/toolbox", "exec"], stdin=request("remote_version"))
    assert "result" in json.loads(done.stdout), done
    assert container.run([BUSYBOX, "test", "-e", "/tmp/.toolbox-0"]).returncode == 1
    assert container.run([BUSYBOX, "test", "-d", "/var/tmp/.toolbox-0"]).returncode == 0
    assert container.run(["/opt/toolbox", "stop-server"]).returncode == 0


@pytest.mark.parametrize("prefix", [".Profile-x", ".ended-1", ".program"])
def test_a_fifo_in_the_place_is_not_waited_for(start, prefix):
    container = start("busybox")
    assert container.run(["/opt/toolbox", "start-server"]).returncode == 0
    names = container.check([BUSYBOX, "ls", "/run/toolbox"]).split()
    suffix = next(name for name in names if name.startswith("server.")).removeprefix("server")
    assert container.run(["/opt/toolbox", "stop-server"]).returncode == 0
    container.check([BUSYBOX, "mkfifo", f"/run/toolbox/{prefix}{suffix}"])
    done = container.run(["/opt/toolbox", "exec"], stdin=request("exec_remote_list"))
    assert json.loads(done.stdout)["result"] == [], done
    assert container.run(["/opt/toolbox", "stop-server"]).returncode == 0


def test_eject_tells_what_it_leaves(injector, start):
    """A program of ours below what has become anybody's: not run, not removed, and said."""
    container = start("debian")
    at = target(container)
    injector.inject(at, "--dir", f"/srv/above/{DIR}")
    shell(container, "chmod 777 /srv/above")
    failed = injector.eject(at, "--dir", f"/srv/above/{DIR}", status=PLACING)
    assert f"/srv/above/{DIR}/toolbox is still there" in failed["message"], failed
    shell(container, "chmod 755 /srv/above")
    injector.eject(at, "--dir", f"/srv/above/{DIR}")
    assert ours(container) == []


def test_eject_waits_for_no_other_user(injector, start):
    """What root keeps for a user is removed as him: he can stop whoever does that, and has more names than one."""
    container = start("debian")
    at = target(container)
    injector.inject(at)
    shell(container, f"umask 077; cd /tmp; mkdir .toolbox-{AGENT}; for i in $({BUSYBOX} seq 2000); do :>.toolbox-{AGENT}/$i; done;"
                     f"n={AGENT}; for i in $({BUSYBOX} seq 30); do n=0$n; {BUSYBOX} cp -r .toolbox-{AGENT} .toolbox-$n; done", user=AGENT)
    become = [shutil.which("setpriv"), f"--reuid={AGENT}", f"--regid={AGENT}", "--clear-groups"]
    stopper = "import os, signal\nprint('ready', flush=True)\nwhile True:\n    try: os.kill(-1, signal.SIGSTOP)\n    except OSError: pass"
    with subprocess.Popen([*container.enter, *become, "/usr/bin/python3", "-c", stopper], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            injector.eject(at)
            assert process.poll() is None
        finally:
            process.kill()
    shell(container, f"{BUSYBOX} rm -rf /tmp/.toolbox-*{AGENT}")
    assert ours(container) == []


def test_eject_removes_only_what_is_ours_from_a_named_place(injector, start):
    """A directory that a variable names may have other things in it."""
    container = start("debian")
    shell(container, "cd /root; chmod 700 .; mkdir -p kept/below; : >kept/file; : >.kept; mkdir undo; : >undo/others; chmod 755 undo;"
                     "for f in log log.old .lock; do echo mine >$f; chmod 600 $f; done")
    at = target(container).replace(" PATH=", " TOOLBOX_DIR=/root PATH=")
    before = container.check([BUSYBOX, "find", "/root"])
    path = injector.inject(at)["path"]
    assert injector.call(at, "bash_session_new_session")["session_name"]
    job = injector.call(at, "exec_remote_start", {"command": "echo kept"})["pid"]
    injector.call(at, "exec_remote_wait", {"pid": job, "ack_seq": 0})
    container.run([path, "stop-server"], env={"TOOLBOX_DIR": "/root"})
    injector.eject(at)
    assert container.check([BUSYBOX, "find", "/root"]) == before
    assert ours(container) == []


# ---- one server for several placements ----


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("starts", ["the one that goes", "the one that stays", "one that came with the image"])
def test_eject_leaves_the_server_of_another_placement(injector, start, first, starts):
    container = start("debian")
    at = target(container)
    here, there = [(), ("--dir", "/usr/local/lib/x")][:: -1 if first else 1]
    stays = "/opt/toolbox" if starts == "one that came with the image" else None
    if stays:
        assert container.run([stays, "start-server"]).returncode == 0
    for place in [here] if stays else [here, there] if starts == "the one that goes" else [there, here]:
        found = injector.inject(at, *place)
        if place is there:
            stays = found["path"]
    session = json.loads(container.run([stays, "exec"], stdin=request("bash_session_new_session")).stdout)["result"]["session_name"]
    injector.eject(at, *here)
    answer = json.loads(container.run([stays, "exec"], stdin=request("bash_session_run", {"session_name": session, "command": "echo $((6*7))"})).stdout)
    assert answer["result"]["output"] == "42\n"
    if starts == "one that came with the image":
        assert container.run([stays, "stop-server"]).returncode == 0
    else:
        injector.eject(at, *there)
        assert ours(container) == []
