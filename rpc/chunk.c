#include "chunk.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base64.h"
#include "chunk_store.h"
#include "io.h"
#include "mem.h"
#include "params.h"

#define LIMIT_VARIABLE "INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES"
#define PIECE_MAX (512u << 10) /* raw */
#define PIECE_MIN                                                                                            \
    3 /* raw; goes out even when the limit is too small for it, or nothing would ever arrive                 \
       */

/* A piece of a stored answer, as it stands in an envelope. */
struct piece {
    struct span id;
    const char *handle;
    size_t offset, total;
};

size_t chunk_limit(size_t unset)
{
    const char *text = getenv(LIMIT_VARIABLE);
    if (!text)
        return unset;
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0')
        return CHUNK_LIMIT_DEFAULT;
    unsigned long long limit = strtoull(text, NULL, 10);
    return limit == 0 ? CHUNK_LIMIT_DEFAULT : limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
}

/* ---- the envelope ---- */

static void put_start(struct buf *out, struct span id)
{
    buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_add(out, id.s ? id.s : "null", id.s ? id.n : 4);
    buf_adds(out, ",\"" CHUNK_METHOD "\":");
}

static const char END[] = "\"}}";

/* Everything up to the data of a piece of n bytes. */
static void put_head(struct buf *out, const struct piece *p, size_t n)
{
    put_start(out, p->id);
    buf_addf(out,
             "{\"version\":1,\"handle\":\"%s\",\"offset\":%zu,\"next_offset\":%zu,\"total_size\":%zu,"
             "\"done\":%s,\"chunk\":\"",
             p->handle, p->offset, p->offset + n, p->total, p->offset + n == p->total ? "true" : "false");
}

static bool fits(const struct piece *p, size_t n, size_t limit)
{
    struct buf head BUF_AUTO = BUF_INIT;
    put_head(&head, p, n);
    return head.len + base64_length(n) + strlen(END) + 1 <= limit;
}

/* Raw bytes of the largest piece that fits. */
static size_t piece_size(const struct piece *p, size_t limit)
{
    size_t high = p->total - p->offset < PIECE_MAX ? p->total - p->offset : PIECE_MAX;
    size_t low = high < PIECE_MIN ? high : PIECE_MIN;
    if (limit == 0 || fits(p, high, limit))
        return high;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (fits(p, middle, limit))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void put_piece(struct buf *out, const struct piece *p, const char *data, size_t n)
{
    put_head(out, p, n);
    base64_put(out, data, n);
    buf_adds(out, END);
}

/* ---- the first piece ---- */

/* A piece that didn't fit (PIECE_MIN) is not cut into pieces in turn. */
static bool is_envelope(const struct buf *line, struct span id)
{
    struct buf start BUF_AUTO = BUF_INIT;
    put_start(&start, id);
    return line->len > start.len && memcmp(line->data, start.data, start.len) == 0;
}

int chunk_wrap(struct buf *line, struct span id, size_t limit, struct err *err)
{
    char handle[CHUNK_HANDLE_LEN + 1];
    if (limit == 0 || line->len < limit || is_envelope(line, id))
        return 0;
    struct buf answer BUF_AUTO = *line;
    buf_init(line, BUF_NO_MAX);
    struct err local;
    if (chunk_store(span_of(&answer), handle, &local) < 0) {
        err_wrap(
            &local,
            "the answer of %zu bytes is over the limit of %zu and cannot be stored to be fetched in pieces",
            answer.len, limit);
        rpc_put_error(line, id, &local);
        if (err)
            *err = local;
        return -1;
    }
    struct piece p = {.id = id, .handle = handle, .total = answer.len};
    put_piece(line, &p, answer.data, piece_size(&p, limit));
    return 0;
}

/* ---- the method ---- */

struct request {
    struct text handle, user;
    long long offset;
    bool release;
};

static const struct param request_params[] = {
    {.key = "handle",
     .type = PARAM_NAME,
     .offset = offsetof(struct request, handle),
     .required = true,
     PARAM_DOC("That of the long answer", NULL)},
    {.key = "offset",
     .type = PARAM_INT,
     .offset = offsetof(struct request, offset),
     .max = PARAM_MAX,
     PARAM_DOC("Where the piece begins: next_offset of the one before; needed unless release is true", NULL)},
    {.key = "release",
     .type = PARAM_BOOL,
     .offset = offsetof(struct request, release),
     PARAM_DOC("Forget the answer", "false")},
    /* Stored answers are the caller's, whoever the call was done as. */
    {.key = "_run_as_user",
     .type = PARAM_NAME,
     .offset = offsetof(struct request, user),
     PARAM_DOC("Nothing: the answer is the caller\'s", NULL)},
};
static const struct params_table request_table = PARAMS_TABLE(request_params);

static int read_piece(int fd, size_t offset, char *data, size_t n)
{
    while (n > 0) {
        ssize_t got = pread(fd, data, n, (off_t)offset);
        if (got <= 0 && (got == 0 || errno != EINTR))
            return -1;
        if (got > 0) {
            data += got;
            offset += (size_t)got;
            n -= (size_t)got;
        }
    }
    return 0;
}

static int fetch(struct buf *out, struct span id, const struct request *r, struct err *err)
{
    int fd FD_AUTO = chunk_open(r->handle.s);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(
            err, ERR_CHUNK,
            "There is no stored answer with this handle: it was released, or not read for an hour");
    struct piece p = {
        .id = id, .handle = r->handle.s, .offset = (size_t)r->offset, .total = (size_t)st.st_size};
    if (p.offset >= p.total)
        return err_set(err, ERR_PARAMS, "Invalid parameters: offset: is beyond the answer's %zu bytes",
                       p.total);
    size_t n = piece_size(&p, chunk_limit(CHUNK_LIMIT_DEFAULT));
    char *data MEM_AUTO = mem_alloc(n);
    if (read_piece(fd, p.offset, data, n) < 0)
        return err_set(err, ERR_CHUNK, "The stored answer cannot be read");
    futimens(fd, NULL); /* its hour begins anew */
    put_piece(out, &p, data, n);
    return 0;
}

static int check(const struct request *r, struct span params, struct err *err)
{
    struct span given = {NULL, 0};
    if (!chunk_handle_valid(r->handle.s))
        return err_set(err, ERR_PARAMS, "Invalid parameters: handle: must be 32 lower-case hex digits");
    if (r->release)
        return 0;
    if (json_member(params, "release", &given, NULL) && json_kind(given) != JSON_NULL)
        return err_set(err, ERR_PARAMS, "Invalid parameters: release: must be true");
    if (r->offset < 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: offset: is missing");
    return 0;
}

static void run(struct rpc_call *call, struct span params, void *ctx)
{
    struct request r = {.offset = -1};
    struct span id = {NULL, 0};
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err;
    (void)ctx;
    json_member(rpc_request_text(call), "id", &id, NULL);
    int result = params_unpack(&request_table, params, &r, &err);
    if (result == 0)
        result = check(&r, params, &err);
    if (result == 0 && r.release)
        chunk_remove(r.handle.s);
    else if (result == 0)
        result = fetch(&out, id, &r, &err);
    if (result < 0)
        rpc_fail(call, &err);
    else if (r.release)
        rpc_null(call);
    else
        rpc_response(call, span_of(&out));
    params_release(&request_table, &r);
}

const struct rpc_method chunk_methods[] = {
    {CHUNK_METHOD, run, &request_table, DOC("The next piece of a long answer"),
     DOC("a response with the piece; null where it was released"), DOC("the handle is unknown (-32000)"),
     NULL, NULL},
    {0},
};
