#include <stdlib.h>

#include "json.h"
#include "probe_controller.h"
#include "probe_report.h"
#include "version.h"

static void begin(struct buf *out, const char *key, char bracket)
{
    json_key(out, key);
    buf_addc(out, bracket);
}

/* Elements of arrays: the comma where one is needed. */
static void next(struct buf *out)
{
    if (out->data[out->len - 1] != '[')
        buf_addc(out, ',');
}

/* A number, null when it is not known or no limit. */
static void member_count(struct buf *out, const char *key, long long value)
{
    json_key(out, key);
    if (value == PROBE_UNKNOWN)
        buf_adds(out, "null");
    else
        json_put_int(out, value);
}

static const char *text_or_null(const char *s)
{
    return s && *s ? s : NULL;
}

static void put_self(const struct probe_self *self, struct buf *out)
{
    json_member_string(out, "version", toolbox_version);
    json_member_string(out, "build", toolbox_build_id);
    json_member_string(out, "sha256", text_or_null(self->sha256));
    json_member_string(out, "path", self->path);
    member_count(out, "size", self->size);
}

static void put_platform(const struct probe_platform *s, struct buf *out)
{
    json_member_string(out, "os", "linux");
    json_member_string(out, "arch", os_arch());
    json_member_string(out, "machine", s->kernel.machine);
    json_member_string(out, "kernel", s->kernel.release);
    begin(out, "distribution", '{');
    json_member_string(out, "id", s->id);
    json_member_string(out, "version", s->version);
    json_member_string(out, "name", s->name);
    buf_addc(out, '}');
    begin(out, "libc", '{');
    json_member_string(out, "kind", s->libc);
    json_member_string(out, "version", text_or_null(s->libc_version));
    buf_addc(out, '}');
    json_member_string(out, "container", s->container);
}

static void put_capabilities(const struct probe_identity *id, struct buf *out)
{
    if (!id->capabilities_known) {
        json_member_string(out, "capabilities", NULL);
        return;
    }
    begin(out, "capabilities", '[');
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(id->capabilities >> bit & 1))
            continue;
        char name[PROBE_CAPABILITY_SIZE];
        probe_capability_name(bit, name);
        next(out);
        json_puts(out, name);
    }
    buf_addc(out, ']');
}

static void put_identity(const struct probe_identity *id, struct buf *out)
{
    json_member_int(out, "uid", id->uid);
    json_member_int(out, "gid", id->gid);
    begin(out, "groups", '[');
    for (size_t i = 0; i < id->n_groups; i++) {
        next(out);
        json_put_int(out, id->groups[i]);
    }
    buf_addc(out, ']');
    json_member_string(out, "user", id->user);
    json_member_string(out, "home", id->home);
    put_capabilities(id, out);
    json_member_string(out, "seccomp", probe_seccomp_name(id->seccomp));
    json_key(out, "no_new_privs");
    if (id->no_new_privs == PROBE_UNKNOWN)
        buf_adds(out, "null");
    else
        json_put_bool(out, id->no_new_privs != 0);
}

static void put_places(const struct probe *p, struct buf *out)
{
    begin(out, "places", '[');
    for (size_t i = 0; i < p->n_places; i++) {
        if (p->places[i].refusal)
            continue;
        next(out);
        json_puts(out, p->places[i].path);
    }
    buf_addc(out, ']');
    begin(out, "places_refused", '[');
    for (size_t i = 0; i < p->n_places; i++) {
        if (!p->places[i].refusal)
            continue;
        next(out);
        buf_addc(out, '{');
        json_member_string(out, "path", p->places[i].path);
        json_member_string(out, "reason", p->places[i].refusal);
        buf_addc(out, '}');
    }
    buf_addc(out, ']');
}

static void put_limits(const struct probe_limits *l, struct buf *out)
{
    begin(out, "limits", '{');
    member_count(out, "nofile", l->nofile);
    member_count(out, "nofile_max", l->nofile_max);
    member_count(out, "nproc", l->nproc);
    member_count(out, "pids", l->pids);
    member_count(out, "memory", l->memory);
    json_key(out, "cpus");
    if (l->centicpus == PROBE_UNKNOWN)
        buf_adds(out, "null");
    else if (l->centicpus % 100 == 0)
        json_put_int(out, l->centicpus / 100);
    else
        buf_addf(out, "%lld.%02lld", l->centicpus / 100, l->centicpus % 100);
    buf_addc(out, '}');
}

static void put_server(const struct probe_server *server, struct buf *out)
{
    begin(out, "server", '{');
    json_member_bool(out, "running", server->running);
    member_count(out, "pid", server->running ? server->pid : PROBE_UNKNOWN);
    json_member_string(out, "directory", server->directory);
    buf_addc(out, '}');
}

void probe_json(const struct probe *p, struct buf *out)
{
    buf_addc(out, '{');
    put_self(&p->self, out);
    put_platform(&p->platform, out);
    put_identity(&p->identity, out);
    begin(out, "shells", '[');
    for (size_t i = 0; i < p->platform.n_shells; i++) {
        next(out);
        json_puts(out, p->platform.shells[i]);
    }
    buf_addc(out, ']');
    put_places(p, out);
    put_limits(&p->limits, out);
    json_member_bool(out, "pty", p->pty);
    json_member_string(out, "pty_error", p->pty_refusal);
    put_server(&p->server, out);
    buf_adds(out, "}\n");
}
