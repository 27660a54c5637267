/* Text that isn't UTF-8: read as UTF-8, and written back in its own encoding.
 *
 * An edit is a splice of the text; what it means in bytes is worked out, so that what lies outside stays as
 * it is, byte for byte, also where it is no text at all. */
#ifndef EDIT_ENCODING_H
#define EDIT_ENCODING_H

#include <stdbool.h>

#include "buf.h"
#include "edit_file.h"
#include "err.h"
#include "params.h"

#define ENCODING_NAMES "utf-8, utf-16, utf-16le, utf-16be, cp1252 or latin-1"

enum encoding {
    ENCODING_UTF_8, /* and whatever bytes are there */
    ENCODING_UTF_16LE,
    ENCODING_UTF_16BE,
    ENCODING_CP1252,
    ENCODING_LATIN_1,
};

struct coded {
    enum encoding encoding;
    size_t mark; /* bytes of its byte order mark */
    struct buf own;
    const struct buf *text;
};
void coded_release(struct coded *c);
#define CODED_AUTO __attribute__((cleanup(coded_release)))

/* Whether there is one of that name: the usual ones, in letters of any size. */
bool encoding_is(const struct text *name);
/* Content in an encoding, or where none is named in what its byte order mark says, else as it is; `data`
 * stays where it is. ERR_PARAMS: there is no such encoding; ERR_TOOL: it isn't in that. */
int coded_take(struct coded *c, const struct buf *data, const struct text *name, const char *shown,
               struct err *err);
/* Makes a splice of the text the one of the content; `put` holds what comes in. ERR_TOOL: the encoding has no
 * such character. */
int coded_splice(const struct coded *c, struct splice *s, struct buf *put, const char *shown,
                 struct err *err);
/* The splice that leads to another text, of whole characters. */
struct splice coded_difference(const struct coded *c, const struct buf *now);
/* What a new file gets, with a byte order mark where the name is utf-16. */
int encoding_put(const struct text *name, const char *s, size_t n, struct buf *out, const char *shown,
                 struct err *err);

#endif
