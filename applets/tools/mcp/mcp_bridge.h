/* Between the callers and one MCP server: requests go out, answers come back to whoever asked, and what the
 * server says besides is dealt with. */
#ifndef APPLETS_MCP_MCP_BRIDGE_H
#define APPLETS_MCP_MCP_BRIDGE_H

#include "mcp_notes.h"
#include "mcp_process.h"
#include "mcp_requests.h"

enum mcp_bad_bytes { MCP_STRICT, MCP_IGNORE, MCP_REPLACE };

/* What came of it that is no answer as it should be. */
struct mcp_broken {
    struct loop_source *spoiled; /* running: answers that were no JSON may still come in a better form */
    struct loop_source *odd;     /* running: answers of another form wait for one of the right one */
    struct buf pretty;           /* lines of an answer that has several, until its last */
    char seen[64];               /* the line that spoiled an answer last, or its begin */
    unsigned long long dropped;  /* noise, answers that nobody waits for, lines that are too long */
};

struct mcp_bridge {
    struct mcp_process process;
    struct mcp_requests requests;
    struct mcp_notes notes;
    bool ascii;                   /* it reads and writes no other bytes; otherwise UTF-8 */
    enum mcp_bad_bytes bad_bytes; /* what becomes of a line that has such */
    bool initialized;             /* it has answered an initialize request with a result */
    bool killed;
    struct loop *loop;
    struct mcp_broken broken;
    bool followed; /* what it asks for is kept with what it says */
    bool answers;  /* somebody answers what it asks for, which is kept in `asked` */
    struct mcp_notes asked;
    struct loop_source *deadline; /* running: some request has one */
    struct {
        void (*noted)(void *arg);  /* there is more of that, or it has ended */
        void (*reaped)(void *arg); /* its main process has ended */
        void *arg;
    } owner;
};

/* Starts the server; ascii, bad_bytes and owner are set before, everything else is zero. `s` as
 * for mcp_process_start. */
int mcp_bridge_start(struct mcp_bridge *b, struct loop *loop, struct spawn *s, size_t line_max,
                     struct err *err);

/* Sends a request, and answers the call with the response, now or later; with an error after timeout_ms (< 0:
 * never). `request` lies in the call's memory. */
void mcp_bridge_request(struct mcp_bridge *b, struct rpc_call *call, struct span request,
                        long long timeout_ms);

/* Sends the answer to a request of the server's. ERR_PARAMS when it is none, ERR_TOOL when it can't be sent.
 */
int mcp_bridge_respond(struct mcp_bridge *b, struct span response, struct err *err);

/* Sends a notification. ERR_PARAMS when it is none, ERR_TOOL when it can't be sent. */
int mcp_bridge_notify(struct mcp_bridge *b, struct span notification, struct err *err);

/* Closes the server's stdin and fails what is open. */
void mcp_bridge_hang_up(struct mcp_bridge *b);

#endif
