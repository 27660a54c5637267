/* Finding files by name, kind, size and time. */
#include "tools/file/file_find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glob.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "tools/file/file_path.h"

#define OUTPUT_MAX (512u << 10) /* bytes of paths */
#define STATUS_EACH 4096        /* entries between two words on how far it is */

struct finding {
    const struct file_seek *seek;
    struct walk walk;
    struct buf *out;
    const char *start;
    long long left;
    bool full;
};

void file_put_below(struct buf *out, const char *start, const char *path)
{
    size_t n = strlen(start);
    bool here = strcmp(start, ".") == 0;
    char *whole MEM_AUTO =
        mem_printf("%s%s%s", here ? "" : start, here || start[n - 1] == '/' ? "" : "/", path);
    file_put_path(out, whole);
}

struct walk file_walk_for(const struct file_seek *seek, bool (*entry)(void *arg, const struct walk_entry *e),
                          void *arg)
{
    return (struct walk){.hidden = seek->hidden,
                         .ignores = seek->ignores,
                         .exclude = seek->exclude.list,
                         .n_exclude = seek->exclude.n,
                         .deadline_ms = now_ms() + (long long)(seek->timeout * 1000),
                         .entry = entry,
                         .arg = arg};
}

static bool asks_more(const struct file_seek *a)
{
    return a->min_size >= 0 || a->max_size >= 0 || a->newer >= 0 || a->older >= 0;
}

static bool is_such(const struct file_seek *a, const struct walk_entry *e)
{
    struct stat st;
    if (fstatat(e->dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    double time = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
    bool sized = a->min_size >= 0 || a->max_size >= 0;
    return !(sized && e->type != WALK_FILE) && (long long)st.st_size >= a->min_size &&
           (a->max_size < 0 || (long long)st.st_size <= a->max_size) && (a->newer < 0 || time > a->newer) &&
           (a->older < 0 || time < a->older);
}

static bool find_entry(void *arg, const struct walk_entry *e)
{
    static const char *const type_names[] = {"file", "directory", "symlink", "other"};
    struct finding *f = arg;
    const struct file_seek *a = f->seek;
    if (a->tell && f->walk.seen % STATUS_EACH == 0)
        a->tell(a->arg, "entries looked at", f->walk.seen);
    if (a->type.s && strcmp(a->type.s, type_names[e->type]) != 0)
        return true;
    if (!glob_match_file(a->pattern.s, e->path, e->name) || (asks_more(a) && !is_such(a, e)))
        return true;
    f->full = f->left-- <= 0 || f->out->len > OUTPUT_MAX;
    if (f->full)
        return false;
    if (f->out->data[f->out->len - 1] != '[')
        buf_addc(f->out, ',');
    file_put_below(f->out, f->start, e->path);
    return true;
}

int file_find(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    const struct file_seek *a = &r->seek;
    char *start MEM_AUTO = r->path.s && r->path.n > 0 ? file_path(&r->path) : mem_strdup(".");
    struct finding f = {.seek = a, .out = answer, .start = start, .left = a->limit};
    f.walk = file_walk_for(a, find_entry, &f);
    if (glob_check_all((char *const *)&a->pattern.s, 1, "pattern", err) < 0 ||
        glob_check_all(a->exclude.list, a->exclude.n, "exclude", err) < 0)
        return -1;
    buf_adds(answer, "{\"paths\":[");
    if (walk_run(&f.walk, start, err) < 0)
        return file_fail(answer, err, errno, start);
    buf_addc(answer, ']');
    json_member_bool(answer, "truncated", f.full || f.walk.late);
    json_member_bool(answer, "timed_out", f.walk.late);
    json_member_int(answer, "unreadable_directories", (long long)f.walk.unreadable);
    return buf_addc(answer, '}');
}
