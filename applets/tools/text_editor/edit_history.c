#include "edit_history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "text_editor_types.h"

enum { STORE_WAIT_MS = 10000 };

/* The first place that has a history. */
static void find(struct undo_store *s)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; s->dir < 0 && place_candidate(n, &path); n++) {
        if (place_enter(&s->place, path.data, false, NULL) == 0)
            s->dir = place_subdir(&s->place, "undo", false, NULL);
        if (s->dir < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
            s->lack = errno;
        if (s->dir < 0)
            place_release(&s->place);
    }
}

void undo_open(struct undo_store *s, bool create)
{
    s->lack = 0;
    if (s->dir < 0)
        find(s);
    if (s->dir < 0 && create && place_open(&s->place, &s->why) == 0)
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
static bool is_same_file(const struct entry *e, const struct edit_path *p, const struct entry_key *key,
                         const char *content, size_t n_content)
{
    char path[PATH_MAX];
    struct stat st;
    if (e->item.key.path == key->path)
        return true;
    if (e->n_path > 0 && e->n_path < sizeof path) {
        memcpy(path, e->path, e->n_path);
        path[e->n_path] = '\0';
        if (lstat(path, &st) == 0)
            return st.st_dev == p->st.st_dev && st.st_ino == p->st.st_ino;
    }
    return entry_led_to(e, content, n_content);
}

/* Whether an entry that isn't simply kept, because an edit or an undo was interrupted, is one that can be
 * undone. The content says on which side of it the file is. */
static bool can_be_undone(const struct entry *e, const struct edit_path *p, const char *content, size_t n)
{
    if (e->st.st_dev == p->st.st_dev && e->st.st_ino == p->st.st_ino)
        return false; /* the file is still the old one */
    /* Of a created file: else it was not made, or deleted, and somebody made another one. */
    if (e->item.kind == ENTRY_CREATED)
        return entry_led_to(e, content, n);
    return n != e->item.n_old || memcmp(content, e->old, n) != 0 ||
           (e->item.state == ENTRY_FRESH && entry_led_to(e, content, n));
}

/* `content` NULL: there is no file. */
static void settle(struct undo_store *s, struct entry_item *item, const struct edit_path *p,
                   const struct entry_key *key, const char *content, size_t n)
{
    struct entry e ENTRY_AUTO = ENTRY_INIT;
    bool keep = false;
    if (content && entry_read(&e, s->dir, item) == 0) {
        if (!is_same_file(&e, p, key, content, n))
            return;
        keep = can_be_undone(&e, p, content, n);
    } else if (content) {
        /* Of a damaged one the name still says whether there was an edit, which then can't be undone. */
        if (errno != EBADMSG)
            return;
        bool old = item->kind == ENTRY_EDIT && entry_is_old(item, content, n);
        keep = !old && (item->key.inode == key->inode || entry_seems_made(item, content, n));
    }
    if (keep) {
        (void)!entry_move(item, s->dir, s->dir, ENTRY_KEPT);
    } else {
        entry_remove(item, s->dir);
        item->key = (struct entry_key){0, 0}; /* nobody's */
    }
}

static bool is_open(const struct entry_item *item)
{
    return item->state == ENTRY_FRESH || item->state == ENTRY_UNDOING;
}

static int list_settled(struct undo_store *s, struct entry_list *list, const struct edit_path *p,
                        const char *content, size_t n)
{
    if (entry_list(list, s->dir) < 0)
        return -1;
    const struct stat *st = p->exists ? &p->st : NULL;
    struct entry_key key = entry_key(p->real, &p->st);
    for (size_t i = 0; i < list->n; i++)
        if (is_open(&list->items[i]) && undo_is_of(&list->items[i], &key, st))
            settle(s, &list->items[i], p, &key, content, n);
    return 0;
}

void undo_settle(struct undo_store *s, const struct edit_path *p, const struct edit_file *f)
{
    struct entry_list list;
    if (s->dir < 0 || lock(s) < 0)
        return;
    if (list_settled(s, &list, p, buf_str(&f->data), f->data.len) == 0)
        entry_list_release(&list);
    unlock(s);
}

static void leave_journal(struct undo_store *s)
{
    if (s->pending_dir >= 0 && s->pending_dir != s->dir)
        unlinkat(s->place.fd, "journal", AT_REMOVEDIR); /* when it is empty */
}

static struct entry_item describe(const struct undo_change *c, const struct entry_list *list)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (struct entry_item){.key = entry_key(c->path->real, c->after),
                               .order = list->n > 0 ? list->items[list->n - 1].order + 1 : 1,
                               .kind = c->kind,
                               .time = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec,
                               .size = c->n_old,
                               .n_old = c->n_old,
                               .at = c->splice.at,
                               .cut = c->splice.cut,
                               .n_put = c->splice.n_put,
                               .put_sum = entry_put_sum(c->splice.put, c->splice.n_put),
                               .old_sum = entry_old_sum(c->old, c->n_old),
                               .state = c->in_place ? ENTRY_KEPT : ENTRY_FRESH};
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
        entry_remove(&list->items[i], s->dir);
    return held >= size;
}

#define OVERLAYFS 0x794c7630

/* Whether the old file itself can be the entry. In an overlay, a file of the lower layers would have to be
 * copied and synced for that; one that an edit has made is none of those. */
static bool can_link(const struct undo_change *c, const struct entry_list *list)
{
    struct statfs fs;
    if (c->kind != ENTRY_EDIT || c->in_place || fstatfs(c->path->dir, &fs) < 0)
        return false;
    if (fs.f_type != OVERLAYFS)
        return true;
    struct entry_key key = entry_key(c->path->real, c->before);
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].key.path == key.path && list->items[i].key.inode == key.inode)
            return true;
    return false;
}

static int write_pending(struct undo_store *s, const struct undo_change *c, struct entry *e,
                         const struct entry_list *list)
{
    s->linked = can_link(c, list) && entry_link(e, s->dir, c->path->dir, c->path->name, c->before) == 0;
    if (s->linked || entry_copy(e, s->pending_dir) == 0)
        return 0;
    return (errno == ENOSPC || errno == EDQUOT) && make_room(s, list, e->item.size)
               ? entry_copy(e, s->pending_dir)
               : -1;
}

static void make_pending(struct undo_store *s, const struct undo_change *c, struct entry *e,
                         const struct entry_list *list)
{
    s->pending_dir = c->in_place ? place_subdir(&s->place, "journal", true, NULL) : s->dir;
    if (s->pending_dir < 0) /* a server's policy leaves the history alone open */
        s->pending_dir = s->dir;
    s->has_pending = write_pending(s, c, e, list) == 0;
    s->pending = e->item;
    if (s->has_pending)
        return;
    err_sys(&s->why, ERR_TOOL, errno, "the undo history can't be written");
    leave_journal(s);
}

static int drop_all(int dir, const struct entry_list *list, const struct entry_key *key,
                    const struct stat *st)
{
    int rc = 0;
    for (size_t i = 0; i < list->n; i++)
        if (undo_is_of(&list->items[i], key, st) && entry_remove(&list->items[i], dir) < 0)
            rc = -1;
    return rc;
}

/* The newest entry that can be of the file by its path, or by its inode; NULL: there is none. */
static struct entry_item *newest(const struct entry_list *list, const struct entry_key *key, bool by_path)
{
    for (size_t i = list->n; i-- > 0;)
        if (by_path ? list->items[i].key.path == key->path : list->items[i].key.inode == key->inode)
            return &list->items[i];
    return NULL;
}

int undo_follow(struct undo_store *s, const struct entry_key *key, const struct stat *st)
{
    struct entry_list list;
    int rc = 0;
    if (entry_list(&list, s->dir) < 0)
        return -1;
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct entry_item *item = i == 0 || st ? newest(&list, key, i == 0) : NULL;
        if (!item || item->state == ENTRY_FOLLOWED)
            continue;
        if (entry_move(item, s->dir, s->dir, ENTRY_FOLLOWED) == 0)
            s->marked[i] = *item;
        else
            rc = drop_all(s->dir, &list, key, st);
    }
    int failed = errno;
    entry_list_release(&list);
    errno = failed;
    return rc;
}

/* The change isn't kept. Where a history can't be written at all, nothing can be taken back from it either.
 */
static int note_unkept(struct undo_store *s, const struct undo_change *c, struct err *err)
{
    int failed = s->lack;
    if (c->kind == ENTRY_UNDO || (s->dir < 0 && !failed))
        return 0;
    struct entry_key key = entry_key(c->path->real, c->before ? c->before : c->after);
    if (!failed && undo_follow(s, &key, c->before) < 0 && errno != EROFS)
        failed = errno;
    if (!failed)
        return 0;
    return err_set(err, ERR_TOOL,
                   "%s was not written: the undo history can't be had (%s), and `undo_edit` would take this "
                   "edit and the one before it for one",
                   c->path->shown, edit_errno(failed));
}

/* Lists the history for what is about to happen. -1: this can't be kept. */
static int list_for(struct undo_store *s, const struct undo_change *c, struct entry_list *list)
{
    const char *content = c->kind == ENTRY_CREATED ? NULL : c->old;
    if (lock(s) < 0)
        return -1;
    /* An undo has seen to that already, and has one of its own under way. */
    if ((c->kind == ENTRY_UNDO ? entry_list(list, s->dir)
                               : list_settled(s, list, c->path, content, c->n_old)) < 0)
        return err_sys(&s->why, ERR_TOOL, errno, "the undo history can't be read");
    return 0;
}

int undo_prepare(struct undo_store *s, const struct undo_change *c, struct err *err)
{
    struct entry_list list;
    memset(s->marked, 0, sizeof s->marked);
    if (list_for(s, c, &list) < 0)
        return note_unkept(s, c, err);
    struct entry e = {.item = describe(c, &list), .old = c->old};
    if (c->kind != ENTRY_CREATED) {
        e.put = c->splice.put;
        e.path = c->path->real;
        e.n_path = strlen(e.path);
    }
    s->keep = c->kind != ENTRY_UNDO && c->n_old <= UNDO_TOTAL_MAX;
    if (c->kind != ENTRY_UNDO && !s->keep)
        err_set(&s->why, ERR_TOOL, "the file is larger than the undo history may be (%llu MiB)",
                UNDO_TOTAL_MAX >> 20);
    s->crowded = is_crowded(&list, &e.item);
    if (s->keep || c->in_place)
        make_pending(s, c, &e, &list);
    entry_list_release(&list);
    if (s->has_pending && s->keep)
        return 0;
    if (note_unkept(s, c, err) == 0)
        return 0;
    undo_failed(s, false);
    return -1;
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
        entry_remove(&list.items[i], s->dir);
        total -= charge(&list.items[i]);
        of_file -= undo_is_of(&list.items[i], key, NULL);
    }
    entry_list_release(&list);
}

void undo_done(struct undo_store *s)
{
    if (s->has_pending) {
        if (!s->keep)
            entry_remove(&s->pending, s->pending_dir);
        else if (entry_move(&s->pending, s->pending_dir, s->dir, ENTRY_KEPT) < 0)
            err_sys(&s->why, ERR_TOOL, errno, "the undo history can't be written");
        else if (s->crowded)
            trim(s, &s->pending.key);
        leave_journal(s);
    }
    s->has_pending = false;
    unlock(s);
}

void undo_failed(struct undo_store *s, bool mixed)
{
    if (s->has_pending && !mixed) {
        entry_remove(&s->pending, s->pending_dir);
        leave_journal(s);
    }
    for (int i = 0; i < 2; i++)
        if (s->marked[i].order > 0)
            (void)!entry_move(&s->marked[i], s->dir, s->dir, ENTRY_KEPT); /* else the content will tell */
    s->has_pending = false;
    unlock(s);
}

/* It stays: without it, the edit in front of it would be taken for it. */
static int refuse_unreadable(const struct undo_store *s, const struct entry_item *item,
                             const struct edit_path *p, struct err *err)
{
    char name[ENTRY_NAME_MAX];
    entry_name(item, name);
    return err_set(
        err, ERR_TOOL,
        "Nothing was undone: the last edit of %s can't be, as %s. Change the file by another edit; "
        "or, to take back that edit together with the one before it, remove %s/undo/%s and call "
        "`undo_edit` again",
        p->shown,
        errno == EBADMSG ? "its entry in the undo history is damaged, or another program went on "
                           "writing into the old file"
                         : edit_errno(errno),
        s->place.path, name);
}

/* The newest entry is there; but something may have come behind it that is not. */
static int check_followed(const struct entry *e, const struct edit_path *p, const struct edit_file *f,
                          struct err *err)
{
    if (e->item.state != ENTRY_FOLLOWED || entry_led_to(e, buf_str(&f->data), f->data.len))
        return 1;
    return err_set(
        err, ERR_TOOL,
        "Nothing was undone: the last edit of %s could not be kept in the undo history, so it can't "
        "be undone, nor can those before it",
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
        if (is_open(item) || !undo_is_of(item, &key, &f->st))
            continue;
        if (entry_read(e, s->dir, item) == 0)
            found =
                is_same_file(e, p, &key, buf_str(&f->data), f->data.len) ? check_followed(e, p, f, err) : 0;
        else
            found = refuse_unreadable(s, item, p, err);
        if (found == 0)
            entry_release(e);
    }
    entry_list_release(&list);
    unlock(s);
    return found;
}

int undo_begin(struct undo_store *s, struct entry_item *item, const struct edit_path *p, struct err *err)
{
    /* Where that can't be said the entry can't be dropped either, and would be undone once more. */
    if (entry_move(item, s->dir, s->dir, ENTRY_UNDOING) == 0)
        return 0;
    return err_set(err, ERR_TOOL, "Nothing was undone: the undo history of %s can't be changed: %s", p->shown,
                   edit_errno(errno));
}

void undo_end(struct undo_store *s, struct entry_item *item, bool undone)
{
    if (undone)
        entry_remove(item, s->dir);
    else if (item->state != ENTRY_KEPT)
        (void)!entry_move(item, s->dir, s->dir, ENTRY_KEPT);
}
