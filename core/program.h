/* The programs of the builds that have sockets in a place, so that each build's calls can be carried out by
 * its own program.
 *
 * Every server writes down which file it runs: ".program.BUILD.DEV-INO" in its place, "SHA256 PATH\n". The
 * place is its user's alone, so what stands there is that user's own word. When a file of another build takes
 * the path, the older one is moved beside it, to DIR/.NAME.BUILD, and is found there. A program is only ever
 * run through the descriptor whose bytes were found to have that sum. */
#ifndef CORE_PROGRAM_H
#define CORE_PROGRAM_H

#include <stdbool.h>

#include "err.h"
#include "sha256.h"
#include "version.h"

/* What stands in a record. */
struct program {
    char sha256[SHA256_HEX_SIZE];
    char *path;
};
#define PROGRAM_INIT                                                                                         \
    {                                                                                                        \
        .path = NULL                                                                                         \
    }
void program_release(struct program *p);
#define PROGRAM_AUTO __attribute__((cleanup(program_release)))

/* Writes the record of a build, in the place of one that is there. -1 with errno. */
int program_record(int dirfd, const char *build, const char *sha256, const char *path);

/* Writes that of this very build: takes as long as a sum of the own file does. -1 with errno. */
int program_record_own(int dirfd, const char *path);

/* False: there is none, or none that makes sense. */
bool program_read(struct program *p, int dirfd, const char *build);

/* Opens the program of a build, verified, for program_exec; close-on-exec. -1 with ERR_TOOL: which file was
 * looked for, and what is wrong with it. */
int program_open(int dirfd, const char *build, struct err *err);

/* Opens the file at a path that nobody else can lead elsewhere, where it has that sum; as program_open. -1
 * with ERR_TOOL, the path and the reason. */
int program_open_path(const char *path, const char *sha256, struct err *err);

/* Where a program goes when another build's takes its path: DIR/.NAME.BUILD; that path itself for one that is
 * there already. free() it. */
char *program_aside(const char *path, const char *build);

/* Becomes that program, with `input` (n bytes) as its standard input; NULL: with the one that there is.
 * Returns on failure alone, with errno. */
int program_exec(int fd, char *const *argv, const char *input, size_t n);

#endif
