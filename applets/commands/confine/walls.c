#include "walls.h"

#ifndef TOOLBOX_GUEST

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem.h"
#include "relocate.h"

static bool is_any(const struct walls_params *w)
{
    const struct policy *p = &w->confine;
    const struct limits *l = &w->limits;
    return p->preset.s || p->read.list || p->write.list || p->execute.list || p->hide.list ||
           p->network.list || p->private_tmp || l->memory >= 0 || l->processes >= 0 || l->cpus >= 0 ||
           l->cpu_seconds >= 0 || l->wall_seconds >= 0 || l->file_size >= 0 || l->open_files >= 0;
}

static void release(void *walls)
{
    policy_release(walls);
    free(walls);
}

/* Where the starter stood, or "/" as for the program itself. */
static char *beginning(const struct keeper *k, const char *cwd)
{
    char link[40], dir[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", k->base.start_dir);
    ssize_t n = cwd && *cwd == '/' ? 0 : readlink(link, dir, sizeof dir - 1);
    dir[n > 0 ? n : 0] = '\0';
    return !cwd          ? mem_strdup(n > 0 ? dir : "/")
           : *cwd == '/' ? mem_strdup(cwd)
                         : mem_printf("%s/%s", dir, cwd);
}

int walls_make(struct keeper *k, const struct walls_params *p, const char *cwd, struct confine **walls,
               struct err *err)
{
    *walls = NULL;
    if (!is_any(p))
        return 0;
    if (code_unpack(CODE_confine, err) < 0)
        return -1;
    struct confine *c = mem_zalloc(sizeof *c);
    char *dir MEM_AUTO = beginning(k, cwd);
    if (policy_make(c, &p->confine, &p->limits, dir, err) < 0 || confine_prepare(c, err) < 0) {
        release(c);
        return -1;
    }
    if (c->wanted[CONFINE_WALL_SECONDS])
        c->report->by[CONFINE_WALL_SECONDS] = CONFINE_BY_TIMER;
    k->at_end = release;
    k->at_end_arg = *walls = c;
    return 0;
}

void walls_tell(struct keeper *k, const struct confine *walls)
{
    struct buf text BUF_AUTO = BUF_INIT;
    size_t n = strlen(k->word);
    if (!walls)
        return;
    buf_adds(&text, ",\"enforced\":");
    confine_put_enforced(walls, &text);
    if (n + text.len < sizeof k->word)
        memcpy(k->word + n, text.data, text.len + 1);
}

enum confine_what walls_limit_met(const struct confine *walls, int status)
{
    int by = WIFSIGNALED(status)         ? WTERMSIG(status)
             : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                         : 0;
    if (!walls)
        return CONFINE_PARTS;
    if (by == SIGXCPU && walls->wanted[CONFINE_CPU_SECONDS])
        return CONFINE_CPU_SECONDS;
    if (by == SIGXFSZ && walls->wanted[CONFINE_FILE_SIZE])
        return CONFINE_FILE_SIZE;
    return confine_limit_met(&walls->group);
}

#endif
