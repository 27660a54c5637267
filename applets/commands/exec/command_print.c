#include "command_print.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"
#include "io.h"
#include "json_table.h"
#include "mem.h"
#include "route.h"

int command_print(const struct command_line *c, struct span text)
{
    if (io_write_all(STDOUT_FILENO, text.s, text.n) == 0)
        return EXIT_OK;
    return applet_failed(c->applet->name, "cannot write: %s", err_text(errno));
}

int command_print_line(const struct command_line *c, struct span text)
{
    struct buf line BUF_AUTO = BUF_INIT;
    buf_add(&line, text.s, text.n);
    if (text.n == 0 || text.s[text.n - 1] != '\n')
        buf_addc(&line, '\n');
    return command_print(c, span_of(&line));
}

/* ---- failures ---- */

static bool is_letter(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* In every place of a word where it stands alone, the one that is said here for it. */
static void put_right(struct buf *text, const char *const (*pair)[2])
{
    for (; pair && **pair; pair++) {
        const char *from = (*pair)[0], *to = (*pair)[1];
        size_t n = strlen(from), step;
        for (size_t at = 0; at + n <= text->len; at += step) {
            const char *s = text->data + at;
            bool alone = !(at > 0 && is_letter(s[-1]) && is_letter(*from)) &&
                         !(is_letter(s[n]) && is_letter(from[n - 1]));
            bool found = alone && strncmp(s, from, n) == 0;
            step = found ? strlen(to) : 1;
            if (found)
                buf_replace(text, at, n, to, step);
        }
    }
}

void command_reword(const struct command_line *c, struct buf *text)
{
    put_right(text, c->applet->commands->words);
}

int command_failed(const struct command_line *c, const struct err *err)
{
    static const char form[] = "Invalid parameters: ";
    struct buf text BUF_AUTO = BUF_INIT;
    bool of_params = strncmp(err->msg, form, sizeof form - 1) == 0;
    buf_adds(&text, err->msg + (of_params ? sizeof form - 1 : 0));
    if (of_params)
        put_right(&text, c->applet->commands->params);
    command_reword(c, &text);
    return applet_failed(c->applet->name, "%s", buf_str(&text));
}

int command_call(const struct command_line *c, const char *method, struct buf *params, struct buf *result)
{
    struct err err;
    buf_addc(params, '}');
    caller_watch();
    return call_method(method, span_of(params), result, &err) < 0 ? command_failed(c, &err) : EXIT_OK;
}

/* ---- lists ---- */

enum { FIELDS_MAX = 16 };

/* The columns that --format names. `text` is where they stand from then on. */
static int fields_of(const struct command_line *c, char *text, const char *columns[FIELDS_MAX + 1])
{
    size_t n = 0;
    for (char *rest = text, *field; (field = strsep(&rest, ","));) {
        if (!*field || n == FIELDS_MAX)
            return usage_error(c->applet->name, "--format takes up to %d names with commas between",
                               FIELDS_MAX);
        columns[n++] = field;
    }
    columns[n] = NULL;
    return EXIT_OK;
}

int command_print_table(const struct command_line *c, struct span list, const char *const *columns)
{
    const char *chosen[FIELDS_MAX + 1] = {columns[0]};
    struct buf table BUF_AUTO = BUF_INIT;
    char *format = command_value(c, "format");
    bool quiet = command_value(c, "quiet");
    char *fields MEM_AUTO = mem_strdup(format ? format : "");
    if (command_value(c, "json"))
        return command_print_line(c, list);
    if (format && fields_of(c, fields, chosen) != EXIT_OK)
        return EXIT_USAGE;
    if (format || quiet)
        json_table_exact(&table, list, chosen);
    else
        json_table(&table, list, columns);
    if (quiet)
        buf_consume(&table, strcspn(table.data, "\n") + 1);
    return command_print(c, span_of(&table));
}

int command_print_list(const struct command_line *c)
{
    const struct tool *tool = c->applet->commands->tool;
    struct buf list BUF_AUTO = BUF_INIT;
    struct err err;
    if (call_method(tool->list.method, (struct span){"{}", 2}, &list, &err) < 0)
        return command_failed(c, &err);
    return command_print_table(c, span_of(&list), tool->list.columns);
}
