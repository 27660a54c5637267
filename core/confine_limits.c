/* Limits: control groups of either version where they can be made, the kernel's limits of a process else; and
 * the rights of root that a confined program hasn't. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cgroup.h"
#include "confine_internal.h"
#include "io.h"
#include "mem.h"

/* ---- control groups ---- */

/* What a controller is called, and its file for the limit in both versions. */
static const struct controller {
    enum confine_what what;
    const char *name, *file[2];
} controllers[] = {
    {CONFINE_MEMORY, "memory", {"memory.limit_in_bytes", "memory.max"}},
    {CONFINE_PROCESSES, "pids", {"pids.max", "pids.max"}},
    {CONFINE_CPUS, "cpu", {"cpu.cfs_quota_us", "cpu.max"}},
};

static bool put_file(const char *group, const char *file, const char *text)
{
    char *path MEM_AUTO = mem_printf("%s/%s", group, file);
    int fd FD_AUTO = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool read_file(const char *group, const char *file, struct buf *text)
{
    char *path MEM_AUTO = mem_printf("%s/%s", group, file);
    return io_read_file(AT_FDCWD, path, text) == 0;
}

static bool has_file(const char *group, const char *file)
{
    char *path MEM_AUTO = mem_printf("%s/%s", group, file);
    return access(path, F_OK) == 0;
}

/* CPUs are given in thousandths, of a period of 100 ms. */
static bool set_limit(const struct confine *c, const struct controller *k, bool second, const char *group)
{
    char text[64];
    long long limit = c->limits[k->what];
    if (k->what != CONFINE_CPUS)
        snprintf(text, sizeof text, "%lld", limit);
    else
        snprintf(text, sizeof text, second ? "%lld 100000" : "%lld", limit * 100);
    if (!put_file(group, k->file[second], text))
        return false;
    if (k->what == CONFINE_MEMORY) /* no swap beside it, where there is any */
        put_file(group, second ? "memory.swap.max" : "memory.memsw.limit_in_bytes", second ? "0" : text);
    confine_note(c, k->what, CONFINE_BY_CGROUP);
    return true;
}

static bool is_wanted(const struct confine *c, const struct controller *k)
{
    return c->wanted[k->what] && !confine_held(c, k->what);
}

/* In version 2 a group hands controllers on or has processes, but the first of all. Some it hands on all the
 * same, and makes a group of it that nobody can enter. */
static bool has_processes(const char *group)
{
    struct buf text BUF_AUTO = BUF_INIT;
    return has_file(group, "cgroup.type") && read_file(group, "cgroup.procs", &text) && text.len > 0;
}

/* Below a group that has the controller; in version 2 it has to hand it on. */
static bool offers(const struct controller *k, bool second, const char *group)
{
    if (!second)
        return has_file(group, k->file[0]) || strstr(group, k->name);
    if (has_processes(group))
        return false;
    char *give MEM_AUTO = mem_printf("+%s", k->name);
    put_file(group, "cgroup.subtree_control", give);
    struct buf text BUF_AUTO = BUF_INIT;
    return read_file(group, "cgroup.subtree_control", &text) && strstr(buf_str(&text), k->name);
}

static bool make_below(struct confine *c, const char *group, bool second)
{
    struct confine_group *g = &c->group;
    bool any = false, offered[3];
    for (size_t i = 0; i < 3; i++)
        any |= offered[i] = is_wanted(c, &controllers[i]) && offers(&controllers[i], second, group);
    if (!any || g->n >= sizeof g->dirs / sizeof *g->dirs)
        return false;
    char *dir = mem_printf("%s/toolbox-%ld-%lld", group, (long)getpid(), now_us());
    any = false;
    if (mkdir(dir, 0755) == 0)
        for (size_t i = 0; i < 3; i++)
            any |= offered[i] && set_limit(c, &controllers[i], second, dir);
    if (any)
        g->dirs[g->n++] = dir;
    else {
        rmdir(dir);
        free(dir);
    }
    return any;
}

/* For cgroup_each: on with the group above as long as nothing could be made. Above one's own one of version 1
 * there is no need to. */
static bool make_in(void *arg, int root, const char *group)
{
    (void)root;
    bool second = has_file(group, "cgroup.controllers");
    return has_file(group, "cgroup.procs") ? !make_below(arg, group, second) && second : true;
}

void confine_group_make(struct confine *c)
{
    int root FD_AUTO = -1;
    if (!c->wanted[CONFINE_MEMORY] && !c->wanted[CONFINE_PROCESSES] && !c->wanted[CONFINE_CPUS])
        return;
    root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cgroup_each(root, make_in, c);
}

int confine_group_enter(const struct confine *c, struct err *err)
{
    for (size_t i = 0; i < c->group.n; i++)
        if (!put_file(c->group.dirs[i], "cgroup.procs", "0"))
            return err_sys(err, ERR_TOOL, errno, "cannot enter the control group %s", c->group.dirs[i]);
    return 0;
}

static unsigned long long count(const char *group, const char *file, const char *key)
{
    struct buf text BUF_AUTO = BUF_INIT;
    const char *at = read_file(group, file, &text) ? strstr(buf_str(&text), key) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

enum confine_what confine_limit_met(const struct confine_group *g, unsigned long long met[2])
{
    unsigned long long now[2] = {0};
    for (size_t i = 0; i < g->n; i++) {
        now[0] += count(g->dirs[i], "memory.events", "oom_kill ") +
                  count(g->dirs[i], "memory.oom_control", "oom_kill ");
        now[1] += count(g->dirs[i], "pids.events", "max ");
    }
    enum confine_what what = now[0] > met[0]   ? CONFINE_MEMORY
                             : now[1] > met[1] ? CONFINE_PROCESSES
                                               : CONFINE_PARTS;
    memcpy(met, now, sizeof now);
    return what;
}

void confine_group_remove(struct confine_group *g)
{
    for (; g->n > 0; g->n--) {
        for (int tries = 0; rmdir(g->dirs[g->n - 1]) < 0 && errno == EBUSY && tries < 100; tries++)
            usleep(10000); /* who ended just now is still counted */
        free(g->dirs[g->n - 1]);
    }
}

/* ---- limits of a process ---- */

static const struct {
    enum confine_what what;
    int limit;
} rlimits[] = {
    {CONFINE_MEMORY, RLIMIT_AS},       {CONFINE_PROCESSES, RLIMIT_NPROC},   {CONFINE_CPU_SECONDS, RLIMIT_CPU},
    {CONFINE_FILE_SIZE, RLIMIT_FSIZE}, {CONFINE_OPEN_FILES, RLIMIT_NOFILE},
};

/* The kernel doesn't count root's processes. */
void confine_rlimits(const struct confine *c)
{
    for (size_t i = 0; i < sizeof rlimits / sizeof *rlimits; i++) {
        enum confine_what what = rlimits[i].what;
        struct rlimit now;
        if (!c->wanted[what] || confine_held(c, what) || (what == CONFINE_PROCESSES && getuid() == 0) ||
            getrlimit(rlimits[i].limit, &now) < 0)
            continue;
        rlim_t limit = (rlim_t)c->limits[what];
        limit = limit < now.rlim_max ? limit : now.rlim_max;
        /* a second more, so that it is SIGXCPU that ends what doesn't catch it, and tells */
        now.rlim_max = what == CONFINE_CPU_SECONDS && limit < now.rlim_max ? limit + 1 : limit;
        now.rlim_cur = limit;
        if (setrlimit(rlimits[i].limit, &now) == 0)
            confine_note(c, what, CONFINE_BY_RLIMIT);
    }
}

/* ---- rights ---- */

#define CAP(name) (1ULL << CAP_##name)

/* What of root's stays: the owner of files and a user of the container. With no_new_privs what is taken never
 * comes back. */
static const unsigned long long kept = CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FOWNER) | CAP(FSETID) |
                                       CAP(SETGID) | CAP(SETUID) | CAP(NET_BIND_SERVICE);

/* With walls all but those; with limits alone but the right to raise them. */
int confine_drop_privileges(const struct confine *c, bool walls, struct err *err)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    unsigned long long keep = walls ? kept : ~CAP(SYS_RESOURCE);
    if (!walls)
        prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0);
    if (syscall(SYS_capget, &head, data) == 0) {
        for (int i = 0; i < 2; i++) {
            data[i].permitted &= (unsigned)(keep >> 32 * i);
            data[i].effective &= data[i].permitted;
            data[i].inheritable &= walls ? 0 : data[i].permitted;
        }
        if (syscall(SYS_capset, &head, data) < 0)
            return err_sys(err, ERR_TOOL, errno, "cannot confine: privileges cannot be dropped");
    }
    if (walls && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        confine_note(c, CONFINE_PRIVILEGES, CONFINE_BY_NO_NEW_PRIVS);
    return 0;
}
