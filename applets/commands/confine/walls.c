#include "walls.h"

#ifndef TOOLBOX_GUEST

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mem.h"
#include "relocate.h"
#include "server_policy.h"

const struct server_policy *server_policy;

bool walls_confine(const struct policy *p)
{
    return p->preset.s || p->read.list || p->write.list || p->execute.list || p->hide.list ||
           p->network.list || p->private_tmp;
}

static bool is_any(const struct walls_params *w)
{
    const struct limits *l = &w->limits;
    return server_policy || walls_confine(&w->confine) || l->memory >= 0 || l->processes >= 0 ||
           l->cpus >= 0 || l->cpu_seconds >= 0 || l->wall_seconds >= 0 || l->file_size >= 0 ||
           l->open_files >= 0;
}

static void release(void *walls)
{
    free(((struct confine *)walls)->place);
    policy_release(walls);
    free(walls);
}

static char *path_of(int dir)
{
    char link[40], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, path, sizeof path);
    return n > 0 && n < (ssize_t)sizeof path ? mem_dup(path, (size_t)n) : NULL;
}

/* Where the starter stood, or "/" as for the program itself. */
static char *beginning(const struct keeper *k, const char *cwd)
{
    char *dir = cwd && *cwd == '/' ? mem_strdup(cwd) : path_of(k->base.start_dir);
    if (!cwd || *cwd == '/')
        return dir ? dir : mem_strdup("/");
    char *there = mem_printf("%s/%s", dir ? dir : "", cwd);
    free(dir);
    return there;
}

int walls_make(struct keeper *k, const struct walls_params *params, const char *cwd, struct confine **walls,
               struct err *err)
{
    struct walls_params filled = *params, *p = &filled;
    *walls = NULL;
    if (!is_any(p))
        return 0;
    if (code_unpack(CODE_confine, err) < 0)
        return -1;
    struct confine *c = mem_zalloc(sizeof *c);
    char *dir MEM_AUTO = beginning(k, cwd);
    if (server_policy)
        server_policy_fill(p);
    if (policy_make(c, &p->confine, &p->limits, dir, err) < 0 ||
        (server_policy && server_policy_narrow(c, err) < 0) || confine_prepare(c, err) < 0) {
        release(c);
        return -1;
    }
    c->place = path_of(k->base.dirfd);
    if (c->wanted[CONFINE_WALL_SECONDS])
        c->report->by[CONFINE_WALL_SECONDS] = CONFINE_BY_TIMER;
    k->at_end = release;
    k->at_end_arg = *walls = c;
    return 0;
}

#endif
