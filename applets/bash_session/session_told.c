/* What the shell tells on the private channel.
 *
 * A message is believed for its secret, and in bash, whose own process waits for the answer, when the kernel
 * says that it does: one that comes while the shell is elsewhere is none of its, and of several at once none
 * is believed. A shell that waits though nothing of it has come (somebody has read its answer, or spoilt its
 * message) is let go on; what it did not tell it is then asked for. */
#include <stdlib.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "session_internal.h"
#include "session_shell.h"

#define PROOF_US 20
#define PROOF_TRIES 10
#define PROOF_MS 5000 /* for as long as the shell itself waits */
#define STUCK_LOOKS 2
#define STUCK_MS                                                                                             \
    250 /* between two looks that have to see the same; far longer than a message is on its way */

static void take_prompt(struct session *s, const struct channel_message *m)
{
    bool taken = input_is_taken(&s->input, &s->pty);
    bool again = (taken || s->has_editor) && session_run_told(s); /* a line editor is given one line a run */
    pty_make_quiet(&s->pty); /* whatever the last program has left it as */
    if (!s->capture) {
        output_mark(&s->output);
    } else if (!again) {
        capture_mark(s->capture);
        output_forget_mark(&s->output);
    }
    s->prompt_noted = false;
    s->last_run.prompt_read = s->last_run.prompt_read && again;
    s->tail_after_mark = 0;
    free(s->ps2);
    s->ps2 = mem_strdup(m->ps2 ? m->ps2 : "");
    free(s->cwd);
    s->cwd = mem_strdup(m->cwd);
    s->status = again ? s->status : m->status;
    s->prompts++;
    s->last_prompt = now_ms();
    s->prompt_after_input = taken;
    s->doubted = false;
}

static void take(struct session *s, const struct channel_message *m)
{
    session_drain_all(s); /* all that it printed before is in the terminal by now */
    if (m->kind == 'P')
        take_prompt(s, m);
    session_run_message(s, m);
}

static enum waiting look_for_word(const struct session *s, bool children)
{
    return session_waiting_for_word(&s->channel.pty, s->shell, s->options.user, children);
}

/* Others than bash tell from what they substitute in their prompt, a process like any. */
static enum waiting look_for_proof(const struct session *s)
{
    if (!shell_is_bash(s->shell_path))
        return WAITING_UNKNOWN;
    enum waiting w = look_for_word(s, false);
    for (int i = 0; i < PROOF_TRIES && w == WAITING_SOON; i++) {
        usleep(PROOF_US);
        w = look_for_word(s, false);
    }
    return w;
}

void session_hear_afresh(struct session *s)
{
    channel_message_release(&s->told.message);
    s->told = (struct told){0};
}

/* The last that needs an answer is kept; true when another one was dealt with. */
static bool read_messages(struct session *s)
{
    struct channel_message m;
    bool any = false;
    while (s->channel.pty.master >= 0 && channel_read(&s->channel, &m)) {
        if (m.pid != s->shell) { /* a shell below it that was given the secret */
            channel_message_release(&m);
        } else if (m.kind == 'T') {
            take(s, &m);
            channel_message_release(&m);
            any = true;
        } else {
            channel_message_release(&s->told.message);
            s->told.message = m;
            s->told.n++;
            s->told.since = now_ms();
        }
    }
    return any;
}

static bool prove(struct session *s)
{
    if (s->told.message.kind == '\0')
        return false;
    session_drain(s); /* meanwhile it gets there */
    enum waiting w = look_for_proof(s);
    if (w == WAITING_SOON && now_ms() - s->told.since < PROOF_MS) {
        loop_timer_set(s->tick, 1);
        return false;
    }
    if (w == WAITING_SHELL) /* what it told is there by now, whatever was before it */
        read_messages(s);
    if (w == WAITING_SHELL || w == WAITING_UNKNOWN) {
        if (s->told.n > 1 && w != WAITING_UNKNOWN)
            s->doubted = true; /* or it was interrupted, and tells again */
        else
            take(s, &s->told.message);
        channel_acknowledge(&s->channel);
    } else {
        s->doubted = true;
    }
    session_hear_afresh(s);
    return true;
}

bool session_hear(struct session *s)
{
    bool any = read_messages(s);
    any = prove(s) || any;
    if (any)
        session_stir(s);
    return any;
}

void session_release_stuck(struct session *s)
{
    long long now = now_ms();
    if (!s->shell || s->channel.pty.master < 0 || s->told.message.kind || now - s->told.looked < STUCK_MS)
        return;
    s->told.looked = now;
    channel_mend(&s->channel);
    enum waiting w = look_for_word(s, !shell_is_bash(s->shell_path));
    bool waits = w != WAITING_UNKNOWN && w != WAITING_SOON && !io_is_readable(s->channel.pty.slave) &&
                 (w != WAITING_NOT || session_run_missed(s));
    s->told.stuck = waits ? s->told.stuck + 1 : 0;
    if (s->told.stuck < STUCK_LOOKS)
        return;
    s->told.stuck = 0;
    if (w == WAITING_CODE)
        channel_repeat_code(&s->channel);
    else if (w == WAITING_NOT)
        session_run_again(s);
    else
        channel_acknowledge(&s->channel);
    s->doubted = s->doubted || w == WAITING_SHELL || w == WAITING_PROGRAM;
}
