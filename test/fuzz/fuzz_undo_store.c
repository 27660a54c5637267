/* An undo history and a journal as anything may have left them, and the edits that read them: nothing but the
 * file is changed, every refusal says why, and what is no entry is passed over.
 *
 * The first byte is how long the file is, the second what is asked. What follows are entries: a byte that
 * says where it stands and what of it is made right (the keys, the size, the time), one for the length of its
 * name and one for that of its content, then both. A name is text, or the numbers that make one. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "scratch.h"
#include "tools/text_editor/edit_entry.h"
#include "tools/text_editor/text_editor_controller.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IN_JOURNAL = 1, AS_NUMBERS = 2, OF_FILE = 4, SIZED = 8, STATE = 16, LINKED = 64, N_NUMBERS = 13 };
#define FILE_NAME "file"

static char file_path[128];
static const char *const stores[] = {"undo", "journal"};

/* A name of 13 numbers, each as many bytes as its turn allows, for this file where that is asked for. */
static void make_name(char name[ENTRY_NAME_MAX], int how, const uint8_t *at, size_t n, size_t n_content)
{
    struct stat st;
    uint64_t numbers[N_NUMBERS] = {0};
    for (size_t i = 0; i < n; i++)
        numbers[i % N_NUMBERS] = numbers[i % N_NUMBERS] << 8 | at[i];
    struct entry_item item = {.key = {numbers[0], numbers[1]},
                              .order = numbers[2],
                              .size = numbers[3],
                              .stamp = numbers[4],
                              .kind = numbers[5],
                              .time = numbers[6],
                              .n_old = numbers[7],
                              .at = numbers[8],
                              .cut = numbers[9],
                              .n_put = numbers[10],
                              .put_sum = numbers[11],
                              .old_sum = numbers[12],
                              .state = (enum entry_state)(how / STATE % 4 % 3)};
    if ((how & OF_FILE) && stat(file_path, &st) == 0)
        item.key = entry_key(file_path, &st);
    if (how & SIZED) {
        item.size = n_content;
        item.stamp = 1000000000ULL * 1000;
    }
    entry_name(&item, name);
}

static void put_entry(int how, const uint8_t *name_at, size_t n_name, const uint8_t *content, size_t n)
{
    char name[256] = "";
    int dir = openat(scratch_fd, stores[how & IN_JOURNAL], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(dir >= 0);
    if (how & AS_NUMBERS)
        make_name(name, how, name_at, n_name, n);
    else
        memcpy(name, name_at, n_name);
    if (*name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        if ((how & LINKED) && symlinkat(file_path, dir, name) == 0) {
        } else if (scratch_put(dir, name, content, n, 0)) {
            assert(utimensat(dir, name, times, 0) == 0);
        }
    }
    close(dir);
}

static void put_entries(const uint8_t *at, size_t n)
{
    while (n >= 3) {
        size_t n_name = at[1] < n - 3 ? at[1] : n - 3, left = n - 3 - n_name,
               n_content = at[2] < left ? at[2] : left;
        put_entry(at[0], at + 3, n_name, at + 3 + n_name, n_content);
        at += 3 + n_name + n_content;
        n -= 3 + n_name + n_content;
    }
}

static void ask(enum edit_command command)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    struct err err = {0};
    struct edit_request r = {.command = command,
                             .path = {file_path, strlen(file_path)},
                             .new_str = {(char *)"x", 1},
                             .insert_text = {NULL, 0}};
    if (text_editor_run(&r, &answer, &err) < 0)
        assert(err.code < 0 && err.msg[0] && utf8_is_valid(err.msg, strlen(err.msg)));
    else
        assert(answer.len > 0 && utf8_is_valid(answer.data, answer.len));
}

static void prepare(void)
{
    struct stat st;
    scratch_make();
    snprintf(file_path, sizeof file_path, "%s/" FILE_NAME, scratch);
    for (int i = 0; i < 2; i++)
        if (fstatat(scratch_fd, stores[i], &st, 0) < 0)
            assert(mkdirat(scratch_fd, stores[i], 0700) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum edit_command commands[] = {EDIT_UNDO, EDIT_VIEW, EDIT_INSERT, EDIT_HISTORY};
    if (size < 2 || size > 4096)
        return 0;
    prepare();
    size_t n_file = data[0] < size - 2 ? data[0] : size - 2;
    assert(scratch_put(scratch_fd, FILE_NAME, data + 2, n_file, 0));
    put_entries(data + 2 + n_file, size - 2 - n_file);
    for (unsigned asked = data[1], i = 0; i < 3; i++, asked /= 4)
        ask(commands[asked % 4]);
    for (int i = 0; i < 2; i++)
        dir_empty(openat(scratch_fd, stores[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
    unlinkat(scratch_fd, FILE_NAME, 0);
    return 0;
}
