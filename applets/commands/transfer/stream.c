#include "commands/transfer/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define NAME_SIZE 100
#define OCTAL_11 8589934591LL

void pax_entry_reset(struct entry *e)
{
    buf_truncate(&e->path, 0);
    buf_truncate(&e->target, 0);
    buf_truncate(&e->xattrs, 0);
    buf_truncate(&e->sum, 0);
    e->size = e->stored = 0;
    e->sparse = false;
}

void pax_entry_release(struct entry *e)
{
    buf_release(&e->path);
    buf_release(&e->target);
    buf_release(&e->xattrs);
    buf_release(&e->sum);
}

void pax_entry_put_xattr(struct entry *e, const char *name, const void *value, size_t n)
{
    buf_add(&e->xattrs, name, strlen(name) + 1);
    buf_add(&e->xattrs, &n, sizeof n);
    buf_add(&e->xattrs, value, n);
}

const char *pax_entry_xattr(const struct entry *e, size_t *at, const void **value, size_t *n)
{
    if (*at >= e->xattrs.len)
        return NULL;
    const char *name = e->xattrs.data + *at, *behind = name + strlen(name) + 1;
    memcpy(n, behind, sizeof *n);
    *value = behind + sizeof *n;
    *at = (size_t)(behind - e->xattrs.data) + sizeof *n + *n;
    return name;
}

size_t pax_padding(long long size)
{
    return (size_t)(-size & (STREAM_BLOCK - 1));
}

static void pad(struct buf *out, size_t n)
{
    static const char zeros[2 * STREAM_BLOCK];
    buf_add(out, zeros, n);
}

/* ---- pax headers ---- */

/* Its length counts itself. */
static void put_record(struct buf *out, const char *key, const void *value, size_t n)
{
    size_t body = strlen(key) + n + 3, length = body, before;
    do {
        before = length;
        length = body + (size_t)snprintf(NULL, 0, "%zu", before);
    } while (length != before);
    buf_addf(out, "%zu %s=", length, key);
    buf_add(out, value, n);
    buf_addc(out, '\n');
}

static void put_number_record(struct buf *out, const char *key, long long value)
{
    char text[24];
    put_record(out, key, text, (size_t)snprintf(text, sizeof text, "%lld", value));
}

/* A fraction counts away from zero. */
static void put_time(struct buf *out, const struct timespec *t)
{
    char text[48];
    bool before = t->tv_sec < 0;
    long long seconds = before ? -(long long)t->tv_sec - (t->tv_nsec > 0) : (long long)t->tv_sec;
    long fraction = before && t->tv_nsec > 0 ? 1000000000 - t->tv_nsec : t->tv_nsec;
    int n = snprintf(text, sizeof text, "%s%lld.%09ld", before ? "-" : "", seconds, fraction);
    put_record(out, "mtime", text, (size_t)n);
}

static void put_records(struct buf *out, const struct entry *e)
{
    size_t at = 0, n;
    const void *value;
    const char *name;
    if (e->path.len > NAME_SIZE && !e->sparse)
        put_record(out, "path", e->path.data, e->path.len);
    if (e->target.len > NAME_SIZE)
        put_record(out, "linkpath", e->target.data, e->target.len);
    if (e->mtime.tv_nsec != 0 || e->mtime.tv_sec < 0)
        put_time(out, &e->mtime);
    if (e->stored > OCTAL_11)
        put_number_record(out, "size", e->stored);
    if (e->uid > 07777777)
        put_number_record(out, "uid", e->uid);
    if (e->gid > 07777777)
        put_number_record(out, "gid", e->gid);
    while ((name = pax_entry_xattr(e, &at, &value, &n)) != NULL) {
        char *key MEM_AUTO = mem_printf("SCHILY.xattr.%s", name);
        put_record(out, key, value, n);
    }
    if (e->sum.len > 0)
        put_record(out, "TOOLBOX.sha256", e->sum.data, e->sum.len);
    if (e->sparse) {
        put_number_record(out, "GNU.sparse.major", 1);
        put_number_record(out, "GNU.sparse.minor", 0);
        put_record(out, "GNU.sparse.name", e->path.data, e->path.len);
        put_number_record(out, "GNU.sparse.realsize", e->size);
    }
}

/* ---- blocks ---- */

static void put_octal(char *at, int digits, long long value)
{
    for (at += digits; digits > 0; digits--, value >>= 3)
        *--at = (char)('0' + (value & 7));
}

static long long within(long long value, long long most)
{
    return value < 0 || value > most ? 0 : value;
}

static void put_block(struct buf *out, char type, const struct buf *path, long long stored,
                      const struct entry *e)
{
    static const char magic[] = {'u', 's', 't', 'a', 'r', 0, '0', '0'};
    char block[STREAM_BLOCK] = {0};
    unsigned sum = 0;
    memcpy(block, buf_str(path), path->len < NAME_SIZE ? path->len : NAME_SIZE);
    put_octal(block + 100, 7, e->mode);
    put_octal(block + 108, 7, within(e->uid, 07777777));
    put_octal(block + 116, 7, within(e->gid, 07777777));
    put_octal(block + 124, 11, within(stored, OCTAL_11));
    put_octal(block + 136, 11, within(e->mtime.tv_sec, OCTAL_11));
    block[156] = type;
    memcpy(block + 157, buf_str(&e->target), e->target.len < NAME_SIZE ? e->target.len : NAME_SIZE);
    memcpy(block + 257, magic, sizeof magic);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < STREAM_BLOCK; i++)
        sum += (unsigned char)block[i];
    put_octal(block + 148, 6, sum);
    buf_add(out, block, sizeof block);
}

void pax_put(struct buf *out, const struct entry *e)
{
    struct buf records BUF_AUTO = BUF_INIT;
    put_records(&records, e);
    if (records.len > 0) {
        put_block(out, 'x', &e->path, (long long)records.len, e);
        buf_add(out, records.data, records.len);
        pad(out, pax_padding((long long)records.len));
    }
    put_block(out, e->type, &e->path, e->stored, e);
}

void pax_put_end(struct buf *out)
{
    pad(out, (size_t)2 * STREAM_BLOCK);
}

void hole_map_put(struct buf *out, const struct hole_map *map)
{
    size_t from = out->len;
    buf_addf(out, "%zu\n", map->n);
    for (size_t i = 0; i < map->n; i++)
        buf_addf(out, "%lld\n%lld\n", map->parts[i].offset, map->parts[i].size);
    pad(out, pax_padding((long long)(out->len - from)));
}

void hole_map_release(struct hole_map *map)
{
    free(map->parts);
    *map = (struct hole_map){0};
}
