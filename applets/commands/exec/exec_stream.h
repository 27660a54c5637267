/* `toolbox exec --stream`: many calls over stdin and stdout (rpc/stream.h), by the same ways as single ones.
 */
#ifndef EXEC_STREAM_H
#define EXEC_STREAM_H

/* Serves until the end of stdin, and what is open then for two seconds more. The exit status: 1 when the peer
 * has gone in another way. */
int exec_stream(void);

#endif
