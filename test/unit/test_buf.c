#include "support.h"

#include "buf.h"
#include "mem.h"

static void assert_text(const struct buf *b, const char *text, size_t n)
{
    assert_int_equal(b->len, n);
    assert_memory_equal(buf_str(b), text, n + 1); /* the NUL behind as well */
}

static void an_untouched_buffer_is_an_empty_string(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    assert_string_equal(buf_str(&b), "");
    buf_consume(&b, 5);
    buf_truncate(&b, 5);
    buf_shrink(&b);
    assert_null(b.data);
    assert_int_equal(buf_add(&b, NULL, 0), 0);
    assert_text(&b, "", 0);
    buf_release(&b);
    size_t n = 7;
    char *taken = buf_take(&b, &n);
    assert_string_equal(taken, "");
    assert_int_equal(n, 0);
    free(taken);
}

static void bytes_of_any_value_are_kept(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    assert_int_equal(buf_add(&b, all, 256), 0);
    assert_int_equal(buf_addc(&b, '\0'), 0);
    assert_int_equal(buf_adds(&b, "end"), 0);
    assert_int_equal(b.len, 260);
    assert_memory_equal(b.data, all, 256);
    assert_memory_equal(b.data + 256, "\0end", 5);
}

static void formatting_makes_room_for_itself(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    char wide[5000];
    memset(wide, 'x', sizeof wide);
    wide[sizeof wide - 1] = '\0';
    for (int i = 0; i < 200; i++) /* every distance from the end of what is allocated */
        assert_int_equal(buf_addf(&b, "%d,", i), 0);
    assert_int_equal(buf_addf(&b, "%s", ""), 0);
    size_t before = b.len;
    assert_int_equal(buf_addf(&b, "<%s>", wide), 0);
    assert_int_equal(b.len, before + sizeof wide - 1 + 2);
    assert_memory_equal(b.data, "0,1,2,3,", 8);
    assert_string_equal(b.data + b.len - 3, "xx>");
    assert_int_equal(b.data[before], '<');
}

/* What would pass max is refused whole, and changes nothing. */
static void max_is_never_passed(void **state)
{
    (void)state;
    struct buf b BUF_AUTO;
    buf_init(&b, 10);
    assert_int_equal(buf_add(&b, "12345678901", 11), -1);
    assert_int_equal(buf_addf(&b, "%s", "12345678901"), -1);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_adds(&b, "1234567"), 0);
    assert_int_equal(buf_adds(&b, "abcd"), -1);
    assert_int_equal(buf_addf(&b, "%d", 1234), -1);
    assert_int_equal(buf_reserve(&b, 4), -1);
    assert_text(&b, "1234567", 7);
    assert_int_equal(buf_addf(&b, "%d", 890), 0);
    assert_text(&b, "1234567890", 10);
    assert_int_equal(buf_addc(&b, '!'), -1);
    assert_int_equal(buf_add(&b, "", 0), 0);
    assert_text(&b, "1234567890", 10);
    b.max = 5; /* what a share of the memory may become */
    assert_int_equal(buf_addc(&b, '!'), -1);
    assert_text(&b, "1234567890", 10);
    buf_release(&b); /* keeps max */
    assert_int_equal(buf_add(&b, "12345678901", 11), -1);
}

static void a_size_beyond_memory_is_refused(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_adds(&b, "text");
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -1);
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 4), -1);
    assert_int_equal(buf_reserve(&b, SIZE_MAX / 2), -1);
    assert_text(&b, "text", 4);
}

static void consuming_takes_from_the_front(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_adds(&b, "abcdefgh");
    buf_consume(&b, 0);
    assert_text(&b, "abcdefgh", 8);
    buf_consume(&b, 3);
    assert_text(&b, "defgh", 5);
    buf_truncate(&b, 9);
    assert_text(&b, "defgh", 5);
    buf_truncate(&b, 2);
    assert_text(&b, "de", 2);
    buf_consume(&b, 3);
    assert_text(&b, "", 0);
}

static void taking_leaves_an_empty_buffer_with_its_max(void **state)
{
    (void)state;
    struct buf b BUF_AUTO;
    buf_init(&b, 5);
    buf_add(&b, "a\0b", 3);
    size_t n;
    char *taken = buf_take(&b, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(taken, "a\0b", 4);
    free(taken);
    assert_int_equal(b.len, 0);
    assert_int_equal(buf_adds(&b, "123456"), -1);
    assert_int_equal(buf_adds(&b, "12345"), 0);
    taken = buf_take(&b, NULL);
    assert_string_equal(taken, "12345");
    free(taken);
}

static void shrinking_gives_memory_back(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    for (int i = 0; i < 100000; i++)
        buf_addc(&b, 'x');
    size_t cap = b.cap;
    buf_shrink(&b);
    assert_int_equal(b.cap, cap); /* full enough */
    buf_truncate(&b, 10);
    buf_shrink(&b);
    assert_in_range(b.cap, 11, 64);
    assert_text(&b, "xxxxxxxxxx", 10);
    buf_adds(&b, "y");
    assert_text(&b, "xxxxxxxxxxy", 11);
    buf_truncate(&b, 0);
    buf_shrink(&b);
    assert_null(b.data);
}

/* Growth by doubling: a million single bytes move few times. */
static void parts_are_replaced(void **state)
{
    (void)state;
    static const struct {
        size_t at, n;
        const char *by, *result;
    } cases[] = {
        {0, 0, "", "abcdef"},   {0, 0, "xy", "xyabcdef"}, {6, 0, "xy", "abcdefxy"},
        {2, 2, "xy", "abxyef"}, {2, 2, "", "abef"},       {2, 1, "xyz", "abxyzdef"},
        {0, 6, "", ""},         {1, 4, "x", "axf"},       {4, 2, "xyzu", "abcdxyzu"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b BUF_AUTO = BUF_INIT;
        buf_adds(&b, "abcdef");
        assert_int_equal(buf_replace(&b, cases[i].at, cases[i].n, cases[i].by, strlen(cases[i].by)), 0);
        assert_text(&b, cases[i].result, strlen(cases[i].result));
    }
    struct buf full BUF_AUTO = {.max = 6};
    buf_adds(&full, "abcdef");
    assert_int_equal(buf_replace(&full, 1, 2, "xyz", 3), -1);
    assert_int_equal(buf_replace(&full, 1, 2, "xy", 2), 0);
    assert_text(&full, "axydef", 6);
    assert_int_equal(buf_replace(&full, 1, 2, NULL, 0), 0);
    assert_text(&full, "adef", 4);
}

static void room_is_taken_when_there_is_none(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_addc(&b, 'x');
    size_t cap = b.cap;
    const char *data = b.data;
    assert_int_equal(buf_reserve(&b, cap - 2), 0); /* with the NUL that is all of it */
    assert_int_equal(b.cap, cap);
    assert_ptr_equal(b.data, data);
    assert_int_equal(buf_reserve(&b, cap - 1), 0);
    assert_int_equal(b.cap, 2 * cap);
    buf_shrink(&b);
    assert_int_equal(b.cap, 2);
    assert_text(&b, "x", 1);
    buf_reserve(&b, 2);
    cap = b.cap;
    while (4 * (b.len + 1) < cap)
        buf_addc(&b, 'x');
    buf_shrink(&b); /* a quarter and more stays as it is */
    assert_int_equal(b.cap, cap);
}

static void appending_is_linear(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    unsigned moves = 0;
    size_t cap = 0;
    for (int i = 0; i < 1000000; i++) {
        buf_addc(&b, 'x');
        moves += b.cap != cap;
        cap = b.cap;
    }
    assert_int_equal(b.len, 1000000);
    assert_in_range(moves, 1, 20);
}

static void check_out_of_memory(void *arg)
{
    int *said = arg;
    struct rlimit limit = {64u << 20, 64u << 20};
    if (setrlimit(RLIMIT_AS, &limit) < 0)
        cannot("no limit of memory");
    dup2(said[1], 2);
    struct buf b = BUF_INIT;
    while (buf_reserve(&b, b.cap + 1) == 0)
        b.len = b.cap - 1;
    _exit(0);
}

/* Memory is there or the process ends with a word on stderr. */
static void running_out_ends_the_process(void **state)
{
    (void)state;
    not_sanitized();
    not_under_valgrind();
    int said[2];
    assert_int_equal(pipe(said), 0);
    pid_t pid = fork();
    if (pid == 0)
        check_out_of_memory(said);
    close(said[1]);
    char text[100] = "";
    assert_true(read(said[0], text, sizeof text - 1) > 0);
    close(said[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_string_equal(text, "toolbox: error: out of memory\n");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void copies_of_memory_end_in_nul(void **state)
{
    (void)state;
    char *a MEM_AUTO = mem_dup("abc", 2), *b MEM_AUTO = mem_dup(NULL, 0), *c MEM_AUTO = mem_strdup("");
    char *d MEM_AUTO = mem_printf("%s-%d", "x", 7), *e MEM_AUTO = mem_zalloc(0), *f MEM_AUTO = mem_alloc(0);
    assert_string_equal(a, "ab");
    assert_string_equal(b, "");
    assert_string_equal(c, "");
    assert_string_equal(d, "x-7");
    assert_true(e && f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untouched_buffer_is_an_empty_string),
        cmocka_unit_test(bytes_of_any_value_are_kept),
        cmocka_unit_test(formatting_makes_room_for_itself),
        cmocka_unit_test(max_is_never_passed),
        cmocka_unit_test(a_size_beyond_memory_is_refused),
        cmocka_unit_test(consuming_takes_from_the_front),
        cmocka_unit_test(taking_leaves_an_empty_buffer_with_its_max),
        cmocka_unit_test(shrinking_gives_memory_back),
        cmocka_unit_test(parts_are_replaced),
        cmocka_unit_test(room_is_taken_when_there_is_none),
        cmocka_unit_test(appending_is_linear),
        cmocka_unit_test(running_out_ends_the_process),
        cmocka_unit_test(copies_of_memory_end_in_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
