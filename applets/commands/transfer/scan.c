#include "commands/transfer/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dir_read.h"
#include "glob.h"
#include "io.h"
#include "mem.h"

void scan_many_descriptors(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0) {
        most.rlim_cur = most.rlim_max;
        setrlimit(RLIMIT_NOFILE, &most);
    }
}

bool scan_excludes(const struct scan *s, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (char *const *given = s->excludes; *given; given++) {
        size_t n = strlen(*given);
        while (n > 1 && (*given)[n - 1] == '/')
            n--;
        char *pattern MEM_AUTO = mem_dup(*given, n);
        if (glob_match(pattern + (*pattern == '/'), strchr(pattern, '/') ? path : name))
            return true;
    }
    return false;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, one behind the other, and where they begin. */
struct names {
    char **list;
    size_t n, room;
};

static int read_names(DIR *dir, struct names *names)
{
    const char *name;
    errno = 0;
    while ((name = dir_next(dir)) != NULL) {
        if (names->n == names->room)
            names->list = mem_realloc(names->list, (names->room = names->room ? 2 * names->room : 32) *
                                                       sizeof *names->list);
        names->list[names->n++] = mem_strdup(name);
        errno = 0;
    }
    if (names->n > 0)
        qsort(names->list, names->n, sizeof *names->list, by_bytes);
    return errno ? -1 : 0;
}

static void scan_dir(struct scan *s, int dir, const char *name, const char *path)
{
    struct names names = {0};
    struct stat st;
    int fd = io_open_dir(dir, name);
    if (fd >= 0 && s->enter)
        s->enter(s, fd, path);
    DIR *open DIR_AUTO = dir_read(fd);
    if (!open || read_names(open, &names) < 0)
        s->unreadable(s, path, errno);
    for (size_t i = 0; i < names.n; i++) {
        char *below MEM_AUTO =
            strcmp(path, ".") == 0 ? mem_strdup(names.list[i]) : mem_printf("%s/%s", path, names.list[i]);
        if (!scan_excludes(s, below)) {
            if (fstatat(dirfd(open), names.list[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
                scan_entry(s, dirfd(open), names.list[i], below, &st);
            else if (errno != ENOENT) /* gone meanwhile */
                s->unreadable(s, below, errno);
        }
        free(names.list[i]);
    }
    free(names.list);
    if (s->leave)
        s->leave(s, path);
}

void scan_entry(struct scan *s, int dir, const char *name, const char *path, const struct stat *st)
{
    s->entry(s, dir, name, path, st);
    if (S_ISDIR(st->st_mode))
        scan_dir(s, dir, name, path);
}
