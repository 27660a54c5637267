/* What the reader of a page has gathered, for the drawing of it. */
#ifndef APPLETS_WEB_BROWSER_PAGE_READER_H
#define APPLETS_WEB_BROWSER_PAGE_READER_H

#include "page_ax.h"
#include "page_snapshot.h"
#include "page_tree.h"

struct page_document {
    size_t target;
    const struct page_layout *layout;
    const char *sources;     /* of its snapshot */
    struct page_rect window; /* what of it is in the viewport, in its own coordinates; empty: nothing */
    size_t holder;           /* document that has its <iframe>; its own index for the page */
    long long owner;         /* backend id of that <iframe> */
};

struct page_gathered {
    const struct page_target *targets;
    size_t n_targets;
    const struct page_document *documents; /* [0] is the page's; a frame's is behind its holder's */
    size_t n_documents;
    struct page_ax_store *store; /* sorted */
};

/* Draws it all; -1 when the page's own root isn't there. The tree is empty before. */
int page_draw(const struct page_gathered *gathered, struct page_tree *tree);

#endif
