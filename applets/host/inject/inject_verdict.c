/* What the program in the target says of itself, and whether that is what it has to say. */
#include <stdlib.h>
#include <string.h>

#include "host/inject/injection.h"
#include "mem.h"

#define US_MAX (86400LL * 1000000)

bool inject_found(const struct injection *i)
{
    struct span ok;
    return i->looked.recon.verdict.s && json_member(i->looked.recon.verdict, "ok", &ok, NULL) &&
           span_is(ok, "true");
}

bool inject_found_same(const struct injection *i)
{
    struct buf sum BUF_AUTO = BUF_INIT;
    if (!inject_found(i))
        return false;
    recon_member(i->looked.recon.verdict, "sha256", &sum);
    return strcmp(buf_str(&sum), i->choice.file->sha256) == 0;
}

static enum inject_step step_named(const char *name)
{
    for (int s = STEP_PLACING; s < N_STEPS; s++)
        if (strcmp(inject_steps[s], name) == 0)
            return (enum inject_step)s;
    return STEP_PROOF;
}

/* Microseconds, as somebody else says. */
static long long us_in(struct span object, const char *key)
{
    struct buf text BUF_AUTO = BUF_INIT;
    recon_member(object, key, &text);
    long long number = strtoll(buf_str(&text), NULL, 10);
    return number < 0 || number > US_MAX ? 0 : number;
}

static void show_member(struct span object, const char *key, struct buf *out)
{
    struct buf text BUF_AUTO = BUF_INIT;
    recon_member(object, key, &text);
    buf_truncate(out, 0);
    transport_show(out, buf_str(&text), text.len, 1000);
}

int inject_take_verdict(struct injection *i, struct span verdict)
{
    struct inject_result *r = i->r;
    struct buf text BUF_AUTO = BUF_INIT;
    struct span ok;
    bool said_yes = json_member(verdict, "ok", &ok, NULL) && span_is(ok, "true");
    if (!said_yes) {
        struct err err;
        struct buf step BUF_AUTO = BUF_INIT;
        recon_member(verdict, "step", &step);
        recon_member(verdict, "message", &text);
        err_set(&err, ERR_TOOL, "%s", buf_str(&text));
        return inject_fail(r, step_named(buf_str(&step)), "nothing was left there", &err);
    }
    recon_member(verdict, "sha256", &text);
    if (strcmp(buf_str(&text), i->choice.file->sha256) != 0) {
        struct err err;
        err_set(&err, ERR_TOOL, "what runs there says that its sha256 is %.64s, and should say %s",
                buf_str(&text), i->choice.file->sha256);
        return inject_fail(r, STEP_PROOF, "nothing that is not of this very build is used", &err);
    }
    struct buf state BUF_AUTO = BUF_INIT;
    show_member(verdict, "state", &state);
    snprintf(r->placed.state, sizeof r->placed.state, "%s", buf_str(&state));
    show_member(verdict, "server", &r->server);
    show_member(verdict, "ended", &r->others.ended);
    show_member(verdict, "moved", &r->others.moved);
    show_member(verdict, "stayed", &r->others.stayed);
    buf_truncate(&text, 0);
    recon_member(verdict, "uid", &text);
    inject_take_uid(r, buf_str(&text)); /* by the kernel's word, whatever an `id` there says */
    r->cost.us[STEP_PROOF] = us_in(verdict, "proof_us");
    r->cost.us[STEP_SERVER] = us_in(verdict, "server_us");
    r->cost.us[STEP_HEALTH] = us_in(verdict, "health_us");
    free(r->found.user);
    r->found.user = i->user ? mem_strdup(i->user) : NULL;
    r->ok = true;
    return 0;
}

bool inject_take_path(struct injection *i, const char *path)
{
    struct err err;
    buf_truncate(&i->r->placed.path, 0);
    if (path[0] == '/' && strlen(path) < 4096 && transport_is_plain(path))
        return buf_adds(&i->r->placed.path, path) == 0;
    err_set(&err, ERR_TOOL, "the path that the target names is none");
    inject_fail(i->r, STEP_PROOF, "look at what runs there", &err);
    return false;
}
