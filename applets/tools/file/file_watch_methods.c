/* What the server does for file_watch: without a cursor a keeper is started, one with it is its own keeper's
 * to answer. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "commands/server/server.h"
#include "mem.h"
#include "relocate.h"
#include "tools/file/file_path.h"
#include "tools/file/file_watch.h"

#define AT(member) offsetof(struct watch_params, member)
#define WAIT_MAX 86400

static const struct param list[] = {
    {.key = "path",
     .type = PARAM_NAME,
     .offset = AT(path),
     PARAM_DOC(
         "A directory, or a file: a watch begins. One that is relative begins where the server was started",
         "cursor says it")},
    {.key = "cursor",
     .type = PARAM_NAME,
     .offset = AT(cursor),
     PARAM_DOC("That of the answer before: what it told is not told again",
               "none: the answer comes at once")},
    {.key = "exclude",
     .type = PARAM_NAMES,
     .offset = AT(exclude),
     PARAM_DOC("Patterns as of file_find: of names, or with a slash of paths from there on", "none")},
    {.key = "recursive",
     .type = PARAM_BOOL,
     .offset = AT(recursive),
     PARAM_DOC("Also what is in the directories there", "true")},
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = AT(timeout),
     .max = WAIT_MAX,
     PARAM_DOC("How many seconds to wait for a change; then changes is empty", "until there is one")},
    {.key = "stop", .type = PARAM_BOOL, .offset = AT(stop), PARAM_DOC("End the watch", "false")},
    {.key = "ends_with",
     .type = PARAM_INT,
     .offset = AT(ends_with),
     .min = 1,
     .max = INT_MAX,
     PARAM_DOC("A process with whose end it ends, however that comes", "none")},
    {.key = "user",
     .type = PARAM_USER,
     .offset = AT(user),
     PARAM_DOC("With whose rights; another user takes root", "the server's own")},
};
const struct params_table watch_params_table = PARAMS_TABLE(list);

bool watch_cursor(const char *cursor, char owner[IPC_NAME_MAX], long long *number)
{
    const char *colon = strchr(cursor, ':');
    char *end;
    if (strncmp(cursor, WATCH_PREFIX, sizeof WATCH_PREFIX - 1) != 0 || !colon ||
        colon - cursor >= IPC_NAME_MAX / 2)
        return false;
    memcpy(owner, cursor, (size_t)(colon - cursor));
    owner[colon - cursor] = '\0';
    *number = strtoll(colon + 1, &end, 10);
    return *end == '\0' && end > colon + 1;
}

static void put_begun(struct buf *out, const char *name, const char *word)
{
    buf_addc(out, '{');
    char *cursor MEM_AUTO = mem_printf("%s:%s", name, word);
    json_member_string(out, "cursor", cursor);
    buf_adds(out, ",\"changes\":[],\"ended\":false,\"incomplete\":false}");
}

static int check(const void *params, struct err *err)
{
    const struct watch_params *p = params;
    if (p->path.n == 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: path: is missing");
    return 0;
}

static int start(struct keeper *k, void *arg, struct err *err)
{
    return code_unpack(CODE_file, err) < 0 ? -1 : watch_start_in_keeper(k, arg, err);
}

static void ask_again(struct rpc_call *call, void *ctx);

static void ask(struct rpc_call *call, struct server *s, const char *cursor)
{
    char owner[IPC_NAME_MAX];
    long long number;
    struct err err;
    const struct base *base = server_base(s);
    int fd = watch_cursor(cursor, owner, &number) ? ipc_connect(base->dirfd, owner, 0) : -1;
    if (fd >= 0) {
        rpc_forward(call, base->loop, fd, ask_again, s);
        return;
    }
    err_set(&err, ERR_TOOL,
            "there is no watch behind the cursor '%.100s' (any more): nobody had asked it for a minute, or "
            "it was "
            "stopped; begin another one with path",
            cursor);
    rpc_fail_kind(call, &err, "not_found");
}

void file_watch(struct rpc_call *call, struct span params, void *ctx)
{
    static const struct watch_params defaults = WATCH_DEFAULTS;
    static const struct starting_kind kind = {.params = &watch_params_table,
                                              .size = sizeof(struct watch_params),
                                              .user = AT(user),
                                              .defaults = &defaults,
                                              .check = check,
                                              .prefix = WATCH_PREFIX,
                                              .no_user = FILE_NO_USER,
                                              .start = start,
                                              .put_answer = put_begun};
    struct watch_params p = WATCH_DEFAULTS;
    if (!rpc_unpack(call, &watch_params_table, params, &p))
        return;
    if (p.cursor.s)
        ask(call, ctx, p.cursor.s);
    else
        server_start_keeper(ctx, call, params, &kind);
    params_release(&watch_params_table, &p);
}

/* It ended with the call in its queue. */
static void ask_again(struct rpc_call *call, void *ctx)
{
    struct rpc_request r;
    rpc_request_parse(&r, rpc_request_text(call), NULL);
    file_watch(call, r.params, ctx);
}
