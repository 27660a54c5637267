#include "edit_history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "text_editor_types.h"

enum { STORE_WAIT_MS = 10000 };

int store_find(struct place *place, const char *name)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        if (place_enter(place, path.data, false, NULL) < 0)
            continue;
        int dir = place_subdir(place, name, false, NULL);
        if (dir >= 0)
            return dir;
        place_release(place);
    }
    return -1;
}

void undo_open(struct undo_store *s, bool create)
{
    *s = (struct undo_store)UNDO_INIT;
    s->dir = store_find(&s->place, "undo");
    if (s->dir >= 0 || !create)
        return;
    if (place_open(&s->place, &s->why) == 0)
        s->dir = place_subdir(&s->place, "undo", true, &s->why);
}

void undo_close(struct undo_store *s)
{
    if (s->pending_dir != s->dir)
        io_close(&s->pending_dir);
    io_close(&s->dir); /* and gives the lock back */
    place_release(&s->place);
}

static int lock(struct undo_store *s)
{
    if (s->dir < 0)
        return -1;
    if (!s->locked)
        s->locked = edit_lock(s->dir, STORE_WAIT_MS);
    return s->locked ? 0 : err_set(&s->why, ERR_TOOL, "the undo history is in use by another process");
}

static void unlock(struct undo_store *s)
{
    if (s->locked)
        flock(s->dir, LOCK_UN);
    s->locked = false;
}

bool undo_is_of(const struct entry_item *item, const struct entry_key *key, const struct stat *st)
{
    return item->key.path == key->path || (st && item->key.inode == key->inode);
}

/* An entry that was found by the inode alone is this file's when its path leads here too (another hard link),
 * or when nobody has touched the content since (the file was moved); else the inode's number has been given
 * to another file. */
static bool is_same_file(const struct entry *e, const struct edit_path *p, const char *content,
                         size_t n_content)
{
    char path[PATH_MAX];
    struct stat st;
    size_t n = e->head.n_path;
    if (n == strlen(p->real) && memcmp(e->path, p->real, n) == 0)
        return true;
    if (n >= sizeof path || e->head.inode != p->st.st_ino)
        return false;
    memcpy(path, e->path, n);
    path[n] = '\0';
    if (lstat(path, &st) == 0)
        return st.st_dev == p->st.st_dev && st.st_ino == p->st.st_ino;
    return e->head.after == content_sum(content, n_content);
}

/* Whether an entry that isn't simply kept, because an edit or an undo was interrupted, is one that can be
 * undone. The content says on which side of it the file is. */
static bool can_be_undone(const struct entry *e, enum entry_state state, const char *content, size_t n)
{
    /* Of a created file whose undoing was interrupted: else it was deleted, and somebody made another one. */
    if (state == ENTRY_FRESH || e->head.kind == ENTRY_CREATED)
        return e->head.after == content_sum(content, n);
    return n != e->head.n_old || memcmp(content, e->old, n) != 0;
}

/* `content` NULL: there is no file. */
static void settle(struct undo_store *s, struct entry_item *item, const struct edit_path *p,
                   const char *content, size_t n)
{
    struct entry e ENTRY_AUTO = ENTRY_INIT;
    bool keep = false;
    if (content && entry_read(&e, s->dir, item->name) == 0) {
        if (!is_same_file(&e, p, content, n))
            return;
        keep = can_be_undone(&e, item->state, content, n);
    } else if (content && errno != EBADMSG) {
        return;
    }
    if (keep) {
        (void)!entry_set_state(s->dir, item, ENTRY_KEPT);
    } else {
        unlinkat(s->dir, item->name, 0);
        item->key = (struct entry_key){0, 0}; /* nobody's */
    }
}

static int list_settled(struct undo_store *s, struct entry_list *list, const struct edit_path *p,
                        const char *content, size_t n)
{
    if (entry_list(list, s->dir) < 0)
        return -1;
    const struct stat *st = p->exists ? &p->st : NULL;
    struct entry_key key = entry_key(p->real, &p->st);
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].state != ENTRY_KEPT && undo_is_of(&list->items[i], &key, st))
            settle(s, &list->items[i], p, content, n);
    return 0;
}

/* Returns the descriptor of the directory that takes the entry, -1 with why. */
static int pending_dir(struct undo_store *s, bool in_place)
{
    if (!in_place)
        return s->dir;
    return place_subdir(&s->place, "journal", true, &s->why);
}

static void leave_journal(struct undo_store *s)
{
    if (s->pending_dir >= 0 && s->pending_dir != s->dir)
        unlinkat(s->place.fd, "journal", AT_REMOVEDIR); /* when it is empty */
}

static void describe(struct entry *e, const struct undo_change *c, const struct stat *after)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    e->head = (struct entry_head){.kind = c->kind,
                                  .time = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec,
                                  .inode = after->st_ino,
                                  .after = content_sum_spliced(c->old, c->n_old, &c->splice),
                                  .at = c->splice.at,
                                  .cut = c->splice.cut,
                                  .n_old = c->n_old,
                                  .n_path = strlen(c->path->real)};
    e->path = c->path->real;
    e->old = c->old;
}

static uint64_t charge(const struct entry_item *item)
{
    return item->size > UNDO_ENTRY_MIN ? item->size : UNDO_ENTRY_MIN;
}

/* Whether the history is beyond its limits with one entry of this file more. */
static bool is_crowded(const struct entry_list *list, const struct entry_item *more)
{
    uint64_t total = charge(more);
    size_t of_file = 1;
    for (size_t i = 0; i < list->n; i++) {
        total += charge(&list->items[i]);
        of_file += undo_is_of(&list->items[i], &more->key, NULL);
    }
    return total > UNDO_TOTAL_MAX || of_file > EDIT_UNDO_DEPTH;
}

/* A file system that is smaller than the history may be: drops the oldest entries until as much is free as is
 * wanted. False when even all of them are not that much. */
static bool make_room(struct undo_store *s, const struct entry_list *list, uint64_t size)
{
    uint64_t held = 0;
    size_t n = 0;
    while (n < list->n && held < size)
        held += list->items[n++].size;
    for (size_t i = 0; held >= size && i < n; i++)
        unlinkat(s->dir, list->items[i].name, 0);
    return held >= size;
}

static void write_pending(struct undo_store *s, const struct entry *e, const struct entry_list *list,
                          bool in_place)
{
    entry_name(&s->pending);
    s->pending_dir = pending_dir(s, in_place);
    if (s->pending_dir >= 0 && entry_write(e, s->pending_dir, s->pending.name, s->dir) == 0)
        return;
    if (s->pending_dir >= 0 && (errno == ENOSPC || errno == EDQUOT) && make_room(s, list, entry_size(e)) &&
        entry_write(e, s->pending_dir, s->pending.name, s->dir) == 0)
        return;
    if (s->pending_dir >= 0)
        err_sys(&s->why, ERR_TOOL, errno, "the undo history can't be written");
    s->pending.name[0] = '\0';
    leave_journal(s);
}

void undo_prepare(struct undo_store *s, const struct undo_change *c, const struct stat *after, bool in_place)
{
    struct entry_list list;
    struct entry e = ENTRY_INIT;
    if (lock(s) < 0)
        return;
    struct entry_key key = entry_key(c->path->real, after);
    const char *content = c->kind == ENTRY_CREATED ? NULL : c->old;
    /* An undo has seen to that already, and has one of its own under way. */
    if ((c->kind == ENTRY_UNDO ? entry_list(&list, s->dir)
                               : list_settled(s, &list, c->path, content, c->n_old)) < 0) {
        err_sys(&s->why, ERR_TOOL, errno, "the undo history can't be read");
        return;
    }
    describe(&e, c, after);
    if (in_place) {
        e.put = c->splice.put;
        e.head.n_put = c->splice.n_put;
    }
    entry_seal(&e);
    s->keep = c->kind != ENTRY_UNDO && entry_size(&e) <= UNDO_TOTAL_MAX;
    if (c->kind != ENTRY_UNDO && !s->keep)
        err_set(&s->why, ERR_TOOL, "the file is larger than the undo history may be (%llu MiB)",
                UNDO_TOTAL_MAX >> 20);
    s->pending = (struct entry_item){.key = key,
                                     .order = list.n > 0 ? list.items[list.n - 1].order + 1 : 1,
                                     .size = entry_size(&e),
                                     .state = in_place ? ENTRY_KEPT : ENTRY_FRESH};
    s->crowded = is_crowded(&list, &s->pending);
    if (s->keep || in_place)
        write_pending(s, &e, &list, in_place);
    entry_list_release(&list);
}

/* Drops the file's oldest entries beyond the depth, then anybody's oldest beyond the total. */
static void trim(struct undo_store *s, const struct entry_key *key)
{
    struct entry_list list;
    if (entry_list(&list, s->dir) < 0)
        return;
    uint64_t total = 0;
    size_t of_file = 0;
    for (size_t i = 0; i < list.n; i++) {
        total += charge(&list.items[i]);
        of_file += undo_is_of(&list.items[i], key, NULL);
    }
    for (size_t i = 0; i < list.n; i++) {
        bool deep = undo_is_of(&list.items[i], key, NULL) && of_file > EDIT_UNDO_DEPTH;
        if (!deep && total <= UNDO_TOTAL_MAX)
            continue;
        entry_drop(s->dir, &list.items[i]);
        total -= charge(&list.items[i]);
        of_file -= undo_is_of(&list.items[i], key, NULL);
    }
    entry_list_release(&list);
}

void undo_done(struct undo_store *s)
{
    if (s->pending.name[0] != '\0') {
        struct entry_item kept = s->pending;
        kept.state = ENTRY_KEPT;
        entry_name(&kept);
        if (!s->keep)
            unlinkat(s->pending_dir, s->pending.name, 0);
        else if (renameat(s->pending_dir, s->pending.name, s->dir, kept.name) < 0)
            err_sys(&s->why, ERR_TOOL, errno, "the undo history can't be written");
        else if (s->crowded)
            trim(s, &kept.key);
        leave_journal(s);
    }
    s->pending.name[0] = '\0';
    unlock(s);
}

void undo_failed(struct undo_store *s, bool mixed)
{
    if (s->pending.name[0] != '\0' && !mixed) {
        unlinkat(s->pending_dir, s->pending.name, 0);
        leave_journal(s);
    }
    s->pending.name[0] = '\0';
    unlock(s);
}

static int refuse_unreadable(struct undo_store *s, const struct entry_item *item, const struct edit_path *p,
                             struct err *err)
{
    if (errno != EBADMSG)
        return err_set(err, ERR_TOOL,
                       "Nothing was undone: the last edit of %s can't be read from the undo history: %s",
                       p->shown, edit_errno(errno));
    unlinkat(s->dir, item->name, 0);
    return err_set(err, ERR_TOOL,
                   "Nothing was undone: the last edit of %s in the undo history is damaged and was dropped; "
                   "another `undo_edit` "
                   "takes back the edit before it",
                   p->shown);
}

int undo_newest(struct undo_store *s, const struct edit_path *p, const struct edit_file *f,
                struct entry_item *item, struct entry *e, struct err *err)
{
    struct entry_list list;
    if (s->dir < 0)
        return 0;
    struct entry_key key = entry_key(p->real, &f->st);
    if (lock(s) < 0)
        return err_set(err, ERR_TOOL, "Nothing was undone: %s", s->why.msg);
    if (list_settled(s, &list, p, buf_str(&f->data), f->data.len) < 0)
        return err_set(err, ERR_TOOL, "Nothing was undone: the undo history can't be read: %s",
                       edit_errno(errno));
    int found = 0;
    for (size_t i = list.n; i-- > 0 && found == 0;) {
        *item = list.items[i];
        if (item->state != ENTRY_KEPT || !undo_is_of(item, &key, &f->st))
            continue;
        if (entry_read(e, s->dir, item->name) == 0)
            found = is_same_file(e, p, buf_str(&f->data), f->data.len);
        else if (item->key.path == key.path)
            found = refuse_unreadable(s, item, p, err);
        if (found == 0)
            entry_release(e);
    }
    entry_list_release(&list);
    unlock(s);
    return found;
}

void undo_begin(struct undo_store *s, struct entry_item *item)
{
    /* Where that can't be said, an undo that is interrupted may have to be repeated: no reason not to undo.
     */
    (void)!entry_set_state(s->dir, item, ENTRY_UNDOING);
}

void undo_end(struct undo_store *s, struct entry_item *item, bool undone)
{
    if (undone)
        entry_drop(s->dir, item);
    else if (item->state != ENTRY_KEPT)
        (void)!entry_set_state(s->dir, item, ENTRY_KEPT);
}

static void show_entry(const struct entry *e, size_t number, struct buf *out)
{
    time_t when = (time_t)(e->head.time / 1000000000ULL);
    struct tm tm;
    buf_addf(out, "%3zu  ", number);
    if (gmtime_r(&when, &tm)) /* strftime would bring the time zones of all the world along */
        buf_addf(out, "%04d-%02d-%02d %02d:%02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
    buf_adds(out, "  ");
    if (e->head.kind == ENTRY_CREATED)
        buf_addf(out, "created\n");
    else
        buf_addf(out, "edited at byte %llu; %llu bytes before\n", (unsigned long long)e->head.at,
                 (unsigned long long)e->head.n_old);
}

size_t undo_show(struct undo_store *s, const struct edit_path *p, struct buf *out)
{
    struct entry_list list;
    size_t count = 0;
    const struct stat *st = p->exists ? &p->st : NULL;
    struct entry_key key = entry_key(p->real, &p->st);
    if (s->dir < 0 || entry_list(&list, s->dir) < 0)
        return 0;
    for (size_t i = list.n; i-- > 0;) {
        struct entry e ENTRY_AUTO = ENTRY_INIT;
        if (list.items[i].state != ENTRY_KEPT || !undo_is_of(&list.items[i], &key, st))
            continue;
        if (entry_read(&e, s->dir, list.items[i].name) == 0)
            show_entry(&e, ++count, out);
        else
            buf_addf(out, "%3zu  damaged\n", ++count);
    }
    entry_list_release(&list);
    return count;
}
