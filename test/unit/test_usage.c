/* What the applets say of themselves: the texts of --help fit a terminal of 80 columns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "applet.h"
#include "mcp_serve/mcp_serve.h"
#include "utf8.h"

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

static void test_usage_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_APPLETS; i++)
        check_lines(applets[i]->name, applets[i]->usage);
    check_lines("mcp serve", mcp_serve_usage);
}

static void test_summaries(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_APPLETS; i++)
        assert_in_range(strlen(applets[i]->summary), 1, COLUMNS - NAME_COLUMNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_lines),
        cmocka_unit_test(test_summaries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
