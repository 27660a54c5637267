/* The end of everything: keepers, each with its own tree, and whatever else there is below the server. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "io.h"
#include "log.h"
#include "mark.h"
#include "mem.h"
#include "proc.h"
#include "server_internal.h"

/* A keeper has TERM, 2 s, KILL, 1 s; one that hasn't answered by then is stuck. In all: 5 s. */
#define GRACE_MS 2000
#define KEEPERS_MS 3300
#define REST_MS 1500 /* a stuck keeper may have had a large tree */

struct waiter {
    struct waiter *next;
    void (*done)(void *arg, size_t left);
    void *arg;
};

struct ending {
    struct waiter *waiters;
    long long began;
    int open; /* of the two that go side by side: keepers, and what is no keeper's */
    size_t left;
};

/* Thousands of ended sessions and jobs leave as many files: whoever asked has his answer before they go, and
 * waits for the end of the process (server.c). */
static void drained(void *arg)
{
    struct server *s = arg;
    server_clear_sockets(s);
    loop_stop(s->base.loop, s->ending->left > 0);
}

static void all_ended(void *arg, size_t left)
{
    struct server *s = arg;
    struct ending *e = s->ending;
    e->left += left;
    tools_sweep(s->base.dirfd);
    log_line(e->left > 0 ? LOG_ERROR : LOG_INFO, "ended; %zu processes are left", e->left);
    while (e->waiters) {
        struct waiter *w = e->waiters;
        e->waiters = w->next;
        w->done(w->arg, e->left);
        free(w);
    }
    http_server_drain(s->http, HTTP_DRAIN_MS, drained, s);
}

static unsigned long long orphans_mark(const struct server *s)
{
    return s->found > 0 ? mark_of(s->base.dirfd) : 0;
}

static void orphans_ended(void *arg, size_t left)
{
    struct server *s = arg;
    if (left > 0)
        log_line(LOG_ERROR, "%zu processes that dead keepers have left could not be ended", left);
    tools_sweep(s->base.dirfd);
}

static bool is_not_orphan(void *arg, pid_t pid)
{
    return server_is_own_process(arg, pid) || server_is_others(arg, pid);
}

void server_end_orphans(struct server *s)
{
    struct tree_end_options orphans = {
        .grace_ms = GRACE_MS, .limit_ms = KEEPERS_MS, .spare = is_not_orphan, .mark = orphans_mark(s)};
    if (s->ending)
        return;
    server_find_others(s);
    tree_end(s->base.loop, &orphans, orphans_ended, s);
}

/* Keepers that could not be asked (their sockets are gone with the directory) have been told by a signal, and
 * need the time that the others had; what a killed one left does not. */
static void end_rest(struct server *s)
{
    struct ending *e = s->ending;
    if (--e->open > 0)
        return;
    long long grace = s->kept ? e->began + KEEPERS_MS - now_ms() : 0;
    if (grace < 0)
        grace = 0;
    struct tree_end_options all = {.grace_ms = (int)grace,
                                   .limit_ms = (int)grace + REST_MS,
                                   .spare = server_has_others(s) ? server_is_others : NULL,
                                   .mark = orphans_mark(s)};
    tree_end(s->base.loop, &all, all_ended, s);
}

static void others_ended(void *arg, size_t left)
{
    (void)left; /* is counted in the end */
    end_rest(arg);
}

static void keepers_ended(void *arg, struct reply *replies, size_t n)
{
    struct server *s = arg;
    for (size_t i = 0; i < n; i++) {
        size_t left = strtoul(buf_str(&replies[i].result), NULL, 10);
        if (replies[i].pid > 0 && replies[i].result.len == 0)
            left = proc_kill_tree(replies[i].pid);
        if (!server_is_own_keeper(s, replies[i].pid)) /* what its own ones leave comes to the server */
            s->ending->left += left;
    }
    end_rest(s);
}

static bool is_spared(void *arg, pid_t pid)
{
    return server_is_own_keeper(arg, pid) || server_is_others(arg, pid);
}

void server_end_all(struct server *s, void (*done)(void *arg, size_t left), void *arg)
{
    bool first = !s->ending;
    if (first)
        s->ending = mem_zalloc(sizeof *s->ending);
    if (done) {
        struct waiter *w = mem_zalloc(sizeof *w);
        *w = (struct waiter){.next = s->ending->waiters, .done = done, .arg = arg};
        s->ending->waiters = w;
    }
    if (!first)
        return;
    log_line(LOG_INFO, "ending, with %zu calls open", http_server_pending(s->http));
    s->ending->began = now_ms();
    s->ending->open = 2;
    struct tree_end_options others = {
        .grace_ms = GRACE_MS, .limit_ms = KEEPERS_MS, .spare = is_spared, .mark = orphans_mark(s)};
    server_watch_end(s);
    server_find_others(s);
    tree_end(s->base.loop, &others, others_ended, s);
    server_ask(s, NULL, KEEPER_END, KEEPERS_MS, keepers_ended, s);
}
