/* The kinds of programs that a session can have in front: shells, and interpreters. One row says all that is
 * particular to a kind: how it is started and taught to tell what becomes of what it is given, and how that
 * is given. A program of no row is told nothing; the kernel says when it waits for its terminal. */
#ifndef APPLETS_BASH_SESSION_SESSION_KIND_H
#define APPLETS_BASH_SESSION_SESSION_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "session_channel.h"

#define KIND_ARGS_MAX 8
#define KIND_ENV_MAX 2

/* Texts are templates: '@' stands for the channel's path, or, in arguments, environment and `typed`, for the
 * start-up file; \x01 for an '@' itself, \x02 for the channel's secret, \x03 for the value, in hexadecimal
 * digits, that the variable of the first of `env` had before, and what is between two \4 is about its
 * user's own start-up files. */

/* How one is started. */
struct kind_start {
    const char *const args[KIND_ARGS_MAX]; /* in front of others */
    const char *const env[KIND_ENV_MAX];   /* "NAME=value" */
    const char *typed; /* the line that has it read its start-up file, where it can't be told otherwise */

    /* Its start-up file: what its user's own are about, what keeps it from writing its history to a file, and
     * the hook at its prompt. setup NULL: it is told nothing. */
    const char *before, *no_history, *setup;
    const char *bare, *bare_env; /* started without its user's: a word in front of all others, a variable */
    bool by_channel;             /* it could not close a descriptor, and reads that from the channel */
    bool seeks;                  /* it reads a file, no pipe */
};

/* How it is given a command. */
struct kind_take {
    /* Typed: has it take the command from the channel, as `put` writes it there. */
    const char *line;
    void (*put)(struct buf *out, const char *command, size_t n, const struct channel *channel);
    bool as_typed;  /* one short line is just typed */
    bool announces; /* it shows what is typed, so it says (message T, and waits) when it begins to run it */
};

struct shell_kind {
    const char *names; /* of its programs: "ash dash"; NULL: of no other row */
    struct kind_start start;
    struct kind_take take;
    bool is_bash;  /* commands are taken by a key of its line editor */
    bool is_shell; /* it runs programs in process groups of their own, and goes on with the next when one ends
                    */
    bool polls;    /* it polls its terminal whatever it does: that it is done is only told */
    bool copies_catch; /* a copy of it, as a subshell is, catches an interrupt, and ends */
    int vague;         /* where it was interrupted itself it may leave a status up to this one; 0: never */
    bool is_csh;       /* an interrupt takes away its hook while that runs, and leaves 1 as any status */
    bool ends_line;    /* interrupted where it reads a line it shows no other prompt before a line ends */
    bool proves;       /* it is itself seen to wait for the answer to what it tells, as its standard input */
};

/* Never NULL. The path's last part counts, without a version behind it (python3.12). */
const struct shell_kind *kind_of(const char *path);

/* The whole of its start-up file. `bare`: without its user's own; `former`: see \x03; NULL: none. */
void kind_put_startup(struct buf *out, const struct shell_kind *kind, bool bare, bool keeps_history,
                      const struct channel *channel, const char *former);
/* The hook alone, of a shell that has lost it, with the status as it was. */
void kind_put_hook(struct buf *out, const struct shell_kind *kind, const struct channel *channel);
/* A template with that text for each '@': the start-up file's name, say. Nothing else of it is special. */
void kind_fill(struct buf *out, const char *template, const char *text);

#endif
