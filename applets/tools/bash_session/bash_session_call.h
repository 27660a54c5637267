/* What the commands for sessions have in common: whose call it is, and how much of its output is shown. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_CALL_H
#define APPLETS_BASH_SESSION_BASH_SESSION_CALL_H

#include "bash_session_cut.h"
#include "command.h"
#include "json.h"

/* Begins the params of a call on the session that the first word names. */
void session_call_begin(const struct command_line *c, struct buf *params);

/* The result as JSON, or the string `member` of it (NULL: the result is the string), or nothing for null. */
int session_print(const struct command_line *c, const struct buf *result, const char *member, bool line);

/* --max: how many bytes are to be shown; 0: all. With --json the answer itself is cut, and says so. */
int session_take_max(const struct command_line *c, long long *max);
void session_put_max(const struct command_line *c, long long max, struct buf *params);
int session_print_cut(const struct command_line *c, struct span text, struct cut *cut);
int session_print_end(const struct command_line *c, struct cut *cut);

/* `run`: a command, its output as it comes, and its status. */
int bash_session_run(const struct command_line *c);

#endif
