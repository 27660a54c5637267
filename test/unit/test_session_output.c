#include "support.h"

#include "tools/bash_session/bash_session_types.h"
#include "tools/bash_session/session_output.h"
#include "utf8.h"

/* Characters of all lengths, each different from its neighbours. */
static void put_text(struct buf *b, size_t n, unsigned *next)
{
    static const unsigned starts[] = {'a', 0xE0, 0x4E00, 0x1F600};
    while (b->len < n) {
        unsigned k = (*next)++;
        utf8_put(b, starts[k % 4] + k % 20);
    }
}

/* ---- the stream ---- */

static struct output out;

static int set_up(void **state)
{
    (void)state;
    out = (struct output){.text = BUF_INIT};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    output_release(&out);
    return 0;
}

static void answer(size_t max, struct buf *text)
{
    buf_truncate(text, 0);
    output_answer(&out, max, text);
    assert_true(text->len <= max);
    assert_true(utf8_is_valid(buf_str(text), text->len));
}

static void assert_answer(size_t max, const char *want, bool delivered)
{
    struct buf text BUF_AUTO = BUF_INIT;
    answer(max, &text);
    assert_string_equal(buf_str(&text), want);
    output_delivered(&out, delivered);
}

static void add(const char *s)
{
    output_add(&out, s, strlen(s));
}

static void what_arrived_is_not_told_again(void **state)
{
    (void)state;
    assert_answer(100, "", true);
    add("one ");
    add("two ");
    assert_answer(100, "one two ", true);
    assert_answer(100, "", true);
    add("three");
    assert_answer(100, "three", true);
}

static void what_did_not_arrive_is_told_again(void **state)
{
    (void)state;
    struct buf text BUF_AUTO = BUF_INIT;
    add("one ");
    assert_answer(100, "one ", false);
    answer(100, &text);
    add("two "); /* while the answer is on its way */
    output_delivered(&out, false);
    assert_answer(100, "one two ", false);
    answer(100, &text);
    add("three ");
    output_delivered(&out, true);
    assert_answer(100, "three ", true);
    add("four ");
    output_put_back(&out, "again ", 6); /* of a run */
    add("five");
    assert_answer(100, "again four five", true);
    output_put_back(&out, "", 0);
    assert_answer(100, "", true);
}

/* N of "[N bytes omitted]\n", and where the text behind it begins. */
static unsigned long long notice_of(const char *text, const char **rest)
{
    static const char tail[] = " bytes omitted]\n";
    *rest = text;
    if (*text != '[')
        return 0;
    char *end;
    unsigned long long n = strtoull(text + 1, &end, 10);
    assert_memory_equal(end, tail, sizeof tail - 1);
    *rest = end + sizeof tail - 1;
    return n;
}

static void the_newest_are_kept_and_the_others_counted(void **state)
{
    (void)state;
    add("0123456789abcdefghijklmnopqrstuvwxyz");
    assert_answer(36, "0123456789abcdefghijklmnopqrstuvwxyz", false);
    assert_answer(35, "[20 bytes omitted]\nklmnopqrstuvwxyz", false);
    assert_answer(3, "xyz", false); /* no room for the line */
    assert_answer(3, "xyz", true);
    add("new");
    assert_answer(100, "[33 bytes omitted]\nnew", true); /* so the next one tells */
    add("more");
    assert_answer(100, "more", true);
}

/* Every size: no character is cut, none is lost without a word. */
static void every_cap_holds(void **state)
{
    (void)state;
    for (size_t max = 1; max < 150; max++) {
        struct buf all BUF_AUTO = BUF_INIT, text BUF_AUTO = BUF_INIT;
        unsigned next = 0;
        const char *rest;
        put_text(&all, 100 + max / 2, &next);
        output_add(&out, all.data, all.len);
        answer(max, &text);
        unsigned long long told = notice_of(buf_str(&text), &rest);
        size_t n = strlen(rest);
        assert_memory_equal(rest, all.data + all.len - n, n);
        output_delivered(&out, true);
        struct buf later BUF_AUTO = BUF_INIT;
        answer(1000, &later);
        told += notice_of(buf_str(&later), &rest);
        output_delivered(&out, true);
        assert_int_equal(n + told, all.len);
        assert_string_equal(rest, "");
    }
}

/* Of all that was ever added, every byte is handed over once or told of once, whatever is added, asked for
 * with whatever cap, and lost on the way. */
static void every_byte_is_accounted_for(void **state)
{
    (void)state;
    static const size_t caps[] = {1, 7, 20, 30, 64, 100, 500, 1 << 20};
    for (int round = 0; round < 200; round++) {
        struct buf all BUF_AUTO = BUF_INIT;
        unsigned next = (unsigned)round;
        unsigned long long got = 0;
        for (int step = 0; step < 60; step++) {
            struct buf text BUF_AUTO = BUF_INIT;
            size_t from = all.len;
            put_text(&all, from + random_below(80), &next);
            output_add(&out, buf_str(&all) + from, all.len - from);
            answer(step < 59 ? caps[random_below(8)] : 1 << 20, &text);
            size_t then = all.len;
            if (random_below(2)) {
                put_text(&all, then + random_below(40), &next);
                output_add(&out, all.data + then, all.len - then);
            }
            bool delivered = random_below(3) > 0 || step == 59;
            output_delivered(&out, delivered);
            const char *rest;
            unsigned long long told = notice_of(buf_str(&text), &rest);
            size_t n = strlen(rest);
            assert_memory_equal(rest, buf_str(&all) + then - n, n);
            if (delivered)
                got += told + n;
        }
        assert_int_equal(got + out.text.len + out.omitted, all.len);
        output_release(&out);
    }
}

/* A stream that nobody reads, and one whose answer is on its way meanwhile. */
static void what_nobody_reads_does_not_grow(void **state)
{
    (void)state;
    struct buf chunk BUF_AUTO = BUF_INIT, text BUF_AUTO = BUF_INIT;
    const char *rest;
    for (unsigned i = 0; i < 20000; i++)
        utf8_put(&chunk, 0x4E00 + i % 1000); /* of three bytes, and SESSION_OUTPUT_MAX is no multiple */
    for (int lost = 0; lost < 2; lost++) {
        unsigned long long added = 0, got;
        while (added < 3 * (unsigned long long)SESSION_OUTPUT_MAX) {
            output_add(&out, chunk.data, chunk.len);
            added += chunk.len;
            assert_true(out.text.len < SESSION_OUTPUT_MAX / 4 * 5 + chunk.len);
            assert_true((unsigned char)out.text.data[0] < 0x80 || (unsigned char)out.text.data[0] >= 0xC0);
        }
        answer((size_t)SESSION_OUTPUT_MAX, &text);
        got = notice_of(text.data, &rest) + strlen(rest);
        assert_int_equal(got, added);
        for (unsigned long long more = 0; more < 2 * (unsigned long long)SESSION_OUTPUT_MAX;
             more += chunk.len) {
            output_add(&out, chunk.data, chunk.len);
            added += chunk.len;
        }
        output_delivered(&out, !lost);
        got = lost ? 0 : got;
        answer((size_t)SESSION_OUTPUT_MAX, &text);
        got += notice_of(text.data, &rest) + strlen(rest);
        output_delivered(&out, true);
        assert_int_equal(got, added);
        assert_int_equal(out.text.len, 0);
        assert_true(out.text.cap < 1024);
    }
}

static void a_prompt_that_nobody_read_is_dropped(void **state)
{
    (void)state;
    struct buf text BUF_AUTO = BUF_INIT;
    add("output\n");
    output_mark(&out);
    add("prompt$ ");
    answer(100, &text);
    output_drop_prompt(&out, NULL, 0); /* an answer that holds it is on its way */
    output_delivered(&out, false);
    assert_answer(100, "output\nprompt$ ", false);
    output_drop_prompt(&out, NULL, 0);
    assert_answer(100, "output\n", true);
    output_mark(&out);
    add("prompt$ ");
    assert_answer(100, "prompt$ ", true);
    add("later\n"); /* from the background: no prompt any more */
    output_drop_prompt(&out, "prompt$ ", 8);
    assert_answer(100, "later\n", true);
}

static void only_the_prompt_is_dropped(void **state)
{
    (void)state;
    static const struct {
        const char *known, *left;
    } cases[] = {{"prompt$ ", "later\n"}, {"other$ ", "prompt$ later\n"}, {"", "prompt$ later\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        output_mark(&out);
        add("prompt$ ");
        add("later\n"); /* from the background, before anybody read the prompt */
        output_drop_prompt(&out, cases[i].known, strlen(cases[i].known));
        assert_answer(100, cases[i].left, true);
    }
    output_mark(&out);
    output_forget_mark(&out); /* it went to a run */
    add("later");
    output_drop_prompt(&out, NULL, 0);
    assert_answer(100, "later", true);
}

/* ---- one run ---- */

static void assert_text(const struct capture *c, const char *want)
{
    struct buf text BUF_AUTO = BUF_INIT;
    capture_text(c, &text);
    assert_string_equal(buf_str(&text), want);
}

static void capture(struct capture *c, const char *s)
{
    capture_add(c, s, strlen(s));
}

static void a_run_has_its_own_output_without_the_prompt(void **state)
{
    (void)state;
    struct capture *c = capture_new(1000);
    assert_text(c, "");
    capture(c, "output\n");
    capture_mark(c);
    capture(c, "prompt$ ");
    assert_text(c, "output\n");
    capture_mark(c); /* what was taken for a prompt has one behind it */
    capture(c, "prompt> ");
    assert_text(c, "output\nprompt$ ");
    capture_commit(c);
    assert_text(c, "output\nprompt$ prompt> ");
    capture(c, "more");
    assert_text(c, "output\nprompt$ prompt> more");
    capture_mark(c);
    capture_commit(c);
    assert_text(c, "output\nprompt$ prompt> more");
    assert_int_equal(capture_omitted(c), 0);
    capture_free(c);
    capture_free(NULL);
}

/* No prompt is that long. */
static void much_behind_a_mark_is_output(void **state)
{
    (void)state;
    struct buf chunk BUF_AUTO = BUF_INIT, text BUF_AUTO = BUF_INIT;
    unsigned next = 0;
    struct capture *c = capture_new(1 << 20);
    put_text(&chunk, 1000, &next);
    capture_mark(c);
    for (int i = 0; i < 100; i++)
        capture_add(c, chunk.data, chunk.len);
    capture_text(c, &text);
    assert_int_equal(text.len, 100 * chunk.len);
    capture_free(c);
}

static void what_ends_the_output_is_stripped(void **state)
{
    (void)state;
    for (size_t max = 10; max <= 1000; max += 990) {
        struct capture *c = capture_new(max);
        capture(c, "abcdefg$ ");
        capture_strip(c, "$", 1);
        capture_strip(c, "abcdefg$ and more", 17);
        capture_strip(c, "", 0);
        assert_text(c, "abcdefg$ ");
        capture_strip(c, "$ ", 2);
        assert_text(c, "abcdefg");
        capture_free(c);
    }
}

/* Head and tail, and the number of what is between them, in no more than max bytes; in pieces of any size. */
static void the_middle_of_much_output_is_left_out(void **state)
{
    (void)state;
    static const size_t maxima[] = {1, 2, 3, 10, 100, 1001, 5000};
    for (int round = 0; round < 70; round++) {
        size_t max = maxima[round % 7], total = 0;
        struct buf all BUF_AUTO = BUF_INIT, text BUF_AUTO = BUF_INIT;
        struct capture *c = capture_new(max);
        unsigned next = (unsigned)round;
        while (total < (round < 7 ? max / 2 : 30000)) {
            put_text(&all, total + 1 + random_below(700), &next);
            capture_add(c, all.data + total, all.len - total);
            total = all.len;
        }
        capture_text(c, &text);
        assert_true(utf8_is_valid(buf_str(&text), text.len));
        unsigned long long omitted = capture_omitted(c);
        capture_free(c);
        if (omitted == 0) {
            assert_int_equal(text.len, total);
            assert_memory_equal(buf_str(&text), buf_str(&all), total);
            continue;
        }
        assert_true(text.len <= max && text.len + 48 > max);
        char *at = strstr(text.data, "\n[");
        if (max - max / 2 < 80) { /* no room for a line that tells */
            assert_null(at);
            continue;
        }
        assert_non_null(at);
        const char *rest;
        assert_int_equal(notice_of(at + 1, &rest), omitted);
        size_t head = (size_t)(at - text.data), tail = strlen(rest);
        assert_int_equal(head + tail + omitted, total);
        assert_memory_equal(text.data, all.data, head);
        assert_memory_equal(rest, all.data + total - tail, tail);
    }
}

/* Of a run that is asked for again and again. */
static void what_was_not_given_comes_with_the_rest(void **state)
{
    (void)state;
    struct capture *c = capture_new(1000);
    capture(c, "one\n");
    capture_mark(c);
    capture(c, "two");
    assert_text(c, "one\n");
    capture_drop_text(c);
    assert_text(c, "");
    capture(c, " lines\n"); /* behind the mark still */
    assert_text(c, "");
    capture_commit(c);
    assert_text(c, "two lines\n");
    capture_put_front(c, "one\n", 4, 7);
    assert_text(c, "one\ntwo lines\n");
    assert_int_equal(capture_omitted(c), 7); /* what it says itself */
    capture_drop_text(c);
    assert_int_equal(capture_omitted(c), 0);
    capture_free(c);
}

/* Head and tail are what they would be had it been asked for so from the start, and every byte is counted. */
static void another_cap_takes_other_text(void **state)
{
    (void)state;
    static const size_t maxima[] = {3000, 200, 5000, 300};
    struct buf all BUF_AUTO = BUF_INIT;
    unsigned next = 0;
    put_text(&all, 40000, &next);
    struct capture *c = capture_new(5000);
    capture_add(c, all.data, all.len);
    for (size_t i = 0; i < 4; i++) {
        struct buf text BUF_AUTO = BUF_INIT;
        const char *rest;
        capture_resize(c, maxima[i]);
        capture_text(c, &text);
        char *at = strstr(text.data, "\n[");
        assert_true(text.len <= maxima[i] && at);
        assert_int_equal(notice_of(at + 1, &rest), capture_omitted(c));
        size_t head = (size_t)(at - text.data), tail = strlen(rest);
        assert_int_equal(head + tail + capture_omitted(c), all.len);
        assert_memory_equal(text.data, all.data, head);
        assert_memory_equal(rest, all.data + all.len - tail, tail);
    }
    capture_free(c);
}

static void a_flood_takes_little_memory(void **state)
{
    (void)state;
    struct buf chunk BUF_AUTO = BUF_INIT;
    unsigned next = 0;
    struct capture *c = capture_new(100000);
    put_text(&chunk, 65536, &next);
    for (int i = 0; i < 1000; i++) {
        capture_add(c, chunk.data, chunk.len);
        assert_true(c->head.cap + c->tail.cap + c->after.cap < 1 << 20);
    }
    assert_in_range(capture_omitted(c), 1000 * chunk.len - 100000, 1000 * chunk.len - 100000 + 48);
    capture_free(c);
}

#define stream_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        stream_test(what_arrived_is_not_told_again),
        stream_test(what_did_not_arrive_is_told_again),
        stream_test(the_newest_are_kept_and_the_others_counted),
        stream_test(every_cap_holds),
        stream_test(every_byte_is_accounted_for),
        stream_test(what_nobody_reads_does_not_grow),
        stream_test(a_prompt_that_nobody_read_is_dropped),
        stream_test(only_the_prompt_is_dropped),
        cmocka_unit_test(a_run_has_its_own_output_without_the_prompt),
        cmocka_unit_test(much_behind_a_mark_is_output),
        cmocka_unit_test(what_ends_the_output_is_stripped),
        cmocka_unit_test(the_middle_of_much_output_is_left_out),
        cmocka_unit_test(what_was_not_given_comes_with_the_rest),
        cmocka_unit_test(another_cap_takes_other_text),
        cmocka_unit_test(a_flood_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
