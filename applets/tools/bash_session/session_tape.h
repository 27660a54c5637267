/* What a session's terminal shows and what is typed there, with times, for those who watch it live and for a
 * recording of it. A session has one as soon as somebody wants that.
 *
 * Its events are JSON, as a recording has them: [seconds, "o", text] shown, "i" typed, "r" a new size
 * ("80x24"). Newlines are as a terminal needs them. */
#ifndef APPLETS_BASH_SESSION_SESSION_TAPE_H
#define APPLETS_BASH_SESSION_SESSION_TAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "loop.h"
#include "pty.h"
#include "session_record.h"

struct tape;

struct tape *tape_new(struct loop *loop, const struct pty *pty);

#ifdef TOOLBOX_GUEST /* for want of room */
#define tape_shown(t, bytes, n) ((void)(t))
#define tape_sized(t, rows, cols) ((void)(t))
#define tape_end(t) ((void)(t))
#define tape_mute(t, ms) ((void)(t))
#define tape_is_used(t) false
#define tape_recording(t) NULL
#else
/* Each may have NULL for a tape, and then does nothing. */
void tape_shown(struct tape *t, const char *bytes, size_t n);
bool tape_is_listening(const struct tape *t);
void tape_typed(struct tape *t, const char *keys, size_t n);
/* What is shown for so long is nobody's, unless it is called again before. */
void tape_mute(struct tape *t, int ms);
void tape_sized(struct tape *t, unsigned short rows, unsigned short cols);
/* The session ends: whoever watches is told. */
void tape_end(struct tape *t);
/* Somebody watches, or it is recorded. */
bool tape_is_used(const struct tape *t);
#endif

/* ---- a recording ---- */

/* -1 with ERR_TOOL. The options' size is filled in. */
int tape_record(struct tape *t, struct record_options *options, struct err *err);
#ifndef TOOLBOX_GUEST
/* NULL: there is none. */
struct recording *tape_recording(const struct tape *t);
#endif
void tape_stop(struct tape *t);

/* ---- who watches ---- */

/* Waits for an event. */
struct tape_waiter {
    struct tape_waiter *next;
    void (*ready)(void *arg);
    void *arg;
};
void tape_wait(struct tape *t, struct tape_waiter *w);
void tape_forget(struct tape *t, struct tape_waiter *w);

struct tape_view {
    long long cursor;           /* behind what was given */
    unsigned long long omitted; /* bytes of events that are not there any more */
    unsigned short rows, cols;
    bool ended;
};
/* Appends the events behind a cursor, with commas between. Some of them are kept from the first such call
 * until none has been made for a minute. A negative cursor: `recent`, what was shown before, is the only
 * event. */
void tape_view(struct tape *t, long long cursor, const struct buf *recent, struct buf *events,
               struct tape_view *view);

#endif
