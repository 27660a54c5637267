/* The directory in which processes meet, with files of any names in it: owners are only those that a socket
 * of ours can have, and what is ours is cleared away, nothing else.
 *
 * The input is names, each behind a byte that says what is put behind it (our ending, another build's, none),
 * in front of it (a dot, a pooled socket's name) and what it is (a file, a socket, a link, a FIFO). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "socket_pool.h"
#include "tools/exec_remote/job_stored.h"
#include "ipc.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OURS = 1, OTHERS = 2, HIDDEN = 4, POOLED = 8, NAME_MAX_BYTES = 255 };

static void put(const char *name, unsigned kind)
{
    if (kind == 0)
        scratch_put(scratch_fd, name, "x", 1, 0);
    else if (kind == 1)
        mknodat(scratch_fd, name, S_IFSOCK | 0600, 0);
    else if (kind == 2)
        symlinkat("nowhere", scratch_fd, name);
    else
        mkfifoat(scratch_fd, name, 0600);
}

static void make(const char *ending, uint8_t how, const uint8_t *at, size_t n)
{
    char name[NAME_MAX_BYTES + 1 + 2 * IPC_NAME_MAX];
    char given[NAME_MAX_BYTES + 1] = "", other[IPC_NAME_MAX];
    memcpy(given, at, n);
    snprintf(other, sizeof other, "%s", ending);
    for (char *digit = other + 1; (how & OTHERS) && *digit && *digit != '.'; digit++)
        *digit = '0';
    int len = snprintf(name, sizeof name, "%s%s%s%s", how & HIDDEN ? "." : "", how & POOLED ? "Pool-" : "",
                       given, how & (OURS | OTHERS) ? other : "");
    if (len > 0 && len <= NAME_MAX_BYTES && !strchr(name, '/'))
        put(name, how / 16 % 4);
}

static void check_owner(void *arg, const char *owner)
{
    char name[IPC_NAME_MAX];
    assert(ipc_name(name, owner) == 0 && ipc_exists(scratch_fd, owner));
    int fd = ipc_connect(scratch_fd, owner, 0);
    assert(fd < 0); /* nobody listens */
    ++*(int *)arg;
}

static void check_file(void *arg, const char *name)
{
    struct stat st;
    assert(fstatat(scratch_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
    ++*(int *)arg;
}

static void check_record(void *arg, pid_t pid, const struct record_job *job, const struct record_end *end)
{
    (void)arg, (void)pid, (void)job, (void)end;
    abort(); /* a record of nothing */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char ours[IPC_NAME_MAX];
    int before = 0, after = 0, others = 0, still = 0;
    if (size > 512)
        return 0;
    scratch_make();
    assert(ipc_name(ours, "x") == 0);
    while (size >= 2) {
        size_t n = data[1] < size - 2 ? data[1] : size - 2;
        make(ours + 1, data[0], data + 2, n);
        data += 2 + n;
        size -= 2 + n;
    }
    ipc_each(scratch_fd, check_owner, &before);
    ipc_each_file(scratch_fd, ".", check_file, &before);
    ipc_each_other(scratch_fd, check_file, &others);
    record_each(scratch_fd, check_record, NULL);
    record_sweep(scratch_fd);
    socket_pool_clear(scratch_fd);
    ipc_clear(scratch_fd);
    ipc_each(scratch_fd, check_owner, &after);
    ipc_each_file(scratch_fd, ".", check_file, &after);
    ipc_each_other(scratch_fd, check_file, &still);
    assert(after == 0 && still == others);
    dir_empty(dup(scratch_fd), 0);
    return 0;
}
