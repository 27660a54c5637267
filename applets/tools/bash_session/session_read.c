/* Reads: what is typed, and what comes of it. */
#include "io.h"
#include "session_internal.h"

#define BULK_BYTES 4096
#define ECHO_MAX 4096    /* of longer input the echo counts as an answer */
#define BULK_PAUSE_MS 20 /* what counts as a pause of a stream that has given that many */

static void describe_end(const struct session *s, struct buf *out)
{
    buf_adds(out, "the shell has ended (");
    shell_describe_exit(&s->shell, out);
    buf_adds(out, "); restart the session to go on");
}

static void read_fail(struct session_call *c, const struct err *err)
{
    session_call_answered(c);
    c->done.read(c->arg, (struct span){0}, err);
}

static void read_answer(struct session *s, struct session_call *c)
{
    struct err err;
    if (!s->shell.pid && s->calls.told_end && s->output.text.len == 0) {
        struct buf text BUF_AUTO = BUF_INIT;
        describe_end(s, &text);
        err_set(&err, ERR_TOOL, "%s", text.data);
        read_fail(c, &err);
        return;
    }
    if (!s->shell.pid && !s->calls.told_end) {
        struct buf text BUF_AUTO = BUF_INIT;
        size_t n = s->output.text.len;
        if (n > 0 && s->output.text.data[n - 1] != '\n')
            buf_addc(&text, '\n');
        buf_addc(&text, '[');
        describe_end(s, &text);
        buf_adds(&text, "]\n");
        output_add(&s->output, text.data, text.len);
        s->calls.told_end = true;
    }
    output_answer(&s->output, c->max, &c->answer);
    session_call_answered(c);
    c->done.read(c->arg, span_of(&c->answer), NULL);
    buf_release(&c->answer);
}

/* What is behind an interrupt that the shell itself gets waits for its prompt: it would drop that, or take it
 * for the rest of a line that it drops. bash's line editor takes it. */
static int type(struct session *s, const struct buf *text, struct err *err)
{
    struct input *in = &s->terminal.input;
    const struct pty *pty = &s->terminal.pty;
    size_t n = text->len, key = input_signal_key(pty, text->data, n);
    shell_interrupt_end(&s->shell);
    if (key < n && (terminal_is_raw(&s->terminal) || pty_foreground(pty) != s->shell.pid))
        return input_add(in, pty, text->data, n, err);
    if (input_is_interrupt(pty, text->data, key)) {
        shell_interrupt_follow(&s->shell, text->data + key, n - key);
        n = key;
    }
    return input_add(in, pty, text->data, n, err);
}

static void read_begin(struct session *s, struct session_call *c)
{
    struct err err;
    c->unread = s->output.text.len;
    session_lines_type_all(s);
    if (c->input.len == 0 || !s->shell.pid)
        return; /* nothing to type, or typed ahead */
    session_show_typed(s, c->input.data, c->input.len);
    session_run_typed(s);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    if (type(s, &c->input, &err) < 0)
        read_fail(c, &err);
    if (c->input.len > ECHO_MAX)
        buf_release(&c->input);
}

/* A terminal behind the terminal shows what is typed: that alone is no answer to it. */
static bool is_echo(const struct session *s, const struct session_call *c)
{
    const struct buf *out = &s->output.text, *in = &c->input;
    size_t at = 0;
    if (c->unread > 0 || s->output.omitted > 0 || out->len > 2 * in->len)
        return false;
    for (size_t i = 0; i < out->len; i++) {
        if (out->data[i] == '\r')
            continue;
        if (at == in->len || out->data[i] != in->data[at])
            return false;
        at++;
    }
    return true;
}

static int64_t read_check(struct session *s, struct session_call *c)
{
    terminal_drain(&s->terminal);
    session_run_yield(s);
    long long now = now_ms();
    size_t n = s->output.text.len;
    bool came = (n > 0 || s->output.omitted > 0) && !is_echo(s, c);
    long long quiet = now - (s->pace.last_activity > c->began ? s->pace.last_activity : c->began);
    int64_t left = (came ? c->idle_ms : c->wait_ms) - quiet;
    if (!s->shell.pid || n >= c->max || left <= 0 || (n >= BULK_BYTES && quiet >= BULK_PAUSE_MS) ||
        ((came || c->has_input) && shell_settled(&s->shell))) {
        read_answer(s, c);
        return -1;
    }
    return left;
}

static void read_delivered(struct session *s, struct session_call *c, bool delivered)
{
    (void)c;
    output_delivered(&s->output, delivered);
}

static bool read_abandon(struct session *s, struct session_call *c)
{
    (void)s;
    (void)c;
    return true; /* nothing was taken from the output */
}

static const struct call_kind read_kind = {read_begin, read_check, read_delivered, read_abandon};

/* A key that interrupts is for the program that runs now: it doesn't wait for its turn behind the call that
 * waits for that program. */
static void type_ahead(struct session *s, struct session_call *c)
{
    if (c == s->calls.first || !c->has_input || !s->shell.pid ||
        input_signal_key(&s->terminal.pty, c->input.data, c->input.len) == 0)
        return;
    session_show_typed(s, c->input.data, c->input.len);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    type(s, &c->input, NULL);
    buf_truncate(&c->input, 0);
}

void session_read(struct session *s, const struct read_request *r, read_done_fn done, void *arg,
                  struct session_call **call)
{
    struct session_call *c = session_call_new(s, &read_kind, r->input, r->input_len, arg);
    c->done.read = done;
    c->wait_ms = r->wait_ms;
    c->idle_ms = r->idle_ms;
    c->max = r->max;
    *call = c;
    type_ahead(s, c);
    session_evaluate(s);
}
