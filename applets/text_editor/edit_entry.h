/* One remembered edit, as a file of the store.
 *
 * The file's name carries what a look through the directory needs (whose it is, its order and size), its head
 * the rest, with a sum over everything: a damaged entry is told from a whole one and never applied. */
#ifndef EDIT_ENTRY_H
#define EDIT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "buf.h"
#include "edit_file.h"
#include "err.h"

enum entry_kind {
    ENTRY_EDIT = 1, /* undone by restoring the old content */
    ENTRY_CREATED,  /* undone by deleting the file */
    ENTRY_UNDO,     /* in the journal alone: the edit that was interrupted was itself an undo */
};

/* Which file: by its real path, and by its inode as it is after the edit. Both go with the root directory's
 * identity: a store in a /tmp that two containers share serves both. */
struct entry_key {
    uint64_t path, inode;
};
struct entry_key entry_key(const char *real_path, const struct stat *st);

/* Where its edit is; the end of its name. */
enum entry_state {
    ENTRY_KEPT,
    ENTRY_FRESH,  /* ".new": written, but the edit may not have come about */
    ENTRY_UNDOING /* ".undo": the edit may have been undone */
};

/* What stands in the directory. */
struct entry_item {
    char name[80];
    struct entry_key key;
    uint64_t order, size;
    enum entry_state state;
};
struct entry_list {
    struct entry_item *items; /* in order */
    size_t n;
};

/* Reads the directory. What isn't an entry is passed over. -1 with errno. */
int entry_list(struct entry_list *list, int dir);
void entry_list_release(struct entry_list *list);
void entry_name(struct entry_item *item); /* from the other members */
/* Renames the file as well. -1 with errno. */
int entry_set_state(int dir, struct entry_item *item, enum entry_state state);

struct entry_head {
    char magic[8];
    uint64_t sum;        /* over all that follows in the file */
    uint64_t kind, time; /* ns since 1970 */
    uint64_t inode;      /* after the edit */
    uint64_t after;      /* sum of the content after the edit */
    uint64_t at, cut, n_put, n_old, n_path;
};

/* An entry in memory; the pointers lead into raw (of one that is to be written: elsewhere). */
struct entry {
    struct entry_head head;
    const char *path, *old, *put;
    struct buf raw;
};
#define ENTRY_INIT                                                                                           \
    {                                                                                                        \
        .raw = BUF_INIT                                                                                      \
    }

/* Fills the head's sum. */
void entry_seal(struct entry *e);
uint64_t entry_size(const struct entry *e);

/* Writes a new file of that name, taking what entry_drop kept; removed again when it is not completed. -1
 * with errno. */
int entry_write(const struct entry *e, int dir, const char *name, int spare_dir);
/* Deletes one, but may keep the file itself, under another name, for the next entry_write (spare_dir). */
void entry_drop(int dir, const struct entry_item *item);

/* -1 with errno: EBADMSG when it is damaged, others when it can't be read now. */
int entry_read(struct entry *e, int dir, const char *name);
void entry_release(struct entry *e);
#define ENTRY_AUTO __attribute__((cleanup(entry_release)))

/* Sum of a content, and of one after a splice. */
uint64_t content_sum(const char *data, size_t n);
uint64_t content_sum_spliced(const char *data, size_t n, const struct splice *s);

#endif
