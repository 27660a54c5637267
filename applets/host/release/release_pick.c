#include "release.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "release_own.h"

void release_file_end(struct release_file *file)
{
    buf_release(&file->bytes);
    free(file->path);
    file->path = NULL;
}

/* Reads DIR/name. 1; 0: there is none, and *why says so; -1: there is something that can't be read. */
static int read_from(const char *dir, const char *name, struct release_file *file, struct err *err)
{
    file->path = mem_printf("%s/%s", dir, name);
    struct stat st;
    int fd FD_AUTO = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        free(file->path);
        file->path = NULL;
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read %s", file->path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_TOOL, "%s is no regular file", file->path);
    if (io_read_all(fd, &file->bytes) < 0)
        return err_sys(err, ERR_TOOL, errno, "can't read %s", file->path);
    return 1;
}

/* The folder of a path; NULL when it has none. free() it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? mem_dup(path, slash > path ? (size_t)(slash - path) : 1) : NULL;
}

static int not_here(const struct release_own *own, const char *name, const char *variable, struct err *err)
{
    char *beside MEM_AUTO = folder_of(own->path);
    return err_set(
        err, ERR_TOOL,
        "no %s here: it isn't packed into %s, not in $" RELEASE_DIR_VARIABLE " (%s), and not in %s; "
        "set $" RELEASE_DIR_VARIABLE
        " to the release's folder, or take the self-contained program of the release",
        name, own->path, variable ? variable : "not set", beside ? beside : "the program's folder");
}

static int find(const struct release_own *own, const char *name, struct release_file *file, struct err *err)
{
    int found = release_own_packed(own, name, &file->bytes, err);
    if (found != 0) {
        file->path = mem_strdup(own->path);
        file->packed = true;
        return found;
    }
    const char *variable = getenv(RELEASE_DIR_VARIABLE);
    if (variable && *variable && (found = read_from(variable, name, file, err)) != 0)
        return found;
    char *beside MEM_AUTO = folder_of(own->path);
    if (beside && (found = read_from(beside, name, file, err)) != 0)
        return found;
    return not_here(own, name, variable && *variable ? variable : NULL, err);
}

int release_pick(const char *os, const char *arch, struct release_file *file, struct err *err)
{
    struct release_own own RELEASE_OWN_AUTO = RELEASE_OWN_INIT;
    if (strcmp(os, "linux") != 0)
        return err_set(err, ERR_TOOL, "there is no toolbox for the operating system '%.100s', only for linux",
                       os);
    if (!*arch || strspn(arch, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(arch) || strlen(arch) > 16)
        return err_set(err, ERR_TOOL, "'%.100s' is no architecture", arch);
    if (release_own_open(&own, err) < 0)
        return -1;
    if (strcmp(arch, os_arch()) == 0) {
        file->bytes = own.file;
        file->path = mem_strdup(own.path);
        file->packed = own.pack.s != NULL;
        own.file = (struct buf)BUF_INIT;
        memcpy(file->build, toolbox_build_id, BUILD_ID_SIZE);
    } else {
        char *name MEM_AUTO = release_file_name(arch);
        if (find(&own, name, file, err) < 0 ||
            release_verify(&own, name, span_of(&file->bytes), file->path, err) < 0)
            return -1;
        version_build_id(arch, file->build);
    }
    sha256_hex(file->bytes.data, file->bytes.len, file->sha256);
    return 0;
}
