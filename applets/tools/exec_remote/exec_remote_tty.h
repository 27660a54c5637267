/* Our own terminal, while a job's takes its place (`exec_remote run --tty`). */
#ifndef APPLETS_EXEC_REMOTE_TTY_H
#define APPLETS_EXEC_REMOTE_TTY_H

#include "buf.h"

/* Appends {"rows":…,"cols":…}, where it can be told, otherwise true. */
void tty_put_size(struct buf *out);
/* Every key is passed on, and nothing is echoed, until it is given back. Without a terminal nothing happens.
 */
void tty_take(void);
void tty_give_back(void);

#endif
