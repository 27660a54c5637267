#include "route.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "ipc.h"
#include "rpc.h"
#include "policy_rules.h"
#include "commands/server/other_builds.h"
#include "commands/server/server.h"
#include "tool.h"

static void keep_answer(void *arg, struct buf *response)
{
    struct answer *a = arg;
    a->line.data = buf_take(response, &a->line.len);
    a->line.cap = a->line.len + 1;
}

static void answer_here(struct answer *a, struct span request)
{
    rpc_take(request, tool_find_in_process, NULL, (struct rpc_sink){keep_answer, a});
}

int route_keeper(const struct method *m, struct span params)
{
    char owner[IPC_NAME_MAX];
    struct place place PLACE_AUTO = PLACE_INIT;
    if (m->kind != METHOD_KEEPER || m->tool->keeper_of(params, owner, NULL) < 0)
        return -1;
    return ipc_find(&place, owner);
}

/* Where what the call is for runs in another build, that build's program goes on from here: so it is its
 * client, too, that says whether the answer was delivered. Where that can't be the server says why. */
static void hand_over(const struct answer *a, const struct method *m, const struct rpc_request *r,
                      struct span request)
{
    char owner[IPC_NAME_MAX];
    if (a->hand_over && m->kind == METHOD_KEEPER && m->tool->keeper_of(r->params, owner, NULL) == 0)
        other_builds_hand_over(owner, a->hand_over, request);
}

bool route_is_query(const struct method *m, const char *name)
{
    for (const char *const *at = m->kind == METHOD_SERVER ? m->tool->queries : NULL; at && *at; at++)
        if (strcmp(*at, name) == 0)
            return true;
    return false;
}

void route_ended(struct buf *line, struct span id, const struct err *why)
{
    struct err ended;
    err_set(&ended, ERR_TOOL, "the session, job or MCP server ended while the call was open (%s)", why->msg);
    if (id.s)
        rpc_put_error(line, id, &ended);
}

/* 1: there is an answer, the keeper's, or that it has ended under the call. 0: it had ended before, and the
 * server knows what is to be said. -1: nobody wants it any more. */
static int ask_keeper(struct answer *a, int fd, const struct rpc_request *r, struct span request,
                      struct err *err)
{
    a->fd = fd;
    if (client_call(fd, request, &a->line, -1, err) == 0)
        return 1;
    int why = errno;
    io_close(&a->fd);
    buf_truncate(&a->line, 0);
    if (why == ECONNRESET || why == ECONNABORTED)
        return why == ECONNRESET ? 0 : -1;
    route_ended(&a->line, r->id, err);
    return 1;
}

/* True when there is a call in the batch that only the server can answer. */
static bool batch_needs_server(struct span batch)
{
    struct span element;
    struct rpc_request r;
    for (size_t at = 0; json_element(batch, &at, &element);) {
        if (rpc_request_parse(&r, element, NULL) < 0)
            continue;
        enum method_kind kind = tool_method(r.method).kind;
        if (kind == METHOD_SERVER || kind == METHOD_KEEPER)
            return true;
    }
    return false;
}

int route(struct answer *a, struct span request, struct err *err)
{
    struct rpc_request r = {0};
    if (json_check(request, NULL) < 0) {
        answer_here(a, request);
        return 0;
    }
    bool policy = policy_rules_there();
    if (json_kind(request) == JSON_ARRAY) {
        if (policy || batch_needs_server(request))
            return server_call(&a->fd, request, false, -1, &a->line, err);
        answer_here(a, request);
        return 0;
    }
    int valid = rpc_request_parse(&r, request, NULL);
    struct method m = tool_method(r.method);
    a->id = r.id;
    if (valid < 0 || m.kind == METHOD_UNKNOWN || (m.kind == METHOD_IN_PROCESS && !policy)) {
        answer_here(a, request);
        return 0;
    }
    int keeper = policy ? -1 : route_keeper(&m, r.params);
    int asked = keeper >= 0 ? ask_keeper(a, keeper, &r, request, err) : 0;
    if (asked != 0)
        return asked < 0 ? -1 : 0;
    if (keeper < 0 && !policy)
        hand_over(a, &m, &r, request);
    return server_call(&a->fd, request, route_is_query(&m, r.method), -1, &a->line, err);
}

void route_end(struct answer *a, bool delivered)
{
    if (delivered && a->fd >= 0)
        client_delivered(a->fd);
    io_close(&a->fd);
    buf_release(&a->line);
}

int call_method(const char *method, struct span params, struct buf *result, struct err *err)
{
    struct answer a = ANSWER_INIT;
    struct buf request BUF_AUTO = BUF_INIT;
    struct span text;
    rpc_put_request(&request, (struct span){"1", 1}, method, params);
    int failed = route(&a, span_of(&request), err);
    if (failed == 0)
        failed = client_result(span_of(&a.line), &text, err);
    if (failed == 0)
        buf_add(result, text.s, text.n);
    route_end(&a, true);
    return failed;
}
