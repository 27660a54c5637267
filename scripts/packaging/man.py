"""Manual pages (man(7)) of the program and each applet, from what usage.py has read."""
import re
import time
from pathlib import Path


def escaped(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")


def line(text):
    """A line of text; one that begins with a stop is no request."""
    return ("\\&" if text.startswith(".") else "") + escaped(text)


def term(text):
    """Names of options bold, what stands for something slanted."""
    parts = re.split(r"([A-Z][A-Z_0-9]+(?:,[A-Z]+)?|\b[A-Z]\b)", text)
    return "".join(f"\\fI{escaped(part)}\\fR" if i % 2 else f"\\fB{escaped(part)}\\fR" for i, part in enumerate(parts) if part)


def _verbatim(lines):
    return [".PP", ".nf", ".RS 2", *(line(text[2:] if text.startswith("  ") else text) for text in lines), ".RE", ".fi"]


def _table(items):
    made = []
    for name, about in items:
        made += [".TP", term(name), line(about) if about else "\\&"]
    return made


def _text(lines):
    return [".PP", *map(line, lines)]


WRITERS = {"verbatim": _verbatim, "table": _table, "text": _text}


def _is_status(block):
    return block.kind == "text" and block.items[0].startswith("Exit status:")


def _is_options(block):
    return block.kind == "table" and block.items[0][0].startswith("-")


def _sorted(blocks):
    """(description, options, exit status, examples): lines of each."""
    parts = {"description": [], "options": [], "status": [], "examples": []}
    for block in blocks:
        part = "examples" if block.example else "options" if _is_options(block) else "status" if _is_status(block) else "description"
        items = block.items
        if part == "status":
            items = [items[0].removeprefix("Exit status:").strip(), *items[1:]]
        parts[part] += WRITERS[block.kind](items)
    return parts


def _command(page):
    parts = _sorted(page.blocks)
    made = [f'.SS "{escaped(page.words[-1])}"', *(".PP\n" + term(text) for text in page.synopsis), *parts["description"], *parts["options"]]
    if parts["status"]:
        made += [".PP", "Exit status:", *parts["status"][1:]]
    return made + parts["examples"]


def _head(page, version, seconds):
    name = "-".join(page.words)
    date = time.strftime("%Y-%m-%d", time.gmtime(seconds))
    return [f'.TH {escaped(name.upper())} 1 "{date}" "toolbox {version}" "toolbox manual"', ".nh", ".ad l", ".SH NAME", f"{escaped(name)} \\- {escaped(page.about)}",
            ".SH SYNOPSIS", *(f"{'.br' + chr(10) if i else ''}{term(text)}" for i, text in enumerate(page.synopsis))]


def text_of(page, others, version, seconds, environment=()):
    """The whole page; `others`: names of those to see as well, `environment`: (variable, meaning)."""
    parts = _sorted(page.blocks)
    made = [*_head(page, version, seconds), ".SH DESCRIPTION", *parts["description"]]
    if parts["options"] and not page.pages:
        made += [".SH OPTIONS", *parts["options"]]
    if len(page.words) > 1 and page.pages:
        made += [".SH COMMANDS", *(text for command in page.pages for text in _command(command))]
    if parts["status"]:
        made += [".SH EXIT STATUS", *parts["status"]]
    if parts["examples"]:
        made += [".SH EXAMPLES", *parts["examples"]]
    if environment:
        made += [".SH ENVIRONMENT", *_table(environment)]
    made += [".SH SEE ALSO", *(f".BR {escaped(name)} (1){',' if name != others[-1] else ''}" for name in others)]
    text = "\n".join(made) + "\n"
    return re.sub(r"^(\.S[HS] .*\n)\.PP\n", r"\1", text, flags=re.M)


def write(top, folder, version, seconds, environment):
    """Fills a folder with toolbox.1 and a page of each applet."""
    names = ["-".join(page.words) for page in top.pages]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for page in [top, *top.pages]:
        name = "-".join(page.words)
        others = names if page is top else ["toolbox"]
        Path(folder, f"{name}.1").write_text(text_of(page, others, version, seconds, environment if page is top else ()), encoding="utf-8")
