/* Shells and Pythons behind the session's own, on this machine or another one, which take commands by lines
 * that are typed at their prompt: there is no other way to them.
 *
 * What becomes of a command comes back in the terminal's output, in sequences that terminals pass over (OSC
 * 7771) behind a word which is another one for each command: what is printed can't know it. */
#ifndef APPLETS_BASH_SESSION_SESSION_INNER_H
#define APPLETS_BASH_SESSION_SESSION_INNER_H

#include <stdbool.h>

#include "buf.h"
#include "session_channel.h"

/* What takes them: each is tried in this order, from the likeliest on. */
enum inner_kind { INNER_SH, INNER_FISH, INNER_PYTHON, INNER_KINDS };

struct inner {
    char word[CHANNEL_SECRET + 1]; /* of the command; "": none was given to one */
    unsigned char kind;            /* enum inner_kind: as to which it was given */
    unsigned char tried;           /* how many kinds have been before */
    bool begun, ended;
    bool back;          /* and nothing was typed since: it is at its prompt */
    int status;         /* once it has ended, as the following */
    char *cwd;          /* owned */
    long long ended_at; /* now_ms() */
};

/* Begins with a command: another word. */
void inner_begin(struct inner *in, enum inner_kind kind);
/* Appends the lines that have it run that. */
void inner_put(struct buf *out, const struct inner *in, const char *command, size_t n);

/* A sequence of number 7771, what stands behind the number. True when it is this command's. */
bool inner_take(struct inner *in, const char *text);

/* What was printed last is the prompt of a shell or a Python, as far as can be told from its end. */
bool inner_is_prompt(const struct buf *printed, enum inner_kind *kind);

void inner_release(struct inner *in);

#endif
