#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "confine.h"
#include "io.h"
#include "mark.h"
#include "mem.h"
#include "user.h"

static const char DEFAULT_PATH[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#define CHILD_STACK 65536
#define START_MS                                                                                             \
    10000 /* to become the user and to run the program: from then on the user may stop the child */

/* What comes through the close-on-exec pipe: whether the child's pid will do; if so, a byte (its index) for
 * each program that the child is about to try; and last, only when nothing could be run, a struct err. */
enum verdict { ACCEPTED = 'a', REFUSED = 'r', NONE_WILL_DO = 'n' };

/* Where it can, the child shares our memory until it runs a program or ends, and we sleep meanwhile: nothing
 * has to be copied for it. So it allocates nothing, and changes nothing that is ours. What it has to say
 * comes through the pipe in any case; emulators make copies only. */
struct birth {
    const struct spawn *spawn;
    bool shared;
    unsigned refused; /* children before this one */
    int report_fd;
};

static const long long *limits;
static size_t n_limits;

void spawn_set_limits(const long long *list, size_t n)
{
    limits = list;
    n_limits = n;
}

/* In the child. Best effort: a privilege to raise them may be gone. RLIMIT_RTTIME is the mark's. */
static void enter_limits(void)
{
    for (size_t i = 0; i + 2 < n_limits; i += 3) {
        struct rlimit now, want = {(rlim_t)limits[i + 1], (rlim_t)limits[i + 2]};
        int which = (int)limits[i];
        if (which == RLIMIT_RTTIME || setrlimit(which, &want) == 0 || getrlimit(which, &now) < 0)
            continue;
        want.rlim_max = want.rlim_max < now.rlim_max ? want.rlim_max : now.rlim_max;
        want.rlim_cur = want.rlim_cur < want.rlim_max ? want.rlim_cur : want.rlim_max;
        setrlimit(which, &want);
    }
}

static bool signals_known;
static bool always_default[NSIG]; /* where signals_known */

void spawn_know_signals(void)
{
    static const int others[] = {SIGHUP, SIGINT, SIGTERM, SIGCHLD, SIGPIPE, SIGTTOU, SIGXFSZ};
    struct sigaction old;
    for (int s = 1; s < NSIG && !signals_known; s++)
        always_default[s] = sigaction(s, NULL, &old) == 0 && old.sa_handler == SIG_DFL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        always_default[others[i]] = false;
    signals_known = true;
}

/* Before any is let through: a handler would run in our memory. By the kernel's own call: C libraries keep
 * some signals to themselves, and glibc's posix_spawn hands those on ignored. All zero is the default in the
 * kernel's structure, whatever its members. */
void spawn_reset_signals(void)
{
    static const unsigned long defaults[8];
    for (int s = 1; s < NSIG; s++)
        if (!always_default[s])
            syscall(SYS_rt_sigaction, s, defaults, NULL, NSIG / 8);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A child that becomes another user has memory of its own: nothing of that user's is to have a part in ours.
 * So has one that can't write its oom_score_adj as long as it is not dumpable, which is a property of the
 * memory. So has one that is confined, for which a namespace of users is only where nobody shares its memory.
 */
static bool may_share(const struct spawn *s)
{
    return !s->user && !s->confine && (!s->victim || geteuid() == 0);
}

/* Before the user is switched: afterwards only raising it is allowed, and not everywhere. Best effort. */
static void offer_as_victim(void)
{
    int fd FD_AUTO = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "1000", 4) < 0) {
        /* no such file, or not ours to write: the child is as likely a victim as anybody */
    }
}

static int enter_directory(const struct spawn *s, struct err *err)
{
    struct stat st;
    bool there =
        s->start_dir >= 0 && fstat(s->start_dir, &st) == 0 && st.st_nlink > 0 && fchdir(s->start_dir) == 0;
    if (!there && (s->start_dir >= 0 || !s->cwd) && chdir("/") < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot use directory '/'");
    if (s->cwd && chdir(s->cwd) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot use directory '%s'", s->cwd);
    return 0;
}

static bool is_in_session(const struct spawn *s)
{
    return s->terminal && tcgetpgrp(s->fds[0]) >= 0;
}

/* In a session that is there, from the background: SIGTTOU, blocked, doesn't stop it. */
static int take_terminal(void)
{
    sigset_t stop, old;
    if (getsid(0) == getpid())
        return ioctl(0, TIOCSCTTY, 0);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    sigprocmask(SIG_BLOCK, &stop, &old);
    int done = tcsetpgrp(0, getpid());
    sigprocmask(SIG_SETMASK, &old, NULL);
    return done;
}

static int set_descriptors(const struct spawn *s, struct err *err)
{
    int fds[3 + SPAWN_MORE_MAX], n = 3 + s->n_more;
    bool all = true;
    for (int i = 0; i < n; i++) {
        int given = i < 3 ? s->fds[i] : s->more[i - 3];
        fds[i] = given >= 0 ? given : openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
        /* Above those that are set first, so that no dup2 below overwrites one that is still needed. */
        if (fds[i] >= 0 && fds[i] < n)
            fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, n);
        if (fds[i] < 0 && given >= 0)
            return err_sys(err, ERR_TOOL, errno, "cannot set up standard descriptors");
    }
    for (int i = 0; i < n; i++) {
        all = all && fds[i] >= 0;
        if (fds[i] < 0)
            close(i);
        else if (dup2(fds[i], i) < 0)
            return err_sys(err, ERR_TOOL, errno, "cannot set up standard descriptors");
    }
    if (!all)
        io_fill_std();
    if (s->terminal && take_terminal() < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot take the terminal");
    return 0;
}

/* execve without PATH games; the kernel's ENOEXEC for a text file without #! stays an error. */
static int run_at(const char *path, const struct spawn *s)
{
    execve(path, s->argv, s->env);
    return errno;
}

/* As execvp looks a name up, in s->path or the PATH of the child's environment: the first that is there and
 * can't be used is remembered, so that "permission denied" isn't told as "not found". */
static int run_by_name(const char *name, const struct spawn *s)
{
    if (strchr(name, '/'))
        return run_at(name, s);
    if (!*name)
        return ENOENT;
    const char *path = s->path ? s->path : spawn_env_get(s->env, "PATH");
    char file[PATH_MAX];
    int result = ENOENT;
    for (const char *at = path ? path : DEFAULT_PATH;; at++) {
        size_t n = strcspn(at, ":");
        size_t len = (size_t)snprintf(file, sizeof file, "%.*s%s%s", (int)n, at, n > 0 ? "/" : "", name);
        int failed = len < sizeof file ? run_at(file, s) : ENAMETOOLONG;
        if (failed != ENOENT && failed != ENOTDIR && result == ENOENT)
            result = failed;
        at += n;
        if (*at == '\0')
            return result;
    }
}

static const char *why_not_run(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return SPAWN_NOT_FOUND " (or its interpreter or dynamic loader is)";
    case ENOEXEC:
        return "neither a program for this processor nor a script with a #! line";
    case EACCES:
        return "permission denied (not executable, or on a file system mounted noexec)";
    default:
        return err_text(errnum);
    }
}

static int run_first(const struct spawn *s, int report_fd, struct err *err)
{
    char tried[ERR_MSG_MAX] = "";
    size_t used = 0;
    for (char i = 0; s->programs[(int)i]; i++) {
        const char *program = s->programs[(int)i];
        if (write(report_fd, &i, 1) < 0)
            return err_sys(err, ERR_INTERNAL, errno, "cannot report");
        used += (size_t)snprintf(tried + used, sizeof tried - used, "%s%s: %s", i > 0 ? "; " : "", program,
                                 why_not_run(run_by_name(program, s)));
        if (used >= sizeof tried)
            used = sizeof tried - 1;
    }
    return err_set(err, ERR_TOOL, "%s", tried);
}

static enum verdict ask(const struct birth *b, struct err *err)
{
    const struct spawn *s = b->spawn;
    int accepted = s->accept.asked ? s->accept.asked(s->accept.arg, getpid(), b->refused, err) : 1;
    return accepted > 0 ? ACCEPTED : accepted == 0 ? REFUSED : NONE_WILL_DO;
}

/* As whoever we are: the files of a pid that is accepted are ours. */
static int child(void *arg)
{
    const struct birth *b = arg;
    const struct spawn *s = b->spawn;
    struct err err = {0};
    int report = b->report_fd;
    if (s->n_more > 0) /* out of the way of what is given */
        report = fcntl(report, F_DUPFD_CLOEXEC, 3 + s->n_more);
    if (is_in_session(s))
        setpgid(0, 0);
    else
        setsid();
    mark_started();
    spawn_reset_signals();
    char verdict = (char)ask(b, &err);
    if (write(report, &verdict, 1) == 1 && verdict == ACCEPTED) {
        if (!b->shared)
            prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        if (s->victim)
            offer_as_victim();
        if (s->umask.given)
            umask(s->umask.value);
        enter_limits();
        if ((!s->confine || s->confine->begin(s->confine, &err) == 0) && set_descriptors(s, &err) == 0 &&
            (!s->user || user_become(s->user, &err) == 0) && enter_directory(s, &err) == 0) {
            int keep[1 + SPAWN_MORE_MAX] = {report, 3, 4};
            io_close_others(keep, 1 + (size_t)s->n_more);
            if (!s->confine || s->confine->enter(s->confine, &err) == 0)
                run_first(s, report, &err);
        }
    }
    if (verdict != REFUSED)
        io_write_all(report, &err, sizeof err);
    return 127;
}

/* A program takes its place without leaving the functions that it is in: what the address sanitizer has
 * marked of their variables there is not true of the next child's. */
#ifdef __SANITIZE_ADDRESS__
void __asan_unpoison_memory_region(const volatile void *address, size_t n);
#else
#define __asan_unpoison_memory_region(address, n) ((void)(address))
#endif

/* Without signals: a handler would run in our memory. */
static pid_t make_child(struct birth *b, struct err *err)
{
    static MEM_LARGE char stack[CHILD_STACK] __attribute__((aligned(16)));
    sigset_t all, old;
    __asan_unpoison_memory_region(stack, sizeof stack);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = clone(child, stack + CHILD_STACK, (b->shared ? CLONE_VM | CLONE_VFORK : 0) | SIGCHLD, b);
    if (pid < 0)
        err_sys(err, ERR_TOOL, errno, "cannot start a program");
    sigprocmask(SIG_SETMASK, &old, NULL);
    return pid;
}

/* What the child has reported: its pid, 0 when that was refused, -1. */
static pid_t read_report(const struct spawn *s, pid_t pid, int report_fd, int *program, struct err *err)
{
    struct buf report BUF_AUTO = BUF_INIT;
    bool late = io_read_within(report_fd, START_MS, &report) < 0 && errno == ETIMEDOUT;
    if (late)
        kill(pid, SIGKILL);
    const char *verdict = buf_str(&report);
    if (*verdict == ACCEPTED && s->accept.pid)
        *s->accept.pid = pid;
    if (!late && *verdict == ACCEPTED && report.len > 1 && report.len < 1 + sizeof *err) {
        if (program)
            *program = (unsigned char)report.data[report.len - 1];
        return pid;
    }
    waitpid(pid, NULL, 0);
    if (late)
        return err_set(
            err, ERR_TOOL,
            "cannot start a program: the new process had not begun it within %d s (was it stopped?), "
            "and was killed",
            START_MS / 1000);
    if (*verdict == REFUSED)
        return 0;
    if (report.len < 1 + sizeof *err ||
        err_take(err, report.data + report.len - sizeof *err, sizeof *err) < 0)
        return err_set(err, ERR_TOOL, "cannot start a program: the new process was ended at once");
    return -1;
}

/* -1, or 0 when its pid was not accepted. */
static pid_t start_one(const struct spawn *s, unsigned refused, int *program, struct err *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot start a program");
    struct birth b = {s, may_share(s), refused, report[1]};
    pid_t pid = make_child(&b, err);
    close(report[1]);
    if (pid > 0)
        pid = read_report(s, pid, report[0], program, err);
    close(report[0]);
    return pid;
}

pid_t spawn(const struct spawn *s, int *program, struct err *err)
{
    pid_t pid;
    for (unsigned refused = 0; (pid = start_one(s, refused, program, err)) == 0; refused++)
        ;
    return pid;
}

static bool is_private(const char *entry)
{
    static const char *const prefixes[] = {"TOOLBOX_", "INSPECT_SANDBOX_"};
    static const char *const names[] = {"INSPECT_MCP_READLINE_LIMIT_BYTES="};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* An entry and how much it counts against others of its name. */
struct entry {
    char *text;
    long weight;
};

static int compare_names(const char *a, const char *b)
{
    for (; *a == *b && *a && *a != '='; a++)
        b++;
    return (*a == '=' ? 0 : (unsigned char)*a) - (*b == '=' ? 0 : (unsigned char)*b);
}

static int by_name_and_weight(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;
    int names = compare_names(a->text, b->text);
    return names != 0 ? names : (b->weight > a->weight) - (b->weight < a->weight);
}

/* As getenv has it, the first of several in `base` counts; what is laid over it counts more, and the last
 * most. */
static size_t gather(struct entry *all, char *const *base, char *const *extra, const struct user *user)
{
    size_t n = 0;
    for (size_t i = 0; base && base[i]; i++)
        if (!is_private(base[i]))
            all[n++] = (struct entry){mem_strdup(base[i]), -1 - (long)i};
    if (user && !user_is_self(user)) {
        const char *name = user->name ? user->name : "";
        all[n++] = (struct entry){mem_printf("HOME=%s", user->home), 0};
        all[n++] = (struct entry){mem_printf("USER=%s", name), 0};
        all[n++] = (struct entry){mem_printf("LOGNAME=%s", name), 0};
        all[n++] = (struct entry){mem_printf("SHELL=%s", *user->shell ? user->shell : "/bin/sh"), 0};
    }
    for (size_t i = 0; extra && extra[i]; i++)
        all[n++] = (struct entry){mem_strdup(extra[i]), 1 + (long)i};
    return n;
}

static size_t length(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

char **spawn_env(char *const *base, char *const *extra, const struct user *user)
{
    struct entry *all MEM_AUTO = mem_alloc((length(base) + length(extra) + 4) * sizeof *all);
    size_t n = gather(all, base, extra, user), kept = 0;
    qsort(all, n, sizeof *all, by_name_and_weight);
    char **env = mem_alloc((n + 1) * sizeof *env);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && compare_names(env[kept - 1], all[i].text) == 0)
            free(all[i].text);
        else
            env[kept++] = all[i].text;
    }
    env[kept] = NULL;
    return env;
}

void spawn_env_free(char **env)
{
    for (char **at = env; at && *at; at++)
        free(*at);
    free(env);
}

const char *spawn_env_get(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}
