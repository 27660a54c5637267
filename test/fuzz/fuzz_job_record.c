/* What an ended job has left, as anything may have changed it: whatever bytes stand in the table or in a file
 * of its own, answers stay within their bounds, and what is no record is none.
 *
 * The first byte says where the rest goes (the table, a file, or over a record that was really left), whether
 * it is given the sum that it should have, and what is acknowledged. */
#include <stdint.h>
#include <string.h>

#include "tools/exec_remote/job_shelf.h"
#include "tools/exec_remote/job_stored.h"
#include "tools/exec_remote/job_text.h"
#include "ipc.h"
#include "scratch.h"
#include "text_sum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PID = 5, SLOT = 512, SUM_AT = 8, MARKS_AT = 24, COMMAND_AT = 116, MARK = sizeof(struct record_mark) };
enum { HEAD = (COMMAND_AT + RECORD_COMMAND_MAX + 7) / 8 * 8 + 16 }; /* of the record: the marks follow */
enum { IN_TABLE = 1, OVER_REAL = 2, SUMMED = 4, LONG = 8 };

static void name_file(char name[1 + IPC_NAME_MAX], const char *owner)
{
    name[0] = '.';
    assert(ipc_name(name + 1, owner) == 0);
}

/* Gives it the sum of what it says its marks are. */
static void put_sum(unsigned char *record, size_t n)
{
    uint64_t marks;
    if (n < HEAD)
        return;
    memcpy(&marks, record + MARKS_AT, sizeof marks);
    struct text_sum sum;
    text_sum_begin(&sum);
    text_sum_add(&sum, record + SUM_AT + 8, HEAD - SUM_AT - 8);
    if (marks <= (n - HEAD) / MARK)
        text_sum_add(&sum, record + HEAD, marks * MARK);
    uint64_t value = text_sum_end(&sum);
    memcpy(record + SUM_AT, &value, sizeof value);
}

/* Leaves a record as a job does: with answers that nobody acknowledged, and output that is in none. */
static void leave(bool is_long, bool latin1)
{
    struct record r = RECORD_INIT;
    struct fifo raw[2] = {FIFO_INIT, FIFO_INIT};
    const struct fifo *const both[2] = {&raw[0], &raw[1]};
    char text[700];
    memset(text, 'x', sizeof text);
    r.pid = PID;
    for (int i = 0; i < 3; i++) {
        buf_adds(&r.text[0], "one\303\251");
        buf_adds(&r.text[i % 2], "two");
        record_count(&r);
    }
    r.end = (struct record_end){.exit_code = 3, .ended = true};
    fifo_add(&raw[0], text, is_long ? sizeof text : 3);
    fifo_add(&raw[1], "\377\303", 2);
    assert(record_store(&r, both, latin1, scratch_fd, NULL) == 0 && record_exists(scratch_fd, PID));
    record_release(&r);
    fifo_release(&raw[0]);
    fifo_release(&raw[1]);
}

/* Bytes that are not 0 change those of the record. */
static size_t change(unsigned char *record, size_t room, const char *name, off_t at, const uint8_t *data,
                     size_t n)
{
    int fd = openat(scratch_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t have = pread(fd, record, room, at);
    assert(fd >= 0 && have > 0);
    close(fd);
    for (size_t i = 0; i < n && i < (size_t)have; i++)
        record[i] ^= data[i];
    return (size_t)have;
}

static void check_answers(long long ack)
{
    for (int i = 0; i < 6; i++) {
        struct record r = RECORD_INIT;
        bool there = record_exists(scratch_fd, PID);
        assert(record_answer_stored(&r, scratch_fd, PID, i < 3 ? ack : r.seq + i) == there);
        for (int s = 0; s < 2; s++)
            assert(r.text[s].len <= 3ul * (JOB_UNACKED_MAX + 4 * JOB_ANSWER_MAX));
        assert(!there || (r.pid == PID && r.seq >= 0));
        record_release(&r);
    }
}

static void count(void *arg, pid_t pid, const struct record_job *job, const struct record_end *end)
{
    (void)end;
    assert(pid > 0 && memchr(job->command, '\0', sizeof job->command));
    ++*(int *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char record[4096] = {0};
    char table[1 + IPC_NAME_MAX], file[1 + IPC_NAME_MAX];
    if (size < 2 || size > sizeof record)
        return 0;
    scratch_make();
    name_file(table, "ended");
    name_file(file, "ended-5");
    bool in_table = data[0] & IN_TABLE, real = data[0] & OVER_REAL;
    size_t n = size - 2;
    memcpy(record, data + 2, n);
    if (real) {
        leave(!in_table, data[0] & LONG);
        n = change(record, sizeof record, in_table ? table : file, in_table ? PID * SLOT : 0, data + 2, n);
    }
    if (data[0] & SUMMED)
        put_sum(record, n);
    assert(scratch_put(scratch_fd, in_table ? table : file, record, n, in_table ? PID * SLOT : 0));
    bool same = true;
    for (size_t i = 2; i < size; i++)
        same = same && data[i] == 0;
    assert(!real || !same || record_exists(scratch_fd, PID)); /* so the sum is put where it belongs */
    check_answers((signed char)data[1]);
    int n_all = 0;
    record_each(scratch_fd, count, &n_all);
    assert(n_all >= record_exists(scratch_fd, PID));
    record_gives_way(scratch_fd, PID, data[1] % 2);
    record_sweep(scratch_fd);
    unlinkat(scratch_fd, table, 0);
    unlinkat(scratch_fd, file, 0);
    return 0;
}
