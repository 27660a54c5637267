#include "support.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "io.h"
#include "mem.h"
#include "place.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    unsetenv("TOOLBOX_DIR");
    unsetenv("INSPECT_SANDBOX_TOOLS_DIR");
    return enter_dir(dir);
}

static int tear_down(void **state)
{
    (void)state;
    return leave_dir(dir);
}

/* A name in there, as the absolute path that a place has to have; good until the next call. */
static const char *at(const char *name)
{
    static char path[6000];
    if (*name == '/')
        return name;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) < 0 ? 0 : st.st_mode & 07777;
}

static void assert_enters(const char *path, bool create)
{
    struct place p;
    struct err err = {0};
    struct stat by_fd, by_name;
    if (place_enter(&p, at(path), create, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(fstat(p.fd, &by_fd), 0);
    assert_int_equal(stat(p.path, &by_name), 0);
    assert_int_equal(by_fd.st_ino, by_name.st_ino);
    assert_int_equal(by_fd.st_mode & 07777, 0700);
    assert_true(fcntl(p.fd, F_GETFD) & FD_CLOEXEC);
    place_release(&p);
    assert_int_equal(p.fd, -1);
    place_release(&p);
}

static void assert_refused(const char *path, bool create, const char *why)
{
    struct place p;
    struct err err = {0};
    unsigned before = open_descriptors();
    assert_int_equal(place_enter(&p, at(path), create, &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
    char *name MEM_AUTO = mem_strdup(path);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = '\0';
    if (!strstr(err.msg, name) || !strstr(err.msg, why))
        fail_msg("'%s' says nothing of '%s' and '%s'", err.msg, path, why);
    assert_int_equal(p.fd, -1);
    assert_null(p.path);
    assert_int_equal(open_descriptors(), before);
}

/* ---- one directory ---- */

static void a_directory_is_made_when_wanted(void **state)
{
    (void)state;
    assert_refused("new", false, "No such file or directory");
    assert_int_equal(mode_of("new"), 0);
    assert_enters("new", true);
    assert_enters("new", false);
    assert_enters("new///", false);
    assert_enters("a/b//c/d/", true);
    char path[100];
    snprintf(path, sizeof path, "%s/absolute/x", dir);
    assert_enters(path, true);
    struct place p;
    struct err err;
    static const char *const relative[] = {"", "new", "./new", "../new"};
    for (size_t i = 0; i < sizeof relative / sizeof *relative; i++)
        assert_true(place_enter(&p, relative[i], true, &err) < 0 && strstr(err.msg, "begins with /"));
    assert_refused("/", true, geteuid() == 0 ? "mode other than 0700" : "belongs to another user");
}

/* The directory itself is 0700 whatever the umask; its parents are what the umask makes them. */
static void the_umask_has_no_say(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 077, 0277, 0777};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        mode_t before = umask(masks[i]);
        struct place p, sub;
        int made = place_enter(&p, at("private"), true, NULL);
        sub = (struct place){.fd = made < 0 ? -1 : place_subdir(&p, "sub", true, NULL)};
        mode_t after = umask(before);
        assert_int_equal(made, 0);
        assert_true(sub.fd >= 0);
        assert_int_equal(after, masks[i]);
        assert_int_equal(mode_of("private"), 0700);
        assert_int_equal(mode_of("private/sub"), 0700);
        place_release(&p);
        place_release(&sub);
        assert_int_equal(rmdir("private/sub") + rmdir("private"), 0);
    }
    mode_t before = umask(027);
    assert_enters("p/q/r", true);
    umask(before);
    assert_int_equal(mode_of("p"), 0750);
    assert_int_equal(mode_of("p/q"), 0750);
}

static void check_closing_umask(void *arg)
{
    (void)arg;
    struct place p;
    if (geteuid() == 0) {
        CHECK(chown(dir, STRANGER, STRANGER) == 0);
        become_stranger();
    }
    umask(0777); /* root could open it all the same */
    CHECK(place_enter(&p, at("private"), true, NULL) == 0 && place_subdir(&p, "sub", true, NULL) >= 0);
}

static void nor_has_one_that_shuts_the_owner_out(void **state)
{
    (void)state;
    in_child(check_closing_umask, NULL);
}

static void check_setgid_parent(void *arg)
{
    (void)arg;
    struct place p;
    CHECK(mkdir("shared", 0700) == 0 && chmod("shared", 02755) == 0);
    /* By name it could be turned on something else meanwhile. */
    refuse_call(SYS_fchmodat, EPERM);
#ifdef SYS_chmod
    refuse_call(SYS_chmod, EPERM);
#endif
    CHECK(place_enter(&p, at("shared/new"), true, NULL) == 0);
    CHECK(mode_of("shared/new") == 0700);
    CHECK(fchmod(p.fd, 02700) == 0);
    int sub = place_subdir(&p, "sub", true, NULL);
    CHECK(sub >= 0 && mode_of("shared/new/sub") == 0700);
}

static void a_setgid_parent_has_no_say(void **state)
{
    (void)state;
    in_child(check_setgid_parent, NULL);
}

static void other_modes_are_refused_and_kept(void **state)
{
    (void)state;
    static const unsigned modes[] = {0755, 0750, 0701, 0770, 0600, 0500, 01700, 02700, 04700};
    assert_int_equal(mkdir("d", 0700), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod("d", modes[i]), 0);
        bool closed = !(modes[i] & 0100) && geteuid() != 0;
        assert_refused("d", true,
                       closed           ? "Permission denied"
                       : modes[i] & 022 ? "written to by others"
                                        : "mode other than 0700");
        assert_int_equal(mode_of("d"), modes[i]);
    }
}

/* Whoever prepares a link must not have it followed, and what it leads to stays as it is. */
static void links_are_not_followed(void **state)
{
    (void)state;
    assert_int_equal(mkdir("target", 0755), 0);
    assert_int_equal(mkdir("private", 0700), 0);
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(symlink("private", "fine"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    static const char *const names[] = {"link", "link/", "fine", "fine//", "dangling", "dangling/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_refused(names[i], true, "is a symlink");
    assert_int_equal(mode_of("target"), 0755);
    assert_int_equal(mode_of("nowhere"), 0);
    assert_enters("fine/sub", true); /* but on the way there as usual */
}

static void what_is_no_directory_is_refused_and_kept(void **state)
{
    (void)state;
    int fd = open("file", O_WRONLY | O_CREAT, 0700);
    close(fd);
    assert_refused("file", true, "Not a directory");
    assert_refused("file/x", true, "Not a directory");
    assert_int_equal(mode_of("file"), 0700);
    assert_int_equal(mkfifo("fifo", 0700), 0);
    assert_refused("fifo", true, "Not a directory");
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_refused(name, true, "File name too long");
}

static void long_paths_are_fine(void **state)
{
    (void)state;
    struct buf path BUF_AUTO = BUF_INIT;
    buf_adds(&path, dir);
    while (path.len < 900)
        buf_adds(&path, "/d\xC3\xA9p\xC3\xB4t-de-donn\xC3\xA9"
                        "es");
    assert_enters(path.data, true);
    while (path.len < 5000)
        buf_adds(&path, "/deeper");
    struct place p;
    struct err err = {0};
    assert_int_equal(place_enter(&p, path.data, true, &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
}

static void check_owner(void *arg)
{
    (void)arg;
    if (geteuid() != 0)
        cannot("only root can give a directory away");
    struct place p;
    struct err err;
    CHECK(mkdir("theirs", 0700) == 0 && chown("theirs", STRANGER, STRANGER) == 0);
    CHECK(mkdir("roots", 0700) == 0 && chmod(".", 0755) == 0);
    CHECK(place_enter(&p, at("theirs"), true, &err) < 0 && strstr(err.msg, "belongs to another user"));
    become_stranger();
    CHECK(place_enter(&p, at("theirs"), false, &err) == 0);
    CHECK(place_enter(&p, at("roots"), true, &err) < 0 && strstr(err.msg, "roots: Permission denied"));
    CHECK(place_enter(&p, at("mine"), true, &err) < 0 && strstr(err.msg, "mine: Permission denied"));
}

static void only_the_users_own_is_used(void **state)
{
    (void)state;
    in_child(check_owner, NULL);
}

static void directories_inside_are_private_as_well(void **state)
{
    (void)state;
    struct place p;
    struct err err = {0};
    assert_int_equal(place_enter(&p, at("place"), true, NULL), 0);
    assert_int_equal(place_subdir(&p, "sub", false, &err), -1);
    assert_non_null(strstr(err.msg, "place/sub: No such file"));
    for (int i = 0; i < 2; i++) {
        int fd = place_subdir(&p, "sub", true, &err);
        assert_true(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
    }
    assert_int_equal(chmod("place/sub", 0755), 0);
    assert_int_equal(place_subdir(&p, "sub", true, &err), -1);
    assert_non_null(strstr(err.msg, "mode other than 0700"));
    assert_int_equal(symlink("..", "place/link"), 0);
    assert_int_equal(place_subdir(&p, "link", true, &err), -1);
    assert_non_null(strstr(err.msg, "is a symlink"));
    place_release(&p);
}

/* ---- the list ---- */

static void check_candidates(const char *const *want)
{
    struct buf path BUF_AUTO = BUF_INIT;
    unsigned n = 0;
    for (; want[n]; n++)
        CHECK(place_candidate(n, &path) && strcmp(path.data, want[n]) == 0);
    CHECK(!place_candidate(n, &path) && !place_candidate(n + 1, &path));
}

static void check_variables(void *arg)
{
    (void)arg;
    setenv("TOOLBOX_DIR", "", 1);
    setenv("INSPECT_SANDBOX_TOOLS_DIR", "relative/dir", 1);
    check_candidates((const char *[]){"relative/dir", NULL});
    setenv("TOOLBOX_DIR", "/given", 1);
    check_candidates((const char *[]){"/given", NULL});
}

static void a_variable_leaves_no_choice(void **state)
{
    (void)state;
    in_child(check_variables, NULL);
}

static void write_passwd(const char *line)
{
    CHECK(mkdir("/etc", 0755) == 0 || errno == EEXIST);
    int fd = open("/etc/passwd", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && io_write_all(fd, line, strlen(line)) == 0);
    close(fd);
}

/* The same for every call, whatever its HOME and TMPDIR. */
static void check_fixed_list(void *arg)
{
    enter_root(arg);
    setenv("HOME", "/elsewhere", 1);
    setenv("TMPDIR", "/elsewhere", 1);
    if (geteuid() != 0)
        cannot("only root can become somebody else");
    write_passwd("root:x:0:0::/root:\nu:x:54321:54321::/home/u:\n");
    check_candidates((const char *[]){"/run/toolbox", "/tmp/.toolbox-0", "/var/tmp/.toolbox-0",
                                      "/dev/shm/.toolbox-0", "/root/.cache/toolbox", NULL});
    CHECK(seteuid(STRANGER) == 0);
    check_candidates((const char *[]){"/run/user/54321/toolbox", "/tmp/.toolbox-54321",
                                      "/var/tmp/.toolbox-54321", "/dev/shm/.toolbox-54321",
                                      "/home/u/.cache/toolbox", NULL});
    CHECK(seteuid(0) == 0);
    write_passwd("u:x:54321:54321::relative:\n");
    CHECK(seteuid(STRANGER) == 0);
    check_candidates((const char *[]){"/run/user/54321/toolbox", "/tmp/.toolbox-54321",
                                      "/var/tmp/.toolbox-54321", "/dev/shm/.toolbox-54321", NULL});
    CHECK(seteuid(0) == 0 && unlink("/etc/passwd") == 0 && seteuid(STRANGER) == 0);
    check_candidates((const char *[]){"/run/user/54321/toolbox", "/tmp/.toolbox-54321",
                                      "/var/tmp/.toolbox-54321", "/dev/shm/.toolbox-54321", "/.cache/toolbox",
                                      NULL});
}

static void the_list_depends_on_the_uid_alone(void **state)
{
    (void)state;
    in_child(check_fixed_list, dir);
}

static void check_opens(const char *want)
{
    struct place p;
    struct err err;
    CHECK(place_open(&p, &err) == 0);
    if (strcmp(p.path, want) != 0) {
        fprintf(stderr, "%s instead of %s\n", p.path, want);
        _exit(1);
    }
    place_release(&p);
}

static bool is_empty(const char *path)
{
    return rmdir(path) == 0 && mkdir(path, 0700) == 0;
}

/* Each candidate is spoilt in another way, and the next is taken. */
static void check_first_usable(void *arg)
{
    if (geteuid() != 0)
        cannot("only root can give a directory away");
    own_mounts();
    enter_root(arg);
    write_passwd("root:x:0:0::/root:\n");
    CHECK(mkdir("/tmp", 0755) == 0 && mkdir("/dev", 0755) == 0 && mkdir("/dev/shm", 0755) == 0);
    check_opens("/run/toolbox");
    CHECK(is_empty("/run/toolbox")); /* trying left nothing */
    CHECK(rmdir("/run/toolbox") == 0 && symlink("/tmp", "/run/toolbox") == 0);
    check_opens("/tmp/.toolbox-0");
    CHECK(chown("/tmp/.toolbox-0", STRANGER, 0) == 0);
    check_opens("/var/tmp/.toolbox-0"); /* and its parents were made */
    CHECK(rmdir("/var/tmp/.toolbox-0") == 0 && mkfifo("/var/tmp/.toolbox-0", 0700) == 0);
    check_opens("/dev/shm/.toolbox-0");
    if (mount("none", "/dev/shm", "tmpfs", MS_RDONLY, NULL) < 0)
        cannot("no read-only file system");
    check_opens("/root/.cache/toolbox");
    if (mount("none", "/root", "tmpfs", 0, NULL) < 0)
        cannot("no file system of its own");
    check_opens("/root/.cache/toolbox");
    CHECK(mount("none", "/root", NULL, MS_REMOUNT | MS_RDONLY, NULL) ==
          0); /* there, and nothing can be made */
    struct place p;
    struct err err = {0};
    CHECK(place_open(&p, &err) < 0 && err.code == ERR_TOOL && p.fd == -1);
    CHECK(strstr(err.msg, "files (/run/toolbox: ") && strstr(err.msg, "; /tmp/.toolbox-0: "));
    static const char *const named[] = {"/run/toolbox: is a symlink",
                                        "/tmp/.toolbox-0: belongs to another user",
                                        "/var/tmp/.toolbox-0: Not a directory",
                                        "/dev/shm/.toolbox-0: Read-only file system",
                                        "/root/.cache/toolbox: Read-only file system",
                                        "TOOLBOX_DIR"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        CHECK(strstr(err.msg, named[i]));
    CHECK(mode_of("/tmp") == 0755);
    setenv("TOOLBOX_DIR", "/tmp/.toolbox-0", 1);
    CHECK(place_open(&p, &err) < 0 && strstr(err.msg, "/tmp/.toolbox-0: belongs to another user"));
    CHECK(!strstr(err.msg, "/run/toolbox"));
}

static void the_first_usable_is_taken(void **state)
{
    (void)state;
    in_child(check_first_usable, dir);
}

static void nothing_usable_leaves_no_descriptor_open(void **state)
{
    (void)state;
    assert_int_equal(mkdir("open", 0755), 0);
    setenv("TOOLBOX_DIR", at("open"), 1);
    unsigned before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        struct place p;
        assert_int_equal(place_open(&p, NULL), -1);
    }
    assert_int_equal(chmod("open", 0700), 0);
    for (int i = 0; i < 50; i++) {
        struct place p PLACE_AUTO;
        assert_int_equal(place_open(&p, NULL), 0);
    }
    assert_int_equal(open_descriptors(), before);
    assert_true(is_empty("open"));
}

static void check_given(void *arg)
{
    (void)arg;
    struct err err = {0};
    unsetenv("TOOLBOX_DIR");
    unsetenv("INSPECT_SANDBOX_TOOLS_DIR");
    CHECK(!place_is_given() && place_check_given(&err) == 0);
    setenv("TOOLBOX_DIR", at("missing"), 1);
    CHECK(place_is_given() && place_check_given(&err) == 0); /* it will be made */
    CHECK(mkdir("missing", 0700) == 0 && place_check_given(&err) == 0 && err.code == 0);
    CHECK(chmod("missing", 0755) == 0 && place_check_given(&err) == -1 && err.code == ERR_TOOL);
    CHECK(strstr(err.msg, "missing: has a mode") && strstr(err.msg, "TOOLBOX_DIR"));
    CHECK(symlink("nowhere", "link") == 0);
    setenv("TOOLBOX_DIR", at("link"), 1);
    CHECK(place_check_given(&err) == -1 && strstr(err.msg, "link"));
    CHECK(close(open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == 0);
    setenv("TOOLBOX_DIR", at("file/x"), 1);
    CHECK(place_check_given(&err) == -1 && strstr(err.msg, "file"));
}

static void what_is_named_is_looked_at_first(void **state)
{
    (void)state;
    in_child(check_given, NULL);
}

#define place_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        place_test(a_directory_is_made_when_wanted),
        place_test(the_umask_has_no_say),
        place_test(nor_has_one_that_shuts_the_owner_out),
        place_test(a_setgid_parent_has_no_say),
        place_test(other_modes_are_refused_and_kept),
        place_test(links_are_not_followed),
        place_test(what_is_no_directory_is_refused_and_kept),
        place_test(long_paths_are_fine),
        place_test(only_the_users_own_is_used),
        place_test(directories_inside_are_private_as_well),
        place_test(a_variable_leaves_no_choice),
        place_test(the_list_depends_on_the_uid_alone),
        place_test(the_first_usable_is_taken),
        place_test(nothing_usable_leaves_no_descriptor_open),
        place_test(what_is_named_is_looked_at_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
