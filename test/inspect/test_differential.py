"""The same requests to the package's own tools and to toolbox: where the answers differ, docs/compatibility.md says why."""
import re
import sys
from pathlib import Path

import pytest
from corpus import GROUPS, RAW
from differences import compare
from harness.containers import REPO

# Which decision of docs/compatibility.md ("Where answers differ") a difference belongs to.
DECIDED = {
    "bytes": ["editor: tabs: [1-6]", "editor: crlf: [1-7]"],
    "empty path": ["editor: view of nothing: 5"],
    "misuse": ["session: params: [08]", "job: environment: 4", "mcp: requests: 9", "mcp: params: [578]"],
    "no such job": ["job: params: (10|16)"],
    "unknown user": ["job: users: [67]"],
    "strict": ["server: methods: [13]", "session: params: (4|14)", "raw: 20"],
    "null": ["server: methods: 5", "raw: 22"],
    "restart": ["session: params: 17"],
    "end of the shell": ["session: exit: [23]"],
    "escapes": ["session: escapes: (9|1[0-2])"],
    "interrupt": ["session: interrupts: (2|9|11)"],
    "completion": ["session: editor: 3"],
    "size": ["session: size: 2"],
    "echo": ["session: echo: 3"],
    "at once": ["session: keys: [67]"],
    "history": ["session: environment: 2"],
    "omitted": ["session: much: 5"],
    "again": ["job: open stdin: 12", "mcp: requests: 10"],
    "unread input": ["job: input: [89]"],
    "after the end": ["job: killed: 4"],
    "no request": ["raw: ([0-9]|1[0-2]|21|23)", "raw: 2[4568]"],
}


@pytest.fixture(scope="module")
def compared():
    found = Path(sys.prefix).glob("lib/python3*/site-packages/inspect_ai/binaries/.toolbox-dropin/*-amd64-v*")
    return list(compare(next(found), REPO / "toolbox", GROUPS, RAW))


def decision(name):
    return next((what for what, patterns in DECIDED.items() if any(re.fullmatch(p, name) for p in patterns)), None)


def test_every_difference_is_a_decision(compared):
    assert len(compared) > 400
    unknown = [each for each in compared if each[2] != each[3] and not decision(each[0])]
    assert not unknown, "\n".join(f"{name} {request}\n  reference {a}\n  toolbox   {b}" for name, request, a, b in unknown)


def test_no_decision_is_about_nothing(compared):
    differing = {decision(name) for name, _, a, b in compared if a != b}
    assert differing == set(DECIDED)


def test_every_decision_is_written_down():
    text = (REPO / "docs/compatibility.md").read_text()
    for what in DECIDED:
        assert f"| {what} |" in text, f"{what}: not in docs/compatibility.md"
