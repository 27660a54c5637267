#include "tools/file/watch_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dir_read.h"
#include "glob.h"
#include "io.h"
#include "mem.h"
#include "no_links.h"
#include "tools/file/watch_node.h"

#define EVENTS                                                                                               \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB |          \
     IN_ONLYDIR | IN_EXCL_UNLINK)
#define DEPTH_MAX 200 /* a descriptor each */

/* Where to look. */
struct mark {
    int number;
    bool written; /* it was, whether that shows or not */
    char *name;
};

struct watch_tree {
    struct watch_tree_wants wants;
    int fd, start, home; /* `home`: the process's own directory */
    char *only;          /* of what is in there; NULL: all */
    struct watch_node *root;
    struct {
        struct watch_node **list;
        size_t n;
    } numbers; /* of their watches */
    struct {
        struct mark *list;
        size_t n, room;
    } marks;
    struct buf path; /* of what is looked at */
    unsigned depth;
    int why;           /* something could not be read or watched */
    bool quiet, whole; /* nothing is told; all is looked at */
    struct watch_seen so_far;
};

/* ---- its watches ---- */

static void unwatch(struct watch_tree *t, struct watch_node *n)
{
    if (n->number >= 0 && t->numbers.list[n->number] == n) { /* else it is at another place by now */
        t->numbers.list[n->number] = NULL;
        inotify_rm_watch(t->fd, n->number);
    }
    n->number = -1;
}

static void free_node(struct watch_tree *t, struct watch_node *n)
{
    unwatch(t, n);
    while (n->n > 0)
        free_node(t, n->below[--n->n]);
    free(n->below);
    free(n);
}

/* ---- what is told ---- */

/* Makes the path one of something in there; to be cut off again to what it was. */
static size_t enter_name(struct watch_tree *t, const char *name)
{
    size_t n = t->path.len;
    if (n > 0)
        buf_addc(&t->path, '/');
    buf_adds(&t->path, name);
    return n;
}

static void tell(struct watch_tree *t, const char *how, bool directory)
{
    if (!t->quiet)
        t->wants.tell(t->wants.arg, buf_str(&t->path), how, directory);
}

/* The path is that of the node. */
static void tell_gone(struct watch_tree *t, const struct watch_node *n)
{
    tell(t, "deleted", n->directory);
    for (unsigned i = 0; i < n->n; i++) {
        size_t at = enter_name(t, n->below[i]->name);
        tell_gone(t, n->below[i]);
        buf_truncate(&t->path, at);
    }
}

static void remove_node(struct watch_tree *t, struct watch_node *n)
{
    struct watch_node *dir = n->above;
    unsigned at = watch_node_place(dir, n->name);
    tell_gone(t, n);
    free_node(t, n);
    dir->n--;
    memmove(dir->below + at, dir->below + at + 1, (dir->n - at) * sizeof *dir->below);
}

/* ---- comparing ---- */

/* What differs where something has changed; of a directory not what changes with what is in it. */
static uint64_t print_of(const struct stat *st)
{
    bool file = !S_ISDIR(st->st_mode);
    const uint64_t facts[] = {st->st_ino,
                              st->st_mode,
                              st->st_uid,
                              st->st_gid,
                              file ? (uint64_t)st->st_size : 0,
                              file ? (uint64_t)st->st_mtim.tv_sec : 0,
                              file ? (uint64_t)st->st_mtim.tv_nsec : 0,
                              file ? (uint64_t)st->st_ctim.tv_sec : 0,
                              file ? (uint64_t)st->st_ctim.tv_nsec : 0};
    uint64_t print = 14695981039346656037u;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        print = (print ^ facts[i]) * 1099511628211u, print ^= print >> 29;
    return print;
}

/* With the errno that there is. */
static void lack(struct watch_tree *t)
{
    t->so_far.incomplete = true;
    t->why = errno;
}

static void watch_dir(struct watch_tree *t, struct watch_node *n, int fd)
{
    int number = fchdir(fd) == 0 ? inotify_add_watch(t->fd, ".", EVENTS) : -1;
    if (number < 0) {
        lack(t);
        return;
    }
    if ((size_t)number >= t->numbers.n) {
        size_t count = 2 * (size_t)number + 64;
        t->numbers.list = mem_realloc(t->numbers.list, count * sizeof *t->numbers.list);
        memset(t->numbers.list + t->numbers.n, 0, (count - t->numbers.n) * sizeof *t->numbers.list);
        t->numbers.n = count;
    }
    t->numbers.list[number] = n;
    n->number = number;
}

static void compare(struct watch_tree *t, struct watch_node *dir, int fd, const char *name, bool written);

static void compare_all(struct watch_tree *t, struct watch_node *n, DIR *open)
{
    const char *name;
    for (unsigned i = 0; i < n->n; i++)
        n->below[i]->seen = false;
    errno = 0;
    while ((name = dir_next(open)) != NULL) {
        compare(t, n, dirfd(open), name, false);
        struct watch_node *known = watch_node_find(n, name);
        if (known)
            known->seen = true;
    }
    for (unsigned i = n->n; i-- > 0;)
        if (!n->below[i]->seen) {
            size_t at = enter_name(t, n->below[i]->name);
            remove_node(t, n->below[i]);
            buf_truncate(&t->path, at);
        }
}

/* All that is in a directory, whose path is the tree's: watched before it is read, so that nothing is missed.
 */
static void look_into(struct watch_tree *t, struct watch_node *n, int at, const char *name)
{
    int fd = t->depth < DEPTH_MAX ? io_open_dir(at, name) : -1;
    if (fd < 0) {
        lack(t);
        return;
    }
    if (n->number < 0)
        watch_dir(t, n, fd);
    DIR *open DIR_AUTO = dir_read(fd);
    t->depth++;
    if (open)
        compare_all(t, n, open);
    else
        lack(t);
    t->depth--;
}

static bool is_left_out(const struct watch_tree *t, const char *name)
{
    if (t->only && strcmp(name, t->only) != 0)
        return true;
    for (size_t i = 0; i < t->wants.n_exclude; i++)
        if (glob_match_file(t->wants.exclude[i], buf_str(&t->path), name))
            return true;
    return false;
}

/* The path is that of what has the name. */
static void compare_here(struct watch_tree *t, struct watch_node *dir, int fd, const char *name, bool written)
{
    struct stat st;
    bool there = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    struct watch_node *n = watch_node_find(dir, name);
    bool new = false;
    if (n && (!there || n->directory != S_ISDIR(st.st_mode) || (n->directory && n->inode != st.st_ino))) {
        remove_node(t, n);
        n = NULL;
    }
    if (!there)
        return;
    uint64_t print = print_of(&st);
    if (!n) {
        n = watch_node_insert(dir, name);
        n->directory = S_ISDIR(st.st_mode);
        n->inode = st.st_ino;
        new = true;
    }
    if (new || print != n->print || (written && !n->directory))
        tell(t, new ? "created" : "changed", n->directory);
    n->print = print;
    /* One that has lost its watch, or was seen at another place meanwhile, may be another directory. */
    if (n->number >= 0 && t->numbers.list[n->number] != n)
        n->number = -1;
    if (n->directory && t->wants.deep && (new || t->whole || n->number < 0))
        look_into(t, n, fd, name);
}

static void compare(struct watch_tree *t, struct watch_node *dir, int fd, const char *name, bool written)
{
    size_t at = enter_name(t, name);
    if (!is_left_out(t, name))
        compare_here(t, dir, fd, name, written);
    buf_truncate(&t->path, at);
}

/* ---- with whose rights ---- */

static void put_on(const struct watch_tree *t, gid_t **own, int *n_own)
{
    const struct user *u = t->wants.user;
    *own = NULL;
    if (!u)
        return;
    *n_own = getgroups(0, NULL);
    *own = mem_zalloc((size_t)(*n_own + 1) * sizeof **own);
    if ((*n_own = getgroups(*n_own, *own)) < 0 || setgroups(u->n_groups, u->groups) < 0 ||
        setresgid((gid_t)-1, u->gid, (gid_t)-1) < 0 || setresuid((uid_t)-1, u->uid, (uid_t)-1) < 0)
        _exit(1); /* rather than with too many */
}

static void take_off(const struct watch_tree *t, gid_t *own, int n_own)
{
    if (t->wants.user && (setresuid((uid_t)-1, getuid(), (uid_t)-1) < 0 ||
                          setresgid((gid_t)-1, getgid(), (gid_t)-1) < 0 || setgroups((size_t)n_own, own) < 0))
        _exit(1);
    free(own);
    if (fchdir(t->home) < 0)
        _exit(1);
}

/* ---- the whole ---- */

static void put_path(const struct watch_node *n, struct buf *out)
{
    if (!n->above)
        return;
    put_path(n->above, out);
    if (out->len > 0)
        buf_addc(out, '/');
    buf_adds(out, n->name);
}

static int by_place(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : strcmp(x->name, y->name);
}

/* Those of one directory. */
static void look_at_marks(struct watch_tree *t, const struct mark *first, const struct mark *end)
{
    struct watch_node *n = (size_t)first->number < t->numbers.n ? t->numbers.list[first->number] : NULL;
    if (!n)
        return;
    buf_truncate(&t->path, 0);
    put_path(n, &t->path);
    int fd FD_AUTO = no_links_open(t->start, t->path.len > 0 ? buf_str(&t->path) : ".", O_PATH | O_DIRECTORY);
    if (fd < 0)
        return; /* so that is the next thing that is told from above */
    while (first < end) {
        const struct mark *m = first;
        bool written = false;
        for (; first < end && strcmp(first->name, m->name) == 0; first++)
            written = written || first->written;
        if (t->numbers.list[m->number] == n)
            compare(t, n, fd, m->name, written);
    }
}

static void forget_marks(struct watch_tree *t)
{
    while (t->marks.n > 0)
        free(t->marks.list[--t->marks.n].name);
}

static void look_at_all(struct watch_tree *t)
{
    t->whole = true;
    buf_truncate(&t->path, 0);
    look_into(t, t->root, t->start, ".");
    t->whole = false;
}

struct watch_seen watch_tree_look(struct watch_tree *t)
{
    gid_t *own;
    int n_own = 0;
    struct stat st;
    put_on(t, &own, &n_own);
    if (t->marks.n > 0)
        qsort(t->marks.list, t->marks.n, sizeof *t->marks.list, by_place);
    for (size_t i = 0, end; i < t->marks.n && !t->so_far.lost; i = end) {
        for (end = i + 1; end < t->marks.n && t->marks.list[end].number == t->marks.list[i].number;)
            end++;
        look_at_marks(t, t->marks.list + i, t->marks.list + end);
    }
    if (t->so_far.lost)
        look_at_all(t);
    forget_marks(t);
    t->so_far.gone = fstat(t->start, &st) == 0 && st.st_nlink == 0;
    if (t->so_far.gone)
        while (t->root->n > 0) {
            buf_truncate(&t->path, 0);
            enter_name(t, t->root->below[0]->name);
            remove_node(t, t->root->below[0]);
        }
    struct watch_seen seen = t->so_far;
    t->so_far = (struct watch_seen){.incomplete = seen.incomplete};
    take_off(t, own, n_own);
    return seen;
}

static void note(struct watch_tree *t, const struct inotify_event *e)
{
    struct watch_node *n = e->wd >= 0 && (size_t)e->wd < t->numbers.n ? t->numbers.list[e->wd] : NULL;
    if (e->mask & IN_Q_OVERFLOW)
        t->so_far.lost = true;
    if (n && e->mask & IN_IGNORED) {
        t->numbers.list[e->wd] = NULL;
        n->number = -1;
    }
    if (!n || e->len == 0 || t->so_far.lost)
        return;
    if (t->marks.n == t->marks.room)
        t->marks.list =
            mem_realloc(t->marks.list, (t->marks.room = 2 * t->marks.room + 64) * sizeof *t->marks.list);
    t->marks.list[t->marks.n++] = (struct mark){e->wd, (e->mask & IN_MODIFY) != 0, mem_strdup(e->name)};
}

bool watch_tree_read(struct watch_tree *t)
{
    _Alignas(struct inotify_event) char data[16384];
    ssize_t n;
    bool any = false;
    while ((n = read(t->fd, data, sizeof data)) > 0)
        for (ssize_t at = 0; at < n; any = true) {
            const struct inotify_event *e = (const struct inotify_event *)(const void *)(data + at);
            note(t, e);
            at += (ssize_t)(sizeof *e + e->len);
        }
    return any;
}

int watch_tree_fd(const struct watch_tree *t)
{
    return t->fd;
}

/* A directory, or that in which a file is. -1 with errno. */
static int open_start(struct watch_tree *t, const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *real MEM_AUTO = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    if (!slash)
        return -1;
    t->only = mem_strdup(slash + 1);
    t->wants.deep = false;
    slash[slash == real] = '\0';
    return open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int begin(struct watch_tree *t, const char *path)
{
    if (t->wants.from >= 0 && fchdir(t->wants.from) < 0)
        return -1;
    t->start = open_start(t, path);
    if (t->start < 0)
        return -1;
    int above FD_AUTO = openat(t->start, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (above >= 0 && !t->only && fchdir(above) == 0)
        inotify_add_watch(t->fd, ".", IN_DELETE | IN_ONLYDIR); /* of itself it isn't told that it is gone */
    t->quiet = true;
    look_at_all(t);
    t->quiet = false;
    errno = t->why;
    return t->root->number >= 0 ? 0 : -1;
}

struct watch_tree *watch_tree_new(const char *path, const struct watch_tree_wants *wants, struct err *err)
{
    struct watch_tree *t = mem_zalloc(sizeof *t);
    gid_t *own;
    int n_own = 0, rc, why;
    t->wants = *wants;
    buf_init(&t->path, BUF_NO_MAX);
    t->root = watch_node_new(NULL, "");
    t->root->directory = true;
    t->home = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    t->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (t->fd < 0 || t->home < 0) {
        why = errno;
        err_sys(err, ERR_TOOL, why, "nothing can be watched here");
        errno = why;
        return NULL;
    }
    put_on(t, &own, &n_own);
    rc = begin(t, path);
    why = errno;
    take_off(t, own, n_own);
    if (rc == 0)
        return t;
    if (why == ENOSPC)
        err_set(err, ERR_TOOL, "no more can be watched: fs.inotify.max_user_watches is reached");
    else
        err_sys(err, ERR_TOOL, why, "%s", path);
    errno = why == ENOSPC ? 0 : why; /* it is no room on a disk */
    return NULL;
}
