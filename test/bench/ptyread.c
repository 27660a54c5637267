/* The least that reading a program's output from a terminal takes: ptyread PROGRAM [ARGUMENT]... runs the
 * program on a terminal whose output isn't translated, reads all of it, and prints how many bytes there were.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void be_program(const char *terminal, char **argv)
{
    struct termios t;
    setsid();
    int slave = open(terminal, O_RDWR);
    if (slave < 0 || tcgetattr(slave, &t) < 0)
        _exit(127);
    t.c_oflag &= ~(tcflag_t)OPOST;
    t.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(slave, TCSANOW, &t);
    for (int fd = 0; fd <= 2; fd++)
        dup2(slave, fd);
    execvp(argv[0], argv);
    _exit(127);
}

int main(int argc, char **argv)
{
    static char bytes[65536];
    unsigned long long total = 0;
    int status, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (argc < 2 || master < 0 || unlockpt(master) < 0)
        return 2;
    const char *terminal = ptsname(master);
    pid_t pid = fork();
    if (pid == 0)
        be_program(terminal, argv + 1);
    for (ssize_t n; (n = read(master, bytes, sizeof bytes)) != 0;) {
        if (n > 0)
            total += (unsigned long long)n;
        else if (errno != EINTR)
            break; /* EIO: nobody has the terminal open any more */
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return 1;
    printf("%llu\n", total);
    return 0;
}
