#include "session_state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_shell.h"

#define PROMPT_US 50 /* between "about to prompt" and waiting for input */
#define PROMPT_TRIES 10
#define UNSEEN_PAUSE_MS 20 /* for the prompt to come, where nobody can see who waits */
#define FAR_PAUSE_MS 2500  /* for a question to be one, where nobody can see who asks */
#define POLL_PAUSE_MS 300  /* the same of one that looks for input again and again: at work it does not */
#define FAR_PROMPT_MS 100  /* for what is the same as its prompt to be that */

/* ---- where it is ---- */

/* From each state with each event. */
static const unsigned char next[SHELL_STATES][SHELL_EVENTS] = {
    [SHELL_ENDED] = {[SHELL_STARTS] = SHELL_STARTING},
    [SHELL_STARTING] = {[SHELL_STARTS] = SHELL_STARTING,
                        [SHELL_TELLS] = SHELL_PROMPTING,
                        [SHELL_TELLS_EARLY] = SHELL_RUNNING,
                        [SHELL_ANSWERS] = SHELL_WAITING,
                        [SHELL_IS_SEEN] = SHELL_STARTING,
                        [SHELL_RESTS] = SHELL_WAITING,
                        [SHELL_IS_GIVEN] = SHELL_STARTING,
                        [SHELL_ENDS] = SHELL_ENDED},
    [SHELL_RUNNING] = {[SHELL_STARTS] = SHELL_STARTING,
                       [SHELL_TELLS] = SHELL_PROMPTING,
                       [SHELL_TELLS_EARLY] = SHELL_RUNNING,
                       [SHELL_ANSWERS] = SHELL_WAITING,
                       [SHELL_IS_SEEN] = SHELL_RUNNING,
                       [SHELL_RESTS] = SHELL_WAITING,
                       [SHELL_IS_GIVEN] = SHELL_RUNNING,
                       [SHELL_ENDS] = SHELL_ENDED},
    [SHELL_PROMPTING] = {[SHELL_STARTS] = SHELL_STARTING,
                         [SHELL_TELLS] = SHELL_PROMPTING,
                         [SHELL_TELLS_EARLY] = SHELL_RUNNING,
                         [SHELL_ANSWERS] = SHELL_PROMPTING,
                         [SHELL_IS_SEEN] = SHELL_WAITING,
                         [SHELL_RESTS] = SHELL_WAITING,
                         [SHELL_IS_GIVEN] = SHELL_RUNNING,
                         [SHELL_ENDS] = SHELL_ENDED},
    [SHELL_WAITING] = {[SHELL_STARTS] = SHELL_STARTING,
                       [SHELL_TELLS] = SHELL_PROMPTING,
                       [SHELL_TELLS_EARLY] = SHELL_RUNNING,
                       [SHELL_ANSWERS] = SHELL_WAITING,
                       [SHELL_IS_SEEN] = SHELL_WAITING,
                       [SHELL_RESTS] = SHELL_WAITING,
                       [SHELL_IS_GIVEN] = SHELL_RUNNING,
                       [SHELL_ENDS] = SHELL_ENDED},
};

void shell_happened(struct shell *sh, enum shell_event event)
{
    sh->state = next[sh->state][event];
    if (event == SHELL_IS_GIVEN)
        terminal_begin_answer(sh->terminal);
    sh->known.interrupted = sh->known.interrupted && (event == SHELL_IS_SEEN || event == SHELL_RESTS);
}

void shell_learn(struct shell *sh, const struct channel_message *m, enum shell_event event)
{
    struct known *k = &sh->known;
    free(k->cwd);
    k->cwd = mem_strdup(m->cwd);
    free(k->error);
    k->error = m->error ? mem_strdup(m->error) : NULL;
    k->status = m->status;
    k->prompts++;
    k->last_prompt = now_ms();
    k->begun = m->begun;
    sh->told.doubted = false;
    shell_happened(sh, event);
}

bool shell_is_back(const struct shell *sh)
{
    return sh->state == SHELL_PROMPTING || sh->state == SHELL_WAITING;
}

/* ---- what can be seen of it ---- */

/* A key that sends a signal leaves nothing to be read, and who sleeps on another processor is still seen to
 * sleep when it has been sent. */
static bool signal_is_on_its_way(const struct shell *sh)
{
    struct proc *list;
    bool *flag = &sh->terminal->input.on_its_way, any = false;
    if (!*flag)
        return false;
    pid_t group = pty_foreground(&sh->terminal->pty);
    size_t n = proc_descendants(getpid(), &list);
    for (size_t i = 0; i < n && !any; i++)
        any = (list[i].group == group || list[i].pid == sh->pid) && proc_is_signalled(list[i].pid);
    free(list);
    *flag = any;
    return any;
}

enum waiting shell_look(const struct shell *sh, enum look how)
{
    if (signal_is_on_its_way(sh))
        return WAITING_NOT;
    return session_waiting(&sh->terminal->pty, sh->pid, sh->options->user, how);
}

enum unsure shell_is_unsure(const struct shell *sh, enum look how)
{
    return shell_is_mute(sh) ? session_wait_is_unsure(&sh->terminal->pty, sh->pid, sh->options->user, how)
                             : UNSURE_NOT;
}

/* It waits: what it has printed since it told is its prompt. */
static void note_prompt(struct shell *sh)
{
    const struct terminal *t = sh->terminal;
    if (sh->state != SHELL_PROMPTING || t->tail_after_mark == 0 || t->tail_after_mark > t->tail.len)
        return;
    shell_happened(sh, SHELL_IS_SEEN);
    buf_truncate(&sh->known.prompt, 0);
    buf_add(&sh->known.prompt, t->tail.data + t->tail.len - t->tail_after_mark, t->tail_after_mark);
}

/* How far the next look goes. */
static enum look how_far(const struct shell *sh)
{
    return pace_is_thorough(sh->terminal->pace) ? LOOK_AT_ALL
           : shell_is_back(sh)                  ? LOOK_CLOSELY
                                                : LOOK_FROM_AFAR;
}

static enum waiting look_again(const struct shell *sh, enum look how)
{
    const struct pace *pace = sh->terminal->pace;
    enum waiting w = shell_look(sh, how);
    for (int i = 0; i < PROMPT_TRIES && w == WAITING_NOT && shell_is_back(sh) && pace->tick_ms == 1; i++) {
        usleep(PROMPT_US);
        w = shell_look(sh, LOOK_CLOSELY);
    }
    return w;
}

bool shell_is_asked(const struct shell *sh)
{
    const struct terminal *t = sh->terminal;
    return t->open_line && now_ms() - t->pace->last_activity >= FAR_PAUSE_MS;
}

static void skip_number(struct span *text)
{
    while (text->n > 0 && isdigit((unsigned char)*text->s))
        *text = (struct span){text->s + 1, text->n - 1};
}

static void skip_returns(struct span *text)
{
    while (text->n > 0 && *text->s == '\r')
        *text = (struct span){text->s + 1, text->n - 1};
}

/* Prompts may count: another number may stand where one stands, and none elsewhere, which would be output. */
static bool is_alike(struct span line, struct span prompt)
{
    for (;;) {
        skip_returns(&line);
        skip_returns(&prompt);
        if (line.n == 0 || prompt.n == 0)
            return line.n == prompt.n;
        if (isdigit((unsigned char)*line.s) && isdigit((unsigned char)*prompt.s)) {
            skip_number(&line);
            skip_number(&prompt);
        } else if (*line.s != *prompt.s) {
            return false;
        } else {
            line = (struct span){line.s + 1, line.n - 1};
            prompt = (struct span){prompt.s + 1, prompt.n - 1};
        }
    }
}

static size_t count_prompt(struct span line, const char *prompt, size_t n)
{
    bool behind = n > 0 && line.n > n && memcmp(line.s + line.n - n, prompt, n) == 0;
    if (behind || is_alike(line, (struct span){prompt, n}))
        return behind ? n : line.n;
    /* Behind output, where it begins with none of what may differ. */
    for (size_t left = 1; n > 0 && !isdigit((unsigned char)*prompt) && left < line.n; left++)
        if (line.s[line.n - left] == *prompt &&
            is_alike((struct span){line.s + line.n - left, left}, (struct span){prompt, n}))
            return left;
    return 0;
}

size_t shell_count_prompt(const struct shell *sh, struct span line)
{
    const struct known *k = &sh->known;
    size_t n = count_prompt(line, buf_str(&k->prompt), k->prompt.len);
    return n > 0 || !k->ps2 ? n : count_prompt(line, k->ps2, strlen(k->ps2));
}

/* Of a mute one whose wait says too little: there may be no unfinished line. One whose prompt is known asks
 * something else, where it shows none; and what only sleeps shows one, or it is at work. */
static bool shell_is_silent(const struct shell *sh, enum unsure why)
{
    bool known = sh->known.prompt.len > 0;
    bool prompts = shell_count_prompt(sh, terminal_last_line(sh->terminal)) > 0;
    if (why == UNSURE_NAPS && !prompts && (known || !sh->terminal->open_line))
        return false;
    int pause = prompts ? FAR_PROMPT_MS : why == UNSURE_POLLS && !known ? POLL_PAUSE_MS : FAR_PAUSE_MS;
    return now_ms() - sh->terminal->pace->last_activity >= pause;
}

bool shell_settled(struct shell *sh)
{
    struct terminal *t = sh->terminal;
    if (!sh->pid)
        return true;
    if (shell_teach(sh) || !input_is_taken(&t->input, &t->pty))
        return false;
    bool mute = shell_is_mute(sh);
    enum look how = how_far(sh);
    enum waiting w = look_again(sh, how);
    if (w == WAITING_SHELL && how != LOOK_AT_ALL && sh->kind->is_shell && !shell_is_back(sh) &&
        session_passes_on(sh->pid))
        w = WAITING_NOT; /* a relay in its place */
    enum unsure why = w == WAITING_SHELL || w == WAITING_NOT ? shell_is_unsure(sh, how) : UNSURE_NOT;
    if (why != UNSURE_NOT)
        w = WAITING_FAR_END;
    sh->known.waits = w;
    if (w == WAITING_SHELL && sh->known.held) /* it may not have noticed yet */
        return false;
    bool settled = w == WAITING_SHELL || w == WAITING_PROGRAM;
    sh->known.seen = sh->known.seen || settled || w == WAITING_FAR_END;
    if (w == WAITING_SHELL && sh->kind->polls && !mute && !shell_is_back(sh))
        return false;
    if (w == WAITING_FAR_END)
        settled = (why != UNSURE_NAPS && shell_is_asked(sh)) || (mute && shell_is_silent(sh, why));
    /* Then its own word, and a moment for the prompt that follows it; one that tells nothing may be ending,
     * or is not seen from afar alone. */
    if (w == WAITING_UNKNOWN)
        settled = (mute ? !sh->known.seen : shell_is_back(sh)) &&
                  now_ms() - t->pace->last_activity >= UNSEEN_PAUSE_MS &&
                  (!mute || shell_look(sh, LOOK_CLOSELY) == WAITING_UNKNOWN);
    /* Whatever was written before the wait began is there by now. */
    settled = settled && !terminal_drain(t);
    if (settled && mute)
        shell_happened(sh, SHELL_RESTS);
    else if (settled)
        note_prompt(sh);
    return settled;
}

/* The shell itself was seen by the closest look. */
enum waiting shell_waits(const struct shell *sh)
{
    return sh->known.waits == WAITING_SHELL ? WAITING_SHELL : shell_look(sh, LOOK_AT_ALL);
}

bool shell_is_mute(const struct shell *sh)
{
    bool told = sh->kind->start.setup && (sh->kind->is_bash || (sh->kind->is_shell && !sh->options->program));
    return sh->pid && sh->known.prompts == 0 && !told;
}

/* In front, or run by what is, as a script runs an interpreter. */
static bool is_in_front(const struct shell *sh)
{
    pid_t group = pty_foreground(&sh->terminal->pty);
    return group == 0 || group == sh->pid;
}

/* Between the commands of one paste the shell tells as well, and the next one may be a `read`: a prompt has a
 * line editor behind it (the terminal doesn't make lines), or at least has been printed. */
bool shell_at_prompt(const struct shell *sh, enum waiting waiting, bool shown)
{
    if (shell_is_mute(sh))
        return shell_is_back(sh) && is_in_front(sh);
    return waiting != WAITING_PROGRAM && waiting != WAITING_FAR_END && shell_is_back(sh) &&
           (shown || terminal_is_raw(sh->terminal));
}

bool shell_continues(const struct shell *sh)
{
    const struct known *k = &sh->known;
    size_t n = k->ps2 ? strlen(k->ps2) : 0;
    return terminal_ends_with(sh->terminal, k->ps2, n) &&
           !(k->prompt.len > n && terminal_ends_with(sh->terminal, k->prompt.data, k->prompt.len));
}

/* The continuation prompt is all that stands in the last line, behind the prompt. */
static bool shows_ps2(const struct shell *sh)
{
    const struct buf *prompt = &sh->known.prompt;
    const char *ps2 = sh->known.ps2 ? sh->known.ps2 : "";
    struct span line = terminal_last_line(sh->terminal);
    if (prompt->len <= line.n && memcmp(line.s, buf_str(prompt), prompt->len) == 0)
        line = (struct span){line.s + prompt->len, line.n - prompt->len};
    return line.n == strlen(ps2) && memcmp(line.s, ps2, line.n) == 0;
}

bool shell_lost_hook(const struct shell *sh)
{
    return sh->kind->start.setup == shell_posix_setup && !shell_is_back(sh) &&
           sh->known.waits == WAITING_SHELL && !shows_ps2(sh) &&
           session_reads_all(sh->pid, sh->options->user);
}

bool shell_edits(const struct shell *sh)
{
    return is_in_front(sh) && sh->kind->is_bash && terminal_is_raw(sh->terminal);
}

/* Nothing that it has printed by then is anybody's. */
bool shell_teach(struct shell *sh)
{
    struct terminal *t = sh->terminal;
    if (!sh->kind->start.typed || sh->taught || !sh->pid)
        return false;
    enum waiting w = shell_look(sh, LOOK_CLOSELY);
    bool waits = w == WAITING_SHELL || (w == WAITING_UNKNOWN && t->tail.len > 0 &&
                                        now_ms() - t->pace->last_activity >= UNSEEN_PAUSE_MS);
    if (!waits || terminal_drain(t))
        return true;
    struct buf line BUF_AUTO = BUF_INIT;
    kind_fill(&line, sh->kind->start.typed, sh->startup);
    buf_addc(&line, '\n');
    sh->owner->forget(sh->arg);
    io_write_all(t->pty.master, line.data, line.len); /* in front of what has been typed since */
    sh->taught = true;
    return true;
}

/* ---- its end ---- */

int shell_exit_code(const struct shell *sh)
{
    return WIFSIGNALED(sh->exit_status) ? -WTERMSIG(sh->exit_status) : WEXITSTATUS(sh->exit_status);
}

void shell_describe_exit(const struct shell *sh, struct buf *out)
{
    if (WIFSIGNALED(sh->exit_status))
        buf_addf(out, "signal %d, %s", WTERMSIG(sh->exit_status), strsignal(WTERMSIG(sh->exit_status)));
    else
        buf_addf(out, "exit status %d", WEXITSTATUS(sh->exit_status));
}
