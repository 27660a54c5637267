/* A session's part of a record that another build's program goes on from (commands/server/moving.h). */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "io.h"
#include "mem.h"
#include "session_internal.h"
#include "spawn.h"

/* Whoever adds a member here decides whether it goes along, in `parts` below or by hand, and gives the record
 * the next number (bash_session_methods.c) when it does. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct session) == SESSION_SIZE, "see session_move.c");

/* ---- the plain members, which are as they are ---- */

enum part_type { INT, LONG, SIZE, BOOL, BYTES, STRING, TERMINAL };

struct part {
    const char *key;
    enum part_type type;
    size_t offset;
};

#define SESSION_PART(key, type, member)                                                                      \
    {                                                                                                        \
        key, type, offsetof(struct session, member)                                                          \
    }
static const struct part parts[] = {
    SESSION_PART("pty.master", TERMINAL, terminal.pty.master),
    SESSION_PART("pty.slave", TERMINAL, terminal.pty.slave),
    SESSION_PART("channel.master", TERMINAL, shell.channel.pty.master),
    SESSION_PART("channel.slave", TERMINAL, shell.channel.pty.slave),
    SESSION_PART("channel.incoming", BYTES, shell.channel.incoming),
    SESSION_PART("channel.pending", BYTES, shell.channel.outgoing.pending),
    SESSION_PART("channel.written", SIZE, shell.channel.outgoing.written),
    SESSION_PART("channel.partial", SIZE, shell.channel.outgoing.partial),
    SESSION_PART("channel.signalled", LONG, shell.channel.outgoing.signalled),
    SESSION_PART("channel.code", BYTES, shell.channel.code),
    SESSION_PART("doubted", BOOL, shell.told.doubted),
    SESSION_PART("shell", INT, shell.pid),
    SESSION_PART("exit_status", INT, shell.exit_status),
    SESSION_PART("told_end", BOOL, calls.told_end),
    SESSION_PART("filter.state", INT, terminal.filter.state),
    SESSION_PART("filter.n_held", SIZE, terminal.filter.n_held),
    SESSION_PART("output.text", BYTES, output.text),
    SESSION_PART("output.omitted", LONG, output.omitted),
    SESSION_PART("output.untold", SIZE, output.untold_in_flight),
    SESSION_PART("output.after_mark", SIZE, output.after_mark),
    SESSION_PART("output.marked", BOOL, output.marked),
    SESSION_PART("input.pending", BYTES, terminal.input.pending),
    SESSION_PART("input.written", SIZE, terminal.input.written),
    SESSION_PART("input.partial", SIZE, terminal.input.partial),
    SESSION_PART("input.signalled", LONG, terminal.input.signalled),
    SESSION_PART("run.open", BOOL, last_run.open),
    SESSION_PART("run.told", BOOL, last_run.told),
    SESSION_PART("run.prompt_read", BOOL, last_run.prompt_read),
    SESSION_PART("run.ended", BOOL, last_run.ended),
    SESSION_PART("run.state", INT, last_run.result.state),
    SESSION_PART("run.exit_code", INT, last_run.result.exit_code),
    SESSION_PART("run.has_exit_code", BOOL, last_run.result.has_exit_code),
    SESSION_PART("run.duration_ms", LONG, last_run.result.duration_ms),
    SESSION_PART("run.omitted", LONG, last_run.result.omitted_bytes),
    SESSION_PART("run.text", BYTES, last_run.text),
    SESSION_PART("run.cwd", STRING, last_run.cwd),
    SESSION_PART("run.error", STRING, last_run.error),
    SESSION_PART("run.lines", INT, last_run.lines.state),
    SESSION_PART("run.more", BOOL, last_run.lines.more),
    SESSION_PART("run.rest", BYTES, last_run.lines.rest),
    SESSION_PART("error", STRING, shell.known.error),
    SESSION_PART("ps2", STRING, shell.known.ps2),
    SESSION_PART("tail", BYTES, terminal.tail),
    SESSION_PART("tail_after_mark", SIZE, terminal.tail_after_mark),
    SESSION_PART("bare", BOOL, shell.bare),
    SESSION_PART("notice", STRING, shell.notice),
    SESSION_PART("open_line", BOOL, terminal.open_line),
    SESSION_PART("shown_prompt", BYTES, shell.known.prompt),
    SESSION_PART("cwd", STRING, shell.known.cwd),
    SESSION_PART("status", INT, shell.known.status),
    SESSION_PART("taught", BOOL, shell.taught),
    SESSION_PART("adopted", BOOL, shell.known.adopted),
    SESSION_PART("has_editor", BOOL, shell.known.has_editor),
    SESSION_PART("interrupted", BOOL, shell.known.interrupted),
    SESSION_PART("run.cut", BOOL, last_run.cut),
    SESSION_PART("prompts", SIZE, shell.known.prompts),
    SESSION_PART("last_prompt", LONG, shell.known.last_prompt),
    SESSION_PART("state", INT, shell.state),
    SESSION_PART("last_activity", LONG, pace.last_activity),
    SESSION_PART("recent", BYTES, terminal.viewers.recent),
    {0},
};

#define CAPTURE_PART(key, type, member)                                                                      \
    {                                                                                                        \
        key, type, offsetof(struct capture, member)                                                          \
    }
static const struct part capture_parts[] = {
    CAPTURE_PART("capture.max", SIZE, max),         CAPTURE_PART("capture.head", BYTES, head),
    CAPTURE_PART("capture.tail", BYTES, tail),      CAPTURE_PART("capture.after", BYTES, after),
    CAPTURE_PART("capture.omitted", LONG, omitted), CAPTURE_PART("capture.before", LONG, omitted_before),
    CAPTURE_PART("capture.marked", BOOL, marked),   {0},
};

static void put_string(struct handover_out *out, const char *key, const char *text)
{
    struct buf marked BUF_AUTO = BUF_INIT; /* nothing is not the same as no bytes */
    buf_addf(&marked, "%s%s", text ? "=" : "-", text ? text : "");
    handover_put(out, key, marked.data, marked.len);
}

static int get_string(const struct handover *h, const char *key, char **text, struct err *err)
{
    const char *data;
    size_t n;
    if (handover_get(h, key, &data, &n, err) < 0)
        return -1;
    if (n == 0 || (*data != '=' && n != 1) || memchr(data, '\0', n))
        return err_set(err, ERR_TOOL, "%s of the record is no text", key);
    *text = *data == '=' ? mem_dup(data + 1, n - 1) : NULL;
    return 0;
}

static void put_parts(struct handover_out *out, const struct part *p, const void *base)
{
    for (; p->key; p++) {
        const char *at = (const char *)base + p->offset;
        const struct buf *bytes = (const void *)at;
        switch (p->type) {
        case INT:
            handover_put_int(out, p->key, *(const int *)(const void *)at);
            break;
        case LONG:
            handover_put_int(out, p->key, *(const long long *)(const void *)at);
            break;
        case SIZE:
            handover_put_int(out, p->key, (long long)*(const size_t *)(const void *)at);
            break;
        case BOOL:
            handover_put_int(out, p->key, *(const bool *)at);
            break;
        case BYTES:
            handover_put(out, p->key, buf_str(bytes), bytes->len);
            break;
        case STRING:
            put_string(out, p->key, *(char *const *)(const void *)at);
            break;
        case TERMINAL:
            handover_put_fd(out, p->key, *(const int *)(const void *)at);
        }
    }
}

static int get_part(const struct handover *h, const struct part *p, void *base, struct err *err)
{
    char *at = (char *)base + p->offset;
    long long number;
    const char *data;
    size_t n;
    switch (p->type) {
    case INT:
        if (handover_int(h, p->key, INT_MIN, INT_MAX, &number, err) < 0)
            return -1;
        *(int *)(void *)at = (int)number;
        return 0;
    case LONG:
        return handover_int(h, p->key, 0, INT64_MAX, (long long *)(void *)at, err);
    case SIZE:
        if (handover_int(h, p->key, 0, LONG_MAX, &number, err) < 0)
            return -1;
        *(size_t *)(void *)at = (size_t)number;
        return 0;
    case BOOL:
        return handover_bool(h, p->key, (bool *)at, err);
    case BYTES:
        if (handover_get(h, p->key, &data, &n, err) < 0)
            return -1;
        *(struct buf *)(void *)at = (struct buf)BUF_INIT;
        return buf_add((struct buf *)(void *)at, data, n);
    case STRING:
        return get_string(h, p->key, (char **)(void *)at, err);
    case TERMINAL:
        return handover_fd(h, p->key, S_IFCHR, true, (int *)(void *)at, err);
    }
    return -1;
}

static int get_parts(const struct handover *h, const struct part *p, void *base, struct err *err)
{
    for (; p->key; p++)
        if (get_part(h, p, base, err) < 0)
            return -1;
    return 0;
}

_Static_assert(sizeof(size_t) == sizeof(long) && sizeof(pid_t) == sizeof(int), "SIZE and INT are both");

/* ---- what a restart begins with ---- */

static void put_list(struct handover_out *out, const char *key, char *const *list)
{
    struct buf text BUF_AUTO = BUF_INIT;
    for (char *const *at = list; at && *at; at++)
        buf_add(&text, *at, strlen(*at) + 1);
    handover_put(out, key, buf_str(&text), text.len);
}

static void put_options(struct handover_out *out, const struct session_options *o)
{
    put_list(out, "env", o->env);
    put_list(out, "start_program", o->program);
    handover_put_int(out, "has_user", o->user != NULL);
    if (o->user) {
        handover_put_int(out, "user.uid", (long long)o->user->uid);
        handover_put(out, "user.groups", o->user->groups, o->user->n_groups * sizeof *o->user->groups);
        handover_put_int(out, "user.exact", o->user->exact);
        put_string(out, "user.home", o->user->home);
    }
    put_string(out, "user_name", o->user_name);
    put_string(out, "start_cwd", o->cwd);
    put_string(out, "start_shell", o->shell);
    put_string(out, "start_term", o->term);
    handover_put_int(out, "keeps_history", o->keeps_history);
    handover_put_fd(out, "start", o->start_dir);
    handover_put_int(out, "rows", o->rows);
    handover_put_int(out, "cols", o->cols);
}

static int get_user(const struct handover *h, struct session_options *o, struct err *err)
{
    long long uid;
    const char *groups;
    char *home MEM_AUTO = NULL;
    size_t n;
    bool exact;
    if (handover_int(h, "user.uid", 0, UINT32_MAX, &uid, err) < 0 ||
        handover_get(h, "user.groups", &groups, &n, err) < 0 ||
        handover_bool(h, "user.exact", &exact, err) < 0 || get_string(h, "user.home", &home, err) < 0)
        return -1;
    gid_t list[USER_GROUPS_MAX];
    if (n == 0 || n % sizeof *list != 0 || n > sizeof list || !home)
        return err_set(err, ERR_TOOL, "the user of the record is none");
    memcpy(list, groups, n);
    struct user *u = mem_zalloc(sizeof *u);
    user_of_numbers(u, (uid_t)uid, list, n / sizeof *list, home);
    u->exact = exact;
    o->user = u;
    return 0;
}

static int get_list(const struct handover *h, const char *key, char ***list, struct err *err)
{
    const char *data;
    size_t n, count = 0;
    if (handover_get(h, key, &data, &n, err) < 0)
        return -1;
    if (n > 0 && data[n - 1] != '\0')
        return err_set(err, ERR_TOOL, "%s of the record is not whole", key);
    for (size_t i = 0; i < n; i++)
        count += data[i] == '\0';
    *list = mem_zalloc((count + 1) * sizeof **list);
    for (size_t i = 0; i < count; i++, data += strlen(data) + 1)
        (*list)[i] = mem_strdup(data);
    return 0;
}

/* No words are none. */
static int get_program(const struct handover *h, struct session_options *o, struct err *err)
{
    if (get_list(h, "start_program", &o->program, err) < 0)
        return -1;
    if (!o->program[0]) {
        spawn_env_free(o->program);
        o->program = NULL;
    }
    return 0;
}

static int get_options(const struct handover *h, struct session_options *o, struct err *err)
{
    long long rows, cols;
    bool has_user;
    if (get_list(h, "env", &o->env, err) < 0 || get_program(h, o, err) < 0 ||
        handover_bool(h, "has_user", &has_user, err) < 0 || (has_user && get_user(h, o, err) < 0) ||
        get_string(h, "user_name", (char **)(void *)&o->user_name, err) < 0 ||
        get_string(h, "start_cwd", (char **)(void *)&o->cwd, err) < 0 ||
        get_string(h, "start_shell", (char **)(void *)&o->shell, err) < 0 ||
        get_string(h, "start_term", (char **)(void *)&o->term, err) < 0 ||
        handover_bool(h, "keeps_history", &o->keeps_history, err) < 0 ||
        handover_fd(h, "start", S_IFDIR, true, &o->start_dir, err) < 0 ||
        handover_int(h, "rows", 0, USHRT_MAX, &rows, err) < 0 ||
        handover_int(h, "cols", 0, USHRT_MAX, &cols, err) < 0)
        return -1;
    o->rows = (unsigned short)rows;
    o->cols = (unsigned short)cols;
    return o->user_name ? 0 : err_set(err, ERR_TOOL, "user_name of the record is missing");
}

/* ---- the whole ---- */

int session_save(const struct session *s, struct handover_out *out, struct err *err)
{
    if (s->calls.first)
        return err_set(err, ERR_TOOL, "a call waits for it");
    if (s->options.walls)
        return err_set(err, ERR_TOOL, "it is confined");
    if (tape_is_used(s->terminal.tape))
        return err_set(err, ERR_TOOL, "it is recorded or watched");
    if (s->terminal.viewers.first)
        return err_set(err, ERR_TOOL, "somebody is attached to it");
    if (s->ending || s->shell.interrupt)
        return err_set(err, ERR_TOOL, "it is being ended, restarted or interrupted");
    if (*s->inner.word && !s->inner.ended)
        return err_set(err, ERR_TOOL, "a shell behind its shell has been given a command");
    if (s->shell.told.message.kind)
        return err_set(err, ERR_TOOL, "its shell is about to prompt");
    handover_put(out, "shell_path", s->shell.path, strlen(s->shell.path));
    handover_put(out, "channel.path", s->shell.channel.path, strlen(s->shell.channel.path));
    handover_put(out, "channel.secret", s->shell.channel.secret, strlen(s->shell.channel.secret));
    handover_put(out, "channel.offered", s->shell.channel.offered, strlen(s->shell.channel.offered));
    handover_put_int(out, "startup_is_path", s->shell.startup == s->shell.channel.path);
    handover_put(out, "filter.held", s->terminal.filter.held, s->terminal.filter.n_held);
    put_parts(out, parts, s);
    put_options(out, &s->options);
    handover_put_int(out, "has_capture", s->capture != NULL);
    if (s->capture)
        put_parts(out, capture_parts, s->capture);
    return 0;
}

static int get_text(const struct handover *h, const char *key, char *text, size_t size, struct err *err)
{
    const char *data;
    size_t n;
    if (handover_get(h, key, &data, &n, err) < 0)
        return -1;
    if (n >= size || memchr(data, '\0', n))
        return err_set(err, ERR_TOOL, "%s of the record is too long", key);
    memcpy(text, data, n);
    text[n] = '\0';
    return 0;
}

static void release_parts(const struct part *p, void *base)
{
    for (; p->key; p++) {
        char *at = (char *)base + p->offset;
        if (p->type == BYTES)
            buf_release((struct buf *)(void *)at);
        else if (p->type == STRING)
            free(*(char **)(void *)at);
    }
}

/* What was read, for nobody who goes on from it. The descriptors are the process's. */
static void release(struct session *s)
{
    struct session_options *o = &s->options;
    release_parts(parts, s);
    if (s->capture)
        capture_free(s->capture);
    if (o->env)
        spawn_env_free(o->env);
    if (o->program)
        spawn_env_free(o->program);
    if (o->user)
        user_release((struct user *)o->user);
    free((struct user *)o->user);
    free((char *)o->user_name);
    free((char *)o->cwd);
    free((char *)o->shell);
}

/* What the rest of the code takes for granted. */
static int check(const struct session *s, struct err *err)
{
    const struct last_run *r = &s->last_run;
    bool right = s->terminal.filter.n_held <= sizeof s->terminal.filter.held &&
                 term_filter_is_valid(&s->terminal.filter) && s->output.text.len <= SESSION_OUTPUT_MAX &&
                 s->terminal.input.written <= s->terminal.input.pending.len &&
                 s->shell.channel.outgoing.written <= s->shell.channel.outgoing.pending.len &&
                 s->terminal.input.partial <= TERMINAL_HOLDS &&
                 s->shell.channel.outgoing.partial <= TERMINAL_HOLDS && s->shell.pid >= 0 &&
                 s->shell.state < SHELL_STATES && (s->shell.pid == 0) == (s->shell.state == SHELL_ENDED) &&
                 (s->shell.pid == 0 || (s->terminal.pty.master >= 0 && s->terminal.pty.slave >= 0)) &&
                 r->lines.state <= LINE_ENTERED && r->result.state >= RUN_COMPLETED &&
                 r->result.state <= RUN_EXITED &&
                 (!s->capture || (s->capture->head.len <= s->capture->max && s->capture->max > 0));
    return right ? 0 : err_set(err, ERR_TOOL, "the record's parts don't fit together");
}

static int read_session(struct session *s, const struct handover *h, struct err *err)
{
    char held[sizeof s->terminal.filter.held + 1];
    bool has_capture, startup_is_path;
    if (get_text(h, "shell_path", s->shell.path, sizeof s->shell.path, err) < 0 ||
        get_text(h, "channel.path", s->shell.channel.path, sizeof s->shell.channel.path, err) < 0 ||
        get_text(h, "channel.secret", s->shell.channel.secret, sizeof s->shell.channel.secret, err) < 0 ||
        get_text(h, "channel.offered", s->shell.channel.offered, sizeof s->shell.channel.offered, err) < 0 ||
        handover_bool(h, "startup_is_path", &startup_is_path, err) < 0 ||
        get_text(h, "filter.held", held, sizeof held, err) < 0 || get_parts(h, parts, s, err) < 0 ||
        get_options(h, &s->options, err) < 0 || handover_bool(h, "has_capture", &has_capture, err) < 0)
        return -1;
    memcpy(s->terminal.filter.held, held, sizeof s->terminal.filter.held);
    if (has_capture) {
        s->capture = capture_new(1);
        if (get_parts(h, capture_parts, s->capture, err) < 0)
            return -1;
    }
    s->shell.startup = startup_is_path ? s->shell.channel.path : CHANNEL_CODE;
    s->shell.channel.user = s->options.user;
    shell_choose_kind(&s->shell);
    s->last_run.result.cwd = s->last_run.cwd;
    s->last_run.result.error = s->last_run.error;
    return check(s, err);
}

int session_take_over(struct session *s, struct loop *loop, const struct handover *h, struct err *err)
{
    siginfo_t info;
    *s = (struct session){.terminal = {.pty = PTY_INIT}, .shell = {.channel = {.pty = PTY_INIT}}};
    session_own(s, loop);
    int result = read_session(s, h, err);
    if (!loop)
        release(s);
    if (result < 0 ||
        !loop) /* with a loop, what was read is the process's, which ends or becomes another program */
        return result;
    if (s->shell.pid > 0 && waitid(P_PID, (id_t)s->shell.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return err_set(err, ERR_TOOL, "process %ld is no child of this one", (long)s->shell.pid);
    pace_start(&s->pace, loop, session_evaluate, s);
    if (s->shell.pid > 0)
        shell_watch(&s->shell);
    return 0;
}
