/* Calls that fail on demand, for `make faults` (run.py says how it is used).
 *
 * The linker leads every call of a function in calls.def here (--wrap). A call site is the address that the
 * call returns to. All processes of a run share a file, named by TOOLBOX_FAULTS: it counts how often each
 * site was reached, and names the one call, of all of them, that is to fail. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SITES = 8192, SHORT = -1 };

struct board {
    uint64_t site; /* that is to fail; 0: none */
    uint32_t at;   /* at its how manieth call, from 1 */
    int32_t error; /* errno, or SHORT: fewer bytes than asked for */
    uint32_t seen; /* its calls so far */
    uint32_t fired;
    struct {
        uint64_t address;
        uint32_t count;
        uint32_t unused;
    } sites[SITES]; /* a hash table */
};

static struct board *board;

static void count(uint64_t address)
{
    for (uint64_t i = address * 0x9E3779B97F4A7C15u >> 32;; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&board->sites[i % SITES].address, &none, address, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            none == address) {
            __atomic_add_fetch(&board->sites[i % SITES].count, 1, __ATOMIC_RELAXED);
            return;
        }
    }
}

/* 0: the call is made as it is. */
static int fault(const void *back)
{
    uint64_t address = (uint64_t)(uintptr_t)back;
    if (!board)
        return 0;
    count(address);
    if (address != board->site || __atomic_add_fetch(&board->seen, 1, __ATOMIC_RELAXED) != board->at)
        return 0;
    __atomic_store_n(&board->fired, 1, __ATOMIC_RELAXED);
    return board->error;
}

int __real_fstat(int fd, void *st);

/* A pipe is never full for good, and only files have a disk that fails. 0: what can't happen to this one. */
static int fitting(int error, int fd)
{
    struct stat st;
    if ((error != ENOSPC && error != EIO) || __real_fstat(fd, &st) < 0 || S_ISREG(st.st_mode))
        return error;
    return error == ENOSPC && S_ISFIFO(st.st_mode) ? ENOMEM : 0;
}

#define JOIN(a, b) a##b
#define REAL(name) JOIN(__real_, name)
#define WRAP(name) JOIN(__wrap_, name)

#define CALL(type, name, failure, parameters, arguments)                                                     \
    type REAL(name) parameters;                                                                              \
    type WRAP(name) parameters;                                                                              \
    type WRAP(name) parameters                                                                               \
    {                                                                                                        \
        int error = fault(__builtin_return_address(0));                                                      \
        if (error > 0) {                                                                                     \
            errno = error;                                                                                   \
            return failure;                                                                                  \
        }                                                                                                    \
        return REAL(name) arguments;                                                                         \
    }
#define MOVES(type, name, parameters, arguments)                                                             \
    type REAL(name) parameters;                                                                              \
    type WRAP(name) parameters;                                                                              \
    type WRAP(name) parameters                                                                               \
    {                                                                                                        \
        int error = fitting(fault(__builtin_return_address(0)), fd);                                         \
        if (error > 0) {                                                                                     \
            errno = error;                                                                                   \
            return -1;                                                                                       \
        }                                                                                                    \
        if (error == SHORT && n > 1)                                                                         \
            n = n / 2;                                                                                       \
        return REAL(name) arguments;                                                                         \
    }
#include "calls.def"

/* Its bytes are in parts: of those only the first, or half of a single one, go. */
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    int error = fault(__builtin_return_address(0));
    if (error > 0) {
        errno = error;
        return -1;
    }
    struct msghdr less = *m;
    struct iovec half = m->msg_iov[0];
    if (error != SHORT)
        return __real_sendmsg(fd, m, flags);
    half.iov_len = (half.iov_len + 1) / 2;
    less.msg_iov = &half;
    less.msg_iovlen = 1;
    return __real_sendmsg(fd, &less, flags);
}

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("TOOLBOX_FAULTS");
    int fd = path ? __real_open(path, O_RDWR | O_CLOEXEC, 0) : -1;
    void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        board = shared;
    if (fd >= 0)
        close(fd);
}
