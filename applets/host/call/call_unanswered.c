#include "host/call/call_unanswered.h"

#include <string.h>

#include "applet.h"
#include "host/inject/inject_one.h"

static const char NAME[] = "call";

/* How the outcome of a method is had: by another one, with these of its params, and more words. */
static const struct {
    const char *method; /* "x_": all that begin so */
    const char *by, *same[3], *more;
} ways[] = {
    {"bash_session_run", "bash_session_run", {"session_name"}, ""},
    {"bash_session_", "bash_session_list", {NULL}, ""},
    {"bash_session", "bash_session", {"session_name"}, " wait_for_output:=5 idle_timeout:=0.5"},
    {"exec_remote_start", "exec_remote_list", {NULL}, ""},
    {"exec_remote_signal", "exec_remote_list", {NULL}, ""},
    {"exec_remote_", "exec_remote_poll", {"pid", "ack_seq"}, ""},
    {"mcp_", "mcp_list_servers", {NULL}, ""},
    {"web_new_session", "web_list_sessions", {NULL}, ""},
    {"web_close_session", "web_list_sessions", {NULL}, ""},
    {"web_", "web_text", {"session_name"}, ""},
    {"text_editor", "text_editor", {"path"}, " command=view"},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void add_option(struct buf *out, const char *option, const char *value)
{
    if (!value)
        return;
    buf_addf(out, " %s ", option);
    argv_quote(out, value);
}

/* A param as a word. */
static void add_param(struct buf *out, struct span params, const char *key)
{
    struct span value;
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf word BUF_AUTO = BUF_INIT;
    if (json_kind(params) != JSON_OBJECT || !json_member(params, key, &value, NULL))
        return;
    if (json_string_text(value, &text) && *buf_str(&text) != '@')
        buf_addf(&word, "%s=%s", key, buf_str(&text));
    else
        buf_addf(&word, "%s:=%.*s", key, (int)value.n, value.s);
    buf_addc(out, ' ');
    argv_quote(out, buf_str(&word));
}

static void add_command(struct buf *out, const struct inject_options *o, const struct target *t,
                        const char *method, struct span params)
{
    size_t i = 0;
    for (; i < N_WAYS; i++) {
        size_t n = strlen(ways[i].method);
        if (strncmp(method, ways[i].method, n) == 0 && (!method[n] || ways[i].method[n - 1] == '_'))
            break;
    }
    if (i == N_WAYS)
        return;
    buf_adds(out, "; what has become of it: toolbox call");
    add_option(out, "--dir", o->dir);
    add_option(out, "--name", strcmp(o->name, "toolbox") == 0 ? NULL : o->name);
    add_option(out, "--user", o->user);
    add_option(out, "--runtime", o->runtimes.runtime);
    add_option(out, "--root-exec", o->runtimes.root_exec);
    buf_addc(out, ' ');
    argv_quote(out, t->text);
    buf_addf(out, " %s", ways[i].by);
    for (const char *const *key = ways[i].same; *key; key++)
        add_param(out, params, *key);
    buf_adds(out, ways[i].more);
}

int call_unanswered(const struct inject_options *o, const struct target *t, const char *method,
                    struct span params, const struct inject_request *q)
{
    struct buf way BUF_AUTO = BUF_INIT;
    add_command(&way, o, t, method, params);
    if (q->how == TRANSPORT_TIMEOUT) {
        applet_failed(NAME,
                      "%s: no answer within %g s (--timeout); the call isn't made again, and goes on there%s",
                      t->text, o->timeout_ms / 1000.0, buf_str(&way));
        return EXIT_UNANSWERED;
    }
    applet_failed(NAME,
                  "%s: the connection ended (exit status %d%s%s) before the answer to a call that was sent%s",
                  t->text, q->status, q->said.len > 0 ? ": " : "", buf_str(&q->said), buf_str(&way));
    return EXIT_LOST;
}
