#include "work_as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "policy_rules.h"

#define SAID_MAX (64u << 20) /* answers are shorter */
#define WORK_MS 60000        /* the user may stop the process that does the work */

int work_user_take(struct work_user *u, const struct user_param *wish, struct err *err)
{
    if (!user_param_given(wish))
        return policy_rules_user(NULL, err);
    if (user_param_find(wish, &u->user, err) < 0 || policy_rules_user(&u->user, err) < 0)
        return -1;
    u->given = !user_is_self(&u->user);
    return 0;
}

void work_user_release(struct work_user *u)
{
    user_release(&u->user);
}

/* What the child says: the error's code (0: none), its message and a NUL, and the answer. */
static void say(int out, int rc, const struct err *err, const struct buf *answer)
{
    int code = rc < 0 ? err->code : 0;
    const char *message = rc < 0 ? err->msg : "";
    if (io_write_all(out, &code, sizeof code) == 0 && io_write_all(out, message, strlen(message) + 1) == 0)
        io_write_all(out, buf_str(answer), answer->len);
}

static _Noreturn void run_child(const struct user *user, work_fn work, const void *arg, pid_t parent, int out)
{
    struct buf answer = BUF_INIT;
    struct err err = {0};
    if (user->uid != geteuid()) { /* our place is not that user's; he has his own */
        unsetenv("TOOLBOX_DIR");
        unsetenv("INSPECT_SANDBOX_TOOLS_DIR");
    }
    int rc = user_become(user, &err);
    if (rc == 0) {
        /* Killed with us: what it does is whole or not there at any moment. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1); /* it was killed before */
        rc = work(arg, &answer, &err);
    }
    say(out, rc, &err, &answer);
    _exit(0);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Takes apart what the child has said; `whole` is false where it was killed before the end of it. */
static int take(const struct buf *said, bool whole, struct buf *answer, struct err *err)
{
    int code = 1;
    const char *message = buf_str(said) + sizeof code;
    const char *end = said->len > sizeof code ? memchr(message, '\0', said->len - sizeof code) : NULL;
    if (whole && end)
        memcpy(&code, said->data, sizeof code);
    if (code > 0)
        return err_set(err, ERR_TOOL,
                       "The process that did the work as another user was ended before it was done");
    buf_add(answer, end + 1, said->len - (size_t)(end + 1 - said->data));
    return code == 0 ? 0 : err_set(err, code, "%s", message);
}

int work_as_user(const struct work_user *u, work_fn work, const void *arg, struct buf *answer,
                 struct err *err)
{
    if (!u->given)
        return work(arg, answer, err);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "The work can't be done as another user");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        run_child(&u->user, work, arg, parent, ends[1]);
    close(ends[1]);
    int in FD_AUTO = ends[0];
    if (pid < 0)
        return err_sys(err, ERR_TOOL, errno, "The work can't be done as another user");
    struct buf said BUF_AUTO = {.max = SAID_MAX};
    int rc = io_read_within(in, WORK_MS, &said);
    bool late = rc < 0 && errno == ETIMEDOUT;
    if (rc < 0)
        kill(pid, SIGKILL);
    io_close(&in);
    int status = wait_for(pid);
    if (late)
        return err_set(
            err, ERR_TOOL,
            "The process that did the work as another user was not done within %d s (was it stopped?), "
            "and was killed",
            WORK_MS / 1000);
    return take(&said, rc == 0 && status == 0, answer, err);
}
