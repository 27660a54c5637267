#include "host/inject/inject_one.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "host/inject/inject_steps.h"
#include "io.h"
#include "osinfo.h"
#include "relocate.h"
#include "commands/settle/settle.h"

int inject_command(const struct target *t, const struct inject_result *r, const char *const *arguments,
                   struct argv *out, struct err *err)
{
    struct argv command ARGV_AUTO = {0};
    argv_add(&command, buf_str(&r->placed.path));
    for (; *arguments; arguments++)
        argv_add(&command, *arguments);
    return target_command(t, r->found.user, &command, out, err);
}

/* ---- small steps ---- */

static int choose(struct injection *i)
{
    struct err err;
    const char *arch = recon_arch(&i->looked.recon, &err);
    i->r->cost.us[STEP_CHOICE] = i->choice.picked_us;
    if (!arch)
        return inject_fail(i->r, STEP_CHOICE, "Linux on amd64 and arm64 is supported; nothing was changed",
                           &err);
    return inject_choose(i, arch);
}

/* The program is there, and has settled when it was found. */
static int take_found(struct injection *i)
{
    return inject_take_path(i, i->looked.recon.found) ? inject_take_verdict(i, i->looked.recon.verdict) : -1;
}

static int find_no_way(struct injection *i)
{
    struct err err;
    inject_no_answer(i, &err);
    return inject_fail(i->r, STEP_RECON,
                       "there is no shell and this runtime has no way to copy a file in: put the binary into "
                       "the image or a volume (docs/kubernetes.md)",
                       &err);
}

/* ---- when each is taken ---- */

static bool is_unlisted(const struct injection *i)
{
    return i->t->unlisted != NULL;
}

static bool is_folder(const struct injection *i)
{
    return i->t->kind->folder;
}

static bool is_unready(const struct injection *i)
{
    return !i->r->ok;
}

static bool can_be_copied_to(const struct injection *i)
{
    return !i->r->ok && i->looked.no_shell && i->t->kind->copies;
}

static bool has_no_way(const struct injection *i)
{
    return !i->r->ok && i->looked.no_shell;
}

static bool has_same(const struct injection *i)
{
    return !i->r->ok && inject_found_same(i);
}

static bool brings_folder(const struct injection *i)
{
    return i->o->with != NULL;
}

static bool tells_all(const struct injection *i)
{
    return i->o->verbose && !is_folder(i);
}

/* In their order. `counts` is what the time is told under; N_STEPS: the step tells itself. */
static const struct {
    bool (*wanted)(const struct injection *i);
    int (*take)(struct injection *i);
    enum inject_step counts;
} steps[] = {
    {is_unlisted, inject_unlisted, N_STEPS}, {is_folder, inject_dir, N_STEPS},
    {is_unready, inject_recon, STEP_RECON},  {can_be_copied_to, inject_copy, STEP_PLACING},
    {has_no_way, find_no_way, N_STEPS},      {is_unready, choose, STEP_CHOICE},
    {has_same, take_found, STEP_RECON},      {is_unready, inject_place, STEP_PLACING},
    {brings_folder, inject_with, N_STEPS},   {tells_all, inject_doctor, STEP_DOCTOR},
};

/* ---- the whole ---- */

/* Of what a verdict says: proof, server and health are parts of the call that it has answered. */
static long long within(const struct inject_result *r)
{
    long long sum = 0;
    for (int s = STEP_PROOF; s < N_STEPS; s++)
        sum += r->cost.us[s] > 0 ? r->cost.us[s] : 0;
    return sum;
}

static int take_step(struct injection *i, size_t n)
{
    long long began = now_us(), before = within(i->r);
    int result = steps[n].take(i);
    if (steps[n].counts == N_STEPS)
        return result;
    long long *us = &i->r->cost.us[steps[n].counts];
    *us = (*us > 0 ? *us : 0) + now_us() - began - (within(i->r) - before);
    if (*us < 0)
        *us = 0;
    return result;
}

static int take_all(struct injection *i)
{
    int result = 0;
    for (size_t n = 0; result == 0 && n < sizeof steps / sizeof *steps; n++)
        if (steps[n].wanted(i))
            result = take_step(i, n);
    return result;
}

/* Once more where the usual places won't do, and what is mounted was not looked through. */
static int take_steps(struct injection *i)
{
    int result = take_all(i);
    if (result == 0 || !i->nowhere || i->o->dir || i->looked.recon.everywhere)
        return result;
    i->everywhere = true;
    for (int s = 0; s < N_STEPS; s++)
        i->r->cost.us[s] = -1;
    return take_all(i);
}

static void name_temporary(struct injection *i)
{
    unsigned long long number = (unsigned long long)now_us() ^ (unsigned long long)getpid() << 40;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0) {
        /* early at boot, or no such call: time and pid are what makes it differ */
    }
    snprintf(i->temporary, sizeof i->temporary, SETTLE_TEMPORARY "%016llx", number);
}

int inject_one(const struct inject_options *o, const struct target *t, struct transport *transport,
               struct inject_result *r, struct inject_request *request)
{
    struct injection i = {.o = o,
                          .t = t,
                          .transport = transport,
                          .r = r,
                          .request = request,
                          .looked = {.recon = {.distribution = BUF_INIT},
                                     .seen = TRANSPORT_CALL_INIT,
                                     .place_script = BUF_INIT},
                          .choice = {.own = o->own ? o->own : &i.choice.picked,
                                     .picked = RELEASE_FILE_INIT,
                                     .other = RELEASE_FILE_INIT}};
    struct err err;
    int calls = transport->calls;
    size_t sent = transport->sent;
    name_temporary(&i);
    long long began = now_us();
    const char *advice = "let this program call mprotect or memfd_create";
    int result = code_unpack(CODE_inject, &err);
    if (result == 0)
        advice = "this program's own file has to be what was released";
    if (result == 0 && !o->own)
        result = release_pick("linux", os_arch(), &i.choice.picked, &err);
    i.choice.picked_us = now_us() - began;
    result = result < 0 ? inject_fail(r, STEP_CHOICE, advice, &err) : take_steps(&i);
    if (transport->interrupted)
        r->failure.exit = EXIT_BY_SIGNAL + transport->interrupted;
    r->cost.calls = transport->calls - calls;
    r->cost.sent +=
        transport->sent - sent; /* into a directory, and files that a runtime copies, without it */
    recon_release(&i.looked.recon);
    transport_call_release(&i.looked.seen);
    buf_release(&i.looked.place_script);
    release_file_end(&i.choice.picked);
    release_file_end(&i.choice.other);
    return result;
}
