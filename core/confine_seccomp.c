/* System calls that no confined program has, and arguments of others, by a filter of the kernel's classic
 * BPF. It decides by numbers alone: what lies in memory it can't see, so that calls that take such things
 * there are not there at all, and C libraries go by the older ones. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "confine_internal.h"

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#elif defined __arm__
#define ARCH AUDIT_ARCH_ARM
#elif defined __i386__
#define ARCH AUDIT_ARCH_I386
#elif defined __powerpc64__
#define ARCH AUDIT_ARCH_PPC64LE
#elif defined __riscv
#define ARCH AUDIT_ARCH_RISCV64
#elif defined __s390x__
#define ARCH AUDIT_ARCH_S390X
#endif

#define X32 0x40000000U
#define LOW (__BYTE_ORDER == __BIG_ENDIAN ? 4U : 0U)
#define NAMESPACES                                                                                           \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |               \
     CLONE_NEWCGROUP | 0x80 /* CLONE_NEWTIME */)
#ifdef __s390x__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif
#define MEMFD_NO_EXEC 8
#define FAST_OPEN 0x20000000
#define LINUX_CONSOLE 0x541C /* TIOCLINUX */

/* Those without a name in the headers at hand have the same number everywhere. */
enum {
    IO_URING = 425,
    OPEN_TREE = 428,
    FSPICK = 433,
    CLONE3 = 435,
    OPENAT2 = 437,
    PIDFD_GETFD = 438,
    PROCESS_MADVISE = 440,
    MOUNT_SETATTR = 442,
    QUOTACTL_FD = 443,
    PROCESS_MRELEASE = 448,
    OPEN_TREE_ATTR = 467
};

static const short refused[] = {
    /* other processes, and the kernel's keys */
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    PIDFD_GETFD,
    PROCESS_MADVISE,
    PROCESS_MRELEASE,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    /* mounts, namespaces, other ways to files */
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    OPEN_TREE,
    OPEN_TREE + 1,
    OPEN_TREE + 2,
    OPEN_TREE + 3,
    OPEN_TREE + 4,
    FSPICK,
    MOUNT_SETATTR,
    OPEN_TREE_ATTR,
    SYS_quotactl,
    QUOTACTL_FD,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    /* the kernel */
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
#endif
#ifdef SYS_vm86
    SYS_vm86,
#endif
};

/* For which a C library has another one, or a program another way. */
static const short absent[] = {
    IO_URING,
    IO_URING + 1,
    IO_URING + 2,
    CLONE3,
};

enum { CODE_MAX = 512 };

struct program {
    struct sock_filter code[CODE_MAX];
    unsigned short n;
};

static void put(struct program *p, unsigned code, unsigned char yes, unsigned char no, unsigned k)
{
    if (p->n < CODE_MAX)
        p->code[p->n++] = (struct sock_filter){(unsigned short)code, yes, no, k};
}

static void load(struct program *p, size_t offset)
{
    put(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)offset);
}

static void load_number(struct program *p)
{
    load(p, offsetof(struct seccomp_data, nr));
}

static void load_argument(struct program *p, int i)
{
    load(p, offsetof(struct seccomp_data, args) + (size_t)i * 8 + LOW);
}

static void answer(struct program *p, unsigned error)
{
    put(p, BPF_RET, 0, 0, error ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_ALLOW);
}

static void refuse(struct program *p, unsigned number, unsigned error)
{
    put(p, BPF_JMP | BPF_JEQ, 0, 1, number);
    answer(p, error);
}

/* Refuses the call where the argument's bits under the mask are the value, or where they are not. */
static void refuse_argument(struct program *p, unsigned number, int argument, unsigned mask, bool equal,
                            unsigned value, unsigned error)
{
    put(p, BPF_JMP | BPF_JEQ, 0, 5, number);
    load_argument(p, argument);
    put(p, BPF_ALU | BPF_AND, 0, 0, mask);
    put(p, BPF_JMP | BPF_JEQ, equal ? 0 : 1, equal ? 1 : 0, value);
    answer(p, error);
    load_number(p);
}

static void refuse_any_bit(struct program *p, unsigned number, int argument, unsigned bits, unsigned error)
{
    refuse_argument(p, number, argument, bits, false, 0, error);
}

static void begin(struct program *p)
{
    load(p, offsetof(struct seccomp_data, arch));
    put(p, BPF_JMP | BPF_JEQ, 1, 0, ARCH);
    put(p, BPF_RET, 0, 0, SECCOMP_RET_KILL_PROCESS);
    load_number(p);
#ifdef __x86_64__
    put(p, BPF_JMP | BPF_JGE, 0, 1, X32);
    answer(p, ENOSYS);
#endif
}

static void refuse_calls(struct program *p)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        refuse(p, refused[i], EPERM);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        refuse(p, absent[i], ENOSYS);
    refuse_any_bit(p, SYS_clone, CLONE_FLAGS, NAMESPACES, EPERM);
    refuse_any_bit(p, SYS_unshare, 0, NAMESPACES, EPERM);
    refuse_any_bit(p, SYS_prlimit64, 0, ~0U, EPERM); /* of others */
    refuse_argument(p, SYS_ioctl, 1, ~0U, true, TIOCSTI, EPERM);
    refuse_argument(p, SYS_ioctl, 1, ~0U, true, LINUX_CONSOLE, EPERM);
}

/* Where Landlock doesn't know of truncation: what is opened to be read, and by name alone. */
static void refuse_truncation(struct program *p)
{
#ifdef SYS_open
    refuse_argument(p, SYS_open, 1, O_TRUNC | O_ACCMODE, true, O_TRUNC, EACCES);
#endif
    refuse_argument(p, SYS_openat, 2, O_TRUNC | O_ACCMODE, true, O_TRUNC, EACCES);
    refuse(p, OPENAT2, ENOSYS);
    refuse(p, SYS_truncate, EACCES);
#ifdef SYS_truncate64
    refuse(p, SYS_truncate64, EACCES);
#endif
}

/* Passes a socket of the family on to what follows, which ends with an answer. */
static void of_family(struct program *p, unsigned family, unsigned char steps)
{
    put(p, BPF_JMP | BPF_JEQ, 0, steps, family);
}

static void allow_family(struct program *p, unsigned family)
{
    of_family(p, family, 1);
    answer(p, 0);
}

/* A stream of TCP and of nothing that Landlock takes for something else. */
static void allow_tcp(struct program *p, unsigned family)
{
    of_family(p, family, 8);
    load_argument(p, 2);
    put(p, BPF_JMP | BPF_JEQ, 1, 0, 0);
    put(p, BPF_JMP | BPF_JEQ, 0, 4, 6 /* IPPROTO_TCP */);
    load_argument(p, 1);
    put(p, BPF_ALU | BPF_AND, 0, 0, 0xf);
    put(p, BPF_JMP | BPF_JEQ, 0, 1, SOCK_STREAM);
    answer(p, 0);
    answer(p, EACCES);
}

static bool may_listen(const struct confine *c)
{
    bool binds = c->network & CONFINE_NET_UNIX;
    for (size_t i = 0; i < c->n_ports; i++)
        binds = binds || c->ports[i].bind;
    return binds;
}

static void refuse_network(struct program *p, const struct confine *c)
{
    unsigned network = c->network;
    struct program sockets = {.n = 0};
    load_argument(&sockets, 0);
    if (network & CONFINE_NET_UNIX)
        allow_family(&sockets, AF_UNIX);
    if (network & CONFINE_NET_LOOPBACK) {
        allow_family(&sockets, AF_INET);
        allow_family(&sockets, AF_INET6);
    } else if (network & CONFINE_NET_PORTS) {
        allow_tcp(&sockets, AF_INET);
        allow_tcp(&sockets, AF_INET6);
    }
    if (network & ~(unsigned)CONFINE_NET_UNIX)
        allow_family(&sockets, AF_NETLINK);
    answer(&sockets, EACCES);
    put(p, BPF_JMP | BPF_JEQ, 0, (unsigned char)sockets.n, SYS_socket);
    for (unsigned i = 0; i < sockets.n; i++)
        put(p, sockets.code[i].code, sockets.code[i].jt, sockets.code[i].jf, sockets.code[i].k);
    refuse_argument(p, SYS_socketpair, 0, ~0U, false, AF_UNIX, EACCES);
    if (!(network & CONFINE_NET_UNIX)) { /* which can be sent to any path, though they are a pair */
        refuse_argument(p, SYS_socketpair, 1, 0xf, true, SOCK_DGRAM, EACCES);
        refuse_argument(p, SYS_socketpair, 1, 0xf, true, SOCK_RAW, EACCES);
    }
#ifdef SYS_socketcall
    refuse(p, SYS_socketcall, ENOSYS);
#endif
    if (network & CONFINE_NET_PORTS) { /* which connects without being asked for it, and takes any port */
        refuse_any_bit(p, SYS_sendto, 3, FAST_OPEN, EACCES);
        refuse_any_bit(p, SYS_sendmsg, 2, FAST_OPEN, EACCES);
        refuse_any_bit(p, SYS_sendmmsg, 3, FAST_OPEN, EACCES);
        if (!may_listen(c))
            refuse(p, SYS_listen, EACCES);
    }
}

/* Whether Landlock or seccomp alone makes the rule whole. */
static void note(const struct confine *c)
{
    unsigned special = c->network & (CONFINE_NET_LOOPBACK | CONFINE_NET_PORTS);
    confine_note(c, CONFINE_SYSTEM_CALLS, CONFINE_BY_SECCOMP);
    if (!c->wanted[CONFINE_NETWORK])
        return;
    if (c->network == CONFINE_NET_UNIX ? c->report->abi >= 6 || confine_held(c, CONFINE_NETWORK)
                                       : special == 0 || confine_held(c, CONFINE_NETWORK))
        confine_note(c, CONFINE_NETWORK, CONFINE_BY_SECCOMP);
}

int confine_seccomp(const struct confine *c, struct err *err)
{
    struct program p = {.n = 0};
    begin(&p);
    refuse_calls(&p);
    if (c->wanted[CONFINE_WRITE] && c->report->abi > 0 && c->report->abi < 3)
        refuse_truncation(&p);
    if (c->wanted[CONFINE_EXECUTE])
        refuse_argument(&p, SYS_memfd_create, 1, MEMFD_NO_EXEC, false, MEMFD_NO_EXEC, ENOSYS);
    if (c->wanted[CONFINE_NETWORK])
        refuse_network(&p, c);
    answer(&p, 0);
    struct sock_fprog filter = {p.n, p.code};
    if (p.n < CODE_MAX && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0)
        note(c);
    else if (!c->best_effort)
        return err_set(err, ERR_TOOL, "cannot confine: this kernel takes no seccomp filter");
    return 0;
}
