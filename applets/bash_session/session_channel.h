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
#include "user.h"

struct channel {
    struct pty pty; /* master == -1: none */
    char path[32];  /* as the shell opens it */
    struct buf incoming;
};

struct channel_message {
    long pid; /* of the shell that tells */
    int status;
    char *cwd; /* owned; NULL: not told */
};

/* Opens one for a shell of that user. -1: the session works without (and settles by the kernel's view alone).
 */
int channel_open(struct channel *c, const struct user *user);
void channel_close(struct channel *c);

/* Writes the start-up text that the shell reads from the channel's path. */
int channel_put_startup(struct channel *c, bool bash);

/* Reads what has come. True with the next whole message. */
bool channel_read(struct channel *c, struct channel_message *m);
/* Lets the shell go on to its prompt. */
void channel_acknowledge(struct channel *c);

#endif
