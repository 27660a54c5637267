/* What the browser has open: pages, their frames in other processes, and how far each has come with loading.
 *
 * It is kept up to date by the browser's events alone. The newest page is the current one; the one that
 * was current before comes back when it closes. */
#ifndef APPLETS_WEB_BROWSER_TAB_H
#define APPLETS_WEB_BROWSER_TAB_H

#include <stdbool.h>
#include <stddef.h>

#include "cdp.h"
#include "tab_awaited.h"
#include "tab_dialog.h"
#include "tab_downloads.h"
#include "tab_overrides.h"
#include "tab_traffic.h"

#define TABS_MAX 20  /* a page that opens more has them closed again */
#define NOTES_MAX 20 /* things that happened during one action */

/* Names of things under way: frames that load, requests. Bounded: what doesn't fit is not waited for. */
#define IDS_MAX 128
struct ids {
    char *list[IDS_MAX];
    size_t n;
};

/* A frame that lives in a process of its own, with its own session. */
struct frame {
    struct frame *next;
    char *target, *session, *parent; /* parent: session of the page or frame that holds it */
    int number;                      /* from 1, never given twice in a tab */
};

enum navigation {
    NAVIGATION_NONE,
    NAVIGATION_REQUESTED, /* the page wants it; it may come to nothing */
    NAVIGATION_STARTED,   /* the browser is at it, and no document has come yet */
};

struct tab_state {
    bool ready;       /* set up: it answers calls */
    bool crashed;     /* until another document comes */
    bool stuck;       /* its page didn't answer in time */
    bool unreachable; /* since the last tabs_watch a document could not be had; the browser's own is shown */
    bool parsed;      /* DOMContentLoaded */
    bool loaded;      /* load */
};

struct tab {
    struct tab *next;       /* the one that was opened, or was current, before */
    int number;             /* from 0, never given twice */
    char *target, *session; /* the target's id is its main frame's */
    struct frame *frames;
    int last_number; /* of a frame */
    char *url;       /* of the main document */
    struct tab_state is;
    unsigned loads; /* documents that have come */
    struct awaited awaited;
    /* When what has been announced is due: another document by a refresh, a download; as now_ms, 0: nothing.
     */
    long long due_ms;
    enum navigation navigation;
    struct ids loading;  /* other frames that load */
    struct ids requests; /* scripts' requests that were begun since the last tabs_watch */
};

/* What a click is to ask for files by (upload.c). */
struct chooser {
    bool wanted, single;
    char *session; /* NULL: nothing has asked */
    long long backend;
};

struct tabs {
    struct cdp *cdp;
    struct tab *first; /* the current one */
    size_t n;
    int next_number;
    struct {
        int width, height;
    } window;       /* of each page, in CSS pixels */
    char token[33]; /* known to the browser's pages by their timers alone (tab_scripts.h) */
    bool opening;   /* a page has asked for a new tab, which is about to come */
    struct dialogs dialogs;
    struct downloads downloads;
    struct overrides overrides;
    struct traffic traffic;
    struct chooser chooser;
    char *dragged; /* what the browser has been given to drag, an object's text; NULL: nothing */
    struct {
        struct buf text; /* a JSON array's elements */
        size_t n;
        char *failure; /* what of it makes an action fail */
    } notes;           /* what happened since tabs_watch, in words */
    struct {
        void (*changed)(void *arg); /* something that waits may go on */
        void *arg;
    } owner;
};

/* Of cdp_events. */
void tabs_event(struct tabs *tabs, const char *session, const char *method, struct span params);

/* Begins to note what happens, and to count what is begun. */
void tabs_watch(struct tabs *tabs);
void tabs_note(struct tabs *tabs, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* By its number; NULL when there is none. */
struct tab *tabs_find(const struct tabs *tabs, long long number);
void tabs_make_current(struct tabs *tabs, struct tab *tab);

/* Session of a frame by its number (0: the page itself); NULL when it is gone. */
const char *tab_session(const struct tab *tab, int number);

/* A member's whole part, as page_number has it; 0 where there is none. */
long long member_number(struct span object, const char *key);

/* Appends a member of an object as text; false when it isn't there. */
bool member_text(struct span object, const char *key, struct buf *out);

#endif
