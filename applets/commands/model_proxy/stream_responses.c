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

/* An item as it begins: what is streamed of it is empty. */
static void put_begun(struct events *plan, const struct item_kind *kind, struct span item)
{
    const char *names[] = {"content", "summary", "status", kind->text, NULL};
    struct buf members BUF_AUTO = BUF_INIT;
    if (stream_member(item, "status").s)
        buf_adds(&members, "\"status\":\"in_progress\"");
    for (int i = 0; i < 2; i++)
        if (stream_member(item, names[i]).s)
            buf_addf(&members, "%s\"%s\":[]", members.len ? "," : "", names[i]);
    if (kind->text)
        buf_addf(&members, "%s\"%s\":\"\"", members.len ? "," : "", kind->text);
    events_put_object(plan, item, names, buf_str(&members));
}

static void put_done(struct events *plan, struct span item)
{
    static const char *const names[] = {"status", NULL};
    if (json_string_is(stream_string(item, "status"), "in_progress"))
        events_put_object(plan, item, names, "\"status\":\"completed\"");
    else
        events_put(plan, item);
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
    put_begun(plan, kind, item);
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
    put_done(plan, item);
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

int stream_responses(struct events *plan, struct err *err)
{
    struct span all = span_of(&plan->answer), output = stream_member(all, "output"), item;
    int n = 0;
    if (!output.s || json_kind(output) != JSON_ARRAY)
        return err_set(err, ERR_INTERNAL, "the service's answer is no response: it has no output");
    plan->number = 1;
    begun(plan, "created");
    begun(plan, "in_progress");
    for (size_t at = 0; json_element(output, &at, &item);)
        stream_item(plan, n++, item);
    ended(plan, all);
    return 0;
}
