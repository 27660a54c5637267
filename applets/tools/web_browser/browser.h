/* The process of a browser: started, listened to, and its end. */
#ifndef APPLETS_WEB_BROWSER_BROWSER_H
#define APPLETS_WEB_BROWSER_BROWSER_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "cdp.h"
#include "keeper.h"
#include "profile.h"
#include "user.h"

struct browser_wish {
    const struct user *user; /* NULL: as we are */
    bool headful;
    bool sandbox;
};

struct browser {
    struct loop *loop;
    struct cdp *cdp;
    struct profile profile;
    char *program;
    pid_t pid;      /* 0: it has ended and been reaped */
    int status;     /* then, as of waitpid */
    bool sandboxed; /* as it was started */
    struct buf log; /* the end of its stderr */
    int log_fd;
    struct loop_source *log_source;
    void (*ended)(void *arg); /* once: its main process has, and every open call has failed */
    void *arg;
};

/* Starts one. events, ended and arg are what it tells; *b is zero. On failure nothing is left. */
int browser_start(struct browser *b, const struct keeper *k, const struct browser_wish *wish,
                  const struct cdp_events *events, void *arg, void (*ended)(void *arg), struct err *err);

/* Closes its pipes, by which it ends. */
void browser_hang_up(struct browser *b, const struct err *why);

/* Says how it ended, or how it failed to start, with its last words. ERR_TOOL; -1. */
int browser_say_end(const struct browser *b, struct err *err);

/* Whether its last words say that it can't have a sandbox here. */
bool browser_lacks_sandbox(const struct browser *b);

#endif
