#include "edit_entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "edit_text.h"
#include "io.h"
#include "mem.h"
#include "text_editor_types.h"

static const char magic[8] = "TBundo1\n";

/* Making and deleting a file costs more than the rest of a small edit; so one that is dropped is the next one
 * that is written. */
#define SPARE "spare"
enum { SPARE_MAX = 1 << 20 };

enum { SUM_FROM = offsetof(struct entry_head, sum) + sizeof(uint64_t) };

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

static const char *const state_suffix[] = {
    [ENTRY_KEPT] = "", [ENTRY_FRESH] = ".new", [ENTRY_UNDOING] = ".undo"};

void entry_name(struct entry_item *item)
{
    snprintf(item->name, sizeof item->name, "%016llx-%016llx-%llx-%llx%s", (unsigned long long)item->key.path,
             (unsigned long long)item->key.inode, (unsigned long long)item->order,
             (unsigned long long)item->size, state_suffix[item->state]);
}

int entry_set_state(int dir, struct entry_item *item, enum entry_state state)
{
    struct entry_item changed = *item;
    changed.state = state;
    entry_name(&changed);
    if (renameat(dir, item->name, dir, changed.name) < 0)
        return -1;
    *item = changed;
    return 0;
}

static bool parse_name(struct entry_item *item, const char *name)
{
    uint64_t part[4];
    const char *at = name;
    for (int i = 0; i < 4; i++) {
        char *end;
        if ((*at < '0' || *at > '9') && (*at < 'a' || *at > 'f'))
            return false;
        part[i] = strtoull(at, &end, 16);
        if (i < 3 && *end++ != '-')
            return false;
        at = end;
    }
    *item = (struct entry_item){.key = {part[0], part[1]}, .order = part[2], .size = part[3]};
    while (item->state < ENTRY_UNDOING && strcmp(at, state_suffix[item->state]) != 0)
        item->state++;
    entry_name(item);
    return strcmp(item->name, name) == 0;
}

static int by_order(const void *a, const void *b)
{
    const struct entry_item *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

int entry_list(struct entry_list *list, int dir)
{
    *list = (struct entry_list){0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        io_close(&fd);
        return -1;
    }
    size_t room = 0;
    const struct dirent *found;
    while ((found = readdir(stream)) != NULL) {
        struct entry_item item;
        if ((found->d_type != DT_REG && found->d_type != DT_UNKNOWN) || !parse_name(&item, found->d_name))
            continue;
        if (list->n == room) {
            room = room ? 2 * room : 64;
            list->items = mem_realloc(list->items, room * sizeof *list->items);
        }
        list->items[list->n++] = item;
    }
    closedir(stream);
    if (list->n > 1)
        qsort(list->items, list->n, sizeof *list->items, by_order);
    return 0;
}

void entry_list_release(struct entry_list *list)
{
    free(list->items);
    *list = (struct entry_list){0};
}

uint64_t entry_size(const struct entry *e)
{
    return sizeof e->head + e->head.n_path + e->head.n_old + e->head.n_put;
}

static uint64_t sum_of(const struct entry *e)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, (const char *)&e->head + SUM_FROM, sizeof e->head - SUM_FROM);
    text_sum_add(&sum, e->path, e->head.n_path);
    text_sum_add(&sum, e->old, e->head.n_old);
    text_sum_add(&sum, e->put, e->head.n_put);
    return text_sum_end(&sum);
}

void entry_seal(struct entry *e)
{
    memcpy(e->head.magic, magic, sizeof magic);
    e->head.sum = sum_of(e);
}

/* Opens the spare file under a new name, or makes a new one. */
static int open_new(int spare_dir, int dir, const char *name, off_t *size)
{
    struct stat st;
    *size = 0;
    if (renameat(spare_dir, SPARE, dir, name) < 0)
        return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1) {
        *size = st.st_size;
        return fd;
    }
    io_close(&fd);
    unlinkat(dir, name, 0);
    return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int entry_write(const struct entry *e, int dir, const char *name, int spare_dir)
{
    off_t size;
    int fd FD_AUTO = open_new(spare_dir, dir, name, &size);
    if (fd < 0)
        return -1;
    struct iovec parts[] = {{(void *)&e->head, sizeof e->head},
                            {(void *)e->path, e->head.n_path},
                            {(void *)e->old, e->head.n_old},
                            {(void *)e->put, e->head.n_put}};
    off_t wanted = (off_t)entry_size(e);
    if (edit_write_parts(fd, parts, sizeof parts / sizeof *parts) < 0 ||
        (size > wanted && ftruncate(fd, wanted) < 0)) {
        int failed = errno;
        unlinkat(dir, name, 0);
        errno = failed;
        return -1;
    }
    return 0;
}

void entry_drop(int dir, const struct entry_item *item)
{
    if (item->size > SPARE_MAX || renameat(dir, item->name, dir, SPARE) < 0)
        unlinkat(dir, item->name, 0);
}

/* Sizes are checked one by one against what is there, so that no sum of them can wrap. */
static bool parts_fit(const struct entry_head *h, size_t left)
{
    const uint64_t sizes[] = {h->n_path, h->n_old, h->n_put};
    for (size_t i = 0; i < 3; i++) {
        if (sizes[i] > left)
            return false;
        left -= sizes[i];
    }
    return left == 0 && h->at <= h->n_old && h->cut <= h->n_old - h->at;
}

static int damaged(void)
{
    errno = EBADMSG;
    return -1;
}

int entry_read(struct entry *e, int dir, const char *name)
{
    struct stat st;
    int fd FD_AUTO = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP || errno == ENXIO ? damaged() : -1;
    if (fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size < (off_t)sizeof e->head)
        return damaged();
    e->raw.max = 3 * EDIT_FILE_MAX;
    if (buf_reserve(&e->raw, (size_t)st.st_size) < 0)
        return damaged();
    edit_use_large_pages(&e->raw);
    if (io_read_all(fd, &e->raw) < 0)
        return -1;
    if (e->raw.len < sizeof e->head)
        return damaged();
    memcpy(&e->head, e->raw.data, sizeof e->head);
    if (memcmp(e->head.magic, magic, sizeof magic) != 0 || !parts_fit(&e->head, e->raw.len - sizeof e->head))
        return damaged();
    e->path = e->raw.data + sizeof e->head;
    e->old = e->path + e->head.n_path;
    e->put = e->old + e->head.n_old;
    return sum_of(e) == e->head.sum ? 0 : damaged();
}

void entry_release(struct entry *e)
{
    buf_release(&e->raw);
    *e = (struct entry)ENTRY_INIT;
}

uint64_t content_sum(const char *data, size_t n)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, data, n);
    return text_sum_end(&sum);
}

uint64_t content_sum_spliced(const char *data, size_t n, const struct splice *s)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, data, s->at);
    text_sum_add(&sum, s->put, s->n_put);
    text_sum_add(&sum, data + s->at + s->cut, n - s->at - s->cut);
    return text_sum_end(&sum);
}
