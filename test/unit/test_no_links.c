#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem.h"
#include "no_links.h"

static int opens(int (*open_it)(int, const char *, int), int dir, const char *path, int flags)
{
    int fd = open_it(dir, path, flags);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static void both_ways(int (*open_it)(int, const char *, int))
{
    char top[] = "/tmp/test_no_links.XXXXXX";
    assert_non_null(mkdtemp(top));
    int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(dir, "a", 0700), 0);
    assert_int_equal(mkdirat(dir, "a/b", 0700), 0);
    assert_int_equal(symlinkat("a", dir, "link"), 0);
    close(openat(dir, "a/b/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(symlinkat("f", dir, "a/b/to_f"), 0);
    assert_int_equal(opens(open_it, dir, "a/b/f", O_RDONLY), 0);
    assert_int_equal(opens(open_it, dir, "a//b/", O_PATH | O_DIRECTORY), 0);
    assert_int_equal(opens(open_it, dir, ".", O_PATH | O_DIRECTORY), 0);
    assert_int_equal(opens(open_it, dir, "a/none/f", O_RDONLY), -ENOENT);
    assert_int_equal(opens(open_it, dir, "a/b/to_f", O_RDONLY), -ELOOP);
    int through = opens(open_it, dir, "link/b/f", O_RDONLY);
    assert_true(through == -ELOOP || through == -ENOTDIR);
    char *whole MEM_AUTO = mem_printf("%s/a/b/f", top);
    assert_int_equal(opens(open_it, AT_FDCWD, whole, O_RDONLY), 0);
    assert_int_equal(opens(open_it, AT_FDCWD, "/", O_PATH | O_DIRECTORY), 0);
    for (const char *const *path = (const char *const[]){"a/b/f", "a/b/to_f", "link", NULL}; *path; path++)
        unlinkat(dir, *path, 0);
    unlinkat(dir, "a/b", AT_REMOVEDIR);
    unlinkat(dir, "a", AT_REMOVEDIR);
    close(dir);
    rmdir(top);
}

static void by_the_kernel(void **state)
{
    (void)state;
    both_ways(no_links_open);
}

static void part_by_part(void **state)
{
    (void)state;
    both_ways(no_links_walk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_the_kernel), cmocka_unit_test(part_by_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
