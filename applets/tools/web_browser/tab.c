#include "tab.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "page_number.h"
#include "tab_internal.h"

#define MEMBER_MAX (1LL << 60)

bool member_text(struct span object, const char *key, struct buf *out)
{
    struct span value;
    return json_kind(object) == JSON_OBJECT && json_member(object, key, &value, NULL) &&
           json_string_text(value, out);
}

long long member_number(struct span object, const char *key)
{
    struct span value;
    return json_member(object, key, &value, NULL) ? page_number(value, MEMBER_MAX) : 0;
}

char *member_dup(struct span object, const char *key)
{
    struct buf text = BUF_INIT;
    return member_text(object, key, &text) ? buf_take(&text, NULL) : NULL;
}

bool member_is(struct span object, const char *key, const char *text)
{
    struct span value;
    return text && json_member(object, key, &value, NULL) && json_string_is(value, text);
}

/* ---- ids ---- */

static void ids_drop(struct ids *ids, size_t i)
{
    free(ids->list[i]);
    ids->list[i] = ids->list[--ids->n];
}

void ids_clear(struct ids *ids)
{
    while (ids->n > 0)
        ids_drop(ids, ids->n - 1);
}

void ids_set(struct ids *ids, char *id, bool there)
{
    for (size_t i = 0; id && i < ids->n; i++)
        if (strcmp(ids->list[i], id) == 0)
            ids_drop(ids, i--);
    if (id && there && ids->n < IDS_MAX)
        ids->list[ids->n++] = id;
    else
        free(id);
}

/* ---- notes ---- */

void tabs_watch(struct tabs *tabs)
{
    buf_release(&tabs->notes.text);
    tabs->notes.n = 0;
    free(tabs->notes.failure);
    tabs->notes.failure = NULL;
    downloads_watch(&tabs->downloads);
    free(tabs->chooser.session);
    tabs->chooser = (struct chooser){0};
    for (struct tab *t = tabs->first; t; t = t->next) {
        t->is.unreachable = false;
        awaited_set(&t->awaited, NULL);
        ids_clear(&t->requests);
    }
}

void tabs_note(struct tabs *tabs, const char *fmt, ...)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf note BUF_AUTO = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    json_put_string(&note, buf_str(&text), text.len);
    if (tabs->notes.n >= NOTES_MAX || strstr(buf_str(&tabs->notes.text), note.data))
        return; /* what happens again and again is said once */
    tabs->notes.n++;
    if (tabs->notes.text.len > 0)
        buf_addc(&tabs->notes.text, ',');
    buf_add(&tabs->notes.text, note.data, note.len);
}

void tabs_fail(struct tabs *tabs, char *why)
{
    free(tabs->notes.failure);
    tabs->notes.failure = why;
}

/* ---- finding ---- */

struct tab *tab_of(const struct tabs *tabs, const char *session)
{
    for (struct tab *t = tabs->first; t; t = t->next) {
        if (strcmp(t->session, session) == 0)
            return t;
        for (const struct frame *f = t->frames; f; f = f->next)
            if (strcmp(f->session, session) == 0)
                return t;
    }
    return NULL;
}

struct tab *tabs_find(const struct tabs *tabs, long long number)
{
    struct tab *t = tabs->first;
    while (t && t->number != number)
        t = t->next;
    return t;
}

void tabs_unlink(struct tabs *tabs, struct tab *tab)
{
    for (struct tab **at = &tabs->first; *at; at = &(*at)->next)
        if (*at == tab) {
            *at = tab->next;
            return;
        }
}

void tabs_make_current(struct tabs *tabs, struct tab *tab)
{
    tabs_unlink(tabs, tab);
    tab->next = tabs->first;
    tabs->first = tab;
}

const char *tab_session(const struct tab *tab, int number)
{
    if (number == 0)
        return tab->session;
    for (const struct frame *f = tab->frames; f; f = f->next)
        if (f->number == number)
            return f->session;
    return NULL;
}
