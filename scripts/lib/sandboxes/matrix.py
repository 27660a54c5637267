"""The table: its rows are tried, and written down."""
import contextlib
import re
import sys
import threading
from dataclasses import dataclass

from sandboxes import checks, engines, pods, rows, vms
from sandboxes.places import Lab, Place, Unavailable

MODULES = (rows, engines, pods, vms)  # each adds its rows, in this order
WORKS, REFUSED, WRONG, UNTRIED = "works", "refused", "WRONG", "not tried"


@dataclass
class Cell:
    state: str
    text: str = ""  # the tool's own words, or a remark
    fine: bool = True


def rows_of(targets, only):
    if targets:
        return [rows.Row(target, contextlib.contextmanager(lambda lab, target=target: iter([Place(target)])), None) for target in targets]
    return [row for row in rows.ROWS if not only or any(text in row.name for text in only)]


def columns_of(names):
    wanted = {"inject", "eject", *names}
    return {name: check for name, check in checks.CHECKS.items() if not names or name in wanted}


class Tries:
    """Tries one row after the other."""

    def __init__(self, binary, folder, stack, columns):
        self.binary, self.columns, self.lab, self.lock = binary, columns, Lab(folder, stack, binary), threading.Lock()

    def __call__(self, row):
        cells = {}
        try:
            with row.make(self.lab) as place:
                self.tries(row, place, cells)
        except Unavailable as reason:
            cells = {"inject": Cell(UNTRIED, str(reason))}
            self.say(row, "inject", cells["inject"])
        except Exception as error:  # of what surrounds it: a row that can't be taken down
            cells["eject"] = Cell(WRONG, f"{type(error).__name__}: {error}", False)
            self.say(row, "eject", cells["eject"])
        return cells

    def tries(self, row, place, cells):
        box = checks.Toolbox(self.binary, place)
        place.before = place.look(checks.LEFT) or ""
        for column, check in self.columns.items():
            cells[column] = self.cell(row, column, check, box)
            self.say(row, column, cells[column])
            if column == "inject" and cells[column].state != WORKS:
                break

    def cell(self, row, column, check, box):
        try:
            text = check(box) or ""
            box.done()
            return Cell(UNTRIED, text.split(": ", 1)[1]) if text.startswith("not ") else Cell(WORKS, text)
        except checks.Refused as refusal:
            words = "" if row.refuses is None else row.refuses.get(column)
            text = str(refusal).replace(box.place.target or "TARGET", "TARGET")
            return Cell(REFUSED, text, words is not None and bool(re.search(words, text)))
        except Exception as error:  # whatever it is, it is this cell's
            return Cell(WRONG, f"{type(error).__name__}: {error}", False)
        finally:
            with contextlib.suppress(Exception):
                box.done()

    def say(self, row, column, cell):
        with self.lock:
            print(f"{row.name} / {column}: {cell.state}{': ' if cell.text else ''}{cell.text}{'' if cell.fine else '  <-- WRONG'}", flush=True)


def table(results):
    """Columns are tools; what was refused has a number, and the tool's words below: their first line."""
    notes, lines = {}, ["| sandbox | " + " | ".join(checks.CHECKS) + " |", "| --- " * (len(checks.CHECKS) + 1) + "|"]

    def shown(cell):
        if not cell:
            return "not placed"
        text = cell.text.split("\n")[0][:400]
        return cell.state + (f" ({notes.setdefault(text, len(notes) + 1)})" if text else "")

    for name, cells in results.items():
        lines.append(f"| {name} | " + " | ".join(shown(cells.get(column)) for column in checks.CHECKS) + " |")
    return "\n".join(lines) + "\n\n" + "".join(f"{number}. {text}\n" for text, number in notes.items())


def write_docs(path, text):
    """Between the two marks of the file."""
    begin, end = "<!-- scripts/validate-sandboxes writes from here -->\n", "<!-- to here: sandboxes -->\n"
    head, rest = path.read_text().split(begin)
    path.write_text(head + begin + text + end + rest.split(end)[1])
    print(f"{path} has the table", file=sys.stderr)
