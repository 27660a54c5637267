/* A pseudo terminal, as programs in a session expect it: echo off, output newlines not translated, a usable
 * size. */
#ifndef CORE_PTY_H
#define CORE_PTY_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

struct user;

struct pty {
    int master; /* non-blocking, close-on-exec; -1: none */
    int slave;  /* kept open: the end of output is the child's exit, not EIO, and the kernel's view of what is
                   unread  is asked through it */
};
#define PTY_INIT                                                                                             \
    {                                                                                                        \
        .master = -1, .slave = -1                                                                            \
    }

/* Opens one; for a user other than this process's the slave is given to them. ERR_TOOL with the reason, and
 * what to do
 * (/dev/pts not mounted, no terminal left). */
int pty_open(struct pty *p, unsigned short rows, unsigned short cols, const struct user *user,
             struct err *err);
/* Echo off and output newlines untranslated, as at the start. */
int pty_make_quiet(const struct pty *p);
/* The same, and where a program has left it so that no lines can be typed any more (in raw mode, without its
 * keys, stopped, never blocking, locked), all that is as it was at the start. What people choose stays. */
int pty_mend(const struct pty *p);
/* Echo and newlines as every terminal has them at first: for a person's own at the other end. */
int pty_make_plain(const struct pty *p);
/* Opens the slave anew, after a hang-up. */
int pty_reopen_slave(struct pty *p);
int pty_resize(const struct pty *p, unsigned short rows, unsigned short cols);
void pty_close(struct pty *p);

/* Foreground process group of the terminal, 0 when it can't be told. */
pid_t pty_foreground(const struct pty *p);

/* Whether this process is told; gVisor tells those alone whose controlling terminal it is. */
bool pty_tells_foreground(const struct pty *p);
/* The end-of-file key ends a read that waits for more, which a gVisor of 2022 doesn't know. It is known by
 * what else of terminals it lacks: there is no trying it without another process that reads. */
bool pty_ends_files(const struct pty *p);
/* The key that ends input, as the terminal (either end) has it now. */
char pty_end_key(int fd);
/* Makes the terminal this process's own, until pty_close: what is started with it belongs to the same session
 * then. -1: it can't lead one, or leads that of another. */
int pty_lead(const struct pty *p);

#endif
