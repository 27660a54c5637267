#include "web_commands.h"

#include <stdlib.h>
#include <string.h>

#include "commands/exec/command_print.h"
#include "commands/exec/route.h"
#include "mem.h"

/* ---- calls ---- */

bool web_member(struct span object, const char *key, struct buf *text)
{
    struct span value;
    return json_member(object, key, &value, NULL) && json_string_text(value, text);
}

/* The newest session that lives; "" when there is none. */
static int newest(struct buf *name, struct err *err)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct span entry;
    if (call_method("web_list_sessions", (struct span){"{}", 2}, &list, err) < 0)
        return -1;
    for (size_t at = 0; json_element(span_of(&list), &at, &entry);) {
        struct buf state BUF_AUTO = BUF_INIT;
        web_member(entry, "state", &state);
        if (strcmp(buf_str(&state), "idle") != 0 && strcmp(buf_str(&state), "busy") != 0)
            continue;
        buf_truncate(name, 0);
        web_member(entry, "session_name", name);
    }
    return 0;
}

static void put_flag(const struct command_line *c, const char *option, const char *key, struct buf *params)
{
    if (command_value(c, option))
        json_member_bool(params, key, true);
}

int web_open_session(const struct command_line *c, struct buf *name, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_bool(&params, "headful", command_value(c, "headful") != NULL);
    put_flag(c, "accept-dialogs", "accept_dialogs", &params);
    put_flag(c, "ask-dialogs", "ask_dialogs", &params);
    put_flag(c, "accept-certificates", "accept_certificates", &params);
    put_flag(c, "devtools", "devtools", &params);
    command_put_string(c, "user", &params, "user");
    char *folder MEM_AUTO =
        command_value(c, "downloads") ? realpath(command_value(c, "downloads"), NULL) : NULL;
    if (command_value(c, "downloads"))
        json_member_string(&params, "downloads", folder ? folder : command_value(c, "downloads"));
    buf_addc(&params, '}');
    if (call_method("web_new_session", span_of(&params), &result, err) < 0)
        return -1;
    web_member(span_of(&result), "session_name", name);
    return 0;
}

/* Begins the params with the session's name. */
int web_begin(const struct command_line *c, bool may_open, struct buf *params)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct err err;
    const char *session = command_value(c, "session");
    if (session)
        buf_adds(&name, session);
    else if (newest(&name, &err) < 0 || (name.len == 0 && may_open && web_open_session(c, &name, &err) < 0))
        return command_failed(c, &err);
    if (name.len == 0)
        return applet_failed(c->applet->name, "there is no session; 'toolbox web_browser go URL' opens one");
    buf_addc(params, '{');
    json_member_text(params, "session_name", buf_str(&name), name.len);
    return EXIT_OK;
}

/* ---- answers ---- */

void web_print_notes(const struct command_line *c, struct span page)
{
    struct span notes, note;
    if (!json_member(page, "notes", &notes, NULL))
        return;
    for (size_t at = 0; json_element(notes, &at, &note);) {
        struct buf text BUF_AUTO = BUF_INIT;
        if (!json_string_text(note, &text))
            continue;
        command_reword(c, &text);
        applet_failed(c->applet->name, "%s", buf_str(&text));
    }
}

int web_print_page(const struct command_line *c, struct buf *page)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf error BUF_AUTO = BUF_INIT;
    bool wrong = web_member(span_of(page), "error", &error);
    if (command_value(c, "json")) {
        int result = command_print_line(c, span_of(page));
        return result == EXIT_OK && wrong ? EXIT_FAILED : result;
    }
    web_member(span_of(page), "web_url", &text);
    buf_addc(&text, '\n');
    web_member(span_of(page), "web_at", &text);
    web_print_notes(c, span_of(page));
    int result = command_print_line(c, span_of(&text));
    command_reword(c, &error);
    return wrong ? applet_failed(c->applet->name, "%s", buf_str(&error)) : result;
}

int web_put_number(const struct command_line *c, struct buf *params, const char *key, const char *word)
{
    if (!*word || word[strspn(word, "0123456789")])
        return usage_error(c->applet->name, "'%s' is no number", word);
    return command_number(c, "it", word, params, key);
}

int web_put_pair(const struct command_line *c, const char *option, char between, const char *const keys[2],
                 struct buf *params)
{
    const char *value = command_value(c, option), *at = value ? strchr(value, between) : NULL;
    if (!value)
        return EXIT_OK;
    if (!at)
        return usage_error(c->applet->name, "--%s takes two numbers with %c between", option, between);
    char *first MEM_AUTO = mem_dup(value, (size_t)(at - value));
    int result = command_number(c, option, first, params, keys[0]);
    return result == EXIT_OK ? command_number(c, option, at + 1, params, keys[1]) : result;
}
