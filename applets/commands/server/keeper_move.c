/* A keeper's side of a move to another build. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "keeper_internal.h"
#include "log.h"
#include "mem.h"
#include "moving.h"
#include "other_builds.h"
#include "program.h"
#include "self.h"

#define CHECK_MS 10000 /* for the other program to say whether it can go on from the record */
#define TRY_MS 5       /* between two looks whether nothing is under way */
#define TRIES_MS 5000

struct move {
    struct keeper_service *service;
    struct loop_source *timer;
    long long until;
    int program, own; /* the one to become, and what runs now */
};

/* ---- the record ---- */

static int save(const struct move *m, struct handover_out *out, struct err *err)
{
    const struct keeper_service *s = m->service;
    const struct keeper *k = s->keeper;
    const struct moving *how = s->tool->moving;
    char shown[IPC_NAME_MAX], hidden[1 + IPC_NAME_MAX];
    if (s->owned)
        return err_set(err, ERR_TOOL, "it ends with its client's process, which would be forgotten");
    if (handover_begin(out, how->kind, how->number, err) < 0)
        return -1;
    keeper_socket_names(k, shown, hidden);
    handover_put(out, "keeper.name", k->name, strlen(k->name));
    handover_put(out, "keeper.socket", shown, strlen(shown));
    handover_put(out, "keeper.hidden", hidden, strlen(hidden));
    handover_put_int(out, "keeper.age_ms", now_ms() - s->started_ms);
    handover_put_fd(out, "keeper.place", k->base.dirfd);
    handover_put_fd(out, "keeper.listen", k->listen_fd);
    handover_put_fd(out, "keeper.program", m->own);
    if (how->save(s->ctx, out, err) == 0 &&
        (!out->failed || err_set(err, ERR_TOOL, "the record of its state could not be written") == 0))
        return 0;
    handover_end(out);
    return -1;
}

/* As another program would have it, in a process of its own. */
static int ask_whether_it_can(const struct move *m, const struct handover_out *out, struct err *err)
{
    char name[] = "toolbox", command[] = "adopt", check[] = "--check", fd[16], own[16];
    char *const argv[] = {name, command, check, fd, own, NULL};
    struct buf said BUF_AUTO = BUF_INIT;
    snprintf(fd, sizeof fd, "%d", out->fd);
    snprintf(own, sizeof own, "%d", m->own);
    int status = handover_keep(out, true);
    if (status == 0)
        status = other_build_run(m->program, argv, (struct span){0}, CHECK_MS, &said);
    handover_keep(out, false);
    if (status == 0)
        return 0;
    while (said.len > 0 && said.data[said.len - 1] == '\n')
        buf_truncate(&said, said.len - 1);
    return err_set(err, ERR_TOOL, "that build can't go on from here: %s",
                   said.len > 0 ? said.data : "its program did not say why");
}

/* Returns where it can't be. */
static void become(const struct move *m, struct err *err)
{
    struct handover_out out = {.fd = -1};
    char name[] = "toolbox", command[] = "adopt", fd[16], own[16];
    char *const argv[] = {name, command, fd, own, NULL};
    if (save(m, &out, err) < 0)
        return;
    if (ask_whether_it_can(m, &out, err) == 0) {
        snprintf(fd, sizeof fd, "%d", out.fd);
        snprintf(own, sizeof own, "%d", m->own);
        if (handover_keep(&out, true) == 0)
            program_exec(m->program, argv, NULL, 0);
        err_sys(err, ERR_TOOL, errno, "that build's program can't be run");
        handover_keep(&out, false);
    }
    handover_end(&out);
}

/* ---- the moment ---- */

static void give_up(struct move *m)
{
    m->service->move = NULL;
    loop_remove(m->timer);
    io_close(&m->program);
    io_close(&m->own);
    free(m);
}

/* When nothing is under way. Whoever comes in between is turned away by the end of his connection, without
 * his request having been read. */
static void try_to_move(void *arg)
{
    struct move *m = arg;
    struct err err = {0};
    m->service->tool->moving->answer_waiting(m->service->ctx);
    if (!m->service->ending && !http_server_busy(m->service->http))
        become(m, &err);
    else
        err_set(&err, ERR_TOOL, "it is busy");
    if (now_ms() < m->until && !m->service->ending) {
        loop_timer_set(m->timer, TRY_MS);
        return;
    }
    log_line(LOG_WARNING, "%s stays in this build: %s", m->service->keeper->name, err.msg);
    give_up(m);
}

static int text_of(struct span params, const char *key, struct buf *text)
{
    struct span value;
    return json_kind(params) == JSON_OBJECT && json_member(params, key, &value, NULL) &&
                   json_kind(value) == JSON_STRING && json_string_text(value, text)
               ? 0
               : -1;
}

/* All that can be said against it is said now. */
static int begin(struct keeper_service *s, struct span params, struct err *err)
{
    struct buf path BUF_AUTO = BUF_INIT, sha256 BUF_AUTO = BUF_INIT;
    struct handover_out out = {.fd = -1};
    if (!s->tool->moving)
        return err_set(err, ERR_TOOL, "it is one of the %s, which can't be moved: it goes on in its build",
                       s->tool->list.title);
    if (s->ending || s->move)
        return err_set(err, ERR_TOOL, "it is ending or moving already");
    if (text_of(params, "path", &path) < 0 || text_of(params, "sha256", &sha256) < 0)
        return err_set(err, ERR_PARAMS, "path and sha256 are wanted");
    struct move *m = mem_zalloc(sizeof *m);
    *m = (struct move){.service = s, .until = now_ms() + TRIES_MS};
    m->own = self_open();
    m->program = m->own >= 0 ? program_open_path(buf_str(&path), buf_str(&sha256), err)
                             : err_sys(err, ERR_TOOL, errno, "there would be no way back: its own program");
    m->timer = loop_timer(s->keeper->base.loop, TRY_MS, try_to_move, m);
    if (m->program < 0 || save(m, &out, err) < 0) {
        give_up(m);
        return -1;
    }
    int result = ask_whether_it_can(m, &out, err);
    handover_end(&out);
    if (result < 0)
        give_up(m);
    else
        s->move = m;
    return result;
}

void keeper_move(struct rpc_call *call, struct span params, void *ctx)
{
    struct err err;
    if (begin(ctx, params, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_result(call, (struct span){"true", 4});
}
