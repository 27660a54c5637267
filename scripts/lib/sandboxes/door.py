#!/usr/bin/python3
"""A way into a sandbox that can only be entered by being started in it.

`python3 -c SOURCE OPTIONS` runs inside, with a listening socket as its standard input, which every sandbox hands on, and is
the parent of all that is run there. `door.py enter SOCKET COMMAND...` outside has it run a command with our own three
descriptors, and ends with that one's status.

OPTIONS, JSON: what the door does to itself before it opens: `chroot`, `limits`, `uid`, `deny` (system calls: {"from": N,
"calls": [N, …], "errno": N}), `env`.
"""
import array
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import struct
import sys

# The first system call that Linux 3.10 did not have.
NEW = {"x86_64": 314, "aarch64": 274}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def filter_calls(libc, deny):
    """seccomp: the calls listed, and all from a number on, are answered with an error."""
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    fail, allow = 0x00050000 | deny["errno"], 0x7FFF0000
    tests = [(equal, number) for number in deny.get("calls", ())]
    tests += [(at_least, deny["from"])] if deny.get("from") else []
    lines = [(load, 0, 0, 0)]
    lines += [(code, len(tests) - n, 0, number) for n, (code, number) in enumerate(tests)]
    lines += [(give, 0, 0, allow), (give, 0, 0, fail)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program)))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, header, 0, 0) != 0:  # no new privileges; the filter
        raise OSError(ctypes.get_errno(), "seccomp")


def restrict(options):
    libc = ctypes.CDLL(None, use_errno=True)
    if "chroot" in options:
        os.chroot(options["chroot"])
        os.chdir("/")
    for name, value in options.get("limits", {}).items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if "uid" in options:
        os.setgroups([])
        os.setresgid(*[options["uid"]] * 3)
        os.setresuid(*[options["uid"]] * 3)
    if "deny" in options:
        filter_calls(libc, options["deny"])


def run(argv, descriptors, env):
    """In the child."""
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 256)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    os._exit(127)


def admit(connection, running, env):
    received, control, _, _ = connection.recvmsg(1 << 16, 4096)
    descriptors = array.array("i", b"".join(data for _, _, data in control))
    try:
        pid = os.fork()
        if pid == 0:
            run(json.loads(received), descriptors, env)
        running[pid] = connection
    except OSError as error:
        os.write(descriptors[2], f"no process can be started here: {error.strerror}\n".encode())
        connection.sendall(b"126")
        connection.close()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def reap(running):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        connection = running.pop(pid, None)  # what is not ours is an orphan
        if connection:
            try:
                connection.sendall(str(status >> 8 if status & 127 == 0 else 128 + (status & 127)).encode())
            except OSError:
                pass  # who asked has gone
            connection.close()


def serve(options):
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=0)  # proot lets nobody ask it what it is
    listening.settimeout(0.05)
    listening.set_inheritable(False)
    restrict(options)
    env = {"PATH": PATH, "HOME": "/root" if os.geteuid() == 0 else "/tmp", **options.get("env", {})}
    running = {}
    while True:
        try:
            connection, _ = listening.accept()
            connection.setblocking(True)
            admit(connection, running, env)
        except OSError as error:
            if error.errno not in (None, errno.EAGAIN, errno.EINTR):
                raise
        reap(running)


def enter(path, argv):
    with socket.socket(socket.AF_UNIX) as way:
        way.connect(path)
        way.sendmsg([json.dumps(argv).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
        return int(way.recv(16) or b"255")


if __name__ == "__main__":
    if sys.argv[1] == "enter":
        sys.exit(enter(sys.argv[2], sys.argv[3:]))
    serve(json.loads(sys.argv[1]))
