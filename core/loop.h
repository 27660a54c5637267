/* The event loop of a process: descriptors, timers and child exits.
 *
 * One loop a process. Only the loop calls waitpid, so that nobody else takes an exit status away; children
 * that nobody watches are reaped as well.
 * Nothing wakes an idle loop. A source may be removed at any time, also from a callback, its own
 * included: it is freed once the round of dispatch is over and its callback is not called again.
 * All callbacks run from loop_run; they must not block. */
#ifndef CORE_LOOP_H
#define CORE_LOOP_H

#include <stdint.h>
#include <sys/types.h>

#include "err.h"

struct loop;
struct loop_source;

enum {
    LOOP_READ = 1,
    LOOP_WRITE = 2,
    LOOP_HANGUP = 4
}; /* HANGUP is always reported: its receiver removes the source */

typedef void (*loop_fd_fn)(void *arg, int events);
typedef void (*loop_timer_fn)(void *arg);
/* `status` as of waitpid. */
typedef void (*loop_child_fn)(void *arg, pid_t pid, int status);

struct loop *loop_new(struct err *err);
void loop_free(struct loop *loop);

/* Watches fd (a pipe, socket, terminal or the like), which stays the caller's: remove the source before
 * closing it. Never NULL. */
struct loop_source *loop_fd(struct loop *loop, int fd, int events, loop_fd_fn fn, void *arg);
void loop_fd_events(struct loop_source *source,
                    int events); /* changes what is waited for (0: nothing but HANGUP) */

/* Calls fn once, `ms` (at least 1) milliseconds from now; timers fire in the order in which they are due. The
 * source stays until it is removed: loop_timer_set starts it again. */
struct loop_source *loop_timer(struct loop *loop, int64_t ms, loop_timer_fn fn, void *arg);
void loop_timer_set(struct loop_source *source, int64_t ms); /* from now; what was set before is forgotten */

/* Milliseconds until it fires, at least 0; -1: it is not set. */
int64_t loop_timer_left(const struct loop_source *source);

/* Calls fn when the child has been reaped; the source ends with the call. With pid 0 it is called for every
 * child that nobody else watches, and stays. */
struct loop_source *loop_child(struct loop *loop, pid_t pid, loop_child_fn fn, void *arg);

/* Takes a source away; NULL is fine. */
void loop_remove(struct loop_source *source);
/* loop_remove and forget: loop_drop(&self->timer). */
void loop_drop(struct loop_source **source);

/* Signals that end the process in good order (TERM, INT): fn instead of their default action, also where the
 * starter had them blocked. */
typedef void (*loop_signal_fn)(void *arg, int signal);
void loop_on_signal(struct loop *loop, loop_signal_fn fn, void *arg);

/* Runs until loop_stop, also one that came before; returns what that was given. What is ready in the same
 * round is still called. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop, int result);

/* fork, for a child that makes a loop of its own or none: in it the parent's descriptors are closed and the
 * signals have their defaults back, before any can arrive: one that the parent's handler took there would be
 * lost. The structures are not freed: sources belong to the parent. */
pid_t loop_fork(struct loop *loop);

#endif
