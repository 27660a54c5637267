/* Work on what is another user's, with no more rights than he has. */
#ifndef CORE_AS_USER_H
#define CORE_AS_USER_H

#include <sys/types.h>

/* Does it in a process that is that user for good, and waits until it has ended. He may stop that, or give it
 * endless work: it is killed after limit_ms. */
void as_user(uid_t uid, int limit_ms, void (*work)(void *arg), void *arg);

#endif
