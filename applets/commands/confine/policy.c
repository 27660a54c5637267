#include "policy.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"

/* ---- limits ---- */

static void take_limits(struct confine *c, const struct limits *l)
{
    const long long all[CONFINE_PARTS] = {
        [CONFINE_MEMORY] = l->memory,
        [CONFINE_PROCESSES] = l->processes,
        [CONFINE_CPUS] = l->cpus < 0 ? -1 : (long long)(l->cpus * 1000),
        [CONFINE_CPU_SECONDS] = l->cpu_seconds,
        [CONFINE_FILE_SIZE] = l->file_size,
        [CONFINE_OPEN_FILES] = l->open_files,
        [CONFINE_WALL_SECONDS] = l->wall_seconds,
    };
    for (int i = CONFINE_FIRST_LIMIT; i < CONFINE_PARTS; i++) {
        c->wanted[i] = all[i] >= 0;
        c->limits[i] = all[i];
    }
}

/* ---- paths ---- */

void policy_add_path(struct confine *c, enum confine_what what, const char *path)
{
    size_t n = 0;
    while (c->paths[what] && c->paths[what][n])
        n++;
    c->paths[what] = mem_realloc(c->paths[what], (n + 2) * sizeof(char *));
    c->paths[what][n] = mem_strdup(path);
    c->paths[what][n + 1] = NULL;
    c->wanted[what] = true;
}

/* One that isn't there would be passed over in silence. */
static int add_paths(struct confine *c, enum confine_what what, const struct texts *given, const char *cwd,
                     struct err *err)
{
    for (size_t i = 0; i < given->n; i++) {
        char real[PATH_MAX];
        char *path MEM_AUTO =
            *given->list[i] == '/' ? mem_strdup(given->list[i]) : mem_printf("%s/%s", cwd, given->list[i]);
        if (*given->list[i] && realpath(path, real))
            policy_add_path(c, what, real);
        else if (what != CONFINE_HIDE || errno != ENOENT)
            return err_sys(err, ERR_TOOL, *given->list[i] ? errno : ENOENT, "cannot confine: %s '%s'",
                           confine_name(what), given->list[i]);
    }
    c->wanted[what] = c->wanted[what] || given->list;
    return 0;
}

/* ---- presets ---- */

static void forbid_network(struct confine *c)
{
    c->wanted[CONFINE_NETWORK] = true;
    c->network = 0;
}

static int take_preset(struct confine *c, const char *name, const char *cwd, struct err *err)
{
    snprintf(c->preset, sizeof c->preset, "%s", name);
    static const char *const open[] = {"/tmp", "/var/tmp", "/dev/shm"};
    char real[PATH_MAX];
    if (strcmp(name, "readonly") == 0) {
        c->wanted[CONFINE_WRITE] = true;
    } else if (strcmp(name, "offline") == 0) {
        forbid_network(c);
    } else if (strcmp(name, "workspace") == 0) {
        if (!realpath(cwd, real) || strcmp(real, "/") == 0)
            return err_set(err, ERR_TOOL,
                           "cannot confine: preset 'workspace' is for a directory below /, to begin in; "
                           "'%s' is none",
                           cwd);
        forbid_network(c);
        for (size_t i = 0; i < sizeof open / sizeof *open; i++)
            if (access(open[i], F_OK) == 0)
                policy_add_path(c, CONFINE_WRITE, open[i]);
        policy_add_path(c, CONFINE_WRITE, real);
    } else {
        return err_set(err, ERR_PARAMS,
                       "Invalid parameters: confine.preset: must be readonly, workspace or offline, not '%s'",
                       name);
    }
    return 0;
}

/* ---- network ---- */

static bool take_port(struct confine *c, const char *rule)
{
    bool bind = strncmp(rule, "bind:", 5) == 0;
    const char *digits = bind ? rule + 5 : strncmp(rule, "connect:", 8) == 0 ? rule + 8 : "";
    char *end;
    unsigned long port = strtoul(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || port > 65535 || c->n_ports == CONFINE_PORTS_MAX)
        return false;
    c->ports[c->n_ports++] = (struct confine_port){(unsigned short)port, bind};
    c->network |= CONFINE_NET_PORTS;
    return true;
}

static int take_network(struct confine *c, const struct texts *rules, struct err *err)
{
    bool all = false;
    if (rules->list)
        forbid_network(c);
    for (size_t i = 0; rules->list && i < rules->n; i++) {
        const char *rule = rules->list[i];
        if (strcmp(rule, "all") == 0)
            all = true;
        else if (strcmp(rule, "unix") == 0)
            c->network |= CONFINE_NET_UNIX;
        else if (strcmp(rule, "loopback") == 0)
            c->network |= CONFINE_NET_LOOPBACK;
        else if (strcmp(rule, "none") != 0 && !take_port(c, rule))
            return err_set(err, ERR_PARAMS,
                           "Invalid parameters: confine.network: must be none, unix, loopback, all, "
                           "connect:PORT or bind:PORT (a name of a host can't be told by the kernel), not "
                           "'%s'",
                           rule);
    }
    if ((c->network & CONFINE_NET_LOOPBACK) && (c->network & CONFINE_NET_PORTS))
        return err_set(err, ERR_PARAMS,
                       "Invalid parameters: confine.network: loopback is a network of its own, to which no "
                       "port of this one can be added");
    if (all)
        c->wanted[CONFINE_NETWORK] = false;
    return 0;
}

/* ---- all of it ---- */

/* What goes with every wall, and is told. */
void policy_take_walls(struct confine *c)
{
    static const enum confine_what along[] = {CONFINE_SYSTEM_CALLS, CONFINE_PRIVILEGES, CONFINE_SIGNALS};
    bool any = c->wanted[CONFINE_NETWORK] || c->wanted[CONFINE_TMP];
    for (int i = 0; i < CONFINE_LISTS; i++)
        any = any || c->wanted[i];
    for (size_t i = 0; any && i < sizeof along / sizeof *along; i++)
        c->wanted[along[i]] = true;
    c->wanted[CONFINE_METADATA] = c->wanted[CONFINE_WRITE];
}

int policy_make(struct confine *c, const struct policy *p, const struct limits *l, const char *cwd,
                struct err *err)
{
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here))
        here[0] = '/', here[1] = '\0';
    cwd = cwd ? cwd : here;
    *c = (struct confine){.best_effort = p->best_effort};
    take_limits(c, l);
    if ((p->preset.s && take_preset(c, p->preset.s, cwd, err) < 0) ||
        add_paths(c, CONFINE_READ, &p->read, cwd, err) < 0 ||
        add_paths(c, CONFINE_WRITE, &p->write, cwd, err) < 0 ||
        add_paths(c, CONFINE_EXECUTE, &p->execute, cwd, err) < 0 ||
        add_paths(c, CONFINE_HIDE, &p->hide, cwd, err) < 0 || take_network(c, &p->network, err) < 0)
        return -1;
    c->wanted[CONFINE_TMP] = p->private_tmp;
    policy_take_walls(c);
    return 0;
}

void policy_release(struct confine *c)
{
    confine_release(c);
    for (int i = 0; i < CONFINE_LISTS; i++) {
        for (char **path = c->paths[i]; path && *path; path++)
            free(*path);
        free(c->paths[i]);
        c->paths[i] = NULL;
    }
}
