/* The program of an MCP server: its three pipes and its end. No JSON, no socket.
 *
 * What it is to read waits here and never blocks us; its stdout is split into lines; of its stderr the end is
 * kept. It has ended when its stdout has, or when its main process has been reaped and what was readable then
 * has been read; but a main process that ends well before it has said anything, while somebody reads the
 * pipe, was only a wrapper. All callbacks run from the loop. */
#ifndef APPLETS_MCP_MCP_PROCESS_H
#define APPLETS_MCP_MCP_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"
#include "fifo.h"
#include "loop.h"
#include "mcp_lines.h"
#include "memory_share.h"
#include "spawn.h"

#define MCP_QUEUE_MAX                                                                                        \
    (64u << 20)           /* bytes that wait for a server which doesn't read; a message alone may be longer */
#define MCP_LOG_MAX 65536 /* bytes of its stderr that are kept */

struct mcp_process_events {
    void (*line)(void *arg, enum mcp_lines_state state, struct span line);
    void (*ended)(void *arg); /* once; nothing can be sent any more and no line comes */
    void (*deaf)(
        void *arg); /* once: it has closed its stdin and lives on; what is queued will never be read */
    void (*reaped)(void *arg);
};

struct mcp_pipe {
    int fd; /* our end; -1: closed */
    struct loop_source *source;
};

struct mcp_process {
    struct loop *loop;
    pid_t pid;
    struct mcp_pipe in, out, err;
    struct {
        struct fifo queue;
        struct memory_share share;          /* of the queue */
        unsigned long long queued, written; /* bytes, ever */
    } to;                                   /* its stdin */
    struct mcp_lines lines;
    struct buf log;
    struct {
        int status; /* once reaped, as of waitpid */
        bool reaped, over;
    } end;
    bool deaf;
    bool spoke; /* something came from its stdout */
    struct loop_source *grace;
    struct loop_source *unended; /* running: a line has begun, and nothing more came of it for the moment */
    const struct mcp_process_events *events;
    void *arg;
};

/* Starts it: `s` without descriptors. -1 with ERR_TOOL that names what can't be used. */
int mcp_process_start(struct mcp_process *p, struct loop *loop, struct spawn *s, size_t line_max,
                      const struct mcp_process_events *events, void *arg, struct err *err);

/* Queues a line (with its newline) for it; -1 and nothing taken when too much waits already. Not after its
 * end. */
int mcp_process_send(struct mcp_process *p, struct span line);

/* Closes its stdin, whatever waits for it: how an MCP server is asked to end. */
void mcp_process_close_stdin(struct mcp_process *p);

/* Appends how it ended (or why nothing can be sent to it), and what it last wrote to stderr. */
void mcp_process_put_end(const struct mcp_process *p, struct buf *out);

/* Appends the end of its stderr as text, at most `max` bytes, from the beginning of a line where there is
 * one. */
void mcp_process_put_log(const struct mcp_process *p, size_t max, struct buf *out);

#endif
