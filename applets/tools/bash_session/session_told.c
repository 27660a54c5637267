/* What the shell tells on the private channel.
 *
 * A message is believed for its secret, and in bash, whose own process waits for the answer, when the kernel
 * says that it does: one that comes while the shell is elsewhere is none of its, and of several at once none
 * is believed. A shell that waits though nothing of it has come (somebody has read its answer, or spoilt its
 * message) is let go on; what it did not tell it is then asked for. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "io.h"
#include "mem.h"
#include "proc.h"
#include "session_shell.h"
#include "session_state.h"

#define PROOF_US 20
#define PROOF_TRIES 10
#define PROOF_MS 5000 /* for as long as the shell itself waits */
#define TAKE_US 100
#define TAKE_TRIES 500
#define STUCK_LOOKS 2
#define STUCK_MS                                                                                             \
    250 /* between two looks that have to see the same; far longer than a message is on its way */

static void take_prompt(struct shell *sh, const struct channel_message *m)
{
    struct terminal *t = sh->terminal;
    struct known *k = &sh->known;
    int before = k->status;
    bool interrupted = k->interrupted;
    int vague = interrupted && (k->struck || sh->kind->is_csh) ? sh->kind->vague : 0;
    bool taken = input_is_taken(&t->input, &t->pty);
    /* a line editor is given one line a run */
    bool again = sh->owner->prompts(sh->arg, taken || sh->known.has_editor);
    pty_mend(&t->pty); /* whatever the last program has left it as */
    terminal_mark(t);
    free(k->ps2);
    k->ps2 = mem_strdup(m->ps2 ? m->ps2 : "");
    shell_learn(sh, m, taken ? SHELL_TELLS : SHELL_TELLS_EARLY);
    if (again)
        k->status = before;
    else if (interrupted && (m->begun == 0 || (vague > 0 && m->status <= vague)))
        k->status = SHELL_INTERRUPTED; /* not begun, with Enter: the status is that of what was before */
}

void shell_is_shown(struct shell *sh)
{
    char cwd[4096];
    if (!proc_link(sh->pid, "cwd", cwd, sizeof cwd))
        snprintf(cwd, sizeof cwd, "%s", sh->known.cwd ? sh->known.cwd : "");
    struct channel_message m = {.kind = 'P', .status = STATUS_UNKNOWN, .cwd = cwd, .begun = -1};
    take_prompt(sh, &m);
}

static void take(struct shell *sh, const struct channel_message *m)
{
    terminal_drain_all(sh->terminal); /* all that it printed before is in the terminal by now */
    if (m->kind == 'P')
        take_prompt(sh, m);
    sh->owner->message(sh->arg, m);
}

static enum waiting look_for_word(const struct shell *sh, bool children)
{
    return session_waiting_for_word(&sh->channel.pty, sh->pid, sh->options->user, children);
}

bool shell_reads_code(const struct shell *sh)
{
    return sh->channel.pty.master >= 0 && look_for_word(sh, false) == WAITING_CODE;
}

/* Others tell from what they substitute in their prompt, a process like any, or read otherwise. */
static enum waiting look_for_proof(const struct shell *sh)
{
    if (!sh->kind->proves)
        return WAITING_UNKNOWN;
    enum waiting w = look_for_word(sh, false);
    for (int i = 0; i < PROOF_TRIES && w == WAITING_SOON; i++) {
        usleep(PROOF_US);
        w = look_for_word(sh, false);
    }
    return w;
}

void shell_hear_afresh(struct shell *sh)
{
    channel_message_release(&sh->told.message);
    sh->told = (struct told){.doubted = sh->told.doubted};
}

/* Between two lines of what it was given: it would go on with the next one. It stands still until what it has
 * asked by, a process of its own, has taken the answer: its hook would take that for its own. */
static void tell_of_interrupt(struct shell *sh, const struct channel_message *m)
{
    terminal_drain(sh->terminal);
    if (!sh->known.interrupted) {
        channel_acknowledge(&sh->channel);
        return;
    }
    sh->owner->message(sh->arg, m);
    kill(sh->pid, SIGSTOP);
    channel_acknowledge(&sh->channel);
    for (int i = 0; i < TAKE_TRIES && !input_is_taken(&sh->channel.outgoing, &sh->channel.pty); i++)
        usleep(TAKE_US);
    kill(sh->pid, SIGINT);
    kill(sh->pid, SIGCONT);
}

/* The last that needs an answer is kept; true when another one was dealt with. */
static bool read_messages(struct shell *sh)
{
    struct channel_message m;
    bool any = false;
    while (sh->channel.pty.master >= 0 && channel_read(&sh->channel, &m)) {
        if (m.pid != sh->pid) { /* a shell below it that was given the secret */
            channel_message_release(&m);
        } else if (m.kind == 'I') {
            tell_of_interrupt(sh, &m);
            channel_message_release(&m);
            any = true;
        } else if (m.kind == 'T') {
            take(sh, &m);
            channel_message_release(&m);
            any = true;
        } else {
            channel_message_release(&sh->told.message);
            sh->told.message = m;
            sh->told.n++;
            sh->told.since = now_ms();
        }
    }
    return any;
}

static bool prove(struct shell *sh)
{
    if (sh->told.message.kind == '\0')
        return false;
    terminal_drain(sh->terminal); /* meanwhile it gets there */
    enum waiting w = look_for_proof(sh);
    if (w == WAITING_SOON && now_ms() - sh->told.since < PROOF_MS) {
        loop_timer_set(sh->terminal->pace->timer, 1);
        return false;
    }
    if (w == WAITING_SHELL) /* what it told is there by now, whatever was before it */
        read_messages(sh);
    if (w == WAITING_SHELL || w == WAITING_UNKNOWN) {
        if (sh->told.n > 1 && w != WAITING_UNKNOWN)
            sh->told.doubted = true; /* or it was interrupted, and tells again */
        else
            take(sh, &sh->told.message);
        channel_acknowledge(&sh->channel);
    } else {
        sh->told.doubted = true;
    }
    shell_hear_afresh(sh);
    return true;
}

bool shell_hear(struct shell *sh)
{
    bool any = read_messages(sh);
    any = prove(sh) || any;
    if (any)
        pace_stir(sh->terminal->pace);
    return any;
}

void shell_release_stuck(struct shell *sh)
{
    long long now = now_ms();
    if (!sh->pid || sh->channel.pty.master < 0 || sh->told.message.kind || now - sh->told.looked < STUCK_MS)
        return;
    sh->told.looked = now;
    channel_mend(&sh->channel);
    pid_t group = pty_foreground(&sh->terminal->pty);
    if (group == sh->pid || kill(-group, 0) < 0) /* a program has stopped it, and ended */
        tcflow(sh->terminal->pty.slave, TCOON);
    enum waiting w = look_for_word(sh, !sh->kind->proves);
    bool waits = w == WAITING_NOT ? sh->owner->missed(sh->arg)
                                  : w != WAITING_UNKNOWN && w != WAITING_SOON &&
                                        input_is_taken(&sh->channel.outgoing, &sh->channel.pty);
    sh->told.stuck = waits ? sh->told.stuck + 1 : 0;
    if (sh->told.stuck < STUCK_LOOKS)
        return;
    sh->told.stuck = 0;
    if (w == WAITING_CODE)
        channel_repeat_code(&sh->channel);
    else if (w == WAITING_NOT)
        sh->owner->give_again(sh->arg);
    else
        channel_acknowledge(&sh->channel);
    sh->told.doubted = sh->told.doubted || w == WAITING_SHELL || w == WAITING_PROGRAM;
}
