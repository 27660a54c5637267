/* The command line of the browser. */
#include "web_browser.h"

#include <string.h>

#include "command.h"
#include "commands/exec/command_print.h"
#include "commands/exec/route.h"
#include "web_behind.h"
#include "web_commands.h"

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

static int do_action(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    const struct action *action = actions;
    while (strcmp(action->name, c->command->name) != 0)
        action++;
    int result = web_begin(c, action == actions, &params);
    for (int i = 0; result == EXIT_OK && i < c->n_words; i++) {
        if (strcmp(action->arguments[i], "element_id") == 0)
            result = web_put_number(c, &params, "element_id", c->words[i]);
        else
            json_member_string(&params, action->arguments[i], c->words[i]);
    }
    command_put_string(c, "how", &params, "how");
    if (result == EXIT_OK)
        result = command_put_number(c, "to", &params, "to");
    if (result == EXIT_OK)
        result = web_put_pair(c, "at", ',', (const char *const[]){"x", "y"}, &params);
    if (result == EXIT_OK)
        result = command_call(c, action->method, &params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

/* ---- what answers with something else ---- */

/* What to wait for: one of the options. */
static int do_wait(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    const char *element = command_value(c, "element");
    int result = web_begin(c, false, &params);
    command_put_string(c, "text", &params, "text");
    command_put_string(c, "gone", &params, "gone");
    command_put_string(c, "url", &params, "url");
    if (command_value(c, "idle"))
        json_member_bool(&params, "network_idle", true);
    if (result == EXIT_OK && element)
        result = web_put_number(c, &params, "element_id", element);
    if (result == EXIT_OK && command_value(c, "timeout"))
        result = web_put_number(c, &params, "timeout", command_value(c, "timeout"));
    if (result == EXIT_OK)
        result = command_call(c, "web_wait", &params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

static int do_text(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    int result = web_begin(c, false, &params);
    command_put_string(c, "as", &params, "format");
    if (result == EXIT_OK)
        result = command_call(c, "web_text", &params, &answer);
    if (result != EXIT_OK || command_value(c, "json"))
        return result == EXIT_OK ? command_print_line(c, span_of(&answer)) : result;
    web_member(span_of(&answer), "text", &text);
    return command_print_line(c, span_of(&text));
}

static int do_eval(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct span value;
    int result = web_begin(c, false, &params);
    if (result == EXIT_OK) {
        json_member_string(&params, "expression", c->words[0]);
        result = command_call(c, "web_evaluate", &params, &answer);
    }
    if (result != EXIT_OK || command_value(c, "json"))
        return result == EXIT_OK ? command_print_line(c, span_of(&answer)) : result;
    web_print_notes(c, span_of(&answer));
    if (!web_member(span_of(&answer), "description", &text) &&
        json_member(span_of(&answer), "value", &value, NULL))
        buf_add(&text, value.s, value.n);
    return command_print_line(c, span_of(&text));
}

static int do_tabs(const struct command_line *c)
{
    static const char *const columns[] = {"tab", "current", "title", "url", NULL};
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = web_begin(c, false, &params);
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
    int result = web_begin(c, false, &params);
    if (result == EXIT_OK && opens)
        json_member_bool(&params, "new", true);
    else if (result == EXIT_OK)
        result = web_put_number(c, &params, "tab", c->words[closes ? 1 : 0]);
    if (closes)
        json_member_bool(&params, "close", true);
    if (result == EXIT_OK)
        result = command_call(c, "web_tabs", &params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

static int do_new(const struct command_line *c)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct err err;
    return web_open_session(c, &name, &err) < 0 ? command_failed(c, &err)
                                                : command_print_line(c, span_of(&name));
}

static int do_close(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = web_begin(c, false, &params);
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
    {"ask-dialogs", NULL, "leave dialogs to the command dialog", 0},
    {"accept-certificates", NULL, "show pages whose certificate is not trusted", 0},
    {"devtools", NULL, "let the command devtools work", 0},
    {"downloads", "DIR", "a folder for what is downloaded (downloads are refused)", 0},
    {"size", "WxH", "of the window (1280x1080)", 0},
    {"scale", "N", "pixels of the device for each of these", 0},
    {"touch", NULL, "with the size: a touch screen", 0},
    {"agent", "TEXT", "what the browser calls itself", 0},
    {"language", "LANGUAGES", "that pages are asked for: de-DE,de", 0},
    {"timezone", "ZONE", "as Europe/Berlin", 0},
    {"place", "LAT,LONG", "where the browser is", 0},
    {"scheme", "dark|light", "the colours that pages are asked for", 0},
    {"network", "offline|online", "without the network, or with it again", 0},
    {"permit", "NAME,...", "what pages may do without asking: notifications", 0},
    {"body", "ID", "what was sent and what came of that request", 0},
    {"how", "HOW", "left (default), right, middle, double, hover or drag", 0},
    {"to", "ID", "the element that it is dragged to", 0},
    {"at", "X,Y", "where in the element, from its left top; of a drag without --to by how much", 0},
    {"browser", NULL, "ask the browser itself rather than the page", 0},
    COMMAND_LIST_OPTIONS,
    {0},
};

#define OPENING "headful user accept-dialogs ask-dialogs accept-certificates downloads devtools"
#define PAGE "session json"
#define ACTION(name, arguments, words, summary, help, example)                                               \
    {                                                                                                        \
        name, arguments, PAGE, summary, help, example, words, words, do_action, NULL                         \
    }

static const struct command list[] = {
    {"go", "URL", PAGE " " OPENING, "open a page", NULL, "example.org", 1, 1, do_action, NULL},
    {"click", "ID", PAGE " how to at", "click an element, hover over it, or drag it",
     "ID is the number at the front of its line.", "12 --how drag --to 14", 1, 1, do_action, NULL},
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
     web_do_save, NULL},
    {"pdf", "[FILE]", PAGE, "print the page as PDF", "FILE - is stdout.", "page.pdf", 0, 1, web_do_save,
     NULL},
    {"eval", "EXPRESSION", PAGE, "print the value of a JavaScript expression, as JSON", NULL,
     "document.title", 1, 1, do_eval, NULL},
    {"tabs", "", "session " COMMAND_LIST_TAKES, "show the open tabs", NULL, "", 0, 0, do_tabs, NULL},
    {"tab", "N|new|close N", PAGE, "show a tab, open or close one", NULL, "close 2", 1, 2, do_tab, NULL},
    {"upload", "ID FILE...", PAGE, "choose files for an input", NULL, "12 report.pdf", 2, COMMAND_ANY,
     web_do_upload, NULL},
    {"downloads", "", "session " COMMAND_LIST_TAKES, "show what was downloaded", NULL, "", 0, 0,
     web_do_downloads, NULL},
    {"dialog", "accept|dismiss [TEXT]", PAGE, "answer the dialog that a page shows",
     "Of a session that was opened with --ask-dialogs. TEXT answers a prompt.", "accept", 1, 2, web_do_dialog,
     NULL},
    {"console", "", "session " COMMAND_LIST_TAKES, "show what the page has written to its console", NULL, "",
     0, 0, web_do_console, NULL},
    {"network", "[PART]", "session body " COMMAND_LIST_TAKES,
     "show the newest requests of pages, or what one brought", "Those in whose address PART stands.",
     "--body 3", 0, 1, web_do_network, NULL},
    {"emulate", "", PAGE " size scale touch agent language timezone place scheme network permit",
     "be another browser, for pages that are loaded from now on", NULL,
     "--size 400x800 --touch --language de", 0, 0, web_do_emulate, NULL},
    {"state", "save|load FILE", PAGE, "keep cookies and local storage in a file, or take them from one",
     "In the form that Playwright gives it. FILE - is stdout or stdin.", "save state.json", 2, 2,
     web_do_state, NULL},
    {"devtools", "METHOD [PARAMS]", PAGE " browser", "call a method of the DevTools protocol",
     "Of a session that was opened with --devtools. PARAMS is JSON.", "Page.getLayoutMetrics", 1, 2,
     web_do_devtools, NULL},
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
    .packed = true,
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
