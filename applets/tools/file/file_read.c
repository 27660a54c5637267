/* Reading, and what can be known without. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base64.h"
#include "file_path.h"
#include "file_request.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "sha256.h"
#include "tools/text_editor/edit_encoding.h"
#include "utf8.h"

/* Opens a regular file: reading from anything else may never end. */
static int open_file(const char *path, struct stat *st, struct buf *answer, struct err *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) < 0)
        return file_fail(answer, err, errno, path);
    if (S_ISREG(st->st_mode))
        return fd;
    io_close(&fd);
    if (S_ISDIR(st->st_mode))
        return file_fail(answer, err, EISDIR, path);
    return file_refuse(answer, err, "not_regular", path, "is no regular file");
}

/* As much as was asked for, or all. -1 with errno. */
static int read_part(int fd, const struct file_bytes *b, struct buf *out)
{
    long long at = b->offset < 0 ? 0 : b->offset;
    while ((long long)out->len < b->length) {
        char part[65536];
        size_t want = (size_t)(b->length - (long long)out->len);
        ssize_t n =
            pread(fd, part, want < sizeof part ? want : sizeof part, (off_t)(at + (long long)out->len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        buf_add(out, part, (size_t)n);
    }
    return 0;
}

/* In another encoding than UTF-8; of UTF-16 what the length has cut stays out. */
static bool put_coded(struct buf *out, const struct text *encoding, struct buf *data, bool cut)
{
    struct coded c CODED_AUTO = {0};
    if (coded_take(&c, data, encoding, "", NULL) < 0) {
        coded_release(&c);
        buf_truncate(data, data->len - (data->len > 0));
        if (!cut || coded_take(&c, data, encoding, "", NULL) < 0)
            return false;
    }
    size_t n = c.text->len;
    const unsigned char *end = (const unsigned char *)buf_str(c.text) + n;
    if (cut && n >= 3 && end[-3] == 0xED && end[-2] >= 0xA0) { /* half of a pair */
        n -= 3;
        buf_truncate(data, data->len - 2);
    }
    json_put_string(out, buf_str(c.text), n);
    return true;
}

/* The data in the encoding that was asked for; false where it isn't text. Of UTF-8 that the length has cut in
 * a character what is whole is kept. */
static bool put_data(struct buf *out, const struct text *encoding, struct buf *data, bool cut)
{
    json_key(out, "data");
    if (encoding->s && strcmp(encoding->s, "base64") == 0) {
        buf_addc(out, '"');
        base64_put(out, buf_str(data), data->len);
        buf_addc(out, '"');
    } else if (encoding->s && strcasecmp(encoding->s, "utf-8") != 0) {
        return put_coded(out, encoding, data, cut);
    } else {
        size_t whole = utf8_valid_prefix(buf_str(data), data->len);
        if (whole < data->len && !(cut && data->len - whole < 4))
            return false;
        buf_truncate(data, whole);
        json_put_string(out, buf_str(data), data->len);
    }
    return true;
}

static int put_sum(struct buf *out, int fd)
{
    char sum[SHA256_HEX_SIZE];
    if (lseek(fd, 0, SEEK_SET) < 0 || sha256_file(fd, sum) < 0)
        return -1;
    json_member_string(out, "sha256", sum);
    return 0;
}

int file_read(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    struct buf data BUF_AUTO = BUF_INIT;
    struct stat st = {0};
    int fd FD_AUTO = open_file(path, &st, answer, err);
    if (fd < 0)
        return -1;
    if (read_part(fd, &r->bytes, &data) < 0)
        return file_fail(answer, err, errno, path);
    bool cut = (long long)data.len == r->bytes.length;
    buf_addc(answer, '{');
    if (!put_data(answer, &r->bytes.encoding, &data, cut))
        return file_refuse(answer, err, "not_text", path,
                           "is no such text; take another encoding: base64, utf-16, cp1252, latin-1");
    long long offset = r->bytes.offset < 0 ? 0 : r->bytes.offset;
    json_member_int(answer, "offset", offset);
    json_member_int(answer, "length", (long long)data.len);
    json_member_bool(answer, "end", !cut || offset + (long long)data.len >= (long long)st.st_size);
    file_put_stat(answer, fd, "", &st);
    if (r->bytes.sha256 && put_sum(answer, fd) < 0)
        return file_fail(answer, err, errno, path);
    return buf_addc(answer, '}');
}

int file_stat(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    struct stat st;
    if (fstatat(AT_FDCWD, path, &st, r->how.follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return file_fail(answer, err, errno, path);
    buf_addc(answer, '{');
    file_put_stat(answer, AT_FDCWD, path, &st);
    if (r->bytes.sha256) {
        int fd FD_AUTO = open_file(path, &st, answer, err);
        if (fd < 0)
            return -1;
        if (put_sum(answer, fd) < 0)
            return file_fail(answer, err, errno, path);
    }
    return buf_addc(answer, '}');
}

int file_space(const void *request, struct buf *answer, struct err *err)
{
    const struct file_request *r = request;
    char *path MEM_AUTO = file_path(&r->path);
    struct statvfs v;
    if (statvfs(path, &v) < 0)
        return file_fail(answer, err, errno, path);
    buf_addc(answer, '{');
    json_member_int(answer, "total_bytes", (long long)v.f_blocks * (long long)v.f_frsize);
    json_member_int(answer, "free_bytes", (long long)v.f_bfree * (long long)v.f_frsize);
    json_member_int(answer, "available_bytes", (long long)v.f_bavail * (long long)v.f_frsize);
    json_member_int(answer, "total_inodes", (long long)v.f_files);
    json_member_int(answer, "free_inodes", (long long)v.f_ffree);
    json_member_bool(answer, "read_only", v.f_flag & ST_RDONLY);
    return buf_addc(answer, '}');
}
