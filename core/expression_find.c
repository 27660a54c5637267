/* All ways through the expression are gone at once, character by character. They are kept in the order in
 * which they have begun, and of two that meet the later one is dropped: so the first to come to the end is of
 * the match that begins first but for those in front of it. */
#include <limits.h>
#include <string.h>

#include "expression_steps.h"
#include "mem.h"
#include "utf8.h"

/* Where in a line a search is. */
struct place_in {
    unsigned behind, next; /* the characters; NO_CHARACTER: the text's begin or end */
    bool begin, end;       /* of a line */
};

unsigned expression_character(const char **s, size_t n)
{
    int len = (unsigned char)**s < 0x80 ? 1 : utf8_char(*s, n);
    unsigned c = len > 0 ? utf8_code_point(*s, len) : (unsigned)NO_CHARACTER + (unsigned char)**s;
    *s += len > 0 ? len : 1;
    return c;
}

static bool in_set(const struct expression *e, const struct expression_step *step, unsigned c)
{
    const struct expression_range *range = (const void *)e->ranges.data;
    range += step->set.range;
    for (unsigned i = 0; i < step->set.n_ranges; i++)
        if (c >= range[i].first && c <= range[i].last)
            return !step->negate;
    return step->negate;
}

static bool is_word(unsigned c)
{
    return c < 0x80 ? (c | 0x20) - 'a' < 26 || c - '0' < 10 || c == '_' : c <= CODE_POINT_MAX;
}

static bool holds(unsigned char op, const struct place_in *at)
{
    bool behind = !at->begin && is_word(at->behind), next = !at->end && is_word(at->next);
    switch (op) {
    case OP_BEGIN:
        return at->begin;
    case OP_END:
        return at->end;
    case OP_WORD_BEGIN:
        return !behind && next;
    case OP_WORD_END:
        return behind && !next;
    case OP_WORD_EDGE:
        return behind != next;
    default:
        return behind == next;
    }
}

size_t expression_match_end(const struct expression *e)
{
    return e->match_end;
}

static void look_at(struct expression *e, size_t *n, size_t step)
{
    if (e->seen[step] == e->position)
        return;
    e->seen[step] = e->position;
    e->stack[(*n)++] = (unsigned)step;
}

/* Puts those that wait for a character into e->waiting, where a way that has begun at `start` is at a step.
 * True: it is at the end. `at` NULL: as if all held that is asked of the place. */
static bool follow(struct expression *e, struct expression_thread from, size_t *n_waiting,
                   const struct place_in *at)
{
    const struct expression_step *steps = expression_steps(e);
    size_t n = 0;
    bool found = false;
    for (look_at(e, &n, from.step); n > 0;) {
        size_t i = e->stack[--n];
        switch (steps[i].op) {
        case OP_SET:
            e->waiting[(*n_waiting)++] = (struct expression_thread){(unsigned)i, from.start};
            break;
        case OP_FOUND:
            found = true;
            break;
        case OP_FORK:
            look_at(e, &n, i + (size_t)steps[i].to.second);
            look_at(e, &n, i + (size_t)steps[i].to.first);
            break;
        case OP_JUMP:
            look_at(e, &n, i + (size_t)steps[i].to.first);
            break;
        default:
            if (!at || holds(steps[i].op, at))
                look_at(e, &n, i + 1);
        }
    }
    return found;
}

static void next_position(struct expression *e)
{
    if (e->position++ == UINT_MAX) {
        memset(e->seen, 0, expression_count(e) * sizeof *e->seen);
        e->position = 1;
    }
}

void expression_prepare(struct expression *e)
{
    size_t n = expression_count(e), n_waiting = 0;
    e->waiting = mem_alloc(n * sizeof *e->waiting);
    e->reached = mem_alloc(n * sizeof *e->reached);
    e->stack = mem_alloc(n * sizeof *e->stack);
    e->seen = mem_zalloc(n * sizeof *e->seen);
    next_position(e);
    e->empty = follow(e, (struct expression_thread){0, 0}, &n_waiting, NULL);
    for (unsigned c = 0; c < 256; c++)
        for (size_t i = 0; i < n_waiting && !e->begins[c]; i++)
            e->begins[c] = c >= 0x80 || in_set(e, expression_steps(e) + e->waiting[i].step, c);
}

/* From those that wait, those that are one character further. */
static size_t step_on(struct expression *e, size_t n_waiting, unsigned c)
{
    const struct expression_step *steps = expression_steps(e);
    size_t n = 0;
    for (size_t i = 0; i < n_waiting; i++)
        if (in_set(e, steps + e->waiting[i].step, c))
            e->reached[n++] = (struct expression_thread){e->waiting[i].step + 1, e->waiting[i].start};
    return n;
}

/* How many wait then; what can't become an earlier match than *best any more is dropped. */
static size_t arrive(struct expression *e, size_t n_reached, const struct place_in *at, ptrdiff_t here,
                     ptrdiff_t *best)
{
    size_t n = 0;
    next_position(e);
    if (*best < 0)
        e->reached[n_reached++] = (struct expression_thread){0, (size_t)here};
    for (size_t i = 0; i < n_reached; i++) {
        if (*best >= 0 && e->reached[i].start >= (size_t)*best)
            break;
        if (follow(e, e->reached[i], &n, at)) {
            *best = (ptrdiff_t)e->reached[i].start;
            break;
        }
    }
    while (*best >= 0 && n > 0 && e->waiting[n - 1].start >= (size_t)*best)
        n--;
    return n;
}

ptrdiff_t expression_find(struct expression *e, const char *line, size_t n)
{
    const char *at = line, *end = line + n;
    struct place_in place = {.begin = true};
    size_t n_reached = 0;
    ptrdiff_t best = -1;
    for (;;) {
        const char *here = at;
        if (n_reached == 0 && !e->empty) {
            while (at < end && !e->begins[(unsigned char)*at])
                at++;
            if (at == end)
                return best;
            if (at > here) {
                place.behind = (unsigned char)at[-1];
                place.begin = place.behind == '\n';
                here = at;
            }
        }
        bool over = at == end;
        place.next = over ? NO_CHARACTER : expression_character(&at, (size_t)(end - at));
        place.end = over || place.next == '\n';
        ptrdiff_t before = best;
        size_t n_waiting = arrive(e, n_reached, &place, here - line, &best);
        if (best != before)
            e->match_end = (size_t)(here - line);
        if (over || (n_waiting == 0 && best >= 0))
            return best;
        n_reached = step_on(e, n_waiting, place.next);
        place.begin = place.next == '\n';
        place.behind = place.next;
    }
}
