/* A person's end of session_attach.h. */
#include "bash_session_attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "applet.h"
#include "io.h"
#include "ipc.h"
#include "session_attach.h"

#define DETACH_KEY 0x1D /* Ctrl-] */

static volatile sig_atomic_t resized, told_to_end;

static void note(int signal)
{
    if (signal == SIGWINCH)
        resized = 1;
    else
        told_to_end = 1;
}

/* Let in by ppoll alone, so that none comes between a look at the flags and the wait. */
static void catch_signals(void)
{
    static const int signals[] = {SIGWINCH, SIGTERM, SIGHUP, SIGINT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaddset(&set, signals[i]);
        signal(signals[i], note);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int send_frame(int fd, char type, const void *data, size_t n)
{
    char frame[3 + ATTACH_FRAME_MAX] = {type, (char)(n >> 8), (char)n};
    memcpy(frame + 3, data, n);
    return io_write_all(fd, frame, 3 + n);
}

static int send_size(int fd)
{
    struct winsize w;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
        return 0;
    char size[] = {(char)(w.ws_row >> 8), (char)w.ws_row, (char)(w.ws_col >> 8), (char)w.ws_col};
    return send_frame(fd, ATTACH_SIZE, size, sizeof size);
}

/* Raw, but for newlines in output: the session's terminal doesn't translate them. */
static int make_raw(struct termios *before)
{
    struct termios t;
    if (tcgetattr(STDIN_FILENO, before) < 0)
        return -1;
    t = *before;
    cfmakeraw(&t);
    t.c_oflag |= OPOST | ONLCR;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
}

enum end { GOES_ON, DETACHED, SESSION_ENDED };

static enum end type(int fd)
{
    char keys[ATTACH_FRAME_MAX];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? GOES_ON : DETACHED;
    char *detach = memchr(keys, DETACH_KEY, (size_t)n);
    size_t len = detach ? (size_t)(detach - keys) : (size_t)n;
    if (len > 0 && send_frame(fd, ATTACH_INPUT, keys, len) < 0)
        return SESSION_ENDED;
    return n == 0 || detach ? DETACHED : GOES_ON;
}

static enum end show(int fd)
{
    char data[65536];
    ssize_t n = recv(fd, data, sizeof data, 0);
    if (n < 0 && errno == EINTR)
        return GOES_ON;
    return n > 0 && io_write_all(STDOUT_FILENO, data, (size_t)n) == 0 ? GOES_ON : SESSION_ENDED;
}

static enum end pass_on(int fd)
{
    enum end end = GOES_ON;
    sigset_t none;
    sigemptyset(&none);
    while (end == GOES_ON && !told_to_end) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        if (resized) {
            resized = 0;
            send_size(fd);
        }
        if (ppoll(p, 2, NULL, &none) < 0)
            continue;
        if (p[1].revents)
            end = show(fd);
        if (end == GOES_ON && p[0].revents)
            end = type(fd);
    }
    return told_to_end ? DETACHED : end;
}

int attach(const char *applet, const char *socket_name, const char *session)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    struct termios before;
    int fd FD_AUTO = ipc_find(&place, socket_name);
    if (fd < 0)
        return applet_failed(applet, "cannot reach %s: %s", session, err_text(errno));
    catch_signals();
    fprintf(stderr, "[%s; Ctrl-] detaches]\n", session);
    if (make_raw(&before) < 0)
        return applet_failed(applet, "cannot set the terminal: %s", err_text(errno));
    send_size(fd);
    enum end end = pass_on(fd);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    fprintf(stderr, "\n[%s]\n", end == DETACHED ? "detached" : "the session has ended");
    return EXIT_OK;
}
