/* Names, modes and owners. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dir_empty.h"
#include "dir_read.h"
#include "file_path.h"
#include "file_request.h"
#include "io.h"
#include "mem.h"
#include "passwd.h"
#include "user.h"

static int done(struct buf *answer)
{
    return buf_adds(answer, "null");
}

int file_make_dir(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    struct stat st;
    mode_t mode = r->how.mode >= 0 ? (mode_t)r->how.mode : 0777;
    if (r->how.parents && file_make_parents(path) < 0)
        return file_fail(answer, err, errno, path);
    if (mkdir(path, mode) == 0)
        return r->how.mode >= 0 && chmod(path, mode) < 0 ? file_fail(answer, err, errno, path) : done(answer);
    int failed = errno;
    bool there = failed == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    return r->how.parents && there ? done(answer) : file_fail(answer, err, failed, path);
}

/* What keeps a directory from being empty: the errno of removing the first thing in it. */
static int why_not_empty(const char *path)
{
    int fd = io_open_dir(AT_FDCWD, path);
    DIR *dir DIR_AUTO = dir_read(fd);
    const char *name = dir_next(dir);
    if (!name || unlinkat(dirfd(dir), name, 0) == 0)
        return ENOTEMPTY;
    return errno == EISDIR || errno == EPERM
               ? unlinkat(dirfd(dir), name, AT_REMOVEDIR) < 0 ? errno : ENOTEMPTY
               : errno;
}

/* The path without slashes behind it, by which a link would be followed. False: it ends in what only leads
 * to a directory. */
static bool name_to_remove(char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    return *last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0;
}

int file_remove(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    struct stat st;
    bool wants_dir = *path && path[strlen(path) - 1] == '/';
    if (*path && !name_to_remove(path))
        return file_refuse(answer, err, "busy", path,
                           "is not removed: name the directory in the one above it");
    if (lstat(path, &st) < 0)
        return file_fail(answer, err, errno, path);
    if (!S_ISDIR(st.st_mode))
        return wants_dir || unlink(path) < 0 ? file_fail(answer, err, wants_dir ? ENOTDIR : errno, path)
                                             : done(answer);
    if (r->how.recursive)
        dir_empty(io_open_dir(AT_FDCWD, path), 0);
    if (rmdir(path) == 0)
        return done(answer);
    int failed = errno == ENOTEMPTY || errno == EEXIST ? ENOTEMPTY : errno;
    if (failed == ENOTEMPTY && !r->how.recursive)
        return file_refuse(answer, err, "not_empty", path,
                           "Directory not empty: `recursive` (-r) removes it with all that is in it");
    return file_fail(answer, err, failed == ENOTEMPTY ? why_not_empty(path) : failed, path);
}

int file_move(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *from MEM_AUTO = file_path(&r->path);
    char *to MEM_AUTO = file_path(&r->to);
    struct stat st;
    if (lstat(from, &st) < 0)
        return file_fail(answer, err, errno, from);
    int rc = r->how.overwrite ? rename(from, to)
                              : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc < 0 && !r->how.overwrite &&
        (errno == ENOSYS || errno == EINVAL)) { /* an old kernel or file system */
        if (lstat(to, &st) == 0)
            errno = EEXIST;
        else
            rc = errno == ENOENT ? rename(from, to) : -1;
    }
    return rc < 0 ? file_fail(answer, err, errno, to) : done(answer);
}

int file_link(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    char *to MEM_AUTO = file_path(&r->to);
    int rc = r->how.hard ? link(to, path) : symlink(to, path);
    return rc < 0 ? file_fail(answer, err, errno, path) : done(answer);
}

int file_chmod(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    return chmod(path, (mode_t)r->how.mode) < 0 ? file_fail(answer, err, errno, path) : done(answer);
}

static bool find_group(const char *name, gid_t *gid)
{
    struct buf text BUF_AUTO = BUF_INIT;
    size_t n = strlen(name);
    int fd FD_AUTO = open("/etc/group", O_RDONLY | O_CLOEXEC);
    if (passwd_number(name, n, gid))
        return true;
    if (fd < 0 || io_read_all(fd, &text) < 0)
        return false;
    for (const char *at = buf_str(&text); *at; at += strcspn(at, "\n"), at += *at != '\0') {
        const char *number = strncmp(at, name, n) == 0 && at[n] == ':' ? strchr(at + n + 1, ':') : NULL;
        if (number && passwd_number(number + 1, strcspn(number + 1, ":"), gid))
            return true;
    }
    return false;
}

int file_owner(const struct file_how *how, uid_t *uid, gid_t *gid, struct buf *answer, struct err *err)
{
    struct user owner USER_AUTO = {0};
    *uid = (uid_t)-1;
    *gid = how->gid >= 0 ? (gid_t)how->gid : (gid_t)-1;
    if (!how->owner.s)
        return 0;
    char *name MEM_AUTO = mem_strdup(how->owner.s), *colon = strchr(name, ':');
    if (colon)
        *colon++ = '\0';
    if ((*name || !colon) && user_lookup(&owner, name, err) < 0)
        return file_refuse(answer, err, FILE_NO_USER, name, "there is no such user");
    if (*name)
        *uid = owner.uid;
    if (colon && *colon && !find_group(colon, gid))
        return file_refuse(answer, err, FILE_NO_USER, colon, "there is no such group");
    return 0;
}

int file_chown(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    uid_t uid;
    gid_t gid;
    if (file_owner(&r->how, &uid, &gid, answer, err) < 0)
        return -1;
    return fchownat(AT_FDCWD, path, uid, gid, r->how.follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0
               ? file_fail(answer, err, errno, path)
               : done(answer);
}

int file_touch(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    long long seconds = (long long)r->how.mtime;
    struct timespec now = {.tv_nsec = UTIME_NOW};
    struct timespec then = {seconds, (long)((r->how.mtime - (double)seconds) * 1e9)};
    struct timespec times[2] = {now, r->how.mtime >= 0 ? then : now};
    int fd FD_AUTO = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if ((fd < 0 && errno != EEXIST) || utimensat(AT_FDCWD, path, times, 0) < 0)
        return file_fail(answer, err, errno, path);
    return done(answer);
}
