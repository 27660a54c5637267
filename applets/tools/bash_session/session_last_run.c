/* The last run, apart from the calls that wait for it: what it has printed and how it ended stays until
 * somebody has got it. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "session_internal.h"

void session_stop_capture(struct session *s)
{
    capture_free(s->capture);
    s->capture = NULL;
}

void session_run_close(struct session *s)
{
    buf_release(&s->last_run.text);
    free(s->last_run.cwd);
    free(s->last_run.error);
    buf_release(&s->last_run.lines.rest);
    s->last_run = (struct last_run){.text = BUF_INIT};
}

void session_run_opened(struct session *s)
{
    session_run_close(s);
    session_stop_capture(s);
    s->last_run.open = s->last_run.waited = true;
}

void session_run_leave(struct session *s)
{
    s->last_run.waited = false;
    capture_resize(s->capture, (size_t)SESSION_OUTPUT_MAX);
}

void session_run_ended(struct session *s, const struct run_result *result)
{
    struct last_run *last = &s->last_run;
    char *cwd = result->cwd ? mem_strdup(result->cwd) : NULL;
    char *error = result->error ? mem_strdup(result->error) : NULL;
    free(last->cwd);
    free(last->error);
    last->cwd = cwd;
    last->error = error;
    last->open = last->ended = true;
    last->waited = false;
    last->result = *result;
    last->result.cwd = last->cwd;
    last->result.notice = NULL;
    last->result.error = last->error;
    last->result.output = NULL; /* the answer's, which is put back when it does not arrive */
    last->result.output_len = 0;
    session_stop_capture(s);
}

/* A prompt goes as one: it gives way to the next command. */
static void yield_capture(struct session *s)
{
    struct buf text BUF_AUTO = BUF_INIT;
    capture_text(s->capture, &text);
    output_add(&s->output, text.data, text.len);
    if (s->capture->marked) {
        output_mark(&s->output);
        output_add(&s->output, s->capture->after.data, s->capture->after.len);
        s->last_run.prompt_read = s->last_run.prompt_read || s->capture->after.len > 0;
        buf_release(&s->capture->after);
    }
    capture_drop_text(s->capture);
}

void session_run_yield(struct session *s)
{
    struct last_run *last = &s->last_run;
    if (!last->open)
        return;
    if (s->capture)
        yield_capture(s);
    output_put_back(&s->output, last->text.data, last->text.len);
    buf_release(&last->text);
    last->result.omitted_bytes = 0;
}

unsigned long long session_run_unread(const struct session *s)
{
    const struct capture *c = s->last_run.open && !s->last_run.waited ? s->capture : NULL;
    return s->last_run.text.len + (c ? c->head.len + c->omitted + c->tail.len + c->after.len : 0);
}

void session_run_typed(struct session *s)
{
    s->inner.back = false;
    if (!s->last_run.open || s->last_run.ended || !s->last_run.told || s->last_run.waited)
        return;
    struct run_result r = {.state = RUN_COMPLETED,
                           .has_exit_code = true,
                           .exit_code = s->shell.known.status,
                           .error = s->shell.known.error,
                           .cwd = s->shell.known.cwd};
    session_run_yield(s);
    session_run_ended(s, &r);
}

void session_run_unheard(struct session *s, const struct buf *answer, unsigned long long omitted)
{
    struct last_run *last = &s->last_run;
    if (last->ended) {
        buf_add(&last->text, answer->data, answer->len);
        return;
    }
    if (!s->capture)
        s->capture = capture_new((size_t)SESSION_OUTPUT_MAX);
    capture_put_front(s->capture, answer->data, answer->len, omitted);
}

bool session_prompt_shown(const struct session *s)
{
    return !s->capture || s->capture->after.len > 0 || s->last_run.prompt_read;
}

/* ---- what the terminal shows ---- */

/* A line editor in which bracketed paste is on (we switch it off, but not for the prompt that is shown
 * already) says so when it takes a line, and ends the line: that is no output of the command. */
size_t session_paste_end(const void *session, const char *bytes, size_t n)
{
    static const char off[] = "\033[?2004l\r";
    const struct session *s = session;
    size_t len = sizeof off - 1;
    if (!s->capture || s->capture->head.len > 0 || n < len || memcmp(bytes, off, len) != 0)
        return 0;
    return len + (n > len && bytes[len] == '\n' ? 1 : n > len + 1 && bytes[len] == '\r' ? 2 : 0);
}

static size_t line_end(struct last_run *last, const char *text, size_t n)
{
    size_t end = 0;
    while (last->ends_line && end < n && text[end] == '\r')
        end++;
    if (end == n || !last->ends_line)
        return end;
    last->ends_line = false;
    return text[end] == '\n' ? end + 1 : end;
}

void session_take_text(void *session, const char *text, size_t n)
{
    struct session *s = session;
    if (s->last_run.cut)
        return;
    size_t end = line_end(&s->last_run, text, n);
    text += end;
    n -= end;
    if (s->capture)
        capture_add(s->capture, text, n);
    else
        output_add(&s->output, text, n);
}
