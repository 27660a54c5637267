#include "host/connect/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "host/connect/connect_serve.h"
#include "host/inject/connection.h"
#include "host/inject/inject.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_then.h"
#include "io.h"
#include "json_table.h"
#include "place.h"
#include "title.h"
#include "words.h"

static const char NAME[] = "connect";
#define USUAL_MS 60000

/* ---- starting ---- */

static void detach(void)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int fd = 0; fd <= 2; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            close(fd);
    if (null > 2)
        close(null);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    title_set("toolbox connection");
}

/* Forks the one who keeps it. The lock is his as well. `behind`: he isn't waited for. */
static int fork_keeper(struct connect_setup *setup, bool behind, struct err *err)
{
    int ends[2];
    struct buf word BUF_AUTO = {.max = sizeof *err};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot start a process");
    pid_t pid = fork();
    if (pid == 0) {
        int keep[] = {setup->dirfd, setup->lock, ends[1]};
        io_close_others(keep, 3);
        detach();
        setup->told = ends[1];
        _exit(connect_serve(setup));
    }
    int failed = errno, told FD_AUTO = ends[0];
    close(ends[1]);
    if (pid < 0)
        return err_sys(err, ERR_TOOL, failed, "cannot start a process");
    if (!behind)
        io_read_all(told, &word);
    if (behind || word.len == 1)
        return 0;
    return err_take(err, word.data, word.len) == 0
               ? -1
               : err_set(err, ERR_TOOL, "the process that was to keep it has ended");
}

struct keeping {
    struct connect_setup setup;
    bool behind;
};

static int keep(void *arg, const char *applet, const struct target *t, const struct inject_result *r)
{
    struct keeping *k = arg;
    const char *const arguments[] = {"exec", "--stream", NULL};
    struct argv command ARGV_AUTO = {0};
    struct err err;
    if (inject_command(t, r, arguments, &command, &err) < 0)
        return applet_failed(applet, "%s: %s", t->text, err.msg);
    k->setup.target = t->text;
    k->setup.container = strcmp(t->kind->scheme, "docker") == 0 && !t->options.runtime ? t->name : NULL;
    k->setup.command = command.words;
    if (fork_keeper(&k->setup, k->behind, &err) < 0)
        return applet_failed(applet, "%s: %s", t->text, err.msg);
    return EXIT_OK;
}

void connect_behind(const char *applet, const struct inject_options *o, const struct target *t,
                    const struct inject_result *r, int persist_ms)
{
    struct err err;
    struct buf path BUF_AUTO = BUF_INIT;
    struct keeping k = {.setup = {.persist_ms = persist_ms}, .behind = true};
    int dir FD_AUTO = connection_dir(&path, &err);
    if (dir < 0)
        return;
    connection_name(o, t, k.setup.name);
    int lock FD_AUTO = connection_lock(dir, k.setup.name, 0, &err);
    if (lock < 0)
        return;
    k.setup.dirfd = dir;
    k.setup.path = buf_str(&path);
    k.setup.lock = lock;
    keep(&k, applet, t, r);
}

int connect_start(const char *applet, const struct inject_options *o, const struct target *t, int persist_ms)
{
    struct err err;
    struct buf path BUF_AUTO = BUF_INIT;
    struct keeping k = {.setup = {.persist_ms = persist_ms}};
    int dir FD_AUTO = connection_dir(&path, &err);
    if (dir < 0)
        return applet_failed(applet, "%s", err.msg);
    connection_name(o, t, k.setup.name);
    int there FD_AUTO = ipc_connect(dir, k.setup.name, IPC_WAIT_S);
    int lock FD_AUTO = there >= 0 ? -1 : connection_lock(dir, k.setup.name, o->timeout_ms, &err);
    if (there >= 0 || (lock < 0 && err.code == 0)) {
        connection_lengthen(dir, k.setup.name, persist_ms);
        return EXIT_OK;
    }
    if (lock < 0)
        return applet_failed(applet, "%s: %s", t->text, err.msg);
    k.setup.dirfd = dir;
    k.setup.path = buf_str(&path);
    k.setup.lock = lock;
    int status = inject_then(applet, o, t, keep, &k, NULL);
    if (status != EXIT_OK)
        connection_unlock(dir, k.setup.name);
    return status;
}

/* ---- those that there are ---- */

/* An array of states. */
static int print_states(struct span states, bool json)
{
    static const char *const columns[] = {"target", "state",     "pid",    "age_s", "clients",
                                          "open",   "persist_s", "socket", NULL};
    struct buf out BUF_AUTO = BUF_INIT;
    if (json) {
        json_put_shown(&out, states);
        buf_addc(&out, '\n');
    } else if (states.n > 2) {
        json_table(&out, states, columns);
    }
    fputs(buf_str(&out), stdout);
    return stdout_flushed();
}

/* ---- the applet ---- */

enum { OPT_PERSIST = 512, OPT_LIST, OPT_STOP };

struct line {
    struct inject_options o;
    int persist_ms;
    bool list, stop;
    const char *target; /* NULL: none was given */
};

static int parse(struct line *l, int argc, char **argv)
{
    static const struct option options[] = {INJECT_OPTIONS,
                                            {"json", 0, NULL, OPT_JSON},
                                            {"persist", 1, NULL, OPT_PERSIST},
                                            {"list", 0, NULL, OPT_LIST},
                                            {"stop", 0, NULL, OPT_STOP},
                                            {0}};
    int status = EXIT_OK;
    inject_options_init(&l->o);
    opterr = 0;
    for (int option, at; (at = optind, option = getopt_long(argc, argv, ":", options, NULL)) >= 0;) {
        if (option == OPT_PERSIST)
            status = connect_persist(NAME, optarg, &l->persist_ms);
        else if (option == OPT_LIST)
            l->list = true;
        else if (option == OPT_STOP)
            l->stop = true;
        else
            status = inject_option(&l->o, options, option, NAME, argv[at]);
        if (status != EXIT_OK)
            return status;
    }
    l->target = argv[optind];
    if (l->list && (l->target || l->stop))
        return usage_error(NAME, "--list shows all connections: no target goes with it, nor --stop");
    if (argc - optind > 1 || !(l->target || l->list || l->stop))
        return usage_error(NAME, "one target is wanted, such as docker:NAME, or --list, or --stop");
    return EXIT_OK;
}

int connect_usual_ms(const struct target *t)
{
    struct buf path BUF_AUTO = BUF_INIT;
    int dir FD_AUTO = t->kind->program && !t->options.runtime ? connection_dir(&path, NULL) : -1;
    return dir >= 0 ? USUAL_MS : -1;
}

int connect_persist(const char *applet, const char *value, int *persist_ms)
{
    double seconds;
    int status = words_seconds(applet, "--persist", value, 0, 86400, &seconds);
    if (status == EXIT_OK)
        *persist_ms = (int)(seconds * 1000);
    return status;
}

static int stop(const struct line *l)
{
    struct buf states BUF_AUTO = BUF_INIT;
    int silent, n = connection_ask(NULL, l->target, CONNECTION_STOP, &states, &silent);
    int status = l->o.json ? print_states(span_of(&states), true) : EXIT_OK;
    if (silent > 0 && (n == 0 || !l->target))
        return applet_failed(NAME,
                             "%d that %s nothing could not be stopped; 'toolbox connect --list' shows the "
                             "process, which 'kill -KILL PID' ends",
                             silent, silent == 1 ? "says" : "say");
    if (l->target && n == 0)
        return applet_failed(
            NAME, "there is no connection to %s; 'toolbox connect --list' shows which there are", l->target);
    return status;
}

static int list(const struct line *l)
{
    struct buf states BUF_AUTO = BUF_INIT;
    connection_ask(NULL, NULL, CONNECTION_STATUS, &states, NULL);
    return print_states(span_of(&states), l->o.json);
}

static int connect_main(int argc, char **argv)
{
    struct line l = {.persist_ms = -1};
    struct target t TARGET_AUTO = {0};
    int status = parse(&l, argc, argv);
    if (status != EXIT_OK)
        return status;
    struct err err;
    if (place_check_given(&err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (l.list)
        return list(&l);
    if (l.stop)
        return stop(&l);
    if (inject_running_target(&t, l.target, &l.o, NAME) != EXIT_OK)
        return EXIT_USAGE;
    status = connect_start(NAME, &l.o, &t, l.persist_ms);
    if (status != EXIT_OK)
        return status;
    char name[IPC_NAME_MAX];
    struct buf states BUF_AUTO = BUF_INIT;
    connection_name(&l.o, &t, name);
    if (connection_ask(name, NULL, CONNECTION_STATUS, &states, NULL) == 0)
        return applet_failed(NAME, "%s: the connection has ended already", t.text);
    return print_states(span_of(&states), l.o.json);
}

const struct applet connect_applet = {
    .name = "connect",
    .summary = "keep a connection to a target, for many calls",
    .run = connect_main,
};
