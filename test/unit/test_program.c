/* The record of a build's program, and that only the very bytes it names are opened. */
#include "support.h"

#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "program.h"

#define OTHER "0123456789abcdef"

static char dir[64], path[96], aside[128];
static int place_fd;

static void write_file(const char *at, const char *text)
{
    int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

static int set_up(void **state)
{
    char sha256[SHA256_HEX_SIZE];
    (void)state;
    make_dir(dir);
    place_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/tool", dir);
    snprintf(aside, sizeof aside, "%s/.tool." OTHER, dir);
    write_file(path, "bytes");
    sha256_hex("bytes", 5, sha256);
    return program_record(place_fd, OTHER, sha256, path);
}

static int tear_down(void **state)
{
    (void)state;
    close(place_fd);
    remove_dir(dir);
    return 0;
}

static void record_path(char at[200])
{
    char name[IPC_NAME_MAX];
    assert_int_equal(ipc_name_in(name, "program", OTHER), 0);
    snprintf(at, 200, "%s/.%s", dir, name);
}

static void test_what_is_recorded_is_read(void **state)
{
    struct program p PROGRAM_AUTO = PROGRAM_INIT;
    (void)state;
    assert_true(program_read(&p, place_fd, OTHER));
    assert_string_equal(p.path, path);
    struct program none PROGRAM_AUTO = PROGRAM_INIT;
    assert_false(program_read(&none, place_fd, "ffffffffffffffff"));
}

static void test_records_that_make_no_sense(void **state)
{
    static const char *const bad[] = {
        "",
        "\n",
        "x /tool\n",
        "2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c tool\n",
        "2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c /tool",
        "2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1G /tool\n",
        "2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c2f6a9e7a0f1f6c1c0/tool\n",
    };
    char at[200];
    (void)state;
    record_path(at);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct program p PROGRAM_AUTO = PROGRAM_INIT;
        write_file(at, bad[i]);
        assert_false(program_read(&p, place_fd, OTHER));
    }
    assert_int_equal(unlink(at), 0);
    assert_int_equal(symlink(path, at), 0);
    struct program p PROGRAM_AUTO = PROGRAM_INIT;
    assert_false(program_read(&p, place_fd, OTHER));
}

static void test_only_those_bytes_are_opened(void **state)
{
    struct err err;
    (void)state;
    int fd = program_open(place_fd, OTHER, &err);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(path, 0720), 0);
    assert_int_equal(program_open(place_fd, OTHER, &err), -1);
    assert_non_null(strstr(err.msg, "written to by others"));
    assert_int_equal(chmod(path, 0700), 0);
    write_file(path, "Bytes");
    assert_int_equal(program_open(place_fd, OTHER, &err), -1);
    assert_non_null(strstr(err.msg, "another program"));
    write_file(aside, "bytes");
    fd = program_open(place_fd, OTHER, &err);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlink(aside), 0);
    write_file(path, "bytes");
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(aside, path), 0);
    fd = program_open(place_fd, OTHER, &err); /* beside it, not through the link */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlink(aside), 0);
    assert_int_equal(program_open(place_fd, OTHER, &err), -1);
}

static void test_names(void **state)
{
    char *once MEM_AUTO = program_aside("/a/b", OTHER), *twice MEM_AUTO = program_aside(once, OTHER);
    char owner[IPC_NAME_MAX], build[BUILD_ID_SIZE], name[IPC_NAME_MAX];
    (void)state;
    assert_string_equal(once, "/a/.b." OTHER);
    assert_string_equal(twice, once);
    assert_int_equal(ipc_name_in(name, "BashSession_1", OTHER), 0);
    assert_true(ipc_split(name, owner, build));
    assert_string_equal(owner, "BashSession_1");
    assert_string_equal(build, OTHER);
    assert_int_equal(ipc_name(name, "BashSession_1"), 0);
    assert_false(ipc_split(name, owner, build));
    assert_false(ipc_split("BashSession." OTHER ".1-2", owner, build));
    assert_false(ipc_split("log", owner, build));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_recorded_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_records_that_make_no_sense, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_those_bytes_are_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
