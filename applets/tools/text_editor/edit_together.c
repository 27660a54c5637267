#include "edit_together.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "edit_apply.h"
#include "edit_encoding.h"
#include "edit_match.h"
#include "edit_patch.h"
#include "edit_path.h"
#include "edit_set.h"
#include "mem.h"

/* ---- patches ---- */

struct job {
    struct edit_set set;
    struct patch patch;
    const char *only; /* the one file that all of it is for; NULL: its own names count */
    struct buf notes;
    const struct text *encoding;
};

static int refuse(const struct patch_file *f, const char *name, const char *why, struct err *err)
{
    char *shown MEM_AUTO = edit_path_shown(name, strlen(name), 400);
    return err_set(err, ERR_TOOL, "Nothing was changed: %s (line %zu of the patch) %s", shown, f->line, why);
}

static int take(struct job *j, const char *name, struct set_file **f, struct err *err)
{
    char *path MEM_AUTO = *name == '/' ? mem_strdup(name) : mem_printf("%s/%s", j->set.root, name);
    return edit_set_take(&j->set, path, strlen(path), f, err);
}

/* The file that is there; of two names the one that leads to it. */
static int take_named(struct job *j, const struct patch_file *f, struct set_file **file, struct err *err)
{
    if (j->only)
        return edit_set_take(&j->set, j->only, strlen(j->only), file, err);
    if (!f->name || !*f->name)
        return refuse(f, "a hunk", "says no file; give `path` of the file it is for", err);
    if (take(j, f->name, file, err) < 0)
        return -1;
    if (f->old_name && f->kind == PATCH_UPDATE && !(*file)->exists && take(j, f->old_name, file, err) < 0)
        return -1;
    return 0;
}

static void set_mode(struct set_file *f, unsigned git_mode)
{
    mode_t mask = umask(0), is = f->mode ? f->mode : f->existed ? f->st.st_mode & 07777 : 0666 & ~mask;
    umask(mask);
    if (git_mode && (f->existed || f->mode || (git_mode & 0111)))
        f->mode = git_mode & 0111 ? is | (is & 0444) >> 2 : is & ~(mode_t)0111;
}

static int target_of(struct job *j, const struct patch_file *f, struct set_file *from, struct set_file **to,
                     struct err *err)
{
    *to = from;
    if (!f->to)
        return 0;
    if (j->only)
        return refuse(f, f->to, "is another name, and `path` is a file; give its directory", err);
    if (take(j, f->to, to, err) < 0)
        return -1;
    if ((*to)->exists)
        return refuse(f, f->to, "exists already", err);
    if (f->copy) {
        (*to)->exists = true;
        (*to)->mode = from->st.st_mode & 07777;
    } else {
        edit_set_move(from, *to);
    }
    return 0;
}

/* Applies it to the text; outside of what differs then the bytes stay as they are. */
static int apply_coded(struct job *j, const struct patch_file *f, const struct buf *is, const char *shown,
                       struct buf *out, struct err *err)
{
    struct coded c CODED_AUTO = {0};
    struct buf text BUF_AUTO = {.max = EDIT_FILE_MAX};
    struct buf bytes BUF_AUTO = BUF_INIT;
    if (coded_take(&c, is, j->encoding, shown, err) < 0)
        return -1;
    if (c.text == is)
        return patch_apply(&j->patch, f, buf_str(is), is->len, shown, out, &j->notes, err);
    if (patch_apply(&j->patch, f, buf_str(c.text), c.text->len, shown, &text, &j->notes, err) < 0)
        return -1;
    struct splice s = coded_difference(&c, &text);
    if (coded_splice(&c, &s, &bytes, shown, err) < 0)
        return -1;
    buf_add(out, is->data, is->len);
    return buf_replace(out, s.at, s.cut, s.put, s.n_put) < 0
               ? err_set(err, ERR_TOOL, "%s would become too large", shown)
               : 0;
}

static int patch_one(struct job *j, const struct patch_file *f, struct err *err)
{
    struct set_file *from, *to;
    struct buf out BUF_AUTO = {.max = EDIT_FILE_MAX};
    if (take_named(j, f, &from, err) < 0)
        return -1;
    /* take_named() has set it. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (f->kind == PATCH_ADD && from->exists)
        return refuse(f, from->real, "exists already; a patch that adds it overwrites nothing", err);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (f->kind != PATCH_ADD && !from->exists && !(f->to && from->existed))
        return refuse(f, f->name ? f->name : from->real, "does not exist", err);
    const struct buf *is = f->to && from->existed ? &from->before : &from->now;
    if (apply_coded(j, f, is, from->shown, &out, err) < 0 || target_of(j, f, from, &to, err) < 0)
        return -1;
    if (f->kind == PATCH_DELETE && f->n > 0 && out.len > 0)
        return refuse(f, f->name, "has more in it than the patch deletes", err);
    to->exists = f->kind != PATCH_DELETE;
    buf_release(&to->now);
    to->now = out;
    out = (struct buf)BUF_INIT;
    set_mode(to, to->exists ? f->mode : 0);
    return 0;
}

/* What moves has left its name, whatever comes there. */
static int move_away(struct job *j, struct err *err)
{
    for (size_t i = 0; i < j->patch.n_files; i++) {
        const struct patch_file *f = &j->patch.files[i];
        struct set_file *from;
        if (!f->to || f->copy)
            continue;
        if (take_named(j, f, &from, err) < 0)
            return -1;
        /* take_named() has set it. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        if (!from->exists)
            return refuse(f, f->name, "does not exist", err);
        from->exists = false;
    }
    return 0;
}

static int find_root(const struct edit_request *r, struct job *j, struct err *err)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    bool given = r->path.s;
    if (edit_path_resolve(&p, given ? r->path.s : ".", given ? r->path.n : 1, false, err) < 0)
        return -1;
    j->set.root = mem_strdup(p.real);
    if (S_ISDIR(p.st.st_mode))
        return 0;
    j->only = j->set.root;
    if (j->patch.n_files > 1)
        return err_set(
            err, ERR_TOOL,
            "Nothing was changed: the patch is for %zu files, and `path` is one file; give their directory",
            j->patch.n_files);
    return 0;
}

static int apply_patch(const struct edit_request *r, struct job *j, struct err *err)
{
    if (patch_read(&j->patch, r->patch.s, r->patch.n, err) < 0 || find_root(r, j, err) < 0 ||
        move_away(j, err) < 0)
        return -1;
    for (size_t i = 0; i < j->patch.n_files; i++)
        if (patch_one(j, &j->patch.files[i], err) < 0)
            return -1;
    return 0;
}

/* ---- lists of edits ---- */

static int edit_one(struct job *j, const struct edit_request *e, struct err *err)
{
    struct set_file *f;
    struct edit_found m EDIT_FOUND_AUTO = EDIT_FOUND_INIT;
    struct edit_wish wish = {&e->old_str, &e->new_str, e->replace_all, e->expected_count};
    struct coded c CODED_AUTO = {0};
    struct buf bytes BUF_AUTO = BUF_INIT;
    if (edit_set_take(&j->set, e->path.s, e->path.n, &f, err) < 0)
        return -1;
    if (e->command != EDIT_CREATE && coded_take(&c, &f->now, &e->encoding, f->shown, err) < 0)
        return -1;
    if (e->command == EDIT_CREATE) {
        if (f->exists && !e->overwrite)
            return err_set(err, ERR_TOOL, "The path %s exists already; to replace it `overwrite`", f->shown);
        f->exists = true;
        if (encoding_put(&e->encoding, e->file_text.s, e->file_text.n, &bytes, f->shown, err) < 0)
            return -1;
        m.s = (struct splice){.cut = f->now.len, .put = buf_str(&bytes), .n_put = bytes.len};
    } else if (!f->exists) {
        return err_set(err, ERR_TOOL, "The path %s does not exist", f->shown);
    } else if (e->command == EDIT_INSERT) {
        const struct text *text = e->new_str.s ? &e->new_str : &e->insert_text;
        if (edit_insertion(buf_str(c.text), c.text->len, e->insert_line, text, f->shown, &m.put, &m.s, err) <
            0)
            return -1;
    } else if (edit_match(buf_str(c.text), c.text->len, &wish, f->shown, &m, err) < 0) {
        return -1;
    }
    if (e->command != EDIT_CREATE && coded_splice(&c, &m.s, &bytes, f->shown, err) < 0)
        return -1;
    buf_reserve(&f->now, 0);
    if (buf_replace(&f->now, m.s.at, m.s.cut, m.s.put, m.s.n_put) < 0)
        return err_set(err, ERR_TOOL, "%s would become too large", f->shown);
    return 0;
}

static int edit_many(const struct edit_request *r, struct job *j, struct err *err)
{
    for (size_t i = 0; i < r->n_edits; i++)
        if (edit_one(j, &r->edits[i], err) < 0)
            return err_wrap(err, "edits[%zu]", i);
    return 0;
}

/* ---- both ---- */

int edit_together(const struct edit_request *r, struct buf *answer, struct err *err)
{
    struct job j = {.notes = BUF_INIT, .encoding = &r->encoding};
    struct buf list BUF_AUTO = BUF_INIT;
    int rc = r->command == EDIT_PATCH ? apply_patch(r, &j, err) : edit_many(r, &j, err);
    if (rc == 0)
        rc = edit_set_commit(&j.set, &list, err);
    if (rc == 0 && list.len == 0)
        buf_adds(answer, "Nothing had to be changed\n");
    else if (rc == 0)
        buf_addf(answer, "Changed (A: added, M: modified, R: renamed, D: deleted):\n%s", list.data);
    if (rc == 0)
        buf_add(answer, j.notes.data, j.notes.len);
    buf_release(&j.notes);
    patch_release(&j.patch);
    edit_set_release(&j.set);
    return rc;
}
