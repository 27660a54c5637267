/* The command line of the browser. */
#include "web_browser.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "exec/route.h"
#include "io.h"
#include "json_table.h"
#include "mem.h"

static const char NAME[] = "web_browser";

static const char usage[] =
    "Usage: toolbox web_browser COMMAND [ARGUMENT]... [--session NAME] [--json]\n"
    "\n"
    "Drives a browser (a Chromium that is here already), and shows pages as text: one\n"
    "element a line, with the number by which it is clicked or typed into.\n"
    "\n"
    "  go URL              open a page; without a scheme it is https://\n"
    "  click ID            click an element\n"
    "  type ID TEXT        type into one, behind what is there; choose an option of a\n"
    "                      select\n"
    "  submit ID TEXT      type in place of what is there, and press Enter\n"
    "  select ID OPTION    choose an option of a select\n"
    "  press KEY           press a key: Enter, Escape, Control+A, …\n"
    "  scroll up|down      by the height of the window\n"
    "  back, forward, refresh\n"
    "  text                the page's whole text\n"
    "  shot FILE           a picture of what is visible, as PNG (-: to stdout; --json\n"
    "                      in its place: as base64);\n"
    "                      --full: of the whole page\n"
    "  eval EXPRESSION     the value of a JavaScript expression, as JSON\n"
    "  tabs                the open tabs; tab N shows one, tab new opens one,\n"
    "                      tab close N closes one\n"
    "  new                 open a session and print its name: [--headful]\n"
    "                      [--user USER] [--accept-dialogs]\n"
    "  list                the sessions\n"
    "  close               end a session\n"
    "\n"
    "  --session NAME      which session; otherwise the newest, and for go a new one\n"
    "                      where there is none\n"
    "  --json              the result as JSON\n"
    "  --help              this text\n"
    "\n"
    "The browser is what $TOOLBOX_BROWSER says when the server starts, or chromium,\n"
    "chromium-browser, google-chrome or chrome-headless-shell on the PATH, or one of\n"
    "Playwright's. The status is 1 when an action has failed.\n"
    "\n"
    "  toolbox web_browser go example.org\n"
    "  toolbox web_browser click 12\n"
    "  toolbox web_browser shot page.png\n";

enum { OPT_SESSION = 256, OPT_JSON, OPT_HEADFUL, OPT_USER, OPT_FULL, OPT_ACCEPT };

static const struct option options[] = {
    {"session", 1, NULL, OPT_SESSION},
    {"json", 0, NULL, OPT_JSON},
    {"headful", 0, NULL, OPT_HEADFUL},
    {"user", 1, NULL, OPT_USER},
    {"full", 0, NULL, OPT_FULL},
    {"accept-dialogs", 0, NULL, OPT_ACCEPT},
    {0},
};

struct command_line {
    const char *session, *user;
    bool as_json, headful, full, accept_dialogs;
    char **words;
    int n_words;
};

/* ---- options ---- */

static int parse(struct command_line *c, int argc, char **argv)
{
    for (int option; (option = usage_option(NAME, argc, argv, ":", options, NULL)) >= 0;) {
        if (option == OPT_SESSION)
            c->session = optarg;
        else if (option == OPT_USER)
            c->user = optarg;
        else if (option == OPT_JSON)
            c->as_json = true;
        else if (option == OPT_HEADFUL)
            c->headful = true;
        else if (option == OPT_FULL)
            c->full = true;
        else if (option == OPT_ACCEPT)
            c->accept_dialogs = true;
        else
            return EXIT_USAGE; /* said */
    }
    c->words = argv + optind;
    c->n_words = argc - optind;
    return EXIT_OK;
}

/* ---- calls ---- */

static int print(struct buf *text)
{
    if (text->len == 0 || text->data[text->len - 1] != '\n')
        buf_addc(text, '\n');
    if (io_write_all(STDOUT_FILENO, text->data, text->len) == 0)
        return EXIT_OK;
    return applet_failed(NAME, "cannot write: %s", err_text(errno));
}

static int failed(const struct err *err)
{
    return applet_failed(NAME, "%s", err->msg);
}

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
    json_member_bool(&params, "headful", c->headful);
    if (c->accept_dialogs)
        json_member_bool(&params, "accept_dialogs", true);
    if (c->user)
        json_member_string(&params, "user", c->user);
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
    if (c->session)
        buf_adds(&name, c->session);
    else if (newest(&name, &err) < 0 || (name.len == 0 && may_open && open_session(c, &name, &err) < 0))
        return failed(&err);
    if (name.len == 0)
        return applet_failed(NAME, "there is no session; 'toolbox web_browser go URL' opens one");
    buf_addc(params, '{');
    json_member_text(params, "session_name", buf_str(&name), name.len);
    return EXIT_OK;
}

static int call(const char *method, struct buf *params, struct buf *result)
{
    struct err err;
    buf_addc(params, '}');
    return call_method(method, span_of(params), result, &err) < 0 ? failed(&err) : EXIT_OK;
}

/* ---- what answers with the page ---- */

static void print_notes(struct span page)
{
    struct span notes, note;
    if (!json_member(page, "notes", &notes, NULL))
        return;
    for (size_t at = 0; json_element(notes, &at, &note);) {
        struct buf text BUF_AUTO = BUF_INIT;
        if (json_string_text(note, &text))
            fprintf(stderr, "toolbox %s: %s\n", NAME, buf_str(&text));
    }
}

static int print_page(const struct command_line *c, struct buf *page)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf error BUF_AUTO = BUF_INIT;
    bool wrong = member(span_of(page), "error", &error);
    if (c->as_json) {
        int result = print(page);
        return result == EXIT_OK && wrong ? EXIT_FAILED : result;
    }
    member(span_of(page), "web_url", &text);
    buf_addc(&text, '\n');
    member(span_of(page), "web_at", &text);
    print_notes(span_of(page));
    int result = print(&text);
    return wrong ? applet_failed(NAME, "%s", buf_str(&error)) : result;
}

/* Methods with up to two arguments: a number stands for an element's id. */
static const struct action_command {
    const char *name, *method, *arguments[2];
} actions[] = {
    {"go", "web_go", {"url"}},
    {"click", "web_click", {"element_id"}},
    {"type", "web_type", {"element_id", "text"}},
    {"submit", "web_type_submit", {"element_id", "text"}},
    {"select", "web_select", {"element_id", "value"}},
    {"press", "web_press", {"key"}},
    {"scroll", "web_scroll", {"direction"}},
    {"back", "web_back", {NULL}},
    {"forward", "web_forward", {NULL}},
    {"refresh", "web_refresh", {NULL}},
};
enum { N_ACTIONS = sizeof actions / sizeof *actions };

static int put_number(struct buf *params, const char *key, const char *word)
{
    char *end;
    errno = 0;
    long long number = strtoll(word, &end, 10);
    if (*word == '\0' || *end != '\0' || errno != 0 || number < 0)
        return usage_error(NAME, "'%s' is no number", word);
    json_member_int(params, key, number);
    return EXIT_OK;
}

static int do_action(const struct action_command *action, const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    int wanted = !action->arguments[0] ? 0 : !action->arguments[1] ? 1 : 2;
    if (c->n_words != wanted)
        return usage_error(NAME, "%s takes %d argument%s, not %d", action->name, wanted,
                           wanted == 1 ? "" : "s", c->n_words);
    int result = begin(c, strcmp(action->name, "go") == 0, &params);
    for (int i = 0; result == EXIT_OK && i < wanted; i++) {
        if (strcmp(action->arguments[i], "element_id") == 0)
            result = put_number(&params, "element_id", c->words[i]);
        else
            json_member_string(&params, action->arguments[i], c->words[i]);
    }
    if (result == EXIT_OK)
        result = call(action->method, &params, &page);
    return result == EXIT_OK ? print_page(c, &page) : result;
}

/* ---- what answers with something else ---- */

static int no_words(const struct command_line *c, const char *name)
{
    return c->n_words == 0 ? EXIT_OK : usage_error(NAME, "%s takes no arguments", name);
}

static int do_text(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    int result = no_words(c, "text");
    if (result == EXIT_OK)
        result = begin(c, false, &params);
    if (result == EXIT_OK)
        result = call("web_text", &params, &answer);
    if (result != EXIT_OK || c->as_json)
        return result == EXIT_OK ? print(&answer) : result;
    member(span_of(&answer), "text", &text);
    return print(&text);
}

static int write_file(const char *path, const struct buf *data)
{
    bool to_stdout = strcmp(path, "-") == 0;
    int fd = to_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int wrong = fd < 0 || io_write_all(fd, data->data, data->len) < 0 ? errno : 0;
    if (!to_stdout && fd >= 0 && close(fd) < 0 && wrong == 0)
        wrong = errno;
    return wrong == 0 ? EXIT_OK : applet_failed(NAME, "%s: %s", path, err_text(wrong));
}

static int do_shot(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf coded BUF_AUTO = BUF_INIT;
    struct buf picture BUF_AUTO = BUF_INIT;
    if (c->n_words != (c->as_json ? 0 : 1))
        return usage_error(NAME, "shot takes a file, or --json in its place");
    int result = begin(c, false, &params);
    if (result == EXIT_OK && c->full)
        json_member_bool(&params, "full_page", true);
    if (result == EXIT_OK)
        result = call("web_screenshot", &params, &answer);
    if (result != EXIT_OK || c->as_json)
        return result == EXIT_OK ? print(&answer) : result;
    print_notes(span_of(&answer));
    if (!member(span_of(&answer), "data", &coded) || !base64_get(&picture, buf_str(&coded), coded.len))
        return applet_failed(NAME, "the answer holds no picture");
    return write_file(c->words[0], &picture);
}

static int do_eval(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value;
    if (c->n_words != 1)
        return usage_error(NAME, "eval takes one expression");
    int result = begin(c, false, &params);
    if (result == EXIT_OK) {
        json_member_string(&params, "expression", c->words[0]);
        result = call("web_evaluate", &params, &answer);
    }
    if (result != EXIT_OK || c->as_json)
        return result == EXIT_OK ? print(&answer) : result;
    print_notes(span_of(&answer));
    if (!member(span_of(&answer), "description", &text) &&
        json_member(span_of(&answer), "value", &value, NULL))
        buf_add(&text, value.s, value.n);
    return print(&text);
}

static int print_list(const struct command_line *c, struct buf *list, const char *const *columns)
{
    struct buf table BUF_AUTO = BUF_INIT;
    if (c->as_json)
        return print(list);
    json_table(&table, span_of(list), columns);
    return print(&table);
}

static int do_tabs(const struct command_line *c)
{
    static const char *const columns[] = {"tab", "current", "title", "url", NULL};
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = no_words(c, "tabs");
    if (result == EXIT_OK)
        result = begin(c, false, &params);
    if (result == EXIT_OK)
        result = call("web_tabs", &params, &answer);
    return result == EXIT_OK ? print_list(c, &answer, columns) : result;
}

static int do_tab(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    const char *word = c->n_words > 0 ? c->words[0] : "";
    bool opens = strcmp(word, "new") == 0, closes = strcmp(word, "close") == 0;
    if (c->n_words != (closes ? 2 : 1))
        return usage_error(NAME, "tab takes a number, 'new', or 'close' and a number");
    int result = begin(c, false, &params);
    if (result == EXIT_OK && opens)
        json_member_bool(&params, "new", true);
    else if (result == EXIT_OK)
        result = put_number(&params, "tab", c->words[closes ? 1 : 0]);
    if (closes)
        json_member_bool(&params, "close", true);
    if (result == EXIT_OK)
        result = call("web_tabs", &params, &page);
    return result == EXIT_OK ? print_page(c, &page) : result;
}

static int do_new(const struct command_line *c)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct err err;
    int result = no_words(c, "new");
    if (result != EXIT_OK)
        return result;
    return open_session(c, &name, &err) < 0 ? failed(&err) : print(&name);
}

static int do_list(const struct command_line *c)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct err err;
    int result = no_words(c, "list");
    if (result != EXIT_OK)
        return result;
    if (call_method("web_list_sessions", (struct span){"{}", 2}, &list, &err) < 0)
        return failed(&err);
    return print_list(c, &list, web_browser_tool.list.columns);
}

static int do_close(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = no_words(c, "close");
    if (result == EXIT_OK)
        result = begin(c, false, &params);
    return result == EXIT_OK ? call("web_close_session", &params, &answer) : result;
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    int (*run)(const struct command_line *c);
} commands[] = {
    {"text", do_text}, {"shot", do_shot}, {"eval", do_eval}, {"tabs", do_tabs},
    {"tab", do_tab},   {"new", do_new},   {"list", do_list}, {"close", do_close},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int web_main(int argc, char **argv)
{
    const char *names[N_ACTIONS + N_COMMANDS + 1] = {NULL};
    struct command_line c = {0};
    if (argc < 2)
        return usage_error(NAME, "a command is missing");
    for (size_t i = 0; i < N_ACTIONS + N_COMMANDS; i++) {
        names[i] = i < N_ACTIONS ? actions[i].name : commands[i - N_ACTIONS].name;
        if (strcmp(argv[1], names[i]) != 0)
            continue;
        int result = parse(&c, argc - 1, argv + 1);
        if (result != EXIT_OK)
            return result;
        return i < N_ACTIONS ? do_action(&actions[i], &c) : commands[i - N_ACTIONS].run(&c);
    }
    return usage_unknown(NAME, "command", argv[1], names);
}

const struct applet web_browser_applet = {
    .name = NAME,
    .summary = "drive a browser: pages as text, clicks, typing, pictures",
    .usage = usage,
    .run = web_main,
};
