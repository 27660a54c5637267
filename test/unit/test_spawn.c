/* The program that is started is most often this one itself, which then tells what it finds. */
#include "support.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "buf.h"
#include "io.h"
#include "loop.h"
#include "mem.h"
#include "pty.h"
#include "spawn.h"
#include "user.h"

static char self[4096];

/* ---- what is started ---- */

static void tell_file(const char *label, const char *path, const char *from)
{
    struct buf text BUF_AUTO = BUF_INIT;
    io_read_file(AT_FDCWD, path, &text);
    const char *at = from ? strstr(buf_str(&text), from) : buf_str(&text);
    at = at ? at + (from ? strlen(from) : 0) : "?\n";
    at += strspn(at, " \t");
    printf("%s=%.*s;", label, (int)strcspn(at, "\n"), at);
}

static void tell_descriptors(void)
{
    printf("fds=");
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d,", fd);
    printf(";cloexec=%d;", fcntl(0, F_GETFD) | fcntl(1, F_GETFD) | fcntl(2, F_GETFD));
}

static void tell_user(void)
{
    uid_t u[3];
    gid_t g[3], groups[16];
    getresuid(&u[0], &u[1], &u[2]);
    getresgid(&g[0], &g[1], &g[2]);
    int n = getgroups(16, groups);
    printf("uid=%u,%u,%u;gid=%u,%u,%u;groups=", u[0], u[1], u[2], g[0], g[1], g[2]);
    for (int i = 0; i < n; i++)
        printf("%u,", groups[i]);
    printf(";");
}

static int tell_everything(void)
{
    char cwd[4096];
    mode_t mask = umask(0);
    tell_descriptors();
    printf("session=%d;group=%d;", getsid(0) == getpid(), getpgrp() == getpid());
    printf("umask=%03o;dumpable=%d;", mask, prctl(PR_GET_DUMPABLE));
    printf("cwd=%s;", getcwd(cwd, sizeof cwd) ? cwd : "?");
    tell_user();
    tell_file("blocked", "/proc/self/status", "SigBlk:");
    tell_file("ignored", "/proc/self/status", "SigIgn:");
    tell_file("victim", "/proc/self/oom_score_adj", NULL);
    printf("foreground=%d;", tcgetpgrp(0) == getpid());
    return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- starting it ---- */

static struct spawn plain(const char *const *programs, char *const *argv)
{
    static char *none[] = {NULL};
    return (struct spawn){
        .programs = programs, .argv = argv, .env = none, .start_dir = -1, .fds = {-1, -1, -1}};
}

static char *const tell_argv[] = {(char *)"tell", (char *)"--child", NULL};

static void spawn_and_wait(const struct spawn *s)
{
    struct err err = {0};
    int status;
    pid_t pid = spawn(s, NULL, &err);
    if (pid < 0)
        fprintf(stderr, "%s\n", err.msg);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* What the child finds, "key=value;" each. */
static void told(struct spawn s, struct buf *text)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    s.fds[1] = ends[1];
    spawn_and_wait(&s);
    close(ends[1]);
    CHECK(io_read_all(ends[0], text) == 0);
    close(ends[0]);
}

static void check_told(const struct buf *text, const char *line)
{
    if (strstr(buf_str(text), line))
        return;
    fprintf(stderr, "no '%s' in %s\n", line, buf_str(text));
    _exit(1);
}

static void write_program(const char *path, const char *text, unsigned mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
    close(fd);
}

/* ---- a clean start ---- */

static void soil_this_process(void)
{
    sigset_t all;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    unsigned long ignore[8] = {(unsigned long)(uintptr_t)SIG_IGN};
    for (int s = 1; s < NSIG; s++) /* also those that the C library keeps to itself */
        syscall(SYS_rt_sigaction, s, ignore, NULL, NSIG / 8);
    signal(SIGCHLD, SIG_DFL);
    for (int fd = 3; fd < 40; fd += 7)
        CHECK(dup2(0, fd) == fd); /* not close-on-exec */
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    umask(0123);
}

static void check_clean_start(void *arg)
{
    int refused = *(int *)arg;
    struct buf text BUF_AUTO = BUF_INIT;
    const char *programs[] = {self, NULL};
    soil_this_process();
    if (refused)
        refuse_call(SYS_close_range, refused);
    CHECK(loop_new(NULL) != NULL);
    told(plain(programs, tell_argv), &text);
    check_told(&text, "fds=0,1,2,;cloexec=0;session=1;group=1;umask=123;dumpable=1;cwd=/;");
    check_told(&text, "blocked=0000000000000000;ignored=0000000000000000;");
}

static void a_child_starts_clean(void **state)
{
    (void)state;
    int refused[] = {0, ENOSYS, EPERM};
    for (int i = 0; i < 3; i++)
        in_child(check_clean_start, &refused[i]);
}

static void check_descriptors(void *arg)
{
    (void)arg;
    int a[2], b[2];
    char text[8] = "";
    const char *programs[] = {"/bin/sh", NULL};
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"read x; echo \"$x\"; echo e >&2", NULL};
    struct spawn s = plain(programs, argv);
    CHECK(pipe2(a, O_CLOEXEC) == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b) == 0);
    CHECK(write(a[1], "o\n", 2) == 2);
    s.fds[0] = a[0];
    s.fds[1] = s.fds[2] = b[1];
    spawn_and_wait(&s);
    CHECK(read(b[0], text, 4) == 4 && memcmp(text, "o\ne\n", 4) == 0);
    /* Now with the standard descriptors themselves, crosswise: 1 is what the child gets as 2, and so on. */
    CHECK(dup2(b[1], 0) == 0 && dup2(a[0], 1) == 1 && dup2(b[1], 2) == 2);
    CHECK(write(a[1], "o\n", 2) == 2);
    s.fds[0] = 1;
    s.fds[1] = 2;
    s.fds[2] = 0;
    spawn_and_wait(&s);
    CHECK(read(b[0], text, 4) == 4 && memcmp(text, "o\ne\n", 4) == 0);
}

static void descriptors_may_be_any(void **state)
{
    (void)state;
    in_child(check_descriptors, NULL);
}

/* Also where their own numbers are those that others are to have, and those of the pipe on which the child
 * reports. */
static void check_more_descriptors(void *arg)
{
    (void)arg;
    int a[2], b[2];
    char text[16] = "";
    const char *programs[] = {"/bin/sh", NULL};
    char *argv[] = {(char *)"sh", (char *)"-c",
                    (char *)"read x <&3; echo \"$x\" >&4; for i in 5 6 7 8 9; do (: <&$i) 2>/dev/null && "
                            "echo $i >&4; done; true",
                    NULL};
    struct spawn s = plain(programs, argv);
    io_close_others(NULL, 0);
    CHECK(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0 && a[0] == 3 && b[1] == 6);
    for (int i = 0; i < 2; i++) {
        int more[] = {i == 0 ? a[0] : 4, i == 0 ? b[1] : 3};
        CHECK(write(i == 0 ? a[1] : 6, "o\n", 2) == 2);
        s.more = more;
        s.n_more = 2;
        spawn_and_wait(&s);
        CHECK(read(i == 0 ? b[0] : 5, text, sizeof text) == 2 && memcmp(text, "o\n", 2) == 0);
        if (i == 0) { /* crosswise: 3 is what the child gets as 4 */
            CHECK(dup2(a[0], 20) == 20 && dup2(a[1], 21) == 21 && dup2(b[0], 22) == 22 &&
                  dup2(b[1], 23) == 23);
            CHECK(dup2(20, 4) == 4 && dup2(21, 6) == 6 && dup2(22, 5) == 5 && dup2(23, 3) == 3);
        }
    }
}

static void more_descriptors_may_be_given(void **state)
{
    (void)state;
    in_child(check_more_descriptors, NULL);
}

static void check_absent_descriptors(void *arg)
{
    const char *programs[] = {"/bin/sh", NULL};
    const char *want_null =
        "test ! -p /dev/stdin && test -c /dev/fd/0 && ! read x && echo lost && echo lost >&2";
    const char *without = "if read x; then exit 1; fi; if (echo lost) 2>&1; then exit 2; fi; exit 0";
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)(arg ? without : want_null), NULL};
    if (arg)
        hide_dev();
    struct spawn s = plain(programs, argv);
    spawn_and_wait(&s);
    struct buf text BUF_AUTO = BUF_INIT;
    programs[0] = self;
    told(plain(programs, tell_argv), &text);
    check_told(&text, "fds=0,1,2,;");
}

/* Where nothing is given, the null device; where there is none, nothing to read and nowhere to write. */
static void absent_descriptors_are_null(void **state)
{
    (void)state;
    in_child(check_absent_descriptors, NULL);
    in_child(check_absent_descriptors, work_dir);
}

/* ---- the program ---- */

static void check_fails(const struct spawn *s, const char *const *words)
{
    struct err err = {0};
    unsigned before = open_descriptors();
    CHECK(spawn(s, NULL, &err) == -1 && err.code == ERR_TOOL);
    for (; *words; words++) {
        if (!strstr(err.msg, *words)) {
            fprintf(stderr, "no '%s' in: %s\n", *words, err.msg);
            _exit(1);
        }
    }
    CHECK(spawn(s, NULL, NULL) == -1); /* nobody wants to know why */
    CHECK(open_descriptors() == before);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* nothing is left of it */
}

#define FAILS(s, ...) check_fails(s, (const char *const[]){__VA_ARGS__, NULL})

static void check_unusable_programs(void *arg)
{
    (void)arg;
    char *argv[] = {(char *)"x", NULL};
    static const char *const cases[][2] = {
        {"./missing", "not found"},      {"./text", "neither a program for this processor nor a script"},
        {"./script", "not found"},       {"./closed", "permission denied"},
        {"./dir", "permission denied"},  {"", "not found"},
        {"./text/x", "Not a directory"}, {"no-such-name", "not found"}};
    write_program("text", "echo hello\n", 0755);
    write_program("script", "#!/no/such/interpreter\n", 0755);
    write_program("closed", "#!/bin/sh\n", 0644);
    CHECK(mkdir("dir", 0755) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *programs[] = {cases[i][0], NULL};
        struct spawn s = plain(programs, argv);
        s.cwd = work_dir;
        FAILS(&s, cases[i][0], cases[i][1]);
    }
    const char *two[] = {"./closed", "./missing", NULL};
    struct spawn s = plain(two, argv);
    s.cwd = work_dir;
    FAILS(&s, "./closed: permission denied", "; ./missing: not found");
    const char *none[] = {NULL};
    s.programs = none;
    CHECK(spawn(&s, NULL, NULL) == -1);
}

static void what_can_not_be_run_is_told(void **state)
{
    (void)state;
    in_child(check_unusable_programs, NULL);
}

static void check_first_program(void *arg)
{
    (void)arg;
    char *argv[] = {(char *)"x", NULL};
    const char *programs[] = {"/no/such", "./script", "/bin/true", "/bin/false", NULL};
    int program = -1, status;
    write_program("script", "#!/no/such/interpreter\n", 0755);
    struct spawn s = plain(programs, argv);
    s.cwd = work_dir;
    pid_t pid = spawn(&s, &program, NULL);
    CHECK(pid > 0 && program == 2 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void the_first_that_runs_is_taken(void **state)
{
    (void)state;
    in_child(check_first_program, NULL);
}

static void check_runs(const char *program, char **env, int want)
{
    char *argv[] = {(char *)"x", NULL};
    const char *programs[] = {program, NULL};
    struct spawn s = plain(programs, argv);
    struct err err = {0};
    int status;
    s.env = env;
    s.cwd = work_dir;
    pid_t pid = spawn(&s, NULL, &err);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == want);
}

static void check_path(void *arg)
{
    (void)arg;
    char *argv[] = {(char *)"x", NULL};
    CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0);
    write_program("a/prog", "#!/bin/sh\nexit 4\n", 0644);
    write_program("b/prog", "#!/bin/sh\nexit 5\n", 0755);
    write_program("prog", "#!/bin/sh\nexit 6\n", 0755);
    setenv("PATH", "/nowhere", 1); /* not this one counts */
    char *both[] = {(char *)"X=1", (char *)"PATH=/no:/bin/sh:a:b", NULL};
    check_runs("prog", both, 5);
    char *only_closed[] = {(char *)"PATH=a:/nowhere", NULL}, *empty[] = {(char *)"PATH=", NULL};
    const char *programs[] = {"prog", NULL};
    struct spawn s = plain(programs, argv);
    s.cwd = work_dir;
    s.env = only_closed;
    FAILS(&s, "prog: permission denied");
    check_runs("prog", empty, 6); /* the working directory, as everywhere */
    char *last[] = {(char *)"PATH=/no:", NULL}, *first[] = {(char *)"PATH=:b", NULL};
    check_runs("prog", last, 6);
    check_runs("prog", first, 6);
    char *none[] = {NULL};
    check_runs("true", none, 0);
    check_runs("b/prog", both, 5);
    struct buf longest BUF_AUTO = BUF_INIT;
    buf_adds(&longest, "PATH=");
    for (int i = 0; i < 2000; i++)
        buf_adds(&longest, "/no/such/directory:");
    buf_adds(&longest, "b");
    char *many[] = {longest.data, NULL};
    check_runs("prog", many, 5);
}

static void a_name_is_looked_for_in_the_childs_path(void **state)
{
    (void)state;
    in_child(check_path, NULL);
}

static void check_too_long(void *arg)
{
    (void)arg;
    char *argument = malloc(300000);
    memset(argument, 'x', 300000);
    argument[299999] = '\0';
    char *argv[] = {(char *)"true", argument, NULL};
    const char *programs[] = {"/bin/true", "true", NULL};
    struct spawn s = plain(programs, argv);
    FAILS(&s, "/bin/true: Argument list too long", "; true: Argument list too long");
    free(argument);
}

static void too_many_arguments_are_told(void **state)
{
    (void)state;
    in_child(check_too_long, NULL);
}

/* ---- directory and user ---- */

static void check_directory(void *arg)
{
    (void)arg;
    struct buf text BUF_AUTO = BUF_INIT;
    const char *programs[] = {self, NULL};
    char want[100];
    struct spawn s = plain(programs, tell_argv);
    CHECK(mkdir("here", 0755) == 0 && mkdir("gone", 0755) == 0);
    s.start_dir = open("here", O_PATH | O_DIRECTORY | O_CLOEXEC);
    told(s, &text);
    snprintf(want, sizeof want, "cwd=%s/here;", work_dir);
    check_told(&text, want);
    buf_truncate(&text, 0);
    s.cwd = work_dir;
    told(s, &text);
    snprintf(want, sizeof want, "cwd=%s;", work_dir);
    check_told(&text, want);
    s.cwd = "/no/such";
    FAILS(&s, "cannot use directory '/no/such'", "No such file");
    s.cwd = self;
    FAILS(&s, "Not a directory");
    buf_truncate(&text, 0);
    s.cwd = NULL;
    s.start_dir = open("gone", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(rmdir("gone") == 0);
    told(s, &text);
    check_told(&text, "cwd=/;");
}

static void the_child_starts_where_it_is_told(void **state)
{
    (void)state;
    in_child(check_directory, NULL);
}

static void check_user(void *arg)
{
    (void)arg;
    struct buf text BUF_AUTO = BUF_INIT;
    const char *programs[] = {"./me", NULL};
    gid_t groups[] = {STRANGER + 1, STRANGER + 2};
    struct user u = {.uid = STRANGER,
                     .gid = STRANGER + 1,
                     .groups = groups,
                     .n_groups = 2,
                     .home = (char *)"/",
                     .shell = (char *)""};
    struct spawn s = plain(programs, tell_argv);
    s.user = &u;
    s.cwd = work_dir;
    s.victim = true;
    if (geteuid() != 0) {
        FAILS(&s, "can't become user '54321'", "not root");
        return;
    }
    struct buf program BUF_AUTO = BUF_INIT;
    CHECK(io_read_file(AT_FDCWD, self, &program) == 0);
    int fd = open("me", O_WRONLY | O_CREAT, 0755);
    CHECK(io_write_all(fd, program.data, program.len) == 0);
    close(fd);
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0); /* as servers and keepers are */
    told(s, &text);
    check_told(&text, "uid=54321,54321,54321;gid=54322,54322,54322;groups=54322,54323,;");
    check_told(&text, "victim=1000;");
    check_told(&text, "dumpable=1;");
    CHECK(mkdir("locked", 0700) == 0);
    s.cwd = "locked";
    FAILS(&s, "cannot use directory 'locked'", "Permission denied"); /* as the user, not as root */
    s.cwd = NULL;
    s.start_dir = open("locked", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *absolute[] = {text.data, NULL};
    buf_truncate(&text, 0);
    buf_addf(&text, "%s/me", work_dir);
    absolute[0] = text.data;
    s.programs = absolute;
    struct buf more BUF_AUTO = BUF_INIT;
    told(s, &more);
    check_told(&more, "cwd=/;");
    u.uid = 0;
    u.gid = 0;
    s.cwd = work_dir;
    become_stranger();
    FAILS(&s, "can't become user '0'", "not root");
}

static void the_child_becomes_the_user(void **state)
{
    (void)state;
    in_child(check_user, NULL);
}

static void check_victim(void *arg)
{
    int ends[2];
    char text[8] = "";
    const char *programs[] = {"/bin/sh", NULL};
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exec cat /proc/self/oom_score_adj", NULL};
    struct spawn s = plain(programs, argv);
    if (geteuid() == 0)
        become_stranger();
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0); /* what is not may not even write its own file */
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    s.fds[1] = ends[1];
    s.victim = arg != NULL;
    spawn_and_wait(&s);
    CHECK(read(ends[0], text, sizeof text - 1) > 1);
    CHECK((strcmp(text, "1000\n") == 0) == s.victim);
}

static void the_child_is_the_first_victim_where_wanted(void **state)
{
    (void)state;
    in_child(check_victim, NULL);
    in_child(check_victim, work_dir);
}

/* ---- a terminal ---- */

static void check_terminal(void *arg)
{
    (void)arg;
    struct pty pty;
    struct buf text BUF_AUTO = BUF_INIT;
    const char *programs[] = {self, NULL};
    struct err err;
    if (pty_open(&pty, 24, 80, NULL, &err) < 0)
        cannot(err.msg);
    struct spawn s = plain(programs, tell_argv);
    s.fds[0] = pty.slave;
    s.terminal = true;
    told(s, &text);
    check_told(&text, "foreground=1;");
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s.fds[0] = fd;
    FAILS(&s, "cannot take the terminal");
}

static void a_terminal_becomes_the_controlling_one(void **state)
{
    (void)state;
    in_child(check_terminal, NULL);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void note(int number)
{
    handled = number;
}

/* In the child, which may have our memory. */
static int end_itself(void *arg, pid_t pid, unsigned refused, struct err *err)
{
    (void)refused;
    (void)err;
    kill(pid, *(int *)arg);
    return 1;
}

/* Of those that are handled later than the look at them, and of one that nobody handles. */
static void check_handlers(void *arg)
{
    const char *programs[] = {"/bin/true", NULL};
    int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    (void)arg;
    spawn_know_signals();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct spawn s = plain(programs, tell_argv);
        s.accept.asked = end_itself;
        s.accept.arg = &numbers[i];
        if (numbers[i] != SIGUSR1)
            signal(numbers[i], note);
        FAILS(&s, "the new process was ended at once");
        CHECK(handled == 0);
    }
}

/* It would do here what is to be done there. */
static void no_handler_runs_in_the_child(void **state)
{
    (void)state;
    in_child(check_handlers, NULL);
}

/* ---- when the machine has no more to give ---- */

static void check_no_process(void *arg)
{
    const char *programs[] = {"/bin/true", NULL};
    struct spawn s = plain(programs, tell_argv);
    struct rlimit none = {0, 0}, three = {4, 4};
    if (arg) {
        io_close_others(NULL, 0);
        CHECK(setrlimit(RLIMIT_NOFILE, &three) == 0);
        FAILS(&s, "cannot start a program: Too many open files");
    } else {
        become_stranger();
        CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
        FAILS(&s, "cannot start a program: Resource temporarily unavailable");
    }
}

static void no_process_or_descriptor_is_an_error(void **state)
{
    (void)state;
    in_child(check_no_process, work_dir);
    in_child(check_no_process, NULL);
}

static void check_killed_before_it_ran(void *arg)
{
    (void)arg;
    const char *programs[] = {"/bin/true", NULL};
    struct spawn s = plain(programs, tell_argv);
    filter_call(SYS_setsid, NULL, SECCOMP_RET_KILL_PROCESS);
    FAILS(&s, "cannot start a program", "ended at once");
}

/* Never taken for a program that has run and ended. */
static void a_child_that_never_ran_is_an_error(void **state)
{
    (void)state;
    in_child(check_killed_before_it_ran, NULL);
}

static void check_many(void *arg)
{
    (void)arg;
    const char *programs[] = {"/no/such", "/bin/true", NULL};
    struct spawn s = plain(programs, tell_argv);
    CHECK(loop_new(NULL) != NULL);
    unsigned before = open_descriptors();
    for (int i = 0; i < 50; i++)
        spawn_and_wait(&s);
    CHECK(open_descriptors() == before);
    programs[1] = NULL;
    for (int i = 0; i < 50; i++)
        FAILS(&s, "not found");
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    in_child(check_many, NULL);
}

/* ---- environments ---- */

static void assert_env(char **env, const char *const *want)
{
    size_t n = 0;
    for (; want[n]; n++) {
        size_t found = 0;
        for (char **at = env; *at; at++)
            found += strcmp(*at, want[n]) == 0;
        if (found != 1)
            fail_msg("'%s' is there %zu times", want[n], found);
    }
    size_t have = 0;
    while (env[have])
        have++;
    assert_int_equal(have, n);
    spawn_env_free(env);
}

#define ENV(...) ((char *const[]){__VA_ARGS__, NULL})
#define ASSERT_ENV(env, ...) assert_env(env, (const char *const[]){__VA_ARGS__, NULL})

static void ours_are_not_handed_on(void **state)
{
    (void)state;
    char *const *base =
        ENV((char *)"A=1", (char *)"TOOLBOX_DIR=/x", (char *)"TOOLBOX=kept",
            (char *)"INSPECT_SANDBOX_TOOLS_DIR=/x", (char *)"INSPECT_SANDBOX_JSON_RPC_RESPONSE_MAX_BYTES=1",
            (char *)"INSPECT_MCP_READLINE_LIMIT_BYTES=1", (char *)"INSPECT_MCP_READLINE_LIMIT_BYTES_=kept",
            (char *)"INSPECT_X=kept", (char *)"XTOOLBOX_=kept", (char *)"EMPTY=", (char *)"noequals");
    ASSERT_ENV(spawn_env(base, NULL, NULL), "A=1", "TOOLBOX=kept", "INSPECT_MCP_READLINE_LIMIT_BYTES_=kept",
               "INSPECT_X=kept", "XTOOLBOX_=kept", "EMPTY=", "noequals");
    char **none = spawn_env(NULL, NULL, NULL);
    assert_null(none[0]);
    spawn_env_free(none);
    spawn_env_free(NULL);
}

static void the_last_word_counts(void **state)
{
    (void)state;
    char *const *base = ENV((char *)"A=1", (char *)"AB=2", (char *)"A=3", (char *)"C=c", (char *)"D=");
    char *const *extra = ENV((char *)"AB=4", (char *)"ABC=5", (char *)"D=6", (char *)"ABC=7", (char *)"C=");
    ASSERT_ENV(spawn_env(base, NULL, NULL), "A=1", "AB=2", "C=c", "D=");
    ASSERT_ENV(spawn_env(base, extra, NULL), "A=1", "AB=4", "C=", "D=6", "ABC=7");
    ASSERT_ENV(spawn_env(NULL, extra, NULL), "AB=4", "D=6", "ABC=7", "C=");
    ASSERT_ENV(spawn_env(base, ENV((char *)"A=9"), NULL), "A=9", "AB=2", "C=c", "D=");
}

static void another_user_has_a_home_of_his_own(void **state)
{
    (void)state;
    struct user u = {.uid = STRANGER, .name = (char *)"u", .home = (char *)"/home/u", .shell = (char *)""};
    char *const *base =
        ENV((char *)"HOME=/root", (char *)"USER=root", (char *)"SHELL=/bin/zsh", (char *)"A=1");
    ASSERT_ENV(spawn_env(base, NULL, &u), "A=1", "HOME=/home/u", "USER=u", "LOGNAME=u", "SHELL=/bin/sh");
    u.shell = (char *)"/bin/ksh";
    u.name = NULL;
    ASSERT_ENV(spawn_env(base, ENV((char *)"HOME=/x"), &u), "A=1", "HOME=/x",
               "USER=", "LOGNAME=", "SHELL=/bin/ksh");
    u.uid = geteuid();
    ASSERT_ENV(spawn_env(base, NULL, &u), "HOME=/root", "USER=root", "SHELL=/bin/zsh", "A=1");
}

static void a_value_is_found_by_its_whole_name(void **state)
{
    (void)state;
    char *const *env = ENV((char *)"AB=2", (char *)"A=1=1", (char *)"EMPTY=", (char *)"noequals");
    assert_string_equal(spawn_env_get(env, "A"), "1=1");
    assert_string_equal(spawn_env_get(env, "EMPTY"), "");
    assert_null(spawn_env_get(env, "B"));
    assert_null(spawn_env_get(env, "noequals"));
    assert_null(spawn_env_get(NULL, "A"));
}

/* As many as a child can be given at all. */
static void a_large_environment_takes_no_time(void **state)
{
    (void)state;
    enum { N = 50000 };
    char **base = mem_alloc((N + 1) * sizeof *base), **extra = mem_alloc((N + 1) * sizeof *extra);
    for (int i = 0; i < N; i++) {
        base[i] = mem_printf("VARIABLE_%d=%d", i, i);
        extra[i] = mem_printf("VARIABLE_%d=%d", N / 2 + i, -i);
    }
    base[N] = extra[N] = NULL;
    clock_t begun = clock();
    char **env = spawn_env(base, extra, NULL);
    assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 5); /* comparing each with each takes minutes */
    size_t n = 0;
    while (env[n])
        n++;
    assert_int_equal(n, N + N / 2);
    assert_string_equal(spawn_env_get(env, "VARIABLE_0"), "0");
    assert_string_equal(spawn_env_get(env, "VARIABLE_25000"), "0");
    assert_string_equal(spawn_env_get(env, "VARIABLE_25001"), "-1");
    spawn_env_free(env);
    spawn_env_free(base);
    spawn_env_free(extra);
}

#define spawn_test(f) cmocka_unit_test_setup_teardown(f, enter_work_dir, leave_work_dir)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return tell_everything();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        snprintf(self, sizeof self, "%s", argv[0]);
    const struct CMUnitTest tests[] = {
        spawn_test(a_child_starts_clean),
        spawn_test(descriptors_may_be_any),
        spawn_test(more_descriptors_may_be_given),
        spawn_test(absent_descriptors_are_null),
        spawn_test(what_can_not_be_run_is_told),
        spawn_test(the_first_that_runs_is_taken),
        spawn_test(a_name_is_looked_for_in_the_childs_path),
        spawn_test(too_many_arguments_are_told),
        spawn_test(the_child_starts_where_it_is_told),
        spawn_test(the_child_becomes_the_user),
        spawn_test(the_child_is_the_first_victim_where_wanted),
        spawn_test(a_terminal_becomes_the_controlling_one),
        spawn_test(no_process_or_descriptor_is_an_error),
        spawn_test(no_handler_runs_in_the_child),
        spawn_test(a_child_that_never_ran_is_an_error),
        spawn_test(no_descriptor_is_left_open),
        cmocka_unit_test(ours_are_not_handed_on),
        cmocka_unit_test(the_last_word_counts),
        cmocka_unit_test(another_user_has_a_home_of_his_own),
        cmocka_unit_test(a_value_is_found_by_its_whole_name),
        cmocka_unit_test(a_large_environment_takes_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
