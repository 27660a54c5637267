#include "desk.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "spawn.h"

#define START_MS 20000
#define LAST_WORDS 500
#define DEFAULT_WIDTH 1366
#define DEFAULT_HEIGHT 768
enum { CREATE_WINDOW = 1, GET_GEOMETRY = 14, QUERY_EXTENSION = 98, CHANGE_HOSTS = 109, LIST_HOSTS = 110 };
enum { SERVER_INTERPRETED = 5, LOCAL_HOST = 252, INPUT_ONLY = 2 };

/* ---- Xvfb ---- */

/* Waits for the number of the display, a line, and says why where there is none. */
static int wait_for_number(int number_fd, int log_fd, char *number, size_t size, struct err *err)
{
    struct buf line BUF_AUTO = {.max = size - 1};
    struct buf log BUF_AUTO = {.max = 65536};
    long long until = now_ms() + START_MS;
    io_set_nonblock(number_fd, true);
    while (now_ms() < until && !(line.len > 0 && line.data[line.len - 1] == '\n')) {
        if (!io_is_readable(number_fd)) {
            usleep(2000);
            continue;
        }
        if (io_read_more(number_fd, &line) <= 0)
            break;
    }
    if (line.len > 1 && line.data[line.len - 1] == '\n') {
        snprintf(number, size, ":%.*s", (int)line.len - 1, line.data);
        return 0;
    }
    io_read_within(log_fd, 500, &log);
    size_t n = log.len;
    while (n > 0 && (log.data[n - 1] == '\n' || log.data[n - 1] == '\r'))
        n--;
    size_t from = n > LAST_WORDS ? n - LAST_WORDS : 0;
    return err_set(err, ERR_TOOL, "Xvfb does not start%s%.*s", n > 0 ? ": " : "", (int)(n - from),
                   n > 0 ? log.data + from : "");
}

static void server_ended(void *arg, pid_t pid, int status)
{
    struct desk *d = arg;
    (void)pid;
    d->own.pid = 0;
    d->own.status = status;
    log_line(LOG_INFO, "the X server has ended (status %d)", status);
}

static int start_server(struct desk *d, const struct computer_session_params *wish, char *display,
                        size_t size, struct err *err)
{
    static const char *const programs[] = {"Xvfb", "/usr/bin/Xvfb", "/usr/X11R6/bin/Xvfb", NULL};
    char screen[64], dpi[16];
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    long long width = wish->width ? wish->width : DEFAULT_WIDTH,
              height = wish->height ? wish->height : DEFAULT_HEIGHT;
    snprintf(screen, sizeof screen, "%lldx%lldx%lld", width, height, wish->depth);
    snprintf(dpi, sizeof dpi, "%lld", wish->dpi);
    char *argv[] = {(char *)"Xvfb",     (char *)"-displayfd",
                    (char *)"3",        (char *)"-screen",
                    (char *)"0",        screen,
                    (char *)"-dpi",     dpi,
                    (char *)"-noreset", (char *)"-nolisten",
                    (char *)"tcp",      NULL};
    if (io_pipes(pipes, 2) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot make a pipe");
    int more[] = {pipes[0][1]};
    struct spawn s = {.programs = programs,
                      .argv = argv,
                      .env = d->env,
                      .cwd = "/",
                      .start_dir = -1,
                      .user = d->user,
                      .fds = {-1, -1, pipes[1][1]},
                      .more = more,
                      .n_more = 1};
    d->own.pid = spawn(&s, NULL, err);
    io_close(&pipes[0][1]);
    io_close(&pipes[1][1]);
    int result = -1;
    if (d->own.pid > 0) {
        d->own.started = true;
        result = wait_for_number(pipes[0][0], pipes[1][0], display, size, err);
    } else if (strstr(err->msg, SPAWN_NOT_FOUND)) {
        err_set(err, ERR_TOOL,
                "there is no display: $DISPLAY is not set, and Xvfb is not installed "
                "(in Debian and Ubuntu the package xvfb, in Fedora xorg-x11-server-Xvfb, in Alpine xvfb)");
    }
    io_close(&pipes[0][0]);
    io_close(&pipes[1][0]);
    return result;
}

/* ---- whom it lets in ---- */

static void change_hosts(struct desk *d, bool remove, int family, const char *address, size_t n)
{
    const struct x11_request r = {.opcode = CHANGE_HOSTS,
                                  .detail = remove,
                                  X11_WORDS((uint32_t)family | (uint32_t)n << 16),
                                  .data = address,
                                  .n_data = n};
    x11_send(&d->x, &r);
}

static void let_in(struct desk *d, uid_t uid)
{
    char address[300];
    char *name MEM_AUTO = user_label(uid);
    int n = snprintf(address, sizeof address, "localuser%c%s", 0, name);
    change_hosts(d, false, SERVER_INTERPRETED, address, (size_t)n);
}

/* An X server without a cookie lets in everybody on this machine. This one is for its user, and for us. */
static void close_to_others(struct desk *d)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct err err;
    const struct x11_request r = {.opcode = LIST_HOSTS};
    if (x11_ask(&d->x, &r, 0, &list, &err) < 0)
        return;
    for (size_t at = 32; at + 4 <= list.len;) {
        size_t n = x11_u16(list.data + at + 2);
        if (n > list.len - at - 4)
            break;
        change_hosts(d, true, (unsigned char)list.data[at], list.data + at + 4, n);
        at += 4 + ((n + 3) & ~(size_t)3);
    }
    change_hosts(d, true, LOCAL_HOST, "", 0);
    let_in(d, geteuid());
    if (d->user)
        let_in(d, d->user->uid);
}

/* ---- on it ---- */

pid_t desk_run(struct desk *d, char *const *argv, struct err *err)
{
    const char *programs[] = {argv[0], NULL};
    struct spawn s = {.programs = programs,
                      .argv = argv,
                      .env = d->env,
                      .cwd = "/",
                      .start_dir = -1,
                      .user = d->user,
                      .fds = {-1, -1, -1}};
    return spawn(&s, NULL, err);
}

static int start_manager(struct desk *d, const char *wish, struct err *err)
{
    static const char *const known[] = {"openbox",  "matchbox-window-manager",
                                        "xfwm4",    "fluxbox",
                                        "icewm",    "jwm",
                                        "metacity", "marco",
                                        "mutter",   "twm",
                                        NULL};
    if (wish && strcmp(wish, "none") == 0)
        return 0;
    const char *one[] = {wish, NULL};
    for (const char *const *at = wish ? one : known; *at && d->own.manager <= 0; at++) {
        char *argv[] = {(char *)*at, NULL};
        d->own.manager = desk_run(d, argv, err);
        if (d->own.manager > 0)
            d->own.manager_name = mem_strdup(*at);
    }
    if (d->own.manager <= 0 && wish)
        return err_wrap(err, "cannot start the window manager");
    for (long long until = now_ms() + 5000; d->own.manager > 0 && now_ms() < until; usleep(5000))
        if (desk_property_number(d, d->x.screen.root, "_NET_SUPPORTING_WM_CHECK") != 0 ||
            waitpid(d->own.manager, NULL, WNOHANG) != 0)
            break;
    return 0;
}

/* ---- the connection ---- */

static unsigned char extension(struct desk *d, const char *name)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    struct err err;
    const struct x11_request r = {
        .opcode = QUERY_EXTENSION, X11_WORDS((uint32_t)strlen(name)), .data = name, .n_data = strlen(name)};
    return x11_ask(&d->x, &r, 0, &reply, &err) == 0 && reply.data[8] ? (unsigned char)reply.data[9] : 0;
}

static int prepare(struct desk *d, struct err *err)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    struct err ignored;
    d->has.xtest = extension(d, "XTEST");
    d->has.xfixes = extension(d, "XFIXES");
    d->has.xkb = extension(d, "XKEYBOARD");
    d->has.resources = extension(d, "X-Resource");
    const struct x11_request fixes = {.opcode = d->has.xfixes, X11_WORDS(4, 0)};
    const struct x11_request xkb = {.opcode = d->has.xkb, X11_WORDS(X11_PAIR(1, 0))};
    if (d->has.xfixes && x11_ask(&d->x, &fixes, 0, &reply, &ignored) < 0)
        d->has.xfixes = 0;
    if (d->has.xkb && (x11_ask(&d->x, &xkb, 0, &reply, &ignored) < 0 || !reply.data[1]))
        d->has.xkb = 0;
    if (d->x.dead)
        return *err = d->x.end, -1;
    if (!d->has.xtest)
        return err_set(err, ERR_TOOL,
                       "the display %s has no XTEST extension, without which nothing can be typed or clicked",
                       d->x.display);
    d->window = x11_new_id(&d->x);
    const struct x11_request window = {.opcode = CREATE_WINDOW,
                                       X11_WORDS(d->window, d->x.screen.root, X11_PAIR(-1, -1),
                                                 X11_PAIR(1, 1), X11_PAIR(0, INPUT_ONLY), 0, 0)};
    x11_send(&d->x, &window);
    return 0;
}

static int connect_to(struct desk *d, const char *display, struct err *err)
{
    const char *authority = spawn_env_get(d->env, "XAUTHORITY"), *home = spawn_env_get(d->env, "HOME");
    char *in_home MEM_AUTO = mem_printf("%s/.Xauthority", home ? home : "");
    return x11_open(&d->x, display, authority && *authority ? authority : in_home, err);
}

/* Pictures are made smaller where a screen is larger than models see well, to a size of its proportions, as
 * the tools that they were taught with do it. */
static void choose_model_size(struct desk *d, bool unscaled)
{
    static const struct {
        int width, height;
    } sizes[] = {{1024, 768}, {1280, 800}, {1366, 768}};
    long width = d->x.screen.width, height = d->x.screen.height;
    d->model_width = (int)width;
    d->model_height = (int)height;
    for (size_t i = 0; !unscaled && i < sizeof sizes / sizeof *sizes; i++) {
        long difference = (long)sizes[i].width * height - (long)sizes[i].height * width;
        if (labs(difference) * 50 >= (long)sizes[i].height * height)
            continue; /* by 0.02 */
        if (sizes[i].width < width) {
            d->model_width = sizes[i].width;
            d->model_height = sizes[i].height;
        }
        return;
    }
}

int desk_measure(struct desk *d, struct err *err)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    const struct x11_request r = {.opcode = GET_GEOMETRY, X11_WORDS(d->x.screen.root)};
    bool unscaled = d->model_width == d->x.screen.width;
    if (x11_ask(&d->x, &r, 0, &reply, err) < 0)
        return -1;
    int width = x11_u16(reply.data + 16), height = x11_u16(reply.data + 18);
    if (width == 0 || height == 0 || (width == d->x.screen.width && height == d->x.screen.height))
        return 0;
    d->x.screen.width = width;
    d->x.screen.height = height;
    choose_model_size(d, unscaled && width <= d->model_width);
    return 0;
}

static void set_display(struct desk *d, const struct keeper *k, const char *display)
{
    char *extra[] = {mem_printf("DISPLAY=%s", display), NULL};
    if (d->env)
        spawn_env_free(d->env);
    d->env = spawn_env(k->base.env, extra, d->user);
    free(extra[0]);
}

/* What a start has left that came to nothing. */
static int give_up(struct desk *d)
{
    if (d->own.pid > 0) {
        kill(d->own.pid, SIGKILL); /* nobody else has it yet, and what is on it ends with it */
        waitpid(d->own.pid, NULL, 0);
    }
    x11_close(&d->x);
    return -1;
}

int desk_open(struct desk *d, struct keeper *k, const struct computer_session_params *wish,
              const struct user *user, struct err *err)
{
    const char *given = wish->display.s ? wish->display.s : spawn_env_get(k->base.env, "DISPLAY");
    char display[300] = "";
    bool starts = !wish->display.s && (!given || !*given || wish->width > 0 || wish->height > 0);
    *d = (struct desk){.loop = k->base.loop, .user = user, .x.fd = -1};
    d->env = spawn_env(k->base.env, NULL, user);
    if (!starts)
        snprintf(display, sizeof display, "%s", given);
    else if (start_server(d, wish, display, sizeof display, err) < 0)
        return give_up(d);
    if (connect_to(d, display, err) < 0 || prepare(d, err) < 0)
        return give_up(d);
    set_display(d, k, display);
    choose_model_size(d, wish->unscaled);
    if (starts) {
        close_to_others(d);
        if (start_manager(d, wish->window_manager.s, err) < 0)
            return give_up(d);
        loop_child(d->loop, d->own.pid, server_ended, d);
    }
    return x11_sync(&d->x, err) < 0 ? give_up(d) : 0;
}
