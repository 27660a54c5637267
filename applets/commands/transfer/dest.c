#include "commands/transfer/dest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "commands/transfer/transfer.h"
#include "mem.h"
#include "tools/file/file_path.h"
#include "tools/text_editor/edit_path.h"

#define PATH_LONGEST 65536

static int open_dir(const char *path)
{
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int fail(struct err *err, const char *path)
{
    return err_sys(err, ERR_TOOL, errno, "%s", path);
}

/* For what is in a source, or for several. */
static int open_whole(struct dest *d, const char *path, bool several, bool make, struct err *err)
{
    if (errno != ENOENT || several)
        return fail(err, path);
    if (!make)
        return 0;
    if (file_make_parents(path) < 0 || (mkdir(path, 0777) < 0 && errno != EEXIST) ||
        (d->root = open_dir(path)) < 0)
        return fail(err, path);
    return 0;
}

int dest_open(struct dest *d, const char *path, char *const *names, bool make, struct err *err)
{
    struct stat st;
    *d = (struct dest){.root = open_dir(path), .names = names};
    if (d->root >= 0)
        return 0;
    bool several = names[0] && names[1];
    if (several || !names[0] || strcmp(names[0], ".") == 0)
        return open_whole(d, path, several, make, err);
    size_t n;
    const char *last = transfer_last_part(path, &n);
    if (n == 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
        return fail(err, path);
    char *above MEM_AUTO = last == path ? mem_strdup(".") : mem_dup(path, (size_t)(last - path));
    d->wants_directory = last[n] == '/';
    d->as = mem_dup(last, n);
    d->root = open_dir(above);
    if (d->root < 0)
        return fail(err, above);
    if (d->wants_directory && fstatat(d->root, d->as, &st, 0) == 0)
        return errno = ENOTDIR, fail(err, path);
    return 0;
}

void dest_close(struct dest *d)
{
    io_close(&d->root);
    free(d->as);
}

static int refuse(struct err *err, const struct buf *path, const char *why)
{
    char *shown MEM_AUTO = edit_path_shown(buf_str(path), path->len, ERR_MSG_MAX / 2);
    return err_set(err, ERR_TOOL, "%s: %s", shown, why);
}

static bool is_named(const struct dest *d, const char *first, size_t n)
{
    for (char *const *name = d->names; *name; name++)
        if (strcmp(*name, ".") == 0 || (strlen(*name) == n && memcmp(*name, first, n) == 0))
            return true;
    return !d->names[0];
}

int dest_path(const struct dest *d, const struct buf *path, struct buf *out, struct err *err)
{
    const char *at = buf_str(path);
    buf_truncate(out, 0);
    if (path->len > PATH_LONGEST)
        return refuse(err, path, err_text(ENAMETOOLONG));
    if (strlen(at) != path->len)
        return refuse(err, path, "there is a NUL in the name");
    for (size_t n; *(at += strspn(at, "/")); at += n) {
        n = strcspn(at, "/");
        if (n == 1 && *at == '.')
            continue;
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return refuse(err, path, "leads out of what is copied ('..')");
        if (out->len > 0) {
            buf_addc(out, '/');
            buf_add(out, at, n);
        } else if (!is_named(d, at, n)) {
            return refuse(err, path, "was not asked for");
        } else if (d->as) {
            buf_adds(out, d->as);
        } else {
            buf_add(out, at, n);
        }
    }
    return d->as && out->len == 0 ? refuse(err, path, "was not asked for") : 0;
}

void dest_name(const struct dest *d, const char *path, struct buf *out)
{
    size_t n = d->as ? strlen(d->as) : 0;
    buf_truncate(out, 0);
    if (d->as)
        buf_adds(out, d->names[0]);
    buf_adds(out, path + n);
}
