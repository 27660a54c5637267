/* Long answers: an answer line over the caller's limit is stored and fetched in pieces (docs/protocol.md).
 *
 * A piece is the largest that fits the limit, at most 512 KiB of the answer; where not even three bytes fit,
 * three are sent all the same. Where and how long answers are stored: chunk_store.h. */
#ifndef RPC_CHUNK_H
#define RPC_CHUNK_H

#include "buf.h"
#include "err.h"
#include "json.h"
#include "rpc.h"

#define CHUNK_LIMIT_DEFAULT 65536
#define CHUNK_METHOD "__inspect_json_rpc_response_chunk__"

/* The limit for an answer line in bytes, newline included, from the environment; `unset` where the variable
 * is absent (0: no limit). Values that are no positive number mean the default. */
size_t chunk_limit(size_t unset);

/* Makes `line` (without newline; a response with this id) fit: replaces it by the envelope of its first piece
 * when line and newline pass the limit. -1 when it can't be stored: the line then is an error response that
 * says so. The process's effective uid is whose answer it is. */
int chunk_wrap(struct buf *line, struct span id, size_t limit, struct err *err);

/* The method itself (in-process): {handle, offset} or {handle, release: true}. To be run as the one who
 * called, not as `_run_as_user`. */
extern const struct rpc_method chunk_methods[];

#endif
