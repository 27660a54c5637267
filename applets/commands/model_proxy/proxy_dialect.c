#include "proxy_dialect.h"

#include <string.h>
#include <strings.h>

#include "proxy_events.h"

struct word {
    int status;
    const char *word;
};

/* The last one is for every other status of its hundred, and stands for those of 500 as well if it is 500. */
static const struct word openai_types[] = {{401, "authentication_error"},  {403, "permission_error"},
                                           {404, "not_found_error"},       {429, "rate_limit_error"},
                                           {400, "invalid_request_error"}, {500, "server_error"}};
static const struct word anthropic_types[] = {
    {401, "authentication_error"},  {402, "billing_error"},  {403, "permission_error"},
    {404, "not_found_error"},       {409, "conflict_error"}, {413, "request_too_large"},
    {429, "rate_limit_error"},      {504, "timeout_error"},  {529, "overloaded_error"},
    {400, "invalid_request_error"}, {500, "api_error"}};
static const struct word google_statuses[] = {
    {401, "UNAUTHENTICATED"},    {403, "PERMISSION_DENIED"}, {404, "NOT_FOUND"},     {409, "ABORTED"},
    {429, "RESOURCE_EXHAUSTED"}, {499, "CANCELLED"},         {501, "UNIMPLEMENTED"}, {503, "UNAVAILABLE"},
    {504, "DEADLINE_EXCEEDED"},  {400, "INVALID_ARGUMENT"},  {500, "INTERNAL"}};

static const char *word_for(const struct word *words, size_t n, int status)
{
    for (size_t i = 0; i < n; i++)
        if (words[i].status == status)
            return words[i].word;
    return words[status < 500 ? n - 2 : n - 1].word;
}

#define WORD_FOR(words, status) word_for(words, sizeof(words) / sizeof *(words), status)

static bool has(struct span object, const char *key)
{
    return json_member(object, key, &(struct span){0}, NULL);
}

/* What the provider itself has said goes first. */
static void openai_error(struct buf *out, int status, struct span message, struct span more)
{
    static const char *const none[] = {NULL};
    struct buf ours BUF_AUTO = BUF_INIT;
    struct events object;
    events_init(&object);
    more = more.s ? more : (struct span){"{}", 2};
    if (!has(more, "message"))
        json_member_text(&ours, "message", message.s, message.n);
    if (!has(more, "type"))
        json_member_string(&ours, "type", WORD_FOR(openai_types, status));
    if (!has(more, "param"))
        json_member_string(&ours, "param", NULL);
    if (!has(more, "code"))
        json_member_string(&ours, "code", NULL);
    events_put_object(&object, more, none, buf_str(&ours));
    buf_adds(out, "{\"error\":");
    while (events_next(&object, out, BUF_NO_MAX))
        ;
    buf_addc(out, '}');
    events_release(&object);
}

void dialect_error(struct buf *out, enum dialect dialect, int status, struct span message, struct span more)
{
    switch (dialect) {
    case OPENAI:
        openai_error(out, status, message, more);
        return;
    case ANTHROPIC:
        buf_adds(out, "{\"type\":\"error\",\"error\":{");
        json_member_string(out, "type", WORD_FOR(anthropic_types, status));
        json_member_text(out, "message", message.s, message.n);
        break;
    case OLLAMA:
        buf_addc(out, '{');
        json_member_text(out, "error", message.s, message.n);
        buf_addc(out, '}');
        return;
    default: /* GOOGLE */
        buf_adds(out, "{\"error\":{");
        json_member_int(out, "code", status);
        json_member_text(out, "message", message.s, message.n);
        json_member_string(out, "status", WORD_FOR(google_statuses, status));
        break;
    }
    buf_adds(out, "}}");
}

bool dialect_passes(const char *field)
{
    static const char *const begin[] = {"retry-after", "x-should-retry", "x-ratelimit-",        "anthropic-",
                                        "request-id",  "x-request-id",   "openai-processing-ms"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncasecmp(field, begin[i], strlen(begin[i])) == 0)
            return field[strspn(field, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")] ==
                   '\0';
    return false;
}
