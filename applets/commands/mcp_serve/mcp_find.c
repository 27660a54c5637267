/* Listing directories and finding files by name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "glob.h"
#include "io.h"
#include "mcp_tools.h"
#include "relocate.h"
#include "tools/file/file_find.h"

#define OUTPUT_MAX (512u << 10) /* bytes of paths */
#define LATE_S 5                /* beyond the deadline, for one line with an expensive expression */
#define MEMORY_MAX (512u << 20)

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
    file_put_below(out, start_of(&f->w->args), e->path);
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
    if (code_unpack(CODE_file, err) < 0 || glob_check_all(walk->exclude, walk->n_exclude, "exclude", err) < 0)
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

/* ---- find_files, search_files ---- */

/* Against expressions that take more than there is: the process is ended, which is told. */
static void bound(double timeout_s)
{
#ifndef __SANITIZE_ADDRESS__ /* which has terabytes of addresses */
    struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
    setrlimit(RLIMIT_AS, &memory);
#endif
    alarm((unsigned)timeout_s + LATE_S);
}

static void tell(void *arg, const char *what, unsigned long long n)
{
    work_status(arg, "%llu %s", n, what);
}

static int seek(struct work *w, file_work *find, struct err *err)
{
    const struct args *a = &w->args;
    struct file_request r = {.path = a->path,
                             .seek = {.pattern = a->pattern,
                                      .type = a->type,
                                      .glob = a->glob,
                                      .exclude = a->exclude,
                                      .literal = a->literal,
                                      .ignore_case = a->ignore_case,
                                      .hidden = a->hidden,
                                      .ignores = a->ignores,
                                      .context = a->context,
                                      .limit = a->limit,
                                      .min_size = -1,
                                      .max_size = -1,
                                      .newer = -1,
                                      .older = -1,
                                      .timeout = a->timeout,
                                      .tell = tell,
                                      .arg = w}};
    if (code_unpack(CODE_file, err) < 0)
        return -1;
    bound(a->timeout);
    return find(&r, &w->structured, err);
}

int mcp_find_files(struct work *w, struct err *err)
{
    return seek(w, file_find, err);
}

int mcp_search_files(struct work *w, struct err *err)
{
    static const char nothing[] =
        "\"files_searched\":0,\"files_binary\":0,\"files_too_large\":0,\"unreadable\":0";
    struct buf *out = &w->structured;
    if (seek(w, file_search, err) < 0)
        return -1;
    if (strstr(buf_str(out), nothing)) { /* no text of a file has quotes like that */
        buf_truncate(out, out->len - 1);
        json_member_string(out, "note",
                           "No file was looked at: none is there that path, glob and exclude leave");
        buf_addc(out, '}');
    }
    return 0;
}
