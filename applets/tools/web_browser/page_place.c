#include "page_place.h"

#include <stddef.h>

#include "mem.h"

#define NO_HOLDER ((size_t)-1) /* nobody shows it, so far */

struct placing {
    const struct page_target *targets;
    const struct page_source *sources;
    struct page_document *documents;
};

static struct page_document *add_document(struct placing *p, size_t target, size_t layout)
{
    const struct page_snapshot *snapshot = &p->sources[target].snapshot;
    struct page_document *document = &p->documents[p->sources[target].first + layout];
    *document = (struct page_document){.target = target,
                                       .layout = &snapshot->documents[layout],
                                       .sources = buf_str(&snapshot->sources),
                                       .holder = NO_HOLDER};
    return document;
}

/* What of a frame's document is in the viewport: that part of its box which is. Its border isn't known, and
 * doesn't matter for this. */
static void place_frame(struct page_document *frame, const struct page_document *holder, size_t holder_index,
                        const struct page_spot *spot)
{
    struct page_rect part = page_rect_common(&spot->box, &holder->window);
    if (frame->holder != NO_HOLDER || part.width == 0)
        return;
    frame->holder = holder_index;
    frame->owner = spot->backend;
    frame->window =
        (struct page_rect){frame->layout->scroll_x + part.left - spot->box.left,
                           frame->layout->scroll_y + part.top - spot->box.top, part.width, part.height};
}

static void place_frames_within(struct placing *p, size_t index)
{
    struct page_document *holder = &p->documents[index];
    const struct page_source *source = &p->sources[holder->target];
    for (size_t i = 0; i < holder->layout->n; i++) {
        const struct page_spot *spot = &holder->layout->spots[i];
        if (spot->content > 0 && (size_t)spot->content < source->snapshot.n &&
            source->first + (size_t)spot->content > index)
            place_frame(&p->documents[source->first + (size_t)spot->content], holder, index, spot);
    }
}

/* The <iframe> of a target, among the documents of the one that it is in. */
static void place_target(struct placing *p, size_t target)
{
    const struct page_target *t = &p->targets[target];
    if (t->parent < 0 || (size_t)t->parent >= target)
        return;
    const struct page_source *parent = &p->sources[t->parent];
    for (size_t d = parent->first; d < parent->first + parent->snapshot.n; d++)
        for (size_t i = 0; i < p->documents[d].layout->n; i++)
            if (p->documents[d].layout->spots[i].backend == p->sources[target].owner) {
                place_frame(&p->documents[p->sources[target].first], &p->documents[d], d,
                            &p->documents[d].layout->spots[i]);
                return;
            }
}

struct page_document *page_place(const struct page_view *view, const struct page_target *targets,
                                 struct page_source *sources, size_t n_targets, size_t *n_documents)
{
    struct placing placing = {.targets = targets, .sources = sources}, *p = &placing;
    *n_documents = 0;
    for (size_t t = 0; t < n_targets; t++) {
        sources[t].first = *n_documents;
        *n_documents += sources[t].snapshot.n;
    }
    p->documents = mem_zalloc((*n_documents + 1) * sizeof *p->documents);
    for (size_t t = 0; t < n_targets; t++) {
        size_t first = sources[t].first, n = sources[t].snapshot.n;
        for (size_t i = 0; i < n; i++)
            add_document(p, t, i);
        if (t > 0 && n > 0)
            place_target(p, t);
        else if (n > 0)
            p->documents[0].window =
                (struct page_rect){p->documents[0].layout->scroll_x, p->documents[0].layout->scroll_y,
                                   view->width, view->height};
        for (size_t i = first; i < first + n; i++)
            place_frames_within(p, i);
    }
    return p->documents;
}
