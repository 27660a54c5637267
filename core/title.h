/* What others see of this process in `ps`: its name, and never its arguments, in which there may be a
 * request. A server or keeper is a fork of whatever command came first, and must not look like it. */
#ifndef CORE_TITLE_H
#define CORE_TITLE_H

#include <stdbool.h>

#include <stdbool.h>

/* Once, at the start of main and before the environment changes: remembers where the arguments are. */
void title_init(int argc, char **argv);
/* Copies the arguments (argv points to the copies afterwards, which stay) and wipes what the kernel shows of
 * them, but for the first `keep`. Until then, for the first moments of the process, they can be read. */
void title_hide_arguments(int argc, char **argv, int keep);
/* The last part of argv[0], as it was at first; "" before title_init. */
const char *title_program(void);

/* Whether that is one of the names of the tool servers that this one stands in for. */
bool title_is_inspect(void);
/* Cut where arguments and environment leave less room. The environment is moved out of the way, once. */
void title_set(const char *title);

#endif
