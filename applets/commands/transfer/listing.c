/* Says what is there (list.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "commands/transfer/dest.h"
#include "commands/transfer/list.h"
#include "commands/transfer/scan.h"
#include "commands/transfer/transfer.h"
#include "io.h"
#include "sha256.h"

#define FLUSH (64u << 10)

struct listing {
    struct scan scan; /* first */
    const struct transfer_options *o;
    const struct dest *dest;
    struct buf out, name;
};

static void flush(struct listing *l, size_t least)
{
    if (l->out.len >= least)
        io_write_all(STDOUT_FILENO, buf_str(&l->out), l->out.len);
    if (l->out.len >= least)
        buf_truncate(&l->out, 0);
}

static void put(struct scan *s, int dir, const char *name, const char *path, const struct stat *st)
{
    struct listing *l = (struct listing *)s;
    char more[PATH_MAX] = "";
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dir, name, more, sizeof more - 1);
        more[n > 0 ? n : 0] = '\0';
    } else if (S_ISREG(st->st_mode) && l->o->sums) {
        int fd FD_AUTO = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || sha256_file(fd, more) < 0)
            more[0] = '\0';
    }
    dest_name(l->dest, path, &l->name);
    list_put(&l->out, buf_str(&l->name), st, more);
    flush(l, FLUSH);
}

/* What can't be read is as if nothing were there. */
static void unreadable(struct scan *s, const char *path, int errnum)
{
    (void)s, (void)path, (void)errnum;
}

int transfer_list(const struct transfer_options *o, char *const *excludes, const char *to, char *const *names)
{
    struct dest dest;
    struct err err;
    struct stat st;
    struct listing l = {.scan = {.excludes = excludes, .entry = put, .unreadable = unreadable},
                        .o = o,
                        .dest = &dest,
                        .out = BUF_INIT,
                        .name = BUF_INIT};
    if (dest_open(&dest, to, names, false, &err) < 0)
        return applet_failed("transfer", "%s", err.msg);
    scan_many_descriptors();
    for (char *const *name = names; dest.root >= 0 && *name; name++) {
        const char *there = dest.as ? dest.as : *name;
        if (fstatat(dest.root, there, &st, AT_SYMLINK_NOFOLLOW) == 0)
            scan_entry(&l.scan, dest.root, there, there, &st);
    }
    list_put_end(&l.out);
    flush(&l, 1);
    buf_release(&l.out);
    buf_release(&l.name);
    dest_close(&dest);
    return EXIT_OK;
}
