/* Which running system a process is in: what ran here before a restart is another one, and so is what has
 * taken the place of one of the same name. */
#ifndef CORE_INSTANCE_H
#define CORE_INSTANCE_H

#define INSTANCE_MAX 128

/* Text without quotes. Without /proc it tells less: the identity of "/" alone. */
void instance_text(char text[INSTANCE_MAX]);

#endif
