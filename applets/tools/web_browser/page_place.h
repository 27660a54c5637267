/* Where the documents of a page are: which part of each is in the viewport, frames in frames included. */
#ifndef APPLETS_WEB_BROWSER_PAGE_PLACE_H
#define APPLETS_WEB_BROWSER_PAGE_PLACE_H

#include "page_reader.h"

/* The layout of a target. */
struct page_source {
    struct page_snapshot snapshot;
    size_t first;    /* its documents start there among all */
    long long owner; /* backend id of the <iframe> that it is in, in its parent's */
};

/* The documents of all targets, one behind the other: to be freed. Sets `first` of the sources. */
struct page_document *page_place(const struct page_view *view, const struct page_target *targets,
                                 struct page_source *sources, size_t n_targets, size_t *n_documents);

#endif
