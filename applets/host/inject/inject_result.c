/* What becomes of an injection, as it is told. */
#include <stdlib.h>
#include <string.h>

#include "host/inject/inject_types.h"
#include "host/inject/transport.h"
#include "mem.h"

const char *const inject_steps[N_STEPS] = {"target", "recon",  "choice", "placing",
                                           "proof",  "server", "health", "doctor"};

void inject_result_init(struct inject_result *r, const char *target)
{
    *r = (struct inject_result){.target = mem_strdup(target),
                                .failure.message = BUF_INIT,
                                .failure.tried = BUF_INIT,
                                .failure.advice = BUF_INIT,
                                .found.about = BUF_INIT,
                                .placed.path = BUF_INIT,
                                .server = BUF_INIT,
                                .doctor = BUF_INIT,
                                .others.ended = BUF_INIT,
                                .others.moved = BUF_INIT,
                                .others.stayed = BUF_INIT};
    for (int i = 0; i < N_STEPS; i++)
        r->cost.us[i] = -1;
}

void inject_result_release(struct inject_result *r)
{
    buf_release(&r->failure.message);
    buf_release(&r->failure.tried);
    buf_release(&r->failure.advice);
    buf_release(&r->found.about);
    buf_release(&r->placed.path);
    buf_release(&r->server);
    buf_release(&r->doctor);
    buf_release(&r->others.ended);
    buf_release(&r->others.moved);
    buf_release(&r->others.stayed);
    free(r->target);
    free(r->found.user);
}

/* What shells and runtimes say where a process more is one too many. */
static bool lacks_processes(const char *said)
{
    static const char *const words[] = {"annot fork", "an't fork",
                                        "fork: ", "esource temporarily unavailable",
                                        "failed to create new OS thread"};
    for (size_t n = 0; n < sizeof words / sizeof *words; n++)
        if (strstr(said, words[n]))
            return true;
    return false;
}

/* What to do about what runtimes and systems say in these words; otherwise what the step advises. */
static const char *advice_on(const char *said, const char *otherwise)
{
    static const char *const known[][2] = {
        {"permission denied while trying to connect",
         "let this user use the runtime: in its group, or by --runtime, as in --runtime 'sudo docker'"},
        {"not found (or its interpreter", "install it, or say with --runtime what stands for it"},
        {"unable to find user", "name a user that there is in the target with --user"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(said, known[i][0]))
            return known[i][1];
    return otherwise;
}

int inject_fail(struct inject_result *r, enum inject_step step, const char *advice, const struct err *why)
{
    r->ok = false;
    r->failure.step = step;
    r->failure.exit = EXIT_OF_STEP + (int)step;
    buf_truncate(&r->failure.message, 0);
    buf_truncate(&r->failure.advice, 0);
    transport_show(&r->failure.message, why->msg, strlen(why->msg), ERR_MSG_MAX);
    buf_adds(&r->failure.advice,
             lacks_processes(why->msg)
                 ? "a limit on processes is reached there (pids.max, --pids-limit, RLIMIT_NPROC): "
                   "end something in it, or raise the limit"
             : step == STEP_TARGET ? advice_on(why->msg, advice)
                                   : advice);
    return -1;
}

void inject_take_uid(struct inject_result *r, const char *digits)
{
    size_t n = strspn(digits, "0123456789");
    snprintf(r->found.uid, sizeof r->found.uid, "%.*s", n < sizeof r->found.uid ? (int)n : 0, digits);
}
