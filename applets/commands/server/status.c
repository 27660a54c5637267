/* status: what runs, as a table or as JSON. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "json_table.h"
#include "server_internal.h"

#define STATUS_MS 15000 /* keepers that are stuck have 2 s to answer the server */

static const char *const server_columns[] = {"pid",       "user",      "version",   "build", "age_s",
                                             "memory_kb", "log_level", "directory", NULL};
static const char *const counter_columns[] = {"connections", "open",      "strangers", "requests", "refused",
                                              "bytes_in",    "bytes_out", "keepers",   NULL};

/* A server, or keepers for which one will be started. */
static bool anything_runs(void)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    struct place keepers PLACE_AUTO = PLACE_INIT;
    int fd FD_AUTO = ipc_find(&place, IPC_SERVER);
    return fd >= 0 || server_find_sockets(&keepers, true);
}

#define COLUMNS_MOST 16

/* Where there is something of other builds, it says which. */
static void put_table(struct buf *out, struct span list, const char *const *columns)
{
    const char *more[COLUMNS_MOST] = {"build"};
    struct span entry, build;
    bool others = false;
    for (size_t i = 1; i + 1 < COLUMNS_MOST && columns[i - 1]; i++)
        more[i] = columns[i - 1];
    for (size_t at = 0; columns != server_columns && !others && json_element(list, &at, &entry);)
        others = json_kind(entry) == JSON_OBJECT && json_member(entry, "build", &build, NULL);
    json_table(out, list, others ? more : columns);
}

/* One part: its member of the JSON object, or its table. `text` is an array; or an object, null where there
 * is none. */
static void put(struct buf *out, bool json, const char *title, struct span text, const char *const *columns)
{
    struct buf list BUF_AUTO = BUF_INIT;
    if (json) {
        json_key(out, title);
        buf_add(out, text.s, text.n);
        return;
    }
    if (json_kind(text) == JSON_ARRAY)
        buf_add(&list, text.s, text.n);
    else
        buf_addf(&list, "[%.*s]", (int)text.n, text.s);
    buf_addf(out, "%s%s\n", out->len > 0 ? "\n" : "", title);
    if (list.len > 2)
        put_table(out, span_of(&list), columns);
    else
        buf_adds(out, "none\n");
}

static int put_server(struct buf *out, bool json, struct err *err)
{
    static const struct {
        const char *title;
        const char *const *columns;
    } parts[] = {{"server", server_columns}, {"counters", counter_columns}};
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result, part;
    if (server_query("server_status", STATUS_MS, &answer, &result, err) < 0)
        return -1;
    for (size_t i = 0; i < 2; i++)
        if (json_member(result, parts[i].title, &part, NULL))
            put(out, json, parts[i].title, part, parts[i].columns);
    return 0;
}

static int put_lists(struct buf *out, bool json, bool running, struct err *err)
{
    for (const struct tool *const *t = tool_list(); *t; t++) {
        struct buf answer BUF_AUTO = BUF_INIT;
        struct span result = {"[]", 2};
        if (!(*t)->list.method)
            continue;
        if (running && server_query((*t)->list.method, STATUS_MS, &answer, &result, err) < 0)
            return -1;
        put(out, json, (*t)->list.title, result, (*t)->list.columns);
    }
    return 0;
}

/* Everything that runs as one list, whose entries say of which `kind` each is. */
static int put_all(struct buf *list, struct err *err)
{
    buf_addc(list, '[');
    for (const struct tool *const *t = tool_list(); *t; t++) {
        struct buf answer BUF_AUTO = BUF_INIT;
        struct span result, entry;
        if (!(*t)->list.method)
            continue;
        if (server_query((*t)->list.method, STATUS_MS, &answer, &result, err) < 0)
            return -1;
        for (size_t at = 0; json_element(result, &at, &entry);) {
            buf_adds(list, list->len > 1 ? ",{" : "{");
            json_member_string(list, "kind", (*t)->list.title);
            buf_addf(list, ",%.*s", (int)entry.n - 1, entry.s + 1);
        }
    }
    buf_addc(list, ']');
    return 0;
}

/* The members that --format names, of all that runs, exact; a line each under one of headings. */
static int put_format(struct buf *out, char *names, bool running, struct err *err)
{
    const char *columns[COLUMNS_MOST + 1] = {NULL};
    struct buf list BUF_AUTO = BUF_INIT;
    size_t n = 0;
    for (char *rest = names, *name; (name = strsep(&rest, ","));) {
        if (!*name || n == COLUMNS_MOST)
            return err_set(err, ERR_PARAMS, "--format takes up to %d names with commas between",
                           COLUMNS_MOST);
        columns[n++] = name;
    }
    if (running && put_all(&list, err) < 0)
        return -1;
    json_table_exact(out, running ? span_of(&list) : (struct span){"[]", 2}, columns);
    return 0;
}

enum { EXIT_NONE_RUNS = 3 }; /* as service managers have it */

static int print(const struct buf *text)
{
    if (io_write_all(STDOUT_FILENO, buf_str(text), text->len) < 0)
        return applet_failed("status", "cannot write: %s", err_text(errno));
    return EXIT_OK;
}

static int show(bool json, char *format, bool running, struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (format)
        return put_format(&text, format, running, err) < 0 ? -1 : print(&text);
    if (!running && !json) {
        puts("no server runs");
        return stdout_flushed();
    }
    if (json)
        buf_adds(&text, running ? "{" : "{\"server\":null,\"counters\":null");
    if ((running && put_server(&text, json, err) < 0) || put_lists(&text, json, running, err) < 0)
        return -1;
    if (json)
        buf_adds(&text, "}\n");
    return print(&text);
}

#ifndef TOOLBOX_GUEST

/* A word with a colon that is no option: docker:web. */
static bool names_target(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (argv[i][0] != '-' && strchr(argv[i], ':'))
            return true;
    return false;
}

#endif

static int status_main(int argc, char **argv)
{
#ifndef TOOLBOX_GUEST
    if (names_target(argc, argv))
        return status_elsewhere(argc, argv);
#endif
    static const char *const names[] = {"--json", "--quiet", "--format", NULL};
    static const struct option options[] = {
        {"json", 0, NULL, 'j'}, {"quiet", 0, NULL, 'q'}, {"format", 1, NULL, 'f'}, {0}};
    bool json = false, quiet = false;
    char *format = NULL;
    struct err err;
    for (int option; (option = usage_option("status", argc, argv, ":q", options, names)) >= 0;) {
        json = json || option == 'j';
        quiet = quiet || option == 'q';
        format = option == 'f' ? optarg : format;
        if (option == '?')
            return EXIT_USAGE;
    }
    if (optind < argc)
        return usage_unknown("status", "argument", argv[optind], names);
    if (json + quiet + (format != NULL) > 1)
        return usage_error("status", "--json, --quiet and --format go alone");
    if (place_check_given(&err) < 0)
        return applet_failed("status", "%s", err.msg);
    bool running = anything_runs();
    if (quiet)
        return running ? EXIT_OK : EXIT_NONE_RUNS;
    int status = show(json, format, running, &err);
    if (status < 0 && err.code == ERR_PARAMS)
        return usage_error("status", "%s", err.msg);
    return status < 0 ? applet_failed("status", "%s", err.msg) : status;
}

const struct applet status_applet = {
    .name = "status",
    .summary = "show what runs: server, sessions, jobs, MCP servers",
    .run = status_main,
};
