/* The server's part of settling: it is started, and has to answer. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "ipc.h"
#include "json.h"
#include "place.h"
#include "proc.h"
#include "rpc.h"
#include "commands/server/server.h"
#include "commands/settle/settle.h"

#define HEALTH_MS 5000
#define CHECK_TIMES 50 /* others who settle here at the same moment take theirs away again */
#define GONE_MS 10000  /* for a server that ends to be gone */

/* Asks the server who it is; the first question starts it. */
static int ask_server(struct buf *text, struct err *err)
{
    struct buf request BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    int fd FD_AUTO = -1;
    rpc_put_request(&request, (struct span){"1", 1}, "remote_version", (struct span){0});
    if (server_call(&fd, span_of(&request), true, HEALTH_MS, &answer, err) < 0 ||
        client_result(span_of(&answer), &result, err) < 0)
        return -1;
    client_delivered(fd);
    buf_truncate(text, 0);
    if (json_kind(result) == JSON_STRING)
        json_string_text(result, text);
    return 0;
}

int settle_start_server(const char *from, struct buf *server, struct err *err)
{
    static const char *const of_shells[] = {"_", "OLDPWD", "SHLVL"};
    for (size_t i = 0; i < sizeof of_shells / sizeof *of_shells; i++)
        unsetenv(of_shells[i]);
    if (from && chdir(from) == 0 && getenv("PWD"))
        setenv("PWD", from, 1);
    return ask_server(server, err);
}

int settle_check_server(struct buf *server, struct err *err)
{
    for (int times = 0; times < CHECK_TIMES; times++) {
        struct buf again BUF_AUTO = BUF_INIT;
        if (ask_server(&again, err) < 0)
            return -1;
        if (strcmp(buf_str(&again), buf_str(server)) == 0)
            return 0;
        buf_truncate(server, 0);
        buf_add(server, again.data, again.len);
    }
    return err_set(err, ERR_TOOL, "each time another server answers, the last one was '%s'", buf_str(server));
}

void settle_leave_no_orphan(void)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    struct buf request BUF_AUTO = BUF_INIT, nothing BUF_AUTO = BUF_INIT;
    siginfo_t child;
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) < 0 || proc_reaps(1))
        return; /* none is ours, or it may stay */
    int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
    rpc_put_request(&request, (struct span){"1", 1}, SERVER_LEAVE, (struct span){0});
    if (fd >= 0 && client_call(fd, span_of(&request), &nothing, HEALTH_MS, NULL) < 0)
        proc_reap(GONE_MS);
}
