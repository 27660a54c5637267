/* The bytes of a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "commands/transfer/send.h"
#include "io.h"
#include "mem.h"
#include "sha256.h"

#define SMALL (128u << 10)      /* read before its size is said */
#define MADE_UP_MAX (64u << 20) /* what the kernel makes up while it is read */
#define XATTRS_MAX 65536

void send_flush(struct sending *s, size_t least)
{
    if (s->out.len < least || s->out.len == 0)
        return;
    if (io_write_all(STDOUT_FILENO, s->out.data, s->out.len) < 0)
        exit(EXIT_FAILED); /* who reads says why */
    buf_truncate(&s->out, 0);
}

void send_take_xattrs(struct sending *s, int fd)
{
    char *names MEM_AUTO = NULL;
    char *value MEM_AUTO = NULL;
    if (!s->o->archive || flistxattr(fd, NULL, 0) <= 0)
        return;
    names = mem_alloc(XATTRS_MAX);
    value = mem_alloc(XATTRS_MAX);
    ssize_t n = flistxattr(fd, names, XATTRS_MAX), got;
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
        if ((got = fgetxattr(fd, names + i, value, XATTRS_MAX)) >= 0)
            pax_entry_put_xattr(&s->entry, names + i, value, (size_t)got);
}

static void put_sum(struct sending *s, int fd)
{
    char hex[SHA256_HEX_SIZE];
    if (!s->o->sums || lseek(fd, 0, SEEK_SET) < 0 || sha256_file(fd, hex) < 0)
        return;
    buf_truncate(&s->entry.sum, 0);
    buf_adds(&s->entry.sum, hex);
}

bool send_has_sum(int dir, const char *name, const char *sum)
{
    char hex[SHA256_HEX_SIZE];
    int fd FD_AUTO = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && sha256_file(fd, hex) == 0 && strcmp(hex, sum) == 0;
}

static void pad(struct sending *s, long long n)
{
    static const char zeros[4096];
    for (; n > 0; n -= (long long)sizeof zeros)
        buf_add(&s->out, zeros, n < (long long)sizeof zeros ? (size_t)n : sizeof zeros);
}

/* All of it is in the buffer, which is as large as what comes. */
static int send_small(struct sending *s, int fd)
{
    struct buf data BUF_AUTO = {.max = MADE_UP_MAX};
    buf_reserve(&data, (size_t)s->entry.size + 1);
    ssize_t n = read(fd, data.data, (size_t)s->entry.size + 1);
    data.len = n > 0 ? (size_t)n : 0;
    /* One read tells, where the size is right. */
    if (n < 0 || (n != (ssize_t)s->entry.size || n == 0 ? io_read_all(fd, &data) < 0 : false))
        return -1;
    put_sum(s, fd);
    s->entry.size = s->entry.stored = (long long)data.len;
    pax_put(&s->out, &s->entry);
    buf_add(&s->out, buf_str(&data), data.len);
    pad(s, (long long)pax_padding((long long)data.len));
    return 0;
}

/* So many bytes from there on, whatever becomes of the file. False: it has become shorter. */
static bool send_part(struct sending *s, int fd, long long at, long long n)
{
    bool whole = true;
    while (n > 0) {
        size_t want = n < (long long)SEND_FLUSH ? (size_t)n : SEND_FLUSH;
        send_flush(s, 1);
        buf_reserve(&s->out, SEND_FLUSH);
        ssize_t got = whole ? pread(fd, s->out.data, want, (off_t)at) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            whole = false;
            got = (ssize_t)want;
            memset(s->out.data, 0, want);
        }
        s->out.len = (size_t)got;
        at += got;
        n -= got;
    }
    return whole;
}

/* False: it has none, or can't tell. */
static bool map_holes(int fd, struct hole_map *map, const struct entry *e, long long blocks)
{
    size_t room = 0;
    if (blocks * 512 >= e->size)
        return false;
    for (off_t at = 0, end; at < e->size; at = end) {
        at = lseek(fd, at, SEEK_DATA);
        if (at < 0 && errno == ENXIO)
            break;
        end = at < 0 ? -1 : lseek(fd, at, SEEK_HOLE);
        if (end < 0)
            return false;
        end = end > e->size ? (off_t)e->size : end;
        if (map->n == room)
            map->parts = mem_realloc(map->parts, (room = room ? 2 * room : 16) * sizeof *map->parts);
        map->parts[map->n++] = (struct hole_part){(long long)at, (long long)(end - at)};
    }
    return !(map->n == 1 && map->parts[0].size == e->size);
}

static bool send_sparse(struct sending *s, int fd, const struct hole_map *map)
{
    struct buf text BUF_AUTO = BUF_INIT;
    bool whole = true;
    hole_map_put(&text, map);
    s->entry.sparse = true;
    s->entry.stored = (long long)text.len;
    for (size_t i = 0; i < map->n; i++)
        s->entry.stored += map->parts[i].size;
    pax_put(&s->out, &s->entry);
    buf_add(&s->out, text.data, text.len);
    for (size_t i = 0; i < map->n; i++)
        whole = send_part(s, fd, map->parts[i].offset, map->parts[i].size) && whole;
    return whole;
}

static bool send_large(struct sending *s, int fd, long long blocks)
{
    struct hole_map map = {0};
    bool whole;
    put_sum(s, fd);
    s->entry.stored = s->entry.size;
    if (map_holes(fd, &map, &s->entry, blocks)) {
        whole = send_sparse(s, fd, &map);
    } else {
        pax_put(&s->out, &s->entry);
        whole = send_part(s, fd, 0, s->entry.size);
    }
    hole_map_release(&map);
    pad(s, (long long)pax_padding(s->entry.stored));
    return whole;
}

void send_file(struct sending *s, int dir, const char *name, const char *path)
{
    struct stat st;
    int fd FD_AUTO = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        if (errno != ENOENT)
            transfer_complain(path, err_text(errno));
        return;
    }
    if (!S_ISREG(st.st_mode))
        return; /* something else by now */
    send_take_xattrs(s, fd);
    s->entry.size = (long long)st.st_size;
    s->entry.mtime = st.st_mtim;
    bool small = s->entry.size <= (long long)SMALL && (st.st_blocks > 0 || s->entry.size <= 4096);
    if (small ? send_small(s, fd) < 0 : !send_large(s, fd, (long long)st.st_blocks))
        transfer_complain(path,
                          small ? err_text(errno) : "became shorter while it was read: its end is zeros now");
    send_flush(s, SEND_FLUSH);
}
