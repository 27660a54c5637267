#include "edit_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "edit_text.h"
#include "edit_write.h"
#include "io.h"

bool journal_has(const struct edit_path *p)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    struct entry_list list;
    bool found = false;
    int dir FD_AUTO = store_find(&place, "journal");
    if (dir < 0 || entry_list(&list, dir) < 0)
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
    const struct entry_head *h = &e->head;
    if (i < h->at)
        return e->old[i];
    return i < h->at + h->n_put ? e->put[i - h->at] : e->old[i - h->n_put + h->cut];
}

enum state { IS_OLD, IS_NEW, IS_MIXED, IS_OTHER };

/* Every byte of a file whose edit was interrupted, in either direction, is its old or its new one. */
static enum state state_of(const struct entry *e, const char *now, size_t n)
{
    size_t n_old = e->head.n_old, n_new = n_old - e->head.cut + e->head.n_put;
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
    size_t n = f->data.len < e->head.n_old ? f->data.len : e->head.n_old;
    size_t same = text_common_prefix(buf_str(&f->data), e->old, n);
    struct splice s = {
        .at = same, .cut = f->data.len - same, .put = e->old + same, .n_put = e->head.n_old - same};
    if (edit_restore(f, p, &s) < 0)
        return err_set(err, ERR_TOOL, "An edit of %s was interrupted and can't be rolled back: %s", p->shown,
                       edit_errno(errno));
    return edit_file_read(f, p, err);
}

/* The interrupted edit counts as made, or what it would have taken away is at least kept. */
static void keep_in_history(const struct place *place, int journal, const struct entry_item *item)
{
    int undo FD_AUTO = place_subdir(place, "undo", true, NULL);
    if (undo < 0 || renameat(journal, item->name, undo, item->name) < 0)
        unlinkat(journal, item->name, 0);
}

static int recover_one(const struct place *place, int journal, const struct entry_item *item,
                       const struct edit_path *p, struct edit_file *f, struct err *err)
{
    struct entry e ENTRY_AUTO = ENTRY_INIT;
    if (entry_read(&e, journal, item->name) < 0) {
        if (errno != EBADMSG)
            return err_set(err, ERR_TOOL,
                           "The journal of an edit of %s that was interrupted can't be read: %s", p->shown,
                           edit_errno(errno));
        unlinkat(journal, item->name, 0); /* it wasn't complete, so the file had not been touched */
        return 0;
    }
    enum state state = state_of(&e, buf_str(&f->data), f->data.len);
    if (e.head.inode != f->st.st_ino)
        state = IS_OTHER;
    if (state == IS_MIXED) {
        if (put_back(p, f, &e, err) < 0)
            return -1;
        unlinkat(journal, item->name, 0);
        return 1;
    }
    if (state != IS_OLD && e.head.kind == ENTRY_EDIT)
        keep_in_history(place, journal, item);
    else
        unlinkat(journal, item->name, 0);
    return 0;
}

int journal_recover(const struct edit_path *p, struct edit_file *f, struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    struct entry_list list;
    int dir FD_AUTO = store_find(&place, "journal");
    if (dir < 0 || entry_list(&list, dir) < 0)
        return 0;
    struct entry_key key = entry_key(p->real, &f->st);
    int rc = 0;
    for (size_t i = list.n; i-- > 0 && rc >= 0;) {
        if (!undo_is_of(&list.items[i], &key, &f->st))
            continue;
        int one = recover_one(&place, dir, &list.items[i], p, f, err);
        rc = one < 0 ? -1 : rc | one;
    }
    entry_list_release(&list);
    unlinkat(place.fd, "journal", AT_REMOVEDIR);
    return rc;
}
