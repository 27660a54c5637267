/* upgrade: what other builds run goes on in this one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "io.h"
#include "json_table.h"
#include "mem.h"
#include "moving.h"
#include "other_builds.h"
#include "program.h"
#include "self.h"
#include "server_internal.h"

static const char NAME[] = "upgrade";

#define ASK_MS 15000   /* for a keeper to have the other program look at its state */
#define MOVED_MS 15000 /* until it answers in the other build */
#define LOOK_US 5000
#define BUILD_MS 600000 /* for all of a build, one after the other */

/* ---- in the build that is left ---- */

struct leaving {
    const struct place *place;
    struct buf request, report;
};

/* NULL in *reason: it has begun. */
static void tell_keeper(void *arg, const char *owner)
{
    struct leaving *l = arg;
    struct buf answer BUF_AUTO = BUF_INIT;
    struct span result;
    struct err err;
    int fd FD_AUTO = ipc_is_keeper(owner) ? ipc_connect(l->place->fd, owner, 1) : -1;
    if (fd < 0)
        return;
    bool begun = client_call(fd, span_of(&l->request), &answer, ASK_MS, &err) == 0 &&
                 client_result(span_of(&answer), &result, &err) == 0;
    if (answer.len > 0)
        client_delivered(fd);
    buf_adds(&l->report, l->report.len > 1 ? ",{" : "{");
    json_member_string(&l->report, "name", owner);
    json_member_string(&l->report, "reason", begun ? NULL : err.msg);
    buf_addc(&l->report, '}');
}

static int leave_for(const char *path, const char *sha256)
{
    struct buf params BUF_AUTO = BUF_INIT, at BUF_AUTO = BUF_INIT;
    struct leaving l = {.request = BUF_INIT, .report = BUF_INIT};
    buf_addc(&params, '{');
    json_member_string(&params, "path", path);
    json_member_string(&params, "sha256", sha256);
    buf_addc(&params, '}');
    rpc_put_request(&l.request, (struct span){"1", 1}, KEEPER_MOVE, span_of(&params));
    buf_addc(&l.report, '[');
    for (unsigned n = 0; place_candidate(n, &at); n++) {
        struct place place PLACE_AUTO = PLACE_INIT;
        l.place = &place;
        if (place_enter(&place, at.data, false, NULL) == 0)
            ipc_each(place.fd, tell_keeper, &l);
    }
    printf("%s]\n", buf_str(&l.report));
    buf_release(&l.report);
    buf_release(&l.request);
    return stdout_flushed();
}

/* ---- in the one that takes over ---- */

static bool lives_here(const char *owner)
{
    struct place place PLACE_AUTO = PLACE_INIT;
    int fd FD_AUTO = ipc_find(&place, owner);
    return fd >= 0;
}

static bool lives_elsewhere(const char *owner)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    other_builds_find(&others);
    return other_builds_with(&others, owner) != NULL;
}

enum outcome { MOVED, STAYED, ENDED };

/* It has its new socket before it loses the older one: what is neither there nor here has ended. */
static enum outcome outcome_of(const char *owner)
{
    for (long long until = now_ms() + MOVED_MS; now_ms() < until; usleep(LOOK_US)) {
        bool elsewhere = lives_elsewhere(owner);
        if (lives_here(owner))
            return MOVED;
        if (!elsewhere)
            return ENDED;
    }
    return STAYED;
}

static void put_outcome(struct buf *out, const char *build, const char *name, const char *reason)
{
    buf_adds(out, out->len > 1 ? ",{" : "{");
    json_member_string(out, "name", name);
    json_member_string(out, "build", build);
    json_member_bool(out, "moved", !reason);
    json_member_string(out, "reason", reason);
    buf_addc(out, '}');
}

static void take_report(struct buf *out, const char *build, struct span report)
{
    struct span entry, name, reason;
    for (size_t at = 0; json_element(report, &at, &entry);) {
        struct buf owner BUF_AUTO = BUF_INIT, why BUF_AUTO = BUF_INIT;
        if (json_kind(entry) != JSON_OBJECT || !json_member(entry, "name", &name, NULL) ||
            json_kind(name) != JSON_STRING || !json_member(entry, "reason", &reason, NULL))
            continue;
        json_string_text(name, &owner);
        if (json_kind(reason) == JSON_STRING)
            json_string_text(reason, &why);
        enum outcome outcome = why.len > 0 ? STAYED : outcome_of(buf_str(&owner));
        if (outcome == ENDED)
            continue;
        if (outcome == STAYED && why.len == 0)
            buf_adds(&why, "it was not free to go within a few seconds; its build's log says why");
        put_outcome(out, build, buf_str(&owner), why.len > 0 ? why.data : NULL);
    }
}

/* A build whose program knows no upgrade keeps what it has. */
static void take_from(struct buf *out, const struct other_build *b, const char *path, const char *sha256)
{
    char name[] = "toolbox", command[] = "upgrade", to[] = "--to";
    char *const argv[] = {name, command, to, (char *)path, (char *)sha256, NULL};
    struct err err;
    struct buf report BUF_AUTO = BUF_INIT;
    int program FD_AUTO = other_build_open(b, "what there is", &err);
    if (program >= 0 && (other_build_run(program, argv, (struct span){0}, BUILD_MS, &report) != 0 ||
                         json_check(span_of(&report), &err) < 0 || json_kind(span_of(&report)) != JSON_ARRAY))
        err_set(&err, ERR_TOOL, "that build's program did not answer");
    else if (program >= 0) {
        take_report(out, b->build, span_of(&report));
        return;
    }
    for (size_t i = 0; i < b->n_keepers; i++)
        put_outcome(out, b->build, b->keepers[i].name, err.msg);
}

/* One look at the lists lets a server that has nothing to do any more see it. */
static void let_retire(const struct other_build *b)
{
    static const char request[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec_remote_list\",\"" OTHER_BUILDS_NONE "\":true}";
    char name[] = "toolbox", command[] = "exec", *const argv[] = {name, command, NULL};
    struct buf nothing BUF_AUTO = BUF_INIT;
    int program FD_AUTO = b->has_server ? other_build_open(b, "it", NULL) : -1;
    if (program >= 0)
        other_build_run(program, argv, (struct span){request, sizeof request - 1}, ASK_MS, &nothing);
}

int upgrade_all(struct buf *out, struct err *err)
{
    struct other_builds others OTHER_BUILDS_AUTO = {0};
    char sha256[SHA256_HEX_SIZE];
    char *path MEM_AUTO = self_path();
    int self FD_AUTO = self_open();
    if (!path || self < 0 || sha256_file(self, sha256) < 0)
        return err_sys(err, ERR_TOOL, errno, "cannot read the program itself");
    int server FD_AUTO = server_connect(err);
    if (server < 0)
        return -1;
    buf_addc(out, '[');
    other_builds_find(&others);
    for (size_t i = 0; i < others.n; i++)
        take_from(out, &others.list[i], path, sha256);
    for (size_t i = 0; i < others.n; i++)
        let_retire(&others.list[i]);
    buf_addc(out, ']');
    return 0;
}

static int upgrade_main(int argc, char **argv)
{
    static const char *const columns[] = {"name", "build", "moved", "reason", NULL};
    static const char *const options[] = {"--json", NULL};
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    struct buf list BUF_AUTO = BUF_INIT, table BUF_AUTO = BUF_INIT;
    struct err err;
    if (argc == 4 && strcmp(argv[1], "--to") == 0)
        return leave_for(argv[2], argv[3]);
    if (argc > 1 && !json)
        return usage_unknown(NAME, argv[1][0] == '-' ? "option" : "argument", argv[1], options);
    if (upgrade_all(&list, &err) < 0)
        return applet_failed(NAME, "%s", err.msg);
    if (json)
        printf("%s\n", list.data);
    else if (list.len > 2) {
        json_table(&table, span_of(&list), columns);
        fputs(table.data, stdout);
    } else
        puts("no other build runs anything");
    int status = stdout_flushed();
    return strstr(buf_str(&list), "\"moved\":false") ? EXIT_FAILED : status;
}

const struct applet upgrade_applet = {
    .name = "upgrade",
    .summary = "move what other builds run here to this one",
    .run = upgrade_main,
};
