#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "host/connect/connect.h"
#include "host/inject/inject.h"
#include "host/run/run.h"
#include "host/run/run_many.h"
#include "host/run/run_remote.h"
#include "mem.h"
#include "utf8.h"
#include "words.h"

static const char NAME[] = "run";

#define WAY_LEAST_S 5

enum { OPT_ENV = 800, OPT_CWD };

struct line {
    struct link_options link;
    struct run_request request;
    struct argv env;
    char **targets; /* n_targets of them */
    int n_targets;
    bool unmarked; /* a second one, and nothing says that it is no command */
};

static int take_env(struct line *l, const char *word)
{
    const char *equals = strchr(word, '=');
    if (equals == word || !utf8_is_valid(word, strlen(word)))
        return usage_error(NAME, "--env takes NAME=VALUE in UTF-8, not '%s'", word);
    const char *ours = equals ? NULL : getenv(word);
    if (!equals && !ours)
        return EXIT_OK; /* as with other runtimes: the name alone is ours, where we have it */
    argv_take(&l->env, equals ? mem_strdup(word) : mem_printf("%s=%s", word, ours));
    return EXIT_OK;
}

/* Who gives a program so long doesn't want to wait longer for a target that doesn't answer; but a short time
 * is the program's alone. */
static int take_timeout(struct line *l, const char *word)
{
    int status = words_seconds(NAME, "--timeout", word, 0.001, 1e9, &l->request.timeout_s);
    double way_s = l->request.timeout_s > WAY_LEAST_S ? l->request.timeout_s : WAY_LEAST_S;
    if (status == EXIT_OK && way_s * 1000 < l->link.inject.timeout_ms)
        l->link.inject.timeout_ms = (int)(way_s * 1000);
    return status;
}

static int take_option(struct line *l, const struct option *options, int option, const char *word)
{
    switch (option) {
    case 'i':
        l->request.input = true;
        return EXIT_OK;
    case 't':
        l->request.terminal = true;
        return EXIT_OK;
    case 'e':
    case OPT_ENV:
        return take_env(l, optarg);
    case 'w':
    case OPT_CWD:
        l->request.cwd = optarg;
        return EXIT_OK;
    case 'u':
    case OPT_USER:
        l->request.user = optarg;
        return EXIT_OK;
    case OPT_TIMEOUT:
        return take_timeout(l, optarg);
    case 'j':
        return inject_jobs(&l->link.inject, optarg, NAME);
    default:
        return link_option(&l->link, options, option, NAME, word);
    }
}

static bool is_target(const struct line *l, const char *word)
{
    struct target t TARGET_AUTO = {0};
    return target_parse(&t, word, &l->link.inject.runtimes, NULL) == 0;
}

/* One target, or with "--" behind them several: then comes the command. */
static void take_words(struct line *l, char **words)
{
    char **end = words;
    while (*end && is_target(l, *end))
        end++;
    bool several = *end && strcmp(*end, "--") == 0;
    l->targets = words;
    l->n_targets = several ? (int)(end - words) : *words ? 1 : 0;
    char **command = words + l->n_targets;
    l->unmarked = !several && *command && is_target(l, *command);
    l->request.argv = *command && strcmp(*command, "--") == 0 ? command + 1 : command;
}

static int check_words(struct line *l)
{
    if (l->n_targets == 0 || !*l->request.argv)
        return usage_error(NAME, "a target and a command are wanted: docker:NAME -- COMMAND…");
    if (l->unmarked)
        return usage_error(
            NAME, "of several targets, '--' stands in front of the command: docker:A docker:B -- COMMAND…");
    for (char *const *word = l->request.argv; *word; word++)
        if (!utf8_is_valid(*word, strlen(*word)))
            return usage_error(NAME, "a command in UTF-8 is wanted");
    if (l->request.terminal && getenv("TERM"))
        return take_env(l, "TERM");
    return EXIT_OK;
}

static int parse(struct line *l, int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            LINK_OPTIONS,
                                            {"env", 1, NULL, OPT_ENV},
                                            {"cwd", 1, NULL, OPT_CWD},
                                            {"json", 0, NULL, OPT_JSON},
                                            {0}};
    inject_options_init(&l->link.inject);
    opterr = 0;
    for (int option, at;
         (at = optind, option = getopt_long(argc, argv, "+:itj:e:u:w:", options, NULL)) >= 0;) {
        int status = take_option(l, options, option, argv[at]);
        if (status != EXIT_OK)
            return status;
    }
    take_words(l, argv + optind);
    return check_words(l);
}

int run_in(const char *applet, const struct link_options *how, const struct target *t,
           const struct run_request *r)
{
    int status;
    struct link *link = link_open(applet, how, t, &status);
    if (link)
        return run_remote(applet, t->text, r, link);
    return status == EXIT_FAILED ? EXIT_LOST : status; /* that would be a program's */
}

static int run_one(void *arg, const struct target *t)
{
    const struct line *l = arg;
    return run_in(NAME, &l->link, t, &l->request);
}

static int run_all(struct line *l)
{
    struct target_list targets TARGET_LIST_AUTO = {0};
    struct run_many how = {NAME, &l->link.inject, run_one, l};
    if (l->link.persist_ms == CONNECT_USUAL)
        l->link.persist_ms = -1; /* of any number of targets that would be as many processes */
    if (l->request.input || l->request.terminal)
        return usage_error(NAME, "-i and -t are for one target");
    int status = run_many_collect(&targets, l->targets, l->n_targets, &l->link.inject.runtimes,
                                  l->link.inject.timeout_ms, NAME);
    return status == EXIT_OK ? run_many(&how, &targets) : status;
}

static bool is_pattern(const struct line *l, struct target *t)
{
    return target_parse(t, l->targets[0], &l->link.inject.runtimes, NULL) == 0 && target_is_pattern(t);
}

static int run_main(int argc, char **argv)
{
    struct line l = {.link = {.persist_ms = CONNECT_USUAL}, .request = {.timeout_s = -1}};
    struct target t TARGET_AUTO = {0}, first TARGET_AUTO = {0};
    int status = parse(&l, argc, argv);
    l.request.env = l.env.words;
    if (status == EXIT_OK && (l.n_targets > 1 || l.link.inject.json || is_pattern(&l, &first)))
        status = run_all(&l);
    else if (status == EXIT_OK && inject_running_target(&t, l.targets[0], &l.link.inject, NAME) == EXIT_OK)
        status = run_one(&l, &t);
    else
        status = EXIT_USAGE;
    argv_release(&l.env);
    return status;
}

const struct applet run_applet = {
    .name = "run",
    .summary = "run a program in a target as if it ran here",
    .run = run_main,
};
