/* The keepers here serve their socket with a line about themselves, or end as the test wants. */
#include "support.h"

#include <sys/socket.h>

#include "buf.h"
#include "io.h"
#include "ipc.h"
#include "keeper.h"
#include "loop.h"
#include "mark.h"
#include "mem.h"

static char dir[64];
static struct base base;
static int report_calls, expected_calls;
static struct report {
    pid_t pid;
    char word[256];
    struct err err;
} reports[64];

/* ---- in the keeper ---- */

static void put_descriptors(struct buf *out)
{
    buf_adds(out, "fds=");
    for (int fd = 0; fd < 1024; fd++) {
        struct stat st;
        if (fstat(fd, &st) < 0)
            continue;
        buf_addc(out, S_ISDIR(st.st_mode)    ? 'd'
                      : S_ISSOCK(st.st_mode) ? 's'
                      : S_ISFIFO(st.st_mode) ? 'p'
                      : S_ISCHR(st.st_mode)  ? 'c'
                                             : 'o');
        if (fd <= 2 && fcntl(fd, F_GETFD) & FD_CLOEXEC)
            buf_addc(out, '!');
    }
    buf_addc(out, ';');
}

static void describe(struct buf *out)
{
    char cwd[4096];
    int subreaper = 0;
    put_descriptors(out);
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    buf_addf(out, "cwd=%s;session=%d;subreaper=%d;dumpable=%d;", getcwd(cwd, sizeof cwd) ? cwd : "?",
             getsid(0) == getpid(), subreaper, prctl(PR_GET_DUMPABLE));
    struct sigaction hup, term;
    sigaction(SIGHUP, NULL, &hup);
    sigaction(SIGTERM, NULL, &term);
    buf_addf(out, "hup=%d;term=%d;", hup.sa_handler == SIG_IGN, term.sa_handler == SIG_DFL);
    struct rlimit mark;
    CHECK(getrlimit(RLIMIT_RTTIME, &mark) == 0);
    buf_addf(out, "mark=%d;", mark.rlim_cur == (mark_of(base.dirfd) | 1));
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    buf_addf(out, "comm=%s;", name);
}

/* One connection, one letter: what to do. */
static void serve(void *arg, int events)
{
    struct keeper *k = arg;
    (void)events;
    char what = 0;
    int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 || read(fd, &what, 1) != 1)
        return;
    io_close(&fd);
    if (what == 'q')
        loop_stop(k->base.loop, 23);
}

static void give_up(void *arg)
{
    (void)arg;
    _exit(99);
}

static int start(struct keeper *k, void *arg, struct err *err)
{
    const char *how = arg;
    loop_timer(k->base.loop, 2LL * PATIENCE_MS, give_up, NULL); /* should the test end before it does */
    loop_fd(k->base.loop, k->listen_fd, LOOP_READ, serve, k);
    if (strcmp(how, "fail") == 0)
        return err_set(err, ERR_PARAMS, "no luck with %s", k->name);
    if (strcmp(how, "late") == 0)
        usleep(200000);
    if (strcmp(how, "die") == 0)
        raise(SIGKILL);
    if (strcmp(how, "describe") == 0) {
        struct buf text BUF_AUTO = BUF_INIT;
        describe(&text);
        int fd = openat(k->base.dirfd, "description", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || io_write_all(fd, text.data, text.len) < 0)
            _exit(98);
        close(fd);
    }
    if (strcmp(how, "long") == 0)
        memset(k->word, 'w', sizeof k->word - 1);
    else
        snprintf(k->word, sizeof k->word, "%s", how);
    return 0;
}

/* ---- in the server ---- */

static void up(void *arg, pid_t pid, const char *word, const struct err *err)
{
    struct report *r = arg;
    r->pid = pid;
    assert_true((word == NULL) == (pid < 0) && (err == NULL) == (pid > 0));
    snprintf(r->word, sizeof r->word, "%s", word ? word : "");
    if (err)
        r->err = *err;
    if (++report_calls == expected_calls)
        loop_stop(base.loop, 0);
}

static void hung(void *arg)
{
    (void)arg;
    loop_stop(base.loop, -1);
}

static void stop_on_signal(void *arg, int signal)
{
    (void)arg;
    loop_stop(base.loop, signal);
}

static void run(int expected)
{
    struct loop_source *guard = loop_timer(base.loop, PATIENCE_MS, hung, NULL);
    expected_calls = expected > 0 ? report_calls + expected : -1;
    assert_int_equal(loop_run(base.loop), 0);
    loop_remove(guard);
}

static struct {
    pid_t pid;
    int status;
} ended[64];
static int n_ends;
static pid_t waited_for;

static void note_end(void *arg, pid_t pid, int status)
{
    (void)arg;
    ended[n_ends].pid = pid;
    ended[n_ends++].status = status;
    if (pid == waited_for)
        loop_stop(base.loop, 0);
}

static pid_t fork_named(const char *name, const char *how, struct report *report)
{
    *report = (struct report){0};
    pid_t pid = keeper_fork(&base, name, NULL, start, (void *)(uintptr_t)how, up, report);
    assert_true(pid > 0);
    loop_child(base.loop, pid, note_end, NULL); /* before it can have ended */
    return pid;
}

static pid_t fork_one(const char *name, const char *how)
{
    pid_t pid = fork_named(name, how, &reports[0]);
    run(1);
    return pid;
}

/* One letter to a keeper. */
static void say(const char *name, char what)
{
    int fd = ipc_connect(base.dirfd, name, IPC_WAIT_S);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &what, 1), 1);
    close(fd);
}

static int end_of(pid_t pid)
{
    waited_for = pid;
    for (int i = 0;; i++) {
        while (i == n_ends)
            run(0);
        if (ended[i].pid == pid)
            return ended[i].status;
    }
}

static void kill_and_wait(pid_t pid)
{
    kill(pid, SIGKILL);
    end_of(pid);
}

static int set_up(void **state)
{
    (void)state;
    make_dir(dir);
    n_ends = 0;
    base.loop = loop_new(NULL);
    base.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base.start_dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    base.env = NULL;
    return base.loop && base.dirfd >= 0 && base.start_dir >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    loop_free(base.loop);
    close(base.dirfd);
    close(base.start_dir);
    remove_dir(dir);
    return 0;
}

/* ---- tests ---- */

static void a_keeper_is_up_when_its_socket_listens(void **state)
{
    (void)state;
    pid_t pid = fork_one("Thing_1", "fine"), peer = 0;
    uid_t uid = 0;
    assert_int_equal(reports[0].pid, pid);
    assert_string_equal(reports[0].word, "fine");
    int fd = ipc_connect(base.dirfd, "Thing_1", IPC_WAIT_S);
    assert_true(fd >= 0);
    assert_int_equal(ipc_peer(fd, &peer, &uid), 0);
    assert_int_equal(peer, pid);
    close(fd);
    say("Thing_1", 'q');
    int status = end_of(pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 23); /* what its loop was stopped with */
    assert_int_equal(ipc_connect(base.dirfd, "Thing_1", IPC_WAIT_S), -1);
}

static void its_word_may_be_empty_or_long(void **state)
{
    (void)state;
    kill_and_wait(fork_one("A", ""));
    assert_true(reports[0].pid > 0);
    assert_string_equal(reports[0].word, "");
    kill_and_wait(fork_one("B", "long"));
    assert_int_equal(strlen(reports[0].word), 255);
}

static void assert_described(const char *line)
{
    struct buf text BUF_AUTO = BUF_INIT;
    assert_int_equal(io_read_file(base.dirfd, "description", &text), 0);
    if (!strstr(buf_str(&text), line))
        fail_msg("no '%s' in %s", line, buf_str(&text));
}

static void a_keeper_stands_alone(void **state)
{
    (void)state;
    char want[200];
    int other = ipc_listen(base.dirfd, "server", NULL), plain = dup(0);
    assert_true(other >= 0 && plain >= 0);
    loop_on_signal(base.loop, stop_on_signal, NULL);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_RTTIME, &limit), 0);
    pid_t pid = fork_one("BashSession_12", "describe");
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    /* Standard descriptors, the two directories, the word's pipe; its own loop (epoll, pipe) and socket. */
    assert_described("fds=ccc");
    struct buf text BUF_AUTO = BUF_INIT;
    assert_int_equal(io_read_file(base.dirfd, "description", &text), 0);
    size_t n = strcspn(strstr(text.data, "fds=") + 4, ";");
    assert_int_equal(n, 3 + 2 + 1 + 3 + 1);
    snprintf(want, sizeof want, "cwd=%s;session=1;subreaper=1;dumpable=0;hup=1;term=1;", dir);
    assert_described(want);
    assert_described("comm=BashSession_12;");
    if (limit.rlim_cur == RLIM_INFINITY)
        assert_described("mark=1;"); /* a limit that somebody has set already stays */
    kill_and_wait(pid);
    close(other);
    close(plain);
    assert_int_equal(ipc_connect(base.dirfd, "server", IPC_WAIT_S),
                     -1); /* the keeper did not keep it alive */
}

static void check_odd_descriptors(void *arg)
{
    if (arg)
        hide_dev();
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2);
    close(0);
    if (arg)
        close(2);
    io_fill_std(); /* as main does */
    base.start_dir = -1;
    pid_t pid = keeper_fork(&base, "X", NULL, start, (void *)(uintptr_t) "describe", up, &reports[0]);
    expected_calls = report_calls + 1;
    if (pid <= 0 || loop_run(base.loop) != 0 || reports[0].pid != pid)
        _exit(10);
    struct buf text BUF_AUTO = BUF_INIT;
    if (io_read_file(base.dirfd, "description", &text) < 0)
        _exit(11);
    const char *want = arg ? "fds=ppp" : "fds=ccc";
    kill(pid, SIGKILL);
    if (!strstr(text.data, want) || strchr(text.data, '!'))
        _exit(12);
}

/* Also where the starter had none, or the machine has no null device. */
static void its_standard_descriptors_are_there(void **state)
{
    (void)state;
    in_child(check_odd_descriptors, NULL);
    in_child(check_odd_descriptors, dir);
}

static void what_fails_is_told_and_leaves_its_name_free(void **state)
{
    (void)state;
    unsigned before = open_descriptors();
    pid_t pid = fork_one("Thing_2", "fail");
    assert_int_equal(reports[0].pid, -1);
    assert_int_equal(reports[0].err.code, ERR_PARAMS);
    assert_string_equal(reports[0].err.msg, "no luck with Thing_2");
    assert_false(ipc_exists(base.dirfd, "Thing_2"));
    int status = end_of(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    pid = fork_one("Thing_2", "die");
    assert_int_equal(reports[0].pid, -1);
    assert_int_equal(reports[0].err.code, ERR_INTERNAL);
    assert_non_null(strstr(reports[0].err.msg, "ended before it was ready"));
    status = end_of(pid);
    assert_true(WIFSIGNALED(status));
    pid = fork_one("no name", "fine");
    assert_int_equal(reports[0].pid, -1);
    assert_non_null(strstr(reports[0].err.msg, "no name"));
    end_of(pid);
    assert_int_equal(open_descriptors(), before);
}

static void check_no_more(void *arg)
{
    struct rlimit none = {0, 0};
    if (arg) {
        none = (struct rlimit){3, 3};
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    } else {
        become_stranger();
        CHECK(setrlimit(RLIMIT_NPROC, &none) == 0);
    }
    unsigned before = open_descriptors();
    report_calls = 0;
    CHECK(keeper_fork(&base, "Y", NULL, start, (void *)(uintptr_t) "fine", up, &reports[0]) == -1);
    CHECK(report_calls == 1 && reports[0].pid == -1 && reports[0].err.code == ERR_TOOL);
    CHECK(strstr(reports[0].err.msg, arg ? "Too many open files" : "Resource temporarily unavailable"));
    CHECK(open_descriptors() == before);
}

static void no_process_or_descriptor_is_told_at_once(void **state)
{
    (void)state;
    in_child(check_no_more, dir);
    in_child(check_no_more, NULL);
}

static void many_come_up_side_by_side(void **state)
{
    (void)state;
    enum { N = 20 };
    pid_t pids[N];
    unsigned before = open_descriptors();
    for (int i = 0; i < N; i++) {
        char name[20];
        snprintf(name, sizeof name, "Many_%d", i);
        pids[i] = fork_named(name, i % 4 == 3 ? "fail" : "fine", &reports[i]);
    }
    run(N);
    assert_int_equal(open_descriptors(), before);
    for (int i = 0; i < N; i++)
        assert_int_equal(reports[i].pid, i % 4 == 3 ? -1 : pids[i]);
    /* None holds another's socket: the end of one is seen at once. */
    kill_and_wait(pids[0]);
    assert_int_equal(ipc_connect(base.dirfd, "Many_0", IPC_WAIT_S), -1);
    assert_int_equal(errno, ECONNREFUSED);
    for (int i = 1; i < N; i++) {
        if (i % 4 != 3)
            kill_and_wait(pids[i]);
    }
}

static void check_dying_server(void *arg)
{
    (void)arg;
    pid_t pid = keeper_fork(&base, "Survivor", NULL, start, (void *)(uintptr_t) "fine", up, &reports[0]);
    CHECK(pid > 0);
    expected_calls = report_calls + 1;
    CHECK(loop_run(base.loop) == 0 && reports[0].pid == pid);
    CHECK(write(*(int *)arg, &pid, sizeof pid) == sizeof pid);
}

static void a_keeper_outlives_its_server(void **state)
{
    (void)state;
    int ends[2];
    pid_t pid;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    in_child(check_dying_server, &ends[1]);
    assert_int_equal(read(ends[0], &pid, sizeof pid), sizeof pid);
    int fd = ipc_connect(base.dirfd, "Survivor", IPC_WAIT_S);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "q", 1), 1);
    char c;
    while (read(fd, &c, 1) > 0)
        ;
    close(fd);
    for (long long until = now_ms() + PATIENCE_MS;
         (fd = ipc_connect(base.dirfd, "Survivor", IPC_WAIT_S)) >= 0;) {
        close(fd);
        assert_true(now_ms() < until);
    }
    close(ends[0]);
    close(ends[1]);
}

static void check_server_that_dies_first(void *arg)
{
    pid_t pid = keeper_fork(&base, "Late", NULL, start, (void *)(uintptr_t) "late", up, &reports[0]);
    CHECK(pid > 0);
    CHECK(write(*(int *)arg, &pid, sizeof pid) == sizeof pid);
}

/* Who asked for it has got an error, and may ask again. */
static void a_keeper_that_nobody_was_told_of_ends(void **state)
{
    (void)state;
    int ends[2];
    pid_t pid;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    in_child(check_server_that_dies_first, &ends[1]);
    assert_int_equal(read(ends[0], &pid, sizeof pid), sizeof pid);
    for (long long until = now_ms() + PATIENCE_MS; kill(pid, 0) == 0;) {
        assert_true(now_ms() < until);
        usleep(1000);
    }
    close(ends[0]);
    close(ends[1]);
}

static void leave_a_trace(void)
{
    close(openat(base.dirfd, "trace", O_WRONLY | O_CREAT, 0600));
}

static void check_exit(void *arg)
{
    (void)arg;
    CHECK(atexit(leave_a_trace) == 0);
    pid_t pid = keeper_fork(&base, "Quiet", NULL, start, (void *)(uintptr_t) "fine", up, &reports[0]);
    expected_calls = report_calls + 1;
    CHECK(loop_run(base.loop) == 0 && reports[0].pid == pid);
    int fd = ipc_connect(base.dirfd, "Quiet", IPC_WAIT_S);
    CHECK(fd >= 0 && write(fd, "q", 1) == 1 && waitpid(pid, NULL, 0) == pid);
    CHECK(faccessat(base.dirfd, "trace", F_OK, 0) < 0);
}

/* What stdio still holds, for one. */
static void what_the_command_does_at_its_end_is_not_the_keepers(void **state)
{
    (void)state;
    in_child(check_exit, NULL);
}

/* ---- pooled sockets ---- */

static struct pooled_socket pool[SOCKET_POOL_SIZE];

static unsigned hidden_files(void)
{
    unsigned n = 0;
    for (int i = 0; i < SOCKET_POOL_SIZE; i++)
        n += pool[i].made && ipc_is_hidden(base.dirfd, pool[i].hidden);
    return n;
}

static void close_pool(void)
{
    for (int i = 0; i < SOCKET_POOL_SIZE; i++)
        io_close(&pool[i].fd);
}

static void sockets_are_lent_and_taken_back(void **state)
{
    (void)state;
    memset(pool, 0, sizeof pool);
    unsigned before = open_descriptors();
    for (int i = 0; i < SOCKET_POOL_SIZE; i++) {
        struct pooled_socket *s = socket_pool_lend(pool, base.dirfd);
        assert_ptr_equal(s, &pool[i]);
        assert_true(s->made && s->lent && ipc_is_hidden(base.dirfd, s->hidden));
        assert_int_equal(socket_pool_enter(s), 0);
    }
    assert_null(socket_pool_lend(pool, base.dirfd));
    assert_int_equal(hidden_files(), SOCKET_POOL_SIZE);

    /* The same one again, with nobody in its queue. */
    assert_int_equal(ipc_show(base.dirfd, pool[3].hidden, "Job_1", NULL), 0);
    int early = ipc_connect(base.dirfd, "Job_1", IPC_WAIT_S), fd = pool[3].fd;
    ipc_hide(base.dirfd, "Job_1", pool[3].hidden);
    socket_pool_return(&pool[3], base.dirfd);
    assert_int_equal(read(early, &(char){0}, 1), 0);
    close(early);
    assert_ptr_equal(socket_pool_lend(pool, base.dirfd), &pool[3]);
    assert_int_equal(pool[3].fd, fd);

    /* One whose keeper was killed left it shown: it is not used again. */
    assert_int_equal(ipc_show(base.dirfd, pool[5].hidden, "Job_2", NULL), 0);
    socket_pool_return(&pool[5], base.dirfd);
    assert_true(pool[5].fd == -1 && !pool[5].made && !pool[5].lent);
    assert_int_equal(ipc_connect(base.dirfd, "Job_2", IPC_WAIT_S), -1);

    /* And one whose file somebody has removed. */
    socket_pool_return(&pool[7], base.dirfd);
    ipc_unlink_hidden(base.dirfd, pool[7].hidden);
    assert_ptr_equal(socket_pool_lend(pool, base.dirfd), &pool[5]);
    assert_ptr_equal(socket_pool_lend(pool, base.dirfd), &pool[7]);
    assert_int_equal(hidden_files(), SOCKET_POOL_SIZE);

    assert_int_equal(ipc_connect(base.dirfd, "Job_2", IPC_WAIT_S), -1);
    close(ipc_listen_hidden(base.dirfd, "Other-1", NULL));
    socket_pool_clear(base.dirfd);
    assert_int_equal(hidden_files(), 0);
    assert_true(ipc_is_hidden(base.dirfd, "Other-1") && ipc_exists(base.dirfd, "Job_2"));
    close_pool();
    assert_int_equal(open_descriptors(), before);
}

static void check_few_descriptors(void *arg)
{
    (void)arg;
    struct rlimit limit = {3 * 32 + 31, 3 * 32 + 31};
    memset(pool, 0, sizeof pool);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(socket_pool_lend(pool, base.dirfd) == &pool[i]);
    CHECK(!socket_pool_lend(pool, base.dirfd));
}

static void where_descriptors_are_few_they_are_left_for_clients(void **state)
{
    (void)state;
    in_child(check_few_descriptors, NULL);
    memset(pool, 0, sizeof pool);
    int fd = base.dirfd;
    close(fd);
    assert_null(socket_pool_lend(pool, fd)); /* none can be made */
    assert_false(pool[0].made || pool[0].lent);
    base.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int start_pooled(struct keeper *k, void *arg, struct err *err)
{
    const char *how = arg;
    char shown[IPC_NAME_MAX], hidden[1 + IPC_NAME_MAX], want[1 + IPC_NAME_MAX];
    CHECK(k->listen_fd >= 0 && *k->hidden && !*k->name);
    snprintf(k->name, sizeof k->name, "Job_%s", how);
    CHECK(ipc_show(k->base.dirfd, k->hidden, k->name, err) == 0);
    keeper_socket_names(k, shown, hidden);
    CHECK(ipc_name(want, k->name) == 0 && strcmp(shown, want) == 0);
    CHECK(ipc_hidden_name(want, k->hidden) == 0 && strcmp(hidden, want) == 0);
    if (strcmp(how, "fine") != 0)
        return err_set(err, ERR_PARAMS, "no luck");
    loop_fd(k->base.loop, k->listen_fd, LOOP_READ, serve, k);
    return 0;
}

static void a_keeper_may_have_a_pooled_socket(void **state)
{
    (void)state;
    memset(pool, 0, sizeof pool);
    struct pooled_socket *s = socket_pool_lend(pool, base.dirfd);
    assert_non_null(s);
    reports[0] = (struct report){0};
    pid_t pid = keeper_fork(&base, "", s, start_pooled, (void *)(uintptr_t) "fine", up, &reports[0]),
          peer = 0;
    uid_t uid;
    loop_child(base.loop, pid, note_end, NULL);
    run(1);
    assert_int_equal(reports[0].pid, pid);
    int fd = ipc_connect(base.dirfd, "Job_fine", IPC_WAIT_S);
    assert_int_equal(ipc_peer(fd, &peer, &uid), 0);
    assert_int_equal(peer, pid);
    close(fd);
    kill_and_wait(pid);
    socket_pool_return(s, base.dirfd);

    /* What fails gives it back. */
    s = socket_pool_lend(pool, base.dirfd);
    pid = keeper_fork(&base, "", s, start_pooled, (void *)(uintptr_t) "bad", up, &reports[0]);
    loop_child(base.loop, pid, note_end, NULL);
    run(1);
    assert_int_equal(reports[0].pid, -1);
    end_of(pid);
    assert_true(ipc_is_hidden(base.dirfd, s->hidden) && !ipc_exists(base.dirfd, "Job_bad"));
    close_pool();
}

static void check_orphaned(void *arg)
{
    (void)arg;
    struct keeper k = {.base = base, .name = "Alone", .hidden = "Pool-1", .server = getppid()};
    char shown[IPC_NAME_MAX], hidden[1 + IPC_NAME_MAX], want[1 + IPC_NAME_MAX];
    keeper_socket_names(&k, shown, hidden);
    CHECK(ipc_hidden_name(want, "Pool-1") == 0 && strcmp(hidden, want) == 0);
    k.server = getpid(); /* the server has gone: nobody knows what the pool is */
    keeper_socket_names(&k, shown, hidden);
    CHECK(ipc_hidden_name(want, "Alone") == 0 && strcmp(hidden, want) == 0);
    int fd = ipc_listen(base.dirfd, "Alone", NULL);
    CHECK(fd >= 0);
    keeper_hide(&k);
    CHECK(ipc_is_hidden(base.dirfd, "Alone") && !ipc_exists(base.dirfd, "Alone"));
    k.server = getppid();
    *k.hidden = '\0'; /* it never had one of a pool */
    keeper_socket_names(&k, shown, hidden);
    CHECK(strcmp(hidden, want) == 0);
}

static void a_socket_goes_back_to_a_server_that_lives(void **state)
{
    (void)state;
    in_child(check_orphaned, NULL);
}

static void assert_no_word(const void *message, size_t n, enum err_code code, const char *why)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err = {0};
    const char *kind;
    buf_add(&text, message, n);
    assert_null(keeper_word(&text, &err, &kind));
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.msg, why));
}

static void only_a_whole_message_is_a_word(void **state)
{
    (void)state;
    static const char *const broken = "ended before it was ready";
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err = {0};
    const char *kind;
    struct {
        char kind;
        struct err err;
    } __attribute__((packed)) failed = {.kind = 'f'};
    assert_no_word("", 0, ERR_INTERNAL, broken);
    assert_no_word("u", 1, ERR_INTERNAL, broken);
    assert_no_word("uword", 5, ERR_INTERNAL, broken);
    assert_no_word("xword", 6, ERR_INTERNAL, broken);
    assert_no_word("f", 1, ERR_INTERNAL, broken);
    assert_no_word("fword", 6, ERR_INTERNAL, broken);
    err_set(&err, ERR_PARAMS, "no luck");
    failed.err = err;
    assert_no_word(&failed, sizeof failed, ERR_PARAMS, "no luck");
    buf_add(&text, &failed, sizeof failed);
    assert_null(keeper_word(&text, &err, &kind));
    assert_null(kind);
    buf_add(&text, "lost", 5);
    assert_null(keeper_word(&text, &err, &kind));
    assert_string_equal(kind, "lost");
    assert_string_equal(err.msg, "no luck");
    buf_truncate(&text, text.len - 1);
    assert_no_word(text.data, text.len, ERR_INTERNAL, broken);
    buf_truncate(&text, 0);
    buf_add(&text, "uword", 6);
    assert_string_equal(keeper_word(&text, &err, &kind), "word");
}

#define keeper_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        keeper_test(a_keeper_is_up_when_its_socket_listens),
        keeper_test(its_word_may_be_empty_or_long),
        keeper_test(a_keeper_stands_alone),
        keeper_test(its_standard_descriptors_are_there),
        keeper_test(what_fails_is_told_and_leaves_its_name_free),
        keeper_test(no_process_or_descriptor_is_told_at_once),
        keeper_test(many_come_up_side_by_side),
        keeper_test(a_keeper_outlives_its_server),
        keeper_test(a_keeper_that_nobody_was_told_of_ends),
        keeper_test(what_the_command_does_at_its_end_is_not_the_keepers),
        keeper_test(sockets_are_lent_and_taken_back),
        keeper_test(where_descriptors_are_few_they_are_left_for_clients),
        keeper_test(a_keeper_may_have_a_pooled_socket),
        keeper_test(a_socket_goes_back_to_a_server_that_lives),
        keeper_test(only_a_whole_message_is_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
