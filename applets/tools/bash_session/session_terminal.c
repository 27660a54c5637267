#include "session_terminal.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

/* More than a terminal holds, so that what was written before is read; bounded, since a program can write for
 * ever. */
#define DRAIN_MAX (1u << 20)
#define TAIL_MAX 1024 /* longer than prompts are */

static void take_text(struct terminal *t, const struct buf *text)
{
    if (text->len == 0)
        return;
    size_t n = text->len < TAIL_MAX ? text->len : TAIL_MAX;
    buf_add(&t->tail, text->data + text->len - n, n);
    t->tail_after_mark += n;
    t->open_line = text->data[text->len - 1] != '\n';
    if (t->tail.len > TAIL_MAX)
        buf_consume(&t->tail, t->tail.len - TAIL_MAX);
    t->owner->text(t->arg, text->data, text->len);
}

static void filter(struct terminal *t, const char *bytes, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    term_filter_feed(&t->filter, bytes, n, &text);
    take_text(t, &text);
}

/* It may be the next byte of a note. */
static bool continues_note(const struct terminal *t, char c)
{
    size_t front = sizeof TERMINAL_NOTE - 1;
    return t->note.len < front ? c == TERMINAL_NOTE[t->note.len]
                               : t->note.len < TERMINAL_NOTE_MAX && c != '\n';
}

/* What is in front of a note is shown before it is told. */
static void filter_with_notes(struct terminal *t, const char *bytes, size_t n)
{
    for (size_t at = 0; at < n; at++) {
        if (t->note.len == 0) {
            const char *start = memchr(bytes + at, *TERMINAL_NOTE, n - at);
            size_t plain = start ? (size_t)(start - bytes) - at : n - at;
            filter(t, bytes + at, plain);
            at += plain;
        }
        if (at < n && continues_note(t, bytes[at])) {
            buf_addc(&t->note, bytes[at]);
            if (bytes[at] != '\a')
                continue;
            t->note.data[t->note.len - 1] = '\0';
            t->owner->note(t->arg, t->note.data + sizeof TERMINAL_NOTE - 1);
        } else if (at < n) {
            filter(t, t->note.data, t->note.len);
            filter(t, bytes + at, 1);
        }
        buf_truncate(&t->note, 0);
    }
}

bool terminal_drain(struct terminal *t)
{
    static char bytes[65536];
    bool any = false;
    ssize_t n;
    for (size_t sum = 0; t->pty.master >= 0 && sum < DRAIN_MAX; sum += (size_t)n) {
        n = read(t->pty.master, bytes, sizeof bytes);
        if (n <= 0)
            break;
        size_t skip = t->owner->skip(t->arg, bytes, (size_t)n);
        viewers_show(&t->viewers, bytes, (size_t)n);
        tape_shown(t->tape, bytes, (size_t)n);
        (t->notes ? filter_with_notes : filter)(t, bytes + skip, (size_t)n - skip);
        any = true;
    }
    if (any)
        pace_stir(t->pace);
    return any;
}

static void on_terminal(void *arg, int events)
{
    struct terminal *t = arg;
    (void)events;
    terminal_drain(t);
    t->pace->look(t->pace->arg);
}

void terminal_watch(struct terminal *t)
{
    loop_drop(&t->source);
    t->source = loop_fd(t->loop, t->pty.master, LOOP_READ, on_terminal, t);
}

void terminal_drain_all(struct terminal *t)
{
    struct buf text BUF_AUTO = BUF_INIT;
    terminal_drain(t);
    term_filter_reset(&t->filter, &text);
    take_text(t, &text);
}

void terminal_mark(struct terminal *t)
{
    t->tail_after_mark = 0;
}

void terminal_begin_answer(struct terminal *t)
{
    t->open_line = false;
    pace_stir(t->pace);
}

struct span terminal_last_line(const struct terminal *t)
{
    size_t since = t->tail_after_mark < t->tail.len ? t->tail_after_mark : t->tail.len;
    const char *from = buf_str(&t->tail) + t->tail.len - since;
    const char *end = since > 0 ? memrchr(from, '\n', since) : NULL;
    if (end)
        since -= (size_t)(end + 1 - from);
    return (struct span){buf_str(&t->tail) + t->tail.len - since, since};
}

bool terminal_ends_with(const struct terminal *t, const char *text, size_t n)
{
    const struct buf *b = &t->tail;
    return n > 0 && b->len >= n && memcmp(b->data + b->len - n, text, n) == 0;
}

void terminal_type(struct terminal *t, const char *text, size_t n)
{
    input_add(&t->input, &t->pty, text, n, NULL);
    input_pump(&t->input, &t->pty, true);
}

bool terminal_is_raw(const struct terminal *t)
{
    struct termios modes;
    return tcgetattr(t->pty.slave, &modes) == 0 && !(modes.c_lflag & ICANON);
}

void terminal_close(struct terminal *t)
{
    loop_drop(&t->source);
    pty_close(&t->pty);
    input_release(&t->input);
}
