#include "mcp_message.h"

#include <string.h>

#include "mcp_lines.h"

/* The members that mean something in a message. */
enum { JSONRPC, ID, METHOD, RESULT, ERROR, N_MEMBERS };

struct members {
    struct span value[N_MEMBERS]; /* of several of a name the last */
    int count[N_MEMBERS];
};

static void collect(struct span object, struct members *m)
{
    static const char *const names[N_MEMBERS] = {"jsonrpc", "id", "method", "result", "error"};
    json_members(object, names, N_MEMBERS, m->value, m->count);
}

static enum mcp_kind kind_of(const struct members *m)
{
    if (!m->count[JSONRPC] || !json_string_is(m->value[JSONRPC], "2.0"))
        return MCP_NOISE;
    if (m->count[METHOD])
        return json_kind(m->value[METHOD]) != JSON_STRING ? MCP_NOISE
               : m->count[ID]                             ? MCP_REQUEST
                                                          : MCP_NOTIFICATION;
    return m->count[ID] && (m->count[RESULT] || m->count[ERROR]) ? MCP_RESPONSE : MCP_NOISE;
}

static void fill(struct mcp_message *m, const struct members *found)
{
    *m = (struct mcp_message){
        .kind = kind_of(found),
        .id = found->value[ID],
        .method = found->value[METHOD],
        .failed = found->count[ERROR] && !found->count[RESULT],
    };
}

void mcp_message_read(struct span line, struct mcp_message *m)
{
    struct members found;
    *m = (struct mcp_message){.kind = MCP_NOISE};
    if (json_kind(line) != JSON_OBJECT || json_check(line, NULL) < 0)
        return;
    collect(line, &found);
    fill(m, &found);
}

static int wrong(struct err *err, const char *field, const char *what)
{
    return err_set(err, ERR_PARAMS, "Invalid parameters: %s%s", field, what);
}

int mcp_message_check(struct span message, enum mcp_kind kind, const char *field, struct mcp_message *m,
                      struct err *err)
{
    struct members found;
    collect(message, &found);
    fill(m, &found);
    if (found.count[JSONRPC] != 1 || !json_string_is(found.value[JSONRPC], "2.0"))
        return wrong(err, field, ".jsonrpc: must be \"2.0\"");
    if (found.count[METHOD] != 1 || m->kind == MCP_NOISE)
        return wrong(err, field, ".method: must be a string, given once");
    if (kind == MCP_NOTIFICATION)
        return m->kind == kind ? 0 : wrong(err, field, ".id: a notification has none");
    bool usable =
        found.count[ID] == 1 && (json_kind(m->id) == JSON_STRING || json_kind(m->id) == JSON_NUMBER);
    return usable ? 0 : wrong(err, field, ".id: must be a string or a number, given once");
}

int mcp_response_check(struct span message, struct err *err)
{
    struct mcp_message m;
    mcp_message_read(message, &m);
    return m.kind == MCP_RESPONSE
               ? 0
               : wrong(err, "response", ": must be a JSON-RPC response: id, and result or error");
}

/* ---- ids ---- */

/* Digits and exponent of a number: value = 0.DIGITS x 10^exponent, the digits without zeros at either end. */
struct decimal {
    struct buf digits;
    long long exponent;
};

#define EXPONENT_MAX 1000000000000LL /* far beyond the length of any line */

static long long exponent_of(const char *s, const char *end)
{
    bool negative = s < end && *s == '-';
    long long value = 0;
    if (s < end && (*s == '-' || *s == '+'))
        s++;
    for (; s < end && value < EXPONENT_MAX; s++)
        value = value * 10 + (*s - '0');
    return negative ? -value : value;
}

static void take_digits(struct decimal *d, struct span number)
{
    const char *end = number.s + number.n, *s = number.s;
    bool fraction = false;
    for (; s < end && *s != 'e' && *s != 'E'; s++) {
        if (*s == '.') {
            fraction = true;
        } else if (*s != '-') {
            if (*s == '0' && d->digits.len == 0) {
                d->exponent -= fraction; /* leading: it only moves the point */
                continue;
            }
            d->exponent += !fraction;
            buf_addc(&d->digits, *s);
        }
    }
    size_t n = d->digits.len;
    while (n > 0 && d->digits.data[n - 1] == '0')
        n--;
    buf_truncate(&d->digits, n);
    if (s < end)
        d->exponent += exponent_of(s + 1, end);
}

static void number_key(struct span number, struct buf *key)
{
    struct decimal d = {.digits = BUF_INIT};
    take_digits(&d, number);
    if (d.digits.len == 0)
        buf_addc(key, '0');
    else if (d.exponent >= EXPONENT_MAX || d.exponent <= -EXPONENT_MAX)
        buf_addf(key, "%.*s", (int)number.n, number.s); /* no sane number: as it is written */
    else
        buf_addf(key, "%s%se%lld", number.s[0] == '-' ? "-" : "", d.digits.data, d.exponent);
    buf_release(&d.digits);
}

bool mcp_id_key(struct span id, struct buf *key)
{
    if (!id.s)
        return false;
    if (json_kind(id) == JSON_STRING) {
        buf_addc(key, '"');
        return json_string_text(id, key);
    }
    if (json_kind(id) != JSON_NUMBER)
        return false;
    number_key(id, key);
    return true;
}

/* ---- of a line that was too long ---- */

static bool is_id(struct span value)
{
    return (json_kind(value) == JSON_STRING || json_kind(value) == JSON_NUMBER) &&
           json_check(value, NULL) == 0;
}

/* The members at the front, up to the one that doesn't end. They were not checked, but nothing here reads
 * beyond them. */
static struct span id_in_head(struct span head, bool *request)
{
    struct span key, value, id = {NULL, 0};
    for (size_t at = 0; json_next_member(head, &at, &key, &value);) {
        bool ends = value.s + value.n < head.s + head.n; /* something is behind it */
        if (ends && json_string_is(key, "id") && is_id(value))
            id = value;
        *request = *request || json_string_is(key, "method");
    }
    return id;
}

/* …,"id":VALUE} at the end, with other short members before and behind. */
static struct span id_in_tail(struct span tail)
{
    static const char name[] = "\"id\"";
    size_t n = sizeof name - 1;
    for (size_t at = tail.n; at-- > 0;) {
        if (tail.n - at < n || memcmp(tail.s + at, name, n) != 0)
            continue;
        /* As an object of what is from here on to the closing brace. */
        struct buf rest BUF_AUTO = BUF_INIT;
        struct members found;
        buf_addc(&rest, '{');
        buf_add(&rest, tail.s + at, tail.n - at);
        if (json_check(span_of(&rest), NULL) < 0)
            continue;
        collect(span_of(&rest), &found);
        struct span id = found.value[ID];
        if (found.count[ID] == 1 && is_id(id))
            return (struct span){tail.s + at + (id.s - rest.data - 1), id.n};
    }
    return (struct span){NULL, 0};
}

struct span mcp_id_of_parts(struct span head, struct span tail)
{
    bool request = false;
    struct span id = {NULL, 0};
    if (json_kind(head) != JSON_OBJECT)
        return id;
    id = id_in_head(head, &request);
    if (request)
        return (struct span){NULL, 0};
    return id.s ? id : id_in_tail(tail);
}

bool mcp_is_broken_response(struct span line, struct span *id)
{
    size_t n_head = line.n < MCP_LINES_HEAD ? line.n : MCP_LINES_HEAD;
    size_t n_tail = line.n < MCP_LINES_TAIL ? line.n : MCP_LINES_TAIL;
    struct span head = {line.s, n_head};
    if (json_kind(head) != JSON_OBJECT || json_check(line, NULL) == 0 ||
        !memmem(head.s, head.n, "\"jsonrpc\"", 9) || memmem(head.s, head.n, "\"method\"", 8))
        return false;
    *id = mcp_id_of_parts(head, (struct span){line.s + line.n - n_tail, n_tail});
    return true;
}
