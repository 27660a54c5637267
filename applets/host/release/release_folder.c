#include "release_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dir_read.h"
#include "io.h"
#include "mem.h"
#include "release.h"
#include "release_own.h"
#include "release_record.h"
#include "signature.h"

struct checking {
    int dir, bad;
    const char *path, *key;
    release_verdict_fn tell;
    void *arg;
    struct buf sums;
    struct release_own own;
};

static void tell(struct checking *c, const char *name, bool good, const char *text)
{
    const struct release_verdict verdict = {name, text, !good};
    c->bad |= !good;
    c->tell(c->arg, &verdict);
}

static int read_in(const struct checking *c, const char *name, struct buf *out)
{
    return io_read_file(c->dir, name, out);
}

static void check_signature(struct checking *c)
{
    static const char name[] = "SHA256SUMS.sig";
    struct buf signature BUF_AUTO = {.max = 1024};
    struct err err;
    if (!c->key || !*c->key)
        tell(c, "SHA256SUMS", true, "read; its signature can't be checked without a key (--key FILE)");
    else if (read_in(c, name, &signature) < 0)
        tell(c, name, false, err_text(errno));
    else if (signature_verify(c->key, c->sums.data, c->sums.len, signature.data, signature.len, &err) < 0)
        tell(c, name, false, err.msg);
    else
        tell(c, name, true, "signed by the key");
}

/* A program of this version has to be of this build, too, where this program knows its release. */
static int check_build(struct checking *c, const char *name, struct err *err)
{
    struct buf bytes BUF_AUTO = {.max = RELEASE_FILE_MAX};
    char *mine MEM_AUTO = release_file_name("");
    size_t n = strlen(mine);
    if (!c->own.sums.s || strncmp(name, mine, n) != 0 || strchr(name + n, '-'))
        return 0;
    if (read_in(c, name, &bytes) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read %s", name);
    return release_verify(&c->own, name, span_of(&bytes), name, err);
}

static void check_file(struct checking *c, const char *name, const char *wanted)
{
    char hex[SHA256_HEX_SIZE];
    struct err err;
    struct stat st;
    int fd FD_AUTO = openat(c->dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        tell(c, name, true, "not there");
    else if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        tell(c, name, false, "is no regular file");
    else if (fd < 0 || sha256_file(fd, hex) < 0)
        tell(c, name, false, err_text(errno));
    else if (strcmp(hex, wanted) != 0) {
        char *text MEM_AUTO = mem_printf("has sha256 %s, SHA256SUMS says %s", hex, wanted);
        tell(c, name, false, text);
    } else if (check_build(c, name, &err) < 0)
        tell(c, name, false, err.msg);
    else
        tell(c, name, true, "has the sum that SHA256SUMS says");
}

static int check_listed(struct checking *c, struct err *err)
{
    struct span rest = span_of(&c->sums);
    struct sum sum;
    int more;
    while ((more = sums_next(&rest, &sum)) > 0) {
        char *name MEM_AUTO = mem_dup(sum.name.s, sum.name.n);
        check_file(c, name, sum.sha256);
    }
    return more < 0 ? err_set(err, ERR_TOOL, "%s/SHA256SUMS is damaged", c->path) : 0;
}

/* What looks like a part of the release, and isn't in its list. */
static void check_unlisted(struct checking *c)
{
    char hex[SHA256_HEX_SIZE];
    DIR *dir DIR_AUTO = dir_read_again(c->dir);
    for (const char *name; (name = dir_next(dir));)
        if (strncmp(name, "toolbox-", 8) == 0 && !sums_find(span_of(&c->sums), name, hex))
            tell(c, name, false, "isn't in SHA256SUMS");
}

static int run(struct checking *c, struct err *err)
{
    if (c->dir < 0)
        return err_sys(err, ERR_TOOL, errno, "can't open %s", c->path);
    if (read_in(c, "SHA256SUMS", &c->sums) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read %s/SHA256SUMS", c->path);
    if (release_own_open(&c->own, err) < 0)
        return -1;
    check_signature(c);
    if (check_listed(c, err) < 0)
        return -1;
    check_unlisted(c);
    return c->bad;
}

int release_folder_verify(const char *path, const char *key, release_verdict_fn verdict, void *arg,
                          struct err *err)
{
    struct checking c = {.path = path, .key = key, .tell = verdict, .arg = arg, .own = RELEASE_OWN_INIT};
    buf_init(&c.sums, RECORD_MAX);
    c.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = run(&c, err);
    buf_release(&c.sums);
    release_own_close(&c.own);
    io_close(&c.dir);
    return result;
}
