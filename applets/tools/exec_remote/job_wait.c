/* Who waits for a job: for news of it, for the end of all that it started, or for the last of it to be gone.
 */
#include <stddef.h>
#include <sys/wait.h>

#include "job_internal.h"
#include "utf8.h"

void job_waiters_add(struct job_waiter **list, struct job_waiter *w)
{
    w->next = *list;
    *list = w;
}

void job_waiters_wake(struct job_waiter **list)
{
    while (*list) {
        struct job_waiter *w = *list;
        *list = w->next;
        w->ready(w->arg);
    }
}

static void unlink_from(struct job_waiter **list, const struct job_waiter *w)
{
    while (*list && *list != w)
        list = &(*list)->next;
    if (*list)
        *list = w->next;
}

void job_forget(struct job *j, struct job_waiter *w)
{
    unlink_from(&j->waiting.news, w);
    unlink_from(&j->waiting.end, w);
}

void job_wait(struct job *j, struct job_waiter *w)
{
    job_waiters_add(&j->waiting.news, w);
}

void job_wake(struct job *j)
{
    job_waiters_wake(&j->waiting.news);
}

/* The beginning of a character alone says nothing yet. */
static bool has_text(const struct job *j, int i)
{
    const struct job_stream *s = &j->out[i];
    if (s->raw.len == 0 || s->raw.len > 3 || job_stream_is_final(s) || j->latin1)
        return s->raw.len > 0;
    struct buf bytes BUF_AUTO = BUF_INIT;
    fifo_peek(&s->raw, 3, &bytes);
    return utf8_char(bytes.data, bytes.len) >= 0;
}

bool job_has_news(const struct job *j)
{
    return j->reaped || j->record.text[0].len > 0 || j->record.text[1].len > 0 || has_text(j, 0) ||
           has_text(j, 1);
}

bool job_is_gone(const struct job *j)
{
    siginfo_t info;
    return j->reaped && !j->kill.ending && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;
}

void job_notify(struct job *j)
{
    if (j->waiting.news && job_has_news(j))
        job_waiters_wake(&j->waiting.news);
    if (j->owner.gone && job_is_gone(j))
        j->owner.gone(j->owner.arg);
}
