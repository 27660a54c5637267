/* Reconnaissance: what there is, and whether the program is there already; where that is so, the request that
 * follows is answered by the same call, and where it isn't, a first attempt to place it can be part of it. */
#include <string.h>

#include "host/inject/inject_steps.h"

#define DEFAULT_USER "default"
/* In which a prefix, and a runtime that is known to, shows that it passes output on as it comes. */
enum { IMPATIENT_MS = 300, PATIENT_MS = 2000 };

/* In the middle of a reconnaissance: what there is is known, and what has to be placed can follow at once. */
static enum transport_step go_on(void *arg, struct transport_call *c)
{
    struct injection *i = arg;
    if (!strstr(buf_str(&c->out), SCRIPT_END "\n"))
        return TRANSPORT_WAITS;
    recon_release(&i->looked.recon);
    const char *arch =
        recon_read(&i->looked.recon, span_of(&c->out)) ? recon_arch(&i->looked.recon, NULL) : NULL;
    if (!arch || inject_choose(i, arch) < 0 || inject_found_same(i))
        return TRANSPORT_ENDS;
    inject_place_script(i, &i->looked.place_script);
    c->input[1] = span_of(&i->looked.place_script);
    c->input[2] = span_of(&i->choice.file->bytes);
    return TRANSPORT_ENDS;
}

/* The program there is this very one, and waits for the request: it is sent, and answered. */
static enum transport_step converse(void *arg, struct transport_call *c)
{
    static const char mark[] = SCRIPT_END "\n" SCRIPT_CALL "\n";
    struct injection *i = arg;
    const char *out = buf_str(&c->out),
               *found = i->looked.called > 0 ? NULL : memmem(out, c->out.len, mark, sizeof mark - 1);
    if (found) {
        i->looked.called = (size_t)(found - out) + sizeof mark - 1;
        recon_release(&i->looked.recon);
        const char *arch =
            recon_read(&i->looked.recon, span_of(&c->out)) ? recon_arch(&i->looked.recon, NULL) : NULL;
        bool same = arch && inject_choose(i, arch) == 0 && inject_found_same(i);
        if (!same && !i->request->sent)
            return TRANSPORT_ENDS; /* not ours: it gets nothing; what was sent along is answered all the same
                                    */
        if (!i->request->sent) {
            inject_request_send(i->request, true, c, 1);
            return TRANSPORT_SENDS;
        }
    }
    if (i->looked.called > 0)
        return inject_request_step(i->request, i->looked.called, c);
    if (!c->impatient || c->out.len > 0)
        return TRANSPORT_WAITS;
    i->request->withheld = true;
    return i->request->sent ? inject_request_step(i->request, 0, c)
                            : TRANSPORT_ENDS; /* the call is one of its own then */
}

static enum transport_end look(struct injection *i, struct err *err)
{
    /* A prefix may hand its output over only when all has ended, and what it was sent isn't sent to another
     * user. */
    bool streams = i->t->kind->program, calls = i->request && (streams || !i->t->options.root_exec);
    bool goes_on = i->o->batch && !i->request && streams;
    struct script_options o = inject_script(i, i->choice.own->sha256);
    struct buf script BUF_AUTO = BUF_INIT;
    script_recon(&script, &o, calls ? SCRIPT_CALLS : goes_on ? SCRIPT_GOES_ON : SCRIPT_ENDS);
    i->looked.seen.out_max = calls ? INJECT_ANSWER_MAX : 0;
    i->looked.seen.answered = goes_on ? go_on : calls ? converse : NULL;
    i->looked.seen.answered_arg = i;
    i->looked.seen.impatient_ms = !calls ? 0 : streams ? PATIENT_MS : IMPATIENT_MS;
    i->looked.called = 0;
    buf_truncate(&i->looked.place_script, 0);
    i->looked.seen.input[1] = i->looked.seen.input[2] = (struct span){0};
    if (calls && !streams)
        inject_request_send(i->request, false, &i->looked.seen, 1);
    enum transport_end how = inject_call(i, &script, NULL, &i->looked.seen, err);
    if (calls && i->request->sent)
        inject_request_end(i->request, how, &i->looked.seen);
    return how;
}

enum seen { SEEN, SEEN_NO_SHELL, SEEN_NOTHING, SEEN_TIMEOUT, SEEN_LOST };

static enum seen look_as(struct injection *i, const char *user, struct err *err)
{
    i->user = user;
    enum transport_end how = look(i, err);
    if (how == TRANSPORT_TIMEOUT)
        return SEEN_TIMEOUT;
    if (how != TRANSPORT_ENDED)
        return SEEN_LOST;
    recon_release(&i->looked.recon);
    if (recon_read(&i->looked.recon, span_of(&i->looked.seen.out)) &&
        (i->looked.recon.whole || i->looked.recon.verdict.s))
        return SEEN;
    if (inject_no_shell(&i->looked.seen))
        return SEEN_NO_SHELL;
    inject_no_answer(i, err);
    return SEEN_NOTHING;
}

/* How this runtime is told to run things as root; NULL: it can't be, or somebody else is wanted. */
static const char *root_of(const struct injection *i)
{
    if (i->o->user)
        return strcmp(i->o->user, DEFAULT_USER) == 0 ? NULL : i->o->user;
    return i->t->kind->root ? i->t->kind->root : i->t->options.root_exec ? "root" : NULL;
}

/* From then on nothing is tried again: it may have begun. */
static bool was_sent(const struct injection *i)
{
    return i->request && i->request->sent;
}

/* The shell has said all, and nothing of ours was there; or no shell ever ran. */
static bool nobody_took_it(const struct injection *i, enum seen seen)
{
    return seen == SEEN ? i->looked.recon.whole && !inject_found(i)
                        : i->looked.seen.status != 0 && (seen == SEEN_NOTHING || seen == SEEN_NO_SHELL);
}

static int call_is_lost(struct injection *i)
{
    i->r->ok = false;
    i->r->failure.exit = i->request->how == TRANSPORT_TIMEOUT ? EXIT_UNANSWERED : EXIT_LOST;
    return -1;
}

/* A few words for people. */
static void describe(struct injection *i)
{
    const struct recon *n = &i->looked.recon;
    struct inject_result *r = i->r;
    buf_truncate(&r->found.about, 0);
    if (n->no_uname) {
        buf_addf(&r->found.about, "no uname, a shell for %s",
                 *n->loader_arch ? n->loader_arch : "an unknown processor");
    } else {
        transport_show(&r->found.about, n->os, strlen(n->os), 32);
        buf_addc(&r->found.about, ' ');
        transport_show(&r->found.about, n->machine, strlen(n->machine), 32);
    }
    if (n->distribution.len > 0)
        buf_addf(&r->found.about, ", %s", buf_str(&n->distribution));
    buf_addf(&r->found.about, ", libc: %s", n->libc);
    if (n->bits > 0)
        buf_addf(&r->found.about, ", %d-bit programs", n->bits);
    snprintf(r->found.os, sizeof r->found.os, "%s", n->os);
    inject_take_uid(r, n->uid);
}

/* As root where that can be had, as the default user otherwise. A call that takes too long says nothing about
 * root: it is made once more. */
int inject_recon(struct injection *i)
{
    struct err err, first;
    const char *root = root_of(i);
    enum seen seen = look_as(i, root, &err);
    if (seen == SEEN_TIMEOUT && !was_sent(i))
        seen = look_as(i, root, &err);
    if (was_sent(i) && nobody_took_it(i, seen))
        i->request->sent = false;
    if (was_sent(i) && !i->request->answered)
        return call_is_lost(i);
    first = err;
    if (seen == SEEN_NOTHING && root && !i->o->user) {
        seen = look_as(i, NULL, &err);
        if (seen == SEEN_NOTHING && strcmp(first.msg, err.msg) != 0)
            buf_addf(&i->r->failure.tried, "as %s: %s", root, first.msg);
    }
    i->looked.no_shell = seen == SEEN_NO_SHELL;
    if (seen == SEEN)
        describe(i);
    if (seen == SEEN || seen == SEEN_NO_SHELL)
        return 0;
    if (seen == SEEN_NOTHING || (seen == SEEN_LOST && i->looked.seen.out.len == 0))
        return inject_fail(i->r, STEP_TARGET, INJECT_TARGET_ADVICE, &err);
    return inject_fail(i->r, STEP_RECON, "give it more time with --timeout, or look at what runs there",
                       &err);
}
