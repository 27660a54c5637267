/* Sending trees: the stream on stdout. */
#include "commands/transfer/send.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/transfer/dest.h"
#include "io.h"
#include "mem.h"
#include "no_links.h"

#define NAME "transfer"

static void begin(struct sending *s, char type, const char *path, const struct stat *st)
{
    pax_entry_reset(&s->entry);
    s->entry.type = type;
    s->entry.mode = st->st_mode & 07777;
    s->entry.uid = st->st_uid;
    s->entry.gid = st->st_gid;
    s->entry.mtime = st->st_mtim;
    buf_adds(&s->entry.path, path);
}

static void send_removal(struct sending *s, const char *path, bool whole)
{
    const struct stat none = {.st_mode = whole};
    begin(s, ENTRY_REMOVE, path, &none);
    pax_put(&s->out, &s->entry);
}

static void send_finish(struct sending *s)
{
    const struct stat none = {0};
    begin(s, ENTRY_FINISH, "", &none);
    pax_put(&s->out, &s->entry);
    send_flush(s, 1);
}

/* ---- what is there already ---- */

/* Those from `end` back to `first`: what is in a directory before it. */
static void remove_listed(struct sending *s, const struct listed *first, const struct listed *end)
{
    while (end-- > first) {
        if (!end->seen && strcmp(end->path, ".") != 0)
            send_removal(s, end->path, false);
        s->there.all[end - s->there.all].seen = true;
    }
}

static bool same_facts(const struct sending *s, const struct listed *r, const struct stat *st)
{
    if (s->o->exact && ((r->mode ^ st->st_mode) & (s->o->archive ? 07777 : 0777)) && !S_ISLNK(st->st_mode))
        return false;
    return !s->o->archive || (r->uid == st->st_uid && r->gid == st->st_gid);
}

/* A file system that keeps whole seconds alone has zeros behind them. */
static bool same_time(const struct listed *r, const struct stat *st)
{
    return r->seconds == (long long)st->st_mtim.tv_sec &&
           (r->nanoseconds == st->st_mtim.tv_nsec || r->nanoseconds == 0);
}

static bool same_content(const struct sending *s, const struct listed *r, int dir, const char *name,
                         const struct stat *st)
{
    char target[PATH_MAX];
    if (!S_ISREG(st->st_mode) && s->o->exact && !same_time(r, st))
        return false;
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
        return n >= 0 && strlen(r->more) == (size_t)n && memcmp(target, r->more, (size_t)n) == 0;
    }
    if (!S_ISREG(st->st_mode))
        return true;
    if (r->size != (long long)st->st_size || !s->o->sums)
        return r->size == (long long)st->st_size && same_time(r, st);
    return send_has_sum(dir, name, r->more);
}

/* Whether it needs not be sent. */
static bool is_there(struct sending *s, int dir, const char *name, const char *path, const struct stat *st)
{
    struct listed *r = s->o->differing ? list_find(&s->there, path) : NULL;
    if (!r)
        return false;
    r->seen = true;
    if ((r->mode & S_IFMT) == (st->st_mode & S_IFMT))
        return !S_ISDIR(st->st_mode) && same_facts(s, r, st) && same_content(s, r, dir, name, st);
    r->seen = false;
    if (s->o->deletes && (S_ISDIR(r->mode) || S_ISDIR(st->st_mode)))
        remove_listed(s, r, list_behind(&s->there, r));
    r->seen = true;
    return false;
}

/* ---- entries ---- */

static void send_dir(struct sending *s, int dir, const char *name)
{
    int fd FD_AUTO = s->o->archive ? io_open_dir(dir, name) : -1;
    if (fd >= 0)
        send_take_xattrs(s, fd);
    pax_put(&s->out, &s->entry);
}

static void send_link(struct sending *s, int dir, const char *name, const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < 0) {
        transfer_complain(path, err_text(errno));
        return;
    }
    buf_add(&s->entry.target, target, (size_t)n);
    pax_put(&s->out, &s->entry);
}

static void send_entry(struct scan *scan, int dir, const char *name, const char *path, const struct stat *st)
{
    struct sending *s = (struct sending *)scan;
    const char *twin = NULL;
    if (is_there(s, dir, name, path, st)) {
        s->same++;
        if (S_ISREG(st->st_mode) && st->st_nlink > 1)
            twins_of(s->twins, st, path);
        return;
    }
    if (S_ISREG(st->st_mode) && st->st_nlink > 1 && s->o->recursive)
        twin = twins_of(s->twins, st, path);
    begin(s, twin ? ENTRY_TWIN : ENTRY_FILE, path, st);
    if (twin) {
        buf_adds(&s->entry.target, twin);
        pax_put(&s->out, &s->entry);
    } else if (S_ISREG(st->st_mode)) {
        send_file(s, dir, name, path);
    } else if (S_ISDIR(st->st_mode)) {
        s->entry.type = ENTRY_DIRECTORY;
        send_dir(s, dir, name);
    } else if (S_ISLNK(st->st_mode)) {
        s->entry.type = ENTRY_LINK;
        send_link(s, dir, name, path);
    } else if (S_ISFIFO(st->st_mode)) {
        s->entry.type = ENTRY_FIFO;
        pax_put(&s->out, &s->entry);
    } else {
        transfer_note(path,
                      S_ISSOCK(st->st_mode) ? "is a socket, and left out" : "is a device, and left out");
    }
    send_flush(s, SEND_FLUSH);
}

/* What is there below a directory that can't be read stays. */
static void unreadable(struct scan *scan, const char *path, int errnum)
{
    struct sending *s = (struct sending *)scan;
    const struct listed *r = list_find(&s->there, path);
    transfer_complain(path, err_text(errnum));
    if (strcmp(path, ".") == 0)
        for (size_t i = 0; i < s->there.n; i++)
            s->there.all[i].seen = true;
    else if (r)
        for (const struct listed *end = list_behind(&s->there, r); r < end; r++)
            s->there.all[r - s->there.all].seen = true;
}

/* What is there and not here goes while the directory waits for its time. */
static void leave(struct scan *scan, const char *path)
{
    struct sending *s = (struct sending *)scan;
    bool all = strcmp(path, ".") == 0;
    const struct listed *first = all ? s->there.all : list_find(&s->there, path);
    if (first)
        remove_listed(s, first, all ? first + s->there.n : list_behind(&s->there, first));
}

static void enter(struct scan *scan, int fd, const char *path)
{
    struct sending *s = (struct sending *)scan;
    if (watch_add(s->watch, fd, path) < 0 && errno == ENOSPC) {
        applet_failed(NAME, "no more directories can be watched: fs.inotify.max_user_watches");
        exit(EXIT_FAILED);
    }
}

/* ---- sources ---- */

/* A source's directory and its name there, which is "." for what is in it. */
static int open_source(const struct sending *s, const char *path, char **name, struct stat *st)
{
    char *last MEM_AUTO = transfer_name(path);
    size_t n = strlen(path);
    bool inside = strcmp(last, ".") == 0 || (n > 0 && path[n - 1] == '/');
    char *real MEM_AUTO = inside || s->o->recursive ? mem_strdup(path) : realpath(path, NULL);
    if (!real)
        return -1;
    char *slash = strrchr(real, '/');
    char *above MEM_AUTO = inside || !slash ? NULL : mem_dup(real, (size_t)(slash - real) + 1);
    *name = mem_strdup(inside ? "." : slash ? slash + 1 : real);
    int fd = open(inside ? real : above ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstatat(fd, *name, st, AT_SYMLINK_NOFOLLOW) < 0)
        io_close(&fd);
    return fd;
}

static void send_source(struct sending *s, const char *path)
{
    char *called MEM_AUTO = transfer_name(path);
    char *name MEM_AUTO = NULL;
    struct stat st;
    int dir FD_AUTO = open_source(s, path, &name, &st);
    if (dir < 0)
        transfer_complain(path, err_text(errno));
    else if (S_ISDIR(st.st_mode) && !s->o->recursive)
        transfer_complain(path, "Is a directory: -r copies it with all that is in it");
    else
        scan_entry(&s->scan, dir, name, called, &st);
}

static void count(struct scan *scan, int dir, const char *name, const char *path, const struct stat *st)
{
    struct sending *s = (struct sending *)scan;
    (void)dir, (void)name, (void)path;
    s->total += S_ISREG(st->st_mode) ? (long long)st->st_size : 0;
}

static void pass_over(struct scan *scan, const char *path, int errnum)
{
    (void)scan, (void)path, (void)errnum;
}

static void say_total(struct sending *s, char *const *paths)
{
    struct sending counting = *s;
    struct stat st;
    counting.scan = (struct scan){.excludes = s->scan.excludes, .entry = count, .unreadable = pass_over};
    for (; *paths; paths++) {
        char *name MEM_AUTO = NULL;
        char *called MEM_AUTO = transfer_name(*paths);
        int dir FD_AUTO = open_source(s, *paths, &name, &st);
        if (dir >= 0)
            scan_entry(&counting.scan, dir, name, called, &st);
    }
    dprintf(STDERR_FILENO, TRANSFER_TOTAL "%lld\n", counting.total);
}

/* ---- what changes ---- */

/* For what comes behind the first time. */
struct following {
    struct sending *s;
    int root;
};

static void changed(void *arg, const char *path, bool whole)
{
    struct following *f = arg;
    struct sending *s = f->s;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *above MEM_AUTO = slash ? mem_dup(path, (size_t)(slash - path)) : mem_strdup(".");
    struct stat st;
    if (scan_excludes(&s->scan, path))
        return;
    int dir FD_AUTO = no_links_open(f->root, above, O_PATH | O_DIRECTORY);
    if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno == ENOENT && s->o->deletes)
            send_removal(s, path, !*s->scan.excludes);
    } else if (S_ISDIR(st.st_mode) && !whole) {
        send_entry(&s->scan, dir, name, path, &st);
    } else {
        scan_entry(&s->scan, dir, name, path, &st);
    }
}

static int follow(struct sending *s, const char *path)
{
    const struct transfer_options *given = s->o;
    struct transfer_options o = *given;
    struct following f = {s, open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    int rc;
    o.differing = false;
    s->o = &o;
    s->scan.leave = NULL;
    do {
        send_finish(s);
        twins_free(s->twins);
        s->twins = twins_new();
    } while ((rc = watch_wait(s->watch, STDOUT_FILENO, changed, &f)) == 0);
    io_close(&f.root);
    s->o = given;
    return rc > 0 ? TRANSFER_AGAIN : EXIT_OK;
}

int transfer_send(const struct transfer_options *o, char *const *excludes, char *const *paths)
{
    struct sending s = {.scan = {.excludes = excludes, .entry = send_entry, .unreadable = unreadable},
                        .o = o,
                        .out = BUF_INIT,
                        .entry = ENTRY_INIT,
                        .twins = twins_new()};
    struct err err;
    if (o->differing && list_take(&s.there, STDIN_FILENO, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    scan_many_descriptors();
    if (o->watches && (s.watch = watch_new()) == NULL)
        return applet_failed(NAME, "inotify: %s", err_text(errno));
    if (s.watch)
        s.scan.enter = enter;
    if (o->deletes && o->differing)
        s.scan.leave = leave;
    if (o->total)
        say_total(&s, paths);
    for (char *const *path = paths; *path; path++)
        send_source(&s, *path);
    if (o->differing)
        dprintf(STDERR_FILENO, TRANSFER_SAME "%lld\n", s.same);
    int status = o->watches ? follow(&s, *paths) : EXIT_OK;
    if (s.watch)
        watch_free(s.watch);
    pax_put_end(&s.out);
    send_flush(&s, 1);
    list_release(&s.there);
    twins_free(s.twins);
    pax_entry_release(&s.entry);
    buf_release(&s.out);
    return status != EXIT_OK ? status : transfer_complaints > 0 ? EXIT_FAILED : EXIT_OK;
}
