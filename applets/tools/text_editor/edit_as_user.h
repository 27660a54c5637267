/* Doing the work as another user: in a child that has become that user for good.
 *
 * The user is `_run_as_user` of the params, a name; or `_run_as` as hosts send it that know the container's
 * default user by numbers alone: a name, or {uid, gid, groups, home?}. */
#ifndef EDIT_AS_USER_H
#define EDIT_AS_USER_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "json.h"
#include "text_editor_types.h"
#include "user.h"
#include "user_param.h"

struct edit_user {
    bool given; /* and not who we are already */
    struct user user;
};

/* From the parameter, which may not be given. ERR_PARAMS when the numbers are none, ERR_TOOL when there is no
 * such user: then nothing may be done. */
int edit_user_take(struct edit_user *u, const struct user_param *wish, struct err *err);
void edit_user_release(struct edit_user *u);
#define EDIT_USER_AUTO __attribute__((cleanup(edit_user_release)))

/* As text_editor_run. */
int edit_as_user(const struct edit_user *u, const struct edit_request *request, struct buf *answer,
                 struct err *err);

#endif
