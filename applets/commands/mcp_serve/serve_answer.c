/* Results and notifications, as each revision wants them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glob.h"
#include "serve_policy.h"
#include "io.h"
#include "mem.h"
#include "rpc.h"
#include "serve.h"
#include "tools/web_browser/find.h"
#include "version.h"

#define HOUR_MS "3600000"

static const char instructions[] =
    "Tools of one Linux container. shell_run runs a command in a shell that keeps its directory, variables "
    "and background programs between calls; the first call starts it. Use shell_new for more shells, "
    "job_start for programs that run long or need separate stdout and stderr. Edit files with text_editor, "
    "which can undo; find things with find_files and search_files. Relative paths are taken from the "
    "directory in which this server was started, whatever the directory of a shell is. ";

/* How long what was made stays. */
static void put_instructions(struct buf *out, const struct serve_offer *offer)
{
    static const char named[] = "Session %s: the next connection goes on with its shells, jobs and browser.";
    struct buf text BUF_AUTO = BUF_INIT;
    buf_adds(&text, instructions);
    if (offer->session)
        buf_addf(&text, named, offer->session);
    else
        buf_adds(&text, offer->keep ? "Shells and jobs stay when this connection ends."
                                    : "Shells and jobs end with this connection.");
    json_member_string(out, "instructions", buf_str(&text));
}

/* ---- responses ---- */

/* Sends it, or puts it to the others of its batch. */
static void respond(struct serve *s, const struct origin *o, struct buf *response)
{
    if (!o->batch) {
        serve_send(s, o->stream, span_of(response), true);
        return;
    }
    buf_addc(&o->batch->answer, o->batch->answer.len > 0 ? ',' : '[');
    buf_add(&o->batch->answer, response->data, response->len);
    serve_batch_release(s, o->batch);
}

void serve_batch_release(struct serve *s, struct batch *b)
{
    if (--b->open > 0)
        return;
    if (b->answer.len > 0)
        buf_addc(&b->answer, ']');
    serve_send(s, b->stream, b->answer.len > 0 ? span_of(&b->answer) : (struct span){0}, true);
    buf_release(&b->answer);
    free(b);
}

void serve_nothing(struct serve *s, const struct origin *o)
{
    if (o->batch)
        serve_batch_release(s, o->batch);
    else
        serve_send(s, o->stream, (struct span){0}, true);
}

static void put_identity(struct buf *out, enum revision r)
{
    buf_addc(out, '{');
    json_member_string(out, "name", "toolbox");
    if (r >= REVISION_2025_06_18)
        json_member_string(out, "title", "Container tools");
    json_member_string(out, "version", toolbox_version);
    buf_addc(out, '}');
}

/* `subscription`: the request that the result ends is one; s == NULL: it is none. */
static void send_result(struct serve *s, const struct origin *o, struct span members,
                        struct span subscription)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_reserve(&out, members.n + o->id.n + 256);
    buf_adds(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_add(&out, o->id.s, o->id.n);
    buf_adds(&out, ",\"result\":{");
    buf_add(&out, members.s, members.n);
    if (o->revision == REVISION_2026_07_28) {
        json_member_string(&out, "resultType", "complete");
        buf_adds(&out, ",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
        put_identity(&out, o->revision);
        if (subscription.s) {
            json_key(&out, "io.modelcontextprotocol/subscriptionId");
            buf_add(&out, subscription.s, subscription.n);
        }
        buf_addc(&out, '}');
    }
    buf_adds(&out, "}}");
    respond(s, o, &out);
}

void serve_result(struct serve *s, const struct origin *o, struct span members)
{
    send_result(s, o, members, (struct span){0});
}

void serve_subscription_result(struct call *c)
{
    send_result(c->serve, &c->origin, (struct span){"", 0}, c->origin.id);
}

/* JSON-RPC wants null for an id that could not be read; MCP since 2025-11-25 wants none. */
void serve_error(struct serve *s, const struct origin *o, const struct err *err, struct span data)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_adds(&out, "{\"jsonrpc\":\"2.0\"");
    if (o->id.s || o->revision < REVISION_2025_11_25) {
        json_key(&out, "id");
        buf_add(&out, o->id.s ? o->id.s : "null", o->id.s ? o->id.n : 4);
    }
    buf_adds(&out, ",\"error\":{");
    json_member_int(&out, "code", err->code);
    json_member_string(&out, "message", err->msg);
    if (data.s) {
        json_key(&out, "data");
        buf_add(&out, data.s, data.n);
    }
    buf_adds(&out, "}}");
    respond(s, o, &out);
}

/* ---- who we are ---- */

#define CAPABILITIES "\"capabilities\":{\"logging\":{},\"tools\":{}}"

void put_initialize(struct buf *out, enum revision r, const struct serve_offer *offer)
{
    json_member_string(out, "protocolVersion", revision_names[r]);
    buf_adds(out, "," CAPABILITIES ",\"serverInfo\":");
    put_identity(out, r);
    put_instructions(out, offer);
}

void put_versions(struct buf *out)
{
    for (int r = REVISION_2026_07_28; r > REVISION_NONE; r--)
        buf_addf(out, "%c\"%s\"", r == REVISION_2026_07_28 ? '[' : ',', revision_names[r]);
    buf_addc(out, ']');
}

/* Not ever does anything of this change while the server runs. */
static void put_cacheable(struct buf *out)
{
    buf_adds(out, ",\"ttlMs\":" HOUR_MS ",\"cacheScope\":\"public\"");
}

void put_discover(struct buf *out, const struct serve_offer *offer)
{
    buf_adds(out, "\"supportedVersions\":");
    put_versions(out);
    buf_adds(out, "," CAPABILITIES);
    put_instructions(out, offer);
    put_cacheable(out);
}

/* ---- tools/list ---- */

static void put_words(struct buf *out, const char *words, size_t n)
{
    buf_adds(out, "\"enum\":[");
    for (const char *at = words, *end = words + n; at < end;) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        size_t len = (size_t)((bar ? bar : end) - at);
        if (at > words)
            buf_addc(out, ',');
        json_put_string(out, at, len);
        at += len + 1;
    }
    buf_addc(out, ']');
}

static void put_field(struct buf *out, const struct field *f)
{
    static const char *const types[] = {
        [PARAM_TEXT] = "\"type\":\"string\"",
        [PARAM_NAME] = "\"type\":\"string\"",
        [PARAM_INT] = "\"type\":\"integer\"",
        [PARAM_NUMBER] = "\"type\":\"number\"",
        [PARAM_BOOL] = "\"type\":\"boolean\"",
        [PARAM_INTS] = "\"type\":\"array\",\"items\":{\"type\":\"integer\"}",
        [PARAM_NAMES] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
        [PARAM_LIST] = "\"type\":\"array\",\"items\":{\"type\":\"object\"}",
        [PARAM_ENV] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
    };
    json_key(out, f->key);
    buf_addc(out, '{');
    buf_adds(out, types[f->type]);
    json_member_string(out, "description", f->about);
    if (f->words) {
        buf_addc(out, ',');
        put_words(out, f->words, strlen(f->words));
    }
    if (f->otherwise && f->type == PARAM_BOOL)
        json_member_bool(out, "default", true);
    else if (f->otherwise > 0)
        json_member_int(out, "default", f->otherwise);
    buf_addc(out, '}');
}

static void put_input_schema(struct buf *out, const struct mcp_tool *t)
{
    bool some = false;
    buf_adds(out, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < t->n_fields; i++)
        put_field(out, &t->fields[i]);
    buf_addc(out, '}');
    for (size_t i = 0; i < t->n_fields; i++) {
        if (!t->fields[i].required)
            continue;
        buf_adds(out, some ? "," : ",\"required\":[");
        json_puts(out, t->fields[i].key);
        some = true;
    }
    buf_adds(out, some ? "]}" : "}");
}

static const char *put_object_schema(struct buf *out, const char *at);

/* One type of the little language of struct mcp_tool's `result`, at `at`. Returns what is behind it. */
static const char *put_type(struct buf *out, const char *at)
{
    const char *word = *at == 's'   ? "string"
                       : *at == 'i' ? "integer"
                       : *at == 'n' ? "number"
                       : *at == 'b' ? "boolean"
                       : *at == 'o' ? "object"
                                    : "string";
    if (*at == '[') {
        bool plain = at[2] == ']';
        buf_adds(out, "{\"type\":\"array\",\"items\":");
        at = plain ? put_type(out, at + 1) : put_object_schema(out, at + 1);
        buf_addc(out, '}');
        return at + 1;
    }
    if (*at == 'a') {
        buf_adds(out, "{\"description\":\"Any value\"}");
        return at + 1;
    }
    const char *behind = *at == 'w' ? strchr(at, ')') + 1 : at + 1;
    buf_addf(out, *behind == '?' ? "{\"anyOf\":[{\"type\":\"%s\"},{\"type\":\"null\"}]" : "{\"type\":\"%s\"",
             word);
    if (*at == 'w') {
        buf_addc(out, ',');
        put_words(out, at + 2, (size_t)(behind - at) - 3);
    }
    buf_addc(out, '}');
    return behind + (*behind == '?');
}

/* Members up to the end of the text or the closing bracket. */
static const char *put_object_schema(struct buf *out, const char *at)
{
    struct buf required BUF_AUTO = BUF_INIT;
    buf_adds(out, "{\"type\":\"object\",\"properties\":{");
    while (*at && *at != ']') {
        size_t n = strcspn(at, ":?");
        bool optional = at[n] == '?';
        if (out->data[out->len - 1] != '{')
            buf_addc(out, ',');
        json_put_string(out, at, n);
        buf_addc(out, ':');
        if (!optional) {
            buf_adds(&required, required.len > 0 ? "," : ",\"required\":[");
            json_put_string(&required, at, n);
        }
        at = put_type(out, at + n + 1 + optional);
        at += *at == ' ';
    }
    buf_addc(out, '}');
    if (required.len > 0) {
        buf_add(out, required.data, required.len);
        buf_addc(out, ']');
    }
    buf_addc(out, '}');
    return at;
}

/* A hint that is as clients take it where it is absent isn't listed. */
static void put_hint(struct buf *out, const char *key, bool is, bool otherwise)
{
    if (is != otherwise)
        json_member_bool(out, key, is);
}

static void put_hints(struct buf *out, const struct mcp_tool *t, enum revision r)
{
    bool reads = t->hints & TOOL_READS;
    buf_addc(out, '{');
    if (r < REVISION_2025_06_18)
        json_member_string(out, "title", t->title);
    put_hint(out, "readOnlyHint", reads, false);
    put_hint(out, "destructiveHint", t->hints & TOOL_DESTROYS, !reads); /* where it reads, none is meant */
    put_hint(out, "idempotentHint", t->hints & TOOL_IDEMPOTENT, false);
    put_hint(out, "openWorldHint", t->hints & TOOL_OPEN_WORLD, true);
    buf_addc(out, '}');
}

static void put_tool(struct buf *out, const struct mcp_tool *t, enum revision r,
                     const struct serve_offer *offer)
{
    char *name MEM_AUTO = mem_printf("%s%s", offer->prefix, t->name);
    buf_addc(out, '{');
    json_member_string(out, "name", name);
    if (r >= REVISION_2025_06_18)
        json_member_string(out, "title", t->title);
    json_member_string(out, "description", t->description);
    json_key(out, "inputSchema");
    put_input_schema(out, t);
    if (r >= REVISION_2025_06_18 && t->result && offer->schemas) {
        json_key(out, "outputSchema");
        put_object_schema(out, t->result);
    }
    if (r >= REVISION_2025_03_26) {
        json_key(out, "annotations");
        put_hints(out, t, r);
    }
    buf_addc(out, '}');
}

bool serve_offers(const struct serve_offer *offer, const struct mcp_tool *t)
{
    bool named = t->turn == TURN_COMPUTER ? offer->computer
                                          : !offer->tools || glob_match_file(offer->tools, t->name, t->name);
    return named && (!offer->read_only || (t->hints & TOOL_READS)) && serve_policy_offers(t);
}

static bool has_browser(void)
{
    struct err err;
    char *browser MEM_AUTO = browser_find(environ, false, &err);
    return browser != NULL;
}

void put_tools(struct buf *out, enum revision r, const struct serve_offer *offer)
{
    bool all = offer->tools || has_browser();
    buf_reserve(out, 32768);
    buf_adds(out, "\"tools\":[");
    for (const struct mcp_tool *t = mcp_tools; t->name; t++) {
        if (!serve_offers(offer, t) || (!all && t->turn == TURN_BROWSER))
            continue;
        if (out->data[out->len - 1] != '[')
            buf_addc(out, ',');
        put_tool(out, t, r, offer);
    }
    buf_addc(out, ']');
    if (r == REVISION_2026_07_28)
        put_cacheable(out);
}

/* ---- tools/call ---- */

static void put_text_block(struct buf *out, const char *text, size_t n)
{
    buf_adds(out, "{\"type\":\"text\"");
    json_member_text(out, "text", text, n);
    buf_addc(out, '}');
}

static void put_image_block(struct buf *out, const struct buf *image)
{
    const char *data = image->data + strlen(image->data) + 1; /* behind the type */
    buf_adds(out, "{\"type\":\"image\"");
    json_member_string(out, "mimeType", image->data);
    buf_adds(out, ",\"data\":\"");
    buf_add(out, data, image->len - (size_t)(data - image->data));
    buf_adds(out, "\"}");
}

/* What a tool says no with is for the model to read. Arguments that are none are so as well since 2025-11-25;
 * before, that was a matter of the protocol. */
static void tool_failed(struct serve *s, struct call *c)
{
    struct buf out BUF_AUTO = BUF_INIT;
    if (c->said.error.code == ERR_PARAMS && c->origin.revision < REVISION_2025_11_25) {
        serve_error(s, &c->origin, &c->said.error, (struct span){0});
        return;
    }
    buf_adds(&out, "\"content\":[");
    put_text_block(&out, c->said.error.msg, strlen(c->said.error.msg));
    buf_addc(&out, ']');
    json_member_bool(&out, "isError", true);
    serve_result(s, &c->origin, span_of(&out));
}

/* A member of the result that is a text. */
static bool result_text(const struct call *c, const char *key, struct buf *text)
{
    struct span value;
    return c->said.structured.len > 0 && json_member(span_of(&c->said.structured), key, &value, NULL) &&
           json_string_text(value, text);
}

/* A tool without a schema of its result gives text and pictures alone: clients show the structured one in
 * their place. */
static void put_plain(struct buf *out, const struct call *c)
{
    struct buf note BUF_AUTO = BUF_INIT;
    const struct buf *text = c->said.plain.len > 0 ? &c->said.plain : &c->said.structured;
    if (c->said.image.len > 0)
        put_image_block(out, &c->said.image);
    if (c->said.image.len > 0 && c->said.plain.len == 0)
        return;
    if (c->said.image.len > 0)
        buf_addc(out, ',');
    put_text_block(out, buf_str(text), text->len);
    if (!result_text(c, "note", &note))
        return;
    buf_addc(out, ',');
    put_text_block(out, buf_str(&note), note.len);
}

void serve_tool_result(struct serve *s, struct call *c)
{
    struct buf out BUF_AUTO = BUF_INIT;
    struct buf error BUF_AUTO = BUF_INIT;
    if (c->said.error.code != 0) {
        tool_failed(s, c);
        return;
    }
    buf_reserve(&out, 2 * c->said.structured.len + c->said.plain.len + c->said.image.len + 128);
    buf_adds(&out, "\"content\":[");
    put_plain(&out, c);
    buf_addc(&out, ']');
    if (c->origin.revision >= REVISION_2025_06_18 && c->tool->result) {
        json_key(&out, "structuredContent");
        buf_add(&out, c->said.structured.data, c->said.structured.len);
    }
    json_member_bool(&out, "isError", !c->tool->result && result_text(c, "error", &error));
    serve_result(s, &c->origin, span_of(&out));
}

/* ---- notifications ---- */

static void notify(const struct call *c, const char *method, struct buf *params)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_addf(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\",\"params\":{", method);
    buf_add(&out, params->data, params->len);
    buf_adds(&out, "}}");
    serve_send(c->serve, c->origin.stream, span_of(&out), false);
}

/* Seconds, which only grow, against the longest that the call may take. */
void serve_progress(struct call *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct span limit;
    long long ms = now_ms() - c->process.started_ms;
    buf_adds(&params, "\"progressToken\":");
    buf_add(&params, c->asks.token.s, c->asks.token.n);
    buf_addf(&params, ",\"progress\":%lld.%03lld", ms / 1000, ms % 1000);
    if (c->asks.arguments.s && json_member(c->asks.arguments, "timeout", &limit, NULL) &&
        json_kind(limit) == JSON_NUMBER) {
        json_key(&params, "total");
        buf_add(&params, limit.s, limit.n);
    }
    if (c->origin.revision >= REVISION_2025_03_26) {
        char *message MEM_AUTO = c->said.status
                                     ? mem_printf("%s: %lld s, %s", c->tool->name, ms / 1000, c->said.status)
                                     : mem_printf("%s: %lld s", c->tool->name, ms / 1000);
        json_member_string(&params, "message", message);
    }
    notify(c, "progress", &params);
}

void serve_log(struct call *c, const char *level, const char *text)
{
    struct buf params BUF_AUTO = BUF_INIT;
    int least = c->origin.revision == REVISION_2026_07_28 ? c->asks.level : c->origin.client->level;
    int i = 0;
    while (i < LEVEL_NEVER && strcmp(level_names[i], level) != 0)
        i++;
    if (c->silent || i < least)
        return;
    json_member_string(&params, "level", level);
    json_member_string(&params, "logger", "toolbox");
    json_member_string(&params, "data", text);
    notify(c, "message", &params);
}
