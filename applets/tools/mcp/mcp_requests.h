/* The requests of one MCP server that are open, and what of them is kept when a client goes away.
 *
 * A client that goes ends its waiting, not the request: the answer is kept for the next call with the same
 * request, which is not sent a second time. Of such requests and answers a bounded number stays; the oldest
 * go. A different request with the id of one that is still to be answered gets another id on its way, so that
 * no answer comes to the wrong caller. */
#ifndef APPLETS_MCP_MCP_REQUESTS_H
#define APPLETS_MCP_MCP_REQUESTS_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "mcp_message.h"
#include "rpc.h"

#define MCP_KEPT_MAX 256           /* requests that nobody waits for */
#define MCP_KEPT_BYTES (16u << 20) /* of their answers */
#define MCP_ANSWER_COPIED                                                                                    \
    (256u << 10) /* a longer answer isn't there again when it gets lost on its way to the client */

struct mcp_request;

struct mcp_requests {
    struct mcp_request *first, *last; /* oldest first */
    size_t n_open;                    /* with a client that waits */
    size_t n_kept, kept_bytes;
    unsigned long long renamed;
};

/* The call waits for the answer to a request of before, or has got it. False: there is none that is the same.
 */
bool mcp_requests_resume(struct mcp_requests *all, struct rpc_call *call, struct span text,
                         const struct mcp_message *m);

/* Takes a request in; the call is answered by what follows. `text` and what `m` says of it lie in the call's
 * memory. *line is what is to be sent, with a newline. NULL with ERR_TOOL, and the call still the caller's,
 * when one of that id is open. */
struct mcp_request *mcp_requests_open(struct mcp_requests *all, struct rpc_call *call, struct span text,
                                      const struct mcp_message *m, struct buf *line, struct err *err);

/* Its answer has to be there at `until` (now_ms()). */
void mcp_request_due(struct mcp_request *r, long long until);
/* Fails one for which that was before now; `id` gets the text of the id that the server knows it by.
 * *left: how long until the next one has to be looked at, or -1. False: there is none. */
bool mcp_requests_overdue(struct mcp_requests *all, struct buf *id, long long *left);

/* The request was queued, and ends there in the stream to the server. */
void mcp_request_sent(struct mcp_request *r, unsigned long long end);
/* There will be no answer: fails its call, if one waits, and forgets it. */
void mcp_request_fail(struct mcp_request *r, const struct err *err);

/* The one that a response of this id is for; NULL: none. */
struct mcp_request *mcp_requests_find(const struct mcp_requests *all, struct span id);
bool mcp_request_is(const struct mcp_request *r, const char *method);

/* Answers it, or keeps the answer. The response, which is taken, stands behind MCP_LINES_GAP bytes; its id is
 * at `id`, `id_len` bytes long. */
void mcp_request_answer(struct mcp_request *r, struct buf *response, size_t id, size_t id_len);

/* A response of another form, which is taken: for where none of the right one comes. The last one counts. */
void mcp_request_hold(struct mcp_request *r, struct buf *response);
/* The first of those; NULL: there is none (any more). */
struct mcp_request *mcp_requests_take_held(const struct mcp_requests *all, struct buf *response);

/* What seemed to be the answer was no JSON: the right one may still come. `id` with s == NULL: it could not
 * be told, and is taken for that of the only request that is open. False: it is nobody's. */
bool mcp_requests_spoil(struct mcp_requests *all, struct span id);
/* Fails those for which that was at `until` (now_ms()) or before. True when there are younger ones. */
bool mcp_requests_fail_spoiled(struct mcp_requests *all, long long until, const struct err *err);

/* Fails those that wait and are not written yet, whose end is beyond `written` (0: all), and forgets what
 * waits for an answer without a client. */
void mcp_requests_fail(struct mcp_requests *all, unsigned long long written, const struct err *err);

#endif
