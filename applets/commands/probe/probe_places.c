/* Whether a file can be written to a directory and executed there, by doing it.
 *
 * The file is no program: where execution is allowed the kernel answers ENOEXEC, where it is not EACCES,
 * before anything of this process has changed, so that nothing has to be forked or started. It is executed by
 * descriptor, not by name: in a directory that others may write to as well, the name could lead to a file of
 * theirs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "io.h"
#include "probe_controller.h"

static const char not_a_program[] = "this is no program\n";

/* execve needs a descriptor that does not write, of the very file that was made. Its name is gone when this
 * returns. */
static int make_file(int dirfd)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    char name[64];
    snprintf(name, sizeof name, ".toolbox-try-%lx-%lx", (unsigned long)getpid(), (unsigned long)now.tv_nsec);
    int writer FD_AUTO = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (writer < 0) {
        int failed = errno;
        if (failed == EMFILE) /* gVisor has made it all the same */
            unlinkat(dirfd, name, 0);
        errno = failed;
        return -1;
    }
    int failed = fchmod(writer, 0700) < 0 || io_write_all(writer, not_a_program, sizeof not_a_program - 1) < 0
                     ? errno
                     : 0;
    int reader = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (!failed && reader < 0)
        failed = errno;
    struct stat made, opened;
    if (!failed && (fstat(writer, &made) < 0 || fstat(reader, &opened) < 0 || made.st_dev != opened.st_dev ||
                    made.st_ino != opened.st_ino))
        failed = EBUSY; /* somebody put another one in its place */
    unlinkat(dirfd, name, 0);
    if (failed) {
        io_close(&reader);
        errno = failed;
    }
    return reader;
}

static const char *refusal_to_execute(int fd)
{
    char name[] = "", *const argv[] = {name, NULL}, *const envp[] = {NULL};
    fexecve(fd, argv, envp);
    if (errno == ENOEXEC)
        return NULL;
    bool denied = errno == EACCES;
    struct statvfs fs;
    if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOEXEC)
        return "mounted noexec";
    /* Anything else is about the system call, which old kernels and filters don't have. */
    return denied ? "execution is denied" : NULL;
}

static const char *try_directory(const char *directory)
{
    int dirfd FD_AUTO = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return err_text(errno);
    int fd FD_AUTO = make_file(dirfd);
    return fd < 0 ? err_text(errno) : refusal_to_execute(fd);
}

const char *probe_try_place(const char *directory)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const char *refusal = try_directory(directory);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return refusal;
}
