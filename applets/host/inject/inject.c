#include "host/inject/inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/inject/pack.h"
#include "host/inject/inject_many.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_report.h"
#include "io.h"
#include "osinfo.h"
#include "relocate.h"
#include "commands/settle/settle.h"
#include "words.h"

/* ---- options ---- */

enum { OPTIONS_MAX = 16 };

void inject_options_init(struct inject_options *o)
{
    *o = (struct inject_options){.name = "toolbox", .timeout_ms = 60000, .jobs = 4};
}

static int positive(const char *value, long max, int *into, const char *applet, const char *word)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (*end || number < 1 || number > max)
        return usage_error(applet, "%s takes a number from 1 to %ld, not '%s'", word, max, value);
    *into = (int)number;
    return EXIT_OK;
}

static int take_timeout(int *into_ms, const char *value, const char *applet, const char *word)
{
    double seconds;
    int status = words_seconds(applet, word, value, 0.001, 86400, &seconds);
    if (status == EXIT_OK)
        *into_ms = (int)(seconds * 1000);
    return status;
}

static int take_path(const char **into, const char *value, const char *applet, const char *word)
{
    size_t n = strlen(value);
    if (value[0] != '/' || n < 2 || n > 1000 || value[n - 1] == '/' || !transport_is_plain(value))
        return usage_error(applet,
                           "%s takes an absolute path without a slash at the end or control characters, "
                           "not '%s'",
                           word, value);
    *into = value;
    return EXIT_OK;
}

static int unknown_option(const struct option *options, const char *applet, const char *word)
{
    char text[OPTIONS_MAX][20];
    const char *names[OPTIONS_MAX + 2];
    size_t n = 0;
    for (; n < OPTIONS_MAX && options[n].name; n++) {
        snprintf(text[n], sizeof text[n], "--%s", options[n].name);
        names[n] = text[n];
    }
    names[n++] = "--help";
    names[n] = NULL;
    return usage_unknown(applet, "option", word, names);
}

int inject_option(struct inject_options *o, const struct option *options, int option, const char *applet,
                  const char *word)
{
    const char *value = optarg;
    bool names = option == OPT_USER || option == OPT_RUNTIME || option == OPT_ROOT_EXEC;
    if (names && !value[strspn(value, " ")]) /* a variable that isn't set: not to be taken for the default */
        return usage_error(applet, "%s takes a value, and it is empty", word);
    switch (option) {
    case OPT_DIR:
        return take_path(&o->dir, value, applet, word);
    case OPT_NAME:
        if (!*value || strchr(value, '/') || !transport_is_plain(value) || strlen(value) > 80 ||
            strcmp(value, ".") == 0 || strcmp(value, "..") == 0 ||
            strncmp(value, SETTLE_TEMPORARY, strlen(SETTLE_TEMPORARY)) == 0)
            return usage_error(applet, "--name takes the name of a file, not '%s'", value);
        o->name = value;
        return EXIT_OK;
    case OPT_LINKS:
        return take_path(&o->links, value, applet, word);
    case OPT_USER:
        o->user = value;
        return EXIT_OK;
    case OPT_RUNTIME:
        o->runtimes.runtime = value;
        return EXIT_OK;
    case OPT_ROOT_EXEC:
        o->runtimes.root_exec = value;
        return EXIT_OK;
    case OPT_TIMEOUT:
        return take_timeout(&o->timeout_ms, value, applet, word);
    case OPT_JSON:
        o->json = true;
        return EXIT_OK;
    case ':':
        return usage_error(applet, "option '%s' takes a value", word);
    default:
        return unknown_option(options, applet, word);
    }
}

int inject_jobs(struct inject_options *o, const char *value, const char *applet)
{
    return positive(value, 256, &o->jobs, applet, "-j");
}

int inject_running_target(struct target *t, const char *text, const struct inject_options *o,
                          const char *applet)
{
    struct err err;
    if (target_parse_running(t, text, &o->runtimes, &err) < 0)
        return usage_error(applet, "%s", err.msg);
    return EXIT_OK;
}

static const struct option inject_takes[] = {INJECT_OPTIONS,
                                             {"json", 0, NULL, OPT_JSON},
                                             {"links", 1, NULL, OPT_LINKS},
                                             {"with", 1, NULL, OPT_WITH},
                                             {"replace", 0, NULL, OPT_REPLACE},
                                             {"upgrade", 0, NULL, OPT_UPGRADE},
                                             {0}};
static const struct option eject_takes[] = {INJECT_OPTIONS, {"json", 0, NULL, OPT_JSON}, {0}};

static int parse(struct inject_options *o, const struct option *options, const char **with, int argc,
                 char **argv)
{
    inject_options_init(o);
    opterr = 0;
    for (;;) {
        int at = optind, result = EXIT_OK;
        int option = getopt_long(argc, argv, ":j:qv", options, NULL);
        if (option < 0)
            break;
        if (option == 'v')
            o->verbose = true;
        else if (option == 'q')
            o->quiet = true;
        else if (option == OPT_WITH)
            *with = optarg;
        else if (option == OPT_REPLACE)
            o->replace = true;
        else if (option == OPT_UPGRADE)
            o->upgrade = true;
        else if (option == 'j')
            result = inject_jobs(o, optarg, argv[0]);
        else
            result = inject_option(o, options, option, argv[0], argv[at]);
        if (result != EXIT_OK)
            return result;
    }
    if (optind == argc)
        return usage_error(argv[0], "a target is missing, such as docker:NAME");
    return EXIT_OK;
}

/* ---- targets ---- */

static int collect(struct target_list *targets, const struct inject_options *o, char **texts,
                   struct transport *transport, const char *applet)
{
    struct err err;
    for (; *texts; texts++)
        if (target_list_add(targets, *texts, &o->runtimes, transport, &err) < 0)
            return usage_error(applet, "%s", err.msg);
    for (size_t i = 0; o->with && i < targets->n; i++)
        if (targets->list[i].kind->folder)
            return usage_error(applet,
                               "--with is not for %s, where nothing unpacks it; copy the folder there "
                               "yourself, beside the program as .%s.with",
                               targets->list[i].text, o->name);
    return EXIT_OK;
}

static void print_one(const struct inject_options *o, const struct inject_result *r, const char *applet)
{
    struct buf out BUF_AUTO = BUF_INIT;
    if (o->json) {
        report_json(r, &out);
        printf("%s\n", out.data);
        return;
    }
    if (o->verbose)
        report_steps(r, &out);
    if (!r->ok || !o->quiet)
        report_text(r, applet, &out);
    fputs(buf_str(&out), r->ok ? stdout : stderr);
}

static int do_one(const struct inject_options *o, const struct target *t, struct transport *transport,
                  const char *applet, inject_many_fn one)
{
    struct inject_result r;
    inject_result_init(&r, t->text);
    one(o, t, transport, &r);
    print_one(o, &r, applet);
    int status = r.ok && !transport->interrupted ? stdout_flushed() : r.failure.exit;
    inject_result_release(&r);
    return status;
}

static int run(int argc, char **argv, const struct option *options, inject_many_fn one)
{
    const char *with = NULL;
    struct packed_folder packed = {0};
    struct inject_options o;
    struct transport transport;
    struct target_list targets TARGET_LIST_AUTO = {0};
    struct err err;
    int status = parse(&o, options, &with, argc, argv);
    if (status != EXIT_OK)
        return status;
    if (code_unpack(CODE_inject, &err) < 0)
        return applet_failed(argv[0], "%s", err.msg);
    if (with && pack_folder(&packed, with, &err) < 0)
        return applet_failed(argv[0], "--with %s", err.msg);
    o.with = with ? &packed : NULL;
    if (transport_init(&transport, o.timeout_ms, &err) < 0)
        return applet_failed(argv[0], "%s", err.msg);
    status = collect(&targets, &o, argv + optind, &transport, argv[0]);
    struct release_file own RELEASE_FILE_AUTO = RELEASE_FILE_INIT;
    o.batch = targets.n > 1;
    if (o.batch && release_pick("linux", os_arch(), &own, NULL) == 0)
        o.own = &own;
    if (status == EXIT_OK)
        status = targets.n == 1 ? do_one(&o, &targets.list[0], &transport, argv[0], one)
                                : inject_many(&o, &targets, &transport, argv[0], one);
    transport_release(&transport);
    packed_folder_release(&packed);
    return status;
}

/* ---- the applets ---- */

static void inject(const struct inject_options *o, const struct target *t, struct transport *transport,
                   struct inject_result *r)
{
    inject_one(o, t, transport, r, NULL);
}

static int inject_main(int argc, char **argv)
{
    return run(argc, argv, inject_takes, inject);
}

static int eject_main(int argc, char **argv)
{
    return run(argc, argv, eject_takes, eject_one);
}

const struct applet inject_applet = {
    .name = "inject",
    .summary = "make containers and machines ready, from outside",
    .run = inject_main,
};

const struct applet eject_applet = {
    .name = "eject",
    .summary = "remove what inject has put into a target, and all that it left",
    .run = eject_main,
};
