/* The static binary's first blocks. The test stands for the C library behind them, and counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "static/heap.c" /* NOLINT(bugprone-suspicious-include): its functions bear the linker's names */

/* The analyzer takes every block for one of malloc.
 * NOLINTBEGIN(clang-analyzer-unix.Malloc,clang-analyzer-optin.portability.UnixAPI) */

static int from_library, to_library;
static void *first[64]; /* of each kind of size: what is never given back, and so isn't lost */

void *__real_malloc(size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    from_library++;
    void *data = malloc(size);
    if (size / ALIGN < 64 && !first[size / ALIGN])
        first[size / ALIGN] = data;
    return data;
}

void *__real_calloc(size_t n, size_t size)
{
    (void)n;
    (void)size;
    return NULL; /* no test asks for one that exists */
}

void *__real_realloc(void *old, size_t size)
{
    return realloc(old, size);
}

void __real_free(void *old)
{
    to_library += old != NULL;
    free(old);
}

static void nothing_is_left(void)
{
    assert_int_equal(top, NO_BLOCK);
    assert_int_equal(from_library, to_library + __builtin_popcountll(held_kinds));
}

static int reset(void **state)
{
    (void)state;
    from_library = to_library = 0;
    held_kinds = 0;
    for (size_t kind = 0; kind < 64; kind++) {
        free(first[kind]);
        first[kind] = NULL;
    }
    return 0;
}

/* Fills a block so that any other block that overlaps it will be seen. */
static char *filled(char *data, size_t n, char with)
{
    return memset(data, with, n);
}

static bool holds(const char *data, size_t n, char what)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] != what)
            return false;
    return true;
}

static void small_blocks_are_stacked(void **state)
{
    (void)state;
    char *blocks[20];
    for (int i = 0; i < 20; i++) {
        blocks[i] = filled(__wrap_malloc((size_t)i * 7), (size_t)i * 7, (char)i);
        assert_int_equal((uintptr_t)blocks[i] % ALIGN, 0);
    }
    for (int i = 0; i < 20; i++)
        assert_true(holds(blocks[i], (size_t)i * 7, (char)i));
    assert_int_equal(from_library, 0);
    /* the last one first, then from the bottom: what is freed below waits for what is above it */
    __wrap_free(blocks[19]);
    char *again = __wrap_malloc(1);
    assert_ptr_equal(again, blocks[19]);
    __wrap_free(again);
    for (int i = 0; i < 19; i++)
        __wrap_free(blocks[i]);
    nothing_is_left();
}

static void what_does_not_fit_is_the_librarys(void **state)
{
    (void)state;
    char *large = __wrap_malloc(BLOCK_MAX + 1);
    assert_int_equal(from_library, 1);
    __wrap_free(__wrap_malloc(BLOCK_MAX));
    assert_int_equal(from_library, 1);
    char *blocks[AREA / BLOCK_MAX];
    for (int i = 0; i < AREA / BLOCK_MAX; i++)
        blocks[i] = filled(__wrap_malloc(BLOCK_MAX), BLOCK_MAX, (char)i);
    assert_int_equal(from_library, 2); /* with their headers one less fits */
    for (int i = 0; i < AREA / BLOCK_MAX; i++) {
        assert_true(holds(blocks[i], BLOCK_MAX, (char)i));
        __wrap_free(blocks[i]);
    }
    __wrap_free(large);
    __wrap_free(NULL);
    nothing_is_left();
    assert_true(__wrap_malloc(SIZE_MAX) == NULL);
    assert_true(__wrap_calloc(SIZE_MAX / 2, 3) == NULL);
}

static void empty_blocks_are_blocks(void **state)
{
    (void)state;
    char *blocks[AREA / ALIGN], *last = NULL;
    for (int i = 0; i < AREA / ALIGN; i++) {
        blocks[i] = __wrap_malloc(0);
        assert_true(blocks[i] != NULL && blocks[i] != last);
        last = blocks[i];
    }
    for (int i = 0; i < AREA / ALIGN; i++)
        __wrap_free(blocks[i]);
    nothing_is_left();
}

static void calloc_clears_what_was_used(void **state)
{
    (void)state;
    char *used = filled(__wrap_malloc(500), 500, 'x');
    __wrap_free(used);
    char *clear = __wrap_calloc(50, 10);
    assert_ptr_equal(clear, used);
    assert_true(holds(clear, 500, 0));
    __wrap_free(clear);
    nothing_is_left();
}

static void realloc_keeps_the_bytes(void **state)
{
    (void)state;
    char *last = filled(__wrap_realloc(NULL, 100), 100, 'a');
    assert_ptr_equal(__wrap_realloc(last, 2000), last); /* the last one grows in place */
    assert_true(holds(last, 100, 'a'));
    char *above = filled(__wrap_malloc(100), 100, 'b');
    filled(last, 2000, 'a');
    char *moved = __wrap_realloc(last, 3000);
    assert_true(moved > above);
    assert_true(holds(moved, 2000, 'a'));
    assert_true(holds(above, 100, 'b'));
    assert_ptr_equal(__wrap_realloc(moved, 10), moved);
    assert_int_equal(from_library, 0);
    char *large = __wrap_realloc(moved, 100000);
    assert_int_equal(from_library, 1);
    assert_true(holds(large, 2000, 'a'));
    large = __wrap_realloc(large, 200000);
    assert_true(holds(large, 2000, 'a'));
    __wrap_free(above);
    __wrap_free(large);
    nothing_is_left();
}

/* Blocks of all sizes come and go in no order; each keeps its bytes. */
static void any_order(void **state)
{
    (void)state;
    char *blocks[64] = {NULL};
    size_t sizes[64] = {0};
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        size_t k = random >> 26, n = 1 + (random >> 8) % (random & 1 ? 64 : 6000);
        if (blocks[k] && random & 2) {
            assert_true(holds(blocks[k], sizes[k], (char)k));
            __wrap_free(blocks[k]);
            blocks[k] = NULL;
            continue;
        }
        size_t kept = blocks[k] && sizes[k] < n ? sizes[k] : blocks[k] ? n : 0;
        blocks[k] = __wrap_realloc(blocks[k], n);
        assert_true(holds(blocks[k], kept, (char)k));
        sizes[k] = n;
        filled(blocks[k], n, (char)k);
    }
    for (int k = 0; k < 64; k++)
        __wrap_free(blocks[k]);
    nothing_is_left();
}

/* NOLINTEND(clang-analyzer-unix.Malloc,clang-analyzer-optin.portability.UnixAPI) */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_blocks_are_stacked, reset),
        cmocka_unit_test_setup(what_does_not_fit_is_the_librarys, reset),
        cmocka_unit_test_setup(empty_blocks_are_blocks, reset),
        cmocka_unit_test_setup(calloc_clears_what_was_used, reset),
        cmocka_unit_test_setup(realloc_keeps_the_bytes, reset),
        cmocka_unit_test_setup(any_order, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
