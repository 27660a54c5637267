/* What of a server's policy (commands/confine/server_policy.h) is asked for at every call. It stands in the
 * place as a file, where every server finds it that is started there, and every client, which then asks the
 * server for all that it would do itself. */
#ifndef RPC_POLICY_RULES_H
#define RPC_POLICY_RULES_H

#include "params.h"
#include "user.h"

#define SERVER_POLICY "policy"

struct policy_rules {
    struct texts methods, refuse; /* patterns of names */
    struct texts users;
    bool walls; /* around what is started: what none can be put around is to be named by `methods` itself */
};

#ifdef TOOLBOX_GUEST
#define policy_rules_there() false
#define policy_rules_user(u, err) 0
#else

extern const struct policy_rules *policy_rules; /* NULL: none */

/* Whether a policy stands in a place of this user. */
bool policy_rules_there(void);
/* Whether the method may be called. */
bool policy_rules_allow(const char *method);
/* Whether that user may do the work (NULL: this process's): -1 with ERR_TOOL. */
int policy_rules_user(const struct user *u, struct err *err);

#endif

#endif
