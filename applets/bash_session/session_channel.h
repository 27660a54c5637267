/* The private channel on which a shell tells that it is about to prompt, with its last exit status and its
 * directory.
 *
 * A second pseudo terminal: it has a name that the session's user can open, leaves no file behind and needs
 * no descriptor in the shell, so none reaches what the shell starts. The shell reads its start-up file from
 * it too (bash --rcfile, ENV of the others), which sets the hook. The shell waits for the answer to each
 * message, so that whatever it printed before can be told from the prompt that follows. */
#ifndef APPLETS_BASH_SESSION_SESSION_CHANNEL_H
#define APPLETS_BASH_SESSION_SESSION_CHANNEL_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "pty.h"
#include "session_input.h"
#include "user.h"

struct channel {
    struct pty pty; /* master == -1: none */
    char path[32];  /* as the shell opens it */
    struct buf incoming;
    struct input outgoing;
};

struct channel_message {
    char kind; /* P: about to prompt, waits for an answer; T: a command was taken; Q: the answer to a query */
    long pid;  /* of the shell that tells */
    int status;
    char *cwd;    /* owned, as the following; never NULL */
    char *ps2;    /* P: the continuation prompt as the shell has it; NULL: not told */
    bool armed;   /* Q: the hook at the prompt was still in place */
    char *prompt; /* Q: as it shows; NULL: not told */
};

/* Opens one for a shell of that user. -1: the session works without (and settles by the kernel's view alone).
 */
int channel_open(struct channel *c, const struct user *user);
void channel_close(struct channel *c);

/* Queues code for the shell, which reads it as a file from the channel's path. What was queued before and not
 * read is dropped. */
void channel_put_code(struct channel *c, const struct buf *code);
/* Goes on writing it; false when all was read. */
bool channel_pump(struct channel *c);

/* Reads what has come. True with the next whole message, to be released. */
bool channel_read(struct channel *c, struct channel_message *m);
void channel_message_release(struct channel_message *m);
/* Lets the shell go on to its prompt. */
void channel_acknowledge(struct channel *c);

#endif
