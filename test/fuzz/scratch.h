/* A directory of its own for a fuzzer's target whose input becomes files, in memory where that can be had. */
#ifndef FUZZ_SCRATCH_H
#define FUZZ_SCRATCH_H

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dir_empty.h"

static char scratch[64];
static int scratch_fd = -1;

static void scratch_remove(void)
{
    dir_empty(dup(scratch_fd), 0);
    rmdir(scratch);
}

/* Makes it at the first call; removed at the end. It is where this user's files are (place.h) as well. */
static inline void scratch_make(void)
{
    if (scratch_fd >= 0)
        return;
    snprintf(scratch, sizeof scratch, "%s/fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert(mkdtemp(scratch));
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(scratch_fd >= 0);
    setenv("TOOLBOX_DIR", scratch, 1);
    atexit(scratch_remove);
}

/* A file of these bytes at an offset of it; false where there can be none of that name: a link is not
 * followed, a FIFO that nobody reads not waited for. */
static inline bool scratch_put(int dirfd, const char *name, const void *data, size_t n, off_t at)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    assert(pwrite(fd, data, n, at) == (ssize_t)n);
    close(fd);
    return true;
}

#endif
