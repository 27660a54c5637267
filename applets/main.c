/* The multi-call program: which applet is meant, and the few options of the program itself. */
#include "main.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "applet.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "proc.h"
#include "title.h"
#include "version.h"

#define APPLET(id) extern const struct applet id##_applet;
#include "applets.def"
#undef APPLET

static const struct applet *const applets[] = {
#define APPLET(id) &id##_applet,
#include "applets.def"
#undef APPLET
};
enum { N_APPLETS = sizeof applets / sizeof *applets };

static bool by_inspect_name;

bool called_as_inspect(void)
{
    return by_inspect_name;
}

static const struct applet *find(const char *name)
{
    for (size_t i = 0; i < N_APPLETS; i++)
        if (strcmp(applets[i]->name, name) == 0)
            return applets[i];
    return NULL;
}

/* ---- messages ---- */

static int complain(const char *applet, const char *fmt, va_list ap, int status)
{
    fflush(stdout);
    fprintf(stderr, "toolbox%s%s: ", applet ? " " : "", applet ? applet : "");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    return status;
}

int usage_error(const char *applet, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(applet, fmt, ap, 0);
    va_end(ap);
    fprintf(stderr, "Try 'toolbox%s%s --help'.\n", applet ? " " : "", applet ? applet : "");
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

/* Levenshtein distance of two short words. */
static size_t distance(const char *a, const char *b)
{
    size_t row[65], n = strlen(b);
    if (strlen(a) > 64 || n > 64)
        return 64;
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

static const char *closest(const char *word, const char *const *known)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2; /* further away it would only confuse */
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
    const char *near = closest(word, known);
    if (near)
        return usage_error(applet, "unknown %s '%s'; did you mean '%s'?", kind, word, near);
    return usage_error(applet, "unknown %s '%s'", kind, word);
}

static int flushed(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_OK
                                                  : applet_failed(NULL, "cannot write: %s", err_text(errno));
}

int usage_print(const struct applet *applet)
{
    fputs(applet->usage, stdout);
    return flushed();
}

/* ---- the program's own options ---- */

static int print_help(void)
{
    printf("toolbox %s: tools for AI agents in any Linux container, in one static binary\n"
           "\n"
           "Usage: toolbox APPLET [ARGUMENT]...\n"
           "   or: toolbox --list | --version | --install [-s] DIR\n"
           "   or: APPLET [ARGUMENT]..., by a link of that name\n"
           "\n"
           "Applets ('toolbox APPLET --help' explains one):\n",
           toolbox_version);
    for (size_t i = 0; i < N_APPLETS; i++)
        printf("  %-14s %s\n", applets[i]->name, applets[i]->summary);
    return flushed();
}

static int print_list(void)
{
    for (size_t i = 0; i < N_APPLETS; i++)
        puts(applets[i]->name);
    return flushed();
}

static int print_version(void)
{
    printf("toolbox %s (build %s)\n", toolbox_version, toolbox_build_id);
    return flushed();
}

/* One link; a link of ours that is there already is fine, anything else in the way is not touched. */
static int install_link(const char *self, const char *dir, const char *name, bool symbolic)
{
    char *path MEM_AUTO = mem_printf("%s/%s", dir, name);
    int result = symbolic ? symlink(self, path) : link(self, path);
    struct stat ours, there;
    if (result == 0)
        return 0;
    int failed = errno;
    if (failed == EEXIST && stat(self, &ours) == 0 && stat(path, &there) == 0 &&
        ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
        return 0;
    return applet_failed("--install", "%s: %s%s", path, err_text(failed),
                         failed == EXDEV || failed == EPERM ? " (hard links need one file system; try -s)"
                                                            : "");
}

static int install(int argc, char **argv)
{
    bool symbolic = argc > 1 && strcmp(argv[1], "-s") == 0;
    if (argc != (symbolic ? 3 : 2))
        return usage_error(NULL, "--install takes [-s] and a directory");
    char self[4096];
    if (!proc_link(getpid(), "exe", self, sizeof self))
        return applet_failed("--install", "cannot find the program itself: no /proc");
    int result = EXIT_OK;
    for (size_t i = 0; i < N_APPLETS; i++)
        if (install_link(self, argv[argc - 1], applets[i]->name, symbolic) != 0)
            result = EXIT_FAILED;
    return result;
}

/* ---- dispatch ---- */

static int run_applet(const struct applet *applet, int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return usage_print(applet);
    return applet->run(argc, argv);
}

static int unknown_applet(const char *word)
{
    const char *names[N_APPLETS + 1];
    for (size_t i = 0; i < N_APPLETS; i++)
        names[i] = applets[i]->name;
    names[N_APPLETS] = NULL;
    return usage_unknown(NULL, word[0] == '-' ? "option" : "applet", word, names);
}

static int applet_main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    const struct applet *applet = find(word);
    if (applet)
        return run_applet(applet, argc - 1, argv + 1);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return argc > 2 && find(argv[2]) ? usage_print(find(argv[2])) : print_help();
    if (strcmp(word, "--list") == 0)
        return print_list();
    if (strcmp(word, "--version") == 0)
        return print_version();
    if (strcmp(word, "--install") == 0)
        return install(argc - 1, argv + 1);
    if (strcmp(word, "post-install") == 0)
        return EXIT_OK; /* a step of the older tool server's clients, for which nothing is left to do */
    return unknown_applet(word);
}

int main(int argc, char **argv)
{
    static char name_itself[] = "toolbox";
    static char *nothing[] = {name_itself, NULL};
    io_fill_std();
    title_init(argc, argv);
    if (argc < 1) {
        argc = 1;
        argv = nothing;
    }
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    const struct applet *applet = find(name);
    if (applet)
        return run_applet(applet, argc, argv);
    by_inspect_name = strcmp(name, "inspect-sandbox-tools") == 0 || strcmp(name, "inspect-tool-support") == 0;
    return applet_main(argc, argv);
}
