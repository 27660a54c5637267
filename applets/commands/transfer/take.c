/* Reading a stream into a directory. Nothing outside of it is touched, whatever the stream says and whoever
 * puts links there meanwhile: each directory is opened below the first one without following any. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/transfer/dest.h"
#include "commands/transfer/place.h"
#include "commands/transfer/stream.h"
#include "commands/transfer/transfer.h"
#include "dir_empty.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "no_links.h"
#include "sha256.h"
#include "tools/text_editor/edit_path.h"

/* A directory that gets its mode and times when all in it is there. */
struct pending {
    struct pending *above;
    char *path;
    struct entry facts;
};

struct taking {
    const struct transfer_options *o;
    struct dest dest;
    struct stream_in *in;
    struct entry entry;
    struct buf path;   /* of the entry, below the root */
    struct buf in_dir; /* the path that dir is open at */
    int dir;           /* -1: none */
    mode_t mask;       /* for directories that the stream doesn't tell of */
    struct pending *pending;
    struct {
        long long files, directories, links, others, bytes, deleted;
    } n;
};

/* ---- directories ---- */

static int open_below(const struct taking *t, const char *path, int flags)
{
    return no_links_open(t->dest.root, *path ? path : ".", flags | O_DIRECTORY);
}

/* Opened, and made where it is missing: archives may leave directories out. */
static int enter_dir(struct taking *t, const char *path)
{
    int fd = open_below(t, path, O_PATH);
    if (fd >= 0 || errno != ENOENT || !*path)
        return fd;
    const char *slash = strrchr(path, '/');
    char *above MEM_AUTO = mem_dup(path, slash ? (size_t)(slash - path) : 0);
    int parent FD_AUTO = enter_dir(t, above);
    if (parent < 0 || (mkdirat(parent, slash ? slash + 1 : path, 0777 & ~t->mask) < 0 && errno != EEXIST))
        return -1;
    return io_open_dir(parent, slash ? slash + 1 : path);
}

/* The directory that the entry belongs into, and its name there. -1 with errno. */
static int enter_above(struct taking *t, const char **name)
{
    char *path = t->path.data, *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    *name = slash ? slash + 1 : path;
    if (t->dir >= 0 && t->in_dir.len == n && memcmp(buf_str(&t->in_dir), path, n) == 0)
        return t->dir;
    io_close(&t->dir);
    buf_truncate(&t->in_dir, 0);
    buf_add(&t->in_dir, path, n);
    return t->dir = enter_dir(t, buf_str(&t->in_dir));
}

static int finish_dir(struct taking *t, const struct pending *p)
{
    int fd FD_AUTO = open_below(t, p->path, O_RDONLY | O_NONBLOCK);
    return fd < 0 ? -1 : place_facts(fd, &p->facts, t->o->archive, true);
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return n == 0 || (strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0'));
}

/* Those that the path isn't in; NULL: all of them. */
static void finish_dirs(struct taking *t, const char *path)
{
    while (t->pending && !(path && is_below(path, t->pending->path))) {
        struct pending *p = t->pending;
        if (finish_dir(t, p) < 0)
            transfer_complain(p->path, err_text(errno));
        t->pending = p->above;
        pax_entry_release(&p->facts);
        free(p->path);
        free(p);
    }
}

static void put_off(struct taking *t)
{
    struct pending *p = mem_alloc(sizeof *p);
    *p = (struct pending){.above = t->pending, .path = mem_strdup(buf_str(&t->path)), .facts = t->entry};
    t->pending = p;
    t->entry = (struct entry)ENTRY_INIT;
}

static int take_dir(struct taking *t)
{
    struct stat st;
    const char *name;
    bool made = false;
    if (t->path.len > 0) {
        int dir = enter_above(t, &name);
        made = dir >= 0 && mkdirat(dir, name, (t->entry.mode & 0777) | 0700) == 0;
        if (dir < 0 || (!made && errno != EEXIST))
            return -1;
        if (!made && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -1;
        if (!made && !S_ISDIR(st.st_mode))
            return errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR, -1;
        t->n.directories += made;
    }
    if (made || t->o->archive || t->o->exact)
        put_off(t);
    return 0;
}

/* ---- files ---- */

struct writing {
    struct taking *t;
    int fd; /* -1: it can't be written, and is passed over */
    int failed;
    struct sha256 *sum;
};

static void write_part(struct writing *w, const char *data, size_t n)
{
    if (w->sum)
        sha256_add(w->sum, data, n);
    if (w->failed == 0 && io_write_all(w->fd, data, n) < 0)
        w->failed = errno;
}

/* So many bytes of the stream to where the descriptor is. */
static int copy_part(struct writing *w, long long n, struct err *err)
{
    const char *data;
    while (n > 0) {
        ssize_t got = pax_take(w->t->in, n < STREAM_IN_SIZE ? (size_t)n : STREAM_IN_SIZE, &data, err);
        if (got < 0)
            return -1;
        write_part(w, data, (size_t)got);
        n -= got;
    }
    return 0;
}

static int copy_sparse(struct writing *w, struct err *err)
{
    struct hole_map map = {0};
    long long left = w->t->entry.stored, size = w->t->entry.size;
    int rc = hole_map_take(w->t->in, &map, &left, size, err);
    for (size_t i = 0; rc == 0 && i < map.n; i++) {
        if (w->failed == 0 && lseek(w->fd, (off_t)map.parts[i].offset, SEEK_SET) < 0)
            w->failed = errno;
        rc = copy_part(w, map.parts[i].size, err);
    }
    if (w->failed == 0 && rc == 0 && ftruncate(w->fd, (off_t)size) < 0)
        w->failed = errno;
    hole_map_release(&map);
    return rc;
}

/* What has come is what was read there. */
static bool sum_is_right(struct writing *w)
{
    char hex[SHA256_HEX_SIZE];
    if (!w->sum)
        return true;
    sha256_end(w->sum, hex);
    return strcmp(hex, buf_str(&w->t->entry.sum)) == 0;
}

/* Takes all that is the file's out of the stream, whatever becomes of it: -1 with ERR_TOOL only where that
 * fails. 0: *failed is an errno, or 0. */
static int take_file(struct taking *t, int *failed, struct err *err)
{
    const char *name;
    struct placing p = {.fd = -1, .beside = BESIDE_INIT};
    int dir = enter_above(t, &name);
    mode_t mode = t->o->archive ? 0600 : t->entry.mode & 0777;
    struct writing w = {.t = t, .failed = dir < 0 || placing_open(&p, dir, name, mode) < 0 ? errno : 0};
    w.fd = p.fd;
    w.sum = t->entry.sum.len > 0 && !t->entry.sparse ? sha256_begin() : NULL;
    int rc = t->entry.sparse ? copy_sparse(&w, err) : copy_part(&w, t->entry.stored, err);
    rc = rc < 0 ? -1 : pax_skip(t->in, (long long)pax_padding(t->entry.stored), err);
    if (!sum_is_right(&w) && w.failed == 0)
        w.failed = EBADMSG;
    if (rc == 0 && w.failed == 0 &&
        (place_facts(p.fd, &t->entry, t->o->archive, t->o->archive || p.in_place) < 0 ||
         placing_done(&p) < 0))
        w.failed = errno;
    placing_release(&p);
    *failed = w.failed;
    if (rc == 0 && w.failed == 0) {
        t->n.files++;
        t->n.bytes += t->entry.size;
    }
    return rc;
}

/* ---- the others ---- */

static int take_twin(struct taking *t, int dir, const char *name)
{
    struct buf target BUF_AUTO = BUF_INIT;
    struct err err;
    if (dest_path(&t->dest, &t->entry.target, &target, &err) < 0 || target.len == 0)
        return errno = EPERM, -1;
    char *slash = strrchr(target.data, '/');
    char *above MEM_AUTO = mem_dup(target.data, slash ? (size_t)(slash - target.data) : 0);
    int at FD_AUTO = open_below(t, above, O_PATH);
    return at < 0 ? -1
                  : place_special(&t->entry, t->o->archive, dir, name, at, slash ? slash + 1 : target.data);
}

/* Without what is in a directory, which the stream names before it; but where it says so (mode 1). */
static int take_removal(struct taking *t, int dir, const char *name)
{
    if (!t->o->deletes)
        return errno = EPERM, -1;
    if (t->entry.mode == 1)
        dir_empty(io_open_dir(dir, name), 0);
    if (unlinkat(dir, name, 0) < 0 && (errno != EISDIR || unlinkat(dir, name, AT_REMOVEDIR) < 0))
        return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST ? 0 : -1;
    t->n.deleted++;
    return 0;
}

static int take_other(struct taking *t)
{
    const char *name;
    int dir = enter_above(t, &name);
    if (dir < 0 || t->path.len == 0)
        return -1;
    if (t->entry.type == ENTRY_REMOVE)
        return take_removal(t, dir, name);
    int rc = t->entry.type == ENTRY_TWIN ? take_twin(t, dir, name)
                                         : place_special(&t->entry, t->o->archive, dir, name, -1, NULL);
    t->n.links += rc == 0 && t->entry.type == ENTRY_LINK;
    t->n.others += rc == 0 && t->entry.type != ENTRY_LINK;
    return rc;
}

/* ---- all of it ---- */

static void report(struct taking *t)
{
    struct buf out BUF_AUTO = BUF_INIT;
    buf_addc(&out, '{');
    json_member_int(&out, "files", t->n.files);
    json_member_int(&out, "directories", t->n.directories);
    json_member_int(&out, "links", t->n.links);
    json_member_int(&out, "others", t->n.others);
    json_member_int(&out, "bytes", t->n.bytes);
    json_member_int(&out, "deleted", t->n.deleted);
    json_member_int(&out, "failed", transfer_complaints);
    buf_adds(&out, "}\n");
    memset(&t->n, 0, sizeof t->n);
    io_write_all(STDOUT_FILENO, out.data, out.len);
}

static const char *why(int failed)
{
    return failed == EBADMSG ? "changed while it was read: its sum is another one; what was there stays"
           : failed == ELOOP ? "a link is in the way, and links are not followed"
                             : err_text(failed);
}

static bool is_known(char type)
{
    return type != '\0' && strchr("01256R", type);
}

/* One entry. -1 with ERR_TOOL: the stream is at its end. */
static int take_entry(struct taking *t, struct err *err)
{
    struct err refused;
    int failed = 0, rc = 0;
    char type = t->entry.type;
    if (type == ENTRY_FINISH) {
        finish_dirs(t, NULL);
        report(t);
        return 0;
    }
    bool goes = dest_path(&t->dest, &t->entry.path, &t->path, &refused) == 0;
    if (goes && t->dest.wants_directory && t->path.len > 0 && type != ENTRY_DIRECTORY &&
        !strchr(t->path.data, '/'))
        goes = err_set(&refused, ERR_TOOL, "%s/: Not a directory", t->path.data) == 0;
    if (!goes || !is_known(type)) {
        if (goes)
            transfer_complain(buf_str(&t->path), "is of a kind that is not copied");
        else
            transfer_complain(NULL, refused.msg);
        return pax_skip(t->in, t->entry.stored + (long long)pax_padding(t->entry.stored), err);
    }
    finish_dirs(t, buf_str(&t->path));
    if (type == ENTRY_FILE && t->path.len > 0)
        rc = take_file(t, &failed, err);
    else if ((type == ENTRY_DIRECTORY ? take_dir(t) : take_other(t)) < 0)
        failed = errno;
    if (failed)
        transfer_complain(buf_str(&t->path), why(failed));
    return rc;
}

int transfer_take(const struct transfer_options *o, const char *to, char *const *names)
{
    struct taking t = {.o = o, .entry = ENTRY_INIT, .path = BUF_INIT, .in_dir = BUF_INIT, .dir = -1};
    struct err err;
    int rc;
    if (dest_open(&t.dest, to, names, true, &err) < 0)
        return applet_failed("transfer", "%s", err.msg);
    t.mask = umask(0);
    t.in = pax_in_new(STDIN_FILENO);
    while ((rc = pax_next(t.in, &t.entry, &err)) > 0 && (rc = take_entry(&t, &err)) == 0)
        continue;
    finish_dirs(&t, NULL);
    if (rc < 0)
        transfer_complain(NULL, err.msg);
    else
        pax_drain(t.in);
    report(&t);
    io_close(&t.dir);
    pax_in_free(t.in);
    pax_entry_release(&t.entry);
    buf_release(&t.path);
    buf_release(&t.in_dir);
    dest_close(&t.dest);
    return transfer_complaints > 0 ? EXIT_FAILED : EXIT_OK;
}
