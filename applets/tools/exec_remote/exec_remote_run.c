/* `run`: a job that behaves as the program itself would: its output as it comes, our stdin, our signals, its
 * status.
 *
 * One call at a time takes output, so that each acknowledges what was written: a wait is open until something
 * of ours is to be sent, and then given up. Nothing is lost by that: what it may have brought was not
 * acknowledged. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "buf.h"
#include "client.h"
#include "commands/exec/command_print.h"
#include "exchange.h"
#include "commands/exec/route.h"
#include "exec_remote.h"
#include "exec_remote_tty.h"
#include "io.h"
#include "job_stored.h"
#include "job_text.h"
#include "rpc.h"
#include "commands/server/server.h"
#include "spawn.h"

static const char NAME[] = "exec_remote";

#define INPUT_STEP (1u << 20) /* bytes of stdin in one call, where so many are there */
#define FULL_MS 100           /* until stdin that the job hasn't taken is offered again */

enum { EXIT_NOT_RUN = 125, EXIT_UNUSABLE = 126, EXIT_NOT_FOUND = 127, BY_SIGNAL = 128 };

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH};

struct run {
    long pid;
    long long seq;
    int signal_fd;
    bool tty; /* the job has a terminal */
    /* the open wait */
    int wait_fd; /* -1: none */
    struct exchange wait;
    struct buf request, answer;
    /* stdin */
    bool eof;
    struct buf input; /* read and not yet taken */
    long long retry_at;
    int status; /* of the job; -1: it runs */
};

/* ---- output ---- */

static void signal_job(struct run *r, int number)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addf(&params, "{\"pid\":%ld,\"signal\":\"%d\"}", r->pid, number);
    call_method("exec_remote_signal", span_of(&params), &result, NULL); /* it may have ended */
}

/* The job stops while we do. With what stops every program: its group is an orphaned one, in which SIGTSTP
 * does nothing. */
static void stop_both(struct run *r)
{
    signal_job(r, SIGSTOP);
    tty_give_back();
    raise(SIGSTOP);
    if (r->tty)
        tty_take();
    signal_job(r, SIGCONT);
}

static void resize_job(const struct run *r)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    tty_put_size(&params);
    if (params.data[0] != '{')
        return;
    buf_truncate(&params, params.len - 1);
    buf_addf(&params, ",\"pid\":%ld}", r->pid);
    call_method("exec_remote_resize", span_of(&params), &result, NULL);
}

static void forward_signals(struct run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGTSTP)
            stop_both(r);
        else if (info.ssi_signo == SIGWINCH && r->tty)
            resize_job(r);
        else
            signal_job(r, (int)info.ssi_signo);
    }
}

/* What a pipe takes at once, so that signals are heard while it is full. */
static int write_out(struct run *r, int fd, const struct buf *data)
{
    for (size_t at = 0; at < data->len;) {
        struct pollfd p[] = {{.fd = fd, .events = POLLOUT}, {.fd = r->signal_fd, .events = POLLIN}};
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents)
            forward_signals(r);
        if (!p[0].revents)
            continue;
        ssize_t n = write(fd, data->data + at, data->len - at < PIPE_BUF ? data->len - at : PIPE_BUF);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR && errno != EAGAIN)
            return -1;
    }
    return 0;
}

/* Each character is a byte. */
static int write_text(struct run *r, int fd, struct span result, const char *key)
{
    struct span value;
    struct buf text BUF_AUTO = BUF_INIT;
    if (!json_member(result, key, &value, NULL) || !json_string_text(value, &text))
        return 0;
    buf_truncate(&text, text_to_latin1(text.data, text.len));
    return write_out(r, fd, &text);
}

static void kill_job(struct run *r)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addf(&params, "{\"pid\":%ld,\"ack_seq\":0}", r->pid);
    call_method("exec_remote_kill", span_of(&params), &result, NULL);
}

/* Our own reader has gone, which is the end of the job as of any writer into a pipe; or nothing can be
 * written, which the job can't be told. */
static void output_lost(struct run *r)
{
    bool broken = errno == EPIPE;
    if (!broken)
        applet_failed(NAME, "cannot write: %s", err_text(errno));
    kill_job(r);
    r->status = broken ? BY_SIGNAL + SIGPIPE : EXIT_FAILED;
}

/* Takes a result. -1: it can't be written. */
static int take_result(struct run *r, struct span result)
{
    struct span value;
    if (write_text(r, STDOUT_FILENO, result, "stdout") < 0 ||
        write_text(r, STDERR_FILENO, result, "stderr") < 0) {
        output_lost(r);
        return -1;
    }
    if (json_member(result, "seq", &value, NULL))
        r->seq = strtoll(value.s, NULL, 10);
    if (json_member(result, "state", &value, NULL) && !json_string_is(value, "running") &&
        json_member(result, "exit_code", &value, NULL)) {
        long code = strtol(value.s, NULL, 10);
        r->status = (int)(code < 0 ? BY_SIGNAL - code : code);
    }
    return 0;
}

/* ---- the wait ---- */

static void end_wait(struct run *r, bool delivered)
{
    if (r->wait_fd >= 0 && delivered)
        exchange_take_rest(r->wait_fd);
    io_close(&r->wait_fd);
    buf_release(&r->request);
    buf_release(&r->answer);
}

static int find_keeper(const struct run *r)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    char owner[IPC_NAME_MAX];
    snprintf(owner, sizeof owner, JOB_PREFIX "_%ld", r->pid);
    return ipc_find(&place, owner);
}

/* Its keeper, or the server, which knows how it ended. */
static int begin_wait(struct run *r, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    r->wait_fd = find_keeper(r);
    if (r->wait_fd < 0)
        r->wait_fd = server_connect(err);
    if (r->wait_fd < 0)
        return -1;
    io_set_nonblock(r->wait_fd, true);
    buf_addf(&params, "{\"pid\":%ld,\"ack_seq\":%lld}", r->pid, r->seq);
    rpc_put_request(&r->request, (struct span){"1", 1}, "exec_remote_wait", span_of(&params));
    exchange_init(&r->wait, r->wait_fd, span_of(&r->request), &r->answer);
    return 0;
}

/* Goes on with it. -1: it can't be had. */
static int run_wait(struct run *r, struct err *err)
{
    struct span result;
    int failed = 0;
    enum exchange_want want = exchange_run(&r->wait, err);
    if (want == EXCHANGE_READ || want == EXCHANGE_WRITE)
        return 0;
    if (want == EXCHANGE_DONE && client_result(span_of(&r->answer), &result, err) < 0)
        failed = -1;
    else if (want == EXCHANGE_DONE)
        take_result(r, result);
    end_wait(r, want == EXCHANGE_DONE); /* one that was cut is asked again, whoever answers then */
    return failed;
}

/* ---- stdin ---- */

static int send_data(struct run *r, const char *method, const struct buf *data, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    end_wait(r, false);
    buf_addf(&params, "{\"pid\":%ld,\"ack_seq\":%lld", r->pid, r->seq);
    if (data)
        text_add(&text, data->data, data->len, true, true);
    if (data)
        json_member_text(&params, "data", text.data, text.len);
    buf_addc(&params, '}');
    if (call_method(method, span_of(&params), &result, err) < 0)
        return -1;
    take_result(r, span_of(&result));
    return 0;
}

static void offer_input(struct run *r)
{
    struct err err;
    if (send_data(r, "exec_remote_write_stdin", &r->input, &err) < 0 && strstr(err.msg, JOB_STDIN_FULL)) {
        r->retry_at = now_ms() + FULL_MS; /* it has enough for now */
        return;
    }
    buf_truncate(&r->input,
                 0); /* taken; or its stdin is closed, or it may have been taken by what then ended */
}

static void read_input(struct run *r)
{
    struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t n;
    buf_reserve(&r->input, INPUT_STEP);
    do {
        n = read(STDIN_FILENO, r->input.data + r->input.len, INPUT_STEP - r->input.len);
        if (n > 0)
            r->input.len += (size_t)n;
    } while (n > 0 && r->input.len < INPUT_STEP && poll(&more, 1, 0) == 1);
    if (r->input.len > 0) { /* the end, if this is it, is read again */
        offer_input(r);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        r->eof = true;
        send_data(r, "exec_remote_close_stdin", NULL, NULL);
    }
}

/* ---- life ---- */

static int step(struct run *r, struct err *err)
{
    if (r->wait_fd < 0 && begin_wait(r, err) < 0)
        return -1;
    bool held = r->input.len > 0;
    long long left = r->retry_at - now_ms();
    struct pollfd p[] = {
        {.fd = r->signal_fd, .events = POLLIN},
        {.fd = r->wait_fd, .events = r->wait.sent < r->wait.head_len + r->wait.request.n ? POLLOUT : POLLIN},
        {.fd = r->eof || held ? -1 : STDIN_FILENO, .events = POLLIN},
    };
    if (poll(p, 3, !held ? -1 : left > 0 ? (int)left : 0) < 0)
        return 0;
    if (p[0].revents)
        forward_signals(r);
    if (p[1].revents && run_wait(r, err) < 0)
        return -1;
    if (r->status < 0 && p[2].revents)
        read_input(r);
    else if (r->status < 0 && held && now_ms() >= r->retry_at)
        offer_input(r);
    return 0;
}

static int start(struct run *r, struct buf *params, struct err *err)
{
    struct buf result BUF_AUTO = BUF_INIT;
    struct span pid;
    if (r->tty) {
        json_key(params, "pty");
        tty_put_size(params);
    }
    json_member_bool(params, "stdin_open", true);
    json_member_string(params, "encoding", "latin-1");
    json_member_int(params, "ends_with", getpid()); /* we may be killed */
    buf_addc(params, '}');
    if (call_method("exec_remote_start", span_of(params), &result, err) < 0)
        return -1;
    json_member(span_of(&result), "pid", &pid, NULL);
    r->pid = strtol(pid.s, NULL, 10);
    return 0;
}

/* As a shell tells it. */
static int status_of(const char *program, const struct err *err)
{
    size_t n = strlen(program);
    if (strncmp(err->msg, program, n) != 0 || strncmp(err->msg + n, ": ", 2) != 0)
        return EXIT_NOT_RUN;
    bool absent = strncmp(err->msg + n + 2, SPAWN_NOT_FOUND, strlen(SPAWN_NOT_FOUND)) == 0;
    return absent ? EXIT_NOT_FOUND : EXIT_UNUSABLE;
}

/* Those that are ignored already (nohup) stay so. */
static int take_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) {
        struct sigaction old;
        if (sigaction(forwarded[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&set, forwarded[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int exec_remote_run(const struct command_line *c, struct buf *params, const char *program)
{
    struct run r = {.wait_fd = -1, .status = -1, .request = BUF_INIT, .answer = BUF_INIT, .input = BUF_INIT};
    struct err err;
    r.tty = command_value(c, "tty");
    r.signal_fd = take_signals(); /* from now on they are the job's */
    int failed = start(&r, params, &err);
    if (r.tty && failed == 0)
        tty_take();
    while (r.status < 0 && failed == 0)
        failed = step(&r, &err);
    end_wait(&r, false);
    tty_give_back();
    io_close(&r.signal_fd);
    buf_release(&r.input);
    if (failed < 0) {
        command_failed(c, &err);
        return status_of(program, &err);
    }
    return r.status;
}
