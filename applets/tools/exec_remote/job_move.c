/* A job's part of a record that another build's program goes on from (commands/server/moving.h). */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "io.h"
#include "job_internal.h"
#include "mem.h"

/* ---- saving ---- */

static void save_stream(const struct job *j, int i, struct handover_out *out)
{
    static const char *const keys[2][4] = {{"out0.pipe", "out0.raw", "out0.text", "out0.base"},
                                           {"out1.pipe", "out1.raw", "out1.text", "out1.base"}};
    const struct job_stream *s = &j->out[i];
    const struct buf *text = &j->record.text[i];
    handover_put_fd(out, keys[i][0], s->fd);
    handover_begin_part(out, keys[i][1], s->raw.len);
    if (fifo_copy(&s->raw, out->fd) < 0)
        out->failed = true;
    handover_end_part(out);
    handover_put(out, keys[i][2], buf_str(text), text->len);
    handover_put_int(out, keys[i][3], (long long)j->record.base[i]);
}

int job_save(const struct job *j, struct handover_out *out, struct err *err)
{
    const struct record *r = &j->record;
    if (j->kill.ending)
        return err_set(err, ERR_TOOL, "it is being ended");
    handover_put_int(out, "job.pid", j->pid);
    handover_put_int(out, "job.latin1", j->latin1);
    handover_put_int(out, "job.reaped", j->reaped);
    handover_put_int(out, "job.kill_began", j->kill.began);
    handover_put_int(out, "job.oom_kills", (long long)j->oom.kills);
    handover_put_int(out, "job.timeout_ms", j->timeout ? loop_timer_left(j->timeout) : -1);
    save_stream(j, 0, out);
    save_stream(j, 1, out);
    handover_put_fd(out, "in.pipe", j->in.fd);
    handover_begin_part(out, "in.pending", j->in.pending.len);
    if (fifo_copy(&j->in.pending, out->fd) < 0)
        out->failed = true;
    handover_end_part(out);
    handover_put_int(out, "in.ever_open", j->in.ever_open);
    handover_put_int(out, "in.closing", j->in.closing);
    handover_put_int(out, "in.discarded", (long long)r->end.stdin_discarded);
    handover_put_int(out, "record.seq", r->seq);
    handover_put_int(out, "record.told", r->told);
    handover_put_int(out, "record.uid", (long long)r->job.uid);
    handover_put_int(out, "record.started_ms", r->job.started_ms);
    handover_put_int(out, "record.ended_ms", r->end.ended_ms);
    handover_put_int(out, "record.exit_code", r->end.exit_code);
    handover_put_int(out, "record.ended", r->end.ended);
    handover_put_int(out, "record.timed_out", r->end.timed_out);
    handover_put_int(out, "record.killed", r->end.killed);
    handover_put_int(out, "record.oom_killed", r->end.oom_killed);
    handover_put(out, "record.marks", r->marks, r->n_marks * sizeof *r->marks);
    return 0;
}

/* ---- going on ---- */

/* What is read from the record before anything is done with it. */
struct saved {
    struct job job; /* its plain members */
    const char *raw[2], *text[2], *pending, *marks;
    size_t raw_len[2], text_len[2], pending_len, marks_len;
    long long timeout_ms;
};

static int read_stream(struct saved *s, const struct handover *h, int i, struct err *err)
{
    static const char *const keys[2][4] = {{"out0.pipe", "out0.raw", "out0.text", "out0.base"},
                                           {"out1.pipe", "out1.raw", "out1.text", "out1.base"}};
    long long base;
    if (handover_fd(h, keys[i][0], S_IFIFO, true, &s->job.out[i].fd, err) < 0 ||
        handover_get(h, keys[i][1], &s->raw[i], &s->raw_len[i], err) < 0 ||
        handover_get(h, keys[i][2], &s->text[i], &s->text_len[i], err) < 0 ||
        handover_int(h, keys[i][3], 0, INT64_MAX, &base, err) < 0)
        return -1;
    s->job.record.base[i] = (unsigned long long)base;
    s->job.out[i].discard = s->job.reaped;
    return 0;
}

static int read_end(struct record *r, const struct handover *h, struct err *err)
{
    long long code, uid;
    if (handover_int(h, "record.seq", 0, INT64_MAX, &r->seq, err) < 0 ||
        handover_int(h, "record.uid", 0, UINT32_MAX, &uid, err) < 0 ||
        handover_int(h, "record.started_ms", INT64_MIN, INT64_MAX, &r->job.started_ms, err) < 0 ||
        handover_int(h, "record.ended_ms", 0, INT64_MAX, &r->end.ended_ms, err) < 0 ||
        handover_int(h, "record.exit_code", -NSIG, 255, &code, err) < 0 ||
        handover_bool(h, "record.told", &r->told, err) < 0 ||
        handover_bool(h, "record.ended", &r->end.ended, err) < 0 ||
        handover_bool(h, "record.timed_out", &r->end.timed_out, err) < 0 ||
        handover_bool(h, "record.killed", &r->end.killed, err) < 0 ||
        handover_bool(h, "record.oom_killed", &r->end.oom_killed, err) < 0)
        return -1;
    r->job.uid = (uid_t)uid;
    r->end.exit_code = (int)code;
    return 0;
}

/* In their order, and within the text. */
static int check_marks(const struct saved *s, struct err *err)
{
    struct record_mark mark, before = {0, {s->job.record.base[0], s->job.record.base[1]}};
    size_t n = s->marks_len / sizeof mark;
    bool right = s->marks_len % sizeof mark == 0 && n <= RECORD_MARKS_MAX;
    for (size_t i = 0; right && i < n; i++) {
        memcpy(&mark, s->marks + i * sizeof mark, sizeof mark);
        right = mark.seq >= before.seq && mark.seq <= s->job.record.seq;
        for (int k = 0; k < 2; k++)
            right = right && mark.end[k] >= before.end[k] &&
                    mark.end[k] - s->job.record.base[k] <= s->text_len[k];
        before = mark;
    }
    return right ? 0 : err_set(err, ERR_TOOL, "record.marks of the record are not right");
}

static int read_saved(struct saved *s, const struct handover *h, struct err *err)
{
    struct job *j = &s->job;
    struct err none;
    long long pid, oom_kills, discarded = 0;
    if (handover_int(h, "job.pid", 2, INT_MAX, &pid, err) < 0 ||
        handover_bool(h, "job.latin1", &j->latin1, err) < 0 ||
        handover_bool(h, "job.reaped", &j->reaped, err) < 0 ||
        handover_bool(h, "job.kill_began", &j->kill.began, err) < 0 ||
        handover_int(h, "job.oom_kills", 0, INT64_MAX, &oom_kills, err) < 0 ||
        handover_int(h, "job.timeout_ms", -1, INT64_MAX, &s->timeout_ms, err) < 0 ||
        read_stream(s, h, 0, err) < 0 || read_stream(s, h, 1, err) < 0 ||
        handover_fd(h, "in.pipe", S_IFIFO, true, &j->in.fd, err) < 0 ||
        handover_get(h, "in.pending", &s->pending, &s->pending_len, err) < 0 ||
        handover_bool(h, "in.ever_open", &j->in.ever_open, err) < 0 ||
        handover_bool(h, "in.closing", &j->in.closing, err) < 0 || read_end(&j->record, h, err) < 0 ||
        handover_get(h, "record.marks", &s->marks, &s->marks_len, err) < 0)
        return -1;
    j->pid = j->record.pid = (pid_t)pid;
    j->oom.kills = (unsigned long long)oom_kills;
    handover_int(h, "in.discarded", 0, INT64_MAX, &discarded, &none); /* older builds don't count it */
    j->record.end.stdin_discarded = (unsigned long long)discarded;
    return check_marks(s, err);
}

int job_take_over(struct job *j, struct loop *loop, const struct handover *h, struct err *err)
{
    struct saved s = {.job = {.loop = loop, .record = RECORD_INIT}};
    siginfo_t info;
    if (read_saved(&s, h, err) < 0)
        return -1;
    if (!loop)
        return 0;
    if (!s.job.reaped && waitid(P_PID, (id_t)s.job.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return err_set(err, ERR_TOOL, "process %ld is no child of this one", (long)s.job.pid);
    *j = s.job;
    for (int i = 0; i < 2; i++) {
        fifo_add(&j->out[i].raw, s.raw[i], s.raw_len[i]);
        buf_add(&j->record.text[i], s.text[i], s.text_len[i]);
    }
    fifo_add(&j->in.pending, s.pending, s.pending_len);
    j->record.n_marks = s.marks_len / sizeof *j->record.marks;
    size_t room = 1; /* as record_mark grows it */
    while (room < j->record.n_marks)
        room *= 2;
    j->record.marks = j->record.n_marks > 0 ? mem_alloc(room * sizeof *j->record.marks) : NULL;
    if (j->record.n_marks > 0)
        memcpy(j->record.marks, s.marks, s.marks_len);
    job_watch_again(j, s.timeout_ms);
    return 0;
}
