/* Expressions for searches, and lines that they are sought in: the input is one of each, with a newline
 * between. Where a match is said to begin, one begins: of the expression with an anchor in front of it in the
 * rest of the line. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "expression.h"
#include "mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool matches_at_begin(const char *pattern, bool ignore_case, const char *line, size_t n)
{
    const char *wrong;
    char *anchored MEM_AUTO = mem_printf("^(%s)", pattern);
    struct expression *e = expression_make(anchored, ignore_case, &wrong);
    bool found = !e || expression_find(e, line, n) == 0;
    expression_free(e);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *lf = size > 0 ? memchr(data, '\n', size) : NULL;
    if (!lf)
        return 0;
    size_t n_pattern = (size_t)(lf - (const char *)data), n = size - n_pattern - 1;
    char *pattern MEM_AUTO = mem_dup((const char *)data, n_pattern);
    bool ignore_case = n_pattern % 2;
    const char *wrong = NULL;
    struct expression *e = expression_make(pattern, ignore_case, &wrong);
    if (!e) {
        assert(wrong);
        return 0;
    }
    ptrdiff_t at = expression_find(e, lf + 1, n);
    assert(at >= -1 && at <= (ptrdiff_t)n);
    /* An anchor or an edge sees what is in front, and a parenthesis too many isn't the same inside of others.
     */
    if (at >= 0 && !strpbrk(pattern, "^\\)"))
        assert(matches_at_begin(pattern, ignore_case, lf + 1 + at, n - (size_t)at));
    expression_free(e);
    return 0;
}
