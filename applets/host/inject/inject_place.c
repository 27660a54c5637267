/* Placing through a shell: whole in one call where the transport is sound, in pieces that are each
 * acknowledged where it loses or cuts something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/inject/inject_steps.h"
#include "mem.h"

#define PIECE (64u << 10)
#define PIECE_TRIES 4
#define STALLS_MAX 2 /* calls that may take too long, of all that send pieces */
#define DEATHS_MAX 2 /* those that may fail without an answer */

/* What the script said about one attempt. */
struct attempt {
    enum transport_end how;
    struct span verdict; /* s NULL: none */
    bool cut;            /* fewer bytes came than were sent */
    bool full;           /* a directory was full: it is taken from the list */
    char missing[8];     /* a program that there is none of; "": nothing */
    bool run;            /* somewhere the file was started, and did not come to its own words */
};

struct placing {
    struct injection *i;
    struct argv dirs;
    struct transport_call call;
    struct attempt a;
    int stalls, deaths;
};

static struct script_options script_options(const struct placing *p)
{
    return inject_script(p->i, p->i->choice.file->sha256);
}

/* ---- what was tried ---- */

/* What the shell said when it failed in a directory: the last part of the first line that names it, or where
 * it is the only one that is tried one above it. */
static void reason_for(const struct placing *p, const char *dir, struct buf *reason)
{
    struct span text = span_of(&p->call.err), line;
    char *named MEM_AUTO = mem_strdup(dir), *slash;
    do {
        for (size_t at = 0; recon_line(text, &at, &line);) {
            char *one MEM_AUTO = mem_dup(line.s, line.n);
            const char *colon = strstr(one, named) ? strrchr(one, ':') : NULL;
            if (colon) {
                transport_show(reason, colon + 1, strlen(colon + 1), 100);
                return;
            }
        }
        slash = strrchr(named, '/');
        if (slash)
            *slash = '\0';
    } while (p->i->o->dir && *named);
    buf_adds(reason, "it can't be written to");
}

static void add_tried(struct placing *p, const char *dir, const char *reason)
{
    struct buf *tried = &p->i->r->failure.tried;
    buf_adds(tried, tried->len > 0 ? "; " : "");
    transport_show(tried, dir, strlen(dir), 200);
    buf_adds(tried, ": ");
    buf_adds(tried, reason);
}

static void drop_dir(struct argv *dirs, const char *dir)
{
    for (size_t n = 0; n < dirs->n; n++) {
        if (strcmp(dirs->words[n], dir) != 0)
            continue;
        free(dirs->words[n]);
        memmove(dirs->words + n, dirs->words + n + 1, (dirs->n - n) * sizeof *dirs->words);
        dirs->n--;
        return;
    }
}

/* The program itself has found that others could change what is there; it says how. */
static void read_unsafe(struct placing *p, const char *dir)
{
    struct buf said BUF_AUTO = BUF_INIT;
    struct buf reason BUF_AUTO = BUF_INIT;
    size_t n = strlen(dir);
    if (p->a.verdict.s)
        recon_member(p->a.verdict, "message", &said);
    const char *text = buf_str(&said);
    text += strncmp(text, dir, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? n + 2 : 0;
    buf_adds(&reason, "somebody else could change what is there: ");
    transport_show(&reason, text, strlen(text), 300);
    add_tried(p, dir, buf_str(&reason));
    p->a.verdict.s = NULL;
}

/* "r DIR STATUS [noexec]" */
static void read_not_run(struct placing *p, char *words)
{
    char *status = strrchr(words, ' ');
    struct buf reason BUF_AUTO = BUF_INIT;
    bool noexec = status && strcmp(status, " noexec") == 0;
    if (noexec) {
        *status = '\0';
        status = strrchr(words, ' ');
    }
    if (!status)
        return;
    *status++ = '\0';
    if (noexec)
        add_tried(p, words, "mounted noexec");
    else if (strcmp(status, "4") == 0)
        read_unsafe(p, words);
    else if (buf_addf(&reason, "it was not run (exit status %.10s)", status) == 0)
        add_tried(p, words, buf_str(&reason));
    p->a.run = p->a.run || (!noexec && strcmp(status, "4") != 0);
}

static void read_line(struct placing *p, struct span line)
{
    struct buf reason BUF_AUTO = BUF_INIT;
    if (line.n > 0 && line.s[0] == '{' && json_check(line, NULL) == 0)
        p->a.verdict = line;
    if (line.n < 3 || line.s[1] != ' ')
        return;
    char *words MEM_AUTO = mem_dup(line.s + 2, line.n - 2);
    switch (line.s[0]) {
    case 'o':
        add_tried(p, words,
                  "it or a directory above belongs to somebody else or can be written to by others, or it is "
                  "a link");
        break;
    case 'x':
        reason_for(p, words, &reason);
        add_tried(p, words, buf_str(&reason));
        break;
    case 'f':
        add_tried(p, words, "it is full");
        drop_dir(&p->dirs, words);
        p->a.full = true;
        break;
    case 'c':
        p->a.cut = true;
        break;
    case 'h':
        snprintf(p->a.missing, sizeof p->a.missing, "%s", words);
        break;
    case 'r':
        read_not_run(p, words);
        break;
    default:
        break;
    }
}

static void read_answer(struct placing *p)
{
    struct span line;
    for (size_t at = 0; recon_line(span_of(&p->call.out), &at, &line);)
        read_line(p, line);
}

/* The attempt has been made, behind the reconnaissance. */
static void take_attempt(struct placing *p)
{
    struct transport_call *seen = &p->i->looked.seen;
    const char *end = strstr(buf_str(&seen->out), SCRIPT_END);
    size_t skip = end ? (size_t)(end - seen->out.data) + strlen(SCRIPT_END) : 0;
    buf_add(&p->call.out, buf_str(&seen->out) + skip, seen->out.len - skip);
    buf_add(&p->call.err, buf_str(&seen->err), seen->err.len);
    p->call.status = seen->status;
    p->a = (struct attempt){.how = TRANSPORT_ENDED};
    read_answer(p);
}

static void try_once(struct placing *p, int pieces, const char *made, struct err *err)
{
    struct script_options o = script_options(p);
    struct buf script BUF_AUTO = BUF_INIT;
    struct span data = {0}; /* pieces bring their own */
    if (pieces == 0)
        data = span_of(&p->i->choice.file->bytes);
    buf_truncate(&p->i->r->failure.tried, 0);
    script_place(&script, &o, &p->dirs, p->i->choice.file->bytes.len, pieces, made);
    p->call.input[1] = data;
    p->a = (struct attempt){.how = inject_call(p->i, &script, NULL, &p->call, err)};
    read_answer(p);
}

/* ---- pieces ---- */

/* Until the other side says that it has all of the piece. */
static int send_piece(struct placing *p, int n, struct span piece, struct buf *made, struct err *err)
{
    struct script_options o = script_options(p);
    for (int tries = 0; tries < PIECE_TRIES; tries++) {
        struct buf script BUF_AUTO = BUF_INIT;
        struct span line;
        script_piece(&script, &o, p->dirs.words[0], n);
        p->call.input[1] = piece;
        enum transport_end how = inject_call(p->i, &script, NULL, &p->call, err);
        p->stalls += how == TRANSPORT_TIMEOUT;
        if (how == TRANSPORT_FAILED || how == TRANSPORT_INTERRUPT || p->stalls >= STALLS_MAX)
            return -1;
        p->deaths += how == TRANSPORT_ENDED && p->call.status != 0 && p->call.out.len == 0;
        if (p->deaths >= DEATHS_MAX)
            break;
        for (size_t at = 0; recon_line(span_of(&p->call.out), &at, &line);) {
            char *words MEM_AUTO = mem_dup(line.s, line.n);
            if (strncmp(words, "q ", 2) == 0 && made->len == 0)
                buf_adds(made, words + 2);
            if (strncmp(words, "k ", 2) == 0 && strtoul(words + 2, NULL, 10) == piece.n)
                return 0;
        }
    }
    struct buf said BUF_AUTO = BUF_INIT;
    transport_said(&p->call, &said);
    if (p->deaths >= DEATHS_MAX)
        return err_set(err, ERR_TOOL, "nothing can be run in it any more (exit status %d)%s%s",
                       p->call.status, said.len > 0 ? ": " : "", buf_str(&said));
    return err_set(err, ERR_TOOL, "a piece of %zu bytes did not arrive whole in %d tries%s%s", piece.n,
                   PIECE_TRIES, said.len > 0 ? ": " : "", buf_str(&said));
}

static int by_pieces(struct placing *p, struct err *err)
{
    struct buf made BUF_AUTO = BUF_INIT;
    struct span all = span_of(&p->i->choice.file->bytes);
    int n = 0;
    for (size_t at = 0; at < all.n; at += PIECE, n++) {
        struct span piece = {all.s + at, all.n - at < PIECE ? all.n - at : PIECE};
        if (send_piece(p, n, piece, &made, err) < 0)
            return -1;
    }
    try_once(p, n, buf_str(&made), err);
    return 0;
}

/* ---- the end ---- */

static void clean(struct placing *p)
{
    struct script_options o = script_options(p);
    struct buf script BUF_AUTO = BUF_INIT;
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    if (p->dirs.n == 0)
        return;
    p->i->transport->cleaning = true;
    c.timeout_ms = 5000;
    script_clean(&script, &o, &p->dirs);
    inject_call(p->i, &script, NULL, &c, NULL);
    p->i->transport->cleaning = false;
}

/* What was put there and then could not serve goes again, with whatever it has made. */
static void take_back(struct placing *p)
{
    struct script_options o = script_options(p);
    struct buf script BUF_AUTO = BUF_INIT, state = BUF_INIT, path = BUF_INIT;
    struct transport_call c TRANSPORT_CALL_AUTO = TRANSPORT_CALL_INIT;
    recon_member(p->a.verdict, "state", &state);
    recon_member(p->a.verdict, "path", &path);
    char *slash = path.len > 0 ? strrchr(path.data, '/') : NULL;
    if (slash && strcmp(buf_str(&state), "identical") != 0) {
        *slash = '\0';
        o.dir = path.data;
        p->i->transport->cleaning = true;
        script_eject(&script, &o);
        inject_call(p->i, &script, NULL, &c, NULL);
        p->i->transport->cleaning = false;
    }
    buf_release(&path);
    buf_release(&state);
}

static bool is_foreign(const struct placing *p)
{
    static const char *const signs[] = {"xec format error", "cannot execute binary", "yntax error",
                                        "Unterminated"};
    for (size_t n = 0; n < sizeof signs / sizeof *signs; n++)
        if (strstr(buf_str(&p->call.err), signs[n]))
            return true;
    return false;
}

static const struct {
    const char *program, *message;
} needs[] = {
    {"cat", "nothing can be written there: there is no cat, no dd, no tee and no busybox"},
    {"mkdir", "there is no mkdir there, and none of the directories: name one that is there with --dir"},
    {"chmod", "no mode can be set there: there is no chmod, no cp and no busybox"},
};

static int not_placed(struct placing *p, struct err *err)
{
    struct inject_result *r = p->i->r;
    struct buf said BUF_AUTO = BUF_INIT;
    transport_said(&p->call, &said);
    if (strstr(buf_str(&p->call.err), "mkdir: not found") ||
        strstr(buf_str(&p->call.err), "mkdir: command not found"))
        snprintf(p->a.missing, sizeof p->a.missing, "mkdir");
    for (size_t n = 0; n < sizeof needs / sizeof *needs; n++)
        if (strcmp(needs[n].program, p->a.missing) == 0) {
            err_set(err, ERR_TOOL, "%s", needs[n].message);
            return inject_fail(r, STEP_PLACING, "add one of them, or put the binary into the image", err);
        }
    if (p->a.run && is_foreign(p)) {
        err_set(err, ERR_TOOL,
                "the binary for %s was written whole and is not run there: it is the wrong architecture (%s)",
                p->i->choice.arch, buf_str(&said));
        return inject_fail(r, STEP_PROOF, "the target says that it is another machine than it is", err);
    }
    if (r->failure.tried.len > 0) {
        p->i->nowhere = true;
        err_set(err, ERR_TOOL, "no directory there is safe, can be written to and run from%s%s%s",
                *p->i->looked.recon.uid ? " as uid " : "", p->i->looked.recon.uid,
                p->i->o->dir ? " (--dir)" : "");
        return inject_fail(
            r, STEP_PLACING,
            "give it one that nobody else can write to, nor to those above it, such as a tmpfs that "
            "allows execution, and name it with --dir",
            err);
    }
    err_set(err, ERR_TOOL, "the target did not say what became of it (exit status %d)%s%s", p->call.status,
            said.len > 0 ? ": " : "", buf_str(&said));
    return inject_fail(r, STEP_PLACING, "see whether it still runs, and try again", err);
}

static int conclude(struct placing *p, struct err *err)
{
    struct inject_result *r = p->i->r;
    if (p->a.how != TRANSPORT_ENDED)
        return inject_fail(r, STEP_PLACING,
                           "try again, with more time (--timeout) where the connection is slow", err);
    if (!p->a.verdict.s)
        return not_placed(p, err);
    struct buf path BUF_AUTO = BUF_INIT;
    recon_member(p->a.verdict, "path", &path);
    if (!inject_take_path(p->i, buf_str(&path)))
        return -1;
    int result = inject_take_verdict(p->i, p->a.verdict);
    if (result < 0 && r->failure.step > STEP_PROOF)
        take_back(p);
    return result;
}

/* Whether the transport, and not the target, is to blame. */
static bool is_lossy(const struct placing *p)
{
    struct buf step BUF_AUTO = BUF_INIT;
    if (p->a.how == TRANSPORT_TIMEOUT || p->a.cut)
        return true;
    if (p->a.how != TRANSPORT_ENDED)
        return false;
    recon_member(p->a.verdict, "step", &step);
    bool said_nothing =
        !p->a.verdict.s && !p->a.run && !p->a.full && !*p->a.missing && p->i->r->failure.tried.len == 0;
    return said_nothing || strcmp(buf_str(&step), "proof") == 0;
}

int inject_place(struct injection *i)
{
    struct placing p = {.i = i, .call = TRANSPORT_CALL_INIT};
    struct err err = {0};
    int result = 0;
    inject_place_dirs(i, &p.dirs);
    if (i->looked.place_script.len > 0)
        take_attempt(&p);
    else
        try_once(&p, 0, "", &err);
    while (p.a.full && p.dirs.n > 0)
        try_once(&p, 0, "", &err);
    if (is_lossy(&p) && p.dirs.n > 0) {
        clean(&p);
        result = by_pieces(&p, &err);
    }
    result =
        result < 0
            ? inject_fail(i->r, STEP_PLACING,
                          "see whether it still runs, and whether the connection loses data; then try again",
                          &err)
            : conclude(&p, &err);
    if (result < 0)
        clean(&p);
    argv_release(&p.dirs);
    transport_call_release(&p.call);
    return result;
}
