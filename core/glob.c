#include "glob.h"

#include <stddef.h>
#include <string.h>

#include "utf8.h"

#define BRACES_MAX 8 /* nested */

struct match {
    unsigned steps; /* left */
};

static bool at(struct match *m, const char *p, const char *t);

/* Bytes of the character at t, which isn't the end. */
static size_t char_length(const char *t)
{
    bool whole;
    return utf8_sequence(t, strnlen(t, 4), &whole);
}

static int compare(const char *a, size_t n, const char *b, size_t m)
{
    if (n != m)
        return n < m ? -1 : 1; /* as code points: shorter ones are smaller */
    return memcmp(a, b, n);
}

/* The end of a bracket expression that begins at p ('['); NULL: it has none. */
static const char *bracket_end(const char *p)
{
    p++;
    p += *p == '!' || *p == '^';
    for (bool first = true; *p && (first || *p != ']'); first = false)
        p += *p == '\\' && p[1] ? 1 + char_length(p + 1) : char_length(p);
    return *p ? p : NULL;
}

static bool in_bracket(const char *p, const char *end, const char *t, size_t n)
{
    bool negated = p[1] == '!' || p[1] == '^', found = false;
    p += 1 + negated;
    while (p < end) {
        p += *p == '\\'; /* has something behind it (bracket_end) */
        const char *low = p;
        size_t n_low = char_length(p), n_high = n_low;
        const char *high = low;
        p += n_low;
        if (*p == '-' && p + 1 < end) {
            p += 1 + (p[1] == '\\');
            high = p;
            n_high = char_length(p);
            p += n_high;
        }
        found = found || (compare(low, n_low, t, n) <= 0 && compare(t, n, high, n_high) <= 0);
    }
    return found != negated;
}

/* Behind the next ',' or '}' of the braces that p is in; *last: it was the '}'. NULL: there is none. */
static const char *next_choice(const char *p, bool *last)
{
    for (unsigned depth = 0; *p; p++) {
        if (*p == '\\' && p[1]) {
            p++;
        } else if (*p == '[' && bracket_end(p)) {
            p = bracket_end(p);
        } else if (*p == '{') {
            depth++;
        } else if (depth > 0 && *p == '}') {
            depth--;
        } else if (depth == 0 && (*p == ',' || *p == '}')) {
            *last = *p == '}';
            return p + 1;
        }
    }
    return NULL;
}

/* p: behind the '{'. Each choice is tried with what is behind the braces. */
static bool match_choices(struct match *m, const char *p, const char *t)
{
    char joined[4096];
    bool last = false;
    const char *rest = p;
    while (rest && !last)
        rest = next_choice(rest, &last);
    if (!rest)
        return false;
    last = false;
    for (const char *choice = p; !last;) {
        const char *next = next_choice(choice, &last);
        size_t n = (size_t)(next - choice) - 1, n_rest = strlen(rest);
        if (n + n_rest >= sizeof joined)
            return false;
        memcpy(joined, choice, n);
        memcpy(joined + n, rest, n_rest + 1);
        if (at(m, joined, t))
            return true;
        choice = next;
    }
    return false;
}

/* p: behind "**". */
static bool match_components(struct match *m, const char *p, const char *t)
{
    if (*p == '\0')
        return true;
    for (p++; t; t = strchr(t, '/'), t = t ? t + 1 : NULL)
        if (at(m, p, t))
            return true;
    return false;
}

static bool match_star(struct match *m, const char *p, const char *t)
{
    while (*p == '*')
        p++;
    for (;; t++) {
        if (at(m, p, t))
            return true;
        if (*t == '\0' || *t == '/')
            return false;
    }
}

static bool at(struct match *m, const char *p, const char *t)
{
    for (bool start = true;; start = false) {
        if (m->steps == 0)
            return false;
        m->steps--;
        if (*p == '*' && p[1] == '*' && (p[2] == '/' || p[2] == '\0') && (start || p[-1] == '/'))
            return match_components(m, p + 2, t);
        if (*p == '*')
            return match_star(m, p, t);
        if (*p == '{')
            return match_choices(m, p + 1, t);
        if (*t == '\0' || *p == '\0')
            return *t == *p;
        if (*p == '?' || *p == '[') {
            size_t n = char_length(t);
            const char *end = *p == '[' ? bracket_end(p) : p;
            if (*t == '/' || !end || (*p == '[' && !in_bracket(p, end, t, n)))
                return false;
            p = end + 1;
            t += n;
            continue;
        }
        p += *p == '\\' && p[1];
        if (*p++ != *t++)
            return false;
    }
}

bool glob_match(const char *pattern, const char *text)
{
    struct match m = {.steps = GLOB_STEPS};
    return at(&m, pattern, text);
}

const char *glob_check(const char *pattern)
{
    unsigned depth = 0;
    if (strlen(pattern) > 2000)
        return "is too long";
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1] == '\0')
            return "ends with a backslash";
        if (*p == '\\')
            p++;
        else if (*p == '[' && !bracket_end(p))
            return "has a '[' without ']'";
        else if (*p == '[')
            p = bracket_end(p);
        else if (*p == '{' && ++depth > BRACES_MAX)
            return "has too many '{' inside each other";
        else if (*p == '}' && depth > 0)
            depth--;
    }
    return depth > 0 ? "has a '{' without '}'" : NULL;
}

bool glob_match_file(const char *pattern, const char *path, const char *name)
{
    return glob_match(pattern, strchr(pattern, '/') ? path : name);
}

int glob_check_all(char *const *patterns, size_t n, const char *field, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *wrong = glob_check(patterns[i]);
        if (wrong)
            return err_set(err, ERR_PARAMS, "Invalid parameters: %s: '%.100s' %s", field, patterns[i], wrong);
    }
    return 0;
}
