/* Where there is no shell: the runtime copies the file in, and the file says what it is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/inject/inject_steps.h"
#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "commands/settle/settle.h"

#define COPY_DIR ("/" SETTLE_DIR) /* nothing that is there already is touched */
#define TAR_BLOCK 512
#define TAR_NAME_MAX 100

static const char *const architectures[] = {"amd64", "arm64", "armv7", "riscv64", "s390x", "ppc64le", "i386"};

/* ---- tar (POSIX ustar) ---- */

static int put_entry(struct buf *tar, const char *path, unsigned mode, struct span data, struct err *err)
{
    static const char magic[] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
    char head[TAR_BLOCK] = {0};
    if (strlen(path) >= TAR_NAME_MAX)
        return err_set(err, ERR_TOOL, "the path is too long to be copied: %s", path);
    snprintf(head, TAR_NAME_MAX, "%s", path);
    snprintf(head + 100, 8, "%07o", mode);
    snprintf(head + 108, 8, "%07o", 0);
    snprintf(head + 116, 8, "%07o", 0);
    snprintf(head + 124, 12, "%011zo", data.n);
    snprintf(head + 136, 12, "%011o", 0);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257, magic, sizeof magic);
    unsigned sum = 0;
    for (int n = 0; n < TAR_BLOCK; n++)
        sum += (unsigned char)head[n];
    snprintf(head + 148, 8, "%06o", sum);
    buf_add(tar, head, sizeof head);
    buf_add(tar, data.s, data.n);
    static const char zeros[TAR_BLOCK];
    buf_add(tar, zeros, (TAR_BLOCK - data.n % TAR_BLOCK) % TAR_BLOCK);
    return 0;
}

/* Directories on the way are made by the runtime, where they are missing; one of ours is then made private by
 * the program. The blocks that end an archive are left out: every reader takes its end for one. */
static int make_archive(struct buf *tar, const char *dir, const char *file, struct span data, struct err *err)
{
    char *path MEM_AUTO = mem_printf("%s/%s", dir + strspn(dir, "/"), file);
    return put_entry(tar, path, 0700, data, err);
}

/* ---- calls ---- */

/* Runs the program at a path, which is to settle. True when it said something. */
static bool settle_at(struct injection *i, const char *path, bool named, struct transport_call *c,
                      struct span *verdict, struct err *err)
{
    struct argv command ARGV_AUTO = {0};
    const char *const fixed[] = {path, "settle", "--at", path, "--sums", i->choice.file->sha256, NULL};
    const char *const naming[] = {"--name", i->o->name, i->o->dir ? NULL : "--made", COPY_DIR, NULL};
    for (const char *const *word = fixed; *word; word++)
        argv_add(&command, *word);
    for (const char *const *word = naming; named && *word; word++)
        argv_add(&command, *word);
    if (i->o->links) {
        argv_add(&command, "--links");
        argv_add(&command, i->o->links);
    }
    if (i->o->replace)
        argv_add(&command, "--replace");
    if (i->o->upgrade)
        argv_add(&command, "--upgrade");
    if (inject_call(i, NULL, &command, c, err) != TRANSPORT_ENDED)
        return false;
    struct span line;
    for (size_t at = 0; recon_line(span_of(&c->out), &at, &line);)
        if (line.n > 0 && line.s[0] == '{' && json_check(line, NULL) == 0) {
            *verdict = line;
            return true;
        }
    struct buf said BUF_AUTO = BUF_INIT;
    transport_said(c, &said);
    err_set(err, ERR_TOOL, "it can't be run there (exit status %d)%s%s", c->status, said.len > 0 ? ": " : "",
            buf_str(&said));
    return false;
}

static int copy(struct injection *i, const char *from, const char *to, struct span data, struct err *err)
{
    struct argv command ARGV_AUTO = {0};
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct buf said BUF_AUTO = BUF_INIT;
    if (target_copy_command(i->t, from, to, &command, err) < 0)
        return -1;
    c.input[0] = data;
    if (transport_run(i->transport, command.words, &c, err) != TRANSPORT_ENDED)
        return -1;
    transport_said(&c, &said);
    return c.status == 0 ? 0
                         : err_set(err, ERR_TOOL, "%s cp failed (exit status %d)%s%s", command.words[0],
                                   c.status, said.len > 0 ? ": " : "", buf_str(&said));
}

/* From a folder here. The folder as a whole makes a directory there, but would change the mode of one that is
 * there: so that is only done where the directory is ours, or the file alone found none. */
static int copy_folder(struct injection *i, const char *folder, size_t size, const char *dir, struct err *err)
{
    char *file MEM_AUTO = mem_printf("%s/%s", folder, i->temporary);
    char *to MEM_AUTO = mem_printf("%s/%s", dir, i->temporary);
    char *content MEM_AUTO = mem_printf("%s/.", folder);
    if (i->o->dir && copy(i, file, to, (struct span){0}, err) == 0) {
        i->r->cost.sent += size;
        return 0;
    }
    if (i->transport->interrupted || copy(i, content, dir, (struct span){0}, err) < 0)
        return -1;
    i->r->cost.sent += size;
    return 0;
}

static int copy_files(struct injection *i, const char *dir, struct span data, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    char *folder MEM_AUTO = mem_printf("%s/toolbox-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return err_sys(err, ERR_TOOL, errno, "cannot make a directory like %s", folder);
    char *file MEM_AUTO = mem_printf("%s/%s", folder, i->temporary);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    int result = fd < 0 || io_write_all(fd, data.s, data.n) < 0 || fchmod(fd, 0700) < 0
                     ? err_sys(err, ERR_TOOL, errno, "cannot write %s", file)
                     : 0;
    io_close(&fd);
    if (result == 0)
        result = copy_folder(i, folder, data.n, dir, err);
    unlink(file);
    rmdir(folder);
    return result;
}

static int copy_in(struct injection *i, const char *dir, struct span data, struct err *err)
{
    struct buf tar BUF_AUTO = BUF_INIT;
    if (i->t->kind->copies == COPIES_FILES)
        return copy_files(i, dir, data, err);
    return make_archive(&tar, dir, i->temporary, data, err) < 0 ? -1 : copy(i, "-", "/", span_of(&tar), err);
}

static bool is_foreign(const struct transport_call *c)
{
    return strstr(buf_str(&c->err), "xec format error") != NULL ||
           strstr(buf_str(&c->out), "xec format error");
}

/* Nothing there can remove a file that doesn't run; it is emptied at least. */
static void empty(struct injection *i, const char *dir)
{
    i->transport->cleaning = true;
    copy_in(i, dir, (struct span){"", 0}, NULL);
    i->transport->cleaning = false;
}

/* One architecture's file. 0, -1 with the failure taken down; 1: it is not this architecture. */
static int try_architecture(struct injection *i, const char *dir)
{
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct err err = {0};
    struct span verdict = {0};
    char *path MEM_AUTO = mem_printf("%s/%s", dir, i->temporary);
    if (copy_in(i, dir, span_of(&i->choice.file->bytes), &err) < 0)
        return inject_fail(
            i->r, STEP_PLACING,
            "there is no shell, so the runtime's own copy is the only way in; a read-only root takes it "
            "from the image or a volume alone",
            &err);
    if (!settle_at(i, path, true, &c, &verdict, &err)) {
        empty(i, dir);
        if (is_foreign(&c))
            return 1;
        return inject_fail(i->r, STEP_PROOF, "an empty file is left, which nothing there can remove", &err);
    }
    return inject_take_verdict(i, verdict);
}

static bool was_there(struct injection *i, const char *path)
{
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct err err;
    struct span verdict = {0}, ok;
    return settle_at(i, path, false, &c, &verdict, &err) && json_member(verdict, "ok", &ok, NULL) &&
           span_is(ok, "true") && inject_take_verdict(i, verdict) == 0;
}

int inject_copy(struct injection *i)
{
    const char *dir = i->o->dir ? i->o->dir : COPY_DIR;
    buf_addf(&i->r->placed.path, "%s/%s", dir, i->o->name);
    buf_adds(&i->r->found.about, "no shell");
    i->r->cost.us[STEP_CHOICE] = 0;
    if (inject_choose(i, os_arch()) < 0)
        return -1;
    if (was_there(i, buf_str(&i->r->placed.path)))
        return 0;
    int result = try_architecture(i, dir);
    for (size_t n = 0; result > 0 && n < sizeof architectures / sizeof *architectures; n++)
        if (strcmp(architectures[n], os_arch()) != 0 && inject_choose(i, architectures[n]) == 0)
            result = try_architecture(i, dir);
    if (result > 0) {
        struct err err;
        err_set(&err, ERR_TOOL, "none of this release's binaries runs there: wrong architecture");
        return inject_fail(i->r, STEP_PROOF, "an empty file is left, which nothing there can remove", &err);
    }
    return result;
}
