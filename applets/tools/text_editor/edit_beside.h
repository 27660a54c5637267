/* A file that is prepared beside another one and then takes its place. */
#ifndef EDIT_BESIDE_H
#define EDIT_BESIDE_H

#include <sys/stat.h>

/* Its name is derived from the one it will have, and it is locked while somebody writes it: what a killed
 * process left is found and removed by the next edit. */
struct beside {
    int fd;         /* open for writing; -1: none */
    int dir;        /* the caller's */
    char name[64];  /* name[0] == '\0': gone */
    struct stat st; /* after beside_finish */
};
#define BESIDE_INIT                                                                                          \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* Makes it. 0; 1 when the directory doesn't let us; -1 with errno. */
int beside_open(struct beside *b, int dir, const char *for_name, mode_t mode);

/* Gives it the owner and the extended attributes of the open file `model`. 0; 1 when that can't be done. */
int beside_take_after(struct beside *b, int model, const struct stat *st);

/* Everything is written: gives it the mode (of `st`, unless NULL), which a change of owner or a write can
 * take bits from. -1 with errno. */
int beside_finish(struct beside *b, const struct stat *st);

/* Swaps it with the file `old`, which is gone then unless it has another link. 1: a file that is another one,
 * or has another content by now, is there instead, and stays. -1 with errno. */
int beside_exchange(struct beside *b, int dir, const char *name, const struct stat *old);

/* Puts it in the place of a file, or of none (EEXIST when there is one). -1 with errno. */
int beside_rename(struct beside *b, int dir, const char *name);
int beside_link(struct beside *b, int dir, const char *name);

/* Removes it unless it has its place. */
void beside_release(struct beside *b);
#define BESIDE_AUTO __attribute__((cleanup(beside_release)))

#endif
