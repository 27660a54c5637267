#include "server_policy.h"

#ifndef TOOLBOX_GUEST

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glob.h"
#include "io.h"
#include "mem.h"
#include "place.h"

enum { POLICY_MAX = 1 << 20, AUDIT_MAX = 10000000, AUDIT_KEEP = 3 };

/* ---- the file ---- */

#define AT(member) offsetof(struct server_policy, member)

static const struct param walls_list[] = {
    {.key = "confine",
     .type = PARAM_OBJECT,
     .offset = offsetof(struct walls_params, confine),
     .table = &policy_params},
    {.key = "limits",
     .type = PARAM_OBJECT,
     .offset = offsetof(struct walls_params, limits),
     .table = &limits_params},
};
static const struct params_table walls_table = PARAMS_TABLE(walls_list);

static const struct param audit_list[] = {
    {.key = "file", .type = PARAM_NAME, .offset = AT(audit_file), .required = true},
    {.key = "max_bytes", .type = PARAM_INT, .offset = AT(audit_max), .min = 4096, .max = PARAM_MAX},
    {.key = "keep", .type = PARAM_INT, .offset = AT(audit_keep), .max = 100},
    {.key = "contents", .type = PARAM_BOOL, .offset = AT(audit_contents)},
};
static const struct params_table audit_table = PARAMS_TABLE(audit_list);

static const struct param file_list[] = {
    {.key = "methods", .type = PARAM_NAMES, .offset = AT(rules.methods)},
    {.key = "refuse", .type = PARAM_NAMES, .offset = AT(rules.refuse)},
    {.key = "users", .type = PARAM_NAMES, .offset = AT(rules.users)},
    {.key = "directories", .type = PARAM_NAMES, .offset = AT(directories)},
    {.key = "confine", .type = PARAM_OBJECT, .offset = AT(walls.confine), .table = &policy_params},
    {.key = "limits", .type = PARAM_OBJECT, .offset = AT(walls.limits), .table = &limits_params},
    {.key = "defaults", .type = PARAM_OBJECT, .offset = AT(otherwise), .table = &walls_table},
    {.key = "audit", .type = PARAM_OBJECT, .table = &audit_table},
};
static const struct params_table file_table = PARAMS_TABLE(file_list);

/* A word that names nothing would be missed later. */
static int check_methods(const struct texts *patterns, const char *const *names, struct err *err)
{
    for (size_t i = 0; i < patterns->n; i++) {
        const char *wrong = glob_check(patterns->list[i]);
        const char *const *name = names;
        while (*name && !glob_match(patterns->list[i], *name))
            name++;
        if (wrong || !*name)
            return err_set(err, ERR_TOOL, "methods: '%s' %s", patterns->list[i],
                           wrong ? wrong : "is the name of none; see toolbox methods");
    }
    return 0;
}

static int check_absolute(const char *what, const struct texts *paths, struct err *err)
{
    for (size_t i = 0; i < paths->n; i++)
        if (*paths->list[i] != '/')
            return err_set(err, ERR_TOOL, "%s: '%s' is no absolute path", what, paths->list[i]);
    return 0;
}

static int check_walls(const struct policy *w, struct err *err)
{
    return check_absolute("confine.read", &w->read, err) < 0 ||
                   check_absolute("confine.write", &w->write, err) < 0 ||
                   check_absolute("confine.execute", &w->execute, err) < 0 ||
                   check_absolute("confine.hide", &w->hide, err) < 0
               ? -1
               : 0;
}

static int make_walls(const struct server_policy *p, struct confine *c, struct err *err)
{
    const char *dir = p->directories.n > 0 ? p->directories.list[0] : "/";
    return policy_make(c, &p->walls.confine, &p->walls.limits, dir, err);
}

static int check(const struct server_policy *p, const char *const *names, struct err *err)
{
    struct confine c = {0};
    struct user u;
    if (check_methods(&p->rules.methods, names, err) < 0 || check_methods(&p->rules.refuse, names, err) < 0 ||
        check_absolute("directories", &p->directories, err) < 0 || check_walls(&p->walls.confine, err) < 0)
        return -1;
    for (size_t i = 0; i < p->rules.users.n; i++) {
        if (user_lookup(&u, p->rules.users.list[i], err) < 0)
            return err_wrap(err, "users");
        user_release(&u);
    }
    for (size_t i = 0; i < p->directories.n; i++)
        if (access(p->directories.list[i], F_OK) < 0)
            return err_sys(err, ERR_TOOL, errno, "directories: '%s'", p->directories.list[i]);
    if (p->audit_file.s && *p->audit_file.s != '/')
        return err_set(err, ERR_TOOL, "audit.file: '%s' is no absolute path", p->audit_file.s);
    int result = make_walls(p, &c, err);
    policy_release(&c);
    return result;
}

static int read_policy(struct server_policy *p, int dirfd, const char *path, const char *const *names,
                       struct err *err)
{
    static const char form[] = "Invalid parameters: ", not_known[] = "is no parameter of this method";
    struct buf *text = mem_alloc(sizeof *text); /* as long as the policy */
    buf_init(text, POLICY_MAX);
    if (io_read_file(dirfd, path, text) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot be read");
    if (json_check(span_of(text), err) < 0)
        return -1;
    if (json_kind(span_of(text)) != JSON_OBJECT)
        return err_set(err, ERR_TOOL, "is no object of JSON");
    int result = params_unpack(&file_table, span_of(text), p, err) < 0 ? -1 : check(p, names, err);
    if (result < 0 && strncmp(err->msg, form, sizeof form - 1) == 0)
        memmove(err->msg, err->msg + sizeof form - 1, strlen(err->msg + sizeof form - 1) + 1);
    size_t n = strlen(err->msg), unknown = sizeof not_known - 1;
    if (result < 0 && n > unknown && strcmp(err->msg + n - unknown, not_known) == 0)
        snprintf(err->msg + n - unknown, sizeof err->msg - (n - unknown), "is no member of a policy");
    return result;
}

int server_policy_load(int dirfd, const char *path, const char *const *names, struct err *err)
{
    struct server_policy *p = mem_alloc(sizeof *p);
    *p = (struct server_policy){.walls = WALLS_DEFAULTS,
                                .otherwise = WALLS_DEFAULTS,
                                .audit_max = AUDIT_MAX,
                                .audit_keep = AUDIT_KEEP};
    if (read_policy(p, dirfd, path, names, err) < 0) {
        err->code = ERR_TOOL;
        return err_wrap(err, "policy %s", path);
    }
    server_policy = p;
    p->rules.walls = walls_confine(&p->walls.confine);
    policy_rules = &p->rules;
    return 0;
}

int server_policy_put(int place, const char *path, struct err *err)
{
    struct buf text BUF_AUTO = BUF_INIT;
    int fd FD_AUTO = io_read_file(AT_FDCWD, path, &text) < 0
                         ? -1
                         : openat(place, SERVER_POLICY ".new",
                                  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, text.data, text.len) < 0 ||
        renameat(place, SERVER_POLICY ".new", place, SERVER_POLICY) < 0)
        return err_sys(err, ERR_TOOL, errno, "the policy %s cannot be put into the server's directory", path);
    return 0;
}

/* ---- the editor and the file methods ---- */

static void add_all(struct confine *c, enum confine_what what, const struct texts *paths)
{
    char real[PATH_MAX];
    for (size_t i = 0; i < paths->n; i++)
        if (realpath(paths->list[i], real))
            policy_add_path(c, what, real);
}

/* What can be undone is kept in a place, of which nothing else may be written: the policy stands there, and
 * which programs are ours. */
static void add_history(struct confine *c)
{
    struct buf path BUF_AUTO = BUF_INIT;
    struct place place PLACE_AUTO = PLACE_INIT;
    struct err ignored;
    bool found = false;
    for (unsigned n = 0; place_candidate(n, &path); n++) {
        struct texts one = {&path.data, 1};
        add_all(c, CONFINE_READ, &one);
        buf_adds(&path, "/undo");
        one.list = &path.data;
        add_all(c, CONFINE_WRITE, &one);
        found = found || access(path.data, F_OK) == 0;
    }
    if (found || place_open(&place, &ignored) < 0)
        return;
    /* FD_AUTO closes it. NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores) */
    int made FD_AUTO = place_subdir(&place, "undo", true, &ignored);
    char *history MEM_AUTO = mem_printf("%s/undo", place.path);
    const struct texts one = {&history, 1};
    add_all(c, CONFINE_WRITE, &one);
}

int server_policy_enter(struct err *err)
{
    static char *const looked_up[] = {(char *)"/etc/passwd", (char *)"/etc/group", NULL};
    const struct texts found = {(char **)looked_up, 2};
    const struct server_policy *p = server_policy;
    struct confine c = {0};
    if (!p || !p->directories.list)
        return 0;
    c.wanted[CONFINE_READ] = c.wanted[CONFINE_WRITE] = c.wanted[CONFINE_SYSTEM_CALLS] = true;
    add_all(&c, CONFINE_READ, &found);
    add_all(&c, CONFINE_WRITE, &p->directories);
    add_history(&c);
    add_all(&c, CONFINE_HIDE, &p->walls.confine.hide);
    c.best_effort = p->walls.confine.best_effort;
    return confine_prepare(&c, err) < 0 || confine_begin(&c, err) < 0 ? -1 : confine_enter(&c, err);
}

/* ---- what is started ---- */

static void fill(long long *limit, long long otherwise)
{
    *limit = *limit < 0 ? otherwise : *limit;
}

void server_policy_fill(struct walls_params *p)
{
    const struct walls_params *o = &server_policy->otherwise;
    struct limits *l = &p->limits;
    if (!walls_confine(&p->confine))
        p->confine = o->confine;
    fill(&l->memory, o->limits.memory);
    fill(&l->processes, o->limits.processes);
    fill(&l->cpu_seconds, o->limits.cpu_seconds);
    fill(&l->wall_seconds, o->limits.wall_seconds);
    fill(&l->file_size, o->limits.file_size);
    fill(&l->open_files, o->limits.open_files);
    l->cpus = l->cpus < 0 ? o->limits.cpus : l->cpus;
}

static bool lies_in(const char *path, char *const *list)
{
    for (; list && *list; list++) {
        size_t n = strlen(*list);
        n -= n == 1;
        if (strncmp(path, *list, n) == 0 && (path[n] == '/' || path[n] == '\0'))
            return true;
    }
    return false;
}

/* Of both lists what the other one has as well. */
static void cut(struct confine *c, const struct confine *most, enum confine_what what)
{
    char **own = c->paths[what];
    if (!most->wanted[what])
        return;
    bool free_before = !c->wanted[what];
    c->paths[what] = NULL;
    c->wanted[what] = true;
    for (char **p = own; p && *p; p++)
        if (lies_in(*p, most->paths[what]))
            policy_add_path(c, what, *p);
    for (char **p = most->paths[what]; p && *p; p++)
        if (free_before || (lies_in(*p, own) && !lies_in(*p, c->paths[what])))
            policy_add_path(c, what, *p);
    for (char **p = own; p && *p; p++)
        free(*p);
    free(own);
}

/* What may be written or run may be read as well, where that is confined. */
static void cut_unreadable(struct confine *c, const struct confine *most, enum confine_what what)
{
    char **to = c->paths[what];
    if (!most->wanted[CONFINE_READ] || !to)
        return;
    for (char **p = to; *p; p++)
        if (lies_in(*p, most->paths[CONFINE_READ]) || lies_in(*p, most->paths[CONFINE_WRITE]) ||
            lies_in(*p, most->paths[CONFINE_EXECUTE]))
            *to++ = *p;
        else
            free(*p);
    *to = NULL;
}

static void cut_network(struct confine *c, const struct confine *most)
{
    size_t n = 0;
    if (!most->wanted[CONFINE_NETWORK])
        return;
    if (!c->wanted[CONFINE_NETWORK]) {
        c->network = most->network;
        memcpy(c->ports, most->ports, sizeof c->ports);
        c->n_ports = most->n_ports;
    }
    c->wanted[CONFINE_NETWORK] = true;
    c->network &= most->network;
    for (size_t i = 0; i < c->n_ports; i++)
        for (size_t k = 0; k < most->n_ports; k++)
            if (c->ports[i].number == most->ports[k].number && c->ports[i].bind == most->ports[k].bind) {
                c->ports[n++] = c->ports[i];
                break;
            }
    c->n_ports = n;
}

int server_policy_narrow(struct confine *c, struct err *err)
{
    struct confine most = {0};
    if (make_walls(server_policy, &most, err) < 0) {
        policy_release(&most);
        return err_wrap(err, "the policy of this server");
    }
    bool walls = walls_confine(&server_policy->walls.confine);
    cut(c, &most, CONFINE_READ);
    cut(c, &most, CONFINE_WRITE);
    cut(c, &most, CONFINE_EXECUTE);
    cut_unreadable(c, &most, CONFINE_WRITE);
    cut_unreadable(c, &most, CONFINE_EXECUTE);
    for (char **p = most.paths[CONFINE_HIDE]; p && *p; p++)
        policy_add_path(c, CONFINE_HIDE, *p);
    c->wanted[CONFINE_TMP] = c->wanted[CONFINE_TMP] || most.wanted[CONFINE_TMP];
    cut_network(c, &most);
    for (int i = CONFINE_FIRST_LIMIT; i < CONFINE_PARTS; i++)
        if (most.wanted[i] && (!c->wanted[i] || c->limits[i] > most.limits[i])) {
            c->wanted[i] = true;
            c->limits[i] = most.limits[i];
        }
    if (walls) {
        c->best_effort = most.best_effort;
        snprintf(c->preset, sizeof c->preset, "of server");
    }
    policy_release(&most);
    policy_take_walls(c);
    return 0;
}

/* ---- the log of calls ---- */

/* FILE.1 is the last before it, FILE.2 the one before that. */
static void rotate(const char *file, long long keep)
{
    for (long long n = keep; n > 0; n--) {
        char *from MEM_AUTO = n > 1 ? mem_printf("%s.%lld", file, n - 1) : mem_strdup(file);
        char *to MEM_AUTO = mem_printf("%s.%lld", file, n);
        rename(from, to);
    }
    if (keep == 0)
        unlink(file);
}

/* What a call is for: the first of these that it names. */
static void put_target(struct buf *out, struct span params)
{
    static const char *const keys[] = {"session_name", "pid", "path", "session_id", "cwd"};
    struct span value;
    json_key(out, "target");
    for (size_t i = 0; params.s && i < sizeof keys / sizeof *keys; i++)
        if (json_member(params, keys[i], &value, NULL) && value.n < PATH_MAX) {
            buf_add(out, value.s, value.n);
            return;
        }
    buf_adds(out, "null");
}

static void put_outcome(struct buf *out, const struct rpc_done *done, const char *method)
{
    struct span error, message;
    bool failed = json_member(done->response, "error", &error, NULL);
    json_member_string(out, "outcome", !policy_rules_allow(method) ? "refused" : failed ? "failed" : "ok");
    if (failed && json_kind(error) == JSON_OBJECT && json_member(error, "message", &message, NULL) &&
        server_policy->audit_contents) {
        json_key(out, "error");
        buf_add(out, message.s, message.n);
    }
}

void server_policy_audit(const struct rpc_done *done)
{
    const struct server_policy *p = server_policy;
    struct rpc_request r;
    struct buf line BUF_AUTO = BUF_INIT;
    if (rpc_request_parse(&r, done->request, NULL) < 0 || strncmp(r.method, "toolbox_", 8) == 0)
        return;
    long long now = wall_ms();
    char *user MEM_AUTO = user_label(done->peer.uid);
    buf_addf(&line, "{\"time\":%lld.%03lld", now / 1000, now % 1000);
    json_member_int(&line, "pid", done->peer.pid);
    json_member_string(&line, "user", user);
    json_member_string(&line, "method", r.method);
    put_target(&line, r.params);
    put_outcome(&line, done, r.method);
    json_member_int(&line, "ms", done->ms);
    json_member_int(&line, "bytes_in", (long long)done->request.n);
    json_member_int(&line, "bytes_out", (long long)done->response.n);
    if (p->audit_contents && r.params.s) {
        json_key(&line, "params");
        buf_add(&line, r.params.s, r.params.n);
    }
    buf_adds(&line, "}\n");
    for (size_t i = 0; i + 2 < line.len; i++) /* white space between the parts of the params */
        if (line.data[i] == '\n')
            line.data[i] = ' ';
    int fd FD_AUTO =
        open(p->audit_file.s, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    if (size > 0 && size + (off_t)line.len > p->audit_max) {
        rotate(p->audit_file.s, p->audit_keep);
        io_close(&fd);
        fd = open(p->audit_file.s, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    }
    if (fd >= 0)
        io_write_all(fd, line.data, line.len);
}

#endif
