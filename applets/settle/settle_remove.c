/* Removing every trace. What is removed is ours by its name, its owner and its mode; nothing is followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dir_empty.h"
#include "io.h"
#include "mem.h"
#include "passwd.h"
#include "place.h"
#include "server/server.h"
#include "settle/settle.h"

/* ---- places ---- */

static bool has_socket(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    bool found = false;
    struct stat st;
    for (struct dirent *e; d && !found && (e = readdir(d)) != NULL;)
        found = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
    if (d)
        closedir(d);
    return found;
}

/* A place of that user, where no server of another build has its sockets. */
static void remove_place(const char *path, uid_t owner)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) < 0 || st.st_uid != owner || (st.st_mode & 0777) != 0700 || has_socket(fd)) {
        close(fd);
        return;
    }
    dir_empty(fd);
    rmdir(path);
}

/* Root's tools also keep things for other users (undo histories), in places of theirs. */
static void remove_places_of_others(const char *dir, const char *prefix, const char *suffix)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const char *digits = e->d_name + strlen(prefix);
        unsigned uid;
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || !passwd_number(digits, strlen(digits), &uid))
            continue;
        char *path MEM_AUTO = mem_printf("%s/%s%s", dir, e->d_name, suffix);
        remove_place(path, (uid_t)uid);
    }
    if (d)
        closedir(d);
}

static void remove_places(void)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++)
        remove_place(buf_str(&path), geteuid());
    if (geteuid() != 0)
        return;
    remove_places_of_others("/tmp", ".toolbox-", "");
    remove_places_of_others("/var/tmp", ".toolbox-", "");
    remove_places_of_others("/dev/shm", ".toolbox-", "");
    remove_places_of_others("/run/user", "", "/toolbox");
}

/* ---- links, directories, the program ---- */

static void remove_links(const char *dir, const char *program)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char to[4096];
        ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof to);
        if (n > 0 && (size_t)n == strlen(program) && memcmp(to, program, (size_t)n) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}

static void each_line(char *text, const char *key, void (*fn)(const char *value, const char *program),
                      const char *program)
{
    size_t n = strlen(key);
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        if (strncmp(text, key, n) == 0)
            fn(text + n, program);
        *end = '\n';
    }
}

static void remove_dir(const char *dir, const char *program)
{
    (void)program;
    rmdir(dir); /* where others have put something into it, it stays */
}

static void undo_record(const char *record, const char *program)
{
    struct buf text BUF_AUTO = {.max = 1u << 20};
    struct stat st;
    if (lstat(record, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        io_read_file(AT_FDCWD, record, &text) < 0 || text.len == 0)
        return;
    unlink(record);
    each_line(text.data, "links ", remove_links, program);
    each_line(text.data, "made ", remove_dir, program);
}

int settle_remove_tree(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    dir_empty(fd);
    return rmdir(path);
}

int settle_remove(const char *path, struct err *err)
{
    char command[] = "stop-server", *arguments[] = {command, NULL};
    char *record MEM_AUTO = settle_record_path(path);
    if (stop_server_applet.run(1, arguments) != EXIT_OK)
        return err_set(err, ERR_TOOL, "the server did not stop: nothing was removed");
    remove_places();
    char *with MEM_AUTO = settle_with_path(path);
    if (settle_remove_tree(with) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot remove %s", with);
    if (unlink(path) < 0 && errno != ENOENT)
        return err_sys(err, ERR_TOOL, errno, "cannot remove %s", path);
    undo_record(record, path);
    char *dir MEM_AUTO = mem_dup(path, (size_t)(strrchr(path, '/') - path));
    if (strstr(dir, "/" SETTLE_DIR))
        rmdir(dir); /* nobody else's, whoever has made it */
    return 0;
}
