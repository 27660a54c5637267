/* Writing: a whole content takes the old one's place at once, with its owner, mode and attributes; a part is
 * written where it belongs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base64.h"
#include "file_path.h"
#include "file_request.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "sha256.h"
#include "tools/text_editor/edit_encoding.h"
#include "tools/text_editor/edit_beside.h"
#include "tools/text_editor/edit_file.h"
#include "tools/text_editor/edit_path.h"
#include "utf8.h"

#define TRIES 100
#define LOCK_MS 2000

/* What is to be written, and what is there. */
struct writing {
    const struct file_request *request;
    struct edit_path path;
    struct buf data;
    int old; /* open for reading; -1: nothing is there */
    uid_t uid;
    gid_t gid; /* that it is to have; -1: as it is */
};

static void release(struct writing *w)
{
    edit_path_release(&w->path);
    buf_release(&w->data);
    io_close(&w->old);
}
#define WRITING_AUTO __attribute__((cleanup(release)))

static bool take_data(struct buf *out, const struct file_bytes *b)
{
    if (b->encoding.s && strcmp(b->encoding.s, "base64") == 0)
        return base64_get(out, b->data.s, b->data.n);
    return encoding_put(&b->encoding, b->data.s, b->data.n, out, "", NULL) == 0;
}

/* What is there, locked, so that writers come one after the other (the editor is one); one that was replaced
 * while its lock was waited for is left for the one in its place. */
static void open_old(struct writing *w)
{
    struct stat now;
    for (int i = 0; i < TRIES; i++) {
        io_close(&w->old);
        w->old = openat(w->path.dir, w->path.name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (w->old < 0 || !edit_lock(w->old, LOCK_MS) || fstat(w->old, &now) < 0 ||
            fstatat(w->path.dir, w->path.name, &w->path.st, AT_SYMLINK_NOFOLLOW) < 0)
            return;
        if (now.st_ino == w->path.st.st_ino && now.st_dev == w->path.st.st_dev)
            return;
    }
}

/* Everything that can be refused before anything is written. */
static int look(struct writing *w, struct buf *answer, struct err *err)
{
    const struct file_how *how = &w->request->how;
    const char *shown = w->path.real, *wanted = w->request->bytes.if_sha256.s;
    char sum[SHA256_HEX_SIZE] = "";
    if (w->path.exists && how->exclusive)
        return file_fail(answer, err, EEXIST, shown);
    if (w->path.exists && S_ISDIR(w->path.st.st_mode))
        return file_fail(answer, err, EISDIR, shown);
    if (w->path.exists && !S_ISREG(w->path.st.st_mode))
        return file_refuse(answer, err, "not_regular", shown, "is no regular file");
    if (w->path.exists &&
        faccessat(w->path.dir, w->path.name, W_OK, 0) < 0) /* what may not be written isn't replaced */
        return file_fail(answer, err, errno, shown);
    if (w->path.exists)
        open_old(w);
    if (!wanted)
        return 0;
    if (w->old < 0 || sha256_file(w->old, sum) < 0)
        return file_fail(answer, err, w->path.exists ? errno : ENOENT, shown);
    return strcmp(sum, wanted) == 0 ? 0
                                    : file_refuse(answer, err, "changed", shown, "has another sha256 by now");
}

static int give_away(const struct writing *w, int fd)
{
    return w->uid == (uid_t)-1 && w->gid == (gid_t)-1 ? 0 : fchown(fd, w->uid, w->gid);
}

/* Beside the file, and then in its place. 0; 1 where that would lose something or isn't allowed; -1 with
 * errno. */
static int write_whole(struct writing *w)
{
    const struct file_how *how = &w->request->how;
    struct stat st = w->path.st;
    struct beside b BESIDE_AUTO = BESIDE_INIT;
    if (w->path.exists && (w->old < 0 || st.st_nlink > 1))
        return 1;
    int rc = beside_open(&b, w->path.dir, w->path.name, w->path.exists ? 0600 : 0666);
    if (rc == 0 && w->path.exists)
        rc = beside_take_after(&b, w->old, &st);
    if (rc != 0)
        return rc;
    if (how->mode >= 0)
        st.st_mode = (mode_t)how->mode;
    if (io_write_all(b.fd, buf_str(&w->data), w->data.len) < 0 || give_away(w, b.fd) < 0 ||
        beside_finish(&b, w->path.exists || how->mode >= 0 ? &st : NULL) < 0)
        return -1;
    if (how->exclusive)
        return beside_link(&b, w->path.dir, w->path.name);
    if (w->request->bytes.if_sha256.s) { /* nothing that somebody else writes meanwhile is lost */
        rc = beside_exchange(&b, w->path.dir, w->path.name, &w->path.st);
        if (rc > 0)
            errno = EAGAIN;
        if (rc >= 0 || (errno != ENOSYS && errno != EINVAL))
            return rc == 0 ? 0 : -1;
    }
    return beside_rename(&b, w->path.dir, w->path.name);
}

/* Into the file as it is there. -1 with errno. */
static int write_in_place(const struct writing *w, bool whole)
{
    const struct file_bytes *b = &w->request->bytes;
    const struct file_how *how = &w->request->how;
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (whole ? O_TRUNC : 0) |
                (b->append ? O_APPEND : 0) | (how->exclusive ? O_EXCL : 0);
    int fd FD_AUTO = openat(w->path.dir, w->path.name, flags, how->mode >= 0 ? (mode_t)how->mode : 0666);
    if (fd < 0 || (b->offset >= 0 && lseek(fd, (off_t)b->offset, SEEK_SET) < 0))
        return -1;
    if (io_write_all(fd, buf_str(&w->data), w->data.len) < 0 || give_away(w, fd) < 0 ||
        (how->mode >= 0 && fchmod(fd, (mode_t)how->mode) < 0))
        return -1;
    int closed = close(fd); /* network file systems say only now that there was no room */
    /* FD_AUTO reads it. NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores) */
    fd = -1;
    return closed;
}

static int write_it(struct writing *w, bool *atomic)
{
    bool whole = w->request->bytes.offset < 0 && !w->request->bytes.append;
    int rc = whole ? write_whole(w) : 1;
    /* Somebody who makes the same file has taken what was prepared for left behind. */
    for (int i = 0; i < TRIES && rc < 0 && whole && (errno == ESTALE || errno == ENOENT); i++)
        rc = write_whole(w);
    /* What the kernel makes up has no room beside it. */
    if (rc < 0 && errno == ENOENT && w->path.exists && io_is_there(w->path.dir, w->path.name))
        rc = 1;
    *atomic = rc == 0;
    return rc > 0 ? write_in_place(w, whole) : rc;
}

static int resolve(struct writing *w, struct buf *answer, struct err *err)
{
    char *path MEM_AUTO = file_path(&w->request->path);
    struct stat st;
    if (w->request->how.parents && file_make_parents(path) < 0)
        return file_fail(answer, err, errno, path);
    if (edit_path_resolve(&w->path, path, strlen(path), true, err) == 0)
        return 0;
    bool ends = *path && path[strlen(path) - 1] == '/';
    return file_fail(answer, err, stat(path, &st) < 0 && !(ends && errno == ENOENT) ? errno : EISDIR, path);
}

int file_write(const void *request, struct buf *answer, struct err *err)
{
    struct writing w WRITING_AUTO = {.request = request, .path = EDIT_PATH_INIT, .data = BUF_INIT, .old = -1};
    bool atomic;
    if (!take_data(&w.data, &w.request->bytes))
        return file_refuse(answer, err, "not_text", w.request->path.s, "the data is not in its encoding");
    if (file_owner(&w.request->how, &w.uid, &w.gid, answer, err) < 0 || resolve(&w, answer, err) < 0 ||
        look(&w, answer, err) < 0)
        return -1;
    int rc = write_it(&w, &atomic);
    if (rc < 0 && errno == EAGAIN)
        return file_refuse(answer, err, "changed", w.path.real, "was changed meanwhile");
    if (rc < 0 || fstatat(w.path.dir, w.path.name, &w.path.st, 0) < 0)
        return file_fail(answer, err, errno, w.path.real);
    buf_addc(answer, '{');
    json_member_int(answer, "written", (long long)w.data.len);
    json_member_bool(answer, "created", !w.path.exists);
    json_member_bool(answer, "atomic", atomic);
    file_put_stat(answer, w.path.dir, w.path.name, &w.path.st);
    return buf_addc(answer, '}');
}
