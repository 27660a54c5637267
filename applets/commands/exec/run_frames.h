/* What a program that is run over a stream (rpc/mux.h) and its caller say to each other there: frames of a
 * kind, a length of 24 bits (the high byte first) and so many bytes (docs/protocol.md, "Streams"). */
#ifndef EXEC_RUN_FRAMES_H
#define EXEC_RUN_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "json.h"

#define RUN_HEAD 4
#define RUN_DATA_MAX 65000       /* that one frame carries */
#define RUN_STDIN_MAX (1u << 19) /* bytes of stdin that were sent and that the program hasn't taken */
#define RUN_TAKEN_LEAST                                                                                      \
    (RUN_STDIN_MAX / 4) /* from which on it is told, so that not each read has an answer */

enum run_kind {
    RUN_STDIN = 'i',  /* to the program; none: the end of it */
    RUN_SIGNAL = 's', /* one byte: its number */
    RUN_SIZE = 'z',   /* rows and columns of the terminal, 16 bits each */
    RUN_STDOUT = 'o',
    RUN_STDERR = 'e',
    RUN_TAKEN = 't',  /* 32 bits: so many bytes of stdin are gone */
    RUN_EXIT = 'x',   /* one byte: the exit status, 128+N by signal N; the last */
    RUN_FAILED = 'f', /* the same, and why it wasn't run; the last */
};

/* The frame that the bytes begin with: its length, 0 where more are needed. */
static inline size_t run_frame_read(const char *bytes, size_t n, enum run_kind *kind, struct span *data)
{
    const unsigned char *b = (const unsigned char *)bytes;
    size_t length = n < RUN_HEAD ? 0 : (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
    if (n < RUN_HEAD || n < RUN_HEAD + length)
        return 0;
    *kind = (enum run_kind)b[0];
    *data = (struct span){bytes + RUN_HEAD, length};
    return RUN_HEAD + length;
}

static inline void run_frame_head(char head[RUN_HEAD], enum run_kind kind, size_t n)
{
    head[0] = (char)kind;
    head[1] = (char)(n >> 16);
    head[2] = (char)(n >> 8);
    head[3] = (char)n;
}

#endif
