"""The whole table of docs/distributions.md, row by row, with whatever is installed here (scripts/setup sandboxes)."""
import sys

import pytest

from harness.containers import REPO
from test_runtimes import validate

sys.path.append(str(REPO / "scripts/lib"))

from sandboxes import checks, matrix  # noqa: E402, F401


def test_the_table_has_every_row_and_column():
    text = (REPO / "docs/distributions.md").read_text().split("<!-- scripts/validate-sandboxes writes from here -->\n")[1]
    lines = text.splitlines()
    assert lines[0] == "| sandbox | " + " | ".join(checks.CHECKS) + " |"
    assert [line.split(" | ")[0][2:] for line in lines[2:] if line.startswith("| ")] == [row.name for row in matrix.rows_of([], [])]


@pytest.mark.parametrize("row", [row.name for row in matrix.rows_of([], [])])
def test_row(toolbox, row):
    """Slow: each tool does its whole job in it, a browser included. Marked long."""
    validate(toolbox, "--only", row)
