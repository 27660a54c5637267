/* The envelope: reading a request, writing requests and responses. */
#include "rpc.h"

#include <string.h>

#define LONG 65536 /* bytes of a result from which on it is worth while not to move them */

/* The members that mean something in a request. */
enum { JSONRPC, ID, METHOD, PARAMS, N_MEMBERS };
static const char *const names[N_MEMBERS] = {"jsonrpc", "id", "method", "params"};

static int invalid(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID_REQUEST, "Invalid request: %s", what);
}

static bool id_usable(struct span id)
{
    enum json_kind kind = json_kind(id);
    return kind == JSON_STRING || kind == JSON_NUMBER || kind == JSON_NULL;
}

static void decode_method(struct rpc_request *r)
{
    struct buf name BUF_AUTO = BUF_INIT;
    r->method[0] = '\0';
    /* Six bytes of text are one of the name at the most: an endless name need not be decoded. */
    if (r->method_text.n > 6 * sizeof r->method)
        return;
    json_string_text(r->method_text, &name);
    if (name.len > 0 && name.len < sizeof r->method && !memchr(name.data, '\0', name.len))
        memcpy(r->method, name.data, name.len + 1);
}

int rpc_request_parse(struct rpc_request *r, struct span value, struct err *err)
{
    struct span found[N_MEMBERS];
    int count[N_MEMBERS];
    *r = (struct rpc_request){.id = {NULL, 0}};
    if (json_kind(value) != JSON_OBJECT)
        return invalid(err, "it must be an object");
    json_members(value, names, N_MEMBERS, found, count);
    if (count[ID] > 1)
        return invalid(err, "id is given twice");
    if (count[ID] == 1 && !id_usable(found[ID]))
        return invalid(err, "id must be a string, a number or null");
    r->id = found[ID];
    for (int i = 0; i < N_MEMBERS; i++)
        if (count[i] > 1)
            return invalid(err, "jsonrpc, method or params is given twice");
    if (!json_string_is(found[JSONRPC], "2.0"))
        return invalid(err, "jsonrpc must be \"2.0\"");
    if (count[METHOD] == 0 || json_kind(found[METHOD]) != JSON_STRING)
        return invalid(err, "method must be a string");
    r->method_text = found[METHOD];
    decode_method(r);
    if (count[PARAMS] == 0 || json_kind(found[PARAMS]) == JSON_NULL)
        return 0;
    if (json_kind(found[PARAMS]) == JSON_ARRAY)
        return err_set(err, ERR_PARAMS, "Invalid parameters: must be an object, not an array");
    if (json_kind(found[PARAMS]) != JSON_OBJECT)
        return invalid(err, "params must be an object");
    r->params = found[PARAMS];
    return 0;
}

static void put_span(struct buf *out, struct span span)
{
    buf_add(out, span.s, span.n);
}

/* {"jsonrpc":"2.0","id":ID with room for what follows. */
static void begin(struct buf *out, struct span id, size_t room)
{
    buf_reserve(out, id.n + room + 64);
    buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put_span(out, id.s ? id : (struct span){"null", 4});
}

void rpc_put_request(struct buf *out, struct span id, const char *method, struct span params)
{
    begin(out, id, params.n);
    json_member_string(out, "method", method);
    if (params.s) {
        json_key(out, "params");
        put_span(out, params);
    }
    buf_addc(out, '}');
}

void rpc_put_result(struct buf *out, struct span id, struct span result)
{
    begin(out, id, result.n);
    buf_adds(out, ",\"result\":");
    put_span(out, result);
    buf_addc(out, '}');
}

void rpc_wrap_result(struct buf *result, size_t gap, struct span id)
{
    struct buf front BUF_AUTO = BUF_INIT;
    begin(&front, id, 0);
    buf_adds(&front, ",\"result\":");
    while (front.len < gap && result->len >= LONG)
        buf_addc(&front, ' ');
    buf_replace(result, 0, gap, front.data, front.len);
    buf_addc(result, '}');
}

void rpc_put_error_kind(struct buf *out, struct span id, const struct err *err, const char *kind)
{
    begin(out, id, 0);
    buf_adds(out, ",\"error\":{\"code\":");
    json_put_int(out, err->code);
    json_member_string(out, "message", err->msg);
    if (kind) {
        buf_adds(out, ",\"data\":{");
        json_member_string(out, "kind", kind);
        buf_addc(out, '}');
    }
    buf_adds(out, "}}");
}

void rpc_put_error(struct buf *out, struct span id, const struct err *err)
{
    rpc_put_error_kind(out, id, err, NULL);
}
