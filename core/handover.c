#include "handover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

#define FD_SUFFIX ".fd"

/* ---- writing ---- */

static void write_out(struct handover_out *out, const void *data, size_t n)
{
    if (!out->failed && io_write_all(out->fd, data, n) < 0)
        out->failed = true;
}

int handover_begin(struct handover_out *out, const char *kind, int number, struct err *err)
{
    char line[64];
    *out = (struct handover_out){.fd = memfd_create("handover", MFD_CLOEXEC)};
    if (out->fd < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot make a file in memory");
    int n = snprintf(line, sizeof line, "toolbox %s %d\n", kind, number);
    write_out(out, line, (size_t)n);
    return 0;
}

void handover_begin_part(struct handover_out *out, const char *key, size_t n)
{
    char line[HANDOVER_KEY_MAX + 24];
    int length = snprintf(line, sizeof line, "%s %zu\n", key, n);
    write_out(out, line, (size_t)length);
}

void handover_end_part(struct handover_out *out)
{
    write_out(out, "\n", 1);
}

void handover_put(struct handover_out *out, const char *key, const void *data, size_t n)
{
    handover_begin_part(out, key, n);
    write_out(out, data, n);
    handover_end_part(out);
}

void handover_put_int(struct handover_out *out, const char *key, long long value)
{
    char text[24];
    handover_put(out, key, text, (size_t)snprintf(text, sizeof text, "%lld", value));
}

void handover_put_fd(struct handover_out *out, const char *key, int fd)
{
    char name[HANDOVER_KEY_MAX];
    snprintf(name, sizeof name, "%s" FD_SUFFIX, key);
    handover_put_int(out, name, fd);
    if (fd >= 0 && out->n_fds < HANDOVER_FDS_MAX)
        out->fds[out->n_fds++] = fd;
    else if (fd >= 0)
        out->failed = true;
}

int handover_keep(const struct handover_out *out, bool keep)
{
    int result = io_keep(out->fd, keep);
    for (size_t i = 0; i < out->n_fds; i++)
        if (io_keep(out->fds[i], keep) < 0)
            result = -1;
    return result;
}

void handover_end(struct handover_out *out)
{
    io_close(&out->fd);
}

/* ---- reading ---- */

/* Digits alone, and no more than fit. */
static bool number_in(const char *text, size_t n, long long *value)
{
    bool negative = n > 0 && *text == '-';
    long long number = 0;
    if (n == (size_t)negative)
        return false;
    for (size_t i = negative; i < n; i++)
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, text[i] - '0', &number))
            return false;
    *value = negative ? -number : number;
    return true;
}

/* "WORD NUMBER\n" at *at. */
static bool read_line(const char *data, size_t n, size_t *at, char word[HANDOVER_KEY_MAX], long long *number)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
    const char *line = data + *at, *end = memchr(line, '\n', n - *at);
    const char *blank = end ? memchr(line, ' ', (size_t)(end - line)) : NULL;
    size_t length = blank ? (size_t)(blank - line) : 0;
    if (length == 0 || length >= HANDOVER_KEY_MAX || !number_in(blank + 1, (size_t)(end - blank - 1), number))
        return false;
    memcpy(word, line, length);
    word[length] = '\0';
    *at += (size_t)(end - line) + 1;
    return strspn(word, allowed) == length;
}

static const struct handover_part *find(const struct handover *h, const char *key)
{
    for (size_t i = 0; i < h->n_parts; i++)
        if (strcmp(h->parts[i].key, key) == 0)
            return &h->parts[i];
    return NULL;
}

static bool read_part(struct handover *h, const char *data, size_t n, size_t *at)
{
    struct handover_part part;
    long long size;
    if (h->n_parts == HANDOVER_PARTS_MAX || !read_line(data, n, at, part.key, &size) || size < 0 ||
        (unsigned long long)size >= n - *at || data[*at + (size_t)size] != '\n' || find(h, part.key))
        return false;
    part.data = data + *at;
    part.n = (size_t)size;
    h->parts[h->n_parts++] = part;
    *at += (size_t)size + 1;
    return true;
}

int handover_parse(struct handover *h, const char *data, size_t n, struct err *err)
{
    static const char mark[] = "toolbox ";
    size_t at = sizeof mark - 1;
    long long number;
    h->n_parts = 0;
    if (n < at || memcmp(data, mark, at) != 0 || !read_line(data, n, &at, h->kind, &number) || number < 1 ||
        number > INT_MAX)
        return err_set(err, ERR_TOOL, "it is no record of a state");
    h->number = (int)number;
    while (at < n)
        if (!read_part(h, data, n, &at))
            return err_set(err, ERR_TOOL, "the record of a state is damaged at byte %zu", at);
    return 0;
}

int handover_read(struct handover *h, int fd, struct err *err)
{
    struct stat st;
    *h = (struct handover){.map = NULL};
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return err_set(err, ERR_TOOL, "descriptor %d has no record of a state", fd);
    h->size = (size_t)st.st_size;
    h->map = mmap(NULL, h->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (h->map == MAP_FAILED) {
        h->map = NULL;
        return err_sys(err, ERR_TOOL, errno, "cannot read the record of a state");
    }
    return handover_parse(h, h->map, h->size, err);
}

void handover_release(struct handover *h)
{
    if (h->map)
        munmap(h->map, h->size);
    h->map = NULL;
}

int handover_get(const struct handover *h, const char *key, const char **data, size_t *n, struct err *err)
{
    const struct handover_part *part = find(h, key);
    if (!part) {
        err_set(err, ERR_TOOL, "the record has no %s", key);
        return -1;
    }
    *data = part->data;
    *n = part->n;
    return 0;
}

int handover_int(const struct handover *h, const char *key, long long min, long long max, long long *value,
                 struct err *err)
{
    const char *text;
    size_t n;
    if (handover_get(h, key, &text, &n, err) < 0)
        return -1;
    if (!number_in(text, n, value) || *value < min || *value > max)
        return err_set(err, ERR_TOOL, "%s of the record is no number from %lld to %lld", key, min, max);
    return 0;
}

int handover_bool(const struct handover *h, const char *key, bool *value, struct err *err)
{
    long long number;
    if (handover_int(h, key, 0, 1, &number, err) < 0)
        return -1;
    *value = number == 1;
    return 0;
}

static bool is_fd(const struct handover_part *p, long long *fd)
{
    size_t n = strlen(p->key), suffix = sizeof FD_SUFFIX - 1;
    return n > suffix && strcmp(p->key + n - suffix, FD_SUFFIX) == 0 && number_in(p->data, p->n, fd);
}

static bool is_twice(const struct handover *h, const char *key, long long fd)
{
    long long other;
    for (size_t i = 0; i < h->n_parts; i++)
        if (is_fd(&h->parts[i], &other) && other == fd && strcmp(h->parts[i].key, key) != 0)
            return true;
    return false;
}

size_t handover_fds(const struct handover *h, int *fds, size_t max)
{
    size_t n = 0;
    long long fd;
    for (size_t i = 0; i < h->n_parts && n < max; i++)
        if (is_fd(&h->parts[i], &fd) && fd >= 3 && fd <= INT_MAX)
            fds[n++] = (int)fd;
    return n;
}

int handover_fd(const struct handover *h, const char *key, mode_t type, bool optional, int *fd,
                struct err *err)
{
    char name[HANDOVER_KEY_MAX];
    long long number = -1;
    struct stat st;
    snprintf(name, sizeof name, "%s" FD_SUFFIX, key);
    if (handover_int(h, name, optional ? -1 : 3, INT_MAX, &number, err) < 0)
        return -1;
    *fd = (int)number;
    if (number == -1)
        return 0;
    if (number < 3 || is_twice(h, name, number) || fstat(*fd, &st) < 0 || (st.st_mode & S_IFMT) != type)
        return err_set(err, ERR_TOOL, "%s of the record is not such a descriptor", name);
    return 0;
}
