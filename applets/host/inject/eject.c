/* The way out: the program removes itself, wherever in the target it may be. */
#include <string.h>

#include "host/inject/connection.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_steps.h"
#include "io.h"
#include "mem.h"
#include "commands/settle/settle.h"

struct ejection {
    struct injection i;
    struct buf removed, left;
    bool reached, no_shell;
};

static void read_answer(struct ejection *e, struct span answer)
{
    struct span line;
    bool begun = false;
    for (size_t at = 0; recon_line(answer, &at, &line);) {
        struct buf *into = line.n > 2 && line.s[0] == 'b'   ? &e->removed
                           : line.n > 2 && line.s[0] == 'e' ? &e->left
                                                            : NULL;
        if (!begun)
            begun = span_is(line, SCRIPT_MARK);
        else if (span_is(line, SCRIPT_END))
            e->reached = true;
        else if (into && line.s[1] == ' ') {
            buf_adds(into, into->len > 0 ? ", " : "");
            transport_show(into, line.s + 2, line.n - 2, 400);
        }
    }
}

/* As one user; what is another's is that one's to remove. */
static void eject_as(struct ejection *e, const char *user, struct buf *said)
{
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct script_options o = {.dir = e->i.o->dir, .name = e->i.o->name, .everywhere = true};
    struct buf script BUF_AUTO = BUF_INIT;
    struct err err = {0};
    script_eject(&script, &o);
    e->i.user = user;
    enum transport_end how = inject_call(&e->i, &script, NULL, &c, &err);
    read_answer(e, span_of(&c.out));
    e->no_shell = inject_no_shell(&c);
    buf_truncate(said, 0);
    if (how != TRANSPORT_ENDED)
        buf_adds(said, err.msg);
    else
        transport_said(&c, said);
}

/* Where there is no shell the program is where inject_copy has put it. */
static void eject_without_shell(struct ejection *e, struct buf *said)
{
    char *path MEM_AUTO = mem_printf("%s/%s", e->i.o->dir ? e->i.o->dir : "/" SETTLE_DIR, e->i.o->name);
    const char *const words[] = {path, "settle", "--at", path, "--remove", NULL};
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    struct argv command ARGV_AUTO = {0};
    for (const char *const *word = words; *word; word++)
        argv_add(&command, *word);
    if (inject_call(&e->i, NULL, &command, &c, NULL) != TRANSPORT_ENDED)
        return;
    bool is_gone = strstr(buf_str(&c.err), "no such file") || strstr(buf_str(&c.out), "no such file");
    e->reached = c.status <= 1 || is_gone;
    buf_truncate(said, 0);
    transport_said(&c, said);
    if (!is_gone)
        buf_adds(c.status == 0 ? &e->removed : &e->left, path);
}

static void eject_running(struct ejection *e, struct buf *said)
{
    const struct inject_options *o = e->i.o;
    bool chosen = o->user && strcmp(o->user, "default") != 0;
    const char *root = o->user                 ? (chosen ? o->user : NULL)
                       : e->i.t->kind->root    ? e->i.t->kind->root
                       : o->runtimes.root_exec ? "root"
                                               : NULL;
    if (root)
        eject_as(e, root, said);
    if (!chosen && !e->no_shell)
        eject_as(e, NULL, said);
    if (e->no_shell && e->i.t->kind->copies) {
        e->i.user = root;
        eject_without_shell(e, said);
    }
}

static void conclude(struct ejection *e, const struct buf *said)
{
    struct inject_result *r = e->i.r;
    struct err err;
    if (!e->reached) {
        err_set(&err, ERR_TOOL, "nothing can be run in it%s%s", said->len > 0 ? ": " : "", buf_str(said));
        inject_fail(r, STEP_TARGET, "check that it exists and runs", &err);
    } else if (e->left.len > 0) {
        err_set(&err, ERR_TOOL, "%s is still there: %s", buf_str(&e->left), buf_str(said));
        inject_fail(r, STEP_PLACING, "look at what is running there, and try again", &err);
    } else {
        r->ok = true;
        snprintf(r->placed.state, sizeof r->placed.state, "%s",
                 e->removed.len > 0 ? "removed" : "nothing there");
        buf_adds(&r->placed.path, buf_str(&e->removed));
    }
}

void eject_one(const struct inject_options *o, const struct target *t, struct transport *transport,
               struct inject_result *r)
{
    struct ejection e = {
        .i = {.o = o, .t = t, .transport = transport, .r = r}, .removed = BUF_INIT, .left = BUF_INIT};
    struct buf said BUF_AUTO = BUF_INIT;
    struct err err;
    int calls = transport->calls;
    size_t sent = transport->sent;
    long long began = now_us();
    if (t->unlisted) {
        inject_unlisted(&e.i);
    } else if (!t->kind->folder) {
        connection_end(o, t); /* its other end runs there */
        eject_running(&e, &said);
        conclude(&e, &said);
    } else {
        enum inject_step failed;
        int result = inject_dir_eject(o, t, &failed, &err);
        r->ok = result >= 0;
        snprintf(r->placed.state, sizeof r->placed.state, "%s", result > 0 ? "nothing there" : "removed");
        if (result < 0)
            inject_fail(r, failed, failed == STEP_TARGET ? INJECT_DIR_ADVICE : "", &err);
    }
    r->cost.whole_us = now_us() - began;
    if (transport->interrupted)
        r->failure.exit = EXIT_BY_SIGNAL + transport->interrupted;
    r->cost.calls = transport->calls - calls;
    r->cost.sent = transport->sent - sent;
    buf_release(&e.removed);
    buf_release(&e.left);
}
