/* The private channel on which a shell tells that it is about to prompt, with its last exit status and its
 * directory.
 *
 * A second pseudo terminal: it has a name that the session's user can open, leaves no file behind and needs
 * no descriptor in the shell, so none reaches what the shell starts. The shell waits for the answer to each
 * message, so that whatever it printed before can be told from the prompt that follows.
 *
 * Every program of that user can open it too. So what is read counts as the shell's only behind a secret that
 * the shell alone has been given, through a pipe that is gone before it runs anything (bash --rcfile, ENV of
 * the others); what others write, in front of a message or behind it, is passed over; and what they do to the
 * terminal itself is undone. */
#ifndef APPLETS_BASH_SESSION_SESSION_CHANNEL_H
#define APPLETS_BASH_SESSION_SESSION_CHANNEL_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "pty.h"
#include "session_input.h"
#include "user.h"

#define CHANNEL_SECRET 32 /* characters */

struct channel {
    struct pty pty; /* master == -1: none */
    char path[32];  /* as the shell opens it */
    char secret[CHANNEL_SECRET + 1];
    char offered[CHANNEL_SECRET + 1]; /* another one, until the shell uses it; "": none */
    bool sourced;                     /* the shell may wait in a file that it reads here, and not in `read` */
    const struct user *user;
    struct buf incoming;
    struct buf code; /* the last that was queued */
    struct input outgoing;
};

struct channel_message {
    char kind; /* P: about to prompt; T: a command was taken; Q: the answer to a query; I: it asks whether it
                  has been interrupted. After P, Q and I it waits for an answer */
    long pid;  /* of the shell that tells */
    int status;
    char *cwd;    /* owned, as the following; never NULL */
    char *ps2;    /* P: the continuation prompt as the shell has it; NULL: not told */
    char *error;  /* P: the type of the exception that ended the last command, and in the next lines its
                     message; NULL: none */
    int begun;    /* P: commands that it has begun since the last one; -1: not told */
    bool armed;   /* Q: the hook at the prompt was still in place, with its secret */
    bool half;    /* Q: and something is typed in the line */
    char *prompt; /* Q: as it shows; NULL: not told */
};

/* A secret, or "" and -1. */
int channel_make_secret(char secret[CHANNEL_SECRET + 1]);

/* Opens one for a shell of that user. -1: the session works without (and settles by the kernel's view alone).
 */
int channel_open(struct channel *c, const struct user *user);
void channel_close(struct channel *c);

/* A pipe (seekable: a file without a name) that gives the code once and then ends, for fd 3 of a shell that
 * is started: its name there is CHANNEL_CODE. -1 where that name would not work. */
#define CHANNEL_CODE "/proc/self/fd/3"
int channel_code_pipe(const struct channel *c, const struct buf *code, bool seekable);

/* Makes another secret, to be given to a shell that may not have the first one. */
const char *channel_offer_secret(struct channel *c);

/* Undoes what others may have done to it: its modes, a stop, a lock, a hang-up. */
void channel_mend(struct channel *c);

/* Queues code for the shell, which reads it as a file from the channel's path. What was queued before and not
 * read is dropped. */
void channel_put_code(struct channel *c, const struct buf *code);
/* Queues the same once more: somebody else has read it. */
void channel_repeat_code(struct channel *c);
/* Goes on writing it; false when all was read. */
bool channel_pump(struct channel *c);

/* Reads what has come, or some of it. True with the next whole message, to be released. */
bool channel_read(struct channel *c, struct channel_message *m);
void channel_message_release(struct channel_message *m);
/* Lets the shell go on to its prompt. */
void channel_acknowledge(struct channel *c);
/* Nobody waits for what was written there and not read: an answer whose message was interrupted must not
 * serve the next one. */
void channel_flush(struct channel *c);

#endif
