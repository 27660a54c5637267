/* The command line of the browser. */
#include "web_browser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "command.h"
#include "commands/exec/command_print.h"
#include "commands/exec/route.h"
#include "io.h"

/* ---- calls ---- */

static bool member(struct span object, const char *key, struct buf *text)
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
        member(entry, "state", &state);
        if (strcmp(buf_str(&state), "idle") != 0 && strcmp(buf_str(&state), "busy") != 0)
            continue;
        buf_truncate(name, 0);
        member(entry, "session_name", name);
    }
    return 0;
}

static int open_session(const struct command_line *c, struct buf *name, struct err *err)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf result BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_bool(&params, "headful", command_value(c, "headful") != NULL);
    if (command_value(c, "accept-dialogs"))
        json_member_bool(&params, "accept_dialogs", true);
    command_put_string(c, "user", &params, "user");
    buf_addc(&params, '}');
    if (call_method("web_new_session", span_of(&params), &result, err) < 0)
        return -1;
    member(span_of(&result), "session_name", name);
    return 0;
}

/* Begins the params with the session's name. */
static int begin(const struct command_line *c, bool may_open, struct buf *params)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct err err;
    const char *session = command_value(c, "session");
    if (session)
        buf_adds(&name, session);
    else if (newest(&name, &err) < 0 || (name.len == 0 && may_open && open_session(c, &name, &err) < 0))
        return command_failed(c, &err);
    if (name.len == 0)
        return applet_failed(c->applet->name, "there is no session; 'toolbox web_browser go URL' opens one");
    buf_addc(params, '{');
    json_member_text(params, "session_name", buf_str(&name), name.len);
    return EXIT_OK;
}

/* ---- what answers with the page ---- */

static void print_notes(const struct command_line *c, struct span page)
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

static int print_page(const struct command_line *c, struct buf *page)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf error BUF_AUTO = BUF_INIT;
    bool wrong = member(span_of(page), "error", &error);
    if (command_value(c, "json")) {
        int result = command_print_line(c, span_of(page));
        return result == EXIT_OK && wrong ? EXIT_FAILED : result;
    }
    member(span_of(page), "web_url", &text);
    buf_addc(&text, '\n');
    member(span_of(page), "web_at", &text);
    print_notes(c, span_of(page));
    int result = command_print_line(c, span_of(&text));
    command_reword(c, &error);
    return wrong ? applet_failed(c->applet->name, "%s", buf_str(&error)) : result;
}

/* Methods with up to two arguments. */
static const struct action {
    const char *name, *method, *arguments[2];
} actions[] = {
    {"go", "web_go", {"url"}},
    {"click", "web_click", {"element_id"}},
    {"type", "web_type", {"element_id", "text"}},
    {"submit", "web_type_submit", {"element_id", "text"}},
    {"select", "web_select", {"element_id", "value"}},
    {"press", "web_press", {"key"}},
    {"scroll", "web_scroll", {"direction", "element_id"}},
    {"back", "web_back", {NULL}},
    {"forward", "web_forward", {NULL}},
    {"refresh", "web_refresh", {NULL}},
    {"find", "web_find", {"text"}},
};

static int put_number(const struct command_line *c, struct buf *params, const char *key, const char *word)
{
    if (!*word || word[strspn(word, "0123456789")])
        return usage_error(c->applet->name, "'%s' is no number", word);
    return command_number(c, "it", word, params, key);
}

static int do_action(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    const struct action *action = actions;
    while (strcmp(action->name, c->command->name) != 0)
        action++;
    int result = begin(c, action == actions, &params);
    for (int i = 0; result == EXIT_OK && i < c->n_words; i++) {
        if (strcmp(action->arguments[i], "element_id") == 0)
            result = put_number(c, &params, "element_id", c->words[i]);
        else
            json_member_string(&params, action->arguments[i], c->words[i]);
    }
    if (result == EXIT_OK)
        result = command_call(c, action->method, &params, &page);
    return result == EXIT_OK ? print_page(c, &page) : result;
}

/* ---- what answers with something else ---- */

/* What to wait for: one of the options. */
static int do_wait(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    const char *element = command_value(c, "element");
    int result = begin(c, false, &params);
    command_put_string(c, "text", &params, "text");
    command_put_string(c, "gone", &params, "gone");
    command_put_string(c, "url", &params, "url");
    if (command_value(c, "idle"))
        json_member_bool(&params, "network_idle", true);
    if (result == EXIT_OK && element)
        result = put_number(c, &params, "element_id", element);
    if (result == EXIT_OK && command_value(c, "timeout"))
        result = put_number(c, &params, "timeout", command_value(c, "timeout"));
    if (result == EXIT_OK)
        result = command_call(c, "web_wait", &params, &page);
    return result == EXIT_OK ? print_page(c, &page) : result;
}

static int do_text(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    int result = begin(c, false, &params);
    command_put_string(c, "as", &params, "format");
    if (result == EXIT_OK)
        result = command_call(c, "web_text", &params, &answer);
    if (result != EXIT_OK || command_value(c, "json"))
        return result == EXIT_OK ? command_print_line(c, span_of(&answer)) : result;
    member(span_of(&answer), "text", &text);
    return command_print_line(c, span_of(&text));
}

static int write_file(const struct command_line *c, const char *path, const struct buf *data)
{
    bool to_stdout = strcmp(path, "-") == 0;
    int fd = to_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int wrong = fd < 0 || io_write_all(fd, data->data, data->len) < 0 ? errno : 0;
    if (!to_stdout && fd >= 0 && close(fd) < 0 && wrong == 0)
        wrong = errno;
    return wrong == 0 ? EXIT_OK : applet_failed(c->applet->name, "%s: %s", path, err_text(wrong));
}

static int do_shot(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf coded BUF_AUTO = BUF_INIT;
    struct buf picture BUF_AUTO = BUF_INIT;
    if (c->n_words != (command_value(c, "json") ? 0 : 1))
        return usage_error(c->applet->name, "shot takes a file, or --json in its place");
    int result = begin(c, false, &params);
    if (result == EXIT_OK && command_value(c, "full"))
        json_member_bool(&params, "full_page", true);
    if (result == EXIT_OK && command_value(c, "element"))
        result = put_number(c, &params, "element_id", command_value(c, "element"));
    if (result == EXIT_OK)
        result = command_call(c, "web_screenshot", &params, &answer);
    if (result != EXIT_OK || command_value(c, "json"))
        return result == EXIT_OK ? command_print_line(c, span_of(&answer)) : result;
    print_notes(c, span_of(&answer));
    if (!member(span_of(&answer), "data", &coded) || !base64_get(&picture, buf_str(&coded), coded.len))
        return applet_failed(c->applet->name, "the answer holds no picture");
    return write_file(c, c->words[0], &picture);
}

static int do_eval(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value;
    int result = begin(c, false, &params);
    if (result == EXIT_OK) {
        json_member_string(&params, "expression", c->words[0]);
        result = command_call(c, "web_evaluate", &params, &answer);
    }
    if (result != EXIT_OK || command_value(c, "json"))
        return result == EXIT_OK ? command_print_line(c, span_of(&answer)) : result;
    print_notes(c, span_of(&answer));
    if (!member(span_of(&answer), "description", &text) &&
        json_member(span_of(&answer), "value", &value, NULL))
        buf_add(&text, value.s, value.n);
    return command_print_line(c, span_of(&text));
}

static int do_tabs(const struct command_line *c)
{
    static const char *const columns[] = {"tab", "current", "title", "url", NULL};
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = begin(c, false, &params);
    if (result == EXIT_OK)
        result = command_call(c, "web_tabs", &params, &answer);
    return result == EXIT_OK ? command_print_table(c, span_of(&answer), columns) : result;
}

static int do_tab(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    const char *word = c->n_words > 0 ? c->words[0] : "";
    bool opens = strcmp(word, "new") == 0, closes = strcmp(word, "close") == 0;
    if (c->n_words != (closes ? 2 : 1))
        return usage_error(c->applet->name, "tab takes a number, 'new', or 'close' and a number");
    int result = begin(c, false, &params);
    if (result == EXIT_OK && opens)
        json_member_bool(&params, "new", true);
    else if (result == EXIT_OK)
        result = put_number(c, &params, "tab", c->words[closes ? 1 : 0]);
    if (closes)
        json_member_bool(&params, "close", true);
    if (result == EXIT_OK)
        result = command_call(c, "web_tabs", &params, &page);
    return result == EXIT_OK ? print_page(c, &page) : result;
}

static int do_new(const struct command_line *c)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct err err;
    return open_session(c, &name, &err) < 0 ? command_failed(c, &err) : command_print_line(c, span_of(&name));
}

static int do_close(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = begin(c, false, &params);
    return result == EXIT_OK ? command_call(c, "web_close_session", &params, &answer) : result;
}

/* ---- the table ---- */

static const struct command_option options[] = {
    {"session", "NAME", "which session (the newest; for go a new one where there is none)", 0},
    {"headful", NULL, "with a window", 0},
    {"user", "USER", "whom the browser runs as", 0},
    {"accept-dialogs", NULL, "answer yes to dialogs", 0},
    {"full", NULL, "of the whole page", 0},
    {"element", "ID", "an element", 0},
    {"as", "FORMAT", "text, markdown or html", 0},
    {"text", "TEXT", "until it can be seen", 0},
    {"gone", "TEXT", "until it can't be seen any more", 0},
    {"url", "PART", "until that is in the address", 0},
    {"idle", NULL, "until nothing is loaded any more", 0},
    {"timeout", "SECONDS", "how long at most (30)", 0},
    COMMAND_LIST_OPTIONS,
    {0},
};

#define OPENING "headful user accept-dialogs"
#define PAGE "session json"
#define ACTION(name, arguments, words, summary, help, example)                                               \
    {                                                                                                        \
        name, arguments, PAGE, summary, help, example, words, words, do_action, NULL                         \
    }

static const struct command list[] = {
    {"go", "URL", PAGE " " OPENING, "open a page", NULL, "example.org", 1, 1, do_action, NULL},
    ACTION("click", "ID", 1, "click an element", "ID is the number at the front of its line.", "12"),
    ACTION("type", "ID TEXT", 2, "type into an element, behind what is there",
           "Of a select: choose an option.", "12 words"),
    ACTION("submit", "ID TEXT", 2, "type in place of what is there, and press Enter", NULL, "12 words"),
    ACTION("select", "ID OPTION", 2, "choose an option of a select", "OPTION is its value, or what it shows.",
           "12 red"),
    ACTION("press", "KEY", 1, "press a key: Enter, Escape, Control+A, …", NULL, "Control+A"),
    {"scroll", "up|down [ID]", PAGE, "scroll the page, or what the element is in", NULL, "down 12", 1, 2,
     do_action, NULL},
    ACTION("back", "", 0, "go back in the history", NULL, ""),
    ACTION("forward", "", 0, "go forward in the history", NULL, ""),
    ACTION("refresh", "", 0, "load the page again", NULL, ""),
    ACTION("find", "TEXT", 1, "find a text, and scroll to it", "The same again goes to the next place.",
           "words"),
    {"wait", "", PAGE " text gone url element idle timeout", "wait for something on the page", NULL,
     "--text 'It is done' --timeout 60", 0, 0, do_wait, NULL},
    {"text", "", PAGE " as", "print the page's whole text", NULL, "--as markdown", 0, 0, do_text, NULL},
    {"shot", "[FILE]", PAGE " full element", "take a picture of what is visible, as PNG",
     "FILE - is stdout; with --json it is left out, and the picture is in base64.", "page.png --full", 0, 1,
     do_shot, NULL},
    {"eval", "EXPRESSION", PAGE, "print the value of a JavaScript expression, as JSON", NULL,
     "document.title", 1, 1, do_eval, NULL},
    {"tabs", "", "session " COMMAND_LIST_TAKES, "show the open tabs", NULL, "", 0, 0, do_tabs, NULL},
    {"tab", "N|new|close N", PAGE, "show a tab, open or close one", NULL, "close 2", 1, 2, do_tab, NULL},
    {"new", "", OPENING " json", "open a session and print its name", NULL, "--accept-dialogs", 0, 0, do_new,
     NULL},
    {"list", "", COMMAND_LIST_TAKES, "show the sessions", NULL, "", 0, 0, command_print_list, NULL},
    {"close", "", PAGE, "end a session", NULL, "--session WebBrowser_1", 0, 0, do_close, NULL},
    {0},
};

static const char *const words[][2] = {
    {"web_new_session", "new"},
    {"web_refresh", "refresh"},
    {"web_go", "go"},
    {0},
};
static const char *const params_said[][2] = {
    {"element_id", "ID"}, {"session_name", "--session"}, {"url", "URL"}, {"direction", "the direction"},
    {"key", "KEY"},       {"value", "OPTION"},           {"tab", "N"},   {0},
};

static const struct command_set commands = {
    .about = "Drives a browser (a Chromium that is here already), and shows pages as text: one element a "
             "line, with "
             "the number by which it is clicked or typed into.",
    .more =
        "The browser is what $TOOLBOX_BROWSER says when the server starts, or chromium, chromium-browser, "
        "google-chrome or chrome-headless-shell on the PATH, or one of Playwright's. The status is 1 when an "
        "action has failed.",
    .options = options,
    .list = list,
    .tool = &web_browser_tool,
    .words = words,
    .params = params_said,
};

const struct applet web_browser_applet = {
    .name = "web_browser",
    .summary = "drive a browser: pages as text, clicks, typing, pictures",
    .commands = &commands,
};
