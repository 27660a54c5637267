#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/ttydefaults.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "user.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int open_master(struct err *err)
{
    static const char *const names[] = {"/dev/ptmx", "/dev/pts/ptmx"};
    int first = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int fd = open(names[i], O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0)
            return fd;
        if (i == 0)
            first = errno;
    }
    if (first == ENOSPC)
        return err_set(err, ERR_TOOL, "no terminal left: all pseudo terminals are in use (kernel.pty.max)");
    return err_sys(err, ERR_TOOL, first,
                   "cannot open a pseudo terminal at /dev/ptmx (is devpts mounted at /dev/pts?)");
}

/* By descriptor where the kernel can (4.13): the name may lead nowhere, or to another container's terminal.
 */
static int open_slave(int master)
{
    int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    unsigned n;
    char name[32];
    if (ioctl(master, TIOCGPTN, &n) < 0)
        return -1;
    snprintf(name, sizeof name, "/dev/pts/%u", n);
    return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

#define ECHOES (ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL | ECHOKE)
/* What makes lines, and what keeps from it. */
#define LINES (ICANON | ISIG | IEXTEN)
#define NO_LINES (ISTRIP | INLCR | IGNCR | PARMRK | INPCK | IXOFF)

static int make_quiet(const struct pty *p, struct termios *t)
{
    if (!(t->c_lflag & ECHOES) && !(t->c_oflag & ONLCR) && (t->c_iflag & IUTF8))
        return 0;
    t->c_lflag &= ~(tcflag_t)ECHOES;
    t->c_oflag &= ~(tcflag_t)ONLCR;
    t->c_iflag |= IUTF8;
    return tcsetattr(p->slave, TCSANOW, t);
}

int pty_make_quiet(const struct pty *p)
{
    struct termios t;
    return tcgetattr(p->slave, &t) < 0 ? -1 : make_quiet(p, &t);
}

static bool makes_lines(const struct termios *t)
{
    static const int keys[] = {VINTR, VQUIT, VSUSP, VEOF};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (t->c_cc[keys[i]] == _POSIX_VDISABLE)
            return false;
    return (t->c_lflag & (LINES | EXTPROC)) == LINES && (t->c_iflag & (ICRNL | NO_LINES)) == ICRNL &&
           (t->c_oflag & (OPOST | OLCUC | OCRNL | ONLRET)) == OPOST;
}

static void make_lines(struct termios *t)
{
    static const unsigned char keys[][2] = {{VINTR, CINTR}, {VQUIT, CQUIT}, {VERASE, CERASE}, {VKILL, CKILL},
                                            {VEOF, CEOF},   {VSUSP, CSUSP}, {VSTART, CSTART}, {VSTOP, CSTOP}};
    t->c_iflag = ICRNL | IXON | IUTF8;
    t->c_oflag = OPOST;
    t->c_lflag = LINES;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        t->c_cc[keys[i][0]] = keys[i][1];
}

int pty_mend(const struct pty *p)
{
    struct termios t;
    int flags = fcntl(p->slave, F_GETFL); /* those of all who have got the terminal from us */
    if (flags >= 0 && (flags & O_NONBLOCK))
        fcntl(p->slave, F_SETFL, flags & ~O_NONBLOCK);
    ioctl(p->slave, TIOCNXCL);
    tcflow(p->slave, TCOON);
    if (tcgetattr(p->slave, &t) < 0)
        return -1;
    if (makes_lines(&t))
        return make_quiet(p, &t);
    make_lines(&t);
    return tcsetattr(p->slave, TCSANOW, &t);
}

char pty_end_key(int fd)
{
    struct termios t;
    return tcgetattr(fd, &t) == 0 && t.c_cc[VEOF] != _POSIX_VDISABLE ? (char)t.c_cc[VEOF] : CEOF;
}

int pty_make_plain(const struct pty *p)
{
    struct termios t;
    if (tcgetattr(p->slave, &t) < 0)
        return -1;
    t.c_lflag |= ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
    t.c_oflag |= OPOST | ONLCR;
    return tcsetattr(p->slave, TCSANOW, &t);
}

int pty_open(struct pty *p, unsigned short rows, unsigned short cols, const struct user *user,
             struct err *err)
{
    *p = (struct pty)PTY_INIT;
    p->master = open_master(err);
    if (p->master < 0)
        return -1;
    int unlock = 0;
    ioctl(p->master, (int)TIOCSPTLCK, &unlock);
    p->slave = open_slave(p->master);
    if (p->slave < 0 || pty_make_quiet(p) < 0 || pty_resize(p, rows, cols) < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot set up a pseudo terminal (is devpts mounted at /dev/pts?)");
        pty_close(p);
        return -1;
    }
    if (user && !user_is_self(user) &&
        (fchown(p->slave, user->uid, (gid_t)-1) < 0 || fchmod(p->slave, 0620) < 0)) {
        err_sys(err, ERR_TOOL, errno, "cannot give the terminal to user %ld", (long)user->uid);
        pty_close(p);
        return -1;
    }
    return 0;
}

int pty_reopen_slave(struct pty *p)
{
    int fd = open_slave(p->master);
    if (fd < 0)
        return -1;
    close(p->slave);
    p->slave = fd;
    return 0;
}

int pty_resize(const struct pty *p, unsigned short rows, unsigned short cols)
{
    struct winsize size = {.ws_row = rows, .ws_col = cols};
    return ioctl(p->master, (int)TIOCSWINSZ, &size);
}

void pty_close(struct pty *p)
{
    pid_t session;
    if (p->slave >= 0 && ioctl(p->slave, TIOCGSID, &session) == 0)
        ioctl(p->slave, TIOCNOTTY);
    io_close(&p->master);
    io_close(&p->slave);
}

static int ask_foreground(const struct pty *p, pid_t *group)
{
    return ioctl(p->master, TIOCGPGRP, group) == 0 ? 0 : ioctl(p->slave, TIOCGPGRP, group);
}

pid_t pty_foreground(const struct pty *p)
{
    pid_t group = 0;
    return ask_foreground(p, &group) < 0 || group < 0 ? 0 : group;
}

bool pty_tells_foreground(const struct pty *p)
{
    pid_t group;
    return ask_foreground(p, &group) == 0 || errno != ENOTTY;
}

bool pty_ends_files(const struct pty *p)
{
    int other FD_AUTO = ioctl(p->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return other >= 0 || pty_tells_foreground(p);
}

int pty_lead(const struct pty *p)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGTTOU, SIG_IGN); /* its modes are set from the background all the same */
    setsid();
    return ioctl(p->slave, TIOCSCTTY, 0);
}
