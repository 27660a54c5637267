/* What is needed of terminals, and of shells in them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "doctor.h"
#include "io.h"
#include "pty.h"

#define KEY_MS 1000 /* for a key to have its effect */
#define SHELL_SAYS 7

static int open_pty(struct pty *p, struct err *err)
{
    return pty_open(p, 24, 80, NULL, err);
}

static int try_terminal(struct err *err)
{
    struct pty p;
    return open_pty(&p, err);
}

/* Takes the terminal as a shell's own, as spawn has it. */
static int take(const struct pty *p, struct err *err)
{
    if (setsid() < 0 || ioctl(p->slave, TIOCSCTTY, 0) < 0 || tcsetpgrp(p->slave, getpid()) < 0)
        return err_sys(err, ERR_TOOL, errno,
                       "cannot make a terminal the controlling one, with a foreground group");
    return 0;
}

static int open_own(struct pty *p, struct err *err)
{
    return open_pty(p, err) < 0 ? -1 : take(p, err);
}

static int name_of(const struct pty *p, char name[32], struct err *err)
{
    unsigned n;
    if (ioctl(p->master, TIOCGPTN, &n) < 0)
        return err_sys(err, ERR_TOOL, errno, "a terminal has no number");
    snprintf(name, 32, "/dev/pts/%u", n);
    return access(name, F_OK) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "%s, a terminal's name", name);
}

static int try_name(struct err *err)
{
    struct pty p;
    char name[32];
    return open_pty(&p, err) < 0 ? -1 : name_of(&p, name, err);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = signal;
}

static int try_control(struct err *err)
{
    struct pty p;
    signal(SIGINT, on_interrupt);
    if (open_own(&p, err) < 0)
        return -1;
    if (write(p.master, "\003", 1) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot type into a terminal");
    for (int i = 0; i < KEY_MS / 10 && !interrupted; i++)
        poll(NULL, 0, 10);
    return interrupted ? 0 : err_set(err, ERR_TOOL, "the interrupt key sends no signal");
}

static int try_dev_tty(struct err *err)
{
    struct pty p;
    if (open_own(&p, err) < 0)
        return -1;
    int fd FD_AUTO = open("/dev/tty", O_RDWR | O_CLOEXEC);
    return fd >= 0 && isatty(fd) ? 0 : err_sys(err, ERR_TOOL, errno, "/dev/tty");
}

static int try_foreground(struct err *err)
{
    struct pty p;
    if (open_own(&p, err) < 0)
        return -1;
    return pty_foreground(&p) == getpid()
               ? 0
               : err_sys(err, ERR_TOOL, errno, "TIOCGPGRP of a terminal's other end");
}

static int try_second(struct err *err)
{
    struct pty p, other;
    char name[32];
    if (open_own(&p, err) < 0 || open_pty(&other, err) < 0 || name_of(&other, name, err) < 0)
        return -1;
    int fd FD_AUTO = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errno, "%s", name);
    if (!pty_ends_files(&other))
        return err_set(err, ERR_TOOL, "nothing ends a file there, so no run is known to have ended");
    return tcgetpgrp(p.slave) >= 0
               ? 0
               : err_set(err, ERR_TOOL, "who opens a second terminal loses his controlling one");
}

static int try_end_of_file(struct err *err)
{
    struct pty p;
    char byte;
    if (open_pty(&p, err) < 0)
        return -1;
    fcntl(p.slave, F_SETFL, O_NONBLOCK);
    if (write(p.master, "\004", 1) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot type into a terminal");
    struct pollfd polled = {.fd = p.slave, .events = POLLIN};
    poll(&polled, 1, KEY_MS / 4);
    return read(p.slave, &byte, 1) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "the end-of-file key");
}

static int try_startup(struct err *err)
{
    if (access("/proc/self/fd/0", F_OK) == 0 || errno == EBADF || try_end_of_file(NULL) == 0)
        return 0;
    return err_set(err, ERR_TOOL,
                   "neither /proc/self/fd nor the end-of-file key can give a shell its start-up file");
}

static int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int doctor_try_shell(const char *path, struct err *err)
{
    char name[] = "sh", option[] = "-c", command[] = "exit 7", *argv[] = {name, option, command, NULL};
    int status = doctor_run_program(path, argv, err);
    if (status < 0)
        return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == SHELL_SAYS
               ? 0
               : err_set(err, ERR_TOOL, "it was asked to exit with %d, and did so with %d", SHELL_SAYS,
                         exit_code(status));
}

const struct check doctor_terminal_checks[] = {
    {"terminal", "bash_session", try_terminal, NULL,
     "mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts; raise kernel.pty.max"},
    {"terminal's name", "bash_session", try_name, NULL,
     "mount at /dev/pts the devpts that /dev/ptmx belongs to"},
    {"job control", "bash_session", try_control, NULL, "let it call setsid and ioctl (seccomp, an LSM)"},
    {"/dev/tty", "bash_session", try_dev_tty, "programs that ask for passwords don't work",
     "mknod -m 666 /dev/tty c 5 0"},
    {"foreground group", "bash_session", try_foreground, "signals other than by a key go to the shell", NULL},
    {"second terminal", "bash_session", try_second, "the keeper holds it for the shell", NULL},
    {"start-up file", "bash_session", try_startup, NULL, "mount -t proc proc /proc"},
    {0},
};
