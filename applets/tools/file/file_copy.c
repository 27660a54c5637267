/* Copies, with modes and times; what could not be copied whole is removed again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dir_empty.h"
#include "dir_read.h"
#include "file_path.h"
#include "file_request.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "tools/text_editor/edit_beside.h"

#define DEPTH_MAX 100 /* each level holds two descriptors */
#define AT_ONCE (1u << 30)

struct copying {
    dev_t device; /* of the copy, which may lie in what is copied */
    ino_t inode;
    long long files, bytes;
};

/* How many of at most n bytes; -1 with errno. */
static long long copy_part(int from, int to, long long n)
{
    long long done = 0;
    ssize_t got = 0;
    while (done < n &&
           (got = sendfile(to, from, NULL, n - done < AT_ONCE ? (size_t)(n - done) : AT_ONCE)) > 0)
        done += got;
    if (got >= 0 || (errno != EINVAL && errno != ENOSYS))
        return got < 0 ? -1 : done;
    char part[65536]; /* a file that is made up while it is read */
    while ((got = read(from, part, sizeof part)) > 0 && io_write_all(to, part, (size_t)got) == 0)
        done += got;
    return got != 0 ? -1 : done;
}

/* Holes stay what they are, where the file system tells of them. */
static int copy_bytes(struct copying *c, int from, int to, const struct stat *st)
{
    off_t size = st->st_size, at = 0, end;
    bool holes = (long long)st->st_blocks * 512 < (long long)size;
    while (holes && at < size && (at = lseek(from, at, SEEK_DATA)) >= 0) {
        end = lseek(from, at, SEEK_HOLE);
        if (end < 0 || lseek(from, at, SEEK_SET) < 0 || lseek(to, at, SEEK_SET) < 0 ||
            copy_part(from, to, (long long)(end - at)) < 0)
            return -1;
        at = end;
    }
    bool told = holes && (at >= 0 || errno == ENXIO);
    long long n = !told ? copy_part(from, to, LLONG_MAX) : ftruncate(to, size) < 0 ? -1 : (long long)size;
    c->bytes += n;
    c->files += n >= 0;
    return n < 0 ? -1 : 0;
}

static int finish(int fd, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    return fchmod(fd, st->st_mode & 07777) < 0 ? -1 : futimens(fd, times);
}

static int open_regular(int at, const char *name, struct stat *st)
{
    int fd = openat(at, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    io_close(&fd);
    errno = errno ? errno : ESTALE;
    return -1;
}

static int copy_file(struct copying *c, int from_at, const char *name, int to_at, const char *to)
{
    struct stat st;
    int from FD_AUTO = open_regular(from_at, name, &st);
    int fd FD_AUTO =
        from < 0 ? -1 : openat(to_at, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 || copy_bytes(c, from, fd, &st) < 0 ? -1 : finish(fd, &st);
}

static int copy_link(int from_at, const char *name, int to_at, const char *to)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from_at, name, target, sizeof target - 1);
    if (n < 0)
        return -1;
    target[n] = '\0';
    return symlinkat(target, to_at, to);
}

static int copy_entry(struct copying *c, int from_at, const char *name, int to_at, const char *to, int depth);

/* Both are this function's. */
static int copy_names(struct copying *c, int from, int to, int depth)
{
    int at FD_AUTO = to;
    DIR *dir DIR_AUTO = dir_read(from);
    const char *name;
    int rc = dir && at >= 0 ? 0 : -1;
    while (rc == 0 && (name = dir_next(dir)) != NULL)
        rc = copy_entry(c, dirfd(dir), name, at, name, depth);
    return rc;
}

static int copy_dir(struct copying *c, int from_at, const char *name, int to_at, const char *to, int depth)
{
    struct stat st, made;
    int from = io_open_dir(from_at, name);
    if (from < 0 || fstat(from, &st) < 0 || mkdirat(to_at, to, 0700) < 0) {
        io_close(&from);
        return -1;
    }
    int there FD_AUTO = io_open_dir(to_at, to);
    if (there >= 0 && c->inode == 0 && fstat(there, &made) == 0) {
        c->device = made.st_dev;
        c->inode = made.st_ino;
    }
    int rc = copy_names(c, from, there < 0 ? -1 : fcntl(there, F_DUPFD_CLOEXEC, 0), depth + 1);
    return rc < 0 ? -1 : finish(there, &st);
}

static int copy_entry(struct copying *c, int from_at, const char *name, int to_at, const char *to, int depth)
{
    struct stat st;
    errno = 0;
    if (fstatat(from_at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT && depth > 0 ? 0 : -1; /* gone meanwhile */
    if (st.st_dev == c->device && st.st_ino == c->inode)
        return 0;
    errno = ELOOP;
    switch (st.st_mode & S_IFMT) {
    case S_IFDIR:
        return depth < DEPTH_MAX ? copy_dir(c, from_at, name, to_at, to, depth) : -1;
    case S_IFREG:
        return copy_file(c, from_at, name, to_at, to);
    case S_IFLNK:
        return copy_link(from_at, name, to_at, to);
    case S_IFIFO:
        return mkfifoat(to_at, to, st.st_mode & 07777);
    default:
        errno = EOPNOTSUPP; /* sockets and devices are not what they would be elsewhere */
        return -1;
    }
}

/* A directory's path and the name in it. */
static int open_above(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char *dir MEM_AUTO = slash ? mem_dup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
    *name = slash ? slash + 1 : path;
    return open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Over a file that is there, at once. */
static int copy_over(struct copying *c, const char *from, int to_at, const char *to)
{
    struct beside b BESIDE_AUTO = BESIDE_INIT;
    struct stat st, old;
    int fd FD_AUTO = open_regular(AT_FDCWD, from, &st);
    if (fd < 0)
        return -1;
    if (fstatat(to_at, to, &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    int rc = beside_open(&b, to_at, to, 0600);
    if (rc != 0 || copy_bytes(c, fd, b.fd, &st) < 0 || finish(b.fd, &st) < 0 || beside_finish(&b, NULL) < 0)
        return -1;
    return beside_rename(&b, to_at, to);
}

static void undo(int at, const char *name)
{
    int failed = errno;
    if (unlinkat(at, name, 0) < 0) {
        dir_empty(io_open_dir(at, name), 0);
        unlinkat(at, name, AT_REMOVEDIR);
    }
    errno = failed;
}

int file_copy(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *from MEM_AUTO = file_path(&r->path);
    char *to MEM_AUTO = file_path(&r->to);
    char *real MEM_AUTO = realpath(from, NULL);
    struct copying c = {0};
    struct stat st, there;
    const char *name;
    if (!real || lstat(real, &st) < 0)
        return file_fail(answer, err, errno, from);
    if (S_ISDIR(st.st_mode) && !r->how.recursive)
        return file_fail(answer, err, EISDIR, from);
    int at FD_AUTO = open_above(to, &name);
    if (at < 0)
        return file_fail(answer, err, errno, to);
    bool is_there = fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && (!r->how.overwrite || S_ISDIR(st.st_mode)))
        return file_fail(answer, err, EEXIST, to);
    int rc = is_there ? copy_over(&c, real, at, name) : copy_entry(&c, AT_FDCWD, real, at, name, 0);
    if (rc < 0) {
        if (!is_there && errno != EEXIST)
            undo(at, name);
        return file_fail(answer, err, errno, to);
    }
    buf_addc(answer, '{');
    json_member_int(answer, "files", c.files);
    json_member_int(answer, "bytes", c.bytes);
    return buf_addc(answer, '}');
}
