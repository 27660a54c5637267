#include "fetch_url.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mem.h"

#define URL_MAX 8192

static const char scheme[] = "https://";

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text == 127 || (unsigned char)*text >= 128 || strchr("\"<>\\^`{|}", *text))
            return false;
    return true;
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT */
static bool split_authority(const char *at, size_t n, struct fetch_url *url)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    bool bracket = n > 0 && *at == '[';
    const char *host = at + bracket;
    size_t length = strspn(host, bracket ? "0123456789abcdefABCDEF:." : letters);
    const char *rest = host + length + bracket, *end = at + n;
    if (length == 0 || length > 253 || (bracket && host[length] != ']') || rest > end)
        return false;
    size_t digits = *rest == ':' ? strspn(rest + 1, "0123456789") : 0;
    if (rest + (digits ? digits + 1 : 0) != end || digits > 5)
        return false;
    url->host = mem_dup(host, length);
    url->port = digits ? mem_dup(rest + 1, digits) : mem_strdup(url->plain ? "80" : "443");
    url->authority = mem_dup(at, n);
    return true;
}

/* What is behind the scheme. */
static int take_apart(const char *text, const char *at, struct fetch_url *url, struct err *err)
{
    size_t n = strcspn(at, "/?#");
    if (memchr(at, '@', n))
        return err_set(err, ERR_TOOL, "an address with a password in it isn't fetched");
    if (strlen(text) > URL_MAX || !is_plain(text) || !split_authority(at, n, url))
        return err_set(err, ERR_TOOL, "'%.200s' is no address", text);
    const char *path = at + n;
    url->path = mem_printf("%s%.*s", *path == '/' ? "" : "/", (int)strcspn(path, "#"), path);
    return 0;
}

int fetch_url_parse(const char *text, struct fetch_url *url, struct err *err)
{
    if (strncasecmp(text, scheme, sizeof scheme - 1) != 0)
        return err_set(err, ERR_TOOL, "'%.200s' isn't fetched: only https:// addresses are", text);
    return take_apart(text, text + sizeof scheme - 1, url, err);
}

int fetch_url_parse_any(const char *text, struct fetch_url *url, struct err *err)
{
    url->plain = strncasecmp(text, "http://", 7) == 0;
    if (!url->plain && strncasecmp(text, scheme, sizeof scheme - 1) != 0)
        return err_set(err, ERR_TOOL, "'%.200s' can't be reached: http:// and https:// addresses can", text);
    return url->plain ? take_apart(text, text + 7, url, err) : fetch_url_parse(text, url, err);
}

void fetch_url_release(struct fetch_url *url)
{
    free(url->host);
    free(url->port);
    free(url->authority);
    free(url->path);
    *url = (struct fetch_url){0};
}

static bool has_scheme(const char *location)
{
    size_t n = strspn(location, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return n > 0 && location[n] == ':';
}

char *fetch_url_resolve(const struct fetch_url *base, const char *location)
{
    if (has_scheme(location))
        return mem_strdup(location);
    if (strncmp(location, "//", 2) == 0)
        return mem_printf("https:%s", location);
    if (*location == '/')
        return mem_printf("%s%s%s", scheme, base->authority, location);
    /* beside what was asked for; the server makes what it likes of "..", as it does in any address */
    size_t folder = strcspn(base->path, "?");
    if (*location != '?')
        while (base->path[folder - 1] != '/')
            folder--;
    return mem_printf("%s%s%.*s%s", scheme, base->authority, (int)folder, base->path, location);
}
