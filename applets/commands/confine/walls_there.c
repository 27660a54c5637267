/* Beside walls.c: what is done where there are walls, whose code is packed. */
#include "walls.h"

#ifndef TOOLBOX_GUEST

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "json.h"

enum { LOOK_BACK = 1500 };

void walls_tell_there(struct keeper *k, const struct confine *walls)
{
    struct buf text BUF_AUTO = BUF_INIT;
    size_t n = strlen(k->word);
    buf_adds(&text, ",\"enforced\":");
    confine_put_enforced(walls, &text);
    if (n + text.len < sizeof k->word)
        memcpy(k->word + n, text.data, text.len + 1);
}

void walls_put_there(struct buf *out, const struct confine *walls)
{
    json_key(out, "enforced");
    confine_put_enforced(walls, out);
}

void walls_look_there(const struct confine *walls, const char *cwd, const char *text, size_t n,
                      char said[CONFINE_SAID])
{
    struct confine_refusal r;
    if (confine_refused(walls, cwd, text, n, &r))
        memcpy(said, r.said, sizeof r.said);
}

void walls_look_on_there(const struct confine *walls, int stream, const char *text, size_t n,
                         char said[CONFINE_SAID])
{
    static struct buf ends[2] = {BUF_INIT, BUF_INIT}; /* a line may come in pieces */
    struct buf *end = &ends[stream];
    buf_add(end, text, n);
    walls_look_there(walls, NULL, buf_str(end), end->len, said);
    if (end->len > LOOK_BACK)
        buf_consume(end, end->len - LOOK_BACK);
}

/* `by`: a signal that has ended it, 0: none. */
static enum confine_what limit_met(const struct confine *walls, int by, unsigned long long met[2])
{
    if (by == SIGXCPU && walls->wanted[CONFINE_CPU_SECONDS])
        return CONFINE_CPU_SECONDS;
    if (by == SIGXFSZ && walls->wanted[CONFINE_FILE_SIZE])
        return CONFINE_FILE_SIZE;
    return confine_limit_met(&walls->group, met);
}

enum confine_what walls_limit_met_there(const struct confine *walls, int status)
{
    unsigned long long met[2] = {0};
    int by = WIFSIGNALED(status)         ? WTERMSIG(status)
             : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                         : 0;
    return limit_met(walls, by, met);
}

enum confine_what walls_limit_now_there(const struct confine *walls, int exit_code)
{
    static unsigned long long met[2]; /* before */
    return limit_met(walls, exit_code > 128 ? exit_code - 128 : exit_code < 0 ? -exit_code : 0, met);
}

#endif
