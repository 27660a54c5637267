#include "session_kind.h"

#include <string.h>

#include "session_repl.h"
#include "session_shell.h"

#define SH_BEFORE "exec 3<&-\nunset TMOUT 2>@\n"

/* Lines are made by the terminal, which doesn't echo, and not by an editor, which would. ksh93 looks at its
 * time limit before it prompts. */
static const char ksh_setup[] =
    "set +o emacs +o vi 2>@\nset +o gmacs 2>@\nunset TMOUT 2>@\nunset ENV\n__word=\x02 __zero=0\n"
    "case ${KSH_VERSION-} in *93*) eval 'function TMOUT.set { .sh.value=0; }';; esac\n"
    "PS1='${__zero#$(($(s=$?; ((s > 256)) && ((s -= 128)); "
    "[[ ${__word-} ]] && { \\command printf \"\\1%sP%s\\0%s\\0%s\\0\\0\" \"$__word\" \"$$\" \"$s\" \"$PWD\" "
    ">@; "
    "\\command read -r s <@; } "
    "2>@; " SHELL_STAY ")0))}'\"${PS1:-$ }\"\n";

static const char zsh_before[] = "exec 3<&-\nsetopt rcs\n\4"
                                 "[[ -r ${ZDOTDIR:-~}/.zshenv ]] && . ${ZDOTDIR:-~}/.zshenv\n"
                                 "[[ -r /etc/zsh/zshrc ]] && . /etc/zsh/zshrc\n"
                                 "[[ -r /etc/zshrc ]] && . /etc/zshrc\n"
                                 "[[ -r ${ZDOTDIR:-~}/.zshrc ]] && . ${ZDOTDIR:-~}/.zshrc\n\4"
                                 "unset TMOUT 2>@\n";
static const char zsh_setup[] =
    "unsetopt zle prompt_sp prompt_cr bang_hist\n"
    "typeset -g +x __word=\x02\n"
    "__tell() { local s=$?; { \\disable -f builtin; builtin printf '\\1%sP%s\\0%s\\0%s\\0\\0' \"${__word-}\" "
    "$$ $s \"$PWD\"; "
    "builtin read -r -t 5 s; \\enable -f builtin; } <>@ >&0 2>&0 || :; } 2>@\n"
    "precmd_functions=(__tell $precmd_functions)\n";

/* Its `read` takes a terminal for a person's, but where the line ends with a NUL. */
#define FISH_WAIT "builtin read -z -n 1 -l __ack <@"
static const char fish_setup[] =
    "set -g __word \x02\n"
    "function __back; return $argv; end\n"
    "function __tell --on-event fish_postexec; set -l s $status; set -g __told 1; "
    "builtin printf '\\001%sP%s\\000%s\\000%s\\000\\000' $__word $fish_pid $s \"$PWD\" >@; " FISH_WAIT
    "; end\n"
    "function __tell_first --on-event fish_prompt; __back $status; set -q __told; or __tell; set -e __told; "
    "end\n";

static void put_fish(struct buf *out, const char *command, size_t n, const struct channel *channel)
{
    buf_adds(out, "set -g __line ");
    shell_put_word(out, command, n, "\\'", "\\\\");
    shell_put(
        out, "\nbuiltin printf '\\001%sT%s\\0000\\000%s\\000' $__word $fish_pid \"$PWD\" >@; " FISH_WAIT "\n",
        channel);
}

/* It can wait for nothing itself, what a program is given as an argument others see, and what it reads from a
 * terminal it prompts for. */
#define IN_ALIAS(text) "'\"'\"'" text "'\"'\"'"
#define TCSH_TAKE                                                                                            \
    "set __status=$status; set __file=`\\sh -c 'f=$(mktemp) && cat <@ >$f && echo $f'`; source "             \
    "$__file"
static const char tcsh_setup[] =
    "\\rm -f $__file\n"
    "set __word=\x02\n"
    "alias precmd 'set __status=$status; \\echo \"$__word $$ $__status $cwd\" | \\sh -c " IN_ALIAS(
        "read -r w p s d; { printf \"\\1%sP%s\\0%s\\0%s\\0\\0\" \"$w\" \"$p\" \"$s\" \"$d\"; read -r s; } "
        "<>@ >&0 2>&0") "'\n"
                        "\4if (-r /etc/csh.cshrc) source /etc/csh.cshrc\n"
                        "if (-r ~/.tcshrc) source ~/.tcshrc\n"
                        "if (! -r ~/.tcshrc && -r ~/.cshrc) source ~/.cshrc\n\4"
                        "unset edit autologout\nset histchars=\n";

static void put_tcsh(struct buf *out, const char *command, size_t n, const struct channel *channel)
{
    (void)channel;
    buf_adds(out, "\\rm -f $__file; \\sh -c \"exit $__status\"\n");
    buf_add(out, command, n);
    buf_addc(out, '\n');
}

static const struct shell_kind kinds[] = {
    {.names = "bash",
     .start.args = {"--rcfile", "@"},
     .start.bare = "--posix", /* keeps /etc/bash.bashrc away as well */
     .start.bare_env = "ENV=@",
     .start.before =
         "exec 3<&-\nset +o posix\ncase ${ENV-} in " CHANNEL_CODE "|@) unset ENV;; esac\nunset TMOUT 2>@\n"
         "\4[ -r ~/.bashrc ] && . ~/.bashrc\nset +e\n\4unset TMOUT 2>@\n",
     .start.no_history = "unset HISTFILE 2>@\n",
     .start.setup = shell_bash_setup,
     .take.line = SHELL_SOURCE "@" SHELL_EVAL,
     .take.put = shell_put_eval,
     .take.as_typed = true,
     .is_bash = true,
     .is_shell = true,
     .proves = true},
    {.names = "sh dash ash busybox",
     .start.env = {"ENV=@"},
     .start.before = SH_BEFORE,
     .start.no_history = "HISTFILE=\n", /* they take a name of their own where there is none */
     .start.setup = shell_posix_setup,
     .take.line = SHELL_SOURCE "@" SHELL_EVAL,
     .take.put = shell_put_eval,
     .take.as_typed = true,
     .is_shell = true},
    {.names = "ksh mksh lksh oksh rksh pdksh",
     .start.env = {"ENV=@"},
     .start.before = SH_BEFORE "\4case ${KSH_VERSION-} in *MIRBSD*) ENV=~/.mkshrc;; *) ENV=~/.kshrc;; esac\n"
                               "[ -r \"$ENV\" ] && . \"$ENV\"\n\4",
     .start.no_history = "HISTFILE=\n",
     .start.setup = ksh_setup,
     .take.line = SHELL_SOURCE "@" SHELL_EVAL,
     .take.put = shell_put_eval,
     .is_shell = true,
     .copies_catch = true,
     .vague = 2},
    {.names = "zsh",
     .start.args = {"-f", "-o", "nozle", "-o", "nopromptsp", "-o", "nopromptcr"},
     .start.typed = SHELL_SOURCE "@",
     .start.before = zsh_before,
     .start.no_history = "unset HISTFILE\n",
     .start.setup = zsh_setup,
     .take.line = SHELL_SOURCE "@" SHELL_EVAL,
     .take.put = shell_put_eval,
     .take.as_typed = true,
     .is_shell = true,
     .vague = 2,
     .ends_line = true,
     .proves = true},
    {.names = "fish",
     .start.args = {"-C", "command cat <@ | builtin source"},
     .start.bare = "--no-config",
     .start.before = "",
     .start.no_history = "set -g fish_history ''\n",
     .start.setup = fish_setup,
     .start.by_channel = true,
     .take.line = " set -g __status $status; command cat <@ | builtin source; __back $__status; eval $__line",
     .take.put = put_fish,
     .take.announces = true,
     .is_shell = true,
     .vague = 1,
     .ends_line = true},
    {.names = "tcsh csh",
     .start.args = {"-f"},
     .start.typed = TCSH_TAKE,
     .start.before = "",
     .start.no_history = "unset savehist\n",
     .start.setup = tcsh_setup,
     .start.by_channel = true,
     .take.line = TCSH_TAKE,
     .take.put = put_tcsh,
     .take.as_typed = true,
     .is_shell = true,
     .copies_catch = true,
     .vague = 1,
     .is_csh = true},
    {.names = "python pypy",
     .start.env = {"PYTHONSTARTUP=@", "PYTHON_BASIC_REPL=1"},
     .start.before = "",
     .start.no_history = "__import__('sys').__interactivehook__=lambda:None\n",
     .start.setup = repl_python,
     .start.seeks = true,
     .take.line = "__run()",
     .take.put = repl_put},
    {.names = "ipython",
     .start.args = {"--InteractiveShellApp.exec_lines=exec(open('@').read())"},
     .start.before = "",
     .start.no_history = "get_ipython().history_manager.enabled=False\n",
     .start.setup = repl_ipython,
     .take.line = "__run()",
     .take.put = repl_put},
    {.names = "node nodejs",
     .start.env = {"NODE_REPL_EXTERNAL_MODULE=@", "NODE_PRESERVE_SYMLINKS_MAIN=1"},
     .start.before = "",
     .start.no_history = "",
     .start.setup = repl_node,
     .start.seeks = true,
     .polls = true,
     .take.line = "__run",
     .take.put = repl_put},
    /* Its line editor asks the terminal where the cursor is. */
    {.names = "irb", .start.args = {"--nomultiline", "--nosingleline", "--nocolorize"}},
    {.names = NULL},
};

/* Without what tells its version. */
static size_t name_length(const char *name)
{
    size_t n = strlen(name);
    while (n > 0 && (strchr("0123456789.-", name[n - 1])))
        n--;
    return n;
}

static bool has_name(const char *names, const char *name, size_t n)
{
    for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == n && memcmp(at, name, n) == 0)
            return true;
    return false;
}

const struct shell_kind *kind_of(const char *path)
{
    const struct shell_kind *k = kinds;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    while (k->names && !has_name(k->names, name, name_length(name)))
        k++;
    return k;
}

void kind_fill(struct buf *out, const char *template, const char *text)
{
    for (; *template; template ++) {
        if (*template == '@')
            buf_adds(out, text);
        else
            buf_addc(out, *template);
    }
}

static void put(struct buf *out, const char *template, bool bare, const struct channel *channel,
                const char *former)
{
    for (bool own = false; *template; template += *template != '\0') {
        struct buf piece BUF_AUTO = BUF_INIT;
        size_t n = strcspn(template, "\x03\4");
        buf_add(&piece, template, n);
        if (!own || !bare)
            shell_put(out, buf_str(&piece), channel);
        template += n;
        own = own != (*template == '\4');
        for (const char *at = *template == '\x03' && former ? former : ""; *at; at++)
            buf_addf(out, "%02x", (unsigned char)*at);
    }
}

void kind_put_hook(struct buf *out, const struct shell_kind *kind, const struct channel *channel)
{
    if (!kind->is_csh)
        buf_adds(out, "__status=$?; __back() { \\return $__status; }\n");
    put(out, kind->start.setup, true, channel, NULL);
    buf_adds(out, kind->is_csh ? "\\sh -c \"exit $__status\"\n" : "__back\n");
}

void kind_put_startup(struct buf *out, const struct shell_kind *kind, bool bare, bool keeps_history,
                      const struct channel *channel, const char *former)
{
    put(out, kind->start.before, bare, channel, former);
    if (!keeps_history)
        put(out, kind->start.no_history, bare, channel, former);
    put(out, kind->start.setup, bare, channel, former);
}
