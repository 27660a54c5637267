#include "policy_rules.h"

#ifndef TOOLBOX_GUEST

#include <string.h>
#include <unistd.h>

#include "glob.h"
#include "io.h"
#include "place.h"

const struct policy_rules *policy_rules;

bool policy_rules_there(void)
{
    struct buf path BUF_AUTO = BUF_INIT;
    bool found = false;
    for (unsigned n = 0; !found && place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        size_t length = path.len;
        buf_adds(&path, "/" SERVER_POLICY);
        bool there = access(path.data, F_OK) == 0;
        buf_truncate(&path, length);
        found =
            there && place_enter(&place, path.data, false, NULL) == 0 && io_is_there(place.fd, SERVER_POLICY);
    }
    return found;
}

static bool matches(const struct texts *patterns, const char *name)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (glob_match(patterns->list[i], name))
            return true;
    return false;
}

/* A browser and a desktop, with what is opened there, are behind no walls. */
static bool begins_without_walls(const struct policy_rules *p, const char *method)
{
    if (!p->walls || (strcmp(method, "web_new_session") != 0 && strcmp(method, "computer_new_session") != 0))
        return false;
    for (size_t i = 0; i < p->methods.n; i++)
        if (strcmp(p->methods.list[i], method) == 0)
            return false;
    return true;
}

bool policy_rules_allow(const char *method)
{
    static const char *const always[] = {"version", "remote_version"};
    const struct policy_rules *p = policy_rules;
    if (!p || *method == '_' || strncmp(method, "toolbox_", 8) == 0) /* between programs */
        return true;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(method, always[i]) == 0)
            return true;
    return !begins_without_walls(p, method) && !matches(&p->refuse, method) &&
           (!p->methods.list || matches(&p->methods, method));
}

int policy_rules_user(const struct user *u, struct err *err)
{
    const struct policy_rules *p = policy_rules;
    uid_t uid = u ? u->uid : geteuid();
    bool found = !p || !p->users.list;
    for (size_t i = 0; !found && i < p->users.n; i++) {
        struct user one;
        if (user_lookup(&one, p->users.list[i], NULL) < 0)
            continue;
        found = one.uid == uid;
        user_release(&one);
    }
    return found ? 0
                 : err_set(err, ERR_TOOL,
                           "refused by the policy of this server: nothing is done there as user %ld",
                           (long)uid);
}

#endif
