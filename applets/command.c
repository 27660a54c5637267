#include "command.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mem.h"
#include "relocate.h"
#include "usage_text.h"
#include "utf8.h"
#include "words.h"

enum { COLUMNS = 80 };

/* ---- help ---- */

/* Each line in lines of at most 80 columns that begin at `indent`, where the first one is already. One that
 * begins with a blank stays as it is. */
static void put_wrapped(struct buf *out, const char *text, size_t indent)
{
    for (size_t at = indent, n; *text; text += n) {
        n = *text == ' ' ? strcspn(text, "\n") : strcspn(text, " \n");
        size_t width = utf8_count(text, n);
        if (at > indent && at + 1 + width > COLUMNS) {
            buf_addf(out, "\n%*s", (int)indent, "");
            at = indent;
        }
        buf_addf(out, "%s%.*s", at > indent ? " " : "", (int)n, text);
        at += (at > indent) + width;
        if (text[n] == '\n') {
            buf_addf(out, "\n%*s", text[n + 1] == '\n' ? 0 : (int)indent, "");
            at = indent;
        }
        n += text[n] != '\0';
    }
    buf_addc(out, '\n');
}

/* A term and what it means, which begins a line of its own where the term is wide. */
static void put_term(struct buf *out, const char *term, size_t column, const char *text)
{
    size_t width = 2 + utf8_count(term, strlen(term));
    buf_addf(out, "  %s", term);
    if (width + 2 > column) {
        buf_addc(out, '\n');
        width = 0;
    }
    buf_addf(out, "%*s", (int)(column - width), "");
    put_wrapped(out, text, column);
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

enum { OPTION_COLUMN = 21, COMMAND_COLUMN = 29 };

static void put_example(struct buf *out, const struct applet *applet, const struct command *command)
{
    buf_addf(out, "\nExample:\n  toolbox %s %s%s%s\n", applet->name, command->name,
             *command->example ? " " : "", command->example);
}

static void put_command(struct buf *out, const struct applet *applet, const struct command *command)
{
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addf(out, "Usage: toolbox %s %s%s%s%s\n\n", applet->name, command->name,
             command->options ? " [OPTION]..." : "", *command->arguments ? " " : "", command->arguments);
    buf_addf(&text, "%s.%s%s", command->summary, command->help ? " " : "",
             command->help ? command->help : "");
    text.data[0] = (char)toupper(text.data[0]);
    put_wrapped(out, text.data, 0);
    buf_addc(out, '\n');
    for (const struct command_option *o = applet->commands->options; o->name; o++) {
        struct buf term BUF_AUTO = BUF_INIT;
        if (!has_word(command->options, o->name))
            continue;
        if (o->letter)
            buf_addf(&term, "-%c, ", o->letter);
        buf_addf(&term, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        put_term(out, term.data, OPTION_COLUMN, o->help);
    }
    put_term(out, "-h, --help", OPTION_COLUMN, "this text");
    put_example(out, applet, command);
}

void command_usage(const struct applet *applet, const struct command *command, struct buf *out)
{
    const struct command_set *set = applet->commands;
    if (!set || (command && command->main)) {
        char *words MEM_AUTO = mem_printf("%s%s%s", applet->name, set ? " " : "", set ? command->name : "");
        usage_text(words, out);
        return;
    }
    if (command) {
        put_command(out, applet, command);
        return;
    }
    buf_addf(out, "Usage: toolbox %s COMMAND [OPTION]... [ARGUMENT]...\n\n", applet->name);
    put_wrapped(out, set->about, 0);
    buf_addc(out, '\n');
    for (const struct command *c = set->list; c->name; c++) {
        char *term MEM_AUTO = mem_printf("%s %s", c->name, c->arguments);
        put_term(out, term, COMMAND_COLUMN, c->summary);
    }
    buf_addf(out, "\n  -h, --help   this text; 'toolbox %s COMMAND --help' explains one\n", applet->name);
    if (set->more) {
        buf_addc(out, '\n');
        put_wrapped(out, set->more, 0);
    }
    put_example(out, applet, set->list);
}

/* ---- which command ---- */

enum { COMMANDS_MAX = 32 };

/* NULL, said, when there is none of that name. */
static const struct command *find(const struct applet *applet, const char *word)
{
    const char *names[COMMANDS_MAX] = {"help", "version"};
    size_t n = 2;
    const struct command *c = applet->commands ? applet->commands->list : NULL;
    for (; c && c->name; c++) {
        if (strcmp(word, c->name) == 0)
            return c;
        names[n++] = c->name;
    }
    if (applet->commands)
        usage_unknown(applet->name, word[0] == '-' ? "option" : "command", word, names);
    else
        usage_error(applet->name, "has no commands, such as '%s'", word);
    return NULL;
}

static int print_usage(const struct applet *applet, const struct command *command)
{
    struct buf text BUF_AUTO = BUF_INIT;
    command_usage(applet, command, &text);
    fputs(text.data, stdout);
    return stdout_flushed();
}

int usage_print(const struct applet *applet, const char *word)
{
    const struct command *command = word ? find(applet, word) : NULL;
    return word && !command ? EXIT_USAGE : print_usage(applet, command);
}

bool usage_answered(const struct applet *applet, const struct command *command, int argc, char **argv,
                    int *result)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool help = usage_is_help(argv[i]);
        if (!help && !usage_is_version(argv[i]))
            continue;
        *result = help ? print_usage(applet, command) : version_print();
        return true;
    }
    return false;
}

/* ---- its words ---- */

/* What getopt is told of the options, and the names for what may have been meant. */
struct known_options {
    struct option list[COMMAND_OPTIONS_MAX + 3];
    const char *names[COMMAND_OPTIONS_MAX + 3];
    char letters[2 * COMMAND_OPTIONS_MAX + 5];
};

enum { NOT_A_LETTER = 256 }; /* an option's number in its applet is counted from here */

static void know(struct known_options *k, const struct command_set *set, const struct command *command)
{
    static const char *const common[] = {"help", "version"};
    size_t n = 0, letters = 0;
    if (command->max == COMMAND_PROGRAM)
        k->letters[letters++] = '+';
    k->letters[letters++] = ':';
    for (size_t i = 0; set->options[i].name; i++) {
        const struct command_option *o = &set->options[i];
        if (!has_word(command->options, o->name))
            continue;
        k->list[n++] = (struct option){o->name, o->value != NULL, NULL, NOT_A_LETTER + (int)i};
        if (o->letter)
            k->letters[letters++] = o->letter;
        if (o->letter && o->value)
            k->letters[letters++] = ':';
    }
    for (size_t i = 0; i < 2; i++) {
        k->list[n++] = (struct option){common[i], 0, NULL, common[i][0] == 'h' ? 'h' : 'V'};
        k->letters[letters++] = (char)k->list[n - 1].val;
    }
    for (size_t i = 0; i < n; i++)
        k->names[i] = k->list[i].name;
}

static const struct command_option *option_of(const struct command_set *set, int found)
{
    const struct command_option *o = set->options;
    if (found >= NOT_A_LETTER)
        return &o[found - NOT_A_LETTER];
    while (o->name && o->letter != found)
        o++;
    return o;
}

/* One that isn't among the command's own. */
static int refuse_option(const struct command_line *c, const struct known_options *k, const char *word)
{
    const char *name = word + strspn(word, "-");
    for (const struct command_option *o = c->applet->commands->options; o->name; o++)
        if (strncmp(o->name, name, strlen(o->name)) == 0 && strchr("=", name[strlen(o->name)]))
            return usage_error(c->applet->name, "%s takes no option --%s", c->command->name, o->name);
    const char *near = usage_closest(name, k->names);
    return near && word[1] == '-'
               ? usage_error(c->applet->name, "unknown option '%s'; did you mean '--%s'?", word, near)
               : usage_error(c->applet->name, "unknown option '%s'", word);
}

static int check_words(const struct command_line *c)
{
    const struct command *command = c->command;
    const char *name = c->applet->name;
    if (c->n_words >= command->min && (command->max == COMMAND_PROGRAM || c->n_words <= command->max))
        return EXIT_OK;
    if (c->n_words > command->max && command->max == 0)
        return usage_error(name, "%s takes no arguments, not '%s'", command->name, c->words[0]);
    if (c->n_words > command->max && command->max > 0)
        return usage_error(name, "'%s' is one argument too many; %s takes %s", c->words[command->max],
                           command->name, command->arguments);
    return usage_error(name, "%s lacks an argument; it takes %s", command->name, command->arguments);
}

/* Help and version end it: *answered. */
static int parse(struct command_line *c, int argc, char **argv, bool *answered)
{
    static char nothing[] = "";
    struct known_options known = {0};
    know(&known, c->applet->commands, c->command);
    opterr = 0;
    for (int at; (at = optind) < argc;) {
        int found = getopt_long(argc, argv, known.letters, known.list, NULL);
        if (found < 0)
            break;
        if (found == '?')
            return refuse_option(c, &known, argv[at]);
        if (found == ':')
            return usage_error(c->applet->name, "option '%s' takes a value", argv[at]);
        *answered = found == 'h' || found == 'V';
        if (*answered)
            return found == 'h' ? print_usage(c->applet, c->command) : version_print();
        const struct command_option *o = option_of(c->applet->commands, found);
        c->given[c->n_given++] = (struct command_given){o, o->value ? optarg : nothing};
    }
    c->words = argv + optind;
    c->n_words = argc - optind;
    return check_words(c);
}

static int run(const struct applet *applet, const struct command *command, int argc, char **argv)
{
    struct command_given *given MEM_AUTO = mem_alloc((size_t)argc * sizeof *given);
    struct command_line c = {.applet = applet, .command = command, .given = given};
    bool answered = false;
    usage_command(command->name);
    int result = parse(&c, argc, argv, &answered);
    if (result != EXIT_OK || answered)
        return result;
    struct err err;
    if (applet->commands->packed && code_unpack(CODE_commands, &err) < 0)
        return applet_failed(applet->name, "%s", err.msg);
    return command->run(&c);
}

int command_main(const struct applet *applet, int argc, char **argv)
{
    if (argc < 2)
        return usage_error(applet->name, "a command is missing");
    const char *word = argv[1];
    if (strcmp(word, "help") == 0 || usage_is_help(word))
        return usage_print(applet, word[0] != '-' && argc > 2 ? argv[2] : NULL);
    if (strcmp(word, "version") == 0 || usage_is_version(word))
        return version_print();
    const struct command *command = find(applet, word);
    int result;
    if (!command)
        return EXIT_USAGE;
    if (!command->main)
        return run(applet, command, argc - 1, argv + 1);
    return usage_answered(applet, command, argc - 1, argv + 1, &result) ? result
                                                                        : command->main(argc - 1, argv + 1);
}

/* ---- what was given ---- */

char *command_value(const struct command_line *c, const char *name)
{
    for (size_t i = c->n_given; i-- > 0;)
        if (strcmp(c->given[i].option->name, name) == 0)
            return c->given[i].value;
    return NULL;
}

int command_check_program(const struct command_line *c)
{
    for (int i = 0; i < c->n_words; i++)
        if (!utf8_is_valid(c->words[i], strlen(c->words[i])))
            return usage_error(c->applet->name,
                               "word %d of the program is not UTF-8, which no request can hold", i + 1);
    return EXIT_OK;
}

void command_put_words(const struct command_line *c, int from, struct buf *params)
{
    buf_addc(params, '[');
    for (int i = from; i < c->n_words; i++) {
        if (i > from)
            buf_addc(params, ',');
        json_puts(params, c->words[i]);
    }
    buf_addc(params, ']');
}

void command_put_string(const struct command_line *c, const char *option, struct buf *params, const char *key)
{
    const char *value = command_value(c, option);
    if (value)
        json_member_string(params, key, value);
}

int command_number(const struct command_line *c, const char *kind, const char *word, struct buf *params,
                   const char *key)
{
    struct span text = {word, strlen(word)};
    if (json_check(text, NULL) < 0 || json_kind(text) != JSON_NUMBER)
        return usage_error(c->applet->name, "'%s' is no number; %s is one", word, kind);
    json_key(params, key);
    buf_adds(params, word);
    return EXIT_OK;
}

int command_put_seconds(const struct command_line *c, const char *option, const char *otherwise, bool whole,
                        struct buf *params, const char *key)
{
    char word[32];
    const char *value = command_value(c, option);
    double seconds;
    if (!value)
        value = otherwise;
    if (!value)
        return EXIT_OK;
    snprintf(word, sizeof word, "--%s", option);
    if (words_seconds(c->applet->name, word, value, 0, 1e9, &seconds) != EXIT_OK)
        return EXIT_USAGE;
    json_key(params, key);
    buf_addf(params, whole ? "%.0f" : "%.9g", whole ? ceil(seconds) : seconds);
    return EXIT_OK;
}

int command_put_text(const struct command_line *c, const char *word, struct buf *params, const char *key)
{
    struct buf text BUF_AUTO = BUF_INIT;
    int status = words_text(c->applet->name, word, &text);
    if (status == EXIT_OK)
        json_member_text(params, key, buf_str(&text), text.len);
    return status;
}

int command_put_number(const struct command_line *c, const char *option, struct buf *params, const char *key)
{
    char kind[32];
    const char *value = command_value(c, option);
    snprintf(kind, sizeof kind, "--%s", option);
    return value ? command_number(c, kind, value, params, key) : EXIT_OK;
}
