/* How a running server is told to end, with everything that it started; for stop-server and --replace. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "policy_rules.h"
#include "proc.h"
#include "server_internal.h"

#define STALL_MS 6000 /* a server that ends has less and less below it */
#define LOOK_MS 500
#define GONE_MS 10000 /* to remove its files once it has answered */

/* A program that is none of ours may listen under our name; where the kernel can't say which it is, it is
 * believed. */
static bool may_be_server(pid_t pid)
{
    char name[16];
    proc_name(pid, name);
    return pid > 0 && (!*name || strcmp(name, "server") == 0);
}

/* The answer is the server's last act but one: with its end the connection ends. */
static void wait_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, GONE_MS);
}

struct stopping {
    struct client_watch watch; /* the first member */
    pid_t pid;
    struct proc_decline decline;
};

static bool is_stalled(struct client_watch *w)
{
    struct stopping *s = (struct stopping *)w;
    struct proc *list;
    size_t n = proc_descendants(s->pid, &list), left = 0;
    for (size_t i = 0; i < n; i++) /* what is stopped is half way there (tree_end.c) */
        left += list[i].ended ? 0 : list[i].state == 'T' ? 1 : 2;
    free(list);
    return !proc_goes_down(&s->decline, left, STALL_MS);
}

/* As long as something happens below it, and not for ever. */
static int ask_to_end(int fd, pid_t pid, struct span request, struct buf *answer, struct err *err)
{
    struct stopping s = {.watch = {.fds = {{.fd = -1}, {.fd = -1}}, .tick_ms = LOOK_MS, .gone = is_stalled},
                         .pid = pid};
    client_watch(&s.watch);
    int result = client_call(fd, request, answer, SERVER_END_MS, err);
    client_watch(NULL);
    if (result < 0 && errno == ECONNABORTED)
        errno = ETIMEDOUT;
    return result;
}

int server_shut_down(int fd, struct err *err)
{
    pid_t pid = 0;
    uid_t uid;
    struct buf request BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    rpc_put_request(&request, (struct span){"1", 1}, "sandbox_tools_shutdown", (struct span){0});
    ipc_peer(fd, &pid, &uid);
    if (may_be_server(pid))
        kill(pid, SIGCONT);
    if (policy_rules_there() && may_be_server(pid)) { /* which may let no caller end it */
        kill(pid, SIGTERM);
        struct pollfd gone = {.fd = fd, .events = POLLIN};
        return poll(&gone, 1, SERVER_END_MS) > 0
                   ? 0
                   : err_set(err, ERR_TOOL, "the server (pid %ld) does not end", (long)pid);
    }
    if (ask_to_end(fd, pid, span_of(&request), &answer, err) == 0) {
        client_delivered(fd);
        wait_gone(fd);
        return client_result(span_of(&answer), &result, err);
    }
    if (errno != ETIMEDOUT)
        return -2;
    if (!may_be_server(pid))
        return err_set(err, ERR_TOOL, "process %ld has the server's socket, but does not answer", (long)pid);
    kill(pid, SIGKILL);
    wait_gone(fd);
    err_set(err, ERR_TOOL, "the server (pid %ld) did not answer and was killed", (long)pid);
    return -2;
}
