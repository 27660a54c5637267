/* The end of a server whose program another build has replaced, once nothing of it runs and nothing is left
 * to be fetched. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "log.h"
#include "mem.h"
#include "program.h"
#include "server_internal.h"

#define RETIRE_MS 1000 /* whoever has lost an answer asks again */

struct living {
    int dirfd;
    bool any;
};

static void look_whether_alive(void *arg, const char *owner)
{
    struct living *l = arg;
    if (l->any || !ipc_is_keeper(owner))
        return;
    int fd FD_AUTO = ipc_connect(l->dirfd, owner, 0);
    l->any = fd >= 0 || errno == EAGAIN;
}

/* The file that its program has been moved to; NULL: it has its place still. */
static char *replaced(const struct server *s)
{
    struct program p PROGRAM_AUTO = PROGRAM_INIT;
    struct stat st;
    if (!program_read(&p, s->base.dirfd, toolbox_build_id))
        return NULL;
    char *aside = program_aside(p.path, toolbox_build_id);
    if (lstat(aside, &st) == 0)
        return aside;
    free(aside);
    return NULL;
}

bool server_is_idle(const struct server *s, size_t calls)
{
    struct living l = {.dirfd = s->base.dirfd};
    if (s->ending || s->kept || s->works || http_server_pending(s->http) > calls || tools_keep(s->base.dirfd))
        return false;
    ipc_each(s->base.dirfd, look_whether_alive, &l);
    return !l.any;
}

/* Whatever there still is has an end, which comes here again. */
static void retire(void *arg)
{
    struct server *s = arg;
    char *aside MEM_AUTO = server_is_idle(s, 0) ? replaced(s) : NULL;
    if (!aside)
        return;
    log_line(LOG_INFO, "another build has taken the place of this one, and nothing runs here any more");
    unlink(aside);
    server_end_all(s, NULL, NULL);
}

void server_may_retire(struct server *s)
{
    if (s->retirement)
        loop_timer_set(s->retirement, RETIRE_MS);
    else
        s->retirement = loop_timer(s->base.loop, RETIRE_MS, retire, s);
}
