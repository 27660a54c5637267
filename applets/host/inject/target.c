#include "host/inject/target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "applet.h"
#include "host/inject/transport.h"
#include "mem.h"

enum { CONTEXT, NAMESPACE, POD, CONTAINER }; /* of k8s: */
enum { PROJECT = 2, SERVICE = 3 };           /* of compose: */

const char *target_id(const struct target *t)
{
    const char *slash = strrchr(t->name, '/');
    return slash ? slash + 1 : t->name;
}

/* ---- command lines ---- */

static int add_runtime(const struct target *t, struct argv *out, struct err *err)
{
    if (t->options.runtime)
        return argv_split(out, t->options.runtime, err);
    argv_add(out, t->kind->program);
    return 0;
}

static void add_option(struct argv *out, const char *option, const char *value)
{
    if (value) {
        argv_add(out, option);
        argv_add(out, value);
    }
}

static int engine_enter(const struct target *t, const char *user, struct argv *out, struct err *err)
{
    if (add_runtime(t, out, err) < 0)
        return -1;
    argv_add(out, "exec");
    argv_add(out, "-i");
    add_option(out, "-u", user);
    argv_add(out, t->name);
    return 0;
}

static int engine_list(const struct target *t, struct argv *out, struct err *err)
{
    if (add_runtime(t, out, err) < 0)
        return -1;
    argv_add(out, "ps");
    argv_add(out, "--format");
    argv_add(out, "{{.Names}}");
    return 0;
}

/* Of containerd's own client. Two runs in a container have names of their own, and one that was killed keeps
 * its. */
static int ctr_start(const struct target *t, struct argv *out, struct err *err)
{
    const char *id = target_id(t);
    if (add_runtime(t, out, err) < 0)
        return -1;
    if (id > t->name) {
        argv_add(out, "-n");
        argv_take(out, mem_dup(t->name, (size_t)(id - t->name) - 1));
    }
    argv_add(out, "task");
    return 0;
}

static int ctr_enter(const struct target *t, const char *user, struct argv *out, struct err *err)
{
    if (ctr_start(t, out, err) < 0)
        return -1;
    argv_add(out, "exec");
    argv_add(out, ARGV_FRESH);
    add_option(out, "--user", user);
    argv_add(out, target_id(t));
    return 0;
}

static int ctr_list(const struct target *t, struct argv *out, struct err *err)
{
    if (ctr_start(t, out, err) < 0)
        return -1;
    argv_add(out, "ls");
    argv_add(out, "-q");
    return 0;
}

static int kube_start(const struct target *t, struct argv *out, struct err *err)
{
    if (add_runtime(t, out, err) < 0)
        return -1;
    add_option(out, "--context", t->parts[CONTEXT]);
    add_option(out, "-n", t->parts[NAMESPACE]);
    return 0;
}

static int kube_enter(const struct target *t, const char *user, struct argv *out, struct err *err)
{
    (void)user;
    if (kube_start(t, out, err) < 0)
        return -1;
    argv_add(out, "exec");
    argv_add(out, "-i");
    argv_add(out, t->parts[POD]);
    add_option(out, "-c", t->parts[CONTAINER]);
    argv_add(out, "--");
    return 0;
}

static int kube_list(const struct target *t, struct argv *out, struct err *err)
{
    const char *pod = t->parts[POD];
    if (kube_start(t, out, err) < 0)
        return -1;
    argv_add(out, "get");
    argv_add(out, "pods");
    argv_add(out, "--field-selector=status.phase=Running");
    if (strncmp(pod, "-l", 2) == 0) {
        argv_add(out, "-l");
        argv_add(out, pod + 2 + strspn(pod + 2, " ="));
    }
    argv_add(out, "-o");
    argv_add(out, "jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}");
    return 0;
}

static int ssh_enter(const struct target *t, const char *user, struct argv *out, struct err *err)
{
    (void)user;
    if (add_runtime(t, out, err) < 0)
        return -1;
    argv_add(out, "-T");
    argv_add(out, "-o");
    argv_add(out, "BatchMode=yes"); /* a question would be asked of nobody */
    argv_add(out, "--");
    argv_add(out, t->name);
    return 0;
}

/* Both versions of compose label what they start, so that the engine itself can be asked. */
static int compose_list(const struct target *t, struct argv *out, struct err *err)
{
    if (engine_list(t, out, err) < 0)
        return -1;
    argv_add(out, "--filter");
    argv_take(out, mem_printf("label=com.docker.compose.project=%s", t->parts[PROJECT]));
    argv_add(out, "--filter");
    argv_take(out, mem_printf("label=com.docker.compose.service=%s", t->parts[SERVICE]));
    return 0;
}

static int local_enter(const struct target *t, const char *user, struct argv *out, struct err *err)
{
    (void)t, (void)user, (void)out, (void)err;
    return 0;
}

static int prefix_enter(const struct target *t, const char *user, struct argv *out, struct err *err)
{
    return argv_split(out, user ? t->options.root_exec : t->name, err);
}

const struct target_kind target_kinds[] = {
    {"docker", "NAME", "docker", "0", COPIES_ARCHIVE, false, false, 0, engine_enter, engine_list},
    {"podman", "NAME", "podman", "0", COPIES_ARCHIVE, false, false, 0, engine_enter, engine_list},
    {"nerdctl", "NAME", "nerdctl", "0", COPIES_FILES, false, false, 0, engine_enter, engine_list},
    {"ctr", "[NAMESPACE/]ID", "ctr", "0", COPIES_NOTHING, false, false, 0, ctr_enter, ctr_list},
    {"k8s", "[CONTEXT/][NAMESPACE/]POD[/CONTAINER]", "kubectl", NULL, COPIES_NOTHING, false, false, 4,
     kube_enter, kube_list},
    {"ssh", "[USER@]HOST", "ssh", NULL, COPIES_NOTHING, true, false, 0, ssh_enter, NULL},
    {"compose", "PROJECT/SERVICE", "docker", NULL, COPIES_NOTHING, false, false, 2, NULL, compose_list},
    {"dir", "ROOT", NULL, NULL, COPIES_NOTHING, false, true, 0, NULL, NULL},
    {"local", "", NULL, NULL, COPIES_NOTHING, false, false, 0, local_enter, NULL},
    {"exec", "COMMAND PREFIX", NULL, NULL, COPIES_NOTHING, false, false, 0, prefix_enter, NULL},
    {0},
};

int target_command(const struct target *t, const char *user, const struct argv *command, struct argv *out,
                   struct err *err)
{
    if (t->kind->enter(t, user, out, err) < 0)
        return -1;
    if (t->kind->joined) {
        struct buf line BUF_AUTO = BUF_INIT;
        for (size_t i = 0; i < command->n; i++) {
            buf_adds(&line, i > 0 ? " " : "");
            argv_quote(&line, command->words[i]);
        }
        argv_add(out, buf_str(&line));
        return 0;
    }
    for (size_t i = 0; i < command->n; i++)
        argv_add(out, command->words[i]);
    return 0;
}

void target_be_one_of_many(const struct target *t)
{
    if (t->kind->program && !t->kind->joined)
        setenv("GOMAXPROCS", "1", 0);
}

int target_copy_command(const struct target *t, const char *from, const char *to, struct argv *out,
                        struct err *err)
{
    if (add_runtime(t, out, err) < 0)
        return -1;
    argv_add(out, "cp");
    argv_add(out, from);
    argv_take(out, mem_printf("%s:%s", t->name, to));
    return 0;
}

/* ---- reading a target ---- */

static const struct target_kind *find_kind(const char *text, size_t n)
{
    for (const struct target_kind *k = target_kinds; k->scheme; k++)
        if (strlen(k->scheme) == n && strncmp(k->scheme, text, n) == 0)
            return k;
    return NULL;
}

/* One that runs, or may be: not a folder, nor what only stands for others. */
static bool can_run(const struct target_kind *k)
{
    return !k->folder && (k->enter || !k->list);
}

/* As Docker has it for names. */
static bool may_be_container(const char *text)
{
    return isalnum((unsigned char)*text) &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

static int unknown_kind(const char *text, bool running, struct err *err)
{
    const char *schemes[16] = {0};
    size_t n = 0;
    struct buf known BUF_AUTO = BUF_INIT;
    for (const struct target_kind *k = target_kinds; k->scheme && n + 1 < sizeof schemes / sizeof *schemes;
         k++) {
        if (running && !can_run(k))
            continue;
        buf_addf(&known, "%s%s:%s", known.len > 0 ? ", " : "", k->scheme, k->form);
        schemes[n++] = k->scheme;
    }
    const struct target_kind *kind = find_kind(text, strlen(text));
    if (kind)
        return err_set(err, ERR_PARAMS, "'%s': %s:%s is wanted", text, kind->scheme, kind->form);
    const char *colon = strchr(text, ':');
    char *scheme MEM_AUTO = mem_printf("%.*s", (int)strcspn(text, ":"), text);
    for (char *c = scheme; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *meant = colon ? usage_closest(scheme, schemes) : NULL;
    if (meant)
        return err_set(err, ERR_PARAMS, "'%s' is no target; did you mean '%s%s'? There are %s", text, meant,
                       colon, buf_str(&known));
    return colon || !may_be_container(text)
               ? err_set(err, ERR_PARAMS, "'%s' is no target; there are %s", text, buf_str(&known))
               : err_set(err, ERR_PARAMS,
                         "'%s' does not say what it is; did you mean 'docker:%s'? There are %s", text, text,
                         buf_str(&known));
}

/* Where the parts of a name of so many go: two are NAMESPACE/POD, three NAMESPACE/POD/CONTAINER. */
static int first_part(int count)
{
    return count >= 4 ? CONTEXT : count >= 2 ? NAMESPACE : POD;
}

static int split_parts(struct target *t, struct err *err)
{
    int count = 1;
    for (const char *at = t->name; (at = strchr(at, '/')) != NULL; at++)
        count++;
    /* A context's name may hold slashes of its own: what is too much in front is the context's. */
    int at = t->kind->parts == 2 ? PROJECT : first_part(count);
    const char *from = t->name;
    if ((t->kind->parts == 2 && count != 2))
        return err_set(err, ERR_PARAMS, "'%s': %s:%s is wanted", t->text, t->kind->scheme, t->kind->form);
    for (int extra = count > TARGET_PARTS ? count - TARGET_PARTS : 0; at < TARGET_PARTS; at++, extra = 0) {
        size_t n = strcspn(from, "/");
        for (; extra > 0; extra--)
            n += 1 + strcspn(from + n + 1, "/");
        if (n > 0)
            t->parts[at] = mem_dup(from, n);
        if (!from[n])
            break;
        from += n + 1;
    }
    return t->parts[POD] ? 0 : err_set(err, ERR_PARAMS, "'%s' names no pod", t->text);
}

static int check_name(const struct target *t, struct err *err)
{
    if (!*t->name && t->kind->form[0])
        return err_set(err, ERR_PARAMS, "'%s': %s:%s is wanted", t->text, t->kind->scheme, t->kind->form);
    if (*t->name && !t->kind->form[0])
        return err_set(err, ERR_PARAMS, "'%s': nothing goes behind '%s:'", t->text, t->kind->scheme);
    if (t->name[0] == '-' && t->kind->parts == 0 && t->kind->program)
        return err_set(err, ERR_PARAMS, "'%s': a name can't begin with '-'", t->text);
    const char *id = target_id(t);
    if (t->kind->enter == ctr_enter &&
        (!*id || *id == '-' || *t->name == '/' || (id > t->name && strchr(t->name, '/') + 1 < id)))
        return err_set(err, ERR_PARAMS, "'%s': %s:%s is wanted", t->text, t->kind->scheme, t->kind->form);
    if (t->kind->program && !transport_is_plain(t->name))
        return err_set(err, ERR_PARAMS, "'%s': a name has no control characters", t->text);
    for (int i = 0; i < TARGET_PARTS; i++)
        if (t->parts[i] && t->parts[i][0] == '-' && !(i == POD && strncmp(t->parts[i], "-l", 2) == 0))
            return err_set(err, ERR_PARAMS, "'%s': a name can't begin with '-'", t->text);
    return 0;
}

static int no_running(const struct target *t, struct err *err)
{
    return err_set(err, ERR_PARAMS,
                   "'%s' is not one running target; patterns and compose: are for inject, eject, run and "
                   "status, dir: for inject and eject",
                   t->text);
}

static int read_target(struct target *t, const char *text, const struct runtime_options *options,
                       bool running, struct err *err)
{
    *t = (struct target){.options = *options};
    const char *colon = strchr(text, ':');
    t->kind = colon ? find_kind(text, (size_t)(colon - text)) : NULL;
    if (!t->kind)
        return unknown_kind(text, running, err);
    t->text = mem_strdup(text);
    t->name = t->text + (colon - text) + 1;
    if (running && !can_run(t->kind))
        return no_running(t, err);
    if (*t->name && t->kind->parts > 0 && split_parts(t, err) < 0)
        return -1;
    if (check_name(t, err) < 0)
        return -1;
    struct argv words ARGV_AUTO = {0};
    if (strcmp(t->kind->scheme, "exec") == 0 &&
        (argv_split(&words, t->name, err) < 0 ||
         (options->root_exec && argv_split(&words, options->root_exec, err) < 0)))
        return -1;
    return 0;
}

int target_parse(struct target *t, const char *text, const struct runtime_options *options, struct err *err)
{
    return read_target(t, text, options, false, err);
}

int target_parse_running(struct target *t, const char *text, const struct runtime_options *options,
                         struct err *err)
{
    if (read_target(t, text, options, true, err) < 0)
        return -1;
    return target_is_pattern(t) ? no_running(t, err) : 0;
}

void target_release(struct target *t)
{
    for (int i = 0; i < TARGET_PARTS; i++)
        free(t->parts[i]);
    free(t->text);
    free(t->unlisted);
    *t = (struct target){0};
}

bool target_is_pattern(const struct target *t)
{
    /* A target that was parsed has a kind. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (!t->kind->list)
        return false;
    const char *name = t->kind->parts == 4 ? t->parts[POD] : t->name;
    return !t->kind->enter || strpbrk(name, "*?[") || name[0] == '-';
}
