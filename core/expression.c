#include "expression.h"

#include <stdlib.h>
#include <string.h>

#include "expression_steps.h"
#include "hex.h"
#include "mem.h"

enum { DEPTH_MAX = 200, REPEAT_MAX = 255, STEPS_MAX = 20000, RANGES_MAX = 20000, ANY = -1 };

struct parser {
    struct expression *e;
    const char *at;
    unsigned depth; /* of parentheses */
    bool ignore_case;
    const char *wrong; /* NULL: nothing so far */
};

static void choice(struct parser *p);

static void fail(struct parser *p, const char *wrong)
{
    if (!p->wrong)
        p->wrong = wrong;
}

static bool take(struct parser *p, char c)
{
    bool there = *p->at == c;
    p->at += there;
    return there;
}

/* ---- steps ---- */

static void insert(struct parser *p, size_t at, const struct expression_step *steps, size_t n)
{
    enum { SIZE = sizeof *steps };
    if (n > 0 && buf_replace(&p->e->steps, at * SIZE, 0, steps, n * SIZE) < 0)
        fail(p, "is too large: less or smaller repetitions, please");
}

static void add(struct parser *p, struct expression_step step)
{
    insert(p, expression_count(p->e), &step, 1);
}

static struct expression_step go(enum expression_op op, size_t first, size_t second)
{
    return (struct expression_step){.op = (unsigned char)op, .to = {(int)first, (int)second}};
}

/* ---- sets of characters ---- */

static void add_range(struct parser *p, unsigned first, unsigned last)
{
    struct expression_range range = {first, last};
    if (buf_add(&p->e->ranges, &range, sizeof range) < 0)
        fail(p, "is too large: it has too many characters in brackets");
}

/* Those of the range that are letters from `a` to `z`, in the case whose first letter is `other`. */
static void add_other_case(struct parser *p, unsigned first, unsigned last, unsigned a, unsigned z,
                           unsigned other)
{
    first = first > a ? first : a;
    last = last < z ? last : z;
    if (first <= last)
        add_range(p, first - a + other, last - a + other);
}

static void put_range(struct parser *p, unsigned first, unsigned last)
{
    add_range(p, first, last);
    if (p->ignore_case) {
        add_other_case(p, first, last, 'a', 'z', 'A');
        add_other_case(p, first, last, 'A', 'Z', 'a');
    }
}

static size_t count_ranges(const struct parser *p)
{
    return p->e->ranges.len / sizeof(struct expression_range);
}

/* Of the ranges that were put since there were `before`. */
static void add_set(struct parser *p, size_t before, bool negate)
{
    struct expression_step step = {.op = OP_SET, .negate = negate};
    step.set.range = (unsigned)before;
    step.set.n_ranges = (unsigned)(count_ranges(p) - before);
    add(p, step);
}

static void add_character(struct parser *p, unsigned c)
{
    size_t before = count_ranges(p);
    put_range(p, c, c);
    add_set(p, before, false);
}

/* Pairs of first and last character, and whether all beyond ASCII belong to it. */
static const struct {
    char name[8], pairs[12];
    bool beyond;
} classes[] = {
    {"alpha", "AZaz", true},
    {"digit", "09", false},
    {"alnum", "AZaz09", true},
    {"upper", "AZ", false},
    {"lower", "az", false},
    {"space", "\t\r  ", false},
    {"blank", "\t\t  ", false},
    {"punct", "!/:@[`{~", false},
    {"print", " ~", true},
    {"graph", "!~", true},
    {"cntrl", "\1\37\177\177", false},
    {"xdigit", "09AFaf", false},
    {"word", "AZaz09__", true},
};

static void put_class(struct parser *p, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) != n || memcmp(classes[i].name, name, n) != 0)
            continue;
        for (const char *pair = classes[i].pairs; *pair; pair += 2)
            put_range(p, (unsigned)pair[0], (unsigned)pair[1]);
        if (classes[i].beyond)
            add_range(p, 0x80, CODE_POINT_MAX);
        return;
    }
    fail(p, "a class in brackets is none: [:alpha:], [:digit:], [:alnum:], [:upper:], [:lower:], [:space:], "
            "[:blank:], "
            "[:punct:], [:print:], [:graph:], [:cntrl:], [:xdigit:] and [:word:] are");
}

/* The next character of the pattern. */
static unsigned character(struct parser *p)
{
    return expression_character(&p->at, strlen(p->at));
}

/* Behind its '['. */
static void bracket(struct parser *p)
{
    size_t before = count_ranges(p);
    bool negate = take(p, '^');
    do {
        if (*p->at == '\0') {
            fail(p, "a '[' has no ']'");
        } else if (p->at[0] == '[' && p->at[1] == ':') {
            const char *name = p->at + 2, *end = strstr(name, ":]");
            put_class(p, name, end ? (size_t)(end - name) : 0);
            p->at = end ? end + 2 : name;
        } else if (p->at[0] == '[' && (p->at[1] == '.' || p->at[1] == '=')) {
            fail(p, "[. .] and [= =] in brackets are not supported");
        } else {
            unsigned first = character(p), last = first;
            if (p->at[0] == '-' && p->at[1] != ']' && take(p, '-') && *p->at)
                last = character(p);
            if (last < first)
                fail(p, "a range in brackets ends before it begins");
            put_range(p, first, last);
        }
    } while (!p->wrong && *p->at != ']');
    p->at++;
    add_set(p, before, negate);
}

/* ---- one thing ---- */

/* Behind \x: two digits, or in braces any number of them. */
static void hexadecimal(struct parser *p)
{
    bool braces = take(p, '{');
    unsigned c = 0;
    int n = 0;
    for (; hex_digit(*p->at) >= 0 && (braces || n < 2) && c <= CODE_POINT_MAX; n++)
        c = c * 16 + (unsigned)hex_digit(*p->at++);
    if (n == 0 || (braces && !take(p, '}')) || c > CODE_POINT_MAX)
        fail(p, "\\x takes two hexadecimal digits, or in braces the number of a character");
    add_character(p, c);
}

/* Behind its backslash. */
static void escape(struct parser *p)
{
    static const char sets[] = "wsd", places[] = "<>bB", names[] = "tnrfae", named[] = "\t\n\r\f\a\033";
    static const char *const classes_of[] = {"word", "space", "digit"};
    char c = *p->at;
    const char *found;
    size_t before = count_ranges(p);
    if (c == '\0') {
        fail(p, "a backslash at its end has nothing behind it");
    } else if (c >= '1' && c <= '9') {
        fail(p, "references like \\1 are not supported");
    } else if ((found = strchr(sets, c | 0x20))) {
        const char *name = classes_of[found - sets];
        put_class(p, name, strlen(name));
        add_set(p, before, (c & 0x20) == 0);
    } else if ((found = strchr(places, c))) {
        add(p, go((enum expression_op)(OP_WORD_BEGIN + (found - places)), 0, 0));
    } else if ((found = strchr(names, c))) {
        add_character(p, (unsigned)named[found - names]);
    } else if (c != 'x') {
        add_character(p, character(p));
        return;
    }
    p->at++;
    if (c == 'x')
        hexadecimal(p);
}

static void group(struct parser *p)
{
    if (p->depth == DEPTH_MAX) {
        fail(p, "has too many parentheses in each other");
        return;
    }
    p->depth++;
    choice(p);
    p->depth--;
    if (!take(p, ')'))
        fail(p, "a '(' has no ')'");
}

static void any(struct parser *p)
{
    size_t before = count_ranges(p);
    add_range(p, '\n', '\n');
    add_set(p, before, true);
}

static void one(struct parser *p)
{
    if (take(p, '('))
        group(p);
    else if (take(p, '['))
        bracket(p);
    else if (take(p, '.'))
        any(p);
    else if (take(p, '^'))
        add(p, go(OP_BEGIN, 0, 0));
    else if (take(p, '$'))
        add(p, go(OP_END, 0, 0));
    else if (take(p, '\\'))
        escape(p);
    else if (strchr("*+?{", *p->at))
        fail(p, "'*', '+', '?' or '{' has nothing in front of it to repeat");
    else
        add_character(p, character(p));
}

/* ---- repetitions and choices ---- */

/* The steps from `from` on, `least` to `most` (or ANY number of) times. */
static void repeat(struct parser *p, size_t from, int least, int most)
{
    size_t n = expression_count(p->e) - from;
    struct expression_step *body MEM_AUTO = mem_alloc((n + 1) * sizeof *body);
    if (n > 0) /* () has none, and there may be none at all yet */
        memcpy(body, expression_steps(p->e) + from, n * sizeof *body);
    buf_truncate(&p->e->steps, from * sizeof *body);
    for (int i = 0; i < least && !p->wrong; i++)
        insert(p, expression_count(p->e), body, n);
    if (most == ANY && least > 0)
        add(p, go(OP_FORK, -n, 1));
    for (int left = most == ANY ? least == 0 : most - least; left > 0 && !p->wrong; left--) {
        add(p, go(OP_FORK, 1, most == ANY ? n + 2 : (size_t)left * (n + 1)));
        insert(p, expression_count(p->e), body, n);
    }
    if (most == ANY && least == 0)
        add(p, go(OP_JUMP, -(n + 1), 0));
}

/* A number of repetitions; ANY: there is none. */
static int count(struct parser *p)
{
    int n = ANY;
    for (; *p->at >= '0' && *p->at <= '9' && n <= REPEAT_MAX; p->at++)
        n = (n == ANY ? 0 : n * 10) + (*p->at - '0');
    return n;
}

static void braces(struct parser *p, size_t from)
{
    int least = count(p), most = least;
    bool comma = take(p, ',');
    if (comma)
        most = count(p);
    if ((least == ANY && most == ANY) || least > REPEAT_MAX || most > REPEAT_MAX ||
        (most != ANY && most < least) || !take(p, '}'))
        fail(p, "braces take {n}, {n,}, {,m} or {n,m}, up to 255");
    else
        repeat(p, from, least == ANY ? 0 : least, most);
}

static void repeated(struct parser *p)
{
    size_t from = expression_count(p->e);
    for (one(p); !p->wrong;)
        if (take(p, '*'))
            repeat(p, from, 0, ANY);
        else if (take(p, '+'))
            repeat(p, from, 1, ANY);
        else if (take(p, '?'))
            repeat(p, from, 0, 1);
        else if (take(p, '{'))
            braces(p, from);
        else
            break;
}

static void sequence(struct parser *p)
{
    while (!p->wrong && *p->at && *p->at != '|' && !(*p->at == ')' && p->depth > 0))
        repeated(p);
}

static void choice(struct parser *p)
{
    size_t from = expression_count(p->e);
    sequence(p);
    while (!p->wrong && take(p, '|')) {
        size_t n = expression_count(p->e) - from;
        struct expression_step fork = go(OP_FORK, 1, n + 2);
        insert(p, from, &fork, 1);
        size_t end = from + 1 + n;
        sequence(p);
        struct expression_step jump = go(OP_JUMP, expression_count(p->e) - end + 1, 0);
        insert(p, end, &jump, 1);
    }
}

struct expression *expression_make(const char *pattern, bool ignore_case, const char **wrong)
{
    struct expression *e = mem_zalloc(sizeof *e);
    struct parser p = {.e = e, .at = pattern, .ignore_case = ignore_case};
    buf_init(&e->steps, STEPS_MAX * sizeof(struct expression_step));
    buf_init(&e->ranges, RANGES_MAX * sizeof(struct expression_range));
    choice(&p);
    add(&p, go(OP_FOUND, 0, 0));
    if (p.wrong) {
        *wrong = p.wrong;
        expression_free(e);
        return NULL;
    }
    expression_prepare(e);
    return e;
}

void expression_free(struct expression *e)
{
    if (!e)
        return;
    buf_release(&e->steps);
    buf_release(&e->ranges);
    free(e->waiting);
    free(e->reached);
    free(e->stack);
    free(e->seen);
    free(e);
}
