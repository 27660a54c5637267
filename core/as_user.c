#include "as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "user.h"

void as_user(uid_t uid, int limit_ms, void (*work)(void *arg), void *arg)
{
    int ends[2];
    struct buf nothing BUF_AUTO = BUF_INIT;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        struct user u USER_AUTO;
        user_of_uid(&u, uid);
        if (user_become(&u, NULL) == 0)
            work(arg);
        _exit(0);
    }
    close(ends[1]);
    if (pid > 0 && io_read_within(ends[0], limit_ms, &nothing) < 0)
        kill(pid, SIGKILL);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}
