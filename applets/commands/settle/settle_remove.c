/* Removing every trace. What is removed is ours by its name, its owner and its mode, in directories in which
 * nobody else can exchange it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "as_user.h"
#include "buf.h"
#include "dir_empty.h"
#include "dir_read.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "passwd.h"
#include "place.h"
#include "safe_path.h"
#include "commands/server/server.h"
#include "commands/settle/settle.h"
#include "commands/settle/settle_others.h"

#define AS_USER_MS 5000 /* for what one user has in one directory */
#define OTHERS_MS 20000

/* ---- places ---- */

static bool has_socket(int fd)
{
    DIR *d DIR_AUTO = dir_read_again(fd);
    bool found = false;
    struct stat st;
    for (const char *name; !found && (name = dir_next(d));)
        found = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
    return found;
}

/* A lock is empty, and a log begins with a time (core/log.c). */
static bool is_ours(int dir, const char *name)
{
    char begin[24];
    struct stat st;
    int fd FD_AUTO = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 07777) != 0600)
        return false;
    return st.st_size == 0 || (read(fd, begin, sizeof begin) == (ssize_t)sizeof begin && begin[4] == '-' &&
                               begin[10] == 'T' && begin[13] == ':' && begin[23] == 'Z');
}

/* What a named place holds of ours: it need not be ours alone. Of a folder the mode tells (core/place.h). */
static void empty_ours(int fd)
{
    static const char *const files[] = {".lock", "log", "log.old"};
    static const char *const dirs[] = {"undo", "journal", "answers"};
    DIR *d DIR_AUTO = dir_read_again(fd);
    for (const char *name; (name = dir_next(d));)
        if (ipc_is_file(name) || strncmp(name, SETTLE_MARK, strlen(SETTLE_MARK)) == 0)
            unlinkat(fd, name, 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (is_ours(fd, files[i]))
            unlinkat(fd, files[i], 0);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        struct stat st;
        if (fstatat(fd, dirs[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == 0700)
            settle_remove_tree(fd, dirs[i]);
    }
}

/* A place of one's own, where no server of another build has its sockets. */
static void remove_place(const char *path)
{
    const char *name;
    struct stat st;
    int above FD_AUTO = safe_path_above(-1, path, &name, NULL);
    int fd = above < 0 ? -1 : io_open_dir(above, name);
    if (fd < 0)
        return;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 07777) != 0700 || has_socket(fd)) {
        close(fd);
        return;
    }
    if (place_is_given()) {
        empty_ours(fd);
        close(fd);
    } else {
        dir_empty(fd, 0);
    }
    unlinkat(above, name, AT_REMOVEDIR);
}

/* As that user: he could exchange what is below a directory of his. */
static void remove_place_as_user(void *path)
{
    remove_place(path);
}

/* Root's tools also keep things for other users (undo histories), in places of theirs. One of them may have
 * many numbers, and hold up each: all of them together have a limit. */
static void remove_places_of_others(const char *dir, const char *prefix, const char *suffix, long long until)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const char *digits = e->d_name + strlen(prefix);
        unsigned uid;
        struct stat st;
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || *digits == '0' ||
            !passwd_number(digits, strlen(digits), &uid))
            continue;
        char *path MEM_AUTO = mem_printf("%s/%s%s", dir, e->d_name, suffix);
        int left = (int)(until - now_ms());
        if (left > 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == (uid_t)uid)
            as_user((uid_t)uid, left < AS_USER_MS ? left : AS_USER_MS, remove_place_as_user, path);
    }
    if (d)
        closedir(d);
}

static void remove_places(void)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++)
        remove_place(buf_str(&path));
    if (geteuid() != 0)
        return;
    long long until = now_ms() + OTHERS_MS;
    remove_places_of_others("/tmp", ".toolbox-", "", until);
    remove_places_of_others("/var/tmp", ".toolbox-", "", until);
    remove_places_of_others("/dev/shm", ".toolbox-", "", until);
    remove_places_of_others("/run/user", "", "/toolbox", until);
}

/* ---- links, directories, the program ---- */

static void remove_links(void *arg, const char *dir)
{
    const char *program = arg;
    DIR *d DIR_AUTO = dir_read(safe_path_open(-1, dir, 0, NULL, NULL));
    for (const char *name; (name = dir_next(d));) {
        char to[4096];
        ssize_t n = readlinkat(dirfd(d), name, to, sizeof to);
        if (n > 0 && (size_t)n == strlen(program) && memcmp(to, program, (size_t)n) == 0)
            unlinkat(dirfd(d), name, 0);
    }
}

static void remove_dir(void *arg, const char *dir)
{
    (void)arg;
    safe_path_rmdir(dir); /* where others have put something into it, it stays */
}

static void undo_record(int dir, const char *program)
{
    struct buf text BUF_AUTO = {.max = SETTLE_RECORD_MAX};
    if (!settle_record_read(dir, program, &text))
        return;
    char *record MEM_AUTO = settle_record_path(program);
    unlinkat(dir, strrchr(record, '/') + 1, 0);
    settle_record_each(text.data, "links ", remove_links, (void *)program);
    settle_record_each(text.data, "made ", remove_dir, NULL);
}

int settle_remove_tree(int dir, const char *name)
{
    int fd = io_open_dir(dir, name);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    dir_empty(fd, 0);
    return unlinkat(dir, name, AT_REMOVEDIR);
}

int settle_remove(int dir, const char *path, struct err *err)
{
    char command[] = "stop-server", *arguments[] = {command, NULL};
    enum settled others = settle_leave(dir, path);
    if (others != SETTLED_SAME_BUILD && stop_server_applet.run(1, arguments) != EXIT_OK)
        return err_set(err, ERR_TOOL, "the server did not stop: nothing was removed");
    if (settle_end_others(dir, path, err) < 0)
        return -1;
    if (others == SETTLED_NOBODY)
        remove_places();
    char *with MEM_AUTO = settle_with_path(path);
    if (settle_remove_tree(dir, strrchr(with, '/') + 1) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot remove %s", with);
    if (unlinkat(dir, strrchr(path, '/') + 1, 0) < 0 && errno != ENOENT)
        return err_sys(err, ERR_TOOL, errno, "cannot remove %s", path);
    undo_record(dir, path);
    char *own MEM_AUTO = mem_dup(path, (size_t)(strrchr(path, '/') - path));
    if (strstr(own, "/" SETTLE_DIR))
        safe_path_rmdir(own); /* nobody else's, whoever has made it */
    return 0;
}
