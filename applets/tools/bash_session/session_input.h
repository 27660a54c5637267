/* What is typed into a session and its terminal has not taken yet.
 *
 * A terminal holds 4095 bytes of unread input; in canonical mode it drops what a line has more, without a
 * word. So no more is written than it can hold at that moment, whatever mode it is switched to meanwhile; a
 * line longer than that, for a program that reads lines, is handed over in pieces (an end-of-file key inside
 * a line just delivers what there is). */
#ifndef APPLETS_BASH_SESSION_SESSION_INPUT_H
#define APPLETS_BASH_SESSION_SESSION_INPUT_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "memory_share.h"
#include "pty.h"

#define SESSION_INPUT_MAX (64u << 20)

#define TERMINAL_HOLDS 4094 /* N_TTY_BUF_SIZE - 2: with less free a signal key behind it has no effect */

struct input {
    struct buf pending;
    struct memory_share share;
    size_t written;      /* of pending */
    size_t partial;      /* bytes of an unfinished line that the terminal holds in canonical mode */
    long long signalled; /* now_us() of the last key that sends a signal; 0: none yet */
    bool on_its_way;     /* that signal: whoever is to have it was not yet seen without one */
};

/* Length up to and with the last key in it that makes a signal now (^C, ^Z, ^\); 0: there is none. */
size_t input_signal_key(const struct pty *pty, const char *s, size_t n);
/* It ends with the key that interrupts. */
bool input_is_interrupt(const struct pty *pty, const char *s, size_t n);

/* What was typed and not read yet is thrown away, as it is by a key that sends a signal. */
void input_drop(struct input *in, const struct pty *pty);
/* Queues text. As a terminal does, a key that sends a signal (^C, ^Z, ^\) throws away what was typed before
 * it and takes effect at once. ERR_TOOL when the queue would pass its limit. */
int input_add(struct input *in, const struct pty *pty, const char *s, size_t n, struct err *err);

/* Writes what the terminal can hold now. `reading`: the foreground program is waiting for terminal input.
 * True when something was written. */
bool input_pump(struct input *in, const struct pty *pty, bool reading);

/* Nothing is queued, and the programs have read all that they could. */
bool input_is_taken(const struct input *in, const struct pty *pty);

void input_release(struct input *in);

#endif
