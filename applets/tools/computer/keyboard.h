/* Keys that are pressed, and texts that are typed: whatever layout the keyboard has.
 *
 * A character that no key has gets one: a key that means nothing is given it for the time being. Programs
 * learn of that by a message, and then ask for the whole of the layout; so what a key has been given is never
 * changed before the programs have dealt with the presses of it that they were sent. */
#ifndef APPLETS_COMPUTER_KEYBOARD_H
#define APPLETS_COMPUTER_KEYBOARD_H

#include <sys/types.h>

#include "desk.h"

/* Combinations with blanks between, as "ctrl+s" or "Tab Tab Return". */
enum press { PRESS_DOWN = 1, PRESS_UP = 2 };
int keyboard_press(struct desk *d, const char *keys, int how, struct err *err);

/* A text that is being typed. */
struct typing {
    const char *text;
    size_t n, at;
    bool settling;              /* until what was typed has arrived */
    long long until_ms;         /* but for no longer than that */
    uint32_t window;            /* that was asked whether it has; 0: it can't be asked */
    struct sleeper {            /* its process then, which has when it sleeps */
        pid_t pid;              /* 0: it isn't known */
        unsigned long long ran; /* nanoseconds */
        long long since_ms;
    } sleeper;
    bool begun, stuck;   /* stuck: no key was free even when all had arrived */
    unsigned char locks; /* modifiers that were locked */
    unsigned char group; /* and the group */
};

/* Types a part. Milliseconds until it is to be called again; -1: all is typed; -2 with err. */
int keyboard_type(struct desk *d, struct typing *t, struct err *err);

/* Takes back what keys were given. */
void keyboard_restore(struct desk *d);

#endif
