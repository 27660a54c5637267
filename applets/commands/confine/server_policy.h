/* The policy of a whole server, which its owner sets and no caller can widen: which methods and users there
 * are, what may be used up, walls around all that is started, directories for the editor and the file
 * methods, and a log of calls. */
#ifndef APPLETS_CONFINE_SERVER_POLICY_H
#define APPLETS_CONFINE_SERVER_POLICY_H

#include "policy_rules.h"
#include "rpc.h"
#include "walls.h"

struct server_policy {
    struct policy_rules rules;
    struct texts directories;
    struct walls_params walls;     /* the walls around all, and the most of what can be used up */
    struct walls_params otherwise; /* where a call says nothing of it */
    struct text audit_file;
    long long audit_max, audit_keep;
    bool audit_contents;
};

#ifndef TOOLBOX_GUEST

extern const struct server_policy *server_policy; /* NULL: none */

/* ---- packed code (core/code_parts.def): behind code_unpack(CODE_confine) ---- */

/* Reads and checks one, which is this process's from then on; `names` are those of all methods. -1 with
 * ERR_TOOL and what is wrong. */
int server_policy_load(int dirfd, const char *path, const char *const *names, struct err *err);
/* Writes one that was checked into a place. */
int server_policy_put(int place, const char *path, struct err *err);
/* Confines this process to the directories, for the work of one call. */
int server_policy_enter(struct err *err);
/* What a call says nothing of. */
void server_policy_fill(struct walls_params *p);
/* Lets *c do no more than the policy: -1 with ERR_TOOL where that can't be said. */
int server_policy_narrow(struct confine *c, struct err *err);
void server_policy_audit(const struct rpc_done *done);

#endif

#endif
