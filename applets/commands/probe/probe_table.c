#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "probe_controller.h"
#include "probe_report.h"
#include "utf8.h"
#include "version.h"

/* Paths and names are anybody's bytes: none of them may speak to the terminal. */
static void put_plain(struct buf *out, const char *s)
{
    struct buf clean BUF_AUTO = BUF_INIT;
    utf8_clean(&clean, s, strlen(s), true);
    for (size_t i = 0; i < clean.len; i++) {
        unsigned char c = (unsigned char)clean.data[i],
                      after = i + 1 < clean.len ? (unsigned char)clean.data[i + 1] : 0;
        bool control = c < 0x20 || c == 0x7f || (c == 0xC2 && after < 0xA0);
        buf_addc(out, control ? '?' : (char)c);
        i += control && c == 0xC2;
    }
}

static void row(struct buf *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void row(struct buf *out, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct buf text BUF_AUTO = BUF_INIT;
    buf_addv(&text, fmt, ap);
    va_end(ap);
    buf_addf(out, "%-13s ", name);
    put_plain(out, text.len > 0 ? text.data : "-");
    buf_addc(out, '\n');
}

static const char *or_dash(const char *s)
{
    return s && *s ? s : "-";
}

static void join(struct buf *list, const char *word)
{
    buf_addf(list, "%s%s", list->len > 0 ? " " : "", word);
}

static void add_limit(struct buf *list, const char *name, long long value)
{
    if (value != PROBE_UNKNOWN)
        buf_addf(list, "%s%s %lld", list->len > 0 ? ", " : "", name, value);
}

static void put_platform(const struct probe *p, struct buf *out)
{
    const struct probe_platform *s = &p->platform;
    row(out, "toolbox", "%s (build %s)", toolbox_version, toolbox_build_id);
    row(out, "file", "%s, %lld bytes", or_dash(p->self.path), p->self.size);
    row(out, "sha256", "%s", p->self.sha256);
    row(out, "system", "linux/%s, kernel %s on %s", os_arch(), s->kernel.release, s->kernel.machine);
    row(out, "distribution", "%s", or_dash(s->name ? s->name : s->id));
    row(out, "libc", "%s %s", s->libc, s->libc_version);
    row(out, "container", "%s", or_dash(s->container));
}

/* Of root's many those that are missing, of few those that are there. */
static void put_capabilities(const struct probe_identity *id, struct buf *out)
{
    uint64_t missing = PROBE_CAPABILITIES_ALL & ~id->capabilities;
    bool most = __builtin_popcountll(id->capabilities) > __builtin_popcountll(missing);
    uint64_t shown = most ? missing : id->capabilities;
    struct buf names BUF_AUTO = BUF_INIT;
    for (unsigned bit = 0; bit < 64; bit++) {
        char name[PROBE_CAPABILITY_SIZE];
        if (shown >> bit & 1)
            join(&names, probe_capability_name(bit, name));
    }
    const char *before = !id->capabilities_known ? "unknown" : !most ? "" : missing ? "all but " : "all";
    row(out, "capabilities", "%s%s", before, id->capabilities_known ? buf_str(&names) : "");
}

static void put_identity(const struct probe_identity *id, struct buf *out)
{
    struct buf groups BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < id->n_groups; i++)
        buf_addf(&groups, "%s%u", i > 0 ? " " : "", (unsigned)id->groups[i]);
    row(out, "user", "%u (%s), groups %s, home %s", (unsigned)id->uid, id->user ? id->user : "no entry",
        groups.data, id->home);
    put_capabilities(id, out);
    row(out, "seccomp", "%s%s", or_dash(probe_seccomp_name(id->seccomp)),
        id->no_new_privs == 1 ? ", no new privileges" : "");
}

static void put_places(const struct probe *p, struct buf *out)
{
    struct buf usable BUF_AUTO = BUF_INIT;
    struct buf refused BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < p->n_places; i++) {
        if (p->places[i].refusal)
            buf_addf(&refused, "%s%s (%s)", refused.len > 0 ? ", " : "", p->places[i].path,
                     p->places[i].refusal);
        else
            join(&usable, p->places[i].path);
    }
    row(out, "places", "%s", or_dash(usable.data));
    row(out, "refused", "%s", or_dash(refused.data));
}

static void put_limits(const struct probe_limits *l, struct buf *out)
{
    struct buf list BUF_AUTO = BUF_INIT;
    add_limit(&list, "files", l->nofile);
    add_limit(&list, "of at most", l->nofile_max);
    add_limit(&list, "processes", l->nproc);
    add_limit(&list, "in the group", l->pids);
    add_limit(&list, "memory", l->memory);
    if (l->centicpus != PROBE_UNKNOWN)
        buf_addf(&list, "%sprocessors %lld.%02lld", list.len > 0 ? ", " : "", l->centicpus / 100,
                 l->centicpus % 100);
    row(out, "limits", "%s", or_dash(list.data));
}

void probe_table(const struct probe *p, struct buf *out)
{
    put_platform(p, out);
    put_identity(&p->identity, out);
    struct buf shells BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < p->platform.n_shells; i++)
        join(&shells, p->platform.shells[i]);
    row(out, "shells", "%s", or_dash(shells.data));
    put_places(p, out);
    put_limits(&p->limits, out);
    row(out, "terminal", "%s", p->pty ? "yes" : p->pty_refusal);
    if (p->server.running)
        row(out, "server", "running, pid %ld, in %s", (long)p->server.pid, p->server.directory);
    else
        row(out, "server", "not running");
}
