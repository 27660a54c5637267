/* The C library makes all threads of a process somebody else, one after the other. Here there is but one. */
#include <grp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Where the first calls of these names knew ids of 16 bits. */
#ifdef SYS_setresuid32
#define SET_USER SYS_setresuid32
#define SET_GROUP SYS_setresgid32
#define SET_GROUPS SYS_setgroups32
#else
#define SET_USER SYS_setresuid
#define SET_GROUP SYS_setresgid
#define SET_GROUPS SYS_setgroups
#endif

int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    return (int)syscall(SET_USER, real, effective, saved);
}

int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    return (int)syscall(SET_GROUP, real, effective, saved);
}

int setgroups(size_t n, const gid_t *groups)
{
    return (int)syscall(SET_GROUPS, n, groups);
}

/* Nor other limits. */
int setrlimit(int of, const struct rlimit *limit)
{
    return prlimit(0, of, limit, NULL);
}
