"""Machines under an emulator, with Debian's kernel for clouds, as Firecracker and Kata have them: an initramfs and a serial line, or ssh."""
import contextlib
import gzip
import json
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

from sandboxes.places import REPO, Place, Unavailable, background, output, program, wait_for
from sandboxes.rows import row


def kernel():
    found = sorted(Path("/boot").glob("vmlinuz-*cloud*"))
    if not found:
        raise Unavailable("no kernel for clouds is installed (scripts/setup sandboxes)")
    return found[-1]


def initramfs(lab, name, folder):
    made = subprocess.run(f"cd {folder} && find . | {program('cpio')} -o -H newc --quiet", shell=True, capture_output=True, check=True)
    path = lab.folder / f"{name}.initramfs"
    path.write_bytes(gzip.compress(made.stdout, 1))
    return path


def machine(lab, kind, archive, append, *more, **kwargs):
    argv = [program("qemu-system-x86_64"), "-M", kind, "-accel", "tcg", "-m", "384", "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-serial", "stdio", "-kernel", kernel(), "-initrd", archive,
            "-append", f"console=ttyS0 quiet loglevel=3 panic=-1 {append}", *more]
    return background(argv, **kwargs)


class Serial:
    """Calls by `toolbox exec --stream` on a serial line: its terminal says each request again, the kernel may say a word."""

    def __init__(self, process):
        self.process, self.answers, self.number, self.changed = process, {}, 0, threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with open(self.process.stdout.fileno(), encoding="utf-8", errors="replace", closefd=False) as lines:
            for line in lines:
                with contextlib.suppress(ValueError, AttributeError), self.changed:
                    message = json.loads(line)
                    if "method" not in message or message["method"] == "rpc.hello":
                        self.answers[message.get("id")] = message  # the hello has none
                        self.changed.notify_all()

    def said(self, number, seconds=120):
        with self.changed:
            if not self.changed.wait_for(lambda: number in self.answers, seconds):
                raise Unavailable("the machine does not answer")
            return self.answers.pop(number)

    def send(self, message):
        os.write(self.process.stdin.fileno(), (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())

    def __call__(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        answer = self.said(self.number)
        self.send({"method": "rpc.ack", "params": {"ids": [self.number]}})
        return answer


def copied(lab, name, binary):
    folder = lab.folder / f"vm-{name}"
    (folder / "dev").mkdir(parents=True)
    os.mknod(folder / "dev/console", 0o20600, os.makedev(5, 1))
    shutil.copy(binary, folder / "toolbox")
    return folder


@contextlib.contextmanager
def on_a_line(lab, name, folder, append, scratch):
    """A clock that counts instructions: where this machine is busy, this kind's kernel would not find out how fast its own one is."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with machine(lab, "microvm", initramfs(lab, name, folder), append, "-icount", "shift=3", **pipes) as process:
        serial = Serial(process)
        serial.said(None, 300)
        yield Place("", scratch=scratch, stream=serial)


@row("a microVM (qemu): the program is process 1, and there is nothing else", run="terminal", keys="terminal", awaiting_input="terminal", browser="")
def alone(lab):
    with on_a_line(lab, "alone", copied(lab, "alone", lab.binary), "rdinit=/toolbox -- exec --stream", "/") as place:
        yield place


BUSYBOX = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mkdir -p /proc /tmp /dev/pts /etc /root
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mkdir -p /dev/pts
mount -t devpts -o ptmxmode=666 devpts /dev/pts
ip link set lo up
export HOME=/root PATH=/bin
stty -F /dev/console raw -echo
while :; do /toolbox exec --stream; done
"""


@row("a microVM (qemu): BusyBox's shell is process 1, the program its only companion", browser="no browser")
def companion(lab):
    folder = copied(lab, "companion", lab.binary)
    (folder / "bin").mkdir()
    shutil.copy(program("busybox"), folder / "bin/busybox")
    (folder / "init").write_text(BUSYBOX)
    (folder / "init").chmod(0o755)
    with on_a_line(lab, "companion", folder, "rdinit=/init", "/tmp") as place:
        yield place


# ---- a whole system, by ssh ----

TOOLS = ("bash", "sh", "cat", "ls", "rm", "mkdir", "chmod", "mv", "sleep", "setsid", "sed", "tr", "head", "stat", "id", "sshd", "uname")
MODULES = ("failover", "net_failover", "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_net")
RC = """#!/bin/sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /run/sshd
$b mount -t devpts -o ptmxmode=666,gid=5,mode=620 devpts /dev/pts
$b mount -t tmpfs -o mode=1777 tmpfs /dev/shm
for m in {modules}; do $b insmod /modules/$m.ko; done
$b ip link set lo up
$b ip addr add 10.0.2.15/24 dev eth0
$b ip link set eth0 up
{more}
/bin/sshd -f /etc/sshd -E /tmp/sshd.log
"""
SSHD = """
HostKey /etc/key
AuthorizedKeysFile /etc/authorized
StrictModes no
PermitRootLogin yes
MaxSessions 100
MaxStartups 100
"""


def system(lab, name, more):
    folder = lab.folder / f"vm-{name}"
    output(REPO / "scripts/lib/tool-root", folder, *TOOLS)
    shutil.copy(program("busybox"), folder / "bin/busybox")
    release = kernel().name.split("-", 1)[1]
    (folder / "modules").mkdir()
    for module in MODULES:
        [path] = Path(f"/lib/modules/{release}/kernel").glob(f"**/{module}.ko")
        shutil.copy(path, folder / "modules")
    output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "etc/key")
    key = lab.folder / f"{name}.key"
    output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    shutil.copy(f"{key}.pub", folder / "etc/authorized")
    (folder / "etc/authorized").chmod(0o644)
    (folder / "etc/passwd").write_text("root:x:0:0::/root:/bin/bash\nagent:x:1000:1000::/tmp:/bin/bash\nsshd:x:100:100::/run/sshd:/bin/false\n")
    (folder / "etc/group").write_text("root:x:0:\nagent:x:1000:\ntty:x:5:\n")
    (folder / "etc/sshd").write_text(SSHD)
    (folder / "etc/inittab").write_text("::sysinit:/etc/rc\n")
    (folder / "etc/rc").write_text(RC.format(modules=" ".join(MODULES), more=more))
    (folder / "etc/rc").chmod(0o755)
    os.mknod(folder / "dev/console", 0o20600, os.makedev(5, 1))
    return folder, key


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def by_ssh(lab, name, user, more=""):
    folder, key = system(lab, name, more)
    port = free_port()
    config = lab.folder / f"{name}.ssh"
    config.write_text(f"Host vm\n HostName 127.0.0.1\n Port {port}\n User {user}\n IdentityFile {key}\n StrictHostKeyChecking no\n"
                      f" UserKnownHostsFile {lab.folder}/{name}.known\n LogLevel ERROR\n ConnectTimeout 60\n")
    network = ["-device", "virtio-net-pci,netdev=n", "-netdev", f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22"]
    with machine(lab, "pc", initramfs(lab, name, folder), "rdinit=/bin/busybox -- init", *network) as process:
        enter = ("ssh", "-F", str(config), "vm", "--")
        place = Place("ssh:vm", ("--runtime", f"ssh -F {config}"), enter)
        wait_for("its sshd", lambda: subprocess.run([*enter, "true"], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0, process)
        yield place


JUMPS = "while :; do $b date -s @1000000000; sleep 0.3; $b date -s @1900000000; sleep 0.3; done >/dev/null &"


@row("a virtual machine (qemu) whose clock jumps thirty years to and fro", browser="no browser")
def jumping(lab):
    with by_ssh(lab, "clock", "root", JUMPS) as place:
        yield place


@row("a virtual machine (qemu) whose Yama denies all tracing, as a user", browser="no browser", awaiting_input="timeout")
def yama(lab):
    with by_ssh(lab, "yama", "agent", "echo 3 >/proc/sys/kernel/yama/ptrace_scope") as place:
        yield place
