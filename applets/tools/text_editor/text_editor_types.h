/* What text_editor is asked to do, as plain data: filled by the RPC method and by the command line. */
#ifndef TEXT_EDITOR_TYPES_H
#define TEXT_EDITOR_TYPES_H

#include <stdbool.h>

#include "params.h"

enum edit_command {
    EDIT_VIEW,
    EDIT_CREATE,
    EDIT_STR_REPLACE,
    EDIT_INSERT,
    EDIT_UNDO,
    EDIT_PATCH,
    EDIT_MANY,
    EDIT_HISTORY, /* the command line alone */
};

/* The parameters of all commands, a flat record as they are in JSON. Owned by whoever fills it. Members that
 * the command doesn't take are empty. */
struct edit_request {
    enum edit_command command;
    struct text path;       /* any bytes; a relative one is taken from the working directory */
    struct ints view_range; /* view: [first, last], from 1, last -1 = to the end; empty: the whole file */
    struct text file_text;  /* create */
    struct text encoding;   /* of the file (edit_encoding.h); absent: UTF-8, or what a byte order mark says */
    struct text old_str;    /* str_replace */
    struct text new_str;    /* str_replace (absent: nothing), insert */
    struct text insert_text;    /* insert: another name of new_str */
    long long insert_line;      /* insert: behind this line; 0: before the first */
    bool replace_all;           /* str_replace: wherever it stands */
    long long expected_count;   /* str_replace: so many places exactly; 0: not said */
    struct text patch;          /* apply_patch; path: the directory or the file that it is for */
    struct edit_request *edits; /* edit_many: str_replace, insert and create, one after the other */
    size_t n_edits;
    bool overwrite, parents; /* create: also in the place of a file; make the directories that are missing */
};

/* Counting, the same everywhere: a file has one line more than it has LFs. "one\ntwo\n" has three, the last
 * one empty. */
enum {
    EDIT_ANSWER_MAX = 16000, /* characters of a view; what is more is cut, with a notice */
    EDIT_CONTEXT = 4,        /* lines shown before and behind an edit */
    EDIT_UNDO_DEPTH = 10,    /* edits of a file that can be undone */
};

#define EDIT_FILE_MAX (1ULL << 30) /* bytes of a file that can be edited; a view takes any */

#endif
