#include "web_behind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "commands/exec/command_print.h"
#include "io.h"
#include "mem.h"
#include "web_commands.h"

/* ---- files ---- */

static int write_file(const struct command_line *c, const char *path, const struct buf *data)
{
    bool to_stdout = strcmp(path, "-") == 0;
    int fd = to_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int wrong = fd < 0 || io_write_all(fd, data->data, data->len) < 0 ? errno : 0;
    if (!to_stdout && fd >= 0 && close(fd) < 0 && wrong == 0)
        wrong = errno;
    return wrong == 0 ? EXIT_OK : applet_failed(c->applet->name, "%s: %s", path, err_text(wrong));
}

/* What an answer holds in base64, into the file that is named; with --json the answer itself. */
static int save_data(const struct command_line *c, struct buf *answer)
{
    struct buf coded BUF_AUTO = BUF_INIT;
    struct buf data BUF_AUTO = BUF_INIT;
    if (command_value(c, "json"))
        return command_print_line(c, span_of(answer));
    web_print_notes(c, span_of(answer));
    if (!web_member(span_of(answer), "data", &coded) || !base64_get(&data, buf_str(&coded), coded.len))
        return applet_failed(c->applet->name, "the answer holds no picture");
    return write_file(c, c->words[0], &data);
}

int web_do_save(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *name = c->command->name;
    if (c->n_words != (command_value(c, "json") ? 0 : 1))
        return usage_error(c->applet->name, "%s takes a file, or --json in its place", name);
    int result = web_begin(c, false, &params);
    if (result == EXIT_OK && command_value(c, "full"))
        json_member_bool(&params, "full_page", true);
    if (result == EXIT_OK && command_value(c, "element"))
        result = web_put_number(c, &params, "element_id", command_value(c, "element"));
    if (result == EXIT_OK)
        result = command_call(c, strcmp(name, "pdf") == 0 ? "web_pdf" : "web_screenshot", &params, &answer);
    return result == EXIT_OK ? save_data(c, &answer) : result;
}

int web_do_upload(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    char *here MEM_AUTO = getcwd(NULL, 0);
    if (!here)
        return applet_failed(c->applet->name, "the current directory: %s", err_text(errno));
    int result = web_begin(c, false, &params);
    if (result == EXIT_OK)
        result = web_put_number(c, &params, "element_id", c->words[0]);
    if (result != EXIT_OK)
        return result;
    json_key(&params, "paths");
    for (int i = 1; i < c->n_words; i++) {
        char *path MEM_AUTO =
            *c->words[i] == '/' ? mem_strdup(c->words[i]) : mem_printf("%s/%s", here, c->words[i]);
        buf_adds(&params, i > 1 ? "," : "[");
        json_put_string(&params, path, strlen(path));
    }
    buf_addc(&params, ']');
    result = command_call(c, "web_upload", &params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

/* ---- lists ---- */

static int print_list(const struct command_line *c, const char *method, const char *const *columns)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    const char *body = command_value(c, "body");
    int result = web_begin(c, false, &params);
    if (c->n_words > 0)
        json_member_string(&params, "url", c->words[0]);
    if (result == EXIT_OK && body)
        result = web_put_number(c, &params, "body", body);
    if (result == EXIT_OK)
        result = command_call(c, method, &params, &answer);
    if (result != EXIT_OK)
        return result;
    return body ? command_print_line(c, span_of(&answer)) : command_print_table(c, span_of(&answer), columns);
}

int web_do_downloads(const struct command_line *c)
{
    static const char *const columns[] = {"name", "state", "bytes", "folder", "url", NULL};
    return print_list(c, "web_downloads", columns);
}

int web_do_network(const struct command_line *c)
{
    static const char *const columns[] = {"id", "status", "method", "type", "bytes", "error", "url", NULL};
    return print_list(c, "web_network", columns);
}

int web_do_console(const struct command_line *c)
{
    static const char *const columns[] = {"level", "text", "line", "url", NULL};
    return print_list(c, "web_console", columns);
}

/* ---- what the browser is told ---- */

int web_do_dialog(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    bool accept = strcmp(c->words[0], "accept") == 0;
    if (!accept && strcmp(c->words[0], "dismiss") != 0)
        return usage_error(c->applet->name, "'%s': a dialog is answered by accept or dismiss", c->words[0]);
    int result = web_begin(c, false, &params);
    json_member_bool(&params, "accept", accept);
    if (c->n_words > 1)
        json_member_string(&params, "text", c->words[1]);
    if (result == EXIT_OK)
        result = command_call(c, "web_dialog", &params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

static void put_permissions(const struct command_line *c, struct buf *params)
{
    const char *at = command_value(c, "permit");
    if (!at)
        return;
    json_key(params, "permissions");
    buf_addc(params, '[');
    for (size_t n; *at; at += n + (at[n] == ',')) {
        n = strcspn(at, ",");
        buf_adds(params, at == command_value(c, "permit") ? "" : ",");
        json_put_string(params, at, n);
    }
    buf_addc(params, ']');
}

int web_do_emulate(const struct command_line *c)
{
    static const char *const size[2] = {"width", "height"}, *const place[2] = {"latitude", "longitude"};
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    int result = web_begin(c, false, &params);
    if (result == EXIT_OK)
        result = web_put_pair(c, "size", 'x', size, &params);
    if (result == EXIT_OK)
        result = web_put_pair(c, "place", ',', place, &params);
    if (result == EXIT_OK)
        result = command_put_number(c, "scale", &params, "scale");
    if (command_value(c, "touch"))
        json_member_bool(&params, "touch", true);
    command_put_string(c, "agent", &params, "user_agent");
    command_put_string(c, "language", &params, "language");
    command_put_string(c, "timezone", &params, "timezone");
    command_put_string(c, "scheme", &params, "color_scheme");
    command_put_string(c, "network", &params, "network");
    put_permissions(c, &params);
    if (result == EXIT_OK)
        result = command_call(c, "web_emulate", &params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

static int load_state(const struct command_line *c, struct buf *params)
{
    struct buf state BUF_AUTO = BUF_INIT;
    struct buf page BUF_AUTO = BUF_INIT;
    struct err err;
    const char *path = c->words[1];
    int wrong =
        strcmp(path, "-") == 0 ? io_read_all(STDIN_FILENO, &state) : io_read_file(AT_FDCWD, path, &state);
    if (wrong < 0)
        return applet_failed(c->applet->name, "%s: %s", path, err_text(errno));
    if (json_check(span_of(&state), &err) < 0)
        return applet_failed(c->applet->name, "%s: %s", path, err.msg);
    json_key(params, "load");
    buf_add(params, state.data, state.len);
    int result = command_call(c, "web_state", params, &page);
    return result == EXIT_OK ? web_print_page(c, &page) : result;
}

int web_do_state(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    bool load = strcmp(c->words[0], "load") == 0;
    if (!load && strcmp(c->words[0], "save") != 0)
        return usage_error(c->applet->name, "'%s': there are save and load", c->words[0]);
    int result = web_begin(c, false, &params);
    if (result != EXIT_OK)
        return result;
    if (load)
        return load_state(c, &params);
    result = command_call(c, "web_state", &params, &answer);
    buf_addc(&answer, '\n');
    return result == EXIT_OK ? write_file(c, c->words[1], &answer) : result;
}

int web_do_devtools(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    int result = web_begin(c, false, &params);
    json_member_string(&params, "method", c->words[0]);
    if (c->n_words > 1) {
        struct err err;
        struct span object = {c->words[1], strlen(c->words[1])};
        if (json_check(object, &err) < 0)
            return usage_error(c->applet->name, "PARAMS: %s", err.msg);
        json_key(&params, "params");
        buf_add(&params, object.s, object.n);
    }
    if (command_value(c, "browser"))
        json_member_bool(&params, "browser", true);
    if (result == EXIT_OK)
        result = command_call(c, "web_devtools", &params, &answer);
    return result == EXIT_OK ? command_print_line(c, span_of(&answer)) : result;
}
