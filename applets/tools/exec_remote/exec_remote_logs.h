/* The output of a job as text. */
#ifndef APPLETS_EXEC_REMOTE_EXEC_REMOTE_LOGS_H
#define APPLETS_EXEC_REMOTE_EXEC_REMOTE_LOGS_H

#include "command.h"
#include "json.h"

/* `toolbox exec_remote logs`. */
int exec_remote_logs(const struct command_line *c);

/* Prints what an answer brought, each stream where it belongs. An exit status. */
int exec_remote_print_text(const struct command_line *c, struct span answer);

#endif
