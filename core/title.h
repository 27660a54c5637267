/* The name that `ps` shows. A server or keeper is a fork of whatever command came first, and must neither
 * look like it nor keep that command's arguments in view. */
#ifndef CORE_TITLE_H
#define CORE_TITLE_H

/* Once, at the start of main: remembers where the arguments are, and moves the environment out of their way.
 */
void title_init(int argc, char **argv);
/* The last part of argv[0], as it was at first; "" before title_init. */
const char *title_program(void);
void title_set(const char *title);

#endif
