#include "user_param.h"

#include <stddef.h>

#include "title.h"

#define AT(member) offsetof(struct user_param, member)
#define ID_MAX 4294967294.0

static const struct param numbers_list[] = {
    {.key = "uid",
     .type = PARAM_INT,
     .offset = AT(uid),
     .required = true,
     .max = ID_MAX,
     PARAM_DOC("User id", NULL)},
    {.key = "gid",
     .type = PARAM_INT,
     .offset = AT(gid),
     .required = true,
     .max = ID_MAX,
     PARAM_DOC("Group id", NULL)},
    {.key = "groups",
     .type = PARAM_INTS,
     .offset = AT(groups),
     .required = true,
     .max = ID_MAX,
     PARAM_DOC("More groups", NULL)},
    {.key = "home",
     .type = PARAM_NAME,
     .offset = AT(home),
     PARAM_DOC("Home directory", "that of the uid's entry in /etc/passwd")},
};
const struct params_table user_param_numbers = PARAMS_TABLE(numbers_list);

void err_of_setting(struct err *err)
{
    if (title_is_inspect() && err->code == ERR_TOOL)
        err->code = ERR_INTERNAL;
}

bool user_param_given(const struct user_param *p)
{
    return p->by_numbers || p->name.s;
}

static int find_numbers(const struct user_param *p, struct user *u, struct err *err)
{
    gid_t groups[USER_GROUPS_MAX];
    size_t n = 0;
    groups[n++] = (gid_t)p->gid;
    if (p->groups.n >= USER_GROUPS_MAX)
        return err_set(err, ERR_PARAMS, "Invalid parameters: groups: has more than %d members",
                       USER_GROUPS_MAX - 1);
    for (size_t i = 0; i < p->groups.n; i++)
        if (p->groups.list[i] != p->gid)
            groups[n++] = (gid_t)p->groups.list[i];
    user_of_numbers(u, (uid_t)p->uid, groups, n, p->home.s);
    return 0;
}

int user_param_find(const struct user_param *p, struct user *u, struct err *err)
{
    if (p->by_numbers)
        return find_numbers(p, u, err);
    if (user_lookup(u, p->name.s, err) == 0)
        return 0;
    err_of_setting(err);
    return -1;
}

int user_param_wanted(const struct user_param *p, struct user *u, bool *other, struct err *err)
{
    *other = false;
    if (!user_param_given(p))
        return 0;
    return user_param_find(p, u, err) < 0 ? -1 : user_wanted(u, other, err);
}
