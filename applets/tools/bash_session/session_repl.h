/* What interpreters are told: start-up files, as templates of session_kind.h, and how they are given a
 * command. */
#ifndef APPLETS_BASH_SESSION_SESSION_REPL_H
#define APPLETS_BASH_SESSION_SESSION_REPL_H

#include "buf.h"
#include "session_channel.h"

extern const char repl_python[], repl_ipython[], repl_node[];

/* In hexadecimal digits, and a line that says that it is whole. */
void repl_put(struct buf *out, const char *command, size_t n, const struct channel *channel);

#endif
