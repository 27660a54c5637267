#include "support.h"

#include "buf.h"
#include "term_filter.h"
#include "utf8.h"

#define R UTF8_REPLACEMENT
#define ST "\033\\"

static const struct {
    const char *in, *out;
} cases[] = {
    /* Ordinary text stays, all of it. */
    {"", ""},
    {"plain ~!@#[]{};:\\^_` text\twith\ttabs\r\nand lines\n",
     "plain ~!@#[]{};:\\^_` text\twith\ttabs\r\nand lines\n"},
    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
    /* Private modes, titles, links, subparameters, character sets, keypads, DCS, soft reset. */
    {"\033[?25lX", "X"},
    {"\033[?2004hX", "X"},
    {"\033]0;t\007X", "X"},
    {"\033]0;t" ST "X", "X"},
    {"\033]8;;http://h/" ST "link\033]8;;" ST "X", "linkX"},
    {"\033[38:2:1:2:3mX", "X"},
    {"\033(BX", "X"},
    {"\033=X", "X"},
    {"\0337X", "X"},
    {"\033Pq#0" ST "X", "X"},
    {"\033[!pX", "X"},
    {"\033[31mred", "red"},
    {"\033]0;a;b\007one;two;three", "one;two;three"},
    {"\033]0;t\007;;\033[0m;", ";;;"},
    /* The rest of ECMA-48 and what terminals add to it. */
    {"\033[mX\033[0;1;31mY\033[KZ\033[2JW", "XYZW"},
    {"\033[>4;2mX\033[=1cY\033[<35;1;2MZ", "XYZ"},
    {"\033[ qX\033[2 qY\033[\"pZ\033['}W\033[~V", "XYZWV"},
    {"\033cX\033DY\033MZ\0338W\033>V\033HU", "XYZWVU"},
    {"\033#8X\033%GY\033)0Z\033*BW\033-AV\033 FU", "XYZWVU"},
    {"\033([X\033(PY\033(kZ\033(]W\033(XV\033$(^U", "XYZWVU"}, /* a set's name is no beginning of anything */
    {"\033^private" ST "X\033_app" ST "Y\033Xsos" ST "Z\033ktitle" ST "W", "XYZW"},
    {"\033\\X", "X"},
    {"\033]0;\xE6\x97\xA5\xE6\x9C\xAC\007X", "X"},
    {"\033]0;\xFF\x80\xC3\007X", "X"},
    {"\033]\007X\033P" ST "Y", "XY"},
    {"\033]52;c;aGk=\007X\033]133;A\007Y\033]1337;File=:AAAA\007Z", "XYZ"},
    /* One sequence breaks another off. */
    {"\033\033[1mX", "X"},
    {"\033[1\033[2mX", "X"},
    {"\033]0;t\033[1mX", "X"},
    {"\033]0;t\033]0;u\007X", "X"},
    {"\033(\033(BX", "X"},
    {"\033P\033\033\\X", "X"},
    {"\033[1\030X\033[1\032Y\033]0;t\030Z\033\030W\033(\030V", "XYZWV"},
    /* What never ends hides no more than the rest of its line. */
    {"\033\nX", "\nX"},
    {"\033[\nX", "\nX"},
    {"\033[12;3\nX", "\nX"},
    {"\033(\nX", "\nX"},
    {"\033]0;no end\nX", "\nX"},
    {"\033]0;no end\rX", "\rX"},
    {"\033Pq no end\r\nX", "\r\nX"},
    {"\033_no end\033\nX", "\nX"},
    {"\033[1\xC3\xA9X\033\xC3\xA9Y\033(\xC3\xA9Z", "\xC3\xA9X\xC3\xA9Y\xC3\xA9Z"},
    {"\033[1\xFFX\033\x80Y", R "X" R "Y"},
    {"\033[1\177X\033\177Y", "XY"},
    /* Control characters. */
    {"a\001\002\003\004\005\006\007\010\013\014\016\017\020\021\022\023\024b", "ab"},
    {"a\025\026\027\030\031\032\034\035\036\037\177b", "ab"},
    {"a\xC2\x80\xC2\x9B\xC2\x9D\xC2\x9F"
     "b\xC2\xA0"
     "c",
     "ab\xC2\xA0"
     "c"},
    /* Bytes that are no UTF-8: one U+FFFD for each longest beginning of a character. */
    {"a\x80"
     "b\xBF"
     "c\xC0\xAF"
     "d\xFF"
     "e",
     "a" R "b" R "c" R R "d" R "e"},
    {"\xC3(\xE2\x82(\xF0\x9F\x98(\xF0\x9F(", R "(" R "(" R "(" R "("},
    {"\xE2\xE2\x82\xAC\xF0\xF0\x9F\x98\x80\xC3\xC3\xA9", R "\xE2\x82\xAC" R "\xF0\x9F\x98\x80" R "\xC3\xA9"},
    {"\xED\xA0\x80\xE0\x80\x80\xF4\x90\x80\x80\xF8\x88", R R R R R R R R R R R R},
    {"\xE2\x82\033[1mX\xF0\x9F\nY\xC3\001Z", R "X" R "\nY" R "Z"},
    {"\xF0\x9F\xE2\x82\xC3Z", R R R "Z"},
};

enum { N_CASES = sizeof cases / sizeof *cases };

static bool is_plain(const struct buf *out)
{
    for (size_t i = 0; i < out->len; i++) {
        unsigned char c = (unsigned char)out->data[i];
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)
            return false;
        if (c == 0xC2 && (unsigned char)out->data[i + 1] < 0xA0)
            return false;
    }
    return utf8_is_valid(buf_str(out), out->len);
}

static void assert_is(const struct buf *out, const char *want, const char *what, size_t a, size_t b)
{
    if (strcmp(buf_str(out), want) != 0 || out->len != strlen(want))
        fail_msg("%s, cut at %zu and %zu: '%s' instead of '%s'", what, a, b, buf_str(out), want);
}

/* However the reads cut it: in one, in two, in three pieces, in single bytes. */
static void every_cut_gives_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        const char *s = cases[i].in;
        size_t n = strlen(s);
        for (size_t a = 0; a <= n; a++) {
            for (size_t b = a; b <= n; b++) {
                struct buf out BUF_AUTO = BUF_INIT;
                struct term_filter f = {0};
                term_filter_feed(&f, s, a, &out);
                term_filter_feed(&f, s + a, b - a, &out);
                term_filter_feed(&f, s + b, n - b, &out);
                assert_is(&out, cases[i].out, s, a, b);
            }
        }
        struct buf out BUF_AUTO = BUF_INIT;
        struct term_filter f = {0};
        for (size_t k = 0; k < n; k++)
            term_filter_feed(&f, s + k, 1, &out);
        assert_is(&out, cases[i].out, s, n, n);
        assert_true(is_plain(&out));
    }
}

static void feed_in_pieces(const struct buf *in, struct buf *out)
{
    struct term_filter f = {0};
    for (size_t at = 0, n; at < in->len; at += n) {
        n = 1 + random_below(12);
        n = n < in->len - at ? n : in->len - at;
        term_filter_feed(&f, in->data + at, n, out);
    }
}

/* One behind the other, in any order: each is over where it ends. */
static void none_spoils_what_follows(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct buf in BUF_AUTO = BUF_INIT, want BUF_AUTO = BUF_INIT, out BUF_AUTO = BUF_INIT;
        for (int i = 0; i < 20; i++) {
            unsigned k = random_below(N_CASES);
            buf_adds(&in, cases[k].in);
            buf_adds(&want, cases[k].out);
        }
        feed_in_pieces(&in, &out);
        assert_is(&out, buf_str(&want), in.data, 0, 0);
    }
}

/* Whatever comes, what goes out is plain text, and the same in pieces. */
static void rubbish_gives_plain_text(void **state)
{
    (void)state;
    static const char likely[] =
        "\033\033\033[]PX^_k\\\007\n\r;:?0123mhBc(#\x18\x80\x9B\xC2\xC3\xE2\x82\xAC\xF0\x9F\0\x7F";
    for (int round = 0; round < 3000; round++) {
        struct buf in BUF_AUTO = BUF_INIT, whole BUF_AUTO = BUF_INIT, pieces BUF_AUTO = BUF_INIT;
        struct term_filter f = {0};
        for (int i = 0; i < 60; i++)
            buf_addc(&in,
                     random_below(4) ? likely[random_below(sizeof likely - 1)] : (char)random_below(256));
        term_filter_feed(&f, in.data, in.len, &whole);
        feed_in_pieces(&in, &pieces);
        assert_true(is_plain(&whole));
        assert_int_equal(whole.len, pieces.len);
        assert_memory_equal(buf_str(&whole), buf_str(&pieces), whole.len);
    }
}

static void a_reset_gives_up_what_is_unfinished(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } unfinished[] = {
        {"", ""},           {"\033", ""}, {"\033[1;3", ""}, {"\033(", ""},       {"\033]0;t", ""},
        {"\033Pq\033", ""}, {"\xC3", R},  {"\xE2\x82", R},  {"\xF0\x9F\x98", R}, {"text", "text"}};
    for (size_t i = 0; i < sizeof unfinished / sizeof *unfinished; i++) {
        struct buf out BUF_AUTO = BUF_INIT, want BUF_AUTO = BUF_INIT;
        struct term_filter f = {0};
        term_filter_feed(&f, unfinished[i].before, strlen(unfinished[i].before), &out);
        term_filter_reset(&f, &out);
        term_filter_reset(&f, &out);
        term_filter_feed(&f, "bash$ ", 6, &out); /* which is no end of any sequence */
        buf_addf(&want, "%sbash$ ", unfinished[i].after);
        assert_is(&out, want.data, unfinished[i].before, 0, 0);
    }
}

/* An endless one is passed over, not gathered. */
static void nothing_is_kept_of_a_long_sequence(void **state)
{
    (void)state;
    struct buf out BUF_AUTO = BUF_INIT, in BUF_AUTO = BUF_INIT;
    struct term_filter f = {0};
    while (in.len < 1000000)
        buf_adds(&in, "0123456789;");
    static const char *const starts[] = {"\033[", "\033]", "\033P", "\033_"};
    for (size_t i = 0; i < 4; i++) {
        term_filter_feed(&f, starts[i], 2, &out);
        term_filter_feed(&f, in.data, in.len, &out);
        term_filter_feed(&f, "\n", 1, &out);
    }
    assert_string_equal(out.data, "\n\n\n\n");
    buf_truncate(&out, 0);
    term_filter_feed(&f, in.data, in.len, &out);
    assert_int_equal(out.len, in.len);
    assert_memory_equal(out.data, in.data, in.len);
}

static void nul_is_a_control_character(void **state)
{
    (void)state;
    struct buf out BUF_AUTO = BUF_INIT;
    struct term_filter f = {0};
    static const char text[] = "a\0b\033\0c\033[1\0d\033]0;\0t\007e\033(\0f\xC3\0g";
    term_filter_feed(&f, text, sizeof text - 1, &out);
    assert_string_equal(out.data, "abcdef" R "g");
}

static void what_was_handed_over_is_looked_at(void **state)
{
    (void)state;
    struct buf out BUF_AUTO = BUF_INIT;
    struct term_filter f = {0};
    assert_true(term_filter_is_valid(&f));
    static const char *const pieces[] = {"\033", "[",  "1",    "m",    "\033]", "x",
                                         "\033", "\\", "\xF0", "\x9F", "\x98"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        term_filter_feed(&f, pieces[i], strlen(pieces[i]), &out);
        assert_true(term_filter_is_valid(&f));
    }
    struct term_filter bad = f;
    memset(&bad.state, 0x7f, sizeof bad.state);
    assert_false(term_filter_is_valid(&bad));
    memset(&bad.state, 0xff, sizeof bad.state);
    assert_false(term_filter_is_valid(&bad));
    bad = f;
    bad.n_held = sizeof bad.held;
    assert_true(term_filter_is_valid(&bad));
    bad.n_held++;
    assert_false(term_filter_is_valid(&bad));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_same),
        cmocka_unit_test(none_spoils_what_follows),
        cmocka_unit_test(rubbish_gives_plain_text),
        cmocka_unit_test(a_reset_gives_up_what_is_unfinished),
        cmocka_unit_test(nothing_is_kept_of_a_long_sequence),
        cmocka_unit_test(nul_is_a_control_character),
        cmocka_unit_test(what_was_handed_over_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
