/* Reading a stream, whoever has written it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/transfer/stream.h"
#include "mem.h"

#define RECORDS_MAX (4 << 20) /* bytes of pax headers, and of names */
#define PARTS_MAX (1 << 20)

struct stream_in *pax_in_new(int fd)
{
    struct stream_in *in = mem_zalloc(sizeof *in);
    in->fd = fd;
    in->data = mem_alloc(STREAM_IN_SIZE);
    return in;
}

void pax_in_free(struct stream_in *in)
{
    free(in->data);
    free(in);
}

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_TOOL, "the stream is no tar archive, or a damaged one: %s", what);
}

/* At least n bytes (of the buffer's size) at `at`. -1 with ERR_TOOL. */
static int need(struct stream_in *in, size_t n, struct err *err)
{
    if (in->len - in->at >= n)
        return 0;
    memmove(in->data, in->data + in->at, in->len - in->at);
    in->len -= in->at;
    in->at = 0;
    while (in->len < n) {
        ssize_t got = read(in->fd, in->data + in->len, STREAM_IN_SIZE - in->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_sys(err, ERR_TOOL, errno, "the stream can't be read");
        if (got == 0)
            return err_set(err, ERR_TOOL,
                           "the stream has ended before its end: what was whole by then is there");
        in->len += (size_t)got;
    }
    return 0;
}

ssize_t pax_take(struct stream_in *in, size_t n, const char **data, struct err *err)
{
    if (need(in, 1, err) < 0)
        return -1;
    size_t there = in->len - in->at;
    *data = in->data + in->at;
    n = n < there ? n : there;
    in->at += n;
    return (ssize_t)n;
}

int pax_skip(struct stream_in *in, long long n, struct err *err)
{
    const char *data;
    while (n > 0) {
        ssize_t got = pax_take(in, n < STREAM_IN_SIZE ? (size_t)n : STREAM_IN_SIZE, &data, err);
        if (got < 0)
            return -1;
        n -= got;
    }
    return 0;
}

void pax_drain(struct stream_in *in)
{
    while (read(in->fd, in->data, STREAM_IN_SIZE) > 0)
        continue;
}

/* Octal digits, or (the first bit set) a number of 8 bits a byte. Negative: it is neither. */
static long long number(const char *at, size_t n)
{
    long long value = 0;
    if (at[0] & 0x80) {
        value = at[0] & 0x3F;
        for (size_t i = 1; i < n; i++) {
            if (value >> 54)
                return -1;
            value = value << 8 | (unsigned char)at[i];
        }
        return value;
    }
    size_t i = 0;
    while (i < n && at[i] == ' ')
        i++;
    for (; i < n && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (at[i] - '0');
    return i < n && at[i] && at[i] != ' ' ? -1 : value;
}

/* ---- pax headers ---- */

/* What they say of the entry that follows. */
struct said {
    struct buf path, target, sparse_name;
    long long size, real, uid, gid, major;
    bool has_time;
    struct timespec mtime;
};

static void said_release(struct said *s)
{
    buf_release(&s->path);
    buf_release(&s->target);
    buf_release(&s->sparse_name);
}

static void take_text(struct buf *to, const char *value, size_t n)
{
    buf_truncate(to, 0);
    buf_add(to, value, n);
}

static void take_time(struct said *s, const char *value)
{
    char *end;
    long fraction = 0, unit = 100000000;
    bool before = *value == '-';
    long long seconds = strtoll(value + before, &end, 10);
    if (*end == '.')
        for (const char *p = end + 1; *p >= '0' && *p <= '9' && unit > 0; p++, unit /= 10)
            fraction += (*p - '0') * unit;
    s->mtime.tv_sec = (time_t)(before ? -seconds - (fraction > 0) : seconds);
    s->mtime.tv_nsec = before && fraction > 0 ? 1000000000 - fraction : fraction;
    s->has_time = true;
}

static void take_record(struct said *s, struct entry *e, const char *key, const char *value, size_t n)
{
    static const char xattr[] = "SCHILY.xattr.";
    if (strcmp(key, "path") == 0)
        take_text(&s->path, value, n);
    else if (strcmp(key, "linkpath") == 0)
        take_text(&s->target, value, n);
    else if (strcmp(key, "GNU.sparse.name") == 0)
        take_text(&s->sparse_name, value, n);
    else if (strcmp(key, "TOOLBOX.sha256") == 0)
        take_text(&e->sum, value, n);
    else if (strcmp(key, "mtime") == 0)
        take_time(s, value);
    else if (strcmp(key, "size") == 0)
        s->size = strtoll(value, NULL, 10);
    else if (strcmp(key, "uid") == 0)
        s->uid = strtoll(value, NULL, 10);
    else if (strcmp(key, "gid") == 0)
        s->gid = strtoll(value, NULL, 10);
    else if (strcmp(key, "GNU.sparse.major") == 0)
        s->major = strtoll(value, NULL, 10);
    else if (strcmp(key, "GNU.sparse.realsize") == 0)
        s->real = strtoll(value, NULL, 10);
    else if (strncmp(key, xattr, sizeof xattr - 1) == 0)
        pax_entry_put_xattr(e, key + sizeof xattr - 1, value, n);
}

static int take_records(struct said *s, struct entry *e, struct buf *records, struct err *err)
{
    char *data = records->data;
    for (size_t at = 0; at < records->len;) {
        char *end;
        unsigned long length = strtoul(data + at, &end, 10);
        if (*end != ' ' || length < 5 || length > records->len - at || data[at + length - 1] != '\n')
            return damaged(err, "a pax header");
        char *last = data + at + length - 1;
        char *equals = memchr(end, '=', (size_t)(last - end));
        if (!equals)
            return damaged(err, "a pax header");
        *equals = *last = '\0';
        take_record(s, e, end + 1, equals + 1, (size_t)(last - equals - 1));
        at += length;
    }
    return 0;
}

/* ---- entries ---- */

/* So many bytes of the stream, with their padding. */
static int take_bytes(struct stream_in *in, long long n, struct buf *out, struct err *err)
{
    const char *data;
    if (n > RECORDS_MAX)
        return damaged(err, "a header is too long");
    buf_truncate(out, 0);
    buf_reserve(out, 1);
    while ((long long)out->len < n) {
        ssize_t got = pax_take(in, (size_t)n - out->len, &data, err);
        if (got < 0)
            return -1;
        buf_add(out, data, (size_t)got);
    }
    return pax_skip(in, (long long)pax_padding(n), err);
}

static int check_block(const char *block, struct err *err)
{
    long long sum = 0;
    for (int i = 0; i < STREAM_BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
    return number(block + 148, 8) == sum ? 0 : damaged(err, "a header's sum is wrong");
}

static bool is_zero(const char *block)
{
    return block[0] == '\0' && memcmp(block, block + 1, STREAM_BLOCK - 1) == 0;
}

static void put_name(struct buf *to, const char *block, size_t at, size_t n)
{
    buf_truncate(to, 0);
    buf_add(to, block + at, strnlen(block + at, n));
}

/* What the block itself says, and then what the headers in front of it have said. */
static int take_entry(struct entry *e, const char *block, struct said *s, struct err *err)
{
    bool ustar = memcmp(block + 257, "ustar\0", 6) == 0;
    e->type = block[156] == '\0' || block[156] == '7' ? ENTRY_FILE : block[156];
    put_name(&e->path, block, 0, 100);
    put_name(&e->target, block, 157, 100);
    if (ustar && block[345]) {
        struct buf whole BUF_AUTO = BUF_INIT;
        put_name(&whole, block, 345, 155);
        buf_addc(&whole, '/');
        buf_add(&whole, buf_str(&e->path), e->path.len);
        take_text(&e->path, whole.data, whole.len);
    }
    e->mode = (mode_t)number(block + 100, 8) & 07777;
    e->uid = (uid_t)(s->uid >= 0 ? s->uid : number(block + 108, 8));
    e->gid = (gid_t)(s->gid >= 0 ? s->gid : number(block + 116, 8));
    e->stored = s->size >= 0 ? s->size : number(block + 124, 12);
    e->mtime = s->has_time ? s->mtime : (struct timespec){.tv_sec = (time_t)number(block + 136, 12)};
    if (s->path.len > 0)
        take_text(&e->path, s->path.data, s->path.len);
    if (s->target.len > 0)
        take_text(&e->target, s->target.data, s->target.len);
    if (e->type != ENTRY_FILE && strchr("12345", e->type))
        e->stored = 0;
    else if (e->type == ENTRY_FILE && e->path.len > 0 && e->path.data[e->path.len - 1] == '/')
        e->type = ENTRY_DIRECTORY;
    e->size = e->stored;
    e->sparse = s->real >= 0 && s->major == 1;
    if (e->sparse) {
        take_text(&e->path, buf_str(&s->sparse_name), s->sparse_name.len);
        e->size = s->real;
    }
    return e->stored < 0 || e->size < 0 ? damaged(err, "a size") : 0;
}

/* What stands in front of an entry: 1 when it was something of that kind. */
static int take_front(struct stream_in *in, const char *block, struct said *s, struct entry *e,
                      struct err *err)
{
    struct buf data BUF_AUTO = BUF_INIT;
    long long n = number(block + 124, 12);
    char type = block[156];
    if (!strchr("xgLK", type) || type == '\0')
        return 0;
    if (n < 0 || take_bytes(in, n, &data, err) < 0)
        return n < 0 ? damaged(err, "a size") : -1;
    if (type == 'x')
        return take_records(s, e, &data, err) < 0 ? -1 : 1;
    if (type == 'L')
        take_text(&s->path, buf_str(&data), strlen(buf_str(&data)));
    if (type == 'K')
        take_text(&s->target, buf_str(&data), strlen(buf_str(&data)));
    return 1;
}

int pax_next(struct stream_in *in, struct entry *e, struct err *err)
{
    struct said s __attribute__((cleanup(said_release))) = {.path = BUF_INIT,
                                                            .target = BUF_INIT,
                                                            .sparse_name = BUF_INIT,
                                                            .size = -1,
                                                            .real = -1,
                                                            .uid = -1,
                                                            .gid = -1};
    pax_entry_reset(e);
    for (;;) {
        char block[STREAM_BLOCK];
        if (need(in, STREAM_BLOCK, err) < 0)
            return -1;
        memcpy(block, in->data + in->at, STREAM_BLOCK);
        in->at += STREAM_BLOCK;
        if (is_zero(block))
            return 0;
        if (check_block(block, err) < 0)
            return -1;
        int rc = take_front(in, block, &s, e, err);
        if (rc <= 0)
            return rc < 0 || take_entry(e, block, &s, err) < 0 ? -1 : 1;
    }
}

/* ---- maps ---- */

/* A number on a line of its own. */
static int take_line(struct stream_in *in, long long *left, size_t *taken, long long *value, struct err *err)
{
    const char *c;
    *value = 0;
    for (int i = 0; i < 20 && *left > 0; i++) {
        if (pax_take(in, 1, &c, err) < 0)
            return -1;
        --*left;
        ++*taken;
        if (*c == '\n')
            return 0;
        if (*c < '0' || *c > '9' || *value > (1LL << 58))
            break;
        *value = *value * 10 + (*c - '0');
    }
    return damaged(err, "the map of a sparse file");
}

int hole_map_take(struct stream_in *in, struct hole_map *map, long long *left, long long size,
                  struct err *err)
{
    long long count, end = 0, stored = 0;
    size_t taken = 0;
    if (take_line(in, left, &taken, &count, err) < 0)
        return -1;
    if (count > PARTS_MAX)
        return damaged(err, "the map of a sparse file");
    map->parts = mem_alloc((size_t)(count > 0 ? count : 1) * sizeof *map->parts);
    for (map->n = 0; map->n < (size_t)count; map->n++) {
        struct hole_part *p = &map->parts[map->n];
        if (take_line(in, left, &taken, &p->offset, err) < 0 ||
            take_line(in, left, &taken, &p->size, err) < 0)
            return -1;
        if (p->offset < end || p->size > size - p->offset)
            return damaged(err, "the map of a sparse file");
        end = p->offset + p->size;
        stored += p->size;
    }
    long long padding = (long long)pax_padding((long long)taken);
    *left -= padding;
    if (*left != stored)
        return damaged(err, "the map of a sparse file");
    return pax_skip(in, padding, err);
}
