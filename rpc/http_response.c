#include "http_response.h"

#include <string.h>
#include <strings.h>

#define LINE_MAX_CHUNK 1024
#define INTERIM_COST 1024 /* of an interim answer, besides its length */
#define FRAMING_MAX 8     /* bytes of framing for each byte of the body: chunks of one byte have five */

void http_response_init(struct http_response *r)
{
    *r = (struct http_response){.spare = HTTP_RESPONSE_HEAD_MAX};
    buf_init(&r->head, HTTP_RESPONSE_HEAD_MAX);
    buf_init(&r->location, HTTP_RESPONSE_HEAD_MAX);
}

void http_response_release(struct http_response *r)
{
    buf_release(&r->head);
    buf_release(&r->location);
}

static int refuse(struct err *err, const char *what)
{
    return err_set(err, ERR_TOOL, "the server's answer is no HTTP: %s", what);
}

/* Decimal digits alone, 18 at most; moves *at behind them. */
static bool read_number(const char **at, unsigned long long *value)
{
    size_t n = strspn(*at, "0123456789");
    *value = 0;
    for (size_t i = 0; i < n && n <= 18; i++)
        *value = *value * 10 + (unsigned)((*at)[i] - '0');
    *at += n;
    return n > 0 && n <= 18;
}

/* ---- the head ---- */

static int read_status(struct http_response *r, const char *line, struct err *err)
{
    unsigned long long status;
    const char *at = line + 9;
    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
        !read_number(&at, &status) || at != line + 12 || (*at != ' ' && *at != '\0') || status < 100)
        return refuse(err, "it begins with something else than a status");
    r->status = (int)status;
    return 0;
}

static int read_length(struct http_response *r, const char *value, struct err *err)
{
    unsigned long long length;
    if (!read_number(&value, &length) || *value || (r->has_length && length != r->length))
        return refuse(err, "its length can't be understood");
    r->has_length = true;
    r->length = length;
    return 0;
}

/* "bytes FIRST-LAST/SIZE" */
static void read_range(struct http_response *r, const char *value)
{
    const char *at = value + 6;
    r->has_range = strncasecmp(value, "bytes ", 6) == 0 && read_number(&at, &r->range_start) && *at == '-';
}

static int read_field(struct http_response *r, char *line, struct err *err)
{
    char *value = strchr(line, ':');
    if (!value || value == line || strcspn(line, " \t") < (size_t)(value - line))
        return refuse(err, "a line of its head is no field");
    *value++ = '\0';
    value += strspn(value, " \t");
    for (size_t n = strlen(value); n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
        value[n - 1] = '\0';
    if (r->field)
        r->field(r->arg, line, value);
    if (strcasecmp(line, "content-length") == 0)
        return read_length(r, value, err);
    if (strcasecmp(line, "content-range") == 0)
        read_range(r, value);
    if (strcasecmp(line, "location") == 0 && r->location.len == 0)
        buf_adds(&r->location, value);
    if (strcasecmp(line, "transfer-encoding") == 0) {
        if (r->chunked || strcasecmp(value, "chunked") != 0)
            return refuse(err, "its transfer encoding is none that was asked for");
        r->chunked = true;
    }
    if (strcasecmp(line, "content-encoding") == 0 && *value && strcasecmp(value, "identity") != 0)
        return refuse(err, "its content is encoded, which wasn't asked for");
    return 0;
}

static void begin_body(struct http_response *r)
{
    r->left = r->length;
    if (r->status == 204 || r->status == 304 || (r->has_length && r->length == 0))
        r->state = RESPONSE_COMPLETE;
    else
        r->state = r->chunked ? RESPONSE_CHUNK_SIZE : RESPONSE_BODY;
    buf_truncate(&r->head, 0);
}

/* Whether so many bytes may come that nobody wants. */
static bool spend(struct http_response *r, size_t n)
{
    bool enough = n <= r->spare;
    r->spare -= enough ? n : r->spare;
    return enough;
}

/* Some of the body has come. */
static void earn(struct http_response *r, size_t n)
{
    size_t room = HTTP_RESPONSE_HEAD_MAX - r->spare;
    r->spare += n < room / FRAMING_MAX ? FRAMING_MAX * n : room;
}

/* An interim response: the real one follows. */
static void begin_again(struct http_response *r)
{
    buf_truncate(&r->head, 0);
    buf_truncate(&r->location, 0);
    r->status = 0;
    r->has_length = r->has_range = r->chunked = false;
    r->length = 0;
}

static int read_head(struct http_response *r, struct err *err)
{
    char *line = r->head.data;
    bool first = true;
    if (memchr(line, '\0', r->head.len))
        return refuse(err, "there is a NUL in its head");
    for (char *end; (end = strchr(line, '\n')) && end > line; line = end + 1) {
        end[end > line && end[-1] == '\r' ? -1 : 0] = '\0';
        if (*line == '\0')
            break;
        if ((first ? read_status(r, line, err) : read_field(r, line, err)) < 0)
            return -1;
        first = false;
    }
    if (first)
        return refuse(err, "it begins with something else than a status");
    if (r->chunked && r->has_length)
        return refuse(err, "it has two lengths");
    if (r->status < 200 && r->status != 101) {
        if (!spend(r, r->head.len + INTERIM_COST))
            return refuse(err, "interim answers without end");
        begin_again(r);
        return 0;
    }
    begin_body(r);
    return 0;
}

static bool is_whole(const struct buf *head)
{
    const char *end = head->data + head->len;
    return head->len >= 2 && end[-1] == '\n' &&
           (end[-2] == '\n' || (head->len >= 3 && end[-2] == '\r' && end[-3] == '\n'));
}

/* ---- chunks ---- */

static int read_chunk_size(struct http_response *r, struct err *err)
{
    const char *at = buf_str(&r->head);
    size_t n = strspn(at, "0123456789abcdefABCDEF");
    r->left = 0;
    for (size_t i = 0; i < n && n <= 15; i++)
        r->left = r->left * 16 + (unsigned)(at[i] <= '9' ? at[i] - '0' : (at[i] | 32) - 'a' + 10);
    at += n + strspn(at + n, " \t");
    if (n == 0 || n > 15 || (*at != ';' && *at != '\r' && *at != '\n'))
        return refuse(err, "a chunk has no size");
    r->state = r->left > 0 ? RESPONSE_CHUNK : RESPONSE_TRAILERS;
    return 0;
}

static int read_line(struct http_response *r, struct err *err)
{
    bool empty = buf_str(&r->head)[0] == '\n' || strcmp(buf_str(&r->head), "\r\n") == 0;
    int result = 0;
    if (r->state == RESPONSE_CHUNK_SIZE)
        result = read_chunk_size(r, err);
    else if (r->state == RESPONSE_CHUNK_END && empty)
        r->state = RESPONSE_CHUNK_SIZE;
    else if (r->state == RESPONSE_CHUNK_END)
        result = refuse(err, "a chunk is longer than its size");
    else if (empty)
        r->state = RESPONSE_COMPLETE;
    if (result == 0 && !spend(r, r->head.len))
        result = refuse(err, r->state == RESPONSE_TRAILERS ? "its trailers are too long"
                                                           : "it has more framing than content");
    buf_truncate(&r->head, 0);
    return result;
}

/* ---- bytes ---- */

/* Up to the next newline, which ends a line or perhaps the head. Returns how many it took, or 0 and *failed.
 */
static size_t feed_line(struct http_response *r, const char *data, size_t n, bool *failed, struct err *err)
{
    const char *newline = memchr(data, '\n', n);
    size_t take = newline ? (size_t)(newline - data) + 1 : n;
    bool head = r->state == RESPONSE_HEAD;
    if (buf_add(&r->head, data, take) < 0 || (!head && r->head.len > LINE_MAX_CHUNK)) {
        *failed = true;
        refuse(err, "its head is too long");
    } else if (newline && head) {
        *failed = is_whole(&r->head) && read_head(r, err) < 0;
    } else if (newline) {
        *failed = read_line(r, err) < 0;
    }
    return take;
}

static size_t feed_body(struct http_response *r, const char *data, size_t n, bool *failed, struct err *err)
{
    bool bounded = r->state == RESPONSE_CHUNK || r->has_length;
    size_t take = bounded && n > r->left ? (size_t)r->left : n;
    if ((r->any || r->status / 100 == 2) && r->body && r->body(r->arg, data, take, err) < 0)
        *failed = true;
    earn(r, take);
    if (bounded && (r->left -= take) == 0)
        r->state = r->state == RESPONSE_CHUNK ? RESPONSE_CHUNK_END : RESPONSE_COMPLETE;
    return take;
}

int http_response_feed(struct http_response *r, const char *data, size_t n, struct err *err)
{
    bool failed = false;
    while (n > 0 && !failed && r->state != RESPONSE_COMPLETE) {
        bool body = r->state == RESPONSE_BODY || r->state == RESPONSE_CHUNK;
        size_t taken = body ? feed_body(r, data, n, &failed, err) : feed_line(r, data, n, &failed, err);
        data += taken;
        n -= taken;
    }
    return failed ? -1 : 0;
}

int http_response_end(struct http_response *r, struct err *err)
{
    if (r->state == RESPONSE_BODY && !r->has_length)
        r->state = RESPONSE_COMPLETE;
    if (r->state == RESPONSE_COMPLETE)
        return 0;
    return err_set(err, ERR_TOOL, "the server ended the connection in the middle of its answer");
}
