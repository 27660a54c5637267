/* The lower layers of a session, each with an owner that only writes down what it is told. */
#include "support.h"

#include "tools/bash_session/session_state.h"
#include "io.h"

static struct terminal terminal;
static struct shell shell;
static struct pace pace;
static struct session_options options;
static struct buf told;
static int looks;

static size_t skip_hash(const void *arg, const char *bytes, size_t n)
{
    (void)arg;
    return n > 0 && *bytes == '#' ? 1 : 0;
}

static void text(void *arg, const char *s, size_t n)
{
    buf_add(arg, s, n);
}

static void look(void *arg)
{
    (void)arg;
    looks++;
}

static const struct terminal_owner owner = {.skip = skip_hash, .text = text};

static int set_up(void **state)
{
    (void)state;
    struct err err;
    struct loop *loop = loop_new(&err);
    if (!loop)
        return -1;
    told = (struct buf)BUF_INIT;
    looks = 0;
    terminal = (struct terminal){.loop = loop,
                                 .pace = &pace,
                                 .owner = &owner,
                                 .arg = &told,
                                 .pty = PTY_INIT,
                                 .viewers = {.recent = BUF_INIT},
                                 .tail = BUF_INIT};
    shell = (struct shell){.terminal = &terminal,
                           .options = &options,
                           .kind = kind_of("/bin/bash"),
                           .channel = {.pty = PTY_INIT}};
    pace = (struct pace){0};
    pace_start(&pace, loop, look, NULL);
    if (pty_open(&terminal.pty, 24, 80, NULL, &err) < 0)
        print_message("# skipped: %s\n", err.msg);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    terminal_close(&terminal);
    loop_drop(&pace.timer);
    loop_free(terminal.loop);
    buf_release(&told);
    buf_release(&terminal.tail);
    buf_release(&terminal.viewers.recent);
    return 0;
}

static void need_terminal(void)
{
    if (terminal.pty.master < 0)
        skip_because("no terminal can be had");
}

static void print(const char *s)
{
    assert_int_equal(io_write_all(terminal.pty.slave, s, strlen(s)), 0);
    terminal_drain(&terminal);
}

static void a_terminal_tells_its_owner_plain_text(void **state)
{
    (void)state;
    need_terminal();
    print("#one \033[1mtwo\033[0m\n");
    assert_string_equal(buf_str(&told), "one two\n");
    assert_true(terminal_ends_with(&terminal, "two\n", 4) && !terminal_ends_with(&terminal, "", 0));
    terminal_mark(&terminal);
    print("$ ");
    assert_int_equal(terminal.tail_after_mark, 2);
    assert_false(terminal_is_raw(&terminal));
}

static void what_comes_makes_the_session_look(void **state)
{
    (void)state;
    need_terminal();
    assert_int_equal(pace_next(&pace), 0);
    print("x");
    assert_int_equal(pace_next(&pace), 1);
    assert_int_equal(pace_next(&pace), 2);
    assert_false(pace_is_thorough(&pace));
}

static enum shell_state after(const enum shell_event *events, size_t n)
{
    shell.state = SHELL_ENDED;
    for (size_t i = 0; i < n; i++)
        shell_happened(&shell, events[i]);
    return shell.state;
}
#define AFTER(...)                                                                                           \
    after((const enum shell_event[]){__VA_ARGS__},                                                           \
          sizeof((const enum shell_event[]){__VA_ARGS__}) / sizeof(enum shell_event))

static void a_shell_goes_from_prompt_to_prompt(void **state)
{
    (void)state;
    assert_int_equal(AFTER(SHELL_STARTS), SHELL_STARTING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_IS_GIVEN), SHELL_STARTING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS), SHELL_PROMPTING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS, SHELL_IS_SEEN), SHELL_WAITING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS, SHELL_IS_SEEN, SHELL_IS_GIVEN), SHELL_RUNNING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS_EARLY), SHELL_RUNNING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS, SHELL_IS_GIVEN, SHELL_IS_SEEN), SHELL_RUNNING);
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS, SHELL_IS_GIVEN, SHELL_ANSWERS), SHELL_WAITING);
}

static void one_that_has_ended_does_nothing_but_start(void **state)
{
    (void)state;
    for (enum shell_event e = SHELL_STARTS; e < SHELL_EVENTS; e++) {
        assert_int_equal(AFTER(e), e == SHELL_STARTS ? SHELL_STARTING : SHELL_ENDED);
        assert_int_equal(AFTER(SHELL_STARTS, SHELL_TELLS, e, SHELL_ENDS), SHELL_ENDED);
    }
}

static void a_kind_is_known_by_its_name(void **state)
{
    (void)state;
    assert_ptr_equal(kind_of("/usr/bin/python3.12"), kind_of("python"));
    assert_ptr_equal(kind_of("ksh93"), kind_of("/bin/mksh"));
    assert_true(kind_of("/opt/bash")->is_bash && !kind_of("/opt/rbash5x")->is_bash);
    const char *const others[] = {"", "/", "3", "pythonista", "as", "/bin/cat"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(kind_of(others[i])->names);
}

static void one_that_tells_nothing_is_at_its_prompt_where_it_rests(void **state)
{
    (void)state;
    shell.kind = kind_of("cat");
    shell.pid = getpid();
    assert_true(shell_is_mute(&shell));
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_RESTS), SHELL_WAITING);
    assert_true(shell_at_prompt(&shell, WAITING_SHELL, false));
    assert_int_equal(AFTER(SHELL_STARTS, SHELL_RESTS, SHELL_IS_GIVEN), SHELL_RUNNING);
    assert_false(shell_at_prompt(&shell, WAITING_SHELL, false));
    shell.known.prompts = 1;
    assert_false(shell_is_mute(&shell));
    shell.pid = 0;
}

static void only_a_prompt_that_was_told_of_is_noted(void **state)
{
    (void)state;
    need_terminal();
    AFTER(SHELL_STARTS, SHELL_TELLS);
    terminal_mark(&terminal);
    assert_true(shell_at_prompt(&shell, WAITING_SHELL, true));
    assert_false(shell_at_prompt(&shell, WAITING_SHELL, false)); /* the terminal makes lines */
    assert_false(shell_at_prompt(&shell, WAITING_PROGRAM, true));
    shell_happened(&shell, SHELL_IS_GIVEN);
    assert_false(shell_at_prompt(&shell, WAITING_SHELL, true));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_terminal_tells_its_owner_plain_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_comes_makes_the_session_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shell_goes_from_prompt_to_prompt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_has_ended_does_nothing_but_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_kind_is_known_by_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_tells_nothing_is_at_its_prompt_where_it_rests, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(only_a_prompt_that_was_told_of_is_noted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
