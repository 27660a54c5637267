/* Parameters of a method, described by a table and checked in one place.
 *
 * A struct is filled by name: absent and null members of optional parameters leave it as the caller
 * initialised it (so that is where defaults stand; what params_release frees starts as NULL). Every error is
 * ERR_PARAMS with a message "Invalid parameters: FIELD: what is wrong", nested fields as
 * server_params.env.PATH or view_range[1]. A string that escapes half of a surrogate pair is refused: no text
 * with that in it is what the caller has. */
#ifndef RPC_PARAMS_H
#define RPC_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "doc.h"
#include "err.h"
#include "json.h"

/* A string parameter: owned, with a NUL behind; may hold NULs. s == NULL: absent. */
struct text {
    char *s;
    size_t n;
};
/* An array of strings, or of "NAME=value" entries; owned; list ends with NULL. list == NULL: absent. */
struct texts {
    char **list;
    size_t n;
};
struct ints {
    long long *list;
    size_t n;
    bool set;
};

enum param_type {
    PARAM_TEXT,   /* struct text */
    PARAM_NAME,   /* struct text; a NUL in it is refused */
    PARAM_INT,    /* long long; written as an integer: 1.0 and 1e3 are refused; min and max hold */
    PARAM_NUMBER, /* double, finite; an integer is fine; min and max hold */
    PARAM_BOOL,   /* bool */
    PARAM_INTS,   /* struct ints: array of integers */
    PARAM_NAMES,  /* struct texts: array of strings without NUL */
    PARAM_ENV, /* struct texts of NAME=value from an object of strings. Names that are empty or hold '=' and
                  NULs are refused by name */
    PARAM_OBJECT, /* filled by a nested table (param.table) into the struct at the offset */
    PARAM_RAW,    /* struct span: the exact text of an object, in the request's own memory */
    PARAM_LIST,   /* the same of an array */
    PARAM_USER,   /* struct user_param (user_param.h): a string, as PARAM_NAME, or an object */
    PARAM_SWITCH, /* a bool, behind which in the same struct is what a nested table (param.table) fills: true,
                     false, or an object, which means true; or a string, where that is what the table begins
                     with */
};

#define PARAM_MAX 9007199254740992.0 /* 2^53: no bound lies beyond */

struct params_table;

struct param {
    const char *key;
    unsigned short offset; /* in the struct that is filled */
    unsigned char type;    /* enum param_type */
    bool required;
    double min, max; /* inclusive; both 0: no bounds. "At least min" is max = PARAM_MAX */
    const struct params_table *table;
    const char *about, *otherwise; /* what it means, and its default, in words: PARAM_DOC */
};

#define PARAM_DOC(about_, otherwise_) .about = DOC(about_), .otherwise = DOC(otherwise_)

struct params_table {
    const struct param *list;
    size_t n;            /* at most 64 */
    bool ignore_unknown; /* otherwise an unknown or a doubled key is refused */
};

/* One of several tables that a method takes its params by. */
struct params_variant {
    const char *name; /* the list ends with NULL */
    struct params_table table;
};

#define PARAMS_TABLE(array)                                                                                  \
    {                                                                                                        \
        .list = (array), .n = sizeof(array) / sizeof *(array)                                                \
    }

/* Fills *into (a struct the caller has initialised) from the text of `params` (s == NULL: absent, equals {}),
 * which has been checked. On error nothing is left allocated. */
int params_unpack(const struct params_table *table, struct span params, void *into, struct err *err);

/* Frees what params_unpack allocated in *from. */
void params_release(const struct params_table *table, void *from);

#endif
