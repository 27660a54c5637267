#include "tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy_calls.h"
#include "io.h"
#include "json.h"
#include "mem.h"

/* Members at the top that differ from run to run. */
static const char *const passed_over[] = {"metadata", "user", "safety_identifier", "prompt_cache_key",
                                          "client_metadata"};

struct entry {
    uint64_t path, all; /* what was asked for, and with which body */
    struct span response;
    bool given;
};

struct tape {
    struct buf text; /* of the file */
    struct entry *entries;
    size_t n;
    bool in_order;
};

/* ---- what is the same ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * 0x9E3779B97F4A7C15u;
    return (a ^ a >> 32) * 0xD6E8FEB86659FD93u;
}

static uint64_t hash_bytes(const char *s, size_t n, uint64_t h)
{
    for (size_t i = 0; i < n; i++)
        h = mix(h, (unsigned char)s[i]);
    return mix(h, n);
}

static uint64_t hash_string(struct span string)
{
    struct buf text BUF_AUTO = BUF_INIT;
    json_string_text(string, &text);
    return hash_bytes(text.data, text.len, 3);
}

static bool is_passed_over(struct span key)
{
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++)
        if (json_string_is(key, passed_over[i]))
            return true;
    return false;
}

/* As deep as JSON is checked to be. Members count without their order: a sum. */
static uint64_t hash_value(struct span value, bool top) /* NOLINT(misc-no-recursion) */
{
    struct span key, inner;
    uint64_t h = 1;
    switch (json_kind(value)) {
    case JSON_OBJECT:
        for (size_t at = 0; json_next_member(value, &at, &key, &inner);)
            if (!top || !is_passed_over(key))
                h += mix(hash_string(key), hash_value(inner, false));
        return mix(h, 1);
    case JSON_ARRAY:
        for (size_t at = 0; json_element(value, &at, &inner);)
            h = mix(h, hash_value(inner, false));
        return mix(h, 2);
    case JSON_STRING:
        return hash_string(value);
    default:
        return hash_bytes(value.s, value.n, 4);
    }
}

static uint64_t hash_path(const char *method, const char *path)
{
    bool beta = false;
    const char *what = proxy_behind_versions(path, &beta);
    return hash_bytes(what, strlen(what), hash_bytes(method, strlen(method), 0));
}

static uint64_t hash_body(struct span body)
{
    return body.n > 0 && json_check(body, NULL) == 0 ? hash_value(body, true) : hash_bytes(body.s, body.n, 5);
}

/* ---- reading ---- */

static int take_line(struct tape *t, struct span line)
{
    static const char *const keys[] = {"method", "path", "body"};
    struct span request, response, member[3] = {{0}};
    int counts[3];
    struct buf method BUF_AUTO = BUF_INIT;
    struct buf path BUF_AUTO = BUF_INIT;
    struct buf body BUF_AUTO = BUF_INIT;
    if (json_check(line, NULL) < 0 || json_kind(line) != JSON_OBJECT ||
        !json_member(line, "request", &request, NULL) || !json_member(line, "response", &response, NULL) ||
        json_kind(request) != JSON_OBJECT || json_kind(response) != JSON_OBJECT)
        return -1;
    json_members(request, keys, 3, member, counts);
    if (!member[0].s || !member[1].s || !json_string_text(member[0], &method) ||
        !json_string_text(member[1], &path))
        return -1;
    struct span asked = member[2].s ? member[2] : (struct span){"", 0};
    if (asked.n > 0 && json_string_text(asked, &body))
        asked = span_of(&body);
    if ((t->n & (t->n - 1)) == 0)
        t->entries = mem_realloc(t->entries, (t->n ? 2 * t->n : 1) * sizeof *t->entries);
    uint64_t where = hash_path(buf_str(&method), buf_str(&path));
    t->entries[t->n++] =
        (struct entry){.path = where, .all = mix(where, hash_body(asked)), .response = response};
    return 0;
}

struct tape *tape_load(const char *path, bool in_order, struct err *err)
{
    struct tape *t = mem_zalloc(sizeof *t);
    int number = 0;
    t->in_order = in_order;
    buf_init(&t->text, BUF_NO_MAX);
    if (io_read_file(AT_FDCWD, path, &t->text) < 0) {
        err_sys(err, ERR_TOOL, errno, "can't read the record %s", path);
        tape_free(t);
        return NULL;
    }
    for (const char *at = buf_str(&t->text), *end = at + t->text.len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline ? newline : end) - at);
        number++;
        if (n > 0 && take_line(t, (struct span){at, n}) < 0) {
            err_set(err, ERR_TOOL, "line %d of %s is none of a record's", number, path);
            tape_free(t);
            return NULL;
        }
        at += n + 1;
    }
    return t;
}

void tape_free(struct tape *t)
{
    if (!t)
        return;
    buf_release(&t->text);
    free(t->entries);
    free(t);
}

/* ---- finding ---- */

static void take_answer(const struct entry *e, struct tape_answer *a)
{
    struct span status, type = {"\"\"", 2};
    struct buf text BUF_AUTO = BUF_INIT;
    *a = (struct tape_answer){.status = 200, .text = BUF_INIT, .body = {"", 0}};
    if (json_member(e->response, "status", &status, NULL) && json_kind(status) == JSON_NUMBER)
        a->status = (int)strtol(status.s, NULL, 10);
    if (a->status < 200 || a->status > 599)
        a->status = 500;
    json_member(e->response, "type", &type, NULL);
    json_string_text(type, &text);
    a->type = text.len > 0 && !strpbrk(buf_str(&text), "\r\n") ? buf_take(&text, NULL)
                                                               : mem_strdup("application/json");
    json_member(e->response, "body", &a->body, NULL);
    if (a->body.n > 0 && json_string_text(a->body, &a->text))
        a->body = span_of(&a->text);
}

bool tape_find(struct tape *t, const char *method, const char *path, struct span body,
               struct tape_answer *answer, size_t *of_path)
{
    uint64_t where = hash_path(method, path), all = mix(where, hash_body(body));
    struct entry *found = NULL;
    *of_path = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct entry *e = &t->entries[i];
        *of_path += e->path == where;
        if (t->in_order ? e->path == where && !e->given : e->all == all) {
            found = e;
            if (!e->given)
                break;
        }
    }
    if (!found)
        return false;
    found->given = true;
    take_answer(found, answer);
    return true;
}

void tape_answer_release(struct tape_answer *a)
{
    free(a->type);
    buf_release(&a->text);
}

/* ---- writing ---- */

static void put_body(struct buf *out, struct span body)
{
    json_key(out, "body");
    if (body.n == 0)
        buf_adds(out, "null");
    else if (json_check(body, NULL) == 0 && json_kind(body) != JSON_STRING)
        json_compact(out, body);
    else
        json_put_string(out, body.s, body.n);
}

void tape_line(struct buf *out, const char *method, const char *path, struct span body, long long ms,
               const struct tape_answer *answer)
{
    buf_addc(out, '{');
    json_member_seconds(out, "time", wall_ms());
    json_member_int(out, "ms", ms);
    json_key(out, "request");
    buf_addc(out, '{');
    json_member_string(out, "method", method);
    json_member_string(out, "path", path);
    put_body(out, body);
    buf_adds(out, "},\"response\":{");
    json_member_int(out, "status", answer->status);
    json_member_string(out, "type", answer->type);
    put_body(out, answer->body);
    buf_adds(out, "}}\n");
}
