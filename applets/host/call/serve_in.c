#include "host/call/serve_in.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/inject/inject.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_then.h"
#include "host/run/run.h"
#include "mem.h"

static const char NAME[] = "mcp serve";

enum { OPT_IN = 512, OPT_KEEP, OPT_WORD };
enum { WORDS_MAX = 16 };

/* What the server inside is started with. */
struct serve_words {
    char *list[WORDS_MAX + 1];
    size_t n;
};

/* Its client speaks with the runtime from here on. Returns when that can't be started. */
static int become(void *arg, const char *applet, const struct target *t, const struct inject_result *r)
{
    const struct serve_words *words = arg;
    struct argv command ARGV_AUTO = {0};
    struct err err;
    sigset_t none;
    if (inject_command(t, r, (const char *const *)words->list, &command, &err) < 0)
        return applet_failed(applet, "%s", err.msg);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    execvp(command.words[0], command.words);
    return applet_failed(applet, "%s: %s", command.words[0], err_text(errno));
}

/* Over the connection that is kept, where there is one. False: there is none. */
static bool serve_over_connection(const struct link_options *how, const struct target *t,
                                  const struct serve_words *words, int *status)
{
    struct run_request request = {.argv = words->list, .self = true, .timeout_s = -1, .input = true};
    struct link *link = how->persist_ms < 0 ? link_kept(how, t) : link_open(NAME, how, t, status);
    if (link)
        *status = run_remote(NAME, t->text, &request, link);
    return link || how->persist_ms >= 0;
}

/* What the command line says. */
struct said {
    struct link_options how;
    struct serve_words words;
    const char *where;
};

static int take_words(struct said *s, int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            LINK_OPTIONS,
                                            {"in", 1, NULL, OPT_IN},
                                            {"keep-sessions", 0, NULL, OPT_KEEP},
                                            {"structured", 0, NULL, OPT_KEEP},
                                            {"read-only", 0, NULL, OPT_KEEP},
                                            {"interrupt-busy", 0, NULL, OPT_KEEP},
                                            {"computer", 0, NULL, OPT_KEEP},
                                            {"tools", 1, NULL, OPT_WORD},
                                            {"profile", 1, NULL, OPT_WORD},
                                            {"prefix", 1, NULL, OPT_WORD},
                                            {"session", 1, NULL, OPT_WORD},
                                            {"idle", 1, NULL, OPT_WORD},
                                            {0}};
    struct serve_words *words = &s->words;
    *s = (struct said){.how.persist_ms = -1, .words = {.list = {(char *)"mcp", (char *)"serve"}, .n = 2}};
    inject_options_init(&s->how.inject);
    int index = 0;
    opterr = 0;
    optind = 1;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":", options, &index)) >= 0;) {
        if (option == OPT_IN)
            s->where = optarg;
        else if ((option == OPT_KEEP || option == OPT_WORD) && words->n + 2 > WORDS_MAX)
            return usage_error(NAME, "has too many options");
        else if (option == OPT_KEEP)
            words->list[words->n++] = argv[at];
        else if (option == OPT_WORD) {
            words->list[words->n++] = mem_printf("--%s", options[index].name); /* for as long as we run */
            words->list[words->n++] = optarg;
        } else if (link_option(&s->how, options, option, NAME, argv[at]) != EXIT_OK)
            return EXIT_USAGE;
    }
    if (optind < argc || !s->where)
        return usage_error(NAME, "--in takes one target, such as docker:NAME");
    return EXIT_OK;
}

int serve_in_check(int argc, char **argv)
{
    struct target t TARGET_AUTO = {0};
    struct said s;
    struct err err;
    if (take_words(&s, argc, argv) != EXIT_OK)
        return EXIT_USAGE;
    if (!strpbrk(s.where, "*?["))
        return inject_running_target(&t, s.where, &s.how.inject, NAME);
    return target_parse(&t, s.where, &s.how.inject.runtimes, &err) < 0 ? usage_error(NAME, "%s", err.msg)
                                                                       : EXIT_OK;
}

int serve_in(int argc, char **argv)
{
    struct target t TARGET_AUTO = {0};
    struct said s;
    int status;
    if (take_words(&s, argc, argv) != EXIT_OK ||
        inject_running_target(&t, s.where, &s.how.inject, NAME) != EXIT_OK)
        return EXIT_USAGE;
    return serve_over_connection(&s.how, &t, &s.words, &status)
               ? status
               : inject_then(NAME, &s.how.inject, &t, become, &s.words, NULL);
}
