/* Keepers that calls start: what is asked is checked, the keeper forked, and its word becomes the answer. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "policy_rules.h"
#include "server_internal.h"
#include "surroundings_param.h"

static void starting_free(struct starting *s)
{
    params_release(s->kind->params, s->params);
    free(s->params);
    if (s->user)
        user_release(&s->other);
    free(s);
}

/* What it is told of: the kind, and what its starter is answered. */
static char *whom(const struct starting *s, struct span answer)
{
    const char *kind = s->kind->prefix ? s->kind->prefix : "Job";
    bool object = answer.n > 0 && *answer.s == '{';
    return mem_printf(object ? "\"kind\":\"%s\",%.*s" : "\"kind\":\"%s\",\"session_id\":%.*s}", kind,
                      (int)(answer.n - object), answer.s + object);
}

static void on_up(void *arg, pid_t pid, const char *word, const struct err *err)
{
    struct starting *s = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    if (pid >= 0)
        s->kind->put_answer(&text, s->name, word);
    if (s->call && pid < 0)
        rpc_fail_kind(s->call, err, word);
    else if (s->call)
        rpc_result(s->call, span_of(&text));
    if (pid >= 0)
        server_begun(s->server, pid, whom(s, span_of(&text)));
    starting_free(s);
}

static void on_abandoned(void *arg)
{
    ((struct starting *)arg)->call = NULL;
}

static int take_params(struct starting *s, struct span params, struct err *err)
{
    const struct starting_kind *kind = s->kind;
    bool as_other = false;
    if (params_unpack(kind->params, params, s->params, err) < 0 ||
        (kind->check && kind->check(s->params, err) < 0) ||
        user_param_wanted((const void *)((const char *)s->params + kind->user), &s->other, &as_other, err) <
            0)
        return -1;
    s->user = as_other ? &s->other : NULL;
    return policy_rules_user(s->user, err);
}

/* In the keeper. */
static int start(struct keeper *k, void *arg, struct err *err)
{
    const struct starting *s = arg;
    void *given = (char *)s->params + s->kind->surroundings;
    if (s->kind->surroundings > 0 && surroundings_enter(given, &k->base, err) < 0)
        return -1;
    return s->kind->start(k, arg, err);
}

void server_start_keeper(struct server *server, struct rpc_call *call, struct span params,
                         const struct starting_kind *kind)
{
    struct starting *s = mem_zalloc(sizeof *s);
    struct err err;
    *s = (struct starting){.server = server, .call = call, .kind = kind, .params = mem_zalloc(kind->size)};
    if (kind->defaults)
        memcpy(s->params, kind->defaults, kind->size);
    if (take_params(s, params, &err) < 0) {
        rpc_fail_kind(call, &err, kind->no_user && err.code == ERR_TOOL ? kind->no_user : NULL);
        starting_free(s);
        return;
    }
    rpc_on_abandon(call, on_abandoned, s);
    if (kind->prefix)
        server_next_name(server, kind->prefix, s->name);
    server_fork_keeper(server, s->name, start, s, on_up, s);
}
