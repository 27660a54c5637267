/* The DevTools protocol over a pair of pipes, as a browser speaks it with --remote-debugging-pipe: JSON
 * messages with a NUL behind each, many sessions on one connection.
 *
 * A call is answered exactly once, from the loop: with its result, or with an error, which says what the
 * browser says, or why nothing can be heard from it any more. Bytes are looked at once each, whatever the
 * size of a message; one that is longer than CDP_MESSAGE_MAX is thrown away, and the call that it answers
 * fails. */
#ifndef APPLETS_WEB_BROWSER_CDP_H
#define APPLETS_WEB_BROWSER_CDP_H

#include "err.h"
#include "json.h"
#include "loop.h"

#define CDP_MESSAGE_MAX (256u << 20)

struct cdp;

/* `result` is an object's checked text, valid during the call. err: NULL, or what went wrong (ERR_TOOL; then
 * there is no result, s == NULL). */
typedef void (*cdp_answer_fn)(void *arg, struct span result, const struct err *err);

struct cdp_events {
    /* `session`: "" for the browser itself. `params` as above. */
    void (*event)(void *arg, const char *session, const char *method, struct span params);
    void (*hung_up)(void *arg); /* once: the browser has closed its pipe, and every call is about to fail */
};

/* Takes both descriptors (non-blocking). `events` stays the caller's. */
struct cdp *cdp_new(struct loop *loop, int read_fd, int write_fd, const struct cdp_events *events, void *arg);

/* Sends a call; `session` as above, `params` the text of an object, or s == NULL: none. `done` may be NULL.
 */
void cdp_call(struct cdp *cdp, const char *session, const char *method, struct span params,
              cdp_answer_fn done, void *arg);

/* The calls with this arg are answered to nobody. */
void cdp_forget(struct cdp *cdp, const void *arg);

/* Fails the open calls of a session that is gone (NULL: all of them). */
void cdp_fail(struct cdp *cdp, const char *session, const struct err *err);

/* Closes the pipes, which ends a browser; `why` is what open calls and all that come later are told. hung_up
 * is not called. */
void cdp_close(struct cdp *cdp, const struct err *why);

#endif
