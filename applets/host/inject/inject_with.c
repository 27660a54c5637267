/* The folder that comes along: the program that is there by now takes it, and puts it beside itself. */
#include "host/inject/pack.h"
#include "host/inject/inject_steps.h"

static int refused(struct injection *i, struct transport_call *c, struct err *err)
{
    struct buf said BUF_AUTO = BUF_INIT;
    struct span line, message;
    for (size_t at = 0; recon_line(span_of(&c->out), &at, &line);)
        if (line.n > 0 && line.s[0] == '{' && json_check(line, NULL) == 0 &&
            json_member(line, "message", &message, NULL))
            json_string_text(message, &said);
    if (said.len == 0)
        transport_said(c, &said);
    err_set(err, ERR_TOOL, "the folder that was to come along did not (exit status %d)%s%s", c->status,
            said.len > 0 ? ": " : "", buf_str(&said));
    return inject_fail(i->r, STEP_PLACING, "the program itself is there and ready; try again", err);
}

int inject_with(struct injection *i)
{
    const char *path = buf_str(&i->r->placed.path);
    const char *const words[] = {path, "settle", "--at", path, "--unpack", NULL};
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct argv command ARGV_AUTO = {0};
    struct err err = {0};
    for (const char *const *word = words; *word; word++)
        argv_add(&command, *word);
    c.input[1] = i->o->with->stream;
    if (inject_call(i, NULL, &command, &c, &err) != TRANSPORT_ENDED)
        return inject_fail(i->r, STEP_PLACING, "the program itself is there and ready; try again", &err);
    return c.status == 0 ? 0 : refused(i, &c, &err);
}
