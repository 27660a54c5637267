/* Listing directories and finding files by name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mcp_tools.h"
#include "walk.h"

#define OUTPUT_MAX (512u << 10) /* bytes of paths */
#define STATUS_EACH 4096        /* entries between two words on how far it is */

static const char *const type_names[] = {"file", "directory", "symlink", "other"};

struct found {
    struct work *w;
    struct walk *walk;
    long long left; /* of the limit */
    bool full;
};

static const char *start_of(const struct args *a)
{
    return a->path.s && a->path.n > 0 ? a->path.s : ".";
}

static void put_comma(struct buf *out)
{
    if (out->data[out->len - 1] != '[')
        buf_addc(out, ',');
}

/* A path as the client can use it again: the start's, and the way from there. */
static void put_path(struct buf *out, const char *start, const char *path)
{
    struct buf whole BUF_AUTO = BUF_INIT;
    size_t n = strlen(start);
    if (strcmp(start, ".") != 0) {
        buf_adds(&whole, start);
        if (start[n - 1] != '/')
            buf_addc(&whole, '/');
    }
    buf_adds(&whole, path);
    json_put_string(out, whole.data, whole.len);
}

/* True when there is room for one more. */
static bool has_room(struct found *f)
{
    f->full = f->left <= 0 || f->w->structured.len > OUTPUT_MAX;
    f->left--;
    return !f->full;
}

static void put_end(struct found *f)
{
    struct buf *out = &f->w->structured;
    buf_addc(out, ']');
    json_member_bool(out, "truncated", f->full || f->walk->late);
    json_member_bool(out, "timed_out", f->walk->late);
    json_member_int(out, "unreadable_directories", (long long)f->walk->unreadable);
    buf_addc(out, '}');
}

/* ---- list_files ---- */

static void put_target(struct buf *out, const struct walk_entry *e)
{
    char target[4096];
    ssize_t n = readlinkat(e->dir, e->name, target, sizeof target);
    if (n >= 0)
        json_member_text(out, "target", target, (size_t)n);
}

static bool list_entry(void *arg, const struct walk_entry *e)
{
    struct found *f = arg;
    struct buf *out = &f->w->structured;
    struct stat st;
    if (!has_room(f))
        return false;
    put_comma(out);
    buf_addc(out, '{');
    json_key(out, "path");
    put_path(out, start_of(&f->w->args), e->path);
    json_member_string(out, "type", type_names[e->type]);
    if (e->type == WALK_FILE && fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        json_member_int(out, "size", st.st_size);
    if (e->type == WALK_SYMLINK)
        put_target(out, e);
    buf_addc(out, '}');
    return true;
}

static struct walk walk_of(const struct args *a, struct found *f,
                           bool (*entry)(void *arg, const struct walk_entry *e))
{
    return (struct walk){.hidden = a->hidden,
                         .exclude = a->exclude.list,
                         .n_exclude = a->exclude.n,
                         .deadline_ms = now_ms() + (long long)(a->timeout * 1000),
                         .entry = entry,
                         .arg = f};
}

static int run(struct work *w, struct walk *walk, struct found *f, const char *key, struct err *err)
{
    if (walk_check_patterns(walk->exclude, walk->n_exclude, "exclude", err) < 0)
        return -1;
    buf_addf(&w->structured, "{\"%s\":[", key);
    if (walk_run(walk, start_of(&w->args), err) < 0)
        return -1;
    put_end(f);
    return 0;
}

int mcp_list_files(struct work *w, struct err *err)
{
    struct found f = {.w = w, .left = w->args.limit};
    struct walk walk = walk_of(&w->args, &f, list_entry);
    walk.max_depth = (unsigned)w->args.depth;
    f.walk = &walk;
    return run(w, &walk, &f, "entries", err);
}

/* ---- find_files ---- */

static bool find_entry(void *arg, const struct walk_entry *e)
{
    struct found *f = arg;
    const struct args *a = &f->w->args;
    if (f->walk->seen % STATUS_EACH == 0)
        work_status(f->w, "%llu entries looked at", f->walk->seen);
    if (a->type.s && strcmp(a->type.s, type_names[e->type]) != 0)
        return true;
    if (!walk_matches(a->pattern.s, e->path, e->name))
        return true;
    if (!has_room(f))
        return false;
    put_comma(&f->w->structured);
    put_path(&f->w->structured, start_of(a), e->path);
    return true;
}

int mcp_find_files(struct work *w, struct err *err)
{
    struct found f = {.w = w, .left = w->args.limit};
    struct walk walk = walk_of(&w->args, &f, find_entry);
    f.walk = &walk;
    if (walk_check_patterns(&w->args.pattern.s, 1, "pattern", err) < 0)
        return -1;
    return run(w, &walk, &f, "paths", err);
}
