/* Reading files: text, images, bytes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base64.h"
#include "io.h"
#include "mem.h"
#include "mcp_tools.h"
#include "tools/text_editor/edit_path.h"
#include "utf8.h"

#define IMAGE_MAX (8u << 20) /* bytes: larger ones no model takes */
#define HEAD_SIZE 16

const char *mcp_image_type(const char *data, size_t n)
{
    if (n >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    if (n >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
        return "image/jpeg";
    if (n >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0))
        return "image/gif";
    if (n >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

/* Opens a regular file. */
static int open_file(const char *path, struct stat *st, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, st) < 0) {
        err_set(err, ERR_TOOL, "%s: %s", path, edit_errno(errno));
        io_close(&fd);
        return -1;
    }
    if (S_ISREG(st->st_mode))
        return fd;
    close(fd);
    return err_set(err, ERR_TOOL, "%s is %s, not a file%s", path, edit_type(st->st_mode),
                   S_ISDIR(st->st_mode) ? "; list_files shows what is in it" : "");
}

/* Up to n bytes from where the descriptor stands; what /proc makes up comes in pieces. */
static int read_some(int fd, size_t n, struct buf *out)
{
    buf_reserve(out, n);
    for (ssize_t got = 1; n > 0 && got != 0;) {
        got = read(fd, out->data + out->len, n);
        if (got < 0 && errno != EINTR)
            return -1;
        if (got > 0) {
            out->len += (size_t)got;
            n -= (size_t)got;
        }
    }
    out->data[out->len] = '\0';
    return 0;
}

static int read_failed(const char *path, struct err *err)
{
    return err_set(err, ERR_TOOL, "%s can't be read: %s", path, edit_errno(errno));
}

/* ---- images ---- */

static int take_image(struct work *w, int fd, const char *path, const struct stat *st, struct err *err)
{
    struct buf data BUF_AUTO = BUF_INIT;
    if (read_some(fd, HEAD_SIZE, &data) < 0)
        return read_failed(path, err);
    w->image_type = mcp_image_type(buf_str(&data), data.len);
    if (!w->image_type)
        return 0;
    if (st->st_size > IMAGE_MAX)
        return err_set(err, ERR_TOOL,
                       "%s is an image of %lld bytes; those above %u MiB are not given as images (make it "
                       "smaller, or read_file it with encoding base64 in pieces)",
                       path, (long long)st->st_size, IMAGE_MAX >> 20);
    if (read_some(fd, IMAGE_MAX, &data) < 0)
        return read_failed(path, err);
    base64_put(&w->image, data.data, data.len);
    return 1;
}

int mcp_take_image(struct work *w, const char *path, struct err *err)
{
    struct stat st;
    int fd FD_AUTO = open_file(path, &st, NULL);
    return fd < 0 ? 0 : take_image(w, fd, path, &st, err);
}

/* ---- read_file ---- */

/* Whether it is text as a whole, or but for a character that the end of the piece has cut (*n without it). */
static bool is_text(const struct buf *data, bool at_end, size_t *n)
{
    *n = utf8_valid_prefix(buf_str(data), data->len);
    bool cut = *n < data->len && !at_end && utf8_char(data->data + *n, data->len - *n) < 0;
    return (*n == data->len || cut) && !memchr(buf_str(data), '\0', data->len);
}

static int give(struct work *w, int fd, const struct stat *st, struct err *err)
{
    const struct args *a = &w->args;
    struct buf data BUF_AUTO = BUF_INIT;
    char beyond;
    if (a->offset > 0 && lseek(fd, a->offset, SEEK_SET) < 0)
        return err_set(err, ERR_TOOL, "%s can't be read from byte %lld on", a->path.s, a->offset);
    if (read_some(fd, (size_t)a->max_bytes, &data) < 0)
        return read_failed(a->path.s, err);
    bool at_end = read(fd, &beyond, 1) == 0;
    size_t n = data.len;
    bool base64 = a->encoding.s && strcmp(a->encoding.s, "base64") == 0;
    if (!base64 && !is_text(&data, at_end, &n))
        return err_set(err, ERR_TOOL,
                       "%s is no UTF-8 text (%lld bytes); read it with encoding base64, or look at it with a "
                       "program",
                       a->path.s, (long long)st->st_size);
    if (base64)
        base64_put(&w->text, buf_str(&data), data.len);
    else
        buf_add(&w->text, buf_str(&data), n);
    if (!at_end) {
        char *note MEM_AUTO =
            mem_printf("[These are bytes %lld to %lld of %lld; offset %lld goes on]", a->offset,
                       a->offset + (long long)n - 1, (long long)st->st_size, a->offset + (long long)n);
        buf_addc(&w->structured, '{');
        json_member_string(&w->structured, "note", note);
        buf_addc(&w->structured, '}');
    }
    return 0;
}

int mcp_read_file(struct work *w, struct err *err)
{
    struct stat st;
    int fd FD_AUTO = open_file(w->args.path.s, &st, err);
    if (fd < 0)
        return -1;
    int image = w->args.encoding.s ? 0 : take_image(w, fd, w->args.path.s, &st, err);
    if (image < 0)
        return -1;
    if (image > 0)
        return 0;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot read %s", w->args.path.s);
    return give(w, fd, &st, err);
}
