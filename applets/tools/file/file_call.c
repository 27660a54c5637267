#include "file_call.h"

#include <stdlib.h>
#include <string.h>

#include "applet.h"
#include "commands/exec/command_print.h"
#include "json.h"
#include "mem.h"

/* What the commands are called among the methods, where that isn't the same, and their words' parameters. */
static const struct named {
    const char *command, *method, *first, *second;
} names[] = {
    {"mkdir", "make_dir", "path", NULL}, {"rm", "remove", "path", NULL},
    {"mv", "move", "path", "to"},        {"cp", "copy", "path", "to"},
    {"ln", "link", "to", "path"},        {"du", "disk_usage", "path", NULL},
    {"find", "find", "path", "pattern"}, {"search", "search", "pattern", "path"},
};

static struct named named(const char *command)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].command, command) == 0)
            return names[i];
    return (struct named){command, command, "path", NULL};
}

int file_put_mode(const struct command_line *c, const char *mode, struct buf *params)
{
    if (!mode)
        return EXIT_OK;
    if (!*mode || strlen(mode) > 5 || mode[strspn(mode, "01234567")])
        return usage_error(c->applet->name, "a mode is an octal number, as 0644, not '%s'", mode);
    json_member_int(params, "mode", strtol(mode, NULL, 8));
    return EXIT_OK;
}

static void put_excludes(const struct command_line *c, struct buf *params)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_given; i++)
        if (strcmp(c->given[i].option->name, "exclude") == 0) {
            if (n++ == 0)
                json_key(params, "exclude");
            buf_addc(params, n == 1 ? '[' : ',');
            json_puts(params, c->given[i].value);
        }
    if (n > 0)
        buf_addc(params, ']');
}

/* The options that are given, as parameters of the same names, with '_' for '-'. */
static int put_options(const struct command_line *c, struct buf *params)
{
    static const char *const strings[] = {"user", "glob", "after", "type", "sort", "owner"};
    static const char *const numbers[] = {"offset",  "depth",    "limit",    "mtime", "gid",
                                          "context", "min-size", "max-size", "newer", "older"};
    static const char *const flags[] = {"parents",     "recursive", "overwrite", "append",
                                        "exclusive",   "sha256",    "hard",      "literal",
                                        "ignore-case", "multiline", "count"};
    static const char *const off[][2] = {{"no-follow", "follow"}, {"no-ignore", "ignore"}};
    int status = file_put_mode(c, command_value(c, "mode"), params);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        command_put_string(c, strings[i], params, strings[i]);
    for (size_t i = 0; status == EXIT_OK && i < sizeof numbers / sizeof *numbers; i++) {
        char *key MEM_AUTO = mem_strdup(numbers[i]), *dash = strchr(key, '-');
        if (dash)
            *dash = '_';
        status = command_put_number(c, numbers[i], params, key);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char *key MEM_AUTO = mem_strdup(flags[i]), *dash = strchr(key, '-');
        if (dash)
            *dash = '_';
        if (command_value(c, flags[i]))
            json_member_bool(params, key, true);
    }
    if (command_value(c, "all"))
        json_member_bool(params, "hidden", true);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (command_value(c, off[i][0]))
            json_member_bool(params, off[i][1], false);
    put_excludes(c, params);
    if (status == EXIT_OK)
        status = command_put_seconds(c, "timeout", NULL, false, params, "timeout");
    return status;
}

int file_call(const struct command_line *c, int from, struct buf *params, struct buf *result)
{
    struct named as = named(c->command->name);
    char *method MEM_AUTO = mem_printf("file_%s", as.method);
    if (params->len == 0)
        buf_addc(params, '{');
    if (c->n_words > from)
        json_member_string(params, as.first, c->words[from]);
    if (c->n_words > from + 1 && as.second)
        json_member_string(params, as.second, c->words[from + 1]);
    int status = put_options(c, params);
    return status == EXIT_OK ? command_call(c, method, params, result) : status;
}
