/* The reader: which calls are to be made next, in rounds, each sent at once: the layout of every target; the
 * accessibility nodes of what is in the viewport, with all that they are in; then what these have brought up:
 * options of lists that are open, and parents that aren't among the ancestors in the DOM (aria-owns).
 *
 * Nodes are asked for one by one where that costs the browser less than the whole tree of the document does.
 * It nearly always does. But for each question about a part of a line the browser goes through all that flows
 * with it, so a text of thousands of elements in one block is better taken whole. */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "page_number.h"
#include "page_place.h"
#include "page_reader.h"

#define CALLS_MAX 256       /* unanswered at a time */
#define LIST_NODES_MAX 2000 /* of all open lists together: a page can nest them in each other */
#define PARENTS_MAX 200     /* missing ones that are asked for, each with all that is above it */

/* What the browser takes, measured with Chromium 156: only their ratios matter. */
#define COST_OF_NODE 150    /* asked for by itself */
#define COST_OF_FLOW 2      /* more, for each node that it flows with */
#define COST_IN_TREE 120    /* of a node in the whole tree */
#define COST_OF_TEXT 100000 /* of a long text there */

enum call_kind { CALL_ENABLE, CALL_SNAPSHOT, CALL_OWNER, CALL_NODE, CALL_TREE, CALL_ANCESTORS };

struct call {
    enum call_kind kind;
    size_t target, document, spot; /* document and spot: of a node */
    long long backend;
    bool open; /* a part of an open list */
    bool answered;
};

/* A node to be taken from a whole tree. */
struct wanted {
    long long backend;
    size_t document, spot;
};

enum round { LAYOUT, NODES, LISTS, PARENTS, DONE };

struct page_reader {
    struct page_view view;
    struct page_target *targets;
    struct page_source *sources; /* one for each target */
    size_t n_targets;
    struct page_document *documents;
    size_t n_documents;
    struct page_ax_store store;
    struct {
        struct call *list; /* a call's tag is its index */
        size_t n, cap, sent, unanswered;
    } calls;
    struct wanted *wanted; /* sorted by document and backend */
    size_t n_wanted, cap_wanted, list_nodes;
    enum round round;
    struct buf params;
};

static void queue(struct page_reader *r, const struct call *call)
{
    if (r->calls.n == r->calls.cap) {
        r->calls.cap = r->calls.cap ? 2 * r->calls.cap : 64;
        r->calls.list = mem_realloc(r->calls.list, r->calls.cap * sizeof *r->calls.list);
    }
    r->calls.list[r->calls.n++] = *call;
}

struct page_reader *page_reader_new(const struct page_view *view, const struct page_target *targets, size_t n)
{
    struct page_reader *r = mem_zalloc(sizeof *r);
    r->view = *view;
    r->targets = mem_alloc(n * sizeof *targets);
    memcpy(r->targets, targets, n * sizeof *targets);
    r->sources = mem_zalloc(n * sizeof *r->sources);
    r->n_targets = n;
    r->store = (struct page_ax_store)PAGE_AX_STORE_INIT;
    buf_init(&r->params, BUF_NO_MAX);
    for (size_t i = 0; i < n; i++) {
        buf_init(&r->sources[i].snapshot.sources, BUF_NO_MAX);
        queue(r, &(struct call){.kind = CALL_ENABLE, .target = i});
        queue(r, &(struct call){.kind = CALL_SNAPSHOT, .target = i});
        if (i > 0)
            queue(r, &(struct call){.kind = CALL_OWNER, .target = i});
    }
    return r;
}

void page_reader_free(struct page_reader *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_targets; i++)
        page_snapshot_release(&r->sources[i].snapshot);
    page_ax_release(&r->store);
    buf_release(&r->params);
    free(r->targets);
    free(r->sources);
    free(r->documents);
    free(r->wanted);
    free(r->calls.list);
    free(r);
}

/* ---- second round: the nodes there ---- */

static void ask_node(struct page_reader *r, size_t document, size_t spot, bool open)
{
    const struct page_document *d = &r->documents[document];
    queue(r, &(struct call){.kind = CALL_NODE,
                            .target = d->target,
                            .document = document,
                            .spot = spot,
                            .backend = d->layout->spots[spot].backend,
                            .open = open});
}

/* Where a node is. A document is wherever one looks at it: what is said of its own box doesn't scroll. */
static const struct page_rect *box_of(const struct page_document *document, size_t spot)
{
    return spot == 0 ? &document->window : &document->layout->spots[spot].box;
}

static bool in_window(const struct page_document *document, size_t spot)
{
    return page_rect_overlap(box_of(document, spot), &document->window);
}

/* Which nodes are in the window, and what they are in. NULL: none. */
static bool *nodes_wanted(const struct page_document *document)
{
    size_t n = document->layout->n;
    if (document->window.width == 0 || n == 0)
        return NULL;
    bool *wanted = mem_zalloc(n * sizeof *wanted);
    for (size_t i = n; i-- > 0;) {
        wanted[i] |= in_window(document, i);
        if (wanted[i] && document->layout->spots[i].parent >= 0)
            wanted[document->layout->spots[i].parent] = true;
    }
    return wanted;
}

/* Whether those cost more one by one than the whole document does. */
static bool better_whole(const struct page_layout *layout, const bool *wanted)
{
    struct {
        size_t holder; /* the node on whose lines its content is */
        unsigned long long size;
    } *flows = mem_zalloc(layout->n * sizeof *flows);
    unsigned long long single = 0, whole = 0;
    for (size_t i = 0; i < layout->n; i++) {
        const struct page_spot *spot = &layout->spots[i];
        size_t above = spot->parent >= 0 ? flows[spot->parent].holder : i;
        flows[i].holder = spot->flow == PAGE_INLINE ? above : i;
        flows[above].size += spot->flow != PAGE_BLOCK;
        whole += spot->part >= 0 ? COST_OF_TEXT : spot->box.width > 0 ? COST_IN_TREE : 0;
    }
    for (size_t i = 0; i < layout->n; i++)
        if (wanted[i]) {
            const struct page_spot *spot = &layout->spots[i];
            single += COST_OF_NODE;
            if (spot->flow != PAGE_BLOCK && spot->parent >= 0)
                single += COST_OF_FLOW * flows[flows[spot->parent].holder].size;
        }
    free(flows);
    return single > whole;
}

static void want_in_tree(struct page_reader *r, size_t document, size_t spot)
{
    if (r->n_wanted == r->cap_wanted) {
        r->cap_wanted = r->cap_wanted ? 2 * r->cap_wanted : 256;
        r->wanted = mem_realloc(r->wanted, r->cap_wanted * sizeof *r->wanted);
    }
    long long backend = r->documents[document].layout->spots[spot].backend;
    r->wanted[r->n_wanted++] = (struct wanted){backend, document, spot};
}

static struct page_ax_place place_of(const struct page_document *document, size_t spot, bool open)
{
    const struct page_spot *s = &document->layout->spots[spot];
    struct page_ax_place place = {.shown_open = open, .control = s->control, .clickable = s->clickable};
    if (in_window(document, spot))
        place.box = *box_of(document, spot);
    if (s->source >= 0)
        place.source = document->sources + s->source;
    return place;
}

/* For a long text the browser would take seconds. Of an element's node the number is that of the element. */
static void take_text(struct page_reader *r, size_t index, size_t spot)
{
    const struct page_document *document = &r->documents[index];
    const struct page_spot *s = &document->layout->spots[spot];
    struct page_ax_place place = place_of(document, spot, false);
    if (s->parent >= 0)
        page_ax_add_text(&r->store, index, s->backend, document->layout->spots[s->parent].backend,
                         document->sources + s->part, &place);
}

/* Asks for all of a document that is in its window, and for what that is in. */
static void ask_visible(struct page_reader *r, size_t index)
{
    const struct page_document *document = &r->documents[index];
    bool *wanted = nodes_wanted(document);
    if (!wanted)
        return;
    bool whole = better_whole(document->layout, wanted);
    for (size_t i = 0; i < document->layout->n; i++)
        if (wanted[i] && whole)
            want_in_tree(r, index, i);
        else if (wanted[i] && document->layout->spots[i].part < 0)
            ask_node(r, index, i, false);
        else if (wanted[i])
            take_text(r, index, i);
    if (whole)
        queue(r, &(struct call){.kind = CALL_TREE, .target = document->target, .document = index});
    free(wanted);
}

static int compare_wanted(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    if (x->document != y->document)
        return x->document < y->document ? -1 : 1;
    return x->backend < y->backend ? -1 : x->backend > y->backend;
}

static void ask_all_visible(struct page_reader *r)
{
    for (size_t i = 0; i < r->n_documents; i++)
        ask_visible(r, i);
    if (r->n_wanted > 0)
        qsort(r->wanted, r->n_wanted, sizeof *r->wanted, compare_wanted);
}

/* ---- third round: what is missing still ---- */

/* A list that is open is drawn by a window of its own: the page has no layout of its options. */
static void ask_list(struct page_reader *r, const struct page_ax *list)
{
    const struct page_document *document = &r->documents[list->document];
    const struct page_spot *spots = document->layout->spots;
    size_t n = document->layout->n, at = 0;
    while (at < n && spots[at].backend != list->backend)
        at++;
    for (size_t i = at + 1; i < n && r->list_nodes < LIST_NODES_MAX && spots[i].parent >= (int)at; i++)
        if (!in_window(document, i)) {
            ask_node(r, list->document, i, true);
            r->list_nodes++;
        }
}

static void ask_lists(struct page_reader *r)
{
    for (size_t i = 0; i < r->store.n; i++) {
        const struct page_ax *node = &r->store.nodes[i];
        if (node->state.expanded && node->box.width > 0 &&
            page_ax_piece_is(&r->store, &node->role, "combobox"))
            ask_list(r, node);
    }
}

static int compare_parents(const void *a, const void *b)
{
    const struct page_ax *x = *(const struct page_ax *const *)a, *y = *(const struct page_ax *const *)b;
    if (x->document != y->document)
        return x->document < y->document ? -1 : 1;
    return x->parent < y->parent ? -1 : x->parent > y->parent;
}

/* Each missing parent once, with all that is above it, by a node below it. */
static void ask_parents(struct page_reader *r)
{
    const struct page_ax **orphans = mem_alloc((r->store.n + 1) * sizeof *orphans);
    size_t n = 0, asked = 0;
    for (size_t i = 0; i < r->store.n; i++) {
        const struct page_ax *node = &r->store.nodes[i];
        if (node->parent != 0 && node->backend != 0 && !page_ax_find(&r->store, node->document, node->parent))
            orphans[n++] = node;
    }
    if (n > 0)
        qsort(orphans, n, sizeof *orphans, compare_parents);
    for (size_t i = 0; i < n && asked < PARENTS_MAX; i++)
        if (i == 0 || compare_parents(&orphans[i - 1], &orphans[i]) != 0) {
            queue(r, &(struct call){.kind = CALL_ANCESTORS,
                                    .target = r->documents[orphans[i]->document].target,
                                    .document = orphans[i]->document,
                                    .backend = orphans[i]->backend});
            asked++;
        }
    free(orphans);
}

/* ---- from round to round ---- */

static void next_round(struct page_reader *r)
{
    switch (r->round) {
    case LAYOUT:
        r->documents = page_place(&r->view, r->targets, r->sources, r->n_targets, &r->n_documents);
        ask_all_visible(r);
        break;
    case NODES:
        page_ax_sort(&r->store);
        ask_lists(r);
        break;
    case LISTS:
        page_ax_sort(&r->store);
        ask_parents(r);
        break;
    case PARENTS:
        page_ax_sort(&r->store);
        break;
    case DONE:
        return;
    }
    r->round++;
}

bool page_reader_done(const struct page_reader *r)
{
    return r->round == DONE;
}

static const char *method_of(enum call_kind kind)
{
    switch (kind) {
    case CALL_ENABLE:
        return "Accessibility.enable";
    case CALL_SNAPSHOT:
        return PAGE_SNAPSHOT_CALL;
    case CALL_OWNER:
        return "DOM.getFrameOwner";
    case CALL_NODE:
        return "Accessibility.getPartialAXTree";
    case CALL_TREE:
        return "Accessibility.getFullAXTree";
    case CALL_ANCESTORS:
        return "Accessibility.getAXNodeAndAncestors";
    }
    return NULL;
}

static void put_params(struct page_reader *r, const struct call *call)
{
    struct buf *params = &r->params;
    buf_truncate(params, 0);
    if (call->kind == CALL_SNAPSHOT) {
        buf_adds(params, PAGE_SNAPSHOT_PARAMS);
        return;
    }
    buf_addc(params, '{');
    if (call->kind == CALL_OWNER)
        json_member_string(params, "frameId", r->targets[call->target].frame_id);
    if (call->kind == CALL_TREE && r->documents[call->document].layout->frame_id >= 0)
        json_member_string(params, "frameId",
                           r->documents[call->document].sources +
                               r->documents[call->document].layout->frame_id);
    if (call->kind == CALL_NODE || call->kind == CALL_ANCESTORS)
        json_member_int(params, "backendNodeId", call->backend);
    if (call->kind == CALL_NODE)
        json_member_bool(params, "fetchRelatives", false);
    buf_addc(params, '}');
}

bool page_reader_next(struct page_reader *r, struct page_call *out)
{
    if (r->calls.sent == r->calls.n || r->calls.unanswered == CALLS_MAX)
        return false;
    const struct call *call = &r->calls.list[r->calls.sent];
    put_params(r, call);
    out->tag = (unsigned)r->calls.sent++;
    out->target = call->kind == CALL_OWNER && r->targets[call->target].parent >= 0
                      ? (size_t)r->targets[call->target].parent
                      : call->target;
    out->method = method_of(call->kind);
    out->params = span_of(&r->params);
    r->calls.unanswered++;
    return true;
}

/* Takes a node of a whole tree if it is one of those wanted. */
static void take_wanted(struct page_reader *r, size_t document, struct span node)
{
    struct wanted key = {.document = document, .backend = page_ax_backend(node)};
    const struct wanted *wanted = bsearch(&key, r->wanted, r->n_wanted, sizeof key, compare_wanted);
    if (!wanted)
        return;
    struct page_ax_place place = place_of(&r->documents[document], wanted->spot, false);
    page_ax_add(&r->store, document, node, &place);
}

static void take_nodes(struct page_reader *r, const struct call *call, struct span result)
{
    struct span list, node;
    if (!json_member(result, "nodes", &list, NULL) || json_kind(list) != JSON_ARRAY)
        return;
    struct page_ax_place place = {0};
    if (call->kind == CALL_NODE)
        place = place_of(&r->documents[call->document], call->spot, call->open);
    for (size_t at = 0; json_element(list, &at, &node);)
        if (call->kind == CALL_TREE)
            take_wanted(r, call->document, node);
        else
            page_ax_add(&r->store, call->document, node, call->kind == CALL_NODE ? &place : NULL);
}

static void take_answer(struct page_reader *r, const struct call *call, struct span result)
{
    struct span owner;
    switch (call->kind) {
    case CALL_ENABLE:
        break;
    case CALL_SNAPSHOT:
        page_snapshot_release(&r->sources[call->target].snapshot);
        page_snapshot_read(&r->sources[call->target].snapshot, result, r->view.height);
        break;
    case CALL_OWNER:
        if (json_member(result, "backendNodeId", &owner, NULL))
            r->sources[call->target].owner = page_number(owner, 1LL << 52);
        break;
    case CALL_NODE:
    case CALL_TREE:
    case CALL_ANCESTORS:
        take_nodes(r, call, result);
        break;
    }
}

void page_reader_answer(struct page_reader *r, unsigned tag, struct span result)
{
    if (tag >= r->calls.sent || r->calls.list[tag].answered)
        return;
    r->calls.list[tag].answered = true;
    r->calls.unanswered--;
    if (result.s && json_kind(result) == JSON_OBJECT)
        take_answer(r, &r->calls.list[tag], result);
    while (r->calls.unanswered == 0 && r->calls.sent == r->calls.n && r->round != DONE)
        next_round(r);
}

int page_reader_finish(struct page_reader *r, struct page_tree *tree, struct err *err)
{
    struct page_gathered gathered = {.targets = r->targets,
                                     .n_targets = r->n_targets,
                                     .documents = r->documents,
                                     .n_documents = r->n_documents,
                                     .store = &r->store};
    page_tree_release(tree);
    if (r->round == DONE && r->sources[0].snapshot.n > 0 && page_draw(&gathered, tree) == 0)
        return 0;
    page_tree_release(tree);
    return err_set(err, ERR_TOOL, "the page went away while it was read");
}
