/* Whom a program is to run as, as a parameter says it: a name (or a uid in decimal), or the numbers of a
 * user, {uid, gid, groups, home?}, as hosts send them that have looked at the container themselves. */
#ifndef RPC_USER_PARAM_H
#define RPC_USER_PARAM_H

#include <stdbool.h>

#include "params.h"
#include "user.h"

struct user_param {
    struct text name;
    bool by_numbers;
    long long uid, gid;
    struct ints groups;
    struct text home; /* s == NULL: that of the passwd entry */
};

/* The members of the object. */
extern const struct params_table user_param_numbers;

/* For what no model has chosen, but who set the evaluation up: a user, an MCP server. Hosts of the inspect-*
 * names end a sample by an internal error, and would show another one to the model and go on. */
void err_of_setting(struct err *err);

/* False: the parameter was not given. */
bool user_param_given(const struct user_param *p);

/* Looks up who that is. ERR_TOOL, as one of a setting, when there is no such user. */
int user_param_find(const struct user_param *p, struct user *u, struct err *err);

/* The same, followed by user_wanted; *other is false when the parameter was not given. */
int user_param_wanted(const struct user_param *p, struct user *u, bool *other, struct err *err);

#endif
