#include "page_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "page_columns.h"
#include "page_number.h"
#include "page_text.h"

bool page_rect_overlap(const struct page_rect *a, const struct page_rect *b)
{
    return page_rect_common(a, b).width > 0;
}

struct page_rect page_rect_common(const struct page_rect *a, const struct page_rect *b)
{
    int left = a->left > b->left ? a->left : b->left;
    int top = a->top > b->top ? a->top : b->top;
    int right = a->left + a->width < b->left + b->width ? a->left + a->width : b->left + b->width;
    int bottom = a->top + a->height < b->top + b->height ? a->top + a->height : b->top + b->height;
    if (right <= left || bottom <= top)
        return (struct page_rect){0};
    return (struct page_rect){left, top, right - left, bottom - top};
}

/* Grows `box` so that `other` is in it; what is empty doesn't count. */
static void enclose(struct page_rect *box, const struct page_rect *other)
{
    if (other->width <= 0 || other->height <= 0)
        return;
    if (box->width <= 0) {
        *box = *other;
        return;
    }
    int right = box->left + box->width, bottom = box->top + box->height;
    if (other->left + other->width > right)
        right = other->left + other->width;
    if (other->top + other->height > bottom)
        bottom = other->top + other->height;
    box->left = other->left < box->left ? other->left : box->left;
    box->top = other->top < box->top ? other->top : box->top;
    box->width = right - box->left;
    box->height = bottom - box->top;
}

/* Nothing but white space is in the JSON string. */
static bool is_blank(struct span string)
{
    for (size_t i = 1; i + 1 < string.n; i++) {
        char c = string.s[i];
        if (c == '\\' && i + 2 < string.n && strchr("nrtf", string.s[i + 1]))
            i++;
        else if (c != ' ')
            return false;
    }
    return true;
}

static void read_spots(struct page_layout *layout, struct span nodes)
{
    struct span backends = column_of(nodes, "backendNodeId"), parents = column_of(nodes, "parentIndex");
    struct span value;
    layout->n = column_length(backends);
    layout->spots = mem_zalloc((layout->n + 1) * sizeof *layout->spots);
    size_t i = 0;
    for (size_t at = 0; json_element(backends, &at, &value); i++) {
        layout->spots[i] =
            (struct page_spot){.parent = -1, .content = -1, .part = -1, .source = -1, .unseen = true};
        layout->spots[i].backend = page_number(value, 1LL << 52);
    }
    i = 0;
    for (size_t at = 0; i < layout->n && json_element(parents, &at, &value); i++) {
        int parent = column_number(value);
        if (parent >= 0 && (size_t)parent < i)
            layout->spots[i].parent = parent;
    }
}

static struct page_spot *next_spot(struct column_sparse *column, const struct page_layout *layout, int *value)
{
    struct span index, other;
    while (json_element(column->index, &column->index_at, &index) &&
           json_element(column->value, &column->value_at, &other)) {
        int i = column_number(index);
        *value = column_number(other);
        if (i >= 0 && (size_t)i < layout->n)
            return &layout->spots[i];
    }
    return NULL;
}

static void read_frames(struct page_layout *layout, struct span nodes)
{
    struct column_sparse column = column_sparse(nodes, "contentDocumentIndex");
    int value;
    for (struct page_spot *spot; (spot = next_spot(&column, layout, &value));)
        spot->content = value;
}

static void read_sources(struct page_layout *layout, struct span nodes, const struct column_strings *strings,
                         struct buf *out)
{
    struct column_sparse column = column_sparse(nodes, "currentSourceURL");
    struct buf text BUF_AUTO = BUF_INIT;
    int value;
    for (struct page_spot *spot; (spot = next_spot(&column, layout, &value));) {
        if (!column_text(strings, value, &text))
            continue;
        spot->source = (int)out->len;
        page_text_url(out, buf_str(&text), text.len);
        buf_addc(out, '\0');
    }
}

static bool read_rect(struct span bounds, struct page_rect *rect)
{
    int *const fields[] = {&rect->left, &rect->top, &rect->width, &rect->height};
    struct span value;
    size_t at = 0;
    if (json_kind(bounds) != JSON_ARRAY)
        return false;
    for (size_t i = 0; i < 4; i++) {
        if (!json_element(bounds, &at, &value))
            return false;
        *fields[i] = column_number(value);
    }
    return true;
}

/* Text has no style of its own. */
static void read_style(struct page_spot *spot, struct span styles, const struct column_strings *strings)
{
    size_t at = 0;
    struct span display = column_next_string(strings, styles, &at);
    struct span visibility = column_next_string(strings, styles, &at);
    bool of_line = display.n > 7 && memcmp(display.s, "\"inline", 7) == 0;
    spot->unseen = span_is(visibility, "\"hidden\"") || span_is(visibility, "\"collapse\"");
    if (display.n == 2 || span_is(display, "\"inline\"") || span_is(display, "\"contents\""))
        spot->flow = PAGE_INLINE;
    else
        spot->flow = of_line ? PAGE_INLINE_BLOCK : PAGE_BLOCK;
}

static void read_boxes(struct page_layout *layout, struct span boxes, const struct column_strings *strings)
{
    enum { INDEX, BOUNDS, TEXT, STYLES, N };
    static const char *const keys[N] = {"nodeIndex", "bounds", "text", "styles"};
    struct span columns[N], cells[N];
    size_t at[N] = {0};
    struct page_rect rect;
    for (int i = 0; i < N; i++)
        columns[i] = column_of(boxes, keys[i]);
    while (json_element(columns[INDEX], &at[INDEX], &cells[INDEX]) &&
           json_element(columns[BOUNDS], &at[BOUNDS], &cells[BOUNDS])) {
        int i = column_number(cells[INDEX]);
        bool text = json_element(columns[TEXT], &at[TEXT], &cells[TEXT]);
        bool styles = json_element(columns[STYLES], &at[STYLES], &cells[STYLES]);
        if (i < 0 || (size_t)i >= layout->n || !read_rect(cells[BOUNDS], &rect))
            continue;
        if (styles)
            read_style(&layout->spots[i], cells[STYLES], strings);
        if (!text || column_number(cells[TEXT]) < 0 ||
            !is_blank(column_string(strings, column_number(cells[TEXT]))))
            enclose(&layout->spots[i].box, &rect);
    }
}

/* ---- long texts ---- */

#define PART_MAX 60000 /* bytes that are shown of one at a time */

/* Appends what is from `start` on (in UTF-16, as the browser counts) of a text of UTF-8. */
static void put_part(struct buf *out, const struct buf *text, int start, int end)
{
    int units = 0;
    size_t from = out->len;
    for (size_t i = 0; i < text->len && units < end && out->len - from < PART_MAX;) {
        size_t n = 1;
        while (i + n < text->len && (text->data[i + n] & 0xC0) == 0x80)
            n++;
        if (units >= start)
            buf_add(out, text->data + i, n);
        units += n == 4 ? 2 : 1;
        i += n;
    }
}

struct part {
    int start, end;   /* of its lines in view */
    int layout, text; /* its number in the layout, and that of its text */
    struct page_spot *spot;
};

static void show_part(struct page_snapshot *out, const struct part *part,
                      const struct column_strings *strings)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!part->spot || !column_text(strings, part->text, &text))
        return;
    part->spot->part = (int)out->sources.len;
    put_part(&out->sources, &text, part->start, part->end);
    buf_addc(&out->sources, '\0');
}

/* The lines of the text that are in view are those between the first and the last box there. */
static void read_lines(struct page_snapshot *out, struct part *part, struct span boxes, const int view[2],
                       const struct column_strings *strings)
{
    enum { LAYOUT, BOUNDS, START, LENGTH, N };
    static const char *const keys[N] = {"layoutIndex", "bounds", "start", "length"};
    struct span columns[N], cells[N];
    size_t at[N] = {0};
    struct page_rect rect;
    for (int i = 0; i < N; i++)
        columns[i] = column_of(boxes, keys[i]);
    while (json_element(columns[LAYOUT], &at[LAYOUT], &cells[LAYOUT])) {
        for (int i = BOUNDS; i < N; i++)
            if (!json_element(columns[i], &at[i], &cells[i]))
                return;
        if (column_number(cells[LAYOUT]) != part->layout || !read_rect(cells[BOUNDS], &rect) ||
            rect.top + rect.height <= view[0] || rect.top >= view[1])
            continue;
        if (part->end == 0)
            part->start = column_number(cells[START]);
        part->end = column_number(cells[START]) + column_number(cells[LENGTH]);
    }
    show_part(out, part, strings);
}

static void read_long_texts(struct page_snapshot *out, struct page_layout *layout, struct span boxes,
                            struct span lines, const int view[2], const struct column_strings *strings)
{
    struct span indices = column_of(boxes, "nodeIndex"), texts = column_of(boxes, "text"), index, text;
    size_t at = 0, text_at = 0;
    for (int i = 0; json_element(indices, &at, &index) && json_element(texts, &text_at, &text); i++) {
        int spot = column_number(index);
        if (column_string(strings, column_number(text)).n <= PAGE_NAME_MAX || spot < 0 ||
            (size_t)spot >= layout->n)
            continue;
        struct part part = {.layout = i, .text = column_number(text), .spot = &layout->spots[spot]};
        const struct page_rect *box = &part.spot->box;
        if (box->top < view[1] && box->top + box->height > view[0])
            read_lines(out, &part, lines, view, strings);
    }
}

/* ---- labels ---- */

#define LABEL_DEPTH_MAX 30 /* of an input in its label */

/* An input that can be checked, or a label. */
struct control {
    struct span id; /* the input's, or that of the input which the label is for */
    size_t spot;
    const char *role; /* NULL: a label */
};

struct controls {
    struct control *list;
    size_t n, cap;
};

static const char *role_of(struct span type, struct span role)
{
    if (json_string_is(type, "radio"))
        return "radio";
    return !json_string_is(type, "checkbox") ? NULL : json_string_is(role, "switch") ? "switch" : "checkbox";
}

static void read_control(struct controls *controls, size_t spot, bool label, struct span attributes,
                         const struct column_strings *strings)
{
    static const char *const names[] = {"type", "role", "id"};
    struct span values[3] = {{"\"\"", 2}, {"\"\"", 2}, {"\"\"", 2}}, key;
    for (size_t at = 0; (key = column_next_string(strings, attributes, &at)).n > 2;) {
        struct span value = column_next_string(strings, attributes, &at);
        for (int i = 0; i < 3; i++)
            if (json_string_is(key, i == 2 && label ? "for" : names[i]))
                values[i] = value;
    }
    const char *role = label ? NULL : role_of(values[0], values[1]);
    if (!label && !role)
        return;
    if (controls->n == controls->cap) {
        controls->cap = controls->cap ? 2 * controls->cap : 64;
        controls->list = mem_realloc(controls->list, controls->cap * sizeof *controls->list);
    }
    controls->list[controls->n++] = (struct control){values[2], spot, role};
}

/* In the order of ids (the same text is the same string), the labels of each in front. */
static int compare_controls(const void *a, const void *b)
{
    const struct control *x = a, *y = b;
    if (x->id.s != y->id.s)
        return x->id.s < y->id.s ? -1 : 1;
    if (!x->role != !y->role)
        return x->role ? 1 : -1;
    return x->spot < y->spot ? -1 : x->spot > y->spot;
}

/* What nobody sees is where its label is. */
static void stand_in(struct page_layout *layout, size_t input, size_t label, const char *role)
{
    struct page_spot *from = &layout->spots[input], *to = &layout->spots[label];
    const struct page_rect *box = &from->box;
    bool away = box->left + box->width <= 0 || box->top + box->height <= 0;
    if (!from->unseen && box->width > 0 && !away)
        return;
    if (from->unseen)
        to->control = (struct page_control){role, from->control.checked};
    else
        from->box = to->box;
}

/* Columns that have the indices of those of which something is true. */
static void read_marks(struct page_layout *layout, struct span nodes)
{
    static const char *const keys[] = {"inputChecked", "isClickable"};
    struct span column, value;
    for (int i = 0; i < 2; i++) {
        size_t at = 0;
        if (!json_member(nodes, keys[i], &column, NULL))
            continue;
        for (struct span list = column_of(column, "index"); json_element(list, &at, &value);) {
            int index = column_number(value);
            if (index < 0 || (size_t)index >= layout->n)
                continue;
            layout->spots[index].control.checked |= i == 0;
            layout->spots[index].clickable |= i == 1;
        }
    }
}

static void read_labels(struct page_layout *layout, struct span nodes, const struct column_strings *strings)
{
    struct span names = column_of(nodes, "nodeName");
    struct span attributes = column_of(nodes, "attributes"), of_one;
    struct controls controls = {0};
    size_t at = 0, attributes_at = 0;
    for (size_t i = 0; i < layout->n && json_element(attributes, &attributes_at, &of_one); i++) {
        struct span name = column_next_string(strings, names, &at);
        bool label = json_string_is(name, "LABEL");
        if (label)
            layout->spots[i].control.role = "";
        if (label || json_string_is(name, "INPUT"))
            read_control(&controls, i, label, of_one, strings);
    }
    read_marks(layout, nodes);
    if (controls.n > 0)
        qsort(controls.list, controls.n, sizeof *controls.list, compare_controls);
    size_t label = 0; /* of this id the first */
    for (size_t i = 0; i < controls.n; i++) {
        const struct control *c = &controls.list[i];
        if (c->id.s != controls.list[label].id.s)
            label = i;
        int above = (int)c->spot;
        for (int depth = 0; above >= 0 && !layout->spots[above].control.role && depth < LABEL_DEPTH_MAX;
             depth++)
            above = layout->spots[above].parent;
        if (c->role && !controls.list[label].role && c->id.n > 2)
            stand_in(layout, c->spot, controls.list[label].spot, c->role);
        else if (c->role && above >= 0 && layout->spots[above].control.role)
            stand_in(layout, c->spot, (size_t)above, c->role);
    }
    free(controls.list);
}

/* ---- image maps ---- */

#define MAPS_MAX 32

static struct span attribute(struct span attributes, const char *name, const struct column_strings *strings)
{
    struct span key, none = {"\"\"", 2};
    for (size_t at = 0; (key = column_next_string(strings, attributes, &at)).n > 2;) {
        struct span value = column_next_string(strings, attributes, &at);
        if (json_string_is(key, name))
            return value;
    }
    return none;
}

struct image {
    struct span map; /* "#NAME" */
    size_t spot;
};

/* "NAME" of a map and "#NAME" of an image. */
static bool is_map(struct span map, struct span name)
{
    return map.n == name.n + 1 && map.s[1] == '#' && memcmp(map.s + 2, name.s + 1, name.n - 1) == 0;
}

/* An area has no box of its own: it is where its image is. */
static void read_maps(struct page_layout *layout, struct span nodes, const struct column_strings *strings)
{
    struct span names = column_of(nodes, "nodeName"), attributes = column_of(nodes, "attributes"), of_one;
    struct image images[MAPS_MAX];
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0, attributes_at = 0;
        const struct page_rect *box = NULL; /* of the image of the map that this is in */
        for (size_t i = 0; i < layout->n && json_element(attributes, &attributes_at, &of_one); i++) {
            struct span name = column_next_string(strings, names, &at), map;
            if (pass == 0 && n < MAPS_MAX && json_string_is(name, "IMG") &&
                (map = attribute(of_one, "usemap", strings)).n > 2)
                images[n++] = (struct image){map, i};
            if (pass == 1 && json_string_is(name, "MAP")) {
                box = NULL;
                for (size_t k = 0; k < n; k++)
                    if (is_map(images[k].map, attribute(of_one, "name", strings)))
                        box = &layout->spots[images[k].spot].box;
            }
            if (pass == 1 && box && json_string_is(name, "AREA"))
                layout->spots[i].box = *box;
        }
        if (n == 0)
            return;
    }
}

static void read_frame_id(struct page_snapshot *out, struct page_layout *layout, int number,
                          const struct column_strings *strings)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!column_text(strings, number, &text))
        return;
    layout->frame_id = (int)out->sources.len;
    buf_add(&out->sources, buf_str(&text), text.len);
    buf_addc(&out->sources, '\0');
}

static void read_document(struct page_snapshot *out, struct span document, int height,
                          const struct column_strings *strings)
{
    struct page_layout *layout = &out->documents[out->n++];
    enum { NODES, LAYOUT, LINES, X, Y, FRAME, N };
    static const char *const keys[N] = {"nodes",         "layout",        "textBoxes",
                                        "scrollOffsetX", "scrollOffsetY", "frameId"};
    struct span parts[N];
    int counts[N];
    layout->frame_id = -1;
    if (json_kind(document) != JSON_OBJECT)
        return;
    json_members(document, keys, N, parts, counts);
    layout->scroll_x = counts[X] ? column_number(parts[X]) : 0;
    layout->scroll_y = counts[Y] ? column_number(parts[Y]) : 0;
    if (!counts[NODES] || !counts[LAYOUT])
        return;
    read_spots(layout, parts[NODES]);
    read_frames(layout, parts[NODES]);
    read_sources(layout, parts[NODES], strings, &out->sources);
    read_boxes(layout, parts[LAYOUT], strings);
    if (counts[LINES])
        read_long_texts(out, layout, parts[LAYOUT], parts[LINES],
                        (int[]){layout->scroll_y, layout->scroll_y + height}, strings);
    read_labels(layout, parts[NODES], strings);
    read_maps(layout, parts[NODES], strings);
    if (counts[FRAME])
        read_frame_id(out, layout, column_number(parts[FRAME]), strings);
}

void page_snapshot_read(struct page_snapshot *out, struct span result, int height)
{
    struct column_strings strings;
    struct span document;
    *out = (struct page_snapshot){.sources = BUF_INIT};
    struct span documents = column_of(result, "documents");
    column_strings(&strings, column_of(result, "strings"));
    out->documents = mem_zalloc((column_length(documents) + 1) * sizeof *out->documents);
    for (size_t at = 0; json_element(documents, &at, &document);)
        read_document(out, document, height, &strings);
    free(strings.at);
}

void page_snapshot_release(struct page_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n; i++)
        free(snapshot->documents[i].spots);
    free(snapshot->documents);
    buf_release(&snapshot->sources);
    *snapshot = (struct page_snapshot){.sources = BUF_INIT};
}
