/* An applet: one word of the multi-call binary.
 *
 * A new one is a folder below applets/, a const struct like this in it and a line in applets.def. */
#ifndef APPLETS_APPLET_H
#define APPLETS_APPLET_H

#include <stdbool.h>

struct option; /* of <getopt.h> */
struct command_set;

struct applet {
    const char *name;
    const char *summary; /* one line, for the list */
    const struct command_set
        *commands; /* of one that has several (command.h); one without has a NAME.usage (usage_text.h) */
    int (*run)(int argc, char **argv); /* argv[0] is the applet's name; returns the exit status */
};

/* All of them, in their order. */
extern const struct applet *const every_applet[];

/* Exit status where the applet itself defines no other. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Helpers for option parsing, with one wording for all applets. */

/* "toolbox NAME: unknown option '--x'" with the closest of the known words where one is near, and where to
 * find help; on stderr. Returns EXIT_USAGE. `known` ends with NULL and may be NULL. */
int usage_unknown(const char *applet, const char *kind, const char *word, const char *const *known);
/* The known word that is meant by this one; NULL when none is near. The list ends with NULL and may be NULL.
 */
const char *usage_closest(const char *word, const char *const *known);
/* "toolbox NAME: " and the message, on stderr; returns EXIT_USAGE or EXIT_FAILED. */
int usage_error(const char *applet, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int applet_failed(const char *applet, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next option, as getopt_long: -1 at the end, what `options` or `letters` (":" in front) say, or '?' for
 * one that is unknown or lacks its value, which has been said. */
int usage_option(const char *applet, int argc, char **argv, const char *letters, const struct option *options,
                 const char *const *known);
/* EXIT_OK, or EXIT_FAILED and a message where what was printed on stdout can't be written. */
int stdout_flushed(void);
/* The command of the applet that is run from now on, whose help is pointed to. */
void usage_command(const char *name);
/* Whether a word asks for help, or for the version, which version_print prints. */
bool usage_is_help(const char *word);
bool usage_is_version(const char *word);
int version_print(void);

#endif
