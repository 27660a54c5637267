/* confine: a command that can do no more than is said. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "applet.h"
#include "confine_command.h"
#include "io.h"
#include "mem.h"
#include "policy.h"
#include "walls.h"
#include "proc.h"

static const char NAME[] = "confine";

enum { EXIT_TIME = 124, EXIT_NOT_CONFINED = 125, EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127, BY_SIGNAL = 128 };

enum {
    OPT_PRESET = 900,
    OPT_READ,
    OPT_WRITE,
    OPT_EXECUTE,
    OPT_HIDE,
    OPT_NETWORK,
    OPT_PRIVATE_TMP,
    OPT_BEST_EFFORT,
    OPT_MEMORY,
    OPT_PROCESSES,
    OPT_CPUS,
    OPT_CPU_SECONDS,
    OPT_WALL_SECONDS,
    OPT_FILE_SIZE,
    OPT_OPEN_FILES,
    OPT_EXPLAIN,
    OPT_LEARN,
    OPT_JSON
};

static const struct option options[] = {
    {"preset", 1, NULL, OPT_PRESET},
    {"read", 1, NULL, OPT_READ},
    {"write", 1, NULL, OPT_WRITE},
    {"execute", 1, NULL, OPT_EXECUTE},
    {"hide", 1, NULL, OPT_HIDE},
    {"network", 1, NULL, OPT_NETWORK},
    {"private-tmp", 0, NULL, OPT_PRIVATE_TMP},
    {"best-effort", 0, NULL, OPT_BEST_EFFORT},
    {"memory", 1, NULL, OPT_MEMORY},
    {"processes", 1, NULL, OPT_PROCESSES},
    {"cpus", 1, NULL, OPT_CPUS},
    {"cpu-seconds", 1, NULL, OPT_CPU_SECONDS},
    {"wall-seconds", 1, NULL, OPT_WALL_SECONDS},
    {"file-size", 1, NULL, OPT_FILE_SIZE},
    {"open-files", 1, NULL, OPT_OPEN_FILES},
    {"explain", 0, NULL, OPT_EXPLAIN},
    {"learn", 0, NULL, OPT_LEARN},
    {"json", 0, NULL, OPT_JSON},
    {0},
};

struct line {
    struct policy policy;
    struct limits limits;
    bool explain, learn, json;
    char **command;
};

/* ---- words ---- */

static int take_number(const char *option, const char *word, bool is_size, long long *number)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long n = *word >= '0' && *word <= '9' ? strtoull(word, &end, 10) : 0;
    const char *unit = n > 0 && is_size && *end ? strchr(units, *end & ~0x20) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (n == 0 || errno || (*end && !(unit && !end[1])) || n > (unsigned long long)PARAM_MAX >> shift)
        return usage_error(
            NAME, "--%s takes %s, not '%s'", option,
            is_size ? "a size of at least 1 (1000000, 512K, 64M, 2G)" : "a whole number of at least 1", word);
    *number = (long long)(n << shift);
    return EXIT_OK;
}

static int take_cpus(const char *word, double *cpus)
{
    char *end;
    *cpus = strtod(word, &end);
    if (*word < '0' || *word > '9' || *end || !(*cpus >= 0.01 && *cpus <= 4096))
        return usage_error(NAME, "--cpus takes a number from 0.01 to 4096, not '%s'", word);
    return EXIT_OK;
}

static void add_word(struct texts *list, char *word)
{
    list->list = mem_realloc(list->list, (list->n + 2) * sizeof(char *));
    list->list[list->n++] = word;
    list->list[list->n] = NULL;
}

static int take_limit(struct limits *l, int option, const char *name, const char *word)
{
    switch (option) {
    case OPT_MEMORY:
        return take_number(name, word, true, &l->memory);
    case OPT_FILE_SIZE:
        return take_number(name, word, true, &l->file_size);
    case OPT_PROCESSES:
        return take_number(name, word, false, &l->processes);
    case OPT_CPU_SECONDS:
        return take_number(name, word, false, &l->cpu_seconds);
    case OPT_WALL_SECONDS:
        return take_number(name, word, false, &l->wall_seconds);
    case OPT_OPEN_FILES:
        return take_number(name, word, false, &l->open_files);
    default:
        return take_cpus(word, &l->cpus);
    }
}

static int take_option(struct line *l, int option, const char *name, char *word)
{
    struct texts *lists[] = {&l->policy.read, &l->policy.write, &l->policy.execute, &l->policy.hide,
                             &l->policy.network};
    if (option >= OPT_READ && option <= OPT_NETWORK)
        add_word(lists[option - OPT_READ], word);
    else if (option >= OPT_MEMORY && option <= OPT_OPEN_FILES)
        return take_limit(&l->limits, option, name, word);
    else if (option == OPT_PRESET)
        l->policy.preset = (struct text){word, strlen(word)};
    else if (option == OPT_PRIVATE_TMP)
        l->policy.private_tmp = true;
    else if (option == OPT_BEST_EFFORT)
        l->policy.best_effort = true;
    else if (option == OPT_EXPLAIN)
        l->explain = true;
    else if (option == OPT_LEARN)
        l->learn = true;
    else if (option == OPT_JSON)
        l->json = true;
    else
        return EXIT_USAGE;
    return EXIT_OK;
}

static int parse(struct line *l, int argc, char **argv)
{
    static const char *known[sizeof options / sizeof *options + 2];
    for (size_t i = 0; options[i].name; i++)
        known[i] = mem_printf("--%s", options[i].name);
    for (int option; (option = usage_option(NAME, argc, argv, "+:", options, known)) >= 0;) {
        const char *name = option == '?' ? "" : options[option - OPT_PRESET].name;
        int status = take_option(l, option, name, optarg);
        if (status != EXIT_OK)
            return status;
    }
    l->command = argv + optind;
    if (*l->command ? strcmp(*l->command, "-") == 0 : !l->explain)
        return usage_error(NAME, "a command is wanted: toolbox confine --preset workspace -- COMMAND…");
    if (l->learn && (l->explain || !*l->command))
        return usage_error(NAME, "--learn takes a command, and no --explain");
    if (l->json && !l->explain && !l->learn)
        return usage_error(NAME, "--json is of --explain and --learn; what a command prints is its own");
    return EXIT_OK;
}

/* ---- the command ---- */

static int not_confined(const struct err *err)
{
    static const char member[] = "Invalid parameters: confine."; /* an option here */
    if (strncmp(err->msg, member, sizeof member - 1) == 0)
        return usage_error(NAME, "--%s", err->msg + sizeof member - 1);
    applet_failed(NAME, "%s", err->msg);
    return err->code == ERR_PARAMS ? EXIT_USAGE : EXIT_NOT_CONFINED;
}

static int confine_self(const struct confine *c, struct err *err)
{
    return confine_begin(c, err) < 0 || confine_enter(c, err) < 0 ? -1 : 0;
}

/* What is missing is told before the command prints anything. */
static void tell_missing(const struct confine *c)
{
    for (int i = 0; i < CONFINE_PARTS; i++)
        if (c->wanted[i] && !c->report->by[i] && i != CONFINE_WALL_SECONDS && i != CONFINE_SIGNALS &&
            i != CONFINE_METADATA)
            applet_failed(NAME, "goes on without what confines %s: it can't be had here",
                          confine_name((enum confine_what)i));
}

static int run(const struct confine *c, char **command)
{
    struct err err;
    if (confine_self(c, &err) < 0)
        return not_confined(&err);
    tell_missing(c);
    execvp(*command, command);
    int missing = errno == ENOENT;
    applet_failed(NAME, "cannot run '%s': %s%s", *command, err_text(errno),
                  errno == EACCES && c->wanted[CONFINE_EXECUTE] ? " (the policy says what can be executed)"
                                                                : "");
    return missing ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

/* ---- beside the command, where it has to be ended or a control group removed ---- */

static volatile sig_atomic_t child, over;

static void pass_on(int signal)
{
    if (signal == SIGALRM)
        over = 1;
    if (child > 0)
        kill((pid_t)child, signal == SIGALRM ? SIGKILL : signal);
}

/* What the command has left, which is ours as its subreaper. */
static void end_the_rest(void)
{
    for (int round = 0; round < 50; round++) {
        struct proc *list MEM_AUTO = NULL;
        size_t n = proc_descendants(getpid(), &list);
        for (size_t i = 0; i < n; i++)
            proc_signal(&list[i], SIGKILL);
        if (n == 0)
            return;
        proc_reap(100);
    }
}

static void watch_signals(const struct confine *c)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
    struct sigaction passing = {.sa_handler = pass_on};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &passing, NULL);
    signal(SIGINT, SIG_IGN); /* of the terminal: the command gets them as well */
    signal(SIGQUIT, SIG_IGN);
    if (c->wanted[CONFINE_WALL_SECONDS])
        alarm((unsigned)c->limits[CONFINE_WALL_SECONDS]);
}

static int wait_for_command(void)
{
    int status = 0;
    while (waitpid((pid_t)child, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static int supervise(struct confine *c, char **command)
{
    pid_t parent = getpid();
    sigset_t all, before; /* none is lost until it can be passed on */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t pid = fork();
    if (pid < 0)
        return applet_failed(NAME, "cannot start a program: %s", err_text(errno)), EXIT_NOT_CONFINED;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent)
            _exit(EXIT_NOT_CONFINED);
        sigprocmask(SIG_SETMASK, &before, NULL);
        _exit(run(c, command));
    }
    child = pid;
    watch_signals(c);
    sigprocmask(SIG_SETMASK, &before, NULL);
    int status = wait_for_command();
    end_the_rest();
    unsigned long long times[2] = {0};
    enum confine_what met = over                            ? CONFINE_WALL_SECONDS
                            : status == BY_SIGNAL + SIGKILL ? confine_limit_met(&c->group, times)
                                                            : CONFINE_PARTS;
    if (met != CONFINE_PARTS)
        applet_failed(NAME, "ended by its limit: %s", confine_name(met));
    return over ? EXIT_TIME : status;
}

/* ---- --explain ---- */

static void put_lines(const struct confine *c, struct buf *out)
{
    struct buf how BUF_AUTO = BUF_INIT;
    confine_put_enforced(c, &how);
    char *at = how.data;
    for (char *key; (at = strchr(at, '"'));) {
        key = at + 1;
        char *end = strchr(key, '"'), *value = end + 3, *stop = strchr(value, '"');
        *end = *stop = '\0';
        buf_addf(out, "%-13s %s\n", key, value);
        at = stop + 1;
        for (int i = 0; i < CONFINE_LISTS; i++)
            for (char **p = strcmp(key, confine_name((enum confine_what)i)) == 0 ? c->paths[i] : NULL;
                 p && *p; p++)
                buf_addf(out, "              %s\n", *p);
    }
    if (out->len == 0)
        buf_adds(out, "nothing is confined\n");
}

static void put_json(const struct confine *c, struct buf *out)
{
    buf_addc(out, '{');
    for (int i = 0; i < CONFINE_LISTS; i++) {
        if (!c->wanted[i])
            continue;
        json_key(out, confine_name((enum confine_what)i));
        buf_addc(out, '[');
        for (char **p = c->paths[i]; p && *p; p++) {
            buf_adds(out, p == c->paths[i] ? "" : ",");
            json_puts(out, *p);
        }
        buf_addc(out, ']');
    }
    json_key(out, "enforced");
    confine_put_enforced(c, out);
    json_member_int(out, "landlock_abi", c->report->abi);
    buf_adds(out, "}\n");
}

/* It is really done, by a process that ends. */
static int explain(struct confine *c, bool json)
{
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(confine_self(c, &err) < 0 ? not_confined(&err) : EXIT_OK);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
        return applet_failed(NAME, "cannot start a program: %s", err_text(errno)), EXIT_NOT_CONFINED;
    if (WEXITSTATUS(status) != EXIT_OK)
        return WEXITSTATUS(status);
    if (c->wanted[CONFINE_WALL_SECONDS])
        c->report->by[CONFINE_WALL_SECONDS] = CONFINE_BY_TIMER;
    if (json)
        put_json(c, &text);
    else
        put_lines(c, &text);
    return io_write_all(STDOUT_FILENO, text.data, text.len) < 0
               ? applet_failed(NAME, "can't write to standard output: %s", err_text(errno))
               : EXIT_OK;
}

/* ---- --learn ---- */

enum { ROUNDS = 50, HEARD_MAX = 1 << 18 };

/* Runs it once, with what it prints on our stderr, of which the end is kept. Its status; -1: none. */
static int run_heard(const struct confine *c, char **command, struct buf *heard)
{
    int ends[2], status = 0;
    if (pipe(ends) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(run(c, command));
    }
    close(ends[1]);
    char data[4096];
    for (ssize_t n; (n = read(ends[0], data, sizeof data)) > 0 || (n < 0 && errno == EINTR);) {
        io_write_all(STDERR_FILENO, data, n > 0 ? (size_t)n : 0);
        buf_add(heard, data, n > 0 ? (size_t)n : 0);
        if (heard->len > HEARD_MAX)
            buf_consume(heard, heard->len - HEARD_MAX / 2);
    }
    close(ends[0]);
    return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : status;
}

/* What isn't there yet takes its directory. False: there is nothing to allow. */
static bool allow(struct line *l, const struct confine_refusal *r)
{
    struct texts *lists[] = {[CONFINE_READ] = &l->policy.read,
                             [CONFINE_WRITE] = &l->policy.write,
                             [CONFINE_EXECUTE] = &l->policy.execute};
    if (r->what == CONFINE_NETWORK) {
        add_word(&l->policy.network, (char *)"all");
        return true;
    }
    char *path = mem_strdup(r->path), *slash = strrchr(path, '/');
    if (r->what > CONFINE_EXECUTE || !slash)
        return false;
    if (access(path, F_OK) < 0)
        slash[slash == path] = '\0';
    add_word(lists[r->what], path);
    return access(path, F_OK) == 0;
}

/* As a shell takes it: what a command says may be anything. */
static void put_word(struct buf *out, const char *word)
{
    if (!word[strcspn(word, " \t\r\n\"'`\\$&|;<>()[]{}*?!#~=%^")]) {
        buf_adds(out, word);
        return;
    }
    buf_addc(out, '\'');
    for (; *word; word++)
        buf_addf(out, *word == '\'' ? "'\\%c'" : "%c", *word);
    buf_addc(out, '\'');
}

static void put_words(struct buf *out, const char *option, const struct texts *list, bool json)
{
    if (json && list->list) {
        json_key(out, option);
        buf_addc(out, '[');
    }
    for (size_t i = 0; list->list && i < list->n; i++) {
        if (json) {
            buf_adds(out, i > 0 ? "," : "");
            json_puts(out, list->list[i]);
        } else {
            buf_addf(out, " --%s ", option);
            put_word(out, list->list[i]);
        }
    }
    if (json && list->list)
        buf_addc(out, ']');
}

static int print_learnt(const struct line *l)
{
    struct buf text BUF_AUTO = BUF_INIT;
    const struct policy *p = &l->policy;
    buf_adds(&text, l->json ? "{" : "toolbox confine");
    if (p->preset.s && l->json)
        json_member_string(&text, "preset", p->preset.s);
    else if (p->preset.s)
        buf_addf(&text, " --preset %s", p->preset.s);
    put_words(&text, "read", &p->read, l->json);
    put_words(&text, "write", &p->write, l->json);
    put_words(&text, "execute", &p->execute, l->json);
    put_words(&text, "hide", &p->hide, l->json);
    put_words(&text, "network", &p->network, l->json);
    buf_adds(&text, l->json ? "}\n" : "\n");
    return io_write_all(STDOUT_FILENO, text.data, text.len) < 0 ? EXIT_FAILED : EXIT_OK;
}

/* From nothing that may be written and no network, where no policy is given: as long as it says that it met a
 * wall, that is opened and it is run again. */
static int learn(struct line *l)
{
    struct err err;
    bool more = true;
    int status = 0;
    if (!walls_confine(&l->policy)) {
        l->policy.preset = (struct text){(char *)"readonly", 8};
        add_word(&l->policy.network, (char *)"none");
    }
    for (int round = 0; more && round < ROUNDS; round++) {
        struct confine c;
        struct confine_refusal r;
        struct buf heard BUF_AUTO = BUF_INIT;
        if (policy_make(&c, &l->policy, &l->limits, NULL, &err) < 0 || confine_prepare(&c, &err) < 0)
            return not_confined(&err);
        status = run_heard(&c, l->command, &heard);
        more = status >= 0 && confine_refused(&c, NULL, buf_str(&heard), heard.len, &r) && allow(l, &r);
        policy_release(&c);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) >= EXIT_NOT_CONFINED)
        return WEXITSTATUS(status);
    return print_learnt(l);
}

int confine_command(int argc, char **argv)
{
    struct line l = {.limits = LIMITS_NONE};
    struct confine c;
    struct err err;
    int status = parse(&l, argc, argv);
    if (status != EXIT_OK)
        return status;
    if (l.learn)
        return learn(&l);
    if (policy_make(&c, &l.policy, &l.limits, NULL, &err) < 0 || confine_prepare(&c, &err) < 0)
        status = not_confined(&err);
    else if (l.explain)
        status = explain(&c, l.json);
    else if (c.group.n > 0 || c.wanted[CONFINE_WALL_SECONDS])
        status = supervise(&c, l.command);
    else
        status = run(&c, l.command);
    policy_release(&c);
    return status;
}
