#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "ipc.h"
#include "mem.h"
#include "safe_path.h"
#include "self.h"

#define OWNER "program"
#define TEMPORARY "program-"
#define RECORD_LONGEST 8192 /* bytes */
#define SUM_DIGITS (SHA256_HEX_SIZE - 1)

void program_release(struct program *p)
{
    free(p->path);
    p->path = NULL;
}

/* With a dot in front: nobody's socket, and removed with those of its build. */
static bool record_name(char name[1 + IPC_NAME_MAX], const char *owner, const char *build)
{
    name[0] = '.';
    return ipc_name_in(name + 1, owner, build) == 0;
}

int program_record(int dirfd, const char *build, const char *sha256, const char *path)
{
    char name[1 + IPC_NAME_MAX], temporary[1 + IPC_NAME_MAX], owner[32];
    struct buf line BUF_AUTO = BUF_INIT;
    snprintf(owner, sizeof owner, TEMPORARY "%ld", (long)getpid());
    if (!record_name(name, OWNER, build) || !record_name(temporary, owner, build))
        return -1;
    unlinkat(dirfd, temporary, 0);
    int fd FD_AUTO = openat(dirfd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    buf_addf(&line, "%s %s\n", sha256, path);
    if (fd >= 0 && io_write_all(fd, line.data, line.len) == 0 && renameat(dirfd, temporary, dirfd, name) == 0)
        return 0;
    int failed = errno;
    if (fd >= 0)
        unlinkat(dirfd, temporary, 0);
    errno = failed;
    return -1;
}

int program_record_own(int dirfd, const char *path)
{
    char sha256[SHA256_HEX_SIZE];
    int fd FD_AUTO = self_open();
    return fd < 0 || sha256_file(fd, sha256) < 0 ? -1 : program_record(dirfd, toolbox_build_id, sha256, path);
}

bool program_read(struct program *p, int dirfd, const char *build)
{
    char name[1 + IPC_NAME_MAX];
    struct buf text BUF_AUTO = {.max = RECORD_LONGEST};
    struct stat st;
    int fd FD_AUTO = record_name(name, OWNER, build)
                         ? openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                         : -1;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        io_read_all(fd, &text) < 0 || text.len < SUM_DIGITS + 4 || text.data[text.len - 1] != '\n')
        return false;
    text.data[text.len - 1] = '\0';
    const char *path = text.data + SUM_DIGITS + 1;
    if (strspn(text.data, "0123456789abcdef") != SUM_DIGITS || path[-1] != ' ' || *path != '/' ||
        strlen(path) != text.len - SUM_DIGITS - 2)
        return false;
    snprintf(p->sha256, sizeof p->sha256, "%s", text.data);
    p->path = mem_strdup(path);
    return true;
}

char *program_aside(const char *path, const char *build)
{
    const char *slash = strrchr(path, '/'), *name = slash + 1, *end = strrchr(name, '.');
    if (*name == '.' && end > name && strcmp(end + 1, build) == 0)
        return mem_strdup(path);
    return mem_printf("%.*s/.%s.%s", (int)(slash - path), path, name, build);
}

/* NULL: it is the one; otherwise what is wrong with it. */
static const char *fault_of(int fd, const char *sha256)
{
    struct stat st;
    char is[SHA256_HEX_SIZE];
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_text(errno);
    if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0))
        return "is no file of this user";
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return "can be written to by others";
    if (sha256_file(fd, is) < 0)
        return err_text(errno);
    return strcmp(is, sha256) == 0 ? NULL : "is another program by now";
}

int program_open_path(const char *path, const char *sha256, struct err *err)
{
    const char *name;
    int above FD_AUTO = safe_path_above(-1, path, &name, err);
    if (above < 0)
        return -1;
    int fd = openat(above, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const char *fault = fault_of(fd, sha256);
    if (!fault)
        return fd;
    err_set(err, ERR_TOOL, "%s: %s", path, fault);
    io_close(&fd);
    return -1;
}

int program_open(int dirfd, const char *build, struct err *err)
{
    struct program p PROGRAM_AUTO = PROGRAM_INIT;
    struct err first, second;
    if (!program_read(&p, dirfd, build))
        return err_set(err, ERR_TOOL, "nothing says which file is the program of build %s", build);
    char *aside MEM_AUTO = program_aside(p.path, build);
    int fd = program_open_path(aside, p.sha256, &first);
    if (fd < 0)
        fd = program_open_path(p.path, p.sha256, &second);
    return fd >= 0 ? fd
                   : err_set(err, ERR_TOOL, "the program of build %s is gone (%s; %s)", build, first.msg,
                             second.msg);
}

static int take_input(const char *input, size_t n)
{
    int fd FD_AUTO = memfd_create("request", MFD_CLOEXEC);
    if (fd < 0 || io_write_all(fd, input, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return -1;
    return dup2(fd, STDIN_FILENO) < 0 ? -1 : 0;
}

int program_exec(int fd, char *const *argv, const char *input, size_t n)
{
    if (input && take_input(input, n) < 0)
        return -1;
    return fexecve(fd, argv, environ);
}
