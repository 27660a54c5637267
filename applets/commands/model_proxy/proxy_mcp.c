/* The host's tools as MCP servers over HTTP ("Streamable HTTP", without sessions and streams). */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "proxy_calls.h"
#include "proxy_streams.h"
#include "version.h"

static const char *const revisions[] = {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", NULL};
#define STATELESS 0 /* the one that has no handshake */
#define NEWEST 1    /* that has one */

struct mcp_call {
    struct proxy *proxy;
    struct proxy_conn *conn;
    void *service;
    struct buf id;
    const char *revision;
    bool list;
};

/* ---- answers ---- */

static void send_message(struct proxy_conn *conn, int status, const char *revision, struct span id,
                         const char *key, struct span value)
{
    struct buf body BUF_AUTO = BUF_INIT;
    struct buf fields BUF_AUTO = BUF_INIT;
    buf_addf(&fields, JSON_FIELDS "MCP-Protocol-Version: %s\r\n", revision);
    buf_adds(&body, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_add(&body, id.s ? id.s : "null", id.s ? id.n : 4);
    json_key(&body, key);
    buf_add(&body, value.s, value.n);
    buf_addc(&body, '}');
    proxy_answer(conn, status, buf_str(&fields), span_of(&body));
}

/* `members`: of the result. */
static void send_result(struct proxy_conn *conn, const char *revision, struct span id, struct span members)
{
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addc(&result, '{');
    buf_add(&result, members.s, members.n);
    if (revision == revisions[STATELESS])
        json_member_string(&result, "resultType", "complete");
    buf_addc(&result, '}');
    send_message(conn, 200, revision, id, "result", span_of(&result));
}

static void send_error(struct proxy_conn *conn, int status, const char *revision, struct span id, int code,
                       const char *message)
{
    struct buf error BUF_AUTO = BUF_INIT;
    buf_addc(&error, '{');
    json_member_int(&error, "code", code);
    json_member_string(&error, "message", message);
    buf_addc(&error, '}');
    send_message(conn, status, revision, id, "error", span_of(&error));
}

/* ---- calls of the host ---- */

static void end(struct mcp_call *c)
{
    buf_release(&c->id);
    free(c);
}

static void on_gone(void *arg)
{
    struct mcp_call *c = arg;
    c->proxy->source.cancel(c->service);
    end(c);
}

/* A tool's result: text, blocks, or a whole result with "content". */
static void put_content(struct buf *out, struct span result)
{
    struct span content = stream_member(result, "content");
    if (content.s && json_kind(content) == JSON_ARRAY) {
        buf_add(out, result.s + 1, result.n - 2);
        return;
    }
    json_key(out, "content");
    if (json_kind(result) == JSON_ARRAY) {
        buf_add(out, result.s, result.n);
        return;
    }
    buf_adds(out, "[{\"type\":\"text\",\"text\":");
    if (json_kind(result) == JSON_STRING) {
        buf_add(out, result.s, result.n);
    } else {
        struct buf text BUF_AUTO = BUF_INIT;
        json_compact(&text, result);
        json_put_string(out, text.data, text.len);
    }
    buf_adds(out, "}]");
}

static void on_answer(void *arg, struct span result, struct buf *text, const struct err *failed)
{
    struct mcp_call *c = arg;
    struct buf members BUF_AUTO = BUF_INIT;
    (void)text;
    proxy_on_gone(c->conn, NULL, NULL);
    if (failed) {
        send_error(c->conn, 200, c->revision, span_of(&c->id), -32603, failed->msg);
    } else if (c->list && json_kind(result) != JSON_ARRAY) {
        send_error(c->conn, 200, c->revision, span_of(&c->id), -32603,
                   "the host's answer is no list of tools");
    } else {
        if (c->list) {
            json_key(&members, "tools");
            json_compact(&members, result);
        } else {
            put_content(&members, result);
        }
        send_result(c->conn, c->revision, span_of(&c->id), span_of(&members));
    }
    end(c);
}

static void call_host(struct proxy *proxy, struct proxy_conn *conn, const char *revision, struct span id,
                      bool list, struct span params)
{
    struct mcp_call *c = mem_zalloc(sizeof *c);
    *c = (struct mcp_call){.proxy = proxy, .conn = conn, .revision = revision, .list = list};
    buf_init(&c->id, BUF_NO_MAX);
    buf_add(&c->id, id.s, id.n);
    c->service =
        proxy->source.call(proxy->source.of, list ? "list_tools" : "call_tool", params, on_answer, c);
    proxy_on_gone(conn, on_gone, c);
}

/* ---- methods ---- */

struct mcp_request {
    struct span server, id, method, params; /* server: as JSON */
    const char *revision;
};

static void initialize(struct proxy_conn *conn, const struct mcp_request *r)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct span wanted = stream_string(r->params, "protocolVersion");
    const char *const *revision = &revisions[NEWEST];
    while (*revision && !json_string_is(wanted, *revision))
        revision++;
    if (!*revision)
        revision = &revisions[NEWEST];
    json_member_string(&out, "protocolVersion", *revision);
    buf_adds(&out, ",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":");
    buf_add(&out, r->server.s, r->server.n);
    json_member_string(&out, "version", toolbox_version);
    buf_addc(&out, '}');
    send_result(conn, *revision, r->id, span_of(&out));
}

static void discover(struct proxy_conn *conn, const struct mcp_request *r)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_adds(&out, "\"supportedVersions\":");
    for (int i = 0; revisions[i]; i++)
        buf_addf(&out, "%c\"%s\"", i ? ',' : '[', revisions[i]);
    buf_adds(&out, "],\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":");
    buf_add(&out, r->server.s, r->server.n);
    json_member_string(&out, "version", toolbox_version);
    buf_addc(&out, '}');
    send_result(conn, revisions[STATELESS], r->id, span_of(&out));
}

static void tools_call(struct proxy *proxy, struct proxy_conn *conn, const struct mcp_request *r)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct span name = stream_member(r->params, "name"), arguments = stream_member(r->params, "arguments");
    if (!name.s || json_kind(name) != JSON_STRING) {
        send_error(conn, 200, r->revision, r->id, -32602, "Invalid parameters: name: Field required");
        return;
    }
    buf_adds(&params, "{\"server\":");
    buf_add(&params, r->server.s, r->server.n);
    json_key(&params, "tool");
    buf_add(&params, name.s, name.n);
    json_key(&params, "arguments");
    buf_add(&params, arguments.s ? arguments.s : "{}", arguments.s ? arguments.n : 2);
    buf_addc(&params, '}');
    call_host(proxy, conn, r->revision, r->id, false, span_of(&params));
}

static void tools_list(struct proxy *proxy, struct proxy_conn *conn, const struct mcp_request *r)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&params, "{\"server\":");
    buf_add(&params, r->server.s, r->server.n);
    buf_addc(&params, '}');
    call_host(proxy, conn, r->revision, r->id, true, span_of(&params));
}

static void dispatch(struct proxy *proxy, struct proxy_conn *conn, const struct mcp_request *r)
{
    if (!r->id.s) /* a notification */
        proxy_answer(conn, 202, "", (struct span){"", 0});
    else if (json_string_is(r->method, "initialize"))
        initialize(conn, r);
    else if (json_string_is(r->method, "server/discover"))
        discover(conn, r);
    else if (json_string_is(r->method, "ping"))
        send_result(conn, r->revision, r->id, (struct span){"", 0});
    else if (json_string_is(r->method, "tools/list"))
        tools_list(proxy, conn, r);
    else if (json_string_is(r->method, "tools/call"))
        tools_call(proxy, conn, r);
    else
        send_error(conn, r->revision == revisions[STATELESS] ? 404 : 200, r->revision, r->id, -32601,
                   "Method not found");
}

/* The revision that a request names itself, as the ones without a handshake do; else the oldest. */
static const char *revision_of(struct span params)
{
    struct span named =
        stream_string(stream_member(params, "_meta"), "io.modelcontextprotocol/protocolVersion");
    for (int i = 0; revisions[i]; i++)
        if (json_string_is(named, revisions[i]))
            return revisions[i];
    return revisions[3];
}

/* An answer to what was never asked: the proxy asks its clients nothing. */
static bool is_reply(struct span body)
{
    struct span any;
    return !json_member(body, "method", &any, NULL) &&
           (json_member(body, "result", &any, NULL) || json_member(body, "error", &any, NULL));
}

/* What JSON-RPC allows, batches aside, which MCP hasn't. An id that is null counts as none. */
static bool is_request(struct span body, struct span id)
{
    struct span method = stream_member(body, "method");
    return method.s && json_kind(method) == JSON_STRING &&
           (!id.s || json_kind(id) == JSON_STRING || json_kind(id) == JSON_NUMBER);
}

void proxy_mcp(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_request *request)
{
    struct err err;
    struct buf server BUF_AUTO = BUF_INIT;
    struct buf body BUF_AUTO = BUF_INIT;
    struct mcp_request r = {.revision = revisions[3]};
    const char *name = request->path + 5;
    if (strcmp(request->method, "POST") != 0) {
        proxy_answer(conn, 405, "Allow: POST\r\n", (struct span){"", 0});
        return;
    }
    if (json_check(request->body, &err) < 0) {
        send_error(conn, 400, r.revision, r.id, ERR_PARSE, err.msg);
        return;
    }
    json_compact(&body, request->body);
    json_put_string(&server, name, strcspn(name, "/"));
    r.server = span_of(&server);
    r.id = stream_member(span_of(&body), "id");
    r.method = stream_string(span_of(&body), "method");
    r.params = stream_member(span_of(&body), "params");
    r.revision = revision_of(r.params);
    if (json_kind(span_of(&body)) == JSON_OBJECT && is_reply(span_of(&body)))
        proxy_answer(conn, 202, "", (struct span){"", 0});
    else if (!is_request(span_of(&body), r.id))
        send_error(conn, 400, r.revision, (struct span){0}, ERR_INVALID_REQUEST,
                   "the body is no JSON-RPC message");
    else
        dispatch(proxy, conn, &r);
}
