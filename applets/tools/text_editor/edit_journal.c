#include "edit_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "edit_text.h"
#include "edit_write.h"
#include "io.h"

/* The entries of the journal and its directory, -1 when there is none: all but always. */
static int open_journal(const struct undo_store *s, struct entry_list *list)
{
    int dir = s->place.fd < 0 ? -1 : place_subdir(&s->place, "journal", false, NULL);
    if (dir >= 0 && entry_list(list, dir) < 0)
        io_close(&dir);
    return dir;
}

bool journal_has(const struct undo_store *s, const struct edit_path *p)
{
    struct entry_list list;
    bool found = false;
    int dir FD_AUTO = open_journal(s, &list);
    if (dir < 0)
        return false;
    struct entry_key key = entry_key(p->real, &p->st);
    for (size_t i = 0; i < list.n && !found; i++)
        found = undo_is_of(&list.items[i], &key, &p->st);
    entry_list_release(&list);
    return found;
}

/* What the file would hold after the edit, at offset i. */
static char new_byte(const struct entry *e, size_t i)
{
    const struct entry_item *c = &e->item;
    if (i < c->at)
        return e->old[i];
    return i < c->at + c->n_put ? e->put[i - c->at] : e->old[i - c->n_put + c->cut];
}

enum state { IS_OLD, IS_NEW, IS_MIXED, IS_OTHER };

/* Every byte of a file whose edit was interrupted, in either direction, is its old or its new one. */
static enum state state_of(const struct entry *e, const char *now, size_t n)
{
    size_t n_old = e->item.n_old, n_new = n_old - e->item.cut + e->item.n_put;
    bool old = n == n_old, new = n == n_new;
    if (n > (n_old > n_new ? n_old : n_new) || n < (n_old < n_new ? n_old : n_new))
        return IS_OTHER;
    for (size_t i = 0; i < n; i++) {
        bool as_old = i < n_old && now[i] == e->old[i], as_new = i < n_new && now[i] == new_byte(e, i);
        if (!as_old && !as_new)
            return IS_OTHER;
        old = old && as_old;
        new = new &&as_new;
    }
    return old ? IS_OLD : new ? IS_NEW : IS_MIXED;
}

static int put_back(const struct edit_path *p, struct edit_file *f, const struct entry *e, struct err *err)
{
    size_t n = f->data.len < e->item.n_old ? f->data.len : e->item.n_old;
    size_t same = text_common_prefix(buf_str(&f->data), e->old, n);
    struct splice s = {
        .at = same, .cut = f->data.len - same, .put = e->old + same, .n_put = e->item.n_old - same};
    if (edit_restore(f, p, &s) < 0)
        return err_set(err, ERR_TOOL, "An edit of %s was interrupted and can't be rolled back: %s", p->shown,
                       edit_errno(errno));
    return edit_file_read(f, p, err);
}

/* The journal's entry can't be applied. What its edit may have left is told once, and the entry goes into the
 * history, where it says that this edit can't be undone; of an undo, the entry that it applied is there. */
static int recover_damaged(struct undo_store *s, int journal, struct entry_item *item,
                           const struct edit_path *p, const struct edit_file *f, struct err *err)
{
    const char *now = buf_str(&f->data);
    if (entry_seems_made(item, now, f->data.len)) {
        if (item->kind == ENTRY_EDIT && entry_move(item, journal, s->dir, ENTRY_KEPT) < 0)
            return err_set(err, ERR_TOOL,
                           "An edit of %s was interrupted, and its journal is damaged and can't be moved: %s",
                           p->shown, edit_errno(errno));
        if (item->kind != ENTRY_EDIT)
            entry_remove(item, journal);
        return err_set(err, ERR_TOOL,
                       "An edit of %s was interrupted, and the journal that would roll it back is damaged: a "
                       "part of the edit may be in the file. Nothing was done; look at the file with `view`, "
                       "then go on",
                       p->shown);
    }
    entry_remove(item, journal); /* the file had not been touched */
    return 0;
}

static int recover_one(struct undo_store *s, int journal, struct entry_item *item, const struct edit_path *p,
                       struct edit_file *f, struct err *err)
{
    struct entry e ENTRY_AUTO = ENTRY_INIT;
    if (entry_read(&e, journal, item) < 0) {
        if (errno != EBADMSG)
            return err_set(err, ERR_TOOL,
                           "The journal of an edit of %s that was interrupted can't be read: %s", p->shown,
                           edit_errno(errno));
        return recover_damaged(s, journal, item, p, f, err);
    }
    bool other = item->key.inode != entry_key(p->real, &f->st).inode || !e.put;
    enum state state = other ? IS_OTHER : state_of(&e, buf_str(&f->data), f->data.len);
    if (state == IS_MIXED && put_back(p, f, &e, err) < 0)
        return -1;
    /* The interrupted edit counts as made, or what it would have taken away is at least kept. */
    bool keep = (state == IS_NEW || state == IS_OTHER) && item->kind == ENTRY_EDIT;
    if (keep && entry_move(item, journal, s->dir, ENTRY_KEPT) == 0)
        return 0;
    struct entry_key key = entry_key(p->real, &f->st);
    if (keep && s->dir >= 0 && undo_follow(s, &key, &f->st) < 0 && errno != EROFS)
        return err_set(err, ERR_TOOL, "An edit of %s was interrupted, and can't be kept to be undone: %s",
                       p->shown, edit_errno(errno));
    entry_remove(item, journal);
    return state == IS_MIXED;
}

int journal_recover(struct undo_store *s, const struct edit_path *p, struct edit_file *f, struct err *err)
{
    struct entry_list list;
    int dir FD_AUTO = open_journal(s, &list);
    if (dir < 0)
        return 0;
    struct entry_key key = entry_key(p->real, &f->st);
    int rc = 0;
    for (size_t i = list.n; i-- > 0 && rc >= 0;) {
        if (!undo_is_of(&list.items[i], &key, &f->st))
            continue;
        int one = recover_one(s, dir, &list.items[i], p, f, err);
        rc = one < 0 ? -1 : rc | one;
    }
    entry_list_release(&list);
    unlinkat(s->place.fd, "journal", AT_REMOVEDIR);
    return rc;
}
