#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "safe_path.h"
#include "user.h"

static const char *given(void)
{
    static const char *const names[] = {"TOOLBOX_DIR", "INSPECT_SANDBOX_TOOLS_DIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

bool place_is_given(void)
{
    return given() != NULL;
}

bool place_candidate(unsigned n, struct buf *path)
{
    static const char *const shared[] = {"/tmp", "/var/tmp", "/dev/shm"};
    enum { N_SHARED = sizeof shared / sizeof *shared };
    unsigned uid = (unsigned)geteuid();
    buf_truncate(path, 0);
    if (given())
        return n == 0 && buf_adds(path, given()) == 0;
    if (n == 0 && uid == 0)
        return buf_adds(path, "/run/toolbox") == 0;
    if (n == 0)
        return buf_addf(path, "/run/user/%u/toolbox", uid) == 0;
    if (n <= N_SHARED)
        return buf_addf(path, "%s/.toolbox-%u", shared[n - 1], uid) == 0;
    if (n > N_SHARED + 1)
        return false;
    struct user u USER_AUTO;
    user_of_uid(&u, uid);
    if (*u.home != '/')
        return false; /* a passwd file may say anything; nobody means the working directory */
    return buf_addf(path, "%s/.cache/toolbox", strcmp(u.home, "/") == 0 ? "" : u.home) == 0;
}

/* Why a directory can't be trusted; NULL when it can. */
static const char *fault(const struct stat *st)
{
    if (st->st_uid != geteuid())
        return "belongs to another user";
    if ((st->st_mode & 07777) != 0700)
        return "has a mode other than 0700";
    return NULL;
}

int place_enter(struct place *p, const char *path, bool create, struct err *err)
{
    *p = (struct place)PLACE_INIT;
    char *plain MEM_AUTO = mem_strdup(path);
    for (size_t n = strlen(plain); n > 1 && plain[n - 1] == '/'; n--)
        plain[n - 1] = '\0'; /* a slash at the end would follow a symlink */
    struct stat st;
    int fd = safe_path_open(-1, plain, SAFE_NO_LINK | (create ? SAFE_MAKE : 0), NULL, err);
    const char *why = fd < 0 ? NULL : fstat(fd, &st) < 0 ? err_text(errno) : fault(&st);
    if (why) {
        io_close(&fd);
        err_set(err, ERR_TOOL, "%s: %s", path, why);
        errno = EPERM;
    }
    if (fd < 0)
        return -1;
    p->fd = fd;
    p->path = mem_strdup(plain);
    return 0;
}

/* A directory can be there and nothing be possible in it: a read-only or a full file system. */
static int check_writable(const struct place *p, struct err *err)
{
    char name[32];
    snprintf(name, sizeof name, ".try-%ld", (long)getpid());
    int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return err_sys(err, ERR_TOOL, errno, "%s", p->path);
    unlinkat(p->fd, name, 0);
    io_close(&fd);
    return 0;
}

int place_open(struct place *p, struct err *err)
{
    struct buf path BUF_AUTO = BUF_INIT;
    struct buf tried BUF_AUTO = BUF_INIT;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct err why;
        if (place_enter(p, path.data, true, &why) == 0) {
            if (check_writable(p, &why) == 0)
                return 0;
            place_release(p);
        }
        buf_addf(&tried, "%s%s", tried.len > 0 ? "; " : "", why.msg);
    }
    return err_set(err, ERR_TOOL,
                   "no usable directory for the server's socket and files (%s); name one in TOOLBOX_DIR that "
                   "nobody else can write to, nor to those above it",
                   buf_str(&tried));
}

int place_check_given(struct err *err)
{
    struct place p PLACE_AUTO = PLACE_INIT;
    struct err why;
    struct stat st;
    const char *path = given();
    if (!path || (*path == '/' && lstat(path, &st) < 0 && errno == ENOENT) ||
        place_enter(&p, path, false, &why) == 0)
        return 0;
    return err_set(err, ERR_TOOL, "%s; name another directory in TOOLBOX_DIR", why.msg);
}

/* By descriptor: the name may lead elsewhere by now. What was made has so far what a setgid parent adds to
 * the mode. */
int place_subdir(const struct place *p, const char *name, bool create, struct err *err)
{
    struct stat st;
    mode_t mask = create ? umask(0) : 0; /* usable from the first moment */
    bool made = create && mkdirat(p->fd, name, 0700) == 0;
    if (create)
        umask(mask);
    int fd = io_open_dir(p->fd, name);
    int failed = errno;
    if (fd >= 0 && made)
        fchmod(fd, 0700);
    bool link = fd < 0 && fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    const char *why = link                  ? "is a symlink"
                      : fd < 0              ? err_text(failed)
                      : fstat(fd, &st) == 0 ? fault(&st)
                                            : err_text(errno);
    if (!why)
        return fd;
    failed = fd < 0 ? failed : EPERM;
    io_close(&fd);
    err_set(err, ERR_TOOL, "%s/%s: %s", p->path, name, why);
    errno = failed;
    return -1;
}

void place_release(struct place *p)
{
    io_close(&p->fd);
    free(p->path);
    *p = (struct place)PLACE_INIT;
}
