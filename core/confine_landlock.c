/* Files, TCP and what reaches other processes, by Landlock. The numbers are of the kernel's interface, which
 * the headers at hand have but a part of. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine_internal.h"
#include "io.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ (3ULL << 2) /* files and directories */
#define FS_READ_FILE (1ULL << 2)
#define FS_CHANGE (0x17bULL << 4) /* remove and make all but devices; below */
#define FS_DEVICES (0x84ULL << 4) /* make character and block devices: never granted */
#define FS_REFER (1ULL << 13)
#define FS_TRUNCATE (1ULL << 14)
#define FS_IOCTL_DEV (1ULL << 15)
#define FS_RESOLVE_UNIX (1ULL << 16)
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV | FS_RESOLVE_UNIX)
#define NET_BIND 1ULL
#define NET_CONNECT 2ULL
#define SCOPE_ABSTRACT 1ULL
#define SCOPE_SIGNAL 2ULL

enum { RULE_PATH = 1, RULE_PORT = 2, DEPTH_MAX = 16 };

struct ruleset {
    uint64_t fs, net, scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

struct port_rule {
    uint64_t allowed, port;
};

const char *const confine_devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                       "/dev/urandom", "/dev/tty",  NULL};

int confine_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
    return abi > 0 ? (int)abi : 0;
}

static uint64_t known(int abi, uint64_t rights)
{
    uint64_t all = abi >= 9   ? FS_RESOLVE_UNIX * 2 - 1
                   : abi >= 5 ? FS_IOCTL_DEV * 2 - 1
                   : abi >= 3 ? FS_TRUNCATE * 2 - 1
                   : abi == 2 ? FS_REFER * 2 - 1
                              : FS_REFER - 1;
    return rights & all;
}

#define FS_WRITES (FS_WRITE_FILE | FS_CHANGE | FS_REFER | FS_TRUNCATE | FS_IOCTL_DEV | FS_RESOLVE_UNIX)

/* One walk of the paths that are granted: a tree in which something is hidden is granted without that, entry
 * by entry. */
struct grant {
    const struct confine *confine;
    int ruleset;
    uint64_t handled;
};

static int add(const struct grant *g, int fd, uint64_t rights)
{
    struct stat st;
    bool directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    struct path_rule rule = {rights & g->handled & (directory ? ~0ULL : FS_OF_FILES), fd};
    return rule.allowed == 0 ? 0 : (int)syscall(SYS_landlock_add_rule, g->ruleset, RULE_PATH, &rule, 0);
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    n -= n == 1; /* "/" */
    return strncmp(path, top, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_same(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* 0: nothing hidden is there; 1: below it; 2: it is. */
static int hides(const struct confine *c, const char *real, int fd)
{
    int found = 0;
    for (char **h = c->paths[CONFINE_HIDE]; h && *h && found < 2; h++) {
        char there[PATH_MAX];
        if (!realpath(*h, there))
            continue;
        if (is_below(real, there) || is_same(fd, there))
            found = 2;
        else if (is_below(there, real))
            found = 1;
    }
    return found;
}

static int grant_tree(const struct grant *g, const char *path, uint64_t rights, int depth);

static int grant_entries(const struct grant *g, const char *path, uint64_t rights, int depth)
{
    DIR *dir = opendir(path);
    int result = 0;
    for (struct dirent *e; dir && result == 0 && (e = readdir(dir));) {
        char entry[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || e->d_type == DT_LNK)
            continue;
        if (snprintf(entry, sizeof entry, "%s/%s", strcmp(path, "/") == 0 ? "" : path, e->d_name) <
            (int)sizeof entry)
            result = grant_tree(g, entry, rights, depth + 1);
    }
    if (dir)
        closedir(dir);
    return result;
}

static int grant_tree(const struct grant *g, const char *path, uint64_t rights, int depth)
{
    int fd FD_AUTO = open(path, O_PATH | O_CLOEXEC);
    char real[PATH_MAX];
    if (fd < 0 || !realpath(path, real))
        return 0; /* not there, or not to be reached anyway */
    int hidden = g->confine->report->by[CONFINE_HIDE] ? 0 : hides(g->confine, real, fd);
    if (hidden == 0)
        return add(g, fd, rights);
    return hidden == 1 && depth < DEPTH_MAX ? grant_entries(g, real, rights, depth) : 0;
}

static int grant(const struct grant *g, enum confine_what what, uint64_t rights)
{
    char *all[] = {(char *)"/", NULL};
    bool limited = g->confine->wanted[what];
    int result = 0;
    for (char **p = limited ? g->confine->paths[what] : all; p && *p && result == 0; p++)
        result = grant_tree(g, *p, rights, 0);
    return result;
}

/* What may be run or written may be read as well, where it is named. */
static int grant_files(const struct grant *g)
{
    const struct confine *c = g->confine;
    uint64_t run = FS_EXECUTE | (c->wanted[CONFINE_EXECUTE] ? FS_READ : 0);
    uint64_t write = FS_WRITES | (c->wanted[CONFINE_WRITE] ? FS_READ : 0);
    if (grant(g, CONFINE_READ, FS_READ) < 0 || grant(g, CONFINE_EXECUTE, run) < 0 ||
        grant(g, CONFINE_WRITE, write) < 0)
        return -1;
    for (const char *const *d = confine_devices; *d; d++)
        if (grant_tree(g, *d, FS_READ | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV, DEPTH_MAX) < 0)
            return -1;
    for (size_t i = 0; i < sizeof c->terminals / sizeof *c->terminals; i++)
        if (c->terminals[i] &&
            grant_tree(g, c->terminals[i], FS_READ | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV, DEPTH_MAX) <
                0)
            return -1;
    return 0;
}

static int grant_ports(const struct grant *g)
{
    const struct confine *c = g->confine;
    int result = 0;
    for (size_t i = 0; i < c->n_ports && result == 0; i++) {
        struct port_rule rule = {c->ports[i].bind ? NET_BIND : NET_CONNECT, c->ports[i].number};
        result = (int)syscall(SYS_landlock_add_rule, g->ruleset, RULE_PORT, &rule, 0);
    }
    return result;
}

static struct ruleset handled(const struct confine *c, int abi)
{
    struct ruleset r = {0};
    bool hide = c->wanted[CONFINE_HIDE] && !confine_held(c, CONFINE_HIDE);
    if (c->wanted[CONFINE_READ] || hide)
        r.fs |= FS_READ;
    if (c->wanted[CONFINE_EXECUTE] || hide)
        r.fs |= FS_EXECUTE;
    if (c->wanted[CONFINE_WRITE] || hide)
        r.fs |= FS_WRITES | FS_DEVICES;
    if (r.fs) /* otherwise nothing could be moved to another directory */
        r.fs |= FS_REFER;
    r.fs = known(abi, r.fs);
    if (abi >= 4 && c->wanted[CONFINE_NETWORK] && (c->network & CONFINE_NET_PORTS))
        r.net = NET_BIND | NET_CONNECT;
    if (abi >= 6)
        r.scoped = SCOPE_SIGNAL | (c->wanted[CONFINE_NETWORK] ? SCOPE_ABSTRACT : 0);
    return r;
}

static void note(const struct confine *c, const struct ruleset *r)
{
    for (int i = CONFINE_READ; i <= CONFINE_EXECUTE && r->fs; i++)
        if (c->wanted[i])
            confine_note(c, (enum confine_what)i, CONFINE_BY_LANDLOCK);
    if (c->wanted[CONFINE_HIDE] && !confine_held(c, CONFINE_HIDE) && r->fs)
        confine_note(c, CONFINE_HIDE, CONFINE_BY_LANDLOCK);
    if (r->net)
        confine_note(c, CONFINE_NETWORK, CONFINE_BY_LANDLOCK);
    if (r->scoped & SCOPE_SIGNAL)
        confine_note(c, CONFINE_SIGNALS, CONFINE_BY_LANDLOCK);
}

int confine_landlock(const struct confine *c, struct err *err)
{
    int abi = c->report->abi;
    struct ruleset r = handled(c, abi);
    if (abi == 0 || (!r.fs && !r.net && !r.scoped))
        return 0;
    size_t size = abi >= 6 ? sizeof r : abi >= 4 ? offsetof(struct ruleset, scoped) : sizeof r.fs;
    int fd FD_AUTO = (int)syscall(SYS_landlock_create_ruleset, &r, size, 0);
    struct grant g = {c, fd, r.fs};
    if (fd < 0 || (r.fs && grant_files(&g) < 0) || (r.net && grant_ports(&g) < 0) ||
        syscall(SYS_landlock_restrict_self, fd, 0) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot confine with Landlock");
    note(c, &r);
    return 0;
}
