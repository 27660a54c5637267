/* The parts of text_editor that are functions of bytes, and the roll-back of every way an edit in place can
 * stop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/text_editor/edit_file.h"
#include "tools/text_editor/edit_history.h"
#include "tools/text_editor/edit_match.h"
#include "tools/text_editor/edit_path.h"
#include "tools/text_editor/edit_text.h"
#include "tools/text_editor/edit_view.h"
#include "tools/text_editor/text_editor_controller.h"

#include "mem.h"
#include "text_sum.h"

static struct text text(const char *s)
{
    return (struct text){(char *)s, strlen(s)};
}

/* ---- edit_text ---- */

static void test_count_lf(void **state)
{
    (void)state;
    char s[64];
    for (unsigned seed = 0; seed < 2000; seed++) {
        size_t n = seed % sizeof s, count = 0;
        for (size_t i = 0; i < n; i++) {
            static const char some[] = {'\n', '\x0b', '\x8a', '\0', '\t', 'a', '\xff', '\n'};
            s[i] = some[(seed * 7919u + (unsigned)i * 104729u) / 13 % 8];
            count += s[i] == '\n';
        }
        assert_int_equal(text_count_lf(s, n), count);
    }
}

static void test_line_back(void **state)
{
    (void)state;
    const char s[] = "a\nbb\n\nc";
    assert_int_equal(text_line_back(s, 7, 0), 6);
    assert_int_equal(text_line_back(s, 6, 0), 6);
    assert_int_equal(text_line_back(s, 6, 1), 5);
    assert_int_equal(text_line_back(s, 6, 2), 2);
    assert_int_equal(text_line_back(s, 6, 9), 0);
    assert_int_equal(text_line_back(s, 0, 0), 0);
}

static void test_common(void **state)
{
    (void)state;
    char a[40], b[40];
    for (size_t i = 0; i < sizeof a; i++) {
        memset(a, 'x', sizeof a);
        memset(b, 'x', sizeof b);
        b[i] = 'y';
        assert_int_equal(text_common_prefix(a, b, sizeof a), i);
        assert_int_equal(text_common_suffix(a + sizeof a, b + sizeof b, sizeof a), sizeof a - 1 - i);
    }
    assert_int_equal(text_common_prefix(a, a, sizeof a), sizeof a);
    assert_int_equal(text_common_suffix(a + sizeof a, a + sizeof a, 0), 0);
}

static uint64_t sum_in_pieces(const char *s, size_t n, size_t piece)
{
    struct text_sum sum;
    text_sum_begin(&sum);
    for (size_t i = 0; i < n; i += piece)
        text_sum_add(&sum, s + i, n - i < piece ? n - i : piece);
    return text_sum_end(&sum);
}

static void test_sum(void **state)
{
    (void)state;
    char s[100];
    for (size_t i = 0; i < sizeof s; i++)
        s[i] = (char)(i * 37);
    for (size_t n = 1; n < sizeof s; n++) {
        uint64_t whole = sum_in_pieces(s, n, n);
        for (size_t piece = 1; piece < 20; piece++)
            assert_true(sum_in_pieces(s, n, piece) == whole);
        for (size_t i = 0; i < n; i++) {
            s[i] ^= 1;
            assert_false(sum_in_pieces(s, n, n) == whole);
            s[i] ^= 1;
        }
        assert_false(sum_in_pieces(s, n - 1, n) == whole);
    }
    char zero[16] = {0};
    assert_false(sum_in_pieces(zero, 3, 3) == sum_in_pieces(zero, 4, 4));
}

/* ---- edit_view ---- */

static char *shown_in_pieces(const char *s, size_t n, size_t piece, bool expands)
{
    struct buf out = BUF_INIT;
    struct view v;
    view_begin(&v, &out, 1);
    v.expands = expands;
    for (size_t i = 0; i < n; i += piece)
        view_feed(&v, s + i, n - i < piece ? n - i : piece, -1);
    view_end_of_text(&v);
    view_notes(&v, -1);
    return buf_take(&out, NULL);
}

static void check_view_with(const char *s, size_t n, bool expands, const char *expected)
{
    for (size_t piece = 1; piece <= n + 1; piece++) {
        char *shown MEM_AUTO = shown_in_pieces(s, n, piece, expands);
        assert_string_equal(shown, expected);
    }
}

static void check_view(const char *s, size_t n, const char *expected)
{
    check_view_with(s, n, false, expected);
}

static void test_view(void **state)
{
    (void)state;
#define BAD_NOTE "[\xEF\xBF\xBD stands for bytes that are no UTF-8]\n"
#define CR_NOTE "[\xE2\x90\x8D stands for a carriage return that ends no line]\n"
    check_view("", 0, "     1\t\n");
    check_view("a\nb", 3, "     1\ta\n     2\tb\n");
    check_view("a\r\n\r\n", 5, "     1\ta\n     2\t\n     3\t\n");
    check_view("a\rb\r\r\n", 6,
               "     1\ta\xE2\x90\x8D"
               "b\xE2\x90\x8D\n     2\t\n" CR_NOTE);
    check_view("\xC3\xA9\tx", 4, "     1\t\xC3\xA9\tx\n");
    check_view_with("\xC3\xA9\tx", 4, true, "     1\t\xC3\xA9       x\n");
    check_view_with("\xF0\x9F\x98\x80\t|", 6, true, "     1\t\xF0\x9F\x98\x80       |\n");
    check_view("a\xE2\x82"
               "b\xFF\xC3\xA9",
               7,
               "     1\ta\xEF\xBF\xBD"
               "b\xEF\xBF\xBD\xC3\xA9\n" BAD_NOTE);
    check_view("\xE2\x82\n\xE2\x82", 5, "     1\t\xEF\xBF\xBD\n     2\t\xEF\xBF\xBD\n" BAD_NOTE);
    check_view("\xE2\r\n", 3, "     1\t\xEF\xBF\xBD\n     2\t\n" BAD_NOTE);
    check_view("\r\xC3\xA9", 3, "     1\t\xE2\x90\x8D\xC3\xA9\n" CR_NOTE);
}

/* ---- edit_match ---- */

static void check_matches(const char *content, const char *old, const char *new, bool all, int count,
                          const char *expected)
{
    struct text o = text(old), n = text(new);
    struct edit_wish wish = {&o, &n, all, count};
    struct edit_found f EDIT_FOUND_AUTO = EDIT_FOUND_INIT;
    struct err err;
    if (edit_match(content, strlen(content), &wish, "f", &f, &err) < 0) {
        assert_int_equal(err.code, ERR_TOOL);
        assert_true(expected == NULL);
        return;
    }
    assert_non_null(expected);
    char *got MEM_AUTO =
        mem_printf("%.*s%.*s%s", (int)f.s.at, content, (int)f.s.n_put, f.s.put, content + f.s.at + f.s.cut);
    assert_string_equal(got, expected);
}

static void check_match(const char *content, const char *old, const char *new, const char *expected)
{
    check_matches(content, old, new, false, 0, expected);
}

static void test_match_all(void **state)
{
    (void)state;
    check_matches("abcbx", "b", "XY", true, 0, "aXYcXYx");
    check_matches("abcbx", "b", "", true, 2, "acx");
    check_matches("abcbx", "b", "X", false, 2, "aXcXx");
    check_matches("abcbx", "b", "X", true, 3, NULL);
    check_matches("abc", "b", "X", false, 1, "aXc");
    check_matches("abc", "b", "X", false, 2, NULL);
    check_matches("aaaaa", "aa", "b", true, 0, "bba");
    check_matches("x", "y", "z", true, 0, NULL);
    check_matches("a\r\nb\r\na\r\nb\r\nc\r\n", "a\nb\n", "1\n", true, 0, "1\r\n1\r\nc\r\n");
    check_matches("\r\n\r\n\r\n", "\n", "\n\n", true, 3, "\r\n\n\r\n\n\r\n\n");
    check_matches("xa\r\nbya\r\nbz", "a\nb", "1\n2\n", true, 2, "x1\r\n2\r\ny1\r\n2\r\nz");
    check_matches("a\r\nb\r\nab\r\n", "b", "1\n2", true, 0, "a\r\n1\r\n2\r\na1\r\n2\r\n");
}

static void test_match(void **state)
{
    (void)state;
    check_match("abc", "b", "X", "aXc");
    check_match("abc", "x", "X", NULL);
    check_match("abcb", "b", "X", NULL);
    check_match("aaa", "aa", "b", "ba");
    check_match("a\nb\n", "\n", "", NULL);
    check_match("a\r\nb\r\nc", "a\nb", "1\n2\n3", "1\r\n2\r\n3\r\nc");
    check_match("x\r\ny\r\n", "\ny\n", "\n1\n", "x\r\n1\r\n");
    check_match("x\r\ny", "x\n", "", "y");
    check_match("\r\n\r\nx", "\n\nx", "\nx", "\r\nx");
    check_match("a\r\nb\nc\r\nd", "a\nb\nc\nd", "1\n2\n3\n4\n5", "1\r\n2\n3\r\n4\r\n5");
    check_match("a\r\nb a\nb", "a\nb", "X", "a\r\nb X");
    check_match("a\r\nb a\r\nb", "a\nb", "X", NULL);
    check_match("a\nb", "a\r\nb", "X", NULL);
    check_match("a\r\nb\r\n", "b", "1\n2", "a\r\n1\r\n2\r\n");
    check_match("a\r\nb\n", "b", "1\n2", "a\r\n1\n2\n");
    check_match("a\r\nb\r\n", "a\r\nb", "1\n2", "1\n2\r\n");
    check_match("a\rb\r\n", "a\rb", "c", "c\r\n");
}

/* ---- interrupted edits in place ---- */

struct place_of_test {
    char dir[32], file[48], link[48], store[48];
};

static int set_up(void **state)
{
    struct place_of_test *t = mem_zalloc(sizeof *t);
    snprintf(t->dir, sizeof t->dir, "/tmp/test_text_editor.XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    snprintf(t->file, sizeof t->file, "%s/file", t->dir);
    snprintf(t->link, sizeof t->link, "%s/link", t->dir);
    snprintf(t->store, sizeof t->store, "%s/store", t->dir);
    setenv("TOOLBOX_DIR", t->store, 1);
    *state = t;
    return 0;
}

static void remove_all(const char *dir)
{
    char *command MEM_AUTO = mem_printf("rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
    struct place_of_test *t = *state;
    remove_all(t->dir);
    free(t);
    return 0;
}

static void put_file(const char *path, const char *s, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(s, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void check_file(const char *path, const char *expected, size_t n)
{
    char got[256];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t have = fread(got, 1, sizeof got, f);
    fclose(f);
    assert_int_equal(have, n);
    assert_memory_equal(got, expected, n);
}

static int run(enum edit_command command, const char *path, const char *old, const char *new, struct err *err)
{
    struct edit_request r = {
        .command = command, .path = text(path), .old_str = text(old), .new_str = text(new)};
    struct buf answer BUF_AUTO = BUF_INIT;
    return text_editor_run(&r, &answer, err);
}

/* A process that writes the edit's journal and then dies with `state` in the file. */
static void die_with(struct place_of_test *t, const char *old, const struct splice *s, const char *state,
                     size_t n_state, enum entry_kind kind)
{
    struct edit_path p EDIT_PATH_AUTO = EDIT_PATH_INIT;
    struct undo_store undo UNDO_AUTO = UNDO_INIT;
    struct err err;
    remove_all(t->store);
    unlink(t->link);
    put_file(t->file, old, strlen(old));
    assert_int_equal(link(t->file, t->link), 0);
    assert_int_equal(edit_path_resolve(&p, t->file, strlen(t->file), false, &err), 0);
    undo_open(&undo, true);
    struct undo_change change = {.kind = kind,
                                 .path = &p,
                                 .old = old,
                                 .n_old = strlen(old),
                                 .splice = *s,
                                 .before = &p.st,
                                 .after = &p.st,
                                 .in_place = true};
    assert_int_equal(undo_prepare(&undo, &change, NULL), 0);
    assert_string_equal(undo.why.msg, "");
    FILE *f = fopen(t->file, "r+b");
    assert_non_null(f);
    assert_int_equal(fwrite(state, 1, n_state, f), n_state);
    fclose(f);
    assert_int_equal(truncate(t->file, (off_t)n_state), 0);
}

static void check_all_states(struct place_of_test *t, const char *old, const struct splice *s,
                             const char *new)
{
    size_t n_old = strlen(old), n_new = strlen(new);
    struct err err;
    char now[256];
    for (size_t k = s->at; k <= n_new; k++) {
        size_t n = k < n_old ? n_old : k;
        memcpy(now, old, n_old);
        memcpy(now, new, k);
        bool is_new = n == n_new && memcmp(now, new, n) == 0;
        die_with(t, old, s, now, n, ENTRY_EDIT);
        assert_int_equal(run(EDIT_VIEW, k % 2 ? t->file : t->link, "", "", &err), 0);
        check_file(t->file, is_new ? new : old, is_new ? n_new : n_old);
        /* The roll-back can be cut short as well, and is taken up again. */
        for (size_t j = s->at; !is_new && j < k && j < n_old; j++) {
            memcpy(now, old, j);
            die_with(t, old, s, now, n, ENTRY_EDIT);
            assert_int_equal(run(EDIT_VIEW, t->file, "", "", &err), 0);
            check_file(t->file, old, n_old);
        }
        /* Nothing is left to do, and an edit that counts as made can be undone. */
        assert_int_equal(run(EDIT_UNDO, t->link, "", "", &err), is_new ? 0 : -1);
        check_file(t->file, old, n_old);
    }
}

static void test_roll_back(void **state)
{
    struct place_of_test *t = *state;
    const char old[] = "first line\nsecond line\nthird line\n";
    struct splice longer = {.at = 11, .cut = 6, .put = "[a longer one]", .n_put = 14};
    check_all_states(t, old, &longer, "first line\n[a longer one] line\nthird line\n");
    struct splice shorter = {.at = 11, .cut = 12, .put = "x", .n_put = 1};
    check_all_states(t, old, &shorter, "first line\nxthird line\n");
    struct splice same = {.at = 0, .cut = 5, .put = "FIRST", .n_put = 5};
    check_all_states(t, old, &same, "FIRST line\nsecond line\nthird line\n");
}

static void test_edit_goes_on_after_roll_back(void **state)
{
    struct place_of_test *t = *state;
    const char old[] = "one\ntwo\n", mixed[] = "one\nT2o\n";
    struct splice s = {.at = 4, .cut = 3, .put = "T2O", .n_put = 3};
    struct err err;
    die_with(t, old, &s, mixed, strlen(mixed), ENTRY_EDIT);
    assert_int_equal(run(EDIT_STR_REPLACE, t->link, "two", "2", &err), 0);
    check_file(t->file, "one\n2\n", 6);
    assert_int_equal(run(EDIT_UNDO, t->file, "", "", &err), 0);
    check_file(t->file, old, strlen(old));
}

static void test_others_changes_are_not_rolled_back(void **state)
{
    struct place_of_test *t = *state;
    const char old[] = "one\ntwo\n", repaired[] = "by hand\n";
    struct splice s = {.at = 4, .cut = 3, .put = "T2O", .n_put = 3};
    struct err err;
    die_with(t, old, &s, repaired, strlen(repaired), ENTRY_EDIT);
    assert_int_equal(run(EDIT_VIEW, t->file, "", "", &err), 0);
    check_file(t->file, repaired, strlen(repaired));
    assert_int_equal(run(EDIT_UNDO, t->file, "", "", &err), 0); /* what was there is not lost */
    check_file(t->file, old, strlen(old));
}

static void test_journal_that_was_cut_short(void **state)
{
    struct place_of_test *t = *state;
    const char old[] = "one\ntwo\n";
    struct splice s = {.at = 4, .cut = 3, .put = "T2O", .n_put = 3};
    struct err err;
    die_with(t, old, &s, old, strlen(old), ENTRY_EDIT);
    char *cut MEM_AUTO = mem_printf("for f in %s/journal/*; do truncate -s -1 $f; done", t->store);
    assert_int_equal(system(cut), 0);
    assert_int_equal(run(EDIT_STR_REPLACE, t->file, "two", "2", &err), 0);
    check_file(t->file, "one\n2\n", 6);
    char *journal MEM_AUTO = mem_printf("%s/journal", t->store);
    assert_int_equal(access(journal, F_OK), -1);
}

/* Then nobody can tell what the file was: that is told, and the edit is one that can't be undone. */
static void test_damaged_journal_of_a_half_made_edit(void **state)
{
    struct place_of_test *t = *state;
    const char old[] = "one\ntwo\n", mixed[] = "one\nT2o\n";
    struct splice s = {.at = 4, .cut = 3, .put = "T2O", .n_put = 3};
    struct err err;
    die_with(t, old, &s, mixed, strlen(mixed), ENTRY_EDIT);
    char *cut MEM_AUTO = mem_printf("for f in %s/journal/*; do truncate -s -1 $f; done", t->store);
    assert_int_equal(system(cut), 0);
    assert_int_equal(run(EDIT_STR_REPLACE, t->file, "one", "1", &err), -1);
    assert_non_null(strstr(err.msg, "is damaged"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(EDIT_UNDO, t->file, "", "", &err), -1);
        assert_non_null(strstr(err.msg, "is damaged"));
        check_file(t->file, mixed, strlen(mixed));
    }
    assert_int_equal(run(EDIT_STR_REPLACE, t->file, "T2o", "two", &err), 0);
    check_file(t->file, old, strlen(old));
}

static void test_interrupted_undo(void **state)
{
    struct place_of_test *t = *state;
    const char old[] = "one\ntwo\n", mixed[] = "one\ntWo\n";
    struct splice s = {.at = 4, .cut = 3, .put = "TWO", .n_put = 3};
    struct err err;
    die_with(t, old, &s, mixed, strlen(mixed), ENTRY_UNDO);
    assert_int_equal(run(EDIT_VIEW, t->file, "", "", &err), 0);
    check_file(t->file, old, strlen(old));
    assert_int_equal(run(EDIT_UNDO, t->file, "", "", &err), -1); /* it left no entry of its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_lf),
        cmocka_unit_test(test_line_back),
        cmocka_unit_test(test_common),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_match_all),
        cmocka_unit_test_setup_teardown(test_roll_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_edit_goes_on_after_roll_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_changes_are_not_rolled_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_journal_that_was_cut_short, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_journal_of_a_half_made_edit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interrupted_undo, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
