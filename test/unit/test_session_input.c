/* Terminals are real, and so are their readers: a child with the terminal in the mode that is wanted. */
#include "support.h"

#include <sys/ioctl.h>
#include <termios.h>

#include "tools/bash_session/session_input.h"
#include "io.h"
#include "pty.h"

static struct pty pty;
static struct input in;

static int set_up(void **state)
{
    (void)state;
    struct err err;
    in = (struct input){.pending = BUF_INIT};
    if (pty_open(&pty, 24, 80, NULL, &err) < 0)
        print_message("# skipped: %s\n", err.msg);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    input_release(&in);
    pty_close(&pty);
    return 0;
}

static void need_terminal(void)
{
    if (pty.master < 0)
        skip_because("no terminal can be had");
}

static void set_mode(tcflag_t off, tcflag_t on)
{
    struct termios t;
    assert_int_equal(tcgetattr(pty.slave, &t), 0);
    t.c_lflag = (t.c_lflag & ~off) | on;
    assert_int_equal(tcsetattr(pty.slave, TCSANOW, &t), 0);
}

static void add(const char *s, size_t n)
{
    struct err err = {0};
    if (input_add(&in, &pty, s, n, &err) < 0)
        fail_msg("%s", err.msg);
}

/* What a reader gets of all that is typed until the end of a file, or until `want` bytes are there. */
static void pump_and_read(size_t want, struct buf *got)
{
    char bytes[8192];
    bool ended = false;
    for (long long until = now_ms() + PATIENCE_MS; got->len < want && !ended;) {
        assert_true(now_ms() < until);
        struct pollfd p = {.fd = pty.slave, .events = POLLIN};
        input_pump(&in, &pty, true);
        while (!ended && poll(&p, 1, 0) > 0 && (p.revents & POLLIN)) {
            ssize_t n = read(pty.slave, bytes, sizeof bytes);
            assert_true(n >= 0);
            ended = n == 0;
            buf_add(got, bytes, (size_t)n);
        }
    }
}

static void assert_all_arrives(const struct buf *text)
{
    struct buf got BUF_AUTO = BUF_INIT;
    pump_and_read(text->len, &got);
    assert_int_equal(got.len, text->len);
    assert_memory_equal(got.data, text->data, text->len);
    assert_true(input_is_taken(&in, &pty));
}

static void put_lines(struct buf *text, size_t n, size_t line)
{
    while (text->len < n) {
        for (size_t i = 0; i < line; i++)
            buf_addc(text, (char)('a' + (text->len + i) % 26));
        buf_addc(text, '\n');
    }
}

/* ---- for a program that reads lines ---- */

static void lines_of_any_length_arrive(void **state)
{
    (void)state;
    need_terminal();
    static const size_t lines[] = {0, 1, 79, 4093, 4094, 4095, 4096, 4097, 8189, 8190, 8191, 100000};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf text BUF_AUTO = BUF_INIT;
        put_lines(&text, lines[i] < 1000 ? 20000 : 2 * lines[i], lines[i]);
        add(text.data, text.len);
        assert_all_arrives(&text);
    }
}

/* A line that is typed bit by bit, each bit written before the next one comes. */
static void a_line_in_pieces_arrives(void **state)
{
    (void)state;
    need_terminal();
    static const size_t pieces[][3] = {{4094, 1, 10}, {4095, 1, 10},   {4095, 4095, 4095}, {1, 4094, 4095},
                                       {4093, 2, 1},  {2000, 2095, 1}, {5000, 1, 4095},    {4095, 0, 1}};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct buf text BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
        for (int k = 0; k < 3; k++) {
            struct buf piece BUF_AUTO = BUF_INIT;
            for (size_t n = 0; n < pieces[i][k]; n++)
                buf_addc(&piece, (char)('A' + (text.len + n) % 26));
            buf_add(&text, buf_str(&piece), piece.len);
            add(buf_str(&piece), piece.len);
            for (int tries = 0; tries < 3; tries++)
                input_pump(&in, &pty, false); /* nobody reads yet */
        }
        add("\n", 1);
        buf_addc(&text, '\n');
        pump_and_read(text.len, &got);
        assert_int_equal(got.len, text.len);
        assert_memory_equal(got.data, text.data, text.len);
    }
}

/* Lines may end otherwise: no end-of-file key may come to stand behind such an end, where it would be the end
 * of the file. */
static void other_ends_of_lines_are_ends(void **state)
{
    (void)state;
    need_terminal();
    for (size_t line = 4090; line < 4098; line++) {
        struct buf text BUF_AUTO = BUF_INIT;
        put_lines(&text, 20000, line);
        for (size_t i = 0; i < text.len; i++)
            if (text.data[i] == '\n')
                text.data[i] = '\r';
        add(text.data, text.len);
        for (size_t i = 0; i < text.len; i++)
            if (text.data[i] == '\r')
                text.data[i] = '\n'; /* as the terminal hands it on */
        assert_all_arrives(&text);
    }
}

static void an_end_of_file_key_ends_the_file_once(void **state)
{
    (void)state;
    need_terminal();
    struct buf got BUF_AUTO = BUF_INIT;
    add("line\n\004next\n", 11);
    pump_and_read(100, &got);
    assert_int_equal(got.len, 5);
    pump_and_read(10, &got);
    assert_string_equal(got.data, "line\nnext\n");
    add("unfinished\004\004", 12); /* the first one only delivers */
    buf_truncate(&got, 0);
    pump_and_read(100, &got);
    assert_string_equal(got.data, "unfinished");
    struct buf more BUF_AUTO = BUF_INIT;
    for (int i = 0; i < 4095; i++)
        buf_addc(&more, 'x');
    buf_adds(&more, "\n\004");
    add(more.data, more.len);
    buf_truncate(&got, 0);
    pump_and_read(10000, &got);
    assert_int_equal(got.len, 4096);
}

/* While nobody reads, nothing is pushed: the terminal would drop it. */
static void what_nobody_reads_waits(void **state)
{
    (void)state;
    need_terminal();
    struct buf text BUF_AUTO = BUF_INIT;
    put_lines(&text, 300000, 80);
    add(text.data, text.len);
    assert_true(input_pump(&in, &pty, false));
    for (int i = 0; i < 50; i++)
        assert_false(input_pump(&in, &pty, false));
    assert_false(input_is_taken(&in, &pty));
    assert_true(in.pending.len - in.written > 295000);
    assert_all_arrives(&text);
}

/* ---- for one that reads keys ---- */

static void keys_arrive(void **state)
{
    (void)state;
    need_terminal();
    set_mode(ICANON | ISIG, 0);
    struct buf text BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < 50000; i++)
        buf_addc(&text, (char)(i % 7 == 0 ? 'a' + i % 26 : i % 31 + 32));
    add(text.data, text.len);
    assert_all_arrives(&text);
}

/* A line editor that starts a program: what it left in the terminal is then read as lines. */
static void a_change_of_mode_loses_nothing(void **state)
{
    (void)state;
    need_terminal();
    for (int round = 0; round < 4; round++) {
        struct buf text BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
        put_lines(&text, 60000, round % 2 ? 5000 : 60);
        add(text.data, text.len);
        for (size_t part = 1; part <= 20; part++) {
            set_mode(ICANON, part % 2 ? 0 : ICANON);
            pump_and_read(text.len * part / 20, &got);
        }
        set_mode(0, ICANON);
        pump_and_read(text.len, &got);
        assert_int_equal(got.len, text.len);
        assert_memory_equal(got.data, text.data, text.len);
    }
}

/* Left in the terminal, an end-of-file key would be a plain byte for the program that the line editor starts.
 */
static void an_end_of_file_key_waits_for_its_reader(void **state)
{
    (void)state;
    need_terminal();
    char bytes[64];
    set_mode(ICANON, 0);
    add("cat\n\004more\n", 10);
    assert_true(input_pump(&in, &pty, true));
    assert_int_equal(read(pty.slave, bytes, sizeof bytes), 4);
    assert_false(input_pump(&in, &pty, false)); /* the editor has not begun to wait again */
    set_mode(0, ICANON);
    assert_true(input_pump(&in, &pty, true));
    assert_int_equal(read(pty.slave, bytes, sizeof bytes), 0);
    set_mode(ICANON, 0);
    struct buf got BUF_AUTO = BUF_INIT;
    pump_and_read(5, &got);
    assert_string_equal(got.data, "more\n");
}

/* ---- keys that send signals ---- */

static void a_signal_key_throws_away_what_was_typed(void **state)
{
    (void)state;
    need_terminal();
    struct buf text BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
    assert_int_equal(input_signal_key(&pty, "a\003b", 3), 2);
    assert_true(input_signal_key(&pty, "\032", 1) == 1 && input_signal_key(&pty, "a\034b\032", 4) == 4);
    assert_true(input_signal_key(&pty, "a\004\177\0b", 5) == 0 && input_signal_key(&pty, "", 0) == 0);
    put_lines(&text, 100000, 5000);
    add(text.data, text.len);
    input_pump(&in, &pty, true);
    add("lost\003lost as well\032kept\n", 23);
    struct pollfd p = {.fd = pty.slave, .events = POLLIN};
    for (long long until = now_ms() + PATIENCE_MS;
         poll(&p, 1, 0) > 0;) /* the kernel has yet to see the key */
        assert_true(now_ms() < until);
    pump_and_read(5, &got);
    assert_string_equal(got.data, "kept\n");
    assert_true(input_is_taken(&in, &pty));
    set_mode(ISIG, 0);
    assert_int_equal(input_signal_key(&pty, "a\003b", 3), 0);
    add("a\003b\n", 4);
    buf_truncate(&got, 0);
    pump_and_read(4, &got);
    assert_string_equal(got.data, "a\003b\n");
}

/* Also with as much of a line in the terminal as it takes. */
static void a_signal_key_has_its_place(void **state)
{
    (void)state;
    need_terminal();
    for (size_t n = 4090; n < 4098; n++) {
        struct buf text BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
        put_lines(&text, n, n);
        buf_truncate(&text, n);
        add(text.data, n);
        input_pump(&in, &pty, true);
        add("more", 4);
        input_pump(&in, &pty, true);
        add("\003kept\n", 6);
        struct pollfd p = {.fd = pty.slave, .events = POLLIN};
        for (long long until = now_ms() + PATIENCE_MS; poll(&p, 1, 0) > 0;)
            assert_true(now_ms() < until);
        pump_and_read(5, &got);
        assert_string_equal(got.data, "kept\n");
    }
}

static void check_interrupt(void *arg)
{
    (void)arg;
    CHECK(setsid() == getpid() && ioctl(pty.slave, TIOCSCTTY, 0) == 0);
    CHECK(kill(getppid(), SIGUSR1) == 0);
    for (;;)
        pause();
}

static volatile sig_atomic_t ready;

static void note_ready(int signal)
{
    (void)signal;
    ready = 1;
}

static void a_signal_key_reaches_who_does_not_read(void **state)
{
    (void)state;
    need_terminal();
    struct buf text BUF_AUTO = BUF_INIT;
    int status;
    signal(SIGUSR1, note_ready);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_MS / 1000);
        check_interrupt(NULL);
    }
    for (long long until = now_ms() + PATIENCE_MS; !ready && now_ms() < until;)
        usleep(1000);
    put_lines(&text, 100000, 60); /* the terminal is full */
    add(text.data, text.len);
    for (int i = 0; i < 10; i++)
        input_pump(&in, &pty, true);
    add("\003", 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    assert_int_equal(in.pending.len, 0);
}

/* ---- limits ---- */

static void a_queue_has_an_end(void **state)
{
    (void)state;
    need_terminal();
    struct err err = {0};
    char *much = calloc(1, SESSION_INPUT_MAX);
    assert_non_null(much);
    memset(much, 'x', SESSION_INPUT_MAX);
    assert_int_equal(input_add(&in, &pty, much, SESSION_INPUT_MAX, &err), 0);
    assert_int_equal(input_add(&in, &pty, "y", 1, &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_non_null(strstr(err.msg, "nothing of the input was taken"));
    assert_int_equal(in.pending.len, SESSION_INPUT_MAX);
    add("\003z", 2); /* makes room */
    assert_int_equal(in.pending.len, 1);
    free(much);
}

static void a_terminal_that_is_gone_does_no_harm(void **state)
{
    (void)state;
    need_terminal();
    add("text\n", 5);
    pty_close(&pty);
    assert_false(input_pump(&in, &pty, true));
    assert_false(input_signal_key(&pty, "\003", 1));
    assert_false(input_is_taken(&in, &pty));
    add("\003", 1);
}

#define input_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        input_test(lines_of_any_length_arrive),
        input_test(a_line_in_pieces_arrives),
        input_test(other_ends_of_lines_are_ends),
        input_test(an_end_of_file_key_ends_the_file_once),
        input_test(what_nobody_reads_waits),
        input_test(keys_arrive),
        input_test(a_change_of_mode_loses_nothing),
        input_test(an_end_of_file_key_waits_for_its_reader),
        input_test(a_signal_key_throws_away_what_was_typed),
        input_test(a_signal_key_has_its_place),
        input_test(a_signal_key_reaches_who_does_not_read),
        input_test(a_queue_has_an_end),
        input_test(a_terminal_that_is_gone_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
