#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/exec_remote/job_shelf.h"
#include "tools/exec_remote/job_stored.h"
#include "fifo.h"
#include "io.h"
#include "ipc.h"
#include "json.h"
#include "spawn.h"

/* ---- fifo ---- */

static char byte_at(size_t i)
{
    return (char)(i * 7 + i / 251);
}

static void a_fifo_gives_back_what_it_was_given(void **state)
{
    (void)state;
    struct fifo f = FIFO_INIT;
    size_t in = 0, out = 0;
    srand(1);
    while (out < 3000000) {
        char bytes[100000];
        size_t n = (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = byte_at(in + i);
        fifo_add(&f, bytes, n);
        in += n;
        struct buf text BUF_AUTO = BUF_INIT;
        size_t take = (size_t)rand() % (f.len + 1);
        fifo_peek(&f, take, &text);
        assert_int_equal(text.len, take);
        for (size_t i = 0; i < take; i++)
            assert_int_equal(text.data[i], byte_at(out + i));
        fifo_drop(&f, take);
        out += take;
        assert_int_equal(f.len, in - out);
    }
    struct buf all BUF_AUTO = BUF_INIT;
    fifo_peek(&f, f.len + 1, &all);
    assert_int_equal(all.len, f.len);
    fifo_drop(&f, f.len);
    assert_int_equal(f.len, 0);
    assert_null(f.first);
    fifo_release(&f);
}

static void a_fifo_reads_and_writes_descriptors(void **state)
{
    (void)state;
    int ends[2];
    struct fifo f = FIFO_INIT;
    assert_int_equal(pipe(ends), 0);
    io_set_nonblock(ends[0], true);
    assert_true(fifo_read(&f, ends[0], 100) < 0);
    assert_null(f.first); /* nothing is held for nothing */
    assert_int_equal(write(ends[1], "hello world", 11), 11);
    assert_int_equal(fifo_read(&f, ends[0], 5), 5);
    assert_int_equal(fifo_read(&f, ends[0], 100), 6);
    fifo_drop(&f, 1);
    assert_int_equal(fifo_write(&f, ends[1]), 10);
    assert_int_equal(f.len, 0);
    char bytes[20];
    assert_int_equal(read(ends[0], bytes, sizeof bytes), 10);
    assert_memory_equal(bytes, "ello world", 10);
    close(ends[1]);
    assert_int_equal(fifo_read(&f, ends[0], 100), 0);
    close(ends[0]);
}

/* ---- records ---- */

static void say(struct record *r, const char *out, const char *err)
{
    buf_adds(&r->text[0], out);
    buf_adds(&r->text[1], err);
    record_count(r);
}

static void check_text(const struct record *r, const char *out, const char *err)
{
    assert_string_equal(buf_str(&r->text[0]), out);
    assert_string_equal(buf_str(&r->text[1]), err);
}

static void an_acknowledgement_frees_what_it_says(void **state)
{
    (void)state;
    struct record r = RECORD_INIT;
    say(&r, "a", "");   /* 1 */
    say(&r, "b", "x");  /* 2 */
    say(&r, "", "");    /* 3 */
    say(&r, "cd", "y"); /* 4 */
    assert_int_equal(r.seq, 4);
    record_acknowledge(&r, 0);
    record_acknowledge(&r, -5);
    check_text(&r, "abcd", "xy");
    record_acknowledge(&r, 1);
    check_text(&r, "bcd", "xy");
    record_acknowledge(&r, 3);
    check_text(&r, "cd", "y");
    record_acknowledge(&r, 2);
    record_acknowledge(&r, 1);
    check_text(&r, "cd", "y");
    buf_adds(&r.text[0], "new"); /* in no answer yet */
    record_acknowledge(&r, 99);
    check_text(&r, "new", "");
    record_count(&r);
    record_acknowledge(&r, 5);
    check_text(&r, "", "");
    assert_int_equal(r.n_marks, 0);
    record_release(&r);
}

static void answers_without_news_cost_nothing(void **state)
{
    (void)state;
    struct record r = RECORD_INIT;
    say(&r, "text", "");
    for (int i = 0; i < 100000; i++)
        record_count(&r);
    assert_int_equal(r.n_marks, 1);
    record_acknowledge(&r, 50000);
    check_text(&r, "", "");
    record_release(&r);
}

static int place(char path[40])
{
    snprintf(path, 40, "/tmp/test_exec_remote.XXXXXX");
    assert_non_null(mkdtemp(path));
    return open(path, O_RDONLY | O_DIRECTORY);
}

static void leave(int dirfd, const char *path)
{
    ipc_clear(dirfd);
    close(dirfd);
    assert_int_equal(rmdir(path), 0); /* which fails where a file is left */
}

static int store(struct record *r, const char *out, size_t n, bool latin1, int dirfd)
{
    struct fifo raw[2] = {FIFO_INIT, FIFO_INIT};
    const struct fifo *const both[2] = {&raw[0], &raw[1]};
    fifo_add(&raw[0], out, n);
    int result = record_store(r, both, latin1, dirfd, NULL);
    assert_int_equal(raw[0].len, n); /* it is kept */
    fifo_release(&raw[0]);
    record_release(r);
    return result;
}

/* One answer of the file, which is given. */
static void ask(struct record *r, int dirfd, pid_t pid, long long ack)
{
    record_release(r);
    *r = (struct record)RECORD_INIT;
    assert_true(record_answer_stored(r, dirfd, pid, ack));
    record_count(r);
}

static void a_record_comes_back_from_its_file(void **state)
{
    (void)state;
    char path[40];
    int dirfd = place(path);
    struct record r = RECORD_INIT, again = RECORD_INIT;
    r.pid = 77;
    say(&r, "one", "e1");
    say(&r, "two", "");
    record_acknowledge(&r, 1);
    r.end = (struct record_end){.exit_code = -9, .ended = true, .killed = true, .timed_out = true};
    assert_int_equal(store(&r, "\0n\303\251\377\342", 6, false, dirfd), 0);

    assert_false(record_answer_stored(&again, dirfd, 78, 0));
    assert_false(record_exists(dirfd, 78));
    assert_true(record_exists(dirfd, 77));
    assert_false(record_gives_way(dirfd, 77, true)); /* nobody has been told yet */
    static const char rest[] = "\0n\303\251\357\277\275\357\277\275";
    for (int i = 0; i < 3; i++) {
        ask(&again, dirfd, 77, 1);
        assert_int_equal(again.seq, 3 + i);
        assert_int_equal(again.text[0].len, 3 + sizeof rest - 1);
        assert_memory_equal(again.text[0].data, "two", 3);
        assert_memory_equal(again.text[0].data + 3, rest, sizeof rest - 1);
        assert_int_equal(again.end.exit_code, -9);
        assert_true(again.end.ended && again.end.killed && again.end.timed_out && !again.end.oom_killed);
    }
    ask(&again, dirfd, 77, 2); /* what came with the third answer has its number, not the last one's */
    assert_int_equal(again.text[0].len, sizeof rest - 1);
    ask(&again, dirfd, 77, 99);
    check_text(&again, "", "");
    ask(&again, dirfd, 77, 0);
    check_text(&again, "", "");
    assert_true(again.end.ended && again.seq == 8);
    record_release(&again);

    assert_true(record_gives_way(dirfd, 77, true));
    assert_false(record_gives_way(dirfd, 77, false)); /* it was told just now */
    assert_true(record_gives_way(dirfd, 78, false));
    record_sweep(dirfd);
    assert_false(record_gives_way(dirfd, 77, false)); /* too young to go */
    leave(dirfd, path);
}

/* Whatever it is, in answers as of a living job, to the end. */
static void check_long(const char *piece, size_t n, bool latin1, const char *text)
{
    char path[40];
    int dirfd = place(path);
    struct record r = RECORD_INIT, again = RECORD_INIT;
    struct buf bytes BUF_AUTO = BUF_INIT;
    struct buf got BUF_AUTO = BUF_INIT;
    size_t times = (9u << 20) / n, answers = 0;
    for (size_t i = 0; i < times; i++)
        buf_add(&bytes, piece, n);
    r.pid = 5;
    say(&r, "begin", "");
    record_acknowledge(&r, 1);
    r.end.ended = true;
    assert_int_equal(store(&r, bytes.data, bytes.len, latin1, dirfd), 0);
    long long seq = 0;
    do {
        ask(&again, dirfd, 5, seq); /* which is lost */
        ask(&again, dirfd, 5, seq);
        assert_true(json_string_len(again.text[0].data, again.text[0].len) <= 7u << 20);
        buf_add(&got, again.text[0].data, again.text[0].len);
        seq = again.seq;
        assert_true(++answers < 200);
    } while (!again.end.ended);
    assert_int_equal(got.len, times * strlen(text));
    for (size_t i = 0; i < times; i++)
        if (memcmp(got.data + i * strlen(text), text, strlen(text)) != 0)
            fail_msg("piece %zu", i);
    record_release(&again);
    leave(dirfd, path);
}

static void much_comes_bit_by_bit(void **state)
{
    (void)state;
    check_long("x\342\202\254yz\n", 7, false, "x\342\202\254yz\n");
    check_long("\377", 1, false, "\357\277\275");
    check_long("\001", 1, false, "\001");
    check_long("\377a", 2, true, "\303\277a");
}

static void latin1_is_given_again(void **state)
{
    (void)state;
    char path[40];
    int dirfd = place(path);
    struct record r = RECORD_INIT, again = RECORD_INIT;
    r.pid = 6;
    say(&r, "\303\277a", "\303\251");
    say(&r, "b\303\251", "");
    r.end.ended = true;
    assert_int_equal(store(&r, "\377", 1, true, dirfd), 0);
    ask(&again, dirfd, 6, 0);
    check_text(&again, "\303\277ab\303\251\303\277", "\303\251");
    ask(&again, dirfd, 6, 1);
    check_text(&again, "b\303\251\303\277", "");
    ask(&again, dirfd, 6, 2);
    check_text(&again, "\303\277", "");
    record_release(&again);
    leave(dirfd, path);
}

/* "ended": the table's file; "ended-PID": one's own. */
static void file_path(char file[200], const char *path, const char *owner)
{
    char name[IPC_NAME_MAX];
    ipc_name(name, owner);
    snprintf(file, 200, "%s/.%s", path, name);
}

static void short_ones_stand_in_one_file(void **state)
{
    (void)state;
    char path[40], table[200], file[200], text[700];
    int dirfd = place(path);
    struct record again = RECORD_INIT;
    file_path(table, path, "ended");
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 700; i += 7) { /* with and without room in the table, which is seen from its size */
        struct record r = RECORD_INIT;
        r.pid = 1000 + i;
        r.end = (struct record_end){.exit_code = i, .ended = true};
        say(&r, "said", "");
        assert_int_equal(store(&r, text, (size_t)i, false, dirfd), 0);
    }
    for (int i = 0; i < 700; i += 7) {
        ask(&again, dirfd, 1000 + i, 1);
        assert_int_equal(again.text[0].len, i);
        assert_int_equal(again.end.exit_code, i);
        snprintf(file, sizeof file, "ended-%d", 1000 + i);
        file_path(file, path, file);
        assert_int_equal(access(file, F_OK) == 0, i > 284 - 96);
        assert_false(record_exists(dirfd, 1001 + i));
    }
    struct stat st;
    assert_int_equal(stat(table, &st), 0);
    assert_true(st.st_blocks * 512 < 256L * 1024); /* there is nothing where nothing was written */
    shelf_remove(dirfd, 1000);
    shelf_remove(dirfd, 1693);
    assert_false(record_exists(dirfd, 1000) || record_exists(dirfd, 1693));
    assert_true(record_exists(dirfd, 1007));
    record_release(&again);
    leave(dirfd, path);
}

static void count(void *arg, pid_t pid, const struct record_job *job, const struct record_end *end)
{
    (void)job;
    assert_int_equal(end->exit_code, pid % 256);
    ++*(int *)arg;
}

/* Each record's time is set back. */
static void age(const char *file, long seconds)
{
    int fd = open(file, O_RDWR);
    long long asked;
    for (off_t at = 0; pread(fd, &asked, sizeof asked, at) == sizeof asked; at += 512) {
        asked -= asked != 0 ? seconds : 0;
        assert_int_equal(pwrite(fd, &asked, sizeof asked, at), sizeof asked);
    }
    close(fd);
}

static void old_ones_are_swept(void **state)
{
    (void)state;
    char path[40], table[200], file[200], text[700] = "";
    int dirfd = place(path), n = 0;
    long now = (long)shelf_now(),
         nearly_old = now > 3500 ? 3500 : now - 1; /* the machine may just have been started */
    file_path(table, path, "ended");
    file_path(file, path, "ended-3000");
    for (pid_t pid = 1; pid < 3000; pid += pid < 100 ? 1 : 100) {
        struct record r = RECORD_INIT;
        r.pid = pid == 2900 ? 3000 : pid;
        r.end = (struct record_end){.exit_code = r.pid % 256, .ended = true, .killed = true};
        assert_int_equal(store(&r, text, pid == 2900 ? sizeof text : 0, false, dirfd), 0);
    }
    record_each(dirfd, count, &n);
    assert_int_equal(n, 99 + 29);
    age(table, nearly_old);
    age(file, nearly_old);
    record_sweep(dirfd);
    assert_true(record_exists(dirfd, 1) && record_exists(dirfd, 3000));
    age(table, 3700 - nearly_old);
    age(file, 3700 - nearly_old);
    struct record young = RECORD_INIT;
    young.pid = 7;
    young.end.exit_code = 7;
    assert_int_equal(store(&young, "", 0, false, dirfd), 0);
    assert_true(record_gives_way(dirfd, 8, false) && !record_gives_way(dirfd, 7, false));
    record_sweep(dirfd);
    n = 0;
    record_each(dirfd, count, &n);
    assert_int_equal(n, 1);
    assert_true(record_exists(dirfd, 7));
    age(table, -7200); /* of a time that has not been: from before the machine was started */
    record_sweep(dirfd);
    assert_false(record_exists(dirfd, 7));
    struct stat st;
    assert_int_equal(stat(table, &st), 0);
    assert_true(st.st_blocks * 512 <= 8192); /* it is given back */
    leave(dirfd, path);
}

static void a_file_that_is_cut_is_none(void **state)
{
    (void)state;
    char path[40], name[200], more[400] = "";
    int dirfd = place(path);
    struct record r = RECORD_INIT, again = RECORD_INIT;
    r.pid = 5;
    say(&r, "text that is cut", "");
    assert_int_equal(store(&r, more, sizeof more, false, dirfd), 0);
    file_path(name, path, "ended-5");
    assert_true(record_exists(dirfd, 5));
    for (int size = 600; size >= 0; size -= 10) {
        assert_int_equal(truncate(name, size), 0);
        assert_false(record_exists(dirfd, 5));
        assert_false(record_answer_stored(&again, dirfd, 5, 0));
    }
    leave(dirfd, path);
}

/* Whichever byte of what is believed was changed, by whatever: it is no record any more. Not the time when
 * somebody last asked, which each answer changes. */
static void a_changed_record_is_none(void **state)
{
    (void)state;
    char path[40], name[200], more[700] = "";
    int dirfd = place(path);
    for (int in_table = 0; in_table < 2; in_table++) {
        struct record r = RECORD_INIT, again = RECORD_INIT;
        r.pid = 5;
        say(&r, "given", "");
        say(&r, "twice", "e");
        r.end = (struct record_end){.exit_code = 3, .ended = true};
        assert_int_equal(store(&r, more, in_table ? 4 : sizeof more, false, dirfd), 0);
        file_path(name, path, in_table ? "ended" : "ended-5");
        int fd = open(name, O_RDWR);
        for (off_t at = 8; at < 96 + 2 * (off_t)sizeof(struct record_mark); at++) {
            unsigned char byte, other;
            assert_int_equal(pread(fd, &byte, 1, at + (in_table ? 5 * 512L : 0)), 1);
            other = byte ^ 0x41;
            assert_int_equal(pwrite(fd, &other, 1, at + (in_table ? 5 * 512L : 0)), 1);
            assert_false(record_exists(dirfd, 5));
            assert_false(record_answer_stored(&again, dirfd, 5, 1));
            assert_true(record_gives_way(dirfd, 5, false));
            assert_int_equal(pwrite(fd, &byte, 1, at + (in_table ? 5 * 512L : 0)), 1);
        }
        ask(&again, dirfd, 5, 1);
        assert_memory_equal(again.text[0].data, "twice", 5);
        record_release(&again);
        close(fd);
        unlink(name);
    }
    leave(dirfd, path);
}

static void expect_none(void *arg, pid_t pid, const struct record_job *job, const struct record_end *end)
{
    (void)arg, (void)job, (void)end;
    fail_msg("a record of %ld", (long)pid);
}

/* Nothing that isn't a file of this user's is opened for longer than a look, and no number is a pid that
 * can't be one. */
static void what_is_no_file_is_no_record(void **state)
{
    (void)state;
    char path[40], name[200], link[200];
    static const char *const owners[] = {"ended", "ended-5", "ended--5", "ended-99999999999", "ended-x"};
    int dirfd = place(path);
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        file_path(name, path, owners[i]);
        assert_int_equal(mkfifo(name, 0600), 0);
        assert_false(record_exists(dirfd, 5));
        record_each(dirfd, expect_none, NULL);
        record_sweep(dirfd);
    }
    file_path(name, path, "ended");
    unlink(name);
    file_path(link, path, "ended-7");
    assert_int_equal(symlink("/etc/passwd", link), 0);
    int fd = open(name, O_RDWR | O_CREAT, 0600);
    long long asked = 1;
    assert_int_equal(pwrite(fd, &asked, sizeof asked, (off_t)512 << 30), sizeof asked);
    close(fd);
    record_each(dirfd, expect_none, NULL);
    record_sweep(dirfd);
    leave(dirfd, path);
}

/* ---- pids ---- */

struct choice {
    int fd;
    int refuse; /* how many; -1: none will do */
};

/* In the child, which tells of itself through a file. */
static int choose(void *arg, pid_t pid, unsigned refused, struct err *err)
{
    const struct choice *c = arg;
    if (c->refuse < 0)
        return err_set(err, ERR_TOOL, "none will do");
    pwrite(c->fd, &pid, sizeof pid, (off_t)(refused * sizeof pid));
    return refused == (unsigned)c->refuse;
}

/* A child whose pid is refused never runs. */
static void a_pid_can_be_refused(void **state)
{
    (void)state;
    char path[] = "/tmp/test_exec_remote.XXXXXX";
    int fd = mkstemp(path);
    const char *programs[] = {"/bin/sh", NULL};
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo $$", NULL};
    char *env[] = {NULL};
    char asked_path[] = "/tmp/test_exec_remote.XXXXXX";
    struct choice c = {.fd = mkstemp(asked_path), .refuse = 3};
    pid_t accepted = 0;
    struct spawn s = {.programs = programs,
                      .argv = argv,
                      .env = env,
                      .start_dir = -1,
                      .fds = {-1, fd, -1},
                      .accept = {choose, &c, &accepted}};
    pid_t pid = spawn(&s, NULL, NULL);
    assert_true(pid > 0 && pid == accepted);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    pid_t asked[4];
    assert_int_equal(pread(c.fd, asked, sizeof asked, 0), sizeof asked);
    for (int i = 0; i < 3; i++)
        assert_true(asked[i] > 0 && asked[i] != pid && kill(asked[i], 0) < 0);
    assert_int_equal(asked[3], pid);
    char text[64] = "", want[64];
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    snprintf(want, sizeof want, "%ld\n", (long)pid);
    assert_string_equal(text, want);
    programs[0] = "/no/such";
    accepted = 0;
    assert_int_equal(spawn(&s, NULL, NULL), -1);
    assert_true(accepted > 0); /* and what it has taken hold of is not forgotten */
    accepted = 0;
    c.refuse = -1;
    struct err err;
    assert_int_equal(spawn(&s, NULL, &err), -1);
    assert_string_equal(err.msg, "none will do");
    assert_int_equal(accepted, 0);
    assert_int_equal(waitpid(-1, NULL, 0), -1); /* no child is left */
    unlink(path);
    unlink(asked_path);
    close(fd);
    close(c.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fifo_gives_back_what_it_was_given),
        cmocka_unit_test(a_fifo_reads_and_writes_descriptors),
        cmocka_unit_test(an_acknowledgement_frees_what_it_says),
        cmocka_unit_test(answers_without_news_cost_nothing),
        cmocka_unit_test(a_record_comes_back_from_its_file),
        cmocka_unit_test(much_comes_bit_by_bit),
        cmocka_unit_test(latin1_is_given_again),
        cmocka_unit_test(short_ones_stand_in_one_file),
        cmocka_unit_test(old_ones_are_swept),
        cmocka_unit_test(a_file_that_is_cut_is_none),
        cmocka_unit_test(a_changed_record_is_none),
        cmocka_unit_test(what_is_no_file_is_no_record),
        cmocka_unit_test(a_pid_can_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
