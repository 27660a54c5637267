#include "session_tape.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "io.h"
#include "json.h"
#include "mem.h"
#include "utf8.h"

#define KEPT_MAX ((size_t)256 << 10) /* bytes of events, for who watches */
#define REST_MS 60000
#define RECENT_MAX ((size_t)8192)

#ifndef TOOLBOX_GUEST

struct tape {
    struct loop *loop;
    const struct pty *pty;
    unsigned short rows, cols;
    long long began;  /* now_us() */
    long long muted;  /* now_ms() until which it is */
    struct buf bytes; /* shown: the front of a character */
    char last;        /* byte that was shown */
    /* What was shown on its way to an event: kept, since pages that are new each time cost more than all of
     * it. */
    struct buf text, lines, event;
    struct recording *recording;
    bool watched, ended;
    struct buf kept; /* while it is watched: the last events, a line each */
    long long base;  /* where those begin */
    struct loop_source *rest;
    struct tape_waiter *waiters;
};

struct tape *tape_new(struct loop *loop, const struct pty *pty)
{
    struct winsize w = {0};
    struct tape *t = mem_zalloc(sizeof *t);
    ioctl(pty->master, (int)TIOCGWINSZ, &w);
    *t = (struct tape){.loop = loop,
                       .pty = pty,
                       .rows = w.ws_row,
                       .cols = w.ws_col,
                       .began = now_us(),
                       .bytes = BUF_INIT,
                       .text = BUF_INIT,
                       .lines = BUF_INIT,
                       .event = BUF_INIT,
                       .kept = BUF_INIT};
    return t;
}

static void wake(struct tape *t)
{
    while (t->waiters) {
        struct tape_waiter *w = t->waiters;
        t->waiters = w->next;
        w->ready(w->arg);
    }
}

/* ---- events ---- */

static void forget_work(struct tape *t)
{
    buf_release(&t->text);
    buf_release(&t->lines);
    buf_release(&t->event);
}

static void put_time(struct buf *out, const struct tape *t, long long now)
{
    buf_addf(out, "[%lld.%06lld,", (now - t->began) / 1000000, (now - t->began) % 1000000);
}

static void put_event(struct buf *out, char kind, const char *text, size_t n)
{
    buf_reserve(out, n + n / 4 + 16);
    buf_addf(out, "\"%c\",", kind);
    json_put_string(out, text, n);
    buf_adds(out, "]\n");
}

/* Whole events. */
static void drop_oldest(struct tape *t)
{
    if (t->kept.len <= 2 * KEPT_MAX)
        return;
    size_t from = t->kept.len - KEPT_MAX;
    const char *end = memchr(t->kept.data + from, '\n', t->kept.len - from);
    from = end ? (size_t)(end + 1 - t->kept.data) : t->kept.len;
    buf_consume(&t->kept, from);
    t->base += (long long)from;
}

static void add(struct tape *t, char kind, const char *text, size_t n)
{
    long long now = now_us();
    if (n == 0 || !tape_is_listening(t))
        return;
    buf_truncate(&t->event, 0);
    put_event(&t->event, kind, text, n);
    if (t->recording)
        recording_add(t->recording, now, t->event.data, t->event.len);
    if (!t->watched)
        return;
    put_time(&t->kept, t, now);
    buf_add(&t->kept, t->event.data, t->event.len);
    drop_oldest(t);
    wake(t);
}

/* The session's terminal leaves newlines as they are, where a person's makes \r\n of them. What has switched
 * that off altogether means what it says. */
static void put_lines(const struct tape *t, char *last, const char *s, size_t n, struct buf *out)
{
    struct termios modes;
    buf_reserve(out, n + n / 8);
    bool as_is =
        tcgetattr(t->pty->slave, &modes) == 0 && (!(modes.c_oflag & OPOST) || (modes.c_oflag & ONLCR));
    for (size_t at = 0; at < n;) {
        const char *end = as_is ? NULL : memchr(s + at, '\n', n - at);
        size_t len = end ? (size_t)(end - s) - at : n - at;
        buf_add(out, s + at, len);
        *last = len > 0 ? s[at + len - 1] : *last;
        at += len;
        if (end) {
            buf_adds(out, *last == '\r' ? "\n" : "\r\n");
            *last = '\n';
            at++;
        }
    }
}

void tape_mute(struct tape *t, int ms)
{
    if (t)
        t->muted = ms > 0 ? now_ms() + ms : 0;
}

void tape_shown(struct tape *t, const char *bytes, size_t n)
{
    if (!tape_is_listening(t) || (t->muted > 0 && now_ms() < t->muted))
        return;
    buf_truncate(&t->text, 0);
    buf_truncate(&t->lines, 0);
    buf_add(&t->bytes, bytes, n);
    buf_consume(&t->bytes, utf8_clean(&t->text, t->bytes.data, t->bytes.len, false));
    put_lines(t, &t->last, buf_str(&t->text), t->text.len, &t->lines);
    add(t, 'o', buf_str(&t->lines), t->lines.len);
}

bool tape_is_listening(const struct tape *t)
{
    return t && (t->recording || t->watched);
}

void tape_typed(struct tape *t, const char *keys, size_t n)
{
    if (t)
        add(t, 'i', keys, n);
}

void tape_sized(struct tape *t, unsigned short rows, unsigned short cols)
{
    char size[16];
    if (!t || (t->rows == rows && t->cols == cols))
        return;
    t->rows = rows;
    t->cols = cols;
    int n = snprintf(size, sizeof size, "%dx%d", cols, rows);
    add(t, 'r', size, (size_t)n);
    if (t->recording)
        recording_size(t->recording, rows, cols);
}

void tape_end(struct tape *t)
{
    if (!t)
        return;
    t->ended = true;
    tape_stop(t);
    wake(t);
}

bool tape_is_used(const struct tape *t)
{
    return t && (t->recording || t->waiters);
}

/* ---- a recording ---- */

int tape_record(struct tape *t, struct record_options *options, struct err *err)
{
    if (t->recording)
        return err_set(err, ERR_TOOL, "it is recorded to %s already; stop that first",
                       recording_path(t->recording));
    options->rows = t->rows;
    options->cols = t->cols;
    t->recording = recording_start(t->loop, options, err);
    return t->recording ? 0 : -1;
}

struct recording *tape_recording(const struct tape *t)
{
    return t ? t->recording : NULL;
}

void tape_stop(struct tape *t)
{
    if (t->recording)
        recording_end(t->recording);
    t->recording = NULL;
    forget_work(t);
}

/* ---- who watches ---- */

static void on_rest(void *arg)
{
    struct tape *t = arg;
    if (t->waiters) {
        loop_timer_set(t->rest, REST_MS);
        return;
    }
    loop_drop(&t->rest);
    t->watched = false;
    forget_work(t);
    t->base += (long long)t->kept.len;
    buf_release(&t->kept);
}

void tape_wait(struct tape *t, struct tape_waiter *w)
{
    w->next = t->waiters;
    t->waiters = w;
}

void tape_forget(struct tape *t, struct tape_waiter *w)
{
    struct tape_waiter **at = &t->waiters;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
}

static void put_recent(const struct tape *t, const struct buf *recent, struct buf *events)
{
    struct buf lines BUF_AUTO = BUF_INIT;
    size_t n = recent->len < RECENT_MAX ? recent->len : RECENT_MAX;
    char last = '\n';
    if (n == 0)
        return;
    put_lines(t, &last, recent->data + recent->len - n, n, &lines);
    put_time(events, t, now_us());
    put_event(events, 'o', lines.data, lines.len);
}

void tape_view(struct tape *t, long long cursor, const struct buf *recent, struct buf *events,
               struct tape_view *view)
{
    size_t from = cursor <= t->base ? 0 : (size_t)(cursor - t->base), begin = events->len;
    t->watched = true;
    if (t->rest)
        loop_timer_set(t->rest, REST_MS);
    else
        t->rest = loop_timer(t->loop, REST_MS, on_rest, t);
    *view = (struct tape_view){
        .cursor = t->base + (long long)t->kept.len, .rows = t->rows, .cols = t->cols, .ended = t->ended};
    if (cursor < 0) {
        put_recent(t, recent, events);
    } else if (from < t->kept.len) {
        view->omitted = (unsigned long long)(cursor < t->base ? t->base - cursor : 0);
        buf_add(events, t->kept.data + from, t->kept.len - from);
    }
    if (events->len > begin)
        buf_truncate(events, events->len - 1);
    for (size_t i = begin; i < events->len; i++)
        if (events->data[i] == '\n')
            events->data[i] = ',';
}

#endif
