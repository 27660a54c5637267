#include "chunk_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "dir_read.h"
#include "io.h"
#include "memory_share.h"
#include "place.h"
#include "random.h"

#define STORE "answers"
#define LIFETIME_S 3600

bool chunk_handle_valid(const char *handle)
{
    return strlen(handle) == CHUNK_HANDLE_LEN && strspn(handle, "0123456789abcdef") == CHUNK_HANDLE_LEN;
}

/* ---- writing ---- */

static int new_handle(char handle[CHUNK_HANDLE_LEN + 1], struct err *err)
{
    unsigned char random[CHUNK_HANDLE_LEN / 2];
    if (random_bytes(random, sizeof random) < 0)
        return err_set(err, ERR_TOOL, "neither getrandom nor /dev/urandom gives random numbers");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(handle + 2 * i, 3, "%02x", random[i]);
    return 0;
}

/* Calls fn for every name in the directory, whose descriptor stays the caller's. */
static void each_name(int dirfd, bool (*fn)(int dirfd, const char *name, void *arg), void *arg)
{
    DIR *dir DIR_AUTO = dir_read_again(dirfd);
    for (const char *name; (name = dir_next(dir)) && fn(dirfd, name, arg);)
        ;
}

static bool remove_old(int dirfd, const char *name, void *arg)
{
    struct stat st;
    (void)arg;
    if (chunk_handle_valid(name) && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_mtime < time(NULL) - LIFETIME_S)
        unlinkat(dirfd, name, 0);
    return true;
}

/* ---- memory: what lies on a tmpfs takes the memory of the container ---- */

#define TMPFS 0x01021994
#define SHARES 3 /* of the memory, for all answers together */

struct stored {
    size_t total;
    char oldest[CHUNK_HANDLE_LEN + 1]; /* the one that was asked for longest ago; "": there is none */
    struct timespec asked;
};

static bool count(int dirfd, const char *name, void *arg)
{
    struct stored *s = arg;
    struct stat st;
    if (!chunk_handle_valid(name) || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    s->total += (size_t)st.st_size;
    if (s->oldest[0] == '\0' || st.st_mtim.tv_sec < s->asked.tv_sec ||
        (st.st_mtim.tv_sec == s->asked.tv_sec && st.st_mtim.tv_nsec < s->asked.tv_nsec)) {
        memcpy(s->oldest, name, sizeof s->oldest);
        s->asked = st.st_mtim;
    }
    return true;
}

/* Drops answers that nobody has asked for lately until one of n bytes fits. -1 with ENOMEM: it never does. */
static int make_room(int dirfd, size_t n)
{
    struct statfs fs;
    if (fstatfs(dirfd, &fs) < 0 || fs.f_type != TMPFS)
        return 0;
    for (;;) {
        struct stored s = {0};
        struct memory_share share = {0};
        each_name(dirfd, count, &s);
        if (s.total + n <= SHARES * memory_share(&share, s.total + n, SIZE_MAX / SHARES))
            return 0;
        if (s.oldest[0] == '\0' || unlinkat(dirfd, s.oldest, 0) < 0)
            return errno = ENOMEM, -1;
    }
}

static int write_file(int dirfd, const char *name, struct span data)
{
    int fd FD_AUTO = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (io_write_all(fd, data.s, data.n) == 0)
        return 0;
    int saved = errno;
    unlinkat(dirfd, name, 0);
    errno = saved;
    return -1;
}

int chunk_store(struct span answer, char handle[CHUNK_HANDLE_LEN + 1], struct err *err)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    if (place_open(&place, err) < 0)
        return -1;
    int dirfd FD_AUTO = place_subdir(&place, STORE, true, err);
    if (dirfd < 0)
        return -1;
    each_name(dirfd, remove_old, NULL);
    if (new_handle(handle, err) < 0)
        return -1;
    if (make_room(dirfd, answer.n) < 0 || write_file(dirfd, handle, answer) < 0)
        return err_sys(err, ERR_TOOL, errno, "%s/%s", place.path, STORE);
    return 0;
}

/* ---- finding: own places, and for root those of others ---- */

struct search {
    const char *handle;
    bool remove;        /* instead of opening */
    const char *prefix; /* of the directories of users, before the uid */
    const char *inside; /* NULL, or the place's name inside such a directory */
    int found;          /* descriptor; -1: not yet */
};

/* True when the answer is here: it is a file of `owner` in a store. */
static bool look_here(struct search *s, int store, uid_t owner)
{
    struct stat st;
    int fd = openat(store, s->handle, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != owner) {
        close(fd);
        return false;
    }
    if (s->remove)
        unlinkat(store, s->handle, 0);
    s->found = fd;
    return true;
}

/* A private directory of that user's, as place_enter wants it of one's own. */
static int open_private(int dirfd, const char *name, uid_t owner)
{
    struct stat st;
    int fd = io_open_dir(dirfd, name);
    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != owner || (st.st_mode & 07777) != 0700))
        io_close(&fd);
    return fd;
}

static bool search_own(struct search *s)
{
    struct buf path BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        if (place_enter(&place, path.data, false, NULL) < 0)
            continue;
        int store FD_AUTO = place_subdir(&place, STORE, false, NULL);
        if (store >= 0 && look_here(s, store, geteuid()))
            return true;
    }
    return false;
}

/* With each_name: false ends the walk. */
static bool search_user(int base, const char *name, void *arg)
{
    struct search *s = arg;
    size_t skip = strlen(s->prefix);
    if (strncmp(name, s->prefix, skip) != 0 || strspn(name + skip, "0123456789") == 0 ||
        strlen(name + skip) > 10)
        return true;
    char *end;
    unsigned long long uid = strtoull(name + skip, &end, 10);
    if (*end != '\0' || uid >= (uid_t)-1)
        return true;
    int user FD_AUTO = open_private(base, name, (uid_t)uid);
    int place FD_AUTO = user >= 0 && s->inside ? open_private(user, s->inside, (uid_t)uid) : dup(user);
    int store FD_AUTO = place >= 0 ? open_private(place, STORE, (uid_t)uid) : -1;
    return store < 0 || !look_here(s, store, (uid_t)uid);
}

static void search_others(struct search *s)
{
    static const struct {
        const char *base, *prefix, *inside;
    } bases[] = {
        {"/run/user", "", "toolbox"},
        {"/tmp", ".toolbox-", NULL},
        {"/var/tmp", ".toolbox-", NULL},
        {"/dev/shm", ".toolbox-", NULL},
    };
    for (size_t i = 0; i < sizeof bases / sizeof *bases && s->found < 0; i++) {
        int base FD_AUTO = open(bases[i].base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        s->prefix = bases[i].prefix;
        s->inside = bases[i].inside;
        if (base >= 0)
            each_name(base, search_user, s);
    }
}

static int find(const char *handle, bool remove)
{
    struct search s = {.handle = handle, .remove = remove, .found = -1};
    if (!search_own(&s) && geteuid() == 0)
        search_others(&s);
    return s.found;
}

int chunk_open(const char *handle)
{
    return find(handle, false);
}

void chunk_remove(const char *handle)
{
    int fd = find(handle, true);
    io_close(&fd);
}
