/* Memory is there, or the process ends and says so. */
#include "support.h"

#include <wchar.h>

#include "buf.h"
#include "io.h"
#include "mem.h"

/* The sanitizers say no as the library does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void copies_end_with_a_nul(void **state)
{
    (void)state;
    char *part MEM_AUTO = mem_dup("abcdef", 3), *none MEM_AUTO = mem_dup(NULL, 0);
    char *whole MEM_AUTO = mem_strdup("abc"), *made MEM_AUTO = mem_printf("%s-%d", "abc", 7);
    assert_string_equal(part, "abc");
    assert_string_equal(none, "");
    assert_string_equal(whole, "abc");
    assert_string_equal(made, "abc-7");
}

static void nothing_is_a_block_as_well(void **state)
{
    (void)state;
    char *a MEM_AUTO = mem_alloc(0), *b MEM_AUTO = mem_zalloc(0), *c MEM_AUTO = mem_realloc(mem_alloc(5), 0);
    assert_true(a && b && c && a != b && b != c);
    char *zero MEM_AUTO = mem_zalloc(100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zero[i], 0);
    zero = mem_realloc(zero, 5000);
    assert_int_equal(zero[99], 0);
}

static int kind;

static void take_too_much(void)
{
    static const wchar_t no_character[] = {0x110000, 0};
    volatile size_t much = SIZE_MAX / 2;
    if (kind == 0)
        mem_alloc(much);
    else if (kind == 1)
        mem_zalloc(much);
    else
        mem_printf("%ls", no_character);
}

static void check_out(void *arg)
{
    (void)arg;
    int ends[2], status;
    char text[64] = "";
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(dup2(ends[1], 2) == 2);
        take_too_much();
        _exit(77);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    CHECK(n > 0 && (SANITIZED || strcmp(text, "toolbox: error: out of memory\n") == 0));
}

static void without_memory_a_process_ends(void **state)
{
    (void)state;
    for (kind = 0; kind < 3; kind++)
        in_child(check_out, NULL);
}

/* How much of the part of memory with this function is in use, kB; every page of it is read first. */
static long touched(uintptr_t function, bool touch)
{
    struct buf text BUF_AUTO = BUF_INIT;
    CHECK(io_read_file(AT_FDCWD, "/proc/self/smaps", &text) == 0);
    for (char *line = text.data, *end; line; line = strchr(line, '\n'), line += line != NULL) {
        uintptr_t from = strtoull(line, &end, 16), to = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;
        if (function < from || function >= to)
            continue;
        for (uintptr_t at = from; touch && at < to; at += 4096)
            (void)*(const volatile char *)at;
        const char *rss = strstr(line, "\nRss:");
        return rss ? strtol(rss + 5, NULL, 10) : -1;
    }
    return -1;
}

/* What code is needed comes back. */
static void code_that_is_let_go_comes_again(void **state)
{
    (void)state;
    uintptr_t function = (uintptr_t)mem_let_code_go;
    touched(function, true);
    long before = touched(function, false);
    mem_let_code_go();
    assert_true(before < 512 || touched(function, false) < before); /* little code is mapped again at once */
    char *made MEM_AUTO = mem_printf("%d", 5);
    assert_string_equal(made, "5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_end_with_a_nul),
        cmocka_unit_test(nothing_is_a_block_as_well),
        cmocka_unit_test(without_memory_a_process_ends),
        cmocka_unit_test(code_that_is_let_go_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
