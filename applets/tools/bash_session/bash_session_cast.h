/* Command lines that show what a session shows: live, and from a recording. */
#ifndef APPLETS_BASH_SESSION_BASH_SESSION_CAST_H
#define APPLETS_BASH_SESSION_BASH_SESSION_CAST_H

#include "command.h"

int bash_session_record(const struct command_line *c);
int bash_session_watch(const struct command_line *c);
int bash_session_replay(const struct command_line *c);
/* Appends a path that is given here as one that is meant anywhere. */
void put_record_path(struct buf *params, const char *key, const char *path);

#endif
