/* Linked to every unit test: what a program of tests has left at its end, descriptors and children, fails it.
 * A test that leaves something would hide a leak in what it tests. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 1024

static bool open_before[MOST];
static pid_t itself;

__attribute__((constructor)) static void look_before(void)
{
    itself = getpid();
    for (int fd = 0; fd < MOST; fd++)
        open_before[fd] = fcntl(fd, F_GETFD) >= 0;
}

__attribute__((destructor)) static void look_after(void)
{
    if (getpid() != itself)
        return;
    int left = 0;
    for (int fd = 0; fd < MOST; fd++)
        if (!open_before[fd] && fcntl(fd, F_GETFD) >= 0) {
            printf("not ok - descriptor %d is left open\n", fd);
            left++;
        }
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD) {
        printf("not ok - a child is left\n");
        left++;
    }
    fflush(stdout);
    if (left > 0)
        _exit(1);
}
