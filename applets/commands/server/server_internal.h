/* Shared by the files of the server alone. */
#ifndef APPLETS_SERVER_SERVER_INTERNAL_H
#define APPLETS_SERVER_SERVER_INTERNAL_H

#include "http_server.h"
#include "server.h"

/* A keeper that this server forked (one of an earlier server is known by its socket only). */
struct kept {
    struct kept *next;
    struct server *server;
    pid_t pid;
    struct pooled_socket *pooled; /* NULL: its socket is its own */
    char name[IPC_NAME_MAX];
    char *whom; /* it keeps, for server_watch; NULL: it is not up yet */
};

struct ending;
struct other_builds;
struct work;

/* The directory of its socket: a server whose socket is gone ends. */
struct server_watch {
    dev_t dev; /* of the file that its socket is bound to */
    ino_t ino;
    int inotify; /* -1: none */
    int directory;
    struct loop_source *look;
};

struct server {
    struct base base;
    struct http_server *http;
    struct kept *kept;
    struct pooled_socket pool[SOCKET_POOL_SIZE];
    struct work *works;    /* what is being done in processes of their own */
    struct ending *ending; /* NULL: not yet */
    struct other_builds *others;
    char *path; /* of its place */
    long long started_ms;
    unsigned long long keepers_started;
    struct server_watch socket;
    struct loop_source *retirement;
    struct {
        struct loop_source *recorder; /* NULL: it is recorded which one this is */
        char *path;                   /* that it was run from, until it is recorded; NULL: not known */
    } program;
    bool foreground;
    unsigned found; /* keepers of another server, or what dead ones have left: there may be orphans */
};

/* ---- starting (server_start.c) ---- */

/* The lock that every starter takes; released by closing it. -1 when it can't be had. */
int server_lock(const struct place *p, struct err *err);

/* The first place in which there are sockets, live or not; false when there is none. */
bool server_find_sockets(struct place *p, bool keepers_only);

/* ---- for the commands (server.c) ---- */

/* The answer to a method that only looks, without params, bounded: its line in *answer, *result in there. */
int server_query(const char *method, int timeout_ms, struct buf *answer, struct span *result,
                 struct err *err);

/* ---- ending one (server_stop.c) ---- */

/* Asks the server behind fd to end everything. 0; -1 when it said that something is left; -2 when it did not
 * answer (its keepers are still there then), killed where it is stuck: nothing below it comes to an end. */
int server_shut_down(int fd, struct err *err);

/* ---- who watches (server_watch.c) ---- */

/* Tells all who wait that something has begun or ended: `whom` is the rest of an object of JSON. */
void server_tell(const struct server *s, const char *what, const char *whom);
/* That a keeper is up; `whom` is its own from then on. */
void server_begun(struct server *s, pid_t pid, char *whom);
/* There will be no more: the server is ending. */
void server_watch_end(const struct server *s);
/* Answers with what came behind the cursor (< 0: nothing, at once), now or when there is something. */
void server_watch(const struct server *s, struct rpc_call *call, long long cursor);

/* ---- the server process ---- */

/* Runs the server in this process until it is told to end. It takes the lock (server_lock) and releases it
 * once it listens; `ready_fd` (-1: none) then gets "\0", or otherwise a struct err. The exit status. */
int server_run(struct place *place, int lock_fd, int ready_fd, bool foreground);

/* Ends all keepers and everything below, and then the process; before that `done` (may be NULL) gets the
 * number of processes that are left. May be called again, and means the same end. */
void server_end_all(struct server *s, void (*done)(void *arg, size_t left), void *arg);

/* Ends what dead keepers of dead servers have left. */
void server_end_orphans(struct server *s);

/* Keeps which file its socket is now bound to, to know it again. False with errno: it can't be told. */
bool server_know_socket(struct server *s);
/* Whether it is still there; also where that can't be told. */
bool server_has_socket(const struct server *s);
/* Removes all sockets, unless another server has taken this one's place. */
void server_clear_sockets(const struct server *s);

/* `arg` is the server; whether the process is a keeper that it has forked itself. */
bool server_is_own_keeper(void *arg, pid_t pid);
/* Or one that works for it (server_work.c). */
bool server_is_own_process(void *arg, pid_t pid);

/* The processes of other builds may hang below this one, which was asked to start them, or has started them
 * as its own (upgrade): they are spared (a predicate of tree_end; its arg is the server) when it ends what
 * hangs below it. To be looked for before. */
void server_find_others(struct server *s);
bool server_is_others(void *arg, pid_t pid);
bool server_has_others(const struct server *s);

/* Runs fn in a process of its own, in the directory where the server was started, and hands what it writes to
 * `out` over to `done`, once it has ended. NULL with err: there can be no process, and nothing is called. */
typedef void (*work_fn)(void *arg, int out);
typedef void (*work_done)(void *arg, struct buf *output);
struct work *server_work(struct server *s, work_fn run, void *run_arg, work_done done, void *arg,
                         struct err *err);
/* Kills it; `done` is called with what it had written. */
void server_work_end(struct work *w);

/* Has the other build that has a live keeper of that name answer the call. False, and nothing done: none has.
 * `ended`: also one that has it in its list of what has ended; where none has, server_without_keeper. */
bool server_pass_to_other(struct server *s, struct rpc_call *call, const char *owner, bool ended);

/* Answers a call for a keeper that isn't there: with what its tool knows of it, or that there is none. */
void server_without_keeper(struct server *s, struct rpc_call *call);
/* Only the latter; `why` is the errno with which its socket could not be connected to. */
void server_no_keeper(struct rpc_call *call, int dirfd, const char *owner, int why);

/* Whether it keeps nothing and does nothing but `calls` calls. */
bool server_is_idle(const struct server *s, size_t calls);

/* Something may have been the last of what a server of a replaced build has to do: looks soon, and ends it
 * then, with its program (server_retire.c). */
void server_may_retire(struct server *s);

/* Asks all other builds for their part of the list that the call is for: `done` gets their entries, with
 * commas between them. False, and nothing called: there are none, or they aren't wanted. */
bool server_ask_others(struct server *s, struct rpc_call *call, work_done done, void *arg);

/* Handler of in-process methods in the server: runs them in a process of their own, so that a slow file
 * stalls nobody. */
void server_in_process(struct rpc_call *call, struct span params, void *ctx);

/* rpc_find_fn of the server: every method of every tool. */
rpc_handler server_find(void *ctx, const char *method, void **handler_ctx);

#endif
