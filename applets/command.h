/* The commands of an applet that has several: one table from which they are parsed, run and explained, and
 * from which a word that is unknown is put right. */
#ifndef APPLETS_COMMAND_H
#define APPLETS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "applet.h"
#include "buf.h"

enum { COMMAND_OPTIONS_MAX = 40 };

struct command_option {
    const char *name;  /* without its dashes; the list ends with NULL */
    const char *value; /* what its value is called; NULL: it has none */
    const char *help;
    char letter; /* its short form; 0: none */
};

struct command_line;
struct tool;

struct command {
    const char *name; /* the list ends with NULL */
    const char *arguments;
    const char *options;  /* names of those it takes, with blanks between; NULL: none */
    const char *summary;  /* a few words for the list */
    const char *help;     /* what else there is to say; NULL: nothing */
    const char *example;  /* what stands behind "toolbox APPLET NAME "; more lines are shown as they are */
    signed char min, max; /* how many words it takes; max COMMAND_PROGRAM: a program with its own options, */
    int (*run)(const struct command_line *c); /* at whose first word ours end */
    int (*main)(int argc, char **argv);       /* in place of run: parses for itself, and has a usage_text */
};
enum { COMMAND_PROGRAM = -1, COMMAND_ANY = 127 };

struct command_set {
    const char *about; /* what the commands are about */
    const char *more;  /* behind their list; NULL: nothing */
    const struct command_option *options;
    const struct command *list;
    const struct tool *tool; /* whose list the command `list` prints; NULL: there is none */
    /* What is said here for what the methods' messages say, and for the parameters that they refuse: pairs,
     * the last one empty; each may be NULL. */
    const char *const (*words)[2], *const (*params)[2];
    bool packed; /* what the commands run is CODE_commands (core/relocate.h) */
};

/* A command as it was given. */
struct command_line {
    const struct applet *applet;
    const struct command *command;
    struct command_given {
        const struct command_option *option;
        char *value; /* of argv; "" of an option without */
    } * given;       /* in their order */
    size_t n_given;
    char **words; /* what is no option; ends with NULL */
    int n_words;
};

/* The value of an option, of several the last; NULL when it wasn't given. */
char *command_value(const struct command_line *c, const char *name);

/* Runs what argv (the applet's) names. Help and version are answered here. */
int command_main(const struct applet *applet, int argc, char **argv);

/* Appends the text of --help: of the applet, which may be one without commands, or of one command. */
void command_usage(const struct applet *applet, const struct command *command, struct buf *out);

/* Prints that, of the command that is called so unless it is NULL. EXIT_USAGE, said, when there is none. */
int usage_print(const struct applet *applet, const char *command);
/* Whether the words of an applet or a command that parses for itself ask for help or version, which is then
 * printed. */
bool usage_answered(const struct applet *applet, const struct command *command, int argc, char **argv,
                    int *result);

/* EXIT_OK, or EXIT_USAGE, said: a request can hold nothing but UTF-8. */
int command_check_program(const struct command_line *c);
/* An array of the words from that one on. */
void command_put_words(const struct command_line *c, int from, struct buf *params);

/* Members of params from the values of options, where they were given: as a string; as a number, written as
 * it is there, with EXIT_USAGE, said, when it is none. */
void command_put_string(const struct command_line *c, const char *option, struct buf *params,
                        const char *key);
int command_put_number(const struct command_line *c, const char *option, struct buf *params, const char *key);
/* A time (duration.h) as the seconds that it stands for, of the option or, where it wasn't given, `otherwise`
 * (NULL: nothing then); `whole`: rounded up. EXIT_OK, or EXIT_USAGE, said. */
int command_put_seconds(const struct command_line *c, const char *option, const char *otherwise, bool whole,
                        struct buf *params, const char *key);
/* What a word or a value stands for: "-" is stdin, anything else itself. EXIT_OK, or EXIT_FAILED, said. */
int command_put_text(const struct command_line *c, const char *word, struct buf *params, const char *key);
#define COMMAND_TIME "TIME" /* what the value of such an option is called */
#define COMMAND_TIME_HELP "A TIME is a number of seconds, or 500ms, 5s, 2m, 1h."
/* The same as a number of a word that is what `kind` says. */
int command_number(const struct command_line *c, const char *kind, const char *word, struct buf *params,
                   const char *key);

#endif
