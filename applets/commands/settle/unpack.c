/* Taking a folder from a stream, beside the program. It is unpacked under another name first, and has its own
 * only when the sum of all that came is the one that was announced. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "commands/settle/settle.h"
#include "sha256.h"

#define LINE_MAX_ 128
#define HEAD "folder "
#define SUM_NAME ".sum" /* in the folder: what it was unpacked from */

struct unpacking {
    int fd;
    struct sha256 *sum;
    int dir; /* where to */
    struct err *err;
};

struct entry {
    char kind;
    unsigned long long mode, name_len, size;
    char name[PATH_MAX];
};

/* ---- the stream ---- */

static int take(struct unpacking *u, void *into, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t more = read(u->fd, (char *)into + got, n - got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return err_set(u->err, ERR_TOOL, "the folder came only in part");
        got += (size_t)more;
    }
    if (u->sum)
        sha256_add(u->sum, into, n);
    return 0;
}

static int take_line(struct unpacking *u, char line[LINE_MAX_])
{
    for (size_t n = 0; n < LINE_MAX_; n++) {
        if (take(u, line + n, 1) < 0)
            return -1;
        if (line[n] == '\n') {
            line[n] = '\0';
            return 0;
        }
    }
    return err_set(u->err, ERR_TOOL, "what came is no folder");
}

/* A relative path that stays below where it starts. */
static bool is_sound(const char *name, size_t n)
{
    if (n == 0 || strlen(name) != n || name[0] == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && memcmp(part, "..", 2) == 0))
            return false;
    }
    return true;
}

static int take_entry(struct unpacking *u, struct entry *e)
{
    char line[LINE_MAX_], *at = line + 1;
    if (take_line(u, line) < 0)
        return -1;
    e->kind = line[0];
    e->mode = strtoull(at, &at, 10) & 0755; /* a program in it is not others' to write to */
    e->name_len = strtoull(at, &at, 10);
    e->size = strtoull(at, &at, 10);
    if (!strchr("dfle", e->kind) || *at || e->name_len >= sizeof e->name)
        return err_set(u->err, ERR_TOOL, "what came is no folder");
    if (e->kind == 'e')
        return 0;
    e->name[e->name_len] = '\0';
    if (take(u, e->name, e->name_len) < 0)
        return -1;
    return is_sound(e->name, e->name_len) ? 0
                                          : err_set(u->err, ERR_TOOL, "a name in the folder leads out of it");
}

/* ---- into files ---- */

static int fail_at(struct unpacking *u, const char *path)
{
    return err_sys(u->err, ERR_TOOL, errno, "cannot write %s", path);
}

/* The directory that an entry goes into, through no link, and its name there. -1 with errno. */
static int open_parent(const struct unpacking *u, char *name, const char **last)
{
    int at = openat(u->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';
        int next = io_open_dir(at, name);
        *slash = '/';
        io_close(&at);
        at = next;
    }
    *last = name;
    return at;
}

static int put_file(struct unpacking *u, const struct entry *e, int dir, const char *name)
{
    char piece[1 << 16];
    int fd FD_AUTO =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)e->mode | 0600);
    if (fd < 0)
        return fail_at(u, e->name);
    for (unsigned long long left = e->size; left > 0;) {
        size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        if (take(u, piece, n) < 0)
            return -1;
        if (io_write_all(fd, piece, n) < 0)
            return fail_at(u, e->name);
        left -= n;
    }
    return fchmod(fd, (mode_t)e->mode | 0600) == 0 ? 0 : fail_at(u, e->name);
}

static int put_link(struct unpacking *u, const struct entry *e, int dir, const char *name)
{
    char target[PATH_MAX];
    if (e->size >= sizeof target)
        return err_set(u->err, ERR_TOOL, "what came is no folder");
    target[e->size] = '\0';
    if (take(u, target, (size_t)e->size) < 0)
        return -1;
    return symlinkat(target, dir, name) == 0 ? 0 : fail_at(u, e->name);
}

static int put_entry(struct unpacking *u, struct entry *e)
{
    const char *name;
    int dir FD_AUTO = open_parent(u, e->name, &name);
    if (dir < 0)
        return fail_at(u, e->name);
    if (e->kind == 'f')
        return put_file(u, e, dir, name);
    if (e->kind == 'l')
        return put_link(u, e, dir, name);
    return mkdirat(dir, name, (mode_t)e->mode | 0700) == 0 ? 0 : fail_at(u, e->name);
}

static int put_sum(struct unpacking *u, const char *wanted)
{
    int fd FD_AUTO = openat(u->dir, SUM_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && io_write_all(fd, wanted, SHA256_HEX_SIZE - 1) == 0 ? 0 : fail_at(u, SUM_NAME);
}

static int put_all(struct unpacking *u, const char *wanted)
{
    char found[SHA256_HEX_SIZE];
    struct entry e = {0};
    int result = 0;
    u->sum = sha256_begin();
    while (result == 0 && e.kind != 'e') {
        result = take_entry(u, &e);
        if (result == 0 && e.kind != 'e')
            result = put_entry(u, &e);
    }
    sha256_end(u->sum, found);
    u->sum = NULL;
    if (result < 0)
        return -1;
    if (strcmp(found, wanted) != 0)
        return err_set(u->err, ERR_TOOL, "the folder did not come as it was sent");
    return put_sum(u, wanted);
}

/* ---- the whole ---- */

static bool is_there(int folder, const char *wanted)
{
    struct buf sum BUF_AUTO = {.max = 1000};
    return folder >= 0 && io_read_file(folder, SUM_NAME, &sum) == 0 && strcmp(buf_str(&sum), wanted) == 0;
}

/* Gives it its name; what has had it goes. */
static const char *take_place(int dir, const char *fresh, const char *place, struct err *err)
{
    char *old MEM_AUTO = mem_printf("%s.old", place);
    bool was = renameat(dir, place, dir, old) == 0;
    if (renameat(dir, fresh, dir, place) < 0) {
        err_sys(err, ERR_TOOL, errno, "cannot write %s", place);
        if (was && renameat(dir, old, dir, place) < 0)
            settle_remove_tree(dir, old);
        return NULL;
    }
    settle_remove_tree(dir, old);
    return was ? "replaced" : "placed";
}

static int open_folder(int dir, const char *name)
{
    return io_open_dir(dir, name);
}

const char *settle_unpack(int fd, int dir, const char *program, struct err *err)
{
    char line[LINE_MAX_];
    char *path MEM_AUTO = settle_with_path(program);
    const char *place = strrchr(path, '/') + 1;
    char *fresh MEM_AUTO = mem_printf("%s.%ld", place, (long)getpid());
    struct unpacking u = {.fd = fd, .dir = -1, .err = err};
    if (take_line(&u, line) < 0)
        return NULL;
    const char *wanted = line + strlen(HEAD);
    if (strncmp(line, HEAD, strlen(HEAD)) != 0 || strlen(wanted) != SHA256_HEX_SIZE - 1) {
        err_set(err, ERR_TOOL, "what came is no folder");
        return NULL;
    }
    int before FD_AUTO = open_folder(dir, place);
    if (is_there(before, wanted))
        return "identical";
    umask(022);
    int into FD_AUTO = mkdirat(dir, fresh, 0755) < 0 ? -1 : open_folder(dir, fresh);
    u.dir = into;
    if (into < 0) {
        fail_at(&u, fresh);
        return NULL;
    }
    const char *state = put_all(&u, wanted) == 0 ? take_place(dir, fresh, place, err) : NULL;
    if (!state)
        settle_remove_tree(dir, fresh);
    return state;
}
