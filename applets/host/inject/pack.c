#include "host/inject/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "sha256.h"

#define DEPTH_MAX 100
#define HEAD_SIZE (sizeof "folder \n" - 1 + SHA256_HEX_SIZE - 1)

struct reading {
    int out; /* a file without a name */
    struct sha256 *sum;
    struct err *err;
};

static int put(struct reading *r, const void *data, size_t n)
{
    sha256_add(r->sum, data, n);
    return io_write_all(r->out, data, n) == 0
               ? 0
               : err_sys(r->err, ERR_TOOL, errno, "cannot write a temporary file for the folder");
}

static int put_head(struct reading *r, char kind, mode_t mode, const char *name, unsigned long long size)
{
    struct buf line BUF_AUTO = BUF_INIT;
    buf_addf(&line, "%c %u %zu %llu\n%s", kind, (unsigned)mode & 0777, strlen(name), size, name);
    return put(r, line.data, line.len);
}

static int cannot_read(struct reading *r, const char *name)
{
    return err_sys(r->err, ERR_TOOL, errno, "cannot read %s", name);
}

static int put_file(struct reading *r, int dir, const char *entry, const char *name, const struct stat *st)
{
    char piece[1 << 16];
    int fd FD_AUTO = openat(dir, entry, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return cannot_read(r, name);
    if (put_head(r, 'f', st->st_mode, name, (unsigned long long)st->st_size) < 0)
        return -1;
    for (off_t left = st->st_size; left > 0;) {
        ssize_t n = read(fd, piece, left < (off_t)sizeof piece ? (size_t)left : sizeof piece);
        if (n == 0)
            return err_set(r->err, ERR_TOOL, "%s became shorter while it was read", name);
        if (n < 0)
            return cannot_read(r, name);
        if (put(r, piece, (size_t)n) < 0)
            return -1;
        left -= n;
    }
    return 0;
}

static int put_link(struct reading *r, int dir, const char *entry, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, entry, target, sizeof target);
    if (n < 0 || n == (ssize_t)sizeof target)
        return cannot_read(r, name);
    return put_head(r, 'l', 0, name, (unsigned long long)n) < 0 ? -1 : put(r, target, (size_t)n);
}

static int put_folder(struct reading *r, int fd, const char *prefix, int levels);

static int put_entry(struct reading *r, int dir, const char *entry, const char *prefix, int levels)
{
    struct stat st;
    char *name MEM_AUTO = *prefix ? mem_printf("%s/%s", prefix, entry) : mem_strdup(entry);
    if (fstatat(dir, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return cannot_read(r, name);
    if (S_ISREG(st.st_mode))
        return put_file(r, dir, entry, name, &st);
    if (S_ISLNK(st.st_mode))
        return put_link(r, dir, entry, name);
    if (!S_ISDIR(st.st_mode))
        return err_set(r->err, ERR_TOOL, "%s is neither a file nor a folder nor a link", name);
    if (levels == 0)
        return err_set(r->err, ERR_TOOL, "%s is too deep in the folder", name);
    int inner = io_open_dir(dir, entry);
    if (inner < 0)
        return cannot_read(r, name);
    if (put_head(r, 'd', st.st_mode, name, 0) < 0) {
        close(inner);
        return -1;
    }
    return put_folder(r, inner, name, levels - 1);
}

/* Takes fd. */
static int put_folder(struct reading *r, int fd, const char *prefix, int levels)
{
    int result = 0;
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return cannot_read(r, *prefix ? prefix : "the folder");
    }
    for (struct dirent *e; result == 0 && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            result = put_entry(r, fd, e->d_name, prefix, levels);
    closedir(d);
    return result;
}

static int temporary_file(void)
{
    const char *dir = getenv("TMPDIR");
    char *path MEM_AUTO = mem_printf("%s/toolbox-XXXXXX", dir && *dir == '/' ? dir : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* What is in `out` behind the head, as a stream with its head. */
static int finish(struct packed_folder *c, struct reading *r)
{
    char hex[SHA256_HEX_SIZE];
    struct buf head BUF_AUTO = BUF_INIT;
    struct stat st;
    sha256_end(r->sum, hex);
    buf_addf(&head, "folder %s\n", hex);
    if (pwrite(r->out, head.data, head.len, 0) != (ssize_t)HEAD_SIZE || fstat(r->out, &st) < 0)
        return err_sys(r->err, ERR_TOOL, errno, "cannot write a temporary file for the folder");
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, r->out, 0);
    if (map == MAP_FAILED)
        return err_sys(r->err, ERR_TOOL, errno, "cannot read the folder again");
    c->stream = (struct span){map, (size_t)st.st_size};
    return 0;
}

int pack_folder(struct packed_folder *c, const char *dir, struct err *err)
{
    int out FD_AUTO = temporary_file();
    struct reading r = {.out = out, .err = err};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *c = (struct packed_folder){.dir = dir};
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errno, "%s", dir);
    if (out < 0 || lseek(out, (off_t)HEAD_SIZE, SEEK_SET) < 0) {
        close(fd);
        return err_sys(err, ERR_TOOL, errno, "cannot make a temporary file for the folder");
    }
    r.sum = sha256_begin();
    int result = put_folder(&r, fd, "", DEPTH_MAX);
    if (result == 0)
        result = put(&r, "e 0 0 0\n", 8);
    if (result == 0)
        return finish(c, &r);
    char hex[SHA256_HEX_SIZE];
    sha256_end(r.sum, hex);
    return err_wrap(err, "%s", dir);
}

void packed_folder_release(struct packed_folder *c)
{
    if (c->stream.s)
        munmap((void *)(size_t)c->stream.s, c->stream.n);
    *c = (struct packed_folder){0};
}
