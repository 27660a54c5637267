#include "surroundings_param.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

#include "io.h"
#include "spawn.h"

#define AT(member) offsetof(struct surroundings, member)

static const struct param list[] = {
    {.key = "env",
     .type = PARAM_ENV,
     .offset = AT(env),
     .required = true,
     PARAM_DOC("All of its environment, to which env of the call adds", NULL)},
    {.key = "cwd",
     .type = PARAM_NAME,
     .offset = AT(cwd),
     PARAM_DOC("Directory that it begins in, and that cwd of the call is taken from", "the server's")},
    {.key = "umask",
     .type = PARAM_INT,
     .offset = AT(umask),
     .required = true,
     .max = 0777,
     PARAM_DOC("Its umask, as a decimal number", NULL)},
    {.key = "limits",
     .type = PARAM_INTS,
     .offset = AT(limits),
     PARAM_DOC(
         "Its resource limits, three numbers each: the kernel's of the resource, soft and hard limit (-1: "
         "none)",
         "the server's")},
};
const struct params_table surroundings_params = PARAMS_TABLE(list);

int surroundings_enter(struct surroundings *s, struct base *base, struct err *err)
{
    if (!s->env.list)
        return 0;
    if (s->cwd.s) {
        io_close(&base->start_dir);
        base->start_dir = open(s->cwd.s, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (base->start_dir < 0)
            return err_sys(err, ERR_TOOL, errno, "cannot use directory '%s'", s->cwd.s);
    }
    base->env = s->env.list;
    umask((mode_t)s->umask);
    spawn_set_limits(s->limits.list, s->limits.n);
    s->env = (struct texts){NULL, 0};
    s->limits = (struct ints){NULL, 0, false};
    return 0;
}
