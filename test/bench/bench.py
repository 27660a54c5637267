#!/usr/bin/python3
"""Prints what the binary costs, each figure as a ratio to a baseline that was measured in the same run, by turns with it.

usage: bench.py [--json] [--rows PATTERN] TOOLBOX PROGRAMS

TOOLBOX: the binary. PROGRAMS: the folder of exit0, rounds and ptyread. --rows: only the rows whose text or group matches
the regular expression. --json: a list of objects instead of the table.

A benchmark is no test: a row over its bound is marked, and the exit status is 1 only where an answer was wrong.
"""
import argparse
import json
import re
import signal
import sys
from dataclasses import asdict, dataclass
from typing import Optional

import rows_connect
import rows_core
import rows_editor
import rows_files
import rows_inject
import rows_jobs
import rows_mcp
import rows_mcp_serve
import rows_server
import rows_session
from lab import Broken, Lab


@dataclass
class Row:
    group: str
    what: str
    unit: str = ""  # of value and baseline: s, KiB, bytes, or nothing for counts
    value: Optional[float] = None
    against: str = ""  # what the baseline is
    baseline: Optional[float] = None
    bound: float = 0
    bound_on: str = "ratio"  # or "value"
    least: Optional[float] = None  # ratio of the least times
    note: str = ""
    broken: bool = False

    @property
    def ratio(self):
        return self.value / self.baseline if self.value is not None and self.baseline else None

    @property
    def verdict(self):
        measured = self.ratio if self.bound_on == "ratio" else self.value
        return "BROKEN" if self.broken else "-" if measured is None else "ok" if measured <= self.bound else "OVER"


def shown(number, unit):
    if number is None:
        return "-"
    if unit == "s":
        return f"{number * 1e3:.3f} ms" if number < 1 else f"{number:.2f} s"
    if unit == "bytes":
        return f"{number:,.0f} B"
    return f"{number:,.0f} {unit}".strip()


def times(number):
    return "-" if number is None else f"{number:.2f} x"


def cells(row):
    bound = "-" if row.value is None else times(row.bound) if row.bound_on == "ratio" else shown(row.bound, row.unit)
    return [row.what, shown(row.value, row.unit), shown(row.baseline, row.unit), times(row.ratio), times(row.least), bound,
            row.verdict]


HEAD = ["what", "measured", "baseline", "ratio", "least", "bound", ""]
WIDTHS = [60, 12, 12, 8, 8, 12, 6]


def line(words):
    first, *rest = [f"{word:<{w}}" if i in (0, 6) else f"{word:>{w}}" for i, (word, w) in enumerate(zip(words, WIDTHS))]
    return " ".join([first, *rest]).rstrip()


def print_row(row):
    print(line(cells(row)))
    for note in filter(None, [row.against and f"against {row.against}", row.note]):
        print(f"    {note}")
    sys.stdout.flush()


def measure(lab, selected):
    """Yields the rows of all measurements that are selected; one that breaks is itself a row."""
    for module in (rows_core, rows_server, rows_session, rows_jobs, rows_mcp, rows_mcp_serve, rows_editor, rows_files, rows_inject, rows_connect):
        for figure in module.FIGURES:
            if not any(selected(f"{figure.group} {what}") for what in figure.rows):
                continue
            rows = [Row(figure.group, what) for what in figure.rows]
            try:
                figure.run(lab, *rows)
            except Broken as error:
                for row in rows:
                    row.broken, row.note = True, str(error)
            yield from (row for row in rows if selected(f"{row.group} {row.what}"))


def interrupted(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="a list of objects instead of the table")
    parser.add_argument("--rows", default="", metavar="PATTERN", help="only rows that match this regular expression")
    parser.add_argument("toolbox")
    parser.add_argument("programs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    pattern = re.compile(options.rows, re.IGNORECASE)
    rows = []
    if not options.json:
        print(line(HEAD))
    with Lab(options.toolbox, options.programs) as lab:
        for row in measure(lab, pattern.search):
            rows.append(row)
            if not options.json:
                print_row(row)
    if options.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio, "verdict": row.verdict} for row in rows], indent=2))
    else:
        over = sum(row.verdict == "OVER" for row in rows)
        print(f"\n{len(rows)} rows, {over} over their bounds. Times are medians of the quieter half of the rounds, "
              "least is the ratio of the shortest.")
    return any(row.broken for row in rows)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
