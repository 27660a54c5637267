#include "tools/file/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "glob.h"
#include "tools/file/ignore.h"
#include "io.h"
#include "mem.h"

#define DEPTH_MAX 256 /* a descriptor each */
#define RECORDS 32768 /* bytes of a directory at once */

struct listed {
    char *name;
    unsigned char type; /* DT_… */
};

static bool is_made_up(int fd)
{
    static const unsigned long kinds[] = {PROC_SUPER_MAGIC,   SYSFS_MAGIC,      DEBUGFS_MAGIC,
                                          TRACEFS_MAGIC,      SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,
                                          CGROUP2_SUPER_MAGIC};
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((unsigned long)fs.f_type == kinds[i])
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

static enum walk_type type_of(int dir, const struct listed *l)
{
    struct stat st;
    unsigned char type = l->type;
    if (type == DT_UNKNOWN && fstatat(dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        type = (unsigned char)IFTODT(st.st_mode);
    return type == DT_REG   ? WALK_FILE
           : type == DT_DIR ? WALK_DIRECTORY
           : type == DT_LNK ? WALK_SYMLINK
                            : WALK_OTHER;
}

static bool is_over(struct walk *w)
{
    if (w->deadline_ms > 0 && now_ms() > w->deadline_ms)
        w->late = true;
    return w->late || w->stopped;
}

static bool is_wanted(const struct walk *w, const char *name)
{
    return name[0] != '.' || (w->hidden && name[1] != '\0' && strcmp(name, "..") != 0);
}

/* As the kernel gives them. */
struct record {
    unsigned long long ino;
    long long at;
    unsigned short size;
    unsigned char type;
    char name[];
};

struct listing {
    struct listed *all;
    size_t n, room;
    bool rules; /* there is a file of what to leave out */
};

static void take_record(const struct walk *w, struct listing *l, const struct record *r)
{
    l->rules = l->rules || strcmp(r->name, ".gitignore") == 0 || strcmp(r->name, ".ignore") == 0;
    if (!is_wanted(w, r->name))
        return;
    if (l->n == l->room) {
        l->room = l->room ? 2 * l->room : 64;
        l->all = mem_realloc(l->all, l->room * sizeof *l->all);
    }
    l->all[l->n++] = (struct listed){mem_strdup(r->name), r->type};
}

/* All that is wanted of a directory, sorted. By few calls: in a large tree these are most of what it takes.
 */
static struct listing list(struct walk *w, int fd)
{
    struct listing l = {0};
    char *records MEM_AUTO = mem_alloc(RECORDS);
    long n = 0;
    while (!is_over(w) && (n = syscall(SYS_getdents64, fd, records, RECORDS)) > 0)
        for (long at = 0; at < n;) {
            const struct record *r = (const void *)(records + at);
            take_record(w, &l, r);
            at += r->size;
        }
    w->unreadable += n < 0;
    if (l.n > 0)
        qsort(l.all, l.n, sizeof *l.all, by_name);
    return l;
}

static bool is_excluded(const struct walk *w, const char *name, bool directory)
{
    if (w->ignores &&
        (strcmp(name, ".git") == 0 || ignore_says(w->rules, w->n_rules, w->path, name, directory)))
        return true;
    for (size_t i = 0; i < w->n_exclude; i++)
        if (glob_match_file(w->exclude[i], w->path, name))
            return true;
    return false;
}

static void descend(struct walk *w, int fd, unsigned depth);

static void enter(struct walk *w, const struct walk_entry *e)
{
    if (w->max_depth > 0 && e->depth >= w->max_depth)
        return;
    int fd = io_open_dir(e->dir, e->name);
    if (fd < 0 || e->depth >= DEPTH_MAX) {
        w->unreadable += errno != ENOENT;
        io_close(&fd);
        return;
    }
    if (is_made_up(fd) && !is_made_up(e->dir)) {
        close(fd);
        return;
    }
    descend(w, fd, e->depth);
}

/* Takes dir: the directory that w->path names. */
static void descend(struct walk *w, int dir, unsigned depth)
{
    size_t length = w->n_path, rules = w->n_rules;
    struct listing l = list(w, dir);
    if (w->ignores && l.rules)
        ignore_read(&w->rules, &w->n_rules, dir, length);
    for (size_t i = 0; i < l.n; i++) {
        const struct listed *at = &l.all[i];
        size_t n_name = strlen(at->name), slash = length > 0;
        if (!is_over(w) && length + slash + n_name < sizeof w->path) {
            if (slash)
                w->path[length] = '/';
            memcpy(w->path + length + slash, at->name, n_name + 1);
            w->n_path = length + slash + n_name;
            struct walk_entry e = {.dir = dir, .name = at->name, .path = w->path, .depth = depth + 1};
            e.type = type_of(dir, at);
            if (!is_excluded(w, e.name, e.type == WALK_DIRECTORY)) {
                w->seen++;
                w->stopped = !w->entry(w->arg, &e);
                if (!w->stopped && e.type == WALK_DIRECTORY)
                    enter(w, &e);
            }
            w->path[w->n_path = length] = '\0';
        }
        free(at->name);
    }
    free(l.all);
    close(dir);
    ignore_forget(w->rules, &w->n_rules, rules);
}

int walk_run(struct walk *w, const char *start, struct err *err)
{
    int fd = open(start, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, ERR_TOOL, errno, "%s", start);
    w->n_path = 0;
    w->path[0] = '\0';
    w->rules = NULL;
    w->n_rules = 0;
    descend(w, fd, 0);
    free(w->rules);
    return 0;
}
