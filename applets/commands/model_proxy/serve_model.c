#include "serve_model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy_tokens.h"
#include "command_source.h"
#include "limits.h"
#include "rules.h"
#include "tape.h"
#include "upstream.h"
#include "usage_count.h"
#include "io.h"
#include "mem.h"

#define ME "model_proxy"
#define KEY_MAX 65536

static const char *const dialect_names[DIALECTS] = {"openai", "anthropic", "google", "ollama"};

/* What was given; for each dialect, or for all in the last place. */
static struct given {
    const char *to[DIALECTS + 1], *key_env[DIALECTS + 1], *key_file[DIALECTS + 1];
    const char *command, *record, *replay;
    bool in_order;
} given MEM_LARGE;

static struct serve {
    struct loop *loop;
    struct upstream upstreams[DIALECTS];
    struct command_source command;
    struct rules rules;
    struct limits limits;
    struct slots slots;
    struct tape *tape;
    int record; /* -1: none */
} serve MEM_LARGE;

/* ---- options ---- */

static int bad(const char *option, const char *value, const char *why)
{
    return usage_error(ME, "--%s: '%s': %s", option, value, why);
}

static int put_for_dialect(const char *list[DIALECTS + 1], const char *value)
{
    for (int i = 0; i < DIALECTS; i++) {
        size_t n = strlen(dialect_names[i]);
        if (strncmp(value, dialect_names[i], n) == 0 && value[n] == '=') {
            list[i] = value + n + 1;
            return EXIT_OK;
        }
    }
    list[DIALECTS] = value;
    return EXIT_OK;
}

static int take_match(const char *value)
{
    given.in_order = strcmp(value, "order") == 0;
    if (given.in_order || strcmp(value, "body") == 0)
        return EXIT_OK;
    return bad("match", value, "give body or order");
}

static int take_limit(const char *option, const char *value, long long limits[LIMIT_KINDS])
{
    if (limits_read(value, limits))
        return EXIT_OK;
    return bad(option, value, "give requests=N, tokens=N or both with a comma, of one or more each");
}

static int take_concurrency(const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (*value < '0' || *value > '9' || *end || n < 1 || n > 100000)
        return bad("concurrency", value, "give a number, one or more");
    serve.slots.most = (int)n;
    return EXIT_OK;
}

static int take_rule(enum serve_option option, const char *value)
{
    const char *name = option == SERVE_MODEL ? "model" : option == SERVE_SET ? "set" : "unset";
    const char *why = option == SERVE_MODEL ? rules_model(&serve.rules, value)
                                            : rules_change(&serve.rules, value, option == SERVE_UNSET);
    return why ? bad(name, value, why) : EXIT_OK;
}

int serve_model_option(enum serve_option option, const char *value)
{
    switch (option) {
    case SERVE_TO:
        return put_for_dialect(given.to, value);
    case SERVE_KEY_ENV:
        return put_for_dialect(given.key_env, value);
    case SERVE_KEY_FILE:
        return put_for_dialect(given.key_file, value);
    case SERVE_TO_EXEC:
        given.command = value;
        return EXIT_OK;
    case SERVE_RECORD:
        given.record = value;
        return EXIT_OK;
    case SERVE_REPLAY:
        given.replay = value;
        return EXIT_OK;
    case SERVE_MATCH:
        return take_match(value);
    case SERVE_BUDGET:
        return take_limit("budget", value, serve.limits.budget);
    case SERVE_RATE:
        return take_limit("rate", value, serve.limits.rate);
    case SERVE_CONCURRENCY:
        return take_concurrency(value);
    default:
        return take_rule(option, value);
    }
}

/* ---- what is seen of an answer ---- */

struct watch {
    char *method, *path;
    struct buf asked, answer;
    int status;
    char *type;
    long long since;
};

static void write_record(const struct watch *w)
{
    struct buf line BUF_AUTO = BUF_INIT;
    struct tape_answer answer = {.status = w->status, .type = w->type, .body = span_of(&w->answer)};
    tape_line(&line, w->method, w->path, span_of(&w->asked), now_ms() - w->since, &answer);
    if (io_write_all(serve.record, line.data, line.len) < 0)
        applet_failed(ME, "can't write to the record: %s", err_text(errno));
}

static void watch_end(struct watch *w, bool whole)
{
    long long tokens = usage_count(span_of(&w->answer));
    if (tokens < 0 && w->status == 200)
        tokens = tokens_estimate(span_of(&w->asked)) + tokens_estimate(span_of(&w->answer));
    if (tokens > 0 && strcmp(w->method, "POST") == 0)
        limits_used(&serve.limits, tokens);
    if (whole && serve.record >= 0)
        write_record(w);
    free(w->method);
    free(w->path);
    free(w->type);
    buf_release(&w->asked);
    buf_release(&w->answer);
    free(w);
}

static void take_type(struct watch *w, const char *fields)
{
    const char *type = strcasestr(fields, "content-type:");
    type = type ? type + strlen("content-type:") : "";
    type += strspn(type, " ");
    free(w->type);
    w->type = mem_dup(type, strcspn(type, "\r\n"));
}

static void on_answer(void *arg, int status, const char *fields, struct span text)
{
    struct watch *w = arg;
    if (fields) {
        w->status = status;
        take_type(w, fields);
    }
    if (text.s)
        buf_add(&w->answer, text.s, text.n);
    else if (!fields)
        watch_end(w, status != 0);
}

static void watch(const struct proxy_asked *a, const struct proxy_request *r)
{
    struct watch *w = mem_zalloc(sizeof *w);
    *w = (struct watch){.method = mem_strdup(r->method), .path = mem_strdup(a->path), .since = now_ms()};
    buf_init(&w->asked, BUF_NO_MAX);
    buf_init(&w->answer, BUF_NO_MAX);
    buf_add(&w->asked, r->body.s, r->body.n);
    proxy_tap(a->conn, on_answer, w);
}

/* ---- requests ---- */

/* What a model is asked for, and not how many tokens that would be. */
static bool is_call(const struct proxy_asked *a)
{
    static const char *const others[] = {"/count_tokens", "/input_tokens", ":countTokens", "/cancel"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(a->what, others[i]))
            return false;
    return a->posts && strncmp(a->path, "/mcp/", 5) != 0 && strcmp(a->what, "/api/show") != 0;
}

/* False: there is nothing of it, and somebody else may know. */
static bool replay(const struct proxy_asked *a, const struct proxy_request *r)
{
    struct tape_answer answer;
    struct buf why BUF_AUTO = BUF_INIT;
    struct events plan;
    size_t others;
    if (tape_find(serve.tape, r->method, a->path, r->body, &answer, &others)) {
        char *fields MEM_AUTO = mem_printf("Content-Type: %s\r\n", answer.type);
        if (answer.status == 200 && strstr(answer.type, "event-stream")) {
            events_init(&plan);
            buf_add(&plan.text, answer.body.s, answer.body.n);
            proxy_stream(a->conn, fields);
            proxy_stream_end(a->conn, &plan);
        } else {
            proxy_answer(a->conn, answer.status, fields, answer.body);
        }
        tape_answer_release(&answer);
        return true;
    }
    if (!is_call(a))
        return false;
    buf_addf(&why, "the record has no answer to this %s of %s (%zu to that path, %s)", r->method, a->path,
             others, given.in_order ? "all given" : "to other bodies; --match order takes them in turn");
    applet_failed(ME, "%s", buf_str(&why));
    proxy_refuse(a->conn, a->dialect, 400, buf_str(&why));
    return true;
}

static bool on_request(void *arg, struct proxy_asked *a, struct proxy_request *r)
{
    (void)arg;
    if (is_call(a) && limits_refuse(&serve.limits, a->conn, a->dialect))
        return true;
    if (serve.record >= 0 ||
        (is_call(a) && (serve.limits.budget[LIMIT_TOKENS] || serve.limits.rate[LIMIT_TOKENS])))
        watch(a, r);
    if (serve.tape)
        return replay(a, r);
    rules_apply(&serve.rules, a, r);
    if (!serve.upstreams[a->dialect].url.host || strncmp(a->path, "/mcp/", 5) == 0)
        return false;
    upstream_pass(&serve.upstreams[a->dialect], serve.loop, &serve.slots, a, r);
    return true;
}

/* ---- the beginning ---- */

static int take_key_file(struct upstream *u, const char *path)
{
    struct buf key BUF_AUTO = {.max = KEY_MAX};
    if (io_read_file(AT_FDCWD, path, &key) < 0)
        return applet_failed(ME, "can't read the key in %s: %s", path, err_text(errno));
    while (key.len > 0 && (unsigned char)key.data[key.len - 1] <= ' ')
        buf_truncate(&key, key.len - 1);
    u->key = mem_strdup(buf_str(&key));
    return EXIT_OK;
}

static const char *variable(const char *name)
{
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

static int take_key(struct upstream *u, int dialect)
{
    static const char *const usual[DIALECTS][2] = {
        {"OPENAI_API_KEY"}, {"ANTHROPIC_API_KEY"}, {"GEMINI_API_KEY", "GOOGLE_API_KEY"}, {"OLLAMA_API_KEY"}};
    int at = given.key_env[dialect] || given.key_file[dialect] ? dialect : DIALECTS;
    const char *value = variable(given.key_env[at]);
    if (given.key_file[at])
        return take_key_file(u, given.key_file[at]);
    if (given.key_env[at] && !value)
        return applet_failed(ME, "--key-env: %s is not set", given.key_env[at]);
    for (int i = 0; i < 2 && !value && !u->url.plain; i++) /* none to where nobody vouches for */
        value = variable(usual[dialect][i]);
    u->key = value ? mem_strdup(value) : NULL;
    return EXIT_OK;
}

static bool names_version(const char *path)
{
    size_t n = strcspn(path, "?");
    while (n > 0 && path[n - 1] == '/')
        n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return n - begin >= 2 && path[begin] == 'v' && path[begin + 1] >= '0' && path[begin + 1] <= '9';
}

static int begin_upstream(int dialect)
{
    struct err err;
    struct upstream *u = &serve.upstreams[dialect];
    const char *to = given.to[dialect] ? given.to[dialect] : given.to[DIALECTS];
    if (!to)
        return EXIT_OK;
    if (fetch_url_parse_any(to, &u->url, &err) < 0)
        return applet_failed(ME, "--to: %s", err.msg);
    u->versioned = names_version(u->url.path);
    int status = take_key(u, dialect);
    if (status == EXIT_OK && u->key && strpbrk(u->key, "\r\n"))
        status = applet_failed(ME, "the key for %s is more than a line", u->url.authority);
    return status;
}

static int begin_files(void)
{
    struct err err;
    serve.record = -1;
    if (given.replay) {
        serve.tape = tape_load(given.replay, given.in_order, &err);
        if (!serve.tape)
            return applet_failed(ME, "%s", err.msg);
    }
    if (given.record) {
        serve.record = open(given.record, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (serve.record < 0)
            return applet_failed(ME, "can't write to %s: %s", given.record, err_text(errno));
    }
    return EXIT_OK;
}

static void on_made(void *arg, struct span answer)
{
    long long tokens = usage_count(answer);
    (void)arg;
    limits_used(&serve.limits, tokens > 0 ? tokens : tokens_estimate(answer));
}

int serve_model_begin(struct proxy *proxy, bool *answers)
{
    int sources = given.command || given.replay, status = begin_files();
    bool forwards = false;
    for (int i = 0; i <= DIALECTS; i++)
        forwards = forwards || given.to[i];
    *answers = forwards || sources;
    if (status == EXIT_OK && (forwards + (given.command != NULL) + (given.replay != NULL)) > 1)
        status = usage_error(ME, "--to, --to-exec and --replay: one of them is enough");
    for (int i = 0; i < DIALECTS && status == EXIT_OK; i++)
        status = begin_upstream(i);
    serve.loop = proxy->loop;
    if (given.command) {
        serve.command = (struct command_source){proxy->loop, &serve.slots, given.command};
        proxy->source = command_source(&serve.command);
        proxy->headers = proxy->headers_known = true;
    }
    proxy->first = on_request;
    proxy->made = on_made;
    return status;
}

void serve_model_end(void)
{
    for (int i = 0; i < DIALECTS; i++) {
        fetch_url_release(&serve.upstreams[i].url);
        free(serve.upstreams[i].key);
    }
    rules_release(&serve.rules);
    tape_free(serve.tape);
    io_close(&serve.record);
}
