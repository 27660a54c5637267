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
                                .message = BUF_INIT,
                                .tried = BUF_INIT,
                                .advice = BUF_INIT,
                                .about = BUF_INIT,
                                .path = BUF_INIT,
                                .server = BUF_INIT,
                                .doctor = BUF_INIT,
                                .ended = BUF_INIT,
                                .moved = BUF_INIT,
                                .stayed = BUF_INIT};
    for (int i = 0; i < N_STEPS; i++)
        r->us[i] = -1;
}

void inject_result_release(struct inject_result *r)
{
    buf_release(&r->message);
    buf_release(&r->tried);
    buf_release(&r->advice);
    buf_release(&r->about);
    buf_release(&r->path);
    buf_release(&r->server);
    buf_release(&r->doctor);
    buf_release(&r->ended);
    buf_release(&r->moved);
    buf_release(&r->stayed);
    free(r->target);
    free(r->user);
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
    r->step = step;
    r->exit = EXIT_OF_STEP + (int)step;
    buf_truncate(&r->message, 0);
    buf_truncate(&r->advice, 0);
    transport_show(&r->message, why->msg, strlen(why->msg), ERR_MSG_MAX);
    buf_adds(&r->advice,
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
    snprintf(r->uid, sizeof r->uid, "%.*s", n < sizeof r->uid ? (int)n : 0, digits);
}
