#include "tools/file/ignore.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "glob.h"
#include "io.h"
#include "mem.h"

enum { FILE_MAX = 1 << 20 };

/* Braces mean nothing there. */
static char *pattern_of(const char *s, size_t n)
{
    struct buf out BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (strchr("{},", s[i]))
            buf_addc(&out, '\\');
        else if (s[i] == '\\' && i + 1 < n)
            buf_addc(&out, s[i++]);
        buf_addc(&out, s[i]);
    }
    buf_addc(&out, '\0');
    return buf_take(&out, NULL);
}

static void add(struct ignore_rule **rules, size_t *n, const char *line, size_t length, size_t base)
{
    struct ignore_rule r = {.base = base};
    while (length > 0 && strchr("\r \t", line[length - 1]) && !(length > 1 && line[length - 2] == '\\'))
        length--;
    if (length == 0 || *line == '#')
        return;
    r.keeps = *line == '!';
    line += r.keeps;
    length -= r.keeps;
    r.directories = length > 0 && line[length - 1] == '/';
    length -= r.directories;
    r.whole = memchr(line, '/', length) != NULL;
    size_t slash = length > 0 && *line == '/';
    r.pattern = pattern_of(line + slash, length - slash);
    if (!*r.pattern || glob_check(r.pattern)) {
        free(r.pattern);
        return;
    }
    if ((*n & (*n + 1)) == 0) /* room for 2^k - 1 */
        *rules = mem_realloc(*rules, (2 * *n + 1) * sizeof **rules);
    (*rules)[(*n)++] = r;
}

void ignore_read(struct ignore_rule **rules, size_t *n, int dir, size_t base)
{
    static const char *const names[] = {".gitignore", ".ignore"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf text BUF_AUTO = {.max = FILE_MAX};
        struct stat st;
        int fd FD_AUTO = openat(dir, names[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || io_read_all(fd, &text) < 0)
            continue;
        const char *at = buf_str(&text), *end = at + text.len;
        while (at < end) {
            const char *lf = memchr(at, '\n', (size_t)(end - at));
            size_t length = (size_t)((lf ? lf : end) - at);
            if (!memchr(at, '\0', length))
                add(rules, n, at, length, base);
            at += length + 1;
        }
    }
}

void ignore_forget(struct ignore_rule *rules, size_t *n, size_t keep)
{
    while (*n > keep)
        free(rules[--*n].pattern);
}

bool ignore_says(const struct ignore_rule *rules, size_t n, const char *path, const char *name,
                 bool directory)
{
    while (n-- > 0) {
        const struct ignore_rule *r = &rules[n];
        const char *below = path + r->base + (r->base > 0);
        if ((directory || !r->directories) && glob_match(r->pattern, r->whole ? below : name))
            return !r->keeps;
    }
    return false;
}
