/* What the terminal's programs are doing, as the kernel sees it. */
#ifndef APPLETS_BASH_SESSION_SESSION_WAIT_H
#define APPLETS_BASH_SESSION_SESSION_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

#include "pty.h"
#include "user.h"

enum waiting {
    WAITING_NOT,     /* something runs */
    WAITING_SHELL,   /* the shell itself waits for terminal input */
    WAITING_PROGRAM, /* a foreground program does */
    WAITING_FAR_END, /* one passes the terminal on to where nobody can look: another machine, another user */
    WAITING_CODE,    /* as WAITING_SOON: see session_waiting_for_word */
    WAITING_SOON,    /* see session_waiting_for_word */
    WAITING_UNKNOWN, /* the kernel doesn't tell: no /proc, or hidden */
};

/* How far it goes to know. */
enum look {
    LOOK_FROM_AFAR, /* nothing is done to anybody: where only a thread that stands still can be read, none is
                     */
    LOOK_CLOSELY,   /* at the leader of the foreground group, which may be stopped for it (session_trace.h) */
    LOOK_AT_ALL,    /* at all processes of that group */
};

/* `user`: whose processes these are (NULL: our own); their files in /proc are read as that user, since root
 * in a container may not trace others. */
enum waiting session_waiting(const struct pty *pty, pid_t shell, const struct user *user, enum look how);

/* Why what a program prints need not be over though it waits for terminal input. */
enum unsure {
    UNSURE_NOT,   /* it does not wait, or for nothing else */
    UNSURE_POLLS, /* it looks again before long: readline with a hook */
    UNSURE_HEARS, /* others may tell it what to do as well */
    UNSURE_NAPS,  /* it sleeps for a moment, and may look for input in between */
};

enum unsure session_wait_is_unsure(const struct pty *pty, pid_t program, const struct user *user,
                                   enum look how);

/* It reads, and not byte by byte, as a `read` does. */
bool session_reads_all(pid_t pid, const struct user *user);

/* It has the other end of a terminal of its own: script, sudo. */
bool session_passes_on(pid_t pid);

/* The same of the word that the shell waits for when it has told: WAITING_SHELL where it reads the channel as
 * its standard input, WAITING_PROGRAM where a child of it does (what it substitutes in its prompt),
 * WAITING_CODE
 * where it reads code from there, WAITING_SOON where it may be about to wait. */
enum waiting session_waiting_for_word(const struct pty *channel, pid_t shell, const struct user *user,
                                      bool children);

#endif
