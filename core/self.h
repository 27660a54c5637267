/* The file that this process runs. */
#ifndef CORE_SELF_H
#define CORE_SELF_H

/* Its path: the kernel's word, or where there is no /proc the name it was started by, made absolute. free()
 * it; NULL when nobody knows. */
char *self_path(void);

/* Opens it for reading, close on exec: the very file that runs, also when another one has taken its name.
 * -1 with errno: it may be executable without being readable. */
int self_open(void);

#endif
