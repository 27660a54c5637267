#include "walls.h"

#ifndef TOOLBOX_GUEST

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "mem.h"
#include "relocate.h"
#include "server_policy.h"

const struct server_policy *server_policy;

enum { LOOK_BACK = 1500 };

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
    char *dir = cwd && *cwd == '/' ? mem_strdup(cwd) : path_of(k->base.start_dir), *there = dir;
    if (!cwd || *cwd == '/')
        return dir ? dir : mem_strdup("/");
    there = mem_printf("%s/%s", dir ? dir : "", cwd);
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

void walls_put(struct buf *out, const struct confine *walls)
{
    if (!walls)
        return;
    json_key(out, "enforced");
    confine_put_enforced(walls, out);
}

void walls_look(const struct confine *walls, const char *cwd, const char *text, size_t n,
                char said[CONFINE_SAID])
{
    struct confine_refusal r;
    if (walls && confine_refused(walls, cwd, text, n, &r))
        memcpy(said, r.said, sizeof r.said);
}

void walls_look_on(const struct confine *walls, int stream, const char *text, size_t n,
                   char said[CONFINE_SAID])
{
    static struct buf ends[2] = {BUF_INIT, BUF_INIT}; /* a line may come in pieces */
    struct buf *end = &ends[stream];
    if (!walls)
        return;
    buf_add(end, text, n);
    walls_look(walls, NULL, buf_str(end), end->len, said);
    if (end->len > LOOK_BACK)
        buf_consume(end, end->len - LOOK_BACK);
}

long long walls_time_ms(const struct confine *walls)
{
    return walls && walls->wanted[CONFINE_WALL_SECONDS] ? walls->limits[CONFINE_WALL_SECONDS] * 1000 : -1;
}

/* `by`: a signal that has ended it, 0: none. */
static enum confine_what limit_met(const struct confine *walls, int by, unsigned long long met[2])
{
    if (!walls)
        return CONFINE_PARTS;
    if (by == SIGXCPU && walls->wanted[CONFINE_CPU_SECONDS])
        return CONFINE_CPU_SECONDS;
    if (by == SIGXFSZ && walls->wanted[CONFINE_FILE_SIZE])
        return CONFINE_FILE_SIZE;
    return confine_limit_met(&walls->group, met);
}

enum confine_what walls_limit_met(const struct confine *walls, int status)
{
    unsigned long long met[2] = {0};
    int by = WIFSIGNALED(status)         ? WTERMSIG(status)
             : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                         : 0;
    return limit_met(walls, by, met);
}

enum confine_what walls_limit_now(const struct confine *walls, int exit_code)
{
    static unsigned long long met[2]; /* before */
    return limit_met(walls, exit_code > 128 ? exit_code - 128 : exit_code < 0 ? -exit_code : 0, met);
}

#endif
