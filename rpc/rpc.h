/* JSON-RPC 2.0: requests, answers, dispatch.
 *
 * A handler gets a call and answers it exactly once, now or later: rpc_result, rpc_null, rpc_fail or
 * rpc_response; after that the call is not its own any more. Until then it may set two hooks. The abandon
 * hook is called when the client has gone away: the handler then forgets the call; a call without this hook
 * runs on and its answer is dropped. The delivered hook is called once after the answer, with whether the
 * client took it and closed in good order (or sent its next request): what a waiting call hands out counts as
 * read only then. It is false for a notification, whose answer nobody gets. A call ends with one of the two
 * hooks, never with both. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "doc.h"
#include "err.h"
#include "json.h"

struct rpc_call;

typedef void (*rpc_handler)(struct rpc_call *call, struct span params, void *ctx);

struct params_table;
struct params_variant;

struct rpc_method {
    const char *name; /* the table ends with NULL */
    rpc_handler run;
    const struct params_table *params; /* NULL: none */
    /* What `toolbox methods` says of it: what it does, its result, why it says no (NULL: never), and the tool
     * of `mcp serve` that calls it (NULL: none). */
    const char *about, *result, *errors, *mcp_tool;
    const struct params_variant *variants; /* NULL: none; more params, by the value of one of the others */
};

/* Answers: `result` is the JSON text of the result (no copy is kept). */
void rpc_result(struct rpc_call *call, struct span result);
/* The same, of a text behind `gap` bytes in the buffer, which may be taken. Where the gap is large enough for
 * what stands in front of a result the text is not even moved; of a larger one white space remains. */
void rpc_result_take(struct rpc_call *call, struct buf *result, size_t gap);
void rpc_result_string(struct rpc_call *call, const char *s, size_t n);
void rpc_null(struct rpc_call *call);
void rpc_fail(struct rpc_call *call, const struct err *err);
/* The same with a member `data` of the error: {"kind": …}, for programs (NULL: without). */
void rpc_fail_kind(struct rpc_call *call, const struct err *err, const char *kind);

/* The params by their table into *into (params_unpack); or fails with what is wrong. */
bool rpc_unpack(struct rpc_call *call, const struct params_table *table, struct span params, void *into);

/* An answer made elsewhere: the whole JSON-RPC response object with this call's own id. */
void rpc_response(struct rpc_call *call, struct span response);

/* Before the answer. */
void rpc_on_abandon(struct rpc_call *call, void (*fn)(void *arg), void *arg);
void rpc_on_delivered(struct rpc_call *call, void (*fn)(void *arg, bool delivered), void *arg);

/* Calls of one batch that name the same `turn` wait for each other's answers to arrive: that of an earlier
 * one counts as delivered now, when this one begins, though the batch's answer is yet to come. */
void rpc_in_turn(struct rpc_call *call, const char *turn);

/* The request's exact text (the one object, of a batch the call's own element), valid until the answer. */
struct span rpc_request_text(const struct rpc_call *call);

/* Envelope of one request. Spans point into the text. */
struct rpc_request {
    struct span id;          /* s == NULL: a notification */
    struct span method_text; /* as written, with quotes */
    char method[128];        /* decoded; a longer one or one with a NUL can't be a method of ours: "" */
    struct span params;      /* s == NULL: absent */
};

/* Reads one checked JSON value as a request. Members that JSON-RPC doesn't know are ignored. -1 with
 * ERR_INVALID_REQUEST or (params an array) ERR_PARAMS; *r then still has the id, where that is usable. */
int rpc_request_parse(struct rpc_request *r, struct span value, struct err *err);

/* Appends a request / a response / an error response object. `id` is JSON text; s == NULL: null. */
void rpc_put_request(struct buf *out, struct span id, const char *method, struct span params);
void rpc_put_result(struct buf *out, struct span id, struct span result);
/* Makes the response of its result, which stands behind a gap as rpc_result_take says. */
void rpc_wrap_result(struct buf *result, size_t gap, struct span id);
void rpc_put_error(struct buf *out, struct span id, const struct err *err);
void rpc_put_error_kind(struct buf *out, struct span id, const struct err *err, const char *kind);

/* Where the answer to one message goes: called once, with the text of the response or of the batch's array of
 * responses; empty when there is nothing to say (notifications). The bytes may be taken (buf_take), so that
 * an answer of any length need not be copied. No hook is called from inside. */
struct rpc_sink {
    void (*answer)(void *arg, struct buf *response);
    void *arg;
};

#define RPC_BATCH_MAX 1000 /* requests in one batch: answers are much longer than the shortest request */

/* Takes in one message (a request, a notification or a batch) as bytes, dispatches what is in it to the
 * methods, and answers into the sink: parse errors, invalid requests and unknown methods itself. A batch's
 * requests run one after the other, in order; those not begun when the client goes away are not run. `find`
 * looks a method up (so that a process can offer several tables). The text is copied. Returns a handle on
 * which rpc_message_abandon or rpc_message_delivered has to be called, once; NULL when everything was
 * answered before the return and no hook is left to call. */
struct rpc_message;
typedef rpc_handler (*rpc_find_fn)(void *ctx, const char *method, void **handler_ctx);
struct rpc_message *rpc_take(struct span text, rpc_find_fn find, void *find_ctx, struct rpc_sink sink);
/* The same without a copy: `text` is the message's from now on (free). */
struct rpc_message *rpc_take_own(char *text, size_t n, rpc_find_fn find, void *find_ctx,
                                 struct rpc_sink sink);
void rpc_message_abandon(struct rpc_message *message); /* the client is gone before the answer */
void rpc_message_delivered(struct rpc_message *message, bool delivered); /* after the answer */

/* A call that was answered: the request, and the response (empty: to a notification). */
struct rpc_peer {
    pid_t pid;
    uid_t uid;
};
struct rpc_done {
    struct span request, response;
    long long ms;
    struct rpc_peer peer;
};
/* Is told of each; NULL: nobody is. And who has sent the message that is taken in next, where that is so. */
extern void (*rpc_watch)(const struct rpc_done *done);
extern struct rpc_peer rpc_peer;

/* The handler in one table (NULL: an empty one); NULL when there is none. */
rpc_handler rpc_find(const struct rpc_method *table, const char *method);

#endif
