/* The binaries of exactly this build, for every architecture that can be had here.
 *
 * A released file is the program with its release's sums behind it (release_record.h), the same ones behind
 * the program of every architecture: none can be exchanged without being found out. What is picked is held
 * in memory, so that the bytes that were verified are those that are used, whatever happens to the file. */
#ifndef RELEASE_H
#define RELEASE_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "sha256.h"
#include "version.h"

#define RELEASE_DIR_VARIABLE "TOOLBOX_RELEASE_DIR"
#define RELEASE_FILE_MAX (16u << 20) /* one architecture's */

struct release_file {
    struct buf bytes;             /* the whole file, to be written as it is */
    char sha256[SHA256_HEX_SIZE]; /* of them, as its own `probe` says it where it runs */
    char build[BUILD_ID_SIZE];    /* what its `probe` says there, too */
    char *path;                   /* where it was found; may be the program itself */
    bool packed;                  /* the file at that path holds it among others */
};
#define RELEASE_FILE_INIT                                                                                    \
    {                                                                                                        \
        .bytes = {.max = RELEASE_FILE_MAX }                                                                  \
    }
void release_file_end(struct release_file *file);
#define RELEASE_FILE_AUTO __attribute__((cleanup(release_file_end)))

/* The file for an operating system and architecture (as os_arch() names it), from the program's own file,
 * from $TOOLBOX_RELEASE_DIR, or from the program's folder. Verified against the sums behind the program
 * itself. A program without sums, as the build leaves it, takes its own architecture's from its own file, and
 * another's only from a release in which it stands itself, byte for byte.
 *
 * -1 with ERR_TOOL: there is none (the error names where it was looked for), or what was found isn't this
 * release's, which is final (the error has both sums). `file` is RELEASE_FILE_INIT before, and the caller's
 * to end in either case. */
int release_pick(const char *os, const char *arch, struct release_file *file, struct err *err);

#endif
