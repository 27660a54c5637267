#include "support.h"

#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <termios.h>

#include "buf.h"
#include "io.h"
#include "pty.h"
#include "spawn.h"
#include "user.h"

static struct pty pty;

static int set_up(void **state)
{
    (void)state;
    struct err err = {0};
    if (pty_open(&pty, 24, 80, NULL, &err) < 0) {
        print_message("# skipped: %s\n", err.msg);
        pty = (struct pty)PTY_INIT;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pty_close(&pty);
    return 0;
}

static void need_terminal(void)
{
    if (pty.master < 0)
        skip_because("no terminal can be had");
}

static void assert_size(int rows, int cols)
{
    struct winsize size;
    assert_int_equal(ioctl(pty.slave, TIOCGWINSZ, &size), 0);
    assert_int_equal(size.ws_row, rows);
    assert_int_equal(size.ws_col, cols);
}

static void what_a_program_left_is_mended(void **state)
{
    (void)state;
    need_terminal();
    struct termios before, t;
    assert_int_equal(tcgetattr(pty.slave, &before), 0);
    t = before;
    cfmakeraw(&t);
    t.c_cc[VINTR] = _POSIX_VDISABLE;
    assert_int_equal(tcsetattr(pty.slave, TCSANOW, &t), 0);
    assert_int_equal(io_set_nonblock(pty.slave, true), 0);
    assert_int_equal(pty_mend(&pty), 0);
    assert_int_equal(tcgetattr(pty.slave, &t), 0);
    assert_int_equal(t.c_iflag, before.c_iflag);
    assert_int_equal(t.c_oflag, before.c_oflag);
    assert_int_equal(t.c_lflag & (ICANON | ISIG | IEXTEN | ECHO), ICANON | ISIG | IEXTEN);
    assert_memory_equal(t.c_cc, before.c_cc, VSUSP + 1);
    assert_false(fcntl(pty.slave, F_GETFL) & O_NONBLOCK);
}

static void what_was_chosen_is_not_mended(void **state)
{
    (void)state;
    need_terminal();
    struct termios t;
    assert_int_equal(tcgetattr(pty.slave, &t), 0);
    t.c_iflag &= ~(tcflag_t)IXON;
    t.c_cc[VINTR] = 24;
    assert_int_equal(tcsetattr(pty.slave, TCSANOW, &t), 0);
    assert_int_equal(pty_mend(&pty), 0);
    assert_int_equal(tcgetattr(pty.slave, &t), 0);
    assert_false(t.c_iflag & IXON);
    assert_int_equal(t.c_cc[VINTR], 24);
}

static void it_opens_as_programs_expect_it(void **state)
{
    (void)state;
    need_terminal();
    struct termios t;
    assert_size(24, 80);
    assert_int_equal(tcgetattr(pty.slave, &t), 0);
    assert_int_equal(t.c_lflag & (ECHO | ECHOE | ECHOK | ECHONL), 0);
    assert_int_equal(t.c_lflag & (ICANON | ISIG | IEXTEN), ICANON | ISIG | IEXTEN);
    assert_int_equal(t.c_oflag & (OPOST | ONLCR), OPOST);
    assert_true(t.c_iflag & IUTF8);
    assert_true(fcntl(pty.master, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(pty.slave, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(pty.master, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(pty.slave, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pty_resize(&pty, 50, 132), 0);
    assert_size(50, 132);
}

static void bytes_go_through_unchanged(void **state)
{
    (void)state;
    need_terminal();
    char text[64] = "";
    assert_int_equal(write(pty.slave, "a\nb\tc\r\n\xC3\xA9", 9), 9);
    assert_int_equal(read(pty.master, text, sizeof text), 9);
    assert_memory_equal(text, "a\nb\tc\r\n\xC3\xA9", 9); /* no CR before the newlines */
    assert_int_equal(write(pty.master, "typed\n", 6), 6);
    assert_int_equal(read(pty.slave, text, sizeof text), 6);
    assert_int_equal(read(pty.master, text, sizeof text), -1); /* and no echo of it */
    assert_int_equal(errno, EAGAIN);
}

/* The end of output is the child's end: with the slave kept open there is no EIO. */
static void output_outlives_the_program(void **state)
{
    (void)state;
    need_terminal();
    char text[64] = "";
    pid_t pid = fork();
    if (pid == 0)
        _exit(write(pty.slave, "last words", 10) == 10 ? 0 : 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(read(pty.master, text, sizeof text), 10);
    assert_int_equal(read(pty.master, text, sizeof text), -1);
    assert_int_equal(errno, EAGAIN);
}

/* ---- with a program on it ---- */

static pid_t start(const char *script)
{
    static char *env[] = {NULL};
    const char *programs[] = {"/bin/sh", NULL};
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct spawn s = {.programs = programs,
                      .argv = argv,
                      .env = env,
                      .start_dir = -1,
                      .fds = {pty.slave, pty.slave, pty.slave},
                      .terminal = true};
    struct err err = {0};
    pid_t pid = spawn(&s, NULL, &err);
    if (pid < 0)
        fail_msg("%s", err.msg);
    return pid;
}

static void read_line(char *line, size_t size)
{
    size_t n = 0;
    while (n < size - 1 && (n == 0 || line[n - 1] != '\n')) {
        struct pollfd p = {.fd = pty.master, .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        assert_int_equal(read(pty.master, line + n, 1), 1);
        n++;
    }
    line[n] = '\0';
}

static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void the_foreground_is_known(void **state)
{
    (void)state;
    need_terminal();
    char line[64];
    assert_int_equal(pty_foreground(&pty), 0);
    pid_t pid = start("echo ready; read x; exit 3");
    read_line(line, sizeof line);
    assert_string_equal(line, "ready\n");
    assert_int_equal(pty_foreground(&pty), pid);
    assert_int_equal(write(pty.master, "\n", 1), 1);
    int status = end_of(pid);
    assert_int_equal(WEXITSTATUS(status), 3);
    pty_close(&pty);
    assert_int_equal(pty_foreground(&pty), 0);
    assert_int_equal(pty_resize(&pty, 1, 1), -1);
}

static void its_keys_send_signals(void **state)
{
    (void)state;
    need_terminal();
    char line[64];
    pid_t pid = start("echo ready; while :; do sleep 1; done");
    read_line(line, sizeof line);
    assert_int_equal(write(pty.master, "\003", 1), 1);
    int status = end_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

static void programs_hear_of_a_new_size(void **state)
{
    (void)state;
    need_terminal();
    char line[64];
    pid_t pid = start("trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.01; done");
    read_line(line, sizeof line);
    assert_int_equal(pty_resize(&pty, 33, 44), 0);
    read_line(line, sizeof line);
    assert_string_equal(line, "33 44\n");
    int status = end_of(pid);
    assert_int_equal(WEXITSTATUS(status), 4);
}

static void closing_hangs_up(void **state)
{
    (void)state;
    need_terminal();
    char line[64];
    pid_t pid = start("echo ready; while :; do sleep 1; done");
    read_line(line, sizeof line);
    pty_close(&pty);
    int status = end_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

/* ---- machines that lack something; in a child ---- */

static void check_not_given(const struct user *u)
{
    struct err err = {0};
    unsigned before = open_descriptors();
    CHECK(pty_open(&pty, 24, 80, u, &err) < 0 && pty.master == -1 && pty.slave == -1);
    CHECK(err.code == ERR_TOOL && strstr(err.msg, "cannot give the terminal to user 54321"));
    CHECK(open_descriptors() == before);
}

static void check_refused_owner(void *arg)
{
    (void)arg;
    struct user u = {.uid = STRANGER, .gid = STRANGER};
    refuse_call(SYS_fchown, EPERM); /* as where root has no CAP_CHOWN */
    check_not_given(&u);
}

static void check_owner(void *arg)
{
    (void)arg;
    struct user u = {.uid = STRANGER, .gid = STRANGER};
    struct err err = {0};
    struct stat st;
    if (geteuid() != 0) {
        check_not_given(&u);
        return;
    }
    CHECK(pty_open(&pty, 24, 80, &u, &err) == 0 && fstat(pty.slave, &st) == 0);
    CHECK(st.st_uid == STRANGER && (st.st_mode & 0777) == 0620);
    char name[32];
    snprintf(name, sizeof name, "/dev/pts/%u", minor(st.st_rdev));
    become_stranger();
    CHECK(open(name, O_RDWR | O_NOCTTY) >= 0); /* as the user's programs open their terminal */
    pty_close(&pty);
    u.uid = STRANGER;
    CHECK(pty_open(&pty, 24, 80, &u, &err) == 0); /* for oneself there is nothing to give */
}

static void another_user_gets_the_terminal(void **state)
{
    (void)state;
    need_terminal();
    in_child(check_owner, NULL);
    in_child(check_refused_owner, NULL);
}

static void check_no_dev(void *arg)
{
    (void)arg;
    struct err err = {0};
    hide_dev();
    unsigned before = open_descriptors();
    CHECK(pty_open(&pty, 24, 80, NULL, &err) == -1 && err.code == ERR_TOOL);
    CHECK(strstr(err.msg, "/dev/ptmx") && strstr(err.msg, "/dev/pts") && strstr(err.msg, "No such file"));
    CHECK(pty.master == -1 && pty.slave == -1 && open_descriptors() == before);
    CHECK(pty_open(&pty, 24, 80, NULL, NULL) == -1);
}

static void no_terminals_are_told_with_the_reason(void **state)
{
    (void)state;
    in_child(check_no_dev, NULL);
}

static void mount_devpts(const char *options)
{
    hide_dev();
    CHECK(mkdir("/dev/pts", 0755) == 0);
    if (mount("none", "/dev/pts", "devpts", 0, options) < 0)
        cannot("no devpts of its own");
}

static void check_no_ptmx(void *arg)
{
    (void)arg;
    struct err err = {0};
    mount_devpts("newinstance,ptmxmode=0666");
    CHECK(pty_open(&pty, 24, 80, NULL, &err) == 0);
}

static void the_multiplexer_of_devpts_is_enough(void **state)
{
    (void)state;
    in_child(check_no_ptmx, NULL);
}

static void check_none_left(void *arg)
{
    (void)arg;
    struct pty first, second, third;
    struct err err = {0};
    mount_devpts("newinstance,ptmxmode=0666,max=2");
    CHECK(symlink("pts/ptmx", "/dev/ptmx") == 0);
    CHECK(pty_open(&first, 24, 80, NULL, &err) == 0 && pty_open(&second, 24, 80, NULL, &err) == 0);
    CHECK(pty_open(&third, 24, 80, NULL, &err) == -1 && strstr(err.msg, "no terminal left"));
    pty_close(&first);
    CHECK(pty_open(&third, 24, 80, NULL, &err) == 0);
}

static void all_terminals_in_use_is_told(void **state)
{
    (void)state;
    in_child(check_none_left, NULL);
}

static void check_old_kernel(void *arg)
{
    (void)arg;
    struct err err = {0};
    struct stat a, b;
    refuse_ioctl(_IO('T', 0x41), ENOTTY); /* TIOCGPTPEER, of Linux 4.13 */
    CHECK(pty_open(&pty, 24, 80, NULL, &err) == 0);
    CHECK(write(pty.slave, "x", 1) == 1 && read(pty.master, (char[1]){0}, 1) == 1);
    unsigned n;
    char name[32];
    CHECK(ioctl(pty.master, TIOCGPTN, &n) == 0);
    snprintf(name, sizeof name, "/dev/pts/%u", n);
    CHECK(fstat(pty.slave, &a) == 0 && stat(name, &b) == 0 && a.st_rdev == b.st_rdev);
}

static void an_old_kernel_opens_it_by_name(void **state)
{
    (void)state;
    need_terminal();
    in_child(check_old_kernel, NULL);
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    need_terminal();
    unsigned before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        struct pty other;
        assert_int_equal(pty_open(&other, 24, 80, NULL, NULL), 0);
        pty_close(&other);
        pty_close(&other);
    }
    assert_int_equal(open_descriptors(), before);
}

#define pty_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        pty_test(it_opens_as_programs_expect_it),
        pty_test(what_a_program_left_is_mended),
        pty_test(what_was_chosen_is_not_mended),
        pty_test(bytes_go_through_unchanged),
        pty_test(output_outlives_the_program),
        pty_test(the_foreground_is_known),
        pty_test(its_keys_send_signals),
        pty_test(programs_hear_of_a_new_size),
        pty_test(closing_hangs_up),
        pty_test(another_user_gets_the_terminal),
        pty_test(no_terminals_are_told_with_the_reason),
        pty_test(the_multiplexer_of_devpts_is_enough),
        pty_test(all_terminals_in_use_is_told),
        pty_test(an_old_kernel_opens_it_by_name),
        pty_test(no_descriptor_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
