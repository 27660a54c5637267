/* Who this process is, and what it may. Asked from the kernel itself: /proc may be missing. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mem.h"
#include "probe_controller.h"
#include "user.h"

static void collect_groups(struct probe_identity *id)
{
    int n = getgroups(0, NULL);
    id->groups = mem_alloc((size_t)(n > 0 ? n + 1 : 1) * sizeof *id->groups);
    id->groups[id->n_groups++] = id->gid;
    n = n > 0 ? getgroups(n, id->groups + 1) : 0;
    for (int i = 1; i <= n; i++)
        if (id->groups[i] != id->gid)
            id->groups[id->n_groups++] = id->groups[i];
}

static void collect_capabilities(struct probe_identity *id)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    id->capabilities_known = syscall(SYS_capget, &header, data) == 0;
    id->capabilities = (uint64_t)data[1].effective << 32 | data[0].effective;
}

void probe_identity(struct probe_identity *id)
{
    *id = (struct probe_identity){.uid = geteuid(), .gid = getegid()};
    collect_groups(id);
    struct user user;
    user_of_uid(&user, id->uid);
    id->user = user.name;
    id->home = user.home;
    user.name = user.home = NULL;
    user_release(&user);
    collect_capabilities(id);
    id->seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
    id->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

const char *probe_capability_name(unsigned bit, char name[PROBE_CAPABILITY_SIZE])
{
    static const char *const names[] = {
        "chown",
        "dac_override",
        "dac_read_search",
        "fowner",
        "fsetid",
        "kill",
        "setgid",
        "setuid",
        "setpcap",
        "linux_immutable",
        "net_bind_service",
        "net_broadcast",
        "net_admin",
        "net_raw",
        "ipc_lock",
        "ipc_owner",
        "sys_module",
        "sys_rawio",
        "sys_chroot",
        "sys_ptrace",
        "sys_pacct",
        "sys_admin",
        "sys_boot",
        "sys_nice",
        "sys_resource",
        "sys_time",
        "sys_tty_config",
        "mknod",
        "lease",
        "audit_write",
        "audit_control",
        "setfcap",
        "mac_override",
        "mac_admin",
        "syslog",
        "wake_alarm",
        "block_suspend",
        "audit_read",
        "perfmon",
        "bpf",
        "checkpoint_restore",
    };
    if (bit < sizeof names / sizeof *names)
        snprintf(name, PROBE_CAPABILITY_SIZE, "cap_%s", names[bit]);
    else
        snprintf(name, PROBE_CAPABILITY_SIZE, "cap_%u", bit);
    return name;
}

const char *probe_seccomp_name(int mode)
{
    static const char *const names[] = {"disabled", "strict", "filter"};
    return mode >= 0 && mode < (int)(sizeof names / sizeof *names) ? names[mode] : NULL;
}
