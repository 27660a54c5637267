#include "proxy_streams.h"

/* Begins a chunk; the delta's members and end_chunk follow. */
static void begin_chunk(struct events *plan, int choice)
{
    struct span all = span_of(&plan->answer);
    buf_adds(&plan->text, "data: {\"object\":\"chat.completion.chunk\"");
    stream_put(plan, "id", stream_member(all, "id"));
    stream_put(plan, "created", stream_member(all, "created"));
    stream_put(plan, "model", stream_member(all, "model"));
    stream_put(plan, "service_tier", stream_member(all, "service_tier"));
    stream_put(plan, "system_fingerprint", stream_member(all, "system_fingerprint"));
    buf_addf(&plan->text, ",\"choices\":[{\"index\":%d,\"delta\":{", choice);
}

static void end_chunk(struct events *plan)
{
    buf_adds(&plan->text, "},\"finish_reason\":null}]}\n\n");
}

/* The pieces of a string as chunks whose delta is `head`, a piece, `tail`. */
static void run(struct events *plan, int choice, struct span string, const char *head, const char *tail)
{
    size_t from = plan->text.len;
    begin_chunk(plan, choice);
    buf_addf(&plan->text, "%s" EVENTS_PIECE "%s", head, tail);
    end_chunk(plan);
    events_run(plan, from, string);
}

/* Calls of functions, and of tools whose input is text. */
static void tool_call(struct events *plan, int choice, int index, struct span call)
{
    struct span type = stream_string(call, "type");
    const char *kind = json_string_is(type, "custom") ? "custom" : "function";
    const char *text = *kind == 'c' ? "input" : "arguments";
    struct span what = stream_member(call, kind);
    struct buf head BUF_AUTO = BUF_INIT;
    begin_chunk(plan, choice);
    buf_addf(&plan->text, "\"tool_calls\":[{\"index\":%d", index);
    stream_put(plan, "id", stream_member(call, "id"));
    buf_addf(&plan->text, ",\"type\":\"%s\",\"%s\":{\"%s\":\"\"", kind, kind, text);
    stream_put(plan, "name", stream_member(what, "name"));
    buf_adds(&plan->text, "}}]");
    end_chunk(plan);
    buf_addf(&head, "\"tool_calls\":[{\"index\":%d,\"%s\":{\"%s\":", index, kind, text);
    run(plan, choice, stream_string(what, text), buf_str(&head), "}}]");
}

/* The old form, of models with one function a turn. */
static void function_call(struct events *plan, int choice, struct span call)
{
    begin_chunk(plan, choice);
    buf_adds(&plan->text, "\"function_call\":{\"arguments\":\"\"");
    stream_put(plan, "name", stream_member(call, "name"));
    buf_addc(&plan->text, '}');
    end_chunk(plan);
    run(plan, choice, stream_string(call, "arguments"), "\"function_call\":{\"arguments\":", "}");
}

static void finish(struct events *plan, int number, struct span choice)
{
    struct span why = stream_member(choice, "finish_reason");
    begin_chunk(plan, number);
    buf_adds(&plan->text, "}");
    stream_put(plan, "logprobs", stream_member(choice, "logprobs"));
    stream_put(plan, "finish_reason", why.s ? why : (struct span){"null", 4});
    buf_adds(&plan->text, "}]}\n\n");
}

static void stream_choice(struct events *plan, int number, struct span choice)
{
    /* reasoning_content: of the open models' servers, which have this dialect */
    static const char *const texts[] = {"reasoning_content", "content", "refusal"};
    struct span message = stream_member(choice, "message"), call, role = stream_member(message, "role");
    begin_chunk(plan, number);
    buf_adds(&plan->text, "\"content\":\"\"");
    stream_put(plan, "role", role.s ? role : (struct span){"\"assistant\"", 11});
    end_chunk(plan);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf head BUF_AUTO = BUF_INIT;
        buf_addf(&head, "\"%s\":", texts[i]);
        run(plan, number, stream_string(message, texts[i]), buf_str(&head), "");
    }
    if (stream_member(message, "function_call").s)
        function_call(plan, number, stream_member(message, "function_call"));
    int n = 0;
    for (size_t at = 0; stream_element(message, "tool_calls", &at, &call);)
        tool_call(plan, number, n++, call);
    finish(plan, number, choice);
}

int stream_completions(struct events *plan, bool include_usage, struct err *err)
{
    struct span all = span_of(&plan->answer), choice, choices = stream_member(all, "choices");
    if (!choices.s || json_kind(choices) != JSON_ARRAY)
        return err_set(err, ERR_INTERNAL, "the service's answer is no chat completion: it has no choices");
    int n = 0;
    for (size_t at = 0; json_element(choices, &at, &choice);)
        stream_choice(plan, n++, choice);
    struct span usage = stream_member(all, "usage");
    if (include_usage && usage.s) {
        buf_adds(&plan->text, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[]");
        stream_put(plan, "id", stream_member(all, "id"));
        stream_put(plan, "created", stream_member(all, "created"));
        stream_put(plan, "model", stream_member(all, "model"));
        stream_put(plan, "usage", usage);
        buf_adds(&plan->text, "}\n\n");
    }
    buf_adds(&plan->text, "data: [DONE]\n\n");
    return 0;
}
