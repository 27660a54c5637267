"""The shell blocks of README.md and docs/ do what they say.

A fenced block of `console` is commands behind "$ " (and "> ", which goes on with one) and what they print, where "…" stands for
anything; one of `sh` has to succeed. The blocks of a page run one after the other in one shell. A block that can't be run says why
in a comment before it: <!-- not run: it takes a cluster -->.
"""
import os
import re
import shutil
import subprocess

import pytest

from harness import needs
from harness.containers import REPO
from harness.machine import HANG

PAGES = sorted(path for path in [REPO / "README.md", *(REPO / "docs").glob("*.md")])
BLOCK = re.compile(r"(?P<why><!-- not run: [^\n]+ -->\n\n?)?(?:^```(?P<kind>[a-z]*)\n(?P<fenced>.*?)^```$"
                   r"|(?<=\n\n)(?P<indented>(?: {4}[^\n]*\n+)+))", re.M | re.S)
COMMAND = re.compile(r"\$ |(sudo |\./)?(toolbox|docker|kubectl|make|scripts/|curl|echo|printf|mkdir|inspect|cat|python3) ?")
NEXT = "-- the next command --"


def blocks(page):
    """(kind, text, may be run) of each."""
    for found in BLOCK.finditer(page.read_text()):
        text = found["fenced"] if found["fenced"] is not None else re.sub(r"^ {4}", "", found["indented"], flags=re.M)
        yield found["kind"] or "", text, found["why"] is None


def script(page):
    """What runs them all, and what it has to print for each command: (script, [(command, output or None)])."""
    lines, wanted = ["set -e"], []

    def add(command, output):
        lines.extend([command, f"echo '{NEXT}'"])
        wanted.append((command, output))

    for kind, text, runs in blocks(page):
        if not runs or kind not in ("sh", "console"):
            continue
        if kind == "sh":
            add(text, None)
            continue
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *rest = part.split("\n")
            while rest and rest[0].startswith("> "):
                command += "\n" + rest.pop(0)[2:]
            add(command, "\n".join(rest).strip("\n"))
    return "\n".join(lines), wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_blocks_are_marked(page):
    """None is left out by mistake."""
    for kind, text, runs in blocks(page):
        if kind == "" and runs:
            assert not COMMAND.match(text), f"{page.name}: neither sh nor console, and no reason why it isn't run: {text[:80]!r}"


@pytest.mark.parametrize("page", [page for page in PAGES if script(page)[1]], ids=lambda page: page.name)
def test_shell_blocks_run(client, workdir, page):
    text, wanted = script(page)
    (workdir / "bin").mkdir()
    (workdir / "bin/toolbox").symlink_to(client.binary)
    env = {**client.env, "PATH": f"{workdir}/bin:{os.environ['PATH']}", "TOOLBOX_DIR": str(client.dir), "HOME": str(workdir)}
    done = subprocess.run(["bash", "-c", text], cwd=workdir, env=env, capture_output=True, text=True, timeout=HANG, stdin=subprocess.DEVNULL)
    outputs = done.stdout.split(NEXT + "\n")
    for (command, output), came in zip(wanted, outputs):
        if output is not None:
            pattern = ".*".join(map(re.escape, output.split("…")))
            assert re.fullmatch(pattern, came.strip("\n"), re.S), f"{command!r} printed {came!r} and {done.stderr[-500:]!r}"
    assert (done.returncode, len(outputs)) == (0, len(wanted) + 1), done


def test_what_proves_the_promises_is_there():
    """The tests and files that docs/security.md names for its promises."""
    table = (REPO / "docs/security.md").read_text().split("## What proves it\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in re.findall(r"^\|.+\|$", table, re.M)[2:]]
    sources = [path for path in (REPO / "test").rglob("*") if path.suffix in (".py", ".c")]
    there = {path.name for path in sources}.union(*(re.findall(r"^(?:def|static void) (\w+)\(", path.read_text(), re.M) for path in sources))
    assert len(rows) > 20
    for promise, defence, proof in rows:
        files = re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.c)`", defence)
        for file in files:
            assert list(REPO.glob(file)) or list((REPO / "applets").rglob(file)), file
        names = re.findall(r"`(\w+(?:\.(?:py|c))?)`", proof)
        assert names, promise
        assert there.issuperset(names), promise


def test_every_page_is_in_the_site():
    """Also where the site itself can't be built."""
    named = re.findall(r"^    contents \w+ (.+)$", (REPO / "scripts/site").read_text(), re.M)
    assert {path.stem for path in (REPO / "docs").glob("*.md")} <= set(" ".join(named).split())


@needs.programs("sphinx-build")
@pytest.mark.parametrize("page, text, message", [
    ("mcp.md", "", ""),
    ("mcp.md", "[nowhere](protocol.md#nowhere)", r"not found.*(protocol.md#nowhere|nowhere)"),
    ("README.md", "[gone](docs/gone.md)", r"not found.*gone\.md"),
    ("lost.md", "# A page that nothing leads to", "isn't included in any toctree"),
])
def test_no_link_of_the_site_is_broken(workdir, page, text, message):
    for path in [*REPO.glob("docs/**/*"), *REPO.glob("clients/*/README.md"), REPO / "examples/README.md", REPO / "README.md", REPO / "scripts/site"]:
        if path.is_file():
            copy = workdir / path.relative_to(REPO)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    with open(workdir / ("" if page == "README.md" else "docs") / page, "a") as file:
        file.write(f"\n{text}\n")
    made = subprocess.run([workdir / "scripts/site"], capture_output=True, text=True, timeout=HANG)
    assert (made.returncode == 0) == (not message), made.stderr
    assert re.search(message, made.stderr)
    assert message or (workdir / "build/site/search.html").exists()
