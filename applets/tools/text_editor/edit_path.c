#include "edit_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "no_links.h"
#include "utf8.h"

enum { SHOWN_MAX = 400, LINKS_MAX = 40 };

static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
    return n > 0 && s[0] != '"' && utf8_is_valid(s, n);
}

static void put_escaped(struct buf *out, const char *s, size_t n)
{
    static const char names[] = "abtnvfr"; /* 7 to 13 */
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        int len = utf8_char(s + i, n - i);
        if (c >= 7 && c <= 13)
            buf_addf(out, "\\%c", names[c - 7]);
        else if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || len <= 0)
            buf_addf(out, "\\%03o", c);
        else
            buf_add(out, s + i, (size_t)len);
        i += len > 0 ? (size_t)len : 1;
    }
}

static void cut_middle(struct buf *b, size_t max)
{
    size_t head = max / 2, tail = b->len - max / 2;
    while (head > 0 && ((unsigned char)b->data[head] & 0xC0) == 0x80)
        head--;
    while (tail < b->len && ((unsigned char)b->data[tail] & 0xC0) == 0x80)
        tail++;
    char *end MEM_AUTO = mem_dup(b->data + tail, b->len - tail);
    buf_truncate(b, head);
    buf_addf(b, "…%s", end);
}

char *edit_path_shown(const char *path, size_t n, size_t max)
{
    struct buf out = BUF_INIT;
    if (is_plain(path, n)) {
        buf_add(&out, path, n);
    } else {
        buf_addc(&out, '"');
        put_escaped(&out, path, n);
        buf_addc(&out, '"');
    }
    if (max > 0 && out.len > max)
        cut_middle(&out, max);
    return buf_take(&out, NULL);
}

char *edit_path_unquoted(const char *path, size_t n)
{
    static const char names[] = "abtnvfr";
    if (n < 2 || path[0] != '"' || path[n - 1] != '"')
        return NULL;
    struct buf out = BUF_INIT;
    for (size_t i = 1; i + 1 < n; i++) {
        const char *name;
        if (path[i] != '\\') {
            buf_addc(&out, path[i]);
        } else if (i + 4 < n && path[i + 1] >= '0' && path[i + 1] <= '3') {
            buf_addc(&out, (char)strtoul((char[]){path[i + 1], path[i + 2], path[i + 3], '\0'}, NULL, 8));
            i += 3;
        } else {
            i++;
            name = strchr(names, path[i]);
            buf_addc(&out, name && path[i] ? (char)(name - names + 7) : path[i]);
        }
    }
    if (!memchr(buf_str(&out), '\0', out.len))
        return buf_take(&out, NULL);
    buf_release(&out); /* it would be cut, and name another file */
    return NULL;
}

const char *edit_errno(int errnum)
{
    return errnum == ELOOP ? "too many levels of symbolic links" : err_text(errnum);
}

const char *edit_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    case S_IFCHR:
        return "a character device";
    case S_IFBLK:
        return "a block device";
    default:
        return "a file";
    }
}

static int refuse(const struct edit_path *p, int errnum, struct err *err)
{
    return err_set(err, ERR_TOOL, "The path %s can't be used: %s", p->shown, edit_errno(errnum));
}

/* Says what is missing on the way, and where a way begins that doesn't say so itself. */
static int refuse_missing(const struct edit_path *p, const char *path, const char *advice, struct err *err)
{
    struct buf why BUF_AUTO = BUF_INIT;
    struct stat st;
    char *at MEM_AUTO = mem_strdup(path);
    char *missing MEM_AUTO = NULL;
    for (char *slash; (slash = strrchr(at, '/')) != NULL && slash != at;) {
        *slash = '\0';
        if (stat(at, &st) == 0 || errno != ENOENT)
            break;
        free(missing);
        missing = edit_path_shown(at, strlen(at), SHOWN_MAX);
    }
    if (missing)
        buf_addf(&why, " (there is no directory %s)", missing);
    if (path[0] != '/') {
        char *cwd MEM_AUTO = realpath(".", NULL);
        char *shown MEM_AUTO = edit_path_shown(cwd ? cwd : "", cwd ? strlen(cwd) : 0, SHOWN_MAX);
        if (cwd)
            buf_addf(&why, "; it is taken from %s, as it does not begin with /", shown);
    }
    return err_set(err, ERR_TOOL, "The path %s does not exist%s; %s", p->shown, buf_str(&why), advice);
}

static void take_real(struct edit_path *p, char *real)
{
    if (real[0] == '/' && real[1] == '/')
        memmove(real, real + 1, strlen(real)); /* two slashes may mean something else elsewhere, and stay */
    p->real = real;
    free(p->shown);
    p->shown = edit_path_shown(real, strlen(real), SHOWN_MAX);
    const char *slash = strrchr(real, '/');
    p->name = slash && slash[1] ? slash + 1 : ".";
}

/* Where a missing file will be: its directory resolved, symlinks in its place followed. */
static int resolve_missing(struct edit_path *p, const char *path, struct err *err)
{
    char *at MEM_AUTO = mem_strdup(path);
    for (int links = 0; links < LINKS_MAX; links++) {
        char *slash = strrchr(at, '/');
        const char *name = slash ? slash + 1 : at;
        if (*name == '\0')
            return err_set(err, ERR_TOOL, "The path %s ends with a slash: it names a directory, not a file",
                           p->shown);
        char *parent MEM_AUTO = slash ? mem_dup(at, (size_t)(slash - at) + 1) : mem_strdup(".");
        char *real MEM_AUTO = realpath(parent, NULL);
        if (!real) {
            if (errno == ENOENT)
                return refuse_missing(p, at, "make its directory first", err);
            return refuse(p, errno, err);
        }
        char *full = mem_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
        char target[PATH_MAX];
        ssize_t n = readlink(full, target, sizeof target - 1);
        if (n < 0) {
            take_real(p, full);
            return errno == ENOENT ? 0 : refuse(p, errno, err);
        }
        target[n] = '\0';
        free(full);
        free(at);
        at = target[0] == '/' ? mem_strdup(target) : mem_printf("%s/%s", real, target);
    }
    return refuse(p, ELOOP, err);
}

static int open_dir(struct edit_path *p, struct err *err)
{
    size_t n = (size_t)(p->name - p->real);
    bool root = strcmp(p->name, ".") == 0;
    char *dir MEM_AUTO = root || n <= 1 ? mem_strdup("/") : mem_dup(p->real, n - 1);
    p->dir = no_links_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY);
    return p->dir < 0 ? refuse(p, errno, err) : 0;
}

int edit_path_resolve(struct edit_path *p, const char *path, size_t n, bool may_be_missing, struct err *err)
{
    *p = (struct edit_path)EDIT_PATH_INIT;
    p->shown = edit_path_shown(path, n, SHOWN_MAX);
    if (n == 0)
        return err_set(err, ERR_TOOL, "The path is empty; give the path of a file or directory");
    if (memchr(path, '\0', n))
        return err_set(err, ERR_TOOL, "The path %s holds a NUL character, which no path can", p->shown);
    char *plain MEM_AUTO = mem_dup(path, n);
    char *real = realpath(plain, NULL);
    if (!real && errno == ENOENT) {
        /* A name that JSON can't say, as a listing shows it. */
        char *quoted MEM_AUTO = edit_path_unquoted(path, n);
        real = quoted ? realpath(quoted, NULL) : NULL;
        errno = real ? 0 : ENOENT;
    }
    if (real)
        take_real(p, real);
    else if (errno != ENOENT)
        return refuse(p, errno, err);
    else if (!may_be_missing)
        return refuse_missing(p, plain, "give the path of a file that is there, or make it with `create`",
                              err);
    else if (resolve_missing(p, plain, err) < 0)
        return -1;
    if (open_dir(p, err) < 0)
        return -1;
    p->exists = fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!p->exists && (errno != ENOENT || !may_be_missing))
        return refuse(p, errno, err);
    /* realpath doesn't look at a slash at the end. */
    if (p->exists && path[n - 1] == '/' && !S_ISDIR(p->st.st_mode))
        return refuse(p, ENOTDIR, err);
    return 0;
}

int edit_make_parents(const char *path, size_t *made, struct err *err)
{
    char *dir MEM_AUTO = mem_strdup(path);
    *made = 0;
    for (char *slash = *dir ? strchr(dir + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = mkdir(dir, 0777);
        if (rc < 0 && errno != EEXIST && access(dir, F_OK) < 0) {
            char *shown MEM_AUTO = edit_path_shown(dir, strlen(dir), SHOWN_MAX);
            err_sys(err, ERR_TOOL, errno, "The directory %s can't be made", shown);
            edit_unmake_parents(path, *made);
            *made = 0;
            return -1;
        }
        if (rc == 0 && *made == 0)
            *made = (size_t)(slash - dir);
        *slash = '/';
    }
    return 0;
}

void edit_unmake_parents(const char *path, size_t made)
{
    char *dir MEM_AUTO = mem_strdup(path);
    for (char *slash; made > 0 && (slash = strrchr(dir, '/')) != NULL && (size_t)(slash - dir) >= made;) {
        *slash = '\0';
        rmdir(dir);
    }
}

void edit_path_release(struct edit_path *p)
{
    free(p->real);
    free(p->shown);
    io_close(&p->dir);
    *p = (struct edit_path)EDIT_PATH_INIT;
}
