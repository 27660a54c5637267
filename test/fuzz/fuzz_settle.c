/* What lies beside a program and in the place, as anything may have left it: settle's record, that of a
 * build's program, the mark of a placement; and any stream as the folder that was brought along.
 *
 * The first byte says which, the second what kind of file it is (a regular one, a link, a FIFO, a directory).
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "program.h"
#include "scratch.h"
#include "commands/settle/settle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUILD "0123456789abcdef"
#define INPUT_MAX 65536

static void put(const char *name, unsigned kind, const uint8_t *data, size_t n)
{
    unlinkat(scratch_fd, name, 0);
    unlinkat(scratch_fd, name, AT_REMOVEDIR);
    if (kind == 1)
        symlinkat("other", scratch_fd, name);
    else if (kind == 2)
        mkfifoat(scratch_fd, name, 0600);
    else if (kind == 3)
        mkdirat(scratch_fd, name, 0700);
    if (kind == 1)
        scratch_put(scratch_fd, "other", data, n, 0);
    else if (kind == 0)
        scratch_put(scratch_fd, name, data, n, 0);
}

struct record {
    const char *text;
    size_t n;
};

static void check_line(void *arg, const char *value)
{
    const struct record *r = arg;
    assert(value >= r->text + 5 && value + strlen(value) < r->text + r->n && !strchr(value, '\n'));
    const char *begin = value;
    while (begin > r->text && begin[-1] != '\n')
        begin--;
    assert(strncmp(begin, "made ", 5) == 0 || strncmp(begin, "links ", 6) == 0);
}

static void check_record(unsigned kind, const uint8_t *data, size_t n)
{
    char *program MEM_AUTO = mem_printf("%s/toolbox", scratch);
    struct buf text BUF_AUTO = {.max = SETTLE_RECORD_MAX};
    put(".toolbox.inject", kind, data, n);
    bool there = settle_record_read(scratch_fd, program, &text);
    assert(there == (kind == 0 && n > 0) && (!there || (text.len == n && memcmp(text.data, data, n) == 0)));
    if (!there)
        return;
    struct record r = {text.data, text.len};
    settle_record_each(text.data, "made ", check_line, &r);
    settle_record_each(text.data, "links ", check_line, &r);
    assert(memcmp(text.data, data, n) == 0);
}

static void check_program(unsigned kind, const uint8_t *data, size_t n)
{
    char name[1 + IPC_NAME_MAX] = ".";
    struct program p PROGRAM_AUTO = PROGRAM_INIT;
    struct err err = {0};
    assert(ipc_name_in(name + 1, "program", BUILD) == 0);
    put(name, kind, data, n);
    if (program_read(&p, scratch_fd, BUILD)) {
        assert(kind == 0 && p.path[0] == '/' && strlen(p.sha256) == SHA256_HEX_SIZE - 1);
        char *aside MEM_AUTO = program_aside(p.path, BUILD);
        assert(*aside == '/');
    }
    int fd = program_open(scratch_fd, BUILD, &err); /* whatever it names, it isn't one with that sum */
    assert(fd < 0 && *err.msg);
}

static void check_mark(unsigned kind, const uint8_t *data, size_t n)
{
    char *program MEM_AUTO = mem_printf("%s/toolbox", scratch);
    put(".placed-1-2", kind, data, n);
    scratch_put(scratch_fd, "toolbox", "x", 1, 0);
    assert(!settle_leave(scratch_fd, program)); /* nothing has that number */
}

static void check_folder(const uint8_t *data, size_t n)
{
    char *program MEM_AUTO = mem_printf("%s/toolbox", scratch);
    struct err err = {0};
    struct stat st;
    int fd FD_AUTO = memfd_create("folder", MFD_CLOEXEC);
    assert(fd >= 0 && io_write_all(fd, data, n) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    const char *state = settle_unpack(fd, scratch_fd, program, &err);
    bool there = fstatat(scratch_fd, ".toolbox.with", &st, AT_SYMLINK_NOFOLLOW) == 0;
    assert(there == (state != NULL) && (state || *err.msg));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > INPUT_MAX)
        return 0;
    scratch_make();
    unsigned kind = data[1] % 4;
    switch (data[0] % 4) {
    case 0:
        check_record(kind, data + 2, size - 2);
        break;
    case 1:
        check_program(kind, data + 2, size - 2);
        break;
    case 2:
        check_mark(kind, data + 2, size - 2);
        break;
    default:
        check_folder(data + 2, size - 2);
    }
    dir_empty(dup(scratch_fd), 0);
    return 0;
}
