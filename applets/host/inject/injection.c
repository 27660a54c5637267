#include "host/inject/injection.h"

#include <string.h>

#include "osinfo.h"

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

struct script_options inject_script(const struct injection *i, const char *sums)
{
    return (struct script_options){.dir = i->o->dir,
                                   .name = i->o->name,
                                   .links = i->o->links,
                                   .replace = i->o->replace,
                                   .upgrade = i->o->upgrade,
                                   .sums = sums,
                                   .temporary = i->temporary,
                                   .uid = i->looked.recon.uid,
                                   .everywhere = i->everywhere};
}

void inject_place_dirs(const struct injection *i, struct argv *dirs)
{
    for (size_t n = 0; n < i->looked.recon.dirs.n; n++)
        argv_add(dirs, i->looked.recon.dirs.words[n]);
    if (i->o->dir && dirs->n == 0)
        argv_add(dirs, i->o->dir);
}

void inject_place_script(const struct injection *i, struct buf *script)
{
    struct script_options o = inject_script(i, i->choice.file->sha256);
    struct argv dirs ARGV_AUTO = {0};
    inject_place_dirs(i, &dirs);
    script_place(script, &o, &dirs, i->choice.file->bytes.len, 0, "");
}

/* ---- what went wrong ---- */

int inject_unlisted(struct injection *i)
{
    struct err err;
    err_set(&err, ERR_TOOL, "%s", i->t->unlisted);
    return inject_fail(i->r, STEP_TARGET, INJECT_TARGET_ADVICE, &err);
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

int inject_no_answer(const struct injection *i, struct err *err)
{
    struct buf said BUF_AUTO = BUF_INIT;
    transport_said(&i->looked.seen, &said);
    if (stdin_is_lost(&i->looked.seen))
        return err_set(
            err, ERR_TOOL,
            "what is written to its stdin does not arrive there: is an option such as -i missing?");
    return err_set(err, ERR_TOOL, "nothing can be run in it (exit status %d)%s%s", i->looked.seen.status,
                   said.len > 0 ? ": " : "", buf_str(&said));
}

/* ---- choice ---- */

int inject_choose(struct injection *i, const char *arch)
{
    struct err err;
    i->choice.arch = arch;
    snprintf(i->r->found.arch, sizeof i->r->found.arch, "%s", arch);
    i->choice.file = i->choice.own;
    if (strcmp(arch, os_arch()) != 0) {
        release_file_end(&i->choice.other);
        i->choice.other = (struct release_file)RELEASE_FILE_INIT;
        if (release_pick("linux", arch, &i->choice.other, &err) < 0) {
            err_wrap(&err, "%s is not supported here", arch);
            return inject_fail(i->r, STEP_CHOICE, "see 'toolbox release --help'", &err);
        }
        i->choice.file = &i->choice.other;
    }
    memcpy(i->r->placed.sha256, i->choice.file->sha256, sizeof i->r->placed.sha256);
    i->r->placed.size = i->choice.file->bytes.len;
    return 0;
}
