#include "session_shell.h"

#include <string.h>

#define PIECE                                                                                                \
    1000 /* bytes of a quoted word in one line: the channel's lines hold 4095, and a byte can take 4 */

/* The shell keeps the secret in a variable that is not exported: what it starts doesn't get it, and neither
 * does a trace that goes where other errors go. In a shell that has inherited the prompt and not the secret
 * the hook does nothing.
 *
 * Everything goes to the channel, error texts and the trace of `set -x` included. `|| :` keeps `set -e` out.
 * The names of the shell's own variables are all that is touched: `_` is given back by bash after a prompt
 * command. */

#define PIECES "__line"
#define SECRET "__word"
#define STATUS "__status"
#define BACK "__back"
#define BEGIN "__begin"
#define BEGUN "__begun"
#define SET_SECRET SECRET "=\x02; export -n " SECRET " 2>@\n"

/* What the shell's user has redefined (functions, aliases) is passed by. bash reads -t so that a shell whose
 * keeper hangs is not lost. */
#define WAIT "\\builtin read -r -t \"${" SECRET ":+5}\" _"
/* While it reads a command bash sets an alarm that ends it (TMOUT, which hardened systems make read-only):
 * its handler gives way to one that does nothing. */
#define STAY "[[ ! ${TMOUT-} ]] || \\builtin trap : ALRM; "
#define COUNT_AFRESH                                                                                         \
    "case ${BASHOPTS-} in *promptvars*) " BEGUN "=${" BEGIN ":+0}; [[ ! ${" BEGIN                            \
    "-} || ${PS0-} == *@* ]] || \\builtin printf -v PS0 %s \"$" BEGIN "${PS0-}\";; *) " BEGUN                \
    "=; [[ ${PS0-} != *@* ]] || \\builtin printf -v PS0 %s \"${PS0/\"$" BEGIN "\"}\";; esac; "
#define HOOK                                                                                                 \
    "{ \\builtin printf \"\\1%sP%s\\0%s\\0%s\\0%s\\0\" \"${" SECRET "-}\" \"$$\" \"$? ${" BEGUN              \
    "-}\" \"$PWD\" \"${PS2-}\"; " COUNT_AFRESH STAY WAIT "; } <>@ >&0 2>&0 || :"

/* Before each command that it has read (bash 4.4), in what the shell expands then: it counts them, so that
 * the hook can tell whether what was typed was begun at all; and where one of several lines has failed it
 * asks before the next one whether that was an interrupt. bash goes on with the next line otherwise. There is
 * one process more only then. */
#define SET_BEGIN                                                                                            \
    "if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) && [[ $BASHOPTS == *promptvars* ]]; "           \
    "then\n" BEGUN "=0 " BEGIN "='${" SECRET "[(" BEGUN                                                      \
    "+=1)>1&&$?||$?==130||$?==2?0:1]+$({ \\builtin printf \"\\1%sI%s\\0%s\\0%s\\0\" \"${" SECRET             \
    "-}\" \"$$\" \"$?\" \"$PWD\"; " WAIT "; } <>@ >&0 2>&0)}'\n"                                             \
    "[[ ${PS0-} == *@* ]] || \\builtin printf -v PS0 %s \"$" BEGIN "${PS0-}\" 2>@\n"                         \
    "fi\n"

/* First among the prompt commands, since what the others print belongs to the prompt, and where there can be
 * several (bash 5.1) as one of its own, so that an error in another one is not ours. */
#define SET_HOOK                                                                                             \
    "if [[ $PROMPT_COMMAND != *@* ]]; then\n"                                                                \
    "if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then PROMPT_COMMAND=('" HOOK                   \
    "' \"${PROMPT_COMMAND[\x01]}\")\n"                                                                       \
    "else PROMPT_COMMAND='" HOOK "'\"${PROMPT_COMMAND:+; $PROMPT_COMMAND}\"; fi\n"                           \
    "fi\n"

/* Completion is for people at a keyboard: a tab in a text is to stay one. History expansion too: nobody who
 * writes "!" here means it. */
#define QUIET_EDITOR                                                                                         \
    "\\builtin bind 'set disable-completion on' 'set enable-bracketed-paste off' 'set bell-style none' "     \
    "2>@"

/* A simple command: bash parses it in the middle of whatever it is parsing, and a compound one there breaks
 * its parser (5.2). The word behind the path is what `.` leaves as $_. */
#define BIND_KEY(map) "\\builtin bind -m " map " -x '\"\\e[7771~\": \\builtin . @ \"$_\" <>@ >&0 2>&0' 2>@\n"

#define SET_BASH_HOOK                                                                                        \
    "set +H\n" QUIET_EDITOR "\n" BIND_KEY("emacs") BIND_KEY("vi-insert") BIND_KEY("vi-command")              \
        SET_BEGIN SET_HOOK
const char shell_bash_setup[] = SET_SECRET SET_BASH_HOOK;
const char shell_bash_hook[] = HOOK "\n";

/* One printf, so that no trace comes between its fields. ${PS1@P} is of bash 4.4; the X keeps newlines at its
 * end. */
static const char bash_query[] =
    "{ \\builtin printf \"\\1%sQ%s\\0%s\\0%s\\0%s\\0%s\\0\" \x02 \"$$\" \"$?\" \"$PWD\" "
    "\"$([[ $PROMPT_COMMAND == *@* ]] && \\builtin printf %s \"${" SECRET "-}${READLINE_LINE:+x}\")\" "
    "\"$( ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) && \\builtin "
    "printf %sX \"${PS1\x01P}\")\"; \\builtin read -r -t 5 _; } <>@ >&0 "
    "2>&0 || :\n" SET_SECRET SET_HOOK;

/* The others evaluate command substitutions in PS1. Where they can't start a process for that they show it
 * all as it stands here, so it stands in what is a note to the terminal (SHELL_SHOWN); the status, which that
 * error takes the place of, is kept before. In arithmetic the shell's own time limit can be taken back.
 *
 * BusyBox 1.38's `read` never ends once its shell has handled a signal, also in a copy. So its shell, which
 * is known by a variable, waits for a line of a file instead; what ends that is nothing but a word to others.
 */
const char shell_posix_setup[] =
    "unset ENV\n" SECRET "=\x02\n"
    "PS1='\033]7771;$((" STATUS "=$?))$(($(s=$?; { \\unset -f printf read; [ \"${" SECRET
    "-}\" ] && \\printf "
    "\"\\1%sP%s\\0%s\\0%s\\0%s\\0\" \"$" SECRET "\" \"$$\" \"$s\" \"$PWD\" "
    "\"${PS2-}\" && \\eval \"${FUNCNAME+\\. @ #}\\read -r _\"; } <>@ >&0 2>&0; " SHELL_STAY ")0))\a'"
    "\"${PS1:-$ }\"\n";

/* Without another process, which it could not start. */
static const char posix_query[] =
    BACK "() { \\return $" STATUS "; }\n"
         "{ printf \"\\1%sQ%s\\0%s\\0%s\\0\\0\\0\" \"$" SECRET "\" \"$$\" \"$" STATUS
         "\" \"$PWD\" && read -r _; } <>@ >&0 2>&0\n" BACK "\n";

bool shell_is_bash(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "bash") == 0;
}

static void put_with(struct buf *out, const char *template, const struct channel *channel, const char *secret)
{
    for (; *template; template ++) {
        if (*template == '@')
            buf_adds(out, channel->path);
        else if (*template == '\x02')
            buf_adds(out, secret);
        else
            buf_addc(out, *template == '\x01' ? '@' : *template);
    }
}

void shell_put(struct buf *out, const char *template, const struct channel *channel)
{
    put_with(out, template, channel, channel->secret);
}

void shell_put_posix_query(struct buf *out, const struct channel *channel)
{
    shell_put(out, posix_query, channel);
}

void shell_put_query(struct buf *out, struct channel *channel)
{
    put_with(out, bash_query, channel, channel_offer_secret(channel));
}

/* Lines of the channel are cut between characters. */
static bool ends_piece(const char *command, size_t n, size_t i, size_t in_line)
{
    return in_line >= PIECE && (i + 1 == n || ((unsigned char)command[i + 1] & 0xC0) != 0x80);
}

void shell_put_adoption(struct buf *out, struct channel *channel)
{
    shell_put(out, "history -d -1 2>@ || history -d $HISTCMD 2>@\n", channel); /* -1 is of bash 5 */
    shell_put_query(out, channel);
    shell_put(out, SET_BASH_HOOK, channel);
}

void shell_put_word(struct buf *out, const char *text, size_t n, const char *quote, const char *backslash)
{
    size_t in_line = 0;
    buf_addc(out, '\'');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'')
            buf_adds(out, quote);
        else if (text[i] == '\\')
            buf_adds(out, backslash);
        else
            buf_addc(out, text[i]);
        in_line = text[i] == '\n' ? 0 : in_line + 1;
        if (ends_piece(text, n, i, in_line)) {
            buf_adds(out, "'\\\n'");
            in_line = 0;
        }
    }
    buf_addc(out, '\'');
}

void shell_put_eval(struct buf *out, const char *command, size_t n, const struct channel *channel)
{
    struct buf word BUF_AUTO = BUF_INIT;
    (void)channel;
    buf_adds(&word, "\\unset " PIECES "; " BACK "; ");
    buf_add(&word, command, n);
    buf_adds(out, STATUS "=$?; " BACK "() { \\return $" STATUS "; }\n" PIECES "=");
    shell_put_word(out, word.data, word.len, "'\\''", "\\");
    buf_addc(out, '\n');
}

void shell_put_announcement(struct buf *command, const struct channel *channel)
{
    struct buf text BUF_AUTO = BUF_INIT;
    shell_put(&text,
              "{ \\printf \"\\1%sT%s\\0%s\\0%s\\0\" \"${" SECRET
              "-}\" \"$$\" 0 \"$PWD\" >@; \\read -r " PIECES " <@; \\unset " PIECES "; } 2>@; " BACK "; ",
              channel);
    buf_replace(command, 0, 0, text.data, text.len);
}

static void put_quoted(struct buf *out, unsigned char c)
{
    if (c == '\'' || c == '\\')
        buf_addf(out, "\\%c", c);
    else if (c < 0x20 || c == 0x7F)
        buf_addf(out, "\\%03o", c);
    else
        buf_addc(out, (char)c);
}

/* bash 5.3 reports the jobs that ended meanwhile before its hook runs, as if that were printed by the command
 * that comes next; older ones do so behind it. So it is done now, unless the command is about jobs. */
#define REPORT_JOBS                                                                                          \
    "((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 503)) || [[ ${" PIECES                                    \
    "[\x01]} == *\x01(jobs|wait|\\ %)* ]] || \\builtin jobs -n >@; "

/* Each line does one thing, and only the whole is taken: somebody else may have read a part of it. What tells
 * that it was taken comes last: code that is interrupted before leaves a parser that loses a character of the
 * line (bash 5.2), which is thrown away then. */
void shell_put_command(struct buf *out, const char *command, size_t n, const struct channel *channel)
{
    const char *end = n < PIECE ? "; " : "\n"; /* in one line it can't be torn at all */
    size_t in_line = 0, pieces = 1;
    shell_put(out, QUIET_EDITOR, channel);
    buf_addf(out, "%s" PIECES "=($'", end);
    for (size_t i = 0; i < n; i++) {
        put_quoted(out, (unsigned char)command[i]);
        in_line++;
        if (ends_piece(command, n, i, in_line)) {
            buf_addf(out, "')%s" PIECES "+=($'", end);
            in_line = 0;
            pieces++;
        }
    }
    buf_addf(out, "')%s((${#" PIECES "[\x40]} == %zu)) && ", end, pieces);
    shell_put(out,
              "\\builtin printf -v READLINE_LINE %s \"${" PIECES "[\x01]}\" && \\builtin printf "
              "\"\\1%sT%s\\0%s\\0%s\\0\" \"$" SECRET "\" \"$$\" \"$?\" \"$PWD\" >@; " REPORT_JOBS
              "unset " PIECES "\n",
              channel);
}
