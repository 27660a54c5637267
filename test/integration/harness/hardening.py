"""What systems forbid the programs that they run, as preexec_fn of subprocess."""
import ctypes
import errno
import platform
import struct

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE = 22, 38, 65
KILL = 0x80000000
MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}


def without(number, instead=0x00050000 | errno.ENOSYS):
    """The system call of that number is not there (ENOSYS), or what else seccomp is to do; KILL: it ends the process."""
    def refuse():
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, instead), (0x06, 0, 0, 0x7FFF0000)]
        program = b"".join(struct.pack("HBBI", *step) for step in code)
        held = ctypes.create_string_buffer(program)
        libc = ctypes.CDLL(None, use_errno=True)
        header = struct.pack("HxxxxxxP", len(code), ctypes.addressof(held))
        assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        assert libc.prctl(PR_SET_SECCOMP, 2, header, 0, 0) == 0

    return refuse


def no_code_from_memory():
    """Memory that was written to never becomes code, as systemd has it for services (MemoryDenyWriteExecute); Linux 6.3."""
    assert ctypes.CDLL(None).prctl(PR_SET_MDWE, 1, 0, 0, 0) == 0


def no_code_at_all():
    """And a file without a name can't be made either."""
    no_code_from_memory()
    without(MEMFD_CREATE[platform.machine()])()


def is_here():
    """Whether this kernel has it (PR_GET_MDWE)."""
    return ctypes.CDLL(None).prctl(PR_SET_MDWE + 1, 0, 0, 0, 0) >= 0
