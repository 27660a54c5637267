/* The undo history of a file, to be read by a person. */
#include <time.h>

#include "edit_history.h"

static void show_entry(const struct entry_item *item, size_t number, struct buf *out)
{
    time_t when = (time_t)(item->time / 1000000000ULL);
    struct tm tm;
    buf_addf(out, "%3zu  ", number);
    if (gmtime_r(&when, &tm)) /* strftime would bring the time zones of all the world along */
        buf_addf(out, "%04d-%02d-%02d %02d:%02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
    buf_adds(out, "  ");
    if (item->kind == ENTRY_CREATED)
        buf_addf(out, "created\n");
    else
        buf_addf(out, "edited at byte %llu; %llu bytes before\n", (unsigned long long)item->at,
                 (unsigned long long)item->n_old);
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
        const struct entry_item *item = &list.items[i];
        if ((item->state == ENTRY_FRESH || item->state == ENTRY_UNDOING) || !undo_is_of(item, &key, st))
            continue;
        if (item->state == ENTRY_FOLLOWED) {
            buf_adds(out,
                     "     an edit that could not be kept; it can't be undone, nor can those before it\n");
            count++;
            break;
        }
        show_entry(item, ++count, out);
    }
    entry_list_release(&list);
    return count;
}
