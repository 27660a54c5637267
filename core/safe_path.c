#include "safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"

#define LINKS_MAX 40 /* as the kernel */
#define OTHERS_WRITE 022

struct walk {
    int root, at; /* descriptors; where the walk is */
    int flags, links;
    bool file;   /* the last part may be a file */
    uid_t other; /* who is trusted like root; 0: nobody */
    const char *path;
    size_t made;
    struct buf here; /* path of `at`, without links; "" is the root */
    struct err *err;
};

/* ---- whom to trust ---- */

/* The number that stands for users whom this namespace doesn't know; false where one whom it knows has it. */
static bool overflow_uid(uid_t *uid)
{
    struct buf text BUF_AUTO = {.max = 1u << 16};
    *uid = 65534;
    if (io_read_file(AT_FDCWD, "/proc/sys/kernel/overflowuid", &text) == 0 && text.len > 0)
        *uid = (uid_t)strtoul(text.data, NULL, 10);
    buf_truncate(&text, 0);
    if (io_read_file(AT_FDCWD, "/proc/self/uid_map", &text) < 0 || text.len == 0)
        return false;
    for (char *at = text.data, *end; *at; at = end + strspn(end, "\n")) {
        unsigned long long first = strtoull(at, &end, 10);
        strtoull(end, &end, 10);
        unsigned long long n = strtoull(end, &end, 10);
        if (end == at || (*uid >= first && *uid - first < n))
            return false;
    }
    return true;
}

static bool is_trusted(const struct walk *w, uid_t owner)
{
    struct stat top;
    uid_t overflow;
    if (owner == 0 || owner == geteuid() || owner == w->other)
        return true;
    return stat("/", &top) == 0 && top.st_uid == owner && overflow_uid(&overflow) && overflow == owner;
}

/* ---- one part ---- */

/* With the part that is wrong, where it isn't the whole. -1 with EPERM. */
static int unsafe(struct walk *w, const char *part, const char *why)
{
    const char *slash = part ? "/" : "", *here = buf_str(&w->here);
    char *shown MEM_AUTO = mem_printf("%s%s%s", *here || part ? here : "/", slash, part ? part : "");
    if (strcmp(shown, w->path) == 0)
        err_set(w->err, ERR_TOOL, "%s: %s", w->path, why);
    else
        err_set(w->err, ERR_TOOL, "%s: %s %s", w->path, shown, why);
    errno = EPERM;
    return -1;
}

static int failed(struct walk *w, int errnum)
{
    err_set(w->err, ERR_TOOL, "%s: %s", w->path, err_text(errnum));
    errno = errnum;
    return -1;
}

static int check(struct walk *w, const char *part, const struct stat *st)
{
    char why[64];
    if (!is_trusted(w, st->st_uid)) {
        snprintf(why, sizeof why, "belongs to another user (uid %u)", (unsigned)st->st_uid);
        return unsafe(w, part, why);
    }
    bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX);
    if (!S_ISLNK(st->st_mode) && (st->st_mode & OTHERS_WRITE) && !sticky) {
        snprintf(why, sizeof why, "can be written to by others (mode %04o)", (unsigned)st->st_mode & 07777);
        return unsafe(w, part, why);
    }
    return 0;
}

/* Goes to a directory, which is checked before. Takes fd. */
static int go(struct walk *w, int fd, const char *part)
{
    struct stat st;
    int result = fd < 0 || fstat(fd, &st) < 0 ? failed(w, errno) : check(w, part, &st);
    if (result < 0) {
        io_close(&fd);
        return -1;
    }
    io_close(&w->at);
    w->at = fd;
    if (part)
        buf_addf(&w->here, "/%s", part);
    return 0;
}

static int go_to_root(struct walk *w)
{
    buf_truncate(&w->here, 0);
    return go(w,
              w->root < 0 ? openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC)
                          : openat(w->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC),
              NULL);
}

static int go_up(struct walk *w)
{
    char *slash = w->here.len > 0 ? strrchr(w->here.data, '/') : NULL;
    if (!slash)
        return 0; /* the root's own parent */
    buf_truncate(&w->here, (size_t)(slash - w->here.data));
    return go(w, openat(w->at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC), NULL);
}

/* Usable from the first moment, whatever the umask: others may be looking for it. */
static int make(struct walk *w, const char *part, bool last)
{
    mode_t mask = last ? umask(0) : 0;
    int result = mkdirat(w->at, part, last ? 0700 : 0755);
    int saved = errno;
    if (last)
        umask(mask);
    if (result < 0 && saved == EEXIST)
        return 0;
    return result < 0 ? failed(w, saved) : 1;
}

/* No link is followed. */
static int open_part(const struct walk *w, const char *part, int flags)
{
    return openat(w->at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags);
}

/* A setgid parent adds to the mode of what is made below it. */
static int go_down(struct walk *w, const char *part, bool fresh)
{
    if (go(w, open_part(w, part, w->file ? 0 : O_DIRECTORY), part) < 0)
        return -1;
    int self FD_AUTO = fresh ? openat(w->at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (self >= 0)
        fchmod(self, 0700);
    return 0;
}

static int walk(struct walk *w, const char *path, bool outer);

static int follow(struct walk *w, const char *part, const struct stat *st)
{
    char target[PATH_MAX];
    if (check(w, part, st) < 0)
        return -1;
    ssize_t n = readlinkat(w->at, part, target, sizeof target);
    if (n < 0 || n == (ssize_t)sizeof target || ++w->links > LINKS_MAX)
        return failed(w, n < 0 ? errno : ELOOP);
    target[n] = '\0';
    return walk(w, target, false);
}

/* `end`: of the part in the path that was given, 0 inside a link, where nothing is made. */
static int step(struct walk *w, const char *part, bool last, size_t end)
{
    struct stat st;
    int made = 0;
    if (!*part || strcmp(part, ".") == 0)
        return 0;
    if (strcmp(part, "..") == 0)
        return go_up(w);
    int fd = open_part(w, part, O_DIRECTORY);
    if (fd >= 0)
        return go(w, fd, part); /* nearly always */
    int there = fstatat(w->at, part, &st, AT_SYMLINK_NOFOLLOW);
    if (there == 0 && S_ISLNK(st.st_mode))
        return last && end > 0 && (w->flags & SAFE_NO_LINK) ? unsafe(w, part, "is a symlink")
                                                            : follow(w, part, &st);
    if (there < 0 && errno == ENOENT && end > 0 && (w->flags & SAFE_MAKE)) {
        made = make(w, part, last);
        if (made < 0)
            return -1;
        if (made > 0 && w->made == 0)
            w->made = end;
    }
    return go_down(w, part, made > 0 && last);
}

/* outer: the path that was given, not the target of a link in it. */
static int walk(struct walk *w, const char *path, bool outer)
{
    if (*path == '/' && go_to_root(w) < 0)
        return -1;
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        const char *next = at + n + strspn(at + n, "/");
        char *part MEM_AUTO = mem_dup(at, n);
        if (step(w, part, !*next, outer ? (size_t)(at + n - path) : 0) < 0)
            return -1;
        at = next;
    }
    return 0;
}

/* ---- the whole ---- */

/* Descriptor of the directory (O_PATH), or -1. */
static int walk_to(struct walk *w)
{
    struct stat st;
    int result = -1;
    w->at = -1;
    w->here = (struct buf)BUF_INIT;
    if (strlen(w->path) >= PATH_MAX) {
        failed(w, ENAMETOOLONG);
    } else if (*w->path == '/') {
        result = walk(w, w->path, true);
    } else {
        err_set(w->err, ERR_TOOL, "%s: a path that begins with / is wanted", w->path);
        errno = EINVAL;
    }
    if (result == 0 && (w->flags & SAFE_ALONE) && fstat(w->at, &st) == 0 && (st.st_mode & OTHERS_WRITE))
        result = unsafe(w, NULL, "can be written to by others: a directory below it would do");
    if (result < 0)
        io_close(&w->at);
    int saved = errno;
    buf_release(&w->here);
    errno = saved;
    return w->at;
}

static int open_at_end(struct walk *w)
{
    int at FD_AUTO = walk_to(w);
    int fd = at < 0 ? -1 : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at >= 0 && fd < 0)
        failed(w, errno);
    return fd;
}

int safe_path_open(int root, const char *path, int flags, size_t *made, struct err *err)
{
    struct walk w = {.root = root, .flags = flags, .path = path, .err = err};
    int fd = open_at_end(&w);
    if (made)
        *made = w.made;
    return fd;
}

int safe_path_open_of(const char *path, struct err *err)
{
    struct stat st;
    struct walk w = {.root = -1, .path = path, .err = err};
    if (stat(path, &st) < 0)
        return failed(&w, errno);
    w.other = st.st_uid;
    return open_at_end(&w);
}

int safe_path_above(int root, const char *path, const char **name, struct err *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    char *above MEM_AUTO = n > 0 ? mem_dup(path, n) : mem_strdup(slash ? "/" : path);
    struct walk w = {.root = root, .path = above, .err = err};
    *name = slash ? slash + 1 : path;
    return walk_to(&w);
}

int safe_path_file(const char *path, struct err *err)
{
    struct stat st;
    struct walk w = {.root = -1, .file = true, .path = path, .err = err};
    int fd FD_AUTO = walk_to(&w);
    if (fd < 0)
        return -1;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : failed(&w, EINVAL);
}

char *safe_path_find(const char *path, const char *name)
{
    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        char *file = mem_printf("%.*s/%s", (int)n, path, name);
        if (n > 0 && *file == '/' && access(file, X_OK) == 0 && safe_path_file(file, NULL) == 0)
            return file;
        free(file);
    }
    return NULL;
}

int safe_path_rmdir(const char *path)
{
    const char *name;
    int above FD_AUTO = safe_path_above(-1, path, &name, NULL);
    return above < 0 ? -1 : unlinkat(above, name, AT_REMOVEDIR);
}
