/* The name that `ps` shows. A server or keeper is a fork of whatever command came first, and must neither
 * look like it nor keep that command's arguments in view. */
#ifndef CORE_TITLE_H
#define CORE_TITLE_H

/* Once, at the start of main and before the environment changes: remembers where the arguments are. */
void title_init(int argc, char **argv);
/* The last part of argv[0], as it was at first; "" before title_init. */
const char *title_program(void);
/* Cut where arguments and environment leave less room. The environment is moved out of the way, once. */
void title_set(const char *title);

#endif
