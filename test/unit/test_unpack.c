#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "buf.h"
#include "io.h"
#include "mem.h"
#include "commands/settle/settle.h"
#include "sha256.h"

/* A directory for the program DIR/program. */
static char dir[] = "/tmp/test-unpack-XXXXXX", *program;

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    program = mem_printf("%s/program", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    free(program);
    return settle_remove_tree(AT_FDCWD, dir);
}

static const char *unpack(const char *text, size_t n, struct err *err)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(io_write_all(fileno(file), text, n), 0);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    int fd FD_AUTO = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *state = settle_unpack(fileno(file), fd, program, err);
    fclose(file);
    return state;
}

/* With a head that is right for it. */
static const char *unpack_entries(const char *entries, size_t n, struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char hex[SHA256_HEX_SIZE];
    sha256_hex(entries, n, hex);
    buf_addf(&text, "folder %s\n", hex);
    buf_add(&text, entries, n);
    return unpack(text.data, text.len, err);
}

static void assert_only(const char *name)
{
    char *command MEM_AUTO = mem_printf("%s/.program.with", dir);
    struct stat st;
    assert_int_equal(lstat(command, &st), *name ? 0 : -1);
    char *file MEM_AUTO = mem_printf("%s/%s", command, name);
    assert_int_equal(lstat(file, &st), *name ? 0 : -1);
}

#define GOOD "d 755 1 0\nad 448 3 0\na/bf 493 5 3\na/b/cxyzf 384 1 0\nel 0 1 5\nla/b/ce 0 0 0\n"

static void test_placed_identical_replaced(void **state)
{
    struct err err;
    struct stat st;
    char to[16] = {0};
    (void)state;
    assert_string_equal(unpack_entries(GOOD, sizeof GOOD - 1, &err), "placed");
    assert_only("a/b/c");
    char *file MEM_AUTO = mem_printf("%s/.program.with/a/b/c", dir);
    char *link MEM_AUTO = mem_printf("%s/.program.with/l", dir);
    assert_int_equal(lstat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(readlink(link, to, sizeof to - 1), 5);
    assert_string_equal(to, "a/b/c");
    assert_string_equal(unpack_entries(GOOD, sizeof GOOD - 1, &err), "identical");
    assert_string_equal(unpack_entries("f 384 1 1\nzze 0 0 0\n", 20, &err), "replaced");
    assert_only("z");
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"f 384 4 1\n../axe 0 0 0\n",
                                      "f 384 6 1\na/../bxe 0 0 0\n",
                                      "f 384 2 1\n/axe 0 0 0\n",
                                      "d 448 2 0\n..e 0 0 0\n",
                                      "d 448 1 0\n.e 0 0 0\n",
                                      "f 384 0 1\nxe 0 0 0\n",
                                      "x 384 1 1\naxe 0 0 0\n",
                                      "f 384 1 -1\naxe 0 0 0\n",
                                      "f 384 99999 0\na",
                                      "f 384 1 5\nax",
                                      "f 384 1 1\nax",
                                      "",
                                      "f 384 1 1\naxf 384 1 1\nax",
                                      "l 0 1 9999\na",
                                      "f 384 3 1\nb/axe 0 0 0\n",
                                      "f 384 1 1 1\naxe 0 0 0\n",
                                      "e 0 0 0"};
    struct err err;
    (void)state;
    char *place MEM_AUTO = settle_with_path(program);
    settle_remove_tree(AT_FDCWD, place);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(unpack_entries(bad[i], strlen(bad[i]), &err));
        assert_only("");
    }
    /* through a link that came with it */
    const char through[] = "l 0 1 2\na..f 384 9 1\na/escapedxe 0 0 0\n";
    assert_null(unpack_entries(through, sizeof through - 1, &err));
    char *escaped MEM_AUTO = mem_printf("%s/escaped", dir);
    assert_int_equal(access(escaped, F_OK), -1);
}

static void test_what_came_is_what_was_sent(void **state)
{
    struct err err;
    struct buf text BUF_AUTO = BUF_INIT;
    char hex[SHA256_HEX_SIZE];
    (void)state;
    sha256_hex(GOOD, sizeof GOOD - 1, hex);
    buf_addf(&text, "folder %s\n%s", hex, GOOD);
    *strstr(text.data, "xyz") = 'X';
    assert_null(unpack(text.data, text.len, &err));
    assert_only("");
    assert_null(unpack("folder 12\ne 0 0 0\n", 18, &err));
    assert_null(unpack("PK\x03\x04", 4, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placed_identical_replaced),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_what_came_is_what_was_sent),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
