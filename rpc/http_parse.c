#include "http_parse.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "hex.h"

void http_parser_init(struct http_parser *p)
{
    *p = (struct http_parser){.keep_alive = true};
    buf_init(&p->body, HTTP_BODY_MAX);
    buf_init(&p->reading.line, HTTP_HEAD_MAX + 1);
    buf_init(&p->target, HTTP_HEAD_MAX + 1);
    buf_init(&p->fields, HTTP_HEAD_MAX + 1);
}

void http_parser_init_any(struct http_parser *p)
{
    http_parser_init(p);
    p->reading.any = true;
}

void http_parser_release(struct http_parser *p)
{
    buf_release(&p->body);
    buf_release(&p->reading.line);
    buf_release(&p->target);
    buf_release(&p->fields);
}

bool http_next_field(const struct http_parser *p, const char **name, const char **value)
{
    const char *next = *name ? *value + strlen(*value) + 1 : buf_str(&p->fields);
    if (next >= buf_str(&p->fields) + p->fields.len)
        return false;
    *name = next;
    *value = next + strlen(next) + 1;
    return true;
}

const char *http_field(const struct http_parser *p, const char *wanted)
{
    for (const char *name = NULL, *value; http_next_field(p, &name, &value);)
        if (strcmp(name, wanted) == 0)
            return value;
    return "";
}

static void refuse(struct http_parser *p, int status)
{
    p->state = HTTP_REFUSED;
    p->status = status;
}

/* ---- the request line ---- */

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_length(const char *s)
{
    size_t n = 0;
    while (is_token_char(s[n]))
        n++;
    return n;
}

/* The path of a target, also of its absolute form, which a server has to understand. */
static const char *path_of(const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0 && target[7] != '\0' && target[7] != '/') {
        target += 7 + strcspn(target + 7, "/?#");
        return *target == '\0' ? "/" : target;
    }
    return target;
}

/* Whether a request line's method and target are for this server: 0, or the status. */
static int take_target(struct http_parser *p, const char *method, const char *target)
{
    if (!p->reading.any)
        return strcmp(path_of(target), "/") != 0 ? 404 : strcmp(method, "POST") != 0 ? 405 : 0;
    if (strlen(method) >= (p->passes ? sizeof p->method : sizeof "OPTIONS"))
        return 501;
    memcpy(p->method, method, strlen(method) + 1);
    buf_adds(&p->target, path_of(target));
    return 0;
}

/* HTTP/1.x; the status of what it is otherwise. */
static int version_status(const char *s)
{
    if (strncmp(s, "HTTP/", 5) != 0 || strspn(s + 5, "0123456789") != 1 || s[6] != '.' ||
        strspn(s + 7, "0123456789") != 1 || s[8] != '\0')
        return 400;
    return s[5] == '1' ? 0 : 505;
}

static int request_line(struct http_parser *p, char *line)
{
    if (*line == '\0')
        return 0; /* an empty line in front of a request is forgiven */
    size_t method = token_length(line);
    char *target = line + method + 1;
    char *version = method > 0 && line[method] == ' ' ? strchr(target, ' ') : NULL;
    if (!version || version == target)
        return 400;
    line[method] = '\0';
    *version++ = '\0';
    int status = version_status(version);
    if (status != 0)
        return status;
    status = take_target(p, line, target);
    if (status != 0)
        return status;
    p->reading.http10 = version[7] == '0';
    p->keep_alive = !p->reading.http10;
    p->state = HTTP_HEADERS;
    return 0;
}

/* ---- header fields ---- */

static size_t most(const struct http_parser *p)
{
    return p->passes ? SIZE_MAX / 32 : HTTP_BODY_MAX;
}

static bool fits(struct http_parser *p, size_t body)
{
    return body <= (p->passes ? most(p) : memory_share(&p->share, body, HTTP_BODY_MAX));
}

static int content_length(struct http_parser *p, const char *value)
{
    if (p->reading.has_length || *value == '\0' || value[strspn(value, "0123456789")] != '\0')
        return 400;
    p->reading.has_length = true;
    for (; *value && p->reading.left <= most(p); value++)
        p->reading.left = p->reading.left * 10 + (size_t)(*value - '0');
    return fits(p, p->reading.left) ? 0 : 413;
}

static int transfer_encoding(struct http_parser *p, const char *value)
{
    if (p->reading.chunked || p->reading.http10)
        return 400;
    if (strcasecmp(value, "chunked") != 0)
        return 501;
    p->reading.chunked = true;
    return 0;
}

static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    while (*list) {
        list += strspn(list, ", \t");
        size_t len = strcspn(list, ", \t");
        if (len == n && strncasecmp(list, word, n) == 0)
            return true;
        list += len;
    }
    return false;
}

static int expect(struct http_parser *p, const char *value)
{
    p->reading.has_expect = true;
    return strcasecmp(value, "100-continue") == 0 ? 0 : 417;
}

static int host(struct http_parser *p)
{
    bool again = p->reading.has_host;
    p->reading.has_host = true;
    return again ? 400 : 0;
}

static void keep_field(struct http_parser *p, const char *name, const char *value)
{
    for (; *name; name++)
        buf_addc(&p->fields, (char)(*name >= 'A' && *name <= 'Z' ? *name | 0x20 : *name));
    buf_addc(&p->fields, '\0');
    buf_add(&p->fields, value, strlen(value) + 1);
}

static int field(struct http_parser *p, const char *name, const char *value)
{
    if (p->reading.any)
        keep_field(p, name, value);
    if (strcasecmp(name, "Content-Length") == 0)
        return content_length(p, value);
    if (strcasecmp(name, "Transfer-Encoding") == 0)
        return transfer_encoding(p, value);
    if (strcasecmp(name, "Host") == 0)
        return host(p);
    if (strcasecmp(name, "Expect") == 0)
        return expect(p, value);
    if (strcasecmp(name, "Connection") == 0 && list_has(value, "close"))
        p->keep_alive = false;
    return 0;
}

/* Cuts "Name: value" apart. False when it is none; a line that starts with a space (a folded one) is none. */
static bool split_field(char *line, char **value)
{
    size_t name = token_length(line);
    if (name == 0 || line[name] != ':')
        return false;
    line[name] = '\0';
    *value = line + name + 1;
    *value += strspn(*value, " \t");
    for (size_t n = strlen(*value); n > 0 && strchr(" \t", (*value)[n - 1]); n--)
        (*value)[n - 1] = '\0';
    return true;
}

static int head_complete(struct http_parser *p)
{
    if ((!p->reading.http10 && !p->reading.has_host) || (p->reading.chunked && p->reading.has_length))
        return 400;
    if (!p->reading.chunked && !p->reading.has_length && !p->reading.any)
        return 411;
    p->state = p->reading.chunked ? HTTP_CHUNK_SIZE : p->reading.left > 0 ? HTTP_BODY : HTTP_COMPLETE;
    p->expects = p->reading.has_expect && !p->reading.http10 && p->state != HTTP_COMPLETE;
    p->reading.head = 0;
    return 0;
}

static int header_line(struct http_parser *p, char *line)
{
    char *value;
    if (*line == '\0')
        return head_complete(p);
    return split_field(line, &value) ? field(p, line, value) : 400;
}

/* ---- chunked coding ---- */

static int chunk_size(struct http_parser *p, const char *line)
{
    const char *s = line;
    for (p->reading.left = 0; hex_digit(*s) >= 0 && p->reading.left <= most(p); s++)
        p->reading.left = p->reading.left * 16 + (size_t)hex_digit(*s);
    if (p->reading.left > most(p) || !fits(p, p->reading.left + p->body.len))
        return 413;
    bool digits = s > line;
    s += strspn(s, " \t");
    if (!digits || (*s != '\0' && *s != ';')) /* an extension is allowed, and ignored */
        return 400;
    p->reading.head = 0;
    p->state = p->reading.left > 0 ? HTTP_BODY : HTTP_TRAILERS;
    return 0;
}

static int chunk_end(struct http_parser *p, const char *line)
{
    p->reading.head = 0;
    p->state = HTTP_CHUNK_SIZE;
    return *line == '\0' ? 0 : 400;
}

static int trailer_line(struct http_parser *p, char *line)
{
    char *value;
    if (*line != '\0')
        return split_field(line, &value) ? 0 : 400;
    p->state = HTTP_COMPLETE;
    return 0;
}

/* ---- lines and bytes ---- */

static bool has_control_char(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return true;
    return false;
}

/* A line with its line feed is in p->line. Returns the status for what is wrong with it. */
static int take_line(struct http_parser *p)
{
    char *line = p->reading.line.data;
    size_t n = p->reading.line.len - 1;
    if (n == 0 || line[n - 1] != '\r' || has_control_char(line, n - 1))
        return 400;
    line[n - 1] = '\0';
    switch (p->state) {
    case HTTP_REQUEST_LINE:
        return request_line(p, line);
    case HTTP_HEADERS:
        return header_line(p, line);
    case HTTP_CHUNK_SIZE:
        return chunk_size(p, line);
    case HTTP_CHUNK_END:
        return chunk_end(p, line);
    default:
        return trailer_line(p, line);
    }
}

static size_t parse_line(struct http_parser *p, const char *data, size_t n)
{
    bool text = (unsigned char)*data >= ' ' || *data == '\r' || *data == '\n';
    if (p->state == HTTP_REQUEST_LINE && p->reading.line.len == 0 && !text) {
        refuse(p, 400); /* no line may come: TLS, mostly */
        return 0;
    }
    const char *end = memchr(data, '\n', n);
    size_t len = end ? (size_t)(end - data) + 1 : n;
    p->reading.head += len;
    if (p->reading.head > HTTP_HEAD_MAX) {
        refuse(p, 431);
        return 0;
    }
    buf_add(&p->reading.line, data, len);
    if (end) {
        int status = take_line(p);
        if (status != 0)
            refuse(p, status);
        buf_truncate(&p->reading.line, 0);
    }
    return len;
}

static size_t parse_body(struct http_parser *p, const char *data, size_t n)
{
    size_t len = n < p->reading.left ? n : p->reading.left;
    buf_add(&p->body, data, len);
    p->reading.left -= len;
    if (p->reading.left == 0)
        p->state = p->reading.chunked ? HTTP_CHUNK_END : HTTP_COMPLETE;
    return len;
}

size_t http_parse(struct http_parser *p, const char *data, size_t n)
{
    size_t taken = 0;
    while (taken < n && p->state < HTTP_COMPLETE) {
        size_t (*parse)(struct http_parser *, const char *, size_t) =
            p->state == HTTP_BODY ? parse_body : parse_line;
        taken += parse(p, data + taken, n - taken);
    }
    return taken;
}
