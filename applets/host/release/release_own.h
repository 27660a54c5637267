/* The program's own file as a part of its release: what stands in it and behind it. */
#ifndef RELEASE_OWN_H
#define RELEASE_OWN_H

#include "buf.h"
#include "err.h"
#include "json.h"

struct release_own {
    int fd;
    char *path;       /* for messages; never NULL */
    struct buf file;  /* the own architecture's released file; without sums: the program as it was built */
    struct span sums; /* their lines, in `file`; s == NULL: there are none */
    struct buf tail;  /* the end of the self-contained file */
    struct span pack; /* its lines, in `tail`; s == NULL: it is no self-contained one */
};
#define RELEASE_OWN_INIT                                                                                     \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* Reads and checks it; `own` is RELEASE_OWN_INIT before. -1 with ERR_TOOL when it can't be read, or isn't
 * what the sums behind it say. */
int release_own_open(struct release_own *own, struct err *err);
void release_own_close(struct release_own *own);
#define RELEASE_OWN_AUTO __attribute__((cleanup(release_own_close)))

/* Reads the packed file of that name. 1; 0: there is none; -1 with ERR_TOOL. */
int release_own_packed(const struct release_own *own, const char *name, struct buf *out, struct err *err);

/* "toolbox-VERSION-linux-ARCH", free() it. */
char *release_file_name(const char *arch);

/* Whether the bytes are this release's file of that name: with sums behind the program itself, those have to
 * stand behind it as well, otherwise sums in which the program itself stands. `from` is for messages. */
int release_verify(const struct release_own *own, const char *name, struct span file, const char *from,
                   struct err *err);

#endif
