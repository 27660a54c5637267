/* What is needed of processes, the kernel and /proc. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "io.h"
#include "mark.h"
#include "mem.h"
#include "memory_share.h"
#include "proc.h"
#include "random.h"
#include "relocate.h"
#include "self.h"
#include "spawn.h"
#include "user.h"

#define PROCESSES 8 /* server, keeper, shell, and a pipe of programs in it */
#define DESCRIPTORS 64
#define FREE_LEAST (16u << 20)
#define SOME_DATE 1735689600 /* 2025: no clock that is right says less */

/* A child that waits for its end, which comes with this process's at the latest; or -1. */
static pid_t make_child(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) /* it may have ended before */
            pause();
        _exit(0);
    }
    return pid;
}

static int end_child(pid_t pid)
{
    int status = 0;
    if (kill(pid, SIGKILL) < 0)
        return -1;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? 0 : -1;
}

static int try_processes(struct err *err)
{
    pid_t pids[PROCESSES];
    int n = 0;
    while (n < PROCESSES && (pids[n] = make_child()) > 0)
        n++;
    int failed = errno;
    for (int i = 0; i < n; i++)
        end_child(pids[i]);
    return n == PROCESSES ? 0
                          : err_sys(err, ERR_TOOL, failed, "no more than %d processes can be started", n + 1);
}

int doctor_run_program(const char *path, char *const *argv, struct err *err)
{
    const char *programs[] = {path, NULL};
    struct spawn how = {
        .programs = programs, .argv = argv, .env = environ, .start_dir = -1, .fds = {-1, -1, -1}};
    int status = 0;
    pid_t pid = spawn(&how, NULL, err);
    if (pid < 0)
        return -1;
    waitpid(pid, &status, 0);
    return status;
}

static int try_program(struct err *err)
{
    char *path MEM_AUTO = self_path();
    char name[] = "toolbox", option[] = "--version", *argv[] = {name, option, NULL};
    int status = doctor_run_program(path ? path : "", argv, err);
    if (status < 0)
        return -1;
    return WIFEXITED(status)
               ? 0
               : err_set(err, ERR_TOOL, "this program, started once more, is ended by signal %d",
                         WTERMSIG(status));
}

static int try_kill(struct err *err)
{
    pid_t pid = make_child();
    return pid > 0 && end_child(pid) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "cannot end a child");
}

static int try_descriptors(struct err *err)
{
    for (int i = 0; i < DESCRIPTORS; i++)
        if (fcntl(0, F_DUPFD_CLOEXEC, 3) < 0)
            return err_sys(err, ERR_TOOL, errno, "no more than %d descriptors can be opened", i);
    return 0;
}

static int try_memory(struct err *err)
{
    struct memory_share share = {0};
    size_t unused = 10 * memory_share(&share, FREE_LEAST / 10, FREE_LEAST);
    char *bytes MEM_AUTO = unused < FREE_LEAST ? NULL : malloc(FREE_LEAST);
    /* MEM_AUTO frees it. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    return bytes ? 0
                 : err_set(err, ERR_TOOL, "less than %u MiB are free under the limits that hold here",
                           FREE_LEAST >> 20);
}

static int try_random(struct err *err)
{
    char bytes[16];
    return random_bytes(bytes, sizeof bytes) == 0 ? 0 : err_sys(err, ERR_TOOL, errno, "no random bytes");
}

static int try_clock(struct err *err)
{
    long long began = now_us();
    poll(NULL, 0, 2);
    return now_us() > began ? 0 : err_set(err, ERR_TOOL, "the monotonic clock stands still");
}

static int try_date(struct err *err)
{
    time_t now = time(NULL);
    return now >= SOME_DATE ? 0 : err_set(err, ERR_TOOL, "the clock says %lld s since 1970", (long long)now);
}

static int try_events(struct err *err)
{
    int ends[2], fd FD_AUTO = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    bool fine = fd >= 0 && pipe2(ends, O_CLOEXEC) == 0 &&
                epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event) == 0 && write(ends[1], "", 1) == 1 &&
                epoll_wait(fd, &event, 1, 1000) == 1;
    return fine ? 0 : err_sys(err, ERR_TOOL, errno, "epoll");
}

static int try_subreaper(struct err *err)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
               ? 0
               : err_sys(err, ERR_TOOL, errno, "prctl(PR_SET_CHILD_SUBREAPER)");
}

static int try_pidfd(struct err *err)
{
#ifdef SYS_pidfd_open
    int fd FD_AUTO = (int)syscall(SYS_pidfd_open, getpid(), 0);
#else
    int fd = -1;
    errno = ENOSYS;
#endif
    return fd >= 0 ? 0 : err_sys(err, ERR_TOOL, errno, "pidfd_open");
}

static int try_mark(struct err *err)
{
    int root FD_AUTO = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    mark_keeper(mark_of(root));
    return mark_is_seen() && proc_is_ours()
               ? 0
               : err_set(err, ERR_TOOL, "neither RLIMIT_RTTIME nor RLIMIT_RSS can be set and seen in /proc");
}

static int try_proc(struct err *err)
{
    return proc_is_ours() ? 0
                          : err_set(err, ERR_TOOL, "/proc is not that of this pid namespace, or not mounted");
}

static int try_others(struct err *err)
{
    struct proc p;
    bool there = kill(1, 0) == 0 || errno == EPERM;
    return !there || proc_read(1, &p) == 0 ? 0 : err_set(err, ERR_TOOL, "/proc/1 cannot be read (hidepid?)");
}

static int try_waiting(struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char *path MEM_AUTO = NULL;
    pid_t pid = make_child();
    if (pid < 0)
        return err_sys(err, ERR_TOOL, errno, "fork");
    path = mem_printf("/proc/%ld/syscall", (long)pid);
    int failed = io_read_file(AT_FDCWD, path, &text) < 0 ? errno : 0;
    end_child(pid);
    return failed ? err_sys(err, ERR_TOOL, failed, "/proc/PID/syscall") : 0;
}

static int try_self(struct err *err)
{
    int fd FD_AUTO = self_open();
    return fd >= 0 ? 0 : err_sys(err, ERR_TOOL, errno, "the program's own file cannot be read");
}

static int try_code(struct err *err)
{
    return code_unpack(CODE_browser, err);
}

static int try_users(struct err *err)
{
    struct user nobody;
    if (geteuid() != 0)
        return 0; /* who isn't root becomes nobody else anywhere */
    user_of_uid(&nobody, 65534);
    int result = user_become(&nobody, err);
    user_release(&nobody);
    return result;
}

const struct check doctor_kernel_checks[] = {
    {"processes", "all", try_processes, NULL,
     "raise what limits them (pids.max of the control group, ulimit -u of the user)"},
    {"programs", "all", try_program, NULL,
     "put the program where it may be executed (not noexec), and let it call execve and clone"},
    {"end of processes", "all", try_kill, NULL, "let it call kill and wait4 (seccomp, an LSM)"},
    {"descriptors", "all", try_descriptors, NULL, "ulimit -n 1024"},
    {"memory", "all", try_memory, "less output is kept; the kernel may kill what is started",
     "raise memory.max of the control group, ulimit -v"},
    {"random bytes", "bash_session", try_random, NULL,
     "let it call getrandom, or mknod -m 666 /dev/urandom c 1 9"},
    {"clock", "all", try_clock, NULL, "take away what stops time (faketime)"},
    {"date", "release, upgrade", try_date, "certificates are taken for not valid yet", "set the clock"},
    {"event loop", "all", try_events, NULL, "let it call epoll_create1, epoll_ctl and epoll_pwait"},
    {"subreaper", "all", try_subreaper, "what forks twice outlives its session or job",
     "a kernel from 3.4 on, and let it call prctl"},
    {"pidfd", "all", try_pidfd, "processes are signalled by number, after a second look",
     "a kernel from 5.3 on, and let it call pidfd_open"},
    {"mark", "all", try_mark, "what outlives a killed server and its keeper is not found",
     "let it set RLIMIT_RTTIME or RLIMIT_RSS, and mount proc at /proc"},
    {"/proc", "all", try_proc,
     "grandchildren are found only once they are orphans, and a pause tells a prompt",
     "mount -t proc proc /proc"},
    {"processes of others", "all", try_others, "what outlives a killed server is not found",
     "mount /proc without hidepid"},
    {"what a program waits for", "bash_session", try_waiting,
     "a shell's prompt is told by the shell, other programs are waited for by time",
     "mount proc of this kernel at /proc, without what hides parts of it"},
    {"own file", "mcp, inject", try_self, "this binary cannot be verified or passed on",
     "make it readable, mount proc at /proc"},
    {"code in memory", "all", try_code, NULL,
     "let it call mprotect or memfd_create (systemd's MemoryDenyWriteExecute, an LSM)"},
    {"other users", "bash_session, exec_remote, text_editor, mcp", try_users, "run_as is refused",
     "give it CAP_SETUID and CAP_SETGID"},
    {0},
};
