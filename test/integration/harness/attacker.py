"""What a confined program tries against its walls: run inside, with the name of an attempt and, as JSON, what there is outside.

It prints ESCAPED when the attempt went through, and otherwise what refused it. Whether something outside has changed is looked at
from there as well. Nothing here would hurt the machine if it went through."""
import array
import ctypes
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading

X86 = platform.machine() == "x86_64"
NUMBERS = {  # x86_64, arm64
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "process_madvise": (440, 440), "move_pages": (279, 239),
    "migrate_pages": (256, 238), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "setns": (308, 268), "unshare": (272, 97), "clone": (56, 220), "clone3": (435, 435),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fspick": (433, 433), "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "quotactl": (179, 60),
    "swapon": (167, 224), "acct": (163, 89), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142),
    "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112), "sethostname": (170, 161),
    "setdomainname": (171, 162), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "openat2": (437, 437), "truncate": (76, 45), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "memfd_create": (319, 279),
    "execveat": (322, 281), "prlimit64": (302, 261), "renameat2": (316, 276), "linkat": (265, 37), "ioctl": (16, 29), "socket": (41, 198),
    "vhangup": (153, 58), "iopl": (172, None), "modify_ldt": (154, None), "chroot": (161, 51), "fallocate": (285, 47),
}
libc = ctypes.CDLL(None, use_errno=True)
out = {}  # what is outside: path, file, empty, secret, pid, port, …


def call(name, *args):
    number = NUMBERS[name][0 if X86 else 1]
    if number is None:
        raise OSError(38, "not on this machine")
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def text(word):
    return ctypes.c_char_p(os.fsencode(word))


def write(path, flags=os.O_WRONLY):
    fd = os.open(path, flags, 0o644)
    os.write(fd, b"taken")


def link(path, name="there"):
    """A name in the workspace that leads there."""
    os.symlink(path, name)
    return name


def by_descriptor(path, flags):
    fd = os.open(path, os.O_RDONLY)
    write(f"/proc/self/fd/{fd}", flags)


def into(path):
    os.chdir(path)
    write("made", os.O_WRONLY | os.O_CREAT)


def hard(path):
    os.link(path, "hard")
    write("hard")


def moved(path):
    os.rename(path, "moved")
    write("moved")


def put_there(flags=0):
    write("mine", os.O_WRONLY | os.O_CREAT)
    call("renameat2", -100, text("mine"), -100, text(out["file"] if flags else out["path"] + "/new"), flags)


def nameless(there):
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR)
    os.link(f"/proc/self/fd/{fd}", there, follow_symlinks=True)


def handle():
    held = ctypes.create_string_buffer(struct.pack("II", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    call("name_to_handle_at", -100, text(out["file"]), held, ctypes.byref(mount_id), 0)
    write(f"/proc/self/fd/{call('open_by_handle_at', os.open('.', os.O_RDONLY), held, os.O_WRONLY)}")


def how(flags):
    return ctypes.create_string_buffer(struct.pack("QQQ", flags, 0, 0))


def mapped():
    fd = os.open(out["file"], os.O_RDONLY)
    mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_WRITE)[0:1] = b"X"


def sent(function):
    write("mine", os.O_WRONLY | os.O_CREAT)
    source, target = os.open("mine", os.O_RDONLY), os.open(out["file"], os.O_RDONLY)
    function(source, target)


def fd_of_victim():
    call("pidfd_getfd", call("pidfd_open", out["pid"], 0), out["fd"], 0)


def vector(address, n):
    return ctypes.create_string_buffer(struct.pack("QQ", address, n))


def memory(name):
    mine = ctypes.create_string_buffer(8)
    call(name, out["pid"], vector(ctypes.addressof(mine), 8), 1, vector(out["address"], 8), 1, 0)


def by_file(what, mode):
    with open(f"/proc/{out['pid']}/{what}", mode, buffering=0) as f:
        if what == "mem":
            f.seek(out["address"])
        if "w" in mode or "+" in mode:
            f.write(b"x")
        else:
            f.read(8)


def own_signal():
    """As the owner of a pipe that tells of its readiness."""
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, out["pid"])
    fcntl.fcntl(r, 10, signal.SIGUSR1)  # F_SETSIG
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(w, b"x")
    raise OSError(0, "nothing is told; the victim is looked at")


def from_thread():
    told = []
    thread = threading.Thread(target=lambda: told.append(attempt(lambda: write(out["file"]))))
    thread.start()
    thread.join()
    if told[0] == "ESCAPED":
        return
    raise OSError(0, told[0])


def from_child(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise OSError(0, done.stdout + done.stderr)


def clone(flags):
    pid = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def clone3(flags):
    args = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0))
    pid = call("clone3", args, 88)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def tcp(port, family=socket.AF_INET, host="127.0.0.1", proto=0, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind, proto) as s:
        s.settimeout(5)
        s.connect((host, port))


def send_fast(how_sent):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        address = ("127.0.0.1", out["port"])
        if how_sent == "sendto":
            s.sendto(b"x", 0x20000000, address)
        else:
            s.sendmsg([b"x"], [], 0x20000000, address)


def udp(family=socket.AF_INET, host="127.0.0.1"):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", (host, out["port"]))


def unix(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(address)


def passed():
    """A descriptor of the victim's, over its socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(5)
        s.connect(out["socket"])
        s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])


def number(value):
    if value < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def high_bits(name, *args):
    """The kernel looks at the lower half of what a C int is."""
    fd = libc.syscall(ctypes.c_long(NUMBERS[name][0 if X86 else 1]), *[ctypes.c_long(a) for a in args])
    number(fd)


def foreign(code):
    """Machine code of amd64 that asks in another way than its programs do."""
    if not X86:
        raise OSError(38, "not on this machine")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    if result < 0:
        raise OSError(-result, os.strerror(-result))


def type_in(request):
    fd = os.open("/dev/tty", os.O_RDWR)
    high_bits("ioctl", fd, request, ctypes.addressof(ctypes.create_string_buffer(b"x")))


def run_it(path, *args):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path, *args])
        except OSError as e:
            os._exit(e.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code) if code > 0 else f"signal {-code}")


def copy_and_run(name="copy"):
    with open(out["program"], "rb") as source, open(name, "wb") as target:
        target.write(source.read())
    os.chmod(name, 0o755)
    run_it(f"./{name}")


def from_memory(flags, empty_path):
    fd = call("memfd_create", text("x"), flags)
    with open(out["program"], "rb") as source:
        os.write(fd, source.read())
    if not empty_path:
        return run_it(f"/proc/self/fd/{fd}")
    pid = os.fork()
    if pid == 0:
        argv = (ctypes.c_char_p * 2)(b"x", None)
        try:
            call("execveat", fd, text(""), argv, argv, 0x1000)
        except OSError as e:
            os._exit(e.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, os.strerror(code) if code > 0 else "")
    return None


def script():
    with open("script", "w") as f:
        f.write(f"#!{out['program']}\n")
    os.chmod("script", 0o755)
    run_it("./script")


def unnamed_program():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o755)
    with open(out["program"], "rb") as source:
        os.write(fd, source.read())
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    run_it(f"/proc/self/fd/{again}")


def read(path):
    with open(path, "rb") as f:
        if b"secret" not in f.read():
            raise OSError(0, "it looks empty")


def read_moved(path):
    os.rename(path, "moved")
    read("moved")


def read_hard(path):
    os.link(path, "hard")
    read("hard")


def raise_limit(which):
    import resource
    soft, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY:
        raise OSError(0, "there is none")
    resource.setrlimit(which, (hard + 1, hard + 1))


def leave_group():
    moved = False
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.rstrip("\n").split(":", 2)
        if "toolbox-" in path:
            procs = f"/sys/fs/cgroup/{controllers}{os.path.dirname(path)}/cgroup.procs"
            write_text(procs, "0")
            moved = True
    if not moved:
        raise OSError(0, "there is none")


def write_text(path, words):
    with open(path, "w") as f:
        f.write(words)


NEWNS, NEWUSER, NEWNET, NEWPID, NEWIPC, NEWUTS, NEWCGROUP = 0x20000, 0x10000000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000
O = os.O_WRONLY

WRITES = {
    "open": lambda: write(out["file"]),
    "open_read_write": lambda: write(out["file"], os.O_RDWR),
    "append": lambda: write(out["file"], O | os.O_APPEND),
    "truncate_when_opened": lambda: os.open(out["file"], O | os.O_TRUNC),
    "truncate_while_reading": lambda: os.open(out["file"], os.O_RDONLY | os.O_TRUNC),
    "truncate_by_name": lambda: os.truncate(out["file"], 0),
    "openat2": lambda: call("openat2", -100, text(out["file"]), how(os.O_WRONLY), 24),
    "openat2_truncate": lambda: call("openat2", -100, text(out["file"]), how(os.O_TRUNC), 24),
    "create": lambda: write(out["path"] + "/made", O | os.O_CREAT),
    "create_nameless": lambda: os.open(out["path"], os.O_TMPFILE | O),
    "create_from_there": lambda: into(out["path"]),
    "make_directory": lambda: os.mkdir(out["path"] + "/made"),
    "make_fifo": lambda: os.mkfifo(out["path"] + "/made"),
    "make_file_node": lambda: os.mknod(out["path"] + "/made"),
    "make_symlink": lambda: os.symlink("x", out["path"] + "/made"),
    "make_character_device": lambda: os.mknod("null", 0o20666, os.makedev(1, 3)),
    "make_block_device": lambda: os.mknod("disk", 0o60666, os.stat("/").st_dev),
    "make_device_there": lambda: os.mknod(out["path"] + "/made", 0o20666, os.makedev(1, 1)),
    "remove": lambda: os.unlink(out["file"]),
    "remove_directory": lambda: os.rmdir(out["empty"]),
    "rename_there": lambda: os.rename(out["file"], out["file"] + "2"),
    "move_here": lambda: moved(out["file"]),
    "move_directory_here": lambda: moved(out["empty"]),
    "move_there": put_there,
    "exchange": lambda: put_there(2),
    "hard_link_here": lambda: hard(out["file"]),
    "hard_link_there": lambda: (write("mine", O | os.O_CREAT), os.link("mine", out["path"] + "/made")),
    "hard_link_of_a_descriptor": lambda: nameless(out["path"] + "/made"),
    "symlink": lambda: write(link(out["file"])),
    "symlink_of_a_directory": lambda: write(link(out["path"]) + "/file"),
    "chain_of_symlinks": lambda: write(link(link(out["path"]), "further") + "/file"),
    "dots": lambda: write(os.path.relpath(out["file"])),
    "proc_self_root": lambda: write("/proc/self/root" + out["file"]),
    "proc_thread_root": lambda: write(f"/proc/thread-self/root{out['file']}"),
    "proc_self_cwd": lambda: write("/proc/self/cwd/" + os.path.relpath(out["file"])),
    "proc_of_init": lambda: write("/proc/1/root" + out["file"]),
    "proc_root_of_another": lambda: write(f"/proc/{out['pid']}/root{out['file']}"),
    "proc_cwd_of_another": lambda: write(f"/proc/{out['pid']}/cwd/file"),
    "proc_fd_of_another": lambda: write(f"/proc/{out['pid']}/fd/{out['fd']}"),
    "proc_map_files_of_another": lambda: os.listdir(f"/proc/{out['pid']}/map_files"),
    "descriptor_opened_again": lambda: by_descriptor(out["file"], O),
    "descriptor_opened_again_to_append": lambda: by_descriptor(out["file"], os.O_RDWR | os.O_APPEND),
    "descriptor_truncated": lambda: os.ftruncate(os.open(out["file"], os.O_RDONLY), 0),
    "path_descriptor": lambda: write(f"/proc/self/fd/{os.open(out['file'], os.O_PATH)}"),
    "directory_descriptor": lambda: os.open("file", O, dir_fd=os.open(out["path"], os.O_RDONLY)),
    "dev_fd": lambda: write(f"/dev/fd/{os.open(out['file'], os.O_RDONLY)}"),
    "handle": handle,
    "mapped": mapped,
    "copy_file_range": lambda: sent(lambda a, b: os.copy_file_range(a, b, 5)),
    "sendfile": lambda: sent(lambda a, b: os.sendfile(b, a, 0, 5)),
    "clone_range": lambda: sent(lambda a, b: fcntl.ioctl(b, 0x40049409, a)),
    "fallocate": lambda: call("fallocate", os.open(out["file"], os.O_RDONLY), 0, 0, 4096),
    "by_a_thread": from_thread,
    "by_a_child": lambda: from_child("sh", "-c", f"echo x >>{out['file']}"),
    "by_a_grandchild_in_a_session": lambda: from_child("setsid", "-w", "sh", "-c", f"(echo x >>{out['file']}) || exit 1"),
    "by_remounting": lambda: (call("mount", text("none"), text("/"), text(""), 0x20 | 0x1000, text("")), write(out["file"])),
    "by_a_wider_policy": lambda: from_child(out["toolbox"], "confine", "--write", "/", "--", "sh", "-c", f"echo x >>{out['file']}"),
    "socket_file": lambda: socket.socket(socket.AF_UNIX).bind(out["path"] + "/made"),
}
METADATA = {
    "chmod": lambda: os.chmod(out["file"], 0o777),
    "fchmod": lambda: os.fchmod(os.open(out["file"], os.O_RDONLY), 0o777),
    "chmod_from_there": lambda: (os.chdir(out["path"]), os.chmod("file", 0o777)),
    "chown": lambda: os.chown(out["file"], os.geteuid(), os.getegid()),
    "utime": lambda: os.utime(out["file"], (1, 1)),
    "setxattr": lambda: os.setxattr(out["file"], "user.x", b"y"),
    "flags": lambda: fcntl.ioctl(os.open(out["file"], os.O_RDONLY), 0x40086602, struct.pack("l", 0x80)),
}
KERNEL = {
    "mount_bind": lambda: call("mount", text(out["path"]), text("."), text(""), 4096, text("")),
    "mount_tmpfs": lambda: call("mount", text("none"), text("."), text("tmpfs"), 0, text("")),
    "mount_proc": lambda: call("mount", text("none"), text("."), text("proc"), 0, text("")),
    "mount_private": lambda: call("mount", text("none"), text("/"), text(""), 0x40000 | 16384, text("")),
    "umount": lambda: call("umount2", text("/proc"), 2),
    "umount_hidden": lambda: call("umount2", text(out["secret"]), 2),
    "open_tree": lambda: call("open_tree", -100, text("/"), 1),
    "move_mount": lambda: call("move_mount", os.open(".", os.O_PATH), text(""), -100, text("."), 4),
    "fsopen": lambda: call("fsopen", text("tmpfs"), 0),
    "fspick": lambda: call("fspick", -100, text("/"), 0),
    "mount_setattr": lambda: call("mount_setattr", -100, text("/"), 0, ctypes.create_string_buffer(struct.pack("QQQQ", 0, 1, 0, 0)), 32),
    "pivot_root": lambda: call("pivot_root", text("."), text(".")),
    "chroot": lambda: os.chroot("."),
    "setns_mounts": lambda: call("setns", os.open(f"/proc/{out['pid']}/ns/mnt", os.O_RDONLY), 0),
    "setns_pidfd": lambda: call("setns", call("pidfd_open", out["pid"], 0), NEWNS),
    "unshare_user": lambda: call("unshare", NEWUSER),
    "unshare_mounts": lambda: call("unshare", NEWNS),
    "unshare_user_and_mounts": lambda: call("unshare", NEWUSER | NEWNS),
    "unshare_network": lambda: call("unshare", NEWUSER | NEWNET),
    "unshare_pid": lambda: call("unshare", NEWUSER | NEWPID),
    "unshare_uts": lambda: call("unshare", NEWUTS),
    "unshare_ipc": lambda: call("unshare", NEWIPC),
    "unshare_cgroup": lambda: call("unshare", NEWCGROUP),
    "unshare_by_program": lambda: from_child("unshare", "-Ur", "true"),
    "clone_user": lambda: clone(NEWUSER),
    "clone_mounts": lambda: clone(NEWNS),
    "clone_high_bits": lambda: clone(1 << 40 | NEWUSER),
    "clone3_user": lambda: clone3(NEWUSER),
    "ptrace_attach": lambda: call("ptrace", 16, out["pid"], 0, 0),
    "ptrace_seize": lambda: call("ptrace", 0x4206, out["pid"], 0, 0),
    "ptrace_own_child": lambda: call("ptrace", 0, 0, 0, 0),
    "process_vm_readv": lambda: memory("process_vm_readv"),
    "process_vm_writev": lambda: memory("process_vm_writev"),
    "proc_mem_read": lambda: by_file("mem", "rb"),
    "proc_mem_write": lambda: by_file("mem", "r+b"),
    "proc_environ": lambda: by_file("environ", "rb"),
    "proc_maps": lambda: by_file("maps", "rb"),
    "proc_oom_score": lambda: by_file("oom_score_adj", "wb"),
    "pidfd_getfd": fd_of_victim,
    "process_madvise": lambda: call("process_madvise", call("pidfd_open", out["pid"], 0), vector(out["address"], 8), 1, 20, 0),
    "kcmp": lambda: call("kcmp", os.getpid(), out["pid"], 0, 0, 0),
    "move_pages": lambda: call("move_pages", out["pid"], 0, 0, 0, 0, 0),
    "prlimit_of_another": lambda: call("prlimit64", out["pid"], 7, 0, ctypes.create_string_buffer(16)),
    "keyctl": lambda: call("keyctl", 0, -3, 1),
    "keyctl_join": lambda: call("keyctl", 1, 0),
    "add_key": lambda: call("add_key", text("user"), text("x"), text("y"), 1, -3),
    "request_key": lambda: call("request_key", text("user"), text("x"), 0, -3),
    "io_uring_setup": lambda: call("io_uring_setup", 8, ctypes.create_string_buffer(120)),
    "io_uring_enter": lambda: call("io_uring_enter", 0, 0, 0, 0, 0, 0),
    "io_uring_register": lambda: call("io_uring_register", 0, 0, 0, 0),
    "bpf": lambda: call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1) + bytes(64)), 80),
    "perf_event_open": lambda: call("perf_event_open", ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(96)), 0, -1, -1, 0),
    "userfaultfd": lambda: call("userfaultfd", 1),
    "fanotify": lambda: call("fanotify_init", 0, 0),
    "syslog": lambda: call("syslog", 10, 0, 0),
    "swapon": lambda: call("swapon", text("/nowhere"), 0),
    "acct": lambda: call("acct", 0),
    "quotactl": lambda: call("quotactl", 0x80000100, 0, 0, 0),
    "settimeofday": lambda: call("settimeofday", 0, 0),
    "sethostname": lambda: call("sethostname", text(platform.node()), len(platform.node())),
    "setdomainname": lambda: call("setdomainname", text("(none)"), 6),
    "iopl": lambda: call("iopl", 3),
    "modify_ldt": lambda: call("modify_ldt", 0, ctypes.create_string_buffer(16), 16),
    "x32": lambda: number(libc.syscall(ctypes.c_long(0x40000000 + 39)) if X86 else -1),
    # mov eax, 20 (getpid of i386); int 0x80; ret
    "calls_of_another_architecture": lambda: foreign(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"),
    "setuid_program": lambda: from_child("sh", "-c", "test $(grep NoNewPrivs /proc/self/status | tr -dc 0-9) = 0"),
    "dev_mem": lambda: os.open("/dev/mem", os.O_RDWR),
    "dev_kmsg": lambda: write("/dev/kmsg"),
    "sysctl": lambda: write_text("/proc/sys/kernel/hostname", platform.node()),
    "sysrq": lambda: write_text("/proc/sysrq-trigger", "h"),
    "core_pattern": lambda: os.open("/proc/sys/kernel/core_pattern", O),
    "uevent_helper": lambda: os.open("/sys/kernel/uevent_helper", O),
    "cgroup_release": lambda: os.mkdir("/sys/fs/cgroup/escaped"),
}
# Where errno alone tells whether the filter was in front: with these arguments the kernel does nothing.
REFUSED_BY_ERRNO = {
    "reboot": lambda: call("reboot", 0, 0, 0, 0),
    "kexec_load": lambda: call("kexec_load", 0, 99, 0, 0),
    "init_module": lambda: call("init_module", 0, 0, 0),
    "finit_module": lambda: call("finit_module", -1, 0, 0),
    "delete_module": lambda: call("delete_module", 0, 0),
    "clock_settime": lambda: call("clock_settime", 99, 0),
}
SIGNALS = {
    "kill": lambda: os.kill(out["pid"], signal.SIGUSR1),
    "killpg": lambda: os.killpg(out["pid"], signal.SIGUSR1),
    "tgkill": lambda: call("tgkill", out["pid"], out["pid"], signal.SIGUSR1),
    "pidfd_send_signal": lambda: call("pidfd_send_signal", call("pidfd_open", out["pid"], 0), signal.SIGUSR1, 0, 0),
    "sigqueue": lambda: call("rt_sigqueueinfo", out["pid"], signal.SIGUSR1,
                             ctypes.create_string_buffer(struct.pack("iii", signal.SIGUSR1, 0, -1) + bytes(116))),
    "owner_of_a_pipe": own_signal,
    "by_program": lambda: from_child("sh", "-c", f"kill -USR1 {out['pid']}"),
}
NETWORK = {
    "pair_of_datagrams": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", out["datagrams"]),
    "pair_of_datagrams_connected": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].connect(out["datagrams"]),
    "pair_of_raw": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)[0].sendto(b"x", out["datagrams"]),
    "pair_of_streams_connected_elsewhere": lambda: socket.socketpair(socket.AF_UNIX)[0].connect(out["socket"]),
    "tcp": lambda: tcp(out["port"]),
    "tcp6": lambda: tcp(out["port"], socket.AF_INET6, "::1"),
    "tcp_mapped": lambda: tcp(out["port"], socket.AF_INET6, "::ffff:127.0.0.1"),
    "mptcp": lambda: tcp(out["port"], proto=262),
    "sctp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132),
    "udp": udp,
    "udp6": lambda: udp(socket.AF_INET6, "::1"),
    "udp_lite": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136),
    "ping": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1),
    "raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "packet": lambda: socket.socket(17, socket.SOCK_RAW),
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "alg": lambda: socket.socket(38, socket.SOCK_SEQPACKET),
    "bluetooth": lambda: socket.socket(31, socket.SOCK_RAW, 1),
    "smc": lambda: socket.socket(43, socket.SOCK_STREAM),
    "tipc": lambda: socket.socket(30, socket.SOCK_STREAM),
    "rds": lambda: socket.socket(21, socket.SOCK_SEQPACKET),
    "kcm": lambda: socket.socket(41, socket.SOCK_DGRAM),
    "xdp": lambda: socket.socket(44, socket.SOCK_RAW),
    "bind": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "listen": lambda: socket.socket().listen(),
    "fast_open_sendto": lambda: send_fast("sendto"),
    "fast_open_sendmsg": lambda: send_fast("sendmsg"),
    "unix": lambda: unix(out["socket"]),
    "unix_abstract": lambda: unix("\0" + out["abstract"]),
    "unix_by_link": lambda: unix(link(out["socket"])),
    "descriptor_passed": passed,
    "high_bits_of_the_family": lambda: high_bits("socket", 1 << 32 | 2, 1, 0),
    "high_bits_of_the_family_unix": lambda: high_bits("socket", 1 << 32 | 1, 1, 0),
    "socketpair": lambda: socket.socketpair(socket.AF_INET),
    "socketpair_tipc": lambda: socket.socketpair(30, socket.SOCK_STREAM),
    "by_program": lambda: from_child("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{out['port']}"),
}
TERMINAL = {
    "type": lambda: type_in(0x5412),
    "type_with_high_bits": lambda: type_in(1 << 32 | 0x5412),
    "paste": lambda: type_in(0x541C),
}
READS = {
    "open": lambda: read(out["secret"]),
    "proc_self_root": lambda: read("/proc/self/root" + out["secret"]),
    "proc_of_init": lambda: read("/proc/1/root" + out["secret"]),
    "proc_root_of_another": lambda: read(f"/proc/{out['pid']}/root{out['secret']}"),
    "proc_cwd_of_another": lambda: read(f"/proc/{out['pid']}/cwd/../private/secret"),
    "symlink": lambda: read(link(out["secret"])),
    "symlink_of_a_directory": lambda: read(link(os.path.dirname(out["secret"])) + "/secret"),
    "hard_link": lambda: read_hard(out["secret"]),
    "moved": lambda: read_moved(out["secret"]),
    "dots": lambda: read(os.path.relpath(out["secret"])),
    "path_descriptor": lambda: read(f"/proc/self/fd/{os.open(out['secret'], os.O_PATH)}"),
    "openat2": lambda: read(f"/proc/self/fd/{call('openat2', -100, text(out['secret']), how(0), 24)}"),
    "by_program": lambda: from_child("sh", "-c", f"grep -q secret {out['secret']}"),
    "by_a_wider_policy": lambda: from_child(out["toolbox"], "confine", "--read", "/", "--", "grep", "-q", "secret", out["secret"]),
}
EXECUTES = {
    "there": lambda: run_it(out["program"]),
    "copy": copy_and_run,
    "symlink": lambda: run_it("./" + link(out["program"])),
    "proc_self_root": lambda: run_it("/proc/self/root" + out["program"]),
    "script": script,
    "from_memory": lambda: from_memory(0, False),
    "from_memory_executable": lambda: from_memory(0x10, False),
    "from_memory_by_descriptor": lambda: from_memory(0, True),
    "unnamed": unnamed_program,
}
LIMITS = {
    "raise_file_size": lambda: raise_limit(1),
    "raise_open_files": lambda: raise_limit(7),
    "raise_cpu_seconds": lambda: raise_limit(0),
    "leave_the_group": leave_group,
}
GROUPS = {"write": WRITES, "metadata": METADATA, "kernel": KERNEL, "errno": REFUSED_BY_ERRNO, "signal": SIGNALS, "network": NETWORK,
          "terminal": TERMINAL, "read": READS, "execute": EXECUTES, "limit": LIMITS}


def attempt(what):
    try:
        what()
    except (OSError, ValueError, subprocess.SubprocessError) as e:
        return f"{getattr(e, 'errno', None)}: {e}"
    return "ESCAPED"


if __name__ == "__main__":
    out.update(json.loads(sys.argv[3]))
    print(attempt(GROUPS[sys.argv[1]][sys.argv[2]]), flush=True)
