/* Input for a program that tells nothing of itself: a line at a time, each when it waits for its terminal
 * again. So what it prints for one line can be told from the prompt behind it. */
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_internal.h"

#define PASTE "\033[?2004" /* 'h' behind it: the line editor takes what is pasted as text; 'l': no more */
#define PASTE_BEGINS "\033[200~"
#define PASTE_ENDS "\033[201~"
#define QUOTE_KEY '\026'

/* What it shows when it is to be given something is its prompt, whatever it is like. */
static void learn_prompt(struct shell *sh)
{
    struct span line = terminal_last_line(sh->terminal);
    if (!sh->known.ps2)
        buf_add(&sh->known.prompt, line.s, line.n);
    free(sh->known.ps2);
    sh->known.ps2 = mem_dup(line.s, line.n);
}

static bool takes_pastes(const struct terminal *t)
{
    const struct buf *b = &t->viewers.recent;
    size_t n = sizeof PASTE - 1;
    for (size_t at = b->len; at-- > 0;)
        if (b->len - at > n && memcmp(b->data + at, PASTE, n) == 0)
            return b->data[at + n] == 'h';
    return false;
}

/* A line editor shows what it is given before Enter, if at all, and that is no output; where the terminal
 * makes the lines nobody has it before. */
static int64_t type_line(struct session *s, struct session_call *c)
{
    struct lines *l = &s->last_run.lines;
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    bool raw = terminal_is_raw(&s->terminal), paste = raw && takes_pastes(&s->terminal);
    const char *end = paste || l->rest.len == 0 ? NULL : memchr(l->rest.data, '\n', l->rest.len);
    size_t n = end ? (size_t)(end - l->rest.data) : l->rest.len;
    buf_adds(&text, paste ? PASTE_BEGINS : "");
    for (size_t i = 0; i < n; i++) {
        if (raw && !paste && l->rest.data[i] == '\t') /* would complete something */
            buf_addc(&text, QUOTE_KEY);
        buf_addc(&text, l->rest.data[i]);
    }
    buf_adds(&text, paste ? PASTE_ENDS : raw ? "" : "\n");
    l->more = end != NULL;
    l->state = raw ? LINE_TYPED : LINE_ENTERED;
    buf_consume(&l->rest, end ? n + 1 : n);
    s->last_run.cut = raw;
    terminal_mark(&s->terminal);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    if (input_add(&s->terminal.input, &s->terminal.pty, text.data, text.len, &err) < 0)
        return session_run_fail(c, &err);
    input_pump(&s->terminal.input, &s->terminal.pty, true);
    return ASK_MS;
}

static void enter(struct session *s)
{
    s->last_run.cut = false;
    s->last_run.ends_line = s->terminal.tail_after_mark > 0;
    s->last_run.lines.state = LINE_ENTERED;
    terminal_mark(&s->terminal);
    shell_happened(&s->shell, SHELL_IS_GIVEN);
    terminal_type(&s->terminal, "\n", 1);
}

bool session_lines_type_all(struct session *s)
{
    struct lines *l = &s->last_run.lines;
    bool any = l->more || l->state == LINE_TYPED;
    if (l->state == LINE_TYPED)
        enter(s);
    if (l->more) {
        buf_addc(&l->rest, '\n');
        shell_happened(&s->shell, SHELL_IS_GIVEN);
        terminal_type(&s->terminal, l->rest.data, l->rest.len);
    }
    l->more = false;
    buf_release(&l->rest);
    return any;
}

/* Where it is, as far as the kernel tells. */
static void learn_cwd(struct shell *sh)
{
    char path[4096];
    if (!proc_link(sh->pid, "cwd", path, sizeof path))
        return;
    free(sh->known.cwd);
    sh->known.cwd = mem_strdup(path);
}

int64_t session_lines_begin(struct session *s, struct session_call *c)
{
    learn_prompt(&s->shell);
    session_run_typed_in(s, c);
    s->shell.known.status = STATUS_UNKNOWN;
    s->last_run.lines.rest = c->input;
    c->input = (struct buf)BUF_INIT;
    return type_line(s, c);
}

int64_t session_lines_go_on(struct session *s, struct session_call *c)
{
    struct lines *l = &s->last_run.lines;
    if (l->state == LINE_TYPED) {
        enter(s);
        return ASK_MS;
    }
    struct span line = terminal_last_line(&s->terminal);
    if (s->shell.known.interrupted)
        l->more = false;
    size_t n = l->more ? line.n : shell_count_prompt(&s->shell, line);
    capture_commit(s->capture);
    capture_strip(s->capture, line.s + line.n - n, n);
    if (l->more)
        return type_line(s, c);
    learn_cwd(&s->shell);
    return session_run_answer(s, c, RUN_COMPLETED);
}
