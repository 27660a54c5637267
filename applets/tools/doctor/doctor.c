#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "json.h"
#include "params.h"
#include "commands/probe/probe_controller.h"
#include "relocate.h"
#include "rpc.h"

#define LIMIT_S 3 /* for one thing to be tried */

/* ---- trying ---- */

static int say_end(int status, struct err *err)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return err_set(err, ERR_TOOL, "it was not done after %d s", LIMIT_S);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_TOOL, "who tries it is ended by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    return 0;
}

/* Calls fn in a process of its own; -1 with what it says, or how that process ended. */
static int try_apart(int (*fn)(struct err *err), struct err *err)
{
    struct err said = {0};
    int report[2], status = 0;
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "it cannot be tried");
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        signal(SIGXFSZ, SIG_IGN); /* an error tells more */
        alarm(LIMIT_S);
        if (fn(&said) < 0)
            io_write_all(report[1], &said, sizeof said);
        _exit(0);
    }
    int failed = errno;
    close(report[1]);
    struct buf text BUF_AUTO = BUF_INIT;
    if (pid > 0) {
        io_read_all(report[0], &text);
        waitpid(pid, &status, 0);
    }
    close(report[0]);
    if (pid < 0)
        return err_sys(err, ERR_TOOL, failed, "it cannot be tried, since no process can be started");
    if (text.len == 0)
        return say_end(status, err);
    if (err_take(err, text.data, text.len) < 0)
        err_set(err, ERR_TOOL, "what tries it came to nothing");
    return -1;
}

/* ---- the report ---- */

enum outcome { WORKS, FALLS_BACK, FAILS };
static const char *const outcomes[] = {"works", "falls back", "FAILS"};
static const char *const outcome_words[] = {"works", "falls_back", "fails"};

struct report {
    struct buf text, json;
    int n, failed;
};

static void put(struct report *r, const struct check *c, enum outcome outcome, const char *seen)
{
    buf_addf(&r->text, "%-11s %s\n", outcomes[outcome], c->name);
    if (outcome != WORKS)
        buf_addf(&r->text, "            %s: %s\n", c->tools, seen);
    if (outcome == FALLS_BACK)
        buf_addf(&r->text, "            instead: %s\n", c->otherwise);
    if (outcome != WORKS && c->change)
        buf_addf(&r->text, "            what to do: %s\n", c->change);
    buf_adds(&r->json, r->json.len > 0 ? ",{" : "{");
    json_member_string(&r->json, "name", c->name);
    json_member_string(&r->json, "state", outcome_words[outcome]);
    json_member_string(&r->json, "tools", c->tools);
    json_member_string(&r->json, "seen", seen);
    json_member_string(&r->json, "instead", outcome == FALLS_BACK ? c->otherwise : NULL);
    json_member_string(&r->json, "change", outcome != WORKS ? c->change : NULL);
    buf_addc(&r->json, '}');
    r->n++;
    r->failed += outcome == FAILS;
}

static bool try_one(struct report *r, const struct check *c)
{
    struct err why;
    if (try_apart(c->try, &why) == 0) {
        put(r, c, WORKS, NULL);
        return true;
    }
    put(r, c, c->otherwise ? FALLS_BACK : FAILS, why.msg);
    return false;
}

static void try_all(struct report *r, const struct check *checks)
{
    for (const struct check *c = checks; c->name; c++)
        try_one(r, c);
}

/* What rests on the first one is not tried without it: it would only say the same again. */
static void try_behind_first(struct report *r, const struct check *checks)
{
    if (try_one(r, checks))
        try_all(r, checks + 1);
}

static const char *shell_path;

static int try_shell(struct err *err)
{
    return doctor_try_shell(shell_path, err);
}

/* In /etc/shells stand also programs that take no -c (screen). */
static bool is_shell(const char *path)
{
    size_t n = strlen(path);
    return n > 2 && strcmp(path + n - 2, "sh") == 0;
}

/* One that works will do. */
static void try_shells(struct report *r)
{
    struct probe_platform found;
    size_t fine = 0;
    int root FD_AUTO = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    probe_platform(&found, root);
    for (size_t i = 0; i < found.n_shells; i++) {
        struct err why;
        shell_path = found.shells[i];
        if (!is_shell(shell_path))
            continue;
        bool works = try_apart(try_shell, &why) == 0;
        struct check shell = {shell_path, "bash_session", NULL, "another shell", "repair it, or remove it"};
        put(r, &shell, works ? WORKS : FALLS_BACK, works ? NULL : why.msg);
        fine += works;
    }
    const struct check none = {"a shell", "bash_session", NULL, NULL,
                               "put one there: /bin/sh, say of busybox"};
    if (fine == 0)
        put(r, &none, FAILS,
            found.n_shells > 0 ? "none of those that there are can be run" : "there is none");
    probe_platform_release(&found);
}

static void examine(struct report *r)
{
    *r = (struct report){.text = BUF_INIT, .json = BUF_INIT};
    relocate_all();
    try_all(r, doctor_kernel_checks);
    try_all(r, doctor_device_checks);
    try_behind_first(r, doctor_place_checks);
    try_behind_first(r, doctor_terminal_checks);
    try_shells(r);
}

static void put_result(struct report *r, struct buf *out)
{
    buf_addc(out, '{');
    json_member_bool(out, "ok", r->failed == 0);
    json_key(out, "checks");
    buf_addf(out, "[%s]}", r->json.data);
}

static void release(struct report *r)
{
    buf_release(&r->text);
    buf_release(&r->json);
}

/* ---- the method ---- */

static const struct params_table none = {0};

static void doctor(struct rpc_call *call, struct span params, void *ctx)
{
    struct report r;
    struct err err;
    struct buf out BUF_AUTO = BUF_INIT;
    (void)ctx;
    if (params_unpack(&none, params, NULL, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    examine(&r);
    put_result(&r, &out);
    release(&r);
    rpc_result(call, span_of(&out));
}

static const struct rpc_method methods[] = {
    {"doctor", doctor, NULL, DOC("Try what the tools rest on, where they run"),
     DOC("{ok, checks}; a check is {name, state, tools, seen, instead, change}, its state works, falls_back "
         "or "
         "fails"),
     NULL, NULL, NULL},
    {0},
};

const struct tool doctor_tool = {.in_process = methods};

/* ---- the applet ---- */

static int doctor_run(int argc, char **argv)
{
    static const char *const options[] = {"--json", "--help", NULL};
    struct report r;
    struct buf out BUF_AUTO = BUF_INIT;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--json") != 0)
            return usage_unknown("doctor", argv[i][0] == '-' ? "option" : "argument", argv[i], options);
    io_fill_std();
    signal(SIGCHLD, SIG_DFL); /* as servers and keepers have it, whatever the starter ignores */
    examine(&r);
    if (argc > 1) {
        put_result(&r, &out);
        buf_addc(&out, '\n');
    } else {
        buf_add(&out, r.text.data, r.text.len);
        if (r.failed == 0)
            buf_addf(&out, "Every tool works here (%d things tried).\n", r.n);
        else
            buf_addf(&out, "%d of %d things fail: the tools that are named there don't work here.\n",
                     r.failed, r.n);
    }
    bool ok = r.failed == 0;
    release(&r);
    if (io_write_all(STDOUT_FILENO, out.data, out.len) < 0)
        return applet_failed("doctor", "can't write to standard output: %s", err_text(errno));
    return ok ? EXIT_OK : EXIT_FAILED;
}

const struct applet doctor_applet = {
    .name = "doctor",
    .summary = "try what the tools rest on: what works, and what to change",
    .run = doctor_run,
};
