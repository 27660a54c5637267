#include "edit_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dir_read.h"
#include "io.h"
#include "mem.h"
#include "text_editor_types.h"
#include "utf8.h"

/* More entries than an answer can hold are never needed: a line has at least three characters ("/a" and its
 * end). */
#define KEEP ((size_t)EDIT_ANSWER_MAX / 3 + 1)
#define ROOM (2 * KEEP)

struct listing {
    char **paths; /* the first ones in order, of those seen so far; up to ROOM */
    size_t n;
    size_t seen;
    struct buf notes;
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void prune(struct listing *l)
{
    qsort(l->paths, l->n, sizeof *l->paths, by_bytes);
    while (l->n > KEEP)
        free(l->paths[--l->n]);
}

static void add(struct listing *l, const char *dir, const char *name)
{
    if (l->n == ROOM)
        prune(l);
    l->paths[l->n++] = mem_printf("%s/%s", dir, name);
    l->seen++;
}

static void note(struct listing *l, const char *dir, const char *name, int errnum)
{
    if (l->notes.len > EDIT_ANSWER_MAX / 8)
        return;
    char *path MEM_AUTO = mem_printf("%s/%s", dir, name);
    char *shown MEM_AUTO = edit_path_shown(path, strlen(path), 0);
    buf_addf(&l->notes, "[%s can't be read: %s]\n", shown, edit_errno(errnum));
}

static bool is_directory(int dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Lists a directory (at, name), shown as `path` without a slash at the end. -1 with errno. */
static int list(struct listing *l, int at, const char *name, const char *path, int levels)
{
    int fd = io_open_dir(at, name);
    DIR *dir DIR_AUTO = dir_read(fd);
    if (!dir)
        return -1;
    const struct dirent *entry;
    errno = 0;
    for (; (entry = readdir(dir)) != NULL; errno = 0) {
        if (entry->d_name[0] == '.')
            continue;
        add(l, path, entry->d_name);
        if (levels == 1 || !is_directory(fd, entry))
            continue;
        char *below MEM_AUTO = mem_printf("%s/%s", path, entry->d_name);
        if (list(l, fd, entry->d_name, below, levels - 1) < 0 && errno != ENOENT) /* gone meanwhile */
            note(l, path, entry->d_name, errno);
    }
    return errno ? -1 : 0;
}

static void print(struct listing *l, const char *top, struct buf *out)
{
    char *shown MEM_AUTO = edit_path_shown(top, strlen(top), 0);
    buf_addf(out, "%s\n", shown);
    size_t chars = utf8_count(shown, strlen(shown)) + 1;
    prune(l);
    size_t i = 0;
    for (; i < l->n; i++) {
        char *line MEM_AUTO = edit_path_shown(l->paths[i], strlen(l->paths[i]), 0);
        chars += utf8_count(line, strlen(line)) + 1;
        if (chars > EDIT_ANSWER_MAX)
            break;
        buf_addf(out, "%s\n", line);
    }
    if (i < l->seen)
        buf_addf(out, "[%zu more entries are not shown; view a directory further down]\n", l->seen - i);
    buf_add(out, l->notes.data, l->notes.len);
}

int edit_dir_list(const struct edit_path *p, struct buf *out, struct err *err)
{
    struct listing l = {.paths = mem_alloc(ROOM * sizeof *l.paths), .notes = BUF_INIT};
    const char *base = strcmp(p->real, "/") == 0 ? "" : p->real;
    int rc = list(&l, p->dir, p->name, base, 2);
    if (rc < 0)
        err_set(err, ERR_TOOL, "The directory %s can't be read: %s", p->shown, edit_errno(errno));
    else
        print(&l, p->real, out);
    while (l.n > 0)
        free(l.paths[--l.n]);
    free(l.paths);
    buf_release(&l.notes);
    return rc;
}
