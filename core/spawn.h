/* Starting a program as a child that starts clean: no descriptor but those it is given, no blocked or ignored
 * signal, none of our private variables, the starter's umask, its own session and process group.
 *
 * Failures after the fork (directory, user, program) come back through a pipe as typed errors, so that a
 * child that never ran is never taken for one that ended. */
#ifndef CORE_SPAWN_H
#define CORE_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

struct user;
struct confine;

#define SPAWN_MORE_MAX 2

/* Which pid will do; `asked` NULL: any. Asked in the child before it runs anything, as whoever starts it:
 * whether its pid will do, when `refused` others would not. 1: yes; 0: no, the child is ended and another one
 * made; -1 with err: none will. The child may share this process's memory and may not: it neither allocates
 * nor changes anything there. */
struct spawn_accept {
    int (*asked)(void *arg, pid_t pid, unsigned refused, struct err *err);
    void *arg;
    pid_t *pid; /* may be NULL; set to the one that would do, also where then nothing could be run */
};

struct spawn {
    const char *const *programs; /* paths (or a name without slash, looked for in PATH of env) to try in this
                                    order; NULL at the end */
    char *const *argv;
    char *const *env;
    const char *path;        /* directories that names are looked for in; NULL: PATH of env */
    const char *cwd;         /* from start_dir, or where we are; NULL: start_dir, or "/" where it is gone */
    int start_dir;           /* descriptor, -1: none */
    const struct user *user; /* NULL: stay who we are */
    int fds[3];              /* become 0, 1, 2; -1: /dev/null */
    const int *more;         /* the n_more (at most SPAWN_MORE_MAX) become 3, 4, … */
    int n_more;
    bool terminal; /* fds[0] is a terminal that becomes the controlling one; where it is this process's, the
                      child  stays in the session, in a group of its own in the foreground */
    struct {
        bool given; /* otherwise the starter's */
        mode_t value;
    } umask;
    const struct confine
        *confine; /* prepared walls and limits (confine.h), behind code_unpack(); NULL: none */
    bool victim;  /* the out-of-memory killer shall take it first (oom_score_adj 1000) */
    struct spawn_accept accept;
};

/* How a message goes on behind the program's name and ": " where it isn't there. */
#define SPAWN_NOT_FOUND "not found"

/* Starts it, within 10 s where the child has memory of its own (as that of another user, who may stop it):
 * then it is killed. Returns the pid; *program (may be NULL) is the index of the program that was started. -1
 * with ERR_TOOL that names what can't be used and why. */
pid_t spawn(const struct spawn *s, int *program, struct err *err);

/* Resource limits of what this process starts from now on: three numbers each, resource, soft and hard limit
 * (-1: none); the list stays. What is above a hard limit that can't be raised is as high as that. */
void spawn_set_limits(const long long *list, size_t n);

/* Looks which signals are at their default, once for this process and those that it forks: then not all of
 * them have to be reset in every child. Those that are handled or ignored later are SIGHUP, SIGINT, SIGTERM,
 * SIGCHLD, SIGPIPE, SIGTTOU and SIGXFSZ. */
void spawn_know_signals(void);

/* Every signal at its default, and none blocked, as for a program that is started. */
void spawn_reset_signals(void);

/* The environment for a child: base (NULL-terminated) without our private variables, overlaid with `extra`
 * ("NAME=value", may be NULL), and for a user other than this process's with HOME, USER, LOGNAME and SHELL of
 * the user, where `extra` doesn't set them. free() each string and the list with spawn_env_free. */
char **spawn_env(char *const *base, char *const *extra, const struct user *user);
void spawn_env_free(char **env);

/* Value of a variable in such a list, NULL when it isn't there. */
const char *spawn_env_get(char *const *env, const char *name);

#endif
