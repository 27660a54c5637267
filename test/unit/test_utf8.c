#include "support.h"

#include "buf.h"
#include "utf8.h"

#define R UTF8_REPLACEMENT

/* Every code point there and back, and nothing else counts as one. */
static void every_code_point_is_one_character(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    for (unsigned c = 0; c <= 0x10FFFF; c++) {
        buf_truncate(&b, 0);
        utf8_put(&b, c);
        if (c >= 0xD800 && c <= 0xDFFF) {
            assert_string_equal(b.data, R);
            continue;
        }
        size_t want = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (b.len != want || utf8_char(b.data, b.len) != (int)want || !utf8_is_valid(b.data, b.len) ||
            utf8_count(b.data, b.len) != 1)
            fail_msg("U+%04X", c);
        for (size_t n = 1; n < b.len; n++)
            if (utf8_char(b.data, n) != -1 || utf8_valid_prefix(b.data, n) != 0)
                fail_msg("U+%04X cut at %zu", c, n);
    }
    buf_truncate(&b, 0);
    utf8_put(&b, 0x110000);
    utf8_put(&b, 0xFFFFFFFF);
    assert_string_equal(b.data, R R);
}

/* The value of n bytes as one character in the pattern of RFC 3629, or -1. */
static long decode(const unsigned char *s, size_t n)
{
    static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07}, mark[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    if ((s[0] & ~mask[n] & 0xFF) != mark[n])
        return -1;
    long value = s[0] & mask[n];
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return -1;
        value = value << 6 | (s[i] & 0x3F);
    }
    return value < least[n] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF) ? -1 : value;
}

/* Against a decoder by the definition: all of one and two bytes, and of three and four those at the edges. */
static void only_definite_sequences_are_characters(void **state)
{
    (void)state;
    static const unsigned char edges[] = {0x41, 0x7F, 0x80, 0xBF, 0xC0};
    enum { N = sizeof edges };
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++)
            for (size_t c = 0; c < (size_t)N * N; c++) {
                unsigned char s[4] = {(unsigned char)a, (unsigned char)b, edges[c / N], edges[c % N]};
                int want = 0;
                for (size_t n = 1; n <= 4 && !want; n++)
                    want = decode(s, n) >= 0 ? (int)n : 0;
                if (utf8_char((char *)s, 4) != want)
                    fail_msg("%02X %02X %02X %02X: %d", s[0], s[1], s[2], s[3], utf8_char((char *)s, 4));
            }
}

static const struct {
    const char *bytes, *text;
} repairs[] = {
    /* The tables of the Unicode standard's section 3.9 on the substitution of maximal subparts. */
    {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", R R R R R R R R "A"},
    {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", R R R R R R R R "A"},
    {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", R R R R R "A" R R "B"},
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", R R R R "A"},
    {"a\xF1\x80\x80\xE1\x80\xC2"
     "b\x80"
     "c\x80\xBF"
     "d",
     "a" R R R "b" R "c" R R "d"},
    {"\xFE\xFF", R R},
    {"\xC3\xA9\xC3", "\xC3\xA9" R},
    {"\xE2\x82", R},
    {"\xF0\x9F\x98", R},
    {"\xF4\x8F\xBF\xBF\xF4\x90\x80\x80", "\xF4\x8F\xBF\xBF" R R R R},
    {"\xEF\xBF\xBD\xEF\xBF\xBE\xEF\xBB\xBF", R "\xEF\xBF\xBE\xEF\xBB\xBF"},
    {"", ""},
    {"plain", "plain"},
};

static void bad_bytes_are_replaced_as_recommended(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof repairs / sizeof *repairs; i++) {
        struct buf b BUF_AUTO = BUF_INIT;
        const char *s = repairs[i].bytes;
        size_t n = strlen(s);
        assert_int_equal(utf8_clean(&b, s, n, true), n);
        assert_string_equal(buf_str(&b), repairs[i].text);
        assert_true(utf8_is_valid(buf_str(&b), b.len));
        assert_int_equal(utf8_count(s, n), utf8_count(buf_str(&b), b.len));
    }
}

/* In pieces, what was not taken coming again with the next: the same text, however it is cut. */
static void pieces_are_cleaned_as_the_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof repairs / sizeof *repairs; i++) {
        const char *s = repairs[i].bytes;
        size_t n = strlen(s);
        for (size_t a = 0; a <= n; a++) {
            for (size_t b = a; b <= n; b++) {
                struct buf out BUF_AUTO = BUF_INIT;
                size_t done = utf8_clean(&out, s, a, false);
                assert_in_range(a - done, 0, 3);
                size_t more = utf8_clean(&out, s + done, b - done, false);
                assert_in_range(b - done - more, 0, 3);
                done += more;
                assert_int_equal(utf8_clean(&out, s + done, n - done, true), n - done);
                assert_string_equal(buf_str(&out), repairs[i].text);
            }
        }
    }
}

/* Every byte at every place of a text, with both sorts of neighbours. */
static void printable_text_ends_where_it_ends(void **state)
{
    (void)state;
    static const char around[] = " ~";
    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 20; at++) {
            for (size_t k = 0; k < 2; k++) {
                char text[20];
                memset(text, around[k], sizeof text);
                text[at] = (char)c;
                size_t want = c >= 0x20 && c < 0x7F ? sizeof text : at;
                if (utf8_printable(text, sizeof text) != want || utf8_printable(text, at) != at)
                    fail_msg("0x%02X at %zu", (unsigned)c, at);
            }
        }
    }
}

static void nul_is_a_character_like_any_other(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    assert_int_equal(utf8_char("\0", 1), 1);
    assert_int_equal(utf8_count("a\0b", 3), 3);
    assert_true(utf8_is_valid("a\0b", 3));
    utf8_clean(&b, "a\0\xFF", 3, true);
    assert_int_equal(b.len, 5);
    assert_memory_equal(b.data, "a\0" R, 6);
    assert_true(utf8_is_valid("", 0));
    assert_int_equal(utf8_count("", 0), 0);
}

static void a_sequence_ends_where_it_can_go_no_further(void **state)
{
    (void)state;
    bool whole;
    assert_int_equal(utf8_sequence("\xE2\x82\xAC", 3, &whole), 3);
    assert_true(whole);
    assert_int_equal(utf8_sequence("\xE2\x82"
                                   "A",
                                   3, &whole),
                     2);
    assert_false(whole);
    assert_int_equal(utf8_sequence("\xE2\x82", 2, &whole), 2);
    assert_false(whole);
    assert_int_equal(utf8_sequence("\x80\x80", 2, &whole), 1);
    assert_false(whole);
    assert_int_equal(utf8_sequence("A", 1, &whole), 1);
    assert_true(whole);
}

static void one_line_speaks_to_no_terminal_and_runs_one_way(void **state)
{
    (void)state;
    struct buf b BUF_AUTO = BUF_INIT;
    buf_adds(&b, "a\tb");
    /* What turns text round is written as its bytes. NOLINTNEXTLINE(misc-misleading-bidirectional) */
    buf_add(&b, "c\0\n\x7F\xC2\x9B.\xE2\x80\xAE.\xE2\x81\xA6.\xD8\x9C.\xE2\x80\xA8.\xC3\xA9\xE2\x82\xAC\xFF",
            28);
    utf8_make_line(&b, 3);
    assert_string_equal(b.data, "a\tbc     .   .   .  .   .\xC3\xA9\xE2\x82\xAC\xFF");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_one_character),
        cmocka_unit_test(only_definite_sequences_are_characters),
        cmocka_unit_test(bad_bytes_are_replaced_as_recommended),
        cmocka_unit_test(pieces_are_cleaned_as_the_whole),
        cmocka_unit_test(printable_text_ends_where_it_ends),
        cmocka_unit_test(nul_is_a_character_like_any_other),
        cmocka_unit_test(a_sequence_ends_where_it_can_go_no_further),
        cmocka_unit_test(one_line_speaks_to_no_terminal_and_runs_one_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
