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
#include "mem.h"
#include "params.h"
#include "text_editor_controller.h"

struct names {
    struct text run_as_user, run_as;
};
static const struct param run_as_user_param[] = {
    {.key = "_run_as_user", .type = PARAM_TEXT, .offset = offsetof(struct names, run_as_user)},
};
static const struct param run_as_param[] = {
    {.key = "_run_as", .type = PARAM_TEXT, .offset = offsetof(struct names, run_as)},
};

struct numbers {
    long long uid, gid;
    struct ints groups;
    struct text home;
};
#define ID_MAX 4294967294.0
static const struct param numbers_params[] = {
    {.key = "uid",
     .type = PARAM_INT,
     .offset = offsetof(struct numbers, uid),
     .required = true,
     .max = ID_MAX},
    {.key = "gid",
     .type = PARAM_INT,
     .offset = offsetof(struct numbers, gid),
     .required = true,
     .max = ID_MAX},
    {.key = "groups", .type = PARAM_INTS, .offset = offsetof(struct numbers, groups), .max = ID_MAX},
    {.key = "home", .type = PARAM_TEXT, .offset = offsetof(struct numbers, home)},
};

#define TABLE(array)                                                                                         \
    {                                                                                                        \
        .list = (array), .n = sizeof(array) / sizeof *(array), .ignore_unknown = true                        \
    }
static const struct params_table run_as_user_table = TABLE(run_as_user_param);
static const struct params_table run_as_table = TABLE(run_as_param);
static const struct params_table numbers_table = TABLE(numbers_params);

static int by_name(struct edit_user *u, const struct text *name, struct err *err)
{
    if (memchr(name->s, '\0', name->n))
        return err_set(err, ERR_TOOL, "There is no user of a name that holds a NUL character");
    if (user_lookup(&u->user, name->s, err) < 0)
        return -1;
    u->given = true;
    return 0;
}

static int by_numbers(struct edit_user *u, struct span value, struct err *err)
{
    struct numbers n = {0};
    if (params_unpack(&numbers_table, value, &n, err) < 0)
        return -1;
    if (n.groups.n >= USER_GROUPS_MAX) {
        params_release(&numbers_table, &n);
        return err_set(err, ERR_PARAMS, "Invalid parameters: _run_as.groups: has more than %d members",
                       USER_GROUPS_MAX - 1);
    }
    u->user = (struct user){
        .uid = (uid_t)n.uid, .gid = (gid_t)n.gid, .home = mem_strdup("/"), .shell = mem_strdup("")};
    u->user.groups = mem_alloc((n.groups.n + 1) * sizeof *u->user.groups);
    u->user.groups[u->user.n_groups++] = u->user.gid;
    for (size_t i = 0; i < n.groups.n; i++)
        if ((gid_t)n.groups.list[i] != u->user.gid)
            u->user.groups[u->user.n_groups++] = (gid_t)n.groups.list[i];
    u->given = true;
    params_release(&numbers_table, &n);
    return 0;
}

int edit_user_take(struct edit_user *u, struct span params, struct err *err)
{
    struct names names = {.run_as = {NULL, 0}};
    struct span run_as;
    int rc;
    if (params_unpack(&run_as_user_table, params, &names, err) < 0)
        return -1;
    if (names.run_as_user.s)
        rc = by_name(u, &names.run_as_user, err);
    else if (params.s && json_member(params, "_run_as", &run_as, NULL) && json_kind(run_as) == JSON_OBJECT)
        rc = by_numbers(u, run_as, err);
    else
        rc = params_unpack(&run_as_table, params, &names, err);
    if (rc == 0 && names.run_as.s)
        rc = by_name(u, &names.run_as, err);
    params_release(&run_as_user_table, &names);
    params_release(&run_as_table, &names);
    if (rc == 0 && u->given && user_is_self(&u->user))
        u->given = false;
    return rc;
}

void edit_user_release(struct edit_user *u)
{
    user_release(&u->user);
}

/* What the child says: the error's code (0: none), then the answer or the error's message. */
static _Noreturn void run_child(const struct edit_user *u, const struct edit_request *request, int out)
{
    struct buf answer = BUF_INIT;
    struct err err = {0};
    /* Our place is not that user's; he has his own. */
    unsetenv("TOOLBOX_DIR");
    unsetenv("INSPECT_SANDBOX_TOOLS_DIR");
    int rc = user_become(&u->user, &err);
    if (rc == 0) {
        /* Killed with us: what it does is whole or not there at any moment. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
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
    pid_t pid = fork();
    if (pid == 0)
        run_child(u, request, ends[1]);
    close(ends[1]);
    int in FD_AUTO = ends[0];
    if (pid < 0)
        return err_sys(err, ERR_TOOL, errno, "The work can't be done as another user");
    struct buf said BUF_AUTO = BUF_INIT;
    int rc = io_read_all(in, &said);
    int status = wait_for(pid);
    int code;
    if (rc < 0 || said.len < sizeof code || status != 0)
        return err_set(err, ERR_TOOL,
                       "The process that did the work as another user was ended before it was done");
    memcpy(&code, said.data, sizeof code);
    if (code == 0)
        return buf_add(answer, said.data + sizeof code, said.len - sizeof code);
    return err_set(err, code, "%s", said.data + sizeof code);
}
