#include "page_ax.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "page_number.h"
#include "page_text.h"

#define ID_MAX (1LL << 52) /* ids are numbers that a double holds */

void page_ax_release(struct page_ax_store *store)
{
    free(store->nodes);
    free(store->children);
    buf_release(&store->text);
    *store = (struct page_ax_store)PAGE_AX_STORE_INIT;
}

const char *page_ax_text(const struct page_ax_store *store, const struct page_piece *piece)
{
    return buf_str(&store->text) + piece->at;
}

bool page_ax_piece_is(const struct page_ax_store *store, const struct page_piece *piece, const char *text)
{
    return piece->len == strlen(text) && memcmp(page_ax_text(store, piece), text, piece->len) == 0;
}

/* ---- reading ---- */

static struct span object_member(struct span object, const char *key)
{
    struct span value = {NULL, 0};
    if (object.s && json_kind(object) == JSON_OBJECT)
        json_member(object, key, &value, NULL);
    return value;
}

static struct page_piece piece_from(const struct page_ax_store *store, size_t at)
{
    return (struct page_piece){at, store->text.len - at};
}

static struct page_piece put_piece(struct page_ax_store *store, const char *text)
{
    size_t at = store->text.len;
    buf_adds(&store->text, text);
    return piece_from(store, at);
}

/* The value of an AXValue: a string's text, a number as it is written. */
static struct page_piece read_value(struct page_ax_store *store, struct span ax_value)
{
    size_t at = store->text.len;
    struct span value = object_member(ax_value, "value");
    if (value.s && json_kind(value) == JSON_STRING)
        json_string_text(value, &store->text);
    else if (value.s && json_kind(value) == JSON_NUMBER)
        buf_add(&store->text, value.s, value.n);
    return piece_from(store, at);
}

/* Properties that say nothing, or nothing that a line needs. */
static bool is_hidden(struct span name, bool is_false)
{
    static const char *const always[] = {"focusable", "level", "settable", "multiline"};
    static const char *const when_false[] = {"readonly", "invalid"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (json_string_is(name, always[i]))
            return true;
    for (size_t i = 0; is_false && i < sizeof when_false / sizeof *when_false; i++)
        if (json_string_is(name, when_false[i]))
            return true;
    return false;
}

static void note_flags(struct page_ax *node, struct span name, bool is_false)
{
    node->state.editable |= json_string_is(name, "editable");
    node->state.settable |= json_string_is(name, "settable") && !is_false;
    node->state.focusable |= json_string_is(name, "focusable") && !is_false;
    node->state.expanded |= json_string_is(name, "expanded") && !is_false;
}

/* Appends a property's value as a line has it; false when there is none. */
static bool put_property_value(struct page_ax_store *store, const struct page_ax *node, struct span name,
                               struct span value)
{
    struct buf text BUF_AUTO = BUF_INIT, line BUF_AUTO = BUF_INIT;
    bool is_url = json_string_is(name, "url");
    switch (json_kind(value)) {
    case JSON_BOOL:
        buf_adds(&line, *value.s == 't' ? "True" : "False");
        break;
    case JSON_NUMBER:
        buf_add(&line, value.s, value.n);
        break;
    case JSON_STRING:
        json_string_text(value, &text);
        if (is_url)
            page_text_url(&line, buf_str(&text), text.len);
        else
            page_text_word(&line, buf_str(&text), text.len, PAGE_VALUE_MAX);
        break;
    default:
        return false;
    }
    if (line.len == 0 || (is_url && line.len == node->source.len &&
                          memcmp(buf_str(&line), page_ax_text(store, &node->source), line.len) == 0))
        return false; /* the address of an image is shown already */
    if (store->text.len > node->properties.at)
        buf_adds(&store->text, ", ");
    json_string_text(name, &store->text);
    buf_adds(&store->text, ": ");
    buf_add(&store->text, buf_str(&line), line.len);
    return true;
}

static void read_properties(struct page_ax_store *store, struct page_ax *node, struct span list)
{
    struct span property;
    if (!list.s || json_kind(list) != JSON_ARRAY)
        return;
    for (size_t at = 0; json_element(list, &at, &property);) {
        struct span name = object_member(property, "name");
        struct span value = object_member(object_member(property, "value"), "value");
        if (!name.s || json_kind(name) != JSON_STRING || !value.s)
            continue;
        bool is_false = span_is(value, "false") || json_string_is(value, "false");
        note_flags(node, name, is_false);
        if (!is_hidden(name, is_false))
            put_property_value(store, node, name, value);
    }
}

static void put_value_now(struct page_ax_store *store, struct span ax_value)
{
    struct span value = object_member(ax_value, "value");
    if (value.s && json_kind(value) == JSON_NUMBER) {
        buf_adds(&store->text, "valuenow: ");
        buf_add(&store->text, value.s, value.n);
    }
}

static void add_child(struct page_ax_store *store, long long id)
{
    if (store->n_children == store->cap_children) {
        store->cap_children = store->cap_children ? 2 * store->cap_children : 256;
        store->children = mem_realloc(store->children, store->cap_children * sizeof *store->children);
    }
    store->children[store->n_children++] = id;
}

static void read_children(struct page_ax_store *store, struct page_ax *node, struct span list)
{
    struct span id;
    node->children = store->n_children;
    if (!list.s || json_kind(list) != JSON_ARRAY)
        return;
    for (size_t at = 0; json_element(list, &at, &id);)
        add_child(store, page_number(id, ID_MAX));
    node->n_children = store->n_children - node->children;
}

static struct page_ax *new_node(struct page_ax_store *store)
{
    if (store->n == store->cap) {
        store->cap = store->cap ? 2 * store->cap : 64;
        store->nodes = mem_realloc(store->nodes, store->cap * sizeof *store->nodes);
    }
    store->nodes[store->n] = (struct page_ax){0};
    return &store->nodes[store->n++];
}

long long page_ax_backend(struct span node)
{
    struct span id =
        json_kind(node) == JSON_OBJECT ? object_member(node, "backendDOMNodeId") : (struct span){0};
    return id.s ? page_number(id, ID_MAX) : 0;
}

void page_ax_add(struct page_ax_store *store, size_t document, struct span object,
                 const struct page_ax_place *place)
{
    enum { ID, IGNORED, ROLE, NAME, VALUE, PROPERTIES, PARENT, CHILDREN, BACKEND, DESCRIPTION, N };
    static const char *const keys[N] = {
        "nodeId",   "ignored",          "role",       "name", "value", "properties", "parentId",
        "childIds", "backendDOMNodeId", "description"};
    struct span parts[N];
    int counts[N];
    if (json_kind(object) != JSON_OBJECT)
        return;
    json_members(object, keys, N, parts, counts);
    long long id = counts[ID] ? page_number(parts[ID], ID_MAX) : 0;
    if (id == 0) /* what has no node in the tree is answered with this one */
        return;
    struct page_ax *node = new_node(store);
    node->document = document;
    node->id = id;
    node->parent = counts[PARENT] ? page_number(parts[PARENT], ID_MAX) : 0;
    node->backend = counts[BACKEND] ? page_number(parts[BACKEND], ID_MAX) : 0;
    node->ignored = counts[IGNORED] && *parts[IGNORED].s == 't';
    node->shown.stands_in = place && place->control.role && *place->control.role;
    node->role = read_value(store, parts[ROLE]);
    if (node->shown.stands_in) {
        node->ignored = false;
        node->role = put_piece(store, place->control.role);
    }
    node->name = read_value(store, parts[NAME]);
    node->value = read_value(store, parts[VALUE]);
    node->source.at = store->text.len;
    if (place && place->source && page_ax_piece_is(store, &node->role, "image"))
        buf_adds(&store->text, place->source);
    node->source = piece_from(store, node->source.at);
    if (place) {
        node->box = place->box;
        node->shown.open = place->shown_open;
    }
    node->properties.at = store->text.len;
    if (node->shown.stands_in)
        buf_addf(&store->text, "checked: %s", place->control.checked ? "true" : "false");
    if (page_ax_piece_is(store, &node->role, "progressbar") || page_ax_piece_is(store, &node->role, "meter"))
        put_value_now(store, parts[VALUE]);
    read_children(store, node, parts[CHILDREN]);
    node->state.clickable = place && place->clickable && node->n_children == 0;
    if (node->state.clickable && page_ax_piece_is(store, &node->role, "generic"))
        buf_adds(&store->text, "clickable: True");
    read_properties(store, node, parts[PROPERTIES]);
    node->properties = piece_from(store, node->properties.at);
    if (node->name.len == 0 && node->n_children == 0) /* an icon that has nothing but a title */
        node->name = read_value(store, parts[DESCRIPTION]);
}

void page_ax_add_text(struct page_ax_store *store, size_t document, long long backend, long long parent,
                      const char *name, const struct page_ax_place *place)
{
    struct page_ax *node = new_node(store);
    *node = (struct page_ax){.document = document,
                             .id = backend,
                             .parent = parent,
                             .backend = backend,
                             .box = place->box,
                             .shown.part = true};
    node->role = put_piece(store, "StaticText");
    node->name = put_piece(store, name);
    node->properties =
        put_piece(store, "part: \"the rest is out of view: web_scroll, web_find and web_text have it\"");
}

/* ---- finding ---- */

static int compare_ids(const struct page_ax *a, const struct page_ax *b)
{
    if (a->document != b->document)
        return a->document < b->document ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int compare_places(const void *a, const void *b)
{
    const struct page_ax *x = a, *y = b;
    int order = compare_ids(x, y);
    if (order != 0)
        return order;
    return (y->box.width > 0 || y->shown.open) - (x->box.width > 0 || x->shown.open);
}

void page_ax_sort(struct page_ax_store *store)
{
    size_t kept = 0;
    if (store->n > 0)
        qsort(store->nodes, store->n, sizeof *store->nodes, compare_places);
    for (size_t i = 0; i < store->n; i++)
        if (kept == 0 || compare_ids(&store->nodes[kept - 1], &store->nodes[i]) != 0)
            store->nodes[kept++] = store->nodes[i];
    store->n = kept;
}

struct page_ax *page_ax_find(const struct page_ax_store *store, size_t document, long long id)
{
    struct page_ax key = {.document = document, .id = id};
    size_t low = 0, high = store->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_ids(&store->nodes[middle], &key);
        if (order == 0)
            return &store->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
