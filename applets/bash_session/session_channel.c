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

/* A message: START, then pid, status and directory, each with a NUL behind. What else comes (a trace of `set
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
    return tcsetattr(slave, TCSANOW, &t);
}

int channel_open(struct channel *c, const struct user *user)
{
    unsigned n;
    *c = (struct channel){.pty = PTY_INIT, .incoming = {.max = MESSAGE_MAX}};
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
}

/* bash: the user's own file first, as always. Completion and key bindings are for people at a keyboard: text
 * that comes with tabs is to stay text. History expansion is off: nobody who writes "!" here means it. The
 * hook comes first among the prompt commands, before any that print. `_` is given back by bash afterwards;
 * the shell's `set -e` and -x don't see it. */
static const char bash_startup[] =
    "[ -r ~/.bashrc ] && . ~/.bashrc\n"
    "set +H\n"
    "bind 'set disable-completion on' 'set enable-bracketed-paste off' 'set bell-style none' 2>/dev/null\n"
    "bind '\"\\e[200~\": bracketed-paste-begin' 2>/dev/null\n"
    "PROMPT_COMMAND='{ printf \"\\1%%s\\0%%s\\0%%s\\0\" \"$$\" \"$?\" \"$PWD\"; read -r -t 5 _; } <>%s >&0 "
    "2>&0 || :'"
    "\"${PROMPT_COMMAND:+; $PROMPT_COMMAND}\"\n";

/* Others evaluate command substitutions in PS1. */
static const char sh_startup[] = "unset ENV\n"
                                 "PS1='$(s=$?; { printf \"\\1%%s\\0%%s\\0%%s\\0\" \"$$\" \"$s\" \"$PWD\"; "
                                 "read -r _; } <>%s >&0 2>&0)'\"${PS1:-$ }\"\n";

int channel_put_startup(struct channel *c, bool bash)
{
    struct buf text BUF_AUTO = BUF_INIT;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    buf_addf(&text, bash ? bash_startup : sh_startup, c->path);
#pragma GCC diagnostic pop
    buf_addc(&text, 4);              /* VEOF */
    tcflush(c->pty.slave, TCIFLUSH); /* what a shell that could not be started did not read */
    return io_write_all(c->pty.master, text.data, text.len);
}

/* Length of the field at `at`, -1 while its NUL hasn't come. */
static long field(const struct buf *b, size_t at)
{
    const char *end = at < b->len ? memchr(b->data + at, '\0', b->len - at) : NULL;
    return end ? end - (b->data + at) : -1;
}

static bool take_message(struct channel *c, struct channel_message *m)
{
    struct buf *b = &c->incoming;
    const char *start = b->len > 0 ? memchr(b->data, START, b->len) : NULL;
    buf_consume(b, start ? (size_t)(start - b->data) : b->len);
    size_t at[3], next = 1;
    for (int i = 0; i < 3; i++) {
        long n = field(b, next);
        if (n < 0)
            return false;
        at[i] = next;
        next += (size_t)n + 1;
    }
    m->pid = strtol(b->data + at[0], NULL, 10);
    m->status = (int)strtol(b->data + at[1], NULL, 10);
    m->cwd = mem_strdup(b->data + at[2]);
    buf_consume(b, next);
    return true;
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
