/* Several placements of one build have one server: the program is in two directories, or one of them came
 * with the image. In the server's directory is a mark for each that has settled, SETTLE_MARK DEVICE-INODE of
 * the program, with its path. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dir_read.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "place.h"
#include "sha256.h"
#include "commands/settle/settle.h"

static void mark_name(char name[64], const struct stat *program)
{
    snprintf(name, 64, SETTLE_MARK "%llx-%llx", (unsigned long long)program->st_dev,
             (unsigned long long)program->st_ino);
}

void settle_mark(int dir, const char *program)
{
    char name[64];
    struct stat st;
    struct place place PLACE_AUTO = PLACE_INIT;
    int server FD_AUTO = ipc_find(&place, IPC_SERVER);
    if (server < 0 || fstatat(dir, strrchr(program, '/') + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    mark_name(name, &st);
    int fd FD_AUTO = openat(place.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && io_write_all(fd, program, strlen(program)) < 0)
        unlinkat(place.fd, name, 0);
}

/* Whether the program of a mark is still there, and is the same as ours. What can't be read may be. */
static enum settled who_is_marked(int place, const char *mark, const char *own_sha256)
{
    char name[64], sha256[SHA256_HEX_SIZE];
    struct stat st;
    struct buf path BUF_AUTO = {.max = 1u << 16};
    if (io_read_file(place, mark, &path) < 0 || lstat(buf_str(&path), &st) < 0 || !S_ISREG(st.st_mode))
        return SETTLED_NOBODY;
    mark_name(name, &st);
    if (strcmp(name, mark) != 0)
        return SETTLED_NOBODY;
    int fd FD_AUTO = open(buf_str(&path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool differs = *own_sha256 && fd >= 0 && sha256_file(fd, sha256) == 0 && strcmp(sha256, own_sha256) != 0;
    return differs ? SETTLED_OTHER_BUILD : SETTLED_SAME_BUILD;
}

/* Takes our own mark away, and those of what is gone. */
static enum settled others_marked(int place, const char *own, const char *own_sha256)
{
    enum settled found = SETTLED_NOBODY;
    DIR *d DIR_AUTO = dir_read_again(place);
    for (const char *name; (name = dir_next(d));) {
        if (strncmp(name, SETTLE_MARK, strlen(SETTLE_MARK)) != 0)
            continue;
        enum settled who = strcmp(name, own) == 0 ? SETTLED_NOBODY : who_is_marked(place, name, own_sha256);
        if (who == SETTLED_NOBODY)
            unlinkat(place, name, 0);
        found = who > found ? who : found;
    }
    return found;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the server runs another file than ours, which is still there. What both run may be an emulator. */
static bool is_others_server(const struct stat *ours)
{
    char exe[64];
    pid_t pid;
    uid_t uid;
    struct stat st, self;
    struct place place PLACE_AUTO = PLACE_INIT;
    int server FD_AUTO = ipc_find(&place, IPC_SERVER);
    if (server < 0 || ipc_peer(server, &pid, &uid) < 0)
        return false;
    snprintf(exe, sizeof exe, "/proc/%ld/exe", (long)pid);
    return stat(exe, &st) == 0 && st.st_nlink > 0 && !is_same(&st, ours) &&
           !(stat("/proc/self/exe", &self) == 0 && is_same(&st, &self));
}

enum settled settle_leave(int dir, const char *program)
{
    char own[64], sha256[SHA256_HEX_SIZE] = "";
    const char *base = strrchr(program, '/') + 1;
    struct stat st;
    struct buf path BUF_AUTO = BUF_INIT;
    if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return SETTLED_NOBODY;
    mark_name(own, &st);
    int fd FD_AUTO = openat(dir, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || sha256_file(fd, sha256) < 0)
        *sha256 = '\0';
    enum settled found = is_others_server(&st) ? SETTLED_SAME_BUILD : SETTLED_NOBODY;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, buf_str(&path), false, NULL) < 0)
            continue;
        enum settled who = others_marked(place.fd, own, sha256);
        found = who > found ? who : found;
    }
    return found;
}
