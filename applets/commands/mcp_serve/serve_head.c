#include "serve_head.h"

#include <string.h>
#include <strings.h>

#include "base64.h"
#include "commands/model_proxy/proxy_gate.h"
#include "serve.h"
#include "serve_events.h"

#define BEARER "Bearer "

/* ---- the body ---- */

static bool text_member(struct span object, const char *key, struct span *value)
{
    return json_member(object, key, value, NULL) && json_kind(*value) == JSON_STRING;
}

void serve_look(struct span body, struct body_look *look)
{
    struct span params, meta, one, version;
    *look = (struct body_look){.asks = false};
    if (json_check(body, NULL) < 0)
        return;
    if (json_kind(body) == JSON_ARRAY) {
        for (size_t at = 0; json_element(body, &at, &one);)
            look->asks =
                look->asks || (json_kind(one) == JSON_OBJECT && json_member(one, "id", &meta, NULL) &&
                               json_member(one, "method", &meta, NULL));
        look->later = true;
        return;
    }
    if (json_kind(body) != JSON_OBJECT || !text_member(body, "method", &look->method))
        return;
    look->asks = json_member(body, "id", &look->id, NULL);
    look->later =
        json_string_is(look->method, "tools/call") || json_string_is(look->method, "subscriptions/listen");
    if (!json_member(body, "params", &params, NULL) || json_kind(params) != JSON_OBJECT)
        return;
    text_member(params, "name", &look->name);
    look->initialize =
        json_string_is(look->method, "initialize") && json_member(params, "protocolVersion", &version, NULL);
    if (look->initialize)
        look->wanted = version;
    if (!look->initialize && json_member(params, "_meta", &meta, NULL) && json_kind(meta) == JSON_OBJECT)
        json_member(meta, "io.modelcontextprotocol/protocolVersion", &look->version, NULL);
}

/* ---- the head ---- */

/* Takes as long for any two texts of these lengths. */
static bool same_secret(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned char differs = n != m;
    for (size_t i = 0; i < m; i++)
        differs |= (unsigned char)(b[i] ^ (i < n ? a[i] : 0));
    return !differs;
}

/* A page of this very server's: one that has a token knows it. */
static bool is_own_page(const struct http_parser *head)
{
    const char *scheme = strstr(http_field(head, "origin"), "://");
    return scheme && strcasecmp(scheme + 3, http_field(head, "host")) == 0;
}

int serve_may_ask(const struct http_parser *head, const char *token, bool known, struct buf *why)
{
    const char *given = http_field(head, "authorization");
    bool bearer = strncasecmp(given, BEARER, sizeof BEARER - 1) == 0;
    int status = proxy_gate(head, why);
    /* Whoever has the token came by a name of his choice; pages of elsewhere don't come at all. */
    if (status == 403 && (token || known) && (!*http_field(head, "origin") || is_own_page(head))) {
        buf_truncate(why, 0);
        status = 0;
    }
    if (status != 0 || !token || (bearer && same_secret(given + sizeof BEARER - 1, token)))
        return status;
    buf_adds(why, bearer ? "The bearer token is not the one that this server was started with"
                         : "A bearer token is asked for: Authorization: Bearer TOKEN");
    return 401;
}

bool serve_accepts(const struct http_parser *head, const char *type)
{
    return strcasestr(http_field(head, "accept"), type) != NULL;
}

static int mismatch(struct err *err, const char *field, const char *member)
{
    return err_set(err, SSE_HEADER_MISMATCH,
                   "Header mismatch: %s has to be there, and what %s of the body is", field, member);
}

/* A field as it is, or in base64 where it couldn't be written so. */
static bool field_is(const struct http_parser *head, const char *name, struct span value)
{
    static const char begin[] = "=?base64?";
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf wanted BUF_AUTO = BUF_INIT;
    const char *given = http_field(head, name);
    size_t n = strlen(given), front = sizeof begin - 1;
    if (strncmp(given, begin, front) == 0 && n >= front + 2 && strcmp(given + n - 2, "?=") == 0) {
        if (!base64_get(&text, given + front, n - front - 2))
            return false;
    } else {
        buf_adds(&text, given);
    }
    return json_string_text(value, &wanted) && text.len == wanted.len &&
           memcmp(buf_str(&text), buf_str(&wanted), text.len) == 0;
}

int serve_check_head(const struct http_parser *head, const struct body_look *look, struct err *err)
{
    const char *version = http_field(head, "mcp-protocol-version");
    bool known = !*version;
    for (int r = REVISION_NONE + 1; r < REVISION_END; r++)
        known = known || strcmp(version, revision_names[r]) == 0;
    if (!look->version.s && !known)
        return err_set(err, ERR_INVALID_REQUEST,
                       "Bad request: MCP-Protocol-Version '%.40s' is none of this server's", version);
    if (!look->version.s)
        return 0;
    if (json_kind(look->version) == JSON_STRING && !field_is(head, "mcp-protocol-version", look->version))
        return mismatch(err, "MCP-Protocol-Version", "_meta.io.modelcontextprotocol/protocolVersion");
    if (!field_is(head, "mcp-method", look->method))
        return mismatch(err, "Mcp-Method", "method");
    if (look->name.s && json_string_is(look->method, "tools/call") && !field_is(head, "mcp-name", look->name))
        return mismatch(err, "Mcp-Name", "params.name");
    return 0;
}
