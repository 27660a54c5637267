/* For unit tests: checks in a child process, private directories, and kernels that refuse what they could do.
 *
 * A check runs in a child where it changes what can't be changed back: user, root directory, limits, signals,
 * standard descriptors. It says CHECK(…) instead of cmocka's assertions, which belong to the parent, and
 * cannot(…) where this machine or user doesn't allow to try it at all. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000 /* only what hangs takes that long */
#define STRANGER 54321    /* a uid that no machine gives to anybody */
#define CANNOT 77

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

static inline _Noreturn void cannot(const char *reason)
{
    fprintf(stderr, "# skipped: %s\n", reason);
    _exit(CANNOT);
}

static inline void skip_because(const char *reason)
{
    print_message("# skipped: %s\n", reason);
    skip();
}

/* Waits for a child that runs a check: its failure is the test's, what it can't do is skipped. */
static inline void wait_for_check(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    assert_int_equal(status, 0);
}

static inline void in_child(void (*check)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE_MS / 1000);
        check(arg);
        _exit(0);
    }
    wait_for_check(pid);
}

/* ---- directories ---- */

static inline void make_dir(char path[64])
{
    snprintf(path, 64, "/tmp/toolbox-unit.XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline void remove_dir(const char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A private directory that others may enter, to work in: for a test's set-up and tear-down. */
static inline int enter_dir(char path[64])
{
    umask(022);
    make_dir(path);
    return chmod(path, 0755) + chdir(path);
}

static inline int leave_dir(const char *path)
{
    assert_int_equal(chdir("/"), 0);
    remove_dir(path);
    return 0;
}

/* The set-up and tear-down of tests that work in such a directory and need nothing else. */
static char work_dir[64];

static inline int enter_work_dir(void **state)
{
    (void)state;
    return enter_dir(work_dir);
}

static inline int leave_work_dir(void **state)
{
    (void)state;
    return leave_dir(work_dir);
}

/* The same numbers in every run. */
static inline unsigned random_below(unsigned n)
{
    static unsigned long long seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

/* Peak of the memory that is really there, in KiB. What the sanitizers keep back makes it useless. */
static inline long peak_memory(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

static inline void not_sanitized(void)
{
    if (SANITIZED) {
        skip_because("the sanitizers have their own way with memory");
    }
}

/* Which needs memory and descriptors of its own where a test sets a limit. */
static inline void not_under_valgrind(void)
{
    if (getenv("RUNNER")) {
        skip_because("valgrind doesn't bear the limit");
    }
}

static inline unsigned open_descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- other users, and machines that lack things; in a check ---- */

static inline void become_stranger(void)
{
    if (geteuid() != 0)
        cannot("only root can become somebody else");
    CHECK(setgroups(0, NULL) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0);
}

static inline void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        cannot("no user namespace");
    close(fd);
}

/* As the same user, but one who may mount there. */
static inline void own_users(int more)
{
    char map[40];
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWUSER | more) < 0)
        cannot("no user namespace");
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    write_text("/proc/self/gid_map", map);
}

static inline void own_mounts(void)
{
    if (unshare(CLONE_NEWNS) < 0)
        own_users(CLONE_NEWNS);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        cannot("no private mounts");
}

static inline void hide_proc(void)
{
    own_mounts();
    if (mount("none", "/proc", "tmpfs", 0, NULL) < 0)
        cannot("/proc can't be hidden");
}

static inline void enter_root(const char *dir)
{
    if (chroot(dir) < 0 && (unshare(CLONE_NEWUSER) < 0 || chroot(dir) < 0))
        cannot("no other root directory");
    CHECK(chdir("/") == 0);
}

/* From here on the kernel answers that system call as an old one or a container's filter does. With
 * `argument` the second one (an ioctl's request) has to be that. */
static inline void filter_call(long number, const unsigned *argument, unsigned answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | (argument ? BPF_JEQ : BPF_JGE) | BPF_K, argument ? *argument : 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        cannot("no system call filter");
}

static inline void refuse_call(long number, int error)
{
    filter_call(number, NULL, SECCOMP_RET_ERRNO | (unsigned)error);
}

static inline void refuse_ioctl(unsigned request, int error)
{
    filter_call(SYS_ioctl, &request, SECCOMP_RET_ERRNO | (unsigned)error);
}

/* A machine whose device nodes nobody has made. */
static inline void hide_dev(void)
{
    own_mounts();
    if (mount("none", "/dev", "tmpfs", 0, NULL) < 0)
        cannot("/dev can't be hidden");
}

#endif
