#include "session_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "random.h"
#include "spawn.h"
#include "title.h"

/* A message: START, the secret, its kind, and its fields, each with a NUL behind. What else comes (a trace of
 * `set -x`, an error text, what others write) is passed over. */
#define END_OF_FILE 4
#define START '\001'
#define KIND_AT (1 + CHANNEL_SECRET)
#define MESSAGE_MAX 65536
#define READS_MAX 16 /* at once, so that nobody keeps us busy who writes without end */

/* Nothing of what passes is touched, but lines are kept: the shell's `read` ends with one, a file with VEOF.
 */
static int make_plain(int slave)
{
    struct termios t;
    if (tcgetattr(slave, &t) < 0)
        return -1;
    if (t.c_iflag == IGNBRK && t.c_oflag == 0 && t.c_lflag == ICANON && t.c_cc[VEOF] == END_OF_FILE &&
        t.c_cc[VERASE] == _POSIX_VDISABLE && t.c_cc[VKILL] == _POSIX_VDISABLE &&
        t.c_cc[VEOL] == _POSIX_VDISABLE)
        return 0;
    t.c_iflag = IGNBRK;
    t.c_oflag = 0;
    t.c_lflag = ICANON;
    t.c_cc[VEOF] = END_OF_FILE;
    t.c_cc[VERASE] = t.c_cc[VKILL] = t.c_cc[VEOL] = _POSIX_VDISABLE;
    return tcsetattr(slave, TCSANOW, &t);
}

int channel_make_secret(char secret[CHANNEL_SECRET + 1])
{
    unsigned char bytes[CHANNEL_SECRET / 2];
    *secret = '\0';
    if (random_bytes(bytes, sizeof bytes) < 0)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* Ends with the one that it is for: with this process, or when that ends all that is below it. */
static void be_holder(int slave)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    title_set("toolbox terminal");
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    io_close_others(&slave, 1); /* which lets the other go on */
    spawn_reset_signals();
    for (;;)
        pause();
}

/* gVisor gives a second terminal that a shell opens to its session in the place of its own, which then has no
 * keys and jobs any more; not one that is another session's already. So a process holds it as its own. Such a
 * kernel is known by what it doesn't say of a terminal from its other end. */
static void hold(const struct channel *c)
{
    int held[2];
    char none;
    if (pty_tells_foreground(&c->pty) || pipe2(held, O_CLOEXEC) < 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        be_holder(c->pty.slave);
    close(held[1]);
    if (pid > 0 && read(held[0], &none, 1) < 0) {
        /* it has ended, and what it is for may come out wrong */
    }
    close(held[0]);
}

int channel_open(struct channel *c, const struct user *user)
{
    unsigned n;
    *c = (struct channel){.pty = PTY_INIT,
                          .user = user,
                          .incoming = {.max = (size_t)2 * MESSAGE_MAX},
                          .code = BUF_INIT,
                          .outgoing = {.pending = BUF_INIT}};
    if (pty_open(&c->pty, 1, 1, user, NULL) < 0)
        return -1;
    if (!pty_ends_files(&c->pty) || channel_make_secret(c->secret) < 0 || make_plain(c->pty.slave) < 0 ||
        ioctl(c->pty.master, TIOCGPTN, &n) < 0) {
        channel_close(c);
        return -1;
    }
    snprintf(c->path, sizeof c->path, "/dev/pts/%u", n);
    if (access(c->path, F_OK) < 0) {
        channel_close(c);
        return -1;
    }
    hold(c);
    return 0;
}

void channel_close(struct channel *c)
{
    pty_close(&c->pty);
    buf_release(&c->incoming);
    buf_release(&c->code);
    input_release(&c->outgoing);
}

int channel_code_pipe(const struct channel *c, const struct buf *code, bool seekable)
{
    int ends[2] = {-1, -1};
    if (access("/proc/self/fd/0", F_OK) < 0)
        return -1;
    if (seekable)
        ends[0] = ends[1] = memfd_create("code", MFD_CLOEXEC);
    else if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    bool whole = write(ends[1], code->data, code->len) == (ssize_t)code->len;
    if (ends[1] != ends[0])
        close(ends[1]);
    bool other = c->user && !user_is_self(c->user);
    if (whole && (!other || fchown(ends[0], c->user->uid, (gid_t)-1) == 0) && fcntl(ends[0], F_SETFL, 0) == 0)
        return ends[0];
    close(ends[0]);
    return -1;
}

const char *channel_offer_secret(struct channel *c)
{
    return channel_make_secret(c->offered) < 0 ? c->secret : c->offered;
}

void channel_mend(struct channel *c)
{
    struct stat st;
    mode_t mode = c->user && !user_is_self(c->user) ? 0620 : 0600;
    if (fstat(c->pty.slave, &st) == 0 && (st.st_mode & 0700) != (mode & 0700) &&
        fchmod(c->pty.slave, mode) < 0)
        return; /* not ours to mend */
    if (make_plain(c->pty.slave) < 0 && pty_reopen_slave(&c->pty) == 0)
        make_plain(c->pty.slave);
    ioctl(c->pty.slave, TIOCNXCL);
    tcflow(c->pty.slave, TCOON);
}

void channel_put_code(struct channel *c, const struct buf *code)
{
    buf_truncate(&c->code, 0);
    buf_add(&c->code, code->data, code->len);
    channel_repeat_code(c);
}

void channel_repeat_code(struct channel *c)
{
    static const char end_of_file = END_OF_FILE;
    channel_mend(c);
    input_release(&c->outgoing);
    tcflush(c->pty.slave, TCIFLUSH);
    input_add(&c->outgoing, &c->pty, c->code.data, c->code.len, NULL);
    input_add(&c->outgoing, &c->pty, &end_of_file, 1, NULL);
    channel_pump(c);
}

bool channel_pump(struct channel *c)
{
    input_pump(&c->outgoing, &c->pty, false);
    return !input_is_taken(&c->outgoing, &c->pty);
}

/* Length of the field at `at`, -1 while its NUL hasn't come. */
static long field(const struct buf *b, size_t at)
{
    const char *end = at < b->len ? memchr(b->data + at, '\0', b->len - at) : NULL;
    return end ? end - (b->data + at) : -1;
}

/* Fields behind the kind: pid, status (of a P with the number of commands begun behind it), directory; of a
 * P, the continuation prompt; of an X, a P of another kind, the type of an exception and its message; of a Q,
 * the secret that the hook had, if it was in place, with an x behind if a line was begun, and the prompt with
 * an X behind. */
enum { PID, STATUS, CWD, PS2, ARMED = PS2, TYPE = PS2, PROMPT, MESSAGE = PROMPT, N_FIELDS };

static int count_fields(char kind)
{
    return kind == 'Q' || kind == 'X' ? N_FIELDS : kind == 'P' ? PS2 + 1 : CWD + 1;
}

static void fill(struct channel_message *m, const char *secret, char kind, char *const field[N_FIELDS])
{
    char *end;
    *m = (struct channel_message){.kind = kind == 'X' ? 'P' : kind, .pid = strtol(field[PID], NULL, 10)};
    m->status = (int)strtol(field[STATUS], &end, 10);
    m->begun = *end == ' ' && end[1] ? (int)strtol(end, NULL, 10) : -1;
    m->cwd = mem_strdup(field[CWD]);
    if (m->kind == 'P')
        m->ps2 = mem_strdup(kind == 'P' ? field[PS2] : "");
    if (kind == 'X' && *field[TYPE])
        m->error = mem_printf("%s\n%s", field[TYPE], field[MESSAGE]);
    if (kind != 'Q')
        return;
    size_t n = strlen(field[PROMPT]);
    m->armed = strncmp(field[ARMED], secret, CHANNEL_SECRET) == 0;
    m->half = m->armed && field[ARMED][CHANNEL_SECRET];
    if (n > 0)
        m->prompt = mem_dup(field[PROMPT], n - 1);
}

static bool is_start(const struct channel *c, const char *at)
{
    return memcmp(at + 1, c->secret, CHANNEL_SECRET) == 0 ||
           (*c->offered && memcmp(at + 1, c->offered, CHANNEL_SECRET) == 0);
}

/* Drops what is in front of the next message; false when there is none. */
static bool find_message(struct channel *c)
{
    struct buf *b = &c->incoming;
    size_t at = 0;
    for (const char *start; at < b->len && (start = memchr(b->data + at, START, b->len - at)); at++) {
        at = (size_t)(start - b->data);
        if (b->len - at <= KIND_AT || is_start(c, start)) {
            buf_consume(b, at);
            return b->len > KIND_AT;
        }
    }
    buf_truncate(b, 0);
    return false;
}

/* Splits the message in front; its length, 0 while it isn't whole. */
static size_t split(struct channel *c, char *fields[N_FIELDS])
{
    struct buf *b = &c->incoming;
    size_t next = KIND_AT + 1;
    for (int i = 0; i < count_fields(b->data[KIND_AT]); i++) {
        long n = field(b, next);
        if (n < 0)
            return 0;
        fields[i] = b->data + next;
        next += (size_t)n + 1;
    }
    return next;
}

/* Whether another one begins within the first n bytes, 0 where not: what is in front of it is the front of
 * one that somebody has not finished, and no part of it is the shell's. */
static size_t begins_again(const struct channel *c, size_t n)
{
    const struct buf *b = &c->incoming;
    const char *start = b->data;
    while ((start = memchr(start + 1, START, n - (size_t)(start + 1 - b->data)))) {
        size_t at = (size_t)(start - b->data);
        if (b->len - at > KIND_AT && is_start(c, start))
            return at;
    }
    return 0;
}

static bool take_message(struct channel *c, struct channel_message *m)
{
    struct buf *b = &c->incoming;
    static char none[] = "";
    char *fields[N_FIELDS] = {none, none, none, none, none};
    size_t next, again;
    do {
        if (!find_message(c))
            return false;
        next = split(c, fields);
        again = begins_again(c, next > 0 ? next : b->len);
        buf_consume(b, again);
    } while (again > 0);
    if (next == 0)
        return false;
    char kind = b->data[KIND_AT];
    fill(m, c->secret, kind, fields);
    if (memcmp(b->data + 1, c->secret, CHANNEL_SECRET) != 0) { /* it has taken the other one */
        memcpy(c->secret, c->offered, sizeof c->secret);
        *c->offered = '\0';
    }
    buf_consume(b, next);
    return true;
}

void channel_message_release(struct channel_message *m)
{
    free(m->cwd);
    free(m->ps2);
    free(m->error);
    free(m->prompt);
}

bool channel_read(struct channel *c, struct channel_message *m)
{
    char bytes[4096];
    for (int i = 0; i < READS_MAX; i++) {
        if (take_message(c, m))
            return true;
        if (c->incoming.len > MESSAGE_MAX) /* no message of ours is that long */
            buf_consume(&c->incoming, 1);
        ssize_t n = read(c->pty.master, bytes, sizeof bytes);
        if (n < 0 && errno == EIO) /* hung up */
            channel_mend(c);
        if (n <= 0)
            return false;
        buf_add(&c->incoming, bytes, (size_t)n);
    }
    return take_message(c, m);
}

void channel_flush(struct channel *c)
{
    tcflush(c->pty.slave, TCIFLUSH);
}

void channel_acknowledge(struct channel *c)
{
    make_plain(c->pty.slave);
    channel_flush(c);
    const char *word = c->sourced ? "\\return\n" : "\n";
    io_write_all(c->pty.master, word, strlen(word));
}
