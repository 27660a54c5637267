#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mem.h"
#include "tools/web_browser/page_number.h"
#include "tools/web_browser/page_snapshot.h"
#include "tools/web_browser/page_text.h"
#include "tools/web_browser/page_tree.h"

static struct span span_str(const char *s)
{
    return (struct span){s, strlen(s)};
}

static const struct page_view view = {1280, 1080};
static const struct page_target page_and_frame[] = {{-1, NULL, 0}, {0, "FRAME", 1}};

/* ---- numbers and text ---- */

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        long long value;
    } cases[] = {{"0", 0},
                 {"12", 12},
                 {"-12", -12},
                 {"7.96875", 7},
                 {"-0.5", 0},
                 {"\"34\"", 34},
                 {"\"-1000000003\"", -1000000003},
                 {"1e3", 1000},
                 {"1.5e1", 15},
                 {"3.35544e+07", 33554400},
                 {"123e-1", 12},
                 {"1e999", 1 << 28},
                 {"null", 0},
                 {"99999999999999999999", 1 << 28},
                 {"\"\"", 0},
                 {"", 0},
                 {"-", 0},
                 {"1e-999", 0},
                 {"0.001e3", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        long long max = cases[i].value < -(1 << 28) ? 1LL << 52 : 1 << 28;
        assert_int_equal(page_number(span_str(cases[i].text), max), cases[i].value);
    }
}

static void assert_line(const char *s, size_t max, const char *expected)
{
    struct buf out BUF_AUTO = BUF_INIT;
    page_text_line(&out, s, strlen(s), max);
    assert_string_equal(buf_str(&out), expected);
}

static void test_text_stays_a_line(void **state)
{
    (void)state;
    assert_line("a\nb\tc", 100, "a\\nb\\tc");
    assert_line("a\r\v\f\x1b\x7f z", 100, "a      z");
    assert_line("a\xC2\x85"
                "b\xC2\x9F"
                "c\xE2\x80\xA8"
                "d\xE2\x80\xA9"
                "e",
                100, "a b c d e");
    assert_line("\xC2\xA0\xE2\x80\xA7\xE2\x80\xAF", 100, "\xC2\xA0\xE2\x80\xA7\xE2\x80\xAF");
    assert_line("äöü", 3, "ä... (2 more characters)");
    assert_line("abcdef", 6, "abcdef");
    assert_line("abcdefg", 6, "abcdef... (1 more characters)");
}

static void test_addresses(void **state)
{
    struct buf out BUF_AUTO = BUF_INIT;
    (void)state;
    page_text_url(&out, "data:image/png;base64,AAAA", 26);
    assert_string_equal(buf_str(&out), "data:<base64-data-removed>");
    buf_truncate(&out, 0);
    page_text_url(&out, "data:text/plain,base64", 22);
    assert_string_equal(buf_str(&out), "data:text/plain,base64");
    buf_truncate(&out, 0);
    page_text_url(&out, "https://a/?q=data:;base64,", 26);
    assert_string_equal(buf_str(&out), "https://a/?q=data:;base64,");
}

static void test_rectangles(void **state)
{
    struct page_rect a = {0, 0, 10, 10}, b = {10, 0, 5, 5}, c = {9, 9, 5, 5}, none = {3, 3, 0, 4};
    (void)state;
    assert_false(page_rect_overlap(&a, &b));
    assert_true(page_rect_overlap(&a, &c));
    assert_false(page_rect_overlap(&a, &none));
    struct page_rect common = page_rect_common(&a, &c);
    assert_int_equal(common.left, 9);
    assert_int_equal(common.width, 1);
}

/* ---- what a real browser answered ---- */

struct recording {
    char *text;
    struct span rest;
    char calls[4096]; /* METHOD@TARGET of each */
};

static void open_recording(struct recording *r, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "test/fuzz/corpus/page/%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    r->text = mem_alloc(1 << 16);
    size_t n = fread(r->text, 1, 1 << 16, file);
    fclose(file);
    r->rest = (struct span){strchr(r->text, '\n') + 1, 0};
    r->rest.n = n - (size_t)(r->rest.s - r->text);
    r->calls[0] = '\0';
}

static struct span next_answer(struct recording *r)
{
    const char *end = memchr(r->rest.s, '\n', r->rest.n);
    assert_non_null(end);
    struct span line = {r->rest.s, (size_t)(end - r->rest.s)};
    r->rest = (struct span){end + 1, r->rest.n - line.n - 1};
    assert_int_equal(json_check(line, NULL), 0);
    return line;
}

static void replay(struct recording *r, size_t targets, struct page_tree *tree)
{
    struct page_reader *reader = page_reader_new(&view, page_and_frame, targets);
    struct page_call call;
    struct err err;
    while (!page_reader_done(reader)) {
        assert_true(page_reader_next(reader, &call));
        size_t n = strlen(r->calls);
        snprintf(r->calls + n, sizeof r->calls - n, "%s@%zu ", strchr(call.method, '.') + 1, call.target);
        page_reader_answer(reader, call.tag, next_answer(r));
    }
    assert_int_equal(r->rest.n, 0);
    assert_false(page_reader_next(reader, &call));
    assert_int_equal(page_reader_finish(reader, tree, &err), 0);
    page_reader_free(reader);
    free(r->text);
}

static void test_parts(void **state)
{
    struct page_tree tree = PAGE_TREE_INIT;
    struct recording r;
    (void)state;
    open_recording(&r, "parts");
    replay(&r, 1, &tree);
    assert_string_equal(
        buf_str(&tree.at),
        "[4] RootWebArea \"Parts\" [focused: True, url: http://127.0.0.1:8766/parts.html]\n"
        "  [15] main\n"
        "    [16] heading \"The tide\"\n"
        "      [17] link \"The tide\" [url: http://127.0.0.1:8766/tide?x=1]\n"
        "    [20] StaticText \"It \"\n"
        "    [22] StaticText \"rises\"\n"
        "    [23] StaticText \", and \"\n"
        "    [24] link \"falls\" [url: http://127.0.0.1:8766/moon]\n"
        "    [26] StaticText \".\"\n"
        "    [27] image \"dot\" data:<base64-data-removed>\n"
        "    [29] StaticText \"a\\nb\"\n"
        "  [30] combobox \"Old\" Current input: \"in \\\"here\\\"\" [hasPopup: listbox, required: False]\n"
        "    [2] textbox Current input: \"in \\\"here\\\"\" [editable: plaintext, required: False]\n"
        "  [3] spinbutton \"n\" Current input: \"7\" [editable: plaintext, required: False, valuemin: 0, "
        "valuemax: 0, valuetext: 7]\n"
        "  [32] checkbox \"c\" [checked: false]\n"
        "  [33] generic [clickable: True, editable: richtext]\n"
        "  [35] button \"x [1] link \\\"forged\"\n"
        "  [37] link \"Card\" [url: http://127.0.0.1:8766/card]\n"
        "    [39] button \"Buy\"\n"
        "  [43] StaticText \"Owner\"\n"
        "  [45] StaticText \"Owned\"\n");
    assert_true(tree.has_main);
    assert_string_equal(buf_str(&tree.main), "The tide\n\nIt rises, and falls.\n\ndot\na\nb");
    const struct page_node *node = page_tree_find(&tree, 39);
    assert_non_null(node);
    assert_int_equal(node->backend, 39);
    assert_int_equal(node->number, 0);
    assert_true(page_tree_is(&tree, node, "button"));
    assert_false(page_tree_is(&tree, node, "butto"));
    assert_null(page_tree_find(&tree, 38));
    assert_ptr_equal(page_tree_find_named(&tree, "BUY"), node);
    assert_int_equal(page_tree_find_named(&tree, "the t")->id, 16);
    assert_null(page_tree_find_named(&tree, "Accept all"));
    page_tree_release(&tree);
}

static void test_frames(void **state)
{
    struct page_tree tree = PAGE_TREE_INIT;
    struct recording r;
    (void)state;
    open_recording(&r, "frames");
    replay(&r, 2, &tree);
    assert_non_null(strstr(r.calls, "getFrameOwner@0"));
    assert_non_null(strstr(r.calls, "captureSnapshot@1"));
    assert_string_equal(buf_str(&tree.at),
                        "[2] RootWebArea \"Frames\" [focused: True, url: http://127.0.0.1:8766/frames.html]\n"
                        "  [13] StaticText \"Outer\"\n"
                        "  [14] Iframe \"Near\"\n"
                        "    [4] RootWebArea [url: about:srcdoc]\n"
                        "      [21] StaticText \"Near text\"\n"
                        "  [15] Iframe \"Far\"\n"
                        "    [10000001] RootWebArea \"In\" [url: http://localhost:8766/in.html]\n"
                        "      [10000008] button \"Far button\"\n");
    assert_false(tree.has_main);
    assert_int_equal(page_tree_find(&tree, 10000008)->number, 1);
    assert_int_equal(page_tree_find(&tree, 10000008)->backend, 8);
    page_tree_release(&tree);
}

static void test_open_list(void **state)
{
    struct page_tree tree = PAGE_TREE_INIT;
    struct recording r;
    (void)state;
    open_recording(&r, "list");
    replay(&r, 1, &tree);
    assert_non_null(strstr(buf_str(&tree.at),
                           "expanded: True]\n    [*] option \"January\" [selected: False]\n"
                           "    [*] option \"February\" [selected: True]\n"));
    page_tree_release(&tree);
}

/* ---- a browser made up for the test ---- */

#define MODEL_MAX 12000

/* Element i (from 1) is backend id i + 1 and accessibility node the same; element 0 is the document. */
struct model {
    size_t n;
    size_t parents[MODEL_MAX];
    const char *roles[MODEL_MAX]; /* with what is to follow in the node */
    int top[MODEL_MAX];
    bool lines; /* all of it flows on the lines of one block */
    int scroll_y;
    bool chain;  /* nothing has more than one child */
    size_t lost; /* every nth answer is lost; 0: none */
    size_t calls, trees, most_open;
};

static void put_list(struct buf *out, const struct model *m, const char *name,
                     void (*put)(struct buf *, const struct model *, size_t))
{
    json_key(out, name);
    buf_addc(out, '[');
    for (size_t i = 0; i < m->n; i++) {
        if (i > 0)
            buf_addc(out, ',');
        put(out, m, i);
    }
    buf_addc(out, ']');
}

static void put_backend(struct buf *out, const struct model *m, size_t i)
{
    (void)m;
    buf_addf(out, "%zu", i + 1);
}

static void put_parent(struct buf *out, const struct model *m, size_t i)
{
    buf_addf(out, "%d", i == 0 ? -1 : (int)m->parents[i]);
}

static void put_index(struct buf *out, const struct model *m, size_t i)
{
    (void)m;
    buf_addf(out, "%zu", i);
}

static void put_bounds(struct buf *out, const struct model *m, size_t i)
{
    buf_addf(out, "[0,%d.5,100,20]", m->top[i]);
}

static void put_style(struct buf *out, const struct model *m, size_t i)
{
    buf_adds(out, m->lines && i > 1 ? "[1]" : "[0]");
}

static void put_snapshot(struct buf *out, const struct model *m)
{
    buf_addf(out,
             "{\"strings\":[\"block\",\"inline\",\"F\"],\"documents\":[{\"scrollOffsetX\":0,"
             "\"scrollOffsetY\":%d.25,\"frameId\":2,\"nodes\":{",
             m->scroll_y);
    put_list(out, m, "backendNodeId", put_backend);
    put_list(out, m, "parentIndex", put_parent);
    buf_adds(out, "},\"layout\":{");
    put_list(out, m, "nodeIndex", put_index);
    put_list(out, m, "bounds", put_bounds);
    put_list(out, m, "styles", put_style);
    buf_adds(out, "}}]}");
}

static void put_node(struct buf *out, const struct model *m, size_t i)
{
    buf_addf(out, "{\"nodeId\":\"%zu\",\"ignored\":false,\"role\":{\"value\":\"%s\"},", i + 1,
             i == 0 ? "RootWebArea" : m->roles[i]);
    buf_addf(out, "\"name\":{\"value\":\"n%zu\"},\"childIds\":[", i);
    bool first = true;
    for (size_t c = i + 1; c < m->n && (first || !m->chain); c++)
        if (m->parents[c] == i) {
            buf_addf(out, first ? "\"%zu\"" : ",\"%zu\"", c + 1);
            first = false;
        }
    buf_addc(out, ']');
    if (i > 0)
        buf_addf(out, ",\"parentId\":\"%zu\"", m->parents[i] + 1);
    buf_addf(out, ",\"backendDOMNodeId\":%zu}", i + 1);
}

static void put_answer(struct buf *out, struct model *m, const struct page_call *call)
{
    if (strcmp(call->method, PAGE_SNAPSHOT_CALL) == 0) {
        put_snapshot(out, m);
        return;
    }
    buf_adds(out, "{\"nodes\":[");
    if (strstr(call->method, "getFullAXTree")) {
        m->trees++;
        for (size_t i = 0; i < m->n; i++) {
            if (i > 0)
                buf_addc(out, ',');
            put_node(out, m, i);
        }
    } else if (strstr(call->method, "getPartialAXTree")) {
        struct span id;
        assert_true(json_member(call->params, "backendNodeId", &id, NULL));
        put_node(out, m, (size_t)page_number(id, MODEL_MAX) - 1);
    }
    buf_adds(out, "]}");
}

/* Answers everything that can be asked, all that is open at a time. */
static int read_model(struct model *m, struct page_tree *tree)
{
    struct page_reader *reader = page_reader_new(&view, page_and_frame, 1);
    struct page_call call;
    struct {
        unsigned tag;
        struct buf answer;
    } *open = mem_alloc(1024 * sizeof *open);
    while (!page_reader_done(reader)) {
        size_t n = 0;
        while (n < 1024 && page_reader_next(reader, &call)) {
            buf_init(&open[n].answer, BUF_NO_MAX);
            open[n].tag = call.tag;
            put_answer(&open[n++].answer, m, &call);
        }
        assert_true(n > 0);
        m->most_open = n > m->most_open ? n : m->most_open;
        while (n-- > 0) {
            bool lost = m->lost && ++m->calls % m->lost == 0;
            page_reader_answer(reader, open[n].tag, lost ? (struct span){NULL, 0} : span_of(&open[n].answer));
            buf_release(&open[n].answer);
        }
    }
    free(open);
    struct err err;
    int status = page_reader_finish(reader, tree, &err);
    page_reader_free(reader);
    return status;
}

static size_t count_lines(const struct page_tree *tree)
{
    size_t n = 0;
    for (size_t i = 0; i < tree->at.len; i++)
        n += tree->at.data[i] == '\n';
    return n;
}

static struct model *new_model(size_t n)
{
    struct model *m = mem_zalloc(sizeof *m);
    m->n = n;
    for (size_t i = 0; i < n; i++)
        m->roles[i] = "group";
    return m;
}

/* Ten thousand levels, all in view: as many lines, and no more text than they need. */
static void test_deep(void **state)
{
    struct model *m = new_model(10000);
    struct page_tree tree = PAGE_TREE_INIT;
    (void)state;
    m->chain = true;
    for (size_t i = 1; i < m->n; i++)
        m->parents[i] = i - 1;
    assert_int_equal(read_model(m, &tree), 0);
    assert_int_equal(count_lines(&tree), m->n);
    assert_true(tree.at.len < m->n * 200);
    assert_int_equal(tree.n, m->n);
    assert_non_null(page_tree_find(&tree, 10000));
    page_tree_release(&tree);
    free(m);
}

/* A long page: only what is in view is asked for, and no more than 256 calls are open. */
static void test_long(void **state)
{
    struct model *m = new_model(5000);
    struct page_tree tree = PAGE_TREE_INIT;
    (void)state;
    for (size_t i = 1; i < m->n; i++)
        m->top[i] = (int)i * 3;
    m->top[0] = 0;
    m->lost = 1000000;
    assert_int_equal(read_model(m, &tree), 0);
    assert_int_equal(m->trees, 0);
    assert_int_equal(count_lines(&tree), 1080 / 3);
    assert_int_equal(m->most_open, 256);
    assert_true(m->calls < 400);
    page_tree_release(&tree);
    free(m);
}

/* Scrolled down, the page is still the first line. */
static void test_scrolled(void **state)
{
    struct model *m = new_model(1000);
    struct page_tree tree = PAGE_TREE_INIT;
    (void)state;
    for (size_t i = 1; i < m->n; i++)
        m->top[i] = (int)i * 30;
    m->scroll_y = 15000;
    assert_int_equal(read_model(m, &tree), 0);
    assert_int_equal(strncmp(buf_str(&tree.at), "[1] RootWebArea \"n0\"\n  [501] ", 29), 0);
    assert_int_equal(count_lines(&tree), 1 + 1080 / 30);
    page_tree_release(&tree);
    free(m);
}

/* All of it on the lines of one block: the whole tree, with the same lines. */
static void test_one_flow(void **state)
{
    struct model *m = new_model(3000);
    struct page_tree single = PAGE_TREE_INIT, whole = PAGE_TREE_INIT;
    (void)state;
    for (size_t i = 2; i < m->n; i++) {
        m->parents[i] = 1;
        m->top[i] = (int)i;
    }
    assert_int_equal(read_model(m, &single), 0);
    assert_int_equal(m->trees, 0);
    m->lines = true;
    assert_int_equal(read_model(m, &whole), 0);
    assert_int_equal(m->trees, 1);
    assert_string_equal(buf_str(&single.at), buf_str(&whole.at));
    assert_int_equal(single.n, whole.n);
    page_tree_release(&single);
    page_tree_release(&whole);
    free(m);
}

/* Answers that never come leave nodes out, and nothing else. */
static void test_lost_answers(void **state)
{
    struct page_tree tree = PAGE_TREE_INIT;
    (void)state;
    for (size_t lost = 1; lost < 20; lost++) {
        struct model *m = new_model(100);
        m->lost = lost;
        for (size_t i = 1; i < m->n; i++) {
            m->parents[i] = (i - 1) / 2;
            m->top[i] = (int)i * 50; /* 21 of 100 are in view */
        }
        if (read_model(m, &tree) == 0)
            assert_in_range(count_lines(&tree), 1, 40);
        free(m);
    }
    page_tree_release(&tree);
}

/* What says that it is its own child, or another's as well, is drawn once. */
static void test_circles(void **state)
{
    static const char *const answers[] = {
        "{}",
        "{\"strings\":[],\"documents\":[{\"nodes\":{\"backendNodeId\":[1,2,3],\"parentIndex\":[-1,0,1]},"
        "\"layout\":{\"nodeIndex\":[0,1,2],\"bounds\":[[0,0,9,9],[0,0,9,9],[0,0,9,9]],\"styles\":[]}}]}",
        "{\"nodes\":[{\"nodeId\":\"1\",\"role\":{\"value\":\"RootWebArea\"},\"childIds\":[\"2\",\"2\",\"1\","
        "\"3\"],"
        "\"backendDOMNodeId\":1},{\"nodeId\":\"2\",\"role\":{\"value\":\"button\"},\"parentId\":\"1\","
        "\"childIds\":[\"1\",\"2\",\"3\"],\"backendDOMNodeId\":2},{\"nodeId\":\"3\",\"role\":{\"value\":"
        "\"link\"},"
        "\"parentId\":\"2\",\"childIds\":[\"3\",\"2\"],\"backendDOMNodeId\":3},{\"nodeId\":\"3\",\"role\":{"
        "\"value\":"
        "\"main\"},\"parentId\":\"2\",\"childIds\":[],\"backendDOMNodeId\":3}]}"};
    struct page_reader *reader = page_reader_new(&view, page_and_frame, 1);
    struct page_tree tree = PAGE_TREE_INIT;
    struct page_call call;
    (void)state;
    for (size_t i = 0; !page_reader_done(reader); i++) {
        assert_true(page_reader_next(reader, &call));
        page_reader_answer(reader, call.tag, span_str(answers[i < 3 ? i : 0]));
        page_reader_answer(reader, 77, span_str("{}"));
    }
    assert_int_equal(page_reader_finish(reader, &tree, NULL), 0);
    assert_int_equal(count_lines(&tree), 3);
    page_tree_release(&tree);
    page_reader_free(reader);
}

static void test_no_page(void **state)
{
    struct page_reader *reader = page_reader_new(&view, page_and_frame, 2);
    struct page_tree tree = PAGE_TREE_INIT;
    struct page_call call;
    struct err err;
    (void)state;
    assert_int_equal(page_reader_finish(reader, &tree, &err), -1);
    while (page_reader_next(reader, &call))
        page_reader_answer(reader, call.tag, (struct span){NULL, 0});
    assert_true(page_reader_done(reader));
    assert_int_equal(page_reader_finish(reader, &tree, &err), -1);
    assert_int_equal(err.code, ERR_TOOL);
    page_reader_free(reader);
    page_reader_free(page_reader_new(&view, page_and_frame, 2)); /* with everything still to be asked */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),   cmocka_unit_test(test_text_stays_a_line),
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_rectangles),
        cmocka_unit_test(test_parts),     cmocka_unit_test(test_frames),
        cmocka_unit_test(test_open_list), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_long),      cmocka_unit_test(test_scrolled),
        cmocka_unit_test(test_one_flow),  cmocka_unit_test(test_lost_answers),
        cmocka_unit_test(test_circles),   cmocka_unit_test(test_no_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
