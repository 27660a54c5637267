/* A program at the end of a stream: its stdin, stdout and stderr or terminal, signals and status
 * (run_frames.h). */
#ifndef EXEC_RUN_END_H
#define EXEC_RUN_END_H

#include "ends.h"

extern const struct end_kind run_end;

#endif
