/* The text of a page, once drawn: looking things up in it. */
#include "page_tree.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void page_tree_release(struct page_tree *tree)
{
    buf_release(&tree->at);
    buf_release(&tree->main);
    free(tree->nodes);
    *tree = (struct page_tree)PAGE_TREE_INIT;
}

const struct page_node *page_tree_find(const struct page_tree *tree, long long id)
{
    size_t low = 0, high = tree->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->nodes[middle].id == id)
            return &tree->nodes[middle];
        if (tree->nodes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct page_node *page_tree_find_named(const struct page_tree *tree, const char *name)
{
    const struct page_node *first = NULL;
    size_t n = strlen(name);
    for (size_t i = 0; i < tree->n; i++) {
        const struct page_node *node = &tree->nodes[i];
        if (node->name_len >= n && strncasecmp(buf_str(&tree->at) + node->name, name, n) == 0 &&
            (!first || node->name < first->name))
            first = node;
    }
    return first;
}

bool page_tree_is(const struct page_tree *tree, const struct page_node *node, const char *role)
{
    return node->role_len == strlen(role) &&
           memcmp(buf_str(&tree->at) + node->role, role, node->role_len) == 0;
}
