"""The rows of the table that are processes of this machine: each a context that gives a Place.

`refuses` names the columns that can't be had there, with the words in which the tool has to say so.
"""
import contextlib
import errno
import platform
import shutil
import signal
from dataclasses import dataclass

from sandboxes.checks import CHECKS
from sandboxes.door import NEW
from sandboxes.places import USER, Place, Unavailable, as_user, door, output, program

ROWS = []
COLUMNS = {"awaiting_input": "awaiting input", "mcp_serve": "`mcp serve`", "mcp_bridge": "MCP bridge"}


@dataclass
class Row:
    name: str
    make: object  # make(lab): a context that gives a Place; raises Unavailable
    refuses: dict  # {column: pattern of what has to be in the refusal}


def row(name, **refuses):
    def note(make):
        ROWS.append(Row(name, contextlib.contextmanager(make), {COLUMNS.get(column, column): words for column, words in refuses.items()}))
        return make

    return note


# ---- restrictions that a process puts on itself, or finds ----


def mounts(script, binds, root):
    """The words with which a door is started in a mount namespace of its own, prepared by a script: R is the root."""
    lines = [f"mount --rbind -o ro {source} {root}{target}" for source, target in binds]
    text = "\n".join([f"R={root}", *lines, script, 'exec "$@"'])
    return ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-euc", text, "prepare"]


DEV = """
    mount -t tmpfs -o mode=755 none $R/dev
    for d in null zero full random urandom tty; do touch $R/dev/$d; mount --bind /dev/$d $R/dev/$d; done
    mkdir -m 755 $R/dev/pts; mkdir -m 1777 $R/dev/shm; mount -t tmpfs -o mode=1777 none $R/dev/shm
    ln -s pts/ptmx $R/dev/ptmx; ln -s /proc/self/fd $R/dev/fd
"""
PTS = "mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 none $R/dev/pts\n"
PROC = "mount -t proc none $R/proc\n"


def in_root(lab, name, script, **options):
    root, binds = lab.root(name)
    return door(lab, name, mounts(script, binds, root), end=signal.SIGKILL, chroot=str(root), **options)  # unshare heeds no other


@row("a chroot, as root")
def plain_chroot(lab):
    with in_root(lab, "chroot", DEV + PTS + PROC) as place:
        yield place


@row("a chroot, as a user")
def user_chroot(lab):
    with in_root(lab, "userchroot", DEV + PTS + PROC, uid=USER) as place:
        yield place


@row("a chroot with nothing mounted", run="terminal", keys="terminal", awaiting_input="terminal", browser="")
def bare_chroot(lab):
    with in_root(lab, "bare", "") as place:
        yield place


@row("no `/proc`", browser="", awaiting_input="timeout")
def no_proc(lab):
    with in_root(lab, "noproc", DEV + PTS) as place:
        yield place


@row("no `/proc`, as a user", browser="", awaiting_input="timeout")
def no_proc_user(lab):
    with in_root(lab, "noprocuser", DEV + PTS, uid=USER) as place:
        yield place


@row("`hidepid=2`, as a user")
def hidepid(lab):
    with in_root(lab, "hidepid", DEV + PTS + "mount -t proc -o hidepid=2 none $R/proc\n", uid=USER) as place:
        yield place


@row("no `/dev/pts`", run="terminal", keys="terminal", awaiting_input="terminal")
def no_pts(lab):
    with in_root(lab, "nopts", DEV + PROC) as place:
        yield place


@row("a full `/dev/pts`", run="terminal", keys="terminal", awaiting_input="terminal")
def full_pts(lab):
    held = 'exec 9<>"$R/dev/pts/ptmx"\n'  # the one that there is room for
    with in_root(lab, "fullpts", DEV + PTS.replace("newinstance", "newinstance,max=1") + held + PROC) as place:
        yield place


@row("room for one terminal in `/dev/pts`", run="terminal", keys="terminal", awaiting_input="terminal")
def one_pts(lab):
    with in_root(lab, "onepts", DEV + PTS.replace("newinstance", "newinstance,max=1") + PROC) as place:
        yield place


@row("no `/dev/null`")
def no_null(lab):
    with in_root(lab, "nonull", DEV + PTS + PROC + "umount $R/dev/null; rm $R/dev/null\n") as place:
        yield place


def deny(number, *calls, first=True):
    if platform.machine() not in NEW:
        raise Unavailable(f"the numbers of {platform.machine()}'s system calls aren't known to this script")
    return {"from": NEW[platform.machine()] if first else 0, "calls": calls, "errno": number}


@row("seccomp: what Linux 3.10 lacks is ENOSYS")
def old_kernel(lab):
    with in_root(lab, "enosys", DEV + PTS + PROC, deny=deny(errno.ENOSYS)) as place:
        yield place


@row("seccomp: what Linux 3.10 lacks is denied (EPERM)", browser="")
def denied_calls(lab):
    with in_root(lab, "eperm", DEV + PTS + PROC, deny=deny(errno.EPERM)) as place:
        yield place


# ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd
TRACING = {"x86_64": (101, 310, 311, 312, 438), "aarch64": (117, 270, 271, 272, 438)}


STATX = {"x86_64": (332,), "aarch64": (291,)}


@row("ptrace denied, `/proc` of others hidden, as a user", browser="")
def no_tracing(lab):
    calls = deny(errno.EPERM, *TRACING[platform.machine()], first=False)
    with in_root(lab, "notrace", DEV + PTS + "mount -t proc -o hidepid=invisible,subset=pid none $R/proc\n", uid=USER, deny=calls) as place:
        yield place


WORDS = "limit on processes|Resource temporarily unavailable|annot fork"


def processes(count):
    """What takes more of them has to say that it is these."""
    refuses = {"browser": ""} if count > 8 else dict.fromkeys(CHECKS, WORDS)

    @row(f"RLIMIT_NPROC {count}, as a user", **refuses)
    def make(lab):
        limits = {"RLIMIT_NPROC": count}
        with in_root(lab, f"nproc{count}", DEV + PTS + PROC, uid=USER + count, limits=limits) as place:
            yield place


for number in (8, 16, 64):
    processes(number)


@row("time namespace: clocks that began days ago")
def time_namespace(lab):
    root, binds = lab.root("time")
    words = ["unshare", "--time", "--boottime", "864000", "--monotonic", "864000", "--fork", "--kill-child"]
    with door(lab, "time", [*words, *mounts(DEV + PTS + PROC, binds, root)], end=signal.SIGKILL, chroot=str(root)) as place:
        yield place


@row("faketime: a clock that runs a hundred times as fast")
def fake_time(lab):
    library = output("sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1").split()[0]
    env = {"LD_PRELOAD": library, "FAKETIME": "@2030-01-01 00:00:00 x100", "DONT_FAKE_MONOTONIC": "0"}
    with in_root(lab, "faketime", DEV + PTS + PROC, env=env) as place:
        yield place


# ---- sandboxes that are programs ----


def folders(root, skip=()):
    return [path for path in sorted(root.iterdir()) if path.is_dir() and not path.is_symlink() and path.name not in skip]


def bubblewrap(root, *more):
    argv = [program("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", "--bind", root, "/", "--ro-bind", "/usr", "/usr",
            "--dev", "/dev", "--tmpfs", "/tmp", *more]
    return [*as_user(), *map(str, argv)]


def owned(lab, name):
    root, binds = lab.root(name)
    output("chown", "-R", f"{USER}:{USER}", root)
    return root, binds


@row("bubblewrap, as a user", browser="belongs to another user")
def bwrap(lab):
    root, _ = owned(lab, "bwrap")
    with door(lab, "bwrap", bubblewrap(root, "--proc", "/proc")) as place:
        yield place


@row("bubblewrap without `/proc`, as a user", browser="", awaiting_input="timeout")
def bwrap_no_proc(lab):
    root, _ = owned(lab, "bwrapnoproc")
    with door(lab, "bwrapnoproc", bubblewrap(root, "--tmpfs", "/proc")) as place:
        yield place


@row("`unshare` as a user", browser="belongs to another user")
def unshare(lab):
    root, binds = owned(lab, "unshare")
    lines = [f"mount --rbind {source} {root}{target}" for source, target in binds]
    text = "\n".join([f"R={root}", *lines, DEV, PTS.replace(",gid=5", ""), PROC, 'exec "$@"'])
    words = [*as_user(), program("unshare"), "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts",
             "sh", "-euc", text, "prepare"]
    with door(lab, "unshare", words, end=signal.SIGKILL, chroot=str(root)) as place:
        yield place


@row("firejail")
def firejail(lab):
    words = [program("firejail"), "--quiet", "--noprofile", "--private", "--private-dev", "--private-tmp", "--caps.drop=all", "--nonewprivs",
             "--seccomp", "--net=none"]
    with door(lab, "firejail", words) as place:
        yield place


@row("proot, as a user", browser="")
def proot(lab):
    root, binds = owned(lab, "proot")
    words = [*as_user(), "env", f"PROOT_TMP_DIR={root}/tmp", program("proot"), "-r", str(root), "-w", "/", "-b", "/dev",
             "-b", "/proc"]
    for source, target in binds:
        words += ["-b", f"{source}:{target}"]
    # Debian 12's proot doesn't know statx, so that its programs see no file there that was made there; without it they ask otherwise
    with door(lab, "proot", words, deny=deny(errno.ENOSYS, *STATX[platform.machine()], first=False)) as place:
        yield place


@row("systemd-nspawn")
def nspawn(lab):
    root, binds = lab.root("nspawn")
    words = [program("systemd-nspawn"), "--quiet", "--register=no", "--keep-unit", "--as-pid2", "--pipe", f"--directory={root}",
             "--private-network", "--resolv-conf=off", "--timezone=off"]
    with door(lab, "nspawn", [*words, *(f"--bind-ro={source}:{target}" for source, target in binds)]) as place:
        yield place


@row("LXC", model_proxy="loopback")
def lxc(lab):
    root, binds = lab.root("lxc")
    program("lxc-start")
    shutil.rmtree(root / "dev"), (root / "dev").mkdir()
    config = lab.folder / "lxc.conf"
    config.write_text("\n".join([
        "lxc.uts.name = sandbox", f"lxc.rootfs.path = dir:{root}", "lxc.net.0.type = empty", "lxc.autodev = 1", "lxc.pty.max = 1024",
        "lxc.mount.auto = proc:mixed sys:ro", "lxc.init.cmd = /bin/sleep infinity", "lxc.apparmor.profile = unconfined",
        *(f"lxc.mount.entry = {source} {target[1:]} none rbind,ro 0 0" for source, target in binds), ""]))
    paths = ["-P", lab.folder / "lxc", "-n", "sandbox"]
    (lab.folder / "lxc").mkdir()
    output("lxc-start", *paths, "-f", config, "-o", lab.folder / "lxc.log", "-l", "ERROR")
    try:
        enter = ("lxc-attach", *map(str, paths), "--clear-env", "--set-var=PATH=/usr/sbin:/usr/bin:/sbin:/bin", "--set-var=HOME=/root", "--")
        yield Place("exec:" + " ".join(enter), enter=enter)
    finally:
        output("lxc-stop", *paths, "-k")
