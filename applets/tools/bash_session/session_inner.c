#include "session_inner.h"

#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "mem.h"
#include "session_kind.h"

#define PIECE 900 /* bytes of one line: a terminal that makes lines holds 4095 */

/* '@' stands for the word. What aborts the line, an interrupt or an error, leaves it to the prompt to tell.
 */
#define NOTE(kind) "\\033]7771;%s;" kind ";%s;%s\\007"
static const char shell_line[] = " __word=@; __tell='printf \"" NOTE(
    "P") "\" \"$__word\" \"$?\" \"$PWD\"'; "
         "if [ \"${BASH_VERSION-}\" ]; then case \"${PROMPT_COMMAND-}\" in *__tell*) ;; *) "
         "PROMPT_COMMAND='eval \"$__tell\"'\"${PROMPT_COMMAND:+; $PROMPT_COMMAND}\";; esac; "
         "else case \"${PS1-}\" in *__tell*) ;; *) [ -z \"${ZSH_VERSION-}\" ] || setopt promptsubst; "
         "PS1='$(eval \"$__tell\")'\"${PS1-$ }\";; esac; fi; "
         "printf '\\033]7771;%s;B\\007' \"$__word\"; eval \"$(printf %b \"$__line\")\"; __status=$?; "
         "printf '" NOTE("E") "' \"$__word\" \"$__status\" \"$PWD\"\n";

static const char fish_line[] =
    " functions -q __tell; or begin; function __back; return $argv; end; "
    "function __tell --on-event fish_prompt; set -l s $status; printf '" NOTE(
        "P") "' $__word $s \"$PWD\"; end; end; set -g __word @; "
             "set -q __status; or set -g __status 0; printf '\\033]7771;%s;B\\007' $__word; "
             "set -g __line (printf %b $__line | string collect); __back $__status; eval $__line; "
             "set -g __status $status; printf '" NOTE("E") "' $__word $__status \"$PWD\"\n";

static const char python_run[] =
    "import sys,ast,os\n"
    "def __run(w,l):\n"
    " def m(k):sys.stdout.write('\\33]7771;%s;%s\\7'%(w,k));sys.stdout.flush()\n"
    " m('B');s=0\n"
    " try:\n"
    "  for n in ast.parse(l,'<run>').body:exec(compile(ast.Interactive([n]),'<run>','single'),globals())\n"
    " except SystemExit:raise\n"
    " except BaseException as e:\n"
    "  s=130 if isinstance(e,KeyboardInterrupt) else 1\n"
    "  sys.excepthook(type(e),e,e.__traceback__.tb_next)\n"
    " m('E;%d;%s'%(s,os.getcwd()))\n"
    "__run('@',bytes.fromhex(__line).decode())\n";

static void put_hex(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%02x", (unsigned char)text[i]);
}

/* No byte of it means anything to a line editor, to history expansion or in quotes. */
static void put_escaped(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ' ||
                     (c && strchr("_-./:=,+@", c));
        if (plain)
            buf_addc(out, c);
        else
            buf_addf(out, "\\0%03o", (unsigned char)c);
    }
}

void inner_begin(struct inner *in, enum inner_kind kind)
{
    unsigned char tried = in->tried;
    inner_release(in);
    *in = (struct inner){.kind = (unsigned char)kind, .tried = tried};
    channel_make_secret(in->word);
}

/* How a line begins that adds to the text, and the whole that is sent behind it. */
static const struct {
    const char *front, *more, *run;
} lines[INNER_KINDS] = {[INNER_SH] = {" __line=\n", " __line=\"$__line\"'", shell_line},
                        [INNER_FISH] = {" set -g __line ''\n", " set -g __line \"$__line\"'", fish_line},
                        [INNER_PYTHON] = {"__line=''\n", "__line+='", python_run}};

void inner_put(struct buf *out, const struct inner *in, const char *command, size_t n)
{
    static const char status[] = "(exit ${__status:-0})\n";
    bool python = in->kind == INNER_PYTHON;
    buf_adds(out, lines[in->kind].front);
    if (in->kind == INNER_SH) {
        buf_adds(out, " __line='");
        put_escaped(out, status, sizeof status - 1);
        buf_adds(out, "'\n");
    }
    for (size_t at = 0; at < n; at += PIECE / 5) {
        size_t len = n - at < PIECE / 5 ? n - at : PIECE / 5;
        buf_adds(out, lines[in->kind].more);
        (python ? put_hex : put_escaped)(out, command + at, len);
        buf_adds(out, "'\n");
    }
    struct buf text BUF_AUTO = BUF_INIT;
    kind_fill(&text, lines[in->kind].run, in->word);
    if (!python) {
        buf_add(out, text.data, text.len);
        return;
    }
    buf_adds(out, "exec(bytes.fromhex('");
    put_hex(out, text.data, text.len);
    buf_adds(out, "').decode())\n");
}

bool inner_take(struct inner *in, const char *text)
{
    if (!*in->word || strncmp(text, in->word, CHANNEL_SECRET) != 0 || text[CHANNEL_SECRET] != ';')
        return false;
    const char *kind = text + CHANNEL_SECRET + 1;
    if (*kind == 'B' && !in->begun) {
        in->begun = true;
        return true;
    }
    if (!in->begun || in->ended || (*kind != 'E' && *kind != 'P') || kind[1] != ';')
        return false;
    char *end;
    in->status = (int)strtol(kind + 2, &end, 10);
    in->cwd = mem_strdup(*end == ';' ? end + 1 : "");
    in->ended = in->back = true;
    in->ended_at = now_ms();
    return true;
}

bool inner_is_prompt(const struct buf *printed, enum inner_kind *kind)
{
    size_t n = printed->len;
    const char *line = n > 0 ? memrchr(printed->data, '\n', n) : NULL;
    const char *from = line ? line + 1 : printed->data;
    while (n > 0 && printed->data + n > from && printed->data[n - 1] == ' ')
        n--;
    size_t len = n > 0 ? (size_t)(printed->data + n - from) : 0;
    bool python =
        (len >= 3 && memcmp(from + len - 3, ">>>", 3) == 0) || (len >= 4 && memcmp(from, "In [", 4) == 0);
    *kind = python ? INNER_PYTHON : INNER_SH;
    if (python || len == 0)
        return python;
    char last = from[len - 1], before = len > 1 ? from[len - 2] : ' ';
    if (last == '%') /* "45%", "==>" and "####" are none */
        return before != '.' && (before < '0' || before > '9');
    if (last == '>')
        return before != '=' && before != '-';
    return last == '$' || (last == '#' && before != '#') ||
           (len >= 3 && memcmp(from + len - 3, "\u276f", 3) == 0);
}

void inner_release(struct inner *in)
{
    free(in->cwd);
    *in = (struct inner){0};
}
