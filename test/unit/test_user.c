#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sched.h>
#include <grp.h>
#include <unistd.h>

#include <cmocka.h>

#include "buf.h"
#include "passwd.h"
#include "user.h"
#include "user_param.h"

/* ---- the text alone ---- */

static const char odd_passwd[] = "# root:x:7:7::/comment:/bin/sh\n"
                                 "\n"
                                 "garbage\n"
                                 "short:x:5\n"
                                 ":x:5:5::/no-name:\n"
                                 "+nis:x:6:6::/nis:\n"
                                 "-nis:x:6:6::/nis:\n"
                                 "minus:x:-1:5::/minus:\n"
                                 "space:x: 5:5::/space:\n"
                                 "none:x:4294967295:5::/none:\n"
                                 "wrap:x:4294967296:5::/wrap:\n"
                                 "empty:x::5::/empty:\n"
                                 "root:x:0:0:root:/root:/bin/bash\r\n"
                                 "root:x:9:9:again:/again:/bin/again\n"
                                 "first.last:x:1001:1001::/home/first.last:/bin/sh\n"
                                 "with-dash:x:1002:1002::/home/with-dash:\n"
                                 "UPPER:x:1003:1003::/home/UPPER:/bin/sh\n"
                                 "machine$:x:1004:1004::/home/machine:/bin/false\n"
                                 "1000:x:1005:1005::/home/digits:/bin/sh\n"
                                 "  indented:x:1006:1006::/home/indented:/bin/sh:more:fields\n"
                                 "bare:x:1007:17\n"
                                 "top:x:4294967294:4294967294::/top:\n"
                                 "last:x:1008:1008::/home/last:/bin/last";

static void assert_field(struct passwd_field field, const char *text)
{
    assert_int_equal(field.n, strlen(text));
    assert_memory_equal(field.s, text, field.n);
}

static void assert_user(const char *name, uid_t uid, gid_t gid, const char *home, const char *shell)
{
    struct passwd_entry e;
    assert_true(passwd_by_name(odd_passwd, sizeof odd_passwd - 1, name, &e));
    assert_field(e.name, name);
    assert_int_equal(e.uid, uid);
    assert_int_equal(e.gid, gid);
    assert_field(e.home, home);
    assert_field(e.shell, shell);
}

static void names_of_any_kind_are_found(void **state)
{
    (void)state;
    assert_user("root", 0, 0, "/root", "/bin/bash");
    assert_user("first.last", 1001, 1001, "/home/first.last", "/bin/sh");
    assert_user("with-dash", 1002, 1002, "/home/with-dash", "");
    assert_user("UPPER", 1003, 1003, "/home/UPPER", "/bin/sh");
    assert_user("machine$", 1004, 1004, "/home/machine", "/bin/false");
    assert_user("1000", 1005, 1005, "/home/digits", "/bin/sh");
    assert_user("indented", 1006, 1006, "/home/indented", "/bin/sh");
    assert_user("bare", 1007, 17, "", "");
    assert_user("top", 4294967294u, 4294967294u, "/top", "");
    assert_user("last", 1008, 1008, "/home/last", "/bin/last");
}

static void what_is_no_entry_is_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {"",      "garbage", "short",  "+nis",  "-nis",  "minus",
                                        "space", "none",    "wrap",   "empty", "upper", "roo",
                                        "root2", "last:",   "root:x", "# root"};
    struct passwd_entry e;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(passwd_by_name(odd_passwd, sizeof odd_passwd - 1, names[i], &e));
    assert_false(passwd_by_uid(odd_passwd, sizeof odd_passwd - 1, 5, &e));
    assert_false(passwd_by_uid(odd_passwd, sizeof odd_passwd - 1, 1000, &e));
    assert_false(passwd_by_uid("", 0, 0, &e));
    char *blanks = strdup(" \t "); /* with no byte behind that is looked at */
    assert_false(passwd_by_uid(blanks, strlen(blanks), 0, &e));
    free(blanks);
    static const char nul[] = "a\0b:x:1:1::/:\n";
    assert_false(passwd_by_uid(nul, sizeof nul - 1, 1, &e));
}

static void numbers_are_plain_decimals(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "1.", "4294967295", "99999999999999999999"};
    unsigned n = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(passwd_number(bad[i], strlen(bad[i]), &n));
    assert_true(passwd_number("4294967294", 10, &n));
    assert_int_equal(n, 4294967294u);
    assert_true(passwd_number("007", 3, &n));
    assert_int_equal(n, 7);
}

static void a_line_of_any_length_is_read(void **state)
{
    (void)state;
    struct buf text BUF_AUTO = BUF_INIT;
    buf_adds(&text, "crowd:x:70:");
    for (int i = 0; i < 20000; i++)
        buf_addf(&text, "member%d,", i);
    buf_adds(&text, "tail\r\nafter:x:71:member7,tail\n");
    gid_t groups[8];
    size_t n = 0;
    group_of_member(text.data, text.len, (struct passwd_field){"tail", 4}, groups, &n, 8);
    assert_int_equal(n, 2);
    assert_int_equal(groups[0], 70);
    assert_int_equal(groups[1], 71);
    n = 0;
    group_of_member(text.data, text.len, (struct passwd_field){"member", 6}, groups, &n, 8);
    assert_int_equal(n, 0);
}

static void groups_are_unique_and_bounded(void **state)
{
    (void)state;
    static const char text[] =
        "a:x:1:u\nb:x:2:v,u\nagain:x:1:u\nc:x:3:u,w\nd:x:4:u\nnone:x:5:\nbad:x:six:u\n";
    gid_t groups[3] = {2};
    size_t n = 1;
    group_of_member(text, sizeof text - 1, (struct passwd_field){"u", 1}, groups, &n, 3);
    assert_int_equal(n, 3);
    assert_int_equal(groups[1], 1);
    assert_int_equal(groups[2], 3);
    struct passwd_field name;
    assert_true(group_by_gid(text, sizeof text - 1, 5, &name));
    assert_field(name, "none");
    assert_false(group_by_gid(text, sizeof text - 1, 6, &name));
}

/* ---- real files: each check runs in a root directory of its own ---- */

#define SKIPPED 77
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int enter_root(const char *dir)
{
    if (chroot(dir) == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot(dir) == 0))
        return chdir("/");
    return -1;
}

static int run_in_root(const char *dir, void (*check)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (enter_root(dir) < 0)
            _exit(SKIPPED);
        check();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* passwd or group NULL: the file is missing; both: so is /etc. */
static void in_root(const char *passwd, const char *group, void (*check)(void))
{
    char dir[] = "/tmp/test_user.XXXXXX";
    assert_non_null(mkdtemp(dir));
    char etc[64], passwd_path[64], group_path[64];
    snprintf(etc, sizeof etc, "%s/etc", dir);
    snprintf(passwd_path, sizeof passwd_path, "%s/etc/passwd", dir);
    snprintf(group_path, sizeof group_path, "%s/etc/group", dir);
    chmod(dir, 0755);
    if (passwd || group)
        assert_int_equal(mkdir(etc, 0755), 0);
    if (passwd)
        write_file(passwd_path, passwd);
    if (group)
        write_file(group_path, group);
    int status = run_in_root(dir, check);
    unlink(passwd_path);
    unlink(group_path);
    rmdir(etc);
    assert_int_equal(rmdir(dir), 0);
    if (status == SKIPPED) {
        print_message("# skipped: only root can have a root directory of its own\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static const char plain_group[] = "root:x:0:root\nu:x:1000:\ng2:x:2000:other,u\ng3:x:3000:u\ng4:x:4000:uu\n";
static const char plain_passwd[] = "root:x:0:0::/root:/bin/sh\nu:x:1000:1000::/home/u:/bin/zsh\n"
                                   "1000:x:5:6::/home/five:\nnohome:x:7:7:::\n";

static bool has_groups(const struct user *u, size_t n, const gid_t *groups)
{
    return u->n_groups == n && memcmp(u->groups, groups, n * sizeof *groups) == 0;
}

static bool is_refused(const char *name)
{
    struct user u;
    struct err err = {0};
    return user_lookup(&u, name, &err) == -1 && err.code == ERR_TOOL && strstr(err.msg, name);
}

static void check_lookup(void)
{
    struct user u;
    struct err err = {0};
    CHECK(user_lookup(&u, "u", &err) == 0 && u.uid == 1000 && u.gid == 1000);
    CHECK(!strcmp(u.name, "u") && !strcmp(u.home, "/home/u") && !strcmp(u.shell, "/bin/zsh"));
    CHECK(has_groups(&u, 3, (gid_t[]){1000, 2000, 3000}));
    user_release(&u);
    CHECK(user_lookup(&u, "1000", &err) == 0 && u.uid == 5 && u.gid == 6); /* the name before the number */
    user_release(&u);
    CHECK(user_lookup(&u, "7", &err) == 0 && u.uid == 7 && !strcmp(u.name, "nohome") && !strcmp(u.home, "/"));
    user_release(&u);
    CHECK(user_lookup(&u, "4242", &err) == 0 && u.uid == 4242 && u.gid == 4242 && !u.name);
    CHECK(!strcmp(u.home, "/") && !strcmp(u.shell, "") && has_groups(&u, 1, (gid_t[]){4242}));
    user_release(&u);
    user_of_uid(&u, 1000);
    CHECK(!strcmp(u.name, "u") && has_groups(&u, 3, (gid_t[]){1000, 2000, 3000}));
    user_release(&u);
    CHECK(err.code == 0);
    CHECK(is_refused("") && is_refused("u:g2") && is_refused("1000:2000") && is_refused("nobody-such"));
    CHECK(is_refused("-1") && is_refused("4294967295") && is_refused("u ") && is_refused("U"));
    char *name = user_group_name(2000);
    CHECK(name && !strcmp(name, "g2") && !user_group_name(9));
}

static void lookup_reads_the_files(void **state)
{
    (void)state;
    in_root(plain_passwd, plain_group, check_lookup);
}

static void check_nothing_there(void)
{
    struct user u;
    struct err err = {0};
    CHECK(is_refused("root"));
    CHECK(user_lookup(&u, "0", &err) == 0 && u.uid == 0 && u.gid == 0 && !u.name && !strcmp(u.home, "/"));
    user_of_uid(&u, 12345);
    CHECK(u.uid == 12345 && !u.name && has_groups(&u, 1, (gid_t[]){12345}));
}

static void no_files_are_no_entries(void **state)
{
    (void)state;
    in_root(NULL, NULL, check_nothing_there);
    in_root(NULL, plain_group, check_nothing_there);
    in_root("", "", check_nothing_there);
}

static void check_no_group_file(void)
{
    struct user u;
    CHECK(!user_group_name(0) && user_lookup(&u, "u", NULL) == 0 && has_groups(&u, 1, (gid_t[]){1000}));
}

static void no_group_file_leaves_the_own_group(void **state)
{
    (void)state;
    in_root(plain_passwd, NULL, check_no_group_file);
}

/* ---- becoming somebody ---- */

static void check_become(void)
{
    if (setgroups(2, (gid_t[]){0, 777}) < 0)
        _exit(SKIPPED); /* not root, or of a user namespace that can't */
    struct user u;
    struct err err = {0};
    CHECK(user_lookup(&u, "u", &err) == 0 && !user_is_self(&u));
    CHECK(user_become(&u, &err) == 0 && user_is_self(&u));
    gid_t groups[8];
    CHECK(getgroups(8, groups) == 3 && groups[0] == 1000 && groups[1] == 2000 && groups[2] == 3000);
    uid_t r, e, s;
    CHECK(getresuid(&r, &e, &s) == 0 && r == 1000 && e == 1000 && s == 1000);
    CHECK(getresgid(&r, &e, &s) == 0 && r == 1000 && e == 1000 && s == 1000);
    CHECK(setuid(0) < 0 && seteuid(0) < 0 && setgid(0) < 0);
    CHECK(user_become(&u, &err) == 0); /* oneself is always fine */
    struct user root;
    CHECK(user_lookup(&root, "root", &err) == 0);
    CHECK(user_become(&root, &err) == -1 && err.code == ERR_TOOL);
    CHECK(strstr(err.msg, "root") && strstr(err.msg, "not root") && strstr(err.msg, "1000"));
}

static void becoming_a_user_is_complete_and_final(void **state)
{
    (void)state;
    in_root(plain_passwd, plain_group, check_become);
}

/* ---- numbers ---- */

static void check_numbers(void)
{
    struct user u, other;
    const gid_t groups[] = {77, 2000, 5};
    user_of_numbers(&u, 1000, groups, 3, NULL);
    CHECK(u.exact && u.uid == 1000 && u.gid == 77 && has_groups(&u, 3, groups));
    CHECK(!strcmp(u.name, "u") && !strcmp(u.home, "/home/u") && !strcmp(u.shell, "/bin/zsh"));
    user_release(&u);
    CHECK(!u.name && !u.home && !u.groups && u.n_groups == 0);
    user_of_numbers(&u, 4242, groups, 1, "/elsewhere");
    CHECK(!u.name && u.gid == 77 && u.n_groups == 1 && !strcmp(u.home, "/elsewhere"));
    user_release(&u);
    char *name = user_label(1000), *number = user_label(4242);
    CHECK(!strcmp(name, "u") && !strcmp(number, "4242"));
    free(name);
    free(number);
    CHECK(user_lookup(&u, "u", NULL) == 0 && user_lookup(&other, "u", NULL) == 0 && !u.exact);
    user_release(&u);
    user_release(&other);
}

static void numbers_are_taken_as_they_are(void **state)
{
    (void)state;
    in_root(plain_passwd, plain_group, check_numbers);
}

static bool is_self_with(uid_t uid, const gid_t *groups, size_t n)
{
    struct user u;
    user_of_numbers(&u, uid, groups, n, NULL);
    bool is = user_is_self(&u);
    user_release(&u);
    return is;
}

static void check_self(void)
{
    const gid_t own[] = {0, 5, 6}, fewer[] = {0, 5}, more[] = {0, 5, 6, 7}, other[] = {5, 0, 6};
    if (setgroups(2, own + 1) < 0 || setgid(0) < 0)
        _exit(SKIPPED);
    CHECK(is_self_with(0, own, 3));
    CHECK(!is_self_with(1, own, 3) && !is_self_with(0, fewer, 2) && !is_self_with(0, more, 4));
    CHECK(!is_self_with(0, other, 3)); /* of another group first */
    struct user u;
    user_of_uid(&u, 0);
    CHECK(user_is_self(&u)); /* whatever the groups */
    u.gid = 9;
    CHECK(!user_is_self(&u)); /* as root the group counts as well */
    user_release(&u);
    CHECK(setregid(9, 0) == 0 && !is_self_with(0, own, 3) && setregid(0, 9) == 0 && !is_self_with(0, own, 3));
    CHECK(setregid(0, 0) == 0 && setreuid(0, 1000) == 0);
    CHECK(!is_self_with(0, own, 3) && !is_self_with(1000, own, 3));
    CHECK(seteuid(0) == 0 && setreuid(1000, 0) == 0);
    CHECK(!is_self_with(0, own, 3) && !is_self_with(1000, own, 3));
}

static void oneself_is_told_by_all_numbers(void **state)
{
    (void)state;
    in_root(plain_passwd, plain_group, check_self);
}

static bool wants(const struct user_param *p, uid_t uid, bool *other)
{
    struct user u = {0};
    struct err err = {0};
    if (user_param_wanted(p, &u, other, &err) < 0) {
        CHECK(err.code == ERR_TOOL && !*other && !u.name && !u.home); /* nothing is kept */
        return false;
    }
    CHECK(!*other || u.uid == uid);
    CHECK(*other || (!u.name && !u.home));
    if (*other)
        user_release(&u);
    return true;
}

static void check_wanted(void)
{
    bool other = true;
    long long groups[USER_GROUPS_MAX] = {5, 6, 5};
    static char u_text[] = "u", nobody_text[] = "nobody-such";
    struct user_param none = {0}, by_name = {.name = {u_text, 1}}, nobody = {.name = {nobody_text, 11}};
    struct user_param own = {.by_numbers = true, .uid = 0, .gid = 5, .groups = {.list = groups, .n = 2}};
    struct user_param numbers = {
        .by_numbers = true, .uid = 4242, .gid = 6, .groups = {.list = groups, .n = 3}};
    if (setgroups(2, (gid_t[]){5, 6}) < 0 || setgid(5) < 0)
        _exit(SKIPPED);
    CHECK(!user_param_given(&none) && user_param_given(&by_name) && user_param_given(&numbers));
    CHECK(wants(&none, 0, &other) && !other);
    CHECK(wants(&by_name, 1000, &other) && other);
    CHECK(wants(&numbers, 4242, &other) && other);
    CHECK(wants(&own, 0, &other) && !other);
    CHECK(!wants(&nobody, 0, &other));
}

static void check_found(void)
{
    struct user u;
    long long groups[USER_GROUPS_MAX] = {5, 6, 5};
    struct user_param numbers = {
        .by_numbers = true, .uid = 4242, .gid = 6, .groups = {.list = groups, .n = 3}};
    CHECK(user_param_find(&numbers, &u, NULL) == 0 && u.gid == 6 && u.exact);
    CHECK(has_groups(&u, 3, (gid_t[]){6, 5, 5})); /* its own group is not said twice */
    user_release(&u);
    numbers.groups.n = USER_GROUPS_MAX - 1;
    CHECK(user_param_find(&numbers, &u, NULL) == 0 && u.n_groups <= USER_GROUPS_MAX);
    user_release(&u);
    struct err err = {0};
    numbers.groups.n = USER_GROUPS_MAX;
    CHECK(user_param_find(&numbers, &u, &err) == -1 && err.code == ERR_PARAMS && strstr(err.msg, "1023"));
}

/* Who is not root runs things as himself alone. */
static void check_not_root(void)
{
    bool other = true;
    long long groups[] = {5, 6};
    static char u_text[] = "u";
    struct user u;
    struct err err = {0};
    struct user_param by_name = {.name = {u_text, 1}};
    struct user_param own = {.by_numbers = true, .uid = 0, .gid = 5, .groups = {.list = groups, .n = 2}};
    if (setgroups(0, NULL) < 0)
        _exit(SKIPPED);
    CHECK(setresgid(1000, 1000, 1000) == 0 && setgroups(2, (gid_t[]){2000, 3000}) == 0);
    CHECK(setresuid(1000, 1000, 1000) == 0);
    CHECK(wants(&by_name, 1000, &other) && !other);
    CHECK(!wants(&own, 0, &other));
    CHECK(user_param_wanted(&own, &u, &other, &err) == -1 && strstr(err.msg, "'root'"));
    CHECK(!strstr(err.msg, "with other groups"));
    own.uid = 1000;
    CHECK(user_param_wanted(&own, &u, &other, &err) == -1 && strstr(err.msg, "with other groups"));
}

static void who_is_wanted_is_looked_up(void **state)
{
    (void)state;
    in_root(plain_passwd, plain_group, check_wanted);
    in_root(plain_passwd, plain_group, check_found);
    in_root(plain_passwd, plain_group, check_not_root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_any_kind_are_found),
        cmocka_unit_test(what_is_no_entry_is_not_found),
        cmocka_unit_test(numbers_are_plain_decimals),
        cmocka_unit_test(a_line_of_any_length_is_read),
        cmocka_unit_test(groups_are_unique_and_bounded),
        cmocka_unit_test(lookup_reads_the_files),
        cmocka_unit_test(no_files_are_no_entries),
        cmocka_unit_test(no_group_file_leaves_the_own_group),
        cmocka_unit_test(becoming_a_user_is_complete_and_final),
        cmocka_unit_test(numbers_are_taken_as_they_are),
        cmocka_unit_test(oneself_is_told_by_all_numbers),
        cmocka_unit_test(who_is_wanted_is_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
