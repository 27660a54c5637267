"""The browser tool beside the one that came before: the same pages and actions, the trees compared line by line. Where
they differ, it is by a decision of docs/compatibility.md, which says why."""
import contextlib
import difflib
import re
import tempfile
from pathlib import Path

import pytest

from harness import web
from harness.containers import REPO
from harness.original_web import Original
from harness.web import Site, Web

PAGES = Path(__file__).parent / "pages"
SERVED = ("article", "form", "app", "frames", "shadow", "scrolled")
STEPS = [("go", {"url": "form"}), ("type", {"name": "Mail", "text": "ann@example.org"}), ("click", {"name": "News"}),
         ("click", {"name": "Clear"}), ("type_submit", {"name": "House", "text": "13"}), ("back", {}), ("forward", {}),
         ("go", {"url": "article"}), ("click", {"name": "told by the moon"}), ("back", {}), ("refresh", {}),
         ("go", {"url": "scrolled"}), ("scroll", {"direction": "down"}), ("scroll", {"direction": "up"})]


class Line:
    """A node of a tree, taken apart."""

    def __init__(self, text):
        found = re.fullmatch(r'( *)\[(-?\d+|\*)\] (\w+)(?: "(.*?)"(?= |$))?(.*)', text, re.S)
        assert found, repr(text)
        self.level, self.id, self.role, self.name, rest = len(found[1]) // 2, found[2], found[3], found[4], found[5]
        given = re.fullmatch(r"(.*?)(?: +\[((?:\w+(?:: [^\]]*?)?)(?:, \w+(?:: .*?)?)*)\])? *", rest, re.S)
        self.rest, self.properties = given[1].strip(), given[2].split(", ") if given[2] else []

    def __str__(self):
        properties = f" [{', '.join(self.properties)}]" if self.properties else ""
        name = "" if self.name is None else f' "{self.name}"'
        return "  " * self.level + f"{self.role}{name} {self.rest}".rstrip() + properties


class Decisions:
    """Takes from both what differs by decision, and notes which decision it was."""

    def __init__(self):
        self.used = set()

    def drop(self, decision, items, unwanted):
        kept = [item for item in items if not unwanted(item)]
        if len(kept) < len(items):
            self.used.add(decision)
        return kept

    def original(self, text):
        lines = []
        for line in text.rstrip("\n").split("\n"):
            if re.match(r" *\[(-?\d+|\*)\] ", line):
                lines.append(line)
            elif lines:
                lines[-1] += "\\n" + line
                self.used.add("one line")
        if any(line != line.rstrip() for line in lines):
            self.used.add("spaces")
        nodes = [Line(line) for line in lines if line]
        nodes = self.drop("blank text", nodes, lambda n: n.role == "StaticText" and n.name == " ")
        for node in nodes:
            node.properties = self.drop("no value", node.properties, lambda p: p in (
                "labelledby", "describedby", "activedescendant", "valuetext", "controls", "details"))
            node.properties = self.drop("address once", node.properties,
                                        lambda p: node.role == "image" and p == f"url: {node.rest}")
        return nodes

    def ours(self, text, theirs):
        nodes = [Line(line) for line in text.rstrip("\n").split("\n")]
        assert nodes[0].role == "RootWebArea" and nodes[0].level == 0
        self.used.add("root")
        nodes = nodes[1:]
        for node in nodes:
            for member in ("name", "rest"):
                text = getattr(node, member)
                if text and "\\" in text:
                    setattr(node, member, re.sub(r'\\(["\\])', r"\1", text))
                    self.used.add("quotes")
            node.properties = [re.sub(r'^(\w+): "(.*)"$', r"\1: \2", p) for p in node.properties]
        for node in nodes:
            node.level -= 1
        nodes = self.frames(nodes)
        inputs = {(n.role, n.name) for n in theirs if "Current input" in n.rest}
        kept = []
        for node in nodes:
            shown = [re.sub(r": (False|0)$", "", p) for p in node.properties]
            if shown != node.properties:
                self.used.add("false")
            node.properties = self.drop("errors", shown, lambda p: p in ("invalid: true", "readonly: True"))
            if "Current input" in node.rest and (node.role, node.name) not in inputs:
                node.rest = ""
                self.used.add("values")
            if self.is_new(node, theirs):
                self.used.add("usable")
            else:
                kept.append(node)
        return kept

    def frames(self, nodes):
        kept, within = [], None
        for node in nodes:
            if within is not None and node.level > within:
                self.used.add("frames")
                continue
            within = node.level if node.role in ("Iframe", "PluginObject") else None
            kept.append(node)
        return kept

    @staticmethod
    def is_new(node, theirs):
        """What can be used, and has no line of its own there."""
        return (node.role in ("link", "button") or node.role == "generic" and "editable: richtext" in node.properties) and \
            not any(n.role == node.role and n.name == node.name for n in theirs)

    def main(self, theirs, ours):
        if theirs is None or ours is None:
            assert theirs is ours
            return
        words = [set(re.findall(r"\w+", text)) for text in (theirs, ours)]
        assert words[0] == words[1]
        if theirs != ours:
            self.used.add("main text")

    def compare(self, original, page):
        theirs = self.original(original["web_at"])
        ours = self.ours(page["web_at"], theirs)
        difference = list(difflib.unified_diff([str(n) for n in theirs], [str(n) for n in ours], "original", "toolbox",
                                               lineterm="", n=1))
        assert not difference, "\n".join(difference)
        assert original["web_url"] == page["web_url"]
        self.main(original["main_content"], page["main_content"])


@pytest.fixture
def served():
    pages = {f"/{path.name}": path.read_text() for path in PAGES.glob("*.html")}
    with contextlib.closing(Site(pages)) as site:
        yield site


@pytest.fixture
def original(served):
    browser = web.browser()
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Original(Path(folder), browser)) as started:
        started.session = started.call("web_new_session", headful=False)["session_name"]
        yield started


@pytest.fixture(scope="module")
def decisions():
    return Decisions()


def test_no_page_forges_a_line(client, served):
    """What a page calls its parts, however it is written, stays on one line; ids are of this page."""
    ours = Web(client)
    lines = ours.go(served.url("/hostile.html")).rstrip("\n").split("\n")
    nodes = [Line(line) for line in lines]
    assert [node.level for node in nodes[1:]].count(1) > 10 and nodes[0].role == "RootWebArea"
    assert sum("forged" in line for line in lines) < len(lines)
    assert len({node.id for node in nodes}) == len(nodes)
    assert all(character >= " " for line in lines for character in line)
    [giant] = [line for line in lines if "AAAA" in line]
    assert len(giant) < 30200 and giant.endswith(' [part: "the rest is out of view: web_scroll, web_find and web_text have it"]')
    assert ours.page["web_at"].splitlines() == lines
    ours.close()


def test_pages_read_the_same(client, served, original, decisions):
    ours = Web(client)
    for name in SERVED:
        url = served.url(f"/{name}.html")
        theirs = original.call("web_go", session_name=original.session, url=url)
        ours.go(url)
        decisions.compare(theirs, ours.page)
    ours.close()


def step_of(original, step, params, tree):
    """The same step there, with its own ids."""
    if "name" in params:
        params = {**params, "element_id": int(re.search(rf'\[(\d+)\] \w+ "{params["name"]}', tree)[1])}
        del params["name"]
    return original.call(f"web_{step}", session_name=original.session, **params)


def test_a_visit_goes_the_same_way(client, served, original, decisions):
    ours, tree = Web(client), ""
    for step, params in STEPS:
        if "url" in params:
            params = {"url": served.url(f"/{params['url']}.html")}
        theirs = step_of(original, step, params, tree)
        tree = theirs["web_at"]
        if "name" in params:
            params = {**params, "element_id": ours.id(params["name"])}
            del params["name"]
        ours.act(step, **params)
        assert theirs["error"] is None, (step, params, theirs)
        decisions.compare(theirs, ours.page)
    ours.close()


def test_every_decision_is_about_something_and_written_down(decisions):
    if not decisions.used:
        pytest.skip("nothing was compared: the tests before this one were skipped")
    text = (REPO / "docs/compatibility.md").read_text().split("# Where pages read otherwise", 1)[1]
    written = set(re.findall(r"^\| ([a-z ]+) \|", text, re.M)) - {"difference"}
    assert decisions.used == written
