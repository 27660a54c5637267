/* What a process hands over to another build's program that takes its place (execve: pid, children and
 * descriptors stay): one record that describes itself, in a file in memory.
 *
 *     toolbox KIND NUMBER\n        which state it is, and the number of its form
 *     KEY SIZE\n BYTES \n          for each part; keys are letters, digits, '.' and '_'
 *
 * All numbers are decimal. What a part's bytes mean is its kind's matter. A reader takes no word of it on
 * trust: it checks sizes, the range of every number, and what every descriptor is. */
#ifndef CORE_HANDOVER_H
#define CORE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "err.h"

#define HANDOVER_PARTS_MAX 128
#define HANDOVER_FDS_MAX 32
#define HANDOVER_KEY_MAX 32

/* ---- writing ---- */

struct handover_out {
    int fd; /* of the record */
    int fds[HANDOVER_FDS_MAX];
    size_t n_fds;
    bool failed; /* something could not be written */
};

int handover_begin(struct handover_out *out, const char *kind, int number, struct err *err);
void handover_put(struct handover_out *out, const char *key, const void *data, size_t n);
void handover_put_int(struct handover_out *out, const char *key, long long value);
/* A descriptor that goes along, by its number; -1: none. */
void handover_put_fd(struct handover_out *out, const char *key, int fd);
/* A part whose n bytes the caller writes to out->fd right behind, with handover_end_part. */
void handover_begin_part(struct handover_out *out, const char *key, size_t n);
void handover_end_part(struct handover_out *out);
/* Whether the record's descriptor and those that go along outlive an execve. -1: not so for all of them. */
int handover_keep(const struct handover_out *out, bool keep);
void handover_end(struct handover_out *out); /* closes the record */

/* ---- reading ---- */

struct handover_part {
    char key[HANDOVER_KEY_MAX];
    const char *data;
    size_t n;
};

struct handover {
    char *map;
    size_t size;
    char kind[HANDOVER_KEY_MAX];
    int number;
    struct handover_part parts[HANDOVER_PARTS_MAX];
    size_t n_parts;
};

/* Reads bytes that stay where they are. -1 with ERR_TOOL: they are no record. */
int handover_parse(struct handover *h, const char *data, size_t n, struct err *err);
/* The same of a descriptor; handover_release afterwards. */
int handover_read(struct handover *h, int fd, struct err *err);
void handover_release(struct handover *h);

/* -1 with ERR_TOOL that names the key: it is missing, or not what it should be. */
int handover_get(const struct handover *h, const char *key, const char **data, size_t *n, struct err *err);
int handover_int(const struct handover *h, const char *key, long long min, long long max, long long *value,
                 struct err *err);
int handover_bool(const struct handover *h, const char *key, bool *value, struct err *err);
/* Of that type (S_IFIFO, …); -1 where `optional`: none. No descriptor is that of two keys. */
int handover_fd(const struct handover *h, const char *key, mode_t type, bool optional, int *fd,
                struct err *err);

/* All descriptors in it that there are, at most `max`; how many. */
size_t handover_fds(const struct handover *h, int *fds, size_t max);

#endif
