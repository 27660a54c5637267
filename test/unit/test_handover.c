/* The record of a state: what was put in comes out, and nothing else is believed. */
#include "support.h"

#include <limits.h>
#include <sys/mman.h>

#include "buf.h"
#include "err.h"
#include "handover.h"
#include "io.h"

static struct handover h;
static struct err err;

static int parse(const char *text)
{
    err = (struct err){0};
    return handover_parse(&h, text, strlen(text), &err);
}

static void assert_refused(int result, const char *why)
{
    assert_int_equal(result, -1);
    assert_int_equal(err.code, ERR_TOOL);
    assert_non_null(strstr(err.msg, why));
    err = (struct err){0};
}

static void assert_part(const char *key, const char *want, size_t n)
{
    const char *data;
    size_t got;
    assert_int_equal(handover_get(&h, key, &data, &got, &err), 0);
    assert_int_equal(got, n);
    assert_memory_equal(data, want, n);
}

static void assert_int(const char *key, long long want)
{
    long long value = 0;
    assert_int_equal(handover_int(&h, key, want, want, &value, &err), 0); /* both bounds are within */
    assert_true(value == want);
    if (want < LLONG_MAX)
        assert_refused(handover_int(&h, key, want + 1, LLONG_MAX, &value, &err), key);
    if (want > LLONG_MIN)
        assert_refused(handover_int(&h, key, LLONG_MIN, want - 1, &value, &err), key);
}

/* ---- round ---- */

static bool outlives_exec(int fd)
{
    return !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* All kinds of parts, with the read end of a pipe. */
static void put_all(struct handover_out *out, int read_end)
{
    assert_int_equal(handover_begin(out, "shelf", 7, &err), 0);
    assert_false(outlives_exec(out->fd));
    handover_put(out, "bytes", "a\0b\nc 3\n", 8);
    handover_put(out, "nothing", "", 0);
    handover_put_int(out, "least", LLONG_MIN + 1);
    handover_put_int(out, "most", LLONG_MAX);
    handover_put_int(out, "on", 1);
    handover_put_int(out, "off", 0);
    handover_put_fd(out, "in", read_end);
    handover_put_fd(out, "none", -1);
    handover_begin_part(out, "long", 5);
    assert_int_equal(write(out->fd, "12345", 5), 5);
    handover_end_part(out);
    assert_false(out->failed);
    assert_int_equal(out->n_fds, 1);
}

static void what_is_put_in_comes_out(void **state)
{
    (void)state;
    struct handover_out out;
    int ends[2], fd = -1;
    bool flag = false;
    const char *data;
    size_t n;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    put_all(&out, ends[0]);
    assert_int_equal(handover_read(&h, out.fd, &err), 0);
    assert_string_equal(h.kind, "shelf");
    assert_int_equal(h.number, 7);
    assert_int_equal(h.n_parts, 9);
    assert_part("bytes", "a\0b\nc 3\n", 8);
    assert_part("nothing", "", 0);
    assert_part("long", "12345", 5);
    assert_int("least", LLONG_MIN + 1);
    assert_int("most", LLONG_MAX);
    assert_int_equal(handover_bool(&h, "on", &flag, &err), 0);
    assert_true(flag);
    assert_int_equal(handover_bool(&h, "off", &flag, &err), 0);
    assert_false(flag);
    assert_refused(handover_bool(&h, "most", &flag, &err), "most");
    assert_refused(handover_get(&h, "other", &data, &n, &err), "other");
    assert_int_equal(handover_fd(&h, "in", S_IFIFO, false, &fd, &err), 0);
    assert_int_equal(fd, ends[0]);
    assert_int_equal(handover_fd(&h, "none", S_IFIFO, true, &fd, &err), 0);
    assert_int_equal(fd, -1);
    assert_refused(handover_fd(&h, "none", S_IFIFO, false, &fd, &err), "none.fd");
    handover_release(&h);
    handover_end(&out);
    close(ends[0]);
    close(ends[1]);
}

static void what_goes_along_outlives_the_program(void **state)
{
    (void)state;
    struct handover_out out;
    int ends[2];
    unsigned before = open_descriptors();
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    put_all(&out, ends[0]);
    assert_int_equal(handover_keep(&out, true), 0);
    assert_true(outlives_exec(out.fd) && outlives_exec(ends[0]) && !outlives_exec(ends[1]));
    assert_int_equal(handover_keep(&out, false), 0);
    assert_false(outlives_exec(out.fd) || outlives_exec(ends[0]));
    assert_true(outlives_exec(0)); /* no other one is meant */
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(handover_keep(&out, true), -1);

    unsigned char there;
    assert_int_equal(handover_read(&h, out.fd, &err), 0);
    char *map = h.map;
    assert_int_equal(mincore(map, 1, &there), 0);
    handover_release(&h);
    assert_true(mincore(map, 1, &there) < 0);
    assert_null(h.map);
    handover_release(&h);
    handover_end(&out);
    assert_int_equal(out.fd, -1);
    assert_int_equal(open_descriptors(), before);
}

static void what_can_not_be_written_is_noticed(void **state)
{
    (void)state;
    struct handover_out out = {.fd = open("/dev/full", O_WRONLY | O_CLOEXEC)};
    if (out.fd < 0)
        skip_because("no /dev/full");
    handover_put(&out, "key", "text", 4);
    assert_true(out.failed);
    handover_end(&out);

    assert_int_equal(handover_begin(&out, "many", 1, &err), 0);
    for (int i = 0; i < HANDOVER_FDS_MAX; i++)
        handover_put_fd(&out, "d", 3 + i);
    assert_false(out.failed);
    assert_int_equal(out.n_fds, HANDOVER_FDS_MAX);
    handover_put_fd(&out, "d", 99);
    assert_true(out.failed);
    assert_int_equal(out.n_fds, HANDOVER_FDS_MAX);
    out.failed = false;
    handover_put_fd(&out, "d", -1); /* is none too many */
    assert_false(out.failed);
    handover_end(&out);
}

static void check_no_memfd(void *arg)
{
    (void)arg;
    struct handover_out out;
    refuse_call(SYS_memfd_create, ENOSYS);
    CHECK(handover_begin(&out, "kind", 1, &err) == -1 && err.code == ERR_TOOL);
}

static void without_files_in_memory_there_is_none(void **state)
{
    (void)state;
    in_child(check_no_memfd, NULL);
}

/* ---- what is no record ---- */

static void what_is_no_record_is_refused(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "",
        "toolbox",
        "toolbox ",
        "toolbox k",
        "toolbox k\n",
        "toolbox k \n",
        "toolbox k 1",
        "toolbox  1\n",
        "toolbox k -\n",
        "toolbox k 0\n",
        "toolbox k -1\n",
        "toolbox k +1\n",
        "toolbox k 1 \n",
        "toolbox k 1x\n",
        "toolbox k /\n",
        "toolbox k :\n",
        "toolbox k-k 1\n",
        "toolbox k 2147483648\n",
        "toolbox k 9223372036854775808\n",
        "toolbox k 92233720368547758070\n",
        "Toolbox k 1\n",
        "toolboxx k 1\n",
        "toolbox aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1\n",
    };
    static const char *const parts[] = {
        "\n",
        "a\n",
        "a 1\n",
        "a 1\nb",
        "a 1\nbc",
        "a 2\nb\n",
        "a -1\nb\n",
        " 1\nb\n",
        "a b\nb\n",
        "a! 1\nb\n",
        "a 1\nb\n\n",
        "a 0\n",
        "a 0\n\na 0\n\n",
        "a 9223372036854775807\nb\n",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_refused(parse(heads[i]), "no record");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[80];
        snprintf(text, sizeof text, "toolbox k 1\n%s", parts[i]);
        assert_refused(parse(text), "damaged at byte");
    }
    assert_int_equal(parse("toolbox k 2147483647\n"), 0);
    assert_int_equal(h.number, 2147483647);
    assert_int_equal(h.n_parts, 0);
    assert_int_equal(parse("toolbox aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1\n"), 0);
    assert_refused(parse("toolbox k 1\nok 1\nx\nbad\n"), "damaged at byte 19");
}

static void there_is_a_most_of_parts(void **state)
{
    (void)state;
    struct buf text BUF_AUTO = BUF_INIT;
    buf_adds(&text, "toolbox k 1\n");
    for (int i = 0; i < HANDOVER_PARTS_MAX; i++)
        buf_addf(&text, "p%d 0\n\n", i);
    assert_int_equal(parse(buf_str(&text)), 0);
    assert_int_equal(h.n_parts, HANDOVER_PARTS_MAX);
    buf_adds(&text, "more 0\n\n");
    assert_refused(parse(buf_str(&text)), "damaged");
}

static void only_a_file_has_a_record(void **state)
{
    (void)state;
    int ends[2], empty = memfd_create("empty", MFD_CLOEXEC), wrong = memfd_create("wrong", MFD_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    memset(&h, 0xff, sizeof h);
    assert_refused(handover_read(&h, ends[0], &err), "no record");
    assert_null(h.map);
    assert_refused(handover_read(&h, empty, &err), "no record");
    assert_refused(handover_read(&h, 1000, &err), "descriptor 1000");
    assert_int_equal(write(wrong, "x", 1), 1);
    assert_refused(handover_read(&h, wrong, &err), "no record");
    handover_release(&h);
    int unread = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_refused(handover_read(&h, unread, &err), "no record");
    char path[] = "/tmp/toolbox-unit.XXXXXX";
    int made = mkstemp(path), writable = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(writable >= 0 && write(writable, "toolbox k 1\n", 12) == 12);
    assert_refused(handover_read(&h, writable, &err), "cannot read");
    assert_null(h.map);
    handover_release(&h);
    unlink(path);
    const int fds[] = {ends[0], ends[1], empty, wrong, unread, made, writable};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
}

/* ---- descriptors ---- */

static void descriptors_are_what_they_should_be(void **state)
{
    (void)state;
    char text[200];
    int ends[2], fd = -1, fds[8] = {0};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    snprintf(text, sizeof text,
             "toolbox k 1\nstd.fd 1\n2\n"
             "in.fd %d\n%d\none.fd %d\n%d\ntwo.fd %d\n%d\nclosed.fd 4\n1000\n.fd 1\n5\nfd 1\n6\nnone.fd "
             "2\n-1\nbig.fd 10\n2147483648\n",
             snprintf(NULL, 0, "%d", ends[0]), ends[0], snprintf(NULL, 0, "%d", ends[1]), ends[1],
             snprintf(NULL, 0, "%d", ends[1]), ends[1]);
    assert_int_equal(parse(text), 0);
    assert_int_equal(handover_fd(&h, "in", S_IFIFO, false, &fd, &err), 0);
    assert_int_equal(fd, ends[0]);
    assert_refused(handover_fd(&h, "in", S_IFREG, false, &fd, &err), "in.fd");
    assert_refused(handover_fd(&h, "std", S_IFCHR, true, &fd, &err), "std.fd");
    assert_refused(handover_fd(&h, "std", S_IFCHR, false, &fd, &err), "std.fd");
    assert_refused(handover_fd(&h, "one", S_IFIFO, false, &fd, &err), "one.fd");
    assert_refused(handover_fd(&h, "two", S_IFIFO, true, &fd, &err), "two.fd");
    assert_refused(handover_fd(&h, "closed", S_IFIFO, false, &fd, &err), "closed.fd");
    assert_refused(handover_fd(&h, "big", S_IFIFO, false, &fd, &err), "big.fd");
    assert_refused(handover_fd(&h, "missing", S_IFIFO, true, &fd, &err), "missing.fd");

    assert_int_equal(handover_fds(&h, fds, 8), 4);
    assert_true(fds[0] == ends[0] && fds[1] == ends[1] && fds[2] == ends[1] && fds[3] == 1000);
    fds[1] = -7;
    assert_int_equal(handover_fds(&h, fds, 1), 1);
    assert_int_equal(fds[1], -7);
    close(ends[0]);
    close(ends[1]);

    /* the first that is none of the standard ones, and the last that there may be */
    assert_int_equal(parse("toolbox k 1\na.fd 1\n3\nb.fd 10\n2147483647\nc.fd 1\nx\n"), 0);
    assert_int_equal(handover_fds(&h, fds, 8), 2);
    assert_true(fds[0] == 3 && fds[1] == INT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_comes_out),
        cmocka_unit_test(what_goes_along_outlives_the_program),
        cmocka_unit_test(what_can_not_be_written_is_noticed),
        cmocka_unit_test(without_files_in_memory_there_is_none),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(there_is_a_most_of_parts),
        cmocka_unit_test(only_a_file_has_a_record),
        cmocka_unit_test(descriptors_are_what_they_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
