#include "settle_others.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "dir_read.h"
#include "io.h"
#include "mem.h"
#include "program.h"
#include "commands/server/other_builds.h"
#include "commands/server/server.h"

#define RUN_MS 10000

static char program_name[] = "toolbox";

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* ---- which build a file is ---- */

#define BUILD_OPEN "(build "

/* As "toolbox VERSION (build ID)". For those that have not written down who they are. */
static bool ask_build(int program, char build[BUILD_ID_SIZE])
{
    char option[] = "--version", *const argv[] = {program_name, option, NULL};
    struct buf text BUF_AUTO = BUF_INIT;
    if (other_build_run(program, argv, (struct span){0}, RUN_MS, &text) != 0)
        return false;
    const char *id = strstr(buf_str(&text), BUILD_OPEN);
    if (!id || strspn(id += strlen(BUILD_OPEN), "0123456789abcdef") != BUILD_ID_SIZE - 1)
        return false;
    snprintf(build, BUILD_ID_SIZE, "%s", id);
    return true;
}

static const struct other_build *build_with_sum(const struct other_builds *o, const char *sha256)
{
    for (size_t i = 0; i < o->n; i++) {
        struct program p PROGRAM_AUTO = PROGRAM_INIT;
        if (program_read(&p, o->list[i].dirfd, o->list[i].build) && strcmp(p.sha256, sha256) == 0)
            return &o->list[i];
    }
    return NULL;
}

static const struct other_build *build_named(const struct other_builds *o, const char *build)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->list[i].build, build) == 0)
            return &o->list[i];
    return NULL;
}

/* The build of the program at `path`, where anything of it lives. */
static const struct other_build *build_of(const struct other_builds *o, int dir, const char *path)
{
    char sha256[SHA256_HEX_SIZE], build[BUILD_ID_SIZE];
    struct stat st;
    int fd FD_AUTO = openat(dir, base_name(path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & (S_IWGRP | S_IWOTH)) || sha256_file(fd, sha256) < 0)
        return NULL;
    const struct other_build *b = build_with_sum(o, sha256);
    if (b || !ask_build(fd, build) || !(b = build_named(o, build)))
        return b;
    program_record(b->dirfd, b->build, sha256, path);
    return b;
}

int settle_keep_other(int dir, const char *path, char **aside, struct err *err)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    const char *name = base_name(path);
    *aside = NULL;
    other_builds_find(&others);
    const struct other_build *b = others.n > 0 ? build_of(&others, dir, path) : NULL;
    if (!b)
        return 0;
    char *to MEM_AUTO = program_aside(path, b->build);
    if ((unlinkat(dir, base_name(to), 0) < 0 && errno != ENOENT) ||
        (linkat(dir, name, dir, base_name(to), 0) < 0 && renameat(dir, name, dir, base_name(to)) < 0))
        return err_sys(err, ERR_TOOL, errno,
                       "cannot keep the program of build %s, which has sessions or jobs, as %s", b->build,
                       to);
    *aside = mem_strdup(base_name(to));
    return 0;
}

/* ---- those that were set aside ---- */

/* Calls fn for each file DIR/.NAME.BUILD of ours, with its name. */
static void each_aside(int dir, const char *path, void (*fn)(void *arg, const char *file, const char *build),
                       void *arg)
{
    char *prefix MEM_AUTO = mem_printf(".%s.", base_name(path));
    size_t n = strlen(prefix);
    DIR *d DIR_AUTO = dir_read_again(dir);
    for (const char *name; (name = dir_next(d));) {
        struct stat st;
        const char *build = name + n;
        if (strncmp(name, prefix, n) == 0 && strlen(build) == BUILD_ID_SIZE - 1 &&
            strspn(build, "0123456789abcdef") == BUILD_ID_SIZE - 1 &&
            fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_uid == geteuid())
            fn(arg, name, build);
    }
}

static int stop_server(int program)
{
    char command[] = "stop-server", *const argv[] = {program_name, command, NULL};
    struct buf nothing BUF_AUTO = BUF_INIT;
    return other_build_run(program, argv, (struct span){0}, SERVER_END_MS, &nothing);
}

/* Whether its server has jobs that have ended and something to tell. */
static bool has_records(int program)
{
    static const char request[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec_remote_list\",\"" OTHER_BUILDS_NONE "\":true}";
    char command[] = "exec", option[] = "--whole", *const argv[] = {program_name, command, option, NULL};
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span list;
    return other_build_run(program, argv, (struct span){request, sizeof request - 1}, RUN_MS, &answer) != 0 ||
           json_check(span_of(&answer), NULL) < 0 || client_result(span_of(&answer), &list, NULL) < 0 ||
           !span_is(list, "[]");
}

struct visit {
    const struct other_builds *others;
    int dir;
    size_t left;
};

static void sweep(void *arg, const char *file, const char *build)
{
    const struct visit *v = arg;
    const struct other_build *b = build_named(v->others, build);
    int program FD_AUTO = b ? program_open(b->dirfd, build, NULL) : -1;
    if (!b || (b->n_keepers == 0 && program >= 0 && !has_records(program) && stop_server(program) == 0))
        unlinkat(v->dir, file, 0);
}

void settle_sweep_others(int dir, const char *path)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    struct visit v = {.others = &others, .dir = dir};
    other_builds_find(&others);
    each_aside(dir, path, sweep, &v);
}

static void end(void *arg, const char *file, const char *build)
{
    struct visit *v = arg;
    const struct other_build *b = build_named(v->others, build);
    int program FD_AUTO = b ? program_open(b->dirfd, build, NULL) : -1;
    if (b && (program < 0 || stop_server(program) != 0))
        v->left++;
    else
        unlinkat(v->dir, file, 0);
}

int settle_end_others(int dir, const char *path, struct err *err)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    struct visit v = {.others = &others, .dir = dir};
    other_builds_find(&others);
    each_aside(dir, path, end, &v);
    return v.left == 0 ? 0
                       : err_set(err, ERR_TOOL,
                                 "the server of another build that was replaced by this one "
                                 "did not stop: nothing was removed");
}
