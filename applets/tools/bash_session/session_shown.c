/* What is typed into a session, as those see it who watch it: its terminal doesn't echo, so it is shown as
 * one that does would.
 *
 * Nothing tells a program that asks for a secret from one that asks for anything else, where there is no echo
 * to be switched off. So what is typed is left out unless the shell is at its prompt, and then all but its
 * first line: others may read the rest. */
#include <string.h>
#include <termios.h>

#include "session_internal.h"

#ifndef TOOLBOX_GUEST

static bool echoes(const struct terminal *t)
{
    struct termios modes;
    return tcgetattr(t->pty.slave, &modes) == 0 && (modes.c_lflag & ECHO);
}

static void show(struct session *s, const char *keys, size_t n)
{
    struct buf text BUF_AUTO = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (keys[i] == '\r' || keys[i] == '\n')
            buf_adds(&text, "\r\n");
        else if (keys[i] == '\177' || keys[i] == '\b')
            buf_adds(&text, "\b \b");
        else if ((unsigned char)keys[i] >= 0x20 || keys[i] == '\t')
            buf_addc(&text, keys[i]);
    }
    if (!shell_is_mute(&s->shell)) /* who shows it himself */
        tape_shown(s->terminal.tape, text.data, text.len);
}

void session_show_typed(struct session *s, const char *keys, size_t n)
{
    if (!tape_is_listening(s->terminal.tape))
        return;
    if (echoes(&s->terminal)) {
        tape_typed(s->terminal.tape, keys, n);
        return;
    }
    enum waiting waiting = shell_look(&s->shell, LOOK_CLOSELY);
    if (waiting == WAITING_NOT || !shell_at_prompt(&s->shell, waiting, session_prompt_shown(s)))
        return;
    size_t line = 0;
    while (line < n && keys[line] != '\n' && keys[line] != '\r')
        line++;
    line += line < n;
    tape_typed(s->terminal.tape, keys, line);
    show(s, keys, line);
}

/* What the line editor shows when a key has it take the command stands for that: the line's end, or nothing.
 */
void session_show_command(struct session *s, const struct buf *command, bool edits)
{
    struct buf text BUF_AUTO = BUF_INIT;
    if (!tape_is_listening(s->terminal.tape))
        return;
    buf_add(&text, command->data, command->len);
    buf_addc(&text, '\n');
    tape_typed(s->terminal.tape, text.data, text.len);
    show(s, text.data, text.len);
    tape_mute(s->terminal.tape, edits ? ASK_MS : 0);
}

#endif
