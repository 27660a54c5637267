/* The system around: kernel, distribution, C library, container, shells. Read from files; nothing is
 * executed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dir_read.h"
#include "io.h"
#include "mem.h"
#include "probe_controller.h"

#define LINKS_MAX 8
#define TEXT_MAX 65536

/* What can be read of a small file into a fresh buffer; false when that is nothing. */
static bool read_text(int root, const char *path, struct buf *text)
{
    buf_init(text, TEXT_MAX);
    io_read_file(root, path + 1, text);
    return text->len > 0;
}

/* ---- distribution ---- */

static void collect_distribution(struct probe_platform *s, int root)
{
    struct buf text BUF_AUTO;
    if (!read_text(root, "/etc/os-release", &text)) {
        buf_release(&text);
        read_text(root, "/usr/lib/os-release", &text);
    }
    s->id = os_release_get(buf_str(&text), text.len, "ID");
    s->version = os_release_get(buf_str(&text), text.len, "VERSION_ID");
    s->name = os_release_get(buf_str(&text), text.len, "PRETTY_NAME");
    if (!s->name)
        s->name = os_release_get(buf_str(&text), text.len, "NAME");
}

/* ---- C library ---- */

static int open_file(int root, const char *path)
{
    return openat(root, path + 1, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The loader that a program asks for; false when it needs none or can't be read. */
static bool loader_of_program(int root, const char *program, char loader[PATH_MAX])
{
    unsigned char head[4096];
    size_t offset, size;
    int fd FD_AUTO = open_file(root, program);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    if (n <= 0 || !elf_interpreter(head, (size_t)n, &offset, &size) || size > PATH_MAX)
        return false;
    return pread(fd, loader, size, (off_t)offset) == (ssize_t)size && loader[0] == '/' &&
           loader[size - 1] == '\0';
}

/* The loader of that libc, NULL: of any, with the first name of those in a directory, for an order that is
 * always the same. */
static bool loader_in_directory(int root, const char *directory, const char *wanted, char loader[PATH_MAX])
{
    DIR *dir DIR_AUTO = dir_read(openat(root, directory + 1, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    char first[NAME_MAX + 1] = "";
    for (const char *name; (name = dir_next(dir));) {
        const char *libc = libc_of_loader(name);
        if (libc && (!wanted || strcmp(libc, wanted) == 0) && (!*first || strcmp(name, first) < 0))
            snprintf(first, sizeof first, "%s", name);
    }
    return *first && snprintf(loader, PATH_MAX, "%s/%s", directory, first) < PATH_MAX;
}

static bool loader_in_directories(int root, const char *wanted, char loader[PATH_MAX])
{
    static const char *const directories[] = {"/lib64", "/lib", "/usr/lib64", "/usr/lib", "/system/bin"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (loader_in_directory(root, directories[i], wanted, loader))
            return true;
    return false;
}

/* What the programs ask for; on Alpine and without a shell musl's goes first, as a package (gcompat) brings a
 * loader of glibc's name there. */
static bool find_loader(int root, char loader[PATH_MAX])
{
    static const char *const programs[] = {"/bin/sh", "/bin/busybox", "/usr/bin/env", "/system/bin/sh"};
    if (faccessat(root, "etc/alpine-release", F_OK, 0) == 0 && loader_in_directories(root, "musl", loader))
        return true;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (loader_of_program(root, programs[i], loader))
            return true;
    return loader_in_directories(root, "musl", loader) || loader_in_directories(root, NULL, loader);
}

/* Follows the links of a path's last component; without /proc nobody else tells where they end. */
static void follow(int root, char path[PATH_MAX])
{
    for (int hop = 0; hop < LINKS_MAX; hop++) {
        char target[PATH_MAX], next[PATH_MAX];
        ssize_t n = readlinkat(root, path + 1, target, sizeof target - 1);
        if (n <= 0)
            return;
        target[n] = '\0';
        int directory = (int)(strrchr(path, '/') - path) + 1;
        int len = *target == '/' ? snprintf(next, sizeof next, "%s", target)
                                 : snprintf(next, sizeof next, "%.*s%s", directory, path, target);
        if (len >= (int)sizeof next)
            return;
        memcpy(path, next, (size_t)len + 1);
    }
}

typedef bool (*version_fn)(const char *bytes, size_t n, char version[LIBC_VERSION_SIZE]);

static bool scan(int root, const char *path, version_fn find, char version[LIBC_VERSION_SIZE])
{
    enum { STEP = 32768, STEPS = 256 }; /* 8 MB; a libc has 2 */
    char piece[LIBC_TEXT_MAX + STEP];
    size_t kept = 0;
    int fd FD_AUTO = open_file(root, path);
    for (int i = 0; i < STEPS; i++) {
        ssize_t n = read(fd, piece + kept, STEP);
        if (n <= 0)
            return false;
        size_t len = kept + (size_t)n;
        if (find(piece, len, version))
            return true;
        kept = len < LIBC_TEXT_MAX ? len : LIBC_TEXT_MAX;
        memmove(piece, piece + len - kept, kept);
    }
    return false;
}

/* glibc's loader says it since 2.33, and has it in its file's name before; where that was lost in copying,
 * the library beside it says it. musl's loader is the library. */
static void collect_libc(struct probe_platform *s, int root)
{
    char path[PATH_MAX];
    s->libc = root < 0 ? "unknown" : "none";
    if (!find_loader(root, path))
        return;
    s->libc = libc_of_loader(path);
    follow(root, path);
    if (!s->libc)
        s->libc = libc_of_loader(path);
    if (!s->libc) {
        s->libc = "unknown";
    } else if (strcmp(s->libc, "musl") == 0) {
        scan(root, path, musl_version, s->libc_version);
    } else if (!libc_version_in_name(path, s->libc_version) && strcmp(s->libc, "glibc") == 0 &&
               !scan(root, path, glibc_version, s->libc_version)) {
        char library[PATH_MAX];
        int directory = (int)(strrchr(path, '/') - path) + 1;
        if (snprintf(library, sizeof library, "%.*slibc.so.6", directory, path) < (int)sizeof library)
            scan(root, library, glibc_version, s->libc_version);
    }
}

/* ---- container ---- */

/* The variable `container` that a manager gives to process 1, whose environment only root may read. */
static char *container_of_init(int root)
{
    static const char key[] = "container=";
    struct buf text BUF_AUTO;
    read_text(root, "/proc/1/environ", &text);
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
        if (strncmp(text.data + at, key, sizeof key - 1) == 0)
            return mem_strdup(text.data + at + sizeof key - 1);
    return NULL;
}

/* A kernel of its own, whatever has started the container. Newer ones have it in the release; all of them say
 * that they were built at the same moment. */
static bool is_gvisor(const struct utsname *kernel)
{
    return strstr(kernel->release, "gvisor") ||
           strcmp(kernel->version, "#1 SMP Sun Jan 10 15:06:54 PST 2016") == 0;
}

static char *container_told(int root)
{
    static const struct {
        const char *path;
        const char *kind;
    } marks[] = {{"/run/.containerenv", "podman"}, {"/.dockerenv", "docker"}};
    const char *own = getenv("container");
    if (own && *own)
        return mem_strdup(own);
    struct buf text BUF_AUTO;
    if (read_text(root, "/run/systemd/container", &text))
        return mem_dup(text.data, strcspn(text.data, "\r\n"));
    if (getenv("KUBERNETES_SERVICE_HOST"))
        return mem_strdup("kubernetes");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (faccessat(root, marks[i].path + 1, F_OK, 0) == 0)
            return mem_strdup(marks[i].kind);
    return container_of_init(root);
}

/* ---- shells ---- */

static bool is_program(int root, const char *path, struct stat *st)
{
    return fstatat(root, path + 1, st, 0) == 0 && S_ISREG(st->st_mode) &&
           faccessat(root, path + 1, X_OK, 0) == 0;
}

/* /usr/bin/bash is not reported beside /bin/bash where both are the same file. */
static bool is_known(const struct probe_platform *s, int root, const char *path, const struct stat *st)
{
    for (size_t i = 0; i < s->n_shells; i++) {
        struct stat other;
        if (strcmp(s->shells[i], path) == 0)
            return true;
        if (strcmp(strrchr(s->shells[i], '/'), strrchr(path, '/')) == 0 &&
            fstatat(root, s->shells[i] + 1, &other, 0) == 0 && other.st_dev == st->st_dev &&
            other.st_ino == st->st_ino)
            return true;
    }
    return false;
}

static void add_shell(struct probe_platform *s, int root, const char *path)
{
    struct stat st;
    if (s->n_shells < PROBE_SHELLS_MAX && is_program(root, path, &st) && !is_known(s, root, path, &st))
        s->shells[s->n_shells++] = mem_strdup(path);
}

static void collect_shells(struct probe_platform *s, int root)
{
    static const char *const usual[] = {"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
                                        "/bin/sh",   "/usr/bin/sh",   "/bin/ash",
                                        "/bin/dash", "/bin/zsh",      "/bin/ksh"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add_shell(s, root, usual[i]);
    struct buf text BUF_AUTO;
    read_text(root, "/etc/shells", &text);
    for (char *at = text.data, *end; at && *at; at = end) {
        size_t len = strcspn(at, "\r\n");
        end = at + len + (at[len] != '\0');
        at[len] = '\0';
        if (*at == '/')
            add_shell(s, root, at);
    }
}

void probe_platform(struct probe_platform *s, int root)
{
    *s = (struct probe_platform){0};
    uname(&s->kernel);
    collect_distribution(s, root);
    collect_libc(s, root);
    s->container = is_gvisor(&s->kernel) ? mem_strdup("gvisor") : container_told(root);
    collect_shells(s, root);
}

void probe_platform_release(struct probe_platform *s)
{
    free(s->id);
    free(s->version);
    free(s->name);
    free(s->container);
    for (size_t i = 0; i < s->n_shells; i++)
        free(s->shells[i]);
}
