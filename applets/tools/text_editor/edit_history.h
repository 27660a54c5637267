/* The undo history of a user, and the journal of edits in place.
 *
 * Two private directories of core/place.h's place: "undo" holds one entry for each edit, its old content
 * whole, EDIT_UNDO_DEPTH of a file and UNDO_TOTAL_MAX bytes in all; "journal" (there only while needed) the
 * entry of an edit in place that is under way. An entry belongs to a file by its real path (so that it
 * outlives replacement by renaming, also by others), or by its inode (so that every hard link leads to it).
 *
 * The order of an edit: the entry is made as a fresh one; the file is replaced; the entry becomes a kept one.
 * Of an undo: the entry is marked; the file is replaced; the entry is dropped. A process that dies between
 * leaves an entry that isn't a kept one, and the content of the file says on which side it died. One process
 * at a time: a lock on the store is held from undo_prepare to undo_done or undo_failed.
 *
 * An edit that can't be kept is made all the same, and `why` says so. But the entry in front of it, where
 * there is one, is marked: `undo_edit` must not take back two edits for one. Only where not even that can be
 * done is the edit refused. */
#ifndef EDIT_HISTORY_H
#define EDIT_HISTORY_H

#include <stdbool.h>

#include "edit_entry.h"
#include "edit_file.h"
#include "edit_path.h"
#include "err.h"
#include "place.h"

#define UNDO_TOTAL_MAX (256ULL << 20) /* bytes; an entry counts as UNDO_ENTRY_MIN at least */
#define UNDO_ENTRY_MIN (16ULL << 10)

struct undo_store {
    struct place place;
    int dir;        /* "undo"; -1: no history, for the reason in why */
    int lack;       /* errno, when there may be one which can't be opened now; else 0 */
    struct err why; /* msg[0] == '\0': the edit under way can be undone */
    bool locked;
    bool has_pending;
    struct entry_item pending;
    int pending_dir;             /* dir, or the journal */
    bool linked;                 /* the pending entry is the old file itself */
    bool keep;                   /* the pending entry becomes a part of the history */
    bool crowded;                /* and something has to go for it */
    struct entry_item marked[2]; /* as followed by the edit under way, which isn't kept; order 0: none */
};

#define UNDO_INIT                                                                                            \
    {                                                                                                        \
        .place = PLACE_INIT, .dir = -1, .pending_dir = -1                                                    \
    }

/* Opens the caller's store, and makes it when `create`; nothing when it is open already. */
void undo_open(struct undo_store *s, bool create);
void undo_close(struct undo_store *s);
#define UNDO_AUTO __attribute__((cleanup(undo_close)))

/* What is about to happen to a file. */
struct undo_change {
    enum entry_kind kind;
    const struct edit_path *path;
    const char *old; /* the whole content; not for ENTRY_CREATED */
    size_t n_old;
    struct splice splice;
    const struct stat *before, *after; /* the file (not for ENTRY_CREATED), and the one that will be there */
    bool in_place;                     /* they are the same one, and will be written over */
};

/* Remembers it. -1: it is not to be made. */
int undo_prepare(struct undo_store *s, const struct undo_change *change, struct err *err);
/* The file has been replaced. */
void undo_done(struct undo_store *s);
/* It has not. `mixed`: and is neither old nor new now; then the journal keeps what can put it right. */
void undo_failed(struct undo_store *s, bool mixed);

/* Sees to what an edit of the file that was interrupted has left; a link to it among that is removed. */
void undo_settle(struct undo_store *s, const struct edit_path *p, const struct edit_file *f);

/* Reads the newest entry of a file. 1; 0 when there is none; -1 when the last edit can't be undone: the entry
 * that may be its (by the path or the inode) is damaged or can't be read, or it was one that could not be
 * kept. An edit before it is never taken for it. `f` is loaded. */
int undo_newest(struct undo_store *s, const struct edit_path *p, const struct edit_file *f,
                struct entry_item *item, struct entry *e, struct err *err);
/* Around the undoing of an entry: one that was interrupted is known for what it is. -1: it is not to be done,
 * the history can't be changed. */
int undo_begin(struct undo_store *s, struct entry_item *item, const struct edit_path *p, struct err *err);
void undo_end(struct undo_store *s, struct entry_item *item, bool undone);

/* An edit of the file can't be kept: marks the newest entry (by the path, and by the inode), so that it isn't
 * taken for that edit, or drops them all. -1 with errno. */
int undo_follow(struct undo_store *s, const struct entry_key *key, const struct stat *st);

/* Whether an entry may be one of a file: by its path, or (st != NULL) by its inode. */
bool undo_is_of(const struct entry_item *item, const struct entry_key *key, const struct stat *st);

/* Appends a line for each entry of a file, the newest first; returns their number. The file need not exist.
 */
size_t undo_show(struct undo_store *s, const struct edit_path *p, struct buf *out);

/* True when an edit in place of this file was under way, or is. */
bool journal_has(const struct undo_store *s, const struct edit_path *p);

/* Puts an interrupted edit in place right. `f` is loaded and locked, and loaded again when it was changed.
 * 1: rolled back; 0: there was nothing to do; -1: it couldn't be done. */
int journal_recover(struct undo_store *s, const struct edit_path *p, struct edit_file *f, struct err *err);

#endif
