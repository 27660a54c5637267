#include <stdlib.h>

#include "commands/server/server.h"
#include "host/connect/connect.h"
#include "host/inject/inject.h"
#include "host/run/run.h"
#include "host/run/run_many.h"

static const char NAME[] = "status";

enum { OPT_FORMAT = 900 };

struct line {
    struct link_options link;
    char *words[6]; /* of the program there */
    size_t n;
};

static int take_option(struct line *l, const struct option *options, int option, const char *word)
{
    static char json[] = "--json", quiet[] = "--quiet", format[] = "--format";
    if (option == 'j')
        return inject_jobs(&l->link.inject, optarg, NAME);
    if (option != OPT_JSON && option != 'q' && option != OPT_FORMAT)
        return link_option(&l->link, options, option, NAME, word);
    if (l->n > 1)
        return usage_error(NAME, "--json, --quiet and --format go alone");
    l->words[l->n++] = option == 'q' ? quiet : option == OPT_FORMAT ? format : json;
    l->link.inject.json = option == OPT_JSON;
    if (option == OPT_FORMAT)
        l->words[l->n++] = optarg;
    return EXIT_OK;
}

static int one(void *arg, const struct target *t)
{
    struct line *l = arg;
    struct run_request request = {.argv = l->words, .self = true, .timeout_s = -1};
    return run_in(NAME, &l->link, t, &request);
}

static int status_in(int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            LINK_OPTIONS,
                                            {"json", 0, NULL, OPT_JSON},
                                            {"quiet", 0, NULL, 'q'},
                                            {"format", 1, NULL, OPT_FORMAT},
                                            {0}};
    static char applet[] = "status";
    struct line l = {.link = {.persist_ms = -1}, .words = {applet}, .n = 1};
    struct target_list targets TARGET_LIST_AUTO = {0};
    inject_options_init(&l.link.inject);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":qj:", options, NULL)) >= 0;) {
        int status = take_option(&l, options, option, argv[at]);
        if (status != EXIT_OK)
            return status;
    }
    int status = run_many_collect(&targets, argv + optind, argc - optind, &l.link.inject.runtimes,
                                  l.link.inject.timeout_ms, NAME);
    if (targets.n == 1 && l.link.persist_ms < 0)
        l.link.persist_ms = CONNECT_USUAL;
    if (status != EXIT_OK || targets.n == 1)
        return status != EXIT_OK ? status : one(&l, &targets.list[0]);
    struct run_many how = {NAME, &l.link.inject, one, &l};
    return run_many(&how, &targets);
}

int (*const status_elsewhere)(int argc, char **argv) = status_in;
