#include "proxy_calls.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "proxy_background.h"
#include "proxy_streams.h"

#define PROVIDER_ERROR "__inspect_provider_error__"

/* When a client is given a head before there is an answer. With it goes the status, so it is late enough for
 * a host that looks every two seconds to say no at once; who waits for the whole of an answer gets one just
 * before clients give up, of which the first do after a minute. */
#define STREAM_HEAD_MS 2500
#define WHOLE_HEAD_MS 45000
#define PING_MS 5000

/* A call of a model that the host is to answer. */
struct model_call {
    struct proxy *proxy;
    struct proxy_conn *conn; /* NULL: nobody waits, but it is of: */
    struct background *background;
    const struct proxy_route *route;
    void *service;
    struct loop_source *ping;
    struct buf plain; /* the parameters without headers, for a host that doesn't know those */
    struct buf model; /* of Ollama's dialect, as JSON */
    bool stream, usage, array;
    bool begun; /* the head is out */
    int told;   /* and so many events of the Responses API */
};

/* ---- errors ---- */

static void refuse_with(struct proxy_conn *conn, enum dialect dialect, int status, const char *fields,
                        struct span message, struct span more)
{
    struct buf body BUF_AUTO = BUF_INIT;
    dialect_error(&body, dialect, status, message, more);
    proxy_answer(conn, status, fields, span_of(&body));
}

void proxy_refuse_with(struct proxy_conn *conn, enum dialect dialect, int status, const char *fields,
                       const char *message)
{
    refuse_with(conn, dialect, status, fields, (struct span){message, strlen(message)}, (struct span){0});
}

void proxy_refuse(struct proxy_conn *conn, enum dialect dialect, int status, const char *message)
{
    proxy_refuse_with(conn, dialect, status, JSON_FIELDS, message);
}

/* As the provider says it of a parameter. */
static void refuse_without(struct proxy_conn *conn, enum dialect dialect, const char *parameter)
{
    struct buf message BUF_AUTO = BUF_INIT;
    struct buf more BUF_AUTO = BUF_INIT;
    buf_addf(&message, "Missing required parameter: '%s'.", parameter);
    buf_addc(&more, '{');
    json_member_string(&more, "param", parameter);
    json_member_string(&more, "code", "missing_required_parameter");
    buf_addc(&more, '}');
    refuse_with(conn, dialect, 400, JSON_FIELDS, span_of(&message), span_of(&more));
}

/* ---- the answer ---- */

static void end(struct model_call *c)
{
    loop_drop(&c->ping);
    buf_release(&c->plain);
    buf_release(&c->model);
    free(c);
}

/* Nobody waits for it any longer. */
static void stop(void *arg)
{
    struct model_call *c = arg;
    c->proxy->source.cancel(c->service);
    end(c);
}

static bool is_responses(const struct proxy_route *route)
{
    return route->wants && *route->wants == 'i';
}

static bool is_chat(const struct proxy_route *route)
{
    return *route->wants == 'm';
}

/* Lines of the head from what the host gives: when to try again, mostly. */
static void put_fields(struct buf *out, struct span headers)
{
    struct span key, value;
    buf_adds(out, JSON_FIELDS);
    if (!headers.s || json_kind(headers) != JSON_OBJECT)
        return;
    for (size_t at = 0; json_next_member(headers, &at, &key, &value);) {
        struct buf name BUF_AUTO = BUF_INIT;
        struct buf text BUF_AUTO = BUF_INIT;
        json_string_text(key, &name);
        if (json_kind(value) == JSON_NUMBER)
            buf_add(&text, value.s, value.n);
        else
            json_string_text(value, &text);
        if (dialect_passes(buf_str(&name)) && strlen(buf_str(&text)) == text.len &&
            !strpbrk(buf_str(&text), "\r\n"))
            buf_addf(out, "%s: %s\r\n", buf_str(&name), buf_str(&text));
    }
}

static void fail_background(struct model_call *c, int status, struct span message, struct span body)
{
    struct buf text BUF_AUTO = BUF_INIT;
    dialect_error(&text, OPENAI, status, message, body);
    background_failed(c->background, span_of(&text));
}

/* {"status", "message", "body", "headers"}, which the provider said on the host's side. */
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
    if (c->background) {
        fail_background(c, (int)number, span_of(&message), body);
        return;
    }
    if (!c->begun) {
        struct buf fields BUF_AUTO = BUF_INIT;
        put_fields(&fields, stream_member(error, "headers"));
        refuse_with(c->conn, c->route->dialect, (int)number, buf_str(&fields), span_of(&message), body);
        return;
    }
    struct events plan;
    struct buf text BUF_AUTO = BUF_INIT;
    events_init(&plan);
    dialect_error(&text, c->route->dialect, (int)number, span_of(&message), body);
    if (is_responses(c->route) && c->stream)
        stream_responses_error(&plan.text, c->told, span_of(&text));
    else
        buf_addf(&plan.text, c->stream && c->route->dialect != OLLAMA ? "%sdata: %s\n\n" : "%s%s",
                 c->stream && c->route->dialect == ANTHROPIC ? "event: error\n" : "", buf_str(&text));
    proxy_stream_end(c->conn, &plan);
}

static int plan_stream(const struct model_call *c, struct events *plan, struct err *err)
{
    if (c->route->dialect == GOOGLE) {
        stream_google(plan);
        return 0;
    }
    if (c->route->dialect == OLLAMA)
        return stream_ollama(plan, span_of(&c->model), is_chat(c->route), true, err);
    if (c->route->dialect == ANTHROPIC)
        return stream_messages(plan, err);
    return is_responses(c->route) ? stream_responses(plan, c->told, err)
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

static void begin(struct model_call *c)
{
    if (!c->begun)
        proxy_stream(c->conn, !c->stream                    ? JSON_FIELDS
                              : c->route->dialect == OLLAMA ? LINES_FIELDS
                                                            : STREAM_FIELDS);
    c->begun = true;
}

/* What an answer that is no stream consists of. */
static int put_whole(const struct model_call *c, struct events *plan, struct buf *out, struct err *err)
{
    if (c->route->dialect != OLLAMA) {
        buf_addf(out, c->array ? "[%s]" : "%s", buf_str(&plan->answer));
        return 0;
    }
    int status = stream_ollama(plan, span_of(&c->model), is_chat(c->route), false, err);
    while (status == 0 && events_next(plan, out, BUF_NO_MAX))
        ;
    events_release(plan);
    return status;
}

static void answer_whole(struct model_call *c, struct events *plan, struct span text)
{
    if (!c->begun) {
        proxy_answer(c->conn, 200, JSON_FIELDS, text);
        return;
    }
    events_release(plan);
    buf_add(&plan->text, text.s, text.n);
    proxy_stream_end(c->conn, plan);
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
    } else if (status == 0 && c->background) {
        background_done(c->background, span_of(&plan.answer));
        if (c->proxy->made)
            c->proxy->made(c->proxy->first_arg, span_of(&plan.answer));
    } else if (status == 0 && !c->stream) {
        struct buf whole BUF_AUTO = BUF_INIT;
        status = put_whole(c, &plan, &whole, err);
        if (status == 0)
            answer_whole(c, &plan, span_of(&whole));
    } else if (status == 0) {
        status = plan_stream(c, &plan, err);
        if (status == 0)
            begin(c);
        if (status == 0)
            proxy_stream_end(c->conn, &plan);
    }
    events_release(&plan);
    return status;
}

/* Hosts from before there were headers say that their method has no such argument. */
static bool is_about_headers(const struct err *failed)
{
    return failed && strstr(failed->msg, "unexpected keyword argument 'headers'");
}

static void on_answer(void *arg, struct span result, struct buf *text, const struct err *failed)
{
    struct model_call *c = arg;
    struct proxy *proxy = c->proxy;
    struct err err;
    (void)text;
    if (c->plain.len > 0 && is_about_headers(failed)) {
        proxy->headers = false;
        c->service = proxy->source.call(proxy->source.of, c->route->method, span_of(&c->plain), on_answer, c);
        buf_release(&c->plain);
        return;
    }
    proxy->headers_known = proxy->headers_known || c->plain.len > 0;
    if (failed)
        err = *failed;
    if (c->conn)
        proxy_on_gone(c->conn, NULL, NULL);
    if (failed || answer_with(c, result, &err) < 0) {
        err_wrap(&err, "%s", c->route->method);
        if (c->background) /* it is to know of no call any more */
            fail_background(c, 500, (struct span){err.msg, strlen(err.msg)}, (struct span){0});
        proxy->failed(proxy->arg, err.msg);
    }
    end(c);
}

/* Something that says nothing, and keeps the client: an event, which of Responses has to be a real one (Codex
 * counts no others), a comment, which Google's clients don't know, or white space. */
static void on_ping(void *arg)
{
    struct model_call *c = arg;
    struct buf text BUF_AUTO = BUF_INIT;
    if (c->stream && is_responses(c->route))
        c->told = stream_responses_wait(&text, c->told);
    else if (c->stream && c->route->dialect == OLLAMA)
        stream_ollama_wait(&text, span_of(&c->model), is_chat(c->route));
    else
        buf_adds(&text, !c->stream                       ? " "
                        : c->route->dialect == ANTHROPIC ? "event: ping\ndata: {\"type\":\"ping\"}\n\n"
                        : c->route->dialect == OPENAI    ? ": waiting\n\n"
                                                         : "\n");
    begin(c);
    loop_timer_set(c->ping, PING_MS);
    if (c->told)
        proxy_stream_text(c->conn, span_of(&text));
    else
        proxy_stream_alive(c->conn, span_of(&text));
}

/* ---- the request ---- */

/* Appends a copy of an object with this member, in the place of any that it has. */
static void put_with(struct buf *out, struct span object, const char *key, struct span value)
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
    buf_add(out, value.s, value.n);
    buf_addc(out, '}');
}

/* Refuses a body that makes no sense, or lacks something. */
static bool is_sound(struct proxy_conn *conn, const struct proxy_route *route, struct span body)
{
    struct err err;
    struct span model;
    const char *fault = json_check(body, &err) < 0       ? err.msg
                        : json_kind(body) != JSON_OBJECT ? "the body is no JSON object"
                                                         : NULL;
    if (fault) {
        proxy_refuse(conn, route->dialect, 400, fault);
        return false;
    }
    if (!route->wants)
        return true;
    model = stream_string(body, "model");
    if (model.n == 2 || !stream_member(body, route->wants).s) {
        refuse_without(conn, route->dialect, model.n == 2 ? "model" : route->wants);
        return false;
    }
    return true;
}

/* Fields by their names, in small letters; several of a name as one, with commas. */
static void put_headers(struct buf *out, const struct http_parser *head)
{
    buf_adds(out, ",\"headers\":{");
    for (const char *name = NULL, *value; http_next_field(head, &name, &value);) {
        struct buf all BUF_AUTO = BUF_INIT;
        if (http_field(head, name) != value)
            continue;
        for (const char *other = NULL, *more; http_next_field(head, &other, &more);)
            if (strcmp(other, name) == 0)
                buf_addf(&all, "%s%s", all.len || more != value ? ", " : "", more);
        json_member_text(out, name, buf_str(&all), all.len);
    }
    buf_addc(out, '}');
}

static void put_params(struct buf *out, const struct proxy_route *route, struct span body, struct span model)
{
    struct buf compact BUF_AUTO = BUF_INIT;
    if (route->dialect == OLLAMA)
        ollama_request(&compact, body);
    else
        json_compact(&compact, body);
    buf_adds(out, "{\"json_data\":");
    if (route->dialect == GOOGLE)
        put_with(out, span_of(&compact), "model", model);
    else if (strcmp(route->method, "generate_completions") == 0)
        /* clients have been seen to run the arguments of parallel calls together */
        put_with(out, span_of(&compact), "parallel_tool_calls", (struct span){"false", 5});
    else
        buf_add(out, compact.data, compact.len);
}

static bool is_true(struct span value)
{
    return value.s && span_is(value, "true");
}

static void begin_messages(struct model_call *c, struct span body)
{
    struct buf start BUF_AUTO = BUF_INIT;
    stream_messages_start(&start, stream_string(body, "model"));
    begin(c);
    proxy_stream_text(c->conn, span_of(&start));
}

/* Asks the host, with the fields of the request where it is one that knows of them. */
static void ask(struct model_call *c, const struct proxy_request *r, struct span model)
{
    struct proxy *proxy = c->proxy;
    struct buf params BUF_AUTO = BUF_INIT;
    put_params(&params, c->route, r->body, model);
    if (proxy->headers && c->route->dialect != GOOGLE) {
        if (!proxy->headers_known) {
            buf_add(&c->plain, params.data, params.len);
            buf_addc(&c->plain, '}');
        }
        put_headers(&params, r->head);
    }
    buf_addc(&params, '}');
    c->service = proxy->source.call(proxy->source.of, c->route->method, span_of(&params), on_answer, c);
    if (c->conn)
        proxy_on_gone(c->conn, stop, c);
}

static void begin_background(struct model_call *c, const struct proxy_request *r)
{
    struct proxy_conn *conn = c->conn;
    struct background *b = c->background = background_new(c->proxy, r->body, stop, c);
    c->conn = NULL;
    if (b) {
        ask(c, r, (struct span){0});
        background_tell(b, conn);
    } else {
        end(c);
        proxy_refuse(conn, OPENAI, 429, "too many responses are being made: wait for some, or cancel them");
    }
}

void proxy_call(struct proxy *proxy, struct proxy_conn *conn, const struct proxy_route *route,
                const struct proxy_request *r, struct span model, enum answer_form form)
{
    if (!is_sound(conn, route, r->body))
        return;
    struct model_call *c = mem_zalloc(sizeof *c);
    *c = (struct model_call){
        .proxy = proxy, .conn = conn, .route = route, .stream = form == STREAM, .array = form == ARRAY};
    buf_init(&c->model, BUF_NO_MAX);
    buf_init(&c->plain, BUF_NO_MAX);
    if (route->wants)
        c->stream = is_true(stream_member(r->body, "stream"));
    if (route->dialect == OLLAMA) { /* which streams unless it is told not to */
        struct span name = stream_string(r->body, "model"), streams = stream_member(r->body, "stream");
        buf_add(&c->model, name.s, name.n);
        c->stream = !streams.s || is_true(streams);
    }
    c->usage = is_true(stream_member(stream_member(r->body, "stream_options"), "include_usage"));
    if (is_responses(route) && !c->stream && is_true(stream_member(r->body, "background"))) {
        begin_background(c, r);
        return;
    }
    bool at_once = c->stream && route->dialect == ANTHROPIC;
    c->ping = loop_timer(proxy->loop,
                         at_once     ? PING_MS
                         : c->stream ? STREAM_HEAD_MS
                                     : WHOLE_HEAD_MS,
                         on_ping, c);
    ask(c, r, model);
    if (at_once)
        begin_messages(c, r->body);
}
