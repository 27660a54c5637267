/* How a running server is told to end, with everything that it started; for stop-server and --replace. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "client.h"
#include "proc.h"
#include "server_internal.h"

#define STOP_MS 6000  /* the server ends by itself within 5 s */
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
    if (client_call(fd, span_of(&request), &answer, STOP_MS, err) == 0) {
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
