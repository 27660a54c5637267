/* The front door: starts, lists and ends keepers, and passes calls on for clients that know no other way.
 *
 * It holds no session and no output of one: killed at any moment it loses nothing, and the next one finds the
 * keepers by their sockets. */
#ifndef APPLETS_SERVER_SERVER_H
#define APPLETS_SERVER_SERVER_H

#include <stddef.h>

#include "applet.h"
#include "buf.h"
#include "err.h"
#include "keeper.h"
#include "tool.h"
#include "user.h"
#include "user_param.h"

struct server;

extern const struct tool server_tool, watch_tool;
extern const struct applet server_applet, start_server_applet, stop_server_applet, healthcheck_applet,
    status_applet;

/* What `status` does with targets: who can reach some defines it (host/run/status_in.c). The guest's can't.
 */
extern int (*const status_elsewhere)(int argc, char **argv);

/* ---- for clients (server_start.c) ---- */

/* A connection to the server, which is started where none runs. -1 with ERR_TOOL and what stands in the way.
 */
int server_connect(struct err *err);

/* One request to the server, over a connection that is left open in *fd (client_delivered). Where it dies
 * without having taken the request, or a mere `query` without having answered it, another one is started and
 * asked. timeout_ms < 0: none. */
int server_call(int *fd, struct span request, bool query, int timeout_ms, struct buf *answer,
                struct err *err);

/* A method of the server's that is not for others: it ends, without an answer, if it keeps nothing and is
 * asked nothing else; otherwise it answers null. */
#define SERVER_LEAVE "toolbox_server_leave"
void server_leave(struct rpc_call *call, struct span params, void *ctx);

/* Ends all servers of other builds of this container in the user's places, with all that is theirs, also
 * where the server itself has died. `ended` gets the names of the sessions, jobs, MCP servers and browsers
 * that there were, with ", " between them. -1: something is left. */
int server_end_other_builds(struct buf *ended, struct err *err);

/* ---- for the tools, inside the server ---- */

const struct base *server_base(const struct server *s);

/* The next name with this prefix: PREFIX, PREFIX_1, … Never one that was used before, ended sessions
 * included. */
void server_next_name(struct server *s, const char *prefix, char name[IPC_NAME_MAX]);

/* Sessions that are called by a name: what it begins with, what people call them, and the methods that open
 * and close one. */
struct session_kind {
    const char *prefix, *what, *opens, *closes;
};
/* As struct tool's keeper_of() says it, of the name that a call's params have. */
int server_session_owner(const struct session_kind *kind, const char *name, char owner[IPC_NAME_MAX],
                         struct err *err);
/* Answers a call of one that is gone: closing what has ended is done. */
bool server_session_gone(const struct session_kind *kind, struct rpc_call *call, const char *method,
                         const char *owner, int dirfd);

/* keeper_fork, with the keeper known to the server from then on. Refused while the server is ending. */
void server_fork_keeper(struct server *s, const char *name, keeper_start_fn start, void *arg, keeper_up_fn up,
                        void *up_arg);

/* Asks every live keeper whose name is PREFIX or PREFIX_… (NULL: all) to answer a private method without
 * params, all at once. `done` gets an array of the results' JSON texts, in the order of the names; those that
 * don't answer within timeout_ms are left out. */
struct reply {
    char name[IPC_NAME_MAX];
    pid_t pid;         /* of the keeper */
    struct buf result; /* len 0: no answer */
};
typedef void (*server_replies_fn)(void *arg, struct reply *replies, size_t n);
void server_ask(struct server *s, const char *prefix, const char *method, int timeout_ms,
                server_replies_fn done, void *arg);

/* How a tool has its keepers started by a call. */
struct starting_kind {
    const struct params_table *params; /* of a struct of `size` bytes, with its struct user_param at `user` */
    size_t size, user;
    size_t surroundings;                               /* its struct surroundings; 0: it has none */
    const void *defaults;                              /* of that struct; NULL: zeros */
    int (*check)(const void *params, struct err *err); /* what no table can; NULL: nothing */
    const char *prefix;                                /* of the name; NULL: the keeper finds its own */
    const char *no_user;                               /* kind of the failure to find the user; NULL: none */
    keeper_start_fn start;                             /* its arg is the struct starting */
    void (*put_answer)(struct buf *out, const char *name, const char *word); /* with the keeper's word */
};

/* One on its way from the server to its keeper, which as a copy of the server reads it as it stands here. */
struct starting {
    const struct starting_kind *kind;
    struct server *server;
    struct rpc_call *call; /* NULL: the client has gone */
    void *params;
    struct user *user; /* whom its program is to run as: &other, or NULL: as the server's own */
    struct user other;
    char name[IPC_NAME_MAX];
};

/* Starts one, and answers the call when it is up or can't be; a keeper that nobody waits for any more stays.
 */
void server_start_keeper(struct server *s, struct rpc_call *call, struct span params,
                         const struct starting_kind *kind);

/* Answers `call`, which takes no params, with an array of what all keepers with the prefix say of themselves:
 * of each its key, then the members of its state, or that it is stuck. */
struct server_listing {
    const char *prefix;
    bool ignore_unknown;                                /* params that it doesn't know are no mistake */
    void (*put_key)(struct buf *out, const char *name); /* the member that names it */
    void (*put_more)(struct buf *out,
                     int dirfd); /* entries without a keeper, with their commas; may be NULL */
    bool (*has_more)(int dirfd, const char *name); /* that one is among them by now; may be NULL */
};
void server_list(struct server *s, struct rpc_call *call, struct span params,
                 const struct server_listing *how);

/* ---- inside a keeper ---- */

#define SERVER_END_MS                                                                                        \
    60000 /* a server that is asked to has ended everything by then, or what is left stays */

/* Private methods that every keeper answers, on its own socket only. */
#define KEEPER_STATUS "toolbox_keeper_status" /* → object: its state, without what names it */
#define KEEPER_END "toolbox_keeper_end" /* ends everything, answers the number of processes left, exits */

/* Serves the keeper's socket with a tool's keeper methods; `ctx` is what all handlers get. `hang_up` is
 * the tool's own part of the end: it closes what it holds, and returns the process group to signal where
 * there is no /proc. */
struct keeper_service;
struct keeper_service *keeper_serve(struct keeper *k, const struct tool *tool, void *ctx, rpc_handler status,
                                    pid_t (*hang_up)(void *ctx));

enum keeper_ending {
    KEEPER_CLOSED,  /* asked for by a client: its name stays taken; the answer is null */
    KEEPER_STOPPED, /* everything ends: its socket goes too; the answer is the number of processes left */
};

/* Members that every tool's state has: age_s; processes (below the keeper) and memory_kb (with its own; both
 * null without /proc); bytes_in and bytes_out of its calls. */
void keeper_put_usage(struct buf *out, const struct keeper_service *service);

/* Ends everything below the keeper and then the process: `call` (may be NULL) is answered when all is done.
 */
void keeper_end(struct keeper_service *service, struct rpc_call *call, enum keeper_ending how);

/* Of one that was moved: the milliseconds since it was started, in the build where it was. */
void keeper_set_age(struct keeper_service *service, long long ms);

/* Ends it, as KEEPER_CLOSED, when that process ends: for a client whose own end must leave nothing, however
 * it comes. */
void keeper_ends_with(struct keeper_service *service, pid_t pid);

/* The same after a while; -1: never. */
void keeper_ends_in(struct keeper_service *service, long long ms);

/* `cleared` is called once everything below the keeper has ended, before the call is answered. */
void keeper_on_cleared(struct keeper_service *service, void (*cleared)(void *ctx));

/* Ends a keeper that has no child left and that nobody needs any more: its name is free, calls that it has
 * taken are answered; those in its queue go to the server. */
void keeper_leave(struct keeper_service *service);

#endif
