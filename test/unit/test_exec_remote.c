#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec_remote/job_record.h"
#include "fifo.h"
#include "io.h"
#include "ipc.h"
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
    buf_add(&r.text[0], "\0nul", 4);
    r.end = (struct record_end){.exit_code = -9, .ended = true, .killed = true, .timed_out = true};
    record_mark(&r, r.seq + 1);
    assert_int_equal(record_store(&r, dirfd, NULL), 0);
    record_release(&r);

    assert_false(record_load(&again, dirfd, 78));
    assert_true(record_load(&again, dirfd, 77));
    assert_int_equal(again.seq, 2);
    assert_int_equal(again.text[0].len, 7);
    assert_memory_equal(again.text[0].data, "two\0nul", 7);
    assert_int_equal(again.end.exit_code, -9);
    assert_true(again.end.killed && again.end.timed_out && !again.end.oom_killed && !again.told);
    assert_false(record_gives_way(dirfd, 77, true)); /* nobody has been told yet */
    record_acknowledge(&again, 9);                   /* of what was given only */
    assert_memory_equal(again.text[0].data, "\0nul", 4);
    record_count(&again);
    record_update(&again, dirfd);
    record_release(&again);

    struct record third = RECORD_INIT;
    assert_true(record_load(&third, dirfd, 77));
    assert_int_equal(third.seq, 3);
    assert_int_equal(third.text[0].len, 4);
    record_acknowledge(&third, 3);
    assert_int_equal(third.text[0].len, 0);
    record_release(&third);
    assert_true(record_gives_way(dirfd, 77, true));
    assert_false(record_gives_way(dirfd, 77, false)); /* it was told just now */
    assert_true(record_gives_way(dirfd, 78, false));
    record_sweep(dirfd);
    assert_false(record_gives_way(dirfd, 77, false)); /* too young to go */
    leave(dirfd, path);
}

static void a_file_that_is_cut_is_none(void **state)
{
    (void)state;
    char path[40], name[200];
    int dirfd = place(path);
    struct record r = RECORD_INIT, again = RECORD_INIT;
    r.pid = 5;
    say(&r, "text that is cut", "");
    assert_int_equal(record_store(&r, dirfd, NULL), 0);
    char owner[IPC_NAME_MAX];
    ipc_name(owner, "ended-5");
    snprintf(name, sizeof name, "%s/.%s", path, owner);
    for (int size = 110; size >= 0; size -= 10) {
        assert_int_equal(truncate(name, size), 0);
        assert_false(record_load(&again, dirfd, 5));
        record_update(&r, dirfd);
    }
    record_release(&r);
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
                      .accept = choose,
                      .accept_arg = &c,
                      .accepted = &accepted};
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
        cmocka_unit_test(a_file_that_is_cut_is_none),
        cmocka_unit_test(a_pid_can_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
