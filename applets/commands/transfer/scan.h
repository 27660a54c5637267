/* What is to be copied: a path, and all below it in the order of bytes of names. Links are not followed; each
 * directory is opened from the one above. */
#ifndef TRANSFER_SCAN_H
#define TRANSFER_SCAN_H

#include <stdbool.h>
#include <sys/stat.h>

struct scan {
    char *const
        *excludes; /* patterns (glob.h): those with a '/' for paths, others for names; ends with NULL */
    void (*entry)(struct scan *s, int dir, const char *name, const char *path, const struct stat *st);
    void (*enter)(struct scan *s, int fd, const char *path); /* may be NULL: before a directory is read */
    void (*leave)(struct scan *s, const char *path);         /* may be NULL: after that */
    void (*unreadable)(struct scan *s, const char *path, int errnum);
};

/* The path is what the entry is called; "." is left out of those below it. */
void scan_entry(struct scan *s, int dir, const char *name, const char *path, const struct stat *st);
bool scan_excludes(const struct scan *s, const char *path);
/* Deep trees hold many directories open. */
void scan_many_descriptors(void);

#endif
