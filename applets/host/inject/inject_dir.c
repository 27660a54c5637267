/* A mounted root file system: the file is written, read back and, where root can enter it, run once. No
 * server is started in what isn't running. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/inject/inject_steps.h"
#include "dir_read.h"
#include "host/inject/open_in.h"
#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "safe_path.h"
#include "commands/settle/settle.h"

#define RUN_S 10
#define NOT_RUN (-2)

static int open_root(const struct target *t, struct err *err)
{
    int fd = open(t->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : err_sys(err, ERR_TOOL, errno, "cannot open the directory '%s'", t->name);
}

/* ---- what it is ---- */

static const struct {
    unsigned char bits, order, machine;
    const char *arch;
} elfs[] = {
    {2, 1, 0x3e, "amd64"}, {2, 1, 0xb7, "arm64"},   {1, 1, 0x28, "armv7"}, {2, 1, 0xf3, "riscv64"},
    {2, 2, 0x16, "s390x"}, {2, 1, 0x15, "ppc64le"}, {1, 1, 0x03, "i386"},
};

/* By the first of its programs that is there; this machine's where there is none. */
static const char *arch_of(int root)
{
    static const char *const programs[] = {"/bin/sh", "/bin/busybox", "/usr/bin/env", "/sbin/init",
                                           "/bin/bash"};
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        unsigned char head[20];
        int fd FD_AUTO = open_in(root, programs[p], O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0 || read(fd, head, sizeof head) != sizeof head || memcmp(head, "\177ELF", 4) != 0)
            continue;
        unsigned char machine = head[5] == 2 ? head[19] : head[18];
        for (size_t e = 0; e < sizeof elfs / sizeof *elfs; e++)
            if (elfs[e].bits == head[4] && elfs[e].order == head[5] && elfs[e].machine == machine)
                return elfs[e].arch;
    }
    return os_arch();
}

static void describe(struct injection *i, int root)
{
    struct buf text BUF_AUTO = {.max = 1u << 16};
    int fd FD_AUTO = open_in(root, "/etc/os-release", O_RDONLY | O_NONBLOCK, 0);
    char *name MEM_AUTO = fd >= 0 && io_read_all(fd, &text) == 0
                              ? os_release_get(buf_str(&text), text.len, "PRETTY_NAME")
                              : NULL;
    buf_adds(&i->r->found.about, "directory");
    if (name) {
        buf_adds(&i->r->found.about, ", ");
        transport_show(&i->r->found.about, name, strlen(name), 80);
    }
}

static char *directory_for(const struct inject_options *o, int root)
{
    static const char *const parents[] = {"/opt", "/usr/local", "/var/tmp", "/root"};
    for (size_t p = 0; !o->dir && p < sizeof parents / sizeof *parents; p++) {
        int fd FD_AUTO = open_in(root, parents[p], O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0)
            return mem_printf("%s/" SETTLE_DIR, parents[p]);
    }
    return mem_strdup(o->dir ? o->dir : "/" SETTLE_DIR);
}

/* ---- running in it ---- */

/* Runs a file of it by chroot, which holds no program of root's: only what is known to be ours. Its exit
 * status; NOT_RUN where that can't be had. */
static int run_in(int root, int program, char *const *argv, struct buf *out)
{
    if (program < 0)
        return NOT_RUN;
    int ends[2];
    if (geteuid() != 0 || pipe2(ends, O_CLOEXEC) < 0)
        return NOT_RUN;
    pid_t pid = fork();
    if (pid == 0) {
        char *const none[] = {NULL};
        sigset_t empty;
        sigemptyset(&empty);
        sigprocmask(SIG_SETMASK, &empty, NULL);
        alarm(RUN_S);
        int none_fd = open("/dev/null", O_RDWR);
        if (dup2(none_fd, 0) == 0 && dup2(none_fd, 2) == 2 && dup2(ends[1], 1) == 1 && fchdir(root) == 0 &&
            chroot(".") == 0 && chdir("/") == 0)
            fexecve(program, argv, none);
        _exit(127);
    }
    close(ends[1]);
    if (pid > 0)
        io_read_all(ends[0], out);
    close(ends[0]);
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
        return NOT_RUN;
    return WEXITSTATUS(status);
}

/* ---- placing ---- */

/* The file of that name, when it has the very bytes; otherwise -1. */
static int open_same(int dir, const char *name, const struct release_file *file)
{
    char hex[SHA256_HEX_SIZE];
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 &&
        (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111) ||
         (size_t)st.st_size != file->bytes.len || sha256_file(fd, hex) < 0 || strcmp(hex, file->sha256) != 0))
        io_close(&fd);
    return fd;
}

static bool is_same(int dir, const char *name, const struct release_file *file)
{
    int fd FD_AUTO = open_same(dir, name, file);
    return fd >= 0;
}

static int write_file(int dir, const char *name, struct span bytes, mode_t mode)
{
    int fd FD_AUTO = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -1;
    if (fchmod(fd, mode) < 0 || io_write_all(fd, bytes.s, bytes.n) < 0 || fsync(fd) < 0) {
        int failed = errno;
        unlinkat(dir, name, 0);
        return errno = failed, -1;
    }
    return 0;
}

/* As settle's, so that what is placed here can remove itself there. */
static void write_record(struct injection *i, int root, int dir, const char *path, const char *made)
{
    char *name MEM_AUTO = mem_printf(".%s.inject", i->o->name);
    struct buf text BUF_AUTO = BUF_INIT;
    size_t links_made = 0;
    int links FD_AUTO = i->o->links ? safe_path_open(root, i->o->links, SAFE_MAKE, &links_made, NULL) : -1;
    if (*made)
        settle_made(&text, path, made);
    if (links >= 0)
        buf_addf(&text, "links %s\n", i->o->links);
    if (links_made > 0) {
        char *first MEM_AUTO = mem_dup(i->o->links, links_made);
        fchmod(links, 0755);
        settle_made(&text, i->o->links, first);
    }
    if (text.len > 0)
        write_file(dir, name, span_of(&text), 0600); /* where it is there already, it says the same */
}

/* Removes the directories that were made, the topmost of which ends at `made`. */
static void unmake(int root, const char *path, size_t made)
{
    for (size_t n = strlen(path); made > 0 && n >= made;) {
        char *one MEM_AUTO = mem_dup(path, n);
        const char *name;
        int above FD_AUTO = safe_path_above(root, one, &name, NULL);
        if (above < 0 || (unlinkat(above, name, AT_REMOVEDIR) < 0 && errno != ENOENT))
            return;
        n -= strlen(name) + 1;
    }
}

static int place_in(struct injection *i, int root, int dir, const char *path, size_t made, int *program,
                    struct err *err)
{
    snprintf(i->r->placed.state, sizeof i->r->placed.state, "identical");
    if (!is_same(dir, i->o->name, i->choice.file)) {
        snprintf(i->r->placed.state, sizeof i->r->placed.state,
                 io_is_there(dir, i->o->name) ? "replaced" : "placed");
        if (write_file(dir, i->temporary, span_of(&i->choice.file->bytes), 0700) < 0)
            return err_sys(err, ERR_TOOL, errno, "cannot write to %s below %s", path, i->t->name);
        if (renameat(dir, i->temporary, dir, i->o->name) < 0) {
            int failed = errno;
            unlinkat(dir, i->temporary, 0);
            return err_sys(err, ERR_TOOL, failed, "cannot name it %s/%s", path, i->o->name);
        }
        i->r->cost.sent += i->choice.file->bytes.len;
    }
    char *topmost MEM_AUTO = mem_dup(path, made);
    write_record(i, root, dir, path, topmost);
    *program = open_same(dir, i->o->name, i->choice.file);
    return *program >= 0 ? 0 : err_set(err, ERR_TOOL, "what was read back differs");
}

static bool is_empty(int dir)
{
    DIR *names DIR_AUTO = dir_read_again(dir);
    return names && !dir_next(names);
}

/* A volume that is there for us alone: mounted where we are to go, ours and empty, but open to everybody, as
 * a kubelet makes each of them. It becomes ours alone; what somebody was quicker to put there is seen behind
 * that, and then it stays as it was. */
static void take_volume(int root, const char *path)
{
    const char *name;
    struct stat above, here;
    int parent FD_AUTO = safe_path_above(root, path, &name, NULL);
    int fd FD_AUTO = parent < 0 ? -1 : io_open_dir(parent, name);
    if (fd < 0 || fstat(parent, &above) < 0 || fstat(fd, &here) < 0 || here.st_dev == above.st_dev ||
        here.st_uid != geteuid() || (here.st_mode & (S_ISVTX | S_IWOTH)) != S_IWOTH || !is_empty(fd))
        return;
    if (fchmod(fd, here.st_mode & 0777 & ~(mode_t)(S_IWGRP | S_IWOTH)) == 0 && !is_empty(fd))
        fchmod(fd, here.st_mode & 07777);
}

static int place(struct injection *i, int root, const char *path, int *program, struct err *err)
{
    size_t made = 0;
    take_volume(root, path);
    int dir FD_AUTO = safe_path_open(root, path, SAFE_MAKE | SAFE_NO_LINK | SAFE_ALONE, &made, err);
    int result = dir >= 0 ? place_in(i, root, dir, path, made, program, err)
                 : errno == EPERM
                     ? err_wrap(err, "below %s somebody else could change what is placed", i->t->name)
                     : err_wrap(err, "cannot use a directory below %s", i->t->name);
    if (result < 0)
        unmake(root, path, made);
    return result;
}

/* Only the kernel's word that it can't be run is taken for none; an answer has to be right. */
static int prove(struct injection *i, int root, int program, struct err *err)
{
    char probe[] = "probe", json[] = "--json", install[] = "--install", symbolic[] = "-s";
    char *links MEM_AUTO = mem_strdup(i->o->links ? i->o->links : "");
    char *const ask[] = {i->r->placed.path.data, probe, json, NULL};
    char *const link[] = {i->r->placed.path.data, install, symbolic, links, NULL};
    struct buf answer BUF_AUTO = {.max = 1u << 20};
    struct buf sum BUF_AUTO = BUF_INIT;
    struct buf build BUF_AUTO = BUF_INIT;
    struct buf nothing BUF_AUTO = {.max = 4096};
    int status = strcmp(i->choice.arch, os_arch()) == 0 ? run_in(root, program, ask, &answer) : NOT_RUN;
    buf_adds(&i->r->server,
             status == NOT_RUN ? "not run there: proved by its sum alone" : "not started in a directory");
    if (status == NOT_RUN && i->o->links)
        return err_set(err, ERR_TOOL, "links need the program to be run there, by root on this processor");
    if (status == NOT_RUN)
        return 0;
    while (answer.len > 0 && answer.data[answer.len - 1] == '\n')
        buf_truncate(&answer, answer.len - 1);
    /* Without /proc it can't read itself, and has its build to name. */
    if (json_check(span_of(&answer), NULL) == 0) {
        recon_member(span_of(&answer), "sha256", &sum);
        recon_member(span_of(&answer), "build", &build);
    }
    if (status != 0 || strcmp(sum.len > 0 ? sum.data : buf_str(&build),
                              sum.len > 0 ? i->choice.file->sha256 : i->choice.file->build) != 0)
        return err_set(err, ERR_TOOL, "what runs there says that it is '%.64s', and should say %s",
                       sum.len > 0 ? sum.data : buf_str(&build), i->choice.file->sha256);
    if (i->o->links && run_in(root, program, link, &nothing) != 0)
        return err_set(err, ERR_TOOL, "links can't be made in %s", i->o->links);
    return 0;
}

int inject_dir_eject(const struct inject_options *o, const struct target *t, enum inject_step *failed,
                     struct err *err)
{
    char settle[] = "settle", at[] = "--at", removes[] = "--remove";
    struct buf nothing BUF_AUTO = {.max = 4096};
    *failed = STEP_TARGET;
    int root FD_AUTO = open_root(t, err);
    if (root < 0)
        return -1;
    *failed = STEP_PLACING;
    char *path MEM_AUTO = directory_for(o, root);
    char *program MEM_AUTO = mem_printf("%s/%s", path, o->name);
    char *const argv[] = {program, settle, at, program, removes, NULL};
    struct release_file own RELEASE_FILE_AUTO = RELEASE_FILE_INIT;
    int dir FD_AUTO = safe_path_open(root, path, SAFE_NO_LINK | SAFE_ALONE, NULL, err);
    if (dir < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : err_wrap(err, "cannot look for %s", program);
    if (!io_is_there(dir, o->name))
        return errno == ENOENT ? 1 : err_sys(err, ERR_TOOL, errno, "cannot look for %s", program);
    int same FD_AUTO = release_pick("linux", os_arch(), &own, NULL) == 0 ? open_same(dir, o->name, &own) : -1;
    if (run_in(root, same, argv, &nothing) == 0)
        return 0;
    char *record MEM_AUTO = settle_record_path(program);
    unlinkat(dir, strrchr(record, '/') + 1, 0);
    if (unlinkat(dir, o->name, 0) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot remove %s", program);
    const char *name;
    int above FD_AUTO = safe_path_above(root, path, &name, NULL);
    if (!o->dir && above >= 0)
        unlinkat(above, name, AT_REMOVEDIR);
    return 0;
}

int inject_dir(struct injection *i)
{
    struct err err;
    long long began = now_us();
    int root FD_AUTO = open_root(i->t, &err);
    if (root < 0)
        return inject_fail(i->r, STEP_TARGET, INJECT_DIR_ADVICE, &err);
    describe(i, root);
    i->r->cost.us[STEP_RECON] = now_us() - began;
    began = now_us();
    if (inject_choose(i, arch_of(root)) < 0)
        return -1;
    char *path MEM_AUTO = directory_for(i->o, root);
    int program FD_AUTO = -1;
    if (place(i, root, path, &program, &err) < 0)
        return inject_fail(i->r, STEP_PLACING, "name a directory that can be written to with --dir", &err);
    buf_addf(&i->r->placed.path, "%s/%s", path, i->o->name);
    i->r->cost.us[STEP_PLACING] = now_us() - began;
    began = now_us();
    if (prove(i, root, program, &err) < 0) {
        if (strcmp(i->r->placed.state, "identical") != 0)
            inject_dir_eject(i->o, i->t, &(enum inject_step){0}, NULL);
        return inject_fail(i->r, STEP_PROOF, "nothing that is not of this very build is used", &err);
    }
    i->r->cost.us[STEP_PROOF] = now_us() - began;
    i->r->ok = true;
    return 0;
}
