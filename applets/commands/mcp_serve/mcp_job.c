/* Jobs: the methods of exec_remote, as tools.
 *
 * A job hands its output out once, acknowledged by a number. What has been taken from it is with the process
 * that serves (struct job_note) until an answer with it has gone out: a cancelled wait loses nothing. */
#include "mcp_tools.h"

#include <stdlib.h>
#include <string.h>

#include "commands/exec/route.h"
#include "io.h"

#define KEEP_MAX (1u << 20) /* bytes of each stream of one job; what is more loses its beginning */

void job_note_add(struct job_note *note, int stream, struct span text)
{
    struct buf *out = &note->out[stream];
    buf_add(out, text.s, text.n);
    if (out->len <= KEEP_MAX)
        return;
    size_t cut = out->len - KEEP_MAX;
    while (cut < out->len && ((unsigned char)out->data[cut] & 0xC0) == 0x80)
        cut++; /* whole characters */
    note->omitted[stream] += cut;
    buf_consume(out, cut);
}

/* ---- start ---- */

int mcp_job_start(struct work *w, struct err *err)
{
    const struct args *a = &w->args;
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct span pid;
    buf_addc(&params, '{');
    if (a->command.s)
        json_member_text(&params, "command", a->command.s, a->command.n);
    mcp_put_words(&params, "argv", &a->argv);
    if (a->text.s)
        json_member_text(&params, "input", a->text.s, a->text.n);
    json_member_bool(&params, "stdin_open", a->open);
    if (a->pty)
        buf_adds(&params, ",\"pty\":{\"rows\":40,\"cols\":120}");
    mcp_put_surroundings(&params, a);
    mcp_put_start(&params, w);
    if (a->timeout > 0) {
        json_key(&params, "timeout");
        buf_addf(&params, "%.3f", a->timeout);
    }
    buf_addc(&params, '}');
    work_make_begin();
    if (call_method("exec_remote_start", span_of(&params), &result, err) < 0)
        return -1;
    if (!json_member(span_of(&result), "pid", &pid, NULL))
        return err_set(err, ERR_INTERNAL, "the job has no number");
    long long number = strtoll(pid.s, NULL, 10);
    work_made_job(w, number);
    work_make_end();
    work_log(w, "info", "job %lld started", number);
    buf_adds(&w->structured, "{\"job\":");
    json_put_int(&w->structured, number);
    buf_addc(&w->structured, '}');
    return 0;
}

/* ---- output ---- */

/* What is known of the job, with what comes. */
struct watch {
    struct work *w;
    struct job_note note;
    bool ended;
    struct buf end; /* the last answer */
};

static void watch_begin(struct watch *x, struct work *w)
{
    const struct job_note *known = work_job(w, w->args.job);
    *x = (struct watch){.w = w, .note = {.pid = w->args.job, .out = {BUF_INIT, BUF_INIT}}, .end = BUF_INIT};
    if (!known)
        return;
    x->note.seq = known->seq;
    for (int i = 0; i < 2; i++) {
        buf_add(&x->note.out[i], known->out[i].data, known->out[i].len);
        x->note.omitted[i] = known->omitted[i];
    }
}

static void watch_release(struct watch *x)
{
    buf_release(&x->note.out[0]);
    buf_release(&x->note.out[1]);
    buf_release(&x->end);
}

static void take_result(struct watch *x, const struct buf *result)
{
    static const char *const keys[] = {"stdout", "stderr"};
    struct buf text[2] = {BUF_INIT, BUF_INIT};
    struct span value;
    if (json_member(span_of(result), "seq", &value, NULL))
        x->note.seq = strtoll(value.s, NULL, 10);
    for (int i = 0; i < 2; i++) {
        if (json_member(span_of(result), keys[i], &value, NULL))
            json_string_text(value, &text[i]);
        job_note_add(&x->note, i, span_of(&text[i]));
    }
    work_job_output(x->w, x->note.pid, x->note.seq, span_of(&text[0]), span_of(&text[1]));
    buf_release(&text[0]);
    buf_release(&text[1]);
    x->ended = json_member(span_of(result), "state", &value, NULL) && !json_string_is(value, "running");
    if (!x->ended)
        return;
    buf_truncate(&x->end, 0);
    buf_add(&x->end, result->data, result->len);
}

/* One method of the job; timeout_s < 0: the method has none. */
static int ask(struct watch *x, const char *method, double timeout_s, const char *more, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addf(&params, "{\"pid\":%lld,\"ack_seq\":%lld", x->note.pid, x->note.seq);
    if (timeout_s >= 0)
        buf_addf(&params, ",\"timeout\":%.3f", timeout_s);
    buf_adds(&params, more);
    buf_addc(&params, '}');
    if (call_method(method, span_of(&params), &result, err) < 0)
        return -1;
    take_result(x, &result);
    return 0;
}

static void put_stream(struct buf *out, const struct job_note *note, int i)
{
    const struct buf *text = &note->out[i];
    json_member_text(out, i == 0 ? "stdout" : "stderr", buf_str(text), text->len);
}

static void put_end(struct buf *out, const struct watch *x)
{
    static const char *const keys[] = {"timed_out", "oom_killed"};
    struct span value;
    json_key(out, "state");
    if (!x->ended || !json_member(span_of(&x->end), "state", &value, NULL))
        value = (struct span){"\"running\"", 9};
    buf_add(out, value.s, value.n);
    json_key(out, "exit_code");
    if (!x->ended || !json_member(span_of(&x->end), "exit_code", &value, NULL))
        value = (struct span){"null", 4};
    buf_add(out, value.s, value.n);
    for (size_t i = 0; x->ended && i < 2; i++)
        if (json_member(span_of(&x->end), keys[i], &value, NULL))
            json_member_bool(out, keys[i], true);
}

static void give(struct watch *x)
{
    struct buf *out = &x->w->structured;
    buf_addc(out, '{');
    json_member_int(out, "job", x->note.pid);
    put_end(out, x);
    put_stream(out, &x->note, 0);
    put_stream(out, &x->note, 1);
    json_member_int(out, "omitted_bytes", (long long)(x->note.omitted[0] + x->note.omitted[1]));
    buf_addc(out, '}');
    work_tells_job(x->w, x->note.pid, x->ended);
}

static bool has_output(const struct watch *x)
{
    return x->note.out[0].len + x->note.out[1].len > 0;
}

static int wait_for(struct watch *x, struct err *err)
{
    const struct args *a = &x->w->args;
    bool for_output = a->until.s && strcmp(a->until.s, "output") == 0;
    long long end = now_ms() + (long long)(a->timeout * 1000), left = end - now_ms();
    do {
        if (ask(x, "exec_remote_wait", left > 0 ? (double)left / 1000 : 0, "", err) < 0)
            return -1;
        left = end - now_ms();
        work_status(x->w, "%zu bytes of output", x->note.out[0].len + x->note.out[1].len);
    } while (!x->ended && left > 0 && !(for_output && has_output(x)));
    return 0;
}

int mcp_job_wait(struct work *w, struct err *err)
{
    struct watch x;
    watch_begin(&x, w);
    int failed = wait_for(&x, err);
    if (failed == 0)
        give(&x);
    watch_release(&x);
    return failed;
}

/* ---- the others ---- */

int mcp_job_write(struct work *w, struct err *err)
{
    struct watch x;
    struct buf more BUF_AUTO = BUF_INIT;
    int failed = 0;
    watch_begin(&x, w);
    if (!w->args.text.s && !w->args.close)
        failed = err_set(err, ERR_PARAMS, "Invalid parameters: text: is missing, or close");
    if (failed == 0 && w->args.text.s) {
        buf_adds(&more, ",\"data\":");
        json_put_string(&more, w->args.text.s, w->args.text.n);
        failed = ask(&x, "exec_remote_write_stdin", -1, buf_str(&more), err);
    }
    if (failed == 0 && w->args.close)
        failed = ask(&x, "exec_remote_close_stdin", -1, "", err);
    if (failed == 0)
        buf_addf(&w->structured, "{\"job\":%lld}", w->args.job);
    watch_release(&x);
    return failed;
}

/* The answer to a kill has no state: a wait tells that. */
int mcp_job_kill(struct work *w, struct err *err)
{
    struct watch x;
    watch_begin(&x, w);
    int failed = ask(&x, "exec_remote_kill", -1, "", err);
    if (failed == 0)
        failed = ask(&x, "exec_remote_wait", 1, "", err);
    if (failed == 0)
        give(&x);
    watch_release(&x);
    return failed;
}

int mcp_job_list(struct work *w, struct err *err)
{
    struct buf result BUF_AUTO = BUF_INIT;
    if (call_method("exec_remote_list", (struct span){"{}", 2}, &result, err) < 0)
        return -1;
    struct span entry, key, value;
    buf_adds(&w->structured, "{\"jobs\":[");
    for (size_t at = 0; json_element(span_of(&result), &at, &entry);) {
        if (json_member(entry, "pid", &value, NULL) && strtoll(value.s, NULL, 10) == w->serve)
            continue; /* that of a session (serve_named.h) */
        buf_adds(&w->structured, w->structured.data[w->structured.len - 1] == '[' ? "{" : ",{");
        for (size_t in = 0; json_next_member(entry, &in, &key, &value);) {
            struct buf name BUF_AUTO = BUF_INIT;
            json_string_text(key, &name);
            json_key(&w->structured, strcmp(buf_str(&name), "pid") == 0 ? "job" : buf_str(&name));
            buf_add(&w->structured, value.s, value.n);
        }
        buf_addc(&w->structured, '}');
    }
    buf_adds(&w->structured, "]}");
    return 0;
}

int mcp_end_job(struct work *w, struct err *err)
{
    struct watch x;
    watch_begin(&x, w);
    int failed = ask(&x, "exec_remote_kill", -1, "", err);
    watch_release(&x);
    return failed;
}
