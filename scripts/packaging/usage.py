"""What the program says of itself: applets, their commands and options, read from its texts of --help."""
import json
import re
import subprocess
from dataclasses import dataclass, field

EXAMPLES = re.compile(r"Examples?:$")
ENTRY = re.compile(r"  (\S.*?)(?:  +(\S.*))?$")
FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)(\[=[A-Z]+\]|[ =]'?[A-Z][A-Z0-9_:/|]*(?:,[A-Z]+)?|[ =]\w+(?=[],|]))?")
APPLET_LINE = re.compile(r"  ([a-z][\w-]*) +(\S.*)$")


@dataclass
class Block:
    """A part of a text: "text" (lines to be filled), "table" (of (term, description)) or "verbatim"."""

    kind: str
    items: list = field(default_factory=list)
    example: bool = False


@dataclass
class Option:
    """Of several names; `argument` is "" where it takes none, and begins with "[=" where that may be left out."""

    names: list
    argument: str
    about: str


@dataclass
class Page:
    """The text of an applet, of a command of one, or of the program itself."""

    words: list  # as they are typed: toolbox, applet, command
    about: str
    synopsis: list
    blocks: list
    pages: list = field(default_factory=list)

    @property
    def options(self):
        """Those of the table, then those that stand in the synopsis alone."""
        found = [option for block in self.blocks if block.kind == "table" for term, about in block.items if term.startswith("-")
                 for option in _options(term, about)]
        seen = {name for option in found for name in option.names}
        for line in self.synopsis:
            for name, argument in FLAG.findall(line):
                if name not in seen:
                    seen.add(name)
                    found.append(Option([name], argument.strip(" ="), ""))
        return found

    @property
    def positionals(self):
        """What stands behind the options in the first line of the synopsis that has any: ["TARGET", "METHOD", "PARAM..."]."""
        for line in self.synopsis:
            rest = line.split(" ", len(self.words))[len(self.words):]
            line = FLAG.sub("", rest[0]) if rest else ""
            words = re.findall(r"(?:\[-- ?\] )?\[?([A-Z][A-Z_:]*)(?:[|]\S+)?\]?(\.\.\.)?", line)
            found = [name + dots for name, dots in words if name not in ("OPTION", "INJECT")]
            if found:
                return found
        return []


def _options(term, about):
    """`-u, --user USER` is one option of two names, `--dir DIR, --name NAME` are two."""
    found = []
    for name, argument in FLAG.findall(term):
        argument = argument.strip(" =")
        last = found[-1] if found else None
        if last and len(last.names) == 1 and len(last.names[0]) == 2 and name.startswith("--") and not last.argument:
            last.names.append(name)
            last.argument = argument
        else:
            found.append(Option([name], argument, about))
    return found


def _entry(line, following):
    """(term, description) where a line begins an entry of a table."""
    term, about = ENTRY.match(line).groups()
    if term.split()[0] in ("toolbox", "inspect", "echo", "{"):
        return None
    if about or (re.match(r" {6,}\S", following) and not term.endswith("\\")):
        return term, about or ""
    return (term, "") if term.startswith("-") else None


def _blocks(lines):
    blocks, example = [], False

    def into(kind):
        if not blocks or blocks[-1].kind != kind:
            blocks.append(Block(kind, example=example))
        return blocks[-1].items

    for line, following in zip(lines, [*lines[1:], ""]):
        if EXAMPLES.match(line):
            example = True
            blocks.append(Block("verbatim", example=True))
        elif not line.strip():
            blocks.append(Block("end"))
        elif not line.startswith(" "):
            example = False
            into("text").append(line)
        elif example or not line.startswith("   ") and not _entry(line, following):
            into("verbatim").append(line)
        elif not line.startswith("   "):
            into("table").append(_entry(line, following))
        elif blocks[-1].kind == "table":
            term, about = blocks[-1].items[-1]
            blocks[-1].items[-1] = (term, f"{about} {line.strip()}".strip())
        else:
            into("verbatim").append(line)
    return [block for block in blocks if block.items]


def _page(words, about, text):
    lines = text.rstrip("\n").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("Usage:"))
    end = next((i for i in range(start, len(lines)) if not lines[i].strip()), len(lines))
    synopsis = []
    for line in lines[start:end]:
        line = re.sub(r"^(Usage:|   or:)", "", line).strip()
        if line.startswith("[") or line.startswith("<"):  # goes on
            synopsis[-1] += " " + line
        else:
            synopsis.append(line)
    if not about and len(words) > 2:  # a command's first words say what it does
        about = " ".join(lines[end + 1 :]).split(". ")[0].split(".  ")[0]
    return Page(words, about, synopsis, _blocks(lines[end + 1 :]))


class Program:
    """A toolbox that runs here."""

    def __init__(self, path):
        self.path = path

    def says(self, *arguments):
        return subprocess.run([self.path, *arguments], check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).stdout.decode()

    def version(self):
        return self.says("--version").split()[1]

    def read(self):
        """The page of the program, with those of its applets, and in them those of their commands."""
        text = self.says("--help")
        top = _page(["toolbox"], text.split("\n")[0].split(": ", 1)[1], text)
        table = next(block for block in reversed(top.blocks) if block.kind == "table")
        for name, about in table.items:
            applet = _page(["toolbox", name], about, self.says("help", name))
            for term, what in self._commands(applet):
                applet.pages.append(_page([*applet.words, term], what, self.says("help", name, term)))
            top.pages.append(applet)
        return top

    @staticmethod
    def _commands(applet):
        """(name, about) of each command of an applet that has some."""
        if " COMMAND [OPTION]" not in applet.synopsis[0]:
            return []
        table = next(block for block in applet.blocks if block.kind == "table")
        return [(term.split()[0], about) for term, about in table.items]

    def methods(self):
        """{method: [parameter, …]} of all that can be called."""
        found = {}
        for method in json.loads(self.says("methods", "--json")):
            names = [param["name"] for param in method["params"]]
            names += [param["name"] for variant in method.get("variants", {}).values() for param in variant]
            found[method["name"]] = list(dict.fromkeys(names))
        return found
