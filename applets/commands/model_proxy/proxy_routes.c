/* Which request is answered by what. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inflate.h"
#include "mem.h"
#include "proxy_background.h"
#include "proxy_gate.h"
#include "proxy_streams.h"
#include "proxy_tokens.h"
#include "unzstd.h"

/* Paths behind the version. */
static const struct proxy_route routes[] = {
    {"/chat/completions", "generate_completions", OPENAI, "messages"},
    {"/responses", "generate_responses", OPENAI, "input"},
    {"/messages", "generate_anthropic", ANTHROPIC, "messages"},
    {"/api/chat", "generate_completions", OLLAMA, "messages"},
    {"/api/generate", "generate_completions", OLLAMA, "prompt"},
};
static const struct proxy_route google = {"", "generate_google", GOOGLE, NULL};

/* ---- what is asked ---- */

static void squeeze(char *path)
{
    char *to = path;
    for (const char *s = path; *s; s++)
        if (*s != '/' || (s[1] != '/' && s[1] != '\0'))
            *to++ = *s;
    *to = '\0';
}

/* A base address may have a version or none, and a client adds its own. */
const char *proxy_behind_versions(const char *path, bool *beta)
{
    static const char *const versions[] = {"/v1beta", "/v1alpha", "/v1"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        size_t n = strlen(versions[i]);
        if (strncmp(path, versions[i], n) == 0 && (path[n] == '/' || path[n] == '\0')) {
            *beta = *beta || versions[i][3] != '\0';
            path += n;
            i = (size_t)-1; /* and the next one */
        }
    }
    return path;
}

static bool has_field(const struct proxy_asked *a, const char *name)
{
    return *http_field(a->r->head, name) != '\0';
}

static enum dialect dialect_of(const struct proxy_asked *a, bool beta)
{
    const char *action = strncmp(a->what, "/models/", 8) == 0 ? strrchr(a->what, ':') : NULL;
    if (strncmp(a->what, "/messages", 9) == 0 || has_field(a, "anthropic-version"))
        return ANTHROPIC;
    if (strncmp(a->what, "/api/", 5) == 0)
        return OLLAMA;
    return beta || has_field(a, "x-goog-api-key") || (a->posts && action) ? GOOGLE : OPENAI;
}

/* ---- answers of our own ---- */

static void answer_with(const struct proxy_asked *a, const struct buf *body)
{
    proxy_answer(a->conn, 200, JSON_FIELDS, span_of(body));
}

static void put_model(struct buf *out, enum dialect dialect, const char *id)
{
    struct buf name BUF_AUTO = BUF_INIT;
    buf_addf(&name, "%s%s", dialect == GOOGLE ? "models/" : "", id);
    buf_addc(out, '{');
    json_member_text(out, dialect == GOOGLE ? "name" : "id", buf_str(&name), name.len);
    if (dialect == OPENAI)
        buf_adds(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"inspect\"}");
    else if (dialect == ANTHROPIC)
        buf_adds(out,
                 ",\"type\":\"model\",\"display_name\":\"inspect\",\"created_at\":\"1970-01-01T00:00:00Z\","
                 "\"lifecycle\":\"active\"}");
    else
        buf_adds(out, ",\"displayName\":\"inspect\",\"version\":\"1\",\"supportedGenerationMethods\":"
                      "[\"generateContent\",\"streamGenerateContent\",\"countTokens\"]}");
}

/* The one that there is by that name, or any by its own: the host takes every name. */
static void models(const struct proxy_asked *a)
{
    static const char *const begin[] = {"{\"object\":\"list\",\"data\":[", "{\"data\":[", "{\"models\":["};
    static const char *const end[] = {
        "]}", "],\"has_more\":false,\"first_id\":\"inspect\",\"last_id\":\"inspect\"}", "]}"};
    struct buf body BUF_AUTO = BUF_INIT;
    bool one = a->what[7] == '/';
    buf_adds(&body, one ? "" : begin[a->dialect]);
    put_model(&body, a->dialect, one ? a->what + 8 : "inspect");
    buf_adds(&body, one ? "" : end[a->dialect]);
    answer_with(a, &body);
}

/* An estimate, and its answer says so. */
static void count_tokens(const struct proxy_asked *a, const char *before, const char *after)
{
    struct buf body BUF_AUTO = BUF_INIT;
    struct err err;
    if (json_check(a->r->body, &err) < 0 || json_kind(a->r->body) != JSON_OBJECT) {
        proxy_refuse(a->conn, a->dialect, 400, "the body is no JSON object");
        return;
    }
    buf_addf(&body, "%s%lld%s", before, tokens_estimate(a->r->body), after);
    proxy_answer(a->conn, 200, JSON_FIELDS "X-Toolbox-Estimate: true\r\n", span_of(&body));
}

static void not_found(const struct proxy_asked *a)
{
    struct buf message BUF_AUTO = BUF_INIT;
    buf_addf(
        &message,
        "Path %s not found: nothing is served to a %s of it. Served are /v1/chat/completions, /v1/responses, "
        "/v1/messages, /v1/models, /v1beta/models/MODEL:generateContent and /api/chat",
        a->r->path, a->r->method);
    proxy_refuse(a->conn, a->dialect, 404, buf_str(&message));
}

/* What Ollama says of itself. */
static bool ollama(const struct proxy_asked *a)
{
#define DETAILS                                                                                              \
    "\"details\":{\"format\":\"gguf\",\"family\":\"inspect\",\"families\":[\"inspect\"],\"parameter_size\":" \
    "\"\","                                                                                                  \
    "\"quantization_level\":\"\"}"
    static const char *const said[][2] = {
        {"/api/version", "{\"version\":\"0.12.0\"}"},
        {"/api/tags", "{\"models\":[{\"name\":\"inspect\",\"model\":\"inspect\",\"modified_at\":"
                      "\"1970-01-01T00:00:00Z\",\"size\":0,\"digest\":\"\"," DETAILS "}]}"},
        {"/api/ps", "{\"models\":[]}"},
        {"/api/show",
         "{\"modelfile\":\"\",\"template\":\"\"," DETAILS
         ",\"model_info\":{\"general.architecture\":\"inspect\",\"inspect.context_length\":200000},"
         "\"capabilities\":[\"completion\",\"tools\",\"vision\"]}"},
        {"/api/pull", "{\"status\":\"success\"}"},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (strcmp(a->what, said[i][0]) == 0) {
            proxy_answer(a->conn, 200, JSON_FIELDS, (struct span){said[i][1], strlen(said[i][1])});
            return true;
        }
    return false;
}

/* ---- looking it up ---- */

/* .../models/NAME:ACTION */
static bool google_action(struct proxy *proxy, const struct proxy_asked *a)
{
    struct buf model BUF_AUTO = BUF_INIT;
    const char *name = strncmp(a->what, "/models/", 8) == 0 ? a->what + 8 : "", *action = strrchr(name, ':');
    if (!action || action == name)
        return false;
    bool stream = strcmp(action, ":streamGenerateContent") == 0;
    if (strcmp(action, ":countTokens") == 0) {
        count_tokens(a, "{\"totalTokens\":", "}");
    } else if (stream || strcmp(action, ":generateContent") == 0) {
        json_put_string(&model, name, (size_t)(action - name));
        proxy_call(proxy, a->conn, &google, a->r, span_of(&model),
                   !stream                          ? WHOLE
                   : strstr(a->r->query, "alt=sse") ? STREAM
                                                    : ARRAY);
    } else {
        return false;
    }
    return true;
}

static bool post(struct proxy *proxy, const struct proxy_asked *a)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(a->what, routes[i].path) == 0) {
            proxy_call(proxy, a->conn, &routes[i], a->r, (struct span){0}, WHOLE);
            return true;
        }
    if (strcmp(a->what, "/messages/count_tokens") == 0)
        count_tokens(a, "{\"input_tokens\":", "}");
    else if (strcmp(a->what, "/responses/input_tokens") == 0)
        count_tokens(a, "{\"object\":\"response.input_tokens\",\"input_tokens\":", "}");
    else if (a->dialect == OLLAMA)
        return ollama(a);
    else
        return google_action(proxy, a);
    return true;
}

static bool is_alive(const struct proxy_asked *a)
{
    static const char *const healthy[] = {"", "/healthz", "/health", "/api/hello"};
    static const char alive[] = "{\"status\":\"ok\"}";
    for (size_t i = 0; i < sizeof healthy / sizeof *healthy; i++)
        if (strcmp(a->what, healthy[i]) == 0) {
            proxy_answer(a->conn, 200, JSON_FIELDS, (struct span){alive, sizeof alive - 1});
            return true;
        }
    return false;
}

static bool get(const struct proxy_asked *a)
{
    if (a->dialect == OLLAMA)
        return ollama(a);
    if (strncmp(a->what, "/models", 7) == 0 && (a->what[7] == '\0' || a->what[7] == '/'))
        models(a);
    else if (strcmp(a->what, "/responses") == 0 && has_field(a, "upgrade"))
        proxy_refuse_with(a->conn, a->dialect, 426,
                          JSON_FIELDS "Upgrade: HTTP/1.1\r\n", /* clients go on over HTTP, at once */
                          "Responses are streamed over HTTP here, not over a WebSocket");
    else
        return false;
    return true;
}

/* ---- compressed bodies ---- */

#define UNPACKED_MAX (64u << 20)
#define UNPACKED_RATIO 200 /* texts come to a tenth; what comes to so much less is meant to be a bomb */
#define UNPACKED_LEAST (1u << 20)

enum coding { PLAIN, GZIP, DEFLATE, ZSTD, UNKNOWN };

static enum coding coding_of(const char *name)
{
    static const struct {
        const char *name;
        enum coding coding;
    } known[] = {{"", PLAIN},      {"identity", PLAIN},  {"gzip", GZIP},
                 {"x-gzip", GZIP}, {"deflate", DEFLATE}, {"zstd", ZSTD}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(name, known[i].name) == 0)
            return known[i].coding;
    return UNKNOWN;
}

/* The body as it is meant: in *unpacked where it was compressed. False: it was refused. */
static bool take_body(const struct proxy_asked *a, struct proxy_request *r, struct buf *unpacked)
{
    struct buf why BUF_AUTO = BUF_INIT;
    struct memory_share share = {0};
    const char *name = http_field(a->r->head, "content-encoding");
    enum coding coding = coding_of(name);
    if (coding == PLAIN)
        return true;
    size_t most = a->r->body.n < UNPACKED_MAX / UNPACKED_RATIO ? a->r->body.n * UNPACKED_RATIO : UNPACKED_MAX;
    most = most > UNPACKED_LEAST ? most : UNPACKED_LEAST;
    buf_init(unpacked, memory_share(&share, most, most));
    int status = coding == UNKNOWN ? 0
                 : coding == ZSTD  ? unzstd(a->r->body.s, a->r->body.n, unpacked)
                                   : inflate(a->r->body.s, a->r->body.n, coding == GZIP, unpacked);
    if (coding == UNKNOWN)
        buf_addf(&why, "Content-Encoding is '%s': gzip, deflate and zstd are known here, or leave it out",
                 name);
    else if (status == INFLATE_BROKEN)
        buf_addf(&why, "the body is not compressed as its Content-Encoding says: '%s'", name);
    else if (status == INFLATE_TOO_MUCH)
        buf_addf(&why, "the body comes to more than %zu bytes when it is unpacked", unpacked->max);
    r->body = span_of(unpacked);
    if (why.len > 0)
        proxy_refuse_with(a->conn, a->dialect,
                          coding == UNKNOWN          ? 415
                          : status == INFLATE_BROKEN ? 400
                                                     : 413,
                          JSON_FIELDS "Accept-Encoding: gzip, deflate, zstd\r\n", buf_str(&why));
    return why.len == 0;
}

static void route(struct proxy *proxy, struct proxy_asked *a, struct proxy_request *r)
{
    bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    if ((reads && is_alive(a)) || (proxy->first && proxy->first(proxy->first_arg, a, r)))
        return;
    if (strncmp(r->path, "/mcp/", 5) == 0)
        proxy_mcp(proxy, a->conn, r);
    else if (!background_answer(proxy, a) && !(a->posts && post(proxy, a)) && !(reads && get(a)))
        not_found(a);
}

static void answer(struct proxy *proxy, struct proxy_asked *a)
{
    const struct proxy_request *packed = a->r;
    struct proxy_request r = *packed;
    struct buf unpacked BUF_AUTO = BUF_INIT;
    if (!take_body(a, &r, &unpacked))
        return;
    a->r = &r;
    route(proxy, a, &r);
    a->r = packed;
}

static void look_up(struct proxy *proxy, struct proxy_asked *a)
{
    struct buf why BUF_AUTO = BUF_INIT;
    bool beta = false;
    squeeze(a->path);
    a->what = proxy_behind_versions(a->path, &beta);
    a->posts = strcmp(a->r->method, "POST") == 0;
    a->dialect = dialect_of(a, beta);
    int refused = proxy_gate(a->r->head, &why);
    if (refused)
        proxy_refuse(a->conn, a->dialect, refused, buf_str(&why));
    else
        answer(proxy, a);
}

void proxy_handle(void *arg, struct proxy_conn *conn, const struct proxy_request *r)
{
    struct proxy_asked a = {.conn = conn, .r = r, .body = BUF_INIT};
    if (strcmp(r->method, "OPTIONS") == 0) {
        proxy_answer(conn, 405, "Allow: GET, HEAD, POST, DELETE\r\n", (struct span){"", 0});
        return;
    }
    a.path = mem_strdup(r->path);
    look_up(arg, &a);
    free(a.path);
    buf_release(&a.body);
}
