/* The kernel's view of a name can only be seen from a program with arguments of its own: this one runs
 * itself. */
#include "support.h"

#include "buf.h"
#include "io.h"
#include "title.h"

static char self[4096];

/* ---- the program that renames itself: TEST --child CASE NAME [ARGUMENT]... ---- */

static void read_own(const char *path, struct buf *text)
{
    CHECK(io_read_file(AT_FDCWD, path, text) == 0);
}

/* What ps shows: up to the first NUL, and nothing but NUL behind. */
static void check_shown(const char *title)
{
    struct buf line BUF_AUTO = BUF_INIT, name BUF_AUTO = BUF_INIT;
    read_own("/proc/self/cmdline", &line);
    CHECK(strcmp(buf_str(&line), title) == 0);
    for (size_t i = strlen(title); i < line.len; i++)
        CHECK(line.data[i] == '\0');
    const char *base = strrchr(title, ' ') ? strrchr(title, ' ') + 1 : title;
    read_own("/proc/self/comm", &name);
    CHECK(name.len == strnlen(base, 15) + 1 && memcmp(name.data, base, name.len - 1) == 0);
}

static bool has(const char *name, const char *value)
{
    const char *there = getenv(name);
    return there && strcmp(there, value) == 0;
}

static void check_environment(void)
{
    CHECK(has("FIRST", "one") && has("LAST", "three=3") && !getenv("FOURTH"));
    const char *middle = getenv("MIDDLE");
    CHECK(middle && strspn(middle, "m") == 300 && middle[300] == '\0');
    CHECK(setenv("FOURTH", "4", 1) == 0 && has("FOURTH", "4"));
    CHECK(unsetenv("FIRST") == 0 && !getenv("FIRST"));
}

static void check_titles(void)
{
    title_set("toolbox BashSession_12");
    check_shown("toolbox BashSession_12");
    check_environment();
    title_set("x");
    check_shown("x");
    char text[201];
    memset(text, 'y', sizeof text - 1);
    text[200] = '\0';
    title_set(text); /* there is room where the environment was */
    check_shown(text);
    CHECK(has("LAST", "three=3"));
}

/* No environment to take room from: cut, and never past the arguments. */
static void check_cut(void)
{
    char text[1000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    title_set(text);
    struct buf line BUF_AUTO = BUF_INIT;
    read_own("/proc/self/cmdline", &line);
    CHECK(line.len > 5 && line.len < 200 && line.data[line.len - 1] == '\0');
    CHECK(strspn(line.data, "y") == line.len - 1);
}

/* Without title_init nothing is known of the arguments: the short name only. */
static void check_unknown(void)
{
    CHECK(strcmp(title_program(), "") == 0);
    title_set("toolbox lost");
    struct buf line BUF_AUTO = BUF_INIT, name BUF_AUTO = BUF_INIT;
    read_own("/proc/self/cmdline", &line);
    CHECK(strcmp(buf_str(&line), self) == 0 || line.len > strlen("toolbox lost"));
    read_own("/proc/self/comm", &name);
    CHECK(strcmp(buf_str(&name), "lost\n") == 0);
}

static void check_hidden(int argc, char **argv)
{
    struct buf line BUF_AUTO = BUF_INIT;
    char *before[8];
    memcpy(before, argv, (size_t)(argc + 1) * sizeof *argv);
    title_hide_arguments(argc, argv, 4);
    CHECK(strcmp(argv[1], "--child") == 0 && strcmp(argv[4], "secret") == 0 && strcmp(argv[5], "more") == 0);
    for (int i = 0; i < argc; i++)
        CHECK(argv[i] != before[i] && strlen(before[i]) == (i < 4 ? strlen(argv[i]) : 0));
    CHECK(!argv[argc] && has("FIRST", "one"));
    read_own("/proc/self/cmdline", &line);
    CHECK(!memmem(line.data, line.len, "secret", 6) && !memmem(line.data, line.len, "more", 4));
    CHECK(memmem(line.data, line.len, "hidden", 6));
    for (int i = 0; i < argc; i++)
        free(argv[i]);
}

static int child_main(int argc, char **argv)
{
    const char *what = argv[2];
    if (strcmp(what, "unknown") == 0) {
        check_unknown();
        return 0;
    }
    title_init(argc, argv);
    CHECK(strcmp(title_program(), argv[3]) == 0);
    if (strcmp(what, "titles") == 0)
        check_titles();
    else if (strcmp(what, "hidden") == 0)
        check_hidden(argc, argv);
    else if (strcmp(what, "cut") == 0)
        check_cut();
    else
        CHECK(strcmp(what, "name") == 0);
    return 0;
}

/* ---- tests ---- */

static void run_self(char *const *argv, char *const *env)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execve(self, argv, env);
        cannot("this program can't be run again");
    }
    wait_for_check(pid);
}

static void title_replaces_arguments_and_spares_the_environment(void **state)
{
    (void)state;
    char middle[8 + 300] = "MIDDLE=";
    memset(middle + 7, 'm', 300);
    char *env[] = {(char *)"FIRST=one", middle, (char *)"LAST=three=3", NULL};
    char *argv[] = {(char *)"/usr/bin/prog",
                    (char *)"--child",
                    (char *)"titles",
                    (char *)"prog",
                    (char *)"{\"secret\":\"request\"}",
                    NULL};
    run_self(argv, env);
    argv[4] = NULL; /* as few arguments as can be */
    run_self(argv, env);
}

static void arguments_can_be_hidden(void **state)
{
    (void)state;
    char *env[] = {(char *)"FIRST=one", NULL};
    char *argv[] = {(char *)"prog",
                    (char *)"--child",
                    (char *)"hidden",
                    (char *)"prog",
                    (char *)"secret",
                    (char *)"more",
                    NULL};
    run_self(argv, env);
}

static void a_title_without_room_is_cut(void **state)
{
    (void)state;
    char *env[] = {NULL};
    char *argv[] = {(char *)"prog", (char *)"--child", (char *)"cut", (char *)"prog", NULL};
    run_self(argv, env);
}

static void the_program_has_the_last_part_of_its_name(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"toolbox", "toolbox"}, {"/a/b/exec", "exec"}, {"./probe", "probe"}, {"", ""}, {"dir/", ""}};
    char *env[] = {NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *argv[] = {(char *)names[i][0], (char *)"--child", (char *)"name", (char *)names[i][1], NULL};
        run_self(argv, env);
    }
}

static void without_arguments_only_the_short_name_is_set(void **state)
{
    (void)state;
    char *env[] = {NULL};
    char *argv[] = {self, (char *)"--child", (char *)"unknown", NULL};
    run_self(argv, env);
    char *none[] = {NULL};
    title_init(0, none);
    assert_string_equal(title_program(), "");
}

int main(int argc, char **argv)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc > 2 && strcmp(argv[1], "--child") == 0)
        return child_main(argc, argv);
    if (n < 0)
        self[0] = '\0';
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(title_replaces_arguments_and_spares_the_environment),
        cmocka_unit_test(arguments_can_be_hidden),
        cmocka_unit_test(a_title_without_room_is_cut),
        cmocka_unit_test(the_program_has_the_last_part_of_its_name),
        cmocka_unit_test(without_arguments_only_the_short_name_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
