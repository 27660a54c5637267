#include "edit_as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "text_editor_controller.h"
#include "user_param.h"

#define SAID_MAX (1u << 20) /* answers are far shorter */
#define WORK_MS 60000       /* the user may stop the process that does the work */

int edit_user_take(struct edit_user *u, const struct user_param *wish, struct err *err)
{
    if (!user_param_given(wish))
        return 0;
    if (user_param_find(wish, &u->user, err) < 0)
        return -1;
    u->given = !user_is_self(&u->user);
    return 0;
}

void edit_user_release(struct edit_user *u)
{
    user_release(&u->user);
}

/* What the child says: the error's code (0: none), then the answer or the error's message. */
static _Noreturn void run_child(const struct edit_user *u, const struct edit_request *request, pid_t parent,
                                int out)
{
    struct buf answer = BUF_INIT;
    struct err err = {0};
    if (u->user.uid != geteuid()) { /* our place is not that user's; he has his own */
        unsetenv("TOOLBOX_DIR");
        unsetenv("INSPECT_SANDBOX_TOOLS_DIR");
    }
    int rc = user_become(&u->user, &err);
    if (rc == 0) {
        /* Killed with us: what it does is whole or not there at any moment. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1); /* it was killed before */
        rc = text_editor_run(request, &answer, &err);
    }
    int code = rc < 0 ? err.code : 0;
    if (io_write_all(out, &code, sizeof code) == 0) {
        if (rc < 0)
            io_write_all(out, err.msg, strlen(err.msg));
        else
            io_write_all(out, buf_str(&answer), answer.len);
    }
    _exit(0);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

int edit_as_user(const struct edit_user *u, const struct edit_request *request, struct buf *answer,
                 struct err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "The work can't be done as another user");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        run_child(u, request, parent, ends[1]);
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
    int code = 0;
    bool whole = rc == 0 && status == 0 && said.len >= sizeof code;
    if (whole)
        memcpy(&code, said.data, sizeof code);
    if (!whole || code > 0)
        return err_set(err, ERR_TOOL,
                       "The process that did the work as another user was ended before it was done");
    if (code == 0)
        return buf_add(answer, said.data + sizeof code, said.len - sizeof code);
    return err_set(err, code, "%s", said.data + sizeof code);
}
