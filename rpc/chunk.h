/* Long answers: an answer line over the caller's limit is stored and fetched in pieces (protocol, section 8).
 *
 * The store is a directory per user, private (0700, owned, no symlink), in a fixed place outside the server's
 * directory so that it survives the server, and root can read on what a user's call has stored
 * (`_run_as_user`). Files are removed when released, and when older than an hour by any later call that
 * stores one. */
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
 * says so. */
int chunk_wrap(struct buf *line, struct span id, size_t limit, struct err *err);

/* The method itself (in-process): {handle, offset} or {handle, release: true}. */
extern const struct rpc_method chunk_methods[];

#endif
