#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "as_user.h"
#include "dir_empty.h"
#include "io.h"
#include "log.h"
#include "mem.h"
#include "random.h"
#include "safe_path.h"

#define OWNER_PREFIX "Profile-"
#define RECORD_PREFIX "." OWNER_PREFIX
#define FOLDER_PREFIX ".toolbox-web-"
#define ROOM_MIN (32u << 20) /* bytes: a browser ends in the middle of things when its disk is full */
#define REMOVE_TRIES 3       /* what is written meanwhile by a process that ends */
#define REMOVE_MS 2000       /* each: it may be another user's, who goes on writing there */

static bool has_room(const char *dir)
{
    struct statvfs st;
    return statvfs(dir, &st) == 0 && (unsigned long long)st.f_bavail * st.f_frsize >= ROOM_MIN;
}

/* ---- the record ---- */

static int open_record(struct profile *p, const char *session, struct err *err)
{
    char owner[IPC_NAME_MAX];
    snprintf(owner, sizeof owner, OWNER_PREFIX "%s", session);
    p->record[0] = '.';
    if (ipc_name(p->record + 1, owner) < 0)
        return err_set(err, ERR_INTERNAL, "'%s' can't be the name of a record", session);
    p->lock = openat(p->dirfd, p->record, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->lock < 0 || flock(p->lock, LOCK_EX | LOCK_NB) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot record where the browser's files are");
    return 0;
}

static void drop_record(struct profile *p)
{
    unlinkat(p->dirfd, p->record, 0);
    io_close(&p->lock);
}

/* Before the folder is there: a record of nothing does no harm. */
static int write_record(struct profile *p, struct err *err)
{
    if (ftruncate(p->lock, 0) == 0 && lseek(p->lock, 0, SEEK_SET) == 0 &&
        io_write_all(p->lock, p->path, strlen(p->path)) == 0)
        return 0;
    return err_sys(err, ERR_TOOL, errno, "cannot record where the browser's files are");
}

/* ---- the folder ---- */

static int make_folder(struct profile *p, const char *dir, const struct user *user, struct err *err)
{
    unsigned long long number;
    if (random_bytes(&number, sizeof number) < 0)
        return err_set(err, ERR_INTERNAL, "no random numbers");
    free(p->path);
    p->path = mem_printf("%s/" FOLDER_PREFIX "%08llx", dir, number & 0xffffffffu);
    const char *name = strrchr(p->path, '/') + 1;
    int above FD_AUTO = safe_path_open(-1, dir, 0, NULL, err);
    if (above < 0 || write_record(p, err) < 0)
        return -1;
    if (mkdirat(above, name, 0700) < 0)
        return err_sys(err, ERR_TOOL, errno, "%s", dir);
    if (user && fchownat(above, name, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) < 0) {
        int why = errno;
        unlinkat(above, name, AT_REMOVEDIR);
        return err_sys(err, ERR_TOOL, why, "%s", p->path);
    }
    return 0;
}

int profile_make(struct profile *p, int dirfd, const char *session, const struct user *user, struct err *err)
{
    static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm"};
    char why[ERR_MSG_MAX] = "";
    size_t used = 0;
    *p = (struct profile){.dirfd = dirfd, .lock = -1};
    if (open_record(p, session, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        struct err one;
        if (!has_room(dirs[i]))
            err_set(&one, ERR_TOOL, "%s: less than %u MiB free", dirs[i], ROOM_MIN >> 20);
        else if (make_folder(p, dirs[i], user, &one) == 0)
            return 0;
        used += (size_t)snprintf(why + used, sizeof why - used, "%s%s", i > 0 ? "; " : "", one.msg);
        if (used >= sizeof why)
            used = sizeof why - 1;
    }
    drop_record(p);
    return err_set(err, ERR_TOOL, "there is no place for the browser's files: %s", why);
}

/* True when it is gone. */
static bool try_to_remove(const char *path)
{
    const char *name;
    int above FD_AUTO = safe_path_above(-1, path, &name, NULL);
    for (int i = 0; above >= 0 && i < REMOVE_TRIES; i++) {
        dir_empty(io_open_dir(above, name), REMOVE_MS);
        if (unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return true;
    }
    return false;
}

static void remove_as_user(void *path)
{
    try_to_remove(path);
}

/* A user's as that user: he may have put something else there, with what isn't his to remove. */
static bool remove_folder(char *path)
{
    struct stat st;
    bool gone;
    if (lstat(path, &st) == 0 && geteuid() == 0 && st.st_uid != 0) {
        as_user(st.st_uid, REMOVE_TRIES * REMOVE_MS, remove_as_user, path);
        gone = lstat(path, &st) < 0 && errno == ENOENT;
    } else {
        gone = try_to_remove(path);
    }
    if (!gone)
        log_line(LOG_WARNING, "%s can't be removed", path);
    return gone;
}

void profile_remove(struct profile *p)
{
    if (p->lock < 0)
        return;
    if (p->path && !remove_folder(p->path))
        return; /* to be tried again, by a sweep at the latest */
    drop_record(p);
    free(p->path);
    p->path = NULL;
}

/* ---- those of the dead ---- */

static void sweep_one(void *arg, const char *name)
{
    int dirfd = *(int *)arg;
    struct buf path BUF_AUTO = {.max = PATH_MAX};
    struct stat st;
    int lock FD_AUTO = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (lock < 0 || fstat(lock, &st) < 0 || !S_ISREG(st.st_mode) || flock(lock, LOCK_EX | LOCK_NB) < 0 ||
        io_read_all(lock, &path) < 0)
        return;
    const char *folder = strrchr(buf_str(&path), '/');
    if (!folder ||
        (strncmp(folder + 1, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) == 0 && remove_folder(path.data)))
        unlinkat(dirfd, name, 0);
}

void profile_sweep(int dirfd)
{
    ipc_each_file(dirfd, RECORD_PREFIX, sweep_one, &dirfd);
}
