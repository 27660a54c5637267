/* One remembered edit: a file of the store that holds the old content, and whose name says all the rest.
 *
 * The content is the old file itself, linked into the store before another one took its place, where that can
 * be had: then nothing is copied, and what has reached the disk is safe there. Otherwise it is a copy, with
 * the text that was put in and the file's path behind it. Either way the file has exactly the size and the
 * time of modification that its name says. Otherwise it is damaged, or a program that still had it open went
 * on writing; then it is applied only if the old content is there by its sum. */
#ifndef EDIT_ENTRY_H
#define EDIT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "buf.h"

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
    ENTRY_FRESH,    /* ".new": written, but the edit may not have come about */
    ENTRY_UNDOING,  /* ".undo": the edit may have been undone */
    ENTRY_FOLLOWED, /* ".then": an edit that isn't kept came behind it */
};

struct entry_item {
    struct entry_key key;
    uint64_t order;
    uint64_t size;    /* of the file */
    uint64_t stamp;   /* when it was modified, ns since 1970 */
    uint64_t kind;    /* enum entry_kind */
    uint64_t time;    /* of the edit, ns since 1970 */
    uint64_t n_old;   /* bytes of the old content; more than that has a copy alone */
    uint64_t at, cut; /* what was cut out of it */
    uint64_t n_put;   /* and what was put in: how many bytes, and their sum */
    uint64_t put_sum;
    uint64_t old_sum; /* of the old content; 0: it is too long */
    enum entry_state state;
};
#define ENTRY_NAME_MAX 208
void entry_name(const struct entry_item *item, char name[ENTRY_NAME_MAX]);

/* What stands in the directory, in order: all that has the name of an entry, whatever it is. -1 with errno.
 */
struct entry_list {
    struct entry_item *items;
    size_t n;
};
int entry_list(struct entry_list *list, int dir);
void entry_list_release(struct entry_list *list);

/* Renames the file as well, into another directory where that is wanted. -1 with errno. */
int entry_move(struct entry_item *item, int dir, int new_dir, enum entry_state state);
int entry_remove(const struct entry_item *item, int dir);

/* Time of modification as it stands in a name. */
uint64_t entry_stamp(const struct stat *st);

/* An entry in memory; the pointers lead into raw (of one that is to be written: elsewhere). put and path are
 * there in a copy alone. */
struct entry {
    struct entry_item item;
    struct stat st;
    const char *old, *put, *path;
    size_t n_path;
    struct buf raw;
};
#define ENTRY_INIT                                                                                           \
    {                                                                                                        \
        .raw = BUF_INIT                                                                                      \
    }

/* Writes a copy: e->item says what, and gets its size and stamp; put and path go with it, unless path is
 * NULL. Removed again when it is not completed. -1 with errno. */
int entry_copy(struct entry *e, int dir);
/* Makes the file `name` of another directory, which `st` tells of, the entry as well; for e->item as above.
 * -1 with errno when that isn't possible. */
int entry_link(struct entry *e, int dir, int from_dir, const char *name, const struct stat *st);

/* -1 with errno: EBADMSG when it is damaged, others when it can't be read now. */
int entry_read(struct entry *e, int dir, const struct entry_item *item);
void entry_release(struct entry *e);
#define ENTRY_AUTO __attribute__((cleanup(entry_release)))

/* Whether a content is exactly what the edit made of the old one. */
bool entry_led_to(const struct entry *e, const char *content, size_t n);

/* Of an entry whose file can't be read, from what its name says: whether a content is the old one; and
 * whether it is one that the edit has (or may have) touched. Of old contents that are too long for a sum only
 * a whole edit is known. */
bool entry_is_old(const struct entry_item *item, const char *content, size_t n);
bool entry_seems_made(const struct entry_item *item, const char *content, size_t n);

/* For put_sum and old_sum. */
uint64_t entry_put_sum(const char *put, size_t n);
uint64_t entry_old_sum(const char *old, size_t n);

#endif
