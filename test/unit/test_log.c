#include "support.h"

#include <ctype.h>

#include "buf.h"
#include "io.h"
#include "log.h"

static char dir[64];
static int dirfd_;

static int set_up(void **state)
{
    (void)state;
    make_dir(dir);
    dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    log_open(dirfd_, false);
    log_set_level(LOG_INFO);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    log_open(-1, false);
    close(dirfd_);
    remove_dir(dir);
    return 0;
}

static char *contents(const char *name)
{
    static struct buf text;
    buf_release(&text);
    buf_init(&text, BUF_NO_MAX);
    io_read_file(dirfd_, name, &text);
    return text.data ? text.data : (char *)"";
}

static struct stat stat_of(const char *name)
{
    struct stat st = {0};
    fstatat(dirfd_, name, &st, AT_SYMLINK_NOFOLLOW);
    return st;
}

static void a_line_says_when_who_and_what(void **state)
{
    (void)state;
    char expected[64];
    errno = 77;
    log_line(LOG_INFO, "%s %d", "hello", 7);
    assert_int_equal(errno, 77);
    const char *line = contents("log");
    for (const char *form = "9999-99-99T99:99:99.999Z ", *at = line; *form; form++, at++)
        assert_true(*form == '9' ? isdigit((unsigned char)*at) : *form == *at);
    snprintf(expected, sizeof expected, "%ld info: hello 7\n", (long)getpid());
    assert_string_equal(line + 25, expected);
    assert_int_equal(stat_of("log").st_mode & 07777, 0600);
    log_line(LOG_INFO, "a\nb\033[2J\177c");
    assert_non_null(strstr(contents("log"), ": a?b?[2J?c\n"));
}

static void levels_hold(void **state)
{
    (void)state;
    assert_int_equal(log_level_of("warning"), LOG_WARNING);
    assert_int_equal(log_level_of("Warning"), -1);
    assert_int_equal(log_level_of(""), -1);
    log_set_level(LOG_WARNING);
    assert_int_equal(log_current_level(), LOG_WARNING);
    log_line(LOG_INFO, "unwanted");
    assert_int_equal(stat_of("log").st_mode, 0);
    log_line(LOG_WARNING, "one");
    log_line(LOG_ERROR, "two");
    assert_non_null(strstr(contents("log"), " error: two\n"));
    log_open(-1, false);
    assert_false(log_wanted(LOG_ERROR));
}

static void it_is_bounded(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * LOG_MAX / 200; i++)
        log_line(LOG_INFO, "%d %150d", i, 0);
    assert_true(stat_of("log").st_size <= LOG_MAX && stat_of("log").st_size > 0);
    assert_true(stat_of("log.old").st_size <= LOG_MAX && stat_of("log.old").st_size > LOG_MAX - 300);
    char last[32];
    snprintf(last, sizeof last, " info: %d ", 3 * LOG_MAX / 200 - 1);
    assert_non_null(strstr(contents("log"), last));
    char text[2000] = "";
    memset(text, 'x', sizeof text - 1);
    log_line(LOG_INFO, "%s", text); /* a line as well */
    const char *end = strrchr(contents("log"), 'x');
    assert_string_equal(end, "x\n");
}

/* What others put there is neither followed, written to nor waited for. */
static void other_things_of_its_name_are_left_alone(void **state)
{
    (void)state;
    int elsewhere = openat(dirfd_, "elsewhere", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    close(elsewhere);
    assert_int_equal(symlinkat("elsewhere", dirfd_, "log"), 0);
    log_line(LOG_INFO, "x");
    assert_int_equal(unlinkat(dirfd_, "log", 0), 0);
    assert_int_equal(linkat(dirfd_, "elsewhere", dirfd_, "log", 0), 0);
    log_line(LOG_INFO, "x");
    assert_int_equal(unlinkat(dirfd_, "log", 0), 0);
    assert_int_equal(stat_of("elsewhere").st_size, 0);
    assert_int_equal(stat_of("elsewhere").st_mode & 07777, 0644);
    assert_int_equal(mkfifoat(dirfd_, "log", 0600), 0);
    log_line(LOG_INFO, "x");
    int reader = openat(dirfd_, "log", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char one;
    log_line(LOG_INFO, "x");
    assert_int_equal(read(reader, &one, 1), 0);
    close(reader);
    assert_int_equal(unlinkat(dirfd_, "log", 0), 0);
    assert_int_equal(mkdirat(dirfd_, "log", 0700), 0);
    log_line(LOG_INFO, "x");
}

static void any_umask_will_do(void **state)
{
    (void)state;
    mode_t before = umask(0777);
    log_line(LOG_INFO, "x");
    umask(before);
    assert_int_equal(stat_of("log").st_mode & 07777, 0600);
}

/* A pipe that nobody reads is full some day. */
static void check_full_pipe(void *arg)
{
    int ends[2];
    (void)arg;
    CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    log_open(-1, true);
    for (int i = 0; i < 10000; i++)
        log_line(LOG_INFO, "%100d", i);
    char text[4];
    CHECK(read(ends[0], text, 4) == 4 && memcmp(text, "20", 2) == 0);
}

static void standard_error_is_not_waited_for(void **state)
{
    (void)state;
    in_child(check_full_pipe, NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_line_says_when_who_and_what),
        TEST(levels_hold),
        TEST(it_is_bounded),
        TEST(other_things_of_its_name_are_left_alone),
        TEST(any_umask_will_do),
        TEST(standard_error_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
