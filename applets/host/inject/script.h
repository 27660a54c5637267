/* What is said to a shell inside a target.
 *
 * A shell of any age is started with a few words (script_shell) that read function definitions from stdin,
 * line by line up to a dot, and then run `main`, which may read what follows. So nothing long and nothing
 * private stands in an argument list, what follows is never taken for commands, and the same words pass
 * through every runtime and login shell. Needed of the shell are its own commands alone; of programs, one
 * that copies stdin and one that sets a mode, for placing. */
#ifndef INJECT_SCRIPT_H
#define INJECT_SCRIPT_H

#include <stdbool.h>

#include "buf.h"
#include "host/inject/argv.h"

#define SCRIPT_MARK "toolbox-recon" /* begins an answer; what login scripts print comes before */
#define SCRIPT_END "toolbox-end"
#define SCRIPT_CALL "toolbox-call" /* what follows is the answer to the request */

struct script_options {
    const char *dir;   /* where the program is to be; NULL: the first place that will do */
    const char *name;  /* its name there */
    const char *links; /* NULL: none */
    bool replace;      /* what other builds run there is ended */
    bool upgrade;      /* it is moved to this one */
    const char *sums;  /* that it may have, separated by commas */
    const char *temporary;
    const char *uid; /* for placing: as reconnaissance has it */
    bool everywhere; /* without dir: also in what is mounted, even if one of the usual places will do */
};

/* Appends the words that start the shell. */
void script_shell(struct argv *out);

/* Says what there is, looks for the program and has it settle. What comes after that: nothing; the request
 * that follows is answered when it was found; or another script is read when it was not. */
enum script_after { SCRIPT_ENDS, SCRIPT_CALLS, SCRIPT_GOES_ON };
void script_recon(struct buf *out, const struct script_options *o, enum script_after after);

/* Writes the `size` bytes that follow to the first of the directories in which they run, and has them settle.
 * With pieces > 0 nothing follows: they were put into the first directory before; `made` is the topmost
 * directory that was made for them, or "". */
void script_place(struct buf *out, const struct script_options *o, const struct argv *dirs, size_t size,
                  int pieces, const char *made);

/* Writes piece number n, which follows. */
void script_piece(struct buf *out, const struct script_options *o, const char *dir, int n);

/* Removes what placing may have left in the directories. */
void script_clean(struct buf *out, const struct script_options *o, const struct argv *dirs);

/* Has the program remove itself, wherever it is. */
void script_eject(struct buf *out, const struct script_options *o);

#endif
