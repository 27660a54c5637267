#include "host/cp/side.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "commands/transfer/transfer.h"
#include "host/inject/inject_one.h"
#include "host/inject/inject_then.h"
#include "io.h"
#include "mem.h"
#include "spawn.h"

/* ---- reading ---- */

static const struct target_kind *kind_of(const char *text, size_t n)
{
    for (const struct target_kind *k = target_kinds; k->scheme; k++)
        if (strlen(k->scheme) == n && strncmp(k->scheme, text, n) == 0)
            return k;
    return NULL;
}

/* Where the path begins: behind the first colon that a slash follows, else behind the last colon; a command
 * prefix may have such a one itself. */
static const char *path_in(const struct target_kind *k, const char *name)
{
    const char *at = strstr(name, ":/"), *next;
    if (!k->form[0])
        return name;
    while (at && strcmp(k->scheme, "exec") == 0 && (next = strstr(at + 1, ":/")) != NULL)
        at = next;
    if (!at)
        at = strrchr(name, ':');
    return at ? at + 1 : NULL;
}

int side_parse(struct side *s, const char *text, const struct runtime_options *options, struct err *err)
{
    size_t n = strcspn(text, ":/");
    const struct target_kind *k = text[n] == ':' ? kind_of(text, n) : NULL;
    *s = (struct side){.stream = strcmp(text, "-") == 0, .remote = k != NULL};
    if (!k) {
        s->path = mem_strdup(text);
        return *text ? 0 : err_set(err, ERR_PARAMS, "a path is empty");
    }
    const char *path = path_in(k, text + n + 1);
    if (!path || !*path)
        return err_set(err, ERR_PARAMS, "'%s' has no path: %s:%s%s/PATH is wanted", text, k->scheme, k->form,
                       k->form[0] ? ":" : "");
    s->path = mem_strdup(path);
    char *target MEM_AUTO = mem_dup(text, (size_t)(path - text) - (k->form[0] != '\0'));
    return target_parse_running(&s->t, target, options, err);
}

void side_release(struct side *s)
{
    if (s->remote)
        target_release(&s->t);
    free(s->path);
}

/* ---- starting ---- */

static void signals_as_before(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

struct starting {
    struct half *halves;
    int n;
};

static int start_there(void *arg, const char *applet, const struct target *t, const struct inject_result *r)
{
    struct starting *s = arg;
    int here FD_AUTO = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < s->n; i++) {
        struct half *h = &s->halves[i];
        struct argv command ARGV_AUTO = {0};
        struct err err;
        int fds[3];
        if (inject_command(t, r, (const char *const *)h->words, &command, &err) < 0 ||
            (h->pid = transport_start(here, command.words, fds, NULL, &err)) < 0)
            return applet_failed(applet, "%s: %s", t->text, err.msg);
        h->in = fds[0];
        h->out = fds[1];
        h->err = fds[2];
    }
    return EXIT_OK;
}

/* A child of ours that goes on as that. */
static int start_here(const char *applet, struct half *h)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, n = 0;
    if (io_pipes(pipes, 3) < 0 || (h->pid = fork()) < 0)
        return applet_failed(applet, "%s", err_text(errno));
    if (h->pid == 0) {
        for (int i = 0; i < 3; i++)
            dup2(pipes[i][i > 0], i);
        io_close_others(NULL, 0);
        signals_as_before();
        while (h->words[n])
            n++;
        _exit(transfer_main(n, h->words));
    }
    for (int i = 0; i < 3; i++)
        io_close(&pipes[i][i > 0]);
    h->in = pipes[0][1];
    h->out = pipes[1][0];
    h->err = pipes[2][0];
    return EXIT_OK;
}

int side_start(const char *applet, const struct side *s, const struct inject_options *o, struct half *halves,
               int n)
{
    struct starting all = {halves, n};
    int status = EXIT_OK, interrupted = 0;
    if (s->remote) {
        status = inject_then(applet, o, &s->t, start_there, &all, &interrupted);
        signals_as_before();
        return interrupted ? EXIT_BY_SIGNAL + interrupted : status;
    }
    for (int i = 0; i < n && status == EXIT_OK; i++)
        status = start_here(applet, &halves[i]);
    return status;
}
