/* The client's side of one request. The test is the other end of its socket. */
#include "support.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "buf.h"
#include "err.h"
#include "exchange.h"
#include "io.h"
#include "mem.h"
#include "span.h"

static int ends[2]; /* the exchange's, the peer's */
static struct buf answer;
static struct exchange x;
static struct err err;

static struct span text_span(const char *text)
{
    return (struct span){text, strlen(text)};
}

static int set_up(void **state)
{
    (void)state;
    buf_init(&answer, BUF_NO_MAX);
    err = (struct err){0};
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static int tear_down(void **state)
{
    (void)state;
    io_close(&ends[0]);
    io_close(&ends[1]);
    buf_release(&answer);
    return 0;
}

static enum exchange_want run(void)
{
    errno = 0;
    return exchange_run(&x, &err);
}

/* Sends a short request and reads it as the peer. */
static void ask(void)
{
    char request[256];
    buf_truncate(&answer, 0);
    exchange_init(&x, ends[0], text_span("{}"), &answer);
    assert_int_equal(run(), EXCHANGE_READ);
    assert_true(read(ends[1], request, sizeof request) > 0);
}

static void say_bytes(const void *data, size_t n)
{
    assert_int_equal(io_write_all(ends[1], data, n), 0);
}

static void say(const char *text)
{
    say_bytes(text, strlen(text));
}

static int unread(int fd)
{
    int n = -1;
    assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
    return n;
}

static void assert_answer(const char *text)
{
    assert_int_equal(answer.len, strlen(text));
    assert_string_equal(buf_str(&answer), text);
}

static void assert_failed(enum err_code code, int with, const char *why)
{
    assert_int_equal(run(), EXCHANGE_FAILED);
    int number = errno;
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.msg, why));
    assert_int_equal(number, with);
    err = (struct err){0};
}

/* ---- out ---- */

static void a_request_is_sent_with_its_length(void **state)
{
    (void)state;
    static const char want[] = "POST / HTTP/1.1\r\nHost: toolbox\r\nContent-Type: application/json\r\n"
                               "Content-Length: 7\r\n\r\n[1,2,3]";
    char got[256] = "";
    exchange_init(&x, ends[0], text_span("[1,2,3]"), &answer);
    assert_int_equal(run(), EXCHANGE_READ);
    assert_int_equal(read(ends[1], got, sizeof got), sizeof want - 1);
    assert_string_equal(got, want);
    assert_int_equal(run(), EXCHANGE_READ); /* not again */
    assert_int_equal(unread(ends[1]), 0);

    memset(got, 0, sizeof got);
    exchange_init(&x, ends[0], (struct span){"", 0}, &answer);
    assert_int_equal(run(), EXCHANGE_READ);
    assert_true(read(ends[1], got, sizeof got) > 0);
    assert_non_null(strstr(got, "Content-Length: 0\r\n\r\n"));
}

static void a_long_request_goes_as_far_as_it_can(void **state)
{
    (void)state;
    enum { SIZE = 3000000 };
    struct buf want BUF_AUTO = BUF_INIT, got BUF_AUTO = BUF_INIT;
    while (want.len < SIZE)
        buf_addf(&want, "%zu,", want.len);
    exchange_init(&x, ends[0], (struct span){want.data, want.len}, &answer);
    assert_int_equal(run(), EXCHANGE_WRITE);
    assert_true(unread(ends[1]) > 0);
    io_set_nonblock(ends[1], true);
    for (enum exchange_want next = EXCHANGE_WRITE; next != EXCHANGE_READ; next = run()) {
        assert_int_equal(next, EXCHANGE_WRITE);
        assert_true(io_read_more(ends[1], &got) > 0);
    }
    while (io_read_more(ends[1], &got) > 0)
        continue;
    assert_int_equal(got.len, x.head_len + want.len);
    assert_memory_equal(got.data + x.head_len, want.data, want.len);
}

/* ---- in ---- */

static void a_short_answer_stays_in_the_socket(void **state)
{
    (void)state;
    static const char text[] = "HTTP/1.1 200 OK\r\nX-Content-Length: 9\r\ncontent-length:   5\r\n\r\nhello";
    ask();
    say(text);
    assert_int_equal(run(), EXCHANGE_DONE);
    assert_answer("hello");
    assert_int_equal(unread(ends[0]), sizeof text - 1);
    say("more");
    exchange_take_rest(ends[0]);
    assert_int_equal(unread(ends[0]), 0);
}

static void what_is_behind_an_answer_is_not_of_it(void **state)
{
    (void)state;
    ask();
    say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world");
    assert_int_equal(run(), EXCHANGE_DONE);
    assert_answer("hello");
}

static void an_answer_may_come_byte_by_byte(void **state)
{
    (void)state;
    static const char *const bodies[] = {"x", "xy", "a longer one"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char *text MEM_AUTO =
            mem_printf("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(bodies[i]), bodies[i]);
        ask();
        for (size_t n = 0; n < strlen(text); n++) {
            assert_int_equal(run(), EXCHANGE_READ);
            say_bytes(text + n, 1);
        }
        assert_int_equal(run(), EXCHANGE_DONE);
        assert_answer(bodies[i]);
        assert_int_equal(unread(ends[0]), 1); /* the peer learns that it was read when this one is */
        exchange_take_rest(ends[0]);
    }
}

static void an_answer_without_content_is_one(void **state)
{
    (void)state;
    ask();
    say("HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(run(), EXCHANGE_DONE);
    assert_answer("");
}

static void a_long_answer_is_read_piece_by_piece(void **state)
{
    (void)state;
    enum { SIZE = 2500000 };
    struct buf body BUF_AUTO = BUF_INIT;
    while (body.len < SIZE)
        buf_addf(&body, "%zu,", body.len);
    buf_truncate(&body, SIZE);
    ask();
    say("HTTP/1.1 200 OK\r\nContent-Length: 2500000\r\n\r\n");
    io_set_nonblock(ends[1], true);
    for (size_t sent = 0; sent < SIZE;) {
        assert_int_equal(run(), EXCHANGE_READ);
        ssize_t n = send(ends[1], body.data + sent, SIZE - sent, MSG_NOSIGNAL);
        assert_true(n > 0);
        sent += (size_t)n;
    }
    assert_int_equal(run(), EXCHANGE_DONE);
    assert_int_equal(answer.len, SIZE);
    assert_memory_equal(answer.data, body.data, SIZE);
    assert_int_equal(unread(ends[0]), 1);
}

static void only_one_at_a_time_reads_a_long_answer(void **state)
{
    (void)state;
    struct exchange other = {0}, *turn = &other;
    ask();
    x.turn = &turn;
    say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlo");
    assert_int_equal(run(), EXCHANGE_TURN);
    say("ng");
    assert_int_equal(run(), EXCHANGE_TURN);
    turn = NULL;
    assert_int_equal(run(), EXCHANGE_DONE);
    assert_ptr_equal(turn, &x);
    assert_answer("long");
    exchange_take_rest(ends[0]);

    turn = &other;
    ask();
    x.turn = &turn;
    say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole");
    assert_int_equal(run(), EXCHANGE_DONE);
    assert_ptr_equal(turn, &other);
}

/* ---- what goes wrong ---- */

static void what_is_no_answer_of_ours_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 199 Odd\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 600 Odd\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length 2\r\n\r\n{}",
        "HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 1073741825\r\n\r\n",
        "SSH-2.0-OpenSSH\r\nContent-Length: 2\r\n\r\n{}",
        "\r\n\r\n",
        "HTTP/1.1 200 Content-Length: 2\r\n\r\n{}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ask();
        say(texts[i]);
        assert_failed(ERR_INTERNAL, EPROTO, "no HTTP response of ours");
        exchange_take_rest(ends[0]);
    }
}

static void a_head_has_an_end(void **state)
{
    (void)state;
    char line[1024];
    memset(line, 'x', sizeof line);
    ask();
    enum exchange_want want = EXCHANGE_READ;
    int lines = 0;
    for (; want == EXCHANGE_READ && lines < 64; lines++) {
        say_bytes(line, sizeof line);
        want = run();
    }
    assert_int_equal(want, EXCHANGE_FAILED);
    assert_in_range(lines, 16, 20);
}

static void a_refusal_is_told_in_its_words(void **state)
{
    (void)state;
    static const char *const words[] = {"400 Bad Request", "599 At The Edge", "201 Created", "503 Busy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *text MEM_AUTO = mem_printf("HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\n{}", words[i]);
        char *want MEM_AUTO = mem_printf("the request was refused: HTTP %s", words[i]);
        ask();
        say(text);
        assert_int_equal(run(), EXCHANGE_FAILED);
        assert_string_equal(err.msg, want);
        exchange_take_rest(ends[0]);
    }
}

static void a_peer_that_goes_says_how_far_it_has_read(void **state)
{
    (void)state;
    exchange_init(&x, ends[0], text_span("{}"), &answer);
    assert_int_equal(run(), EXCHANGE_READ);
    io_close(&ends[1]); /* without a look */
    assert_failed(ERR_INTERNAL, ECONNRESET, "closed without an answer");

    io_close(&ends[0]);
    assert_int_equal(set_up(NULL), 0);
    ask();
    io_close(&ends[1]);
    assert_failed(ERR_INTERNAL, EPIPE, "closed without an answer");

    io_close(&ends[0]);
    assert_int_equal(set_up(NULL), 0);
    ask();
    say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlo");
    assert_int_equal(run(), EXCHANGE_READ);
    assert_int_equal(write(ends[0], "x", 1),
                     1); /* it leaves something unread: it has the request nevertheless */
    io_close(&ends[1]);
    assert_failed(ERR_INTERNAL, EPIPE, "closed without an answer");
}

static void a_peer_that_does_not_take_all_may_say_why(void **state)
{
    (void)state;
    struct buf body BUF_AUTO = BUF_INIT;
    buf_reserve(&body, 4000000);
    memset(body.data, ' ', 4000000);
    for (int says = 0; says < 2; says++) {
        exchange_init(&x, ends[0], (struct span){body.data, 4000000}, &answer);
        assert_int_equal(run(), EXCHANGE_WRITE);
        if (says)
            say("HTTP/1.1 413 Too Large\r\n\r\n");
        io_close(&ends[1]);
        assert_int_equal(run(), EXCHANGE_FAILED);
        if (!says)
            assert_int_equal(errno, ECONNRESET);
        assert_non_null(strstr(err.msg, says ? "413 Too Large" : "closed without an answer"));
        tear_down(NULL);
        assert_int_equal(set_up(NULL), 0);
    }
}

static void what_is_no_socket_is_an_error(void **state)
{
    (void)state;
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    exchange_init(&x, pipes[1], text_span("{}"), &answer);
    assert_failed(ERR_INTERNAL, ENOTSOCK, "cannot send the request");
    ask();
    x.fd = pipes[0];
    assert_failed(ERR_INTERNAL, ENOTSOCK, "cannot read the answer");
    close(pipes[0]);
    close(pipes[1]);
}

/* Three shares of the memory, each of which is 256 KiB where there is none. */
struct length {
    char dir[64];
    int n;
};

static void check_memory(void *arg)
{
    const struct length *length = arg;
    char *text MEM_AUTO = mem_printf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", length->n);
    enter_root(length->dir);
    exchange_init(&x, ends[0], text_span("{}"), &answer);
    CHECK(exchange_run(&x, &err) == EXCHANGE_READ);
    CHECK(io_write_all(ends[1], text, strlen(text)) == 0);
    enum exchange_want want = exchange_run(&x, &err);
    if (length->n == 786432)
        CHECK(want == EXCHANGE_READ);
    else
        CHECK(want == EXCHANGE_FAILED && errno == EPROTO && err.code == ERR_TOOL &&
              strstr(err.msg, "has 10 MiB"));
    CHECK(recv(ends[0], (char[1]){0}, 1, MSG_DONTWAIT) ==
          (length->n == 786432 ? -1 : 1)); /* left, or taken */
}

static void an_answer_without_the_memory_is_left(void **state)
{
    (void)state;
    struct length length = {.n = 786432};
    make_dir(length.dir);
    char *proc MEM_AUTO = mem_printf("%s/proc", length.dir);
    char *path MEM_AUTO = mem_printf("%s/meminfo", proc);
    assert_int_equal(mkdir(proc, 0755), 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs("MemAvailable: 0 kB\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    in_child(check_memory, &length);
    length.n = 10485760;
    in_child(check_memory, &length);
    remove_dir(length.dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_sent_with_its_length),
        TEST(a_long_request_goes_as_far_as_it_can),
        TEST(a_short_answer_stays_in_the_socket),
        TEST(what_is_behind_an_answer_is_not_of_it),
        TEST(an_answer_may_come_byte_by_byte),
        TEST(an_answer_without_content_is_one),
        TEST(a_long_answer_is_read_piece_by_piece),
        TEST(only_one_at_a_time_reads_a_long_answer),
        TEST(what_is_no_answer_of_ours_is_refused),
        TEST(a_head_has_an_end),
        TEST(a_refusal_is_told_in_its_words),
        TEST(a_peer_that_goes_says_how_far_it_has_read),
        TEST(a_peer_that_does_not_take_all_may_say_why),
        TEST(what_is_no_socket_is_an_error),
        TEST(an_answer_without_the_memory_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
