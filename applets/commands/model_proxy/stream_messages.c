/* The events of Anthropic's Messages. */
#include "proxy_streams.h"

#include <string.h>

#define FROM_START(type) "event: " type "\ndata: {\"type\":\"" type "\""

void stream_messages_start(struct buf *out, struct span model)
{
    static unsigned long long count; /* no two messages of a proxy have one id */
    buf_addf(out,
             FROM_START("message_start") ",\"message\":{\"id\":\"msg_bridge_%llu\",\"type\":\"message\","
                                         "\"role\":\"assistant\",\"model\":",
             ++count);
    buf_add(out, model.s, model.n);
    buf_adds(out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
                  "\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\n");
}

static void begin_delta(struct events *plan, int block, const char *type)
{
    buf_addf(&plan->text, FROM_START("content_block_delta") ",\"index\":%d,\"delta\":{\"type\":\"%s\"", block,
             type);
}

static void end_delta(struct events *plan)
{
    buf_adds(&plan->text, "}}\n\n");
}

static void run(struct events *plan, int block, const char *type, const char *key, struct span string)
{
    size_t from = plan->text.len;
    begin_delta(plan, block, type);
    buf_addf(&plan->text, ",\"%s\":" EVENTS_PIECE, key);
    end_delta(plan);
    events_run(plan, from, string);
}

/* The input of a tool comes as the text of an object, in pieces of a string. */
static void run_input(struct events *plan, int block, struct span input)
{
    size_t from = plan->text.len;
    struct buf string BUF_AUTO = BUF_INIT;
    json_put_string(&string, input.s, input.n);
    begin_delta(plan, block, "input_json_delta");
    buf_addf(&plan->text, ",\"partial_json\":" EVENTS_PIECE);
    end_delta(plan);
    events_run_copy(plan, from, span_of(&string));
}

struct block_kind {
    const char *type;
    const char *streamed[3]; /* members that don't come with the start */
    const char *empty;       /* and what stands for them */
};

static const struct block_kind block_kinds[] = {
    {"text", {"text", "citations"}, "\"text\":\"\""},
    {"thinking", {"thinking", "signature"}, "\"thinking\":\"\",\"signature\":\"\""},
    {"tool_use", {"input"}, "\"input\":{}"},
    {"server_tool_use", {"input"}, "\"input\":{}"},
    {"mcp_tool_use", {"input"}, "\"input\":{}"},
    {"compaction", {"content"}, "\"content\":\"\""},
    {0},
};

static void deltas(struct events *plan, int number, const struct block_kind *kind, struct span block)
{
    struct span value;
    if (strcmp(kind->type, "text") == 0) {
        run(plan, number, "text_delta", "text", stream_string(block, "text"));
        for (size_t at = 0; stream_element(block, "citations", &at, &value);) {
            begin_delta(plan, number, "citations_delta");
            stream_put(plan, "citation", value);
            end_delta(plan);
        }
    } else if (strcmp(kind->type, "thinking") == 0) {
        run(plan, number, "thinking_delta", "thinking", stream_string(block, "thinking"));
        value = stream_member(block, "signature");
        if (value.s) {
            begin_delta(plan, number, "signature_delta");
            stream_put(plan, "signature", value);
            end_delta(plan);
        }
    } else if (strcmp(kind->type, "compaction") == 0) { /* never in pieces */
        begin_delta(plan, number, "compaction_delta");
        stream_put(plan, "content", stream_string(block, "content"));
        stream_put(plan, "encrypted_content", stream_member(block, "encrypted_content"));
        end_delta(plan);
    } else {
        value = stream_member(block, "input");
        run_input(plan, number, value.s ? value : (struct span){"{}", 2});
    }
}

/* A member that Python hosts can't name as it is called: "from". */
static void put_renamed(struct events *plan, struct span block)
{
    static const char *const names[] = {"from_", NULL};
    struct span from = stream_member(block, "from_");
    struct buf member BUF_AUTO = BUF_INIT;
    if (from.s)
        buf_addf(&member, "\"from\":%.*s", (int)from.n, from.s);
    events_put_object(plan, block, names, buf_str(&member));
}

static void stream_block(struct events *plan, int number, struct span block)
{
    const struct block_kind *kind = block_kinds;
    struct span type = stream_string(block, "type");
    while (kind->type && !json_string_is(type, kind->type))
        kind++;
    buf_addf(&plan->text, FROM_START("content_block_start") ",\"index\":%d,\"content_block\":", number);
    if (kind->type)
        events_put_object(plan, block, kind->streamed, kind->empty);
    else
        put_renamed(plan, block);
    buf_adds(&plan->text, "}\n\n");
    if (kind->type)
        deltas(plan, number, kind, block);
    buf_addf(&plan->text, FROM_START("content_block_stop") ",\"index\":%d}\n\n", number);
}

/* What the message says at its end, under these names. */
static void put_members(struct events *plan, struct span object, const char *const *names)
{
    const char *comma = "";
    for (; *names; names++) {
        struct span value = {0};
        if (!object.s || !json_member(object, *names, &value, NULL))
            continue;
        buf_addf(&plan->text, "%s\"%s\":", comma, *names);
        events_put(plan, value);
        comma = ",";
    }
}

int stream_messages(struct events *plan, struct err *err)
{
    static const char *const ends[] = {"stop_reason", "stop_sequence", "container", NULL};
    static const char *const counts[] = {"input_tokens",
                                         "output_tokens",
                                         "cache_creation_input_tokens",
                                         "cache_read_input_tokens",
                                         "server_tool_use",
                                         NULL};
    struct span all = span_of(&plan->answer), block, content = stream_member(all, "content");
    struct span usage = stream_member(all, "usage");
    int n = 0;
    if (!content.s || json_kind(content) != JSON_ARRAY)
        return err_set(err, ERR_INTERNAL, "the service's answer is no message: it has no content");
    for (size_t at = 0; json_element(content, &at, &block);)
        stream_block(plan, n++, block);
    buf_adds(&plan->text, FROM_START("message_delta") ",\"delta\":{");
    put_members(plan, all, ends);
    buf_adds(&plan->text, "},\"usage\":{");
    if (usage.s && json_kind(usage) == JSON_OBJECT)
        put_members(plan, usage, counts);
    else
        buf_adds(&plan->text, "\"output_tokens\":0");
    buf_adds(&plan->text, "}}\n\n" FROM_START("message_stop") "}\n\n");
    return 0;
}
