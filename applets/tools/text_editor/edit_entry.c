#include "edit_entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dir_read.h"
#include "edit_file.h"
#include "io.h"
#include "mem.h"
#include "text_editor_types.h"
#include "text_sum.h"

struct entry_key entry_key(const char *real_path, const struct stat *st)
{
    struct stat root = {0};
    stat("/", &root);
    uint64_t ids[4] = {root.st_dev, root.st_ino, 0, 0};
    struct text_sum sum;
    struct entry_key key;
    text_sum_begin(&sum);
    text_sum_add(&sum, ids, 2 * sizeof *ids);
    text_sum_add(&sum, real_path, strlen(real_path));
    key.path = text_sum_end(&sum);
    ids[2] = st->st_dev;
    ids[3] = st->st_ino;
    text_sum_begin(&sum);
    text_sum_add(&sum, ids, sizeof ids);
    key.inode = text_sum_end(&sum);
    return key;
}

/* ---- names ---- */

static const char *const state_suffix[] = {
    [ENTRY_KEPT] = "", [ENTRY_FRESH] = ".new", [ENTRY_UNDOING] = ".undo", [ENTRY_FOLLOWED] = ".then"};

/* The members that make a name, in order, each in hexadecimal digits. */
static const size_t name_members[] = {
    offsetof(struct entry_item, key.path), offsetof(struct entry_item, key.inode),
    offsetof(struct entry_item, order),    offsetof(struct entry_item, size),
    offsetof(struct entry_item, stamp),    offsetof(struct entry_item, kind),
    offsetof(struct entry_item, time),     offsetof(struct entry_item, n_old),
    offsetof(struct entry_item, at),       offsetof(struct entry_item, cut),
    offsetof(struct entry_item, n_put),    offsetof(struct entry_item, put_sum),
    offsetof(struct entry_item, old_sum),
};
enum { N_MEMBERS = sizeof name_members / sizeof *name_members };

static uint64_t *member(struct entry_item *item, int i)
{
    return (uint64_t *)(void *)((char *)item + name_members[i]);
}

void entry_name(const struct entry_item *item, char name[ENTRY_NAME_MAX])
{
    struct entry_item copy = *item;
    char *at = name;
    for (int i = 0; i < N_MEMBERS; i++) {
        uint64_t value = *member(&copy, i);
        int digits = 1;
        while (digits < 16 && value >> (4 * digits) != 0)
            digits++;
        if (i > 0)
            *at++ = '-';
        while (digits-- > 0)
            *at++ = "0123456789abcdef"[value >> (4 * digits) & 15];
    }
    memcpy(at, state_suffix[item->state], strlen(state_suffix[item->state]) + 1);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes names of exactly the form in which they are written, so that they can be written again, with a kind
 * that there is and an order that another one can follow. */
static bool parse_name(struct entry_item *item, const char *at)
{
    *item = (struct entry_item){.state = ENTRY_KEPT};
    for (int i = 0; i < N_MEMBERS; i++) {
        uint64_t *value = member(item, i);
        const char *from = at;
        while (hex_digit(*at) >= 0)
            *value = *value << 4 | (unsigned)hex_digit(*at++);
        if (at == from || at - from > 16 || (*from == '0' && at - from > 1))
            return false;
        if (i < N_MEMBERS - 1 && *at++ != '-')
            return false;
    }
    while (item->state < ENTRY_FOLLOWED && strcmp(at, state_suffix[item->state]) != 0)
        item->state++;
    return strcmp(at, state_suffix[item->state]) == 0 && item->kind >= ENTRY_EDIT &&
           item->kind <= ENTRY_UNDO && item->order < UINT64_MAX;
}

/* ---- the directory ---- */

static int by_order(const void *a, const void *b)
{
    const struct entry_item *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

int entry_list(struct entry_list *list, int dir)
{
    *list = (struct entry_list){0};
    DIR *stream DIR_AUTO = dir_read_again(dir);
    if (!stream)
        return -1;
    size_t room = 0;
    const struct dirent *found;
    while (errno = 0, (found = readdir(stream)) != NULL) {
        struct entry_item item;
        if (!parse_name(&item, found->d_name))
            continue;
        if (list->n == room) {
            room = room ? 2 * room : 16;
            list->items = mem_realloc(list->items, room * sizeof *list->items);
        }
        list->items[list->n++] = item;
    }
    int failed = errno;
    if (failed) { /* a part of the history would be taken for all of it */
        entry_list_release(list);
        return errno = failed, -1;
    }
    if (list->n > 1)
        qsort(list->items, list->n, sizeof *list->items, by_order);
    return 0;
}

void entry_list_release(struct entry_list *list)
{
    free(list->items);
    *list = (struct entry_list){0};
}

int entry_move(struct entry_item *item, int dir, int new_dir, enum entry_state state)
{
    char name[ENTRY_NAME_MAX], new_name[ENTRY_NAME_MAX];
    struct entry_item changed = *item;
    changed.state = state;
    entry_name(item, name);
    entry_name(&changed, new_name);
    if (renameat(dir, name, new_dir, new_name) < 0)
        return -1;
    *item = changed;
    return 0;
}

int entry_remove(const struct entry_item *item, int dir)
{
    char name[ENTRY_NAME_MAX];
    entry_name(item, name);
    return unlinkat(dir, name, 0);
}

/* ---- content ---- */

uint64_t entry_put_sum(const char *put, size_t n)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, put, n);
    return text_sum_end(&sum);
}

uint64_t entry_old_sum(const char *old, size_t n)
{
    enum { SUMMED_MAX = 4 << 20 };
    return n <= SUMMED_MAX ? entry_put_sum(old, n) | 1 : 0;
}

bool entry_led_to(const struct entry *e, const char *content, size_t n)
{
    const struct entry_item *i = &e->item;
    size_t tail = i->n_old - i->at - i->cut;
    return n == i->at + i->n_put + tail && memcmp(content, e->old, i->at) == 0 &&
           memcmp(content + n - tail, e->old + i->n_old - tail, tail) == 0 &&
           entry_put_sum(content + i->at, i->n_put) == i->put_sum;
}

uint64_t entry_stamp(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * 1000000000ULL + (uint64_t)st->st_mtim.tv_nsec;
}

int entry_copy(struct entry *e, int dir)
{
    struct entry_item *i = &e->item;
    char name[ENTRY_NAME_MAX];
    /* Of no more than even seconds, which every file system can keep. */
    uint64_t seconds = i->time / 2000000000ULL * 2;
    struct timespec times[2] = {{.tv_sec = (time_t)seconds}, {.tv_sec = (time_t)seconds}};
    i->size = i->n_old + (e->path ? i->n_put + e->n_path : 0);
    i->stamp = seconds * 1000000000ULL;
    entry_name(i, name);
    int fd FD_AUTO = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    struct iovec parts[] = {
        {(void *)e->old, i->n_old}, {(void *)e->put, e->path ? i->n_put : 0}, {(void *)e->path, e->n_path}};
    if (edit_write_parts(fd, parts, sizeof parts / sizeof *parts) == 0 && futimens(fd, times) == 0)
        return 0;
    int failed = errno;
    unlinkat(dir, name, 0);
    errno = failed;
    return -1;
}

int entry_link(struct entry *e, int dir, int from_dir, const char *from, const struct stat *st)
{
    char name[ENTRY_NAME_MAX];
    e->item.size = e->item.n_old;
    e->item.stamp = entry_stamp(st);
    entry_name(&e->item, name);
    return linkat(from_dir, from, dir, name, 0);
}

static int damaged(void)
{
    errno = EBADMSG;
    return -1;
}

/* `n`: bytes that were read. */
static bool is_whole(const struct entry_item *item, const struct stat *st, size_t n)
{
    return n == item->size && (uint64_t)st->st_size == item->size && entry_stamp(st) == item->stamp;
}

/* The old file, which somebody has written to, still begins with all of the old content. */
static bool has_old(const struct entry_item *item, const struct buf *raw)
{
    return item->size == item->n_old && raw->len >= item->n_old && item->old_sum != 0 &&
           entry_old_sum(raw->data, item->n_old) == item->old_sum;
}

/* The sizes come out of a name, which may be anybody's; no sum of them may wrap. */
static bool parts_fit(const struct entry_item *i)
{
    return i->n_old <= EDIT_FILE_MAX && i->size <= 2 * EDIT_FILE_MAX + PATH_MAX && i->n_old <= i->size &&
           i->at <= i->n_old && i->cut <= i->n_old - i->at && i->n_put <= EDIT_FILE_MAX &&
           (i->size == i->n_old || i->n_put < i->size - i->n_old);
}

bool entry_is_old(const struct entry_item *i, const char *content, size_t n)
{
    return i->old_sum != 0 && n == i->n_old && entry_old_sum(content, n) == i->old_sum;
}

bool entry_seems_made(const struct entry_item *i, const char *content, size_t n)
{
    if (!parts_fit(i) || entry_is_old(i, content, n))
        return false;
    return i->old_sum != 0 ||
           (n == i->n_old - i->cut + i->n_put && entry_put_sum(content + i->at, i->n_put) == i->put_sum);
}

int entry_read(struct entry *e, int dir, const struct entry_item *item)
{
    char name[ENTRY_NAME_MAX];
    entry_name(item, name);
    int fd FD_AUTO = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP || errno == ENXIO ? damaged() : -1;
    if (fstat(fd, &e->st) < 0)
        return -1;
    if (!S_ISREG(e->st.st_mode) || !parts_fit(item) || (uint64_t)e->st.st_size < item->size)
        return damaged();
    e->raw.max = item->size + 1; /* however much more there is */
    buf_reserve(&e->raw, item->size + 1);
    edit_use_large_pages(&e->raw);
    if (io_read_all(fd, &e->raw) < 0 && errno != EFBIG)
        return -1;
    if (fstat(fd, &e->st) < 0)
        return -1;
    if (!is_whole(item, &e->st, e->raw.len) && !has_old(item, &e->raw))
        return damaged();
    e->item = *item;
    e->old = buf_str(&e->raw);
    bool copy = item->size > item->n_old;
    e->put = copy ? e->old + item->n_old : NULL;
    e->path = copy ? e->put + item->n_put : NULL;
    e->n_path = copy ? item->size - item->n_old - item->n_put : 0;
    return 0;
}

void entry_release(struct entry *e)
{
    buf_release(&e->raw);
    *e = (struct entry)ENTRY_INIT;
}
