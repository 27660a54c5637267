#include "confine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "confine_internal.h"

/* What it takes where it isn't had. */
static const char *const takes[CONFINE_PARTS] = {
    [CONFINE_READ] = "Landlock, of Linux 5.13, switched on",
    [CONFINE_WRITE] = "Landlock, of Linux 5.13, switched on, or namespaces",
    [CONFINE_EXECUTE] = "Landlock, of Linux 5.13, switched on",
    [CONFINE_HIDE] = "namespaces, or Landlock, of Linux 5.13, switched on",
    [CONFINE_TMP] = "namespaces: root with CAP_SYS_ADMIN, or user namespaces",
    [CONFINE_NETWORK] = "network namespaces for 'loopback', Landlock of Linux 6.7 for ports, and seccomp",
    [CONFINE_SYSTEM_CALLS] = "seccomp filters",
    [CONFINE_PRIVILEGES] = "no_new_privs",
    [CONFINE_MEMORY] = "a control group or RLIMIT_AS",
    [CONFINE_PROCESSES] = "a control group, or another user than root",
    [CONFINE_CPUS] = "a control group that can be made",
};

int confine_prepare(struct confine *c, struct err *err)
{
    void *shared = mmap(NULL, sizeof *c->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return err_sys(err, ERR_TOOL, errno, "cannot confine");
    c->report = shared;
    c->begin = confine_begin;
    c->enter = confine_enter;
    c->report->abi = confine_landlock_abi();
    confine_group_make(c);
    return 0;
}

static bool wants_files(const struct confine *c)
{
    return c->wanted[CONFINE_READ] || c->wanted[CONFINE_WRITE] || c->wanted[CONFINE_EXECUTE] ||
           c->wanted[CONFINE_HIDE] || c->wanted[CONFINE_TMP];
}

/* Limits alone leave everything else as it is. */
static bool wants_walls(const struct confine *c)
{
    return wants_files(c) || c->wanted[CONFINE_NETWORK] || c->wanted[CONFINE_SYSTEM_CALLS];
}

int confine_begin(const struct confine *c, struct err *err)
{
    if (confine_group_enter(c, err) < 0)
        return -1;
    return wants_walls(c) && geteuid() == 0 ? confine_namespaces(c, err) : 0;
}

static int check(const struct confine *c, struct err *err)
{
    for (int i = 0; i < CONFINE_PARTS; i++)
        if (c->wanted[i] && takes[i] && !confine_held(c, (enum confine_what)i) && !c->best_effort)
            return err_set(err, ERR_TOOL,
                           "cannot confine %s here: it takes %s; best_effort goes on without it",
                           confine_name((enum confine_what)i), takes[i]);
    return 0;
}

int confine_enter(const struct confine *c, struct err *err)
{
    c->report->uid = geteuid();
    c->report->gid = getegid();
    if (!getcwd(c->report->cwd, sizeof c->report->cwd))
        *c->report->cwd = '\0';
    confine_rlimits(c);
    bool walls = wants_walls(c);
    if (walls && geteuid() != 0 && confine_namespaces(c, err) < 0)
        return -1;
    if (walls)
        confine_reenter();
    if (confine_drop_privileges(c, walls, err) < 0)
        return -1;
    if (walls && (confine_landlock(c, err) < 0 || confine_seccomp(c, err) < 0))
        return -1;
    return check(c, err);
}

static void put_how(unsigned by, struct buf *out)
{
    static const char *const hows[] = {"landlock", "seccomp", "mounts", "netns",
                                       "cgroup",   "rlimit",  "timer",  "no_new_privs"};
    const char *between = "";
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        if (by & 1U << i) {
            buf_addf(out, "%s%s", between, hows[i]);
            between = "+";
        }
    if (!*between)
        buf_adds(out, "none");
}

void confine_put_enforced(const struct confine *c, struct buf *out)
{
    const char *between = "{";
    for (int i = 0; i < CONFINE_PARTS; i++)
        if (c->wanted[i]) {
            buf_addf(out, "%s\"%s\":\"", between, confine_name((enum confine_what)i));
            put_how(c->report->by[i], out);
            buf_addc(out, '"');
            between = ",";
        }
    buf_adds(out, *between == '{' ? "{}" : "}");
}

void confine_release(struct confine *c)
{
    if (c->report)
        munmap(c->report, sizeof *c->report);
    c->report = NULL;
    confine_group_remove(&c->group);
}
