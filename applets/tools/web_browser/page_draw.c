/* Drawing: the accessibility nodes of all documents, as the lines of web_at and the text of the main region.
 * One walk over the whole, without recursion (a page may nest its elements as deeply as it likes). */
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "page_reader.h"
#include "page_text.h"

#define INDENT_MAX 64 /* levels; what is deeper isn't indented any further, or the text would be square */
#define VALUE_SEARCH_MAX 64 /* nodes below a combo box that are looked at for its value */
#define NOT_THERE ((size_t)-1)

enum gap { GAP_NONE, GAP_SPACE, GAP_LINE, GAP_PARAGRAPH };

/* A node whose children are being walked. */
struct level {
    struct page_ax *node;
    const struct page_ax *nearest; /* the nearest that is shown, itself or above it; of its document */
    size_t next;                   /* child */
    int indent;                    /* of its children */
    size_t main_at;                /* how long the main text was when it began */
    bool in_main, frame_done;
};

struct drawing {
    const struct page_gathered *g;
    struct page_ax_store *store;
    struct page_tree *tree;
    struct page_ax **roots; /* of each document; NULL: not there */
    struct level *levels;
    size_t depth, cap;
    size_t cap_nodes;
    enum gap gap; /* before the next piece of the main text */
};

static bool has_role(const struct drawing *d, const struct page_ax *node, const char *role)
{
    return page_ax_piece_is(d->store, &node->role, role);
}

static bool has_one_of(const struct drawing *d, const struct page_ax *node, const char *const *roles)
{
    for (; *roles; roles++)
        if (has_role(d, node, *roles))
            return true;
    return false;
}

/* ---- which nodes have a line ---- */

static bool same_name(const struct drawing *d, const struct page_ax *a, const struct page_ax *b)
{
    return a->name.len == b->name.len &&
           memcmp(page_ax_text(d->store, &a->name), page_ax_text(d->store, &b->name), a->name.len) == 0;
}

/* A link or a button says by its name what is in it. */
static bool told_by(const struct drawing *d, const struct page_ax *node, const struct page_ax *nearest)
{
    static const char *const telling[] = {"link", "button", NULL};
    return nearest && nearest->name.len > 0 && has_one_of(d, nearest, telling) &&
           page_rect_overlap(&node->box, &nearest->box);
}

static bool is_shown(const struct drawing *d, const struct page_ax *node, const struct page_ax *parent,
                     const struct page_ax *nearest)
{
    static const char *const of_lists[] = {"option", "menuitem", NULL};
    static const char *const plain[] = {"generic", "paragraph", "div", NULL};
    if (node->ignored)
        return false;
    if (node->box.width == 0)
        return node->shown.open && has_one_of(d, node, of_lists);
    if (node->state.focusable && (node->name.len > 0 || node->state.editable))
        return true; /* what can be used has a line of its own */
    if (told_by(d, node, nearest))
        return false;
    if (node->name.len > 0)
        return !parent || !same_name(d, node, parent);
    return node->state.clickable || !has_one_of(d, node, plain);
}

/* ---- lines ---- */

/* 0: none that can be given. */
static long long id_of(const struct drawing *d, const struct page_ax *node)
{
    int number = d->g->targets[d->g->documents[node->document].target].number;
    if (node->box.width == 0 || node->backend <= 0 ||
        (node->backend >= PAGE_FRAME_IDS && d->g->n_targets > 1)) /* it would be another frame's */
        return 0;
    return number * PAGE_FRAME_IDS + node->backend;
}

static void note_node(struct drawing *d, const struct page_node *node)
{
    struct page_tree *tree = d->tree;
    if (tree->n == d->cap_nodes) {
        d->cap_nodes = d->cap_nodes ? 2 * d->cap_nodes : 64;
        tree->nodes = mem_realloc(tree->nodes, d->cap_nodes * sizeof *tree->nodes);
    }
    tree->nodes[tree->n++] = *node;
}

/* The child itself when it was asked for, and is of that parent. */
static struct page_ax *child_of(const struct drawing *d, const struct page_ax *node, size_t i)
{
    struct page_ax *child = page_ax_find(d->store, node->document, d->store->children[node->children + i]);
    return child && child->parent == node->id ? child : NULL;
}

/* The current value of an input; for a combo box that has none itself, that of the input in it. */
static const struct page_piece *value_of(const struct drawing *d, const struct page_ax *node)
{
    const struct page_ax *queue[VALUE_SEARCH_MAX] = {node};
    bool combobox = has_role(d, node, "combobox");
    if (!combobox && !node->state.editable && !node->state.settable)
        return NULL;
    for (size_t n = 1, i = 0; i < n; i++) {
        if (queue[i]->value.len > 0)
            return &queue[i]->value;
        for (size_t c = 0; combobox && c < queue[i]->n_children && n < VALUE_SEARCH_MAX; c++)
            if ((queue[n] = child_of(d, queue[i], c)))
                n++;
    }
    return NULL;
}

/* A label that stands in for its control has what it says for a name. */
static void name_label(struct drawing *d, struct page_ax *label)
{
    const struct page_ax *stack[VALUE_SEARCH_MAX] = {label};
    struct buf name BUF_AUTO = BUF_INIT;
    for (size_t n = 1; n > 0;) {
        const struct page_ax *node = stack[--n];
        if (has_role(d, node, "StaticText")) {
            if (name.len > 0 && name.data[name.len - 1] != ' ' && *page_ax_text(d->store, &node->name) != ' ')
                buf_addc(&name, ' ');
            buf_add(&name, page_ax_text(d->store, &node->name), node->name.len);
        }
        for (size_t c = node->n_children; c-- > 0 && n < VALUE_SEARCH_MAX;)
            if ((stack[n] = child_of(d, node, c)))
                n++;
    }
    if (name.len > 0)
        label->name = (struct page_piece){d->store->text.len, name.len};
    buf_add(&d->store->text, buf_str(&name), name.len);
}

static void put_line(struct drawing *d, const struct page_ax *node, int indent)
{
    struct buf *at = &d->tree->at;
    const struct page_piece *value = value_of(d, node);
    struct page_node entry = {.id = id_of(d, node), .backend = node->backend};
    entry.number = d->g->targets[d->g->documents[node->document].target].number;
    for (int i = 0; i < indent && i < INDENT_MAX; i++)
        buf_adds(at, "  ");
    if (entry.id)
        buf_addf(at, "[%lld] ", entry.id);
    else
        buf_adds(at, "[*] ");
    entry.role = at->len;
    page_text_line(at, page_ax_text(d->store, &node->role), node->role.len, PAGE_VALUE_MAX);
    entry.role_len = at->len - entry.role;
    if (node->name.len > 0) {
        buf_addc(at, ' ');
        entry.name = at->len + 1;
        page_text_quoted(at, page_ax_text(d->store, &node->name), node->name.len,
                         node->shown.part ? node->name.len : PAGE_NAME_MAX);
        entry.name_len = at->len - 1 - entry.name;
    }
    if (node->source.len > 0) {
        buf_addc(at, ' ');
        buf_add(at, page_ax_text(d->store, &node->source), node->source.len);
    }
    if (value) {
        buf_adds(at, " Current input: ");
        page_text_quoted(at, page_ax_text(d->store, value), value->len, PAGE_NAME_MAX);
    }
    if (node->properties.len > 0) {
        buf_adds(at, " [");
        buf_add(at, page_ax_text(d->store, &node->properties), node->properties.len);
        buf_addc(at, ']');
    }
    buf_addc(at, '\n');
    if (entry.id)
        note_node(d, &entry);
}

/* ---- main text ---- */

static void want_gap(struct drawing *d, enum gap gap)
{
    if (gap > d->gap)
        d->gap = gap;
}

static enum gap gap_around(const struct drawing *d, const struct page_ax *node)
{
    static const char *const blocks[] = {"paragraph", "heading", "note",    "row",  "region", "blockquote",
                                         "article",   "list",    "section", "form", "table",  NULL};
    static const char *const lines[] = {"generic", "listitem", "LineBreak", "term", "definition", NULL};
    static const char *const of_a_line[] = {"StaticText",  "link",      "emphasis", "strong", "code",
                                            "time",        "mark",      "none",     "Abbr",   "subscript",
                                            "superscript", "insertion", "deletion", NULL};
    if (has_one_of(d, node, blocks))
        return GAP_PARAGRAPH;
    if (has_one_of(d, node, lines))
        return GAP_LINE;
    return has_one_of(d, node, of_a_line) ? GAP_NONE : GAP_SPACE;
}

static void put_main(struct drawing *d, const struct page_piece *piece)
{
    static const char *const gaps[] = {"", " ", "\n", "\n\n"};
    struct buf *main = &d->tree->main;
    const char *s = page_ax_text(d->store, piece);
    bool spaced = *s == ' ' || (main->len > 0 && main->data[main->len - 1] == ' ');
    if (main->len > 0 && !(d->gap == GAP_SPACE && spaced))
        buf_adds(main, gaps[d->gap]);
    page_text_block(main, s, piece->len);
    d->gap = GAP_NONE;
}

/* On the way into a node of the main region. */
static void enter_main(struct drawing *d, const struct page_ax *node)
{
    want_gap(d, gap_around(d, node));
    if (has_role(d, node, "StaticText") && node->box.width > 0 && node->name.len > 0)
        put_main(d, &node->name);
}

/* On the way out: what has no text in it is told by its name (an image, an icon's button). */
static void leave_main(struct drawing *d, const struct level *level)
{
    const struct page_ax *node = level->node;
    if (!node->ignored && node->box.width > 0 && node->name.len > 0 && d->tree->main.len == level->main_at)
        put_main(d, &node->name);
    want_gap(d, gap_around(d, node));
}

/* ---- the walk ---- */

static void enter(struct drawing *d, struct page_ax *node, const struct level *from)
{
    struct level level = {.node = node, .main_at = d->tree->main.len};
    node->shown.drawn = true;
    if (node->shown.stands_in)
        name_label(d, node);
    if (from) {
        level.indent = from->indent;
        level.in_main = from->in_main;
        level.nearest = from->node->document == node->document ? from->nearest : NULL;
    }
    if (!node->ignored && !d->tree->has_main && has_role(d, node, "main"))
        level.in_main = d->tree->has_main = true;
    if (is_shown(d, node, from ? from->node : NULL, level.nearest)) {
        put_line(d, node, level.indent++);
        level.nearest = node;
    }
    if (level.in_main)
        enter_main(d, node);
    if (d->depth == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 64;
        d->levels = mem_realloc(d->levels, d->cap * sizeof *d->levels);
    }
    d->levels[d->depth++] = level;
}

/* The root of the document that a frame (an <object>, an <embed>) shows; NULL: it is none, or nothing of it
 * is there. */
static struct page_ax *frame_of(const struct drawing *d, const struct page_ax *node)
{
    for (size_t i = 1; i < d->g->n_documents && node->n_children == 0; i++)
        if (d->g->documents[i].holder == node->document && d->g->documents[i].owner == node->backend)
            return d->roots[i];
    return NULL;
}

static struct page_ax *next_child(struct drawing *d, struct level *level)
{
    while (level->next < level->node->n_children) {
        struct page_ax *child = child_of(d, level->node, level->next++);
        if (child && !child->shown.drawn)
            return child;
        if (!child && !has_role(d, level->node, "StaticText"))
            want_gap(d, GAP_SPACE); /* a blank, or what is out of the viewport */
    }
    if (level->frame_done)
        return NULL;
    level->frame_done = true;
    struct page_ax *root = frame_of(d, level->node);
    return root && !root->shown.drawn ? root : NULL;
}

static void walk(struct drawing *d, struct page_ax *root)
{
    enter(d, root, NULL);
    while (d->depth > 0) {
        struct level *level = &d->levels[d->depth - 1];
        struct page_ax *child = next_child(d, level);
        if (child) {
            struct level from = *level; /* the list may move */
            enter(d, child, &from);
            continue;
        }
        if (level->in_main)
            leave_main(d, level);
        d->depth--;
    }
}

static void find_roots(struct drawing *d)
{
    for (size_t i = 0; i < d->store->n; i++) {
        struct page_ax *node = &d->store->nodes[i];
        node->shown.drawn = false;
        if (node->parent == 0 && has_role(d, node, "RootWebArea"))
            d->roots[node->document] = node;
    }
}

static int compare_nodes(const void *a, const void *b)
{
    const struct page_node *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Of two nodes of one element (there should be none) either will do. */
static void sort_nodes(struct page_tree *tree)
{
    size_t kept = 0;
    if (tree->n > 0)
        qsort(tree->nodes, tree->n, sizeof *tree->nodes, compare_nodes);
    for (size_t i = 0; i < tree->n; i++)
        if (kept == 0 || tree->nodes[kept - 1].id != tree->nodes[i].id)
            tree->nodes[kept++] = tree->nodes[i];
    tree->n = kept;
}

int page_draw(const struct page_gathered *g, struct page_tree *tree)
{
    struct drawing d = {.g = g, .store = g->store, .tree = tree};
    d.roots = mem_zalloc(g->n_documents * sizeof *d.roots);
    find_roots(&d);
    bool there = d.roots[0] != NULL;
    if (there)
        walk(&d, d.roots[0]);
    while (tree->main.len > 0 && strchr(" \n\t", tree->main.data[tree->main.len - 1]))
        buf_truncate(&tree->main, tree->main.len - 1);
    sort_nodes(tree);
    free(d.roots);
    free(d.levels);
    return there ? 0 : -1;
}
