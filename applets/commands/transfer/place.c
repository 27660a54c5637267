#include "commands/transfer/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io.h"
#include "random.h"

#define FD_PATH_SIZE 40

/* A file without a name is gone with whoever writes it. */
static int open_nameless(int dir, mode_t mode)
{
    static int can = -1;
    if (can < 0)
        can = access("/proc/self/fd", X_OK) == 0;
    return can ? openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode) : -1;
}

/* What lies where nothing can be made, or is mounted there by itself. */
static int open_in_place(int dir, const char *name)
{
    struct stat st;
    int failed = errno;
    int fd = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
                 ? openat(dir, name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    errno = failed;
    return fd;
}

int placing_open(struct placing *p, int dir, const char *name, mode_t mode)
{
    *p = (struct placing){.dir = dir, .name = name, .fd = open_nameless(dir, mode), .beside = BESIDE_INIT};
    p->nameless = p->fd >= 0;
    if (p->nameless)
        return 0;
    int rc = beside_open(&p->beside, dir, name, mode);
    p->fd = rc == 0 ? p->beside.fd : rc > 0 ? open_in_place(dir, name) : -1;
    p->in_place = rc > 0;
    return p->fd < 0 ? -1 : 0;
}

/* A name that nobody has. */
static void temporary(char name[64])
{
    unsigned long long id = 0;
    random_bytes(&id, sizeof id);
    snprintf(name, 64, ".toolbox-edit-%016llx-cp", id);
}

/* The name is to lead to what `from` there is. */
static int rename_over(int dir, const char *from, const char *name)
{
    int rc = renameat(dir, from, dir, name), failed = errno;
    unlinkat(dir, from, 0); /* it is still there where both were names of one file */
    errno = failed;
    return rc;
}

static int link_nameless(const struct placing *p)
{
    char path[FD_PATH_SIZE], name[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", p->fd);
    if (linkat(AT_FDCWD, path, p->dir, p->name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno != EEXIST)
        return -1;
    temporary(name);
    return linkat(AT_FDCWD, path, p->dir, name, AT_SYMLINK_FOLLOW) < 0 ? -1
                                                                       : rename_over(p->dir, name, p->name);
}

/* A name that something is mounted on keeps its file. */
static int write_over(const struct placing *p)
{
    char path[FD_PATH_SIZE];
    snprintf(path, sizeof path, "/proc/self/fd/%d", p->fd);
    int to FD_AUTO = open_in_place(p->dir, p->name), from FD_AUTO = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    while (to >= 0 && from >= 0 && (n = sendfile(to, from, NULL, 1 << 30)) > 0)
        continue;
    return n == 0 ? 0 : -1;
}

int placing_done(struct placing *p)
{
    if (p->in_place)
        return 0;
    int rc = p->nameless                           ? link_nameless(p)
             : beside_finish(&p->beside, NULL) < 0 ? -1
                                                   : beside_rename(&p->beside, p->dir, p->name);
    return rc < 0 && errno == EBUSY ? write_over(p) : rc;
}

void placing_release(struct placing *p)
{
    if (p->nameless || p->in_place)
        io_close(&p->fd);
    p->fd = -1;
    beside_release(&p->beside);
}

/* Those that mean the same elsewhere. */
static bool is_portable(const char *xattr)
{
    return strncmp(xattr, "user.", 5) == 0 || strcmp(xattr, "security.capability") == 0 ||
           strncmp(xattr, "system.posix_acl_", 17) == 0;
}

int place_facts(int fd, const struct entry *e, bool archive, bool sets_mode)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->mtime};
    const void *value;
    const char *name;
    size_t at = 0, n;
    if (archive && fchown(fd, e->uid, e->gid) < 0 && (errno != EPERM || geteuid() == 0))
        return -1;
    while (archive && (name = pax_entry_xattr(e, &at, &value, &n)) != NULL)
        if (is_portable(name) && fsetxattr(fd, name, value, n, 0) < 0 && errno != ENOTSUP && errno != EPERM)
            return -1;
    /* Whose program it becomes only the owner may say. */
    return (sets_mode && fchmod(fd, e->mode & (archive ? 07777 : 0777)) < 0) ? -1 : futimens(fd, times);
}

static int make(const struct entry *e, int dir, const char *name, int target_dir, const char *target)
{
    if (e->type == ENTRY_LINK)
        return symlinkat(buf_str(&e->target), dir, name);
    if (e->type == ENTRY_TWIN)
        return linkat(target_dir, target, dir, name, 0);
    return mkfifoat(dir, name, e->mode & 0777);
}

static int facts_of_name(const struct entry *e, int dir, const char *name, bool archive)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, e->mtime};
    if (e->type == ENTRY_TWIN)
        return 0;
    if (archive && fchownat(dir, name, e->uid, e->gid, AT_SYMLINK_NOFOLLOW) < 0 &&
        (errno != EPERM || geteuid() == 0))
        return -1;
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int place_special(const struct entry *e, bool archive, int dir, const char *name, int target_dir,
                  const char *target)
{
    char aside[64];
    if (make(e, dir, name, target_dir, target) == 0)
        return facts_of_name(e, dir, name, archive);
    if (errno != EEXIST)
        return -1;
    temporary(aside);
    if (make(e, dir, aside, target_dir, target) < 0)
        return -1;
    int rc = facts_of_name(e, dir, aside, archive);
    return rename_over(dir, aside, name) < 0 ? -1 : rc;
}
