#include "support.h"

#include <sys/time.h>

#include "buf.h"
#include "io.h"

static void pattern(char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s[i] = (char)(i * 31 + i / 251);
}

static bool is_pattern(const struct buf *b, size_t n)
{
    char *want = malloc(n + 1);
    pattern(want, n);
    bool same = b->len == n && memcmp(b->data, want, n) == 0;
    free(want);
    return same;
}

static void nothing(int signal)
{
    (void)signal;
}

/* A signal every half millisecond that interrupts what waits. */
static void interrupt(bool on)
{
    struct sigaction action = {.sa_handler = nothing};
    struct itimerval every = {{0, on ? 500 : 0}, {0, on ? 500 : 0}};
    if (on)
        sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

#define LARGE 3000000

/* A child that writes the pattern into a pipe; the reading end. */
static int written_by_child(size_t n, bool nonblocking)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    if (nonblocking)
        assert_int_equal(io_set_nonblock(ends[0], true) + io_set_nonblock(ends[1], true), 0);
    if (fork() == 0) {
        char *data = malloc(n + 1);
        pattern(data, n);
        close(ends[0]);
        interrupt(true);
        int failed = io_write_all(ends[1], data, n / 2);
        interrupt(false);
        if (n == LARGE)
            usleep(40000); /* the reader is interrupted as well */
        interrupt(true);
        failed |= io_write_all(ends[1], data + n / 2, n - n / 2);
        _exit(failed ? 1 : 0);
    }
    close(ends[1]);
    return ends[0];
}

static void assert_child_ended(int want)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, 0)) < 0 && errno == EINTR)
        ;
    assert_true(pid > 0 && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), want);
}

static void pipes_are_read_and_written_whole(void **state)
{
    (void)state;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        struct buf b BUF_AUTO = BUF_INIT;
        int fd = written_by_child(LARGE, nonblocking);
        usleep(20000); /* the pipe is full, and who waits for it is interrupted again and again */
        interrupt(true);
        int result = io_read_all(fd, &b);
        interrupt(false);
        close(fd);
        assert_int_equal(result, 0);
        assert_true(is_pattern(&b, LARGE));
        assert_child_ended(0);
    }
}

static void a_reader_that_has_gone_is_an_error(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(io_write_all(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    signal(SIGPIPE, before);
    assert_int_equal(io_write_all(ends[1], "", 0), 0);
    close(ends[1]);
    assert_int_equal(io_write_all(-1, "x", 1), -1);
    assert_int_equal(errno, EBADF);
}

/* Of exactly max bytes is no error, of one more is; what came before it in the buffer counts. */
static void max_tells_a_longer_file_from_a_full_one(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 70000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t before = 0; before < 2; before++) {
            for (size_t room = sizes[i] > 2 ? sizes[i] - 2 : 0; room < sizes[i] + 2; room++) {
                struct buf b BUF_AUTO;
                buf_init(&b, before + room);
                buf_add(&b, "!", before);
                int fd = written_by_child(sizes[i], false), failed = io_read_all(fd, &b) < 0 ? errno : 0;
                assert_int_equal(failed, room < sizes[i] ? EFBIG : 0);
                assert_int_equal(b.len, before + (room < sizes[i] ? room : sizes[i]));
                assert_int_equal(buf_str(&b)[b.len], '\0');
                b.max = b.len / 2; /* of which there is more already */
                assert_int_equal(io_read_more(fd, &b) < 0, room + 1 < sizes[i]);
                buf_consume(&b, before);
                assert_true(is_pattern(&b, b.len));
                close(fd);
                waitpid(-1, NULL, 0);
            }
        }
    }
}

static void files_are_read_by_name(void **state)
{
    (void)state;
    char dir[64], path[96];
    struct buf b BUF_AUTO = BUF_INIT;
    make_dir(dir);
    int dirfd = open(dir, O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof path, "%s/file", dir);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(io_write_all(fd, "a\0b", 3), 0);
    close(fd);
    assert_int_equal(io_read_file(dirfd, "file", &b), 0);
    assert_int_equal(io_read_file(AT_FDCWD, path, &b), 0);
    assert_int_equal(b.len, 6);
    assert_memory_equal(b.data, "a\0ba\0b", 7);
    assert_int_equal(io_read_file(dirfd, "none", &b), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(io_read_file(dirfd, ".", &b), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(mkfifoat(dirfd, "fifo", 0600), 0);
    assert_int_equal(io_read_file(dirfd, "fifo", &b), 0); /* nobody writes: no waiting */
    assert_int_equal(b.len, 6);
    buf_truncate(&b, 0);
    assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/stat", &b), 0); /* says it has no size */
    assert_true(b.len > 20);
    close(dirfd);
    remove_dir(dir);
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    unsigned before = open_descriptors();
    for (int i = 0; i < 100; i++) {
        buf_truncate(&b, 0);
        io_read_file(AT_FDCWD, "/proc/self/stat", &b);
        io_read_file(AT_FDCWD, "/", &b);
    }
    assert_int_equal(open_descriptors(), before);
}

static void closing_keeps_errno(void **state)
{
    (void)state;
    int fd = open("/", O_RDONLY), was = fd;
    errno = EXDEV;
    io_close(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(fcntl(was, F_GETFD), -1);
    errno = EXDEV;
    io_close(&fd);
    fd = 1000; /* not open */
    io_close(&fd);
    assert_int_equal(errno, EXDEV);
}

static void blocking_is_switched_alone(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_APPEND), 0);
    assert_int_equal(io_set_nonblock(ends[1], true), 0);
    assert_int_equal(fcntl(ends[1], F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND | O_NONBLOCK);
    assert_int_equal(io_set_nonblock(ends[1], false), 0);
    assert_int_equal(fcntl(ends[1], F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(io_set_nonblock(ends[0], true), -1);
}

/* ---- closing what is not named ---- */

#define TOP 200

static void fill_descriptors(void)
{
    for (int fd = 3; fd <= TOP; fd++)
        CHECK(fcntl(fd, F_GETFD) >= 0 || dup2(0, fd) == fd);
}

static void check_only(const int *kept, size_t n)
{
    for (int fd = 0; fd <= TOP; fd++) {
        bool keep = fd <= 2;
        for (size_t i = 0; i < n; i++)
            keep = keep || kept[i] == fd;
        CHECK((fcntl(fd, F_GETFD) >= 0) == keep);
    }
}

static void check_close_others(void *arg)
{
    static const struct {
        int fds[6];
        size_t n;
    } keeps[] = {{{0}, 0},        {{3}, 1},          {{TOP}, 1},
                 {{77, 5, 6}, 3}, {{-1, 90, -1}, 3}, {{2, 1, 0, 40, 40, 3}, 6}};
    int refused = *(int *)arg;
    CHECK(open("/dev/null", O_RDWR) >= 0);
    if (refused)
        refuse_call(SYS_close_range, refused);
    for (size_t i = 0; i < sizeof keeps / sizeof *keeps; i++) {
        fill_descriptors();
        io_close_others(keeps[i].fds, keeps[i].n);
        check_only(keeps[i].fds, keeps[i].n);
    }
    fill_descriptors();
    io_close_others(NULL, 0);
    check_only(NULL, 0);
}

static void others_are_closed(void **state)
{
    (void)state;
    int refused = 0;
    in_child(check_close_others, &refused);
}

static void others_are_closed_by_an_old_kernel(void **state)
{
    (void)state;
    int refused[] = {ENOSYS, EPERM};
    in_child(check_close_others, &refused[0]);
    in_child(check_close_others, &refused[1]);
}

/* ---- standard descriptors ---- */

/* Which of 0, 1, 2 are closed, as bits. */
static void close_standard(int closed)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (closed & 1 << fd)
            close(fd);
        else
            dup2(9, fd);
    }
}

static void check_fill(void *arg)
{
    (void)arg;
    struct stat null, st;
    int note[2];
    CHECK(pipe(note) == 0 && dup2(note[1], 9) == 9 && fstat(9, &st) == 0);
    ino_t own = st.st_ino;
    CHECK(stat("/dev/null", &null) == 0);
    for (int closed = 0; closed < 8; closed++) {
        close_standard(closed);
        io_fill_std();
        for (int fd = 0; fd <= 2; fd++) {
            if (fstat(fd, &st) < 0)
                _exit(10 + closed);
            if (closed & 1 << fd ? st.st_rdev != null.st_rdev || !S_ISCHR(st.st_mode) : st.st_ino != own)
                _exit(20 + closed);
            if (fcntl(fd, F_GETFD) & FD_CLOEXEC)
                _exit(30 + closed);
            /* As with one that is closed: what nobody reads is not written. */
            if (closed & 1 << fd && (fd == 0 ? read(fd, &st, 1) : write(fd, "x", 1)) != -1)
                _exit(40 + closed);
        }
    }
}

static void closed_standard_descriptors_are_filled(void **state)
{
    (void)state;
    in_child(check_fill, NULL);
}

static void check_fill_without_null(void *arg)
{
    enter_root(arg);
    io_close_others(NULL, 0);
    close(0);
    close(1);
    close(2);
    io_fill_std();
    char c;
    if (read(0, &c, 1) != 0) /* no CHECK: there is no stderr to tell */
        _exit(10);
    if (write(1, "x", 1) != -1 || write(2, "x", 1) != -1)
        _exit(11); /* and not by SIGPIPE, which would have ended it */
    int fd = open("/", O_RDONLY);
    if (fd != 3)
        _exit(12); /* nothing else is open */
}

static void a_pipe_stands_in_for_dev_null(void **state)
{
    (void)state;
    char dir[64];
    make_dir(dir);
    in_child(check_fill_without_null, dir);
    remove_dir(dir);
}

static void check_fill_with_no_descriptor_left(void *arg)
{
    (void)arg;
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    close(0);
    io_fill_std();
}

static void with_no_descriptor_left_it_goes_on(void **state)
{
    (void)state;
    in_child(check_fill_with_no_descriptor_left, NULL);
}

static void links_that_lead_nowhere_are_there(void **state)
{
    (void)state;
    char path[64];
    make_dir(path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(symlinkat("nowhere", fd, "link"), 0);
    assert_true(io_is_there(fd, "link") && io_is_there(fd, "."));
    assert_false(io_is_there(fd, "nowhere"));
    assert_int_equal(errno, ENOENT);
    close(fd);
    assert_false(io_is_there(fd, "link"));
    assert_int_equal(errno, EBADF);
    remove_dir(path);
}

static void a_descriptor_that_is_taken_blocks_no_more(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int mine = ends[0], taken = io_take(&mine);
    assert_true(taken == ends[0] && mine == -1);
    assert_true(fcntl(taken, F_GETFL) & O_NONBLOCK);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes_are_read_and_written_whole),
        cmocka_unit_test(a_reader_that_has_gone_is_an_error),
        cmocka_unit_test(max_tells_a_longer_file_from_a_full_one),
        cmocka_unit_test(files_are_read_by_name),
        cmocka_unit_test(no_descriptor_is_left_open),
        cmocka_unit_test(closing_keeps_errno),
        cmocka_unit_test(blocking_is_switched_alone),
        cmocka_unit_test(others_are_closed),
        cmocka_unit_test(others_are_closed_by_an_old_kernel),
        cmocka_unit_test(closed_standard_descriptors_are_filled),
        cmocka_unit_test(a_pipe_stands_in_for_dev_null),
        cmocka_unit_test(with_no_descriptor_left_it_goes_on),
        cmocka_unit_test(links_that_lead_nowhere_are_there),
        cmocka_unit_test(a_descriptor_that_is_taken_blocks_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
