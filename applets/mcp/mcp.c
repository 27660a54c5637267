/* The command line of MCP servers. */
#include "mcp.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/route.h"
#include "io.h"
#include "json_table.h"
#include "mcp_client.h"
#include "mcp_print.h"
#include "mcp_serve/mcp_serve.h"
#include "mem.h"
#include "surroundings.h"
#include "utf8.h"

static const char NAME[] = "mcp";

static const char usage[] =
    "Usage: toolbox mcp launch [--env NAME=VALUE]... [--cwd DIR] [--user USER]\n"
    "                          [--] PROGRAM [ARGUMENT]...\n"
    "       toolbox mcp list [--json]\n"
    "       toolbox mcp tools SESSION [--json]\n"
    "       toolbox mcp call SESSION TOOL [ARGUMENTS|-] [--json]\n"
    "       toolbox mcp kill SESSION\n"
    "       toolbox mcp serve\n"
    "\n"
    "MCP servers of this container, and this container as one.\n"
    "\n"
    "  launch  starts an MCP server that speaks on stdin and stdout, and prints the\n"
    "          number of its session. It begins in the current directory with the\n"
    "          current environment, unless it runs as another user\n"
    "  list    the servers that were launched\n"
    "  tools   what a server offers, and what each tool takes\n"
    "  call    calls a tool and prints what it answers. ARGUMENTS are a JSON object;\n"
    "          -: from stdin. The status is 1 when the tool says that it failed\n"
    "  kill    closes a server's stdin, and ends what then still runs of it\n"
    "  serve   be an MCP server on stdin and stdout: mcp serve --help\n"
    "\n"
    "  --json  the result as JSON\n"
    "  --help  this text\n"
    "\n"
    "  toolbox mcp launch uvx mcp-server-time                      # prints 0\n"
    "  toolbox mcp call 0 get_current_time '{\"timezone\":\"UTC\"}'\n";

enum { OPT_ENV = 256, OPT_CWD, OPT_USER, OPT_JSON };

static const struct option options[] = {
    {"env", 1, NULL, OPT_ENV},
    {"cwd", 1, NULL, OPT_CWD},
    {"user", 1, NULL, OPT_USER},
    {"json", 0, NULL, OPT_JSON},
    {0},
};

struct command_line {
    struct env_words env;
    const char *cwd, *user;
    bool as_json;
    char **words;
    int n_words;
};

/* ---- options ---- */

static int take_option(struct command_line *c, int option)
{
    switch (option) {
    case OPT_ENV:
        return env_words_add(&c->env, NAME, optarg);
    case OPT_CWD:
        c->cwd = optarg;
        return EXIT_OK;
    case OPT_USER:
        c->user = optarg;
        return EXIT_OK;
    case OPT_JSON:
        c->as_json = true;
        return EXIT_OK;
    default:
        return EXIT_USAGE; /* said */
    }
}

/* `in_order`: options end at the first word, which begins a program's own. */
static int parse(struct command_line *c, int argc, char **argv, bool in_order)
{
    const char *letters = in_order ? "+:" : ":";
    for (int option; (option = usage_option(NAME, argc, argv, letters, options, NULL)) >= 0;) {
        int result = take_option(c, option);
        if (result != EXIT_OK)
            return result;
    }
    c->words = argv + optind;
    c->n_words = argc - optind;
    return EXIT_OK;
}

/* ---- calls ---- */

static int print(struct buf *text)
{
    if (text->len == 0 || text->data[text->len - 1] != '\n')
        buf_addc(text, '\n');
    if (io_write_all(STDOUT_FILENO, text->data, text->len) == 0)
        return EXIT_OK;
    return applet_failed(NAME, "cannot write: %s", err_text(errno));
}

static int failed(const struct err *err)
{
    return applet_failed(NAME, "%s", err->msg);
}

/* The session that the first word names. */
static int session_of(const struct command_line *c, int min_words, int max_words, struct mcp_client *client)
{
    *client = (struct mcp_client){.session = c->n_words > 0 ? c->words[0] : ""};
    if (c->n_words < min_words || c->n_words > max_words)
        return usage_error(NAME, "takes %d to %d words, not %d", min_words, max_words, c->n_words);
    size_t n = strlen(client->session);
    if (n == 0 || n > 9 || strspn(client->session, "0123456789") != n || (n > 1 && *client->session == '0'))
        return usage_error(NAME, "'%s' is no number of a session; see 'toolbox mcp list'", client->session);
    return EXIT_OK;
}

/* ---- commands ---- */

static int put_program(const struct command_line *c, struct buf *params)
{
    if (c->n_words == 0)
        return usage_error(NAME, "a program is missing");
    for (int i = 0; i < c->n_words; i++)
        if (!utf8_is_valid(c->words[i], strlen(c->words[i])))
            return usage_error(NAME, "word %d of the program is not UTF-8, which no request can hold", i + 1);
    json_member_string(params, "command", c->words[0]);
    json_key(params, "args");
    buf_addc(params, '[');
    for (int i = 1; i < c->n_words; i++) {
        if (i > 1)
            buf_addc(params, ',');
        json_puts(params, c->words[i]);
    }
    buf_addc(params, ']');
    return EXIT_OK;
}

static int do_launch(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf session BUF_AUTO = BUF_INIT;
    struct err err;
    buf_adds(&params, "{\"server_params\":{");
    int result = put_program(c, &params);
    if (result != EXIT_OK)
        return result;
    if (!c->user || c->env.list)
        surroundings_put_env(&params, !c->user, c->env.list);
    if (c->cwd)
        json_member_string(&params, "cwd", c->cwd);
    else if (!c->user)
        surroundings_put_cwd(&params);
    buf_addc(&params, '}');
    if (c->user)
        json_member_string(&params, "user", c->user);
    buf_addc(&params, '}');
    if (call_method("mcp_launch_server", span_of(&params), &session, &err) < 0)
        return failed(&err);
    return print(&session);
}

static int do_list(const struct command_line *c)
{
    struct buf list BUF_AUTO = BUF_INIT;
    struct buf table BUF_AUTO = BUF_INIT;
    struct err err;
    if (c->n_words > 0)
        return usage_error(NAME, "list takes no words");
    if (call_method("mcp_list_servers", (struct span){"{}", 2}, &list, &err) < 0)
        return failed(&err);
    if (c->as_json)
        return print(&list);
    json_table(&table, span_of(&list), mcp_tool.list.columns);
    return print(&table);
}

static int do_tools(const struct command_line *c)
{
    struct buf found BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct mcp_client client;
    struct err err;
    int result = session_of(c, 1, 1, &client);
    if (result != EXIT_OK)
        return result;
    if (mcp_client_begin(&client, &err) < 0 || mcp_client_tools(&client, &found, &err) < 0)
        return failed(&err);
    if (c->as_json)
        return print(&found);
    mcp_print_tools(span_of(&found), &text);
    return text.len > 0 ? print(&text) : EXIT_OK;
}

/* The arguments of a call: a word, or stdin. */
static int read_arguments(const char *word, struct buf *arguments)
{
    struct err err;
    if (strcmp(word, "-") != 0)
        buf_adds(arguments, word);
    else if (io_read_all(STDIN_FILENO, arguments) < 0)
        return applet_failed(NAME, "cannot read the arguments: %s", err_text(errno));
    if (json_check(span_of(arguments), &err) < 0)
        return usage_error(NAME, "the arguments are no JSON: %s", err.msg);
    if (json_kind(span_of(arguments)) != JSON_OBJECT)
        return usage_error(NAME, "the arguments are no JSON object");
    return EXIT_OK;
}

static int do_call(const struct command_line *c)
{
    struct buf arguments BUF_AUTO = BUF_INIT;
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct buf text BUF_AUTO = BUF_INIT;
    struct mcp_client client;
    struct err err;
    int result = session_of(c, 2, 3, &client);
    if (result == EXIT_OK)
        result = read_arguments(c->n_words > 2 ? c->words[2] : "{}", &arguments);
    if (result != EXIT_OK)
        return result;
    buf_addc(&params, '{');
    json_member_string(&params, "name", c->words[1]);
    json_key(&params, "arguments");
    json_compact(&params, span_of(&arguments));
    buf_addc(&params, '}');
    if (mcp_client_begin(&client, &err) < 0 ||
        mcp_client_ask(&client, "tools/call", span_of(&params), &answer, &err) < 0)
        return failed(&err);
    bool is_error = mcp_print_result(span_of(&answer), &text);
    result = c->as_json ? print(&answer) : text.len > 0 ? print(&text) : EXIT_OK;
    return result == EXIT_OK && is_error ? EXIT_FAILED : result;
}

static int do_kill(const struct command_line *c)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct mcp_client client;
    struct err err;
    int result = session_of(c, 1, 1, &client);
    if (result != EXIT_OK)
        return result;
    buf_addf(&params, "{\"session_id\":%s}", client.session);
    return call_method("mcp_kill_server", span_of(&params), &answer, &err) < 0 ? failed(&err) : EXIT_OK;
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    int (*run)(const struct command_line *c);
} commands[] = {
    {"launch", do_launch}, {"list", do_list}, {"tools", do_tools}, {"call", do_call}, {"kill", do_kill},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int mcp_main(int argc, char **argv)
{
    const char *names[N_COMMANDS + 2] = {"serve"};
    struct command_line c = {0};
    if (argc < 2)
        return usage_error(NAME, "a command is missing");
    if (strcmp(argv[1], "serve") == 0)
        return mcp_serve_main(argc - 1, argv + 1);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[1 + i] = commands[i].name;
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        int result = parse(&c, argc - 1, argv + 1, commands[i].run == do_launch);
        if (result == EXIT_OK)
            result = commands[i].run(&c);
        free(c.env.list);
        return result;
    }
    return usage_unknown(NAME, "command", argv[1], names);
}

const struct applet mcp_applet = {
    .name = NAME,
    .summary = "talk to MCP servers in this container, or be one",
    .usage = usage,
    .run = mcp_main,
};
