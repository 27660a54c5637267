#include "release_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "release.h"
#include "release_record.h"
#include "self.h"

char *release_file_name(const char *arch)
{
    return mem_printf("toolbox-%s-linux-%s", toolbox_version, arch);
}

/* Appends `size` bytes from `at`. */
static int read_at(const struct release_own *own, size_t at, size_t size, struct buf *out, struct err *err)
{
    if (buf_reserve(out, size) < 0)
        return err_set(err, ERR_TOOL, "%s: a part of it is larger than any file of a release", own->path);
    while (size > 0) {
        ssize_t n = pread(own->fd, out->data + out->len, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, ERR_TOOL, errno, "can't read %s", own->path);
        if (n == 0)
            return err_set(err, ERR_TOOL, "%s is shorter than it was: it is being written to", own->path);
        out->len += (size_t)n;
        at += (size_t)n;
        size -= (size_t)n;
    }
    return 0;
}

/* Where a packed file stands: the sizes say it. 1, 0, or -1 when the lines aren't those of a pack. NULL: the
 * first. */
static int packed_at(struct span lines, const char *name, size_t *at, size_t *size)
{
    struct packed packed;
    size_t next = 0;
    int more, found = 0;
    while ((more = pack_next(&lines, &packed)) > 0) {
        if (!found && (!name || span_is(packed.name, name))) {
            *at = next;
            *size = packed.size;
            found = 1;
        }
        if (__builtin_add_overflow(next, packed.size, &next))
            return -1;
    }
    return more < 0 ? -1 : found;
}

int release_own_packed(const struct release_own *own, const char *name, struct buf *out, struct err *err)
{
    size_t at = 0, size = 0;
    int found = own->pack.s ? packed_at(own->pack, name, &at, &size) : 0;
    if (found < 0)
        return err_set(err, ERR_TOOL, "%s is damaged: the list of the files packed into it can't be read",
                       own->path);
    return found == 0 ? 0 : read_at(own, at, size, out, err) < 0 ? -1 : 1;
}

static int read_own(struct release_own *own, struct err *err)
{
    struct stat st;
    if (fstat(own->fd, &st) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't look at %s", own->path);
    size_t size = (size_t)st.st_size, tail = size < RECORD_MAX ? size : RECORD_MAX;
    if (read_at(own, size - tail, tail, &own->tail, err) < 0)
        return -1;
    own->pack = record_lines(span_of(&own->tail), "pack");
    if (!own->pack.s)
        return read_at(own, 0, size, &own->file, err);
    int found = release_own_packed(own, NULL, &own->file, err);
    return found == 0  ? err_set(err, ERR_TOOL, "%s is damaged: nothing is packed into it", own->path)
           : found < 0 ? -1
                       : 0;
}

int release_own_open(struct release_own *own, struct err *err)
{
    buf_init(&own->file, RELEASE_FILE_MAX);
    buf_init(&own->tail, RECORD_MAX);
    own->path = self_path();
    if (!own->path)
        own->path = mem_strdup("the program's own file");
    own->fd = self_open();
    if (own->fd < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read %s, which is to be taken along", own->path);
    if (read_own(own, err) < 0)
        return -1;
    own->sums = record_lines(span_of(&own->file), "sums");
    if (!own->sums.s)
        return 0;
    char *name MEM_AUTO = release_file_name(os_arch());
    return release_verify(own, name, span_of(&own->file), own->path, err);
}

void release_own_close(struct release_own *own)
{
    io_close(&own->fd);
    free(own->path);
    buf_release(&own->file);
    buf_release(&own->tail);
}

static void program_sum(struct span file, char hex[SHA256_HEX_SIZE])
{
    sha256_hex(file.s, file.n - record_size(file, "sums"), hex);
}

/* For a program without sums: those behind another file are its release's if it stands in them itself. */
static int are_ours(const struct release_own *own, struct span sums, const char *from, struct err *err)
{
    char mine[SHA256_HEX_SIZE], theirs[SHA256_HEX_SIZE];
    char *name MEM_AUTO = release_file_name(os_arch());
    sha256_hex(own->file.data, own->file.len, mine);
    if (!sums_find(sums, name, theirs))
        return err_set(err, ERR_TOOL, "%s is of another release: there is no %s in its sums", from, name);
    if (strcmp(mine, theirs) != 0)
        return err_set(err, ERR_TOOL, "%s is of another build: its sums have %s for %s, this program has %s",
                       from, theirs, name, mine);
    return 0;
}

int release_verify(const struct release_own *own, const char *name, struct span file, const char *from,
                   struct err *err)
{
    struct span sums = record_lines(file, "sums");
    char is[SHA256_HEX_SIZE], wanted[SHA256_HEX_SIZE];
    if (!own->sums.s && sums.s && are_ours(own, sums, from, err) < 0)
        return -1;
    if (!sums_find(own->sums.s ? own->sums : sums, name, wanted))
        return err_set(err, ERR_TOOL, "%s can't be verified: there is no sum for %s", from, name);
    program_sum(file, is);
    if (strcmp(is, wanted) != 0)
        return err_set(
            err, ERR_TOOL,
            "%s isn't %s of this release (build %s): its program has sha256 %s, the release's sums say %s",
            from, name, toolbox_build_id, is, wanted);
    if (own->sums.s && (!sums.s || sums.n != own->sums.n || memcmp(sums.s, own->sums.s, sums.n) != 0))
        return err_set(err, ERR_TOOL,
                       "%s has the right program, but the sums behind it aren't this release's", from);
    return 0;
}
