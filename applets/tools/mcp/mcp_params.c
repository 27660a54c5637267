#include "mcp_params.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define LAUNCH(member) offsetof(struct mcp_launch_params, member)
#define SESSION(member) offsetof(struct mcp_session_params, member)
#define TIMEOUT_MAX (24 * 3600)
#define TABLE(array)                                                                                         \
    {                                                                                                        \
        .list = (array), .n = sizeof(array) / sizeof *(array), .ignore_unknown = true                        \
    }

static const struct param server_list[] = {
    {.key = "command",
     .type = PARAM_NAME,
     .offset = LAUNCH(command),
     PARAM_DOC("The program, which speaks on stdin and stdout", "there is a url")},
    {.key = "args", .type = PARAM_NAMES, .offset = LAUNCH(args), PARAM_DOC("Its arguments", "none")},
    {.key = "env",
     .type = PARAM_ENV,
     .offset = LAUNCH(env),
     PARAM_DOC("All of its variables", "the server's")},
    {.key = "cwd",
     .type = PARAM_NAME,
     .offset = LAUNCH(cwd),
     PARAM_DOC("Directory to begin in", "the server's")},
    {.key = "encoding", .type = PARAM_NAME, .offset = LAUNCH(encoding), PARAM_DOC("utf-8 or ascii", "utf-8")},
    {.key = "encoding_error_handler",
     .type = PARAM_NAME,
     .offset = LAUNCH(encoding_error_handler),
     PARAM_DOC("Of bytes that don't fit: strict drops the line, ignore the bytes, replace puts U+FFFD there",
               "strict")},
    {.key = "url",
     .type = PARAM_NAME,
     .offset = LAUNCH(url),
     PARAM_DOC("In its place: a server that is reached by http:// or (where the build has TLS) https://",
               "none")},
    {.key = "headers",
     .type = PARAM_ENV,
     .offset = LAUNCH(headers),
     PARAM_DOC("What requests to the url have in their heads besides, such as Authorization", "none")},
};
static const struct params_table server_params = TABLE(server_list);

static const struct param launch_list[] = {
    {.key = "server_params",
     .type = PARAM_OBJECT,
     .required = true,
     .table = &server_params,
     PARAM_DOC("What to start", NULL)},
    {.key = "ends_with",
     .type = PARAM_INT,
     .offset = LAUNCH(ends_with),
     .min = 1,
     .max = INT_MAX,
     PARAM_DOC("A process with whose end it ends, however that comes", "none")},
    {.key = "user",
     .type = PARAM_USER,
     .offset = LAUNCH(user),
     PARAM_DOC("Whom it runs as; another user than its own takes a server of root", "the server's user")},
    WALLS_PARAMS(LAUNCH(walls))};
const struct params_table mcp_launch_params = PARAMS_TABLE(launch_list);

/* A number that can't be is no fault of the form: it is that of no server. */
#define SESSION_ID                                                                                           \
    {                                                                                                        \
        .key = "session_id", .type = PARAM_INT, .offset = SESSION(session_id), .required = true,             \
        PARAM_DOC("The server, by the number that mcp_launch_server gave", NULL)                             \
    }

static const struct param session_list[] = {SESSION_ID};
const struct params_table mcp_session_params = TABLE(session_list);

static const struct param request_list[] = {
    SESSION_ID,
    {.key = "request",
     .type = PARAM_RAW,
     .offset = SESSION(request),
     .required = true,
     PARAM_DOC("A JSON-RPC request", NULL)},
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = SESSION(timeout),
     .max = TIMEOUT_MAX,
     PARAM_DOC("Seconds to wait for the answer; then the server is told that it is cancelled", "for ever")},
};
const struct params_table mcp_request_params = TABLE(request_list);

static const struct param response_list[] = {
    SESSION_ID,
    {.key = "response",
     .type = PARAM_RAW,
     .offset = SESSION(response),
     .required = true,
     PARAM_DOC("A JSON-RPC response, with the id of the server's request", NULL)},
};
const struct params_table mcp_response_params = TABLE(response_list);

static const struct param notification_list[] = {
    SESSION_ID,
    {.key = "notification",
     .type = PARAM_RAW,
     .offset = SESSION(notification),
     .required = true,
     PARAM_DOC("A JSON-RPC notification", NULL)},
};
const struct params_table mcp_notification_params = TABLE(notification_list);

static const struct param read_list[] = {
    SESSION_ID,
    {.key = "max",
     .type = PARAM_INT,
     .offset = SESSION(max),
     .max = PARAM_MAX,
     PARAM_DOC("Most notifications", "all")},
};
const struct params_table mcp_read_params = TABLE(read_list);

static const struct param requests_list[] = {
    SESSION_ID,
    {.key = "max",
     .type = PARAM_INT,
     .offset = SESSION(max),
     .max = PARAM_MAX,
     PARAM_DOC("Most requests", "all")},
    {.key = "timeout",
     .type = PARAM_NUMBER,
     .offset = SESSION(timeout),
     .max = TIMEOUT_MAX,
     PARAM_DOC("Seconds to wait for one, where there is none", "0")},
};
const struct params_table mcp_requests_params = TABLE(requests_list);

static const struct param follow_list[] = {
    SESSION_ID,
    {.key = "cursor",
     .type = PARAM_INT,
     .offset = SESSION(cursor),
     .max = PARAM_MAX,
     PARAM_DOC("That of the last event that was received", "none was")},
};
const struct params_table mcp_follow_params = TABLE(follow_list);

/* As Python looks its codecs up: case, and what stands between the parts of a name, don't count. */
static bool is_codec(const char *name, const char *const *known)
{
    char plain[32];
    size_t n = 0;
    for (; *name && n < sizeof plain - 1; name++)
        if (!strchr("-_ .", *name))
            plain[n++] = *name;
    plain[n] = '\0';
    for (; *known; known++)
        if (*name == '\0' && strcasecmp(plain, *known) == 0)
            return true;
    return false;
}

static bool is_utf8(const char *encoding)
{
    static const char *const names[] = {"utf8", "u8", "utf", "cp65001", NULL};
    return is_codec(encoding, names);
}

static bool is_ascii(const char *encoding)
{
    static const char *const names[] = {"ascii", "usascii", "646", NULL};
    return is_codec(encoding, names);
}

/* -1: none of them. */
static int bad_bytes(const struct text *name)
{
    static const char *const names[] = {
        [MCP_STRICT] = "strict", [MCP_IGNORE] = "ignore", [MCP_REPLACE] = "replace"};
    for (int i = 0; i < 3; i++)
        if (!name->s || strcmp(name->s, names[i]) == 0)
            return i;
    return -1;
}

int mcp_launch_check(const void *params, struct err *err)
{
    const struct mcp_launch_params *p = params;
    static const char where[] = "Invalid parameters: server_params.";
    if ((p->command.n == 0) == (p->url.n == 0))
        return err_set(err, ERR_PARAMS, "%scommand: must be there and not be empty, or else url", where);
    if (p->url.n == 0 && p->headers.n > 0)
        return err_set(err, ERR_PARAMS, "%sheaders: go with url", where);
    if (p->encoding.s && !is_utf8(p->encoding.s) && !is_ascii(p->encoding.s))
        return err_set(err, ERR_PARAMS, "%sencoding: must be \"utf-8\" or \"ascii\"", where);
    if (bad_bytes(&p->encoding_error_handler) < 0)
        return err_set(err, ERR_PARAMS,
                       "%sencoding_error_handler: must be \"strict\", \"ignore\" or \"replace\"", where);
    return 0;
}

bool mcp_launch_is_ascii(const struct mcp_launch_params *p)
{
    return p->encoding.s && is_ascii(p->encoding.s);
}

enum mcp_bad_bytes mcp_launch_bad_bytes(const struct mcp_launch_params *p)
{
    return (enum mcp_bad_bytes)bad_bytes(&p->encoding_error_handler);
}
