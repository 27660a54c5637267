/* Accessibility nodes as the browser answers them, kept together until the tree is drawn. */
#ifndef APPLETS_WEB_BROWSER_PAGE_AX_H
#define APPLETS_WEB_BROWSER_PAGE_AX_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "json.h"
#include "page_snapshot.h"

struct page_piece { /* of the store's text */
    size_t at, len;
};

struct page_ax {
    size_t document;      /* which of the reader's */
    long long id, parent; /* the browser's, unique within the document; 0: none */
    long long backend;    /* of its DOM node */
    struct page_rect box; /* empty: not in the viewport, or not laid out */
    struct {
        bool open;      /* part of an open list that isn't laid out in the page: an option of a select */
        bool part;      /* of a long text: its name is all that is in view of it */
        bool stands_in; /* a label, for a control that nobody sees: what it says is its name */
        bool drawn;     /* the drawing's own mark */
    } shown;
    struct {
        bool editable; /* it, or what it is in, takes text */
        bool settable; /* it has a value that the user changes */
        bool focusable;
        bool expanded;
        bool clickable; /* and nothing in it says what for */
    } state;
    bool ignored; /* says the browser */
    struct page_piece role, name;
    struct page_piece value;      /* current value; empty: none */
    struct page_piece source;     /* address of an image; empty: none */
    struct page_piece properties; /* "name: value, ...", fit for a line already */
    size_t children, n_children;  /* ids: where in the store's list, and how many */
};

struct page_ax_store {
    struct page_ax *nodes; /* owned, as all of it */
    size_t n, cap;
    long long *children;
    size_t n_children, cap_children;
    struct buf text;
};

#define PAGE_AX_STORE_INIT                                                                                   \
    {                                                                                                        \
        .text = BUF_INIT                                                                                     \
    }

void page_ax_release(struct page_ax_store *store);

/* What the snapshot knows of a node. */
struct page_ax_place {
    struct page_rect box;
    const char *source; /* NULL: none */
    struct page_control control;
    bool shown_open, clickable;
};

/* Adds an AXNode (checked JSON) of that document; `place` may be NULL. Nodes that are in no tree are passed
 * over. */
void page_ax_add(struct page_ax_store *store, size_t document, struct span node,
                 const struct page_ax_place *place);

/* Adds a text, of which `name` is what is in view, below the element with that number. */
void page_ax_add_text(struct page_ax_store *store, size_t document, long long backend, long long parent,
                      const char *name, const struct page_ax_place *place);

/* The backendDOMNodeId of such a node; 0: none. */
long long page_ax_backend(struct span node);

/* Puts the nodes in order; of two that are the same, the one with a place is kept. Adding undoes it. */
void page_ax_sort(struct page_ax_store *store);

/* By id, once sorted; NULL: not there. */
struct page_ax *page_ax_find(const struct page_ax_store *store, size_t document, long long id);

/* Text of a piece. */
const char *page_ax_text(const struct page_ax_store *store, const struct page_piece *piece);
bool page_ax_piece_is(const struct page_ax_store *store, const struct page_piece *piece, const char *text);

#endif
