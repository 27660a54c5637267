#include "mcp_lines.h"

#include <string.h>

void mcp_lines_init(struct mcp_lines *l, size_t max)
{
    l->max = max;
    buf_init(&l->held, BUF_NO_MAX);
    buf_init(&l->tail, BUF_NO_MAX);
    l->too_long = l->whole = l->given = false;
    l->begin = l->end = 0;
}

void mcp_lines_release(struct mcp_lines *l)
{
    buf_release(&l->held);
    buf_release(&l->tail);
}

static struct span held_line(const struct mcp_lines *l)
{
    if (l->held.len == 0)
        return (struct span){"", 0};
    return (struct span){l->held.data + MCP_LINES_GAP, l->held.len - MCP_LINES_GAP};
}

/* A line that has begun grows where it is. */
static bool reads_into_held(const struct mcp_lines *l)
{
    return l->held.len > 0 && !l->too_long;
}

char *mcp_lines_room(struct mcp_lines *l, size_t *room)
{
    *room = MCP_LINES_STEP;
    if (!reads_into_held(l))
        return l->area;
    buf_reserve(&l->held, MCP_LINES_STEP);
    return l->held.data + l->held.len;
}

static void add_to_tail(struct mcp_lines *l, struct span more)
{
    if (more.n > MCP_LINES_TAIL) {
        more.s += more.n - MCP_LINES_TAIL;
        more.n = MCP_LINES_TAIL;
    }
    buf_add(&l->tail, more.s, more.n);
    if (l->tail.len > MCP_LINES_TAIL)
        buf_consume(&l->tail, l->tail.len - MCP_LINES_TAIL);
}

static void check_length(struct mcp_lines *l)
{
    if (held_line(l).n <= memory_share(&l->share, held_line(l).n, l->max))
        return;
    l->too_long = true;
    add_to_tail(l, held_line(l));
    buf_truncate(&l->held, MCP_LINES_GAP + MCP_LINES_HEAD);
    buf_shrink(&l->held);
}

static void begin_gap(struct buf *b)
{
    static const char gap[MCP_LINES_GAP];
    if (b->len == 0)
        buf_add(b, gap, sizeof gap);
}

/* More of the line that has begun. */
static void hold(struct mcp_lines *l, struct span more)
{
    if (l->too_long) {
        add_to_tail(l, more);
        return;
    }
    begin_gap(&l->held);
    buf_add(&l->held, more.s, more.n);
    check_length(l);
}

void mcp_lines_filled(struct mcp_lines *l, size_t n)
{
    if (!reads_into_held(l)) {
        l->begin = 0;
        l->end = n;
        return;
    }
    char *data = l->held.data + l->held.len, *newline = memchr(data, '\n', n);
    size_t taken = newline ? (size_t)(newline - data) : n;
    if (newline) {
        l->begin = 0;
        l->end = n - taken - 1;
        memcpy(l->area, newline + 1, l->end);
        l->whole = true;
    }
    l->held.len += taken;
    l->held.data[l->held.len] = '\0';
    check_length(l);
}

void mcp_lines_finish(struct mcp_lines *l)
{
    l->whole = l->held.len > 0;
}

static enum mcp_lines_state give_held(struct mcp_lines *l, struct span *line)
{
    l->whole = false;
    l->given = true;
    *line = held_line(l);
    return l->too_long ? MCP_LINES_TOO_LONG : MCP_LINES_LINE;
}

static void forget_given(struct mcp_lines *l)
{
    if (!l->given)
        return;
    mcp_lines_release(l);
    l->given = l->too_long = false;
}

enum mcp_lines_state mcp_lines_next(struct mcp_lines *l, struct span *line)
{
    forget_given(l);
    if (l->whole)
        return give_held(l, line);
    const char *data = l->area + l->begin, *newline = memchr(data, '\n', l->end - l->begin);
    size_t n = newline ? (size_t)(newline - data) : l->end - l->begin;
    l->begin += newline ? n + 1 : n;
    *line = (struct span){data, n};
    if (newline && l->held.len == 0 && n <= l->max)
        return MCP_LINES_LINE;
    if (n > 0)
        hold(l, *line);
    return newline ? give_held(l, line) : MCP_LINES_NONE;
}

bool mcp_lines_is_message(const struct mcp_lines *l)
{
    struct span line = held_line(l);
    return line.n > 0 && strchr("}] \t\r", line.s[line.n - 1]) && json_check(line, NULL) == 0;
}

void mcp_lines_take(struct mcp_lines *l, struct span line, struct buf *out)
{
    if (l->given) {
        *out = l->held;
        buf_init(&l->held, BUF_NO_MAX);
        return;
    }
    begin_gap(out);
    buf_add(out, line.s, line.n);
}
