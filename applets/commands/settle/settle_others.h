/* Other builds' programs beside the one that settles: what runs in them goes on. `dir` is the directory of
 * `path`, which nobody else can exchange. */
#ifndef APPLETS_SETTLE_OTHERS_H
#define APPLETS_SETTLE_OTHERS_H

#include "err.h"

/* Before `path` gets another file: where the one that is there is the program of a build of which anything
 * lives, it gets the name that program_aside says; *aside (free() it) is that name in the directory then,
 * otherwise NULL. -1 with ERR_TOOL: it can't be kept. */
int settle_keep_other(int dir, const char *path, char **aside, struct err *err);

/* Removes those set aside of which nothing lives any more, and ends servers that have nothing to do. */
void settle_sweep_others(int dir, const char *path);

/* Ends all that runs in those set aside for `path`, and removes them. -1 with ERR_TOOL: something is left. */
int settle_end_others(int dir, const char *path, struct err *err);

#endif
