/* Byte streams side by side, byte by byte with a scripted peer; two ends with each other; and with a relay
 * between. */
#include "support.h"

#include "mem.h"
#include "mux.h"
#include "mux_relay.h"

/* One end, and what its owner was told, a word each. */
struct side {
    struct mux *mux;
    struct buf out, heard;
    bool reads; /* what comes is consumed at once */
    struct mux_stream *last;
};

static void on_opened(void *arg, struct mux_stream *s, struct span params)
{
    struct side *side = arg;
    side->last = s;
    buf_addf(&side->heard, "open %u %.*s;", s->id, (int)params.n, params.s);
}

static void on_received(void *arg, struct mux_stream *s, struct span data)
{
    struct side *side = arg;
    if (data.n < 20)
        buf_addf(&side->heard, "%u:%.*s;", s->id, (int)data.n, data.s);
    if (side->reads)
        mux_consumed(s, data.n);
}

static void on_ended(void *arg, struct mux_stream *s)
{
    buf_addf(&((struct side *)arg)->heard, "end %u;", s->id);
}

static void on_room(void *arg, struct mux_stream *s)
{
    buf_addf(&((struct side *)arg)->heard, "room %u;", s->id);
}

static void on_closed(void *arg, struct mux_stream *s, struct span why)
{
    buf_addf(&((struct side *)arg)->heard, "closed %u %.*s;", s->id, why.s ? (int)why.n : 2,
             why.s ? why.s : "ok");
}

static void side_begin(struct side *s, bool takes)
{
    struct mux_owner owner = {takes ? on_opened : NULL, on_received, on_ended, on_room, on_closed, s};
    *s = (struct side){.out = BUF_INIT, .heard = BUF_INIT, .reads = true};
    s->mux = mux_new(&owner, &s->out);
}

static void side_end(struct side *s)
{
    mux_free(s->mux);
    buf_release(&s->out);
    buf_release(&s->heard);
}

static void assert_heard(struct side *s, const char *text)
{
    assert_string_equal(buf_str(&s->heard), text);
    buf_truncate(&s->heard, 0);
}

/* What one has said goes to the other, whole frames one after the other. */
static void pass(struct buf *from, struct side *to)
{
    struct mux_frame f;
    long n;
    size_t at = 0;
    while ((n = mux_frame_read(from->data + at, from->len - at, &f)) > 0) {
        mux_take(to->mux, &f);
        at += (size_t)n;
    }
    assert_true(n == 0 && at == from->len);
    buf_truncate(from, 0);
}

static void take(struct side *s, enum mux_kind kind, uint32_t stream, const char *data, size_t n)
{
    mux_take(s->mux, &(struct mux_frame){kind, stream, {data, n}});
}

static void test_bytes_of_frames(void **state)
{
    static const char open[] = "\2o\0\0\0\1\0\0\0\2{}", data[] = "\2d\1\2\3\4\0\0\0\3a\0b";
    struct buf out BUF_AUTO = BUF_INIT;
    struct mux_frame f;
    (void)state;
    mux_frame_put(&out, MUX_OPEN, 1, "{}", 2);
    assert_memory_equal(out.data, open, sizeof open - 1);
    buf_truncate(&out, 0);
    mux_frame_put(&out, MUX_DATA, 0x01020304, "a\0b", 3);
    assert_int_equal(out.len, sizeof data - 1);
    assert_memory_equal(out.data, data, sizeof data - 1);
    for (size_t n = 0; n < out.len; n++)
        assert_int_equal(mux_frame_read(out.data, n, &f), 0);
    assert_int_equal(mux_frame_read(out.data, out.len, &f), 13);
    assert_true(f.kind == MUX_DATA && f.stream == 0x01020304 && f.data.n == 3 &&
                !memcmp(f.data.s, "a\0b", 3));
}

static void test_what_is_no_frame(void **state)
{
    struct mux_frame f;
    (void)state;
    assert_int_equal(mux_frame_read("{", 1, &f), -1);
    assert_int_equal(mux_frame_read("\2q", 2, &f), -1);
    assert_int_equal(mux_frame_read("\2d\0\0\0\1\0\1\0\1", 10, &f), -1); /* 65,537 bytes */
    assert_int_equal(mux_frame_read("\2d\0\0\0\1\0\1\0\0", 10, &f), 0);
    assert_int_equal(mux_frame_read("\2w\0\0\0\1\0\0\0\3abc", 13, &f), -1);
}

static void test_there_and_back(void **state)
{
    struct side here, there;
    (void)state;
    side_begin(&here, false);
    side_begin(&there, true);
    struct mux_stream *s = mux_open(here.mux, (struct span){"{\"a\":1}", 7}, NULL);
    mux_send(s, "hello", 5);
    mux_end(s);
    pass(&here.out, &there);
    assert_heard(&there, "open 1 {\"a\":1};1:hello;end 1;");
    mux_send(there.last, "world", 5);
    mux_end(there.last); /* both have: it is over there */
    assert_heard(&there, "closed 1 ok;");
    assert_int_equal(mux_count(there.mux), 0);
    pass(&there.out, &here);
    assert_heard(&here, "1:world;end 1;closed 1 ok;");
    assert_int_equal(mux_count(here.mux), 0);
    side_end(&here);
    side_end(&there);
}

static void test_a_window_holds_who_sends_and_grows_with_who_reads(void **state)
{
    static char data[MUX_WINDOW_MAX];
    struct side here, there;
    (void)state;
    side_begin(&here, false);
    side_begin(&there, true);
    struct mux_stream *s = mux_open(here.mux, (struct span){"{}", 2}, NULL);
    assert_int_equal(s->room, MUX_WINDOW_MIN);
    there.reads = false;
    mux_send(s, data, s->room);
    pass(&here.out, &there);
    assert_int_equal(s->room, 0);
    assert_int_equal(there.out.len, 0); /* nothing is granted for what nobody has read */
    mux_consumed(there.last, MUX_WINDOW_MIN);
    pass(&there.out, &here);
    assert_heard(&here, "room 1;");
    assert_int_equal(s->room, 2 * MUX_WINDOW_MIN);
    there.reads = true;
    for (int i = 0; i < 100; i++) {
        mux_send(s, data, s->room);
        pass(&here.out, &there);
        pass(&there.out, &here);
        assert_true(s->room > 0 && s->room <= MUX_WINDOW_MAX);
    }
    assert_int_equal(s->room, MUX_WINDOW_MAX);
    side_end(&here);
    side_end(&there);
}

static void test_who_breaks_the_rules_is_reset_alone(void **state)
{
    static char data[MUX_DATA_MAX];
    struct side side;
    (void)state;
    side_begin(&side, true);
    side.reads = false;
    take(&side, MUX_OPEN, 7, "{}", 2);
    take(&side, MUX_OPEN, 8, "{}", 2);
    take(&side, MUX_DATA, 7, data, MUX_WINDOW_MIN);
    take(&side, MUX_DATA, 7, "x", 1);
    assert_heard(&side, "open 7 {};open 8 {};closed 7 more bytes came than the window has room for;");
    assert_memory_equal(side.out.data, "\2r\0\0\0\7", 6);
    take(&side, MUX_DATA, 7, "late", 4); /* has crossed with the reset */
    take(&side, MUX_END, 8, NULL, 0);
    take(&side, MUX_END, 8, NULL, 0);
    take(&side, MUX_DATA, 8, "x", 1);
    assert_heard(&side, "end 8;closed 8 bytes came behind the end;");
    take(&side, MUX_OPEN, 9, "{}", 2);
    take(&side, MUX_OPEN, 9, "{}", 2);
    assert_heard(&side, "open 9 {};closed 9 it was opened twice;");
    take(&side, MUX_OPEN, 10, "{}", 2);
    take(&side, MUX_WINDOW, 10, "\377\377\377\377", 4);
    assert_heard(&side, "open 10 {};closed 10 the window is larger than any may be;");
    take(&side, MUX_OPEN, 11, "{}", 2);
    take(&side, MUX_RESET, 11, "enough", 6);
    assert_heard(&side, "open 11 {};closed 11 enough;");
    assert_int_equal(mux_count(side.mux), 0);
    side_end(&side);
}

static void test_who_takes_none_opens_none_and_there_is_a_limit(void **state)
{
    struct side asks, takes;
    (void)state;
    side_begin(&asks, false);
    side_begin(&takes, true);
    take(&asks, MUX_OPEN, 1, "{}", 2);
    assert_int_equal(mux_count(asks.mux), 0);
    assert_memory_equal(asks.out.data, "\2r\0\0\0\1", 6);
    for (uint32_t i = 1; i <= MUX_STREAMS_MAX + 1; i++)
        take(&takes, MUX_OPEN, i, "{}", 2);
    assert_int_equal(mux_count(takes.mux), MUX_STREAMS_MAX);
    assert_memory_equal(takes.out.data, "\2r\0\0\4\1", 6);
    side_end(&asks);
    side_end(&takes);
}

/* ---- the relay ---- */

static struct buf *near(void *client)
{
    return client;
}

static void from_client(struct mux_relay *r, struct buf *client, enum mux_kind kind, uint32_t stream,
                        const char *data)
{
    mux_relay_from_client(r, client, &(struct mux_frame){kind, stream, {data, strlen(data)}});
}

static void test_streams_of_two_clients_with_one_number(void **state)
{
    struct buf far BUF_AUTO = BUF_INIT, a BUF_AUTO = BUF_INIT, b BUF_AUTO = BUF_INIT;
    struct side there;
    (void)state;
    struct mux_relay *r = mux_relay_new(&far, near);
    side_begin(&there, true);
    from_client(r, &a, MUX_OPEN, 5, "{}");
    from_client(r, &b, MUX_OPEN, 5, "[]");
    from_client(r, &a, MUX_DATA, 5, "of a");
    from_client(r, &b, MUX_DATA, 5, "of b");
    from_client(r, &b, MUX_DATA, 6, "of nobody");
    pass(&far, &there);
    assert_heard(&there, "open 1 {};open 2 [];1:of a;2:of b;");
    mux_send(there.last, "to b", 4);
    struct mux_frame f;
    assert_true(mux_frame_read(there.out.data, there.out.len, &f) > 0);
    mux_relay_from_far(r, &f);
    assert_int_equal(a.len, 0);
    assert_memory_equal(b.data, "\2d\0\0\0\5\0\0\0\4to b", 14);
    mux_relay_forget(r, &b);
    pass(&far, &there);
    assert_heard(&there, "closed 2 its client has gone;");
    assert_true(mux_relay_is_used(r));
    from_client(r, &a, MUX_END, 5, "");
    mux_relay_from_far(r, &(struct mux_frame){MUX_END, 1, {"", 0}});
    assert_false(mux_relay_is_used(r));
    mux_relay_free(r);
    side_end(&there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_of_frames),
        cmocka_unit_test(test_what_is_no_frame),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_window_holds_who_sends_and_grows_with_who_reads),
        cmocka_unit_test(test_who_breaks_the_rules_is_reset_alone),
        cmocka_unit_test(test_who_takes_none_opens_none_and_there_is_a_limit),
        cmocka_unit_test(test_streams_of_two_clients_with_one_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
