#include "support.h"

#include <limits.h>
#include <sys/socket.h>

#include "io.h"
#include "mem.h"
#include "safe_path.h"

/* A name in there, as an absolute path; good until the next call. */
static const char *at(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", work_dir, name);
    return path;
}

static void opens(const char *name, int flags, const char *same)
{
    struct err err = {0};
    struct stat got, want;
    int fd = safe_path_open(-1, at(name), flags, NULL, &err);
    if (fd < 0)
        fail_msg("%s", err.msg);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fstat(fd, &got) + stat(same, &want), 0);
    assert_int_equal(got.st_ino, want.st_ino);
    close(fd);
}

/* `why`: with the part that is wrong. */
static void refuses(const char *name, int flags, const char *why)
{
    struct err err = {0};
    unsigned before = open_descriptors();
    assert_int_equal(safe_path_open(-1, at(name), flags, NULL, &err), -1);
    assert_int_equal(errno, EPERM);
    if (!strstr(err.msg, at(name)) || !strstr(err.msg, why))
        fail_msg("'%s' says nothing of '%s'", err.msg, why);
    assert_int_equal(open_descriptors(), before);
}

static void every_part_counts(void **state)
{
    (void)state;
    static const mode_t bad[] = {0777, 0775, 0757, 02775, 0720, 0702},
                        good[] = {0755, 0700, 01777, 01775, 02755};
    assert_int_equal(mkdir("a", 0755) + mkdir("a/b", 0755) + mkdir("a/b/c", 0755), 0);
    static const char *const parts[] = {"a", "a/b", "a/b/c"};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_int_equal(chmod(parts[p], bad[i]), 0);
            refuses("a/b/c", 0, "can be written to by others (mode ");
        }
        for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
            assert_int_equal(chmod(parts[p], good[i]), 0);
            opens("a/b/c", 0, "a/b/c");
        }
        assert_int_equal(chmod(parts[p], 0755), 0);
    }
    assert_int_equal(chmod("a/b", 0777), 0);
    refuses("a/b/c", 0, at("a/b can be written"));
    opens("a", SAFE_ALONE, "a");
}

static void sticky_is_not_alone(void **state)
{
    (void)state;
    assert_int_equal(mkdir("shared", 0755) + chmod("shared", 01777) + mkdir("shared/own", 0700), 0);
    opens("shared", 0, "shared");
    refuses("shared", SAFE_ALONE, "can be written to by others");
    opens("shared/own", SAFE_ALONE, "shared/own");
}

static void check_owners(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can give a directory away");
    CHECK(mkdir("shared", 0755) == 0 && chmod("shared", 01777) == 0);
    CHECK(mkdir("shared/his", 0755) == 0 && mkdir("shared/his/mine", 0700) == 0);
    CHECK(chown("shared/his", STRANGER, STRANGER) == 0);
    CHECK(symlink("/usr", "shared/link") == 0 && lchown("shared/link", STRANGER, STRANGER) == 0);
    refuses("shared/his", 0, "belongs to another user (uid 54321)");
    refuses("shared/his/mine", 0, "shared/his belongs to another user (uid 54321)");
    refuses("shared/link/bin", 0, "shared/link belongs to another user (uid 54321)");
    become_stranger();
    opens("shared/his", SAFE_ALONE, "shared/his");
    opens("shared/link/bin", 0, "/usr/bin");
}

static void a_strangers_directory_or_link_is_refused(void **state)
{
    (void)state;
    in_child(check_owners, NULL);
}

static void links_are_walked_in_the_same_manner(void **state)
{
    (void)state;
    struct err err;
    assert_int_equal(mkdir("a", 0755) + mkdir("a/b", 0755) + mkdir("open", 0755) + mkdir("open/c", 0755), 0);
    assert_int_equal(chmod("open", 0777), 0);
    char *absolute MEM_AUTO = mem_strdup(at("a"));
    assert_int_equal(symlink(absolute, "absolute") + symlink("a", "relative") + symlink("../a/b", "a/up") +
                         symlink("open/c", "through") + symlink("self", "self") +
                         symlink("nowhere", "dangling"),
                     0);
    opens("absolute/b", 0, "a/b");
    opens("relative/b", 0, "a/b");
    opens("relative/up", 0, "a/b");
    opens("relative/up/..", 0, "a");
    opens("relative/b", SAFE_NO_LINK, "a/b");
    refuses("relative", SAFE_NO_LINK, "is a symlink");
    refuses("a/up", SAFE_NO_LINK | SAFE_MAKE, "is a symlink");
    refuses("through", 0, "open can be written to by others");
    assert_true(safe_path_open(-1, at("self/x"), 0, NULL, &err) < 0 && errno == ELOOP);
    assert_true(safe_path_open(-1, at("dangling/x"), SAFE_MAKE, NULL, &err) < 0 && errno == ENOENT);
    assert_int_equal(access("nowhere", F_OK), -1);
}

static void files(void **state)
{
    (void)state;
    struct err err;
    static const char *const good[] = {"a/f", "a/to", "sticky/f"}, *const bad[] = {"a/w", "open/f", "out"};
    assert_int_equal(mkdir("a", 0755) + mkdir("open", 0755) + mkdir("sticky", 0755) + chmod("sticky", 01777),
                     0);
    static const char *const made[] = {"a/f", "a/w", "open/f", "sticky/f"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        assert_int_equal(close(open(made[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0755)), 0);
    assert_int_equal(
        chmod("open", 0777) + chmod("a/w", 01757) + symlink("f", "a/to") + symlink("open/f", "out"), 0);
    unsigned before = open_descriptors();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (safe_path_file(at(good[i]), &err) < 0)
            fail_msg("%s", err.msg);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (safe_path_file(at(bad[i]), &err) == 0 || !strstr(err.msg, "can be written to by others"))
            fail_msg("%s: %s", bad[i], err.msg);
    assert_true(safe_path_file(at("a"), &err) < 0 && safe_path_file(at("a/f/x"), &err) < 0);
    assert_true(safe_path_file(at("nowhere"), &err) < 0 && errno == ENOENT);
    char *path MEM_AUTO =
        mem_printf(":a:%s/open:%s/none:%s/sticky:%s/a", work_dir, work_dir, work_dir, work_dir);
    char *found MEM_AUTO = safe_path_find(path, "f"), *none MEM_AUTO = safe_path_find(path, "w");
    assert_string_equal(found, at("sticky/f"));
    assert_null(none);
    assert_null(safe_path_find(NULL, "f"));
    assert_int_equal(open_descriptors(), before);
}

static void dots_lead_no_further_than_the_root(void **state)
{
    (void)state;
    int root FD_AUTO = -1;
    size_t made;
    assert_int_equal(mkdir("root", 0755) + mkdir("root/in", 0755) + mkdir("out", 0755), 0);
    assert_int_equal(symlink("../../../../../..", "root/up") + symlink("/in", "root/in/top"), 0);
    root = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    static const struct {
        const char *path, *same;
    } ways[] = {{"/", "root"},
                {"/..", "root"},
                {"/../../in/./", "root/in"},
                {"/in/../in/..", "root"},
                {"/up/in", "root/in"},
                {"/in/top", "root/in"},
                {"/in/top/top/../in", "root/in"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct stat got = {0}, want = {0};
        int fd FD_AUTO = safe_path_open(root, ways[i].path, 0, NULL, NULL);
        assert_true(fd >= 0 && fstat(fd, &got) == 0 && stat(ways[i].same, &want) == 0);
        assert_int_equal(got.st_ino, want.st_ino);
    }
    int fd FD_AUTO = safe_path_open(root, "/up/new/er", SAFE_MAKE, &made, NULL);
    assert_true(fd >= 0 && access("root/new/er", F_OK) == 0);
    assert_int_equal(made, strlen("/up/new"));
    const char *name;
    int above FD_AUTO = safe_path_above(root, "/up/new/er", &name, NULL);
    assert_true(above >= 0 && strcmp(name, "er") == 0 && unlinkat(above, name, AT_REMOVEDIR) == 0);
    int top FD_AUTO = safe_path_above(root, "/new", &name, NULL);
    assert_true(top >= 0 && unlinkat(top, name, AT_REMOVEDIR) == 0);
}

static void what_is_made_is_told(void **state)
{
    (void)state;
    size_t made = 1;
    struct stat st;
    opens("x/y//z", SAFE_MAKE | SAFE_NO_LINK | SAFE_ALONE, "x/y/z");
    assert_true(stat("x/y", &st) == 0 && (st.st_mode & 07777) == 0755);
    assert_true(stat("x/y/z", &st) == 0 && (st.st_mode & 07777) == 0700);
    close(safe_path_open(-1, at("x/y"), SAFE_MAKE, &made, NULL));
    assert_int_equal(made, 0);
    close(safe_path_open(-1, at("x/p/q"), SAFE_MAKE, &made, NULL));
    assert_int_equal(made, strlen(at("x/p")));
    assert_int_equal(safe_path_rmdir(at("x/p/q")) + safe_path_rmdir(at("x/p")), 0);
    assert_int_equal(chmod("x", 0777), 0);
    assert_int_equal(safe_path_rmdir(at("x/y/z")), -1);
    refuses("x/new", SAFE_MAKE, "x can be written to by others");
    assert_int_equal(access("x/new", F_OK), -1);
}

struct namespace
{
    const char *map, *path; /* as uid_map has it; what is opened in there */
    const char *why;        /* it is refused; NULL: it opens */
};

static void check_inside(const struct namespace *n, int word)
{
    char byte;
    struct err err = {0};
    CHECK(unshare(CLONE_NEWUSER) == 0);
    CHECK(write(word, "u", 1) == 1 && read(word, &byte, 1) == 1);
    CHECK(setresuid(0, 0, 0) == 0);
    int fd = safe_path_open(-1, n->path, 0, NULL, &err);
    if (n->why ? fd >= 0 || !strstr(err.msg, n->why) : fd < 0) {
        fprintf(stderr, "%s, %s: %s\n", n->map, n->path, err.msg);
        _exit(1);
    }
    _exit(0);
}

static void check_namespace(void *arg)
{
    const struct namespace *n = arg;
    int ends[2], status;
    char name[64], byte;
    if (geteuid() != 0)
        cannot("only root maps others");
    CHECK(mkdir("theirs", 0755) == 0 && chown("theirs", STRANGER, STRANGER) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t pid = fork();
    if (pid == 0)
        check_inside(n, ends[1]);
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1)
        cannot("no user namespaces");
    snprintf(name, sizeof name, "/proc/%ld/uid_map", (long)pid);
    int fd = open(name, O_WRONLY);
    CHECK(fd >= 0 && io_write_all(fd, n->map, strlen(n->map)) == 0 && write(ends[0], "m", 1) == 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Whom the namespace doesn't know shows as 65534, which is root's number where / has it and nobody else. */
static void a_known_user_is_never_taken_for_root(void **state)
{
    (void)state;
    char *theirs MEM_AUTO = mem_strdup(at("theirs"));
    struct namespace cases[] = {
        {"0 0 1", "/usr", NULL},
        {"0 0 1", theirs, "uid 65534"}, /* / is a known one's */
        {"0 54322 1", "/usr", NULL},
        {"0 54322 1\n65534 54321 1", "/usr", "uid 65534"},
        {"0 54322 1\n65534 54321 1", theirs, "uid 65534"},
        {"0 54322 1\n1000 54321 1", theirs, "uid 1000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        in_child(check_namespace, &cases[i]);
        assert_int_equal(rmdir("theirs"), 0);
    }
}

static void check_peers(void *arg)
{
    (void)arg;
    struct err err = {0};
    if (geteuid() != 0)
        cannot("only root can give a directory away");
    CHECK(mkdir("his", 0755) == 0 && mkdir("his/inner", 0755) == 0 && mkdir("other", 0755) == 0);
    CHECK(chown("his", STRANGER, STRANGER) == 0 && chown("his/inner", STRANGER, STRANGER) == 0);
    CHECK(mkdir("other/inner", 0755) == 0 && chown("other", STRANGER + 1, 0) == 0);
    CHECK(chown("other/inner", STRANGER, 0) == 0);
    int fd = safe_path_open_of(at("his/inner"), &err);
    CHECK(fd >= 0);
    close(fd);
    CHECK(safe_path_open_of(at("other/inner"), &err) == -1 && strstr(err.msg, "uid 54322"));
    CHECK(safe_path_open_of(at("nowhere"), &err) == -1 && errno == ENOENT && strstr(err.msg, "nowhere"));
    CHECK(chmod("his", 0777) == 0 && safe_path_open_of(at("his/inner"), &err) == -1);
}

static void a_peer_is_trusted_on_his_own_way(void **state)
{
    (void)state;
    in_child(check_peers, NULL);
}

static void what_is_no_absolute_path_says_so(void **state)
{
    (void)state;
    static char long_path[PATH_MAX + 2];
    struct err err = {0};
    assert_int_equal(safe_path_open(-1, "a/b", 0, NULL, &err), -1);
    assert_int_equal(errno, EINVAL);
    assert_string_equal(err.msg, "a/b: a path that begins with / is wanted");
    memset(long_path, '/', PATH_MAX);
    assert_int_equal(safe_path_open(-1, long_path, 0, NULL, &err), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    long_path[PATH_MAX - 1] = '\0';
    int fd = safe_path_open(-1, long_path, 0, NULL, &err);
    assert_true(fd >= 0);
    close(fd);
}

#define path_test(f) cmocka_unit_test_setup_teardown(f, enter_work_dir, leave_work_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        path_test(every_part_counts),
        path_test(sticky_is_not_alone),
        path_test(a_strangers_directory_or_link_is_refused),
        path_test(links_are_walked_in_the_same_manner),
        path_test(files),
        path_test(dots_lead_no_further_than_the_root),
        path_test(what_is_made_is_told),
        path_test(a_known_user_is_never_taken_for_root),
        path_test(a_peer_is_trusted_on_his_own_way),
        path_test(what_is_no_absolute_path_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
