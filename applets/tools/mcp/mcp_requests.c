#include "mcp_requests.h"

#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mcp_lines.h"
#include "mem.h"
#include "sha256.h"

struct mcp_request {
    struct mcp_request *next, *previous;
    struct mcp_requests *all;
    struct rpc_call *call;     /* NULL: nobody waits */
    struct span text;          /* while the call is there */
    char sum[SHA256_HEX_SIZE]; /* of the text; once it is kept. "": nobody is to get its answer */
    bool kept;
    struct {
        struct buf key;  /* of its id */
        struct buf wire; /* of the id that it was sent with, where that is another one; then */
        struct buf came; /* the one that it came with */
    } id;
    char method[32]; /* as written, with quotes; "" for a longer one */
    unsigned long long end;
    bool answered;
    long long until;   /* now_ms() when its answer has to be there; 0: at any time */
    long long spoiled; /* now_ms() when a broken answer came; 0: none did */
    struct buf odd;    /* an answer of another form, for where none of the right one comes */
    struct buf answer; /* kept, or on its way to the client */
};

/* ---- the list ---- */

static struct mcp_request *request_new(struct mcp_requests *all)
{
    struct mcp_request *r = mem_zalloc(sizeof *r);
    r->all = all;
    buf_init(&r->id.key, BUF_NO_MAX);
    buf_init(&r->id.wire, BUF_NO_MAX);
    buf_init(&r->id.came, BUF_NO_MAX);
    buf_init(&r->odd, BUF_NO_MAX);
    buf_init(&r->answer, BUF_NO_MAX);
    r->previous = all->last;
    *(all->last ? &all->last->next : &all->first) = r;
    all->last = r;
    return r;
}

static void unkeep(struct mcp_request *r)
{
    if (!r->kept)
        return;
    r->kept = false;
    r->all->n_kept--;
    r->all->kept_bytes -= r->answer.len;
}

static void forget(struct mcp_request *r)
{
    struct mcp_requests *all = r->all;
    unkeep(r);
    *(r->previous ? &r->previous->next : &all->first) = r->next;
    *(r->next ? &r->next->previous : &all->last) = r->previous;
    buf_release(&r->id.key);
    buf_release(&r->id.wire);
    buf_release(&r->id.came);
    buf_release(&r->odd);
    buf_release(&r->answer);
    free(r);
}

static bool same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

/* ---- kept for a client that comes again ---- */

static void drop_oldest(struct mcp_requests *all)
{
    for (struct mcp_request *r = all->first, *next; r; r = next) {
        next = r->next;
        if (r->kept && (all->n_kept > MCP_KEPT_MAX || all->kept_bytes > MCP_KEPT_BYTES))
            forget(r);
    }
}

/* Its text must be there. */
static void keep(struct mcp_request *r)
{
    sha256_hex(r->text.s, r->text.n, r->sum);
    r->text = (struct span){NULL, 0};
    r->kept = true;
    r->all->n_kept++;
    r->all->kept_bytes += r->answer.len;
    drop_oldest(r->all);
}

static bool is_kept(const struct mcp_request *r, struct span text)
{
    char sum[SHA256_HEX_SIZE];
    if (!r->kept)
        return false;
    sha256_hex(text.s, text.n, sum);
    return memcmp(sum, r->sum, sizeof sum) == 0;
}

static void on_abandon(void *arg)
{
    struct mcp_request *r = arg;
    r->call = NULL;
    r->all->n_open--;
    keep(r);
}

static void on_delivered(void *arg, bool delivered)
{
    struct mcp_request *r = arg;
    if (delivered)
        forget(r);
    else
        keep(r);
}

/* ---- a request's way ---- */

static void wait_for_answer(struct mcp_request *r, struct rpc_call *call, struct span text)
{
    r->call = call;
    r->text = text;
    r->all->n_open++;
    rpc_on_abandon(call, on_abandon, r);
}

/* Answers the call with r->answer, of which a short one stays until it is known to have arrived. */
static void deliver(struct mcp_request *r)
{
    struct rpc_call *call = r->call;
    struct buf answer BUF_AUTO = BUF_INIT;
    r->call = NULL;
    r->all->n_open--;
    if (r->answer.len > MCP_ANSWER_COPIED) {
        answer = r->answer;
        buf_init(&r->answer, BUF_NO_MAX);
        rpc_on_abandon(call, NULL, NULL);
        forget(r);
    } else {
        buf_add(&answer, r->answer.data, r->answer.len);
        rpc_on_delivered(call, on_delivered, r);
    }
    rpc_result_take(call, &answer, MCP_LINES_GAP);
}

static void put_line(struct span text, struct buf *line)
{
    json_compact(line, text);
    buf_addc(line, '\n');
}

/* Its id is that of a request which the server has not answered and nobody waits for. */
static void rename_request(struct mcp_request *r, struct span text, struct span id, struct buf *line)
{
    struct buf renamed BUF_AUTO = BUF_INIT;
    char name[48];
    int n = snprintf(name, sizeof name, "\"toolbox-%llu\"", ++r->all->renamed);
    buf_add(&r->id.came, id.s, id.n);
    mcp_id_key((struct span){name, (size_t)n}, &r->id.wire);
    buf_add(&renamed, text.s, (size_t)(id.s - text.s));
    buf_add(&renamed, name, (size_t)n);
    buf_add(&renamed, id.s + id.n, (size_t)(text.s + text.n - id.s) - id.n);
    put_line(span_of(&renamed), line);
}

bool mcp_requests_resume(struct mcp_requests *all, struct rpc_call *call, struct span text,
                         const struct mcp_message *m)
{
    struct buf key BUF_AUTO = BUF_INIT;
    mcp_id_key(m->id, &key);
    struct mcp_request *r = all->first;
    while (r && !(same(&r->id.key, &key) && is_kept(r, text)))
        r = r->next;
    if (!r)
        return false;
    unkeep(r);
    wait_for_answer(r, call, text);
    if (r->answered)
        deliver(r);
    return true;
}

struct mcp_request *mcp_requests_open(struct mcp_requests *all, struct rpc_call *call, struct span text,
                                      const struct mcp_message *m, struct buf *line, struct err *err)
{
    struct buf key BUF_AUTO = BUF_INIT;
    bool clash = false;
    mcp_id_key(m->id, &key);
    for (const struct mcp_request *r = all->first; r; r = r->next) {
        if (!same(&r->id.key, &key))
            continue;
        if (r->call) {
            err_set(err, ERR_TOOL,
                    "a request with the id %.*s is open; wait for its answer or use another id",
                    (int)(m->id.n < 100 ? m->id.n : 100), m->id.s);
            return NULL;
        }
        clash = clash || !r->answered;
    }
    struct mcp_request *r = request_new(all);
    buf_add(&r->id.key, key.data, key.len);
    if (m->method.n < sizeof r->method)
        memcpy(r->method, m->method.s, m->method.n);
    if (clash)
        rename_request(r, text, m->id, line);
    else
        put_line(text, line);
    wait_for_answer(r, call, text);
    return r;
}

void mcp_request_due(struct mcp_request *r, long long until)
{
    r->until = until;
}

/* Its answer may still come, and is not to be taken for that of the next one with its id. */
static void expire(struct mcp_request *r, const struct err *err)
{
    struct rpc_call *call = r->call;
    r->call = NULL;
    r->text = (struct span){NULL, 0};
    r->until = 0;
    r->sum[0] = '\0';
    r->all->n_open -= call != NULL;
    r->all->n_kept += !r->kept;
    r->kept = true;
    drop_oldest(r->all);
    if (!call)
        return;
    rpc_on_abandon(call, NULL, NULL);
    rpc_fail(call, err);
}

bool mcp_requests_overdue(struct mcp_requests *all, struct buf *id, long long *left)
{
    long long now = now_ms();
    struct span text;
    struct err err;
    *left = -1;
    for (struct mcp_request *r = all->first; r; r = r->next) {
        if (!r->until || r->answered)
            continue;
        if (r->until > now) {
            *left = *left < 0 || r->until - now < *left ? r->until - now : *left;
            continue;
        }
        if (r->call && r->id.wire.len > 0) /* a text, as it was made: see rename_request() */
            buf_addf(id, "%s\"", buf_str(&r->id.wire));
        else if (r->call && json_member(r->text, "id", &text, NULL))
            buf_add(id, text.s, text.n);
        err_set(
            &err, ERR_TOOL,
            "the MCP server has not answered in time (timeout); it was told that the request is cancelled");
        expire(r, &err);
        return true;
    }
    return false;
}

void mcp_request_sent(struct mcp_request *r, unsigned long long end)
{
    r->end = end;
}

void mcp_request_fail(struct mcp_request *r, const struct err *err)
{
    struct rpc_call *call = r->call;
    r->all->n_open -= call != NULL;
    forget(r);
    if (!call)
        return;
    rpc_on_abandon(call, NULL, NULL);
    rpc_fail(call, err);
}

struct mcp_request *mcp_requests_find(const struct mcp_requests *all, struct span id)
{
    struct buf key BUF_AUTO = BUF_INIT;
    if (!mcp_id_key(id, &key))
        return NULL;
    struct mcp_request *r = all->first;
    while (r && (r->answered || !same(r->id.wire.len > 0 ? &r->id.wire : &r->id.key, &key)))
        r = r->next;
    return r;
}

bool mcp_request_is(const struct mcp_request *r, const char *method)
{
    return json_string_is((struct span){r->method, strlen(r->method)}, method);
}

void mcp_request_answer(struct mcp_request *r, struct buf *response, size_t id, size_t id_len)
{
    if (!r->call && !*r->sum) {
        buf_release(response);
        forget(r);
        return;
    }
    if (r->id.came.len > 0)
        buf_replace(response, id, id_len, r->id.came.data, r->id.came.len);
    r->answered = true;
    buf_release(&r->odd);
    r->answer = *response;
    buf_init(response, BUF_NO_MAX);
    if (r->call) {
        deliver(r);
    } else {
        r->all->kept_bytes += r->answer.len;
        drop_oldest(r->all);
    }
}

static struct mcp_request *first_unwritten(const struct mcp_requests *all, unsigned long long written)
{
    struct mcp_request *r = all->first;
    /* One that has ended is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    while (r && (r->answered || r->end <= written))
        r = r->next;
    return r;
}

/* From the front each time: an answered call may start another one, of a batch. */
void mcp_requests_fail(struct mcp_requests *all, unsigned long long written, const struct err *err)
{
    for (struct mcp_request *r; (r = first_unwritten(all, written));)
        mcp_request_fail(r, err);
}

void mcp_request_hold(struct mcp_request *r, struct buf *response)
{
    buf_release(&r->odd);
    r->odd = *response;
    buf_init(response, BUF_NO_MAX);
}

struct mcp_request *mcp_requests_take_held(const struct mcp_requests *all, struct buf *response)
{
    struct mcp_request *r = all->first;
    while (r && r->odd.len == 0)
        r = r->next;
    if (!r)
        return NULL;
    *response = r->odd;
    buf_init(&r->odd, BUF_NO_MAX);
    return r;
}

static struct mcp_request *only_open(const struct mcp_requests *all)
{
    struct mcp_request *found = NULL;
    for (struct mcp_request *r = all->first; r; r = r->next) {
        if (!r->answered && found)
            return NULL;
        if (!r->answered)
            found = r;
    }
    return found;
}

bool mcp_requests_spoil(struct mcp_requests *all, struct span id)
{
    struct mcp_request *r = id.s ? mcp_requests_find(all, id) : only_open(all);
    if (r && !r->spoiled)
        r->spoiled = now_ms();
    return r != NULL;
}

bool mcp_requests_fail_spoiled(struct mcp_requests *all, long long until, const struct err *err)
{
    bool more = false;
    for (struct mcp_request *r = all->first, *next; r; r = next) {
        /* One that has ended is in the list no more. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        bool fails = r->spoiled && !r->answered && r->spoiled <= until;
        more = more || (r->spoiled > until && !r->answered);
        next = r->next;
        if (!fails)
            continue;
        mcp_request_fail(r, err);
        next = all->first; /* an answered call may start another one, of a batch */
    }
    return more;
}
