#include "session_channel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

/* A message: START, its kind, and its fields, each with a NUL behind. What else comes (a trace of `set
 * -x`, an error text) is passed over. */
#define START '\001'
#define MESSAGE_MAX 65536

/* Nothing of what passes is touched, but lines are kept: the shell's `read` ends with one, its start-up file
 * with VEOF. */
static int make_plain(int slave)
{
    struct termios t;
    if (tcgetattr(slave, &t) < 0)
        return -1;
    t.c_iflag = IGNBRK;
    t.c_oflag = 0;
    t.c_lflag = ICANON;
    t.c_cc[VERASE] = t.c_cc[VKILL] = t.c_cc[VEOL] = _POSIX_VDISABLE;
    return tcsetattr(slave, TCSANOW, &t);
}

int channel_open(struct channel *c, const struct user *user)
{
    unsigned n;
    *c = (struct channel){
        .pty = PTY_INIT, .incoming = {.max = MESSAGE_MAX}, .outgoing = {.pending = BUF_INIT}};
    if (pty_open(&c->pty, 1, 1, user, NULL) < 0)
        return -1;
    if (make_plain(c->pty.slave) < 0 || ioctl(c->pty.master, TIOCGPTN, &n) < 0) {
        channel_close(c);
        return -1;
    }
    snprintf(c->path, sizeof c->path, "/dev/pts/%u", n);
    if (access(c->path, F_OK) < 0) {
        channel_close(c);
        return -1;
    }
    return 0;
}

void channel_close(struct channel *c)
{
    pty_close(&c->pty);
    buf_release(&c->incoming);
    input_release(&c->outgoing);
}

void channel_put_code(struct channel *c, const struct buf *code)
{
    static const char end_of_file = 4; /* VEOF, as make_plain left it */
    input_release(&c->outgoing);
    tcflush(c->pty.slave, TCIFLUSH);
    input_add(&c->outgoing, &c->pty, code->data, code->len, NULL);
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

/* Fields behind the kind: pid, status, directory; of a P, the continuation prompt; of a Q, whether the hook
 * was in place, and the prompt with an X behind. */
enum { PID, STATUS, CWD, PS2, ARMED = PS2, PROMPT, N_FIELDS };

static int count_fields(char kind)
{
    return kind == 'Q' ? N_FIELDS : kind == 'P' ? PS2 + 1 : CWD + 1;
}

static void fill(struct channel_message *m, char kind, char *const field[N_FIELDS])
{
    *m = (struct channel_message){.kind = kind, .pid = strtol(field[PID], NULL, 10)};
    m->status = (int)strtol(field[STATUS], NULL, 10);
    m->cwd = mem_strdup(field[CWD]);
    if (kind == 'P')
        m->ps2 = mem_strdup(field[PS2]);
    if (kind != 'Q')
        return;
    size_t n = strlen(field[PROMPT]);
    m->armed = *field[ARMED] != '\0';
    if (n > 0)
        m->prompt = mem_dup(field[PROMPT], n - 1);
}

static bool take_message(struct channel *c, struct channel_message *m)
{
    struct buf *b = &c->incoming;
    const char *start = b->len > 0 ? memchr(b->data, START, b->len) : NULL;
    buf_consume(b, start ? (size_t)(start - b->data) : b->len);
    if (b->len < 2)
        return false;
    char *fields[N_FIELDS];
    size_t next = 2;
    for (int i = 0; i < count_fields(b->data[1]); i++) {
        long n = field(b, next);
        if (n < 0)
            return false;
        fields[i] = b->data + next;
        next += (size_t)n + 1;
    }
    fill(m, b->data[1], fields);
    buf_consume(b, next);
    return true;
}

void channel_message_release(struct channel_message *m)
{
    free(m->cwd);
    free(m->ps2);
    free(m->prompt);
}

bool channel_read(struct channel *c, struct channel_message *m)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(c->pty.master, bytes, sizeof bytes)) > 0)
        if (buf_add(&c->incoming, bytes, (size_t)n) < 0)
            buf_truncate(&c->incoming, 0); /* no message of ours is that long */
    return take_message(c, m);
}

void channel_acknowledge(struct channel *c)
{
    tcflush(c->pty.slave,
            TCIFLUSH); /* an answer that came too late for its message must not serve the next one */
    io_write_all(c->pty.master, "\n", 1);
}
