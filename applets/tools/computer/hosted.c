#include "hosted.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "computer.h"
#include "computer_params.h"
#include "mem.h"
#include "commands/server/server.h"
#include "task.h"

struct hosted {
    struct desk desk;
    struct keeper_service *service;
    char *user;
    struct task *first, **last;
    struct loop_source *timer, *watch;
};

/* ---- tasks ---- */

static void task_free(struct task *t)
{
    params_release(t->table, &t->params);
    free(t->request);
    free(t->rest.tiles);
    buf_release(&t->result);
    free(t);
}

/* Where the display is gone: how, and what to do. */
static void tell_end(const struct desk *d, struct err *err)
{
    if (!d->x.dead)
        return;
    if (d->own.started && d->own.pid == 0 && WIFSIGNALED(d->own.status))
        err_set(err, ERR_TOOL, "the X server of this session was ended by signal %d",
                WTERMSIG(d->own.status));
    else if (d->own.started && d->own.pid == 0)
        err_set(err, ERR_TOOL, "the X server of this session has ended with exit status %d",
                WEXITSTATUS(d->own.status));
    else
        *err = d->x.end;
    size_t n = strlen(err->msg);
    snprintf(err->msg + n, sizeof err->msg - n, "; open a new session with computer_new_session");
}

static void answer(struct hosted *h, struct task *t, int how)
{
    h->first = t->next;
    if (!h->first)
        h->last = &h->first;
    if (how == TASK_FAILED)
        tell_end(&h->desk, &t->err);
    if (t->call && how == TASK_FAILED)
        rpc_fail(t->call, &t->err);
    else if (t->call)
        rpc_result_take(t->call, &t->result, 0);
    task_free(t);
}

static void step(void *arg)
{
    struct hosted *h = arg;
    while (h->first) {
        struct task *t = h->first;
        int next = t->step(t);
        if (next > 0) {
            loop_timer_set(h->timer, next);
            return;
        }
        if (next < 0)
            answer(h, t, next);
    }
}

/* What has begun goes on to its end, without its waits: keys must not stay down. */
static void abandoned(void *arg)
{
    struct task *t = arg;
    struct hosted *h = (struct hosted *)t->desk; /* its first member */
    t->call = NULL;
    t->rest.until_ms = 0;
    t->params.action.screenshot = false;
    if (t == h->first)
        loop_timer_set(h->timer, 1);
}

static void take(struct rpc_call *call, struct hosted *h, task_fn fn, struct task *t)
{
    t->desk = &h->desk;
    t->call = call;
    t->step = fn;
    buf_init(&t->result, BUF_NO_MAX);
    rpc_on_abandon(call, abandoned, t);
    bool idle = !h->first;
    *h->last = t;
    h->last = &t->next;
    if (idle)
        step(h);
}

void hosted_act(struct rpc_call *call, struct span params, void *ctx)
{
    struct task *t = mem_zalloc(sizeof *t);
    struct computer_action_params *p = &t->params.action;
    t->table = &computer_act_params;
    *p = (struct computer_action_params)COMPUTER_ACTION_DEFAULTS;
    if (!rpc_unpack(call, t->table, params, p)) {
        free(t);
        return;
    }
    if (p->path.s) {
        t->request = mem_dup(p->path.s, p->path.n);
        p->path.s = t->request;
    }
    take(call, ctx, task_action, t);
}

static void look(struct rpc_call *call, struct span params, void *ctx, const struct params_table *table,
                 task_fn fn)
{
    struct task *t = mem_zalloc(sizeof *t);
    t->table = table;
    t->params.shot = (struct computer_shot_params)COMPUTER_SHOT_DEFAULTS;
    if (rpc_unpack(call, table, params, &t->params.shot))
        take(call, ctx, fn, t);
    else
        free(t);
}

void hosted_screenshot(struct rpc_call *call, struct span params, void *ctx)
{
    look(call, params, ctx, &computer_picture_params, task_screenshot);
}

void hosted_wait(struct rpc_call *call, struct span params, void *ctx)
{
    look(call, params, ctx, &computer_wait_params, task_wait);
}

/* ---- the end ---- */

void hosted_close(struct rpc_call *call, struct span params, void *ctx)
{
    struct hosted *h = ctx;
    struct text name = {0};
    if (!rpc_unpack(call, &computer_only_name_params, params, &name))
        return;
    free(name.s);
    keeper_end(h->service, call, KEEPER_CLOSED);
}

static pid_t hang_up(void *ctx)
{
    struct hosted *h = ctx;
    struct err ignored;
    keyboard_restore(&h->desk);
    if (!h->desk.x.dead)
        x11_sync(&h->desk.x, &ignored);
    loop_drop(&h->watch);
    loop_drop(&h->timer);
    x11_close(&h->desk.x);
    return h->desk.own.pid;
}

/* What comes while nothing is asked. */
static void on_event(void *arg, int events)
{
    struct hosted *h = arg;
    struct err err;
    (void)events;
    if (x11_look(&h->desk.x, &err) < 0) {
        loop_drop(&h->watch);
        if (h->desk.own.pid > 0)
            kill(h->desk.own.pid, SIGTERM);
    }
    buf_truncate(&h->desk.x.events, 0);
}

static void status(struct rpc_call *call, struct span params, void *ctx)
{
    const struct hosted *h = ctx;
    const struct desk *d = &h->desk;
    struct buf text BUF_AUTO = BUF_INIT;
    (void)params;
    buf_addc(&text, '{');
    json_member_int_or_null(&text, "pid", d->own.pid > 0 ? d->own.pid : -1);
    json_member_string(&text, "state", d->x.dead && d->own.pid <= 0 ? "ended" : h->first ? "busy" : "idle");
    json_member_string(&text, "user", h->user);
    json_member_string(&text, "display", d->x.display);
    json_member_int(&text, "width", d->x.screen.width);
    json_member_int(&text, "height", d->x.screen.height);
    json_member_int(&text, "depth", d->x.screen.depth);
    json_member_string(&text, "window_manager", d->own.manager_name);
    keeper_put_usage(&text, h->service);
    buf_addc(&text, '}');
    rpc_result(call, span_of(&text));
}

/* ---- the beginning ---- */

int hosted_start(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *s = arg;
    const struct computer_session_params *p = s->params;
    struct buf word BUF_AUTO = BUF_INIT;
    struct hosted *h = mem_zalloc(sizeof *h);
    if (desk_open(&h->desk, k, p, s->user, err) < 0)
        return err_wrap(err, "cannot open a display");
    json_member_string(&word, "display", h->desk.x.display);
    json_member_int(&word, "width", h->desk.model_width);
    json_member_int(&word, "height", h->desk.model_height);
    snprintf(k->word, sizeof k->word, "%s", buf_str(&word));
    h->last = &h->first;
    h->timer = loop_timer(k->base.loop, 1, step, h);
    h->watch = loop_fd(k->base.loop, h->desk.x.fd, LOOP_READ, on_event, h);
    h->user = user_label(s->user ? s->user->uid : geteuid());
    h->service = keeper_serve(k, &computer_tool, h, status, hang_up);
    if (p->ends_with > 0)
        keeper_ends_with(h->service, (pid_t)p->ends_with);
    return 0;
}
