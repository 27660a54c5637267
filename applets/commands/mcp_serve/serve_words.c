/* The command line of `mcp serve`, and its end. */
#include "serve_words.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "duration.h"
#include "host/call/serve_in.h"
#include "commands/exec/route.h"
#include "glob.h"
#include "io.h"
#include "mcp_tools.h"
#include "mem.h"
#include "proc.h"
#include "serve_http.h"
#include "serve_policy.h"
#include "serve_named.h"

static const char NAME[] = "mcp serve";

/* What clients and providers of models take in the name of a tool, of 64 bytes. */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define PREFIX_MAX 40
#define REAP_MS 1000 /* for the last processes of calls, which are ending */

static void on_signal(void *arg, int signal)
{
    (void)signal;
    serve_finish(arg);
}

static int serve_pipe(const struct serve_offer *offer)
{
    struct err err;
    struct serve s = {.owner = &serve_pipe_owner, .offer = offer};
    s.loop = loop_new(&err);
    if (!s.loop)
        return applet_failed(NAME, "%s", err.msg);
    serve_begin(&s);
    loop_on_signal(s.loop, on_signal, &s);
    serve_io_start(&s);
    int status = loop_run(s.loop);
    serve_release(&s);
    proc_reap(REAP_MS);
    return status;
}

/* The pattern for what --tools names: groups, names and patterns of names. */
static char *tools_of(const char *list)
{
    static const char *const groups[][2] = {
        {"shell", "shell_*"},
        {"jobs", "job_*"},
        {"files", "text_editor,*_file,*_files"},
        {"browser", "web_*"},
        {"minimal", "shell_run,text_editor"},
        {"coding", "shell_run,shell_wait,shell_in*,shell_restart,job_start,job_w*,job_kill,"
                   "text_editor,*_file,find_files,search_files"},
        {"all", "*"}};
    struct buf pattern = BUF_INIT;
    size_t size;
    for (const char *at = list + strspn(list, ", "); *at;) {
        size_t n = strcspn(at, ", "), i = 0;
        buf_addc(&pattern, pattern.len > 0 ? ',' : '{');
        while (i < sizeof groups / sizeof *groups &&
               !(strlen(groups[i][0]) == n && memcmp(groups[i][0], at, n) == 0))
            i++;
        if (i < sizeof groups / sizeof *groups)
            buf_adds(&pattern, groups[i][1]);
        else
            buf_add(&pattern, at, n);
        at += n + strspn(at + n, ", ");
    }
    buf_addc(&pattern, '}');
    return buf_take(&pattern, &size);
}

static bool offers_any(const struct serve_offer *offer)
{
    for (const struct mcp_tool *t = mcp_tools; t->name; t++)
        if (serve_offers(offer, t))
            return true;
    return false;
}

static int check_word(const char *word)
{
    struct err err;
    char *pattern MEM_AUTO = tools_of(word);
    struct serve_offer alone = {.tools = pattern};
    if (glob_check_all(&pattern, 1, "--tools", &err) < 0)
        return usage_error(NAME, "%s", err.msg);
    if (offers_any(&alone))
        return EXIT_OK;
    return usage_error(
        NAME, "there is no tool '%s'; groups are shell, jobs, files, browser, minimal, coding and all", word);
}

/* Each word has to name something: one that is misspelt would be missed later. */
static int take_tools(struct serve_offer *offer, const char *list)
{
    char *copy MEM_AUTO = mem_strdup(list), *rest = copy, *word;
    bool braces = strchr(list, '{') || !*list; /* with commas of their own */
    int status = braces ? check_word(list) : EXIT_OK;
    while (!braces && status == EXIT_OK && (word = strsep(&rest, ", "))) {
        bool computer = strcmp(word, "computer") == 0; /* which no pattern names */
        offer->computer = offer->computer || computer;
        status = *word && !computer ? check_word(word) : EXIT_OK;
    }
    offer->tools = tools_of(list);
    return status;
}

/* The first line of a file, or a variable. NULL: it was said what is wrong. */
static char *token_of(const char *file, const char *name)
{
    struct buf text BUF_AUTO = BUF_INIT;
    const char *value = name ? getenv(name) : NULL;
    if (file && io_read_file(AT_FDCWD, file, &text) < 0) {
        usage_error(NAME, "--token-file: %s: %s", file, err_text(errno));
        return NULL;
    }
    char *token = mem_strdup(file ? buf_str(&text) : value ? value : "");
    token[strcspn(token, "\r\n")] = '\0';
    if (*token)
        return token;
    usage_error(NAME, file ? "--token-file: there is no token in %s" : "--token-env: %s is not set",
                file ? file : name);
    free(token);
    return NULL;
}

/* What the command line says. */
struct serve_words {
    struct serve_offer offer;
    struct serve_http_options http;
    const char *token_file, *token_env, *policy;
    double idle_s;
};

static int take_option(struct serve_words *w, int option)
{
    switch (option) {
    case 'k':
        w->offer.keep = true;
        return EXIT_OK;
    case 's':
        w->offer.schemas = true;
        return EXIT_OK;
    case 'r':
        w->offer.read_only = true;
        return EXIT_OK;
    case 'd':
        w->offer.computer = true;
        return EXIT_OK;
    case 'b':
        w->offer.interrupt_busy = true;
        return EXIT_OK;
    case 'p':
        w->offer.prefix = optarg;
        return EXIT_OK;
    case 'h':
        if (w->http.n == SERVE_DOORS_MAX)
            return usage_error(NAME, "--http can be given %d times", SERVE_DOORS_MAX);
        if (strncmp(optarg, "unix:", 5) == 0 && optarg[5] != '/')
            return usage_error(NAME, "--http unix: takes an absolute path, not '%s'", optarg + 5);
        w->http.where[w->http.n++] = optarg;
        return EXIT_OK;
    case 'n':
        w->offer.session = optarg;
        return *optarg ? EXIT_OK : usage_error(NAME, "--session takes a name");
    case 'y':
        w->policy = optarg;
        return EXIT_OK;
    case 'f':
        w->token_file = optarg;
        return EXIT_OK;
    case 'e':
        w->token_env = optarg;
        return EXIT_OK;
    case 'C':
        w->http.tls.cert = optarg;
        return EXIT_OK;
    case 'K':
        w->http.tls.key = optarg;
        return EXIT_OK;
    case 'A':
        w->http.tls.ca = optarg;
        return EXIT_OK;
    case 'a':
        w->http.share = true;
        return EXIT_OK;
    case 'i':
        if (duration_read(optarg, &w->idle_s) && w->idle_s > 0)
            return EXIT_OK;
        return usage_error(NAME, "--idle is a time such as 30m, not '%s'", optarg);
    default:
        return option == 't' ? take_tools(&w->offer, optarg) : EXIT_USAGE;
    }
}

static int check_words(struct serve_words *w)
{
    const struct serve_offer *offer = &w->offer;
    if (!offers_any(offer))
        return usage_error(NAME, offer->read_only ? "--read-only leaves none of what --tools names"
                                                  : "--tools names none");
    if (offer->prefix[strspn(offer->prefix, NAME_LETTERS)] || strlen(offer->prefix) > PREFIX_MAX)
        return usage_error(NAME, "--prefix is of at most %d letters, digits, _ and -, not '%s'", PREFIX_MAX,
                           offer->prefix);
    w->http.idle_ms = (long long)(w->idle_s * 1000);
    struct tls_files *tls = &w->http.tls;
    if (w->http.n == 0 && (w->token_file || w->token_env || w->http.share || tls->cert))
        return usage_error(NAME, "--token-file, --token-env, --tls-cert and --share are for --http");
    if (!tls->cert && (tls->key || tls->ca))
        return usage_error(NAME, "--tls-key and --tls-client-ca take --tls-cert");
    if (!tls->key)
        tls->key = tls->cert; /* one file may have both */
    if (offer->session && (w->http.n > 0 || offer->keep))
        return usage_error(NAME, w->http.n > 0 ? "--session is for stdin and stdout: over HTTP it is --share"
                                               : "--session keeps its shells until --idle, and not longer");
    if (w->http.share)
        w->offer.session = "of all clients";
    if (w->http.far && w->http.share)
        return usage_error(NAME, "--share is for one place: with --in each client has its own");
    if (w->token_file && w->token_env)
        return usage_error(NAME, "has one token: --token-file or --token-env");
    if (!w->token_file && !w->token_env)
        return EXIT_OK;
    w->http.token = token_of(w->token_file, w->token_env);
    return w->http.token ? EXIT_OK : EXIT_USAGE;
}

/* Takes those of our own, and runs. */
static int serve_here(struct serve_words *words, int argc, char **argv)
{
    static const struct option options[] = {
#ifndef TOOLBOX_GUEST /* where whoever put it there talks to it himself */
        {"http", 1, NULL, 'h'},           {"token-file", 1, NULL, 'f'},    {"token-env", 1, NULL, 'e'},
        {"share", 0, NULL, 'a'},          {"idle", 1, NULL, 'i'},          {"tls-cert", 1, NULL, 'C'},
        {"tls-key", 1, NULL, 'K'},        {"tls-client-ca", 1, NULL, 'A'}, {"policy", 1, NULL, 'y'},
        {"session", 1, NULL, 'n'},
#endif
        {"keep-sessions", 0, NULL, 'k'},  {"structured", 0, NULL, 's'},    {"read-only", 0, NULL, 'r'},
        {"tools", 1, NULL, 't'},          {"profile", 1, NULL, 't'},       {"prefix", 1, NULL, 'p'},
        {"interrupt-busy", 0, NULL, 'b'}, {"computer", 0, NULL, 'd'},      {0}};
    static const char *const names[] = {
#ifndef TOOLBOX_GUEST
        "--http",           "--token-file",    "--token-env", "--share",   "--idle",    "--tls-cert",
        "--tls-key",        "--tls-client-ca", "--policy",    "--session",
#endif
        "--keep-sessions",  "--structured",    "--read-only", "--tools",   "--profile", "--prefix",
        "--interrupt-busy", "--computer",      "--in",        "--help",    NULL};
    for (int option, at; (at = optind, option = usage_option(NAME, argc, argv, ":", options, names)) >= 0;) {
        if (option == 'k' && strcmp(argv[at], "--keep-sessions") != 0) /* not by a part of its name */
            return usage_unknown(NAME, "option", argv[at], names);
        if (take_option(words, option) != EXIT_OK)
            return EXIT_USAGE;
    }
    if (optind < argc)
        return usage_error(NAME, "takes no argument, not '%s'", argv[optind]);
    if (check_words(words) != EXIT_OK)
        return EXIT_USAGE;
#ifndef TOOLBOX_GUEST
    struct err err;
    if (words->http.n == 0 && words->offer.session && !serve_named_is_held())
        return serve_named_join(words->offer.session, argc, argv);
    if (words->policy && serve_policy_begin(words->policy, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    int status = words->http.n > 0      ? serve_http(&words->http, &words->offer)
                 : words->offer.session ? serve_named_hold(&words->offer, words->http.idle_ms)
                                        : serve_pipe(&words->offer);
    serve_policy_end();
    return status;
#else
    return serve_pipe(&words->offer);
#endif
}

#ifndef TOOLBOX_GUEST
/* One of `options`, or its value: --NAME VALUE or --NAME=VALUE. How many words it has; 0: it is another. */
static int words_of(const struct option *options, char **argv, char **value)
{
    for (const struct option *o = options; o->name; o++) {
        size_t n = strlen(o->name);
        if (strncmp(argv[0], "--", 2) != 0 || strncmp(argv[0] + 2, o->name, n) != 0)
            continue;
        if (o->has_arg && argv[0][2 + n] == '=') {
            *value = argv[0] + 2 + n + 1;
            return 1;
        }
        if (argv[0][2 + n])
            continue;
        *value = o->has_arg ? argv[1] : argv[0];
        return o->has_arg && argv[1] ? 2 : 1;
    }
    return 0;
}

/* Targets over HTTP: options of ours are taken here, the others by who serves in each (serve_relay.h). */
static int serve_far(struct serve_words *words, int argc, char **argv)
{
    static const struct option in[] = {{"in", 1, NULL, 0}, {0}}, own[] = {{"http", 1, NULL, 0},
                                                                          {"token-file", 1, NULL, 0},
                                                                          {"token-env", 1, NULL, 0},
                                                                          {"idle", 1, NULL, 0},
                                                                          {"tls-cert", 1, NULL, 0},
                                                                          {"tls-key", 1, NULL, 0},
                                                                          {"tls-client-ca", 1, NULL, 0},
                                                                          {"share", 0, NULL, 0},
                                                                          {0}};
    static struct serve_far far;
    char *value = NULL, **ours = mem_zalloc((size_t)(argc + 1) * sizeof *ours);
    int n_ours = 0, n_rest = 0, n;
    far.patterns = mem_zalloc((size_t)(argc + 1) * sizeof *far.patterns);
    far.rest = mem_zalloc((size_t)(argc + 1) * sizeof *far.rest);
    ours[n_ours++] = argv[0];
    for (int i = 1; i < argc; i += n) {
        if ((n = words_of(in, argv + i, &value)) > 0 && value)
            far.patterns[far.n++] = value;
        else if ((n = words_of(own, argv + i, &value)) > 0)
            for (int k = 0; k < n; k++)
                ours[n_ours++] = argv[i + k];
        else
            far.rest[n_rest++] = argv[i], n = 1;
    }
    for (size_t i = 0; i < far.n; i++) {
        char **all MEM_AUTO = mem_zalloc((size_t)(n_rest + 4) * sizeof *all);
        all[0] = argv[0];
        all[1] = (char *)"--in";
        all[2] = far.patterns[i];
        memcpy(all + 3, far.rest, (size_t)n_rest * sizeof *all);
        if (serve_in_check(n_rest + 3, all) != EXIT_OK)
            return EXIT_USAGE;
    }
    if (far.n == 0)
        return usage_error(NAME, "--in takes one target, such as docker:NAME");
    words->http.far = &far;
    optind = 1;
    return serve_here(words, n_ours, ours);
}
#endif

int serve_words(int argc, char **argv, bool elsewhere)
{
    static struct serve_words words = {.offer = {.prefix = ""}, .idle_s = 1800};
#ifndef TOOLBOX_GUEST
    if (elsewhere)
        return serve_far(&words, argc, argv);
#endif
    (void)elsewhere;
    return serve_here(&words, argc, argv);
}
