#include "host/cp/cp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/transfer/transfer.h"
#include "host/cp/relay.h"
#include "host/cp/side.h"
#include "host/inject/inject.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "relocate.h"

enum { OPT_EXCLUDE = 900, OPT_RESUME, OPT_CHECKSUM, OPT_DELETE, OPT_WATCH };
enum { SENDS, TAKES, LISTS };

struct copying {
    const char *applet;
    struct inject_options inject;
    struct argv excludes; /* --exclude PATTERN … */
    struct {
        bool archive, recursive, resume, checksum, deletes, watches, json, quiet, syncs;
    } wants;
    struct side to;
    struct side *from; /* n of them, all of one place */
    int n;
    long long begun;
    struct sum {
        long long files, directories, links, others, bytes, deleted, skipped, failed;
    } sum;
};

/* ---- what was done ---- */

static long long number_in(struct span report, const char *key)
{
    struct span value;
    return json_member(report, key, &value, NULL) && json_kind(value) == JSON_NUMBER && value.n < 19
               ? strtoll(value.s, NULL, 10)
               : 0;
}

static void put_count(struct buf *out, long long n, const char *one, const char *more)
{
    if (n > 0)
        buf_addf(out, "%s%lld %s", out->len > 0 ? ", " : "", n, n == 1 ? one : more);
}

static void put_counts(struct buf *out, const struct sum *s)
{
    put_count(out, s->files, "file", "files");
    put_count(out, s->directories, "directory", "directories");
    put_count(out, s->links, "link", "links");
    put_count(out, s->others, "other", "others");
    put_count(out, s->deleted, "deleted", "deleted");
    put_count(out, s->skipped, "skipped", "skipped");
    if (out->len == 0)
        buf_adds(out, "nothing");
    if (s->bytes > 0)
        relay_put_size((buf_adds(out, ", "), out), (double)s->bytes);
}

static void print_sum(const struct copying *c, const struct sum *s, int status)
{
    struct buf out BUF_AUTO = BUF_INIT;
    long long ms = now_ms() - c->begun;
    if (c->wants.json) {
        buf_addc(&out, '{');
        json_member_bool(&out, "ok", status == EXIT_OK);
        json_member_int(&out, "files", s->files);
        json_member_int(&out, "directories", s->directories);
        json_member_int(&out, "links", s->links);
        json_member_int(&out, "others", s->others);
        json_member_int(&out, "bytes", s->bytes);
        json_member_int(&out, "deleted", s->deleted);
        json_member_int(&out, "skipped", s->skipped);
        json_member_int(&out, "failed", s->failed);
        json_member_seconds(&out, "seconds", ms);
        buf_addc(&out, '}');
    } else {
        put_counts(&out, s);
        buf_addf(&out, " in %lld.%02lld s", ms / 1000, ms % 1000 / 10);
    }
    printf("%s\n", buf_str(&out));
    fflush(stdout);
}

/* A line that the taking half has printed, whoever that is. */
static void on_report(void *arg, const char *line)
{
    struct copying *c = arg;
    struct span report = {line, strlen(line)};
    if (json_check(report, NULL) < 0 || json_kind(report) != JSON_OBJECT)
        return;
    struct sum s = {number_in(report, "files"),           number_in(report, "directories"),
                    number_in(report, "links"),           number_in(report, "others"),
                    number_in(report, "bytes"),           number_in(report, "deleted"),
                    .failed = number_in(report, "failed")};
    bool some = s.files + s.directories + s.links + s.others + s.deleted > 0;
    if (c->wants.watches && some && !c->wants.quiet)
        print_sum(c, &s, EXIT_OK);
    c->begun = c->wants.watches ? now_ms() : c->begun;
    c->sum = s;
}

/* ---- the halves ---- */

static void add_letters(const struct copying *c, struct argv *a, const char *command, const char *letters)
{
    struct buf all BUF_AUTO = BUF_INIT;
    argv_add(a, "transfer");
    argv_add(a, command);
    buf_addf(&all, "-%s%s%s%s%s", letters, c->wants.archive ? "a" : "", c->wants.recursive ? "r" : "",
             c->wants.syncs ? "x" : "", c->wants.deletes ? "d" : "");
    buf_adds(&all, c->wants.checksum ? "c" : "");
    argv_add(a, buf_str(&all));
}

static void add_excludes(const struct copying *c, struct argv *a)
{
    for (size_t i = 0; i < c->excludes.n; i++) {
        argv_add(a, "--exclude");
        argv_add(a, c->excludes.words[i]);
    }
    argv_add(a, "--");
}

static bool differs(const struct copying *c)
{
    return c->wants.syncs || c->wants.resume || c->wants.checksum;
}

static void add_names(const struct copying *c, struct argv *a)
{
    for (int i = 0; i < c->n && !c->from[0].stream; i++)
        argv_take(a, c->wants.syncs ? mem_strdup(".") : transfer_name(c->from[i].path));
}

static void words_of(const struct copying *c, struct argv words[3], bool shows)
{
    struct buf send BUF_AUTO = BUF_INIT;
    buf_addf(&send, "%s%s%s", differs(c) ? "u" : "", c->wants.watches ? "w" : "", shows ? "t" : "");
    add_letters(c, &words[SENDS], "send", buf_str(&send));
    add_excludes(c, &words[SENDS]);
    for (int i = 0; i < c->n; i++)
        argv_take(&words[SENDS],
                  c->wants.syncs ? mem_printf("%s/.", c->from[i].path) : mem_strdup(c->from[i].path));
    add_letters(c, &words[TAKES], "take", "");
    argv_add(&words[TAKES], "--");
    argv_add(&words[TAKES], c->to.path);
    add_names(c, &words[TAKES]);
    add_letters(c, &words[LISTS], "list", "");
    add_excludes(c, &words[LISTS]);
    argv_add(&words[LISTS], c->to.path);
    add_names(c, &words[LISTS]);
}

static const char *where(const struct side *s)
{
    return s->remote ? s->t.text : "";
}

/* Those that run at the two sides, and what goes between them. */
static int start(struct copying *c, struct half halves[HALVES_MAX], struct relay *r)
{
    int status = EXIT_OK, n_to = c->to.stream ? 0 : differs(c) ? 2 : 1;
    if (!c->from[0].stream)
        status = side_start(c->applet, &c->from[0], &c->inject, &halves[SENDS], 1);
    if (status == EXIT_OK && n_to > 0)
        status = side_start(c->applet, &c->to, &c->inject, &halves[TAKES], n_to);
    if (status != EXIT_OK)
        return status;
    r->ways[0] = (struct way){.from = c->from[0].stream ? STDIN_FILENO : halves[SENDS].out,
                              .to = c->to.stream ? STDOUT_FILENO : halves[TAKES].in};
    r->ways[1] = (struct way){.from = -1, .to = -1};
    if (differs(c)) {
        r->ways[1] = (struct way){.from = halves[LISTS].out, .to = halves[SENDS].in};
        io_close(&halves[LISTS].in);
    } else if (!c->from[0].stream) {
        io_close(&halves[SENDS].in);
    }
    r->reports = c->to.stream ? NULL : &halves[TAKES];
    return EXIT_OK;
}

static int copy_once(struct copying *c)
{
    struct argv words[HALVES_MAX] = {{0}};
    struct half halves[HALVES_MAX];
    int statuses[HALVES_MAX] = {0};
    bool shows = !c->wants.quiet && !c->wants.json && !c->wants.watches && isatty(STDERR_FILENO);
    struct relay r = {.applet = c->applet, .said = on_report, .arg = c, .shows = shows};
    words_of(c, words, shows);
    for (int i = 0; i < HALVES_MAX; i++)
        halves[i] = (struct half){words[i].words, 0, -1, -1, -1, i == SENDS ? where(c->from) : where(&c->to)};
    int status = start(c, halves, &r);
    if (status == EXIT_OK) {
        r.halves = c->from[0].stream ? halves + TAKES : halves;
        r.n_halves = c->from[0].stream ? 1 : c->to.stream ? 1 : differs(c) ? 3 : 2;
        status = relay_run(&r, statuses);
        c->sum.skipped = r.same;
        if (statuses[SENDS] > EXIT_OK && c->sum.failed == 0)
            c->sum.failed = 1;
        if (!c->from[0].stream && statuses[SENDS] == TRANSFER_AGAIN)
            status = TRANSFER_AGAIN;
    }
    for (int i = 0; i < HALVES_MAX; i++)
        argv_release(&words[i]);
    return status;
}

static int copy(struct copying *c)
{
    int status;
    c->begun = now_ms();
    while ((status = copy_once(c)) == TRANSFER_AGAIN && c->wants.watches)
        continue;
    if (!c->to.stream && !c->wants.quiet && !c->wants.watches && status <= EXIT_FAILED)
        print_sum(c, &c->sum, status);
    return status;
}

/* ---- the command line ---- */

static int take_option(struct copying *c, const struct option *options, int option, const char *word)
{
    switch (option) {
    case 'a':
        c->wants.archive = c->wants.recursive = true;
        return EXIT_OK;
    case 'r':
    case 'R':
        c->wants.recursive = true;
        return EXIT_OK;
    case 'q':
        c->wants.quiet = true;
        return EXIT_OK;
    case OPT_EXCLUDE:
        argv_add(&c->excludes, optarg);
        return EXIT_OK;
    case OPT_RESUME:
        c->wants.resume = true;
        return EXIT_OK;
    case OPT_CHECKSUM:
        c->wants.checksum = true;
        return EXIT_OK;
    case OPT_DELETE:
        c->wants.deletes = true;
        return EXIT_OK;
    case OPT_WATCH:
        c->wants.watches = true;
        return EXIT_OK;
    case OPT_JSON:
        c->wants.json = true;
        return EXIT_OK;
    default:
        return inject_option(&c->inject, options, option, c->applet, word);
    }
}

/* The sources, and where they go. */
static int take_sides(struct copying *c, int n, char **texts)
{
    struct err err;
    if (n < 2 || (c->wants.syncs && n > 2))
        return usage_error(c->applet, c->wants.syncs ? "a source and a destination are wanted"
                                                     : "sources and a destination are wanted");
    c->from = mem_zalloc((size_t)(n - 1) * sizeof *c->from);
    if (side_parse(&c->to, texts[n - 1], &c->inject.runtimes, &err) < 0)
        return usage_error(c->applet, "%s", err.msg);
    for (; c->n < n - 1; c->n++) {
        struct side *s = &c->from[c->n];
        if (side_parse(s, texts[c->n], &c->inject.runtimes, &err) < 0)
            return usage_error(c->applet, "%s", err.msg);
        if (s->remote != c->from[0].remote || (s->remote && strcmp(s->t.text, c->from[0].t.text) != 0) ||
            (s->stream && n > 2))
            return usage_error(c->applet, "all sources have to be in one place, and '%s' is in another one",
                               texts[c->n]);
    }
    if (c->from[0].stream ? differs(c) || c->to.stream : c->to.stream && differs(c))
        return usage_error(c->applet, "'-' is a tar archive, which is copied whole, and goes to a directory "
                                      "or comes from files");
    return EXIT_OK;
}

static int run(struct copying *c, int argc, char **argv, const struct option *options)
{
    struct err err;
    if (code_unpack(CODE_transfer, &err) < 0)
        return applet_failed(c->applet, "%s", err.msg);
    inject_options_init(&c->inject);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":arRq", options, NULL)) >= 0;) {
        int status = take_option(c, options, option, argv[at]);
        if (status != EXIT_OK)
            return status;
    }
    int status = take_sides(c, argc - optind, argv + optind);
    if (status == EXIT_OK)
        status = copy(c);
    for (int i = 0; i < c->n; i++)
        side_release(&c->from[i]);
    free(c->from);
    side_release(&c->to);
    argv_release(&c->excludes);
    return status;
}

static int cp_main(int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            {"archive", 0, NULL, 'a'},
                                            {"recursive", 0, NULL, 'r'},
                                            {"resume", 0, NULL, OPT_RESUME},
                                            {"checksum", 0, NULL, OPT_CHECKSUM},
                                            {"exclude", 1, NULL, OPT_EXCLUDE},
                                            {"quiet", 0, NULL, 'q'},
                                            {"json", 0, NULL, OPT_JSON},
                                            {0}};
    struct copying c = {.applet = "cp"};
    return run(&c, argc, argv, options);
}

static int sync_main(int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            {"archive", 0, NULL, 'a'},
                                            {"delete", 0, NULL, OPT_DELETE},
                                            {"checksum", 0, NULL, OPT_CHECKSUM},
                                            {"exclude", 1, NULL, OPT_EXCLUDE},
                                            {"watch", 0, NULL, OPT_WATCH},
                                            {"quiet", 0, NULL, 'q'},
                                            {"json", 0, NULL, OPT_JSON},
                                            {0}};
    struct copying c = {.applet = "sync", .wants.syncs = true, .wants.recursive = true};
    return run(&c, argc, argv, options);
}

const struct applet cp_applet = {
    .name = "cp",
    .summary = "copy files and trees into a target, out of it, or between two",
    .run = cp_main,
};

const struct applet sync_applet = {
    .name = "sync",
    .summary = "make a directory in a target like one here, or vice versa",
    .run = sync_main,
};
