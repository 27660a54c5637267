#include "applet.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "term_filter.h"
#include "utf8.h"
#include "version.h"

/* On one line and without control characters: what is complained of may be a name that somebody else gave. */
static int complain(const char *applet, const char *fmt, va_list ap, int status)
{
    struct term_filter filter = {0};
    struct buf text BUF_AUTO = BUF_INIT;
    struct buf shown BUF_AUTO = BUF_INIT;
    buf_addv(&text, fmt, ap);
    term_filter_feed(&filter, buf_str(&text), text.len, &shown);
    term_filter_reset(&filter, &shown);
    utf8_make_line(&shown, 0);
    fflush(stdout);
    fprintf(stderr, "toolbox%s%s: %s\n", applet ? " " : "", applet ? applet : "", buf_str(&shown));
    return status;
}

static const char *command = ""; /* of the applet, that is run */

void usage_command(const char *name)
{
    command = name;
}

int usage_error(const char *applet, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(applet, fmt, ap, 0);
    va_end(ap);
    fprintf(stderr, "Try 'toolbox%s%s%s%s --help'.\n", applet ? " " : "", applet ? applet : "",
            *command ? " " : "", command);
    return EXIT_USAGE;
}

int applet_failed(const char *applet, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int status = complain(applet, fmt, ap, EXIT_FAILED);
    va_end(ap);
    return status;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein distance of two short words; longer ones are far from everything. */
static size_t distance(const char *a, const char *b)
{
    size_t row[65], n = strlen(b);
    if (strlen(a) > 64 || n > 64)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] = least(diagonal + (a[i - 1] != b[j - 1]), least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[n];
}

const char *usage_closest(const char *word, const char *const *known)
{
    const char *best = NULL;
    size_t letters = strlen(word + strspn(word, "-"));
    size_t best_distance = letters / 3 + 2; /* further away it would only confuse */
    for (; known && *known; known++) {
        size_t d = distance(word, *known);
        if (d < best_distance) {
            best_distance = d;
            best = *known;
        }
    }
    return best;
}

int usage_unknown(const char *applet, const char *kind, const char *word, const char *const *known)
{
    const char *near = usage_closest(word, known);
    if (near)
        return usage_error(applet, "unknown %s '%s'; did you mean '%s'?", kind, word, near);
    return usage_error(applet, "unknown %s '%s'", kind, word);
}

int usage_option(const char *applet, int argc, char **argv, const char *letters, const struct option *options,
                 const char *const *known)
{
    opterr = 0;
    int at = optind, option = getopt_long(argc, argv, letters, options, NULL);
    if (option == ':')
        usage_error(applet, "option '%s' takes a value", argv[at]);
    else if (option == '?')
        usage_unknown(applet, "option", argv[at], known);
    return option == ':' ? '?' : option;
}

int stdout_flushed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    return applet_failed(NULL, "cannot write: %s", err_text(errno));
}

bool usage_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

bool usage_is_version(const char *word)
{
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0;
}

int version_print(void)
{
    printf("toolbox %s (build %s)\n", toolbox_version, toolbox_build_id);
    return stdout_flushed();
}
