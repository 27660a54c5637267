/* When a session looks at its programs again: at once where something has just happened, seldom where nothing
 * has for long. */
#ifndef APPLETS_BASH_SESSION_SESSION_PACE_H
#define APPLETS_BASH_SESSION_SESSION_PACE_H

#include <stdbool.h>

#include "loop.h"

struct pace {
    struct loop_source *timer; /* fires `look` */
    void (*look)(void *arg);
    void *arg;
    int tick_ms; /* until the next look */
    int thorough_ms;
    long long thorough_at;   /* now_ms(), from when on the next look may be at all processes */
    long long last_activity; /* now_ms() */
};

void pace_start(struct pace *p, struct loop *loop, void (*look)(void *arg), void *arg);
/* Something has happened (output, input taken, the shell told): what waits looks again soon. */
void pace_stir(struct pace *p);
/* A look at all processes costs much, and is due in ever longer intervals: true when it is. */
bool pace_is_thorough(struct pace *p);
/* Milliseconds until the next look, each time more. */
int pace_next(struct pace *p);

#endif
