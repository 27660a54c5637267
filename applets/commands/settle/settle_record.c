/* What has been made for a program, for its removal to undo (settle.h), and what it has brought along. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "commands/settle/settle.h"

char *settle_record_path(const char *program)
{
    const char *slash = strrchr(program, '/');
    return mem_printf("%.*s/.%s.inject", (int)(slash - program), program, slash + 1);
}

char *settle_with_path(const char *program)
{
    const char *slash = strrchr(program, '/');
    return mem_printf("%.*s/.%s.with", (int)(slash - program), program, slash + 1);
}

void settle_made(struct buf *record, const char *dir, const char *topmost)
{
    size_t n = strlen(dir), least = strlen(topmost);
    while (n >= least && n > 0) {
        buf_addf(record, "made %.*s\n", (int)n, dir);
        while (n > 0 && dir[--n] != '/')
            continue;
    }
}

int settle_record_add(int dir, const char *program, const struct buf *lines, struct err *err)
{
    char *path MEM_AUTO = settle_record_path(program);
    const char *name = strrchr(path, '/') + 1;
    struct buf before BUF_AUTO = {.max = SETTLE_RECORD_MAX};
    if (lines->len == 0)
        return 0;
    if (io_read_file(dir, name, &before) == 0 && strstr(buf_str(&before), lines->data))
        return 0;
    int fd FD_AUTO = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, lines->data, lines->len) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot write %s", path);
    return 0;
}

bool settle_record_read(int dir, const char *program, struct buf *text)
{
    char *path MEM_AUTO = settle_record_path(program);
    const char *name = strrchr(path, '/') + 1;
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_uid == geteuid() && io_read_file(dir, name, text) == 0 && text->len > 0;
}

void settle_record_each(char *text, const char *key, void (*fn)(void *arg, const char *value), void *arg)
{
    size_t n = strlen(key);
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        if (strncmp(text, key, n) == 0)
            fn(arg, text + n);
        *end = '\n';
    }
}
