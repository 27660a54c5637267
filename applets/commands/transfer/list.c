#include "commands/transfer/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"

#define FIELDS 6

void list_put(struct buf *out, const char *path, const struct stat *st, const char *more)
{
    buf_addf(out, "%u %lld %lld %ld %u %u ", (unsigned)st->st_mode, (long long)st->st_size,
             (long long)st->st_mtim.tv_sec, (long)st->st_mtim.tv_nsec, (unsigned)st->st_uid,
             (unsigned)st->st_gid);
    buf_add(out, path, strlen(path) + 1);
    buf_add(out, more, strlen(more) + 1);
}

void list_put_end(struct buf *out)
{
    buf_addc(out, '\0');
}

/* A directory comes before what is in it, and that before what begins like the directory. */
static int order(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    int x = *a == '/' ? 1 : (unsigned char)*a + (*a != '\0'),
        y = *b == '/' ? 1 : (unsigned char)*b + (*b != '\0');
    return x - y;
}

static int by_path(const void *a, const void *b)
{
    return order(((const struct listed *)a)->path, ((const struct listed *)b)->path);
}

static void take_record(struct listed *r, char *at)
{
    long long field[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        field[i] = strtoll(at, &end, 10);
        at = end + (*end == ' ');
    }
    *r = (struct listed){.path = at,
                         .mode = (mode_t)field[0],
                         .size = field[1],
                         .seconds = field[2],
                         .nanoseconds = (long)field[3],
                         .uid = (uid_t)field[4],
                         .gid = (gid_t)field[5]};
}

int list_take(struct list *l, int fd, struct err *err)
{
    size_t room = 0;
    l->text = (struct buf)BUF_INIT;
    if (io_read_all(fd, &l->text) < 0)
        return err_sys(err, ERR_TOOL, errno, "the list of what is there can't be read");
    char *at = l->text.data, *end = at + l->text.len;
    while (at < end && *at) {
        char *behind = at + strlen(at) + 1;
        if (behind >= end)
            break;
        if (l->n == room)
            l->all = mem_realloc(l->all, (room = room ? 2 * room : 256) * sizeof *l->all);
        take_record(&l->all[l->n], at);
        l->all[l->n++].more = behind;
        at = behind + strlen(behind) + 1;
    }
    if (at != end - 1)
        return err_set(err, ERR_TOOL, "the list of what is there did not come to its end");
    if (l->n > 0)
        qsort(l->all, l->n, sizeof *l->all, by_path);
    return 0;
}

void list_release(struct list *l)
{
    buf_release(&l->text);
    free(l->all);
}

struct listed *list_find(const struct list *l, const char *path)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int o = order(path, l->all[middle].path);
        if (o == 0)
            return &l->all[middle];
        if (o < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct listed *list_behind(const struct list *l, const struct listed *at)
{
    size_t n = strlen(at->path);
    const struct listed *end = l->all + l->n, *next = at + 1;
    while (next < end && strncmp(next->path, at->path, n) == 0 && next->path[n] == '/')
        next++;
    return next;
}
