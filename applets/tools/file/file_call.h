/* What was typed behind a command of `toolbox file`, as the call of its method. */
#ifndef APPLETS_FILE_FILE_CALL_H
#define APPLETS_FILE_FILE_CALL_H

#include "buf.h"
#include "command.h"

/* chmod's and chown's first word, and --mode. EXIT_OK, or EXIT_USAGE, which was said. */
int file_put_mode(const struct command_line *c, const char *mode, struct buf *params);

/* The words from that one on, and the options, behind what is in `params` already. */
int file_call(const struct command_line *c, int from, struct buf *params, struct buf *result);

#endif
