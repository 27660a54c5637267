#include "run_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "keeper.h"
#include "loop.h"
#include "mem.h"
#include "place.h"
#include "proc.h"
#include "spawn.h"

#define GRACE_MS 2000
#define LIMIT_MS 10000

enum { STATUS_UNUSABLE = 126, STATUS_NOT_FOUND = 127, STATUS_BY_SIGNAL = 128, STATUS_TIMED_OUT = 124 };

static MEM_LARGE struct {
    struct loop *loop;
    int control;
    pid_t pid;
    struct loop_source *heard;
    struct run_told told;
    bool ending;
} my;

static void tell(void)
{
    if (send(my.control, &my.told, sizeof my.told, MSG_NOSIGNAL) < 0) {
        /* nobody is there any more */
    }
}

static void all_ended(void *arg, size_t left)
{
    (void)arg, (void)left;
    loop_stop(my.loop, 0);
}

/* All that was started; the end of the loop is the end of that. */
static void end_all(void)
{
    struct tree_end_options all = {.group = my.pid, .grace_ms = GRACE_MS, .limit_ms = LIMIT_MS};
    if (my.ending)
        return;
    my.ending = true;
    tree_end(my.loop, &all, all_ended, NULL);
}

static void main_ended(void *arg, pid_t pid, int status)
{
    (void)arg, (void)pid;
    my.told.status = WIFSIGNALED(status) ? STATUS_BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    if (my.told.timed_out)
        my.told.status = STATUS_TIMED_OUT;
    tell();
    if (!my.ending)
        loop_stop(my.loop, 0); /* what it has left in the background is its own matter, as with any runtime */
}

static void on_control(void *arg, int events)
{
    unsigned char number;
    (void)arg, (void)events;
    ssize_t n = recv(my.control, &number, 1, MSG_DONTWAIT);
    if (n == 1 && proc_group_is_ours(my.pid))
        kill(-my.pid, number);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    loop_drop(&my.heard);
    end_all();
}

static void on_timeout(void *arg)
{
    (void)arg;
    my.told.timed_out = true;
    end_all();
}

static int status_of(const struct err *err, const char *program)
{
    size_t n = strlen(program);
    bool named = strncmp(err->msg, program, n) == 0 && strncmp(err->msg + n, ": ", 2) == 0;
    bool absent = named && strncmp(err->msg + n + 2, SPAWN_NOT_FOUND, strlen(SPAWN_NOT_FOUND)) == 0;
    return absent ? STATUS_NOT_FOUND : STATUS_UNUSABLE;
}

static int start_program(const struct run_start *start, int here, struct err *err)
{
    const char *programs[] = {start->argv[0], NULL};
    struct spawn s = {.programs = programs,
                      .argv = start->argv,
                      .env = start->env,
                      .cwd = start->cwd,
                      .start_dir = here,
                      .user = start->user,
                      .fds = {start->fds[0], start->fds[1], start->fds[2]},
                      .terminal = start->terminal,
                      .victim = true};
    setrlimit(RLIMIT_NOFILE, &start->descriptors);
    my.pid = spawn(&s, NULL, err);
    for (int i = 0; i < 3; i++)
        close(start->fds[i]);
    return my.pid < 0 ? -1 : 0;
}

static _Noreturn void keep(const struct run_start *start, int control)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    int keep[] = {start->fds[0], start->fds[1], start->fds[2], control};
    io_close_others(keep, 4);
    struct base base = {.start_dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), .dirfd = -1};
    if (place_open(&place, NULL) == 0) /* by its mark what we leave is found if we are killed */
        base.dirfd = place.fd;
    background(&base, "toolbox run", true);
    my.control = control;
    my.loop = loop_new(&my.told.err);
    if (!my.loop || start_program(start, base.start_dir, &my.told.err) < 0) {
        my.told.failed = true;
        my.told.status = status_of(&my.told.err, start->argv[0]);
        tell();
        _exit(1);
    }
    loop_child(my.loop, my.pid, main_ended, NULL);
    my.heard = loop_fd(my.loop, control, LOOP_READ, on_control, NULL);
    if (start->timeout_ms >= 0)
        loop_timer(my.loop, start->timeout_ms + 1, on_timeout, NULL);
    _exit(loop_run(my.loop));
}

int run_keeper_start(struct loop *loop, const struct run_start *start, struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot start a process");
    pid_t pid = loop_fork(loop);
    if (pid == 0)
        keep(start, ends[1]);
    int failed = errno;
    close(ends[1]);
    if (pid > 0)
        return ends[0];
    close(ends[0]);
    return err_sys(err, ERR_TOOL, failed, "cannot start a process");
}
