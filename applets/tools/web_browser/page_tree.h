/* What of a page is in the viewport, as text: from answers of the browser to lines. No socket and no clock in
 * it: the reader says which DevTools calls to make, is given their answers, and has the text in the end.
 *
 * A whole accessibility tree costs the browser 0.1 ms an element, most of which nobody sees. So the layout is
 * asked for first (one DOMSnapshot of each target), and accessibility nodes only for what lies in the
 * viewport, and for their ancestors.
 *
 *     struct page_reader *reader = page_reader_new(&view, targets, n);
 *     while (!page_reader_done(reader)) {
 *         while (page_reader_next(reader, &call))
 *             send call.method with call.params to the session of targets[call.target]; remember call.tag;
 *         wait for any answer; page_reader_answer(reader, tag, result);
 *     }
 *     page_reader_finish(reader, &tree, &err);
 *     page_reader_free(reader);
 *
 * Targets: [0] is the page; the others are its frames that live in processes of their own (those that
 * Target.setAutoAttach with flatten brings as type "iframe"), each behind its parent. Frames of the page's
 * own process need nothing. No domain has to be enabled for it; the calls enable what they need. */
#ifndef APPLETS_WEB_BROWSER_PAGE_TREE_H
#define APPLETS_WEB_BROWSER_PAGE_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"
#include "json.h"

/* --- reading --- */

struct page_view {
    int width, height; /* of the viewport, CSS pixels; where it is scrolled to is in the snapshot */
};

struct page_target {
    int parent; /* index of the target that holds its <iframe>; -1 for the page */
    const char
        *frame_id; /* its target id, which is its frame's id; borrowed until page_reader_free. NULL for [0] */
    int number;    /* 0 for the page, 1 and up for a frame: kept by the caller as long as the frame is
                      there, never given to another one of the same page. Ids are made of it */
};

struct page_call {
    unsigned tag;       /* to be given back with the answer */
    size_t target;      /* index into the targets: whose session it goes to */
    const char *method; /* constant */
    struct span params; /* an object's text; the reader's, until the next call of page_reader_next */
};

struct page_reader;

struct page_reader *page_reader_new(const struct page_view *view, const struct page_target *targets,
                                    size_t n);
void page_reader_free(struct page_reader *reader); /* NULL is fine; at any time, calls in flight or not */

/* The next call to be made; false when there is none for now. At most 256 are unanswered at a time, so
 * writing them never has to wait for long. */
bool page_reader_next(struct page_reader *reader, struct page_call *call);

/* An answer: the object under "result" (checked JSON; copied where it is needed), or s == NULL when there was
 * an error or the session has gone. Unknown tags are passed over. */
void page_reader_answer(struct page_reader *reader, unsigned tag, struct span result);

/* No call is left to be made or answered. */
bool page_reader_done(const struct page_reader *reader);

/* --- the text --- */

/* An id is the number of its target times this, plus the backendDOMNodeId there; of a page that is the only
 * target it is the latter, however large. */
#define PAGE_FRAME_IDS 10000000LL

struct page_node {
    long long id;                          /* as shown; no two of a tree are the same */
    int number;                            /* of the target it lives in */
    long long backend;                     /* its backendDOMNodeId there */
    size_t role, role_len, name, name_len; /* where they stand in `at` */
};

struct page_tree {
    struct buf at;   /* web_at: a line for each node, first the page's own: the only one while it is empty */
    bool has_main;   /* the page has a main region; otherwise `main` is empty */
    struct buf main; /* main_content */
    struct page_node *nodes; /* those that can be used, sorted by id; what has no area is shown as [*] only */
    size_t n;
};

#define PAGE_TREE_INIT                                                                                       \
    {                                                                                                        \
        .at = BUF_INIT, .main = BUF_INIT                                                                     \
    }

void page_tree_release(struct page_tree *tree); /* and ready for another finish */

/* Replaces what is in the tree. -1 with ERR_TOOL when the page itself couldn't be read (it went away or
 * another one came meanwhile: read again); a frame that couldn't be is left out. */
int page_reader_finish(struct page_reader *reader, struct page_tree *tree, struct err *err);

/* By id; NULL when no such node is shown. */
const struct page_node *page_tree_find(const struct page_tree *tree, long long id);

/* The first, in the order of the lines, whose name begins with `name` (ASCII case aside). */
const struct page_node *page_tree_find_named(const struct page_tree *tree, const char *name);

/* Whether the node has this role. */
bool page_tree_is(const struct page_tree *tree, const struct page_node *node, const char *role);

#endif
