#include "release_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fetch_file.h"
#include "fetch_url.h"
#include "io.h"
#include "mem.h"
#include "release.h"
#include "release_own.h"
#include "release_record.h"
#include "signature.h"

struct fetching {
    const struct release_fetch *want;
    int dir;
    bool is_signed;
    struct buf sums, signature;
    struct release_own own;
    size_t placed;
};

/* The address of a file of the release: what is given may name the folder or a file in it, and have a query.
 */
static char *address_of(const char *url, const char *name)
{
    size_t n = strcspn(url, "?#"), folder = n;
    const char *query = url + n;
    while (folder > 0 && url[folder - 1] != '/')
        folder--;
    const char *last = url + folder;
    if (strncmp(last, "toolbox-", 8) != 0 && strncmp(last, "SHA256SUMS", 10) != 0)
        folder = n; /* a folder without its final slash */
    bool slash = folder > 0 && url[folder - 1] == '/';
    return mem_printf("%.*s%s%s%.*s", (int)folder, url, slash ? "" : "/", name, (int)strcspn(query, "#"),
                      query);
}

/* ---- what the release consists of ---- */

static int fetch_sums(struct fetching *f, struct err *err)
{
    const struct release_fetch *want = f->want;
    char *sums MEM_AUTO = address_of(want->url, "SHA256SUMS"),
               *signature MEM_AUTO = address_of(want->url, "SHA256SUMS.sig");
    int found = fetch_text(&want->options, sums, &f->sums, err);
    if (found == 0)
        return err_set(err, ERR_TOOL, "there is no release at %s: it has no SHA256SUMS", want->url);
    f->is_signed = want->key && *want->key;
    if (found < 0 || !f->is_signed)
        return found < 0 ? -1 : 0;
    found = fetch_text(&want->options, signature, &f->signature, err);
    if (found == 0)
        return err_set(err, ERR_TOOL,
                       "the release at %s isn't signed (no SHA256SUMS.sig), and a signature is wanted",
                       want->url);
    if (found < 0)
        return -1;
    if (signature_verify(want->key, f->sums.data, f->sums.len, f->signature.data, f->signature.len, err) < 0)
        return err_wrap(err, "%s is refused", sums);
    return 0;
}

static bool has_end(struct span name, const char *end)
{
    size_t n = strlen(end);
    return name.n >= n && memcmp(name.s + name.n - n, end, n) == 0;
}

/* The architecture of a program's name, toolbox-VERSION-linux-ARCH; n == 0: it is no such name. */
static struct span arch_of(struct span name)
{
    static const char before[] = "-linux-";
    const char *at = memmem(name.s, name.n, before, sizeof before - 1);
    struct span arch = {"", 0};
    if (name.n < 8 || memcmp(name.s, "toolbox-", 8) != 0 || !at)
        return arch;
    arch.s = at + sizeof before - 1;
    arch.n = (size_t)(name.s + name.n - arch.s);
    return memchr(arch.s, '-', arch.n) ? (struct span){"", 0} : arch; /* ARCH-all: the same once more */
}

static bool is_wanted(const struct fetching *f, struct span name)
{
    struct span arch = arch_of(name);
    if (arch.n ==
        0) /* those that can be verified only by the signature; what people install is not for here */
        return f->is_signed && (name.n < 7 || memcmp(name.s, "toolbox", 7) != 0 || has_end(name, ".json"));
    for (size_t i = 0; i < f->want->n_arches; i++)
        if (span_is(arch, f->want->arches[i]))
            return true;
    return f->want->n_arches == 0;
}

/* ---- one file ---- */

static int read_part(int fd, struct buf *out, struct err *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0 || io_read_all(fd, out) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read what was fetched");
    return 0;
}

static int verify_part(struct fetching *f, const struct fetch_part *part, const char *name,
                       const struct sum *sum, const char *address, struct err *err)
{
    char hex[SHA256_HEX_SIZE];
    struct buf bytes BUF_AUTO = {.max = RELEASE_FILE_MAX};
    if (lseek(part->fd, 0, SEEK_SET) < 0 || sha256_file(part->fd, hex) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read what was fetched");
    if (strcmp(hex, sum->sha256) != 0)
        return err_set(err, ERR_TOOL, "%s is refused: it has sha256 %s, SHA256SUMS says %s", address, hex,
                       sum->sha256);
    if (f->is_signed)
        return 0;
    if (read_part(part->fd, &bytes, err) < 0)
        return -1;
    return release_verify(&f->own, name, span_of(&bytes), address, err);
}

static bool is_there(const struct fetching *f, const char *name, const struct sum *sum)
{
    char hex[SHA256_HEX_SIZE];
    int fd FD_AUTO = openat(f->dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    return fd >= 0 && sha256_file(fd, hex) == 0 && strcmp(hex, sum->sha256) == 0;
}

static int fetch_one(struct fetching *f, const char *name, const struct sum *sum, struct err *err)
{
    struct fetch_part part FETCH_PART_AUTO = FETCH_PART_INIT;
    char *address MEM_AUTO = address_of(f->want->url, name);
    bool program = arch_of(sum->name).n > 0, resumed;
    if (f->is_signed && is_there(f, name, sum)) {
        printf("%s is there\n", name);
        return 0;
    }
    if (fetch_part_open(&part, f->dir, name, err) < 0)
        return -1;
    part.shown = name;
    int result = fetch_part_fill(&part, &f->want->options, address, RELEASE_FILE_MAX, &resumed, err);
    if (result < 0)
        return -1;
    result = verify_part(f, &part, name, sum, address, err);
    if (result < 0 && resumed) { /* its start may be of another file: once more, whole */
        if (ftruncate(part.fd, 0) < 0 ||
            fetch_part_fill(&part, &f->want->options, address, RELEASE_FILE_MAX, &resumed, err) < 0)
            return -1;
        result = verify_part(f, &part, name, sum, address, err);
    }
    if (result == 0)
        result = fetch_part_place(&part, name, program ? 0755 : 0644, err);
    if (result < 0)
        fetch_part_discard(&part);
    else
        printf("%s fetched and verified, sha256 %s\n", name, sum->sha256);
    return result;
}

/* ---- all of it ---- */

static int fetch_all(struct fetching *f, struct err *err)
{
    struct span rest = span_of(&f->sums);
    struct sum sum;
    int more;
    while ((more = sums_next(&rest, &sum)) > 0) {
        char *name MEM_AUTO = mem_dup(sum.name.s, sum.name.n);
        if (!is_wanted(f, sum.name))
            continue;
        if (fetch_one(f, name, &sum, err) < 0)
            return -1;
        fflush(stdout);
        f->placed += arch_of(sum.name).n > 0;
    }
    return more < 0 ? err_set(err, ERR_TOOL, "the release's SHA256SUMS is damaged") : 0;
}

/* Every architecture that was asked for has to be in the list, before anything is fetched. */
static int check_arches(const struct fetching *f, struct err *err)
{
    for (size_t i = 0; i < f->want->n_arches; i++) {
        struct span rest = span_of(&f->sums);
        struct sum sum;
        bool found = false;
        while (!found && sums_next(&rest, &sum) > 0)
            found = span_is(arch_of(sum.name), f->want->arches[i]);
        if (!found)
            return err_set(err, ERR_TOOL, "the release at %s has no program for '%s'", f->want->url,
                           f->want->arches[i]);
    }
    return 0;
}

static int place_text(const struct fetching *f, const char *name, const struct buf *text, struct err *err)
{
    struct fetch_part part FETCH_PART_AUTO = FETCH_PART_INIT;
    if (fetch_part_open(&part, f->dir, name, err) < 0)
        return -1;
    if (ftruncate(part.fd, 0) < 0 || pwrite(part.fd, text->data, text->len, 0) != (ssize_t)text->len) {
        err_sys(err, ERR_TOOL, errno, "can't write %s", name);
        fetch_part_discard(&part);
        return -1;
    }
    return fetch_part_place(&part, name, 0644, err);
}

static int run(struct fetching *f, struct err *err)
{
    struct fetch_url url = {0};
    int parsed = fetch_url_parse(f->want->url, &url, err);
    fetch_url_release(&url);
    if (parsed < 0)
        return -1;
    if (release_own_open(&f->own, err) < 0 || fetch_sums(f, err) < 0 || check_arches(f, err) < 0)
        return -1;
    if (mkdir(f->want->dir, 0755) < 0 && errno != EEXIST)
        return err_sys(err, ERR_TOOL, errno, "can't make %s", f->want->dir);
    f->dir = open(f->want->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir < 0)
        return err_sys(err, ERR_TOOL, errno, "can't open %s", f->want->dir);
    if (fetch_all(f, err) < 0)
        return -1;
    if (f->placed == 0)
        return err_set(err, ERR_TOOL, "there is no program in the release at %s", f->want->url);
    if (f->is_signed && (place_text(f, "SHA256SUMS", &f->sums, err) < 0 ||
                         place_text(f, "SHA256SUMS.sig", &f->signature, err) < 0))
        return -1;
    return 0;
}

int release_fetch(const struct release_fetch *want, struct err *err)
{
    struct fetching f = {.want = want, .dir = -1, .own = RELEASE_OWN_INIT};
    buf_init(&f.sums, RECORD_MAX);
    buf_init(&f.signature, 1024);
    int result = run(&f, err);
    buf_release(&f.sums);
    buf_release(&f.signature);
    release_own_close(&f.own);
    io_close(&f.dir);
    return result;
}
