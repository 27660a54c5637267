#include "proxy_gate.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_ 254 /* of a host, with its NUL */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcasecmp(s + n - m, end) == 0;
}

/* The name in "NAME", "NAME:PORT" or "[ADDRESS]:PORT", without brackets. False: it is none. */
static bool host_name(const char *text, char name[NAME_MAX_])
{
    bool bracketed = *text == '[';
    size_t n = strcspn(text += bracketed, bracketed ? "]" : ":/");
    if (n == 0 || n >= NAME_MAX_ || (bracketed && text[n] != ']'))
        return false;
    memcpy(name, text, n);
    name[n] = '\0';
    return true;
}

/* This machine itself. */
static bool is_loopback(const char *text)
{
    char name[NAME_MAX_];
    struct in_addr v4;
    if (!host_name(text, name))
        return false;
    return strcasecmp(name, "localhost") == 0 || ends_with(name, ".localhost") || strcmp(name, "::1") == 0 ||
           (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

/* A name that nobody outside can have pointed here: an address, or a name without a dot, of which there are
 * none in public. */
static bool is_ours(const char *host)
{
    char name[NAME_MAX_];
    struct in_addr v4;
    return *host == '[' || is_loopback(host) ||
           (host_name(host, name) && (!strchr(name, '.') || inet_pton(AF_INET, name, &v4) == 1));
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    size_t n = strcspn(type, "; \t");
    return n == sizeof json - 1 && strncasecmp(type, json, n) == 0;
}

/* Which of them counts is a matter of who reads it. */
static bool is_given_twice(const struct http_parser *head, const char *wanted)
{
    int times = 0;
    for (const char *name = NULL, *value; http_next_field(head, &name, &value);)
        times += strcmp(name, wanted) == 0;
    return times > 1;
}

int proxy_gate(const struct http_parser *head, struct buf *why)
{
    const char *host = http_field(head, "host"), *origin = http_field(head, "origin");
    const char *type = http_field(head, "content-type"), *scheme = strstr(origin, "://");
    if (*host && !is_ours(host))
        buf_addf(why, "Host is '%s', which is no name of this machine: ask by localhost or an address", host);
    else if (*origin && !(scheme && is_loopback(scheme + 3)))
        buf_addf(why, "Web pages are not answered, and Origin says that this request is of one: '%s'",
                 origin);
    if (why->len > 0)
        return 403;
    if (is_given_twice(head, "origin") || is_given_twice(head, "content-type")) {
        buf_adds(why, "Origin or Content-Type is given twice");
        return 400;
    }
    if (strcmp(head->method, "POST") != 0 || is_json(type) || (!*type && head->body.len == 0))
        return 0; /* without a body there is nothing to be of a type */
    buf_addf(why, "Content-Type has to be application/json, and is '%s'", type);
    return 415;
}
