#include "mcp_client.h"

#include <string.h>
#include <unistd.h>

#include "client.h"
#include "commands/exec/route.h"
#include "rpc.h"
#include "version.h"

#define PAGES_MAX 1000               /* of tools: a server that always knows more has none */
#define TOOLS_MAX ((size_t)64 << 20) /* bytes of all pages */

/* As a member of the params of each request, where there is no handshake. */
static void put_meta(struct buf *out)
{
    buf_adds(out, "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                  "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"toolbox\",\"version\":\"");
    buf_adds(out, toolbox_version);
    buf_adds(out, "\"},\"io.modelcontextprotocol/clientCapabilities\":{}}");
}

static void put_message(struct mcp_client *c, const char *method, struct span params, struct buf *out)
{
    buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_addf(out, "\"toolbox-cli-%ld-%lu\"", (long)getpid(), ++c->requests);
    json_member_string(out, "method", method);
    json_key(out, "params");
    if (c->stateless) {
        buf_addc(out, '{');
        put_meta(out);
        buf_adds(out, params.n > 2 ? "," : "");
        buf_add(out, params.s + 1, params.n - 1);
    } else {
        buf_add(out, params.s, params.n);
    }
    buf_addc(out, '}');
}

int mcp_client_ask(struct mcp_client *c, const char *method, struct span params, struct buf *result,
                   struct err *err)
{
    struct buf call BUF_AUTO = BUF_INIT;
    struct buf response BUF_AUTO = BUF_INIT;
    struct span text;
    buf_addf(&call, "{\"session_id\":%s,\"request\":", c->session);
    put_message(c, method, params, &call);
    buf_addc(&call, '}');
    if (call_method("mcp_send_request", span_of(&call), &response, err) < 0 ||
        client_result(span_of(&response), &text, err) < 0)
        return -1;
    return buf_add(result, text.s, text.n);
}

static bool is_initialized(const struct mcp_client *c)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct span server, value;
    if (call_method("mcp_list_servers", (struct span){"{}", 2}, &list, NULL) < 0)
        return false;
    for (size_t at = 0; json_element(span_of(&list), &at, &server);)
        if (json_member(server, "session_id", &value, NULL) && span_is(value, c->session))
            return json_member(server, "initialized", &value, NULL) && span_is(value, "true");
    return false;
}

int mcp_client_begin(struct mcp_client *c, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    if (is_initialized(c))
        return 0;
    buf_adds(&params,
             "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"toolbox\"");
    json_member_string(&params, "version", toolbox_version);
    buf_adds(&params, "}}");
    if (mcp_client_ask(c, "initialize", span_of(&params), &result, err) < 0) {
        c->stateless = err->code == ERR_METHOD_NOT_FOUND;
        return c->stateless ? 0 : -1;
    }
    buf_truncate(&params, 0);
    buf_addf(&params, "{\"session_id\":%s,\"notification\":", c->session);
    buf_adds(&params, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}");
    return call_method("mcp_send_notification", span_of(&params), &result, err);
}

/* The tools of a page, behind those that are there. */
static void add_page(struct span page, struct buf *tools)
{
    struct span list, tool;
    if (!json_member(page, "tools", &list, NULL) || json_kind(list) != JSON_ARRAY)
        return;
    for (size_t at = 0; json_element(list, &at, &tool);) {
        if (tools->len > 1)
            buf_addc(tools, ',');
        buf_add(tools, tool.s, tool.n);
    }
}

int mcp_client_tools(struct mcp_client *c, struct buf *tools, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(tools, '[');
    buf_adds(&params, "{}");
    for (int i = 0; params.len > 0; i++) {
        struct buf page BUF_AUTO = BUF_INIT;
        struct span cursor;
        if (i == PAGES_MAX)
            return err_set(err, ERR_TOOL, "the server's list of tools has more than %d pages", PAGES_MAX);
        if (mcp_client_ask(c, "tools/list", span_of(&params), &page, err) < 0)
            return -1;
        add_page(span_of(&page), tools);
        if (tools->len > TOOLS_MAX)
            return err_set(err, ERR_TOOL, "the server's list of tools is longer than %zu MiB",
                           TOOLS_MAX >> 20);
        buf_truncate(&params, 0);
        if (json_member(span_of(&page), "nextCursor", &cursor, NULL) && json_kind(cursor) == JSON_STRING)
            buf_addf(&params, "{\"cursor\":%.*s}", (int)cursor.n, cursor.s);
    }
    return buf_addc(tools, ']');
}
