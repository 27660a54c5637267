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

/* `user`: whose processes these are (NULL: our own); their files in /proc are read as that user, since root
 * in a container may not trace others. `thorough`: looks at all processes of the foreground group and not at
 * its leader alone. */
enum waiting session_waiting(const struct pty *pty, pid_t shell, const struct user *user, bool thorough);

/* The same of the word that the shell waits for when it has told: WAITING_SHELL where it reads the channel as
 * its standard input, WAITING_PROGRAM where a child of it does (what it substitutes in its prompt),
 * WAITING_CODE
 * where it reads code from there, WAITING_SOON where it may be about to wait. */
enum waiting session_waiting_for_word(const struct pty *channel, pid_t shell, const struct user *user,
                                      bool children);

#endif
