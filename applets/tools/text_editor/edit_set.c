#include "edit_set.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "edit_beside.h"
#include "edit_whole.h"
#include "edit_write.h"
#include "io.h"
#include "mem.h"
#include "text_editor_types.h"

/* ---- which file ---- */

/* Without links, for a path whose last parts may be missing; NULL with errno. */
static char *real_of(const char *path)
{
    char *at MEM_AUTO = mem_strdup(path);
    for (char *end = at + strlen(at); end > at; *end = '\0') {
        char *real = realpath(at, NULL);
        if (real) {
            const char *rest = path + (end - at);
            rest += strspn(rest, "/");
            char *whole =
                *rest ? mem_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, rest) : mem_strdup(real);
            free(real);
            return whole;
        }
        struct stat st;
        if (errno != ENOENT || lstat(at, &st) == 0)
            return NULL; /* a link that leads nowhere is none that we follow */
        while (end > at && *--end != '/')
            ;
        while (end > at + 1 && end[-1] == '/')
            end--;
        if (end == at && *at == '/')
            end++;
    }
    char *real = realpath(".", NULL);
    char *whole = real ? mem_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, path) : NULL;
    free(real);
    return whole;
}

static bool has_dots(const char *path)
{
    for (const char *at = path; *at; at += strcspn(at, "/"), at += strspn(at, "/"))
        if (at[0] == '.' && (at[1] == '/' || !at[1] || (at[1] == '.' && (at[2] == '/' || !at[2]))))
            return true;
    return false;
}

static bool is_within(const struct edit_set *set, const char *real)
{
    size_t n = set->root ? strlen(set->root) : 0;
    return n <= 1 || (strncmp(real, set->root, n) == 0 && (real[n] == '/' || !real[n]));
}

static int load(struct set_file *f, struct edit_path *p, struct err *err)
{
    struct edit_file file EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    if (edit_load(&file, p, &undo, err) < 0)
        return -1;
    f->existed = f->exists = true;
    f->st = file.st;
    buf_add(&f->before, file.data.data, file.data.len);
    buf_add(&f->now, file.data.data, file.data.len);
    return 0;
}

static struct set_file *add(struct edit_set *set, char *real)
{
    set->files = mem_realloc(set->files, (set->n + 1) * sizeof *set->files);
    struct set_file *f = set->files[set->n++] = mem_zalloc(sizeof *f);
    f->real = real;
    f->shown = edit_path_shown(real, strlen(real), 0);
    f->before = f->now = (struct buf){.max = EDIT_FILE_MAX};
    return f;
}

int edit_set_take(struct edit_set *set, const char *path, size_t n, struct set_file **f, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    char *plain MEM_AUTO = mem_dup(path, n);
    char *real = n > 0 && strlen(plain) == n && n < PATH_MAX ? real_of(plain) : NULL;
    if (!real || has_dots(real)) { /* which says why */
        free(real);
        return edit_path_resolve(&p, path, n, false, err) < 0
                   ? -1
                   : err_set(err, ERR_TOOL, "The path %s can't be used", p.shown);
    }
    if (!is_within(set, real)) {
        char *shown MEM_AUTO = edit_path_shown(path, n, 400);
        err_set(err, ERR_TOOL, "Nothing was changed: %s leads out of %s", shown, set->root);
        free(real);
        return -1;
    }
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->files[i]->real, real) == 0) {
            *f = set->files[i];
            free(real);
            return 0;
        }
    *f = add(set, real);
    struct stat st;
    if (lstat(real, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    return edit_path_resolve(&p, real, strlen(real), false, err) < 0 ? -1 : load(*f, &p, err);
}

void edit_set_move(struct set_file *from, struct set_file *to)
{
    to->exists = to->target = true;
    to->mode = from->mode ? from->mode : from->st.st_mode & 07777;
    if (from->existed && !to->existed)
        to->from = from;
    from->exists = from->target;
}

void edit_set_release(struct edit_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        struct set_file *f = set->files[i];
        free(f->real);
        free(f->shown);
        buf_release(&f->before);
        buf_release(&f->now);
        free(f);
    }
    free(set->files);
    free(set->root);
}

/* ---- doing it ---- */

static bool is_same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static int changed(const struct set_file *f, struct err *err)
{
    return err_set(err, ERR_TOOL, "%s was changed by another program meanwhile", f->shown);
}

/* The path is what it was when the file was taken. */
static int resolve(const struct set_file *f, struct edit_path *p, bool missing, struct err *err)
{
    if (edit_path_resolve(p, f->real, strlen(f->real), missing, err) < 0)
        return -1;
    return strcmp(p->real, f->real) == 0 && (!missing || !p->exists) ? 0 : changed(f, err);
}

static int write_content(struct set_file *f, const struct buf *is, const struct buf *wanted, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct edit_file file EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    if (is_same(is, wanted))
        return 0;
    if (resolve(f, &p, false, err) < 0 || edit_load(&file, &p, &undo, err) < 0)
        return -1;
    if (!is_same(&file.data, is))
        return changed(f, err);
    struct splice s = edit_difference(&file, buf_str(wanted), wanted->len);
    undo_open(&undo, true);
    if (edit_write(&file, &p, &s, ENTRY_EDIT, &undo, err) < 0)
        return -1;
    f->written = true;
    return 0;
}

static int set_mode(const struct set_file *f, mode_t mode, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    if (resolve(f, &p, false, err) < 0)
        return -1;
    int fd FD_AUTO = openat(p.dir, p.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode) < 0)
        return err_sys(err, ERR_TOOL, errno, "The mode of %s can't be changed", f->shown);
    return 0;
}

static int make(struct set_file *f, const struct buf *content, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    if (edit_make_parents(f->real, &f->made, err) < 0 || resolve(f, &p, true, err) < 0)
        return -1;
    undo_open(&undo, true);
    if (edit_create(&p, buf_str(content), content->len, &undo, err) < 0)
        return -1;
    f->placed = true;
    return f->mode ? set_mode(f, f->mode, err) : 0;
}

static int move(struct set_file *from, struct set_file *to, struct err *err)
{
    struct edit_path a EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct edit_path b EDIT_PATH_AUTO = EDIT_PATH_INIT;
    if (edit_make_parents(to->real, &to->made, err) < 0 || resolve(from, &a, false, err) < 0 ||
        resolve(to, &b, true, err) < 0)
        return -1;
    if (syscall(SYS_renameat2, a.dir, a.name, b.dir, b.name, 1 /* never over another one */) < 0 &&
        ((errno != ENOSYS && errno != EINVAL) || renameat(a.dir, a.name, b.dir, b.name) < 0))
        return err_sys(err, ERR_TOOL, errno, "%s can't be renamed to %s", from->shown, to->shown);
    return 0;
}

static bool is_moved(const struct set_file *f)
{
    return f->from && !f->from->exists && !f->from->moved;
}

static int put(struct set_file *f, struct err *err)
{
    if (is_moved(f)) {
        if (write_content(f->from, &f->from->before, &f->now, err) < 0 || move(f->from, f, err) < 0)
            return -1;
        f->placed = f->from->moved = true;
        return f->mode && f->mode != (f->from->st.st_mode & 07777) ? set_mode(f, f->mode, err) : 0;
    }
    f->from = NULL;
    if (!f->existed)
        return make(f, &f->now, err);
    if (write_content(f, &f->before, &f->now, err) < 0)
        return -1;
    bool other = f->mode && f->mode != (f->st.st_mode & 07777);
    return other ? set_mode(f, f->mode, err) : 0;
}

static int drop(struct set_file *f, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct edit_file file EDIT_FILE_AUTO = EDIT_FILE_INIT;
    if (resolve(f, &p, false, err) < 0 || edit_file_load(&file, &p, err) < 0)
        return -1;
    if (!is_same(&file.data, &f->before))
        return changed(f, err);
    if (unlinkat(p.dir, p.name, 0) < 0)
        return err_sys(err, ERR_TOOL, errno, "%s can't be deleted", f->shown);
    f->placed = true;
    return 0;
}

/* ---- and back ---- */

/* Takes the last edit back, which is ours. */
static int take_back(struct set_file *f)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct edit_file file EDIT_FILE_AUTO = EDIT_FILE_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct entry e ENTRY_AUTO = ENTRY_INIT;
    struct entry_item item;
    struct err err;
    if (resolve(f, &p, false, &err) < 0 || edit_load(&file, &p, &undo, &err) < 0)
        return -1;
    struct splice s = edit_difference(&file, buf_str(&f->before), f->before.len);
    bool kept = undo_newest(&undo, &p, &file, &item, &e, &err) > 0 && undo_begin(&undo, &item, &p, &err) == 0;
    if (!kept)
        undo_open(&undo, true);
    int rc = !f->existed ? unlinkat(p.dir, p.name, 0)
                         : edit_write(&file, &p, &s, kept ? ENTRY_UNDO : ENTRY_EDIT, &undo, &err);
    if (kept)
        undo_end(&undo, &item, rc == 0);
    return rc;
}

static int restore(struct set_file *f)
{
    struct err err;
    int rc = 0;
    bool moved = f->placed && f->from;
    if (moved && (rc = move(f, f->from, &err)) == 0)
        f->from->moved = false;
    else if (f->placed && f->exists && !moved)
        rc = take_back(f);
    else if (f->placed && !f->exists) {
        f->mode = f->st.st_mode & 07777;
        rc = make(f, &f->before, &err);
    }
    f->placed = false;
    struct set_file *source = moved ? f->from : f;
    if (rc == 0 && source->written)
        rc = take_back(source);
    source->written = false;
    if (rc == 0 && source->existed && f->mode && set_mode(source, source->st.st_mode & 07777, &err) < 0)
        rc = -1;
    edit_unmake_parents(f->real, f->made);
    return rc;
}

static void restore_all(struct edit_set *set, struct err *err)
{
    struct buf lost BUF_AUTO = BUF_INIT;
    for (size_t i = set->n; i-- > 0;)
        if (restore(set->files[i]) < 0)
            buf_addf(&lost, " %s", set->files[i]->shown);
    err_wrap(err, lost.len > 0 ? "It could not be done, nor put back in%s" : "Nothing was changed%s",
             buf_str(&lost));
}

static void tell(const struct set_file *f, struct buf *answer)
{
    if (f->exists && f->from)
        buf_addf(answer, "R %s -> %s\n", f->from->shown, f->shown);
    else if (f->exists && (!f->existed || !is_same(&f->before, &f->now) || f->mode))
        buf_addf(answer, "%c %s\n", f->existed ? 'M' : 'A', f->shown);
    else if (f->existed && !f->exists && !f->moved)
        buf_addf(answer, "D %s\n", f->shown);
}

int edit_set_commit(struct edit_set *set, struct buf *answer, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < set->n; i++)
        if (set->files[i]->exists)
            rc = put(set->files[i], err);
    for (size_t i = 0; rc == 0 && i < set->n; i++)
        if (set->files[i]->existed && !set->files[i]->exists && !set->files[i]->moved)
            rc = drop(set->files[i], err);
    if (rc < 0)
        restore_all(set, err);
    for (size_t i = 0; rc == 0 && i < set->n; i++)
        tell(set->files[i], answer);
    return rc;
}
