/* What the applets and their commands say of themselves: the texts of --help fit a terminal of 80 columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "command.h"
#include "mem.h"
#include "utf8.h"

#define PACKED_APPLET APPLET
#define APPLET(id) extern const struct applet id##_applet;
#include "applets.def"
#undef APPLET

static const struct applet *const applets[] = {
#define APPLET(id) &id##_applet,
#include "applets.def"
#undef APPLET
};
enum { N_APPLETS = sizeof applets / sizeof *applets, COLUMNS = 80, NAME_COLUMNS = 17 };

static void check_lines(const char *name, const char *line)
{
    const char *end;
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        if (utf8_count(line, (size_t)(end - line)) > COLUMNS)
            fail_msg("%s --help: more than %d columns: %.*s", name, COLUMNS, (int)(end - line), line);
        assert_null(memchr(line, '\t', (size_t)(end - line)));
    }
    assert_string_equal(line, ""); /* a newline at the end */
}

static void check_usage(const struct applet *applet, const struct command *command)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char *name MEM_AUTO = mem_printf("%s %s", applet->name, command ? command->name : "");
    command_usage(applet, command, &text);
    check_lines(name, text.data);
}

static void test_usage_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_APPLETS; i++) {
        check_usage(applets[i], NULL);
        for (const struct command *c = applets[i]->commands ? applets[i]->commands->list : NULL; c && c->name;
             c++)
            check_usage(applets[i], c);
    }
}

static size_t count_options(const struct command_option *options)
{
    size_t n = 0;
    while (options[n].name)
        n++;
    return n;
}

/* Each name that a command lists is an option of its applet, and each option is taken by some command. */
static void test_options_of_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_APPLETS; i++) {
        const struct command_set *set = applets[i]->commands;
        bool taken[COMMAND_OPTIONS_MAX] = {false};
        if (!set)
            continue;
        assert_in_range(count_options(set->options), 1, COMMAND_OPTIONS_MAX);
        for (const struct command *c = set->list; c->name; c++) {
            char *names MEM_AUTO = mem_strdup(c->options ? c->options : ""), *rest = names, *name;
            while ((name = strsep(&rest, " ")) && *name) {
                size_t at = 0;
                while (set->options[at].name && strcmp(set->options[at].name, name) != 0)
                    at++;
                if (!set->options[at].name)
                    fail_msg("%s %s: --%s is no option of the applet", applets[i]->name, c->name, name);
                taken[at] = true;
            }
        }
        for (size_t at = 0; set->options[at].name; at++)
            if (!taken[at])
                fail_msg("%s: no command takes --%s", applets[i]->name, set->options[at].name);
    }
}

static void test_summaries(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_APPLETS; i++)
        assert_in_range(strlen(applets[i]->summary), 1, COLUMNS - NAME_COLUMNS);
}

/* main looks for them by their ids. */
static void test_packed(void **state)
{
    (void)state;
#undef PACKED_APPLET
#define APPLET(id)
#define PACKED_APPLET(id) assert_string_equal(id##_applet.name, #id);
#include "applets.def"
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_lines),
        cmocka_unit_test(test_options_of_commands),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
