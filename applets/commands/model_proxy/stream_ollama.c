/* Ollama's own API, as chat completions. */
#include <stdlib.h>
#include <time.h>

#include "proxy_streams.h"
#include "duration.h"

/* ---- what is asked ---- */

static void put_member(struct buf *out, const char *key, struct span value)
{
    if (!value.s)
        return;
    json_key(out, key);
    buf_add(out, value.s, value.n);
}

static void put_content(struct buf *out, struct span content, struct span images)
{
    struct span image;
    json_key(out, "content");
    if (!images.s || json_kind(images) != JSON_ARRAY) {
        buf_add(out, content.s, content.n);
        return;
    }
    buf_adds(out, "[{\"type\":\"text\",\"text\":");
    buf_add(out, content.s, content.n);
    buf_addc(out, '}');
    for (size_t at = 0; json_element(images, &at, &image);)
        if (json_kind(image) == JSON_STRING)
            buf_addf(out, ",{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,%.*s}}",
                     (int)image.n - 1, image.s + 1);
    buf_addc(out, ']');
}

/* Calls have no names there: they are numbered, and so are their results, in the same order. */
static void put_calls(struct buf *out, struct span message, int *calls)
{
    struct span call;
    const char *comma = "";
    if (!stream_member(message, "tool_calls").s)
        return;
    json_key(out, "tool_calls");
    buf_addc(out, '[');
    for (size_t at = 0; stream_element(message, "tool_calls", &at, &call);) {
        struct buf compact BUF_AUTO = BUF_INIT;
        struct span function = stream_member(call, "function"), given = stream_member(function, "arguments");
        buf_addf(out, "%s{\"type\":\"function\",\"id\":\"call_%d\",\"function\":{", comma, ++*calls);
        put_member(out, "name", stream_string(function, "name"));
        json_compact(&compact, given.s ? given : (struct span){"{}", 2});
        json_member_text(out, "arguments", compact.data, compact.len);
        buf_adds(out, "}}");
        comma = ",";
    }
    buf_addc(out, ']');
}

static void put_message(struct buf *out, struct span message, int *calls, int *results)
{
    struct span role = stream_string(message, "role");
    buf_addc(out, '{');
    put_member(out, "role", role);
    put_content(out, stream_string(message, "content"), stream_member(message, "images"));
    put_calls(out, message, calls);
    if (json_string_is(role, "tool"))
        buf_addf(out, ",\"tool_call_id\":\"call_%d\"", ++*results);
    buf_addc(out, '}');
}

static void put_messages(struct buf *out, struct span body)
{
    struct span message, guide = stream_member(body, "system"), prompt = stream_member(body, "prompt");
    int calls = 0, results = 0;
    const char *comma = "";
    json_key(out, "messages");
    buf_addc(out, '[');
    if (guide.s && prompt.s)
        buf_addf(out, "{\"role\":\"system\",\"content\":%.*s},", (int)guide.n, guide.s);
    if (prompt.s) {
        buf_adds(out, "{\"role\":\"user\"");
        put_content(out, prompt, stream_member(body, "images"));
        buf_addc(out, '}');
    }
    for (size_t at = 0; !prompt.s && stream_element(body, "messages", &at, &message); comma = ",") {
        buf_adds(out, comma);
        put_message(out, message, &calls, &results);
    }
    buf_addc(out, ']');
}

void ollama_request(struct buf *out, struct span body)
{
    static const char *const same[] = {"temperature",      "top_p", "seed", "stop", "presence_penalty",
                                       "frequency_penalty"};
    struct span options = stream_member(body, "options"), format = stream_member(body, "format");
    struct span most = stream_member(options, "num_predict");
    buf_addc(out, '{');
    put_member(out, "model", stream_string(body, "model"));
    put_messages(out, body);
    put_member(out, "tools", stream_member(body, "tools"));
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        put_member(out, same[i], stream_member(options, same[i]));
    if (most.s && json_kind(most) == JSON_NUMBER && *most.s != '-')
        put_member(out, "max_tokens", most);
    if (format.s && json_kind(format) == JSON_OBJECT)
        buf_addf(
            out,
            ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"format\",\"schema\":"
            "%.*s}}",
            (int)format.n, format.s);
    else if (format.s && json_string_is(format, "json"))
        buf_adds(out, ",\"response_format\":{\"type\":\"json_object\"}");
    buf_addc(out, '}');
}

/* ---- what is answered ---- */

static void begin(struct buf *out, struct span model)
{
    buf_addf(out, "{\"model\":%.*s,\"created_at\":\"", (int)model.n, model.s);
    time_put(out, (long long)time(NULL));
    buf_addc(out, '"');
}

static const char *text_key(bool chat)
{
    return chat ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"response\":";
}

void stream_ollama_wait(struct buf *out, struct span model, bool chat)
{
    begin(out, model);
    buf_addf(out, "%s\"\"%s,\"done\":false}\n", text_key(chat), chat ? "}" : "");
}

/* Members of the message beside its text. */
static void put_more(struct buf *out, struct span message)
{
    struct span call;
    const char *comma = "";
    if (!stream_member(message, "tool_calls").s)
        return;
    buf_adds(out, ",\"tool_calls\":[");
    for (size_t at = 0; stream_element(message, "tool_calls", &at, &call); comma = ",") {
        struct span function = stream_member(call, "function");
        struct buf given BUF_AUTO = BUF_INIT;
        bool sound = json_string_text(stream_string(function, "arguments"), &given) &&
                     json_check(span_of(&given), NULL) == 0 && json_kind(span_of(&given)) == JSON_OBJECT;
        buf_addf(out, "%s{\"function\":{\"name\":%.*s,\"arguments\":", comma,
                 (int)stream_string(function, "name").n, stream_string(function, "name").s);
        json_compact(out, sound ? span_of(&given) : (struct span){"{}", 2});
        buf_adds(out, "}}");
    }
    buf_addc(out, ']');
}

static void put_end(struct buf *out, struct span all, struct span choice)
{
    struct span usage = stream_member(all, "usage");
    bool cut = json_string_is(stream_string(choice, "finish_reason"), "length");
    struct span in = stream_member(usage, "prompt_tokens"), made = stream_member(usage, "completion_tokens");
    buf_addf(out,
             ",\"done\":true,\"done_reason\":\"%s\",\"total_duration\":0,\"load_duration\":0,"
             "\"prompt_eval_duration\":0,\"eval_duration\":0",
             cut ? "length" : "stop");
    put_member(out, "prompt_eval_count", in);
    put_member(out, "eval_count", made);
    buf_adds(out, "}\n");
}

int stream_ollama(struct events *plan, struct span model, bool chat, bool stream, struct err *err)
{
    struct span all = span_of(&plan->answer), choice;
    size_t at = 0;
    if (!stream_element(all, "choices", &at, &choice))
        return err_set(err, ERR_INTERNAL, "the service's answer is no chat completion: it has no choices");
    struct span message = stream_member(choice, "message"), text = stream_string(message, "content");
    struct span thinking = stream_string(message, "reasoning_content");
    size_t from = plan->text.len;
    if (stream) {
        begin(&plan->text, model);
        buf_addf(&plan->text, "%s" EVENTS_PIECE "%s,\"done\":false}\n", text_key(chat), chat ? "}" : "");
        events_run(plan, from, text);
        text = (struct span){"\"\"", 2};
    }
    begin(&plan->text, model);
    buf_adds(&plan->text, text_key(chat));
    events_put(plan, text);
    if (thinking.n > 2) {
        buf_adds(&plan->text, ",\"thinking\":");
        events_put(plan, thinking);
    }
    if (chat) {
        put_more(&plan->text, message);
        buf_addc(&plan->text, '}');
    }
    put_end(&plan->text, all, choice);
    return 0;
}
