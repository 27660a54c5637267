/* The shell's side is played by this process: it opens the channel by its path, as a shell does. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "tools/bash_session/session_channel.h"
#include "io.h"

static struct channel channel;
static int shell = -1; /* its end, where a test holds that open */

static int set_up(void **state)
{
    (void)state;
    if (channel_open(&channel, NULL) < 0)
        print_message("# skipped: no terminals\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    io_close(&shell);
    channel_close(&channel);
    return 0;
}

static int open_as_shell(void)
{
    if (channel.pty.master < 0)
        skip_because("no terminal can be had");
    int fd = open(channel.path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* ---- messages ---- */

static void tell_raw(const char *bytes, size_t n)
{
    int fd = open_as_shell();
    assert_int_equal(io_write_all(fd, bytes, n), 0);
    close(fd);
}

/* With the secret where a message starts. */
static void put_message(struct buf *out, const char *bytes, size_t n, const char *secret)
{
    for (size_t i = 0; i < n; i++) {
        buf_addc(out, bytes[i]);
        if (bytes[i] == '\001' && i + 1 < n && strchr("PTQX", bytes[i + 1]))
            buf_adds(out, secret);
    }
}

static void tell(const char *bytes, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    put_message(&text, bytes, n, channel.secret);
    tell_raw(text.data, text.len);
}

#define TELL(bytes) tell(bytes, sizeof(bytes) - 1)

static bool hear(struct channel_message *m)
{
    for (int i = 0; i < 200; i++) { /* what was written is on its way through the kernel */
        if (channel_read(&channel, m))
            return true;
        usleep(100);
    }
    return false;
}

static void assert_silent(void)
{
    struct channel_message m;
    assert_false(hear(&m));
}

static void assert_prompt(long pid, int status, const char *cwd)
{
    struct channel_message m;
    assert_true(hear(&m));
    assert_int_equal(m.kind, 'P');
    assert_int_equal(m.pid, pid);
    assert_int_equal(m.status, status);
    assert_string_equal(m.cwd, cwd);
    channel_message_release(&m);
}

static const char prompt[] = "\001P1234\0"
                             "7\0/a directory\nwith \001\xC3\xA9 in it\0> \0";

/* An interpreter's, which says what it raised. */
static void an_exception_is_told(void **state)
{
    (void)state;
    struct channel_message m;
    TELL("\001X1234\0"
         "1\0/\0KeyError\0'a\nb'\0\001X1234\0"
         "0\0/\0\0\0");
    assert_true(hear(&m));
    assert_int_equal(m.kind, 'P');
    assert_int_equal(m.status, 1);
    assert_string_equal(m.error, "KeyError\n'a\nb'");
    channel_message_release(&m);
    assert_true(hear(&m));
    assert_int_equal(m.status, 0);
    assert_null(m.error);
    channel_message_release(&m);
}

static void a_prompt_is_told(void **state)
{
    (void)state;
    TELL(prompt);
    assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
    assert_silent();
    TELL("\001P1\0"
         "0\0\0\0");
    assert_prompt(1, 0, "");
    TELL("\001P9\0\001P1\0"
         "7 2\0/\0> \0"); /* behind the front of one */
    assert_prompt(1, 7, "/");
    TELL("\001T9\0"
         "0\0\001P1\0"
         "6\0/\0> \0");
    assert_prompt(1, 6, "/");
    TELL("\001P1\0"
         "0\0/\0> \0\001P2\0"
         "1\0/x\0> \0"); /* two at once */
    assert_prompt(1, 0, "/");
    assert_prompt(2, 1, "/x");
    assert_silent();
}

static void other_messages_are_told(void **state)
{
    (void)state;
    struct channel_message m;
    TELL("\001T77\0"
         "3\0/\0");
    assert_true(hear(&m));
    assert_int_equal(m.kind, 'T');
    assert_int_equal(m.pid, 77);
    assert_null(m.prompt);
    channel_message_release(&m);
    struct buf query BUF_AUTO = BUF_INIT;
    buf_add(&query,
            "\001Q77\0"
            "3\0/\0",
            9);
    buf_addf(&query, "%s%ctwo\nlines$ \nX%c", channel.secret, 0, 0);
    tell(query.data, query.len);
    assert_true(hear(&m));
    assert_int_equal(m.kind, 'Q');
    assert_true(m.armed && !m.half);
    assert_string_equal(m.prompt, "two\nlines$ \n");
    channel_message_release(&m);
    buf_truncate(&query, 9);
    buf_addf(&query, "%sx%c%c", channel.secret, 0, 0);
    tell(query.data, query.len);
    assert_true(hear(&m));
    assert_true(m.armed && m.half);
    channel_message_release(&m);
    TELL("\001Q77\0"
         "3\0/\0\0\0");
    assert_true(hear(&m));
    assert_false(m.armed);
    assert_null(m.prompt);
    channel_message_release(&m);
    assert_silent();
}

/* However it comes; and nothing before it is whole. */
static void a_message_may_come_in_pieces(void **state)
{
    (void)state;
    struct buf text BUF_AUTO = BUF_INIT;
    shell = open_as_shell();
    put_message(&text, prompt, sizeof prompt - 1, channel.secret);
    for (size_t cut = 1; cut < text.len; cut++) {
        struct channel_message m;
        tell_raw(text.data, cut);
        assert_false(channel_read(&channel, &m));
        tell_raw(text.data + cut, text.len - cut);
        assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
    }
}

static void what_is_no_message_is_passed_over(void **state)
{
    (void)state;
    TELL("bash: some error\n+ printf '\\1P'\n\0\0\377 \001P5\0"
         "6\0/\0> \0+ trace\n");
    assert_prompt(5, 6, "/");
    assert_silent();
    struct buf much BUF_AUTO = BUF_INIT;
    for (int i = 0; i < 2000; i++)
        buf_adds(&much, "no message at all ");
    for (int i = 0; i < 10; i++) { /* no faster than it is read */
        struct channel_message m;
        tell(much.data, 3000);
        assert_false(channel_read(&channel, &m));
    }
    buf_truncate(&much, 0);
    buf_addc(&much, '\001'); /* one without end */
    while (much.len < 200000)
        buf_addc(&much, 'x');
    for (size_t at = 0; at < much.len; at += 3000) {
        struct channel_message m;
        tell(much.data + at, much.len - at < 3000 ? much.len - at : 3000);
        channel_read(&channel, &m);
        assert_true(channel.incoming.len <= 2ul * 65536);
    }
    TELL("\0\0\0\0\0\0\0");
    struct channel_message m;
    while (hear(&m))
        channel_message_release(&m);
    TELL("\001P8\0"
         "9\0/\0> \0");
    assert_prompt(8, 9, "/");
}

/* ---- what others write ---- */

/* Whatever stands before, behind and between. */
static void what_has_not_the_secret_is_passed_over(void **state)
{
    (void)state;
    static const char *const secrets[] = {"", "00000000000000000000000000000000", "\001\001\001", "$__word"};
    struct buf noise BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < 4; i++)
        put_message(&noise, prompt, sizeof prompt - 1, secrets[i]);
    buf_add(&noise, prompt, 4); /* one without end */
    tell_raw(noise.data, noise.len);
    assert_silent();
    for (int i = 0; i < 20; i++) {
        tell_raw(noise.data, noise.len - (size_t)i);
        TELL(prompt);
        tell_raw("\001", 1);
        assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
    }
    assert_silent();
}

/* Nobody keeps us reading who writes without end. */
static void a_flood_is_read_in_parts(void **state)
{
    (void)state;
    struct channel_message m;
    char flood[4000];
    memset(flood, 'x', sizeof flood);
    int fd = open_as_shell();
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    for (int i = 0; i < 1000; i++) {
        if (write(fd, flood, sizeof flood) < 0)
            assert_int_equal(errno, EAGAIN);
        assert_false(channel_read(&channel, &m));
        assert_true(channel.incoming.cap <= 1 << 18);
    }
    close(fd);
    TELL(prompt);
    assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
}

static void another_secret_counts_once_it_is_used(void **state)
{
    (void)state;
    shell = open_as_shell();
    char first[CHANNEL_SECRET + 1];
    struct channel_message m;
    memcpy(first, channel.secret, sizeof first);
    const char *second = channel_offer_secret(&channel);
    assert_string_not_equal(first, second);
    TELL(prompt); /* the shell has the first still */
    assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
    struct buf text BUF_AUTO = BUF_INIT, old BUF_AUTO = BUF_INIT;
    put_message(&text, prompt, sizeof prompt - 1, second);
    tell_raw(text.data, text.len);
    assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
    put_message(&old, prompt, sizeof prompt - 1, first);
    tell_raw(old.data, old.len);
    assert_false(hear(&m));
    TELL(prompt);
    assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
}

static void what_others_did_to_it_is_undone(void **state)
{
    (void)state;
    int fd = open_as_shell();
    struct termios t, raw;
    struct stat st;
    assert_int_equal(tcgetattr(fd, &t), 0);
    raw = t;
    cfmakeraw(&raw);
    raw.c_lflag |= ECHO;
    raw.c_cc[VEOF] = 'x';
    assert_int_equal(tcsetattr(fd, TCSANOW, &raw), 0);
    assert_int_equal(tcflow(fd, TCOOFF), 0);
    assert_int_equal(ioctl(fd, TIOCEXCL), 0);
    assert_int_equal(fchmod(fd, 0), 0);
    channel_mend(&channel);
    assert_int_equal(tcgetattr(fd, &raw), 0);
    assert_true(raw.c_iflag == t.c_iflag && raw.c_oflag == t.c_oflag && raw.c_lflag == t.c_lflag &&
                raw.c_cc[VEOF] == t.c_cc[VEOF]);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close(fd);
    TELL(prompt);
    assert_prompt(1234, 7, "/a directory\nwith \001\xC3\xA9 in it");
}

/* ---- the other way ---- */

static void the_shell_waits_for_its_answer(void **state)
{
    (void)state;
    char bytes[16];
    int fd = open_as_shell();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    TELL("\001P1\0"
         "0\0/\0> \0");
    assert_prompt(1, 0, "/");
    assert_int_equal(poll(&p, 1, 0), 0);
    channel_acknowledge(&channel);
    channel_acknowledge(&channel); /* one too many does not answer the next */
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(read(fd, bytes, sizeof bytes), 1);
    assert_int_equal(bytes[0], '\n');
    assert_int_equal(poll(&p, 1, 0), 0);
    channel.sourced = true; /* to a `read` it is a word, where a file is read it ends that */
    channel_acknowledge(&channel);
    channel.sourced = false;
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(read(fd, bytes, sizeof bytes), 8);
    assert_memory_equal(bytes, "\\return\n", 8);
    close(fd);
}

static void read_to_end(int fd, struct buf *got)
{
    char bytes[8192];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        while (poll(&p, 1, 1) == 0)
            channel_pump(&channel);
        ssize_t n = read(fd, bytes, sizeof bytes);
        assert_true(n >= 0);
        if (n == 0)
            return;
        buf_add(got, bytes, (size_t)n);
    }
}

static void put_code(struct buf *code, size_t n)
{
    while (code->len < n)
        buf_addf(code, "echo '%zu \t\001\003\004x\022\x1A\x1C\x7F\xC3\xA9'\r\n", code->len);
    for (size_t i = 0; i < code->len; i++)
        if (code->data[i] == 4)
            code->data[i] = ' '; /* the one that ends it */
}

/* As a file: every byte, and then its end. */
static void code_is_read_like_a_file(void **state)
{
    (void)state;
    static const size_t sizes[] = {10, 3000, 4095, 20000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buf code BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
        int fd = open_as_shell();
        put_code(&code, sizes[i]);
        channel_put_code(&channel, &code);
        read_to_end(fd, &got);
        assert_int_equal(got.len, code.len);
        assert_memory_equal(got.data, code.data, code.len);
        assert_false(channel_pump(&channel));
        close(fd);
    }
}

static void the_start_is_read_from_a_pipe(void **state)
{
    (void)state;
    struct buf code BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
    shell = open_as_shell();
    buf_adds(&code, "code\n");
    int fd = channel_code_pipe(&channel, &code, false);
    if (fd < 0)
        skip(); /* no /proc */
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int again = open(name, O_RDONLY);
    close(fd);
    read_to_end(again, &got);
    assert_string_equal(got.data, "code\n");
    close(again);
}

static void code_that_nobody_read_is_replaced(void **state)
{
    (void)state;
    struct buf old BUF_AUTO = BUF_INIT, code BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
    int fd = open_as_shell();
    put_code(&old, 20000);
    channel_put_code(&channel, &old);
    assert_true(channel_pump(&channel));
    buf_adds(&code, "new\n");
    channel_put_code(&channel, &code);
    read_to_end(fd, &got);
    assert_string_equal(got.data, "new\n");
    close(fd);
}

/* ---- opening ---- */

static void check_hidden(void *arg)
{
    (void)arg;
    struct channel none;
    hide_dev();
    unsigned before = open_descriptors();
    CHECK(channel_open(&none, NULL) == -1 && none.pty.master == -1);
    CHECK(open_descriptors() == before);
    channel_close(&none);
}

static void without_terminals_there_is_none(void **state)
{
    (void)state;
    in_child(check_hidden, NULL);
}

static void check_for_user(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can give a terminal away");
    struct user u = {.uid = STRANGER, .gid = STRANGER};
    struct channel theirs;
    CHECK(channel_open(&theirs, &u) == 0);
    become_stranger();
    CHECK(open(theirs.path, O_RDWR | O_NOCTTY) >= 0);
}

static void the_user_can_open_it(void **state)
{
    (void)state;
    shell = open_as_shell();
    in_child(check_for_user, NULL);
}

static void no_descriptor_is_left_open(void **state)
{
    (void)state;
    close(open_as_shell());
    unsigned before = open_descriptors();
    for (int i = 0; i < 30; i++) {
        struct channel one;
        assert_int_equal(channel_open(&one, NULL), 0);
        assert_true(fcntl(one.pty.master, F_GETFD) & FD_CLOEXEC);
        channel_close(&one);
    }
    assert_int_equal(open_descriptors(), before);
}

#define channel_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        channel_test(a_prompt_is_told),
        channel_test(an_exception_is_told),
        channel_test(other_messages_are_told),
        channel_test(a_message_may_come_in_pieces),
        channel_test(what_is_no_message_is_passed_over),
        channel_test(what_has_not_the_secret_is_passed_over),
        channel_test(a_flood_is_read_in_parts),
        channel_test(another_secret_counts_once_it_is_used),
        channel_test(what_others_did_to_it_is_undone),
        channel_test(the_shell_waits_for_its_answer),
        channel_test(the_start_is_read_from_a_pipe),
        channel_test(code_is_read_like_a_file),
        channel_test(code_that_nobody_read_is_replaced),
        channel_test(without_terminals_there_is_none),
        channel_test(the_user_can_open_it),
        channel_test(no_descriptor_is_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
