/* The command line of desktops. */
#include "computer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "command.h"
#include "commands/exec/command_print.h"
#include "commands/exec/route.h"
#include "io.h"
#include "mem.h"
#include "surroundings.h"

/* ---- sessions ---- */

static bool member(struct span object, const char *key, struct buf *text)
{
    struct span value;
    return json_member(object, key, &value, NULL) && json_string_text(value, text);
}

/* The newest session whose display lives; "" when there is none. */
static int newest(struct buf *name, struct err *err)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct span entry;
    if (call_method("computer_list_sessions", (struct span){"{}", 2}, &list, err) < 0)
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

static int put_number(const struct command_line *c, struct buf *params, const char *key, const char *word)
{
    size_t sign = *word == '-';
    if (!word[sign] || word[sign + strspn(word + sign, "0123456789")])
        return usage_error(c->applet->name, "'%s' is no number", word);
    return command_number(c, "it", word, params, key);
}

/* 800x600 as two members. */
static int put_size(const struct command_line *c, struct buf *params)
{
    const char *size = command_value(c, "size");
    const char *x = size ? strchr(size, 'x') : NULL;
    if (!size)
        return EXIT_OK;
    char *width MEM_AUTO = mem_dup(size, x ? (size_t)(x - size) : 0);
    if (!x || put_number(c, params, "width", width) != EXIT_OK ||
        put_number(c, params, "height", x + 1) != EXIT_OK)
        return x ? EXIT_USAGE : usage_error(c->applet->name, "--size takes a size as 1366x768");
    return EXIT_OK;
}

static int open_session(const struct command_line *c, struct buf *answer)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct err err;
    buf_addc(&params, '{');
    command_put_string(c, "display", &params, "display");
    command_put_string(c, "window-manager", &params, "window_manager");
    command_put_string(c, "user", &params, "user");
    if (command_value(c, "unscaled"))
        json_member_bool(&params, "unscaled", true);
    int result = put_size(c, &params);
    if (result == EXIT_OK)
        result = command_put_number(c, "depth", &params, "depth");
    if (result == EXIT_OK)
        result = command_put_number(c, "dpi", &params, "dpi");
    if (result != EXIT_OK)
        return result;
    surroundings_put(&params);
    buf_addc(&params, '}');
    return call_method("computer_new_session", span_of(&params), answer, &err) < 0 ? command_failed(c, &err)
                                                                                   : EXIT_OK;
}

/* Begins the params with the session's name: that of --session, the newest, or that of one that is opened. */
static int begin(const struct command_line *c, struct buf *params)
{
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct err err;
    if (command_value(c, "session"))
        buf_adds(&name, command_value(c, "session"));
    else if (newest(&name, &err) < 0)
        return command_failed(c, &err);
    if (name.len == 0) {
        int result = open_session(c, &answer);
        if (result != EXIT_OK)
            return result;
        member(span_of(&answer), "session_name", &name);
    }
    buf_addc(params, '{');
    json_member_text(params, "session_name", buf_str(&name), name.len);
    return EXIT_OK;
}

/* ---- answers ---- */

static int write_file(const struct command_line *c, const char *path, const struct buf *data)
{
    bool to_stdout = strcmp(path, "-") == 0;
    int fd = to_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int wrong = fd < 0 || io_write_all(fd, data->data, data->len) < 0 ? errno : 0;
    if (!to_stdout && fd >= 0 && close(fd) < 0 && wrong == 0)
        wrong = errno;
    return wrong == 0 ? EXIT_OK : applet_failed(c->applet->name, "%s: %s", path, err_text(wrong));
}

/* The picture into the file that is named, and what else is said; with --json the answer itself. */
static int print(const struct command_line *c, const struct buf *answer)
{
    struct buf coded BUF_AUTO = BUF_INIT;
    struct buf data BUF_AUTO = BUF_INIT;
    struct buf output BUF_AUTO = BUF_INIT;
    const char *file = command_value(c, "output");
    bool changed = member(span_of(answer), "data", &coded);
    if (command_value(c, "json"))
        return command_print_line(c, span_of(answer));
    if (member(span_of(answer), "output", &output))
        return command_print_line(c, span_of(&output));
    if (!file && changed)
        file = "-";
    if (!file)
        return EXIT_OK;
    if (!changed)
        return applet_failed(c->applet->name, "nothing has changed");
    if (!base64_get(&data, buf_str(&coded), coded.len))
        return applet_failed(c->applet->name, "the answer holds no picture");
    return write_file(c, file, &data);
}

static int finish(const struct command_line *c, const char *method, struct buf *params)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    if (command_value(c, "output") && strcmp(method, "computer_action") == 0)
        json_member_bool(params, "screenshot", true);
    int result = command_call(c, method, params, &answer);
    return result == EXIT_OK ? print(c, &answer) : result;
}

/* ---- actions ---- */

static int begin_action(const struct command_line *c, struct buf *params, const char *action)
{
    int result = begin(c, params);
    if (result == EXIT_OK)
        json_member_string(params, "action", action);
    return result;
}

/* An array of the words from one on: all that there are, which has to be so many. */
static int put_numbers(const struct command_line *c, struct buf *params, const char *key, int from, int n)
{
    if (c->n_words == from)
        return EXIT_OK;
    if (c->n_words - from < n)
        return usage_error(c->applet->name, "a place is two numbers, X and Y");
    json_key(params, key);
    for (int i = from; i < from + n; i++) {
        const char *word = c->words[i];
        if (!*word || word[strspn(word, "0123456789")] || strlen(word) > 9)
            return usage_error(c->applet->name, "'%s' is no place on a screen", word);
        buf_addc(params, i == from ? '[' : ',');
        buf_adds(params, word);
    }
    buf_addc(params, ']');
    return EXIT_OK;
}

static int do_click(const struct command_line *c)
{
    static const char *const times[] = {"left_click", "left_click", "double_click", "triple_click"};
    struct buf params BUF_AUTO = BUF_INIT;
    const char *button = command_value(c, "button"), *n = command_value(c, "times");
    bool left = !button || strcmp(button, "left") == 0;
    if (n && (n[0] < '1' || n[0] > '3' || n[1] || (!left && *n != '1')))
        return usage_error(c->applet->name, "--times takes 1, 2 or 3, of the left button");
    char *action MEM_AUTO = left ? mem_strdup(times[n ? *n - '0' : 1]) : mem_printf("%s_click", button);
    int result = begin_action(c, &params, action);
    command_put_string(c, "hold", &params, "key");
    if (result == EXIT_OK)
        result = put_numbers(c, &params, "coordinate", 0, 2);
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

static int do_move(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    int result = begin_action(c, &params, "mouse_move");
    if (result == EXIT_OK)
        result = put_numbers(c, &params, "coordinate", 0, 2);
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

static int do_drag(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (c->n_words % 2 != 0)
        return usage_error(c->applet->name, "a place is two numbers, X and Y");
    int result = begin_action(c, &params, "drag");
    json_key(&params, "path");
    for (int i = 0; result == EXIT_OK && i < c->n_words; i += 2) {
        struct buf place BUF_AUTO = BUF_INIT;
        buf_addc(&place, '{');
        result = put_number(c, &place, "x", c->words[i]);
        if (result == EXIT_OK)
            result = put_number(c, &place, "y", c->words[i + 1]);
        buf_addf(&params, "%c%s}", i == 0 ? '[' : ',', buf_str(&place));
    }
    buf_addc(&params, ']');
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

static int do_scroll(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    int result = begin_action(c, &params, "scroll");
    json_member_string(&params, "scroll_direction", c->words[0]);
    if (result == EXIT_OK)
        result = put_number(c, &params, "scroll_amount", c->n_words > 1 ? c->words[1] : "5");
    command_put_string(c, "hold", &params, "key");
    if (result == EXIT_OK && c->n_words > 2)
        result = put_numbers(c, &params, "coordinate", 2, 2);
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

static int do_key(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf keys BUF_AUTO = BUF_INIT;
    int result = begin_action(c, &params, command_value(c, "for") ? "hold_key" : "key");
    for (int i = 0; i < c->n_words; i++)
        buf_addf(&keys, "%s%s", i > 0 ? " " : "", c->words[i]);
    json_member_text(&params, "text", buf_str(&keys), keys.len);
    if (result == EXIT_OK && command_value(c, "for"))
        result = command_put_seconds(c, "for", NULL, false, &params, "duration");
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

static int do_type(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    int result = begin_action(c, &params, "type");
    if (result == EXIT_OK)
        result = command_put_text(c, c->words[0], &params, "text");
    if (command_value(c, "enter"))
        json_member_bool(&params, "press_enter", true);
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

static int do_position(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    int result = begin_action(c, &params, "cursor_position");
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

/* What a model has asked for, as it stands in its call. */
static int do_action(const struct command_line *c)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf params BUF_AUTO = BUF_INIT;
    struct err err;
    struct span key, value;
    int result = EXIT_OK;
    if (strcmp(c->words[0], "-") != 0)
        buf_adds(&text, c->words[0]);
    else if (io_read_all(STDIN_FILENO, &text) < 0)
        return applet_failed(c->applet->name, "stdin: %s", err_text(errno));
    if (json_check(span_of(&text), &err) < 0 || json_kind(span_of(&text)) != JSON_OBJECT)
        return usage_error(
            c->applet->name,
            "an action is a JSON object, as {\"action\": \"left_click\", \"coordinate\": [10, 20]}");
    result = begin(c, &params);
    for (size_t at = 0; result == EXIT_OK && json_next_member(span_of(&text), &at, &key, &value);)
        buf_addf(&params, ",%.*s:%.*s", (int)key.n, key.s, (int)value.n, value.s);
    return result == EXIT_OK ? finish(c, "computer_action", &params) : result;
}

/* ---- pictures ---- */

static int put_region(const struct command_line *c, struct buf *params)
{
    const char *region = command_value(c, "region");
    if (!region)
        return EXIT_OK;
    if (!*region || region[strspn(region, "0123456789,")] || strstr(region, ",,") || *region == ',' ||
        region[strlen(region) - 1] == ',')
        return usage_error(c->applet->name, "--region takes X0,Y0,X1,Y1");
    json_key(params, "region");
    buf_addf(params, "[%s]", region);
    return EXIT_OK;
}

static int do_screenshot(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (!command_value(c, "output") && !command_value(c, "json") && isatty(STDOUT_FILENO))
        return usage_error(c->applet->name, "a picture is nothing for a terminal; --output names a file");
    int result = begin(c, &params);
    static const char *const flags[][2] = {
        {"changed", "changed"}, {"full", "full"}, {"no-cursor", "no_cursor"}};
    for (size_t i = 0; i < 3; i++)
        if (command_value(c, flags[i][0]))
            json_member_bool(&params, flags[i][1], true);
    if (result == EXIT_OK)
        result = put_region(c, &params);
    return result == EXIT_OK ? finish(c, "computer_screenshot", &params) : result;
}

static int do_wait(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span stable;
    int result = begin(c, &params);
    if (result == EXIT_OK)
        result = put_region(c, &params);
    if (result == EXIT_OK && command_value(c, "quiet-for"))
        result = command_put_seconds(c, "quiet-for", NULL, false, &params, "quiet");
    if (result == EXIT_OK && command_value(c, "timeout"))
        result = command_put_seconds(c, "timeout", NULL, false, &params, "timeout");
    if (result == EXIT_OK)
        result = command_call(c, "computer_wait", &params, &answer);
    if (result != EXIT_OK)
        return result;
    if (command_value(c, "json"))
        return command_print_line(c, span_of(&answer));
    if (json_member(span_of(&answer), "stable", &stable, NULL) && span_is(stable, "true"))
        return EXIT_OK;
    return applet_failed(c->applet->name, "the screen has not come to rest");
}

/* ---- sessions, as commands ---- */

static int do_new(const struct command_line *c)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    int result = open_session(c, &answer);
    if (result != EXIT_OK)
        return result;
    if (command_value(c, "json"))
        return command_print_line(c, span_of(&answer));
    member(span_of(&answer), "session_name", &text);
    buf_addc(&text, ' ');
    member(span_of(&answer), "display", &text);
    return command_print_line(c, span_of(&text));
}

static int do_close(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf name BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct err err;
    if (command_value(c, "session"))
        buf_adds(&name, command_value(c, "session"));
    else if (newest(&name, &err) < 0)
        return command_failed(c, &err);
    if (name.len == 0)
        return applet_failed(c->applet->name, "there is no session");
    buf_addc(&params, '{');
    json_member_text(&params, "session_name", buf_str(&name), name.len);
    int result = command_call(c, "computer_close_session", &params, &answer);
    if (result != EXIT_OK || !command_value(c, "json"))
        return result;
    return command_print_line(c, span_of(&answer));
}

/* ---- the table ---- */

static const struct command_option options[] = {
    {"session", "NAME", "which session (the newest; a new one where there is none)", 0},
    {"output", "FILE", "a picture goes there (-: stdout); of an action: once the screen has come to rest",
     'o'},
    {"region", "X0,Y0,X1,Y1", "a part of the screen, with all its pixels", 0},
    {"changed", NULL, "the part that has changed since the last picture; status 1 where nothing has", 0},
    {"full", NULL, "with every pixel of a screen that is larger than models see well", 0},
    {"no-cursor", NULL, "without the pointer", 0},
    {"button", "NAME", "left, middle, right, back or forward", 0},
    {"times", "N", "2 is a double click, 3 a triple", 0},
    {"hold", "KEYS", "keys that are held meanwhile: ctrl, shift+alt", 0},
    {"for", COMMAND_TIME, "hold them for so long", 0},
    {"enter", NULL, "press Return when all is typed", 0},
    {"quiet-for", COMMAND_TIME, "for so long (500ms)", 0},
    {"timeout", COMMAND_TIME, "how long at most (30)", 0},
    {"display", "DISPLAY", "one that is there, as :0 or HOST:0", 0},
    {"size", "WxH", "of an Xvfb that is started (1366x768)", 0},
    {"depth", "BITS", "its bits for a pixel: 16, 24 or 30 (24)", 0},
    {"dpi", "N", "its pixels for an inch (96)", 0},
    {"window-manager", "PROGRAM", "started with it, or none (openbox, or another one that is known)", 0},
    {"unscaled", NULL, "pictures as large as the screen, whatever its size", 0},
    {"user", "USER", "whom the X server runs as", 0},
    COMMAND_LIST_OPTIONS,
    {0},
};

#define OPENING " display size depth dpi window-manager unscaled user"
#define ACTING "session output json"

static const struct command list[] = {
    {"screenshot", "", "session output region changed full no-cursor json",
     "take a picture of the screen, as PNG", NULL, "--output screen.png", 0, 0, do_screenshot, NULL},
    {"click", "[X Y]", ACTING " button times hold", "click, there or where the pointer is", NULL,
     "640 400 --times 2", 0, 2, do_click, NULL},
    {"move", "X Y", ACTING, "move the pointer", NULL, "640 400", 2, 2, do_move, NULL},
    {"drag", "X Y X Y...", ACTING, "press the left button at the first place and release it at the last",
     NULL, "100 100 300 200", 4, COMMAND_ANY, do_drag, NULL},
    {"scroll", "up|down|left|right [N] [X Y]", ACTING " hold", "turn the wheel, N times (5)", NULL,
     "down 3 640 400", 1, 4, do_scroll, NULL},
    {"position", "", "session json", "print where the pointer is", NULL, "", 0, 0, do_position, NULL},
    {"key", "KEYS...", ACTING " for", "press keys, one combination after the other",
     "Keys have xdotool's names.", "ctrl+a BackSpace", 1, COMMAND_ANY, do_key, NULL},
    {"type", "TEXT", ACTING " enter", "type a text, whatever keys the layout has", "TEXT - is stdin.",
     "'Grüße, 世界' --enter", 1, 1, do_type, NULL},
    {"wait", "", "session region quiet-for timeout json", "wait until nothing changes on the screen",
     COMMAND_TIME_HELP, "--timeout 10s", 0, 0, do_wait, NULL},
    {"action", "JSON", ACTING, "do what a model has asked for",
     "JSON is an action of Anthropic's computer tools, of OpenAI's, or of inspect_ai's; - is stdin.",
     "'{\"action\": \"left_click\", \"coordinate\": [640, 400]}'", 1, 1, do_action, NULL},
    {"new", "", "json" OPENING, "open a session and print its name and display",
     "Of $DISPLAY; where that is not set or a size is given, of an Xvfb that is started, and ended with the "
     "session.",
     "--size 1280x800", 0, 0, do_new, NULL},
    {"list", "", COMMAND_LIST_TAKES, "show the sessions", NULL, "", 0, 0, command_print_list, NULL},
    {"close", "", "session json", "end a session, with what it has started", NULL, "--session Computer_1", 0,
     0, do_close, NULL},
    {0},
};

static const char *const words[][2] = {
    {"computer_new_session", "'toolbox computer new'"},
    {0},
};
static const char *const params_said[][2] = {
    {"session_name", "--session"}, {"region", "--region"}, {"width", "--size"}, {"height", "--size"}, {0},
};

static const struct command_set commands = {
    .packed = true,
    .about =
        "Works on a desktop: an X server that is there, or an Xvfb that it starts. Places are pixels of its "
        "pictures.",
    .more = "The first command opens a session where there is none. Programs are started on it with the "
            "DISPLAY that "
            "'toolbox computer list' shows.",
    .options = options,
    .list = list,
    .tool = &computer_tool,
    .words = words,
    .params = params_said,
};

const struct applet computer_applet = {
    .name = "computer",
    .summary = "work on a desktop: pictures of its screen, pointer, keyboard",
    .commands = &commands,
};
