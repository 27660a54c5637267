#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "commands/confine/walls.h"
#include "io.h"
#include "job_internal.h"
#include "signals.h"

#define GRACE_MS 5000
#define LIMIT_MS 6500 /* a kill is answered within 7 s */
#define TOLD_BY_SHELL 128

/* ---- the end ---- */

/* Killed by the kernel for want of memory, or its shell tells that of what it waited for. */
static bool is_oom(const struct job *j, int status)
{
    bool by_kill =
        WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == TOLD_BY_SHELL + SIGKILL;
    return by_kill && !j->kill.began && !j->oom.counter && cgroup_oom_kills() > j->oom.kills;
}

/* Within the time that a limit gives it. */
static void note_limit(struct job *j, int status)
{
    enum confine_what met = walls_limit_met(j->walls, status);
    if (j->record.end.limit == 0 && met != CONFINE_PARTS)
        j->record.end.limit = (unsigned char)(met + 1);
    if (met == CONFINE_MEMORY)
        j->record.end.oom_killed = true;
}

static void main_ended(void *arg, pid_t pid, int status)
{
    struct job *j = arg;
    struct record_end *end = &j->record.end;
    (void)pid;
    j->reaped = true;
    end->ended_ms = now_ms();
    loop_drop(&j->timeout);
    job_finish_streams(j);
    job_look_at_rest(j);
    job_stdin_drop(j);
    end->exit_code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    end->killed = j->kill.began;
    end->oom_killed = is_oom(j, status);
    note_limit(j, status);
    loop_drop(&j->oom.counter); /* too late to begin */
    job_notify(j);
}

static void other_ended(void *arg, pid_t pid, int status)
{
    (void)pid;
    (void)status;
    job_notify(arg);
}

static void tree_ended(void *arg, size_t left)
{
    struct job *j = arg;
    j->kill.left = left;
    j->kill.ending = NULL;
    job_waiters_wake(&j->waiting.end);
    job_notify(j);
}

static void begin_kill(struct job *j)
{
    struct tree_end_options all = {.group = j->pid, .grace_ms = GRACE_MS, .limit_ms = LIMIT_MS};
    j->kill.began = !j->reaped;
    if (!j->kill.ending)
        j->kill.ending = tree_end(j->loop, &all, tree_ended, j);
}

void job_kill(struct job *j, struct job_waiter *w)
{
    job_waiters_add(&j->waiting.end, w);
    begin_kill(j);
}

void job_abandon(struct job *j)
{
    if (!j->reaped)
        begin_kill(j);
}

static void on_timeout(void *arg)
{
    struct job *j = arg;
    j->record.end.timed_out = true;
    if (j->walls && j->walls->wanted[CONFINE_WALL_SECONDS])
        j->record.end.limit = CONFINE_WALL_SECONDS + 1;
    begin_kill(j);
}

int job_signal(struct job *j, const char *name, struct err *err)
{
    int signal = signal_number(name);
    if (signal < 0)
        return err_set(err, ERR_TOOL, "'%s' is no signal; name one as INT, SIGTERM or 15", name);
    if (!proc_group_is_ours(j->pid))
        return err_set(err, ERR_TOOL, "job %ld has ended", (long)j->pid);
    return kill(-j->pid, signal) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "cannot signal the job");
}

pid_t job_hang_up(struct job *j)
{
    job_stdin_drop(j);
    loop_drop(&j->timeout);
    j->kill.began = !j->reaped;
    return j->pid;
}

/* ---- the beginning ---- */

static int open_pipes(int pipes[3][2], bool with_stdin, struct err *err)
{
    for (int i = with_stdin ? 0 : 1; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            return err_sys(err, ERR_TOOL, errno, "cannot make a pipe");
    return 0;
}

static pid_t run(const struct job_options *o, int pipes[3][2], struct err *err)
{
    const char *programs[] = {o->argv[0], NULL};
    struct spawn s = {
        .programs = programs,
        .argv = o->argv,
        .env = o->env,
        .cwd = o->cwd,
        .start_dir = o->start_dir,
        .user = o->user,
        .confine = o->walls,
        .fds = {pipes[0][0], pipes[1][1], pipes[2][1]},
        .umask = {o->umask >= 0, (mode_t)(o->umask & 0777)},
        .terminal = o->rows > 0,
        .victim = true,
        .accept = o->accept,
    };
    return spawn(&s, NULL, err);
}

/* Not before the start is answered: it takes many files. Nothing can use up the memory in that time. */
static void count_oom_kills(void *arg)
{
    struct job *j = arg;
    loop_drop(&j->oom.counter);
    j->oom.kills = cgroup_oom_kills();
}

static void watch_process(struct job *j, int64_t timeout_ms)
{
    if (!j->reaped)
        loop_child(j->loop, j->pid, main_ended, j);
    loop_child(j->loop, 0, other_ended, j);
    if (timeout_ms >= 0 && !j->reaped)
        j->timeout = loop_timer(j->loop, timeout_ms, on_timeout, j);
}

static void watch(struct job *j, const struct job_options *o, int pipes[3][2])
{
    for (int i = 0; i < 2; i++) {
        job_open_stream(j, i, pipes[1 + i][0]);
        pipes[1 + i][0] = -1;
    }
    if (pipes[0][1] >= 0) {
        io_set_nonblock(pipes[0][1], true);
        j->in.fd = pipes[0][1];
        pipes[0][1] = -1;
    }
    if (o->stdin_open || (j->terminal && o->input_len == 0)) /* what has a terminal waits for somebody */
        job_stdin_flush(j);
    else
        job_close_stdin(j);
    watch_process(j, o->timeout_ms);
    j->oom.counter = loop_timer(j->loop, 1, count_oom_kills, j);
}

void job_watch_again(struct job *j, long long timeout_ms)
{
    job_resume_streams(j);
    job_stdin_flush(j);
    watch_process(j, timeout_ms);
}

int job_start(struct job *j, struct loop *loop, const struct job_options *o, struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    *j = (struct job){
        .loop = loop,
        .record = RECORD_INIT,
        .latin1 = o->latin1,
        .walls = o->walls,
        .out = {{.fd = -1}, {.fd = -1}},
        .terminal = o->rows > 0,
        .in = {.fd = -1, .ever_open = o->stdin_open || o->rows > 0},
    };
    int result = -1;
    if (job_stdin_add(j, o->input, o->input_len) < 0)
        err_set(err, ERR_TOOL, "the input has characters that are not in latin-1");
    else if ((j->terminal ? job_open_terminal(o, pipes, err)
                          : open_pipes(pipes, o->input_len > 0 || o->stdin_open, err)) == 0)
        result = j->pid = j->record.pid = run(o, pipes, err);
    if (result > 0)
        watch(j, o, pipes);
    for (int i = 0; i < 6; i++)
        io_close(&pipes[i / 2][i % 2]);
    return result > 0 ? 0 : -1;
}
