/* What a message is, and whether it is one.
 *
 * Two kinds of client share the pipe. One begins with initialize, which settles the revision for all that
 * follows; the other names it in each request's _meta, as of 2026-07-28. A request is served as what it is,
 * so that both may come in any order. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "rpc.h"
#include "serve.h"

#define META_PREFIX "io.modelcontextprotocol/"
#define BATCH_MAX 1000

enum { UNSUPPORTED_VERSION = -32022 };

const char *const revision_names[REVISION_END] = {
    NULL, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28",
};
const char *const level_names[LEVEL_NEVER] = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
};

/* One request on its way: what was read of it so far. */
struct request {
    struct origin origin;
    struct span text; /* all of it */
    struct rpc_request rpc;
    struct span meta, token; /* s == NULL: none */
    int level;
};

/* ---- members ---- */

/* A member that is there and not null. */
static bool member(struct span object, const char *key, struct span *value)
{
    return object.s && json_member(object, key, value, NULL) && json_kind(*value) != JSON_NULL;
}

static bool member_of(struct span object, const char *key, enum json_kind kind, struct span *value)
{
    return member(object, key, value) && json_kind(*value) == kind;
}

/* Which of n names a string is; -1: none. */
static int index_of(struct span text, const char *const *names, int n)
{
    for (int i = 0; text.s && i < n; i++)
        if (names[i] && json_string_is(text, names[i]))
            return i;
    return -1;
}

static void fail(struct serve *s, const struct request *r, int code, const char *message)
{
    struct err err;
    err_set(&err, code, "%s", message);
    serve_error(s, &r->origin, &err, (struct span){0});
}

/* ---- methods ---- */

static void do_initialize(struct serve *s, struct request *r)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span version;
    if (!member_of(r->rpc.params, "protocolVersion", JSON_STRING, &version)) {
        fail(s, r, ERR_PARAMS, "Invalid parameters: protocolVersion: must be a string");
        return;
    }
    int revision = index_of(version, revision_names, REVISION_2026_07_28);
    r->origin.revision = revision < 0 ? REVISION_2025_11_25 : (enum revision)revision;
    r->origin.client->revision = r->origin.revision;
    put_initialize(&out, r->origin.revision, s->offer);
    serve_result(s, &r->origin, span_of(&out));
}

static void do_ping(struct serve *s, struct request *r)
{
    serve_result(s, &r->origin, (struct span){"", 0});
}

static void do_set_level(struct serve *s, struct request *r)
{
    struct span level = {0};
    member(r->rpc.params, "level", &level);
    int found = index_of(level, level_names, LEVEL_NEVER);
    if (found < 0) {
        fail(
            s, r, ERR_PARAMS,
            "Invalid parameters: level: must be one of debug, info, notice, warning, error, critical, alert, "
            "emergency");
        return;
    }
    r->origin.client->level = found;
    serve_result(s, &r->origin, (struct span){"", 0});
}

static void do_discover(struct serve *s, struct request *r)
{
    struct buf out BUF_AUTO = BUF_INIT;
    put_discover(&out, s->offer);
    serve_result(s, &r->origin, span_of(&out));
}

static void do_list(struct serve *s, struct request *r)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span cursor;
    if (member(r->rpc.params, "cursor", &cursor)) { /* none is ever given: the list has one page */
        fail(s, r, ERR_PARAMS, "Invalid parameters: cursor: is none of this server's");
        return;
    }
    put_tools(&out, r->origin.revision, s->offer);
    serve_result(s, &r->origin, span_of(&out));
}

static const struct mcp_tool *find_tool(const struct serve *s, const struct buf *name)
{
    size_t n = strlen(s->offer->prefix);
    bool ours = name->len > n && memcmp(name->data, s->offer->prefix, n) == 0;
    for (const struct mcp_tool *t = mcp_tools; ours && t->name; t++)
        if (strlen(t->name) == name->len - n && strcmp(t->name, name->data + n) == 0 &&
            serve_offers(s->offer, t))
            return t;
    return NULL;
}

/* A part of the request in the call's copy of it. */
static struct span part_of(const struct call *c, const struct request *r, struct span part)
{
    return part.s ? (struct span){c->asks.text + (part.s - r->text.s), part.n} : part;
}

/* What is not answered at once. NULL: there is no room for it, which has been said. */
static struct call *open_call(struct serve *s, struct request *r)
{
    if (s->calls.n < SERVE_CALLS_MAX && s->calls.bytes + r->text.n <= SERVE_CALL_BYTES) {
        struct call *c = serve_call_new(s, &r->origin, r->text);
        c->asks.token = part_of(c, r, r->token);
        c->asks.level = r->level;
        return c;
    }
    fail(s, r, -32603, "Internal error: too many calls are open; wait for answers");
    return NULL;
}

static void do_call(struct serve *s, struct request *r)
{
    struct span name, arguments = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    if (!member_of(r->rpc.params, "name", JSON_STRING, &name)) {
        fail(s, r, ERR_PARAMS, "Invalid parameters: name: must be a string");
        return;
    }
    if (member(r->rpc.params, "arguments", &arguments) && json_kind(arguments) != JSON_OBJECT) {
        fail(s, r, ERR_PARAMS, "Invalid parameters: arguments: must be an object");
        return;
    }
    json_string_text(name, &text);
    const struct mcp_tool *tool = find_tool(s, &text);
    if (!tool) {
        struct err err;
        err_set(&err, ERR_PARAMS, "Unknown tool: %.200s", buf_str(&text));
        serve_error(s, &r->origin, &err, (struct span){0});
        return;
    }
    struct call *c = open_call(s, r);
    if (!c)
        return;
    if (arguments.s && json_kind(arguments) == JSON_OBJECT)
        c->asks.arguments = part_of(c, r, arguments);
    c->tool = tool;
    serve_call_submit(c);
}

/* Nothing of what can be listened to ever happens here: the list of tools doesn't change. */
static void do_listen(struct serve *s, struct request *r)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span filter;
    if (!member_of(r->rpc.params, "notifications", JSON_OBJECT, &filter)) {
        fail(s, r, ERR_PARAMS, "Invalid parameters: notifications: must be an object");
        return;
    }
    if (!open_call(s, r))
        return;
    buf_adds(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
                   "\"_meta\":{\"" META_PREFIX "subscriptionId\":");
    buf_add(&out, r->origin.id.s, r->origin.id.n);
    buf_adds(&out, "},\"notifications\":{}}}");
    serve_send(s, r->origin.stream, span_of(&out), false);
}

enum { HANDSHAKE = 1, STATELESS = 2, ALWAYS = 4 }; /* with which kind of client; before initialize as well */

static const struct method {
    const char *name;
    int when;
    void (*run)(struct serve *s, struct request *r);
} methods[] = {
    {"initialize", HANDSHAKE | ALWAYS, do_initialize}, {"ping", HANDSHAKE | ALWAYS, do_ping},
    {"logging/setLevel", HANDSHAKE, do_set_level},     {"server/discover", STATELESS, do_discover},
    {"subscriptions/listen", STATELESS, do_listen},    {"tools/list", HANDSHAKE | STATELESS, do_list},
    {"tools/call", HANDSHAKE | STATELESS, do_call},
};

/* ---- requests ---- */

static void refuse_version(struct serve *s, struct request *r, struct span version)
{
    struct buf data BUF_AUTO = BUF_INIT;
    struct err err;
    err_set(&err, UNSUPPORTED_VERSION, "Unsupported protocol version");
    buf_adds(&data, "{\"supported\":");
    put_versions(&data);
    json_key(&data, "requested");
    buf_add(&data, version.s, version.n);
    buf_addc(&data, '}');
    serve_error(s, &r->origin, &err, span_of(&data));
}

/* The fields that each request has to bring itself. -1: answered. */
static int check_meta(struct serve *s, struct request *r, struct span version)
{
    struct span value;
    r->origin.revision = REVISION_2026_07_28;
    r->level = LEVEL_NEVER;
    if (json_kind(version) != JSON_STRING) {
        fail(s, r, ERR_PARAMS, "Invalid parameters: _meta." META_PREFIX "protocolVersion: must be a string");
        return -1;
    }
    if (!json_string_is(version, revision_names[REVISION_2026_07_28])) {
        refuse_version(s, r, version);
        return -1;
    }
    if (!member_of(r->meta, META_PREFIX "clientCapabilities", JSON_OBJECT, &value)) {
        fail(s, r, ERR_PARAMS,
             "Invalid parameters: _meta." META_PREFIX "clientCapabilities: must be an object");
        return -1;
    }
    if (member(r->meta, META_PREFIX "clientInfo", &value) && json_kind(value) != JSON_OBJECT) {
        fail(s, r, ERR_PARAMS, "Invalid parameters: _meta." META_PREFIX "clientInfo: must be an object");
        return -1;
    }
    if (member(r->meta, META_PREFIX "logLevel", &value)) {
        r->level = index_of(value, level_names, LEVEL_NEVER);
        if (r->level < 0) {
            fail(s, r, ERR_PARAMS, "Invalid parameters: _meta." META_PREFIX "logLevel: is no level");
            return -1;
        }
    }
    return 0;
}

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static void no_method(struct serve *s, const struct request *r)
{
    struct err err;
    struct span name = r->rpc.method_text;
    err_set(&err, ERR_METHOD_NOT_FOUND, "Method not found: %.*s", (int)(name.n < 200 ? name.n : 200), name.s);
    serve_error(s, &r->origin, &err, (struct span){0});
}

/* A whole one is taken as such also where a client has put the fields of each request into it. */
static bool is_handshake(const struct method *method, const struct request *r)
{
    struct span version;
    return method && method->run == do_initialize && member(r->rpc.params, "protocolVersion", &version);
}

static void take_request(struct serve *s, struct request *r)
{
    struct span version;
    const struct method *method = find_method(r->rpc.method);
    bool stateless = member_of(r->rpc.params, "_meta", JSON_OBJECT, &r->meta) &&
                     json_member(r->meta, META_PREFIX "protocolVersion", &version, NULL) &&
                     !is_handshake(method, r);
    if (member(r->meta, "progressToken", &r->token) && json_kind(r->token) != JSON_STRING &&
        json_kind(r->token) != JSON_NUMBER)
        r->token.s = NULL;
    if (serve_call_find(s, r->origin.client, r->origin.id)) {
        fail(s, r, ERR_INVALID_REQUEST, "Invalid request: a request with this id is open already");
        return;
    }
    if (stateless && check_meta(s, r, version) < 0)
        return;
    if (!method || (stateless && !(method->when & STATELESS)) ||
        (!stateless && r->origin.client->revision && !(method->when & HANDSHAKE)))
        no_method(s, r);
    else if (!stateless && !r->origin.client->revision && !(method->when & ALWAYS))
        fail(s, r, ERR_PARAMS,
             "Invalid parameters: no protocol version: send initialize first, or give _meta." META_PREFIX
             "protocolVersion and clientCapabilities with each request");
    else
        method->run(s, r);
}

/* ---- notifications ---- */

static void take_notification(struct serve *s, const struct client *client, const struct rpc_request *n)
{
    struct span id;
    if (strcmp(n->method, "notifications/cancelled") != 0 || !member(n->params, "requestId", &id))
        return;
    struct call *c = serve_call_find(s, client, id);
    if (c)
        serve_cancel(c);
}

/* ---- messages ---- */

/* An answer to a request; this server makes none. */
static bool is_response(struct span value)
{
    struct span other;
    return json_kind(value) == JSON_OBJECT && !json_member(value, "method", &other, NULL) &&
           (json_member(value, "result", &other, NULL) || json_member(value, "error", &other, NULL));
}

static void take_one(struct serve *s, const struct origin *whose, struct span value)
{
    struct batch *batch = whose->batch;
    struct request r = {.origin = *whose, .text = value, .level = whose->client->level};
    struct err err;
    if (is_response(value))
        return;
    int invalid = rpc_request_parse(&r.rpc, value, &err);
    bool null_id = r.rpc.id.s && json_kind(r.rpc.id) == JSON_NULL;
    if (!null_id)
        r.origin.id = r.rpc.id;
    if (invalid == 0 && null_id)
        invalid = err_set(&err, ERR_INVALID_REQUEST, "Invalid request: id must not be null");
    if (invalid == 0 && !r.rpc.id.s) {
        take_notification(s, r.origin.client, &r.rpc);
        return;
    }
    if (invalid < 0 && err.code == ERR_PARAMS && !r.rpc.id.s)
        return; /* a notification, whose parameters are nobody's concern */
    if (batch)
        batch->open++;
    if (invalid < 0)
        serve_error(s, &r.origin, &err, (struct span){0});
    else if (batch && strcmp(r.rpc.method, "initialize") == 0)
        fail(s, &r, ERR_INVALID_REQUEST, "Invalid request: initialize can't be part of a batch");
    else
        take_request(s, &r);
}

static void take_batch(struct serve *s, struct origin *whose, struct span array)
{
    struct span element;
    struct request r = {.origin = *whose};
    size_t n = 0, at = 0;
    while (n <= BATCH_MAX && json_element(array, &at, &element))
        n++;
    if (whose->revision != REVISION_2025_03_26) {
        fail(s, &r, ERR_INVALID_REQUEST,
             "Invalid request: batches are a matter of revision 2025-03-26 alone");
        return;
    }
    if (n == 0 || n > BATCH_MAX) {
        fail(s, &r, ERR_INVALID_REQUEST, "Invalid request: a batch has from 1 to 1000 messages");
        return;
    }
    struct batch *batch = mem_zalloc(sizeof *batch);
    buf_init(&batch->answer, BUF_NO_MAX);
    batch->open = 1; /* until all of it has been taken */
    batch->stream = whose->stream;
    whose->batch = batch;
    for (at = 0; json_element(array, &at, &element);)
        take_one(s, whose, element);
    serve_batch_release(s, batch);
}

static bool is_blank(struct span line)
{
    for (size_t i = 0; i < line.n; i++)
        if (!strchr(" \t\r", line.s[i]) || line.s[i] == '\0')
            return false;
    return true;
}

void serve_message(struct serve *s, struct client *client, struct sse *to, struct span line)
{
    struct origin nobody = {.revision = client->revision, .client = client, .stream = to};
    struct err err;
    if (!line.s) {
        err_set(&err, ERR_INVALID_REQUEST, "Invalid request: a message has at most %u MiB",
                SERVE_LINE_MAX >> 20);
        serve_error(s, &nobody, &err, (struct span){0});
        return;
    }
    if (is_blank(line))
        return;
    if (json_check(line, &err) < 0)
        serve_error(s, &nobody, &err, (struct span){0});
    else if (json_kind(line) == JSON_ARRAY)
        take_batch(s, &nobody, line);
    else
        take_one(s, &nobody, line);
}
