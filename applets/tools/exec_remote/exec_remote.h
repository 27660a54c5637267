/* Jobs: programs that run in the background, with their output fetched bit by bit. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_H

#include "command.h"
#include "tool.h"

extern const struct tool exec_remote_tool;
extern const struct applet exec_remote_applet;

/* `toolbox exec_remote run`: behaves as the program does. `params` is the start call's, without the closing
 * brace, `program` the name of what is to run. (exec_remote_run.c) */
int exec_remote_run(const struct command_line *c, struct buf *params, const char *program);

#endif
