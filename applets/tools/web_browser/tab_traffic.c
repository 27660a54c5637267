#include "tab_traffic.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "tab_internal.h"

#define URL_BYTES 2000
#define TEXT_BYTES 4000            /* of one message */
#define CONSOLE_BYTES (512u << 10) /* of all */

/* ---- requests ---- */

static struct request *request_of(struct traffic *t, struct span params)
{
    size_t known = t->n < TRAFFIC_MAX ? (size_t)t->n : TRAFFIC_MAX;
    for (size_t i = 1; i <= known; i++) {
        struct request *r = &t->list[(t->n - i) % TRAFFIC_MAX];
        if (member_is(params, "requestId", r->id))
            return r;
    }
    return NULL;
}

static void forget(struct request *r)
{
    char *const texts[] = {r->id, r->session, r->method, r->url, r->type, r->mime_type, r->error};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *r = (struct request){0};
}

static void answered(struct request *r, struct span params, const char *key)
{
    struct span response;
    if (!r || !json_member(params, key, &response, NULL) || json_kind(response) != JSON_OBJECT)
        return;
    r->status = (int)member_number(response, "status");
    free(r->mime_type);
    r->mime_type = member_dup(response, "mimeType");
}

/* A redirect is one request more of the same name. */
static void began(struct traffic *t, const char *session, struct span params)
{
    struct span request;
    if (!json_member(params, "request", &request, NULL) || json_kind(request) != JSON_OBJECT)
        return;
    answered(request_of(t, params), params, "redirectResponse");
    struct request *r = &t->list[t->n++ % TRAFFIC_MAX];
    forget(r);
    *r = (struct request){.id = member_dup(params, "requestId"),
                          .session = mem_strdup(session),
                          .method = member_dup(request, "method"),
                          .url = member_dup(request, "url"),
                          .type = member_dup(params, "type")};
    if (r->url && strlen(r->url) > URL_BYTES)
        r->url[URL_BYTES] = '\0';
}

static void ended(struct request *r, struct span params)
{
    if (!r)
        return;
    r->bytes = member_number(params, "encodedDataLength");
    free(r->error);
    r->error = member_dup(params, "errorText");
}

static unsigned long long oldest(const struct traffic *t)
{
    return t->n > TRAFFIC_MAX ? t->n - TRAFFIC_MAX : 0;
}

const struct request *traffic_find(const struct traffic *t, long long id)
{
    bool there = id >= (long long)oldest(t) && id < (long long)t->n;
    return there && t->list[id % TRAFFIC_MAX].url ? &t->list[id % TRAFFIC_MAX] : NULL;
}

void traffic_put(const struct traffic *t, const char *filter, struct buf *out)
{
    unsigned long long from = oldest(t);
    buf_addc(out, '[');
    size_t begin = out->len;
    for (unsigned long long i = from; i < t->n; i++) {
        const struct request *r = &t->list[i % TRAFFIC_MAX];
        if (!r->url || (filter && !strstr(r->url, filter)))
            continue;
        buf_adds(out, out->len > begin ? ",{" : "{");
        json_member_int(out, "id", (long long)i);
        json_member_string(out, "method", r->method);
        json_member_string(out, "url", r->url);
        json_member_string(out, "type", r->type);
        json_member_int_or_null(out, "status", r->status > 0 ? r->status : -1);
        json_member_string(out, "mime_type", r->mime_type);
        json_member_int(out, "bytes", r->bytes);
        json_member_string(out, "error", r->error);
        buf_addc(out, '}');
    }
    buf_addc(out, ']');
}

/* ---- console ---- */

static void put_entry(struct buf *out, const char *level, const struct buf *text, struct span where)
{
    struct buf url BUF_AUTO = BUF_INIT;
    if (out->len > CONSOLE_BYTES)
        return;
    buf_adds(out, out->len > 0 ? ",{" : "{");
    json_member_string(out, "level", level);
    json_member_text(out, "text", buf_str(text), text->len < TEXT_BYTES ? text->len : TEXT_BYTES);
    bool there = where.s && json_kind(where) == JSON_OBJECT && member_text(where, "url", &url) && url.len > 0;
    json_member_string(out, "url", there ? buf_str(&url) : NULL);
    json_member_int_or_null(out, "line", there ? member_number(where, "lineNumber") + 1 : -1);
    buf_addc(out, '}');
}

static void put_value(struct span object, struct buf *text)
{
    struct span value;
    if (json_member(object, "value", &value, NULL)) {
        if (!json_string_text(value, text))
            buf_add(text, value.s, value.n);
    } else if (!member_text(object, "unserializableValue", text) &&
               !member_text(object, "description", text)) {
        member_text(object, "type", text);
    }
}

static void console_called(struct buf *out, struct span params)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf level BUF_AUTO = BUF_INIT;
    struct span args, arg, stack, frames, frame = {0};
    if (!json_member(params, "args", &args, NULL) || json_kind(args) != JSON_ARRAY)
        return;
    for (size_t at = 0; json_element(args, &at, &arg) && text.len < TEXT_BYTES;) {
        buf_adds(&text, text.len > 0 ? " " : "");
        if (json_kind(arg) == JSON_OBJECT)
            put_value(arg, &text);
    }
    member_text(params, "type", &level);
    if (json_member(params, "stackTrace", &stack, NULL) && json_kind(stack) == JSON_OBJECT &&
        json_member(stack, "callFrames", &frames, NULL) && json_kind(frames) == JSON_ARRAY)
        json_element(frames, &(size_t){0}, &frame);
    put_entry(out, buf_str(&level), &text, frame);
}

static void exception_thrown(struct buf *out, struct span params)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct span details, exception;
    if (!json_member(params, "exceptionDetails", &details, NULL) || json_kind(details) != JSON_OBJECT)
        return;
    if (json_member(details, "exception", &exception, NULL) && json_kind(exception) == JSON_OBJECT)
        put_value(exception, &text);
    else
        member_text(details, "text", &text);
    put_entry(out, "exception", &text, details);
}

static void entry_added(struct buf *out, struct span params)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf level BUF_AUTO = BUF_INIT;
    struct span entry;
    if (!json_member(params, "entry", &entry, NULL) || json_kind(entry) != JSON_OBJECT)
        return;
    member_text(entry, "text", &text);
    member_text(entry, "level", &level);
    put_entry(out, buf_str(&level), &text, entry);
}

void traffic_event(struct tabs *tabs, const char *session, const char *method, struct span params)
{
    struct traffic *t = &tabs->traffic;
    if (strcmp(method, "Network.requestWillBeSent") == 0)
        began(t, session, params);
    else if (strcmp(method, "Network.responseReceived") == 0)
        answered(request_of(t, params), params, "response");
    else if (strcmp(method, "Network.loadingFinished") == 0 || strcmp(method, "Network.loadingFailed") == 0)
        ended(request_of(t, params), params);
    else if (t->console && strcmp(method, "Runtime.consoleAPICalled") == 0)
        console_called(t->console, params);
    else if (t->console && strcmp(method, "Runtime.exceptionThrown") == 0)
        exception_thrown(t->console, params);
    else if (t->console && strcmp(method, "Log.entryAdded") == 0)
        entry_added(t->console, params);
}
