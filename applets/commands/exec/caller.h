/* Whether the caller is still there while an answer is waited for: who reads stdout, and who holds stdin.
 *
 * A reader that has gone shows on the pipe or socket itself. Where a runtime keeps our stdout for a client
 * that is dead (Docker reads it on), only stdin can tell, and only where the caller holds it open: `exec
 * --detect`. */
#ifndef EXEC_CALLER_H
#define EXEC_CALLER_H

#include <stdbool.h>

#include "buf.h"

/* From now on calls are given up when nobody reads stdout any more (client_watch). */
void caller_watch(void);

/* The same with a beat, a blank twice a second, and with stdin: reads the request, its first line that isn't
 * empty, and takes what comes behind it as it comes. An empty line, before or behind the request, says that
 * stdin is held: its end is then the caller's, and so it is without that line when it comes later than a beat
 * after the request. A line "-" says that its end means nothing. `from_stdin` false: the request is had
 * already. -1 with errno. */
int caller_detect(bool from_stdin, struct buf *request);

/* Behind the answer: whether the caller has it. One that holds stdin says so with an empty line. */
bool caller_confirmed(void);

#endif
