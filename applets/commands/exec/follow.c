#include "follow.h"

#include <string.h>

#include "client.h"
#include "rpc.h"

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), len = strlen(end);
    return n > len && strcmp(s + n - len, end) == 0;
}

bool follow_is(const char *method)
{
    return ends_in(method, "_follow") || ends_in(method, "_watch");
}

bool follow_goes_on(struct span answer, struct span *event, struct buf *cursor)
{
    static const char *const names[] = {"cursor", "ended"};
    struct span found[2];
    int count[2];
    if (client_result(answer, event, NULL) < 0 || json_kind(*event) != JSON_OBJECT)
        return false;
    json_members(*event, names, 2, found, count);
    if (!found[0].s || (found[1].s && span_is(found[1], "true")))
        return false;
    buf_truncate(cursor, 0);
    buf_add(cursor, found[0].s, found[0].n);
    return true;
}

void follow_put_next(struct buf *out, struct span request, const struct buf *cursor)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct rpc_request r;
    struct span key, value;
    rpc_request_parse(&r, request, NULL);
    buf_addc(&params, '{');
    for (size_t at = 0; r.params.s && json_next_member(r.params, &at, &key, &value);) {
        if (json_string_is(key, "cursor"))
            continue;
        buf_add(&params, key.s, key.n);
        buf_addc(&params, ':');
        buf_add(&params, value.s, value.n);
        buf_addc(&params, ',');
    }
    buf_adds(&params, "\"cursor\":");
    buf_add(&params, cursor->data, cursor->len);
    buf_addc(&params, '}');
    rpc_put_request(out, r.id, r.method, span_of(&params));
}
