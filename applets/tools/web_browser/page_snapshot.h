/* What a DOMSnapshot says about where things are. */
#ifndef APPLETS_WEB_BROWSER_PAGE_SNAPSHOT_H
#define APPLETS_WEB_BROWSER_PAGE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"

/* Whole CSS pixels, in the coordinates of one document. Far beyond what a page can be, so that sums don't
 * overflow. */
#define PAGE_COORDINATE_MAX (1 << 28)

struct page_rect {
    int left, top, width, height;
};

bool page_rect_overlap(const struct page_rect *a, const struct page_rect *b); /* false when either is empty */
/* The part that both have; empty (width and height 0) when there is none. */
struct page_rect page_rect_common(const struct page_rect *a, const struct page_rect *b);

/* What a label stands for that nobody sees: a checkbox, a radio or a switch that is not drawn, as those that
 * are drawn otherwise mostly aren't. */
struct page_control {
    const char *role; /* "": a label that stands for nothing; NULL: no label */
    bool checked;
};

/* How a node is laid out: on lines of its container, on those but with lines of its own in it, or as a block.
 */
enum page_flow { PAGE_BLOCK, PAGE_INLINE, PAGE_INLINE_BLOCK };

/* A node of a document. */
struct page_spot {
    long long backend;    /* backendDOMNodeId */
    struct page_rect box; /* around all that is laid out of it; empty where nothing is, and for blank text */
    int parent;           /* its index in the document, which is smaller than its own; -1 for the document */
    int content;          /* a frame: the index of its document in the snapshot; -1 otherwise */
    int part;   /* a text that is too long to be asked for: where in `sources` what can be seen of it starts,
                   with   a NUL behind; -1 otherwise */
    int source; /* an image: where in `sources` its address starts, with a NUL behind; -1 otherwise */
    enum page_flow flow;
    bool clickable;              /* something listens to clicks on it */
    bool unseen;                 /* not laid out, or hidden: the accessibility tree doesn't have it */
    struct page_control control; /* of a label, where that takes the place of what is unseen */
};

struct page_layout {
    struct page_spot *spots; /* in document order */
    size_t n;
    int scroll_x, scroll_y;
    int frame_id; /* where in `sources` the id of its frame starts, with a NUL behind; -1: not known */
};

struct page_snapshot {
    struct page_layout *documents; /* [0] is the target's own; owned, as all of it */
    size_t n;
    struct buf sources; /* addresses are text for lines already (page_text.h) */
};

#define PAGE_SNAPSHOT_CALL "DOMSnapshot.captureSnapshot"
#define PAGE_SNAPSHOT_PARAMS "{\"computedStyles\":[\"display\",\"visibility\"]}"

/* Takes what is wanted from the answer to that call (checked JSON), of long texts what lies in a viewport of
 * that height. What doesn't fit together in it is passed
 * over; *out has no documents when nothing does. */
void page_snapshot_read(struct page_snapshot *out, struct span result, int height);
void page_snapshot_release(struct page_snapshot *snapshot);

#endif
