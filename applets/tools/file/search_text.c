#include "tools/file/search_text.h"

#include <string.h>

enum { WIDTH = 16 };
typedef unsigned char block __attribute__((vector_size(WIDTH), aligned(1), may_alias));
typedef unsigned long long halves __attribute__((vector_size(WIDTH)));

static bool is_letter(unsigned char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26;
}

static bool is_at(const struct search_text *t, const char *at)
{
    size_t i = 0;
    while (i < t->n && (at[i] | (t->any_case && is_letter((unsigned char)at[i]) ? 0x20 : 0)) == t->s[i])
        i++;
    return i == t->n;
}

/* Looks at the text's first and its last byte. */
const char *search_text_find(const struct search_text *t, const char *in, size_t n)
{
    if (n < t->n)
        return NULL;
    const char *end = in + (n - t->n) + 1;
    unsigned char first = (unsigned char)t->s[0], last = (unsigned char)t->s[t->n - 1];
    unsigned char fold_first = t->any_case && is_letter(first) ? 0x20 : 0;
    unsigned char fold_last = t->any_case && is_letter(last) ? 0x20 : 0;
    for (; end - in >= WIDTH; in += WIDTH) {
        block a = *(const block *)in | fold_first, b = *(const block *)(in + t->n - 1) | fold_last;
        halves both = (halves)((a == first) & (b == last));
        for (int i = 0; (both[0] | both[1]) != 0 && i < WIDTH; i++)
            if (is_at(t, in + i))
                return in + i;
    }
    while (in < end && !is_at(t, in))
        in++;
    return in < end ? in : NULL;
}

/* Behind the bracket that ends what one before `p` has begun. */
static const char *behind_bracket(const char *p)
{
    p += *p == '^';
    do {
        const char *class = p[0] == '[' && p[1] == ':' ? strstr(p, ":]") : NULL;
        p = class ? class + 2 : p + (*p != '\0');
    } while (*p && *p != ']');
    return p + (*p == ']');
}

static const char *behind_group(const char *p)
{
    for (int depth = 1; *p && depth > 0;) {
        char c = *p++;
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == '[')
            p = behind_bracket(p);
        else if (c == '\\' && *p)
            p++;
    }
    return p;
}

/* Behind the thing at `p`; *c is the character of ASCII that it stands for, or NUL. */
static const char *behind_one(const char *p, char *c)
{
    bool escaped = *p == '\\';
    p += escaped;
    *c = *p++;
    bool is_none =
        escaped ? is_letter((unsigned char)*c) || *c == '<' || *c == '>' : strchr("([.^$", *c) != NULL;
    if (!escaped && *c == '(')
        p = behind_group(p);
    else if (!escaped && *c == '[')
        p = behind_bracket(p);
    if (is_none || (*c & 0x80))
        *c = '\0';
    return p;
}

static void end_run(struct buf *run, struct buf *longest)
{
    if (run->len > longest->len) {
        buf_truncate(longest, 0);
        buf_add(longest, run->data, run->len);
    }
    buf_truncate(run, 0);
}

void search_text_of(const char *pattern, struct buf *longest)
{
    struct buf run BUF_AUTO = BUF_INIT;
    for (const char *p = pattern; *p;) {
        char c;
        bool may_lack = false;
        if (*p == '|' || (p[0] == '\\' && p[1] == 'x')) {
            buf_truncate(longest, 0);
            return;
        }
        const char *behind = p = behind_one(p, &c);
        for (; *p && strchr("*+?{", *p); p++) {
            may_lack = may_lack || *p != '+';
            if (*p == '{')
                p = strchr(p, '}');
        }
        if (c && !may_lack)
            buf_addc(&run, c);
        if (!c || p > behind)
            end_run(&run, longest);
    }
    end_run(&run, longest);
}
