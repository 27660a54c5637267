/* A tool as the JSON-RPC side sees it: which methods it has, and which process answers them.
 *
 * Three kinds: in-process (answered by whoever was asked, needs no server), of the server, and of a keeper.
 * exec and the server both route by this table, so a method is listed once. */
#ifndef APPLETS_TOOL_H
#define APPLETS_TOOL_H

#include <stdbool.h>

#include "ipc.h"
#include "json.h"
#include "rpc.h"

struct moving;
/* What is injected by others doesn't move, for want of room. */
#ifdef TOOLBOX_GUEST
#define MOVES(how) NULL
#else
#define MOVES(how) (how)
#endif

struct tool {
    const struct rpc_method *in_process; /* each may be NULL; handlers get NULL as ctx */
    const struct rpc_method *server;     /* handlers get the struct server */
    const struct rpc_method *keeper;     /* handlers get what the keeper's start function registered */

    /* Which keeper a call of a keeper method is for: its socket's owner, into `owner`. -1 with ERR_PARAMS
     * when the params don't say, ERR_TOOL when there can't be one of that name. */
    int (*keeper_of)(struct span params, char owner[IPC_NAME_MAX], struct err *err);

    /* May be NULL. In the server, for a keeper method whose keeper is gone: answers the call, or returns
     * false where nothing is known of it (`owner` as keeper_of said it, dirfd: the place). */
    bool (*without_keeper)(struct rpc_call *call, const char *method, struct span params, const char *owner,
                           int dirfd);

    /* May be NULL. Whether something is kept in the place for whoever asks for it after its keeper has ended:
     * of that owner, or (NULL) of any, but what has been told already. */
    bool (*keeps)(int dirfd, const char *owner);
    /* May be NULL. Whether such things, of any build, stand in that file of the place, and somebody may still
     * ask for them. */
    bool (*keeps_in)(int dirfd, const char *name);

    bool in_turn; /* a call waits until the answer to the one before it has arrived */

    const struct moving *moving; /* how its keepers move to another build; NULL: they don't */

    /* May be NULL. In the server, when it starts and ends, and when a keeper was killed: removes what keepers
     * that are dead have left outside of the place. */
    void (*sweep)(int dirfd);

    /* What of the tool is alive, for `toolbox status`: a method of the server without params that answers an
     * array of objects, the member under which it is shown, and the columns of its table (NULL at the end).
     * May be all NULL. */
    struct {
        const char *method, *title;
        const char *const *columns;
    } list;

    /* Those methods of the server that only look: where it died before it answered, another one is asked.
     * Ends with NULL; may be NULL. */
    const char *const *queries;
};

/* All tools; ends with NULL. */
const struct tool *const *tool_list(void);

enum method_kind { METHOD_UNKNOWN, METHOD_IN_PROCESS, METHOD_SERVER, METHOD_KEEPER };

struct method {
    enum method_kind kind;
    const struct tool *tool;
    rpc_handler run;
};

/* Calls what all tools have for that. */
void tools_sweep(int dirfd);
bool tools_keep(int dirfd);
bool tools_keep_in(int dirfd, const char *name);

/* Finds a method by name among all tools. */
struct method tool_method(const char *name);

enum { METHODS_MAX = 112 };

/* The names of all methods, at most max-1 of them, and NULL at the end. */
void tool_method_names(const char **names, size_t max);

/* rpc_find_fn for the in-process methods alone. */
rpc_handler tool_find_in_process(void *ctx, const char *name, void **handler_ctx);

#endif
