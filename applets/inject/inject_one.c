#include "inject/inject_one.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "inject/carry.h"
#include "inject/script.h"
#include "io.h"
#include "mem.h"
#include "osinfo.h"
#include "settle/settle.h"

#define DEFAULT_USER "default"
/* In which a prefix, and a runtime that is known to, shows that it passes output on as it comes. */
enum { IMPATIENT_MS = 300, PATIENT_MS = 2000 };
#define US_MAX (86400LL * 1000000)

const char *const inject_steps[N_STEPS] = {"target", "recon",  "choice", "placing",
                                           "proof",  "server", "health"};

/* ---- results ---- */

void inject_result_init(struct inject_result *r, const char *target)
{
    *r = (struct inject_result){.target = mem_strdup(target),
                                .message = BUF_INIT,
                                .tried = BUF_INIT,
                                .advice = BUF_INIT,
                                .about = BUF_INIT,
                                .path = BUF_INIT,
                                .server = BUF_INIT,
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
    buf_release(&r->ended);
    buf_release(&r->moved);
    buf_release(&r->stayed);
    free(r->target);
    free(r->user);
}

int inject_fail(struct inject_result *r, enum inject_step step, const char *advice, const struct err *why)
{
    r->ok = false;
    r->step = step;
    r->exit = EXIT_OF_STEP + (int)step;
    buf_truncate(&r->message, 0);
    buf_truncate(&r->advice, 0);
    transport_show(&r->message, why->msg, strlen(why->msg), ERR_MSG_MAX);
    buf_adds(&r->advice, advice);
    return -1;
}

/* ---- calls ---- */

enum transport_end inject_call(struct injection *i, const struct buf *script, const struct argv *command,
                               struct transport_call *c, struct err *err)
{
    struct argv shell ARGV_AUTO = {0};
    struct argv argv ARGV_AUTO = {0};
    if (script) {
        script_shell(&shell);
        c->input[0] = span_of(script);
    }
    if (script)
        command = &shell;
    for (size_t n = 0; n < command->n; n++)
        i->transport->sent += strlen(command->words[n]) + 1;
    if (target_command(i->t, i->user, command, &argv, err) < 0)
        return TRANSPORT_FAILED;
    return transport_run(i->transport, argv.words, c, err);
}

int inject_command(const struct target *t, const struct inject_result *r, const char *const *arguments,
                   struct argv *out, struct err *err)
{
    struct argv command ARGV_AUTO = {0};
    argv_add(&command, buf_str(&r->path));
    for (; *arguments; arguments++)
        argv_add(&command, *arguments);
    return target_command(t, r->user, &command, out, err);
}

/* ---- reconnaissance ---- */

static struct script_options script_of(const struct injection *i)
{
    return (struct script_options){.dir = i->o->dir,
                                   .name = i->o->name,
                                   .links = i->o->links,
                                   .replace = i->o->replace,
                                   .upgrade = i->o->upgrade,
                                   .sums = i->own->sha256,
                                   .temporary = i->temporary,
                                   .everywhere = i->everywhere};
}

/* A program that was there has settled. */
static bool said_ok(const struct injection *i)
{
    struct span ok;
    return i->recon.verdict.s && json_member(i->recon.verdict, "ok", &ok, NULL) && span_is(ok, "true");
}

/* It is this very one. */
static bool is_there(struct injection *i)
{
    struct buf sum BUF_AUTO = BUF_INIT;
    if (!said_ok(i))
        return false;
    recon_member(i->recon.verdict, "sha256", &sum);
    return strcmp(buf_str(&sum), i->file->sha256) == 0;
}

/* In the middle of a reconnaissance: what there is is known, and what has to be placed can follow at once. */
static enum transport_step go_on(void *arg, struct transport_call *c)
{
    struct injection *i = arg;
    if (!strstr(buf_str(&c->out), SCRIPT_END "\n"))
        return TRANSPORT_WAITS;
    recon_release(&i->recon);
    const char *arch = recon_read(&i->recon, span_of(&c->out)) ? recon_arch(&i->recon, NULL) : NULL;
    if (!arch || inject_choose(i, arch) < 0 || is_there(i))
        return TRANSPORT_ENDS;
    inject_place_script(i, &i->place_script);
    c->input[1] = span_of(&i->place_script);
    c->input[2] = span_of(&i->file->bytes);
    return TRANSPORT_ENDS;
}

/* The program there is this very one, and waits for the request: it is sent, and answered. */
static enum transport_step converse(void *arg, struct transport_call *c)
{
    static const char mark[] = SCRIPT_END "\n" SCRIPT_CALL "\n";
    struct injection *i = arg;
    const char *out = buf_str(&c->out),
               *found = i->called > 0 ? NULL : memmem(out, c->out.len, mark, sizeof mark - 1);
    if (found) {
        i->called = (size_t)(found - out) + sizeof mark - 1;
        recon_release(&i->recon);
        const char *arch = recon_read(&i->recon, span_of(&c->out)) ? recon_arch(&i->recon, NULL) : NULL;
        if (!arch || inject_choose(i, arch) < 0 || !is_there(i))
            return TRANSPORT_ENDS; /* not ours: it gets nothing */
        if (!i->request->sent) {
            inject_request_send(i->request, true, c, 1);
            return TRANSPORT_SENDS;
        }
    }
    if (i->called > 0)
        return inject_request_step(i->request, i->called, c);
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
    struct script_options o = script_of(i);
    struct buf script BUF_AUTO = BUF_INIT;
    script_recon(&script, &o, calls ? SCRIPT_CALLS : goes_on ? SCRIPT_GOES_ON : SCRIPT_ENDS);
    i->seen.out_max = calls ? INJECT_ANSWER_MAX : 0;
    i->seen.answered = goes_on ? go_on : calls ? converse : NULL;
    i->seen.answered_arg = i;
    i->seen.impatient_ms = !calls ? 0 : streams ? PATIENT_MS : IMPATIENT_MS;
    i->called = 0;
    buf_truncate(&i->place_script, 0);
    i->seen.input[1] = i->seen.input[2] = (struct span){0};
    if (calls && !streams)
        inject_request_send(i->request, false, &i->seen, 1);
    enum transport_end how = inject_call(i, &script, NULL, &i->seen, err);
    if (calls && i->request->sent)
        inject_request_end(i->request, how, &i->seen);
    return how;
}

/* The shell has come to its last word without having read the first. */
static bool stdin_is_lost(const struct transport_call *c)
{
    return strstr(buf_str(&c->err), "main: not found") || strstr(buf_str(&c->err), "main: command not found");
}

bool inject_no_shell(const struct transport_call *c)
{
    const char *const said[] = {buf_str(&c->err), buf_str(&c->out)}; /* Docker says it on stdout */
    for (int n = 0; n < 2; n++)
        if (c->status != 0 && strstr(said[n], "/bin/sh") && !stdin_is_lost(c) &&
            (strstr(said[n], "no such file") || strstr(said[n], "No such file") ||
             strstr(said[n], "not found")))
            return true;
    return false;
}

/* What the runtime or the shell said instead of an answer. */
static int no_answer(const struct injection *i, struct err *err)
{
    struct buf said BUF_AUTO = BUF_INIT;
    transport_said(&i->seen, &said);
    if (stdin_is_lost(&i->seen))
        return err_set(
            err, ERR_TOOL,
            "what is written to its stdin does not arrive there: is an option such as -i missing?");
    return err_set(err, ERR_TOOL, "nothing can be run in it (exit status %d)%s%s", i->seen.status,
                   said.len > 0 ? ": " : "", buf_str(&said));
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
    recon_release(&i->recon);
    if (recon_read(&i->recon, span_of(&i->seen.out)) && (i->recon.whole || i->recon.verdict.s))
        return SEEN;
    if (inject_no_shell(&i->seen))
        return SEEN_NO_SHELL;
    no_answer(i, err);
    return SEEN_NOTHING;
}

/* How this runtime is told to run things as root; NULL: it can't be, or somebody else is wanted. */
static const char *root_of(const struct injection *i)
{
    if (i->o->user)
        return strcmp(i->o->user, DEFAULT_USER) == 0 ? NULL : i->o->user;
    return i->t->kind->root ? i->t->kind->root : i->t->options.root_exec ? "root" : NULL;
}

static const char target_advice[] =
    "check that it exists and runs, and that the runtime can reach it from here";

int inject_unlisted(struct injection *i)
{
    struct err err;
    err_set(&err, ERR_TOOL, "%s", i->t->unlisted);
    return inject_fail(i->r, STEP_TARGET, target_advice, &err);
}

/* From then on nothing is tried again: it may have begun. */
static bool was_sent(const struct injection *i)
{
    return i->request && i->request->sent;
}

/* The shell has said all, and nothing of ours was there; or no shell ever ran. */
static bool nobody_took_it(const struct injection *i, enum seen seen)
{
    return seen == SEEN ? i->recon.whole && !said_ok(i)
                        : i->seen.status != 0 && (seen == SEEN_NOTHING || seen == SEEN_NO_SHELL);
}

static int call_is_lost(struct injection *i)
{
    i->r->ok = false;
    i->r->exit = i->request->how == TRANSPORT_TIMEOUT ? EXIT_UNANSWERED : EXIT_LOST;
    return -1;
}

/* As root where that can be had, as the default user otherwise. A call that takes too long says nothing about
 * root: it is made once more. */
static int reconnoitre(struct injection *i, bool *no_shell)
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
            buf_addf(&i->r->tried, "as %s: %s", root, first.msg);
    }
    *no_shell = seen == SEEN_NO_SHELL;
    if (seen == SEEN || seen == SEEN_NO_SHELL)
        return 0;
    if (seen == SEEN_NOTHING || (seen == SEEN_LOST && i->seen.out.len == 0))
        return inject_fail(i->r, STEP_TARGET, target_advice, &err);
    return inject_fail(i->r, STEP_RECON, "give it more time with --timeout, or look at what runs there",
                       &err);
}

/* Digits alone. */
static void take_uid(struct inject_result *r, const char *digits)
{
    size_t n = strspn(digits, "0123456789");
    snprintf(r->uid, sizeof r->uid, "%.*s", n < sizeof r->uid ? (int)n : 0, digits);
}

/* A few words for people. */
static void describe(struct injection *i)
{
    const struct recon *n = &i->recon;
    struct inject_result *r = i->r;
    buf_truncate(&r->about, 0);
    if (n->no_uname) {
        buf_addf(&r->about, "no uname, a shell for %s",
                 *n->loader_arch ? n->loader_arch : "an unknown processor");
    } else {
        transport_show(&r->about, n->os, strlen(n->os), 32);
        buf_addc(&r->about, ' ');
        transport_show(&r->about, n->machine, strlen(n->machine), 32);
    }
    if (n->distribution.len > 0)
        buf_addf(&r->about, ", %s", buf_str(&n->distribution));
    buf_addf(&r->about, ", libc: %s", n->libc);
    if (n->bits > 0)
        buf_addf(&r->about, ", %d-bit programs", n->bits);
    snprintf(r->os, sizeof r->os, "%s", n->os);
    take_uid(r, n->uid);
}

/* ---- choice ---- */

int inject_choose(struct injection *i, const char *arch)
{
    struct err err;
    i->arch = arch;
    snprintf(i->r->arch, sizeof i->r->arch, "%s", arch);
    i->file = i->own;
    if (strcmp(arch, os_arch()) != 0) {
        release_file_end(&i->other);
        i->other = (struct release_file)RELEASE_FILE_INIT;
        if (release_pick("linux", arch, &i->other, &err) < 0) {
            err_wrap(&err, "%s is not supported here", arch);
            return inject_fail(i->r, STEP_CHOICE, "see 'toolbox release --help'", &err);
        }
        i->file = &i->other;
    }
    memcpy(i->r->sha256, i->file->sha256, sizeof i->r->sha256);
    i->r->size = i->file->bytes.len;
    return 0;
}

static int choose(struct injection *i)
{
    struct err err;
    const char *arch = recon_arch(&i->recon, &err);
    if (!arch)
        return inject_fail(i->r, STEP_CHOICE, "Linux on amd64 and arm64 is supported; nothing was changed",
                           &err);
    return inject_choose(i, arch);
}

/* ---- the verdict ---- */

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
    if (strcmp(buf_str(&text), i->file->sha256) != 0) {
        struct err err;
        err_set(&err, ERR_TOOL, "what runs there says that its sha256 is %.64s, and should say %s",
                buf_str(&text), i->file->sha256);
        return inject_fail(r, STEP_PROOF, "nothing that is not of this very build is used", &err);
    }
    struct buf state BUF_AUTO = BUF_INIT;
    show_member(verdict, "state", &state);
    snprintf(r->state, sizeof r->state, "%s", buf_str(&state));
    show_member(verdict, "server", &r->server);
    show_member(verdict, "ended", &r->ended);
    show_member(verdict, "moved", &r->moved);
    show_member(verdict, "stayed", &r->stayed);
    buf_truncate(&text, 0);
    recon_member(verdict, "uid", &text);
    take_uid(r, buf_str(&text)); /* by the kernel's word, whatever an `id` there says */
    r->us[STEP_PROOF] = us_in(verdict, "proof_us");
    r->us[STEP_SERVER] = us_in(verdict, "server_us");
    r->us[STEP_HEALTH] = us_in(verdict, "health_us");
    free(r->user);
    r->user = i->user ? mem_strdup(i->user) : NULL;
    r->ok = true;
    return 0;
}

/* ---- the whole ---- */

/* Three steps were part of the call that a fourth one made. */
static void time_step(struct inject_result *r, enum inject_step step, long long us)
{
    long long inside = 0;
    for (int s = STEP_PROOF; s < N_STEPS; s++)
        inside += r->us[s] > 0 ? r->us[s] : 0;
    r->us[step] = us > inside ? us - inside : 0;
}

bool inject_take_path(struct injection *i, const char *path)
{
    struct err err;
    buf_truncate(&i->r->path, 0);
    if (path[0] == '/' && strlen(path) < 4096 && transport_is_plain(path))
        return buf_adds(&i->r->path, path) == 0;
    err_set(&err, ERR_TOOL, "the path that the target names is none");
    inject_fail(i->r, STEP_PROOF, "look at what runs there", &err);
    return false;
}

static int finish_found(struct injection *i)
{
    if (!inject_take_path(i, i->recon.found) || inject_take_verdict(i, i->recon.verdict) < 0)
        return -1;
    time_step(i->r, STEP_RECON, i->r->us[STEP_RECON]);
    return 0;
}

static int make_ready(struct injection *i)
{
    bool no_shell = false;
    long long began = now_us();
    int result = reconnoitre(i, &no_shell);
    i->r->us[STEP_RECON] = now_us() - began;
    if (result < 0)
        return -1;
    if (no_shell && i->t->kind->copies) {
        began = now_us();
        result = inject_copy(i);
        time_step(i->r, STEP_PLACING, now_us() - began);
        return result;
    }
    if (no_shell) {
        struct err err;
        no_answer(i, &err);
        return inject_fail(
            i->r, STEP_RECON,
            "there is no shell and this runtime has no way to copy a file in: put the binary into the "
            "image or a volume (docs/kubernetes.md)",
            &err);
    }
    describe(i);
    began = now_us();
    result = choose(i);
    i->r->us[STEP_CHOICE] = now_us() - began + i->picked_us;
    if (result < 0)
        return -1;
    if (is_there(i))
        return finish_found(i);
    began = now_us();
    result = inject_place(i);
    time_step(i->r, STEP_PLACING, now_us() - began);
    return result;
}

static int run(struct injection *i)
{
    if (i->t->unlisted)
        return inject_unlisted(i);
    if (i->t->kind->folder)
        return inject_dir(i);
    int result = make_ready(i);
    if (result == 0 || !i->nowhere || i->o->dir || i->recon.everywhere)
        return result;
    i->everywhere = true;
    return make_ready(i);
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
                          .recon = {.distribution = BUF_INIT},
                          .seen = TRANSPORT_CALL_INIT,
                          .place_script = BUF_INIT,
                          .own = o->own ? o->own : &i.picked,
                          .picked = RELEASE_FILE_INIT,
                          .other = RELEASE_FILE_INIT};
    struct err err;
    int calls = transport->calls;
    size_t sent = transport->sent;
    name_temporary(&i);
    long long began = now_us();
    int result = o->own ? 0 : release_pick("linux", os_arch(), &i.picked, &err);
    i.picked_us = now_us() - began;
    result = result < 0
                 ? inject_fail(r, STEP_CHOICE, "this program's own file has to be what was released", &err)
                 : run(&i);
    if (result == 0 && o->with)
        result = inject_carry(&i);
    if (transport->interrupted)
        r->exit = EXIT_BY_SIGNAL + transport->interrupted;
    r->calls = transport->calls - calls;
    r->sent += transport->sent - sent; /* into a directory, and files that a runtime copies, without it */
    recon_release(&i.recon);
    transport_call_release(&i.seen);
    buf_release(&i.place_script);
    release_file_end(&i.picked);
    release_file_end(&i.other);
    return result;
}
