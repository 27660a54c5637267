/* Any bytes as a file, an old_str and a new_str (the first two bytes say how long those are): what matches is
 * replaced there and nowhere else, every refusal is one, and every view is UTF-8 and within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/text_editor/edit_match.h"
#include "tools/text_editor/edit_path.h"
#include "tools/text_editor/edit_text.h"
#include "tools/text_editor/edit_view.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_view(const char *s, size_t n)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct buf again BUF_AUTO = BUF_INIT;
    struct view v;
    view_begin(&v, &out, 1);
    if (view_feed(&v, s, n, -1))
        view_end_of_text(&v);
    view_notes(&v, (long long)n);
    require(out.len > 0 && out.data[out.len - 1] == '\n' && utf8_is_valid(out.data, out.len));
    require(utf8_count(out.data, out.len) < EDIT_ANSWER_MAX + 1000 && !memchr(out.data, '\r', out.len));
    view_begin(&v, &again, 1);
    for (size_t i = 0; i < n && view_feed(&v, s + i, 1, -1); i++)
        ;
    if (!v.full)
        view_end_of_text(&v);
    view_notes(&v, (long long)n);
    require(out.len == again.len && memcmp(out.data, again.data, out.len) == 0);
}

static void check_match(const char *s, size_t n, const struct text *old, const struct text *new, bool all)
{
    struct edit_wish wish = {old, new, all, 0};
    struct edit_found found EDIT_FOUND_AUTO = EDIT_FOUND_INIT;
    struct err err = {0};
    const char *first = old->n > 0 ? memmem(s, n, old->s, old->n) : NULL;
    if (edit_match(s, n, &wish, "f", &found, &err) < 0) {
        require(err.code == ERR_TOOL && err.msg[0] && utf8_is_valid(err.msg, strlen(err.msg)));
        return;
    }
    const struct splice splice = found.s;
    require(found.count == 1 || all);
    require(splice.at <= n && splice.cut <= n - splice.at && old->n > 0);
    if (found.count > 1)
        return;
    if (first)
        require(splice.at == (size_t)(first - s) && splice.cut == old->n);
    else
        require(splice.cut > old->n); /* CRs that old_str doesn't have */
    if (!found.crlf)
        require(splice.n_put == new->n && (new->n == 0 || memcmp(splice.put, new->s, new->n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *s = (const char *)data + 2;
    size_t n = size - 2, n_old = data[0] < n ? data[0] : n, n_new = data[1] < n - n_old ? data[1] : n - n_old;
    struct text old = {(char *)s, n_old}, new = {(char *)s + n_old, n_new};
    check_match(s + n_old + n_new, n - n_old - n_new, &old, &new, false);
    check_match(s + n_old + n_new, n - n_old - n_new, &old, &new, true);
    check_view(s, n);
    char *shown = edit_path_shown(s, n, n % 2 ? 100 : 0);
    require(utf8_is_valid(shown, strlen(shown)) && (n % 2 == 0 || strlen(shown) <= 104));
    free(shown);
    return 0;
}
