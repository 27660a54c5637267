#include "edit_beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "edit_file.h"
#include "io.h"
#include "mem.h"
#include "text_sum.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

enum { XATTR_NAMES_MAX = 65536, NAMES_TRIED = 8 };

static int make(struct beside *b, mode_t mode)
{
    b->fd = openat(b->dir, b->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (b->fd < 0)
        return -1;
    flock(b->fd, LOCK_EX | LOCK_NB); /* where locks can't be had, what was left behind stays */
    return 0;
}

/* Removes what a process left that died; false when a living one has it. */
static bool clear(const struct beside *b)
{
    int fd FD_AUTO = openat(b->dir, b->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(b->dir, b->name, 0) == 0;
}

int beside_open(struct beside *b, int dir, const char *for_name, mode_t mode)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, for_name, strlen(for_name));
    b->dir = dir;
    unsigned long long id = text_sum_end(&sum);
    snprintf(b->name, sizeof b->name, ".toolbox-edit-%016llx", id);
    int rc = make(b, mode);
    for (int i = 0; rc < 0 && errno == EEXIST && i < NAMES_TRIED; i++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (i > 0 || !clear(b))
            snprintf(b->name, sizeof b->name, ".toolbox-edit-%016llx-%lx%lx", id, (long)getpid(),
                     now.tv_nsec);
        rc = make(b, mode);
    }
    if (rc == 0)
        return 0;
    b->name[0] = '\0';
    return errno == EACCES || errno == EPERM || errno == EROFS ? 1 : -1;
}

/* The names of a file's extended attributes, each with a NUL behind. Length, -1 when they can't be had. */
static ssize_t xattr_names(int fd, char **names)
{
    ssize_t n = flistxattr(fd, NULL, 0);
    *names = NULL;
    if (n < 0)
        return errno == ENOTSUP || errno == ENOSYS ? 0 : -1;
    if (n == 0)
        return 0;
    *names = mem_alloc(XATTR_NAMES_MAX);
    return flistxattr(fd, *names, XATTR_NAMES_MAX);
}

static bool same_xattr(int from, int to, const char *name, char **value, ssize_t *n)
{
    *value = NULL;
    *n = fgetxattr(from, name, NULL, 0);
    if (*n < 0)
        return false;
    *value = mem_alloc((size_t)*n);
    *n = fgetxattr(from, name, *value, (size_t)*n);
    char *other MEM_AUTO = mem_alloc((size_t)(*n > 0 ? *n : 0));
    return *n >= 0 && fgetxattr(to, name, other, (size_t)*n) == *n && memcmp(*value, other, (size_t)*n) == 0;
}

static bool copy_xattr(int from, int to, const char *name)
{
    ssize_t n;
    char *value MEM_AUTO = NULL;
    if (same_xattr(from, to, name, &value, &n))
        return true;
    return n >= 0 && fsetxattr(to, name, value, (size_t)n, 0) == 0;
}

static bool copy_xattrs(int from, int to)
{
    char *wanted MEM_AUTO = NULL;
    char *given MEM_AUTO = NULL;
    ssize_t n_wanted = xattr_names(from, &wanted);
    ssize_t n_given = xattr_names(to, &given);
    if (n_wanted < 0 || n_given < 0)
        return false;
    for (ssize_t i = 0; i < n_wanted; i += (ssize_t)strlen(wanted + i) + 1)
        if (!copy_xattr(from, to, wanted + i))
            return false;
    /* What a new file gets from its directory (a default ACL) and the old one doesn't have. */
    for (ssize_t i = 0; i < n_given; i += (ssize_t)strlen(given + i) + 1)
        if (fgetxattr(from, given + i, NULL, 0) < 0 && fremovexattr(to, given + i) < 0)
            return false;
    return true;
}

int beside_take_after(struct beside *b, int model, const struct stat *st)
{
    if (fstat(b->fd, &b->st) < 0)
        return 1;
    if ((b->st.st_uid != st->st_uid || b->st.st_gid != st->st_gid) &&
        fchown(b->fd, st->st_uid, st->st_gid) < 0)
        return 1;
    return copy_xattrs(model, b->fd) ? 0 : 1;
}

int beside_finish(struct beside *b, const struct stat *st)
{
    if (st && fchmod(b->fd, st->st_mode & 07777) < 0)
        return -1;
    /* Network file systems say only on closing that there was no room; the descriptor is still needed for its
     * lock. */
    int twin = dup(b->fd);
    if (twin >= 0 && close(twin) < 0)
        return -1;
    return fstat(b->fd, &b->st);
}

/* Nobody has put something else in the prepared file's place. */
static bool is_ours(const struct beside *b)
{
    struct stat st;
    if (fstatat(b->dir, b->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == b->st.st_dev &&
        st.st_ino == b->st.st_ino)
        return true;
    errno = ESTALE;
    return false;
}

static int rename_with(const struct beside *b, int dir, const char *name, unsigned flags)
{
    return (int)syscall(SYS_renameat2, b->dir, b->name, dir, name, flags);
}

int beside_exchange(struct beside *b, int dir, const char *name, const struct stat *old)
{
    struct stat st;
    if (!is_ours(b) || rename_with(b, dir, name, RENAME_EXCHANGE) < 0)
        return -1;
    /* Looked at now that nobody can put another one there. */
    bool same = fstatat(b->dir, b->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && edit_same_content(&st, old);
    if (!same && rename_with(b, dir, name, RENAME_EXCHANGE) == 0)
        return 1;
    if (same)
        unlinkat(b->dir, b->name, 0);
    b->name[0] = '\0'; /* somebody else's, which can't be put back, stays where it is */
    return same ? 0 : 1;
}

int beside_rename(struct beside *b, int dir, const char *name)
{
    if (!is_ours(b) || renameat(b->dir, b->name, dir, name) < 0)
        return -1;
    b->name[0] = '\0';
    return 0;
}

int beside_link(struct beside *b, int dir, const char *name)
{
    if (!is_ours(b))
        return -1;
    if (rename_with(b, dir, name, RENAME_NOREPLACE) == 0) {
        b->name[0] = '\0';
        return 0;
    }
    /* Older kernels, and file systems that can't do it. The name that is left is removed by the release. */
    if (errno != ENOSYS && errno != EINVAL && errno != EPERM)
        return -1;
    if (linkat(b->dir, b->name, dir, name, 0) == 0)
        return 0;
    if (errno == EEXIST)
        return -1;
    /* No links either: the name is taken first. */
    int fd FD_AUTO = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (beside_rename(b, dir, name) == 0)
        return 0;
    int failed = errno;
    unlinkat(dir, name, 0);
    errno = failed;
    return -1;
}

void beside_release(struct beside *b)
{
    if (b->name[0] != '\0')
        unlinkat(b->dir, b->name, 0);
    io_close(&b->fd);
}
