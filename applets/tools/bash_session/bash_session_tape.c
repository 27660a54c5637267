#include "bash_session_tape.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bash_session_params.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "session_tape.h"
#include "spawn.h"

#ifndef TOOLBOX_GUEST

static struct tape *tape_of(struct session *s)
{
    if (!s->terminal.tape)
        s->terminal.tape = tape_new(s->loop, &s->terminal.pty);
    return s->terminal.tape;
}

/* ---- who watches ---- */

struct watch {
    struct rpc_call *call;
    struct session *session;
    struct tape_waiter waiter;
    struct loop_source *timer;
    long long cursor;
};

/* False: nothing has come, and that isn't said. */
static bool answer(struct rpc_call *call, struct session *s, long long cursor, bool anyhow)
{
    struct buf text BUF_AUTO = BUF_INIT, events BUF_AUTO = BUF_INIT;
    struct tape_view view;
    tape_view(tape_of(s), cursor, &s->terminal.viewers.recent, &events, &view);
    if (events.len == 0 && !view.ended && !anyhow)
        return false;
    buf_addc(&text, '{');
    json_member_int(&text, "cursor", view.cursor);
    json_member_int(&text, "rows", view.rows);
    json_member_int(&text, "cols", view.cols);
    if (view.omitted > 0)
        json_member_int(&text, "omitted_bytes", (long long)view.omitted);
    if (view.ended)
        json_member_bool(&text, "ended", true);
    json_key(&text, "events");
    buf_addc(&text, '[');
    buf_add(&text, events.data, events.len);
    buf_adds(&text, "]}");
    rpc_result_take(call, &text, 0);
    return true;
}

static void watch_free(struct watch *w)
{
    tape_forget(tape_of(w->session), &w->waiter);
    loop_remove(w->timer);
    free(w);
}

static void watch_ready(void *arg)
{
    struct watch *w = arg;
    answer(w->call, w->session, w->cursor, true);
    watch_free(w);
}

static void watch_abandoned(void *arg)
{
    watch_free(arg);
}

void session_watch(struct rpc_call *call, struct span params, struct session *s)
{
    struct tape_params p = TAPE_DEFAULTS;
    if (!rpc_unpack(call, &session_watch_params, params, &p))
        return;
    params_release(&session_watch_params, &p);
    if (answer(call, s, p.cursor, p.cursor < 0 || p.timeout_s == 0))
        return;
    struct watch *w = mem_zalloc(sizeof *w);
    *w = (struct watch){
        .call = call, .session = s, .cursor = p.cursor, .waiter = {.ready = watch_ready, .arg = w}};
    rpc_on_abandon(call, watch_abandoned, w);
    tape_wait(tape_of(s), &w->waiter);
    if (p.timeout_s > 0)
        w->timer = loop_timer(s->loop, (int64_t)(p.timeout_s * 1000) + 1, watch_ready, w);
}

/* ---- a recording ---- */

static char *default_path(const char *name)
{
    char place[4096];
    return getcwd(place, sizeof place) ? mem_printf("%s/%s-%lld.cast", place, name, wall_ms()) : NULL;
}

int session_begin_record(struct session *s, const struct record_params *p, const char *name, struct err *err)
{
    char *path MEM_AUTO = p->path.s ? mem_strdup(p->path.s) : default_path(name);
    const char *term = s->options.term ? s->options.term : "dumb";
    if (!path || *path != '/')
        return err_set(err, ERR_PARAMS, "Invalid parameters: path: must be an absolute path");
    struct record_options o = {.path = path,
                               .version = (int)p->version,
                               .max = p->max,
                               .title = name,
                               .shell = s->shell.path,
                               .term = term};
    return tape_record(tape_of(s), &o, err);
}

static void put_recording(struct buf *text, const struct recording *r)
{
    buf_addc(text, '{');
    json_member_string(text, "path", recording_path(r));
    if (recording_failure(r))
        json_member_string(text, "failure", recording_failure(r));
    buf_addc(text, '}');
}

static int record(struct session *s, const struct tape_params *p, struct buf *text, struct err *err)
{
    struct recording *r = tape_recording(s->terminal.tape);
    if (p->stop && !r)
        return err_set(err, ERR_TOOL, "it is not recorded");
    if (!p->stop && session_begin_record(s, &p->record, p->session_name.s, err) < 0)
        return -1;
    r = tape_recording(s->terminal.tape);
    recording_flush(r);
    put_recording(text, r);
    if (p->stop)
        tape_stop(s->terminal.tape);
    return 0;
}

void session_record(struct rpc_call *call, struct span params, struct session *s)
{
    struct tape_params p = TAPE_DEFAULTS;
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    if (!rpc_unpack(call, &session_record_params, params, &p))
        return;
    if (record(s, &p, &text, &err) < 0)
        rpc_fail(call, &err);
    else
        rpc_result(call, span_of(&text));
    params_release(&session_record_params, &p);
}

#endif
