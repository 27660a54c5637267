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

static void test_names_beside(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/a/b", "/a/.b.build"},
        {"/a/.b.build", "/a/.b.build"},
        {"/a/b.build", "/a/.b.build.build"}, /* in view: not one that was put aside */
        {"/a/.b.other", "/a/..b.other.build"},
        {"/a/.build", "/a/..build.build"},
        {"/.a/b", "/.a/.b.build"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *beside MEM_AUTO = program_aside(cases[i][0], "build");
        assert_string_equal(beside, cases[i][1]);
    }
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

static void record_own(void **state)
{
    struct program p PROGRAM_AUTO = PROGRAM_INIT;
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    (void)state;
    if (n < 0)
        skip_because("no /proc");
    own[n] = '\0';
    assert_int_equal(program_record_own(place_fd, own), 0);
    assert_true(program_read(&p, place_fd, toolbox_build_id));
    assert_string_equal(p.path, own);
    char sum[SHA256_HEX_SIZE];
    int fd = open(own, O_RDONLY | O_CLOEXEC);
    assert_int_equal(sha256_file(fd, sum), 0);
    close(fd);
    assert_string_equal(p.sha256, sum);
    assert_int_equal(program_record(-1, OTHER, sum, own), -1);
    assert_int_equal(program_record(place_fd, "", sum, own), 0);
}

static void check_exec(void *arg)
{
    const char *input = arg;
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"read line; [ \"$line\" = \"$0\" ]", (char *)"hello",
                    NULL};
    int ends[2], fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        cannot("no /bin/sh");
    CHECK(pipe(ends) == 0 && write(ends[1], "hello\n", 6) == 6 && dup2(ends[0], 0) == 0);
    CHECK(program_exec(-1, argv, NULL, 0) == -1);
    program_exec(fd, argv, input, input ? strlen(input) : 0);
    _exit(1);
}

static void check_no_input(void *arg)
{
    (void)arg;
    refuse_call(SYS_memfd_create, ENOSYS);
    CHECK(program_exec(place_fd, NULL, "x", 1) == -1 && errno == ENOSYS);
}

static void it_is_run_with_what_it_is_to_read(void **state)
{
    (void)state;
    in_child(check_exec, NULL); /* what there is */
    in_child(check_exec, (void *)(uintptr_t) "hello\nand more");
    in_child(check_no_input, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_recorded_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_records_that_make_no_sense, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_those_bytes_are_opened, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test(test_names_beside),
        cmocka_unit_test_setup_teardown(record_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_run_with_what_it_is_to_read, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
