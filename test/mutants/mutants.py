"""The places in a C file that can be made wrong, each in one way: a condition turned round, a comparison shifted, a statement
left out. It reads files of the project's form (.clang-format): a function begins and ends with a brace in the first column."""
import re
from typing import NamedTuple

OPERATORS = {"==": "!=", "!=": "==", "<": "<=", ">": ">=", "<=": "<", ">=": ">", "&&": "||", "||": "&&"}
_OPERATOR = re.compile(r" (" + "|".join(map(re.escape, sorted(OPERATORS, key=len, reverse=True))) + r") ")
_HEAD = re.compile(r"^\w[^(=]*?(\w+)\(")
_BEFORE = re.compile(r"[^\s(!]*$")
_BEHIND = re.compile(r"[^\s);:]*")
_IF = re.compile(r"^(\s*(?:\} else |else )?if \()(.*)(\)(?: \{)?)$")
_STATEMENT = re.compile(r"^\s+(?:\w+\(.*\)|[*\w][\w.>\[\]\-]*(?: [-+*/|&^]?= .*|\+\+|--)|(?:\+\+|--)[\w.>\-]+);$")
_NO_STATEMENT = re.compile(r"^\s+(?:return|break|continue|goto|case|default|else|do|while|for|if|static_assert)\b")


class Mutant(NamedTuple):
    path: str
    line: int  # from 1
    function: str
    what: str
    old: str
    new: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}: {self.old.strip()}"

    @property
    def name(self):
        """Which stays when lines are added above."""
        return f"{self.path}: {self.what}: {self.old.strip()}"

    def apply(self, text):
        lines = text.split("\n")
        assert lines[self.line - 1] == self.old
        lines[self.line - 1] = self.new
        return "\n".join(lines)


def _balanced(text):
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0


def _in_string(text, at):
    return text[:at].replace('\\"', "").count('"') % 2 == 1


def _of_line(path, number, function, line):
    found = _IF.match(line)
    if found and _balanced(found[2]):
        yield Mutant(path, number, function, "condition turned round", line, f"{found[1]}!({found[2]}){found[3]}")
    for found in _OPERATOR.finditer(line):
        if not _in_string(line, found.start()):
            new = f"{line[:found.start()]} {OPERATORS[found[1]]} {line[found.end():]}"
            left, right = _BEFORE.search(line[:found.start()])[0], _BEHIND.match(line[found.end():])[0]
            what = f"{left} {found[1]} {right} made {OPERATORS[found[1]]}"
            yield Mutant(path, number, function, what, line, new)
    if _STATEMENT.match(line) and _balanced(line) and not _NO_STATEMENT.match(line):
        yield Mutant(path, number, function, "left out", line, re.match(r"\s*", line)[0] + ";")


def of_file(path, text):
    """All mutants, in the order of their places."""
    found, inside, comment, function = [], False, False, ""
    for number, line in enumerate(text.split("\n"), 1):
        head = _HEAD.match(line)
        function = head[1] if head else function
        if line in ("{", "}"):
            inside = line == "{"
        comment = comment or line.strip().startswith("/*")
        if inside and not comment:
            code = re.sub(r"\s*/\*.*\*/\s*$", "", line)
            for mutant in _of_line(path, number, function, code):
                found.append(mutant._replace(old=line))
        comment = comment and "*/" not in line
    return found
