/* Trees: what is below a directory, in order; each directory is opened from the one above and is no link, so
 * that nobody leads elsewhere who exchanges one meanwhile. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dir_read.h"
#include "file_path.h"
#include "file_request.h"
#include "glob.h"
#include "io.h"
#include "json.h"
#include "mem.h"

#define DEPTH_MAX 100 /* each level holds a descriptor */
#define SORTED_MAX 1000000

/* A walk. `see` is called for each entry, in the order of bytes of names, a directory in front of what is in
 * it; false ends the walk. */
struct walk {
    bool (*see)(struct walk *w, int at, const char *name, const struct stat *st, const char *path);
    const struct file_page *page;
    struct buf *out;
    char *last; /* that was listed */
    struct sorted {
        long long key;
        char *path, *entry;
    } * all; /* where another order than that of the walk is wanted */
    long long n, bytes, disk_bytes;
    bool cut, skipped; /* skipped: something couldn't be read */
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted. Takes fd. -1 with errno. */
static int names_in(int fd, char ***names, size_t *n)
{
    DIR *dir DIR_AUTO = dir_read(fd);
    size_t room = 0;
    const char *name;
    if (!dir)
        return -1;
    while ((name = dir_next(dir)) != NULL) {
        if (*n == room)
            *names = mem_realloc(*names, (room = room ? 2 * room : 64) * sizeof **names);
        (*names)[(*n)++] = mem_strdup(name);
    }
    if (*n > 0)
        qsort(*names, *n, sizeof **names, by_bytes);
    return 0;
}

/* How a path stands to the one after which the walk goes on, when `name` is its component there: negative, it
 * and all below it has been seen; 0: it has been, what is below it may be new; positive: it is new. */
static int compare_after(const char *after, const char *name, const char **rest)
{
    size_t n = strcspn(after, "/");
    char *component MEM_AUTO = mem_dup(after, n);
    int order = strcmp(name, component);
    *rest = after[n] ? after + n + 1 : "";
    return order;
}

static bool walk_dir(struct walk *w, int fd, const char *above, const char *after, long long depth);

static bool walk_entry(struct walk *w, int fd, const char *above, const char *name, const char *after,
                       long long depth)
{
    const char *below = NULL; /* what has been seen there */
    struct stat st;
    int order = after ? compare_after(after, name, &below) : 1;
    if (order < 0 || (name[0] == '.' && !w->page->hidden) || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    char *path MEM_AUTO = *above ? mem_printf("%s/%s", above, name) : mem_strdup(name);
    if (order > 0 && !w->see(w, fd, name, &st, path))
        return false;
    if (!S_ISDIR(st.st_mode) || depth <= 1)
        return true;
    int inner = io_open_dir(fd, name);
    if (inner < 0) {
        w->skipped = w->skipped || errno != ENOENT;
        return true;
    }
    return walk_dir(w, inner, path, order == 0 && below && *below ? below : NULL, depth - 1);
}

/* What is in a directory but what was seen before: the path `after` (NULL: none) and all in front of it.
 * Takes fd. False: the walk was ended. */
static bool walk_dir(struct walk *w, int fd, const char *above, const char *after, long long depth)
{
    char **names = NULL;
    size_t n = 0;
    bool go_on = true;
    int at FD_AUTO = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (names_in(fd, &names, &n) < 0 || at < 0)
        w->skipped = true;
    for (size_t i = 0; i < n; i++) {
        go_on = go_on && at >= 0 && walk_entry(w, at, above, names[i], after, depth);
        free(names[i]);
    }
    free(names);
    return go_on;
}

static void put_entry(struct buf *out, int at, const char *name, const struct stat *st, const char *path)
{
    buf_addc(out, '{');
    json_key(out, "path");
    file_put_path(out, path);
    file_put_stat(out, at, name, st);
    buf_addc(out, '}');
}

/* False: that are enough. */
static bool list_entry(struct walk *w, const char *path)
{
    if (w->n == w->page->limit) {
        w->cut = true;
        return false;
    }
    if (w->n++ > 0)
        buf_addc(w->out, ',');
    free(w->last);
    w->last = mem_strdup(path);
    return true;
}

static bool list_one(struct walk *w, int at, const char *name, const struct stat *st, const char *path)
{
    if (w->page->glob.s && !glob_match(w->page->glob.s, path))
        return true;
    if (!list_entry(w, path))
        return false;
    put_entry(w->out, at, name, st, path);
    return true;
}

/* ---- in another order ---- */

static bool sort_one(struct walk *w, int at, const char *name, const struct stat *st, const char *path)
{
    struct buf entry BUF_AUTO = BUF_INIT;
    if (w->page->glob.s && !glob_match(w->page->glob.s, path))
        return true;
    if (w->n == SORTED_MAX) {
        w->skipped = true;
        return false;
    }
    if ((w->n & (w->n + 1)) == 0) /* room for 2^k - 1 */
        w->all = mem_realloc(w->all, (size_t)(2 * w->n + 1) * sizeof *w->all);
    put_entry(&entry, at, name, st, path);
    long long ns = (long long)st->st_mtim.tv_sec * 1000000000 + (long long)st->st_mtim.tv_nsec;
    bool by_time = w->page->sort.s[0] == 'm';
    w->all[w->n++] =
        (struct sorted){by_time ? ns : (long long)st->st_size, mem_strdup(path), buf_take(&entry, NULL)};
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? 1 : -1) : strcmp(x->path, y->path);
}

/* What was gathered, behind that path (NULL: all of it). False: it isn't there any more. */
static bool list_sorted(struct walk *w, const char *after)
{
    long long n = w->n, from = 0;
    w->n = 0;
    if (n > 0)
        qsort(w->all, (size_t)n, sizeof *w->all, by_key);
    while (after && from < n && strcmp(w->all[from].path, after) != 0)
        from++;
    bool found = !after || from < n;
    for (long long i = 0; i < n; i++) {
        if (found && i >= from + (after != NULL) && !w->cut && list_entry(w, w->all[i].path))
            buf_adds(w->out, w->all[i].entry);
        free(w->all[i].path);
        free(w->all[i].entry);
    }
    free(w->all);
    return found;
}

int file_list(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    const char *wrong = r->page.glob.s ? glob_check(r->page.glob.s) : NULL;
    if (wrong)
        return err_set(err, ERR_PARAMS, "Invalid parameters: glob: %s", wrong);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return file_fail(answer, err, errno, path);
    bool sort = r->page.sort.s && strcmp(r->page.sort.s, "name") != 0, found = true;
    struct walk w = {.see = sort ? sort_one : list_one, .page = &r->page, .out = answer};
    char *after MEM_AUTO = r->page.after.s ? file_path(&r->page.after) : NULL;
    buf_adds(answer, "{\"entries\":[");
    walk_dir(&w, fd, "", sort ? NULL : after, r->page.depth);
    if (sort)
        found = list_sorted(&w, after);
    buf_addc(answer, ']');
    if (w.cut) {
        json_key(answer, "next");
        file_put_path(answer, w.last);
    }
    free(w.last);
    json_member_bool(answer, "incomplete", w.skipped);
    buf_addc(answer, '}');
    return found ? 0 : file_fail(answer, err, ENOENT, after);
}

static bool count_one(struct walk *w, int at, const char *name, const struct stat *st, const char *path)
{
    (void)at;
    (void)name;
    (void)path;
    w->n++;
    w->bytes += S_ISREG(st->st_mode) ? (long long)st->st_size : 0;
    w->disk_bytes += (long long)st->st_blocks * 512;
    return true;
}

int file_disk_usage(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    struct file_page all = {.hidden = true};
    struct walk w = {.see = count_one, .page = &all};
    struct stat st;
    if (lstat(path, &st) < 0)
        return file_fail(answer, err, errno, path);
    count_one(&w, AT_FDCWD, path, &st, path);
    int fd = S_ISDIR(st.st_mode) ? io_open_dir(AT_FDCWD, path) : -1;
    if (fd < 0 && S_ISDIR(st.st_mode))
        return file_fail(answer, err, errno, path);
    if (fd >= 0)
        walk_dir(&w, fd, "", NULL, DEPTH_MAX);
    buf_addc(answer, '{');
    json_member_int(answer, "entries", w.n);
    json_member_int(answer, "bytes", w.bytes);
    json_member_int(answer, "disk_bytes", w.disk_bytes);
    json_member_bool(answer, "incomplete", w.skipped);
    return buf_addc(answer, '}');
}
