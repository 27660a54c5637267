/* Files with several names: under which one each was sent. */
#ifndef TRANSFER_TWINS_H
#define TRANSFER_TWINS_H

#include <sys/stat.h>

struct twins;
struct twins *twins_new(void);
void twins_free(struct twins *t);
/* The path that the file was sent under; NULL: this is the first. */
const char *twins_of(struct twins *t, const struct stat *st, const char *path);

#endif
