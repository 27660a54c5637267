#include "support.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "dir_empty.h"
#include "dir_read.h"
#include "io.h"

static int made(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* One in the other, by descriptors: no path is that long. */
static void make_deep(int fd, int depth)
{
    int at = dup(fd);
    for (int i = 0; i < depth; i++) {
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int file = openat(at, ".deeper-3", O_CREAT | O_WRONLY, 0600);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        assert_true(file >= 0 && next >= 0);
        close(file);
        close(at);
        at = next;
    }
    close(at);
}

static void check(int depth, int side_by_side)
{
    char path[] = "/tmp/test_dir_empty-XXXXXX", link[64], outside[] = "/tmp/test_dir_empty-XXXXXX";
    assert_non_null(mkdtemp(path));
    assert_non_null(mkdtemp(outside));
    int fd = made(path), other = made(outside);
    make_deep(other, 1);
    for (int i = 0; i < side_by_side; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        assert_int_equal(mkdirat(fd, name, 0700), 0);
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY);
        make_deep(inner, depth);
        close(inner);
    }
    snprintf(link, sizeof link, "%s/link", path);
    assert_int_equal(symlink(outside, link), 0);
    unsigned before = open_descriptors();
    dir_empty(fd, 0);
    assert_int_equal(open_descriptors(), before - 1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(faccessat(other, "d", F_OK, 0), 0); /* no link is followed */
    dir_empty(other, 0);
    assert_int_equal(rmdir(outside), 0);
}

static void any_depth_is_emptied(void **state)
{
    (void)state;
    check(0, 1);
    check(31, 2);
    check(32, 2);
    check(33, 2);
    check(100, 5);
    check(2000, 2);
}

/* Who may write there makes files as fast as they are removed. */
static void make_for_ever(const char *path)
{
    int fd = made(path);
    for (unsigned long i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%lu", i);
        close(openat(fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
}

static void who_goes_on_writing_is_not_waited_for(void **state)
{
    (void)state;
    char path[64];
    pid_t makers[2];
    int status;
    snprintf(path, sizeof path, "%s/test_dir_empty-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(path));
    for (size_t i = 0; i < 2; i++) {
        makers[i] = fork();
        if (makers[i] == 0)
            make_for_ever(path);
    }
    dir_empty(made(path), 50); /* returns */
    for (size_t i = 0; i < 2; i++)
        assert_true(kill(makers[i], SIGKILL) == 0 && waitpid(makers[i], &status, 0) == makers[i]);
    dir_empty(made(path), 0);
    assert_int_equal(rmdir(path), 0);
}

static void no_descriptor_is_fine(void **state)
{
    (void)state;
    unsigned before = open_descriptors();
    dir_empty(-1, 0);
    assert_int_equal(open_descriptors(), before);
}

static void check_mount(void *arg)
{
    const char *path = arg;
    own_mounts();
    CHECK(chdir(path) == 0 && mkdir("mounted", 0700) == 0 && mkdir("plain", 0700) == 0);
    if (mount("none", "mounted", "tmpfs", 0, NULL) < 0)
        cannot("no file system in memory");
    CHECK(mkdir("mounted/kept", 0700) == 0);
    dir_empty(made(path), 0);
    CHECK(access("mounted/kept", F_OK) == 0 && access("plain", F_OK) < 0);
}

static void another_file_system_is_left_alone(void **state)
{
    (void)state;
    char path[64];
    make_dir(path);
    in_child(check_mount, path);
    remove_dir(path);
}

static void names_are_those_of_what_is_there(void **state)
{
    (void)state;
    char path[64], seen[64] = "";
    make_dir(path);
    int fd = made(path);
    assert_int_equal(mkdirat(fd, "one", 0700) + mkdirat(fd, "..two", 0700) + mkdirat(fd, ".3", 0700), 0);
    unsigned before = open_descriptors();
    for (int again = 0; again < 2; again++) { /* the descriptor's own position has no say */
        DIR *dir = dir_read_again(fd);
        size_t n = 0;
        for (const char *name; (name = dir_next(dir)); n++)
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%zu", strlen(name));
        assert_int_equal(n, 3);
        errno = 77;
        dir_read_end(&dir);
        assert_int_equal(errno, 77);
    }
    assert_int_equal(strlen(seen), 6);
    assert_null(strpbrk(seen, "14678"));
    assert_int_equal(open_descriptors(), before);
    DIR *none = dir_read_again(-1);
    assert_null(none);
    assert_null(dir_next(none));
    dir_read_end(&none);
    assert_null(dir_read(open("/dev/null", O_RDONLY | O_CLOEXEC)));
    assert_int_equal(open_descriptors(), before);
    close(fd);
    remove_dir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_depth_is_emptied),
        cmocka_unit_test(who_goes_on_writing_is_not_waited_for),
        cmocka_unit_test(no_descriptor_is_fine),
        cmocka_unit_test(another_file_system_is_left_alone),
        cmocka_unit_test(names_are_those_of_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
