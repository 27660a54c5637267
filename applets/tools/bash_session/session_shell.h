/* What the shells are told: start-up files, and the code that the keeper has them run through the private
 * channel. */
#ifndef APPLETS_BASH_SESSION_SESSION_SHELL_H
#define APPLETS_BASH_SESSION_SESSION_SHELL_H

#include <stdbool.h>

#include "buf.h"
#include "session_channel.h"

/* True when the path's last part is "bash". */
bool shell_is_bash(const char *path);

/* Key sequence on which bash's line editor runs what comes through the channel, without a trace in its
 * history or its line. */
#define SHELL_KEY "\033[7771~"

/* A template: '@' stands for the channel's path, \x01 for an '@' itself, \x02 for the channel's secret. */
void shell_put(struct buf *out, const char *template, const struct channel *channel);

/* Templates: the hook at the prompt of bash, and of shells that evaluate command substitutions in PS1. */
extern const char shell_bash_setup[], shell_posix_setup[];
/* As `set -v` shows it. */
extern const char shell_bash_hook[];

/* Within what a prompt substitutes: the front of an assignment that keeps TMOUT from ending the shell;
 * nothing where it isn't set, or can't be. */
#define SHELL_STAY "case ${TMOUT:+x$(readonly -p)} in \"\"|*TMOUT*) ;; *) \\echo TMOUT=;; esac"

/* bash: tells its state (message Q: pid, status, directory, whether the hook was still in place, the prompt
 * as it shows) and puts the hook back in place. Safe at a continuation prompt as well. */
void shell_put_query(struct buf *out, struct channel *channel);

/* The others, where the hook was shown and not run: what such a note begins with, and the same query. */
#define SHELL_SHOWN "$("
void shell_put_posix_query(struct buf *out, const struct channel *channel);

/* bash that took the place of ours (exec bash): sets the hook as at the start, and answers as to a query.
 * Typed as the line SHELL_SOURCE, which it takes out of its history again. */
void shell_put_adoption(struct buf *out, struct channel *channel);

/* Typed (with the path and Enter behind): runs what comes through the channel. */
#define SHELL_SOURCE " \\. "

/* Text as one word in single quotes, in lines that the channel can hold; what stands for a quote in it, and
 * for a backslash. */
void shell_put_word(struct buf *out, const char *text, size_t n, const char *quote, const char *backslash);

/* Others than bash: the command as one word, so that no continuation prompt comes between its lines. Typed as
 * the line SHELL_SOURCE with SHELL_EVAL behind it: the code has been read to its end then, whatever becomes
 * of the command. */
#define SHELL_EVAL "; \\eval \"$__line\""
void shell_put_eval(struct buf *out, const char *command, size_t n, const struct channel *channel);

/* Has such a command tell that it begins (message T), and wait for an answer. */
void shell_put_announcement(struct buf *command, const struct channel *channel);

/* bash: tells that it has taken the command (message T), which then stands in the line editor and waits for
 * Enter: so it runs as typed, and is one entry of the history, but no key in it acts on the editor or the
 * terminal. */
void shell_put_command(struct buf *out, const char *command, size_t n, const struct channel *channel);

#endif
