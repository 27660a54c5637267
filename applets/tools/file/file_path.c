#include "file_path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "mem.h"
#include "tools/text_editor/edit_path.h"
#include "user.h"

#define NS 1000000000LL

char *file_path(const struct text *path)
{
    struct stat st;
    char *plain = mem_dup(path->s, path->n);
    char *meant = lstat(plain, &st) < 0 && errno == ENOENT ? edit_path_unquoted(path->s, path->n) : NULL;
    if (!meant)
        return plain;
    free(plain);
    return meant;
}

void file_put_path(struct buf *out, const char *path)
{
    char *shown MEM_AUTO = edit_path_shown(path, strlen(path), 0);
    json_puts(out, shown);
}

const char *file_kind_of(int errnum)
{
    static const struct {
        int errnum;
        const char *kind;
    } kinds[] = {
        {ENOENT, "not_found"},    {EACCES, "permission"},
        {EPERM, "permission"},    {EEXIST, "exists"},
        {EISDIR, "is_directory"}, {ENOTDIR, "not_directory"},
        {ENOTEMPTY, "not_empty"}, {ELOOP, "loop"},
        {EROFS, "read_only"},     {ENOSPC, "no_space"},
        {EDQUOT, "no_space"},     {EFBIG, "too_large"},
        {EXDEV, "other_device"},  {EBUSY, "busy"},
        {ETXTBSY, "busy"},        {ENAMETOOLONG, "name_too_long"},
        {ENXIO, "not_regular"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].errnum == errnum)
            return kinds[i].kind;
    return "other";
}

int file_refuse(struct buf *answer, struct err *err, const char *kind, const char *path, const char *why)
{
    char *shown MEM_AUTO = edit_path_shown(path, strlen(path), ERR_MSG_MAX / 2);
    buf_truncate(answer, 0);
    buf_adds(answer, kind);
    return err_set(err, ERR_TOOL, "%s: %s", shown, why);
}

int file_fail(struct buf *answer, struct err *err, int errnum, const char *path)
{
    return file_refuse(answer, err, file_kind_of(errnum), path, edit_errno(errnum));
}

int file_make_parents(const char *path)
{
    char *at MEM_AUTO = mem_strdup(path);
    for (char *slash = strchr(at + 1, '/'); *at && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        struct stat st;
        if (mkdir(at, 0777) < 0 && (errno != EEXIST || stat(at, &st) < 0)) {
            int failed = errno;
            if (stat(at, &st) < 0) { /* a directory that is there may lie where none can be made */
                errno = failed;
                return -1;
            }
        }
        *slash = '/';
    }
    return 0;
}

static void put_time(struct buf *out, const char *key, const struct timespec *t)
{
    json_key(out, key);
    buf_addf(out, "%lld.%09lld", (long long)t->tv_sec, (long long)t->tv_nsec % NS);
}

static void put_owner(struct buf *out, const struct stat *st)
{
    char *user MEM_AUTO = user_label(st->st_uid);
    char *group MEM_AUTO = user_group_name(st->st_gid);
    json_member_int(out, "uid", (long long)st->st_uid);
    json_member_int(out, "gid", (long long)st->st_gid);
    json_member_string(out, "user", user);
    json_member_string(out, "group", group);
}

static const char *type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "link";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFCHR:
        return "character_device";
    case S_IFBLK:
        return "block_device";
    default:
        return "file";
    }
}

void file_put_stat(struct buf *out, int at, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    json_member_string(out, "type", type_of(st->st_mode));
    json_member_int(out, "size", (long long)st->st_size);
    json_member_int(out, "mode", (long long)(st->st_mode & 07777));
    put_time(out, "mtime", &st->st_mtim);
    put_owner(out, st);
    json_member_int(out, "links", (long long)st->st_nlink);
    json_member_int(out, "inode", (long long)(st->st_ino & LLONG_MAX));
    json_member_int(out, "disk_bytes", (long long)st->st_blocks * 512);
    ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(at, name, target, sizeof target - 1) : -1;
    if (n >= 0) {
        target[n] = '\0';
        json_key(out, "target");
        file_put_path(out, target);
    }
}
