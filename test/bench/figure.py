"""A figure: a function that measures, and fills in one or more rows of the table."""
from dataclasses import dataclass
from typing import Callable

EXIT0 = "a static program that only exits"


@dataclass
class Figure:
    group: str
    rows: tuple  # the text of each row
    run: Callable  # run(lab, row...): fills them in


def figures(group):
    """A list, and a decorator that adds a function to it: @figure("row", ...)."""
    found = []

    def figure(*rows):
        def add(run):
            found.append(Figure(group, rows, run))
            return run
        return add
    return found, figure


def compare(row, measured, baseline, against, bound):
    """Times against times: the medians count."""
    row.unit, row.value, row.baseline, row.against, row.bound = "s", measured.median, baseline.median, against, bound
    row.least = measured.least / baseline.least


def limit(row, value, unit, bound, baseline=None, against=""):
    """A value with a bound of its own."""
    row.value, row.unit, row.bound, row.bound_on, row.baseline, row.against = value, unit, bound, "value", baseline, against


def count_wrong(row, wrong, note=""):
    """A number of wrong answers: one is too many."""
    limit(row, wrong, "", 0)
    row.note, row.broken = note, wrong > 0
