/* What is known of a tree that is watched: a node for each name, in order below its directory's. */
#ifndef FILE_WATCH_NODE_H
#define FILE_WATCH_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watch_node {
    struct watch_node *above; /* NULL: the start */
    struct watch_node **below;
    unsigned n, room;
    int number; /* of a directory's watch; -1: none */
    bool directory, seen;
    ino_t inode;
    uint64_t print; /* of what else is known of it */
    char name[];
};

struct watch_node *watch_node_new(struct watch_node *above, const char *name);

/* Where the name is in a directory, or would be; what has it (NULL: nothing); a new one. */
unsigned watch_node_place(const struct watch_node *dir, const char *name);
struct watch_node *watch_node_find(const struct watch_node *dir, const char *name);
struct watch_node *watch_node_insert(struct watch_node *dir, const char *name);

#endif
