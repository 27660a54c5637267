#include "exec_remote_pending.h"

#include <stdlib.h>

#include "mem.h"
#include "proc.h"

void job_give(struct job *j, struct rpc_call *call, enum job_form form)
{
    job_take(j);
    job_answer(call, &j->record, form);
}

/* A call on its way: it waits for news, or for the end of a kill. */
struct pending {
    struct rpc_call *call; /* NULL: the client has gone */
    struct job *job;
    struct job_waiter waiter;
    struct loop_source *timer;
    enum job_form form;
};

static void pending_free(struct pending *p)
{
    job_forget(p->job, &p->waiter);
    loop_remove(p->timer);
    free(p);
}

static void pending_ready(void *arg)
{
    struct pending *p = arg;
    if (p->call)
        job_give(p->job, p->call, p->form);
    pending_free(p);
}

/* What is left ends later, if ever (it sleeps in the kernel, or is not ours to signal). The output that there
 * is comes with the next call. */
static void kill_ready(void *arg)
{
    struct pending *p = arg;
    const struct job *j = p->job;
    struct err err;
    if (j->kill.left == 0 || !p->call) {
        pending_ready(p);
        return;
    }
    struct buf living BUF_AUTO = BUF_INIT;
    proc_put_living(&living);
    err_set(&err, ERR_TOOL, "%zu processes of job %ld could not be ended%s; see ps", j->kill.left,
            (long)j->pid, buf_str(&living));
    rpc_fail(p->call, &err);
    pending_free(p);
}

/* From the loop, where nobody else looks whether this was the last one. */
static void pending_timeout(void *arg)
{
    struct job *j = ((struct pending *)arg)->job;
    pending_ready(arg);
    job_notify(j);
}

static struct pending *pending_new(struct job *j, struct rpc_call *call, enum job_form form)
{
    struct pending *p = mem_zalloc(sizeof *p);
    *p = (struct pending){.call = call, .job = j, .form = form};
    p->waiter = (struct job_waiter){.ready = pending_ready, .arg = p};
    return p;
}

static void wait_abandoned(void *arg)
{
    pending_free(arg);
}

static void kill_abandoned(void *arg)
{
    ((struct pending *)arg)->call = NULL; /* what it began runs on */
}

void job_give_news(struct job *j, struct rpc_call *call, double timeout_s, enum job_form form)
{
    struct pending *pending = pending_new(j, call, form);
    rpc_on_abandon(call, wait_abandoned, pending);
    job_wait(j, &pending->waiter);
    if (timeout_s >= 0)
        pending->timer = loop_timer(j->loop, (int64_t)(timeout_s * 1000), pending_timeout, pending);
    job_notify(j);
}

void job_give_end(struct job *j, struct rpc_call *call)
{
    struct pending *pending = pending_new(j, call, JOB_OUTPUT);
    pending->waiter.ready = kill_ready;
    rpc_on_abandon(call, kill_abandoned, pending);
    job_kill(j, &pending->waiter);
}
