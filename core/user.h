/* Who a name or a number is, from /etc/passwd and /etc/group alone: the name service switch can't be
 * had in a static binary, and a uid without an entry is normal in containers. */
#ifndef CORE_USER_H
#define CORE_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

#define USER_GROUPS_MAX 1024

struct user {
    uid_t uid;
    gid_t gid;
    char *name;    /* NULL: no entry */
    char *home;    /* never NULL: "/" where there is no entry or the entry's is empty */
    char *shell;   /* never NULL, may be "" */
    gid_t *groups; /* all of the user's groups, gid first */
    size_t n_groups;
    bool exact; /* gid and groups are meant, whoever has that uid: they were given as numbers */
};

/* Looks up a name as users type it for a process: a passwd name, or where there is no such name, a uid in
 * decimal; one without an entry gets the gid of the same number, so that nothing of root's comes along.
 * ERR_TOOL when there is no such user, "" included. */
int user_lookup(struct user *u, const char *name, struct err *err);

/* The passwd entry of a uid, or just the number where there is none. Always succeeds. */
void user_of_uid(struct user *u, uid_t uid);

void user_release(struct user *u);
#define USER_AUTO __attribute__((cleanup(user_release)))

/* True when this process is that user already: real and effective uid; as root the gid too (two names of uid
 * 0 may have different ones); and all groups where exactly those are meant. */
bool user_is_self(const struct user *u);

/* Takes the numbers, exactly as they are (at most USER_GROUPS_MAX groups, gid first). Name and shell, and
 * with home NULL the home, are those of the uid's passwd entry. Always succeeds. */
void user_of_numbers(struct user *u, uid_t uid, const gid_t *groups, size_t n, const char *home);

/* Whether a program can run as *u. *other: it is somebody else than this process's own user, or has other
 * groups, whom only root may become (ERR_TOOL); only then *u is kept, otherwise it is released. */
int user_wanted(struct user *u, bool *other, struct err *err);

/* Becomes the user for good: groups, gid, uid, all three of each, and proves it. To be called in a child
 * or a process that ends afterwards. ERR_TOOL with the step that failed; then nothing may be run. */
int user_become(const struct user *u, struct err *err);

/* What a uid is shown as: its name, or its number where it has none; free() it. */
char *user_label(uid_t uid);

/* Name of a group, NULL when it has none; free() it. */
char *user_group_name(gid_t gid);

#endif
