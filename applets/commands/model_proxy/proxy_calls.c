#include "proxy_calls.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "proxy_dialect.h"
#include "proxy_gate.h"
#include "proxy_streams.h"

#define PING_MS 5000
#define PROVIDER_ERROR "__inspect_provider_error__"

/* A path of a provider. */
struct route {
    const char *path;   /* ends with '*' where more follows */
    const char *method; /* of the service */
    enum dialect dialect;
    const char *wants; /* a member that the body has to have */
};

static const struct route routes[] = {
    {"/v1/chat/completions", "generate_completions", OPENAI, "messages"},
    {"/v1/responses", "generate_responses", OPENAI, "input"},
    {"/v1/messages", "generate_anthropic", ANTHROPIC, "messages"},
    {"/v1beta/models/*", "generate_google", GOOGLE, NULL},
    {"/v1/models/*", "generate_google", GOOGLE, NULL}, /* newer SDKs ask there */
    {"/models/*", "generate_google", GOOGLE, NULL},
};

/* A call of a model that the host is to answer. */
struct model_call {
    struct proxy *proxy;
    struct proxy_conn *conn;
    const struct route *route;
    struct service_call *service;
    struct loop_source *ping; /* set: message_start is out */
    bool stream, usage;
};

static bool matches(const char *pattern, const char *path)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, path, n - 1) == 0 : strcmp(pattern, path) == 0;
}

/* ---- errors ---- */

static void refuse_with(struct proxy_conn *conn, enum dialect dialect, int status, struct span message,
                        struct span more)
{
    struct buf body BUF_AUTO = BUF_INIT;
    dialect_error(&body, dialect, status, message, more);
    proxy_answer(conn, status, JSON_FIELDS, span_of(&body));
}

static void refuse(struct proxy_conn *conn, enum dialect dialect, int status, const char *message)
{
    refuse_with(conn, dialect, status, (struct span){message, strlen(message)}, (struct span){0});
}

/* ---- the answer ---- */

static void end(struct model_call *c)
{
    loop_drop(&c->ping);
    free(c);
}

static void on_gone(void *arg)
{
    struct model_call *c = arg;
    service_cancel(c->service);
    end(c);
}

/* {"status", "message", "body"}, which the provider said on the host's side. */
static void provider_error(struct model_call *c, struct span error)
{
    struct buf message BUF_AUTO = BUF_INIT;
    struct span status = stream_member(error, "status"), body = stream_member(error, "body");
    long number = status.s && json_kind(status) == JSON_NUMBER ? strtol(status.s, NULL, 10) : 0;
    if (number < 400 || number > 599)
        number = 400;
    if (body.s && json_kind(body) != JSON_OBJECT)
        body.s = NULL;
    json_string_text(stream_string(error, "message"), &message);
    if (!c->ping) {
        refuse_with(c->conn, c->route->dialect, (int)number, span_of(&message), body);
        return;
    }
    struct events plan;
    events_init(&plan);
    buf_adds(&plan.text, "event: error\ndata: ");
    dialect_error(&plan.text, c->route->dialect, (int)number, span_of(&message), body);
    buf_adds(&plan.text, "\n\n");
    proxy_stream_end(c->conn, &plan);
}

static int plan_stream(const struct model_call *c, struct events *plan, struct err *err)
{
    if (c->route->dialect == GOOGLE) {
        stream_google(plan);
        return 0;
    }
    if (c->route->dialect == ANTHROPIC)
        return stream_messages(plan, err);
    return strcmp(c->route->wants, "input") == 0 ? stream_responses(plan, err)
                                                 : stream_completions(plan, c->usage, err);
}

/* The text of the object that a result is, or that a string holds. */
static int take_result(struct span result, struct buf *out, struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (json_string_text(result, &text)) {
        if (json_check(span_of(&text), NULL) == 0)
            json_compact(out, span_of(&text));
    } else {
        json_compact(out, result);
    }
    if (out->len == 0 || json_kind(span_of(out)) != JSON_OBJECT)
        return err_set(err, ERR_INTERNAL, "the service's answer is no object");
    return 0;
}

static int answer_with(struct model_call *c, struct span result, struct err *err)
{
    struct events plan;
    events_init(&plan);
    int status = take_result(result, &plan.answer, err);
    struct span error = {0};
    if (status == 0)
        error = stream_member(span_of(&plan.answer), PROVIDER_ERROR);
    if (error.s) {
        provider_error(c, error);
    } else if (status == 0 && !c->stream) {
        proxy_answer(c->conn, 200, JSON_FIELDS, span_of(&plan.answer));
    } else if (status == 0) {
        status = plan_stream(c, &plan, err);
        if (status == 0 && !c->ping)
            proxy_stream(c->conn);
        if (status == 0)
            proxy_stream_end(c->conn, &plan);
    }
    events_release(&plan);
    return status;
}

static void on_answer(void *arg, struct span result, struct buf *text, const struct err *failed)
{
    struct model_call *c = arg;
    struct proxy *proxy = c->proxy;
    struct err err;
    (void)text;
    if (failed)
        err = *failed;
    proxy_on_gone(c->conn, NULL, NULL);
    if (failed || answer_with(c, result, &err) < 0) {
        err_wrap(&err, "%s", c->route->method);
        proxy->failed(proxy->arg, err.msg);
    }
    end(c);
}

static void on_ping(void *arg)
{
    static const char text[] = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    struct model_call *c = arg;
    loop_timer_set(c->ping, PING_MS);
    proxy_stream_text(c->conn, (struct span){text, sizeof text - 1});
}

/* ---- the request ---- */

void proxy_put_with(struct buf *out, struct span object, const char *key, const char *value)
{
    struct span name, old;
    buf_addc(out, '{');
    for (size_t at = 0; json_next_member(object, &at, &name, &old);) {
        if (json_string_is(name, key))
            continue;
        if (out->data[out->len - 1] != '{')
            buf_addc(out, ',');
        buf_add(out, name.s, name.n);
        buf_addc(out, ':');
        buf_add(out, old.s, old.n);
    }
    json_key(out, key);
    buf_adds(out, value);
    buf_addc(out, '}');
}

/* What is wrong with a body; NULL: nothing. */
static const char *body_fault(const struct route *route, struct span body, struct err *err)
{
    if (json_check(body, err) < 0)
        return err->msg;
    if (json_kind(body) != JSON_OBJECT)
        return "the body is no JSON object";
    if (route->dialect == GOOGLE)
        return NULL;
    if (!stream_member(body, "model").s)
        return "model: Field required";
    if (!stream_member(body, route->wants).s)
        return *route->wants == 'i' ? "input: Field required" : "messages: Field required";
    return NULL;
}

/* The name in .../models/NAME:ACTION, as JSON; false when the action is none that is served. */
static bool google_model(const char *path, struct buf *model, bool *stream)
{
    const char *name = strstr(path, "/models/") + 8, *action = strrchr(name, ':');
    if (!action || action == name)
        return false;
    *stream = strcmp(action, ":streamGenerateContent") == 0;
    json_put_string(model, name, (size_t)(action - name));
    return *stream || strcmp(action, ":generateContent") == 0;
}

static void put_params(struct buf *out, const struct route *route, struct span body, const char *model)
{
    struct buf compact BUF_AUTO = BUF_INIT;
    json_compact(&compact, body);
    buf_adds(out, "{\"json_data\":");
    if (route->dialect == GOOGLE)
        proxy_put_with(out, span_of(&compact), "model", model);
    else if (strcmp(route->method, "generate_completions") == 0)
        /* clients have been seen to run the arguments of parallel calls together */
        proxy_put_with(out, span_of(&compact), "parallel_tool_calls", "false");
    else
        buf_add(out, compact.data, compact.len);
    buf_addc(out, '}');
}

static bool is_true(struct span value)
{
    return value.s && span_is(value, "true");
}

static void begin_messages(struct model_call *c, struct span body)
{
    struct buf start BUF_AUTO = BUF_INIT;
    stream_messages_start(&start, stream_string(body, "model"));
    c->ping = loop_timer(c->proxy->loop, PING_MS, on_ping, c);
    proxy_stream(c->conn);
    proxy_stream_text(c->conn, span_of(&start));
}

static void call_model(struct proxy *proxy, struct proxy_conn *conn, const struct route *route,
                       const struct proxy_request *r)
{
    struct err err;
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf model BUF_AUTO = BUF_INIT;
    bool stream = false;
    if (route->dialect == GOOGLE && !google_model(r->path, &model, &stream)) {
        refuse(conn, GOOGLE, 404, "no such method: generateContent and streamGenerateContent are served");
        return;
    }
    const char *fault = body_fault(route, r->body, &err);
    if (fault) {
        refuse(conn, route->dialect, 400, fault);
        return;
    }
    put_params(&params, route, r->body, buf_str(&model));
    struct model_call *c = mem_zalloc(sizeof *c);
    *c = (struct model_call){.proxy = proxy, .conn = conn, .route = route, .stream = stream};
    if (route->dialect != GOOGLE)
        c->stream = is_true(stream_member(r->body, "stream"));
    c->usage = is_true(stream_member(stream_member(r->body, "stream_options"), "include_usage"));
    c->service = service_call(proxy->service, route->method, span_of(&params), on_answer, c);
    proxy_on_gone(conn, on_gone, c);
    if (c->stream && route->dialect == ANTHROPIC)
        begin_messages(c, r->body);
}

static void list_models(struct proxy_conn *conn)
{
    static const char body[] = "{\"object\":\"list\",\"data\":[{\"id\":\"inspect\",\"object\":\"model\","
                               "\"created\":0,\"owned_by\":\"inspect\"}]}";
    proxy_answer(conn, 200, JSON_FIELDS, (struct span){body, sizeof body - 1});
}

static enum dialect dialect_of(const char *path)
{
    return strncmp(path, "/v1/messages", 12) == 0                            ? ANTHROPIC
           : strncmp(path, "/v1beta", 7) == 0 || matches("/models*", path) ? GOOGLE
                                                                             : OPENAI;
}

static void not_found(struct proxy_conn *conn, const char *path)
{
    struct buf message BUF_AUTO = BUF_INIT;
    buf_addf(&message, "Path %s not found", path);
    refuse_with(conn, dialect_of(path), 404, span_of(&message), (struct span){0});
}

void proxy_handle(void *arg, struct proxy_conn *conn, const struct proxy_request *r)
{
    struct proxy *proxy = arg;
    struct buf why BUF_AUTO = BUF_INIT;
    if (strcmp(r->method, "OPTIONS") == 0) {
        proxy_answer(conn, 405, "Allow: GET, HEAD, POST\r\n", (struct span){"", 0});
        return;
    }
    int refused = proxy_gate(r->head, &why);
    if (refused) {
        refuse_with(conn, dialect_of(r->path), refused, span_of(&why), (struct span){0});
        return;
    }
    if (matches("/mcp/*", r->path)) {
        proxy_mcp(proxy, conn, r);
        return;
    }
    if (strcmp(r->method, "GET") == 0 && strcmp(r->path, "/v1/models") == 0) {
        list_models(conn);
        return;
    }
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(r->method, "POST") == 0 && matches(routes[i].path, r->path)) {
            call_model(proxy, conn, &routes[i], r);
            return;
        }
    not_found(conn, r->path);
}
