/* Calls for what other builds have, and their part of lists: in a process of its own, which has that build's
 * program do it. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "mem.h"
#include "other_builds.h"
#include "program.h"
#include "server_internal.h"

#define LIST_MS 8000 /* for one build: it gives its keepers 5 s */

static char program_name[] = "toolbox", exec_name[] = "exec", whole[] = "--whole";
static char *const exec_argv[] = {program_name, exec_name, whole, NULL};

/* ---- a call ---- */

struct passing {
    struct server *server;
    struct rpc_call *call; /* NULL: the client has gone */
    struct work *work;
    bool ended;
    char owner[IPC_NAME_MAX];
};

static void fail(int out, struct span request, const struct err *err)
{
    struct rpc_request r;
    struct buf text BUF_AUTO = BUF_INIT;
    rpc_request_parse(&r, request, NULL);
    rpc_put_error(&text, r.id, err);
    io_write_all(out, text.data, text.len);
}

static int ask_list(int program, const char *method, struct buf *answer)
{
    struct buf request BUF_AUTO = BUF_INIT;
    buf_addf(&request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"" OTHER_BUILDS_NONE "\":true}",
             method);
    return other_build_run(program, exec_argv, span_of(&request), LIST_MS, answer) == 0 &&
                   json_check(span_of(answer), NULL) == 0
               ? 0
               : -1;
}

/* Jobs alone have something to tell when they have ended: PREFIX_PID is one of them. */
static bool lists_job(const struct other_build *b, const char *owner)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span list, entry, pid;
    const char *number = strrchr(owner, '_');
    int program FD_AUTO = other_build_open(b, owner, NULL);
    if (program < 0 || !number || ask_list(program, "exec_remote_list", &answer) < 0 ||
        client_result(span_of(&answer), &list, NULL) < 0 || json_kind(list) != JSON_ARRAY)
        return false;
    for (size_t at = 0; json_element(list, &at, &entry);)
        if (json_kind(entry) == JSON_OBJECT && json_member(entry, "pid", &pid, NULL) &&
            span_is(pid, number + 1))
            return true;
    return false;
}

static const struct other_build *build_for(const struct passing *p, const struct other_builds *others)
{
    const struct other_build *b = other_builds_with(others, p->owner);
    for (size_t i = 0; !b && p->ended && i < others->n; i++)
        if (lists_job(&others->list[i], p->owner))
            b = &others->list[i];
    return b;
}

static void become_program(void *arg, int out)
{
    const struct passing *p = arg;
    struct span request = rpc_request_text(p->call);
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    struct err err;
    other_builds_find(&others);
    const struct other_build *b = build_for(p, &others);
    if (!b)
        return;
    int program = other_build_open(b, p->owner, &err);
    if (program >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
        program_exec(program, exec_argv, request.s, request.n);
        err_set(&err, ERR_TOOL, "the program of build %s can't be run", b->build);
    }
    fail(out, request, &err);
}

static void passed(void *arg, struct buf *answer)
{
    struct passing *p = arg;
    while (answer->len > 0 && answer->data[answer->len - 1] == '\n')
        buf_truncate(answer, answer->len - 1);
    if (p->call && answer->len > 0)
        rpc_response(p->call, span_of(answer));
    else if (p->call)
        server_without_keeper(p->server, p->call);
    free(p);
}

/* Its end is what the other build's keeper sees as that of the client. */
static void abandoned(void *arg)
{
    struct passing *p = arg;
    p->call = NULL;
    server_work_end(p->work);
}

bool server_pass_to_other(struct server *s, struct rpc_call *call, const char *owner, bool ended)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    struct err err;
    other_builds_find(&others);
    if (!other_builds_with(&others, owner) && !(ended && others.n > 0))
        return false;
    struct passing *p = mem_zalloc(sizeof *p);
    *p = (struct passing){.server = s, .call = call, .ended = ended};
    snprintf(p->owner, sizeof p->owner, "%s", owner);
    p->work = server_work(s, become_program, p, passed, p, &err);
    if (p->work) {
        rpc_on_abandon(call, abandoned, p);
        return true;
    }
    rpc_fail(call, &err);
    free(p);
    return true;
}

/* ---- lists ---- */

/* Each with the build that it belongs to in front. */
static void put_entries(struct buf *out, const char *build, struct span answer)
{
    struct span list, entry, first;
    if (client_result(answer, &list, NULL) < 0 || json_kind(list) != JSON_ARRAY)
        return;
    for (size_t at = 0; json_element(list, &at, &entry);) {
        if (json_kind(entry) != JSON_OBJECT || json_member(entry, "build", &first, NULL))
            continue;
        buf_adds(out, out->len > 0 ? ",{" : "{");
        json_member_string(out, "build", build);
        buf_addc(out, ',');
        buf_add(out, entry.s + 1, entry.n - 1);
    }
}

static void ask_all(void *arg, int out)
{
    const char *method = arg;
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    other_builds_find(&others);
    for (size_t i = 0; i < others.n; i++) {
        struct buf answer BUF_AUTO = BUF_INIT;
        int program FD_AUTO = other_build_open(&others.list[i], method, NULL);
        if (program >= 0 && ask_list(program, method, &answer) == 0)
            put_entries(&text, others.list[i].build, span_of(&answer));
    }
    io_write_all(out, text.data, text.len);
}

bool server_ask_others(struct server *s, struct rpc_call *call, work_done done, void *arg)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    struct rpc_request r;
    struct span own;
    struct span request = rpc_request_text(call);
    if (json_member(request, OTHER_BUILDS_NONE, &own, NULL) || rpc_request_parse(&r, request, NULL) < 0)
        return false;
    other_builds_find(&others);
    return others.n > 0 && server_work(s, ask_all, r.method, done, arg, NULL);
}
