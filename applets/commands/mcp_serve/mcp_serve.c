/* The command line of `mcp serve`, and its end. */
#include "mcp_serve.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "host/call/serve_in.h"
#include "commands/exec/route.h"
#include "io.h"
#include "mcp_tools.h"
#include "mem.h"
#include "relocate.h"
#include "proc.h"
#include "serve.h"
#include "tools/file/walk.h"

static const char NAME[] = "mcp serve";

/* What clients and providers of models take in the name of a tool, of 64 bytes. */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define PREFIX_MAX 40

#define PATIENCE_MS 10000 /* for calls that are open when the input ends */
#define REAP_MS 1000      /* for the last processes of calls, which are ending */
#define LEAVE_MS 4000     /* for what has to be ended, and for the last output */

/* ---- the end ---- */

/* Calls that somebody may still want an answer of. */
static bool is_busy(const struct serve *s)
{
    for (const struct call *c = s->calls.first; c; c = c->next)
        if (c->task)
            return true;
    return s->out.waiting.len > 0 && !s->out.ended;
}

static void finish(struct serve *s);
static void advanced(struct serve *s);

static void out_of_patience(void *arg)
{
    struct serve *s = arg;
    if (s->end.begun)
        loop_stop(s->loop, EXIT_OK);
    else
        finish(s);
}

/* A command that runs is left to the end of its session, or, where that is kept, to itself. Subscriptions end
 * with the server, which says so. */
static void end_calls(struct serve *s)
{
    s->calls.scheduling = true; /* nothing more is begun */
    for (struct call *c = s->calls.first, *next; c; c = next) {
        next = c->next;
        if (c->tool) {
            serve_cancel(c);
        } else if (!c->task) {
            serve_subscription_result(c);
            serve_call_end(c);
        }
    }
    s->calls.scheduling = false;
}

/* Shells, jobs and the browser end side by side, each ended by a process of its own. */
static void end_what_was_made(struct serve *s)
{
    for (size_t i = 0; i < s->made.sessions.n; i++)
        serve_task(s, mcp_end_session, s->made.sessions.list[i], 0);
    if (s->made.browser)
        serve_task(s, mcp_end_browser, s->made.browser, 0);
    for (const struct job_note *note = s->made.jobs.first; note; note = note->next)
        if (note->ours)
            serve_task(s, mcp_end_job, NULL, note->pid);
}

/* Nobody is there any more, or TERM. First all that runs ends, so that what it makes is known; then what was
 * made. */
static void finish(struct serve *s)
{
    if (s->end.begun)
        return;
    s->end.begun = true;
    loop_drop(&s->in.source);
    loop_drop(&s->in.timer);
    s->in.ended = true;
    loop_drop(&s->end.patience);
    s->end.patience = loop_timer(s->loop, LEAVE_MS, out_of_patience, s);
    end_calls(s);
    advanced(s);
}

/* The client has begun to go: from now on there is so much time for the rest. */
static void be_patient(struct serve *s)
{
    if (!s->end.patience)
        s->end.patience = loop_timer(s->loop, PATIENCE_MS, out_of_patience, s);
}

/* When the last call has ended, and no other can come, that is the end. */
static void advanced(struct serve *s)
{
    if (!s->in.ended || s->calls.scheduling)
        return;
    if (s->end.begun && !s->end.swept && !s->calls.first) {
        s->end.swept = true;
        if (!s->keep)
            end_what_was_made(s);
    }
    if (is_busy(s))
        be_patient(s);
    else if (!s->end.begun)
        finish(s);
    else if (s->end.swept)
        loop_stop(s->loop, EXIT_OK);
}

static void on_signal(void *arg, int signal)
{
    (void)signal;
    finish(arg);
}

/* ---- the begin ---- */

static const struct serve_owner owner = {
    .line = serve_message, .stalled = be_patient, .deaf = finish, .advanced = advanced};

static int serve(bool keep, const struct serve_offer *offer)
{
    struct err err;
    struct serve s = {.owner = &owner,
                      .pid = getpid(),
                      .keep = keep,
                      .offer = offer,
                      .level = LEVEL_WARNING,
                      .in = {.line = BUF_INIT}};
    s.calls.last = &s.calls.first;
    s.loop = loop_new(&err);
    if (!s.loop)
        return applet_failed(NAME, "%s", err.msg);
    loop_on_signal(s.loop, on_signal, &s);
    serve_io_start(&s);
    int status = loop_run(s.loop);
    for (const struct call *c = s.calls.first; c; c = c->next)
        if (c->pid > 0 && !c->reaped)
            kill(c->pid, SIGKILL);
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
    if (walk_check_patterns(&pattern, 1, "--tools", &err) < 0)
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
    while (!braces && status == EXIT_OK && (word = strsep(&rest, ", ")))
        status = *word ? check_word(word) : EXIT_OK;
    offer->tools = tools_of(list);
    return status;
}

int mcp_serve_main(int argc, char **argv)
{
    static const struct option options[] = {{"keep-sessions", 0, NULL, 'k'},
                                            {"structured", 0, NULL, 's'},
                                            {"read-only", 0, NULL, 'r'},
                                            {"tools", 1, NULL, 't'},
                                            {"profile", 1, NULL, 't'},
                                            {"prefix", 1, NULL, 'p'},
                                            {0}};
    static const char *const names[] = {
        "--keep-sessions", "--structured", "--read-only", "--tools", "--profile",
        "--prefix",        "--in",         "--help",      NULL};
    static struct serve_offer offer = {.prefix = ""};
    bool keep = false;
#ifndef TOOLBOX_GUEST /* it is the one that is served in */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--in") == 0 || strncmp(argv[i], "--in=", 5) == 0)
            return serve_in(argc, argv);
#endif
    struct err err;
    if (code_unpack(CODE_mcp, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    for (int option, at; (at = optind, option = usage_option(NAME, argc, argv, ":", options, names)) >= 0;) {
        if (option == 'k' && strcmp(argv[at], "--keep-sessions") != 0) /* not by a part of its name */
            return usage_unknown(NAME, "option", argv[at], names);
        if (option == 'k')
            keep = true;
        else if (option == 's')
            offer.schemas = true;
        else if (option == 'r')
            offer.read_only = true;
        else if (option == 'p')
            offer.prefix = optarg;
        else if (option != 't')
            return EXIT_USAGE;
        else if (take_tools(&offer, optarg) != EXIT_OK)
            return EXIT_USAGE;
    }
    if (!offers_any(&offer))
        return usage_error(NAME, offer.read_only ? "--read-only leaves none of what --tools names"
                                                 : "--tools names none");
    if (offer.prefix[strspn(offer.prefix, NAME_LETTERS)] || strlen(offer.prefix) > PREFIX_MAX)
        return usage_error(NAME, "--prefix is of at most %d letters, digits, _ and -, not '%s'", PREFIX_MAX,
                           offer.prefix);
    if (optind < argc)
        return usage_error(NAME, "takes no argument, not '%s'", argv[optind]);
    return serve(keep, &offer);
}
