/* What every keeper does besides its tool: serving its socket, telling its state, ending. */
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "keeper_internal.h"
#include "mem.h"
#include "moving.h"
#include "proc.h"

#define GRACE_MS 2000
#define LIMIT_MS 3000
#define LOOK_MS 3600000
#define LEAVE_MS 60000 /* for a client that reads its answer slowly */

static void drained(void *arg)
{
    struct keeper_service *s = arg;
    if (s->how == KEEPER_STOPPED)
        ipc_unlink(s->keeper->base.dirfd, s->keeper->name);
    loop_stop(s->keeper->base.loop, s->left > 0);
}

static void answer(struct keeper_service *s)
{
    struct err err;
    struct buf text BUF_AUTO = BUF_INIT;
    if (s->how == KEEPER_STOPPED) {
        json_put_int(&text, (long long)s->left);
        rpc_result(s->call, span_of(&text));
    } else if (s->left > 0) {
        struct buf living BUF_AUTO = BUF_INIT;
        proc_put_living(&living);
        err_set(&err, ERR_TOOL, "%zu processes of %s could not be ended%s; see ps", s->left, s->keeper->name,
                buf_str(&living));
        rpc_fail(s->call, &err);
    } else {
        rpc_null(s->call);
    }
}

static void ended(void *arg, size_t left)
{
    struct keeper_service *s = arg;
    s->left = left;
    if (s->cleared)
        s->cleared(s->ctx);
    if (s->call)
        answer(s);
    http_server_drain(s->http, HTTP_DRAIN_MS, drained, s);
}

static void client_gone(void *arg)
{
    ((struct keeper_service *)arg)->call = NULL;
}

static void left(void *arg)
{
    loop_stop(((struct keeper_service *)arg)->keeper->base.loop, 0);
}

void keeper_end(struct keeper_service *s, struct rpc_call *call, enum keeper_ending how)
{
    if (s->ending) {
        struct err err;
        err_set(&err, ERR_TOOL, "%s is ending already", s->keeper->name);
        if (call)
            rpc_fail(call, &err);
        return;
    }
    s->ending = true;
    s->call = call;
    s->how = how;
    if (call)
        rpc_on_abandon(call, client_gone, s);
    struct tree_end_options all = {.group = s->hang_up(s->ctx), .grace_ms = GRACE_MS, .limit_ms = LIMIT_MS};
    tree_end(s->keeper->base.loop, &all, ended, s);
}

void keeper_set_age(struct keeper_service *s, long long ms)
{
    s->started_ms = now_ms() - ms;
}

static void owner_gone(void *arg)
{
    keeper_end(arg, NULL, KEEPER_CLOSED);
}

void keeper_ends_with(struct keeper_service *s, pid_t pid)
{
    s->owned = true;
    proc_watch(s->keeper->base.loop, pid, owner_gone, s);
}

void keeper_ends_in(struct keeper_service *s, long long ms)
{
    if (ms >= 0)
        loop_timer(s->keeper->base.loop, ms, owner_gone, s);
}

void keeper_on_cleared(struct keeper_service *s, void (*cleared)(void *ctx))
{
    s->cleared = cleared;
}

void keeper_leave(struct keeper_service *s)
{
    if (s->ending)
        return;
    s->ending = true;
    s->how = KEEPER_STOPPED;
    keeper_hide(s->keeper); /* now, not when it is another one's */
    ipc_refuse_queued(s->keeper->listen_fd);
    http_server_drain(s->http, LEAVE_MS, left, s);
}

static void end_method(struct rpc_call *call, struct span params, void *ctx)
{
    (void)params;
    keeper_end(ctx, call, KEEPER_STOPPED);
}

static rpc_handler find(void *ctx, const char *name, void **handler_ctx)
{
    struct keeper_service *s = ctx;
    *handler_ctx = ctx;
    if (strcmp(name, KEEPER_END) == 0)
        return end_method;
#ifndef TOOLBOX_GUEST
    if (strcmp(name, KEEPER_MOVE) == 0)
        return keeper_move;
#endif
    *handler_ctx = s->ctx;
    return strcmp(name, KEEPER_STATUS) == 0 ? s->status : rpc_find(s->tool->keeper, name);
}

static void on_signal(void *arg, int signal)
{
    (void)signal;
    keeper_end(arg, NULL, KEEPER_STOPPED);
}

static void put_processes(struct buf *out)
{
    struct proc *list;
    long long kb = proc_memory_kb(getpid()), own;
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n; i++)
        if ((own = proc_memory_kb(list[i].pid)) > 0)
            kb += own;
    free(list);
    json_member_int_or_null(out, "processes", kb < 0 ? -1 : (long long)n);
    json_member_int_or_null(out, "memory_kb", kb);
}

void keeper_put_usage(struct buf *out, const struct keeper_service *s)
{
    struct http_counts counts = http_server_counts(s->http);
    json_member_seconds(out, "age_s", now_ms() - s->started_ms);
    put_processes(out);
    json_member_int(out, "bytes_in", (long long)counts.bytes_in);
    json_member_int(out, "bytes_out", (long long)counts.bytes_out);
}

/* Its server may have died long ago; if then the directory goes as well, nobody can ever reach this process
 * again. */
static void look(void *arg)
{
    struct keeper_service *s = arg;
    struct stat st;
    if (fstat(s->keeper->base.dirfd, &st) == 0 && st.st_nlink == 0)
        keeper_end(s, NULL, KEEPER_STOPPED);
    else
        loop_timer_set(s->timer, LOOK_MS);
}

struct keeper_service *keeper_serve(struct keeper *k, const struct tool *tool, void *ctx, rpc_handler status,
                                    pid_t (*hang_up)(void *ctx))
{
    struct keeper_service *s = mem_zalloc(sizeof *s);
    *s = (struct keeper_service){.keeper = k, .tool = tool, .ctx = ctx, .status = status, .hang_up = hang_up};
    s->started_ms = now_ms();
    s->http = http_server_new(k->base.loop, k->listen_fd, find, s);
    s->timer = loop_timer(k->base.loop, LOOK_MS, look, s);
    loop_on_signal(k->base.loop, on_signal, s);
    return s;
}
