/* The multi-call program: which applet is meant, and the few options of the program itself. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "applet.h"
#include "command.h"
#include "err.h"
#include "install_legacy.h"
#include "io.h"
#include "mem.h"
#include "proc.h"
#include "relocate.h"
#include "title.h"
#include "version.h"

#define PACKED_APPLET APPLET
#define APPLET(id) extern const struct applet id##_applet;
#include "applets.def"
#undef APPLET

enum {
#define APPLET(id) APPLET_##id,
#include "applets.def"
#undef APPLET
    N_APPLETS
};

/* Those whose constants are packed, their names as well: these are their ids. */
#undef PACKED_APPLET
#define APPLET(id)
#define PACKED_APPLET(id) {#id, &id##_applet},
static const struct {
    char name[16];
    const struct applet *applet;
} packed[] = {
#include "applets.def"
};
#undef APPLET
#undef PACKED_APPLET

/* And the others. */
#define APPLET(id) &id##_applet,
#define PACKED_APPLET(id)
static const struct applet *const others[] = {
#include "applets.def"
};
#undef APPLET
#undef PACKED_APPLET

/* Every call comes by here: it does without the tables of the other applets, so that they are relocated after
 * that, and constants are unpacked for those alone that have them. */
static const struct applet *find(const char *name)
{
    static const char itself[][24] = {"toolbox", "inspect-sandbox-tools", "inspect-tool-support"};
    for (size_t i = 0; i < sizeof itself / sizeof *itself; i++)
        if (strcmp(itself[i], name) == 0)
            return NULL;
    if (strcmp(exec_applet.name, name) == 0)
        return &exec_applet;
    relocate_rest();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i]->name, name) == 0)
            return others[i];
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (strcmp(packed[i].name, name) == 0) {
            relocate_all();
            return packed[i].applet;
        }
    return NULL;
}

static const char *called_as = "";

/* ---- the program's own options ---- */

static int print_help(void)
{
    printf("toolbox %s: tools for AI agents in any Linux container, in one static binary\n"
           "\n"
           "Usage: toolbox APPLET [ARGUMENT]...\n"
           "   or: toolbox --list | --version | --install [-s] DIR | --install-legacy ROOT\n"
           "   or: APPLET [ARGUMENT]..., by a link of that name\n"
           "\n"
           "--install makes links of all applets (-s: symbolic) in DIR, --install-legacy the\n"
           "entry points of older clients of inspect_ai below ROOT, / in a container.\n"
           "\n"
           "Applets ('toolbox help APPLET [COMMAND]' explains one):\n",
           toolbox_version);
    for (size_t i = 0; i < N_APPLETS; i++)
        printf("  %-14s %s\n", every_applet[i]->name, every_applet[i]->summary);
    return stdout_flushed();
}

static int print_list(void)
{
    for (size_t i = 0; i < N_APPLETS; i++)
        puts(every_applet[i]->name);
    return stdout_flushed();
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
    bool known = proc_link(getpid(), "exe", self, sizeof self);
    if (!known && called_as[0] == '/') /* by its whole path */
        known = snprintf(self, sizeof self, "%s", called_as) < (int)sizeof self;
    if (!known)
        return applet_failed("--install", "cannot find the program itself: no /proc");
    struct stat dir;
    if (stat(argv[argc - 1], &dir) < 0) /* said once, not of every link */
        return applet_failed("--install", "%s: %s", argv[argc - 1], err_text(errno));
    int result = EXIT_OK;
    for (size_t i = 0; i < N_APPLETS; i++)
        if (install_link(self, argv[argc - 1], every_applet[i]->name, symbolic) != 0)
            result = EXIT_FAILED;
    if (install_link(self, argv[argc - 1], "toolbox", symbolic) != 0)
        result = EXIT_FAILED;
    return result;
}

/* ---- dispatch ---- */

static int start_applet(const struct applet *applet, int argc, char **argv)
{
    int result;
    if (applet->commands)
        return command_main(applet, argc, argv);
    return usage_answered(applet, NULL, argc, argv, &result) ? result : applet->run(argc, argv);
}

#ifdef TOOLBOX_GUEST
/* The Makefile names the applets that only the whole program has. */
static bool is_left_out(const char *word)
{
    char *between MEM_AUTO = mem_printf(" %s ", word);
    return strstr(" " TOOLBOX_GUEST " ", between) != NULL;
}
#endif

static int unknown_applet(const char *word)
{
#ifdef TOOLBOX_GUEST
    if (is_left_out(word))
        return usage_error(
            NULL,
            "'%s' is not in this small build; the whole program has it: toolbox inject TARGET, "
            "from outside",
            word);
#endif
    static const char *const options[] = {"--help",    "--list",           "--version",
                                          "--install", "--install-legacy", NULL};
    const char *names[N_APPLETS + 3] = {"help", "version"};
    for (size_t i = 0; i < N_APPLETS; i++)
        names[2 + i] = every_applet[i]->name;
    return word[0] == '-' ? usage_unknown(NULL, "option", word, options)
                          : usage_unknown(NULL, "applet", word, names);
}

/* help [APPLET [COMMAND]] */
static int help(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "version") == 0)
        return print_help();
    const struct applet *applet = find(argv[1]);
    if (argc > 3)
        return usage_error(NULL, "help takes an applet and one of its commands at most");
    return applet ? usage_print(applet, argv[2]) : unknown_applet(argv[1]);
}

static int applet_main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    if (usage_is_version(word) || strcmp(word, "version") == 0)
        return version_print();
    const struct applet *applet = find(word);
    if (applet)
        return start_applet(applet, argc - 1, argv + 1);
    relocate_all();
    if (argc < 2 || usage_is_help(word) || strcmp(word, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(word, "--list") == 0)
        return print_list();
    if (strcmp(word, "--install") == 0)
        return install(argc - 1, argv + 1);
    if (strcmp(word, "--install-legacy") == 0)
        return argc == 3 ? install_legacy(argv[2])
                         : usage_error(NULL, "--install-legacy takes the root folder, / in a container");
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
    const struct applet *applet = find(title_program());
    title_hide_arguments(argc, argv, applet ? 1 : 2); /* the applet's name stays in view */
    called_as = argv[0];
    return applet ? start_applet(applet, argc, argv) : applet_main(argc, argv);
}
