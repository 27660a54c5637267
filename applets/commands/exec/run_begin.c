#include "run_begin.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ends.h"
#include "io.h"
#include "mem.h"
#include "params.h"
#include "pty.h"
#include "run_keeper.h"
#include "self.h"
#include "spawn.h"
#include "user_param.h"

#define SECONDS_MAX 1e9
#define TERMINAL_MAX 65535

struct run_params {
    struct texts argv, env;
    struct text cwd;
    struct user_param user;
    bool stdin_open, terminal, self;
    long long rows, cols;
    double timeout_s;
};

#define AT(member) offsetof(struct run_params, member)
static const struct param list[] = {
    {.key = "argv", .type = PARAM_NAMES, .offset = AT(argv), .required = true},
    {.key = "env", .type = PARAM_ENV, .offset = AT(env)},
    {.key = "cwd", .type = PARAM_NAME, .offset = AT(cwd)},
    {.key = "user", .type = PARAM_USER, .offset = AT(user)},
    {.key = "stdin_open", .type = PARAM_BOOL, .offset = AT(stdin_open)},
    {.key = "terminal", .type = PARAM_BOOL, .offset = AT(terminal)},
    {.key = "self", .type = PARAM_BOOL, .offset = AT(self)},
    {.key = "rows", .type = PARAM_INT, .offset = AT(rows), .max = TERMINAL_MAX},
    {.key = "cols", .type = PARAM_INT, .offset = AT(cols), .max = TERMINAL_MAX},
    {.key = "timeout", .type = PARAM_NUMBER, .offset = AT(timeout_s), .max = SECONDS_MAX},
};
static const struct params_table table = PARAMS_TABLE(list);

/* The program's own ends are in start->fds; ours in *r. */
static int open_ends(struct run_begun *r, const struct run_params *p, const struct user *user,
                     struct run_start *start, struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    struct pty terminal = PTY_INIT;
    if (p->terminal) {
        if (pty_open(&terminal, (unsigned short)p->rows, (unsigned short)p->cols, user, err) < 0)
            return -1;
        pty_make_plain(&terminal);
        for (int i = 0; i < 3; i++)
            start->fds[i] = i == 0 ? terminal.slave : fcntl(terminal.slave, F_DUPFD_CLOEXEC, 3);
        r->in = r->out[0] = terminal.master;
        r->slave = fcntl(terminal.slave, F_DUPFD_CLOEXEC, 3);
        return 0;
    }
    if (io_pipes(pipes + (p->stdin_open ? 0 : 1), p->stdin_open ? 3 : 2) < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot make a pipe");
        for (int i = 0; i < 6; i++)
            io_close(&pipes[i / 2][i % 2]);
        return -1;
    }
    for (int i = 0; i < 3; i++)
        start->fds[i] = pipes[i][i == 0 ? 0 : 1];
    if (pipes[0][1] >= 0)
        r->in = io_take(&pipes[0][1]);
    r->out[0] = io_take(&pipes[1][0]);
    r->out[1] = io_take(&pipes[2][0]);
    return 0;
}

/* With `self` in front the program that we are, which is freed. */
static char **words_of(const struct run_params *p)
{
    char **words = mem_alloc((p->argv.n + 2) * sizeof *words);
    if (p->self)
        words[0] = self_path();
    memcpy(words + p->self, p->argv.list, (p->argv.n + 1) * sizeof *words);
    return words;
}

/* What is added to our environment; for `self` also what of it is ours alone, and otherwise left out. */
static char **env_of(const struct run_params *p, const struct user *user)
{
    size_t ours = 0;
    while (p->self && environ[ours])
        ours++;
    char **extra MEM_AUTO = mem_alloc((ours + p->env.n + 1) * sizeof *extra);
    memcpy(extra, environ, ours * sizeof *extra);
    for (size_t i = 0; i < p->env.n; i++)
        extra[ours + i] = p->env.list[i];
    extra[ours + p->env.n] = NULL;
    return spawn_env(environ, extra, user);
}

static int start(struct run_begun *r, const struct run_params *p, const struct user *user, struct err *err)
{
    char **env = env_of(p, user);
    char **argv MEM_AUTO = words_of(p), *own MEM_AUTO = p->self ? argv[0] : NULL;
    struct run_start how = {.argv = argv,
                            .env = env,
                            .cwd = p->cwd.s,
                            .user = user,
                            .fds = {-1, -1, -1},
                            .terminal = p->terminal,
                            .timeout_ms = p->timeout_s < 0 ? -1 : (long long)(p->timeout_s * 1000),
                            .descriptors = ends.descriptors};
    (void)own; /* freed at the end */
    if (!argv[0])
        err_set(err, ERR_TOOL, "this program can't tell its own path");
    else if (open_ends(r, p, user, &how, err) == 0)
        r->control = run_keeper_start(ends.loop, &how, err);
    for (int i = 0; i < 3; i++)
        io_close(&how.fds[i]);
    spawn_env_free(env);
    return r->control < 0 ? -1 : 0;
}

static void close_all(struct run_begun *b)
{
    if (b->in != b->out[0])
        io_close(&b->in);
    io_close(&b->out[0]);
    io_close(&b->out[1]);
    io_close(&b->slave);
}

int run_begin(struct run_begun *b, struct span params, struct err *err)
{
    struct run_params p = {.timeout_s = -1};
    struct user user = {0};
    bool other = false;
    if (params_unpack(&table, params, &p, err) < 0)
        return -1;
    *b = (struct run_begun){.in = -1, .out = {-1, -1}, .slave = -1, .control = -1};
    int result = p.argv.n > 0 ? user_param_wanted(&p.user, &user, &other, err)
                              : err_set(err, ERR_PARAMS, "Invalid parameters: argv: names no program");
    if (result == 0)
        result = start(b, &p, other ? &user : NULL, err);
    if (result < 0)
        close_all(b);
    b->terminal = p.terminal;
    b->stdin_open = p.stdin_open;
    if (other)
        user_release(&user);
    params_release(&table, &p);
    return result;
}
