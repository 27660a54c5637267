#include "dir_empty.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

#define DEPTH_MAX 32     /* each level holds a descriptor */
#define ROUNDS_MAX 65536 /* should somebody go on making more of them */
#define NAME ".deeper-"  /* of what was moved up */

/* What lies deeper than descriptors reach is moved up to the top, and emptied from there: neither by a path,
 * which has a longest length, nor through "..", which somebody may have moved elsewhere meanwhile. */
struct emptying {
    int top;
    dev_t device;
    unsigned number; /* in the next name */
    bool moved;      /* something, in this round */
    long long until; /* by now_ms; 0: no limit */
};

static void move_up(struct emptying *e, int dir, const char *name)
{
    char to[32];
    int failed;
    do {
        snprintf(to, sizeof to, NAME "%u", e->number++);
        failed = renameat(dir, name, e->top, to);
    } while (failed < 0 && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)); /* is taken */
    e->moved = e->moved || failed == 0;
}

static bool is_late(const struct emptying *e)
{
    return e->until > 0 && now_ms() >= e->until;
}

static void empty(struct emptying *e, int fd, int depth)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return;
    }
    for (struct dirent *entry; !is_late(e) && (entry = readdir(d)) != NULL;) {
        struct stat st;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        /* a file's number can differ from its directory's on an overlay */
        bool below = S_ISDIR(st.st_mode) && st.st_dev == e->device;
        if (unlinkat(dirfd(d), name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0 || !below)
            continue;
        int inner = depth < DEPTH_MAX ? io_open_dir(dirfd(d), name) : -1;
        if (inner >= 0)
            empty(e, inner, depth + 1);
        else if (depth >= DEPTH_MAX)
            move_up(e, dirfd(d), name);
        unlinkat(dirfd(d), name, AT_REMOVEDIR);
    }
    closedir(d);
}

void dir_empty(int fd, int limit_ms)
{
    struct stat st;
    struct emptying e = {.top = fd, .until = limit_ms > 0 ? now_ms() + limit_ms : 0};
    if (fd < 0 || fstat(fd, &st) < 0) {
        io_close(&fd);
        return;
    }
    e.device = st.st_dev;
    int rounds = 0;
    do {
        e.moved = false;
        int round = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (round >= 0)
            empty(&e, round, 0);
    } while (e.moved && !is_late(&e) && ++rounds < ROUNDS_MAX);
    close(fd);
}
