"""Completions for bash, zsh and fish, from what usage.py has read and what `toolbox methods` lists.

What is known beforehand (applets, commands, options, methods, params) stands in the files; what isn't is asked when a key is pressed:
containers of the engines, hosts of ssh's configuration, sessions and jobs.
"""
import re
from pathlib import Path

HERE = Path(__file__).parent

# What stands for what, in synopses and behind options: how it is completed.
KINDS = {"TARGET": "target", "METHOD": "method", "PARAM": "param", "SESSION": "session", "PID": "pid", "PATH": "file", "FILE": "file", "DIR": "folder",
         "ROOT": "folder", "PROGRAM": "program", "COMMAND": "program", "ARGUMENT": "file", "USER": "user", "ARCH": "arch", "LEVEL": "level", "APPLET": "applet",
         "SIGNAL": "signal", "SOURCE": "place", "DEST": "place"}
LEVELS = "error warning info debug"
ARCHES = "amd64 arm64 armv7 i386 ppc64le riscv64 s390x"
SCHEMES = "docker: podman: nerdctl: ctr: compose: k8s: ssh: local: exec: dir:"
SIGNALS = "HUP INT QUIT KILL USR1 USR2 TERM CONT STOP TSTP WINCH"


def kind_of(word):
    return KINDS.get(re.match(r"[A-Z]*", word).group(), "none")


def positionals(page):
    """Kinds of the words behind the options; one that may be given again ends with "*"."""
    words = page.words[1:]
    if words == ["exec"]:
        return ["method", "param*"]
    if words == ["methods"]:
        return ["method"]
    if words == ["mcp", "call"]:
        return []
    if words[:1] == ["bash_session"] and "COMMAND" in page.positionals:
        return ["session"]
    if words[:1] == ["mcp"] and page.positionals == ["SESSION"]:
        return []  # its sessions are numbers
    if words == ["shell"]:
        return ["target"]
    return [kind_of(word) + ("*" if word.endswith("...") else "") for word in page.positionals]


def leaves(top):
    """Every page that takes options: applets without commands, and commands."""
    for applet in top.pages:
        yield from applet.pages or [applet]


def argument_kind(option):
    """"" where an option takes no argument, "none" where nothing is known of it."""
    if not option.argument:
        return ""
    return kind_of(option.argument.strip("[=]"))


def _filled(name, **parts):
    text = (HERE / name).read_text(encoding="utf-8")
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text


def _common():
    return {"LEVELS": LEVELS, "ARCHES": ARCHES, "SCHEMES": SCHEMES, "SIGNALS": SIGNALS}


# ---- bash ----


def bash(top, methods):
    rows, commands = [], []
    for page in leaves(top):
        options = " ".join(name + ("=" if option.argument.startswith("[=") else "") for option in page.options for name in option.names)
        taking = " ".join(f"{name}={argument_kind(option)}" for option in page.options if option.argument and not option.argument.startswith("[=")
                          for name in option.names)
        key = " ".join(page.words[1:])
        rows.append(f"    '{key}') options='{options}' taking='{taking}' kinds='{' '.join(positionals(page))}' ;;")
    for applet in top.pages:
        if applet.pages:
            commands.append(f"    {applet.words[1]}) echo {' '.join(page.words[2] for page in applet.pages)} ;;")
    params = [f"    {name}) echo {' '.join(names)} ;;" for name, names in methods.items() if names]
    return _filled("completion.bash", ROWS="\n".join(rows), COMMANDS="\n".join(commands), PARAMS="\n".join(params), METHODS=" ".join(methods),
                   APPLETS=" ".join(page.words[1] for page in top.pages), **_common())


# ---- zsh ----

ZSH_KINDS = {"target": "_toolbox_targets", "method": "_toolbox_methods", "param": "_toolbox_params", "session": "_toolbox_sessions", "pid": "_toolbox_jobs",
             "file": "_files", "folder": "_directories", "program": "_command_names -e", "user": "_users", "arch": f"({ARCHES})", "level": f"({LEVELS})",
             "signal": f"({SIGNALS})", "place": "_toolbox_places", "none": " "}


def _zsh_text(text):
    """A description within the quotes of a specification."""
    text = text if len(text) < 70 else text[:68].rsplit(" ", 1)[0] + " …"
    return text.replace("\\", "").replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")


def _zsh_option(option):
    names = option.names
    tail = ""
    if option.argument:
        what = option.argument.strip("[=]")
        tail = f"{':' if option.argument.startswith('[=') else ''}:{_zsh_text(what)}:{ZSH_KINDS[argument_kind(option)]}"
    about = f"[{_zsh_text(option.about)}]" if option.about else ""
    made = []
    for name in names:
        glued = "=-" if option.argument.startswith("[=") else "=" if option.argument and name.startswith("--") else ""
        made.append(f"'({' '.join(names)}){name}{glued}{about}{tail}'")
    return made


def _zsh_page(page):
    specs = [spec for option in page.options for spec in _zsh_option(option)]
    for i, kind in enumerate(positionals(page)):
        place = "*" if kind.endswith("*") else str(i + 1)
        action = ZSH_KINDS.get(kind.rstrip("*"), " ")
        if kind == "program*":
            specs.append(f"'{i + 1}:program:{action}'")
            place, kind, action = "*", "argument", "_files"
        specs.append(f"'{place}:{kind.rstrip('*')}:{action}'")
    return f"    '{' '.join(page.words[1:])}')\n        _arguments -s -S {' '.join(specs)} ;;"


def zsh(top, methods):
    def described(pages):
        return " ".join(f"'{page.words[-1]}:{_zsh_text(page.about)}'" for page in pages)

    commands = [f"    {applet.words[1]}) commands=({described(applet.pages)}) ;;" for applet in top.pages if applet.pages]
    params = [f"    {name}) params=({' '.join(names)}) ;;" for name, names in methods.items() if names]
    return _filled("completion.zsh", PAGES="\n".join(map(_zsh_page, leaves(top))), COMMANDS="\n".join(commands), PARAMS="\n".join(params),
                   APPLETS=described(top.pages), METHODS=" ".join(methods), **_common())


# ---- fish ----


def _fish_text(text):
    text = text if len(text) < 70 else text[:68].rsplit(" ", 1)[0] + " …"
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_option(key, option):
    about = f" -d {_fish_text(option.about)}" if option.about else ""
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    needs = ""
    if option.argument and not option.argument.startswith("[="):
        kind = argument_kind(option)
        needs = " -rF" if kind == "file" else f" -x -a '(__toolbox_words {kind})'"
    return f"complete -c toolbox -n '__toolbox_at {key}' {names}{needs}{about}"


def fish(top, methods):
    lines, rows = [], []
    for applet in top.pages:
        lines.append(f"complete -c toolbox -n '__toolbox_first' -a {applet.words[1]} -d {_fish_text(applet.about)}")
        for page in applet.pages:
            lines.append(f"complete -c toolbox -n '__toolbox_second {applet.words[1]}' -a {page.words[2]} -d {_fish_text(page.about)}")
    for page in leaves(top):
        key = " ".join(page.words[1:])
        lines += [_fish_option(key, option) for option in page.options]
        taking = " ".join(name for option in page.options if option.argument and not option.argument.startswith("[=") for name in option.names)
        rows.append(f"        case '{key}'\n            set kinds {' '.join(map(repr, positionals(page))) or 'none'}\n            set taking {taking}")
    params = [f"        case {name}\n            printf '%s=\\n' {' '.join(names)}" for name, names in methods.items() if names]
    groups = " ".join(applet.words[1] for applet in top.pages if applet.pages)
    return _filled("completion.fish", LINES="\n".join(lines), ROWS="\n".join(rows), PARAMS="\n".join(params), METHODS=" ".join(methods), GROUPS=groups, **_common())


def write(top, methods, share):
    """Where the shells look, below a prefix's share/."""
    for path, text in (("bash-completion/completions/toolbox", bash(top, methods)), ("zsh/site-functions/_toolbox", zsh(top, methods)),
                       ("fish/vendor_completions.d/toolbox.fish", fish(top, methods))):
        file = Path(share, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
