/* Work for one call that is done as another user: in a child that has become that user for good. */
#ifndef APPLETS_WORK_AS_USER_H
#define APPLETS_WORK_AS_USER_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "user.h"
#include "user_param.h"

struct work_user {
    bool given; /* and not who we are already */
    struct user user;
};

/* From the parameter, which may not be given. ERR_PARAMS when the numbers are none, ERR_TOOL when there is no
 * such user: then nothing may be done. */
int work_user_take(struct work_user *u, const struct user_param *wish, struct err *err);
void work_user_release(struct work_user *u);
#define WORK_USER_AUTO __attribute__((cleanup(work_user_release)))

/* Appends the answer; what it says of a failure may stand there as well. */
typedef int (*work_fn)(const void *arg, struct buf *answer, struct err *err);

/* Does it, here where no other user was given. As the work itself; ERR_TOOL when it can't be done. */
int work_as_user(const struct work_user *u, work_fn work, const void *arg, struct buf *answer,
                 struct err *err);

#endif
