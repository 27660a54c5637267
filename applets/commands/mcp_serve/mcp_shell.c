/* Shells: the methods of bash_session, as tools. */
#include "mcp_tools.h"

#include <string.h>
#include <unistd.h>

#include "commands/exec/route.h"
#include "surroundings.h"

static int no_shell(struct err *err)
{
    return err_set(err, ERR_TOOL, "There is no shell yet: shell_run starts one");
}

/* Appends the members of an object to one that has been begun. */
static void put_members(struct buf *out, const struct buf *object)
{
    if (object->len <= 2)
        return;
    buf_addc(out, ',');
    buf_add(out, object->data + 1, object->len - 2);
}

static void begin_result(struct work *w, const char *session)
{
    buf_addc(&w->structured, '{');
    json_member_string(&w->structured, "session", session);
}

static void begin_params(struct buf *params, const char *session)
{
    buf_addc(params, '{');
    json_member_string(params, "session_name", session);
}

static void put_number(struct buf *out, const char *key, double value)
{
    json_key(out, key);
    buf_addf(out, "%.3f", value);
}

/* ---- starting ---- */

static void put_env(struct buf *out, const struct texts *env)
{
    json_key(out, "env");
    buf_addc(out, '{');
    for (size_t i = 0; i < env->n; i++) {
        const char *equals = strchr(env->list[i], '=');
        if (i > 0)
            buf_addc(out, ',');
        json_put_string(out, env->list[i], (size_t)(equals - env->list[i]));
        buf_addc(out, ':');
        json_puts(out, equals + 1);
    }
    buf_addc(out, '}');
}

void mcp_put_surroundings(struct buf *params, const struct args *a)
{
    if (a->cwd.s)
        json_member_string(params, "cwd", a->cwd.s);
    if (a->user.s)
        json_member_string(params, "user", a->user.s);
    if (a->env.list)
        put_env(params, &a->env);
}

void mcp_put_words(struct buf *params, const char *key, const struct texts *words)
{
    if (!words->list)
        return;
    json_key(params, key);
    buf_addc(params, '[');
    for (size_t i = 0; i < words->n; i++) {
        if (i > 0)
            buf_addc(params, ',');
        json_puts(params, words->list[i]);
    }
    buf_addc(params, ']');
}

void mcp_put_start(struct buf *params, const struct work *w)
{
    surroundings_put(params);
    if (!w->keep)
        json_member_int(params, "ends_with", w->serve);
}

/* A new session; its name and shell into these. */
static int start(struct work *w, bool is_default, struct buf *name, struct buf *shell, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    struct span value;
    buf_addc(&params, '{');
    mcp_put_start(&params, w);
    if (!is_default) {
        mcp_put_surroundings(&params, &w->args);
        if (w->args.shell.s)
            json_member_string(&params, "shell", w->args.shell.s);
        mcp_put_words(&params, "program", &w->args.program);
        if (w->args.term.s)
            json_member_string(&params, "term", w->args.term.s);
        if (w->args.rows > 0)
            json_member_int(&params, "rows", w->args.rows);
        if (w->args.cols > 0)
            json_member_int(&params, "cols", w->args.cols);
    }
    buf_addc(&params, '}');
    work_make_begin();
    if (call_method("bash_session_new_session", span_of(&params), &result, err) < 0)
        return -1;
    if (json_member(span_of(&result), "session_name", &value, NULL))
        json_string_text(value, name);
    if (json_member(span_of(&result), "shell", &value, NULL))
        json_string_text(value, shell);
    work_made_session(w, buf_str(name), is_default);
    work_make_end();
    work_log(w, "info", "session %s started: %s", buf_str(name), buf_str(shell));
    return 0;
}

int mcp_shell_new(struct work *w, struct err *err)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf shell BUF_AUTO = BUF_INIT;
    if (start(w, false, &name, &shell, err) < 0)
        return -1;
    begin_result(w, buf_str(&name));
    json_member_string(&w->structured, "shell", buf_str(&shell));
    buf_addc(&w->structured, '}');
    return 0;
}

/* ---- commands ---- */

static int run(struct work *w, const char *session, bool command, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    begin_params(&params, session);
    if (command)
        json_member_text(&params, "command", w->args.command.s, w->args.command.n);
    put_number(&params, "timeout", w->args.timeout);
    json_member_int(&params, "max_output_bytes", w->args.max_bytes);
    if (command)
        buf_adds(&params, ",\"interrupt_abandoned\":true"); /* as a cancelled call is */
    buf_addc(&params, '}');
    if (call_method("bash_session_run", span_of(&params), &result, err) < 0)
        return -1;
    begin_result(w, session);
    put_members(&w->structured, &result);
    buf_addc(&w->structured, '}');
    return 0;
}

int mcp_shell_run(struct work *w, struct err *err)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf shell BUF_AUTO = BUF_INIT;
    if (w->session)
        buf_adds(&name, w->session);
    else if (start(w, true, &name, &shell, err) < 0)
        return -1;
    return run(w, buf_str(&name), true, err);
}

int mcp_shell_wait(struct work *w, struct err *err)
{
    return w->session ? run(w, w->session, false, err) : no_shell(err);
}

/* ---- typing and reading ---- */

static int interact(struct work *w, const char *input, size_t n, double idle, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    begin_params(&params, w->session);
    json_member_int(&params, "wait_for_output", w->args.timeout_s);
    put_number(&params, "idle_timeout", idle);
    json_member_int(&params, "max_output_bytes", w->args.max_bytes);
    if (input)
        json_member_text(&params, "input", input, n);
    buf_addc(&params, '}');
    if (call_method("bash_session", span_of(&params), &result, err) < 0)
        return -1;
    begin_result(w, w->session);
    json_key(&w->structured, "output");
    buf_add(&w->structured, result.data, result.len);
    buf_addc(&w->structured, '}');
    return 0;
}

int mcp_shell_input(struct work *w, struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!w->session)
        return no_shell(err);
    buf_add(&text, w->args.text.s, w->args.text.n);
    if (w->args.enter)
        buf_addc(&text, '\n');
    return interact(w, buf_str(&text), text.len, 0.5, err);
}

int mcp_shell_read(struct work *w, struct err *err)
{
    return w->session ? interact(w, NULL, 0, 0.5, err) : no_shell(err);
}

int mcp_shell_interrupt(struct work *w, struct err *err)
{
    return w->session ? interact(w, "\003", 1, 0.5, err) : no_shell(err);
}

/* ---- life ---- */

static int call_session(const char *session, const char *method, const char *more, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    begin_params(&params, session);
    buf_adds(&params, more);
    buf_addc(&params, '}');
    return call_method(method, span_of(&params), &result, err);
}

static int only_session(struct work *w)
{
    begin_result(w, w->session);
    buf_addc(&w->structured, '}');
    return 0;
}

int mcp_shell_restart(struct work *w, struct err *err)
{
    if (!w->session)
        return no_shell(err);
    if (call_session(w->session, "bash_session", ",\"restart\":true", err) < 0)
        return -1;
    return only_session(w);
}

int mcp_shell_close(struct work *w, struct err *err)
{
    if (call_session(w->session, "bash_session_close", "", err) < 0)
        return -1;
    work_closed_session(w, w->session);
    return only_session(w);
}

int mcp_shell_list(struct work *w, struct err *err)
{
    struct buf result BUF_AUTO = BUF_INIT;
    if (call_method("bash_session_list", (struct span){"{}", 2}, &result, err) < 0)
        return -1;
    buf_addc(&w->structured, '{');
    json_member_string(&w->structured, "default_session", w->session);
    json_key(&w->structured, "sessions");
    buf_add(&w->structured, result.data, result.len);
    buf_addc(&w->structured, '}');
    return 0;
}

/* ---- of our own accord ---- */

int mcp_end_session(struct work *w, struct err *err)
{
    return call_session(w->session, "bash_session_close", "", err);
}
