#include "text_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "mem.h"
#include "text_editor_controller.h"

static const char usage[] =
    "Usage: toolbox text_editor view PATH [--range FIRST,LAST]\n"
    "       toolbox text_editor create PATH [--text TEXT|--file FILE]\n"
    "       toolbox text_editor replace PATH --old TEXT|--old-file FILE\n"
    "                                   [--new TEXT|--new-file FILE]\n"
    "       toolbox text_editor insert PATH LINE [--text TEXT|--file FILE]\n"
    "       toolbox text_editor undo PATH\n"
    "       toolbox text_editor history PATH\n"
    "\n"
    "Views and edits files, exactly: bytes outside the edit never change, a write is\n"
    "whole or not done, and the last ten edits of a file can be undone, whoever of\n"
    "this user made them.\n"
    "\n"
    "  view      numbered as `cat -n` does it (LAST -1: to the end); a directory two\n"
    "            levels deep\n"
    "  create    makes a file that isn't there yet\n"
    "  replace   replaces the one place where the old text stands by the new one, or\n"
    "            by nothing\n"
    "  insert    puts a text, as lines of its own, behind line LINE (0: in front of\n"
    "            the first); of a file's or stdin's text the last newline only ends\n"
    "            the last line, any other at the end makes an empty line more\n"
    "  undo      takes the last edit back\n"
    "  history   lists the edits that can be taken back, the last one first\n"
    "\n"
    "TEXT is the text itself, FILE the file that holds it; - is standard input, which\n"
    "create and insert read where they are given neither.\n"
    "\n"
    "  --json   the answer as {\"result\": TEXT} or {\"error\": {\"code\", \"message\"}}\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 done, 1 refused (nothing was changed), 2 usage.\n";

static const char NAME[] = "text_editor";

static const struct {
    const char *name;
    enum edit_command command;
} commands[] = {
    {"view", EDIT_VIEW},     {"create", EDIT_CREATE}, {"replace", EDIT_STR_REPLACE},
    {"insert", EDIT_INSERT}, {"undo", EDIT_UNDO},     {"history", EDIT_HISTORY},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static const char *const options[] = {"--range", "--text",     "--file", "--old",  "--old-file",
                                      "--new",   "--new-file", "--json", "--help", NULL};

struct command_line {
    struct edit_request request;
    long long range[2];
    const char *line; /* of insert */
    bool json;
    bool help;
    bool stdin_taken;
};

static void set_text(struct text *text, const char *s)
{
    free(text->s);
    *text = (struct text){mem_strdup(s), strlen(s)};
}

static int read_text(struct command_line *c, struct text *text, const char *file)
{
    struct buf content BUF_AUTO = BUF_INIT;
    bool from_stdin = strcmp(file, "-") == 0;
    if (from_stdin && c->stdin_taken)
        return usage_error(NAME, "standard input can be only one of the texts");
    c->stdin_taken = c->stdin_taken || from_stdin;
    if ((from_stdin ? io_read_all(STDIN_FILENO, &content) : io_read_file(AT_FDCWD, file, &content)) < 0)
        return applet_failed(NAME, "%s: %s", from_stdin ? "standard input" : file, err_text(errno));
    /* What is inserted is lines, and the last one's end is the last line's own. */
    if (c->request.command == EDIT_INSERT && content.len > 0 && content.data[content.len - 1] == '\n')
        buf_truncate(&content,
                     content.len - (content.len > 1 && content.data[content.len - 2] == '\r' ? 2 : 1));
    free(text->s);
    text->s = buf_take(&content, &text->n);
    return EXIT_OK;
}

static int take_number(const char *s, const char **end, long long *value)
{
    char *stop;
    errno = 0;
    *value = strtoll(s, &stop, 10);
    *end = stop;
    return stop == s || errno != 0 ? -1 : 0;
}

static int take_range(struct command_line *c, const char *s)
{
    const char *end;
    if (take_number(s, &end, &c->range[0]) < 0 || *end != ',' ||
        take_number(end + 1, &end, &c->range[1]) < 0 || *end != '\0')
        return usage_error(NAME, "--range wants FIRST,LAST, two line numbers");
    c->request.view_range = (struct ints){.list = c->range, .n = 2, .set = true};
    return EXIT_OK;
}

/* The text that an option sets, and whether it names a file. */
static struct text *text_of(struct edit_request *r, const char *option, bool *is_file)
{
    size_t n = strlen(option);
    *is_file = n > 4 && strcmp(option + n - 4, "file") == 0;
    if (strncmp(option, "--old", 5) == 0)
        return r->command == EDIT_STR_REPLACE ? &r->old_str : NULL;
    if (strncmp(option, "--new", 5) == 0)
        return r->command == EDIT_STR_REPLACE ? &r->new_str : NULL;
    return r->command == EDIT_CREATE ? &r->file_text : r->command == EDIT_INSERT ? &r->new_str : NULL;
}

static bool is_known(const char *word)
{
    for (const char *const *at = options; *at; at++)
        if (strcmp(word, *at) == 0)
            return true;
    return false;
}

/* One option with its value. */
static int take_option(struct command_line *c, const char *option, const char *value)
{
    bool is_file = false;
    if (!value)
        return usage_error(NAME, "option '%s' wants a value", option);
    if (strcmp(option, "--range") == 0 && c->request.command == EDIT_VIEW)
        return take_range(c, value);
    struct text *text = strcmp(option, "--range") == 0 ? NULL : text_of(&c->request, option, &is_file);
    if (!text)
        return usage_error(NAME, "option '%s' doesn't go with this command", option);
    if (is_file)
        return read_text(c, text, value);
    set_text(text, value);
    return EXIT_OK;
}

/* Words that are no options: the path, and the line of insert. */
static int take_word(struct command_line *c, const char *word)
{
    if (!c->request.path.s)
        set_text(&c->request.path, word);
    else if (c->request.command == EDIT_INSERT && !c->line)
        c->line = word;
    else
        return usage_unknown(NAME, "argument", word, NULL);
    return EXIT_OK;
}

static int take_words(struct command_line *c, int argc, char **argv)
{
    int rc = EXIT_OK;
    bool no_options = false;
    for (int i = 0; i < argc && rc == EXIT_OK; i++) {
        if (!no_options && strcmp(argv[i], "--") == 0)
            no_options = true;
        else if (no_options || argv[i][0] != '-' || argv[i][1] == '\0')
            rc = take_word(c, argv[i]);
        else if (strcmp(argv[i], "--json") == 0)
            c->json = true;
        else if (strcmp(argv[i], "--help") == 0)
            c->help = true;
        else if (!is_known(argv[i]))
            rc = usage_unknown(NAME, "option", argv[i], options);
        else {
            rc = take_option(c, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            i++;
        }
    }
    return rc;
}

/* What the words left open. */
static int complete(struct command_line *c)
{
    struct edit_request *r = &c->request;
    const char *end;
    if (!r->path.s)
        return usage_error(NAME, "a PATH is missing");
    if (r->command == EDIT_STR_REPLACE && !r->old_str.s)
        return usage_error(NAME, "OLD is missing: --old TEXT or --old-file FILE");
    if (r->command == EDIT_INSERT &&
        (!c->line || take_number(c->line, &end, &r->insert_line) < 0 || *end != '\0'))
        return usage_error(NAME, "insert wants PATH and LINE, a line number");
    if (r->command == EDIT_CREATE && !r->file_text.s)
        return read_text(c, &r->file_text, "-");
    if (r->command == EDIT_INSERT && !r->new_str.s)
        return read_text(c, &r->new_str, "-");
    return EXIT_OK;
}

static void put_json(struct buf *out, const struct buf *answer, const struct err *err)
{
    buf_addc(out, '{');
    if (err) {
        json_key(out, "error");
        buf_addc(out, '{');
        json_member_int(out, "code", err->code);
        json_member_string(out, "message", err->msg);
        buf_addc(out, '}');
    } else {
        json_member_text(out, "result", buf_str(answer), answer->len);
    }
    buf_adds(out, "}\n");
}

static int run(const struct command_line *c)
{
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf out BUF_AUTO = BUF_INIT;
    struct err err;
    int rc = text_editor_run(&c->request, &answer, &err);
    if (rc < 0 && !c->json)
        return applet_failed(NAME, "%s", err.msg);
    if (c->json)
        put_json(&out, &answer, rc < 0 ? &err : NULL);
    else
        buf_add(&out, answer.data, answer.len);
    if (io_write_all(STDOUT_FILENO, buf_str(&out), out.len) < 0)
        return applet_failed(NAME, "can't write to standard output: %s", err_text(errno));
    return rc < 0 ? EXIT_FAILED : EXIT_OK;
}

static int text_editor_main(int argc, char **argv)
{
    static const char *const names[] = {"view", "create", "replace", "insert", "undo", "history", NULL};
    struct command_line c = {.json = false};
    int i = 0;
    if (argc < 2)
        return usage_error(NAME, "a command is missing: view, create, replace, insert, undo or history");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage_print(&text_editor_applet);
    while (i < N_COMMANDS && strcmp(argv[1], commands[i].name) != 0)
        i++;
    if (i == N_COMMANDS)
        return usage_unknown(NAME, argv[1][0] == '-' ? "option" : "command", argv[1], names);
    c.request.command = commands[i].command;
    int rc = take_words(&c, argc - 2, argv + 2);
    if (rc == EXIT_OK && c.help)
        rc = usage_print(&text_editor_applet);
    else if (rc == EXIT_OK && (rc = complete(&c)) == EXIT_OK)
        rc = run(&c);
    free(c.request.path.s);
    free(c.request.file_text.s);
    free(c.request.old_str.s);
    free(c.request.new_str.s);
    return rc;
}

const struct applet text_editor_applet = {
    .name = "text_editor",
    .summary = "view and edit files exactly, with undo",
    .usage = usage,
    .run = text_editor_main,
};
