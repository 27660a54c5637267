/* The events of the Responses API, in the order in which the API sends them for each kind of output. */
#include <string.h>

#include "proxy_streams.h"

/* Where an event belongs. */
struct place {
    struct span item_id;
    int output;
    const char *part_key; /* content_index or summary_index; NULL: none */
    int part;
};

static void begin_event(struct events *plan, const char *type)
{
    buf_addf(&plan->text,
             "event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":" EVENTS_NUMBER, type,
             type);
}

static void end_event(struct events *plan)
{
    buf_adds(&plan->text, "}\n\n");
}

static void begin_at(struct events *plan, const char *type, const struct place *at)
{
    begin_event(plan, type);
    stream_put(plan, "item_id", at->item_id);
    buf_addf(&plan->text, ",\"output_index\":%d", at->output);
    if (at->part_key)
        buf_addf(&plan->text, ",\"%s\":%d", at->part_key, at->part);
}

static void put_big(struct events *plan, const char *key, struct span value)
{
    buf_addf(&plan->text, ",\"%s\":", key);
    events_put(plan, value);
}

/* "TYPE.delta" for each piece of a string, then "TYPE.done" with the whole in `key`. */
static void run(struct events *plan, const char *type, const char *key, struct span string, const char *more,
                const struct place *at)
{
    struct buf name BUF_AUTO = BUF_INIT;
    size_t from = plan->text.len;
    buf_addf(&name, "%s.delta", type);
    begin_at(plan, buf_str(&name), at);
    buf_addf(&plan->text, ",\"delta\":" EVENTS_PIECE "%s", more);
    end_event(plan);
    events_run(plan, from, string);
    buf_truncate(&name, 0);
    buf_addf(&name, "%s.done", type);
    begin_at(plan, buf_str(&name), at);
    put_big(plan, key, string);
    buf_adds(&plan->text, more);
    end_event(plan);
}

/* ---- parts: of a message, of reasoning ---- */

struct part_kind {
    const char *type, *event, *text; /* of the part; of what is streamed of it; where that stands in it */
    const char *empty;               /* how the part begins */
    const char *more;                /* in each of these events */
};

static const struct part_kind content_kinds[] = {
    {"output_text", "output_text", "text", "\"text\":\"\",\"annotations\":[]", ",\"logprobs\":[]"},
    {"refusal", "refusal", "refusal", "\"refusal\":\"\"", ""},
    {"reasoning_text", "reasoning_text", "text", "\"text\":\"\"", ""},
    {0}};
static const struct part_kind summary_kinds[] = {
    {"summary_text", "reasoning_summary_text", "text", "\"text\":\"\"", ""}, {0}};

static void annotations(struct events *plan, struct span part, const struct place *at)
{
    struct span annotation;
    int n = 0;
    for (size_t i = 0; stream_element(part, "annotations", &i, &annotation); n++) {
        begin_at(plan, "output_text.annotation.added", at);
        buf_addf(&plan->text, ",\"annotation_index\":%d", n);
        put_big(plan, "annotation", annotation);
        end_event(plan);
    }
}

static void stream_part(struct events *plan, const char *group, const struct part_kind *kinds,
                        struct span part, const struct place *at)
{
    static const char *const streamed[] = {"text", "refusal", "annotations", NULL};
    struct buf name BUF_AUTO = BUF_INIT;
    const struct part_kind *kind = kinds;
    struct span type = stream_string(part, "type");
    while (kind->type && !json_string_is(type, kind->type))
        kind++;
    buf_addf(&name, "%s.added", group);
    begin_at(plan, buf_str(&name), at);
    buf_adds(&plan->text, ",\"part\":");
    if (kind->type)
        events_put_object(plan, part, streamed, kind->empty);
    else
        events_put(plan, part);
    end_event(plan);
    if (kind->type)
        run(plan, kind->event, kind->text, stream_string(part, kind->text), kind->more, at);
    annotations(plan, part, at);
    buf_truncate(&name, 0);
    buf_addf(&name, "%s.done", group);
    begin_at(plan, buf_str(&name), at);
    put_big(plan, "part", part);
    end_event(plan);
}

static void stream_parts(struct events *plan, struct span item, const char *member, struct place at)
{
    bool summary = strcmp(member, "summary") == 0;
    struct span part;
    at.part_key = summary ? "summary_index" : "content_index";
    at.part = 0;
    for (size_t i = 0; stream_element(item, member, &i, &part); at.part++)
        stream_part(plan, summary ? "reasoning_summary_part" : "content_part",
                    summary ? summary_kinds : content_kinds, part, &at);
}

/* ---- items ---- */

struct item_kind {
    const char *type;
    const char *before; /* states that are told in front of the text, with spaces between */
    const char *event;  /* of the text; NULL: none is streamed */
    const char *text;   /* where that stands in the item */
    const char *after;  /* states behind it; "end": completed, or failed where the item has an error */
};

static const struct item_kind item_kinds[] = {
    {"function_call", "", "function_call_arguments", "arguments", ""},
    {"custom_tool_call", "", "custom_tool_call_input", "input", ""},
    {"file_search_call", "in_progress searching", NULL, NULL, "completed"},
    {"web_search_call", "in_progress searching", NULL, NULL, "completed"},
    {"image_generation_call", "in_progress generating", NULL, NULL, "completed"},
    {"code_interpreter_call", "in_progress", "code_interpreter_call_code", "code", "interpreting completed"},
    {"mcp_call", "in_progress", "mcp_call_arguments", "arguments", "end"},
    {"mcp_list_tools", "in_progress", NULL, NULL, "end"},
    {0},
};

static void states(struct events *plan, const struct item_kind *kind, const char *words, struct span item,
                   const struct place *at)
{
    while (*words) {
        struct buf name BUF_AUTO = BUF_INIT;
        size_t n = strcspn(words, " ");
        buf_addf(&name, "%s.", kind->type);
        if (strcmp(words, "end") == 0)
            buf_adds(&name, stream_member(item, "error").s ? "failed" : "completed");
        else
            buf_add(&name, words, n);
        begin_at(plan, buf_str(&name), at);
        end_event(plan);
        words += n + (words[n] == ' ');
    }
}

static bool ends_with(struct span type, const char *end)
{
    size_t n = strlen(end);
    return type.n >= n && memcmp(type.s + type.n - n, end, n) == 0;
}

/* Calls, their outputs and messages: clients demand that they say how far they are. */
static bool has_status(struct span type)
{
    return ends_with(type, "_call\"") || ends_with(type, "_output\"") || ends_with(type, "\"message\"");
}

static void put_member(struct buf *members, const char *key, struct span value)
{
    json_key(members, key);
    buf_add(members, value.s, value.n);
}

/* What clients demand and hosts leave out, or give as null. What is begun is in progress, but an output, of
 * which some kinds can't be. */
static void put_demanded(struct buf *members, struct span item, struct span id, bool begun)
{
    struct span status = stream_string(item, "status"), type = stream_string(item, "type");
    begun = begun && !ends_with(type, "_output\"");
    put_member(members, "id", id);
    if (!begun && status.n > 2 && !json_string_is(status, "in_progress"))
        put_member(members, "status", status);
    else if (stream_member(item, "status").s || has_status(type))
        json_member_string(members, "status", begun ? "in_progress" : "completed");
}

/* An item as it begins: what is streamed of it is empty. */
static void put_begun(struct events *plan, const struct item_kind *kind, struct span item, struct span id)
{
    const char *names[] = {"content", "summary", "status", "id", "error", kind->text, NULL};
    struct buf members BUF_AUTO = BUF_INIT;
    put_demanded(&members, item, id, true);
    for (int i = 0; i < 2; i++)
        if (stream_member(item, names[i]).s) {
            json_key(&members, names[i]);
            buf_adds(&members, "[]");
        }
    if (kind->text)
        json_member_string(&members, kind->text, "");
    events_put_object(plan, item, names, buf_str(&members));
}

/* Tools without the members that are null, which is not what "may be left out" means to a schema. */
static void put_tools(struct buf *members, struct span tools)
{
    struct span tool, key, value;
    const char *comma = "";
    json_key(members, "tools");
    buf_addc(members, '[');
    for (size_t i = 0; json_element(tools, &i, &tool) && json_kind(tool) == JSON_OBJECT; comma = ",") {
        buf_addf(members, "%s{", comma);
        comma = "";
        for (size_t at = 0; json_next_member(tool, &at, &key, &value);) {
            if (json_kind(value) == JSON_NULL)
                continue;
            buf_adds(members, comma);
            buf_add(members, key.s, key.n);
            buf_addc(members, ':');
            buf_add(members, value.s, value.n);
            comma = ",";
        }
        buf_addc(members, '}');
    }
    buf_addc(members, ']');
}

static void put_done(struct events *plan, struct span item, struct span id)
{
    struct span error = stream_member(item, "error");
    struct span tools = stream_member(item, "tools");
    bool lists = json_string_is(stream_string(item, "type"), "mcp_list_tools") && tools.s &&
                 json_kind(tools) == JSON_ARRAY;
    const char *const names[] = {"id", "status", "error", lists ? "tools" : NULL, NULL};
    struct buf members BUF_AUTO = BUF_INIT;
    put_demanded(&members, item, id, false);
    if (error.s)
        put_member(&members, "error", error);
    if (lists)
        put_tools(&members, tools);
    events_put_object(plan, item, names, buf_str(&members));
}

static void stream_item(struct events *plan, int number, struct span item)
{
    struct buf made BUF_AUTO = BUF_INIT;
    struct place at = {.item_id = stream_member(item, "id"), .output = number};
    const struct item_kind *kind = item_kinds;
    struct span type = stream_string(item, "type");
    while (kind->type && !json_string_is(type, kind->type))
        kind++;
    if (!at.item_id.s) {
        buf_addf(&made, "\"item_%d\"", number);
        at.item_id = span_of(&made);
    }
    begin_event(plan, "output_item.added");
    buf_addf(&plan->text, ",\"output_index\":%d,\"item\":", number);
    put_begun(plan, kind, item, at.item_id);
    end_event(plan);
    if (kind->type) {
        states(plan, kind, kind->before, item, &at);
        if (kind->text)
            run(plan, kind->event, kind->text, stream_string(item, kind->text), "", &at);
        states(plan, kind, kind->after, item, &at);
    } else {
        stream_parts(plan, item, "summary", at);
        stream_parts(plan, item, "content", at);
    }
    begin_event(plan, "output_item.done");
    buf_addf(&plan->text, ",\"output_index\":%d,\"item\":", number);
    put_done(plan, item, at.item_id);
    end_event(plan);
}

/* ---- the whole ---- */

static void begun(struct events *plan, const char *event)
{
    static const char *const names[] = {"status", "output", "usage", "completed_at", NULL};
    begin_event(plan, event);
    buf_adds(&plan->text, ",\"response\":");
    events_put_object(plan, span_of(&plan->answer), names,
                      "\"status\":\"in_progress\",\"output\":[],\"usage\":null");
    end_event(plan);
}

static void ended(struct events *plan, struct span all)
{
    static const char *const names[] = {"status", NULL};
    static const char *const ends[] = {"incomplete", "failed"};
    struct span status = stream_string(all, "status");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (json_string_is(status, ends[i])) {
            begin_event(plan, ends[i]);
            put_big(plan, "response", all);
            end_event(plan);
            return;
        }
    begin_event(plan, "completed");
    buf_adds(&plan->text, ",\"response\":");
    events_put_object(plan, all, names, "\"status\":\"completed\"");
    end_event(plan);
}

int stream_responses(struct events *plan, int told, struct err *err)
{
    struct span all = span_of(&plan->answer), output = stream_member(all, "output"), item;
    int n = 0;
    if (!output.s || json_kind(output) != JSON_ARRAY)
        return err_set(err, ERR_INTERNAL, "the service's answer is no response: it has no output");
    plan->number = (unsigned)told + 1;
    if (told == 0) {
        begun(plan, "created");
        begun(plan, "in_progress");
    }
    for (size_t at = 0; json_element(output, &at, &item);)
        stream_item(plan, n++, item);
    ended(plan, all);
    return 0;
}

/* What a failed response is said to have failed by: one of the codes that there are, of which
 * "invalid_prompt" is the one that isn't tried again. */
static struct span code_of(struct span error)
{
    struct span code = stream_string(error, "code"), type = stream_string(error, "type");
    if (code.n > 2)
        return code;
    if (json_string_is(type, "rate_limit_error"))
        return (struct span){"\"rate_limit_exceeded\"", 21};
    return json_string_is(type, "invalid_request_error") ? (struct span){"\"invalid_prompt\"", 16}
                                                         : (struct span){"\"server_error\"", 14};
}

/* A response that isn't the host's: its own members, and an open object in the end. */
static void put_stub(struct buf *out, const char *event, int number, const char *status)
{
    buf_addf(
        out,
        "event: response.%s\ndata: {\"type\":\"response.%s\",\"sequence_number\":%d,\"response\":{"
        "\"id\":\"resp_bridge\",\"object\":\"response\",\"created_at\":0,\"model\":\"\",\"status\":\"%s\","
        "\"output\":[],\"tools\":[],\"tool_choice\":\"auto\",\"parallel_tool_calls\":false",
        event, event, number, status);
}

int stream_responses_wait(struct buf *out, int told)
{
    for (bool first = told == 0;; first = false) {
        put_stub(out, first ? "created" : "in_progress", ++told, "in_progress");
        buf_adds(out, "}}\n\n");
        if (!first)
            return told;
    }
}

void stream_responses_put_error(struct buf *members, struct span body)
{
    struct span error = stream_member(body, "error");
    json_key(members, "error");
    buf_addc(members, '{');
    put_member(members, "code", code_of(error));
    put_member(members, "message", stream_string(error, "message"));
    buf_addc(members, '}');
}

void stream_responses_error(struct buf *out, int told, struct span body)
{
    struct span error = stream_member(body, "error");
    buf_addf(out, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":%d,\"param\":null", told + 1);
    put_member(out, "code", code_of(error));
    put_member(out, "message", stream_string(error, "message"));
    put_member(out, "error", error);
    buf_adds(out, "}\n\n");
    put_stub(out, "failed", told + 2, "failed");
    stream_responses_put_error(out, body);
    buf_adds(out, "}}\n\n");
}
