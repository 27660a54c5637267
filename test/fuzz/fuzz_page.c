/* Any bytes as the answers of a browser to the reader of a page: a digit (how many targets), then one answer
 * a line, in the order of the calls; a line that isn't JSON is a call that failed. Whatever the page says,
 * there are only whole lines, each of one node, and ids that find their own node. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/web_browser/page_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLS_MAX 20000

static struct span next_line(struct span *rest)
{
    const char *end = rest->n > 0 ? memchr(rest->s, '\n', rest->n) : NULL;
    struct span line = {rest->s, end ? (size_t)(end - rest->s) : rest->n};
    size_t taken = line.n + (end != NULL);
    *rest = (struct span){rest->s + taken, rest->n - taken};
    return line.n > 0 && json_check(line, NULL) == 0 ? line : (struct span){NULL, 0};
}

static void check_line(const char *line, size_t n)
{
    size_t at = 0;
    while (at < n && line[at] == ' ')
        at++;
    assert(n - at > 4 && line[at] == '[' && at % 2 == 0);
    for (; at < n; at++)
        assert((unsigned char)line[at] >= 0x20 && line[at] != 0x7F);
}

static void check_tree(const struct page_tree *tree)
{
    const char *text = buf_str(&tree->at), *end = text + tree->at.len;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        assert(stop);
        check_line(text, (size_t)(stop - text));
        text = stop + 1;
    }
    for (size_t i = 0; i < tree->n; i++) {
        assert(i == 0 || tree->nodes[i - 1].id < tree->nodes[i].id);
        assert(page_tree_find(tree, tree->nodes[i].id) == &tree->nodes[i]);
        assert(tree->nodes[i].role + tree->nodes[i].role_len <= tree->at.len);
        assert(tree->nodes[i].name + tree->nodes[i].name_len <= tree->at.len);
    }
    page_tree_find_named(tree, "accept all");
    assert(tree->has_main || tree->main.len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct page_target targets[] = {{-1, NULL, 0}, {0, "F1", 1}, {1, "F2", 2}};
    static const struct page_view view = {1280, 1080};
    struct span rest = {(const char *)data, size};
    if (size == 0)
        return 0;
    size_t n = data[0] >= '1' && data[0] <= '3' ? data[0] - (size_t)'0' : 1;
    next_line(&rest);
    struct page_reader *reader = page_reader_new(&view, targets, n);
    struct page_call call;
    size_t calls = 0;
    while (!page_reader_done(reader) && calls < CALLS_MAX) {
        bool asked = page_reader_next(reader, &call);
        assert(asked); /* every call is answered at once, so there is one as long as it isn't done */
        assert(call.target < n && json_check(call.params, NULL) == 0);
        page_reader_answer(reader, call.tag, next_line(&rest));
        page_reader_answer(reader, call.tag, rest); /* a second answer doesn't count */
        calls++;
    }
    struct page_tree tree = PAGE_TREE_INIT;
    struct err err;
    if (page_reader_finish(reader, &tree, &err) == 0)
        check_tree(&tree);
    page_tree_release(&tree);
    page_reader_free(reader);
    return 0;
}
